//! When the screen must be looked at again although nothing arrives: computed here and nowhere else.

use crate::model::{Cursor, Now};
use crate::protocol::{Connection, Snapshot};
use crate::tui::arrange;
use crate::tui::figures::FIGURES_MS;
use crate::tui::looks;
use crate::tui::panels::header::DAY_MS;
use crate::tui::panels::log;
use crate::tui::ui::Ui;
use crate::tui::update::pending;

/// Milliseconds until something on the screen changes by itself; `None` if nothing does.
///
/// `tick_ms` is how often running times are shown.
pub fn next_deadline(ui: &Ui, snap: &Snapshot, now: &Now, tick_ms: u64) -> Option<u64> {
    let to_boundary = |step: u64| step - now.wall_ms.unsigned_abs() % step;
    let runs = snap.jobs.iter().any(|row| row.state != Cursor::Queued);
    let counts_down = snap.jobs.iter().any(|row| pending::undoable(row, now));
    let waits = !snap.jobs.is_empty();
    let lost = matches!(ui.connection, Connection::Lost { ref retry_in, .. } if retry_in.0 > 0);
    let stale = matches!(ui.connection, Connection::Stale { .. });
    // What is said of today is gone with the day.
    let meter = &snap.meter;
    let ended = meter.today_ok + meter.today_failed + meter.today_lost;
    let midnight = meter.today_began + DAY_MS - now.wall_ms;
    let at = |boot_ms: u64| boot_ms.saturating_sub(now.boottime_ms).max(1);
    [
        (ui.frozen.is_some() || counts_down || lost || stale || log::turns(ui)).then(|| to_boundary(1000)),
        (runs && ui.frozen.is_none()).then(|| to_boundary(tick_ms)),
        (waits && ui.frozen.is_none()).then(|| to_boundary(60_000)),
        (ended > 0 && midnight > 0 && ui.frozen.is_none()).then_some(midnight.unsigned_abs()),
        ui.message.as_ref().and_then(|message| message.until).map(at),
        pending::deadline(ui).map(at),
        arrange::deadline(ui).map(at),
        ui.tally.as_ref().map(|tally| at(tally.until_ms)),
        (!ui.gpus_behind.1.is_empty()).then(|| at(ui.gpus_behind.0 + FIGURES_MS)),
        looks::deadline(ui, snap).map(at),
    ]
    .into_iter()
    .flatten()
    .min()
}
