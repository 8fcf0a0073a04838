//! What can be said of one world.

use crate::model::{
    Attempt, AttemptState, Cursor, DeviceState, EndedBy, Job, Lease, LeaseId, Now, Task, Verdict,
};
use crate::sched::lifecycle::job_outcome;
use crate::sched::world::World;
use std::collections::{BTreeMap, BTreeSet};

type Found = Result<(), String>;

/// All of it.
pub(super) fn whole(world: &World) -> Found {
    common(world)?;
    world.queue.check()?;
    world.queue.iter().try_for_each(|row| job(world, row))?;
    world.ledger.iter().try_for_each(|record| lease(world, record))?;
    overlaps(world)
}

/// What the last turns touched, and all that is bounded by what the machine has.
pub(super) fn touched(world: &World) -> Found {
    common(world)?;
    world.touched.jobs.iter().filter_map(|id| world.queue.get(*id)).try_for_each(|row| job(world, row))?;
    world.touched.leases.iter().filter_map(|id| world.ledger.get(*id)).try_for_each(|row| lease(world, row))
}

/// Leases that are not returned, and devices: there are no more of them than the machine has room for.
fn common(world: &World) -> Found {
    world.pool.check(&world.leases)?;
    let mut tokens = BTreeSet::new();
    for record in world.leases.iter() {
        lease(world, record)?;
        if record.token.0.is_empty() || !tokens.insert(&record.token.0) {
            return Err(format!("I14: lease {} has no token of its own", record.id));
        }
        if record.ended.is_none() {
            holds(world, record)?;
        }
    }
    for (uuid, device) in world.pool.devices() {
        let DeviceState::Quarantined(why) = &device.state else { continue };
        let returned = why.lease.and_then(|id| world.lease(id)).map(|record| record.returned.as_ref());
        if let Some(returned) = returned
            && !returned.is_some_and(|returned| matches!(returned.verdict, Verdict::Quarantined { .. }))
        {
            return Err(format!("I8: {uuid} is in quarantine after a lease that did not end so"));
        }
    }
    Ok(())
}

/// A held lease is held for an attempt that rents or runs.
fn holds(world: &World, record: &Lease) -> Found {
    let Some(row) = world.queue.get(record.job) else {
        return Err(format!("I7: lease {} is held for job {}, which is not there", record.id, record.job));
    };
    let holds = row.tasks.iter().any(|task| {
        let state = &task.current().state;
        state.lease() == Some(record.id) && matches!(state.cursor(), Cursor::Renting | Cursor::Running)
    });
    if holds {
        Ok(())
    } else {
        Err(format!("I7: lease {} is held, and job {} neither rents nor runs", record.id, record.job))
    }
}

fn job(world: &World, row: &Job) -> Found {
    let id = row.id;
    if id > world.counters.job || row.submission > world.counters.submission {
        return Err(format!("I1: job {id} has a number that was not given yet"));
    }
    if row.tasks.is_empty() {
        return Err(format!("I1: job {id} has no task"));
    }
    if world.queue.is_live(id) != row.done.is_none() {
        return Err(format!("I1: job {id} is neither live nor done"));
    }
    if world.queue.is_in_line(row) != (row.state() == Cursor::Queued) {
        return Err(format!("I1: job {id} is {} and its place in line does not agree", row.state().word()));
    }
    let at_its_end = row.tasks.iter().all(|task| task.current().state.cursor() == Cursor::Done);
    match &row.done {
        Some((_, outcome)) if !at_its_end || *outcome != job_outcome(row) => {
            return Err(format!("I3: job {id} is done as {outcome}, which is not what its tasks came to"));
        }
        None if at_its_end => return Err(format!("I3: job {id} is at its end and not done")),
        _ => {}
    }
    if row.state() != Cursor::Queued && (row.edit.is_some() || !row.changes.is_empty()) {
        return Err(format!("I16: job {id} does not wait, and is edited or has changes to take back"));
    }
    let decided = row.cancel.as_ref().is_some_and(|cancel| cancel.carried_out);
    if decided && row.state() == Cursor::Queued {
        return Err(format!("I16: job {id} waits although its cancel is being carried out"));
    }
    row.tasks.iter().try_for_each(|one| task(world, row, one))
}

fn task(world: &World, row: &Job, task: &Task) -> Found {
    let id = row.id;
    for (ix, attempt) in task.attempts.iter().enumerate() {
        if attempt.number.0 as usize != ix + 1 {
            return Err(format!("I22: job {id} has attempt {} in place {}", attempt.number, ix + 1));
        }
        if ix + 1 < task.attempts.len() && attempt.state.cursor() != Cursor::Done {
            return Err(format!("I4: job {id} has a further attempt while attempt {} lives", attempt.number));
        }
        lives_by(world, row, attempt)?;
    }
    Ok(())
}

