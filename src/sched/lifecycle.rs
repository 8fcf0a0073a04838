//! What follows from where a job is: preparation, due cancels, retries, ends, and those that wait for an end.

use super::step::{Turn, needs_directory, needs_preparation, sources};
use super::world::World;
use super::{Effect, Prepare, StopKind, plan};
use crate::model::{
    AttemptNo, AttemptState, CancelRequest, Cursor, DataFrom, Event, Failure, Job, JobId, LeaseId, Outcome,
    RetryOn, Span, TaskIx,
};

/// An attempt of which no process was ever started is made again this often, whatever the job says about retries.
const NEVER_RAN_MAX: usize = 5;

/// An attempt's directory is ready, or never will be.
pub(super) fn prepared(
    turn: &mut Turn<'_>,
    job: JobId,
    task: TaskIx,
    attempt: AttemptNo,
    result: Result<(), String>,
) {
    turn.world.queue.end_preparing(job, task, attempt);
    let waits = turn.world.queue.get(job).and_then(|row| row.task(task)).is_some_and(|row| {
        row.current().number == attempt
            && matches!(row.current().state, AttemptState::Queued { prepared: false, .. })
    });
    if !waits {
        return;
    }
    match result {
        Ok(()) => turn.emit(Event::AttemptPrepared { job, task, attempt }),
        Err(why) => {
            turn.emit(Event::AttemptDropped { job, task, attempt, outcome: Outcome::NeverStarted { why } });
            finish(turn, job);
        }
    }
}

/// The output of an attempt is home: scratch goes, the receipt comes.
pub(super) fn release(turn: &mut Turn<'_>, job: JobId, task: TaskIx, attempt: AttemptNo, lease: LeaseId) {
    turn.effect(Effect::Release { job, task, attempt, lease });
}

/// Scratch is gone: the attempt is done, and the task is tried again or was this.
pub(super) fn released(turn: &mut Turn<'_>, job: JobId, task: TaskIx, attempt: AttemptNo) {
    let releasing = turn.world.queue.get(job).and_then(|row| row.task(task)).is_some_and(|row| {
        row.current().number == attempt && row.current().state.cursor() == Cursor::Releasing
    });
    if !releasing {
        return;
    }
    turn.emit(Event::AttemptReleased { job, task, attempt });
    let Some(row) = turn.world.queue.get(job) else { return };
    if retries(turn.world, row, task) {
        let prepared = !needs_preparation(&row.spec);
        turn.emit(Event::RetryQueued { job, task, attempt: attempt.next(), prepared });
    } else {
        finish(turn, job);
    }
}

/// Carries out due cancels, ends marks of edits that have expired, and starts preparations that nothing holds up.
pub(super) fn settle(turn: &mut Turn<'_>) {
    let cancels: Vec<(JobId, CancelRequest)> = turn
        .world
        .queue
        .cancelling()
        .filter_map(|job| job.cancel.as_ref().map(|cancel| (job.id, cancel.clone())))
        .collect();
    for (job, cancel) in cancels {
        let left = cancel.left(&turn.now);
        if left == Span(0) {
            carry_out_cancel(turn, job);
            continue;
        }
        if cancel.due.boot != turn.now.boot {
            // From here on no clock that is set makes the window longer.
            let request = CancelRequest { asked: turn.now, due: turn.now.plus(left), ..cancel };
            turn.emit(Event::CancelRequested { job, request });
        }
        turn.wake(turn.now.boottime_ms.saturating_add(left.0));
    }
    let marks: Vec<(JobId, Span)> =
        turn.world.queue.editing().map(|(job, mark)| (job.id, mark.left(&turn.now))).collect();
    for (job, left) in marks {
        if left == Span(0) {
            turn.emit(Event::EditEnded { job });
        } else {
            turn.wake(turn.now.boottime_ms.saturating_add(left.0));
        }
    }
    let unprepared: Vec<Prepare> =
        turn.world.queue.unprepared().filter_map(|job| preparation(turn.world, job)).collect();
    for prepare in unprepared {
        turn.world.queue.begin_preparing(prepare.job, prepare.task, prepare.attempt);
        turn.effect(Effect::Prepare(Box::new(prepare)));
    }
}

/// What an attempt needs before a grant, if nothing else holds it up and it is not under way.
fn preparation(world: &World, job: &Job) -> Option<Prepare> {
    let (task, attempt) = plan::queued(job)?;
    // What is being edited may soon need something else.
    if job.cancel.is_some() || job.edit.is_some() {
        return None;
    }
    // A copy of the code is taken at once; data of earlier jobs can be looked at only when they are done.
    let by_job = sources(world, job);
    let has_sources = job.spec.data.iter().any(|item| matches!(item.from, DataFrom::Job { .. }));
    if (has_sources || !needs_directory(job)) && plan::waits_for(world, job).is_some() {
        return None;
    }
    let sources = job
        .spec
        .data
        .iter()
        .zip(by_job)
        .filter_map(|(item, output)| output.map(|output| (item.clone(), output)))
        .collect();
    let edited = job.file.is_some();
    Some(Prepare {
        job: job.id,
        folder: job.folder(),
        task,
        attempt,
        spec: job.spec.clone(),
        edited,
        sources,
    })
}

