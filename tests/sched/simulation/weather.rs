//! What befalls the machine and the scheduler as a whole: clocks, sleep, reboots, deaths; and how each is got over.

use super::faults::Fault;
use super::life::Life;
use super::machine::{HEARTBEAT, Tree};
use overnight::model::LeaseId;
use overnight::sched::{Input, resume};

const HOUR: i64 = 3_600_000;

impl Life {
    /// A scheduler starts on an empty disk.
    pub(super) fn begin(&mut self) {
        self.host_says();
        self.list(0);
    }

    /// What happens by itself, between two turns.
    pub(super) fn weather(&mut self) {
        self.devices_ail();
        if self.dice.percent(10) {
            self.beat();
        }
        if self.dice.percent(2) {
            self.host_says();
        }
        if self.faults.strikes(&mut self.dice, Fault::WallStep) {
            let ms = self.dice.below(10 * HOUR as u64) as i64 - 5 * HOUR;
            // A machine without a battery begins in 1970.
            let ms = if self.dice.percent(10) { -50 * 365 * 24 * HOUR } else { ms };
            self.machine.step_wall(ms);
            self.tell(0, Input::Readings(Vec::new()));
        }
        if self.faults.strikes(&mut self.dice, Fault::Suspend) {
            let ms = 1 + self.dice.long_tail(30_000);
            self.machine.suspend(ms);
            self.put_off(ms);
        }
        let supervised: Vec<LeaseId> = self
            .machine
            .work
            .iter()
            .filter(|(_, work)| work.supervised && work.journal.void.is_none())
            .map(|(lease, _)| *lease)
            .collect();
        if let Some(lease) = self.dice.pick(&supervised).copied()
            && self.faults.strikes(&mut self.dice, Fault::SupervisorKilled)
        {
            self.kill_supervisor(lease);
        }
        if self.faults.strikes(&mut self.dice, Fault::Reboot) {
            self.restart_machine();
        }
    }

    /// The machine goes down and comes back, and a scheduler with it.
    pub(super) fn restart_machine(&mut self) {
        self.forget(true);
        self.reboot();
        self.recover();
    }

    /// The scheduler is gone, at times for long; another one starts on what was durable.
    pub(super) fn crash(&mut self) {
        self.forget(false);
        if self.faults.strikes(&mut self.dice, Fault::DownForHours) {
            let ms = self.dice.long_tail(20_000);
            drop(self.pass(self.machine.t + ms));
            let alive: Vec<LeaseId> = self
                .machine
                .work
                .iter()
                .filter(|(_, work)| work.supervised && work.tree == Tree::Lives)
                .map(|(lease, _)| *lease)
                .collect();
            if let Some(lease) = self.dice.pick(&alive).copied()
                && self.faults.strikes_near(&mut self.dice, Fault::SupervisorKilled, 10)
            {
                self.kill_supervisor(lease);
                let ms = self.dice.below(20_000);
                drop(self.pass(self.machine.t + ms));
            }
        }
        self.recover();
    }

    fn reboot(&mut self) {
        let off = self.dice.long_tail(30_000);
        if self.faults.strikes(&mut self.dice, Fault::PowerLoss) {
            let now = self.machine.now();
            for lease in self.machine.work.keys().copied().collect::<Vec<_>>() {
                if !self.machine.work.get(&lease).is_some_and(|work| work.supervised) {
                    continue;
                }
                self.machine.end_beats(lease);
                self.machine.lose_beat(lease);
                let recent = |at: overnight::model::Now, ms| {
                    at.boot == now.boot && now.boottime_ms - at.boottime_ms < ms
                };
                let Some(work) = self.machine.work.get_mut(&lease) else { continue };
                // A start is not waited for, an end is told before the disk has it.
                if work.journal.started.is_some_and(|at| recent(at, HEARTBEAT))
                    && work.journal.ended.is_none()
                {
                    work.journal.started = None;
                }
                if work.journal.ended.as_ref().is_some_and(|ended| recent(ended.at, 20)) {
                    work.journal.ended = None;
                    work.journal.home = false;
                }
            }
        }
        self.machine.reboot(off);
        if self.faults.strikes(&mut self.dice, Fault::GpusRenumbered) {
            let mut indices: Vec<u32> = self.machine.gpus.iter().map(|gpu| gpu.index).collect();
            self.dice.shuffle(&mut indices);
            for (gpu, index) in self.machine.gpus.iter_mut().zip(indices) {
                gpu.index = index;
            }
        }
        self.ledger.rebooted();
    }

    /// A scheduler starts on what was durable, as the daemon does.
    pub(super) fn recover(&mut self) {
        for again in 0.. {
            self.trace(|| "a scheduler starts".to_owned());
            self.world = self.durable.restore();
            assert_eq!(self.world.check(), Ok(()), "what was durable is whole");
            self.world.check_indexes().expect("an index is wrong");
            self.ledger.restarted(&self.world);
            self.host_says();
            self.list(0);
            self.survey();
            self.people.rescan(&mut self.pending);
            let unfinished = resume(&self.world);
            if self.turns.is_multiple_of(4) {
                assert_eq!(resume(&self.durable.restore()), unfinished, "recovery is the same again");
            }
            let mut killed = false;
            for effect in unfinished {
                killed = again < 3 && self.faults.strikes(&mut self.dice, Fault::KilledInRecovery);
                if killed {
                    break;
                }
                self.carry_out(effect);
            }
            if !killed {
                return;
            }
            self.forget(false);
        }
    }
}
