//! Which rows the lists show, in which order, and which of them is under the cursor. Pure.

use crate::model::JobId;
use crate::protocol::{GpuRow, InboxRow, InboxState, JobRow, Snapshot};
use crate::tui::arrange;
use crate::tui::filter::Device;
use crate::tui::layout::{Pane, foremost, main_pane, plan};
use crate::tui::looks;
use crate::tui::ui::{Screen, Ui};
use crate::tui::update::{marks, pending};
use ratatui::layout::Rect;
use std::ops::Deref;

impl Ui {
    /// What is on the screen: the picture that was frozen, or the newest one.
    pub fn shown<'a>(&'a self, snap: &'a Snapshot) -> &'a Snapshot {
        self.frozen.as_ref().map_or(snap, |(_, frozen)| frozen)
    }
}

/// A job that the snapshot has.
pub(in crate::tui) fn told(snap: &Snapshot, job: JobId) -> Option<&JobRow> {
    snap.jobs.iter().chain(&snap.history).find(|row| row.id == job).map(|row| &**row)
}

/// A job, wherever it is.
pub(in crate::tui) fn find<'a>(ui: &'a Ui, snap: &'a Snapshot, job: JobId) -> Option<&'a JobRow> {
    told(snap, job).or_else(|| looks::older(ui, snap).find(|row| row.id == job))
}

/// A row of the queue.
#[derive(Debug, Clone)]
pub(in crate::tui) enum QueueRow<'a> {
    /// As the scheduler tells it.
    Told(&'a JobRow),
    /// As it will be when what is asked for is confirmed.
    Asked(Box<JobRow>),
}

impl Deref for QueueRow<'_> {
    type Target = JobRow;

    fn deref(&self) -> &JobRow {
        match self {
            Self::Told(row) => row,
            Self::Asked(row) => row,
        }
    }
}

/// The rows of the queue, pending moves applied.
pub(in crate::tui) fn queue<'a>(ui: &Ui, snap: &'a Snapshot) -> Vec<QueueRow<'a>> {
    let mut jobs = pending::line(ui, snap);
    if ui.mine || !ui.filters.jobs.is_empty() {
        jobs.retain(|row| passes(ui, snap, row));
    }
    arrange::arrange(ui, Pane::Queue, &mut jobs);
    jobs
}

/// The jobs that are done, as far back as was asked.
pub(in crate::tui) fn done<'a>(ui: &'a Ui, snap: &'a Snapshot) -> impl Iterator<Item = &'a JobRow> {
    snap.history.iter().map(|row| &**row).chain(looks::older(ui, snap))
}

/// The rows of the history.
pub(in crate::tui) fn history<'a>(ui: &'a Ui, snap: &'a Snapshot) -> Vec<&'a JobRow> {
    let mut jobs: Vec<&JobRow> = done(ui, snap).filter(|row| passes(ui, snap, row)).collect();
    arrange::arrange(ui, Pane::History, &mut jobs);
    jobs
}

fn passes(ui: &Ui, snap: &Snapshot, row: &JobRow) -> bool {
    (!ui.mine || row.user == ui.me(snap)) && ui.filters.jobs.matches(row)
}

/// The devices: on their own screen those that pass its filter, beside the queue all.
pub(in crate::tui) fn gpus<'a>(ui: &Ui, snap: &'a Snapshot) -> Vec<&'a GpuRow> {
    let all = ui.filters.gpus.is_empty() || foremost(ui) != Pane::Gpus;
    let passes = |gpu: &&GpuRow| all || ui.filters.gpus.matches(&Device { gpu, jobs: &snap.jobs });
    snap.gpus.iter().filter(passes).collect()
}

/// The files of the inbox.
pub(in crate::tui) fn files<'a>(ui: &Ui, snap: &'a Snapshot) -> Vec<&'a InboxRow> {
    snap.inbox.iter().filter(|row| ui.filters.files.matches(*row)).collect()
}

/// How many files of the inbox are refused.
pub(in crate::tui) fn refused(snap: &Snapshot) -> usize {
    snap.inbox.iter().filter(|row| matches!(row.state, InboxState::Refused { .. })).count()
}

/// The job that keys are about.
pub(in crate::tui) fn selected(ui: &Ui, snap: &Snapshot) -> Option<JobId> {
    if let Some(opened) = &ui.opened {
        return Some(opened.job);
    }
    match (ui.screen, ui.focus) {
        (Screen::Gpus, _) | (_, Pane::Gpus) => {
            let gpu = ui.gpu.as_ref()?;
            snap.gpus.iter().find(|row| row.uuid == *gpu)?.jobs.first().copied()
        }
        (Screen::History, _) | (_, Pane::History) => ui.history_job,
        (Screen::Inbox, _) | (_, Pane::Inbox) => {
            let file = snap.inbox.iter().find(|row| Some(&row.name) == ui.file.as_ref())?;
            match &file.state {
                InboxState::Accepted { jobs, .. } => jobs.first().copied(),
                InboxState::Waiting { .. } | InboxState::Refused { .. } => None,
            }
        }
        (Screen::Meter, _) => None,
        (Screen::Queue, _) => ui.queue_job,
    }
}

