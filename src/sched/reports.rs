//! What the engine saw. Reports may be late, repeated or out of order; each fact is taken once.

use super::step::{Turn, launch};
use super::{Effect, EngineReport, lifecycle};
use crate::model::{
    AttemptNo, Bytes, Collected, Cursor, EndedBy, Event, Failure, JobId, LeaseId, Now, Outcome, RunEnd,
    TaskIx,
};

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
        EngineReport::Started { lease, task, attempt, at } => started(turn, lease, (task, attempt), at),
        EngineReport::Heartbeat { lease, at } => turn.world.heartbeat(lease, at),
        EngineReport::Ended { lease, at, end, by, peak_memory, suspended_ms, notes, .. } => {
            ended(turn, lease, End { at, how: end, by, peak_memory, suspended_ms, notes });
        }
        EngineReport::Collected { lease, task, attempt, result } => {
            collected(turn, lease, (task, attempt), result);
        }
        EngineReport::Missing { lease, heartbeat, at, why } => missing(turn, lease, heartbeat, at, why),
        EngineReport::NotLaunched { lease, at, why } => not_launched(turn, lease, at, why),
    }
}

fn lost(at: Now, by: EndedBy, why: String) -> End {
    End { at, how: RunEnd::Lost { why }, by, peak_memory: None, suspended_ms: 0, notes: Vec::new() }
}

fn started(turn: &mut Turn<'_>, lease: LeaseId, (task, attempt): (TaskIx, AttemptNo), at: Now) {
    if let Some(job) = live_job(turn, lease, &[Cursor::Renting]) {
        turn.emit(Event::AttemptStarted { lease, job, task, attempt, started: at });
    }
}

/// The run is over: the lease ends with it, and its devices drain at once.
fn ended(turn: &mut Turn<'_>, lease: LeaseId, end: End) {
    let Some(job) = live_job(turn, lease, &[Cursor::Renting, Cursor::Running]) else { return };
    let Some(record) = turn.world.leases.get(lease) else { return };
    let Some((task, attempt)) = record.attempts.last().copied() else { return };
    // An end cannot be before the grant, whatever a clock said.
    let at = if end.at.since(&record.granted).is_some() && end.at.boottime_ms >= record.granted.boottime_ms {
        end.at
    } else {
        record.granted
    };
    let is_lost = matches!(end.how, RunEnd::Lost { .. });
    turn.emit(Event::AttemptEnded {
        lease,
        job,
        task,
        attempt,
        ended: at,
        end: end.how,
        peak_memory: end.peak_memory,
        mean_utilisation: turn.world.pool.mean_utilisation(lease),
        notes: end.notes,
    });
    turn.emit(Event::LeaseEnded {
        lease,
        ended: at,
        by: end.by,
        waived: is_lost,
        suspended_ms: end.suspended_ms,
    });
}

/// No supervisor took it on: nothing ran, so nothing comes back.
fn not_launched(turn: &mut Turn<'_>, lease: LeaseId, at: Now, why: String) {
    ended(turn, lease, lost(at, EndedBy::Proven, why));
    if let Some(attempt) = turn.world.lease(lease).and_then(|lease| lease.attempts.last().copied()) {
        collected(turn, lease, attempt, Ok(Collected::default()));
    }
}

/// The supervisor is gone without a word. What never started is launched again under the same token; the rest is lost.
fn missing(turn: &mut Turn<'_>, lease: LeaseId, heartbeat: Option<Now>, at: Option<Now>, why: String) {
    if live_job(turn, lease, &[Cursor::Renting, Cursor::Running]).is_none() {
        if live_job(turn, lease, &[Cursor::Returning]).is_some() {
            turn.effect(Effect::Collect { lease });
        }
        return;
    }
    let Some(record) = turn.world.leases.get(lease).cloned() else { return };
    let never_launched = heartbeat.is_none() && at.is_none() && record.granted.boot == turn.now.boot;
    if never_launched && turn.world.leases.relaunch(lease) {
        if let Some(launch) = launch(turn.world, lease) {
            turn.effect(Effect::Launch(Box::new(launch)));
        }
        return;
    }
    let last_seen = heartbeat.map_or(record.heartbeat, |seen| {
        if seen.boot == record.heartbeat.boot && seen.boottime_ms < record.heartbeat.boottime_ms {
            record.heartbeat
        } else {
            seen
        }
    });
    let end = match at {
        Some(at) => lost(at, EndedBy::Proven, why),
        None => lost(last_seen, EndedBy::Estimated, why),
    };
    ended(turn, lease, end);
    turn.effect(Effect::Collect { lease });
}

fn collected(
    turn: &mut Turn<'_>,
    lease: LeaseId,
    (task, attempt): (TaskIx, AttemptNo),
    result: Result<Collected, String>,
) {
    let Some(job) = live_job(turn, lease, &[Cursor::Returning]) else { return };
    let Some(end) = turn.world.queue.run_end(job, task, attempt) else { return };
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
