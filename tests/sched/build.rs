//! Jobs, devices and a world with a shell of the test's own: virtual time, an engine that does as it is told, and what a
//! store would remember.

use overnight::model::{
    Amount, AttemptNo, Bytes, Code, Collected, Cursor, DataFrom, DataItem, EndedBy, EventRecord, Generation,
    Gpu, GpuIds, GpuReading, HostReading, Job, JobId, JobSpec, Lease, LeaseId, Limit, Now, Origin, Owner,
    Priority, Request, Retry, Run, RunEnd, Setup, Span, Stage, Standing, Stop, TaskIx, Token, Uuid, Work,
    WorkKind,
};
use overnight::protocol::{Command, Reply};
use overnight::sched::picture::Picture;
use overnight::sched::{
    Decision, Effect, EngineReport, Input, Moment, Remembered, Submission, World, check_transition, step,
};
use std::collections::BTreeMap;

/// The first moment of every test.
pub const BEGIN: Now =
    Now { boot: overnight::model::BootId(1), boottime_ms: 1_000_000, wall_ms: 1_700_000_000_000 };

pub fn owner(name: &str) -> Owner {
    Owner { uid: 1000 + u32::from(name.as_bytes()[0]), name: name.to_owned() }
}

/// A job that asks for one GPU, one core and 1 GiB for an hour, without grace.
pub fn job(name: &str) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        project: None,
        work: Work {
            kind: WorkKind::Other,
            dir: None,
            code: Code::Live,
            setup: Setup::default(),
            run: Run::Shell("true".to_owned()),
            env: BTreeMap::new(),
            env_file: None,
            for_each: None,
            checkpoint: None,
            stop: Stop { grace: Span(0), ..Stop::default() },
        },
        data: Vec::new(),
        request: Request {
            gpus: Amount::Some(1),
            gpu_model: Vec::new(),
            gpu_memory: None,
            gpu_ids: GpuIds::Index,
            share: false,
            cpus: Some(Amount::Some(1)),
            memory: Some(Amount::Some(Bytes::gib(1))),
            disk: None,
            limit: Limit::For(Span::secs(3_600)),
            finish_by_ms: None,
            start_after_ms: None,
            after: Vec::new(),
            after_any: Vec::new(),
            priority: Priority::NORMAL,
            at_once: None,
            retry: Retry::default(),
        },
        output: Vec::new(),
        output_to: None,
        notify: Vec::new(),
    }
}

/// Words that make a job of a test shorter to read.
pub trait Ask: Sized {
    fn gpus(self, n: u32) -> Self;
    fn secs(self, n: u64) -> Self;
    fn priority(self, n: i64) -> Self;
    fn after(self, name: &str) -> Self;
    fn after_any(self, name: &str) -> Self;
    fn until_done(self) -> Self;
    fn cores(self, n: u32) -> Self;
    fn code(self) -> Self;
    fn data_of(self, name: &str) -> Self;
    fn with(self, change: impl FnOnce(&mut JobSpec)) -> Self;
}

impl Ask for JobSpec {
    fn gpus(self, n: u32) -> Self {
        self.with(|spec| spec.request.gpus = Amount::Some(n))
    }
    fn secs(self, n: u64) -> Self {
        self.with(|spec| spec.request.limit = Limit::For(Span::secs(n)))
    }
    fn priority(self, n: i64) -> Self {
        self.with(|spec| spec.request.priority = Priority::clamped(n))
    }
    fn after(self, name: &str) -> Self {
        self.with(|spec| spec.request.after.push(name.to_owned()))
    }
    fn after_any(self, name: &str) -> Self {
        self.with(|spec| spec.request.after_any.push(name.to_owned()))
    }
    fn until_done(self) -> Self {
        self.with(|spec| spec.request.limit = Limit::UntilDone)
    }
    fn cores(self, n: u32) -> Self {
        self.with(|spec| spec.request.cpus = Some(Amount::Some(n)))
    }
    fn code(self) -> Self {
        self.with(|spec| {
            spec.work.dir = Some("/src".into());
            spec.work.code = Code::default();
        })
    }
    fn data_of(self, name: &str) -> Self {
        self.with(|spec| {
            spec.data.push(DataItem {
                from: DataFrom::Job { job: name.to_owned(), path: String::new() },
                name: "data".to_owned(),
                stage: Stage::Link,
                sha256: None,
            });
        })
    }
    fn with(mut self, change: impl FnOnce(&mut JobSpec)) -> Self {
        change(&mut self);
        self
    }
}

