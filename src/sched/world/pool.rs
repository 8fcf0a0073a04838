//! Devices, cores and memory: what is there, what is held, what is proven free.

use super::Leases;
use crate::model::{
    Bytes, DeviceState, Gpu, GpuProcess, GpuReading, HostReading, Lease, LeaseId, Now, Quarantine, Span,
    Token, Unreadable, Uuid, Verdict,
};
use std::collections::BTreeMap;

/// A device is granted only on a complete reading younger than this.
const READING_MAX_AGE: Span = Span(250);
/// Not proven clean for this long after the end of its lease: quarantine.
pub const DRAIN_MAX: Span = Span::secs(30);
/// Memory in use on a device with no visible process above this means somebody is there whom we cannot see.
const UNSEEN_BYTES: u64 = 2 * Bytes::GIB;
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
    /// The last reading.
    pub reading: Option<GpuReading>,
}

/// Whether a draining device has been proven clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// No process of the lease, memory back at the baseline.
    Clean,
    /// It is not there any more, and why: nothing is left to prove.
    Gone(String),
    /// Not yet, and why.
    NotYet(String),
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
    /// Sum and number of utilisation readings of each lease's devices while held. Not durable.
    utilisation: BTreeMap<LeaseId, (u64, u64)>,
}

impl Device {
    /// One that has been named and not read.
    fn unread() -> Self {
        let state = DeviceState::Unknown { detail: NOT_READ.to_owned() };
        Self { gpu: None, was: None, state, reading: None }
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
            if let (DeviceState::Held { lease }, Some(percent)) = (&device.state, reading.utilisation) {
                let (sum, count) = self.utilisation.entry(*lease).or_default();
                *sum += u64::from(percent);
                *count += 1;
            }
            device.reading = Some(reading.clone());
        }
        is_news
    }

    /// Mean utilisation of a lease's devices over the readings taken while it held them, percent.
    pub fn mean_utilisation(&self, lease: LeaseId) -> Option<u8> {
        self.utilisation.get(&lease).and_then(|(sum, count)| sum.checked_div(*count)).map(|mean| mean as u8)
    }

    pub(super) fn restore(&mut self, uuid: &Uuid, state: DeviceState) {
        self.set_state(uuid, state);
    }

    pub(super) fn set_state(&mut self, uuid: &Uuid, state: DeviceState) {
        self.entry(uuid).state = state;
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
        self.utilisation.remove(&lease.id);
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

    /// Whether the last reading proves a lease's device clean.
    pub fn drained(&self, uuid: &Uuid, lease: &Lease) -> Drained {
        let not_yet = |why: &str| Drained::NotYet(why.to_owned());
        let Some((ended, _)) = lease.ended else { return not_yet("the lease has not ended") };
        let Some(device) = self.devices.get(uuid) else { return not_yet("the device is not listed") };
        let Some(reading) = &device.reading else { return not_yet(NOT_READ) };
        let baseline = match reading.at.since(&ended) {
            Some(_) if reading.at.boottime_ms < ended.boottime_ms => {
                return not_yet("not read since the run ended");
            }
            Some(_) => lease.held.devices.iter().find(|held| held.uuid == *uuid).map(|held| held.baseline),
            // Nothing of an earlier boot is left but what the device itself kept: it is judged as any other.
            None => None,
        };
        if let Some(Unreadable::Gone { detail }) = &reading.unreadable {
            return Drained::Gone(detail.clone());
        }
        let ours = |token: Option<&Token>| token == Some(&lease.token);
        let left = |processes: &Vec<GpuProcess>| processes.iter().any(|process| ours(process.token.as_ref()));
        let lock = reading.lock.as_ref().and_then(|lock| lock.token.as_ref());
        if lock.is_some_and(|token| !ours(Some(token)))
            && reading.processes.as_ref().is_some_and(|processes| !left(processes))
        {
            // Another scheduler has it by now, and what is on it is that one's.
            return Drained::Clean;
        }
        match clean(reading, Some(&lease.token), baseline) {
            Ok(_) => Drained::Clean,
            Err(why) => Drained::NotYet(why),
        }
    }

    /// What the last reading makes of a device that nobody of ours holds.
    pub fn judge(device: &Device, ours: impl Fn(&Token) -> bool) -> DeviceState {
        let Some(reading) = &device.reading else {
            return DeviceState::Unknown { detail: NOT_READ.to_owned() };
        };
        match &reading.unreadable {
            Some(Unreadable::Gone { detail }) => return DeviceState::Gone { detail: detail.clone() },
            Some(Unreadable::Failed { detail }) => return DeviceState::Unknown { detail: detail.clone() },
            None => {}
        }
        if let Some(lock) = &reading.lock
            && !lock.token.as_ref().is_some_and(&ours)
        {
            return DeviceState::Outside { who: format!("uid {} for {}", lock.uid, lock.job) };
        }
        match clean(reading, None, None) {
            Ok(_) => DeviceState::Free,
            Err(why) if reading.processes.is_none() || reading.memory_used.is_none() => {
                DeviceState::Unknown { detail: why }
            }
            Err(who) => DeviceState::Outside { who },
        }
    }

    /// How long a device may take to be proven clean.
    pub fn drain_max(&self) -> Span {
        self.drain_max.unwrap_or(DRAIN_MAX)
    }

    /// Whether a free device may be granted on its last reading: `Some(baseline)`, or `None` if a fresh one is needed.
    pub fn provable(device: &Device, now: &Now) -> Option<Bytes> {
        let reading = device.reading.as_ref()?;
        let fresh = now.since(&reading.at).is_some_and(|age| age <= READING_MAX_AGE);
        (fresh && device.state == DeviceState::Free).then(|| clean(reading, None, None).ok()).flatten()
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

/// Whether a reading shows nobody on a device: `Ok(memory in use)`, the baseline of a grant.
///
/// `token`: the lease that drains, whose processes are named apart; `baseline`: what was in use before it. Graphics-only
/// processes and the ignore list are part of the baseline. The words hold no figure that changes from reading to reading:
/// a change of words is an event.
fn clean(reading: &GpuReading, token: Option<&Token>, baseline: Option<Bytes>) -> Result<Bytes, String> {
    if let Some(unreadable) = &reading.unreadable {
        let (Unreadable::Gone { detail } | Unreadable::Failed { detail }) = unreadable;
        return Err(detail.clone());
    }
    let Some(processes) = &reading.processes else {
        return Err("the list of its processes cannot be read".to_owned());
    };
    let Some(used) = reading.memory_used else { return Err("its memory cannot be read".to_owned()) };
    let counts =
        |process: &&GpuProcess| !process.ignored && process.kind == crate::model::ProcessKind::Compute;
    if let Some(process) = processes.iter().find(counts) {
        let whose = if token.is_some() && process.token.as_ref() == token { "left over: " } else { "" };
        return Err(format!("{whose}pid {} {}", process.pid, process.name));
    }
    let explained: u64 = processes.iter().filter_map(|process| process.memory).map(|memory| memory.0).sum();
    let allowed =
        baseline.map_or(UNSEEN_BYTES, |Bytes(before)| before.saturating_add(before / 8 + 128 * Bytes::MIB));
    if used.0 > allowed.saturating_add(explained) {
        return Err("memory in use by nobody who can be seen".to_owned());
    }
    Ok(used)
}
