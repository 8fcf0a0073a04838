//! Leases that ended: the records the meter is made of. Sums are computed from them, never counted along.

use super::Leases;
use crate::model::{JobId, Lease, LeaseId, Now};
use std::collections::{BTreeMap, HashMap};

/// Ended leases kept in memory; `overnight meter` reads older ones from the store.
const LEDGER_LEN: usize = 50_000;

/// Ended leases, by number and by job.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    leases: BTreeMap<LeaseId, Lease>,
    by_job: HashMap<JobId, Vec<LeaseId>>,
}

impl Ledger {
    /// A lease that ended.
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Lease> {
        self.leases.values()
    }

    /// The leases of a job.
    pub fn of_job(&self, job: JobId) -> impl Iterator<Item = &Lease> {
        self.by_job.get(&job).into_iter().flatten().filter_map(|id| self.leases.get(id))
    }

    /// What a job's ended leases come to: GPU-, core- and waived GPU-milliseconds.
    pub fn sums(&self, job: JobId, now: &Now) -> (u64, u64, u64) {
        self.of_job(job).fold((0, 0, 0), |(gpu, core, waived), lease| {
            (gpu + lease.gpu_ms(now), core + lease.core_ms(now), waived + lease.waived_gpu_ms(now))
        })
    }

    pub(super) fn record(&mut self, lease: &Lease) {
        if self.leases.insert(lease.id, lease.clone()).is_none() {
            self.by_job.entry(lease.job).or_default().push(lease.id);
        }
        while self.leases.len() > LEDGER_LEN {
            if let Some((id, old)) = self.leases.pop_first()
                && let Some(ids) = self.by_job.get_mut(&old.job)
            {
                ids.retain(|kept| *kept != id);
                if ids.is_empty() {
                    self.by_job.remove(&old.job);
                }
            }
        }
    }

    pub(super) fn check(&self, leases: &Leases) -> Result<(), String> {
        for lease in self.leases.values() {
            if lease.ended.is_none() {
                return Err(format!("lease {} is in the ledger and has not ended", lease.id));
            }
            if lease.held_for(&lease.granted).is_none() {
                return Err(format!("lease {} ended in another boot than it was granted in", lease.id));
            }
        }
        for lease in leases.held() {
            if self.leases.contains_key(&lease.id) {
                return Err(format!("lease {} is held and in the ledger", lease.id));
            }
        }
        Ok(())
    }
}
