//! Devices, cores and memory: what is there, what is held, what is proven free.

mod proof;

pub use proof::Drained;
pub(in crate::sched) use proof::PROOFS;
use proof::PROOFS_APART;

use super::Leases;
use crate::model::{
    Accepted, Bytes, Close, DeviceState, Fault, Gpu, GpuReading, HostReading, Lease, LeaseId, Now,
    Quarantine, Span, Standing, Uuid, Verdict,
};
use std::collections::BTreeMap;

/// Not proven clean for this long after the end of its lease: quarantine.
pub const DRAIN_MAX: Span = Span::secs(30);
/// A held device that does nothing for so long is called idle.
const IDLE_AFTER: Span = Span::secs(300);
/// What is said of a device that has not been read.
const NOT_READ: &str = "not read yet";

/// One device.
#[derive(Debug, Clone)]
pub struct Device {
    /// What it is; `None` for one that is remembered but not listed now.
    pub gpu: Option<Gpu>,
    /// What it was when it was last listed in this process.
    pub was: Option<Gpu>,
    /// What the pool thinks of it. Durable.
    pub state: DeviceState,
    /// It is closed when it is given back. Durable.
    pub close: Option<Close>,
    /// It is not handed out until this is over. Durable.
    pub fault: Option<Fault>,
    /// What an operator has seen of its health and lives with. Durable.
    pub accepted: Option<Accepted>,
    /// The last reading.
    pub reading: Option<GpuReading>,
    /// The lease that holds it, and since when every reading has said that it does nothing.
    idle: Option<(LeaseId, Now)>,
    /// How many readings in a row have shown it clean since it was reset, and when the last that counts was taken.
    proofs: Option<(u32, Now)>,
}

/// The devices, cores and memory this scheduler may hand out.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    devices: BTreeMap<Uuid, Device>,
    /// Listed devices in index order, remembered ones last.
    order: Vec<Uuid>,
    /// How many of them are listed.
    gpus: u32,
    /// Cores and memory in all.
    pub host: Option<HostReading>,
    /// Leased cores.
    pub cores_held: u32,
    /// Leased memory.
    pub memory_held: u64,
    /// Devices have been listed at least once in this process.
    pub listed: bool,
    /// What the operator has set instead of [`DRAIN_MAX`].
    pub drain_max: Option<Span>,
    /// What the readings of each lease's devices have shown while it held them. Not durable.
    usage: BTreeMap<LeaseId, Usage>,
}

/// What the readings of a lease's devices have shown while it held them.
#[derive(Debug, Clone, Default)]
struct Usage {
    /// Percent, and how many readings told.
    sum: u64,
    count: u64,
    peak_memory: Option<Bytes>,
}

impl Usage {
    fn add(&mut self, reading: &GpuReading) {
        if let Some(percent) = reading.utilisation {
            self.sum += u64::from(percent);
            self.count += 1;
        }
        self.peak_memory = self.peak_memory.max(reading.memory_used);
    }
}

impl Device {
    /// One that has been named and not read.
    fn unread() -> Self {
        let state = DeviceState::Unknown { detail: NOT_READ.to_owned() };
        Self {
            gpu: None,
            was: None,
            state,
            close: None,
            fault: None,
            accepted: None,
            reading: None,
            idle: None,
            proofs: None,
        }
    }

    /// What is remembered of it.
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state.clone(),
            close: self.close.clone(),
            fault: self.fault.clone(),
            accepted: self.accepted,
        }
    }

    /// Since when it is held and does nothing, once that has been so for long enough to be said.
    pub fn idle_since(&self) -> Option<Now> {
        let DeviceState::Held { lease } = &self.state else { return None };
        let (idle, since) = self.idle.as_ref()?;
        let last = self.reading.as_ref()?.at.since(since)?;
        (idle == lease && last >= IDLE_AFTER).then_some(*since)
    }

    /// How many readings in a row have shown it clean since it was reset.
    pub fn proofs(&self) -> u32 {
        self.proofs.map_or(0, |(count, _)| count)
    }

    /// When the next reading that counts as one of them is due, boottime milliseconds.
    pub(in crate::sched) fn next_proof(&self) -> Option<u64> {
        let (count, last) = self.proofs?;
        (count < PROOFS).then_some(last.boottime_ms + PROOFS_APART.0)
    }
}

