//! The machine as it really is: its clocks, its GPUs, the supervisors with their journals, and which processes live. A
//! scheduler sees of it only what readings and reports say.

use super::dice::Dice;
use crate::build::{BEGIN, gpu};
use overnight::model::{BootId, Bytes, EndedBy, Gpu, HostReading, LeaseId, Now, RunEnd, Uuid};
use overnight::sched::Launch;
use std::collections::BTreeMap;

/// Cores and memory of the machine.
pub(super) const HOST: HostReading = HostReading { cores: 12, memory: Bytes::gib(64) };
/// What boottime shows when a boot begins.
const BOOT_BEGINS: u64 = 10_000;
/// Between two signs of life of a supervisor.
pub(super) const HEARTBEAT: u64 = 5_000;

/// What is wrong with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ill {
    /// Memory in use by nobody who can be seen.
    Dirty { gib: u64 },
    /// Fallen off the bus.
    Gone,
    /// The driver does not answer.
    Hangs,
    /// Somebody else uses it, with or without a lock.
    Outsider { locked: bool },
    /// The driver does not list it.
    Unlisted,
}

/// The machine.
pub(super) struct Machine {
    /// True time: milliseconds since the beginning.
    pub(super) t: u64,
    boot: u128,
    boot_began: u64,
    /// Milliseconds of suspend in this boot.
    suspended: u64,
    /// What the wall clock was set by.
    wall_step: i64,
    pub(super) gpus: Vec<Gpu>,
    pub(super) ills: BTreeMap<Uuid, (u64, Ill)>,
    pub(super) work: BTreeMap<LeaseId, Work>,
}

/// The processes of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// None was started yet.
    None,
    /// Some live.
    Lives,
    /// Some do not answer their kill.
    Stuck,
    /// All are gone.
    Gone,
}

/// A supervisor and its work.
pub(super) struct Work {
    pub(super) launch: Launch,
    pub(super) boot: BootId,
    /// The supervisor lives.
    pub(super) supervised: bool,
    /// When it was killed.
    pub(super) killed: Option<Now>,
    /// It holds the locks of its devices.
    pub(super) locks: bool,
    pub(super) dismissed: bool,
    pub(super) tree: Tree,
    /// When the last process was gone, or was given up.
    pub(super) gone: Option<Now>,
    /// When somebody gave up waiting for the answer to a kill.
    pub(super) given_up: Vec<Now>,
    /// What it was told to end as.
    pub(super) told: Option<RunEnd>,
    /// What it will end as if it is left alone.
    pub(super) fate: RunEnd,
    pub(super) journal: Journal,
    suspended_before: u64,
    /// Milliseconds of suspend while its supervisor lived.
    pub(super) asleep: u64,
    last_beat: Now,
    /// True time from which beats are counted; `None`: there are no more.
    beats_from: Option<u64>,
}

/// What a supervisor wrote down.
pub(super) struct Journal {
    pub(super) readable: bool,
    /// Nothing ran and nothing will, and why.
    pub(super) void: Option<(Now, String)>,
    pub(super) started: Option<Now>,
    pub(super) ended: Option<Ended>,
    pub(super) home: bool,
}

/// How a run ended, as it is told.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) at: Now,
    pub(super) end: RunEnd,
    pub(super) by: EndedBy,
    pub(super) suspended_ms: u64,
}

impl Machine {
    pub(super) fn new(dice: &mut Dice, real: bool) -> Self {
        let count = 1 + dice.below(4) as u32;
        let gpus = (0..count)
            .map(|index| {
                let (name, memory) =
                    [("NVIDIA A100", 80), ("NVIDIA GeForce RTX 4090", 24)][index as usize % 2];
                Gpu { real, ..gpu(index, name, Bytes::gib(memory)) }
            })
            .collect();
        Self {
            t: 0,
            boot: 1,
            boot_began: 0,
            suspended: 0,
            wall_step: 0,
            gpus,
            ills: BTreeMap::new(),
            work: BTreeMap::new(),
        }
    }

    pub(super) fn now(&self) -> Now {
        self.at(self.t)
    }

    /// A true time of this boot as the clocks show it, or showed it but for the wall's steps.
    fn at(&self, t: u64) -> Now {
        Now {
            boot: BootId(self.boot),
            boottime_ms: BOOT_BEGINS + t - self.boot_began,
            wall_ms: BEGIN.wall_ms + t as i64 + self.wall_step,
        }
    }

    /// The true time at which boottime shows this.
    pub(super) fn t_of(&self, boottime_ms: u64) -> u64 {
        self.boot_began + boottime_ms.saturating_sub(BOOT_BEGINS)
    }

    pub(super) fn is_ill(&self, uuid: &Uuid) -> Option<Ill> {
        self.ills.get(uuid).filter(|(until, _)| *until > self.t).map(|(_, ill)| *ill)
    }

    pub(super) fn step_wall(&mut self, ms: i64) {
        self.wall_step += ms;
    }

