//! Changes that were asked for and not confirmed yet: drawn at once, settled by the scheduler's next rows.
//!
//! At most one command a job is on its way, and one in 400 ms; what is pressed meanwhile is put together and goes out when
//! the first is confirmed, so that a held key costs a few round trips and not twenty. Pure.

use crate::model::{Generation, JobId, JobState, Now, Priority, Span};
use crate::protocol::{self, Command, JobRow, Place, Snapshot};
use crate::tui::UiCommand;
use crate::tui::looks::Look;
use crate::tui::rows::{self, QueueRow};
use crate::tui::ui::{Level, Ui};
use crate::tui::update::{acts, bulk};
use std::collections::VecDeque;

/// One change of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Change {
    /// Its priority.
    Priority(Priority),
    /// Its place in line.
    Move(Place),
    /// Paused or not.
    Pause(bool),
    /// Cancelled.
    Cancel {
        /// The undo window.
        undo: Span,
        /// Killed at once.
        now: bool,
    },
}

/// What is asked of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The front of the line is on its way.
    flies: bool,
    /// It was answered: what the scheduler does not do it has given a reason for.
    is_answered: bool,
    /// What the job was doing when the last change was asked for.
    state: JobState,
    /// As the job was when it went out.
    sent: Generation,
    sent_ms: u64,
    until_ms: u64,
    /// Changes are applied in the order in which they were asked for.
    turn: usize,
    line: VecDeque<Change>,
}

/// Without an answer a change is given up after this.
const PATIENCE_MS: u64 = 5_000;
/// What is pressed within this time of a request goes out as one.
const TOGETHER_MS: u64 = 400;
/// After an answer the row follows at once, unless nothing changed.
const SETTLE_MS: u64 = 700;

impl Pending {
    /// The priority that is asked for.
    pub fn priority(&self) -> Option<Priority> {
        self.line.iter().rev().find_map(|change| match change {
            Change::Priority(priority) => Some(*priority),
            Change::Move(_) | Change::Pause(_) | Change::Cancel { .. } => None,
        })
    }

    /// Whether it is asked to be paused.
    pub(in crate::tui) fn paused(&self) -> Option<bool> {
        self.line.iter().rev().find_map(|change| match change {
            Change::Pause(pause) => Some(*pause),
            Change::Priority(_) | Change::Move(_) | Change::Cancel { .. } => None,
        })
    }

    fn moves(&self) -> impl Iterator<Item = Place> {
        self.line.iter().filter_map(|change| match change {
            Change::Move(place) => Some(*place),
            Change::Priority(_) | Change::Pause(_) | Change::Cancel { .. } => None,
        })
    }
}

impl Change {
    /// The question what it does to others. Of a job that runs, or a cancel, nobody asks that.
    const fn what_if(self, job: JobId) -> Option<Look> {
        let change = match self {
            Self::Priority(priority) => protocol::Change::Priority(priority),
            Self::Move(to) => protocol::Change::Move(to),
            Self::Pause(true) => protocol::Change::Pause,
            Self::Pause(false) => protocol::Change::Resume,
            Self::Cancel { .. } => return None,
        };
        Some(Look::WhatIf { job, change })
    }

    fn command(self, job: JobId, generation: Generation) -> Command {
        match self {
            Self::Priority(priority) => Command::SetPriority { job, generation, priority },
            Self::Move(to) => Command::Move { job, generation, to },
            Self::Pause(true) => Command::Pause { job, generation },
            Self::Pause(false) => Command::Resume { job, generation },
            Self::Cancel { undo, now } => Command::Cancel { job, generation, undo, now },
        }
    }
}

/// Asks for changes of a job; returns what goes out now.
pub(in crate::tui) fn ask(ui: &mut Ui, row: &JobRow, changes: &[Change]) -> Vec<UiCommand> {
    let now = ui.now.boottime_ms;
    if let Some(pending) = ui.pending.get_mut(&row.id) {
        for change in changes {
            pending.put(*change);
        }
        pending.state = row.state;
        return Vec::new();
    }
    let Some(first) = changes.first() else { return Vec::new() };
    let line = changes.iter().copied().collect();
    let until_ms = now + PATIENCE_MS;
    let turn = ui.pending.values().map(|pending| pending.turn + 1).max().unwrap_or(0);
    let (sent, state) = (row.generation, row.state);
    let pending =
        Pending { flies: true, is_answered: false, state, sent, sent_ms: now, until_ms, turn, line };
    ui.pending.insert(row.id, pending);
    let send = UiCommand::Send { job: Some(row.id), command: first.command(row.id, row.generation) };
    // What it does to the others is asked before it is done: afterwards it would do nothing more.
    let look = first.what_if(row.id).map(|look| look.ask(ui.now.wall_ms));
    look.into_iter().chain([send]).collect()
}

