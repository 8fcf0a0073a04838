//! Marked rows: what keys are about instead of the row under the cursor. Pure.

use crate::model::JobId;
use crate::protocol::{JobRow, Snapshot};
use crate::tui::layout::Pane;
use crate::tui::rows;
use crate::tui::ui::Ui;
use std::collections::BTreeSet;

/// The jobs that a table shows, in its order.
fn listed(ui: &Ui, snap: &Snapshot) -> Vec<JobId> {
    match ui.focus {
        _ if ui.opened.is_some() => Vec::new(),
        Pane::Queue => rows::queue(ui, snap).iter().map(|row| row.id).collect(),
        Pane::History => rows::history(ui, snap).iter().map(|row| row.id).collect(),
        _ => Vec::new(),
    }
}

/// The marked jobs of the table that has the keys. What a filter hides is not acted on.
pub(in crate::tui) fn shown(ui: &Ui, snap: &Snapshot) -> Vec<JobId> {
    if ui.marks.is_empty() {
        return Vec::new();
    }
    listed(ui, snap).into_iter().filter(|job| ui.marks.contains(job)).collect()
}

/// Marks the job under the cursor, or takes its mark.
pub(in crate::tui) fn toggle(ui: &mut Ui, snap: &Snapshot) {
    if let Some(job) = rows::selected(ui, ui.shown(snap))
        && !ui.marks.remove(&job)
    {
        ui.marks.insert(job);
    }
}

/// Marks everything that the table shows; takes those marks if all have one.
pub(in crate::tui) fn all(ui: &mut Ui, snap: &Snapshot) {
    let jobs = listed(ui, ui.shown(snap));
    if jobs.iter().all(|job| ui.marks.contains(job)) {
        ui.marks.retain(|job| !jobs.contains(job));
    } else {
        ui.marks.extend(jobs);
    }
}

/// Jobs that are gone lose their mark; one that has ended keeps it.
pub(in crate::tui) fn settle(ui: &mut Ui, snap: &Snapshot) {
    if ui.marks.is_empty() {
        return;
    }
    let open = snap.jobs.iter().map(|row| row.id);
    let there: BTreeSet<JobId> = open.chain(rows::done(ui, snap).map(|row| row.id)).collect();
    ui.marks.retain(|job| there.contains(job));
}

/// `3 marked`, and how many of them cannot be seen.
pub(in crate::tui) fn words(ui: &Ui, snap: &Snapshot, pane: Pane) -> String {
    if ui.marks.is_empty() {
        return String::new();
    }
    let is_marked = |row: &&JobRow| ui.marks.contains(&row.id);
    let (all, seen) = if pane == Pane::History {
        let seen = rows::history(ui, snap).iter().filter(|row| ui.marks.contains(&row.id)).count();
        (rows::done(ui, snap).filter(is_marked).count(), seen)
    } else {
        let seen = rows::queue(ui, snap).iter().filter(|row| ui.marks.contains(&row.id)).count();
        (snap.jobs.iter().map(|row| &**row).filter(is_marked).count(), seen)
    };
    match (all, all - seen.min(all)) {
        (0, _) => String::new(),
        (_, 0) => format!("  {all} marked"),
        (_, hidden) => format!("  {all} marked, {hidden} hidden"),
    }
}
