//! What holds for every world: of a plan, of any sequence of inputs, of the meter.

use crate::build::{Ask, BEGIN, Rig, gpu, job, owner, reading, submission, uuid};
use overnight::model::{
    AttemptNo, Bytes, Collected, Cursor, EndedBy, Generation, HostReading, JobId, JobSpec, JobText, LeaseId,
    Limit, Now, Priority, RunEnd, Span, TaskIx,
};
use overnight::protocol::{Command, GpuSelect, MeterBy, Place};
use overnight::sched::meter::{Cut, table};
use overnight::sched::{Edit, EngineReport, Input, Moment, Reason, World, ask, explain, plan, step};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A waiting job of a generated world.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    gpus: u32,
    cores: u32,
    secs: Option<u64>,
    priority: i64,
    model: Option<&'static str>,
    paused: bool,
    later: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    (
        0..4_u32,
        1..9_u32,
        prop::option::weighted(0.85, 1..10_000_u64),
        -2..3_i64,
        prop::option::weighted(0.2, prop::sample::select(vec!["a100", "h100"])),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(gpus, cores, secs, priority, model, paused, later)| Asked {
            gpus,
            cores,
            secs,
            priority: priority * 20,
            model,
            paused,
            later,
        })
}

fn spec(asked: &Asked) -> JobSpec {
    let spec = job("a").gpus(asked.gpus).cores(asked.cores).priority(asked.priority);
    let spec = asked.secs.map_or_else(|| spec.clone().until_done(), |secs| spec.clone().secs(secs));
    spec.with(|spec| {
        spec.request.gpu_model = asked.model.into_iter().map(str::to_owned).collect();
        spec.request.start_after_ms = asked.later.then_some(BEGIN.wall_ms + 1_000_000);
    })
}

/// A world in which some jobs run, the rest waits, and nothing has been decided yet about those of the second wave.
fn world(gpus: u32, running: &[Asked], waiting: &[Asked]) -> (World, Now) {
    let names = ["NVIDIA A100", "NVIDIA H100", "NVIDIA GeForce RTX 4090"];
    let gpus = (0..gpus).map(|index| gpu(index, names[index as usize % 3], Bytes::gib(80))).collect();
    let mut rig = Rig::with(gpus);
    rig.submit_all(
        running
            .iter()
            .map(|asked| Asked { paused: false, later: false, ..asked.clone() })
            .map(|asked| spec(&asked))
            .collect(),
    );
    let now = rig.now;
    // Accepted without a reading that is fresh enough to grant on, then read: the next plan is the first to see them.
    let mut world = rig.world;
    let stale = now.plus(Span(1_000));
    for asked in waiting {
        let mut one = submission(vec![spec(asked)]);
        one.paused = asked.paused;
        let _ = step(&mut world, vec![Input::Submission(Box::new(one))], Moment { now: stale, seed: 1 });
    }
    for gpu in &rig.gpus {
        world.pool.read(&reading(&gpu.uuid, stale));
    }
    (world, stale)
}

fn worlds() -> impl Strategy<Value = (u32, Vec<Asked>, Vec<Asked>)> {
    (
        0..7_u32,
        prop::collection::vec(asked(), 0..5),
        prop::collection::vec(asked().prop_map(only_gpus), 0..14),
    )
}

