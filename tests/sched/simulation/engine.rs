//! The engine and the supervisors: launches, ends, reports. Reports may be late, lost, repeated; what is lost is told again
//! by the next survey.

use super::faults::Fault;
use super::life::{Act, Happening, Life, Task};
use super::machine::{Ended, HOST, Tree};
use overnight::model::{AttemptNo, Collected, EndedBy, LeaseId, Now, RunEnd, TaskIx};
use overnight::sched::{EngineReport, Input, Launch, Reason, StopKind, explain, leases_to_find};

/// A kill that is not answered is given up after this.
const PATIENCE: u64 = 10_000;

impl Life {
    /// A report on its way.
    #[expect(clippy::needless_pass_by_value, reason = "a report is made to be sent")]
    fn report(&mut self, report: EngineReport) {
        if self.faults.strikes(&mut self.dice, Fault::ReportLost) {
            return;
        }
        let copies = 1 + u64::from(self.faults.strikes(&mut self.dice, Fault::ReportTwice));
        for _ in 0..copies {
            let late = self.faults.strikes(&mut self.dice, Fault::ReportLate);
            let ms = if late { self.dice.below(5_000) } else { 1 };
            self.tell(ms, Input::Engine(report.clone()));
        }
    }

    /// What a supervisor says, if somebody listens.
    fn say(&mut self, lease: LeaseId, report: impl FnOnce(LeaseId, TaskIx, AttemptNo) -> EngineReport) {
        let Some(work) = self.machine.work.get(&lease).filter(|_| self.connected.contains(&lease)) else {
            return;
        };
        let report = report(lease, work.launch.task, work.launch.attempt);
        self.report(report);
    }

    pub(super) fn launch(&mut self, launch: Launch) {
        self.ledger.launched(&launch, &self.machine);
        let lease = launch.lease;
        if self.faults.strikes(&mut self.dice, Fault::SpawnFails) {
            let at = self.machine.now();
            let why = "fork: no".to_owned();
            self.pending.push(Input::Engine(EngineReport::NotLaunched { lease, at, why }));
            return;
        }
        let locked = self.machine.gpus.iter().any(|gpu| gpu.real)
            && self
                .machine
                .work
                .values()
                .any(|other| other.locks && launch.devices.iter().any(|device| other.has(&device.uuid)));
        let outsider = !launch.devices.is_empty() && self.faults.strikes(&mut self.dice, Fault::LockTaken);
        let limit = launch.limit.map_or(50_000, |limit| limit.0);
        let length = 1 + self.dice.below(60_000);
        let fate = match (length > limit, self.dice.below(10)) {
            (true, _) => RunEnd::LimitReached,
            (_, 0) => RunEnd::Exited { code: 1 },
            (_, 1) => RunEnd::Signalled { signal: 11 },
            _ => RunEnd::Exited { code: 0 },
        };
        self.machine.supervise(launch, fate);
        self.connected.insert(lease);
        if locked || outsider {
            return self.void(lease, "its device is held by somebody else");
        }
        if self.faults.strikes(&mut self.dice, Fault::CannotStart) {
            self.end(lease, RunEnd::NotStarted { why: "no such directory".to_owned() }, EndedBy::Proven);
            return self.later(1, Happening::Machine(lease, Act::Collects));
        }
        let start = self.dice.below(30);
        self.later(start, Happening::Machine(lease, Act::Starts));
        self.later(start + 1 + length.min(limit), Happening::Machine(lease, Act::Exits));
    }

    /// Nothing ran under a lease and nothing will.
    fn void(&mut self, lease: LeaseId, why: &str) {
        let at = self.machine.now();
        self.machine.end_beats(lease);
        if let Some(work) = self.machine.work.get_mut(&lease) {
            work.journal.void = Some((at, why.to_owned()));
            (work.supervised, work.locks, work.tree) = (false, false, Tree::Gone);
        }
        let why = why.to_owned();
        self.say(lease, |lease, _, _| EngineReport::NotLaunched { lease, at, why });
    }

