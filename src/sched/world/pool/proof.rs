//! What a reading proves: that nobody is on a device, or who is.

use super::{DRAIN_MAX, Device, NOT_READ, Pool};
use crate::model::{
    Bytes, DeviceState, GpuProcess, GpuReading, Lease, Now, ProcessKind, Span, Token, Unreadable, Uuid,
};

/// A device is granted only on a complete reading younger than this.
const READING_MAX_AGE: Span = Span(250);
/// Memory in use on a device that no visible process accounts for: above this somebody is there whom we cannot see.
const UNSEEN_BYTES: u64 = 2 * Bytes::GIB;
/// So many culprits are named.
const CULPRITS: usize = 3;
/// A device that was reset is free after so many readings in a row that show it clean.
pub(in crate::sched) const PROOFS: u32 = 3;
/// Readings that are closer together than this count as one.
pub(super) const PROOFS_APART: Span = Span::secs(1);

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

impl Pool {
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
        let free = device.state == DeviceState::Free && device.fault.is_none() && device.close.is_none();
        (fresh && free).then(|| clean(reading, None, None).ok()).flatten()
    }

    /// Notes whether the last reading of a device that was reset shows it clean; whether enough of them in a row do.
    pub(in crate::sched) fn prove(&mut self, uuid: &Uuid, clean: bool) -> bool {
        let Some(device) = self.devices.get_mut(uuid) else { return false };
        let Some(at) = device.reading.as_ref().filter(|_| clean).map(|reading| reading.at) else {
            device.proofs = None;
            return false;
        };
        let (count, last) = match device.proofs {
            Some((count, last)) => match at.since(&last) {
                Some(apart) if apart < PROOFS_APART => (count, last),
                Some(_) => (count + 1, at),
                None => (1, at),
            },
            None => (1, at),
        };
        device.proofs = Some((count, last));
        count >= PROOFS
    }
}

/// Whether a reading shows nobody on a device: `Ok(memory that no visible process accounts for)`, the baseline of a grant.
///
/// `token`: the lease that drains, whose processes are named apart; `baseline`: what it found. Graphics-only processes and
/// the ignore list are part of the baseline, unless they are a job's. The words hold no figure that changes from reading
/// to reading: a change of words is an event.
fn clean(reading: &GpuReading, token: Option<&Token>, baseline: Option<Bytes>) -> Result<Bytes, String> {
    if let Some(unreadable) = &reading.unreadable {
        let (Unreadable::Gone { detail } | Unreadable::Failed { detail }) = unreadable;
        return Err(detail.clone());
    }
    let Some(processes) = &reading.processes else {
        return Err("the list of its processes cannot be read".to_owned());
    };
    let Some(used) = reading.memory_used else { return Err("its memory cannot be read".to_owned()) };
    let ours = |process: &&GpuProcess| token.is_some() && process.token.as_ref() == token;
    let counts = |process: &&GpuProcess| {
        process.token.is_some() || !process.ignored && process.kind == ProcessKind::Compute
    };
    let left: Vec<&GpuProcess> = processes.iter().filter(ours).collect();
    if !left.is_empty() {
        return Err(format!("left over: {}", named(&left)));
    }
    let others: Vec<&GpuProcess> = processes.iter().filter(counts).collect();
    if !others.is_empty() {
        return Err(named(&others));
    }
    let explained: u64 = processes.iter().filter_map(|process| process.memory).map(|memory| memory.0).sum();
    let unexplained = used.0.saturating_sub(explained);
    let allowed =
        baseline.map_or(UNSEEN_BYTES, |Bytes(before)| before.saturating_add(before / 8 + 128 * Bytes::MIB));
    if unexplained > allowed {
        return Err("memory in use by nobody who can be seen".to_owned());
    }
    Ok(Bytes(unexplained))
}

/// `pid 4711 python of ana, pid 4712 python of ana and more`.
fn named(processes: &[&GpuProcess]) -> String {
    let words: Vec<String> = processes.iter().take(CULPRITS).map(|process| process.words()).collect();
    let more = if processes.len() > CULPRITS { " and more" } else { "" };
    format!("{}{more}", words.join(", "))
}
