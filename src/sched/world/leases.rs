//! Leases that are not returned yet: who holds what.

use super::ApplyError;
use crate::model::{EndedBy, Lease, LeaseId, Now, Returned};
use std::collections::{BTreeMap, BTreeSet};

/// Leases by number: open ones, and ended ones whose devices are still draining.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    open: BTreeMap<LeaseId, Lease>,
    /// When each draining lease was first seen to be, in this process. Not durable.
    draining_since: BTreeMap<LeaseId, Now>,
    /// When each was first seen to take too long for that. Not durable.
    late_since: BTreeMap<LeaseId, Now>,
    /// Leases that ended [`EndedBy::AfterKill`] and whose last process was seen to be gone later. Not durable.
    proven: BTreeSet<LeaseId>,
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

    /// Notes that the last process of a lease is gone after all.
    pub(in crate::sched) fn prove(&mut self, id: LeaseId) {
        self.proven.insert(id);
    }

    /// Whether a process of an ended lease may still live: a kill was not answered in this boot, and nobody has seen the
    /// process go since.
    pub fn is_unproven(&self, lease: &Lease, now: &Now) -> bool {
        lease.ended.is_some_and(|(ended, by)| by == EndedBy::AfterKill && ended.boot == now.boot)
            && !self.proven.contains(&lease.id)
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

    /// Takes a lease out: its devices are back.
    pub(super) fn give_back(&mut self, id: LeaseId, returned: Returned) -> Result<Lease, ApplyError> {
        if self.open.get(&id).is_none_or(|lease| lease.ended.is_none()) {
            return Err(ApplyError::NoLease(id));
        }
        self.draining_since.remove(&id);
        self.late_since.remove(&id);
        let mut lease = self.open.remove(&id).ok_or(ApplyError::NoLease(id))?;
        lease.returned = Some(returned);
        Ok(lease)
    }
}