    /// Nothing runs for a while, and boottime goes on. The caller puts off what was to happen.
    pub(super) fn suspend(&mut self, ms: u64) {
        for lease in self.work.keys().copied().collect::<Vec<_>>() {
            let beat = self.last_beat(lease);
            let t = self.t;
            if let (Some(work), Some(beat)) = (self.work.get_mut(&lease), beat)
                && let Some(from) = work.beats_from
            {
                work.last_beat = beat;
                work.asleep += ms;
                let elapsed = (t - from) % HEARTBEAT;
                work.beats_from = Some(t + ms - elapsed);
            }
        }
        self.t += ms;
        self.suspended += ms;
    }

    /// Devices are as they should be, and somebody has set the clock right.
    pub(super) fn heal(&mut self) {
        self.ills.clear();
        self.wall_step = 0;
    }

    /// Everything is gone; after `off` milliseconds another boot begins.
    pub(super) fn reboot(&mut self, off: u64) {
        let now = self.now();
        for lease in self.work.keys().copied().collect::<Vec<_>>() {
            self.end_beats(lease);
            if let Some(work) = self.work.get_mut(&lease) {
                if work.supervised && !work.journal.home {
                    work.killed = Some(now);
                }
                work.supervised = false;
                work.locks = false;
                if matches!(work.tree, Tree::Lives | Tree::Stuck) {
                    work.tree = Tree::Gone;
                    work.gone.get_or_insert(now);
                }
            }
        }
        self.t += off;
        self.boot += 1;
        self.boot_began = self.t;
        self.suspended = 0;
    }

    /// A supervisor that has just been started.
    pub(super) fn supervise(&mut self, launch: Launch, fate: RunEnd) {
        let now = self.now();
        let journal = Journal { readable: true, void: None, started: None, ended: None, home: false };
        let work = Work {
            boot: now.boot,
            supervised: true,
            killed: None,
            locks: true,
            dismissed: false,
            tree: Tree::None,
            gone: None,
            given_up: Vec::new(),
            told: None,
            fate,
            journal,
            suspended_before: self.suspended,
            asleep: 0,
            last_beat: now,
            beats_from: Some(self.t),
            launch,
        };
        self.work.insert(work.launch.lease, work);
    }

    /// How long the machine was suspended since the run of a lease was started.
    pub(super) fn suspended_since_start(&self, lease: LeaseId) -> u64 {
        self.work.get(&lease).map_or(0, |work| self.suspended.saturating_sub(work.suspended_before))
    }

    /// The start of a run: suspend counts from here.
    pub(super) fn starts(&mut self, lease: LeaseId) {
        let (now, suspended) = (self.now(), self.suspended);
        if let Some(work) = self.work.get_mut(&lease) {
            work.suspended_before = suspended;
            work.tree = Tree::Lives;
            work.journal.started = Some(now);
        }
    }

    /// The last sign of life of a supervisor.
    pub(super) fn last_beat(&self, lease: LeaseId) -> Option<Now> {
        let work = self.work.get(&lease)?;
        let beats = work.beats_from.map_or(0, |from| self.t.saturating_sub(from) / HEARTBEAT);
        match work.beats_from {
            Some(from) if beats > 0 => Some(self.at(from + beats * HEARTBEAT)),
            _ => Some(work.last_beat),
        }
    }

    /// The last that its journal knows of: a record or a beat.
    pub(super) fn last_sign(&self, lease: LeaseId) -> Option<Now> {
        let beat = self.last_beat(lease)?;
        let started = self.work.get(&lease)?.journal.started;
        Some(started.filter(|at| at.boottime_ms > beat.boottime_ms).unwrap_or(beat))
    }

    /// The supervisor is gone: no more beats.
    pub(super) fn end_beats(&mut self, lease: LeaseId) {
        let beat = self.last_beat(lease);
        if let (Some(work), Some(beat)) = (self.work.get_mut(&lease), beat) {
            work.last_beat = beat;
            work.beats_from = None;
        }
    }

    /// The last beat never reached the disk.
    pub(super) fn lose_beat(&mut self, lease: LeaseId) {
        if let Some(work) = self.work.get_mut(&lease) {
            let granted = work.launch.granted.boottime_ms;
            work.last_beat.boottime_ms = work.last_beat.boottime_ms.saturating_sub(HEARTBEAT).max(granted);
        }
    }

    /// Leases with living processes on a device.
    pub(super) fn on(&self, uuid: &Uuid) -> impl Iterator<Item = &Work> {
        self.work
            .values()
            .filter(move |work| work.lives() && work.launch.devices.iter().any(|device| device.uuid == *uuid))
    }
}

impl Work {
    pub(super) const fn lives(&self) -> bool {
        matches!(self.tree, Tree::Lives | Tree::Stuck)
    }

    pub(super) fn has(&self, uuid: &Uuid) -> bool {
        self.launch.devices.iter().any(|device| device.uuid == *uuid)
    }
}
