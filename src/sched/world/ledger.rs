//! Leases that ended: the records the meter is made of. Sums are computed from them, never counted along.

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

    /// The oldest, if older ones may have been forgotten.
    pub fn oldest_if_full(&self) -> Option<&Lease> {
        self.leases.values().next().filter(|_| self.leases.len() >= LEDGER_LEN)
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
    }

    /// Forgets the oldest beyond a bound; what a job that is not done has used stays.
    pub(super) fn trim(&mut self, is_live: impl Fn(JobId) -> bool) {
        let excess = self.leases.len().saturating_sub(LEDGER_LEN);
        if excess == 0 {
            return;
        }
        let old = self.leases.values().filter(|lease| !is_live(lease.job)).take(excess);
        for (id, job) in old.map(|lease| (lease.id, lease.job)).collect::<Vec<_>>() {
            self.leases.remove(&id);
            if let Some(ids) = self.by_job.get_mut(&job) {
                ids.retain(|kept| *kept != id);
                if ids.is_empty() {
                    self.by_job.remove(&job);
                }
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether none has ended.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Whether the leases of each job are those that say so.
    pub(super) fn check_index(&self) -> Result<(), String> {
        let listed: usize = self.by_job.values().map(Vec::len).sum();
        let right = self.by_job.iter().all(|(job, ids)| {
            ids.iter().all(|id| self.leases.get(id).is_some_and(|lease| lease.job == *job))
        });
        if right && listed == self.leases.len() {
            Ok(())
        } else {
            Err("the ledger's leases by job are not its leases".to_owned())
        }
    }
}
