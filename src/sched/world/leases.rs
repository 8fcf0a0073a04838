//! Leases that are not returned yet: who holds what.

use super::ApplyError;
use crate::model::{EndedBy, Lease, LeaseId, Now, Returned};
use std::collections::BTreeMap;

/// Leases by number: open ones, and ended ones whose devices are still draining.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    open: BTreeMap<LeaseId, Lease>,
    /// When each draining lease was first seen to be, in this process. Not durable.
    draining_since: BTreeMap<LeaseId, Now>,
    /// When each was first seen to take too long for that. Not durable.
    late_since: BTreeMap<LeaseId, Now>,
    /// Who did not answer its kill, by lease, for people. Not durable: the engine says it again.
    outlived: BTreeMap<LeaseId, String>,
    /// How the collection of a lease's output goes, where there is something to say. Not durable.
    collecting: BTreeMap<LeaseId, Collecting>,
}

/// How the collection of an output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collecting {
    /// So much of it is home, in percent.
    Percent(u8),
    /// The disk is in the way: why, in words.
    Waits(String),
}

/// How a lease ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// When.
    pub(super) at: Now,
    /// Who says so.
    pub(super) by: EndedBy,
    /// Not billed.
    pub(super) waived: bool,
    /// Milliseconds of suspend within it.
    pub(super) suspended_ms: u64,
}

impl Leases {
    /// A lease that is not returned.
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.open.get(&id)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.open.values()
    }

    /// Those that are still held: the meter runs.
    pub fn held(&self) -> impl Iterator<Item = &Lease> {
        self.iter().filter(|lease| lease.ended.is_none())
    }

    /// Those whose devices are draining.
    pub fn draining(&self) -> impl Iterator<Item = &Lease> {
        self.iter().filter(|lease| lease.ended.is_some())
    }

    /// When a draining lease was first seen to be: now, if it was not before.
    pub(in crate::sched) fn draining_since(&mut self, id: LeaseId, now: Now) -> Now {
        *self.draining_since.entry(id).or_insert(now)
    }

    /// When a draining lease was first seen to take too long: now, if it was not before.
    pub(in crate::sched) fn late_since(&mut self, id: LeaseId, now: Now) -> Now {
        *self.late_since.entry(id).or_insert(now)
    }

    /// Notes who of a lease did not answer a kill.
    pub(in crate::sched) fn outlived(&mut self, id: LeaseId, who: String) {
        if self.open.contains_key(&id) {
            self.outlived.insert(id, who);
        }
    }

    /// Notes how the collection of a lease's output goes; `None`: it is over.
    pub(in crate::sched) fn collecting(&mut self, id: LeaseId, how: Option<Collecting>) {
        match how {
            Some(how) => drop(self.collecting.insert(id, how)),
            None => drop(self.collecting.remove(&id)),
        }
    }

    /// How the collection of a lease's output goes, where there is something to say.
    pub fn how_collecting(&self, id: LeaseId) -> Option<&Collecting> {
        self.collecting.get(&id)
    }

    /// Who of a lease did not answer a kill, in words.
    pub fn culprit(&self, id: LeaseId) -> String {
        let who = self.outlived.get(&id).map_or("a process", String::as_str);
        format!("{who} did not answer the kill")
    }

    /// Puts a lease in: a stored one, or a new one.
    pub(super) fn restore(&mut self, lease: Lease) {
        self.open.insert(lease.id, lease);
    }

    pub(super) fn heartbeat(&mut self, id: LeaseId, at: Now) {
        if let Some(lease) = self.open.get_mut(&id)
            && lease.ended.is_none()
            && at.since(&lease.heartbeat).is_some_and(|span| span.0 > 0)
        {
            lease.heartbeat = at;
        }
    }

    /// Ends a lease: the meter stops.
    pub(super) fn end(&mut self, id: LeaseId, end: End) -> Result<&Lease, ApplyError> {
        let lease =
            self.open.get_mut(&id).filter(|lease| lease.ended.is_none()).ok_or(ApplyError::NoLease(id))?;
        lease.ended = Some((end.at, end.by));
        lease.waived = end.waived;
        lease.suspended_ms = end.suspended_ms;
        Ok(lease)
    }

    /// The processes of a lease that had not answered their kill are gone.
    pub(super) fn prove(&mut self, id: LeaseId, at: Now) -> Option<&Lease> {
        self.outlived.remove(&id);
        let lease = self.open.get_mut(&id)?;
        lease.gone = Some(at);
        Some(lease)
    }

    /// Takes a lease out: its devices are back.
    pub(super) fn give_back(&mut self, id: LeaseId, returned: Returned) -> Result<Lease, ApplyError> {
        if self.open.get(&id).is_none_or(|lease| lease.ended.is_none()) {
            return Err(ApplyError::NoLease(id));
        }
        self.draining_since.remove(&id);
        self.outlived.remove(&id);
        self.late_since.remove(&id);
        let mut lease = self.open.remove(&id).ok_or(ApplyError::NoLease(id))?;
        lease.returned = Some(returned);
        Ok(lease)
    }
}
