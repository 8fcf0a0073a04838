//! Simulated devices: seeded, deterministic, and following what runs on them.
//!
//! Readings are functions of (seed, device, lease, boottime in whole seconds). A device without a lease reads
//! constant values, so that nothing changes when nothing runs. Load and memory rise within seconds after a lease's
//! work began and are gone when it ended; temperature and power fall over the ten seconds after that.
//!
//! A control file makes devices misbehave: see [`control`](super::control).

use super::control::{Control, DeviceControl, Fault};
use super::{GpuBackend, GpuError, Running, unreadable};
use crate::clock;
use crate::model::{
    Bytes, FaultKind, FaultNews, Gpu, GpuReading, Health, LeaseId, Now, Token, Unreadable, Uuid,
};
use std::path::PathBuf;

/// Memory that an idle device reads.
const IDLE_MEMORY: Bytes = Bytes::mib(4);
/// What a device tells whose control file says nothing else.
const HEALTHY: Health =
    Health { uncorrected: Some(0), remap_pending: Some(false), remap_failed: Some(false) };
/// Load is up this many seconds after the work began.
const RAMP_S: u64 = 5;
/// Temperature and power are back this many seconds after it ended.
const COOL_S: u64 = 10;

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedConfig {
    /// How many devices.
    pub gpus: u32,
    /// Makes UUIDs and loads.
    pub seed: u64,
    /// The control file; see [`control`](super::control).
    pub control: Option<PathBuf>,
    /// Memory of each device.
    pub memory: Bytes,
    /// The model's name.
    pub model: String,
    /// The host the devices sit in.
    pub node: String,
}

impl Default for SimulatedConfig {
    fn default() -> Self {
        Self {
            gpus: 1,
            seed: 0,
            control: None,
            memory: Bytes::gib(80),
            model: "Simulated A100 80GB".to_owned(),
            node: super::host::node_name(),
        }
    }
}

/// The simulated backend.
#[derive(Debug)]
pub struct Simulated {
    config: SimulatedConfig,
    devices: Vec<Device>,
    control: Control,
}

#[derive(Debug)]
struct Device {
    gpu: Gpu,
    key: u64,
    /// The work on it now, since when.
    busy: Option<(Running, u64)>,
    /// The last lease that ended on it, its token, when it began and ended.
    last: Option<(LeaseId, Token, u64, u64)>,
    /// How many Xids of the control file have been told.
    told: usize,
}

impl Simulated {
    /// Makes the devices. Nothing is started.
    pub fn new(config: SimulatedConfig) -> Self {
        let device = |index| {
            let key = mix(config.seed, u64::from(index) + 1);
            let gpu = Gpu {
                uuid: uuid(key),
                index,
                node: config.node.clone(),
                name: config.model.clone(),
                memory: config.memory,
                real: false,
            };
            Device { gpu, key, busy: None, last: None, told: 0 }
        };
        let devices: Vec<Device> = (0..config.gpus).map(device).collect();
        let mut simulated = Self { control: Control::new(config.control.clone()), config, devices };
        // What its control file told an earlier process is not news.
        simulated.faults();
        simulated
    }

    /// As [`GpuBackend::sample`], at a given moment.
    fn sample_at(&mut self, running: &[Running], now: Now) -> Vec<GpuReading> {
        self.control.refresh();
        let now_s = now.boottime_ms / 1000;
        let memory = self.config.memory;
        let control = &self.control;
        self.devices
            .iter_mut()
            .map(|device| {
                let work = running.iter().find(|work| work.uuid == device.gpu.uuid);
                device.follow(work, now_s);
                device.reading(control.of(device.gpu.index), memory, now)
            })
            .collect()
    }
}

impl GpuBackend for Simulated {
    fn list(&mut self) -> Result<Vec<Gpu>, GpuError> {
        self.control.refresh();
        let here = |device: &&Device| {
            !matches!(
                self.control.of(device.gpu.index),
                Ok(Some(DeviceControl { fault: Some(Fault::Gone), .. }))
            )
        };
        Ok(self.devices.iter().filter(here).map(|device| device.gpu.clone()).collect())
    }

    fn sample(&mut self, running: &[Running]) -> Vec<GpuReading> {
        self.sample_at(running, clock::now())
    }

