//! Random faults. Each hits one thing of this sandbox, by the identity that it was seen with.

use super::{Dice, Down, GPUS, Soak, now};
use crate::support::auditor::Place;
use crate::support::auditor::procfs::{self, Pidt};
use rustix::process::Signal;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillScheduler,
    StopScheduler,
    EndScheduler,
    KillSupervisor,
    KillIdleSupervisor,
    KillWaiting,
    KillProcess,
    SickenGpu,
    HealGpu,
    InboxAgain,
    Garbage,
    StepClock,
}

impl Fault {
    pub(crate) fn roll(dice: &mut Dice) -> Self {
        match dice.below(25) {
            0..=4 => Self::KillScheduler,
            5..=6 => Self::StopScheduler,
            7 => Self::EndScheduler,
            8..=10 => Self::KillSupervisor,
            11 => Self::KillIdleSupervisor,
            12..=13 => Self::KillProcess,
            14..=16 => Self::SickenGpu,
            17..=19 => Self::HealGpu,
            20 => Self::InboxAgain,
            21..=22 => Self::Garbage,
            23 => Self::KillWaiting,
            _ => Self::StepClock,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KillScheduler => "scheduler killed",
            Self::StopScheduler => "scheduler stopped",
            Self::EndScheduler => "scheduler ended",
            Self::KillSupervisor => "supervisor killed",
            Self::KillIdleSupervisor => "idle supervisor killed",
            Self::KillWaiting => "process that waits to be a job's killed",
            Self::KillProcess => "process of a job killed",
            Self::SickenGpu => "GPU made sick",
            Self::HealGpu => "GPU healed",
            Self::InboxAgain => "inbox removed and made again",
            Self::Garbage => "garbage from a client",
            Self::StepClock => "wall clock stepped",
        }
    }
}

impl Soak {
    /// Does it; `false` where it cannot be done now.
    pub(crate) fn inflict(&mut self, fault: Fault) -> bool {
        match fault {
            Fault::KillScheduler | Fault::StopScheduler | Fault::EndScheduler if self.back_at.is_some() => {
                false
            }
            Fault::KillScheduler => {
                self.sandbox.kill_scheduler();
                // A store that nobody writes to: what was durable at the kill.
                self.look();
                let down = [0, 0, 100, 600, 2_000][self.dice.below(5) as usize];
                self.back_at = Some((now() + down, Down::Killed));
                true
            }
            Fault::StopScheduler => {
                let schedulers = self.audit.at().schedulers();
                let stopped = schedulers.iter().filter(|id| procfs::signal(**id, Signal::STOP)).count();
                self.back_at = Some((now() + 100 + self.dice.below(1_500), Down::Stopped));
                stopped > 0
            }
            Fault::EndScheduler => {
                self.sandbox.run(&["stop"]);
                if self.sandbox.scheduler_ended().is_none() {
                    self.sandbox.kill_scheduler();
                }
                self.back_at = Some((now() + self.dice.below(500), Down::Killed));
                true
            }
            Fault::KillSupervisor => self.kill_supervisor(true),
            Fault::KillIdleSupervisor => self.kill_supervisor(false),
            Fault::KillWaiting => {
                let waiting = self.audit.at().waiting();
                let Some(id) = self.dice.pick(&waiting).copied() else { return false };
                self.hit_processes.insert((id.pid, id.start));
                procfs::signal(id, Signal::KILL)
            }
            Fault::KillProcess => self.kill_process(),
            // Some are left to run on.
            Fault::SickenGpu if self.sick.len() >= GPUS / 2 => false,
            Fault::SickenGpu => {
                let device = self.dice.below(GPUS as u64) as usize;
                let how = [
                    "fault = \"fail\"\n",
                    "fault = \"gone\"\ndetail = \"Xid 79\"\n",
                    "fault = \"hang\"\n",
                    "[gpu.N.dirty]\nmemory = \"40GiB\"\n",
                    "[gpu.N.dirty]\nmemory = \"20GiB\"\npid = 4242\nname = \"python\"\n",
                    "[gpu.N.outside]\npid = 777\nname = \"python\"\nmemory = \"21GiB\"\n",
                ][self.dice.below(6) as usize];
                self.sick.insert(device, how.replace('N', &device.to_string()));
                self.write_control();
                true
            }
            Fault::HealGpu => {
                let sick: Vec<usize> = self.sick.keys().copied().collect();
                let Some(device) = self.dice.pick(&sick).copied() else { return false };
                self.sick.remove(&device);
                self.write_control();
                true
            }
            Fault::InboxAgain => self.inbox_again(),
            Fault::Garbage => self.garbage(),
            Fault::StepClock => self.step_clock(),
        }
    }

