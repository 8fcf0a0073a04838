//! One turn: inputs in, events, effects and replies out. No clock, no I/O, no randomness.

use super::world::{ApplyError, World};
use super::{Effect, Input, Launch, LaunchDevice, check, lifecycle, plan};
use super::{commands, devices, faults, reports};
use crate::model::{
    AttemptNo, DataFrom, Event, EventRecord, Held, Job, JobId, LeaseId, Now, Span, SubmissionId, Token,
};
use crate::protocol::Reply;
use std::path::PathBuf;

/// A probe that has brought no reading for this long is asked for again.
const PROBE_AGAIN: Span = Span(250);

/// What a turn is given besides its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The clocks, read once.
    pub now: Now,
    /// 128 random bits of the shell's; leases' tokens are derived from them.
    pub seed: u128,
}

/// What a turn decided. The events are already applied to the world; nothing is seen or done before they are durable.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Decision {
    /// To append.
    pub events: Vec<EventRecord>,
    /// To carry out once they are durable, in this order.
    pub effects: Vec<Effect>,
    /// To send once they are durable.
    pub replies: Vec<(u64, Reply)>,
    /// The next turn is due then even if nothing happens.
    pub wake: Option<Wake>,
    /// A bug was found in the core. What was decided before and after it stands; nothing is granted any more.
    pub bug: Option<ApplyError>,
}

/// When time alone makes a turn due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake {
    /// Boottime milliseconds.
    pub at: u64,
}

/// A turn under way: every event is applied as it is decided, so that each decision sees the ones before it.
pub(super) struct Turn<'w> {
    pub(super) world: &'w mut World,
    pub(super) now: Now,
    seed: u128,
    decision: Decision,
}

impl Turn<'_> {
    /// Decides an event.
    pub(super) fn emit(&mut self, event: Event) {
        let record = EventRecord { seq: self.world.counters.seq + 1, at: self.now, event };
        match self.world.apply(&record) {
            Ok(()) => self.decision.events.push(record),
            Err(bug) => {
                self.world.broken = true;
                self.decision.bug.get_or_insert(bug);
            }
        }
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    pub(super) fn reply(&mut self, to: u64, reply: Reply) {
        self.decision.replies.push((to, reply));
    }

    /// The next turn is due at `at` (boottime milliseconds) at the latest.
    pub(super) fn wake(&mut self, at: u64) {
        let at = Wake { at: at.max(self.now.boottime_ms + 1) };
        self.decision.wake = Some(self.decision.wake.map_or(at, |wake| wake.min(at)));
    }

    pub(super) const fn next_job(&self) -> JobId {
        self.world.counters.job.next()
    }

    pub(super) const fn next_submission(&self) -> SubmissionId {
        self.world.counters.submission.next()
    }
}

/// One turn.
pub fn step(world: &mut World, inputs: Vec<Input>, moment: Moment) -> Decision {
    world.counters.revision = world.counters.revision.next();
    let mut turn = Turn { world, now: moment.now, seed: moment.seed, decision: Decision::default() };
    for input in inputs {
        take(&mut turn, input);
    }
    devices::settle(&mut turn);
    lifecycle::settle(&mut turn);
    start(&mut turn);
    devices::watch(&mut turn);
    let Turn { mut decision, world, .. } = turn;
    decision.effects.sort_by_key(Effect::rank);
    if cfg!(debug_assertions)
        && let Err(broken) = check::turn(world, &decision, &moment.now)
    {
        panic!("an invariant is broken: {broken}");
    }
    decision
}

fn take(turn: &mut Turn<'_>, input: Input) {
    match input {
        Input::Submission(submission) => commands::submit(turn, *submission),
        Input::Command { by, command, reply_to } => commands::command(turn, &by, command, reply_to),
        Input::Edit(edit) => commands::edit(turn, &edit),
        Input::Engine(report) => reports::report(turn, report),
        Input::Devices(gpus) => devices::listed(turn, &gpus),
        Input::Readings(readings) => devices::read(turn, &readings),
        Input::Faults(news) => faults::told(turn, &news),
        Input::Host(host) => turn.world.pool.host = Some(host),
        Input::HeldUp(why) => turn.world.held_up = why,
        Input::Prepared { job, task, attempt, result } => {
            lifecycle::prepared(turn, job, task, attempt, result);
        }
        Input::Released { job, task, attempt } => lifecycle::released(turn, job, task, attempt),
    }
}