pub fn gpu(index: u32, name: &str, memory: Bytes) -> Gpu {
    Gpu { uuid: uuid(index), index, node: "box".to_owned(), name: name.to_owned(), memory, real: false }
}

pub fn uuid(index: u32) -> Uuid {
    Uuid(format!("GPU-{index:04}"))
}

/// A complete reading that shows nobody on the device.
pub fn reading(uuid: &Uuid, at: Now) -> GpuReading {
    GpuReading {
        uuid: uuid.clone(),
        at,
        unreadable: None,
        memory_used: Some(Bytes::mib(3)),
        utilisation: Some(50),
        temperature_c: Some(40),
        power_w: Some(60),
        health: overnight::model::Health::default(),
        processes: Some(Vec::new()),
        lock: None,
    }
}

pub fn submission(specs: Vec<JobSpec>) -> Submission {
    Submission {
        owner: owner("ana"),
        origin: Origin::Submit { file: None },
        ident: None,
        source: String::new(),
        jobs: specs.into_iter().map(|spec| (spec, Vec::new())).collect(),
        paused: false,
        retry_of: None,
        reply_to: None,
    }
}

/// What a store remembers: what was durable, as rows.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub jobs: BTreeMap<JobId, Job>,
    pub leases: BTreeMap<LeaseId, Lease>,
    pub devices: BTreeMap<Uuid, Standing>,
    pub log: Vec<EventRecord>,
    pub drops: Vec<overnight::model::DropIdent>,
    counters: overnight::sched::Counters,
}

impl Disk {
    /// Makes a turn durable: the rows that it touched.
    pub fn append(&mut self, world: &mut World, events: &[EventRecord]) {
        let touched = std::mem::take(&mut world.touched);
        for id in touched.jobs {
            self.jobs.extend(world.queue.get(id).map(|job| (id, job.clone())));
        }
        for id in touched.leases {
            self.leases.extend(world.lease(id).map(|lease| (id, lease.clone())));
        }
        for uuid in touched.devices {
            self.devices.extend(world.pool.get(&uuid).map(|device| (uuid, device.standing())));
        }
        for record in events {
            if let overnight::model::Event::SubmissionAccepted { ident: Some(ident), .. } = &record.event {
                self.drops.push(ident.clone());
            }
        }
        self.log.extend(events.iter().cloned());
        self.counters = world.counters;
    }

    /// The world of a scheduler that starts on this disk.
    pub fn restore(&self) -> World {
        World::restore(Remembered {
            boot: None,
            jobs: self.jobs.values().cloned().collect(),
            leases: self.leases.values().cloned().collect(),
            devices: self.devices.clone().into_iter().collect(),
            drops: self.drops.clone(),
            counters: self.counters,
        })
    }

    /// The world that the events alone make.
    pub fn fold(&self) -> World {
        let mut world = World::default();
        for record in &self.log {
            world.apply(record).expect("a durable event fits");
        }
        world
    }
}

/// A world, its clock, its disk, and everything it asked for.
pub struct Rig {
    pub world: World,
    pub now: Now,
    pub disk: Disk,
    pub gpus: Vec<Gpu>,
    pub effects: Vec<Effect>,
    pub last: Decision,
    /// The world that the events alone make.
    shadow: World,
    /// What subscribers are shown of it, if somebody has looked.
    pub picture: Picture,
    next_reply: u64,
}

