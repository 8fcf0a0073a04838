//! An auditor with a ledger of its own. It sees the events as they become durable, what is launched, and when processes are
//! really gone; and shares no arithmetic with the scheduler. What it holds of a world, the world must hold of itself.

use super::bill::{self, Hold};
use super::machine::{HEARTBEAT, HOST, Machine, Tree};
use overnight::model::{
    Bytes, EndedBy, Event, EventRecord, GpuReading, JobId, LeaseId, Now, TaskIx, Uuid, Verdict,
};
use overnight::sched::{Input, Launch, World};
use std::collections::{BTreeMap, BTreeSet};

/// What the auditor knows of a job.
#[derive(Default)]
struct Trace {
    /// Each attempt's place on the life line.
    attempts: Vec<&'static str>,
    /// The job that each name means that it waits for, and whether that must succeed.
    after: Vec<(String, Option<JobId>, bool)>,
    outcome: Option<&'static str>,
    /// When the mark of an edit ends at the latest.
    marked: Option<Now>,
    cancel_decided: bool,
    receipt: bool,
}

/// The auditor.
#[derive(Default)]
pub(super) struct Ledger {
    seq: u64,
    pub(super) holds: BTreeMap<LeaseId, Hold>,
    jobs: BTreeMap<JobId, Trace>,
    devices: BTreeMap<Uuid, &'static str>,
    drops: BTreeSet<u64>,
    launched: BTreeSet<LeaseId>,
    never: BTreeSet<LeaseId>,
    /// The newest reading of each device that the scheduler was given.
    read: BTreeMap<Uuid, GpuReading>,
    /// Milliseconds of leases that ended in another moment than their processes, by the machine's own account.
    pub(super) estimated: u64,
    compared: u64,
}

/// The life line, as the auditor has learnt it: from, event, to.
const LINE: &[(&str, &str, &str)] = &[
    ("queued", "prepared", "queued"),
    ("queued", "granted", "renting"),
    ("queued", "dropped", "done"),
    ("renting", "started", "running"),
    ("renting", "ended", "returning"),
    ("running", "ended", "returning"),
    ("returning", "returned", "releasing"),
    ("releasing", "released", "done"),
];

impl Ledger {
    /// Readings that a turn begins with. One that is older than the last says nothing.
    pub(super) fn hears(&mut self, inputs: &[Input]) {
        for input in inputs {
            let Input::Readings(readings) = input else { continue };
            for reading in readings {
                let last = self.read.entry(reading.uuid.clone()).or_insert_with(|| reading.clone());
                if last.at.boot != reading.at.boot || last.at.boottime_ms <= reading.at.boottime_ms {
                    last.clone_from(reading);
                }
            }
        }
    }

    /// A supervisor is about to be started. This is what must never go wrong.
    pub(super) fn launched(&mut self, launch: &Launch, machine: &Machine) {
        let lease = launch.lease;
        assert!(self.launched.insert(lease), "lease {lease} is launched twice");
        assert!(!self.never.contains(&lease), "lease {lease} was written off and is launched");
        let hold = self.holds.get(&lease).expect("a launch has a durable grant");
        assert_eq!((hold.job, &hold.token), (launch.job, &launch.token), "the grant of lease {lease}");
        let given: Vec<&Uuid> = launch.devices.iter().map(|device| &device.uuid).collect();
        assert!(hold.devices.iter().eq(given), "the devices of lease {lease}");
        for other in machine.work.values() {
            let token = &other.launch.token;
            assert_ne!(*token, launch.token, "two leases have one token");
            if other.lives() {
                assert_ne!(other.launch.job, launch.job, "two attempts of job {} live", launch.job);
                let shared = launch.devices.iter().find(|device| other.has(&device.uuid));
                assert!(shared.is_none(), "{shared:?} is used by leases {} and {lease}", other.launch.lease);
            }
        }
        assert!(!self.jobs[&launch.job].cancel_decided, "job {} was cancelled and is started", launch.job);
    }

    /// No supervisor of this lease will ever come.
    pub(super) fn never(&mut self, lease: LeaseId) {
        self.never.insert(lease);
    }

    pub(super) fn receipt(&mut self, job: JobId) {
        if let Some(trace) = self.jobs.get_mut(&job) {
            trace.receipt = true;
        }
    }

    pub(super) fn rebooted(&mut self) {
        self.read.clear();
    }

