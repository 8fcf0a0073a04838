//! What the engine saw. Reports may be late, repeated or out of order; each fact is taken once.

use super::step::Turn;
use super::{Effect, EngineReport, lifecycle};
use crate::model::{
    AttemptNo, Bytes, Collected, Cursor, EndedBy, Enforcement, Event, Failure, Job, JobId, LeaseId, Now,
    Outcome, RunEnd, TaskIx,
};
use crate::sched::world::Collecting;

/// How a run ended, with who says so.
struct End {
    at: Now,
    how: RunEnd,
    by: EndedBy,
    peak_memory: Option<Bytes>,
    suspended_ms: u64,
    notes: Vec<String>,
}

/// Takes one report.
pub(super) fn report(turn: &mut Turn<'_>, report: EngineReport) {
    match report {
        EngineReport::Started { lease, task, attempt, at, enforcement } => {
            started(turn, lease, (task, attempt), at, enforcement);
        }
        EngineReport::Heartbeat { lease, at } => {
            // Not a moment that is still to come, whatever a clock said.
            let future = at.boot == turn.now.boot && at.boottime_ms > turn.now.boottime_ms;
            turn.world.heartbeat(lease, if future { turn.now } else { at });
        }
        EngineReport::Ended { lease, task, attempt, at, end, by, peak_memory, suspended_ms, notes } => {
            if by == EndedBy::Proven {
                gone(turn, lease);
            }
            if runs(turn, lease, (task, attempt)) {
                ended(turn, lease, End { at, how: end, by, peak_memory, suspended_ms, notes });
            }
        }
        EngineReport::Outlived { lease, who } => turn.world.leases.outlived(lease, who),
        EngineReport::Gone { lease } => gone(turn, lease),
        EngineReport::Collected { lease, task, attempt, result } => {
            collected(turn, lease, (task, attempt), result);
        }
        EngineReport::CollectionWaits { lease, why } => {
            if live_job(turn, lease, &[Cursor::Returning]).is_some() {
                turn.world.leases.collecting(lease, Some(Collecting::Waits(why)));
            }
        }
        EngineReport::Collecting { lease, percent } => {
            if live_job(turn, lease, &[Cursor::Returning]).is_some() {
                turn.world.leases.collecting(lease, Some(Collecting::Percent(percent)));
            }
        }
        EngineReport::Missing { lease, heartbeat, at, gone, collecting, why } => {
            missing(turn, lease, Missing { heartbeat, at, gone, collecting, why });
        }
        EngineReport::NotLaunched { lease, at, why } => not_launched(turn, lease, at, why),
    }
}

/// A supervisor that is gone without a word.
struct Missing {
    heartbeat: Option<Now>,
    at: Option<Now>,
    gone: bool,
    collecting: bool,
    why: String,
}

fn lost(at: Now, by: EndedBy, why: String) -> End {
    End { at, how: RunEnd::Lost { why }, by, peak_memory: None, suspended_ms: 0, notes: Vec::new() }
}

fn started(
    turn: &mut Turn<'_>,
    lease: LeaseId,
    (task, attempt): (TaskIx, AttemptNo),
    at: Now,
    enforcement: Option<Enforcement>,
) {
    if let Some(job) = live_job(turn, lease, &[Cursor::Renting])
        && runs(turn, lease, (task, attempt))
    {
        let started = within(turn, lease, at).map_or(turn.now, |(at, _)| at);
        turn.emit(Event::AttemptStarted { lease, job, task, attempt, started, enforcement });
    }
}

/// The last processes of a lease that ended without them went after all. Its devices are judged anew.
fn gone(turn: &mut Turn<'_>, id: LeaseId) {
    let Some(lease) = turn.world.lease(id).filter(|lease| lease.is_unproven(&turn.now)) else { return };
    let (is_back, has_devices) = (lease.returned.is_some(), !lease.held.devices.is_empty());
    turn.emit(Event::LeaseProven { lease: id });
    if has_devices {
        turn.effect(Effect::Probe);
    }
    if is_back {
        // Its supervisor had to stay for this.
        turn.effect(Effect::Dismiss { lease: id });
    }
}

/// Whether that is the attempt that a lease runs now.
fn runs(turn: &Turn<'_>, lease: LeaseId, attempt: (TaskIx, AttemptNo)) -> bool {
    turn.world.leases.get(lease).is_some_and(|lease| lease.attempts.last() == Some(&attempt))
}

/// A moment brought into what the lease can have held, whatever a clock said: not before the grant or the start of its
/// run, not after now. One of another boot says nothing about it: the last sign of life does.
fn within(turn: &Turn<'_>, lease: LeaseId, at: Now) -> Option<(Now, bool)> {
    let lease = turn.world.leases.get(lease)?;
    let told = at.boot == lease.granted.boot;
    let at = if told { at } else { lease.heartbeat };
    let attempts = turn.world.queue.get(lease.job).into_iter().flat_map(Job::attempts);
    let started = attempts
        .filter_map(|(_, attempt)| {
            attempt.state.started().filter(|_| attempt.state.lease() == Some(lease.id))
        })
        .last();
    let floor = started.unwrap_or(lease.granted);
    let at = if at.boottime_ms < floor.boottime_ms { floor } else { at };
    let future = at.boot == turn.now.boot && at.boottime_ms > turn.now.boottime_ms;
    Some((if future { turn.now } else { at }, told))
}