    pub(super) fn stop(&mut self, lease: LeaseId, kind: StopKind) {
        let connected = self.connected.contains(&lease);
        let Some(work) = self.machine.work.get_mut(&lease).filter(|work| connected && work.supervised) else {
            return;
        };
        let (end, most) = match kind {
            StopKind::Cancel { by } => (RunEnd::Cancelled { by }, 2_000),
            StopKind::CancelNow { by } => (RunEnd::Cancelled { by }, 50),
            StopKind::Lost { why } => (RunEnd::Lost { why }, 50),
        };
        if matches!(work.tree, Tree::None | Tree::Lives) && work.journal.ended.is_none() {
            work.told.get_or_insert(end);
            let ms = 40 + self.dice.below(most);
            self.later(ms, Happening::Machine(lease, Act::Exits));
        }
    }

    pub(super) fn dismiss(&mut self, lease: LeaseId) {
        let connected = self.connected.contains(&lease);
        if let Some(work) = self.machine.work.get_mut(&lease).filter(|work| connected && work.supervised) {
            (work.dismissed, work.locks) = (true, false);
            self.leave(lease);
        }
    }

    /// A supervisor leaves when its output is home, and it was dismissed or nobody is there to dismiss it.
    pub(super) fn leave(&mut self, lease: LeaseId) {
        let connected = self.connected.contains(&lease);
        let leaves = self
            .machine
            .work
            .get(&lease)
            .is_some_and(|work| work.supervised && work.journal.home && (work.dismissed || !connected));
        if leaves {
            self.machine.end_beats(lease);
            if let Some(work) = self.machine.work.get_mut(&lease) {
                (work.supervised, work.locks) = (false, false);
            }
        }
    }

    pub(super) fn machine_does(&mut self, lease: LeaseId, act: Act) {
        match act {
            Act::Starts => self.starts(lease),
            Act::Exits => self.exits(lease),
            Act::GivesUp => {
                let stuck = |tree| tree == Tree::Stuck;
                if self.machine.work.get(&lease).is_some_and(|work| work.supervised && stuck(work.tree)) {
                    let end = self.fate(lease);
                    self.end(lease, end, EndedBy::AfterKill);
                    self.later(200, Happening::Machine(lease, Act::Collects));
                }
            }
            Act::Collects => self.collects(lease),
            Act::Thaws => self.thaws(lease),
        }
    }

    fn fate(&self, lease: LeaseId) -> RunEnd {
        let lost = || RunEnd::Lost { why: "nobody knows".to_owned() };
        self.machine
            .work
            .get(&lease)
            .map_or_else(lost, |work| work.told.clone().unwrap_or_else(|| work.fate.clone()))
    }

    fn starts(&mut self, lease: LeaseId) {
        let fresh = |work: &super::machine::Work| work.supervised && work.tree == Tree::None;
        if !self.machine.work.get(&lease).is_some_and(fresh) {
            return;
        }
        self.machine.starts(lease);
        let at = self.machine.now();
        self.say(lease, |lease, task, attempt| EngineReport::Started { lease, task, attempt, at });
    }

    /// The work goes to its end, or is ended: unless its supervisor is killed first, or a process survives its kill.
    fn exits(&mut self, lease: LeaseId) {
        let now = self.machine.now();
        let Some(work) = self.machine.work.get_mut(&lease).filter(|work| work.tree == Tree::Lives) else {
            return;
        };
        if !work.supervised {
            // An orphan: nobody sees it go.
            work.tree = Tree::Gone;
            work.gone = Some(now);
            return;
        }
        if self.faults.strikes(&mut self.dice, Fault::Unkillable) {
            work.tree = Tree::Stuck;
            let thaws = self.dice.long_tail(60_000);
            self.later(PATIENCE, Happening::Machine(lease, Act::GivesUp));
            return self.later(thaws, Happening::Machine(lease, Act::Thaws));
        }
        let end = self.fate(lease);
        self.end(lease, end, EndedBy::Proven);
        let mut ms = self.dice.below(1_000);
        if self.faults.strikes(&mut self.dice, Fault::OutputDiskFull) {
            ms += self.dice.long_tail(20_000);
        }
        self.later(ms, Happening::Machine(lease, Act::Collects));
    }

    fn end(&mut self, lease: LeaseId, end: RunEnd, by: EndedBy) {
        let at = self.machine.now();
        let suspended_ms = self.machine.suspended_since_start(lease);
        let Some(work) = self.machine.work.get_mut(&lease) else { return };
        if by == EndedBy::Proven {
            work.tree = Tree::Gone;
            work.gone = Some(at);
        }
        if by == EndedBy::AfterKill {
            work.given_up.push(at);
        }
        let suspended_ms = work.journal.started.map_or(0, |_| suspended_ms);
        work.journal.ended = Some(Ended { at, end, by, suspended_ms });
        let report = ended(work);
        self.after_run(lease);
        if let Some(report) = report {
            self.say(lease, |_, _, _| report);
        }
    }

