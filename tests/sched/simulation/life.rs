//! One life: the machine, the scheduler's shell around the real core, and what happens when.
//!
//! The shell does what the daemon does, in its order: inputs, step, append, effects, replies. What a scheduler has in
//! memory and on its channels is gone with it; what the machine does goes on.

use super::clients::People;
use super::dice::Dice;
use super::disk::{Durable, Kept};
use super::faults::{Fault, Faults};
use super::ledger::Ledger;
use super::machine::{HOST, Machine};
use overnight::model::{Event, HostReading, JobId, LeaseId, Uuid};
use overnight::sched::{Decision, Effect, Input, Moment, World, explain, in_time, step};
use std::collections::{BTreeMap, BTreeSet};

/// What happens at a moment.
pub(super) enum Happening {
    /// To the scheduler: gone with it.
    Told(Box<Input>),
    /// In the scheduler's engine: gone with it.
    Engine(LeaseId, Task),
    /// On the machine: goes on without a scheduler.
    Machine(LeaseId, Act),
}

/// What an engine does beside its thread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    /// The tree of a supervisor that is gone was looked for, and ended.
    Settled {
        /// Its end was seen to come.
        witnessed: bool,
    },
    /// The output was collected in a supervisor's place.
    Collected,
}

/// What supervisors and processes do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Starts,
    Exits,
    GivesUp,
    Collects,
    Thaws,
}

/// One life.
pub(super) struct Life {
    pub(super) dice: Dice,
    pub(super) faults: Faults,
    pub(super) machine: Machine,
    pub(super) world: World,
    pub(super) durable: Durable,
    pub(super) ledger: Ledger,
    pub(super) people: People,
    /// Readings cost nothing and are taken with every turn.
    pub(super) instant: bool,
    pub(super) host: HostReading,
    agenda: BTreeMap<(u64, u64), Happening>,
    ties: u64,
    /// True time at which the core wants to be asked again.
    wake: Option<u64>,
    /// Likewise of a reading for telemetry's sake.
    telemetry: Option<u64>,
    /// Inputs for the next turn.
    pub(super) pending: Vec<Input>,
    /// Supervisors that the scheduler has a channel to.
    pub(super) connected: BTreeSet<LeaseId>,
    pub(super) turns: u64,
    /// Says what happens.
    pub(super) traced: bool,
    /// Since when a device that is fine has not been in service, and somebody waits.
    idle: BTreeMap<Uuid, u64>,
}

impl Life {
    pub(super) fn new(seed: u64, kept: Kept) -> Self {
        let mut dice = Dice::new(seed);
        let faults = Faults::of(&mut dice);
        let instant = dice.percent(50);
        let machine = Machine::new(&mut dice, !instant);
        let mut life = Self {
            dice,
            faults,
            machine,
            world: World::default(),
            durable: Durable::new(kept),
            ledger: Ledger::default(),
            people: People::default(),
            instant,
            host: HOST,
            agenda: BTreeMap::new(),
            ties: 0,
            wake: None,
            telemetry: None,
            pending: Vec::new(),
            connected: BTreeSet::new(),
            turns: 0,
            traced: false,
            idle: BTreeMap::new(),
        };
        life.begin();
        life
    }

    pub(super) fn later(&mut self, ms: u64, happening: Happening) {
        self.ties += 1;
        self.agenda.insert((self.machine.t + ms, self.ties), happening);
    }

    pub(super) fn tell(&mut self, ms: u64, input: Input) {
        self.later(ms, Happening::Told(Box::new(input)));
    }

    /// What was to happen happens `ms` later: the machine slept.
    pub(super) fn put_off(&mut self, ms: u64) {
        let agenda = std::mem::take(&mut self.agenda);
        self.agenda = agenda.into_iter().map(|((at, tie), what)| ((at + ms, tie), what)).collect();
    }

    /// The scheduler is gone, or all of the machine is: what was to happen in it does not.
    pub(super) fn forget(&mut self, also_machine: bool) {
        self.agenda.retain(|_, happening| !also_machine && matches!(happening, Happening::Machine(..)));
        self.pending.clear();
        self.connected.clear();
        (self.wake, self.telemetry) = (None, None);
        self.idle.clear();
    }

    /// Goes to the next moment at which something happens, and takes a turn.
    pub(super) fn turn(&mut self) {
        if self.faults.on {
            self.people_act();
            self.weather();
        } else {
            self.clear_faults();
        }
        let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let due = [next, self.wake, self.telemetry].into_iter().flatten().min();
        let now = self.machine.t;
        let due = match due {
            _ if !self.pending.is_empty() => now,
            Some(due) if self.faults.on => due.min(now + 5_000),
            Some(due) => due,
            None if self.faults.on => now + 1_000,
            None => panic!("nothing will ever happen again, and these wait: {:#?}", self.waiting()),
        };
        // Where nothing breaks any more, what comes within a few milliseconds is one turn.
        self.machine.t = due.max(now) + if self.faults.on || due <= now { 0 } else { 4 };
        let inputs = self.due();
        self.decide(inputs);
    }

