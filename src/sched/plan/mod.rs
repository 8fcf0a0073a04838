//! Which waiting jobs start now, and why each of the others waits. Pure and total, with deterministic ties.
//!
//! The line is walked in its order. The first job that does not fit gets a reservation: the moment at which enough of
//! what is held comes back by the limits of those that hold it, and the devices it will take. A later job may start
//! before it (EASY backfill) if it is over by then, or if it leaves the reservation alone.

mod frame;
mod reason;

pub(super) use frame::{Frame, Placement};
pub use reason::Reason;

use super::world::World;
use crate::model::{
    Amount, AttemptNo, AttemptState, Bytes, DeviceState, EndedBy, Job, JobId, LeaseDevice, Limit, Now, Span,
    TaskIx,
};

/// After the head of the line has its reservation, this many jobs behind it are looked at for backfill.
const BACKFILL_DEPTH: usize = 1_000;
/// The wait before the second attempt; doubled for each further one.
const RETRY_WAIT: Span = Span::secs(5);
/// The longest such wait.
const RETRY_WAIT_MAX: Span = Span::secs(300);

/// What to start now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Plan {
    /// In the line's order.
    pub starts: Vec<Start>,
    /// A free device was not granted because its reading is too old: take a fresh one.
    pub probe: bool,
    /// The next moment at which time alone may let a job start, boottime milliseconds.
    pub wake_at: Option<u64>,
}

/// One grant to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Job.
    pub job: JobId,
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// Devices, with the memory found on each.
    pub devices: Vec<LeaseDevice>,
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: Bytes,
}

/// What a job asks of this pool, with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// GPUs.
    pub gpus: u32,
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: Bytes,
}

/// A walk's verdict on one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It starts now.
    Start(Start),
    /// It waits.
    Wait(Reason),
}

/// What to start now.
pub fn plan(world: &World, now: &Now) -> Plan {
    let mut plan = Plan::default();
    let mut frame = Frame::new(world, now);
    let mut behind_head = 0;
    for job in world.queue.line() {
        if frame.exhausted(world.queue.least_gpus()) || behind_head > BACKFILL_DEPTH {
            break;
        }
        match consider(world, &mut frame, job, now) {
            Verdict::Start(start) => plan.starts.push(start),
            Verdict::Wait(Reason::Checking { .. }) => plan.probe = true,
            Verdict::Wait(_) => {}
        }
        behind_head += usize::from(frame.has_reservation());
    }
    plan.wake_at = world.queue.next_moment(now);
    plan
}

/// Why each waiting job waits, in the line's order. The same walk as [`plan`], not cut short.
pub fn explain(world: &World, now: &Now) -> Vec<(JobId, Reason)> {
    let mut frame = Frame::new(world, now);
    let mut reasons = Vec::with_capacity(world.queue.waiting());
    for job in world.queue.line() {
        let reason = match consider(world, &mut frame, job, now) {
            Verdict::Start(_) => Reason::Next,
            Verdict::Wait(reason) => reason,
        };
        reasons.push((job.id, reason));
    }
    reasons
}

fn consider(world: &World, frame: &mut Frame<'_>, job: &Job, now: &Now) -> Verdict {
    if let Some(reason) = gate(world, job, now) {
        return Verdict::Wait(reason);
    }
    let Some((task, attempt)) = queued(job) else { return Verdict::Wait(Reason::Next) };
    let ask = ask(world, job);
    let length = job.spec.request.limit.span().map(|limit| Span(limit.0 + job.spec.work.stop.grace.0));
    match frame.place(job, &ask, length) {
        Placement::Fits(devices) => {
            frame.take(&devices, &ask);
            Verdict::Start(Start {
                job: job.id,
                task,
                attempt,
                devices,
                cores: ask.cores,
                memory: ask.memory,
            })
        }
        Placement::Stale { gpus } => Verdict::Wait(Reason::Checking { gpus }),
        Placement::Short(reason) => {
            frame.reserve(job, &ask);
            Verdict::Wait(reason)
        }
        Placement::BehindHead { head } => Verdict::Wait(Reason::BehindHead { head }),
    }
}