    fn collects(&mut self, lease: LeaseId) {
        let open = |work: &super::machine::Work| {
            work.supervised && work.journal.ended.is_some() && !work.journal.home
        };
        let Some(work) = self.machine.work.get_mut(&lease).filter(|work| open(work)) else { return };
        work.journal.home = true;
        let result = self.collection();
        self.say(lease, |lease, task, attempt| EngineReport::Collected { lease, task, attempt, result });
        self.leave(lease);
    }

    fn collection(&mut self) -> Result<Collected, String> {
        if self.faults.strikes(&mut self.dice, Fault::CollectFails) {
            return Err("the collector was killed".to_owned());
        }
        Ok(Collected::default())
    }

    /// A process that did not answer its kill goes after all; a supervisor that is still there sees it.
    fn thaws(&mut self, lease: LeaseId) {
        let at = self.machine.now();
        let Some(work) = self.machine.work.get_mut(&lease).filter(|work| work.tree == Tree::Stuck) else {
            return;
        };
        work.tree = Tree::Gone;
        work.gone = Some(at);
        if !work.supervised {
            return;
        }
        if work.journal.ended.is_none() {
            let end = self.fate(lease);
            self.end(lease, end, EndedBy::Proven);
            return self.later(200, Happening::Machine(lease, Act::Collects));
        }
        let end = self.fate(lease);
        self.say(lease, |lease, task, attempt| EngineReport::Ended {
            lease,
            task,
            attempt,
            at,
            end,
            by: EndedBy::Proven,
            peak_memory: None,
            suspended_ms: 0,
            notes: Vec::new(),
        });
    }

    /// Whatever did not answer its kill goes at last.
    pub(super) fn thaw_all(&mut self) {
        let stuck = self.machine.work.iter().filter(|(_, work)| work.tree == Tree::Stuck);
        for lease in stuck.map(|(lease, _)| *lease).collect::<Vec<_>>() {
            self.later(1, Happening::Machine(lease, Act::Thaws));
        }
    }

    /// A process that nobody can prove gone: with no device there is no reading of one, and nobody saw it go.
    pub(super) fn some_wait_for_a_boot(&self) -> bool {
        explain(&self.world, &self.machine.now())
            .iter()
            .any(|(_, reason)| *reason == Reason::LastAttemptAlive)
    }

    /// Somebody kills a supervisor. Its work lives on until it is found.
    pub(super) fn kill_supervisor(&mut self, lease: LeaseId) {
        let now = self.machine.now();
        self.machine.end_beats(lease);
        let Some(work) = self.machine.work.get_mut(&lease) else { return };
        (work.supervised, work.locks, work.killed) = (false, false, Some(now));
        if self.faults.strikes(&mut self.dice, Fault::JournalUnreadable) {
            work.journal.readable = false;
        }
        if work.tree == Tree::None {
            work.tree = Tree::Gone;
        }
        if self.connected.remove(&lease) {
            self.settle_later(lease, true);
        }
    }

    /// The engine looks for what is left of a tree, and ends it.
    fn settle_later(&mut self, lease: LeaseId, witnessed: bool) {
        let stuck = self.machine.work.get(&lease).is_some_and(|work| work.tree == Tree::Stuck);
        let ms = if stuck { PATIENCE } else { self.dice.below(2_000) };
        self.later(ms, Happening::Engine(lease, Task::Settled { witnessed }));
    }

    pub(super) fn engine_does(&mut self, lease: LeaseId, task: Task) {
        match task {
            Task::Settled { witnessed } => self.settled(lease, witnessed),
            Task::Collected => {
                let Some(record) = self.world.lease(lease) else { return };
                let Some((task, attempt)) = record.attempts.last().copied() else { return };
                let result = self.collection();
                self.report(EngineReport::Collected { lease, task, attempt, result });
            }
        }
    }

