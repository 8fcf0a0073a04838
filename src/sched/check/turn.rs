//! What can be said of one turn: of the world before it, the world after it, and what was decided between the two.

use crate::model::{
    Bytes, Cursor, DeviceState, Event, EventRecord, GpuProcess, GpuReading, Held, Job, JobId, Lease, Now,
    ProcessKind, Span, Uuid,
};
use crate::sched::step::Decision;
use crate::sched::world::{Device, World};
use crate::sched::{Effect, plan};
use std::sync::Arc;

type Found = Result<(), String>;

/// A device is granted on a reading that is not older than this.
const READING_MAX_MS: u64 = 250;

/// Checks a turn that was decided at `now`; what is broken, in words. `before`: the world before the turn, which is what it
/// is after it when the events are folded into it.
pub fn check_transition(
    before: &mut World,
    after: &World,
    decision: &Decision,
    now: &Now,
) -> Result<(), String> {
    keeps(before, after, decision)?;
    decided(after, decision, now)?;
    progress(after, decision, now)?;
    folds(before, after, &decision.events, now)
}

/// What was decided has its reasons, and its consequences are among it.
pub(super) fn decided(after: &World, decision: &Decision, now: &Now) -> Found {
    for record in &decision.events {
        match &record.event {
            Event::LeaseGranted { job, held, .. } => granted(after, *job, held, now)?,
            Event::LeaseReturned { lease, .. } => returned(after, decision, after.lease(*lease), now)?,
            // A later reading of the same turn may have shown something else.
            Event::DeviceChanged { uuid, state: DeviceState::Free } if is_free(after, uuid) => {
                free(after, uuid, None)?;
            }
            event => followed_up(after, decision, event)?,
        }
    }
    decision.effects.iter().try_for_each(|effect| justified(after, decision, effect))
}

/// Nothing accepted is lost, nothing is accepted twice, and nothing leaves its end.
fn keeps(before: &World, after: &World, decision: &Decision) -> Found {
    let whole = super::is_time_for_whole(after);
    for row in before.queue.iter().filter(|row| whole || after.touched.jobs.contains(&row.id)) {
        match (after.queue.get(row.id), &row.done) {
            (None, None) => return Err(format!("I1: job {} was live and is forgotten", row.id)),
            (Some(now), Some(_)) if !same_job(now, row) => {
                return Err(format!("I3: job {} was done and has changed", row.id));
            }
            _ => {}
        }
    }
    let mut seen = Vec::new();
    for record in &decision.events {
        if let Event::SubmissionAccepted { ident: Some(ident), .. } = &record.event {
            if before.queue.has_drop(ident) || seen.contains(&ident) {
                return Err(format!("I2: the drop of inode {} is accepted a second time", ident.ino));
            }
            seen.push(ident);
        }
    }
    Ok(())
}

/// What a grant needs.
fn granted(after: &World, job: JobId, held: &Held, now: &Now) -> Found {
    let Some(row) = after.queue.get(job) else {
        return Err(format!("I1: job {job} is granted and not there"));
    };
    if row.cancel.is_some() || row.paused.is_some() {
        return Err(format!("I16: job {job} is granted while it is paused or being cancelled"));
    }
    if row.edit.is_some() {
        return Err(format!("I16: job {job} is granted while it is being edited"));
    }
    for dependency in &row.after {
        let Some(on) = dependency.job else {
            return Err(format!("after: job {job} starts and nobody has heard of {}", dependency.name));
        };
        // One that is forgotten was done, and had it failed this one would have ended with it.
        if let Some(on) = after.queue.get(on)
            && on.done.as_ref().is_none_or(|(_, outcome)| dependency.must_succeed && !outcome.is_success())
        {
            return Err(format!("after: job {job} starts before job {} has ended as it must", on.id));
        }
    }
    if row.spec.request.start_after_ms.is_some_and(|at| at > now.wall_ms) {
        return Err(format!("after: job {job} starts before its time"));
    }
    for task in &row.tasks {
        let last = task.attempts.iter().rev().nth(1).and_then(|last| after.lease(last.state.lease()?));
        if let Some(last) = last.filter(|last| plan::may_live(after, last, now)) {
            return Err(format!("I4: job {job} is granted while lease {} is not proven gone", last.id));
        }
    }
    let host = after.pool.host.map_or((0, 0), |host| (host.cores, host.memory.0));
    if after.pool.cores_held > host.0 || after.pool.memory_held > host.1 {
        return Err(format!("I5: job {job} is granted cores or memory that are not there"));
    }
    for (ix, device) in held.devices.iter().enumerate() {
        let uuid = &device.uuid;
        if held.devices[..ix].iter().any(|other| other.uuid == *uuid) {
            return Err(format!("I5: {uuid} is granted twice to job {job}"));
        }
        let found =
            after.pool.get(uuid).filter(|found| found.gpu.is_some()).and_then(|found| found.reading.as_ref());
        let Some(reading) = found else {
            return Err(format!("I6: {uuid} is granted to job {job} and was not read"));
        };
        let age = now.since(&reading.at);
        if age.is_none_or(|age| age.0 > READING_MAX_MS) {
            return Err(format!("I6: {uuid} is granted to job {job} on a reading of {age:?} ago"));
        }
        if nobody_on(reading) != Some(device.baseline) {
            return Err(format!("I6: {uuid} is granted to job {job} and was not read clean"));
        }
    }
    Ok(())
}

