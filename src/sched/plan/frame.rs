//! What is free at one moment, when the rest comes back, and the head's reservation.

use super::classes::{Class, Classes};
use super::{Ask, Reason};
use crate::model::{Bytes, DeviceState, Gpu, Job, JobId, LeaseDevice, Now, Span, Uuid};
use crate::sched::world::{Pool, World};
use std::collections::BTreeSet;

/// A draining device is expected back this soon.
const DRAIN_EXPECTED: Span = Span::secs(1);
/// Beyond limit and grace, the time for a start, for a kill that is not answered at once, and for the proof.
pub(super) const MARGIN: Span = Span::secs(10);

/// A free device.
#[derive(Debug, Clone)]
struct Slot<'a> {
    gpu: &'a Gpu,
    /// Its place among the listed devices.
    ix: usize,
    /// Memory found on it by a fresh reading; `None`: the reading is too old.
    baseline: Option<Bytes>,
}

/// Something that comes back.
#[derive(Debug, Clone)]
struct Return {
    /// Boottime milliseconds; `None`: nobody knows.
    at: Option<u64>,
    job: Option<JobId>,
    /// The job holds it; `false`: it is draining, or given away by this walk.
    held: bool,
    /// Places among the listed devices.
    gpus: Vec<usize>,
    cores: u32,
    memory: u64,
}

/// What the head of the line has been promised.
#[derive(Debug, Clone)]
struct Reservation {
    head: JobId,
    /// Boottime milliseconds.
    shadow: u64,
    /// The devices it will take, by place.
    gpus: BTreeSet<usize>,
    /// Free now, and not needed by the head then.
    spare_cores: u32,
    spare_memory: u64,
}

/// What a job gets, or why it gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sched) enum Placement {
    /// These devices, now.
    Fits(Vec<LeaseDevice>),
    /// These devices, once fresh readings have proven them.
    Stale {
        /// All of them.
        devices: Vec<LeaseDevice>,
        /// Indices of those whose reading is too old.
        gpus: Vec<u32>,
    },
    /// Something is short.
    Short(Reason),
    /// It would fit, but would delay the head.
    BehindHead {
        /// Whom.
        head: JobId,
    },
}

/// What is free at one moment.
#[derive(Debug, Clone)]
pub(in crate::sched) struct Frame<'a> {
    now: u64,
    classes: Classes<'a>,
    free: Vec<Slot<'a>>,
    cores: u32,
    memory: u64,
    returns: Vec<Return>,
    reservation: Option<Reservation>,
}

impl<'a> Frame<'a> {
    /// The present.
    pub(in crate::sched) fn new(world: &'a World, now: &Now) -> Self {
        let listed: Vec<(&'a Gpu, &'a DeviceState)> = world
            .pool
            .devices()
            .filter_map(|(_, device)| device.gpu.as_ref().map(|gpu| (gpu, &device.state)))
            .collect();
        let mut free = Vec::new();
        let mut returns = Vec::new();
        let mut held: Vec<(&Uuid, usize)> = Vec::new();
        for (ix, (gpu, state)) in listed.iter().enumerate() {
            match state {
                DeviceState::Free => {
                    let baseline = world.pool.get(&gpu.uuid).and_then(|device| Pool::provable(device, now));
                    free.push(Slot { gpu, ix, baseline });
                }
                // One that an operator wants closed, or that has a fault, is not expected back.
                DeviceState::Draining { .. } | DeviceState::Held { .. }
                    if !world.pool.comes_back(&gpu.uuid) => {}
                DeviceState::Draining { .. } => returns.push(Return {
                    at: Some(now.boottime_ms + DRAIN_EXPECTED.0),
                    job: None,
                    held: false,
                    gpus: vec![ix],
                    cores: 0,
                    memory: 0,
                }),
                DeviceState::Held { .. } => held.push((&gpu.uuid, ix)),
                _ => {}
            }
        }
        held.sort_unstable();
        for lease in world.leases.held() {
            let length = world.queue.get(lease.job).and_then(super::length);
            let at = length.map(|length| match now.since(&lease.granted) {
                Some(_) => lease.granted.boottime_ms.saturating_add(length.0).max(now.boottime_ms + MARGIN.0),
                // The machine was started anew since: what held it is gone, and only the report is missing.
                None => now.boottime_ms + DRAIN_EXPECTED.0,
            });
            let place = |uuid: &Uuid| held.binary_search_by(|(held, _)| (*held).cmp(uuid)).ok();
            let gpus = lease.held.devices.iter().filter_map(|device| Some(held[place(&device.uuid)?].1));
            returns.push(Return {
                at,
                job: Some(lease.job),
                held: true,
                gpus: gpus.collect(),
                cores: lease.held.cores,
                memory: lease.held.memory.0,
            });
        }
        let mut frame = Self {
            now: now.boottime_ms,
            classes: Classes::new(listed),
            free,
            cores: world.pool.cores_free(),
            memory: world.pool.memory_free(),
            returns,
            reservation: None,
        };
        frame.sort();
        frame
    }