impl Pool {
    /// All devices, in index order; remembered ones that are not listed last.
    pub fn devices(&self) -> impl Iterator<Item = (&Uuid, &Device)> {
        self.order.iter().filter_map(|uuid| self.devices.get_key_value(uuid))
    }

    /// One device.
    pub fn get(&self, uuid: &Uuid) -> Option<&Device> {
        self.devices.get(uuid)
    }

    /// How many devices are listed.
    pub const fn gpus(&self) -> u32 {
        self.gpus
    }

    /// The lease that a device is held by, or draining from.
    pub fn holder(&self, uuid: &Uuid) -> Option<LeaseId> {
        match self.devices.get(uuid).map(|device| &device.state) {
            Some(DeviceState::Held { lease } | DeviceState::Draining { lease, .. }) => Some(*lease),
            _ => None,
        }
    }

    /// Cores that are not leased.
    pub fn cores_free(&self) -> u32 {
        self.host.map_or(0, |host| host.cores.saturating_sub(self.cores_held))
    }

    /// Memory that is not leased.
    pub fn memory_free(&self) -> u64 {
        self.host.map_or(0, |host| host.memory.0.saturating_sub(self.memory_held))
    }

    /// Takes the list of devices that are there now. Those that are missing keep their state; the step decides.
    pub fn list(&mut self, gpus: &[Gpu]) {
        self.listed = true;
        for device in self.devices.values_mut() {
            device.gpu = None;
        }
        for gpu in gpus {
            let device = self.devices.entry(gpu.uuid.clone()).or_insert_with(Device::unread);
            device.gpu = Some(gpu.clone());
            device.was = Some(gpu.clone());
        }
        self.reorder();
    }

    fn reorder(&mut self) {
        let mut order: Vec<(u32, &Uuid)> = self
            .devices
            .iter()
            .map(|(uuid, device)| (device.gpu.as_ref().map_or(u32::MAX, |gpu| gpu.index), uuid))
            .collect();
        order.sort();
        self.order = order.into_iter().map(|(_, uuid)| uuid.clone()).collect();
        self.gpus = self.devices.values().filter(|device| device.gpu.is_some()).count() as u32;
    }

    /// A device, remembered from now on.
    fn entry(&mut self, uuid: &Uuid) -> &mut Device {
        if !self.devices.contains_key(uuid) {
            self.devices.insert(uuid.clone(), Device::unread());
            self.reorder();
        }
        self.devices.entry(uuid.clone()).or_insert_with(Device::unread)
    }

    /// Takes a reading. The step decides what it means. `false`: it is of an unknown device, or older than the last one,
    /// and says nothing.
    pub fn read(&mut self, reading: &GpuReading) -> bool {
        let Some(device) = self.devices.get_mut(&reading.uuid) else { return false };
        let is_older = |last: &GpuReading| {
            last.at.boot == reading.at.boot && last.at.boottime_ms > reading.at.boottime_ms
        };
        let is_news = !device.reading.as_ref().is_some_and(is_older);
        if is_news {
            device.idle = match (&device.state, reading.utilisation) {
                (DeviceState::Held { lease }, Some(0)) => {
                    device.idle.filter(|(idle, _)| idle == lease).or(Some((*lease, reading.at)))
                }
                _ => None,
            };
            if let DeviceState::Held { lease } = &device.state {
                self.usage.entry(*lease).or_default().add(reading);
            }
            device.reading = Some(reading.clone());
        }
        is_news
    }

    /// Mean utilisation of a lease's devices over the readings taken while it held them, percent.
    pub fn mean_utilisation(&self, lease: LeaseId) -> Option<u8> {
        let usage = self.usage.get(&lease)?;
        usage.sum.checked_div(usage.count).map(|mean| mean as u8)
    }

    /// Highest memory in use on one of a lease's devices while it held them.
    pub fn peak_memory(&self, lease: LeaseId) -> Option<Bytes> {
        self.usage.get(&lease)?.peak_memory
    }

    /// Whether a device that is held or draining may be granted again after that.
    pub fn comes_back(&self, uuid: &Uuid) -> bool {
        self.devices.get(uuid).is_some_and(|device| device.close.is_none() && device.fault.is_none())
    }

    pub(super) fn restore(&mut self, uuid: &Uuid, standing: Standing) {
        let device = self.entry(uuid);
        let Standing { state, close, fault, accepted } = standing;
        (device.state, device.close, device.fault, device.accepted) = (state, close, fault, accepted);
    }