impl Rig {
    /// `n` GPUs of 80 GiB, 16 cores and 128 GiB each, read and free.
    pub fn new(n: u32) -> Self {
        Self::with((0..n).map(|index| gpu(index, "NVIDIA A100 80GB PCIe", Bytes::mib(81_559))).collect())
    }

    pub fn with(gpus: Vec<Gpu>) -> Self {
        let n = gpus.len().max(1) as u32;
        let host = HostReading { cores: 16 * n, memory: Bytes::gib(128 * u64::from(n)) };
        let mut rig = Self {
            world: World::default(),
            now: BEGIN,
            disk: Disk::default(),
            gpus,
            effects: Vec::new(),
            last: Decision::default(),
            shadow: World::default(),
            picture: Picture::default(),
            next_reply: 0,
        };
        rig.step(vec![Input::Host(host), Input::Devices(rig.gpus.clone())]);
        rig.read();
        rig.effects.clear();
        rig
    }

    /// One turn, made durable. Every invariant is checked.
    pub fn step(&mut self, inputs: Vec<Input>) -> &Decision {
        let decision = step(&mut self.world, inputs, Moment { now: self.now, seed: 7 });
        assert_eq!(decision.bug, None, "the core met a bug");
        self.world.check().expect("an invariant is broken");
        if self.world.counters.seq < 2_000 {
            self.world.check_indexes().expect("an index is wrong");
            check_transition(&mut self.shadow, &self.world, &decision, &self.now)
                .expect("an invariant is broken");
        }
        self.picture.touch(&self.world);
        self.disk.append(&mut self.world, &decision.events);
        self.effects.extend(decision.effects.iter().cloned());
        self.last = decision;
        &self.last
    }

    pub fn pass(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    /// A turn with clean readings of all devices, after `secs` seconds.
    pub fn wait(&mut self, secs: u64) -> &Decision {
        self.pass(Span::secs(secs));
        self.read()
    }

    /// A turn with clean readings of all devices.
    pub fn read(&mut self) -> &Decision {
        let readings = self.gpus.iter().map(|gpu| reading(&gpu.uuid, self.now)).collect();
        self.step(vec![Input::Readings(readings)])
    }

    /// Clean readings, changed.
    pub fn read_with(&mut self, change: impl Fn(&mut GpuReading)) -> &Decision {
        let readings = self
            .gpus
            .iter()
            .map(|gpu| {
                let mut reading = reading(&gpu.uuid, self.now);
                change(&mut reading);
                reading
            })
            .collect();
        self.step(vec![Input::Readings(readings)])
    }

    /// Likewise, after `secs` seconds.
    pub fn wait_with(&mut self, secs: u64, change: impl Fn(&mut GpuReading)) -> &Decision {
        self.pass(Span::secs(secs));
        self.read_with(change)
    }

    /// Submits with fresh readings in the same turn, as a shell with cheap readings does.
    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        self.submit_all(vec![spec])[0]
    }

    pub fn submit_all(&mut self, specs: Vec<JobSpec>) -> Vec<JobId> {
        let first = self.world.counters.job.0 + 1;
        let count = specs.len() as u64;
        let readings = self.gpus.iter().map(|gpu| reading(&gpu.uuid, self.now)).collect();
        self.step(vec![Input::Readings(readings), Input::Submission(Box::new(submission(specs)))]);
        (first..first + count).map(JobId).collect()
    }

    pub fn command(&mut self, command: Command) -> Reply {
        self.next_reply += 1;
        let reply_to = self.next_reply;
        self.step(vec![Input::Command { by: owner("ana"), command, reply_to }]);
        self.last.replies.iter().find(|(to, _)| *to == reply_to).expect("every command is answered").1.clone()
    }

    pub fn job(&self, id: JobId) -> &Job {
        self.world.queue.get(id).expect("the job is in memory")
    }

    pub fn state(&self, id: JobId) -> Cursor {
        self.job(id).state()
    }

    pub fn generation(&self, id: JobId) -> Generation {
        self.job(id).generation
    }