/// An attempt and its lease say the same.
fn lives_by(world: &World, row: &Job, attempt: &Attempt) -> Found {
    let (id, state) = (row.id, &attempt.state);
    let record = state.lease().and_then(|lease| world.lease(lease));
    let whose = |lease: &LeaseId| format!("attempt {} of job {id} and lease {lease}", attempt.number);
    if let Some(record) = record
        && (record.job != id || !record.attempts.iter().any(|(_, number)| *number == attempt.number))
    {
        return Err(format!("I14: {} do not belong together", whose(&record.id)));
    }
    match state {
        AttemptState::Renting { lease } | AttemptState::Running { lease, .. } => {
            if record.is_none_or(|record| record.ended.is_some()) {
                return Err(format!(
                    "I7: {}: it is {} and holds nothing",
                    whose(lease),
                    state.cursor().word()
                ));
            }
        }
        AttemptState::Returning { lease, ended, .. }
        | AttemptState::Releasing { lease, ended, .. }
        | AttemptState::Done { lease: Some(lease), ended: Some(ended), .. } => {
            if let Some(record) = record
                && record.ended.map(|(at, _)| at) != Some(*ended)
            {
                return Err(format!("I9: {} did not end in the same moment", whose(lease)));
            }
        }
        AttemptState::Done { lease: None, started, ended, .. } => {
            if started.is_some() || ended.is_some() {
                return Err(format!("I11: attempt {} of job {id} ran and held nothing", attempt.number));
            }
        }
        AttemptState::Done { ended: None, .. } => {
            return Err(format!("I7: attempt {} of job {id} is done and has not ended", attempt.number));
        }
        AttemptState::Queued { .. } => {}
    }
    let done = match state {
        AttemptState::Done { at, .. } => Some(*at),
        _ => None,
    };
    let line =
        [Some(row.submitted), record.map(|record| record.granted), state.started(), state.ended(), done];
    let line: Vec<Now> = line.into_iter().flatten().collect();
    if line.windows(2).any(|pair| pair[1].boot == pair[0].boot && pair[1].boottime_ms < pair[0].boottime_ms) {
        return Err(format!("I12: the moments of attempt {} of job {id} are not in order", attempt.number));
    }
    Ok(())
}

fn lease(world: &World, record: &Lease) -> Found {
    let id = record.id;
    if id > world.counters.lease {
        return Err(format!("I14: lease {id} has a number that was not given yet"));
    }
    let Some((ended, by)) = record.ended else {
        return match world.ledger.get(id) {
            Some(_) => Err(format!("I9: lease {id} is held and in the ledger")),
            None if record.returned.is_some() => Err(format!("I7: lease {id} is returned and has not ended")),
            None => Ok(()),
        };
    };
    if let Some(draining) = world.leases.get(id)
        && world.ledger.get(id) != Some(draining)
    {
        return Err(format!("I9: lease {id} drains, and the ledger says something else of it"));
    }
    if ended.boot != record.granted.boot || ended.boottime_ms < record.granted.boottime_ms {
        return Err(format!("I12: lease {id} ended before it was granted, or in another boot"));
    }
    if record.suspended_ms > ended.boottime_ms - record.granted.boottime_ms {
        return Err(format!("I12: lease {id} was suspended for longer than it was held"));
    }
    if by == EndedBy::Estimated {
        let started = world.queue.get(record.job).into_iter().flat_map(Job::attempts);
        let started = started
            .filter(|(_, attempt)| attempt.state.lease() == Some(id))
            .find_map(|(_, attempt)| attempt.state.started());
        let seen = [Some(record.granted), Some(record.heartbeat), started];
        let last = seen.into_iter().flatten().map(|at| at.boottime_ms).max().unwrap_or_default();
        // Without its job nobody knows when the run was started.
        if world.queue.get(record.job).is_some() && ended.boottime_ms > last {
            return Err(format!("I13: lease {id} is estimated to have ended after its last sign of life"));
        }
    }
    if let Some(returned) = &record.returned
        && returned.at.boot == ended.boot
        && returned.at.boottime_ms < ended.boottime_ms
    {
        return Err(format!("I12: lease {id} was returned before it ended"));
    }
    Ok(())
}

/// Every second of a device is held once.
fn overlaps(world: &World) -> Found {
    let mut by_device: BTreeMap<_, Vec<(u64, u64, LeaseId)>> = BTreeMap::new();
    for record in world.ledger.iter().chain(world.leases.held()) {
        let until = record.ended.map_or(u64::MAX, |(ended, _)| ended.boottime_ms);
        for device in &record.held.devices {
            let spans = by_device.entry((&device.uuid, record.granted.boot)).or_default();
            spans.push((record.granted.boottime_ms, until, record.id));
        }
    }
    for ((uuid, _), mut spans) in by_device {
        spans.sort_unstable();
        if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!("I10: {uuid} is held by leases {} and {} at once", pair[0].2, pair[1].2));
        }
    }
    Ok(())
}
