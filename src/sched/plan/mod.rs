//! Which waiting jobs start now, and why each of the others waits. Pure and total, with deterministic ties.
//!
//! The line is walked in its order. The first job that does not fit and to which a start can be promised gets a
//! reservation: the moment at which enough of what is held comes back by the limits of those that hold it, and the devices
//! it will take. A later job may start before it (EASY backfill) if it is over by then, or if it leaves the reservation
//! alone. A job whose devices only wait for a fresh reading keeps them: nobody behind it takes them meanwhile.

mod classes;
mod frame;
mod reason;

pub(super) use frame::{Frame, Placement};
pub use reason::Reason;

use super::world::World;
use crate::model::{
    Amount, Attempt, AttemptNo, AttemptState, Bytes, DeviceState, Job, JobId, Lease, LeaseDevice, Limit, Now,
    Span, Task, TaskIx, Uuid,
};

/// This many jobs behind the first that does not fit are looked at for backfill.
const BACKFILL_DEPTH: usize = 1_000;
/// After the first job that does not fit, this many behind it are told what they wait for.
const EXPLAIN_DEPTH: usize = 256;
/// What changes with every turn, of the line's front only: those that are paused or wait for others count too.
const FRONT: usize = 1_024;
/// The wait before the second attempt; doubled for each further one.
const RETRY_WAIT: Span = Span::secs(5);
/// The wait after an attempt that never ran, if the one before did.
const RETRY_SOON: Span = Span::secs(1);
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
    let mut plan = Plan { wake_at: world.queue.next_moment(now), ..Plan::default() };
    let least_gpus = world.queue.least_gpus();
    if world.queue.waiting() == 0 || world.held_up.is_some() || hopeless(world, least_gpus) {
        return plan;
    }
    let mut walk = Walk::new(world, now);
    for job in world.queue.line() {
        if walk.frame.exhausted(least_gpus) || walk.is_deep() {
            break;
        }
        match walk.consider(job) {
            Verdict::Start(start) => plan.starts.push(start),
            Verdict::Wait(Reason::Checking { .. }) => plan.probe = true,
            Verdict::Wait(_) => {}
        }
    }
    plan
}

/// The first waiting job to which a start is promised, and when that is at the latest: boottime milliseconds. No grant
/// behind it may make it later.
pub fn promise(world: &World, now: &Now) -> Option<(JobId, u64)> {
    let mut walk = Walk::new(world, now);
    for job in world.queue.line() {
        let _ = walk.consider(job);
        if walk.frame.head().is_some() || walk.is_deep() {
            break;
        }
    }
    walk.frame.promise()
}

/// Why each waiting job waits, in the line's order. The same walk as [`plan`]'s; far behind the first that does not fit
/// a job is in line, and what it would wait for when its turn comes is not worked out.
pub fn explain(world: &World, now: &Now) -> Vec<(JobId, Reason)> {
    explain_line(world, &world.queue.line().collect::<Vec<_>>(), now)
}

/// The same for another line than the world's.
pub(super) fn explain_line<'a>(world: &'a World, line: &[&'a Job], now: &'a Now) -> Vec<(JobId, Reason)> {
    let mut walk = Walk::new(world, now);
    let mut explain = |job: &'a Job| {
        if walk.behind > EXPLAIN_DEPTH {
            return in_line(world, job, now);
        }
        match walk.consider(job) {
            Verdict::Start(_) => Reason::Next,
            Verdict::Wait(reason) => reason,
        }
    };
    line.iter().map(|job| (job.id, explain(job))).collect()
}

/// The same of the front of the line only: as far as what a job waits for is worked out at all.
pub(super) fn explain_front(world: &World, now: &Now) -> Vec<(JobId, Reason)> {
    let mut walk = Walk::new(world, now);
    let mut front = Vec::new();
    for job in world.queue.line().take(FRONT) {
        if walk.behind > EXPLAIN_DEPTH {
            break;
        }
        let reason = match walk.consider(job) {
            Verdict::Start(_) => Reason::Next,
            Verdict::Wait(reason) => reason,
        };
        front.push((job.id, reason));
    }
    front
}

/// Why a job far down the line waits.
pub(super) fn in_line(world: &World, job: &Job, now: &Now) -> Reason {
    gate(world, job, now).unwrap_or(Reason::InLine)
}

/// Whether nothing can start, seen without a frame.
fn hopeless(world: &World, least_gpus: u32) -> bool {
    if world.pool.cores_free() == 0 {
        return true;
    }
    let free = world.pool.devices().filter(|(_, device)| device.state == DeviceState::Free);
    least_gpus > 0 && free.take(least_gpus as usize).count() < least_gpus as usize
}

/// A walk along the line.
struct Walk<'a> {
    world: &'a World,
    now: &'a Now,
    frame: Frame<'a>,
    /// Jobs looked at since the first that did not fit.
    behind: usize,
    first_short: Option<JobId>,
}

impl<'a> Walk<'a> {
    fn new(world: &'a World, now: &'a Now) -> Self {
        Self { world, now, frame: Frame::new(world, now), behind: 0, first_short: None }
    }

