//! What is free at one moment, when the rest comes back, and the head's reservation.

use super::{Ask, Reason};
use crate::model::{
    Bytes, DeviceState, Gpu, Job, JobId, LeaseDevice, Now, Span, Uuid, memory_fits, model_matches,
};
use crate::sched::world::{Device, Pool, World};
use std::collections::BTreeSet;

/// A draining device is expected back this soon.
const DRAIN_EXPECTED: Span = Span::secs(1);
/// A run that is past its limit and grace is expected to end this soon.
const OVERDUE: Span = Span::secs(10);

/// A free device.
#[derive(Debug, Clone)]
struct Slot<'a> {
    gpu: &'a Gpu,
    /// Memory found on it by a fresh reading; `None`: the reading is too old.
    baseline: Option<Bytes>,
}

/// Something that comes back.
#[derive(Debug, Clone)]
struct Return<'a> {
    /// Boottime milliseconds; `None`: nobody knows.
    at: Option<u64>,
    job: Option<JobId>,
    gpus: Vec<&'a Gpu>,
    cores: u32,
    memory: u64,
}

/// What the head of the line has been promised.
#[derive(Debug, Clone)]
struct Reservation {
    head: JobId,
    /// Boottime milliseconds; `None`: no promise can be made.
    shadow: Option<u64>,
    gpus: BTreeSet<Uuid>,
    spare_cores: u32,
    spare_memory: u64,
}

/// What a job gets, or why it gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sched) enum Placement {
    /// These devices, now.
    Fits(Vec<LeaseDevice>),
    /// Enough devices are free, but some readings are too old.
    Stale {
        /// Their indices.
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
    world: &'a World,
    now: u64,
    free: Vec<Slot<'a>>,
    cores: u32,
    memory: u64,
    returns: Vec<Return<'a>>,
    reservation: Option<Reservation>,
}