    /// What the engine found of a lease whose supervisor is gone.
    fn settled(&mut self, lease: LeaseId, witnessed: bool) {
        let (now, heartbeat) = (self.machine.now(), self.machine.last_sign(lease));
        let Some(work) = self.machine.work.get_mut(&lease) else { return };
        let readable = work.journal.readable;
        let mut said = Vec::new();
        if readable {
            said.extend(work.journal.started.map(|at| started(work, at)));
            said.extend(ended(work));
        }
        if work.journal.home && readable {
            let (task, attempt) = (work.launch.task, work.launch.attempt);
            said.push(EngineReport::Collected { lease, task, attempt, result: Ok(Collected::default()) });
        } else if work.journal.ended.is_some() && readable {
            self.later(100, Happening::Engine(lease, Task::Collected));
        } else {
            let same_boot = work.boot == now.boot;
            let (at, gone) = match work.tree {
                Tree::Lives => {
                    work.tree = Tree::Gone;
                    work.gone = Some(now);
                    (Some(now), true)
                }
                Tree::Stuck => {
                    work.given_up.push(now);
                    (Some(now), false)
                }
                Tree::None | Tree::Gone => ((witnessed && same_boot).then_some(now), true),
            };
            let heartbeat = heartbeat.filter(|_| readable);
            let why = "its supervisor is gone".to_owned();
            said.push(EngineReport::Missing { lease, heartbeat, at, gone, collecting: readable, why });
            self.after_run(lease);
            if readable {
                self.later(100, Happening::Engine(lease, Task::Collected));
            }
        }
        for report in said {
            self.report(report);
        }
    }

    /// What the engine of a scheduler that starts finds of the leases that are not at their end.
    pub(super) fn survey(&mut self) {
        for (lease, token) in leases_to_find(&self.world) {
            let now = self.machine.now();
            let Some(work) = self.machine.work.get(&lease) else {
                // Its journal's name is taken: no supervisor will come any more.
                self.ledger.never(lease);
                let why = "its supervisor was never started".to_owned();
                self.report(EngineReport::NotLaunched { lease, at: now, why });
                continue;
            };
            assert_eq!(work.launch.token, token, "the token of lease {lease}");
            if let Some((at, why)) = work.journal.void.clone() {
                self.report(EngineReport::NotLaunched { lease, at, why });
            } else if work.supervised {
                self.connected.insert(lease);
                let mut said = Vec::new();
                said.extend(work.journal.started.map(|at| started(work, at)));
                said.extend(ended(work));
                for report in said {
                    self.report(report);
                }
                if self.machine.work.get(&lease).is_some_and(|work| work.journal.home) {
                    let result = Ok(Collected::default());
                    self.say(lease, |lease, task, attempt| EngineReport::Collected {
                        lease,
                        task,
                        attempt,
                        result,
                    });
                }
            } else {
                self.settle_later(lease, false);
            }
        }
        // Nobody listens to the others any more.
        for lease in self.machine.work.keys().copied().collect::<Vec<_>>() {
            self.leave(lease);
        }
    }

    /// A supervisor's sign of life that is told.
    pub(super) fn beat(&mut self) {
        let beats: Vec<(LeaseId, Option<Now>)> =
            self.connected.iter().map(|lease| (*lease, self.machine.last_beat(*lease))).collect();
        for (lease, beat) in beats {
            if let Some(at) = beat {
                self.tell(0, Input::Engine(EngineReport::Heartbeat { lease, at }));
            }
        }
    }

    /// Cores and memory that the machine says it has.
    pub(super) fn host_says(&mut self) {
        let less = self.faults.strikes(&mut self.dice, Fault::CoresLost);
        self.host.cores = if less { 1 + self.dice.below(u64::from(HOST.cores)) as u32 } else { HOST.cores };
        let host = self.host;
        self.tell(0, Input::Host(host));
    }
}

fn started(work: &super::machine::Work, at: Now) -> EngineReport {
    let (lease, task, attempt) = (work.launch.lease, work.launch.task, work.launch.attempt);
    EngineReport::Started { lease, task, attempt, at }
}

fn ended(work: &super::machine::Work) -> Option<EngineReport> {
    let Ended { at, end, by, suspended_ms } = work.journal.ended.clone()?;
    Some(EngineReport::Ended {
        lease: work.launch.lease,
        task: work.launch.task,
        attempt: work.launch.attempt,
        at,
        end,
        by,
        peak_memory: None,
        suspended_ms,
        notes: Vec::new(),
    })
}