impl Pending {
    /// Behind what was asked for; what it makes needless and has not gone out yet goes.
    fn put(&mut self, change: Change) {
        let gone = usize::from(self.flies);
        let replaces = |one: &Change| match (one, change) {
            (Change::Priority(_), Change::Priority(_)) | (Change::Pause(_), Change::Pause(_)) => true,
            (Change::Move(_), Change::Move(to)) => matches!(to, Place::Top | Place::Bottom),
            _ => false,
        };
        while self.line.len() > gone && self.line.back().is_some_and(replaces) {
            self.line.pop_back();
        }
        let back = self.line.back().filter(|_| self.line.len() > gone);
        let opposite = matches!(
            (back, change),
            (Some(Change::Move(Place::Up)), Change::Move(Place::Down))
                | (Some(Change::Move(Place::Down)), Change::Move(Place::Up))
        );
        if opposite {
            self.line.pop_back();
        } else {
            self.line.push_back(change);
        }
    }
}

/// Takes back what was pressed last, of this job or of all, and has not gone out yet; `false` if everything has.
pub(in crate::tui) fn take_back(ui: &mut Ui, of: Option<JobId>) -> bool {
    let waits = |(job, pending): &(&JobId, &mut Pending)| {
        of.is_none_or(|of| of == **job) && pending.line.len() > usize::from(pending.flies)
    };
    let newest = ui.pending.iter_mut().filter(waits).max_by_key(|(_, pending)| pending.sent_ms);
    newest.is_some_and(|(_, pending)| pending.line.pop_back().is_some())
}

/// Drops what the new rows confirm and sends what waited for it.
pub(in crate::tui) fn settle(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    let (mut out, mut failed) = (Vec::new(), None);
    let now = ui.now.boottime_ms;
    ui.pending.retain(|job, pending| {
        let Some(row) = rows::told(snap, *job) else { return false };
        if pending.flies {
            if row.generation == pending.sent && now < pending.until_ms {
                return true;
            }
            if row.generation == pending.sent && !pending.is_answered {
                failed = Some((*job, "the scheduler has not answered: it is as it was"));
            }
            pending.line.pop_front();
            pending.flies = false;
        }
        let Some(next) = pending.line.front() else { return false };
        // Who cancels a job that waits has not agreed to kill one that runs.
        if matches!(next, Change::Cancel { .. }) && row.state != pending.state {
            failed = Some((*job, "it went on meanwhile, and is not cancelled"));
            return false;
        }
        if now < pending.sent_ms + TOGETHER_MS {
            return true;
        }
        out.extend(next.what_if(*job).map(|look| look.ask(ui.now.wall_ms)));
        out.push(UiCommand::Send { job: Some(*job), command: next.command(*job, row.generation) });
        (pending.flies, pending.is_answered, pending.sent) = (true, false, row.generation);
        (pending.sent_ms, pending.until_ms) = (now, now + PATIENCE_MS);
        true
    });
    if let Some((job, why)) = failed.filter(|(job, _)| !bulk::awaits(ui, *job)) {
        ui.say(Level::Warning, format!("#{job}: {why}"), Some(job));
    }
    out
}

/// The scheduler has answered: the row follows soon, or nothing changed.
pub(in crate::tui) fn answered(ui: &mut Ui, job: JobId) {
    let soon = ui.now.boottime_ms + SETTLE_MS;
    if let Some(pending) = ui.pending.get_mut(&job) {
        pending.until_ms = pending.until_ms.min(soon);
        pending.is_answered = true;
    }
}

/// When the next change is given up.
pub(in crate::tui) fn deadline(ui: &Ui) -> Option<u64> {
    let next = |pending: &Pending| {
        if pending.flies { pending.until_ms } else { pending.sent_ms + TOGETHER_MS }
    };
    ui.pending.values().map(next).min()
}

