//! Where the keys that move lead: in lists, and in the log. Pure.

use super::log_size;
use crate::protocol::Snapshot;
use crate::tui::keys::Action;
use crate::tui::panels::log;
use crate::tui::ui::Ui;

pub(super) const fn paging(action: &Action) -> bool {
    matches!(action, Action::PageDown | Action::PageUp | Action::HalfDown | Action::HalfUp)
}

/// Where a key leads in a list of so many rows, of which so many are seen.
pub(in crate::tui) fn step(at: usize, count: usize, height: usize, action: &Action) -> usize {
    let half = (height / 2).max(1);
    let to = match action {
        Action::Down => at + 1,
        Action::Up => at.saturating_sub(1),
        Action::HalfDown => at + half,
        Action::HalfUp => at.saturating_sub(half),
        Action::PageDown => at + height,
        Action::PageUp => at.saturating_sub(height),
        Action::First => 0,
        Action::Last => usize::MAX,
        _ => at,
    };
    to.min(count.saturating_sub(1))
}

pub(super) fn travel_log(ui: &mut Ui, snap: &Snapshot, action: &Action) {
    let (columns, height) = log_size(ui, snap);
    let page = isize::try_from(height.max(1)).unwrap_or(1);
    ui.log.found = None;
    match action {
        Action::First => log::stop_at(&mut ui.log, 0),
        Action::Last => ui.log.stopped_at = None,
        _ => {
            let by = match action {
                Action::Down => 1,
                Action::Up => -1,
                Action::HalfDown => page / 2,
                Action::HalfUp => -page / 2,
                Action::PageDown => page,
                _ => -page,
            };
            log::scroll(&mut ui.log, columns, height, by);
        }
    }
}