/// The memory that nobody accounts for on a device whose complete reading shows no work; graphics and the ignore list
/// apart.
fn nobody_on(reading: &GpuReading) -> Option<Bytes> {
    let processes = reading.processes.as_ref()?;
    let is_work = |one: &GpuProcess| one.token.is_some() || one.kind == ProcessKind::Compute && !one.ignored;
    let explained: u64 = processes.iter().filter_map(|one| one.memory).map(|memory| memory.0).sum();
    let used = reading.memory_used.filter(|_| reading.unreadable.is_none() && !processes.iter().any(is_work));
    used.map(|used| Bytes(used.0.saturating_sub(explained)))
}

/// What a return needs, and what follows from it.
fn returned(after: &World, decision: &Decision, lease: Option<&Lease>, now: &Now) -> Found {
    let Some(lease) = lease else { return Err("I7: a lease is returned and forgotten".to_owned()) };
    if !decision
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::Dismiss { lease: id } if *id == lease.id))
    {
        return Err(format!("I7: lease {} is returned and its supervisor is not told", lease.id));
    }
    for held in &lease.held.devices {
        let given_on = |record: &EventRecord| {
            matches!(&record.event, Event::LeaseGranted { held: next, .. }
                if next.devices.iter().any(|device| device.uuid == held.uuid))
        };
        if is_free(after, &held.uuid) || decision.events.iter().any(given_on) {
            if lease.is_unproven(now) {
                return Err(format!("I8: {} is free with a process of lease {} left", held.uuid, lease.id));
            }
            free(after, &held.uuid, Some(lease))?;
        }
    }
    Ok(())
}

fn is_free(world: &World, uuid: &Uuid) -> bool {
    world.pool.get(uuid).is_some_and(|device| device.state == DeviceState::Free)
}

/// What makes a device free: a reading that shows nobody, taken after the end of the lease that had it.
fn free(after: &World, uuid: &Uuid, had: Option<&Lease>) -> Found {
    let reading = after.pool.get(uuid).and_then(|device| device.reading.as_ref());
    let Some(reading) = reading.filter(|reading| nobody_on(reading).is_some()) else {
        return Err(format!("I8: {uuid} is free and was not read clean"));
    };
    if let Some((ended, _)) = had.and_then(|lease| lease.ended)
        && reading.at.boot == ended.boot
        && reading.at.boottime_ms < ended.boottime_ms
    {
        return Err(format!("I8: {uuid} is free by a reading from before the end of its lease"));
    }
    Ok(())
}

/// Ends and acceptances are followed up in the same turn.
fn followed_up(after: &World, decision: &Decision, event: &Event) -> Found {
    let effects = &decision.effects;
    let (id, done, what) = match event {
        Event::JobAccepted { job, .. } => (
            *job,
            effects.iter().any(|effect| matches!(effect, Effect::WriteAnswer { job: of, .. } if of == job)),
            "I1: accepted and not answered",
        ),
        Event::JobDone { job, .. } => (
            *job,
            effects.iter().any(|effect| matches!(effect, Effect::WriteReceipt { job: of } if of == job)),
            "I3: done without a receipt",
        ),
        Event::JobEdited { job, .. } => (
            *job,
            effects.iter().any(|effect| matches!(effect, Effect::Rewrite { job: of, .. } if of == job)),
            "edited and not written down",
        ),
        Event::AttemptReturned { job, .. } => (
            *job,
            effects.iter().any(|effect| matches!(effect, Effect::Release { job: of, .. } if of == job)),
            "I7: returned and not released",
        ),
        Event::AttemptEnded { job, lease, .. } => (
            *job,
            after.lease(*lease).is_some_and(|lease| lease.ended.is_some()),
            "I7: ended with its lease held",
        ),
        Event::CancelDue { job } => {
            let runs = after.queue.get(*job).into_iter().flat_map(|row| &row.tasks).find_map(|task| {
                let state = &task.current().state;
                state.lease().filter(|_| matches!(state.cursor(), Cursor::Renting | Cursor::Running))
            });
            let told = |lease| {
                effects.iter().any(|effect| matches!(effect, Effect::Stop { lease: of, .. } if *of == lease))
            };
            (*job, runs.is_none_or(told), "I16: cancelled, running, and not told to end")
        }
        _ => return Ok(()),
    };
    if done { Ok(()) } else { Err(format!("{what}: job {id}")) }
}

/// An effect has its reason among what is durable with it.
fn justified(after: &World, decision: &Decision, effect: &Effect) -> Found {
    let granted = |launch: &crate::sched::Launch| {
        decision.events.iter().any(|record| {
            matches!(&record.event, Event::LeaseGranted { lease, token, held, .. }
                if *lease == launch.lease && *token == launch.token && held.devices.len() == launch.devices.len())
        })
    };
    match effect {
        Effect::Launch(launch) if !granted(launch) => {
            Err(format!("I14: lease {} is launched without a grant", launch.lease))
        }
        Effect::Dismiss { lease } if after.leases.get(*lease).is_some() => {
            Err(format!("I7: the supervisor of lease {lease} is dismissed before its devices are back"))
        }
        _ => Ok(()),
    }
}