impl<'a> Frame<'a> {
    /// The present.
    pub(in crate::sched) fn new(world: &'a World, now: &Now) -> Self {
        let mut free = Vec::new();
        let mut returns = Vec::new();
        for (_, device) in world.pool.devices() {
            let Some(gpu) = &device.gpu else { continue };
            match &device.state {
                DeviceState::Free => free.push(Slot { gpu, baseline: Pool::provable(device, now) }),
                DeviceState::Draining { .. } => returns.push(Return {
                    at: Some(now.boottime_ms + DRAIN_EXPECTED.0),
                    job: None,
                    gpus: vec![gpu],
                    cores: 0,
                    memory: 0,
                }),
                _ => {}
            }
        }
        for lease in world.leases.held() {
            let limit = world.queue.get(lease.job).and_then(super::length);
            let at = limit.map(|limit| {
                let end = lease.granted.boottime_ms + limit.0;
                if lease.granted.boot == now.boot {
                    end.max(now.boottime_ms + OVERDUE.0)
                } else {
                    now.boottime_ms
                }
            });
            let gpus = lease
                .held
                .devices
                .iter()
                .filter_map(|held| world.pool.get(&held.uuid)?.gpu.as_ref())
                .collect();
            returns.push(Return {
                at,
                job: Some(lease.job),
                gpus,
                cores: lease.held.cores,
                memory: lease.held.memory.0,
            });
        }
        let mut frame = Self {
            world,
            now: now.boottime_ms,
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
    pub(in crate::sched) fn exhausted(&self, least_gpus: u32) -> bool {
        self.cores == 0 || (self.free.len() as u64) < u64::from(least_gpus)
    }

    pub(in crate::sched) const fn has_reservation(&self) -> bool {
        self.reservation.is_some()
    }

    /// Finds a place for a job that holds it for `length` at most (`None`: nobody knows).
    pub(in crate::sched) fn place(&self, job: &Job, ask: &Ask, length: Option<Span>) -> Placement {
        let fitting: Vec<&Slot<'_>> = self.free.iter().filter(|slot| fits(job, slot.gpu)).collect();
        if (fitting.len() as u64) < u64::from(ask.gpus) {
            return Placement::Short(self.short_of_gpus(job, ask, fitting.len() as u32));
        }
        if self.cores < ask.cores {
            return Placement::Short(Reason::Cores { asked: ask.cores, free: self.cores });
        }
        if self.memory < ask.memory.0 {
            return Placement::Short(Reason::Memory {
                asked: ask.memory.to_string(),
                free: Bytes(self.memory).to_string(),
            });
        }
        match self.choose(ask, length, fitting) {
            Err(head) => Placement::BehindHead { head },
            Ok(chosen) => {
                let stale: Vec<u32> =
                    chosen.iter().filter(|slot| slot.baseline.is_none()).map(|slot| slot.gpu.index).collect();
                if stale.is_empty() {
                    Placement::Fits(
                        chosen
                            .iter()
                            .map(|slot| LeaseDevice {
                                uuid: slot.gpu.uuid.clone(),
                                baseline: slot.baseline.unwrap_or_default(),
                            })
                            .collect(),
                    )
                } else {
                    Placement::Stale { gpus: stale }
                }
            }
        }
    }

    /// Picks devices: the smallest that fit, lowest index first, and the head's only if the job is over by then.
    fn choose<'s>(
        &self,
        ask: &Ask,
        length: Option<Span>,
        mut fitting: Vec<&'s Slot<'a>>,
    ) -> Result<Vec<&'s Slot<'a>>, JobId> {
        fitting.sort_by_key(|slot| (slot.gpu.memory, slot.gpu.index));
        let wanted = ask.gpus as usize;
        let Some(Reservation { head, shadow: Some(shadow), gpus, spare_cores, spare_memory }) =
            &self.reservation
        else {
            fitting.truncate(wanted);
            return Ok(fitting);
        };
        let over_by_then = length.is_some_and(|length| self.now + length.0 <= *shadow);
        if over_by_then {
            fitting.sort_by_key(|slot| (!gpus.contains(&slot.gpu.uuid), slot.gpu.memory, slot.gpu.index));
        } else {
            fitting.retain(|slot| !gpus.contains(&slot.gpu.uuid));
            if fitting.len() < wanted || ask.cores > *spare_cores || ask.memory.0 > *spare_memory {
                return Err(*head);
            }
        }
        fitting.truncate(wanted);
        Ok(fitting)
    }

    /// Takes what a job was given; it comes back at `self.now + length`.
    pub(in crate::sched) fn take(&mut self, devices: &[LeaseDevice], ask: &Ask) {
        let before = self.free.len();
        self.free.retain(|slot| devices.iter().all(|device| device.uuid != slot.gpu.uuid));
        debug_assert_eq!(before - self.free.len(), devices.len(), "only free devices are taken");
        self.cores -= ask.cores;
        self.memory -= ask.memory.0;
        if let Some(reservation) = &mut self.reservation {
            reservation.spare_cores = reservation.spare_cores.saturating_sub(ask.cores);
            reservation.spare_memory = reservation.spare_memory.saturating_sub(ask.memory.0);
        }
    }

    /// Reserves for the first job that does not fit: only one reservation is made.
    pub(in crate::sched) fn reserve(&mut self, job: &Job, ask: &Ask) {
        if self.reservation.is_some() {
            return;
        }
        let mut gpus: Vec<&Gpu> =
            self.free.iter().map(|slot| slot.gpu).filter(|gpu| fits(job, gpu)).collect();
        let (mut cores, mut memory) = (self.cores, self.memory);
        let mut shadow = None;
        for back in &self.returns {
            let Some(at) = back.at else { break };
            // Later returns go to the front: the head prefers them, so that what is free now stays usable.
            gpus.splice(0..0, back.gpus.iter().copied().filter(|gpu| fits(job, gpu)));
            cores += back.cores;
            memory += back.memory;
            if gpus.len() as u64 >= u64::from(ask.gpus) && cores >= ask.cores && memory >= ask.memory.0 {
                shadow = Some(at);
                break;
            }
        }
        self.reservation = Some(Reservation {
            head: job.id,
            shadow,
            gpus: gpus.iter().take(ask.gpus as usize).map(|gpu| gpu.uuid.clone()).collect(),
            spare_cores: cores.saturating_sub(ask.cores).min(self.cores),
            spare_memory: memory.saturating_sub(ask.memory.0).min(self.memory),
        });
    }

    fn short_of_gpus(&self, job: &Job, ask: &Ask, free: u32) -> Reason {
        let devices = self.world.pool.devices();
        let fitting: Vec<&Device> = devices
            .iter()
            .map(|(_, device)| *device)
            .filter(|device| device.gpu.as_ref().is_some_and(|gpu| fits(job, gpu)))
            .collect();
        let out: Vec<String> = fitting
            .iter()
            .filter(|device| {
                !matches!(
                    device.state,
                    DeviceState::Free | DeviceState::Held { .. } | DeviceState::Draining { .. }
                )
            })
            .filter_map(|device| {
                device.gpu.as_ref().map(|gpu| format!("GPU {} is {}", gpu.index, device.state.word()))
            })
            .collect();
        let holder = self
            .returns
            .iter()
            .filter(|back| back.gpus.iter().any(|gpu| fits(job, gpu)))
            .find_map(|back| back.job);
        Reason::Gpus {
            asked: ask.gpus,
            free,
            fitting: fitting.len() as u32,
            holder,
            out: (!out.is_empty()).then(|| out.join(", ")),
        }
    }

    fn sort(&mut self) {
        self.returns.sort_by_key(|back| (back.at.unwrap_or(u64::MAX), back.job));
    }
}

/// Simulated time, for forecasts.
impl<'a> Frame<'a> {
    /// Treats every free device as proven, and uses expected lengths instead of limits for what is held.
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
        while self.next_return().is_some_and(|at| at <= to) {
            let back = self.returns.remove(0);
            self.free.extend(back.gpus.iter().map(|gpu| Slot { gpu, baseline: Some(Bytes(0)) }));
            self.cores += back.cores;
            self.memory += back.memory;
        }
        self.free.sort_by_key(|slot| slot.gpu.index);
    }

    /// Gives a job what it asked for until `until`.
    pub(in crate::sched) fn occupy(
        &mut self,
        job: JobId,
        devices: &[LeaseDevice],
        ask: &Ask,
        until: Option<u64>,
    ) {
        let gpus: Vec<&'a Gpu> = self
            .free
            .iter()
            .filter(|slot| devices.iter().any(|device| device.uuid == slot.gpu.uuid))
            .map(|slot| slot.gpu)
            .collect();
        self.take(devices, ask);
        self.returns.push(Return { at: until, job: Some(job), gpus, cores: ask.cores, memory: ask.memory.0 });
        self.sort();
    }
}

/// Whether a device is one that a job asks for.
fn fits(job: &Job, gpu: &Gpu) -> bool {
    let request = &job.spec.request;
    (request.gpu_model.is_empty() || request.gpu_model.iter().any(|word| model_matches(&gpu.name, word)))
        && request.gpu_memory.is_none_or(|asked| memory_fits(gpu.memory, asked))
}