    /// Whether nothing will happen by itself before long.
    pub(super) fn is_quiet(&self) -> bool {
        // What thaws in the night is nothing to wait for.
        let soon = self.machine.t + 3_600_000;
        let nothing_soon = self.agenda.first_key_value().is_none_or(|((at, ..), _)| *at > soon);
        nothing_soon && self.pending.is_empty() && self.wake.is_none() && self.telemetry.is_none()
    }

    /// What has happened by now: to the machine at once, to the scheduler as inputs. At times one of them only, for who
    /// knows how messages fall into turns.
    fn due(&mut self) -> Vec<Input> {
        let most = if self.faults.on && self.dice.percent(30) { 1 } else { usize::MAX };
        let mut inputs = std::mem::take(&mut self.pending);
        while inputs.len() < most
            && let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= self.machine.t
        {
            match entry.remove() {
                Happening::Told(input) => inputs.push(*input),
                Happening::Engine(lease, task) => self.engine_does(lease, task),
                Happening::Machine(lease, act) => self.machine_does(lease, act),
            }
            inputs.append(&mut self.pending);
        }
        inputs
    }

    /// Lets the machine go on until a true time, without a scheduler or with one that does not listen.
    pub(super) fn pass(&mut self, until: u64) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= until
        {
            self.machine.t = self.machine.t.max(entry.key().0);
            match entry.remove() {
                Happening::Told(input) => inputs.push(*input),
                Happening::Engine(lease, task) => self.engine_does(lease, task),
                Happening::Machine(lease, act) => self.machine_does(lease, act),
            }
            inputs.append(&mut self.pending);
        }
        self.machine.t = self.machine.t.max(until);
        inputs
    }

    /// One turn of the core, and what follows from it.
    pub(super) fn decide(&mut self, mut inputs: Vec<Input>) {
        self.race(&mut inputs);
        if self.instant {
            inputs.push(self.readings());
        }
        if inputs.len() > 1 && self.faults.strikes(&mut self.dice, Fault::Reordered) {
            self.dice.shuffle(&mut inputs);
        }
        self.ledger.hears(&inputs);
        self.trace(|| format!("told {inputs:?}"));
        let asked = People::asked(&inputs, &self.world);
        self.faults.struck(Fault::OldPicture, asked.iter().filter(|asked| asked.old).count() as u64);
        let moment = Moment { now: self.machine.now(), seed: 3 };
        let decision = step(&mut self.world, inputs, moment);
        assert_eq!(decision.bug, None);
        for record in &decision.events {
            self.trace(|| format!("#{} {:?}", record.seq, record.event));
        }
        self.trace(|| format!("{:?}, then {:?}", decision.effects, decision.wake));
        self.durable.check(&self.world, &decision, &moment.now);
        self.turns += 1;
        if self.turns.is_multiple_of(16) {
            self.world.check_indexes().expect("an index is wrong");
        }
        self.wake = decision.wake.map(|wake| self.machine.t_of(wake.at));
        self.people.answered(asked, &decision);
        self.settle(decision);
    }

    /// After the step: append, effects; or a death in between.
    fn settle(&mut self, decision: Decision) {
        let near = if matters(&decision) { 6 } else { 1 };
        if self.faults.strikes_near(&mut self.dice, Fault::KilledBeforeAppend, near) {
            return self.crash();
        }
        let committed = if decision.events.is_empty() { Some(false) } else { self.make_durable(&decision) };
        let Some(failed) = committed else { return self.crash() };
        self.people.told(&decision);
        if self.faults.strikes_near(&mut self.dice, Fault::KilledAfterAppend, near) {
            return self.crash();
        }
        let (effects, late) = in_time(decision.effects, &self.machine.now(), failed);
        self.pending.extend(late);
        for effect in effects {
            if self.faults.strikes_near(&mut self.dice, Fault::KilledBetweenEffects, near) {
                return self.crash();
            }
            self.carry_out(effect);
        }
        self.plan_telemetry();
        if !self.faults.on {
            self.nothing_idles();
        }
    }

    /// What the ledger is told of a turn once it is durable, and that the world says the same.
    pub(super) fn record(&mut self, decision: &Decision) {
        let now = self.machine.now();
        for record in &decision.events {
            self.ledger.record(record, &self.machine);
        }
        self.ledger.compare(&self.world, &decision.events, &now);
    }

    #[expect(clippy::print_stdout, reason = "it is what a replay is for")]
    pub(super) fn trace(&self, words: impl FnOnce() -> String) {
        if self.traced {
            let now = self.machine.now();
            println!("{} {}: {}", self.machine.t, now.boottime_ms, words());
        }
    }

    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Launch(launch) => self.launch(*launch),
            Effect::Stop { lease, kind } => self.stop(lease, kind),
            Effect::Dismiss { lease } => self.dismiss(lease),
            Effect::Prepare(prepare) => {
                let ms = self.dice.below(2_000);
                let fails = self.faults.strikes(&mut self.dice, Fault::PrepareFails);
                let result = if fails { Err("too large".to_owned()) } else { Ok(()) };
                let (job, task, attempt) = (prepare.job, prepare.task, prepare.attempt);
                self.tell(ms, Input::Prepared { job, task, attempt, result });
            }
            Effect::Release { job, task, attempt, .. } => {
                let ms = self.dice.below(50);
                self.tell(ms, Input::Released { job, task, attempt });
            }
            Effect::Collect { lease } => {
                let ms = self.dice.below(500);
                self.later(ms, Happening::Engine(lease, Task::Collected));
            }
            Effect::Probe => self.probe(),
            Effect::TakeDrop { ident, .. } => self.people.take_drop(&ident),
            Effect::WriteReceipt { job } => self.ledger.receipt(job),
            Effect::WriteAnswer { .. } | Effect::Rewrite { .. } => {}
        }
    }

    /// A reading that the shell takes by itself while something runs or is missing.
    fn plan_telemetry(&mut self) {
        let busy = self.world.leases.held().next().is_some();
        let wanted = self.world.queue.waiting() > 0 && self.world.lacks_devices();
        let period = match (self.instant, wanted, busy) {
            (false, true, _) => Some(1_000),
            (_, _, true) => Some(10_000),
            (false, false, false) => Some(60_000),
            (true, _, false) => None,
        };
        if self.telemetry.is_some_and(|at| at <= self.machine.t) {
            self.telemetry = None;
            if !self.instant {
                if self.world.lacks_devices() {
                    self.list(1);
                }
                self.probe();
            }
        }
        let at = period.map(|period| self.machine.t + period);
        self.telemetry = [self.telemetry, at].into_iter().flatten().min().filter(|_| at.is_some());
    }

    /// Nothing is broken any more: a device that is fine is in service within a second if somebody waits for one.
    fn nothing_idles(&mut self) {
        let t = self.machine.t;
        let out = |(_, device): (&Uuid, &overnight::sched::world::Device)| {
            !matches!(device.state.word(), "free" | "held" | "closed")
        };
        if !self.world.pool.devices().any(out) {
            return self.idle.clear();
        }
        let somebody = explain(&self.world, &self.machine.now())
            .iter()
            .any(|(_, reason)| matches!(reason, overnight::sched::Reason::Gpus { free: 0, .. }));
        for gpu in self.machine.gpus.clone() {
            let uuid = gpu.uuid;
            let state = self.world.pool.get(&uuid).map(|device| device.state.word());
            let unproven = self.world.leases.draining().any(|lease| {
                lease.is_unproven(&self.machine.now())
                    && lease.held.devices.iter().any(|device| device.uuid == uuid)
            });
            // What only a reset or a person ends is waited for by the person.
            let faulty = self.world.pool.get(&uuid).is_some_and(|device| device.fault.is_some());
            let fine =
                self.machine.on(&uuid).next().is_none() && self.machine.is_ill(&uuid).is_none() && !faulty;
            let out = !matches!(state, Some("free" | "held" | "closed"));
            if somebody && fine && out && !unproven {
                let since = *self.idle.entry(uuid.clone()).or_insert(t);
                assert!(t - since <= 1_500, "{uuid} is fine and {state:?} for {} ms", t - since);
            } else {
                self.idle.remove(&uuid);
            }
        }
    }

    /// Those that are not done, and why.
    pub(super) fn waiting(&self) -> Vec<String> {
        let reasons: BTreeMap<JobId, _> = explain(&self.world, &self.machine.now()).into_iter().collect();
        self.world
            .queue
            .live()
            .map(|job| format!("#{} {} {:?}", job.id, job.state().word(), reasons.get(&job.id)))
            .collect()
    }
}

/// Whether a death at this moment tells more than at another.
fn matters(decision: &Decision) -> bool {
    decision.events.iter().any(|record| {
        matches!(
            record.event,
            Event::LeaseGranted { .. }
                | Event::AttemptStarted { .. }
                | Event::LeaseEnded { .. }
                | Event::LeaseReturned { .. }
                | Event::AttemptReturned { .. }
                | Event::CancelDue { .. }
        )
    })
}