    /// What a done job came to.
    pub fn outcome(&self, id: JobId) -> String {
        self.job(id).done.as_ref().map_or_else(|| "not done".to_owned(), |(_, outcome)| outcome.to_string())
    }

    /// The lease of a job's current attempt.
    pub fn lease(&self, id: JobId) -> LeaseId {
        self.job(id).tasks[0].current().state.lease().expect("the job has a lease")
    }

    pub fn attempt(&self, id: JobId) -> AttemptNo {
        self.job(id).tasks[0].current().number
    }

    pub fn engine(&mut self, report: EngineReport) -> &Decision {
        self.step(vec![Input::Engine(report)])
    }

    pub fn started(&mut self, id: JobId) {
        let (lease, attempt) = (self.lease(id), self.attempt(id));
        self.engine(EngineReport::Started {
            lease,
            task: TaskIx(0),
            attempt,
            at: self.now,
            enforcement: None,
        });
    }

    pub fn ended_report(&self, id: JobId, end: RunEnd, by: EndedBy) -> EngineReport {
        EngineReport::Ended {
            lease: self.lease(id),
            task: TaskIx(0),
            attempt: self.attempt(id),
            at: self.now,
            end,
            by,
            peak_memory: None,
            suspended_ms: 0,
            notes: Vec::new(),
        }
    }

    /// A job that has run for a second and ended well.
    pub fn ran(&mut self, name: &str) -> JobId {
        let id = self.submit(job(name));
        self.started(id);
        self.pass(Span::secs(1));
        self.ended(id, RunEnd::Exited { code: 0 });
        id
    }

    pub fn ended(&mut self, id: JobId, end: RunEnd) {
        let report = self.ended_report(id, end, EndedBy::Proven);
        self.engine(report);
    }

    pub fn collected(&mut self, id: JobId) {
        let (lease, attempt) = (self.lease(id), self.attempt(id));
        let result = Ok(Collected::default());
        self.engine(EngineReport::Collected { lease, task: TaskIx(0), attempt, result });
    }

    pub fn released(&mut self, id: JobId) {
        let attempt = self.attempt(id);
        self.step(vec![Input::Released { job: id, task: TaskIx(0), attempt }]);
    }

    /// From wherever it rents or runs to the end of its attempt.
    pub fn finish(&mut self, id: JobId, end: RunEnd) {
        if self.state(id) == Cursor::Renting {
            self.started(id);
        }
        self.ended(id, end);
        self.read();
        self.collected(id);
        self.released(id);
    }

    /// Ends with exit code 0.
    pub fn succeed(&mut self, id: JobId) {
        self.finish(id, RunEnd::Exited { code: 0 });
    }

    /// The scheduler ends and another one starts on its disk.
    pub fn restart(&mut self) {
        self.world = self.disk.restore();
        self.effects = overnight::sched::resume(&self.world);
        let host = HostReading {
            cores: 16 * self.gpus.len().max(1) as u32,
            memory: Bytes::gib(128 * self.gpus.len().max(1) as u64),
        };
        self.step(vec![Input::Host(host), Input::Devices(self.gpus.clone())]);
    }

    /// Why a job waits, in words.
    pub fn why(&self, id: JobId) -> String {
        why(&self.world, &self.now, id)
    }
}

/// Why a job waits, in words; wall times as seconds since [`BEGIN`].
pub fn why(world: &World, now: &Now, id: JobId) -> String {
    let name = |job: JobId| world.queue.get(job).map(|job| job.spec.name.clone());
    let clock = |at: i64| format!("{}s", (at - BEGIN.wall_ms) / 1000);
    overnight::sched::explain(world, now)
        .into_iter()
        .find(|(job, _)| *job == id)
        .map_or_else(|| "does not wait".to_owned(), |(_, reason)| reason.words(&name, &clock))
}

/// A token that is nobody's.
pub fn stranger() -> Token {
    Token("f".repeat(32))
}