/// What a job asks of this pool.
///
/// Without `cpus` and `memory` a job gets the pool's share for its GPUs; a CPU-only one gets one core and its share of
/// memory.
pub fn ask(world: &World, job: &Job) -> Ask {
    let request = &job.spec.request;
    let pool_gpus = world.pool.gpus();
    let gpus = match request.gpus {
        Amount::Some(n) => n,
        Amount::All => pool_gpus.max(1),
    };
    let (all_cores, all_memory) = world.pool.host.map_or((1, 0), |host| (host.cores, host.memory.0));
    let share = |all: u64| if pool_gpus == 0 { all } else { all / u64::from(pool_gpus) * u64::from(gpus) };
    let cores = match request.cpus {
        Some(Amount::Some(n)) => n,
        Some(Amount::All) => all_cores,
        None if gpus == 0 => 1,
        None => share(u64::from(all_cores)) as u32,
    };
    let cores = cores.max(1);
    let memory = match request.memory {
        Some(Amount::Some(bytes)) => bytes.0,
        Some(Amount::All) => all_memory,
        None if gpus == 0 => all_memory / u64::from(all_cores.max(1)) * u64::from(cores),
        None => share(all_memory),
    };
    Ask { gpus, cores, memory: Bytes(memory.min(all_memory.max(memory))) }
}

/// The task and attempt of a job that would start next.
pub(super) fn queued(job: &Job) -> Option<(TaskIx, AttemptNo)> {
    job.tasks
        .iter()
        .find(|task| matches!(task.current().state, AttemptState::Queued { .. }))
        .map(|task| (task.ix, task.current().number))
}

/// What keeps a job from starting whatever is free.
pub(super) fn gate(world: &World, job: &Job, now: &Now) -> Option<Reason> {
    if job.cancel.is_some() {
        return Some(Reason::Cancelling);
    }
    if let Some(by) = &job.paused {
        return Some(Reason::Paused { by: by.clone() });
    }
    for dependency in &job.after {
        match dependency.job {
            None => return Some(Reason::NoSuchJob { name: dependency.name.clone() }),
            Some(on) if world.queue.outcome_of(on).is_none() && world.queue.get(on).is_some() => {
                return Some(Reason::After { job: on });
            }
            Some(_) => {}
        }
    }
    if let Some(at) = job.spec.request.start_after_ms
        && now.wall_ms < at
    {
        return Some(Reason::StartAfter { at_ms: at });
    }
    let task = job.tasks.iter().find(|task| matches!(task.current().state, AttemptState::Queued { .. }))?;
    if let AttemptState::Queued { since, prepared } = &task.current().state {
        if let Some(wait) = retry_wait(task.current().number)
            && now.since(since).is_some_and(|waited| waited < wait)
        {
            return Some(Reason::RetryAt { at_ms: since.wall_ms + wait.0 as i64 });
        }
        if !prepared {
            return Some(Reason::Preparing { what: preparing(job) });
        }
    }
    // The next attempt starts only when the last one's processes are proven gone.
    let unproven =
        task.attempts.iter().rev().nth(1).and_then(|last| last.state.lease()).is_some_and(|lease| {
            world.lease(lease).is_some_and(|lease| {
                lease.ended.is_some_and(|(ended, by)| by == EndedBy::AfterKill && ended.boot == now.boot)
                    && (lease.returned.is_none()
                        || lease.held.devices.iter().any(|held| {
                            matches!(world.pool.get(&held.uuid).map(|device| &device.state),
                            Some(DeviceState::Quarantined(quarantine)) if quarantine.lease == Some(lease.id))
                        }))
            })
        });
    unproven.then_some(Reason::LastAttemptAlive)
}

/// How long the attempt of that number waits after it was queued; `None` for the first.
pub(super) fn retry_wait(attempt: AttemptNo) -> Option<Span> {
    let doublings = attempt.0.checked_sub(2)?.min(10);
    Some(Span((RETRY_WAIT.0 << doublings).min(RETRY_WAIT_MAX.0)))
}

/// How long a job is expected to hold what it gets, for plans: its limit and grace.
pub(super) fn length(job: &Job) -> Option<Span> {
    match job.spec.request.limit {
        Limit::For(limit) => Some(Span(limit.0 + job.spec.work.stop.grace.0)),
        Limit::UntilDone => None,
    }
}

fn preparing(job: &Job) -> String {
    match &job.spec.work.dir {
        Some(dir) if matches!(job.spec.work.code, crate::model::Code::Snapshot { .. }) => {
            format!("copying {}", crate::model::clean_line(&dir.display().to_string()))
        }
        _ => "checking its data".to_owned(),
    }
}