/// Jobs without GPUs start without a reading: those that are to wait for the plan ask for one at least.
fn only_gpus(mut asked: Asked) -> Asked {
    asked.gpus = asked.gpus.max(1);
    asked
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: Some(Box::new(prop::test_runner::FileFailurePersistence::Direct(
            "tests/sched/proptest-regressions.txt",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_plan_gives_each_thing_once_and_says_why_the_rest_waits((gpus, running, waiting) in worlds()) {
        let (world, now) = world(gpus, &running, &waiting);
        let plan = plan(&world, &now);
        let mut devices = BTreeSet::new();
        let (mut cores, mut memory) = (world.pool.cores_held, world.pool.memory_held);
        for start in &plan.starts {
            let row = world.queue.get(start.job).expect("there");
            prop_assert_eq!(row.state(), Cursor::Queued);
            prop_assert!(row.paused.is_none());
            prop_assert!(row.spec.request.start_after_ms.is_none_or(|at| at <= now.wall_ms));
            prop_assert_eq!(start.devices.len() as u32, ask(&world, row).gpus);
            for device in &start.devices {
                prop_assert!(devices.insert(device.uuid.clone()), "given twice");
                prop_assert!(world.pool.holder(&device.uuid).is_none());
            }
            cores += start.cores;
            memory += start.memory.0;
        }
        let host = world.pool.host.expect("read");
        prop_assert!(cores <= host.cores && memory <= host.memory.0);
        let reasons = explain(&world, &now);
        let line: Vec<JobId> = world.queue.line().map(|job| job.id).collect();
        prop_assert_eq!(reasons.iter().map(|(job, _)| *job).collect::<Vec<_>>(), line, "each once, in order");
        let next: Vec<JobId> =
            reasons.iter().filter(|(_, reason)| *reason == Reason::Next).map(|(job, _)| *job).collect();
        prop_assert_eq!(next, plan.starts.iter().map(|start| start.job).collect::<Vec<_>>());
        prop_assert_eq!(explain(&world, &now), reasons, "the same again");
        prop_assert_eq!(again(&world, &now), plan);
    }

    #[test]
    fn a_slow_and_obvious_scheduler_starts_the_same_jobs((gpus, running, waiting) in worlds()) {
        let (world, now) = world(gpus, &running, &waiting);
        let starts: Vec<JobId> = plan(&world, &now).starts.iter().map(|start| start.job).collect();
        prop_assert_eq!(starts, naive(&world, &now));
    }

    #[test]
    fn a_higher_priority_never_drops_a_job_from_the_starts((gpus, running, waiting) in worlds(), pick in any::<prop::sample::Index>()) {
        let (mut world, now) = world(gpus, &running, &waiting);
        let starts = plan(&world, &now).starts;
        prop_assume!(!starts.is_empty());
        let job = starts[pick.index(starts.len())].job;
        let record = overnight::model::EventRecord {
            seq: world.counters.seq + 1,
            at: now,
            event: overnight::model::Event::PriorityChanged { job, priority: Priority::clamped(100) },
        };
        world.apply(&record).expect("fits");
        let after = plan(&world, &now).starts;
        prop_assert!(after.iter().any(|start| start.job == job));
    }

    #[test]
    fn one_more_gpu_never_means_fewer_starts_when_each_asks_for_one(gpus in 0..6_u32, count in 0..12_usize) {
        let one = Asked { gpus: 1, cores: 1, secs: Some(60), priority: 0, model: None, paused: false, later: false };
        let waiting = vec![one; count];
        let starts = |gpus| {
            let (world, now) = world(gpus, &[], &waiting);
            plan(&world, &now).starts.len()
        };
        prop_assert!(starts(gpus + 1) >= starts(gpus));
        prop_assert_eq!(starts(gpus), count.min(gpus as usize));
    }

    #[test]
    fn no_sequence_of_inputs_breaks_an_invariant(inputs in prop::collection::vec(noise(), 1..60)) {
        let mut rig = Rig::new(3);
        for (wait, noise) in inputs {
            rig.pass(Span(wait));
            let input = noise.input(&rig);
            // The rig asserts that the core met no bug and that every check holds.
            rig.step(vec![input]);
        }
        let folded = rig.disk.fold();
        for (id, row) in &rig.disk.jobs {
            prop_assert_eq!(folded.queue.get(*id), Some(row));
        }
        for (uuid, standing) in &rig.disk.devices {
            let same = folded.pool.get(uuid).map(overnight::sched::world::Device::standing);
            prop_assert_eq!(same.as_ref(), Some(standing));
        }
        for (id, lease) in &rig.disk.leases {
            let mut same = folded.lease(*id).expect("in the events").clone();
            same.heartbeat = lease.heartbeat;
            prop_assert_eq!(&same, lease);
        }
        let restored = rig.disk.restore();
        prop_assert_eq!(restored.check(), Ok(()));
        let line = |world: &World| world.queue.line().map(|job| job.id).collect::<Vec<_>>();
        prop_assert_eq!(line(&restored), line(&rig.world));
    }

    #[test]
    fn the_meter_adds_up_however_it_is_cut(
        runs in prop::collection::vec((0..3_u32, 0..90_000_u64, any::<bool>()), 1..12),
        cut_at in 0..1_000_000_i64,
    ) {
        let mut rig = Rig::new(3);
        for (gpus, ms, lost) in runs {
            let id = rig.submit(job("a").gpus(gpus));
            rig.pass(Span(ms));
            let end = if lost { RunEnd::Lost { why: "x".to_owned() } } else { RunEnd::Exited { code: 0 } };
            rig.ended(id, end);
            rig.read();
        }
        let leases: Vec<_> = rig.disk.leases.values().collect();
        let day = |at: i64| (at.div_euclid(86_400).to_string(), (at.div_euclid(86_400) + 1) * 86_400);
        let sum = |by, since, until| -> (u64, u64) {
            let cut = Cut { by, since, until, day_of: &day, rates: None };
            let table = table(leases.iter().copied(), &rig.now, &cut);
            table.rows.iter().fold((0, 0), |sum, row| (sum.0 + row.gpu_ms, sum.1 + row.waived_gpu_ms))
        };
        let whole = leases.iter().fold((0, 0), |sum, lease| {
            (sum.0 + lease.gpu_ms(&rig.now), sum.1 + lease.waived_gpu_ms(&rig.now))
        });
        for by in [MeterBy::User, MeterBy::Project, MeterBy::Job, MeterBy::Gpu, MeterBy::Day] {
            prop_assert_eq!(sum(by, None, None), whole);
            let at = Some(BEGIN.wall_ms + cut_at);
            let (before, after) = (sum(by, None, at), sum(by, at, None));
            prop_assert_eq!((before.0 + after.0, before.1 + after.1), whole, "cut in two");
        }
    }
}

/// The same plan from a copy, whose maps were built anew.
fn again(world: &World, now: &Now) -> overnight::sched::Plan {
    plan(&world.clone(), now)
}

/// Until when, by which job, which GPUs, how many cores, how much memory.
type Held = (Option<u64>, JobId, Vec<usize>, u32, u64);

/// First come, first served with one reservation, written as its definition: slow and obvious.
fn naive(world: &World, now: &Now) -> Vec<JobId> {
    let fits = |job: &overnight::model::Job, index: usize| {
        let words = &job.spec.request.gpu_model;
        let name = &gpus(world)[index].name;
        words.is_empty() || words.iter().any(|word| overnight::model::model_matches(name, word))
    };
    let length = |job: &overnight::model::Job| match job.spec.request.limit {
        Limit::For(limit) => Some(limit.0 + job.spec.work.stop.grace.0 + 10_000),
        Limit::UntilDone => None,
    };
    // Who has each GPU, and until when; cores and memory likewise.
    let mut free: Vec<bool> = gpus(world).iter().map(|gpu| world.pool.holder(&gpu.uuid).is_none()).collect();
    let (mut cores, mut memory) = (world.pool.cores_free(), world.pool.memory_free());
    let mut back: Vec<Held> = world
        .leases
        .held()
        .map(|lease| {
            let end = length(world.queue.get(lease.job).expect("live"))
                .map(|ms| (lease.granted.boottime_ms + ms).max(now.boottime_ms + 10_000));
            let held = lease.held.devices.iter();
            let places =
                held.map(|device| gpus(world).iter().position(|gpu| gpu.uuid == device.uuid).unwrap());
            (end, lease.job, places.collect(), lease.held.cores, lease.held.memory.0)
        })
        .collect();
    back.sort_by_key(|(at, job, ..)| (at.unwrap_or(u64::MAX), *job));
    let mut starts = Vec::new();
    // The head's promise: when, which GPUs, and what is left of cores and memory then.
    let mut promise: Option<(u64, Vec<usize>, u32, u64)> = None;
    for job in world.queue.line() {
        if job.paused.is_some() || job.spec.request.start_after_ms.is_some_and(|at| at > now.wall_ms) {
            continue;
        }
        let ask = ask(world, job);
        let mut usable: Vec<usize> = (0..free.len()).filter(|ix| free[*ix] && fits(job, *ix)).collect();
        if usable.len() < ask.gpus as usize || cores < ask.cores || memory < ask.memory.0 {
            if promise.is_none() {
                let (mut then, mut then_cores, mut then_memory) = (usable, cores, memory);
                for (at, _, places, more_cores, more_memory) in &back {
                    let Some(at) = at else { break };
                    then.splice(0..0, places.iter().copied().filter(|ix| fits(job, *ix)));
                    then_cores += more_cores;
                    then_memory += more_memory;
                    if then.len() >= ask.gpus as usize
                        && then_cores >= ask.cores
                        && then_memory >= ask.memory.0
                    {
                        then.truncate(ask.gpus as usize);
                        let left = (then_cores - ask.cores, then_memory - ask.memory.0);
                        promise = Some((*at, then, left.0, left.1));
                        break;
                    }
                }
            }
            continue;
        }
        let over = promise
            .as_ref()
            .is_some_and(|(at, ..)| length(job).is_some_and(|ms| now.boottime_ms + ms <= *at));
        let kept: Vec<usize> = promise.as_ref().map_or_else(Vec::new, |(_, kept, ..)| kept.clone());
        if let Some((_, _, left_cores, left_memory)) = &mut promise {
            if over {
                usable.sort_by_key(|ix| (!kept.contains(ix), *ix));
            } else {
                usable.retain(|ix| !kept.contains(ix));
                if usable.len() < ask.gpus as usize || *left_cores < ask.cores || *left_memory < ask.memory.0
                {
                    continue;
                }
                *left_cores -= ask.cores;
                *left_memory -= ask.memory.0;
            }
        }
        usable.truncate(ask.gpus as usize);
        for ix in &usable {
            free[*ix] = false;
        }
        cores -= ask.cores;
        memory -= ask.memory.0;
        // What starts now comes back too, and a promise may count on it.
        back.push((length(job).map(|ms| now.boottime_ms + ms), job.id, usable, ask.cores, ask.memory.0));
        back.sort_by_key(|(at, job, ..)| (at.unwrap_or(u64::MAX), *job));
        starts.push(job.id);
    }
    starts
}

fn gpus(world: &World) -> Vec<&overnight::model::Gpu> {
    world.pool.devices().filter_map(|(_, device)| device.gpu.as_ref()).collect()
}

/// Anything that may come in, sensible or not.
#[derive(Debug, Clone)]
pub(crate) enum Noise {
    Submit(Asked, Option<u8>),
    Cancel(u64, u64, bool),
    Pause(u64),
    Resume(u64),
    Move(u64, u8),
    Retry(u64),
    Undo,
    BeginEdit(u64),
    EndEdit(u64),
    Edit(u64, Asked, bool),
    Close(u32),
    Open(u32),
    Clear(u32),
    Read(u8, u32),
    List(u32),
    Cores(u32),
    Started(u64, u32),
    Ended(u64, u32, u8, bool),
    Collected(u64, u32),
    Missing(u64, bool, bool),
    NotLaunched(u64),
    Heartbeat(u64),
    Outlived(u64),
    Gone(u64),
    Prepared(u64, bool),
    Released(u64, u32),
}

pub(crate) fn noise() -> impl Strategy<Value = (u64, Noise)> {
    let job = 1..12_u64;
    let lease = 1..12_u64;
    let attempt = 1..3_u32;
    let kind = prop_oneof![
        4 => (asked(), prop::option::weighted(0.3, 0..4_u8)).prop_map(|(asked, after)| Noise::Submit(asked, after)),
        2 => (job.clone(), 0..9_000_u64, any::<bool>()).prop_map(|(job, undo, now)| Noise::Cancel(job, undo, now)),
        1 => job.clone().prop_map(Noise::Pause),
        1 => job.clone().prop_map(Noise::Resume),
        1 => (job.clone(), 0..4_u8).prop_map(|(job, to)| Noise::Move(job, to)),
        2 => job.clone().prop_map(Noise::Retry),
        2 => Just(Noise::Undo),
        2 => job.clone().prop_map(Noise::BeginEdit),
        1 => job.clone().prop_map(Noise::EndEdit),
        3 => (job.clone(), asked(), any::<bool>()).prop_map(|(job, asked, named)| Noise::Edit(job, asked, named)),
        1 => (0..4_u32).prop_map(Noise::Close),
        1 => (0..4_u32).prop_map(Noise::Open),
        1 => (0..4_u32).prop_map(Noise::Clear),
        6 => (0..6_u8, 0..4_u32).prop_map(|(kind, index)| Noise::Read(kind, index)),
        1 => (0..5_u32).prop_map(Noise::List),
        1 => (0..64_u32).prop_map(Noise::Cores),
        4 => (lease.clone(), attempt.clone()).prop_map(|(lease, attempt)| Noise::Started(lease, attempt)),
        4 => (lease.clone(), attempt.clone(), 0..7_u8, any::<bool>())
            .prop_map(|(lease, attempt, end, proven)| Noise::Ended(lease, attempt, end, proven)),
        4 => (lease.clone(), attempt.clone()).prop_map(|(lease, attempt)| Noise::Collected(lease, attempt)),
        1 => (lease.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(lease, seen, gone)| Noise::Missing(lease, seen, gone)),
        1 => lease.clone().prop_map(Noise::NotLaunched),
        1 => lease.clone().prop_map(Noise::Heartbeat),
        1 => lease.clone().prop_map(Noise::Outlived),
        1 => lease.prop_map(Noise::Gone),
        2 => (job.clone(), any::<bool>()).prop_map(|(job, ok)| Noise::Prepared(job, ok)),
        4 => (job, attempt).prop_map(|(job, attempt)| Noise::Released(job, attempt)),
    ];
    (prop_oneof![0..300_u64, 0..40_000_u64], kind)
}

impl Noise {
    pub(crate) fn input(self, rig: &Rig) -> Input {
        let now = rig.now;
        let task = TaskIx(0);
        let generation =
            |job: u64| rig.world.queue.get(JobId(job)).map_or(Generation(1), |job| job.generation);
        let command = |command| Input::Command { by: owner("bob"), command, reply_to: 1 };
        let missing = |lease, heartbeat, at, gone| {
            let (collecting, why) = (false, "gone".to_owned());
            Input::Engine(EngineReport::Missing { lease, heartbeat, at, gone, collecting, why })
        };
        match self {
            Self::Submit(asked, after) => {
                let mut one = submission(vec![spec(&asked).with(|spec| {
                    spec.name = format!("n{}", asked.gpus);
                    spec.request.after.extend(after.map(|n| format!("n{n}")));
                })]);
                one.paused = asked.paused;
                Input::Submission(Box::new(one))
            }
            Self::Cancel(job, undo, now) => {
                let (generation, job) = (generation(job), JobId(job));
                command(Command::Cancel { job, generation, undo: Span(undo), now })
            }
            Self::Pause(job) => command(Command::Pause { job: JobId(job), generation: generation(job) }),
            Self::Resume(job) => command(Command::Resume { job: JobId(job), generation: generation(job) }),
            Self::Move(job, to) => {
                let to = [Place::Top, Place::Bottom, Place::Up, Place::Down][to as usize];
                command(Command::Move { job: JobId(job), generation: generation(job), to })
            }
            Self::Retry(job) => command(Command::Retry { job: JobId(job), generation: generation(job) }),
            Self::Undo => command(Command::Undo { job: None }),
            Self::BeginEdit(job) => {
                command(Command::BeginEdit { job: JobId(job), generation: generation(job) })
            }
            Self::EndEdit(job) => {
                let mark = rig.world.queue.get(JobId(job)).and_then(|row| row.edit.as_ref());
                let generation = mark.map_or(Generation(1), |mark| mark.generation);
                command(Command::EndEdit { job: JobId(job), generation })
            }
            Self::Edit(job, asked, named) => {
                let mark = rig.world.queue.get(JobId(job)).and_then(|row| row.edit.as_ref());
                let generation = mark.map_or_else(|| generation(job), |mark| mark.generation);
                Input::Edit(Box::new(Edit {
                    by: owner("bob"),
                    job: JobId(job),
                    generation,
                    spec: spec(&asked).with(|spec| {
                        spec.name = format!("n{}", asked.gpus);
                        spec.request.after.extend(named.then(|| format!("n{}", asked.cores % 4)));
                    }),
                    warnings: Vec::new(),
                    file: JobText { text: String::new(), base: None, at_ms: 0 },
                    unchanged: false,
                    fields: Vec::new(),
                    reply_to: 1,
                }))
            }
            Self::Close(index) => {
                command(Command::Close { gpus: GpuSelect::Index(index), reason: String::new() })
            }
            Self::Open(index) => command(Command::Open { gpus: GpuSelect::Index(index) }),
            Self::Clear(index) => command(Command::Clear { gpu: GpuSelect::Index(index) }),
            Self::Read(kind, index) => {
                let mut reading = reading(&uuid(index), now);
                match kind {
                    0 => reading.memory_used = None,
                    1 => reading.memory_used = Some(Bytes::gib(9)),
                    2 => reading.processes = None,
                    _ => {}
                }
                let mut all: Vec<_> =
                    rig.gpus.iter().map(|gpu| crate::build::reading(&gpu.uuid, now)).collect();
                all.retain(|other| other.uuid != reading.uuid);
                all.push(reading);
                Input::Readings(all)
            }
            Self::List(count) => {
                Input::Devices((0..count).map(|n| gpu(n, "NVIDIA A100", Bytes::gib(80))).collect())
            }
            Self::Cores(cores) => Input::Host(HostReading { cores, memory: Bytes::gib(100) }),
            Self::Started(lease, attempt) => {
                let (lease, attempt) = (LeaseId(lease), AttemptNo(attempt));
                Input::Engine(EngineReport::Started { lease, task, attempt, at: now, enforcement: None })
            }
            Self::Ended(lease, attempt, end, proven) => Input::Engine(EngineReport::Ended {
                lease: LeaseId(lease),
                task,
                attempt: AttemptNo(attempt),
                at: now,
                end: end_of(end),
                by: if proven { EndedBy::Proven } else { EndedBy::AfterKill },
                peak_memory: None,
                suspended_ms: 0,
                notes: Vec::new(),
            }),
            Self::Collected(lease, attempt) => Input::Engine(EngineReport::Collected {
                lease: LeaseId(lease),
                task,
                attempt: AttemptNo(attempt),
                result: Ok(Collected::default()),
            }),
            Self::Missing(lease, seen, gone) => {
                missing(LeaseId(lease), seen.then_some(now), gone.then_some(now), gone)
            }
            Self::NotLaunched(lease) => {
                let why = "no".to_owned();
                Input::Engine(EngineReport::NotLaunched { lease: LeaseId(lease), at: now, why })
            }
            Self::Outlived(lease) => {
                Input::Engine(EngineReport::Outlived { lease: LeaseId(lease), who: "9 (dd)".to_owned() })
            }
            Self::Gone(lease) => Input::Engine(EngineReport::Gone { lease: LeaseId(lease) }),
            Self::Heartbeat(lease) => {
                Input::Engine(EngineReport::Heartbeat { lease: LeaseId(lease), at: now })
            }
            Self::Prepared(job, ok) => {
                let result = if ok { Ok(()) } else { Err("no".to_owned()) };
                Input::Prepared { job: JobId(job), task, attempt: AttemptNo(1), result }
            }
            Self::Released(job, attempt) => {
                Input::Released { job: JobId(job), task, attempt: AttemptNo(attempt) }
            }
        }
    }
}

fn end_of(n: u8) -> RunEnd {
    match n {
        0 => RunEnd::Exited { code: 1 },
        1 => RunEnd::Signalled { signal: 9 },
        2 => RunEnd::OutOfMemory { certain: true },
        3 => RunEnd::LimitReached,
        4 => RunEnd::Cancelled { by: "bob".to_owned() },
        5 => RunEnd::Lost { why: "x".to_owned() },
        _ => RunEnd::Exited { code: 0 },
    }
}