/// Nothing is left that could start, and whatever only waits for time or for a reading is come back to.
pub(super) fn progress(after: &World, decision: &Decision, now: &Now) -> Found {
    let plan = plan::plan(after, now);
    if let Some(start) = plan.starts.first() {
        return Err(format!("I23: job {} could start and does not", start.job));
    }
    let drains = after.leases.draining().next().map(|_| now.boottime_ms + after.pool.drain_max().0);
    let checks = plan.probe.then_some(now.boottime_ms + READING_MAX_MS);
    if let Some((row, _)) = after.queue.editing().find(|(_, mark)| mark.left(now) == Span(0)) {
        return Err(format!("I23: the mark of job {}'s edit has expired and is there", row.id));
    }
    let cancels = after.queue.cancelling().filter_map(|row| row.cancel.as_ref());
    let cancels = cancels.map(|cancel| now.boottime_ms + cancel.left(now).0);
    let marks = after.queue.editing().map(|(_, mark)| now.boottime_ms + mark.left(now).0);
    let due = cancels.chain(marks).chain(drains).chain(checks).chain(plan.wake_at).min();
    if let Some(due) = due
        && decision.wake.is_none_or(|wake| wake.at > due.max(now.boottime_ms + 1))
    {
        return Err(format!("I23: a turn is due at {due} and the next is {:?}", decision.wake));
    }
    if plan.probe && !decision.effects.contains(&Effect::Probe) {
        return Err("I23: a job only waits for a reading and none is asked for".to_owned());
    }
    Ok(())
}

/// The events of a turn are the whole of what it changed durably.
fn folds(before: &mut World, after: &World, events: &[EventRecord], now: &Now) -> Found {
    for record in events {
        if record.at != *now {
            return Err(format!("I22: event {} is of another moment than its turn", record.seq));
        }
        before.apply(record).map_err(|error| format!("I22: event {}: {error}", record.seq))?;
    }
    let folded = &*before;
    let numbers = |world: &World| {
        let counters = &world.counters;
        (counters.seq, counters.job, counters.submission, counters.lease)
    };
    if numbers(folded) != numbers(after) {
        return Err("I22: the numbers given out are not those of the events".to_owned());
    }
    let whole = super::is_time_for_whole(after);
    let jobs = folded.queue.iter().zip(after.queue.iter());
    let mut touched = after.touched.jobs.iter();
    let same = if whole {
        jobs.into_iter().all(|(a, b)| same_job(a, b))
    } else {
        let both = |id: &JobId| (folded.queue.get(*id), after.queue.get(*id));
        touched.all(|id| matches!(both(id), (Some(a), Some(b)) if same_job(a, b)) || both(id) == (None, None))
    };
    if !same || folded.queue.len() != after.queue.len() {
        return Err("I21: the events do not make the same jobs".to_owned());
    }
    let leases = folded.leases.iter().zip(after.leases.iter()).all(|(a, b)| same_lease(a, b));
    let ended = !whole || folded.ledger.iter().zip(after.ledger.iter()).all(|(a, b)| same_lease(a, b));
    let counts = |world: &World| (world.leases.iter().count(), world.ledger.len());
    if !leases || !ended || counts(folded) != counts(after) {
        return Err("I21: the events do not make the same leases".to_owned());
    }
    // A device that was only listed has no event before the first that concerns it.
    let same_device = |(uuid, device): (&Uuid, &Device)| match folded.pool.get(uuid) {
        Some(found) => found.state == device.state,
        None => matches!(device.state, DeviceState::Unknown { .. }),
    };
    if after.pool.devices().all(same_device) {
        Ok(())
    } else {
        Err("I21: the events do not make the same devices".to_owned())
    }
}

/// Whether two rows are the same; the spec, which only an edit replaces, is seldom worth a walk through it.
fn same_job(a: &Job, b: &Job) -> bool {
    if !Arc::ptr_eq(&a.spec, &b.spec) {
        return a == b;
    }
    let rest = |job: &Job| {
        (
            job.id,
            job.submission,
            job.generation,
            job.priority,
            job.position,
            job.ranked,
            job.retry_of,
            job.submitted,
        )
    };
    rest(a) == rest(b)
        && a.tasks == b.tasks
        && a.done == b.done
        && a.cancel == b.cancel
        && a.paused == b.paused
        && a.file == b.file
        && a.edit == b.edit
        && a.changes == b.changes
        && a.after == b.after
        && a.owner == b.owner
        && a.origin == b.origin
        && a.warnings == b.warnings
}

/// Likewise of leases; a sign of life is no event.
fn same_lease(a: &Lease, b: &Lease) -> bool {
    a == b || Lease { heartbeat: b.heartbeat, ..a.clone() } == *b
}