/// The undo window is closed: a waiting job is done, a running one is stopped, one whose run has ended goes its way.
pub(super) fn carry_out_cancel(turn: &mut Turn<'_>, job: JobId) {
    // Another cancel of this turn may have ended it: what waits for a cancelled job never starts.
    if !turn.world.queue.is_live(job) {
        return;
    }
    turn.emit(Event::CancelDue { job });
    let Some(row) = turn.world.queue.get(job) else { return };
    let Some(cancel) = row.cancel.clone() else { return };
    if let Some(lease) = running_lease(row) {
        turn.effect(Effect::Stop { lease, kind: stop_kind(&cancel) });
    } else if let Some((task, attempt)) = plan::queued(row) {
        let outcome = Outcome::Cancelled { by: cancel.by };
        turn.emit(Event::AttemptDropped { job, task, attempt, outcome });
        finish(turn, job);
    }
}

/// Ends a job all of whose tasks are done, and with it what can never start now.
pub(super) fn finish(turn: &mut Turn<'_>, job: JobId) {
    let mut ended = vec![job];
    while let Some(job) = ended.pop() {
        let Some(row) = turn.world.queue.get(job) else { continue };
        if row.done.is_some() || row.state() != Cursor::Done {
            continue;
        }
        let outcome = job_outcome(row);
        let failed = !outcome.is_success();
        turn.emit(Event::JobDone { job, outcome: outcome.clone() });
        turn.effect(Effect::WriteReceipt { job });
        if !failed {
            continue;
        }
        for waiting in turn.world.queue.dependents(job) {
            let Some(row) = turn.world.queue.get(waiting) else { continue };
            let needs =
                row.after.iter().any(|dependency| dependency.job == Some(job) && dependency.must_succeed);
            if let (true, Some((task, attempt))) = (needs, plan::queued(row)) {
                let why = never_after(job, &outcome);
                let outcome = Outcome::NeverStarted { why };
                turn.emit(Event::AttemptDropped { job: waiting, task, attempt, outcome });
                ended.push(waiting);
            }
        }
    }
}

/// What a job's tasks come to: the first that did not succeed tells.
pub(super) fn job_outcome(job: &Job) -> Outcome {
    job.tasks
        .iter()
        .filter_map(|task| task.current().state.outcome())
        .find(|outcome| !outcome.is_success())
        .cloned()
        .unwrap_or(Outcome::Succeeded)
}

/// Whether a task whose attempt is done is tried again. An attempt of which nothing ran, through the pool's fault, is not
/// one that the job's own count is about; while the disk lets nothing start it is none at all.
fn retries(world: &World, job: &Job, task: TaskIx) -> bool {
    let Some(row) = job.task(task) else { return false };
    let retry = &job.spec.request.retry;
    // While its window is open a cancel can be undone: it waits for that, queued.
    if job.cancel.as_ref().is_some_and(|cancel| cancel.carried_out) {
        return false;
    }
    let empty = row.attempts.iter().filter(|attempt| attempt.never_ran()).count();
    if row.current().never_ran() {
        return empty <= NEVER_RAN_MAX || world.held_up.is_some();
    }
    if row.attempts.len() - empty > retry.times as usize {
        return false;
    }
    let Some(outcome) = row.current().state.outcome() else { return false };
    retry.when.iter().any(|when| match (when, outcome) {
        (RetryOn::Lost, Outcome::Lost { .. }) | (RetryOn::Limit, Outcome::LimitReached) => true,
        (RetryOn::Code(wanted), Outcome::Failed(Failure::Code(code))) => wanted == code,
        _ => false,
    })
}

pub(super) fn running_lease(job: &Job) -> Option<LeaseId> {
    job.tasks
        .iter()
        .map(|task| &task.current().state)
        .find(|state| matches!(state.cursor(), Cursor::Renting | Cursor::Running))
        .and_then(AttemptState::lease)
}

pub(super) fn stop_kind(cancel: &crate::model::CancelRequest) -> StopKind {
    if cancel.now {
        StopKind::CancelNow { by: cancel.by.clone() }
    } else {
        StopKind::Cancel { by: cancel.by.clone() }
    }
}

/// Why a job that waits for one that came to this never starts.
pub(super) fn never_after(job: JobId, outcome: &Outcome) -> String {
    format!("after #{job} {}", short(outcome))
}

const fn short(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed(_) => "failed",
        Outcome::LimitReached => "reached its limit",
        Outcome::Cancelled { .. } => "was cancelled",
        Outcome::NeverStarted { .. } => "never started",
        Outcome::Lost { .. } => "was lost",
    }
}