/// The jobs of the line in the order they will have if everything asked for is granted.
pub(in crate::tui) fn line<'a>(ui: &Ui, snap: &'a Snapshot) -> Vec<QueueRow<'a>> {
    let mut jobs: Vec<QueueRow<'_>> = snap.jobs.iter().map(|row| QueueRow::Told(row)).collect();
    let mut asked: Vec<_> = ui.pending.iter().collect();
    asked.sort_by_key(|(_, pending)| pending.turn);
    for (job, pending) in asked {
        let Some(from) = jobs.iter().position(|row| row.id == *job) else { continue };
        if !waits(&jobs[from]) {
            continue;
        }
        if let Some(priority) = pending.priority() {
            let mut row = JobRow::clone(&jobs.remove(from));
            row.priority = priority;
            let behind = |other: &QueueRow<'_>| {
                !waits(other) && other.paused_by.is_none() || waits(other) && other.priority >= priority
            };
            let to = jobs.iter().rposition(behind).map_or(0, |at| at + 1);
            jobs.insert(to, QueueRow::Asked(Box::new(row)));
        }
        for place in pending.moves() {
            shift(&mut jobs, *job, place);
        }
    }
    jobs
}

/// The places in line of a job's owner at the job's priority, and which of them is the job's.
pub(in crate::tui) fn group(jobs: &[QueueRow<'_>], job: JobId) -> Option<(Vec<usize>, usize)> {
    let row = jobs.iter().find(|row| row.id == job)?;
    let alike =
        |other: &QueueRow<'_>| waits(other) && other.user == row.user && other.priority == row.priority;
    let places: Vec<usize> = (0..jobs.len()).filter(|at| alike(&jobs[*at])).collect();
    let own = places.iter().position(|at| jobs[*at].id == job)?;
    Some((places, own))
}

fn shift(jobs: &mut [QueueRow<'_>], job: JobId, place: Place) {
    let Some((places, own)) = group(jobs, job) else { return };
    let target = match place {
        Place::Top => 0,
        Place::Bottom => places.len() - 1,
        Place::Up => own.saturating_sub(1),
        Place::Down => (own + 1).min(places.len() - 1),
    };
    let mut at = own;
    while at != target {
        let next = if target < at { at - 1 } else { at + 1 };
        jobs.swap(places[at], places[next]);
        at = next;
    }
}

/// Waits in line: not paused, not under way.
pub(in crate::tui) fn waits(row: &JobRow) -> bool {
    row.state == JobState::Queued && row.paused_by.is_none()
}

/// Has not started.
pub(in crate::tui) fn is_queued(row: &JobRow) -> bool {
    row.state == JobState::Queued
}

/// Whether it was cancelled by whoever looks.
pub(in crate::tui) fn is_own_cancel(ui: &Ui, snap: &Snapshot, row: &JobRow) -> bool {
    row.cancel_by.as_deref().is_none_or(|by| by == ui.me(snap))
}

/// When a cancel was asked for, wall milliseconds.
pub(in crate::tui) fn cancel_asked(row: &JobRow) -> i64 {
    row.cancel_at.unwrap_or(0) - acts::undo_window(row).0 as i64
}

/// Whether `u` takes this cancel back: it is the newest of all that was done from here.
pub(in crate::tui) fn is_next_undone(ui: &Ui, snap: &Snapshot, row: &JobRow, now: &Now) -> bool {
    let own = snap.jobs.iter().filter(|row| undoable(row, now) && is_own_cancel(ui, snap, row));
    let newest = own.max_by_key(|row| (cancel_asked(row), row.id));
    newest.is_some_and(|newest| newest.id == row.id) && !ui.deeds.newer_than(cancel_asked(row))
}

/// Whether what is on its way is a cancel that can be undone.
pub(in crate::tui) fn is_undoable_cancel(ui: &Ui, job: JobId) -> bool {
    let front = ui.pending.get(&job).and_then(|pending| pending.line.front());
    matches!(front, Some(Change::Cancel { undo, .. }) if undo.0 > 0)
}

/// Whether a cancel of this job can still be undone.
pub(in crate::tui) fn undoable(row: &JobRow, now: &Now) -> bool {
    row.state != JobState::Done && row.cancel_at.is_some_and(|at| at > now.wall_ms)
}