    /// Whether no waiting job can start any more, when each asks for at least `least_gpus`.
    pub(in crate::sched) const fn exhausted(&self, least_gpus: u32) -> bool {
        self.cores == 0 || (self.free.len() as u64) < least_gpus as u64
    }

    /// Whom a reservation is kept for.
    pub(in crate::sched) fn head(&self) -> Option<JobId> {
        self.reservation.as_ref().map(|reservation| reservation.head)
    }

    /// Whom a reservation is kept for, and when it is promised: boottime milliseconds.
    pub(in crate::sched) fn promise(&self) -> Option<(JobId, u64)> {
        self.reservation.as_ref().map(|reservation| (reservation.head, reservation.shadow))
    }

    /// Finds a place for a job that holds it for `length` at most (`None`: nobody knows).
    pub(in crate::sched) fn place(&mut self, job: &'a Job, ask: &Ask, length: Option<Span>) -> Placement {
        let class = self.classes.of(job);
        let fitting: Vec<&Slot<'_>> = self.free.iter().filter(|slot| class.fits[slot.ix]).collect();
        if (fitting.len() as u64) < u64::from(ask.gpus) {
            let free = fitting.len() as u32;
            return Placement::Short(self.short_of_gpus(&class, ask, free));
        }
        if self.cores < ask.cores {
            return Placement::Short(Reason::Cores { asked: ask.cores, free: self.cores });
        }
        if self.memory < ask.memory.0 {
            return Placement::Short(Reason::Memory { asked: ask.memory, free: Bytes(self.memory) });
        }
        match self.choose(ask, length, fitting) {
            Err(head) => Placement::BehindHead { head },
            Ok(chosen) => {
                let devices = chosen
                    .iter()
                    .map(|slot| LeaseDevice {
                        uuid: slot.gpu.uuid.clone(),
                        baseline: slot.baseline.unwrap_or_default(),
                    })
                    .collect();
                let gpus: Vec<u32> =
                    chosen.iter().filter(|slot| slot.baseline.is_none()).map(|slot| slot.gpu.index).collect();
                if gpus.is_empty() { Placement::Fits(devices) } else { Placement::Stale { devices, gpus } }
            }
        }
    }

    /// Whether a job of that length is over by the time the head is promised its start.
    fn over_by_then(&self, length: Option<Span>) -> bool {
        let shadow = self.reservation.as_ref().map(|reservation| reservation.shadow);
        shadow.zip(length).is_some_and(|(shadow, length)| self.now.saturating_add(length.0) <= shadow)
    }

