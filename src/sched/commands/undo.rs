//! What can be taken back: a cancel in its window, and changes of jobs that still wait.
//!
//! A job remembers its last changes with what takes each back, so that this survives the scheduler. They are taken back
//! in the reverse order, and only while nothing else has changed what they had made of the job.

use super::edit::{self, Old};
use super::refused;
use crate::model::{Change, Changed, Event, Job, JobId, Now, Owner, Passed, Span};
use crate::protocol::{Reply, UndoRow};
use crate::sched::Effect;
use crate::sched::step::Turn;
use crate::sched::world::World;

/// How long a change can be taken back.
const CHANGE_WINDOW: Span = Span::secs(3_600);
/// So many are listed at most.
const LISTED: usize = 100;

/// Remembers a change.
pub(super) fn keep(turn: &mut Turn<'_>, job: JobId, by: &Owner, what: Changed) {
    let number = turn.world.counters.seq + 1;
    let change = Change { at: turn.now, number, by: by.name.clone(), what };
    turn.emit(Event::ChangeKept { job, change: Box::new(change) });
}

fn is_open(change: &Change, now: &Now) -> bool {
    now.left_to(&change.at.plus(CHANGE_WINDOW)) > Span(0)
}

/// Takes back the newest change of a job, or of this account's jobs.
pub(super) fn undo(turn: &mut Turn<'_>, by: &Owner, job: Option<JobId>) -> Result<String, Reply> {
    let wanted = |row: &Job, whose: &str| match job {
        Some(job) => job == row.id,
        None => whose == by.name,
    };
    let queue = &turn.world.queue;
    let cancels = queue.cancelling().filter_map(|row| {
        let cancel = row.cancel.as_ref().filter(|cancel| wanted(row, &cancel.by))?;
        Some(((cancel.asked.wall_ms, 0, row.id), None))
    });
    let changes =
        queue.changed().filter(|(row, change)| wanted(row, &change.by) && is_open(change, &turn.now));
    let changes = changes.map(|(row, change)| ((change.at.wall_ms, change.number, row.id), Some(change)));
    let newest = cancels.chain(changes).max_by_key(|(key, _)| *key);
    match newest.map(|((_, _, job), change)| (job, change.cloned())) {
        Some((job, None)) => {
            turn.emit(Event::CancelWithdrawn { job });
            Ok(format!("#{job} is not cancelled"))
        }
        Some((of, Some(change))) => {
            // Who has just cancelled has that in mind, and not what they changed before it.
            if let Some(gone) = cancelled_after(turn.world, by, change.at).filter(|_| job.is_none()) {
                let what = words(&change.what);
                return Err(refused(format!(
                    "#{gone} was cancelled last, and that is done; before it: #{of} {what}, which `overnight undo {of}` or U in the dashboard takes back"
                )));
            }
            take_back(turn, of, &change)
        }
        None => {
            let of = job.map(|job| format!(" about #{job}")).unwrap_or_default();
            Err(refused(format!(
                "nothing{of} can be undone: no cancel is in its window, and no job that still waits was changed in the last hour"
            )))
        }
    }
}

/// The newest job that an account has cancelled after a moment, and that cannot be brought back.
fn cancelled_after(world: &World, by: &Owner, at: Now) -> Option<JobId> {
    let rows = world.queue.history().take(LISTED).chain(world.queue.busy());
    let cancels = rows.filter_map(|row| Some((row.cancel.as_ref()?, row.id)));
    let own = cancels.filter(|(cancel, _)| cancel.by == by.name && cancel.asked.wall_ms > at.wall_ms);
    own.max_by_key(|(cancel, job)| (cancel.asked.wall_ms, *job)).map(|(_, job)| job)
}

fn take_back(turn: &mut Turn<'_>, job: JobId, change: &Change) -> Result<String, Reply> {
    let Some(row) = turn.world.queue.get(job).cloned() else {
        return Err(Reply::NotFound { message: format!("no job {job}") });
    };
    let since = |what: &str| refused(format!("{what} of #{job} has changed since: there is nothing to undo"));
    let said = match &change.what {
        Changed::Priority { old, new } => {
            if row.priority != *new {
                return Err(since("the priority"));
            }
            format!("#{job} has priority {old} again")
        }
        Changed::Place { new, passed, .. } => {
            if row.position != *new {
                return Err(since("the place"));
            }
            // Who was passed and waits no longer has no place in line to get back.
            if let Some(Passed { job: other, old, new }) = passed
                && let Some(other) = turn.world.queue.get(*other)
                && other.position == *new
                && turn.world.queue.is_in_line(other)
            {
                turn.emit(Event::PositionChanged { job: other.id, position: *old, ranked: false });
            }
            format!("#{job} is back in its old place")
        }
        Changed::Paused => format!("#{job} waits for its turn again"),
        Changed::Resumed { .. } => format!("#{job} is paused again"),
        Changed::Request { old, fields } => {
            let again = edit::again(turn, &row, old)?;
            let was = (row.spec.name != old.spec.name).then(|| row.folder());
            let Old { request, prepared } = again;
            turn.emit(Event::JobEdited { job, request: Box::new(request), prepared });
            turn.effect(Effect::Rewrite { job, was });
            format!("#{job} asks for what it asked before{}", named(fields))
        }
    };
    turn.emit(Event::ChangeUndone { job });
    Ok(said)
}

fn named(fields: &[String]) -> String {
    if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) }
}

/// All that can still be taken back, the newest first.
pub fn undoable(world: &World, now: &Now) -> Vec<UndoRow> {
    let row = |row: &Job, what: String, by: &str, at: i64, until: i64| UndoRow {
        job: row.id,
        name: row.spec.name.clone(),
        what,
        by: by.to_owned(),
        at,
        until,
    };
    let cancels = world.queue.cancelling().filter_map(|job| {
        let cancel = job.cancel.as_ref()?;
        let (asked, due) = (cancel.asked.wall_ms, cancel.due.wall_ms);
        Some(((asked, 0), row(job, "cancel".to_owned(), &cancel.by, asked, due)))
    });
    let changes = world.queue.changed().flat_map(|(job, _)| {
        job.changes.iter().filter(|change| is_open(change, now)).map(move |change| (job, change))
    });
    let changes = changes.map(|(job, change)| {
        let (at, until) = (change.at.wall_ms, change.at.plus(CHANGE_WINDOW).wall_ms);
        ((at, change.number), row(job, words(&change.what), &change.by, at, until))
    });
    let mut all: Vec<((i64, u64), UndoRow)> = cancels.chain(changes).collect();
    all.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
    all.truncate(LISTED);
    all.into_iter().map(|(_, row)| row).collect()
}

fn words(what: &Changed) -> String {
    match what {
        Changed::Priority { old, new } => format!("priority {old} -> {new}"),
        Changed::Place { .. } => "move".to_owned(),
        Changed::Paused => "pause".to_owned(),
        Changed::Resumed { .. } => "resume".to_owned(),
        Changed::Request { fields, .. } => format!("edit{}", named(fields)),
    }
}