/// The run is over: the lease ends with it, and its devices drain at once.
///
/// What is lost while a cancel is being carried out is cancelled: nothing else could have come of it any more.
fn ended(turn: &mut Turn<'_>, lease: LeaseId, mut end: End) {
    let Some(job) = live_job(turn, lease, &[Cursor::Renting, Cursor::Running]) else { return };
    let Some(record) = turn.world.leases.get(lease) else { return };
    let Some((task, attempt)) = record.attempts.last().copied() else { return };
    let Some((at, told)) = within(turn, lease, end.at) else { return };
    let by = if told { end.by } else { EndedBy::Estimated };
    let is_lost = matches!(end.how, RunEnd::Lost { .. });
    let held = at.since(&record.granted).unwrap_or_default();
    let suspended_ms = end.suspended_ms.min(held.0);
    let cancel = turn.world.queue.get(job).and_then(|row| row.cancel.as_ref());
    if let (RunEnd::Lost { why }, Some(cancel)) = (&end.how, cancel.filter(|cancel| cancel.carried_out)) {
        end.notes.push(why.clone());
        end.how = RunEnd::Cancelled { by: cancel.by.clone() };
    }
    turn.emit(Event::AttemptEnded {
        lease,
        job,
        task,
        attempt,
        ended: at,
        end: end.how,
        peak_memory: end.peak_memory,
        mean_utilisation: turn.world.pool.mean_utilisation(lease),
        peak_gpu_memory: turn.world.pool.peak_memory(lease),
        notes: end.notes,
    });
    turn.emit(Event::LeaseEnded { lease, ended: at, by, waived: is_lost, suspended_ms });
}

/// Nothing ran, so there is nothing to collect.
fn not_launched(turn: &mut Turn<'_>, lease: LeaseId, at: Now, why: String) {
    if live_job(turn, lease, &[Cursor::Running, Cursor::Returning]).is_some() {
        // It ran, we know; what its supervisor wrote down is gone with a power cut.
        let why = "what its supervisor wrote down is gone".to_owned();
        missing(turn, lease, Missing { heartbeat: None, at: None, gone: true, collecting: false, why });
        return;
    }
    let Some(job) = live_job(turn, lease, &[Cursor::Renting]) else { return };
    let Some((task, attempt)) = turn.world.leases.get(lease).and_then(|lease| lease.attempts.last().copied())
    else {
        return;
    };
    ended(turn, lease, lost(at, EndedBy::Proven, why));
    let Some(end) = turn.world.queue.run_end(job, task, attempt) else { return };
    let outcome = outcome(&end, &Collected::default());
    let (outputs, notes) = (Vec::new(), Vec::new());
    turn.emit(Event::AttemptReturned { job, task, attempt, outputs, outcome, notes });
    lifecycle::release(turn, job, task, attempt, lease);
}

/// The supervisor is gone without a word: its run is lost, and never taken up again.
fn missing(turn: &mut Turn<'_>, lease: LeaseId, missing: Missing) {
    let Missing { heartbeat, at, gone: all_gone, collecting, why } = missing;
    if all_gone {
        gone(turn, lease);
    }
    if live_job(turn, lease, &[Cursor::Renting, Cursor::Running]).is_some() {
        if let Some(seen) = heartbeat {
            turn.world.heartbeat(lease, seen);
        }
        let Some(record) = turn.world.leases.get(lease) else { return };
        let end = match at {
            Some(at) if all_gone => lost(at, EndedBy::Proven, why),
            Some(at) => lost(at, EndedBy::AfterKill, why),
            None => lost(record.heartbeat, EndedBy::Estimated, why),
        };
        ended(turn, lease, end);
    }
    if !collecting && live_job(turn, lease, &[Cursor::Returning]).is_some() {
        turn.effect(Effect::Collect { lease });
    }
}

fn collected(
    turn: &mut Turn<'_>,
    lease: LeaseId,
    (task, attempt): (TaskIx, AttemptNo),
    result: Result<Collected, String>,
) {
    let Some(job) = live_job(turn, lease, &[Cursor::Returning]) else { return };
    let Some(end) = turn.world.queue.run_end(job, task, attempt) else { return };
    turn.world.leases.collecting(lease, None);
    let collected = result.unwrap_or_else(|why| Collected {
        missing: turn.world.queue.required_outputs(job),
        notes: vec![format!("the output could not be collected: {why}")],
        outputs: Vec::new(),
    });
    let outcome = outcome(&end, &collected);
    turn.emit(Event::AttemptReturned {
        job,
        task,
        attempt,
        outputs: collected.outputs,
        outcome,
        notes: collected.notes,
    });
    lifecycle::release(turn, job, task, attempt, lease);
}

/// What an end and a collection come to.
fn outcome(end: &RunEnd, collected: &Collected) -> Outcome {
    match end {
        RunEnd::Exited { code: 0 } if collected.missing.is_empty() => Outcome::Succeeded,
        RunEnd::Exited { code: 0 } => {
            Outcome::Failed(Failure::OutputMissing { paths: collected.missing.clone() })
        }
        RunEnd::Exited { code } => Outcome::Failed(Failure::Code(*code)),
        RunEnd::Signalled { signal } => Outcome::Failed(Failure::Signal(*signal)),
        RunEnd::OutOfMemory { certain } => Outcome::Failed(Failure::OutOfMemory { certain: *certain }),
        RunEnd::LimitReached => Outcome::LimitReached,
        RunEnd::Cancelled { by } => Outcome::Cancelled { by: by.clone() },
        RunEnd::NotStarted { why } => Outcome::NeverStarted { why: why.clone() },
        RunEnd::Lost { why } => Outcome::Lost { why: why.clone() },
    }
}

/// The job whose current attempt is run by this lease and is in one of these places.
fn live_job(turn: &Turn<'_>, lease: LeaseId, places: &[Cursor]) -> Option<JobId> {
    let job = turn.world.lease(lease)?.job;
    let row = turn.world.queue.get(job)?;
    row.tasks
        .iter()
        .any(|task| {
            let state = &task.current().state;
            state.lease() == Some(lease) && places.contains(&state.cursor())
        })
        .then_some(job)
}