    /// A scheduler has begun anew: it must know what the auditor knows.
    pub(super) fn restarted(&mut self, world: &World) {
        self.read.clear();
        assert_eq!(world.counters.seq, self.seq, "events were lost");
        for (job, trace) in &self.jobs {
            let row = world.queue.get(*job).expect("a job is remembered");
            assert_eq!(row.done.is_some(), trace.outcome.is_some(), "job {job}");
        }
        let open: BTreeSet<LeaseId> =
            self.holds.values().filter(|hold| !hold.returned).map(|hold| hold.lease).collect();
        assert_eq!(world.leases.iter().map(|lease| lease.id).collect::<BTreeSet<_>>(), open);
    }

    /// Takes one durable event.
    pub(super) fn record(&mut self, record: &EventRecord, machine: &Machine) {
        assert_eq!(record.seq, self.seq + 1, "the log has no gap and no event twice");
        self.seq = record.seq;
        match &record.event {
            Event::SubmissionAccepted { ident: Some(ident), .. } => {
                assert!(self.drops.insert(ident.ino), "drop {} is accepted twice", ident.ino);
            }
            Event::JobAccepted { job, after, .. } => {
                let after = after.iter().map(|on| (on.name.clone(), on.job, on.must_succeed)).collect();
                let trace = Trace { attempts: vec!["queued"], after, ..Trace::default() };
                assert!(self.jobs.insert(*job, trace).is_none(), "job {job} is accepted twice");
            }
            Event::DependencyResolved { job, name, on } => {
                for waits in self.trace(*job).after.iter_mut().filter(|(of, ..)| of == name) {
                    waits.1 = Some(*on);
                }
            }
            Event::EditBegan { job, until, .. } => {
                let trace = self.trace(*job);
                assert!(trace.marked.is_none(), "job {job} is edited twice at once");
                trace.marked = Some(*until);
            }
            Event::EditEnded { job } => {
                assert!(self.trace(*job).marked.take().is_some(), "job {job} was not being edited");
            }
            Event::JobEdited { job, request, .. } => {
                let after =
                    request.after.iter().map(|on| (on.name.clone(), on.job, on.must_succeed)).collect();
                let trace = self.trace(*job);
                (trace.after, trace.marked) = (after, None);
                assert_eq!(trace.attempts.last(), Some(&"queued"), "job {job} was edited and does not wait");
            }
            Event::AttemptPrepared { job, attempt, .. } => self.goes(*job, attempt.0, "prepared"),
            Event::AttemptStarted { job, attempt, .. } => self.goes(*job, attempt.0, "started"),
            Event::AttemptEnded { job, attempt, .. } => self.goes(*job, attempt.0, "ended"),
            Event::AttemptReturned { job, attempt, .. } => self.goes(*job, attempt.0, "returned"),
            Event::AttemptReleased { job, attempt, .. } => self.goes(*job, attempt.0, "released"),
            Event::AttemptDropped { job, attempt, .. } => self.goes(*job, attempt.0, "dropped"),
            Event::RetryQueued { job, attempt, .. } => {
                let trace = self.trace(*job);
                assert_eq!(trace.attempts.last(), Some(&"done"), "job {job} is tried again while it lives");
                trace.attempts.push("queued");
                assert_eq!(trace.attempts.len(), attempt.0 as usize);
            }
            Event::JobDone { job, outcome } => {
                let trace = self.trace(*job);
                assert!(
                    trace.attempts.last() == Some(&"done") && trace.outcome.is_none(),
                    "job {job} ends once"
                );
                trace.outcome = Some(outcome.word());
            }
            Event::CancelDue { job } => self.trace(*job).cancel_decided = true,
            Event::DeviceChanged { uuid, state } => drop(self.devices.insert(uuid.clone(), state.word())),
            event => self.lease_event(event, record.at, machine),
        }
    }