    /// Picks devices: the smallest that fit, lowest index first, and the head's only if the job is over by then.
    fn choose<'s>(
        &self,
        ask: &Ask,
        length: Option<Span>,
        mut fitting: Vec<&'s Slot<'a>>,
    ) -> Result<Vec<&'s Slot<'a>>, JobId> {
        let wanted = ask.gpus as usize;
        let Some(Reservation { head, gpus, spare_cores, spare_memory, .. }) = &self.reservation else {
            fitting.sort_by_key(|slot| (slot.gpu.memory, slot.gpu.index));
            fitting.truncate(wanted);
            return Ok(fitting);
        };
        if self.over_by_then(length) {
            // The head's own come first: what it leaves is for jobs that last longer.
            fitting.sort_by_key(|slot| (!gpus.contains(&slot.ix), slot.gpu.memory, slot.gpu.index));
        } else {
            fitting.retain(|slot| !gpus.contains(&slot.ix));
            if fitting.len() < wanted || ask.cores > *spare_cores || ask.memory.0 > *spare_memory {
                return Err(*head);
            }
            fitting.sort_by_key(|slot| (slot.gpu.memory, slot.gpu.index));
        }
        fitting.truncate(wanted);
        Ok(fitting)
    }

    /// Takes what a job was given for `length` at most.
    fn take(&mut self, devices: &[LeaseDevice], ask: &Ask, length: Option<Span>) {
        let before = self.free.len();
        self.free.retain(|slot| devices.iter().all(|device| device.uuid != slot.gpu.uuid));
        debug_assert_eq!(before - self.free.len(), devices.len(), "only free devices are taken");
        self.cores -= ask.cores;
        self.memory -= ask.memory.0;
        let over_by_then = self.over_by_then(length);
        if let Some(reservation) = &mut self.reservation {
            if !over_by_then {
                reservation.spare_cores = reservation.spare_cores.saturating_sub(ask.cores);
                reservation.spare_memory = reservation.spare_memory.saturating_sub(ask.memory.0);
            }
            reservation.spare_cores = reservation.spare_cores.min(self.cores);
            reservation.spare_memory = reservation.spare_memory.min(self.memory);
        }
    }

    /// Reserves for a job that does not fit, if it is the first to which a start can be promised.
    pub(in crate::sched) fn reserve(&mut self, job: &'a Job, ask: &Ask) {
        if self.reservation.is_some() {
            return;
        }
        let class = self.classes.of(job);
        if class.fitting < ask.gpus {
            return;
        }
        let mut gpus: Vec<usize> =
            self.free.iter().map(|slot| slot.ix).filter(|ix| class.fits[*ix]).collect();
        let (mut cores, mut memory) = (self.cores, self.memory);
        for back in &self.returns {
            // What comes back when nobody knows comes last: no promise can be made from here on.
            let Some(shadow) = back.at else { return };
            // Later returns go to the front: the head prefers them, so that what is free now stays usable.
            gpus.splice(0..0, back.gpus.iter().copied().filter(|ix| class.fits[*ix]));
            cores += back.cores;
            memory += back.memory;
            if gpus.len() as u64 >= u64::from(ask.gpus) && cores >= ask.cores && memory >= ask.memory.0 {
                self.reservation = Some(Reservation {
                    head: job.id,
                    shadow,
                    gpus: gpus.into_iter().take(ask.gpus as usize).collect(),
                    spare_cores: (cores - ask.cores).min(self.cores),
                    spare_memory: (memory - ask.memory.0).min(self.memory),
                });
                return;
            }
        }
    }

    fn short_of_gpus(&self, class: &Class, ask: &Ask, free: u32) -> Reason {
        let holder = self
            .returns
            .iter()
            .filter(|back| back.held && back.gpus.iter().any(|ix| class.fits[*ix]))
            .find_map(|back| back.job);
        Reason::Gpus { asked: ask.gpus, free, fitting: class.fitting, holder, out: class.out.clone() }
    }

    fn sort(&mut self) {
        self.returns.sort_by_key(|back| (back.at.unwrap_or(u64::MAX), back.job));
    }
}

/// Simulated time, for forecasts.
impl Frame<'_> {
    /// Treats every free device as proven, and uses expected ends instead of limits for what is held.
    pub(in crate::sched) fn hypothetical(mut self, expected_end: &dyn Fn(JobId) -> Option<u64>) -> Self {
        for slot in &mut self.free {
            slot.baseline = Some(slot.baseline.unwrap_or_default());
        }
        for back in &mut self.returns {
            if let Some(job) = back.job {
                back.at = expected_end(job);
            }
        }
        self.sort();
        self
    }

    /// The moment this frame shows, boottime milliseconds.
    pub(in crate::sched) const fn at(&self) -> u64 {
        self.now
    }

    /// When the next thing comes back.
    pub(in crate::sched) fn next_return(&self) -> Option<u64> {
        self.returns.first().and_then(|back| back.at)
    }

    /// Moves to a later moment: what is due is back, and the reservation is made anew.
    pub(in crate::sched) fn advance(&mut self, to: u64) {
        self.now = to;
        self.reservation = None;
        let due = self.returns.iter().take_while(|back| back.at.is_some_and(|at| at <= to)).count();
        for back in self.returns.drain(..due) {
            self.cores += back.cores;
            self.memory += back.memory;
            for ix in back.gpus {
                self.free.push(Slot { gpu: self.classes.gpu(ix), ix, baseline: Some(Bytes(0)) });
            }
        }
        self.free.sort_by_key(|slot| slot.ix);
    }

    /// Gives a job what it asked for, for `length` at most: it comes back then, and a promise may count on it.
    pub(in crate::sched) fn occupy(
        &mut self,
        job: JobId,
        devices: &[LeaseDevice],
        ask: &Ask,
        length: Option<Span>,
    ) {
        let gpus: Vec<usize> = self
            .free
            .iter()
            .filter(|slot| devices.iter().any(|device| device.uuid == slot.gpu.uuid))
            .map(|slot| slot.ix)
            .collect();
        self.take(devices, ask, length);
        let at = length.map(|length| self.now.saturating_add(length.0));
        let (cores, memory) = (ask.cores, ask.memory.0);
        let back = Return { at, job: Some(job), held: false, gpus, cores, memory };
        let key = |back: &Return| (back.at.unwrap_or(u64::MAX), back.job);
        let place = self.returns.partition_point(|other| key(other) <= key(&back));
        self.returns.insert(place, back);
    }
}