    fn faults(&mut self) -> Vec<FaultNews> {
        self.control.refresh();
        let control = &self.control;
        self.devices
            .iter_mut()
            .flat_map(|device| {
                let xids =
                    control.of(device.gpu.index).ok().flatten().map_or(&[][..], |control| &control.xids);
                let new = xids.get(device.told..).unwrap_or_default();
                device.told = xids.len();
                let uuid = device.gpu.uuid.clone();
                new.iter().map(move |code| FaultNews { uuid: uuid.clone(), kind: FaultKind::Xid(*code) })
            })
            .collect()
    }

    fn instant(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}

impl Device {
    /// Notes that work began or ended.
    fn follow(&mut self, work: Option<&Running>, now_s: u64) {
        let same = match (&self.busy, work) {
            (Some((busy, _)), Some(work)) => busy.lease == work.lease,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        if let Some((busy, since)) = self.busy.take() {
            self.last = Some((busy.lease, busy.token, since, now_s));
        }
        self.busy = work.map(|work| (work.clone(), now_s));
    }

    fn reading(&self, control: Result<Option<&DeviceControl>, &str>, memory: Bytes, now: Now) -> GpuReading {
        let control = match control {
            Ok(control) => control,
            Err(detail) => {
                let detail = detail.to_owned();
                return unreadable(self.gpu.uuid.clone(), now, Unreadable::Failed { detail });
            }
        };
        if let Some(why) = control.and_then(DeviceControl::unreadable) {
            return unreadable(self.gpu.uuid.clone(), now, why);
        }
        let now_s = now.boottime_ms / 1000;
        let mut used = IDLE_MEMORY.0 + self.work_memory(memory, now_s);
        let mut processes = Vec::new();
        if let Some(outside) = control.and_then(|control| control.outside.as_ref()) {
            used = used.saturating_add(outside.memory.0);
            processes.push(outside.process(None));
        }
        if let (Some(dirty), Some((_, token, ..)), None) =
            (control.and_then(|control| control.dirty.as_ref()), &self.last, &self.busy)
        {
            used = used.saturating_add(dirty.memory.unwrap_or(Bytes(memory.0 / 2)).0);
            processes.extend(dirty.process(token));
        }
        let load = self.load(now_s);
        let warmth = self.warmth(now_s);
        GpuReading {
            uuid: self.gpu.uuid.clone(),
            at: now,
            unreadable: None,
            memory_used: Some(Bytes(used.min(memory.0))),
            utilisation: Some(load),
            temperature_c: Some(30 + (self.key % 5) as i32 + i32::from(warmth) * 2 / 5),
            power_w: Some(45 + (self.key % 9) as u32 + u32::from(warmth) * 3),
            health: control.map_or(HEALTHY, DeviceControl::health),
            processes: Some(processes),
            lock: None,
        }
    }

    /// Percent: rises to a level of the lease's own and wavers a little around it.
    fn load(&self, now_s: u64) -> u8 {
        let Some((busy, since)) = &self.busy else { return 0 };
        self.load_of(busy.lease, now_s, now_s.saturating_sub(*since))
    }

    fn load_of(&self, lease: LeaseId, at_s: u64, age_s: u64) -> u8 {
        let level = 70 + mix(self.key, lease.0) % 26;
        let wave = mix(self.key ^ lease.0, at_s) % 5;
        ((level + wave) * (age_s + 1).min(RAMP_S) / RAMP_S).min(100) as u8
    }

    fn work_memory(&self, memory: Bytes, now_s: u64) -> u64 {
        let Some((busy, since)) = &self.busy else { return 0 };
        let percent = 30 + mix(self.key, busy.lease.0 ^ 0xA5) % 56;
        let age = now_s.saturating_sub(*since);
        memory.0 / 100 * percent * (age + 1).min(RAMP_S) / RAMP_S
    }

    /// Load as temperature and power see it: it also falls slowly.
    fn warmth(&self, now_s: u64) -> u8 {
        let cooling = self.last.as_ref().map_or(0, |(lease, _, began, ended)| {
            let left = COOL_S.saturating_sub(now_s.saturating_sub(*ended));
            u64::from(self.load_of(*lease, *ended, ended.saturating_sub(*began))) * left / COOL_S
        });
        self.load(now_s).max(cooling as u8)
    }
}

/// A stable identity out of a device's key, in the driver's notation.
fn uuid(key: u64) -> Uuid {
    let (high, low) = (mix(key, 1), mix(key, 2));
    Uuid(format!(
        "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    ))
}

/// Two numbers well mixed into one (the finaliser of `SplitMix64`).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