    fn lease_event(&mut self, event: &Event, at: Now, machine: &Machine) {
        match event {
            Event::LeaseGranted { lease, job, task, attempt, held, .. } => {
                assert_eq!(*task, TaskIx(0));
                self.goes(*job, attempt.0, "granted");
                self.may_start(*job);
                for device in &held.devices {
                    let read =
                        self.read.get(&device.uuid).filter(|reading| is_clean(reading, 2 * Bytes::GIB));
                    let age = read.and_then(|reading| at.since(&reading.at));
                    assert!(age.is_some_and(|age| age.0 <= 250), "{} was granted unproven", device.uuid);
                    let was = self.devices.insert(device.uuid.clone(), "held");
                    assert_eq!(was, Some("free"), "{} was granted while it was not free", device.uuid);
                }
                assert!(
                    self.holds.insert(*lease, Hold::open(event, at)).is_none(),
                    "lease {lease} is granted twice"
                );
                let open = self.holds.values().filter(|hold| hold.close.is_none());
                let (cores, memory) =
                    open.fold((0, 0), |sum, hold| (sum.0 + hold.cores, sum.1 + hold.memory));
                assert!(cores <= HOST.cores && memory <= HOST.memory.0, "more is granted than there is");
            }
            Event::LeaseEnded { lease, ended, by, waived, suspended_ms } => {
                let hold = self.holds.get_mut(lease).expect("granted");
                assert!(hold.close.is_none(), "lease {lease} ends twice");
                assert_eq!(ended.boot, hold.open.boot, "lease {lease} ends in another boot");
                (hold.close, hold.by, hold.waived) = (Some(*ended), Some(*by), *waived);
                // What its supervisor has in its journal, if the end is the one that the journal tells of.
                let work = machine.work.get(lease).and_then(|work| work.journal.ended.as_ref());
                let slept = work.filter(|told| told.at == *ended).map_or(0, |told| told.suspended_ms);
                let held = ended.since(&hold.open).map_or(0, |held| held.0);
                assert_eq!(*suspended_ms, slept.min(held), "lease {lease} slept otherwise");
                hold.suspended = *suspended_ms;
                for uuid in hold.devices.clone() {
                    self.devices.insert(uuid, "draining");
                }
                self.judge(*lease, at, machine);
            }
            Event::LeaseReturned { lease, verdict } => {
                let hold = self.holds.get_mut(lease).expect("granted");
                assert!(
                    hold.close.is_some() && !hold.returned,
                    "lease {lease} is returned once, after its end"
                );
                hold.returned = true;
                let clean = *verdict == Verdict::Clean;
                let lives = machine.work.get(lease).is_some_and(super::machine::Work::lives);
                assert!(!(clean && lives), "lease {lease} is clean and its processes live");
                for (uuid, baseline) in hold.devices.iter().zip(&hold.baselines).filter(|_| clean) {
                    let reading = self.read.get(uuid).expect("a device is read before it is clean");
                    let theirs =
                        reading.lock.as_ref().is_some_and(|lock| lock.token.as_ref() != Some(&hold.token));
                    let after = hold.close.and_then(|close| reading.at.since(&close)).is_none_or(|_| {
                        hold.close.is_some_and(|close| close.boottime_ms <= reading.at.boottime_ms)
                    });
                    let same_boot = reading.at.boot == hold.open.boot;
                    let most =
                        if same_boot { baseline + baseline / 4 + Bytes::GIB / 2 } else { 2 * Bytes::GIB };
                    assert!(
                        after && (theirs || is_clean(reading, most)),
                        "{uuid} is not clean after lease {lease}"
                    );
                }
                for uuid in hold.devices.clone() {
                    self.devices.insert(uuid, if clean { "free" } else { "quarantined" });
                }
            }
            _ => {}
        }
    }

    /// Whether a lease ended when its processes did, as far as anybody could know.
    fn judge(&mut self, lease: LeaseId, now: Now, machine: &Machine) {
        let hold = &self.holds[&lease];
        let (Some(close), Some(by)) = (hold.close, hold.by) else { return };
        assert!(close.boottime_ms >= hold.open.boottime_ms, "lease {lease} ended before it was granted");
        assert!(
            close.boot != now.boot || close.boottime_ms <= now.boottime_ms,
            "lease {lease} ends in the future"
        );
        let Some(work) = machine.work.get(&lease).filter(|work| work.journal.void.is_none()) else {
            assert!(hold.waived, "lease {lease} never ran and is billed");
            return;
        };
        let gone = work.gone.filter(|gone| gone.boot == close.boot).map(|gone| gone.boottime_ms);
        match by {
            EndedBy::Proven if work.tree == Tree::Gone && gone.is_none() => {
                assert!(hold.waived, "nothing of lease {lease} ran and it is billed");
            }
            EndedBy::Proven if work.killed.is_some() && hold.waived => {
                // Its supervisor was killed first; that its work was gone too was seen later.
                assert!(gone.is_some_and(|gone| gone <= close.boottime_ms), "lease {lease}");
            }
            EndedBy::Proven => {
                assert_eq!(Some(close.boottime_ms), gone, "lease {lease} ended when its work did");
            }
            EndedBy::AfterKill => {
                let then = work.given_up.iter().any(|at| at.boottime_ms == close.boottime_ms);
                assert!(then, "lease {lease} ended when a kill was given up");
            }
            EndedBy::Estimated => {
                let truly = gone.unwrap_or(u64::MAX);
                assert!(close.boottime_ms <= truly, "lease {lease} is billed for what was not there");
                let death = work.killed.filter(|death| death.boot == close.boot && work.journal.readable);
                if let Some(death) = death {
                    let off = death.boottime_ms.saturating_sub(close.boottime_ms);
                    assert!(
                        off <= 2 * HEARTBEAT + work.asleep,
                        "the estimate of lease {lease} is {off} ms off"
                    );
                }
                self.estimated += 1;
            }
        }
    }