/// Grants what the plan starts.
fn start(turn: &mut Turn<'_>) {
    if turn.world.broken {
        return;
    }
    let plan = plan::plan(turn.world, &turn.now);
    let promised = if plan.starts.is_empty() { None } else { check::promise(turn.world, &turn.now) };
    for start in plan.starts {
        let lease = turn.world.counters.lease.next();
        let token = token(turn.seed, lease);
        turn.emit(Event::LeaseGranted {
            lease,
            job: start.job,
            task: start.task,
            attempt: start.attempt,
            held: Held { devices: start.devices, cores: start.cores, memory: start.memory },
            token,
        });
        if let Some(launch) = launch(turn.world, lease) {
            turn.effect(Effect::Launch(Box::new(launch)));
        }
    }
    check::promise_is_kept(promised, turn.world, &turn.now);
    if plan.probe {
        turn.effect(Effect::Probe);
        turn.wake(turn.now.boottime_ms + PROBE_AGAIN.0);
    }
    if let Some(at) = plan.wake_at {
        turn.wake(at);
    }
}

/// What a lease's supervisor has to be told.
pub(super) fn launch(world: &World, id: LeaseId) -> Option<Launch> {
    let lease = world.leases.get(id)?;
    let job = world.queue.get(lease.job)?;
    let (task, attempt) = *lease.attempts.last()?;
    Some(Launch {
        lease: id,
        token: lease.token.clone(),
        job: job.id,
        folder: job.folder(),
        task,
        attempt,
        spec: job.spec.clone(),
        owner: job.owner.clone(),
        devices: lease
            .held
            .devices
            .iter()
            .filter_map(|held| world.pool.get(&held.uuid)?.gpu.as_ref())
            .map(|gpu| LaunchDevice { uuid: gpu.uuid.clone(), index: gpu.index, real: gpu.real })
            .collect(),
        cores: lease.held.cores,
        memory: lease.held.memory,
        sources: sources(world, job),
        granted: lease.granted,
        limit: job.spec.request.limit.span(),
        finish_by_ms: job.spec.request.finish_by_ms,
        prepared: needs_directory(job),
    })
}

/// Where the outputs are that a job's `job:` sources mean, below the folder of all jobs and in the order of its data.
///
/// The attempt that made them is named: the links in a job's folder are for people, and may be written late. An earlier
/// job that is done and forgotten has its links.
pub(super) fn sources(world: &World, job: &Job) -> Vec<Option<PathBuf>> {
    job.spec
        .data
        .iter()
        .map(|item| match &item.from {
            DataFrom::Path(_) => None,
            DataFrom::Job { job: name, .. } => {
                let on = job.after.iter().find(|dependency| dependency.name == *name)?.job?;
                // An edit may have given it another name.
                let known = world.queue.get(on).map(Job::folder);
                let folder = PathBuf::from(known.unwrap_or_else(|| Job::folder_of(on, name)));
                Some(match world.queue.get(on).map(|row| row.tasks.as_slice()) {
                    Some([task]) => folder.join(attempt_output(task.current().number)),
                    _ => folder.join("output"),
                })
            }
        })
        .collect()
}

/// Where an attempt's output is in its job's folder.
fn attempt_output(attempt: AttemptNo) -> PathBuf {
    PathBuf::from(format!("attempts/{attempt}/output"))
}

/// Whether a work directory is made for each attempt before the grant: the code is copied.
pub(super) fn needs_directory(job: &Job) -> bool {
    copies_code(&job.spec)
}

const fn copies_code(spec: &crate::model::JobSpec) -> bool {
    spec.work.dir.is_some() && matches!(spec.work.code, crate::model::Code::Snapshot { .. })
}

/// Whether something has to be ready before an attempt can be granted anything.
pub(super) fn needs_preparation(spec: &crate::model::JobSpec) -> bool {
    copies_code(spec) || spec.data.iter().any(|item| matches!(item.from, DataFrom::Job { .. }))
}

/// 128 bits that nobody can guess and that no other lease has.
fn token(seed: u128, lease: LeaseId) -> Token {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&lease.0.to_le_bytes());
    Token(hasher.finalize().to_hex()[..32].to_owned())
}