    /// Ends a state of being down.
    pub(super) fn bring_back(&mut self, down: Down) {
        self.back_at = None;
        match down {
            Down::Killed => {
                self.sandbox.serve();
                self.restarts += 1;
            }
            Down::Stopped => {
                for scheduler in self.audit.at().schedulers() {
                    procfs::signal(scheduler, Signal::CONT);
                }
            }
        }
    }

    /// The devices as they are to be, put in place whole.
    pub(super) fn write_control(&self) {
        let mut text = String::new();
        for (device, how) in &self.sick {
            let _ = writeln!(text, "[gpu.{device}]\n{how}");
        }
        let fresh = self.control.with_extension("new");
        fs::write(&fresh, text).unwrap();
        fs::rename(&fresh, &self.control).unwrap();
    }

    fn kill_supervisor(&mut self, with_lease: bool) -> bool {
        let all: Vec<(Pidt, Option<u64>)> =
            self.audit.at().supervisors().into_iter().map(|id| (id, lease_of(id))).collect();
        let fit: Vec<_> = all.into_iter().filter(|(_, lease)| lease.is_some() == with_lease).collect();
        let Some((id, lease)) = self.dice.pick(&fit).copied() else { return false };
        // Noted first: it may begin a lease just now.
        let killed = procfs::signal(id, Signal::KILL);
        self.hit_leases.extend(lease);
        killed
    }

    fn kill_process(&mut self) -> bool {
        let work = self.audit.work();
        let Some((id, its)) = self.dice.pick(&work).cloned() else { return false };
        self.hit_jobs.insert(its.job);
        procfs::signal(id, Signal::KILL)
    }

    /// Removes the inbox, once nothing that was dropped lies in it, and makes it again.
    fn inbox_again(&mut self) -> bool {
        let inbox = self.sandbox.inbox();
        let Ok(entries) = fs::read_dir(&inbox) else { return false };
        let empty = entries.flatten().all(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."));
        if !empty || self.back_at.is_some() {
            return false;
        }
        let removed = fs::remove_dir_all(&inbox).is_ok();
        if self.dice.percent(50) {
            // By whoever is first.
            let _ = fs::create_dir(&inbox);
        }
        removed
    }

    /// Bytes that are no request, half a request, or nothing at all.
    fn garbage(&mut self) -> bool {
        let Ok(mut stream) = UnixStream::connect(self.sandbox.root().join(".state/overnight.sock")) else {
            return false;
        };
        let _ = stream.set_nonblocking(true);
        let bytes: Vec<u8> = match self.dice.below(4) {
            0 => (0..4_096).map(|_| self.dice.below(256) as u8).collect(),
            1 => b"{\"request\":{\"command\":{\"submit\":{\"fi".to_vec(),
            2 => vec![b'['; 100_000],
            _ => Vec::new(),
        };
        let _ = stream.write(&bytes);
        true
    }

    /// An hour there, and back the next time; only where it was allowed.
    fn step_clock(&mut self) -> bool {
        if std::env::var_os("OVERNIGHT_TEST_CLOCK_STEPS").is_none() {
            return false;
        }
        let by = if self.put_right.clock_off { -3_600 } else { 3_600 };
        self.put_right.clock_off = !self.put_right.clock_off;
        step(by)
    }
}

/// What must be put right whatever happens to this process's test: the clock, and a scheduler that is stopped.
pub(crate) struct PutRight {
    pub(crate) place: Place,
    pub(crate) clock_off: bool,
}

impl PutRight {
    pub(crate) fn clock(&mut self) {
        if std::mem::take(&mut self.clock_off) {
            step(-3_600);
        }
    }
}

impl Drop for PutRight {
    fn drop(&mut self) {
        self.clock();
        for scheduler in self.place.schedulers() {
            procfs::signal(scheduler, Signal::CONT);
        }
    }
}

fn step(seconds: i64) -> bool {
    let t = clock_gettime(ClockId::Realtime);
    clock_settime(ClockId::Realtime, Timespec { tv_sec: t.tv_sec + seconds, tv_nsec: t.tv_nsec }).is_ok()
}

/// The lease whose journal a supervisor has open.
fn lease_of(supervisor: Pidt) -> Option<u64> {
    let journal = procfs::open_files(supervisor.pid, "/journal").into_iter().next()?;
    journal.parent()?.file_name()?.to_str()?.parse().ok()
}