    /// Whether everything that a job waits for has ended as it must.
    fn may_start(&self, job: JobId) {
        for (name, on, must_succeed) in &self.jobs[&job].after {
            let on = on.unwrap_or_else(|| panic!("job {job} starts without {name}"));
            let outcome = self.jobs[&on].outcome;
            let ended = if *must_succeed { outcome == Some("succeeded") } else { outcome.is_some() };
            assert!(ended, "job {job} starts after job {on}, which is {outcome:?}");
        }
        assert!(self.jobs[&job].marked.is_none(), "job {job} starts while it is being edited");
        assert!(!self.jobs[&job].cancel_decided, "job {job} was cancelled and is granted");
    }

    fn trace(&mut self, job: JobId) -> &mut Trace {
        let trace = self.jobs.get_mut(&job).expect("accepted");
        assert!(trace.outcome.is_none(), "something happens to job {job}, which is done");
        trace
    }

    fn goes(&mut self, job: JobId, attempt: u32, event: &'static str) {
        let trace = self.trace(job);
        assert_eq!(trace.attempts.len(), attempt as usize, "an event of an attempt that is not the last");
        let from = trace.attempts.last_mut().expect("a job has an attempt");
        let step = LINE.iter().find(|(at, what, _)| at == from && *what == event);
        let (.., to) = step.unwrap_or_else(|| panic!("job {job} is {from} and is {event}"));
        *from = to;
    }

    /// The world says what the auditor says, of all that a turn concerned; now and then of everything.
    pub(super) fn compare(&mut self, world: &World, events: &[EventRecord], now: &Now) {
        self.compared += 1;
        let whole = self.compared.is_multiple_of(32);
        let touched: BTreeSet<JobId> =
            events.iter().filter_map(|record| bill::job_of(&record.event, &self.holds)).collect();
        for (id, trace) in self.jobs.iter().filter(|(id, _)| whole || touched.contains(id)) {
            let row = world.queue.get(*id).expect("a job is there");
            let places = row.tasks[0].attempts.iter().map(|attempt| attempt.state.cursor().word());
            assert!(places.eq(trace.attempts.iter().copied()), "the attempts of job {id}");
            let outcome = row.done.as_ref().map(|(_, outcome)| outcome.word());
            assert_eq!(outcome, trace.outcome, "the outcome of job {id}");
            let closed = self.holds.values().filter(|hold| hold.job == *id && hold.close.is_some());
            let sum = bill::sum(closed, now);
            assert_eq!(world.ledger.sums(*id, now), sum, "what job {id} has used");
        }
        for (uuid, device) in world.pool.devices() {
            let known = self.devices.get(uuid).copied().unwrap_or("unknown");
            assert_eq!(device.state.word(), known, "{uuid}");
        }
        if whole {
            bill::compare(&self.holds, world, now);
        }
    }

    /// At the end of a life: everything accepted has ended, everything held was given back, and the bill is right.
    pub(super) fn audit(&self, world: &World, machine: &Machine, drops: &[u64]) {
        for (job, trace) in &self.jobs {
            assert!(trace.outcome.is_some(), "job {job} has no outcome");
            assert!(trace.receipt, "job {job} has no receipt");
        }
        assert!(drops.iter().all(|drop| self.drops.contains(drop)), "a drop is lost");
        for hold in self.holds.values() {
            assert!(hold.close.is_some() && hold.returned, "lease {} is not given back", hold.lease);
        }
        bill::overlap(&self.holds);
        bill::compare(&self.holds, world, &machine.now());
    }
}

/// Whether a reading shows nobody, and less than so much memory in use.
fn is_clean(reading: &GpuReading, most: u64) -> bool {
    reading.unreadable.is_none()
        && reading.processes.as_ref().is_some_and(Vec::is_empty)
        && reading.memory_used.is_some_and(|used| used.0 < most)
}