/// The job that the life line, the job pane and the log pane show: the queue's, whatever has the focus.
pub(in crate::tui) fn companion(ui: &Ui) -> Option<JobId> {
    ui.opened.as_ref().map_or(ui.queue_job, |opened| Some(opened.job))
}

/// The number of rows of a list, and the one under the cursor.
pub(in crate::tui) fn cursor(ui: &Ui, snap: &Snapshot, pane: Pane) -> (usize, Option<usize>) {
    match pane {
        Pane::Queue => {
            let rows = queue(ui, snap);
            (rows.len(), ui.queue_job.and_then(|job| rows.iter().position(|row| row.id == job)))
        }
        Pane::History => {
            let rows = history(ui, snap);
            (rows.len(), ui.history_job.and_then(|job| rows.iter().position(|row| row.id == job)))
        }
        Pane::Gpus => {
            let rows = gpus(ui, snap);
            (rows.len(), ui.gpu.as_ref().and_then(|gpu| rows.iter().position(|row| row.uuid == *gpu)))
        }
        Pane::Inbox => {
            let rows = files(ui, snap);
            (rows.len(), ui.file.as_ref().and_then(|file| rows.iter().position(|row| row.name == *file)))
        }
        Pane::Meter | Pane::Job | Pane::Log => (0, None),
    }
}

/// Puts the cursor of a list on the row that `to` finds from the number of rows and the present one; both numbers.
pub(in crate::tui) fn go(
    ui: &mut Ui,
    snap: &Snapshot,
    pane: Pane,
    to: impl FnOnce(&Ui, usize, Option<usize>) -> usize,
) -> (usize, usize) {
    // Ten thousand rows are listed once.
    let (count, to) = if pane == Pane::Queue {
        let rows = queue(ui, snap);
        let at = ui.queue_job.and_then(|job| rows.iter().position(|row| row.id == job));
        let to = to(ui, rows.len(), at);
        ui.queue_job = rows.get(to).map(|row| row.id);
        (rows.len(), to)
    } else {
        let (count, at) = cursor(ui, snap, pane);
        let to = to(ui, count, at);
        select(ui, snap, pane, to);
        (count, to)
    };
    ui.at.insert(pane, to);
    (count, to)
}

/// Puts the cursor of a list on a row.
pub(in crate::tui) fn select(ui: &mut Ui, snap: &Snapshot, pane: Pane, row: usize) {
    match pane {
        Pane::Queue => ui.queue_job = queue(ui, snap).get(row).map(|row| row.id),
        Pane::History => ui.history_job = history(ui, snap).get(row).map(|row| row.id),
        Pane::Gpus => ui.gpu = gpus(ui, snap).get(row).map(|row| row.uuid.clone()),
        Pane::Inbox => ui.file = files(ui, snap).get(row).map(|row| row.name.clone()),
        Pane::Meter | Pane::Job | Pane::Log => {}
    }
    ui.at.insert(pane, row);
}

/// Makes the selection mean something after rows or the size have changed: a cursor whose row is gone stays at its
/// place, and it is always on the screen.
pub fn settle(ui: &mut Ui, snap: &Snapshot) {
    let frozen = ui.frozen.take();
    settle_on(ui, frozen.as_ref().map_or(snap, |(_, frozen)| frozen));
    ui.frozen = frozen;
}

fn settle_on(ui: &mut Ui, snap: &Snapshot) {
    let layout = plan(Rect::new(0, 0, ui.size.0, ui.size.1), ui, snap);
    let order = layout.order();
    if !order.contains(&ui.focus) {
        ui.focus = main_pane(ui);
    }
    arrange::keep(ui, snap);
    marks::settle(ui, snap);
    for pane in [Pane::Queue, Pane::History, Pane::Gpus, Pane::Inbox] {
        let last =
            |ui: &Ui, count: usize| ui.at.get(&pane).copied().unwrap_or(0).min(count.saturating_sub(1));
        // Newest first: what came while nobody was there is seen first. Who is there has a row in mind.
        let is_at_top =
            matches!(pane, Pane::History | Pane::Inbox) && ui.focus != pane && !ui.moved.contains(&pane);
        let stays = |ui: &Ui, count, at: Option<usize>| at.unwrap_or_else(|| last(ui, count));
        let (count, at) =
            go(ui, snap, pane, |ui, count, at| if is_at_top { 0 } else { stays(ui, count, at) });
        let (count, at) =
            if arrange::is_grouped(ui, pane) { arrange::extent(ui, snap, pane) } else { (count, Some(at)) };
        let top = scrolled(ui.top(pane), at.unwrap_or(0), layout.rows(pane), count);
        ui.tops.insert(pane, top);
    }
}

/// The first row shown so that `at` is among the `height` rows shown.
pub(in crate::tui) fn scrolled(top: usize, at: usize, height: usize, count: usize) -> usize {
    let height = height.max(1);
    let top = top.min(count.saturating_sub(height));
    if at < top {
        at
    } else if at >= top + height {
        at + 1 - height
    } else {
        top
    }
}