    pub(super) fn set_state(&mut self, uuid: &Uuid, state: DeviceState) {
        let device = self.entry(uuid);
        if matches!(state, DeviceState::Closed { .. }) {
            // What was wanted has happened.
            device.close = None;
        }
        device.state = state;
    }

    pub(super) fn set_close(&mut self, uuid: &Uuid, close: Option<Close>) {
        self.entry(uuid).close = close;
    }

    /// Something is wrong with a device, or with `None` not any more; `accepted` is what an operator then lives with.
    pub(super) fn set_fault(&mut self, uuid: &Uuid, fault: Option<Fault>, accepted: Option<Accepted>) {
        let device = self.entry(uuid);
        device.proofs = None;
        if fault.is_none() {
            device.accepted = accepted;
        }
        device.fault = fault;
    }

    /// Books what a lease holds; its devices are held, or draining if it has ended.
    pub(super) fn hold(&mut self, lease: &Lease) {
        for held in &lease.held.devices {
            self.entry(&held.uuid).state = match &lease.ended {
                None => DeviceState::Held { lease: lease.id },
                Some((ended, _)) => DeviceState::Draining { lease: lease.id, since: *ended },
            };
        }
        if lease.ended.is_none() {
            self.cores_held += lease.held.cores;
            self.memory_held += lease.held.memory.0;
        }
    }

    /// The lease ended: cores and memory are free at once, devices drain.
    pub(super) fn drain(&mut self, lease: &Lease) {
        self.cores_held = self.cores_held.saturating_sub(lease.held.cores);
        self.memory_held = self.memory_held.saturating_sub(lease.held.memory.0);
        self.usage.remove(&lease.id);
        let since = lease.ended.map_or(lease.granted, |(ended, _)| ended);
        for held in &lease.held.devices {
            self.set_state(&held.uuid, DeviceState::Draining { lease: lease.id, since });
        }
    }

    /// The devices of a lease are back: free, or all of them in quarantine; the step then says of each what its last reading
    /// makes of it, which no other process can know.
    pub(super) fn give_back(&mut self, lease: &Lease, at: Now) {
        for held in &lease.held.devices {
            let state = match lease.returned.as_ref().map(|returned| &returned.verdict) {
                Some(Verdict::Clean) | None => DeviceState::Free,
                Some(Verdict::Quarantined { detail }) => DeviceState::Quarantined(Quarantine {
                    why: detail.clone(),
                    since: at,
                    lease: Some(lease.id),
                }),
            };
            self.set_state(&held.uuid, state);
        }
    }

    pub(in crate::sched) fn check(&self, leases: &Leases) -> Result<(), String> {
        let mut holders: BTreeMap<&Uuid, LeaseId> = BTreeMap::new();
        let (mut cores, mut memory) = (0, 0);
        for lease in leases.held() {
            cores += lease.held.cores;
            memory += lease.held.memory.0;
            for held in &lease.held.devices {
                if let Some(other) = holders.insert(&held.uuid, lease.id) {
                    return Err(format!("I5: {} has two leases, {other} and {}", held.uuid, lease.id));
                }
            }
        }
        if (cores, memory) != (self.cores_held, self.memory_held) {
            return Err(format!("I5: {} cores are held, the leases say {cores}", self.cores_held));
        }
        let mut draining: BTreeMap<&Uuid, LeaseId> = BTreeMap::new();
        for lease in leases.draining() {
            for held in &lease.held.devices {
                if let Some(other) = holders.get(&held.uuid).or_else(|| draining.get(&held.uuid)) {
                    return Err(format!("I5: {} has two leases, {other} and {}", held.uuid, lease.id));
                }
                draining.insert(&held.uuid, lease.id);
            }
        }
        for (uuid, device) in &self.devices {
            let (held_by, drains) = match &device.state {
                DeviceState::Held { lease } => (Some(*lease), None),
                DeviceState::Draining { lease, .. } => (None, Some(*lease)),
                _ => (None, None),
            };
            if holders.get(uuid).copied() != held_by || draining.get(uuid).copied() != drains {
                return Err(format!("I5: {uuid} is {} and the leases say otherwise", device.state.word()));
            }
        }
        if self.order.len() != self.devices.len() {
            return Err("I5: the order of the devices does not name each of them".to_owned());
        }
        Ok(())
    }
}