    const fn is_deep(&self) -> bool {
        self.behind > BACKFILL_DEPTH
    }

    fn consider(&mut self, job: &'a Job) -> Verdict {
        if let Some(reason) = gate(self.world, job, self.now) {
            return Verdict::Wait(reason);
        }
        let Some((task, attempt)) = queued(job) else { return Verdict::Wait(Reason::Next) };
        let ask = ask(self.world, job);
        let length = length(job);
        let placement = self.frame.place(job, &ask, length);
        self.behind += usize::from(self.first_short.is_some());
        match placement {
            Placement::Fits(_) | Placement::Stale { .. } if self.is_deep() => {
                let head = self.frame.head().or(self.first_short).unwrap_or(job.id);
                Verdict::Wait(Reason::BehindHead { head })
            }
            Placement::Fits(devices) => {
                self.frame.occupy(job.id, &devices, &ask, length);
                let Ask { cores, memory, .. } = ask;
                Verdict::Start(Start { job: job.id, task, attempt, devices, cores, memory })
            }
            Placement::Stale { devices, gpus } => {
                self.frame.occupy(job.id, &devices, &ask, length);
                Verdict::Wait(Reason::Checking { gpus })
            }
            Placement::Short(reason) => {
                self.first_short.get_or_insert(job.id);
                self.frame.reserve(job, &ask);
                Verdict::Wait(reason)
            }
            Placement::BehindHead { head } => Verdict::Wait(Reason::BehindHead { head }),
        }
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
        Amount::All => {
            let listed = world.pool.devices().filter_map(|(_, device)| device.gpu.as_ref());
            (listed.filter(|gpu| classes::fits(job, gpu)).count() as u32).max(1)
        }
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
    Ask { gpus, cores, memory: Bytes(memory) }
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
    if let Some(mark) = &job.edit {
        return Some(Reason::Editing { by: mark.by.clone(), until_ms: mark.until.wall_ms });
    }
    if let Some(reason) = waits_for(world, job) {
        return Some(reason);
    }
    if let Some(at) = job.spec.request.start_after_ms
        && now.wall_ms < at
    {
        return Some(Reason::StartAfter { at_ms: at });
    }
    let task = job.tasks.iter().find(|task| matches!(task.current().state, AttemptState::Queued { .. }))?;
    if let AttemptState::Queued { since, prepared } = &task.current().state {
        if let Some(wait) = retry_wait(task)
            && now.since(since).is_some_and(|waited| waited < wait)
        {
            return Some(Reason::RetryAt { at_ms: since.wall_ms + wait.0 as i64 });
        }
        if !prepared {
            return Some(Reason::Preparing { what: preparing(job) });
        }
    }
    let last = task.attempts.iter().rev().nth(1).and_then(|last| world.lease(last.state.lease()?));
    if last.is_some_and(|lease| may_live(world, lease, now)) {
        return Some(Reason::LastAttemptAlive);
    }
    world.held_up.clone().map(|why| Reason::HeldUp { why })
}

/// The job or the name that a job waits for. One that is no longer in memory is done.
pub(super) fn waits_for(world: &World, job: &Job) -> Option<Reason> {
    job.after.iter().find_map(|dependency| match dependency.job {
        None => Some(Reason::NoSuchJob { name: dependency.name.clone() }),
        Some(on) => {
            world.queue.get(on).is_some_and(|on| on.done.is_none()).then_some(Reason::After { job: on })
        }
    })
}

/// Whether processes of an ended lease are not proven gone: the task's next attempt waits for the proof, or for the next
/// boot. Devices of the lease that were seen free after it are such a proof; one that was closed, or let out of quarantine
/// by hand and not seen free yet, is none.
pub fn may_live(world: &World, lease: &Lease, now: &Now) -> bool {
    let seen_free = |uuid: &Uuid| {
        world.pool.get(uuid).is_some_and(|device| {
            matches!(
                device.state,
                DeviceState::Free | DeviceState::Held { .. } | DeviceState::Draining { .. }
            )
        })
    };
    lease.is_unproven(now)
        && (lease.returned.is_none()
            || lease.held.devices.is_empty()
            || !lease.held.devices.iter().all(|held| seen_free(&held.uuid)))
}

/// How long a task's current attempt waits after it was queued; `None` for the first. The first after one that never ran
/// comes soon: most likely another scheduler was faster, and by now it shows what it holds.
pub(super) fn retry_wait(task: &Task) -> Option<Span> {
    let doublings = task.current().number.0.checked_sub(2)?.min(10);
    let mut empty = task.attempts.iter().rev().skip(1).map(Attempt::never_ran);
    if empty.next() == Some(true) && empty.next() != Some(true) {
        return Some(RETRY_SOON);
    }
    Some(Span((RETRY_WAIT.0 << doublings).min(RETRY_WAIT_MAX.0)))
}

/// How long a job may hold what it gets: its limit, its grace, and a margin for the start and the end.
pub(super) fn length(job: &Job) -> Option<Span> {
    match job.spec.request.limit {
        Limit::For(limit) => {
            Some(Span(limit.0.saturating_add(job.spec.work.stop.grace.0).saturating_add(frame::MARGIN.0)))
        }
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
