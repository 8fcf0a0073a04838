//! Under low bandwidth the figures of devices are shown every few seconds; what else changes, at once. Pure.

use crate::model::Now;
use crate::protocol::{GpuRow, Snapshot, Update};
use crate::tui::ui::Ui;

/// Under low bandwidth figures of devices are shown this often.
pub(in crate::tui) const FIGURES_MS: u64 = 5_000;

/// Under low bandwidth: devices of which only figures have changed wait for the next time that figures are shown.
pub(in crate::tui) fn hold_back(ui: &mut Ui, snap: &Snapshot, update: &mut Update) {
    let now = ui.now.boottime_ms;
    let (since, behind) = &mut ui.gpus_behind;
    let is_whole = update.since.is_none() || update.gpu_order.is_some();
    behind.retain(|old| !update.gpus.iter().any(|new| new.uuid == old.uuid));
    if !ui.thrift || is_whole || now >= *since + FIGURES_MS {
        *since = if update.gpus.is_empty() && behind.is_empty() { *since } else { now };
        update.gpus.append(behind);
        return;
    }
    let changes = |new: &GpuRow| {
        let old = snap.gpus.iter().find(|old| old.uuid == new.uuid);
        old.is_none_or(|old| old.state != new.state || old.jobs != new.jobs || old.detail != new.detail)
    };
    let (shown, figures) = std::mem::take(&mut update.gpus).into_iter().partition(changes);
    update.gpus = shown;
    let figures: Vec<GpuRow> = figures;
    behind.extend(figures);
}

/// Shows the figures that waited, when it is time.
pub(in crate::tui) fn catch_up(ui: &mut Ui, snap: &mut Snapshot, now: Now) {
    let (since, behind) = &mut ui.gpus_behind;
    if behind.is_empty() || ui.thrift && now.boottime_ms < *since + FIGURES_MS {
        return;
    }
    *since = now.boottime_ms;
    for new in behind.drain(..) {
        if let Some(old) = snap.gpus.iter_mut().find(|old| old.uuid == new.uuid) {
            *old = new;
        }
    }
}
