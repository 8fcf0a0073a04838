//! The indexes over jobs: kept right by one pair of functions, called around every change.

use super::{HISTORY_LEN, LineKey, Queue};
use crate::model::{Amount, AttemptNo, AttemptState, Cursor, Job, JobId, TaskIx};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

type Preparing = HashSet<(JobId, TaskIx, AttemptNo)>;

/// What can be found without a walk over all jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    /// Waiting jobs in their order.
    pub(super) line: BTreeSet<LineKey>,
    /// All jobs by name.
    pub(super) names: HashMap<String, BTreeSet<JobId>>,
    /// Jobs that are not done.
    pub(super) live: BTreeSet<JobId>,
    /// Jobs that are neither waiting nor done.
    pub(super) busy: BTreeSet<JobId>,
    /// Done jobs, oldest first.
    pub(super) history: VecDeque<JobId>,
    /// Waiting jobs whose attempt has to be made ready and is not being.
    pub(super) unprepared: BTreeSet<JobId>,
    /// Jobs with a cancel whose window is open.
    pub(super) cancelling: BTreeSet<JobId>,
    /// Waiting jobs that somebody edits.
    pub(super) editing: BTreeSet<JobId>,
    /// Waiting jobs of which a change can be taken back.
    pub(super) changed: BTreeSet<JobId>,
    /// Jobs by the name that they wait for and that no job has.
    pub(super) unresolved: HashMap<String, BTreeSet<JobId>>,
    /// Jobs by the job that they wait for.
    pub(super) dependents: HashMap<JobId, BTreeSet<JobId>>,
    /// How many waiting jobs ask for how many GPUs.
    pub(super) asks: BTreeMap<u32, u32>,
    /// Waiting jobs that asked not to be started before a wall time.
    pub(super) start_after: BTreeSet<(i64, JobId)>,
    /// Waiting jobs that somebody has paused, in their order.
    pub(super) paused: BTreeSet<LineKey>,
    /// How many jobs of each owner wait.
    pub(super) waiting: BTreeMap<String, u32>,
    /// Waiting jobs that were tried before.
    pub(super) retrying: BTreeSet<JobId>,
}

impl Queue {
    pub(super) fn index(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get(&id) {
            self.ix.insert(job, &self.preparing);
        }
    }

    pub(super) fn unindex(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get(&id) {
            self.ix.remove(job);
        }
    }

    /// A job has another name than before.
    pub(super) fn renamed(&mut self, id: JobId, old: &str) {
        remove_from(&mut self.ix.names, old, id);
    }

    /// Forgets the oldest done jobs beyond a bound; one that somebody still waits for stays in its place.
    pub(super) fn trim_history(&mut self) {
        let mut kept = 0;
        while self.ix.history.len() > HISTORY_LEN + kept {
            let Some(&old) = self.ix.history.get(kept) else { return };
            if self.ix.dependents.contains_key(&old) {
                kept += 1;
                continue;
            }
            self.ix.history.remove(kept);
            if let Some(job) = self.jobs.remove(&old) {
                remove_from(&mut self.ix.names, job.spec.name.as_str(), old);
            }
        }
    }

    /// Whether every index says what the jobs say.
    pub(in crate::sched::world) fn check_indexes(&self) -> Result<(), String> {
        let mut fresh = Indexes::default();
        for job in self.jobs.values() {
            fresh.insert(job, &self.preparing);
        }
        let done = |history: &VecDeque<JobId>| history.iter().copied().collect::<BTreeSet<JobId>>();
        if fresh.history.len() == self.ix.history.len() && done(&fresh.history) == done(&self.ix.history) {
            // Their order is the order in which they were done.
            fresh.history.clone_from(&self.ix.history);
        }
        if fresh == self.ix { Ok(()) } else { Err("an index does not say what the jobs say".to_owned()) }
    }
}

impl Indexes {
    fn insert(&mut self, job: &Job, preparing: &Preparing) {
        let id = job.id;
        self.names.entry(job.spec.name.clone()).or_default().insert(id);
        if job.done.is_some() {
            self.history.push_back(id);
            return;
        }
        self.live.insert(id);
        if job.state() == Cursor::Queued {
            self.line.insert(key(job));
            *self.asks.entry(asked(job)).or_default() += 1;
            count(&mut self.waiting, &job.owner.name);
            if job.paused.is_some() && job.cancel.is_none() {
                self.paused.insert(key(job));
            }
            if let Some(at) = job.spec.request.start_after_ms {
                self.start_after.insert((at, id));
            }
            if job.edit.is_some() {
                self.editing.insert(id);
            }
            if !job.changes.is_empty() {
                self.changed.insert(id);
            }
            if job.attempts().count() > job.tasks.len() {
                self.retrying.insert(id);
            }
            let to_prepare = job.tasks.iter().any(|task| {
                let current = task.current();
                matches!(current.state, AttemptState::Queued { prepared: false, .. })
                    && !preparing.contains(&(id, task.ix, current.number))
            });
            if to_prepare {
                self.unprepared.insert(id);
            }
        }
        if job.state() != Cursor::Queued {
            self.busy.insert(id);
        }
        if job.cancel.as_ref().is_some_and(|cancel| !cancel.carried_out) {
            self.cancelling.insert(id);
        }
        for dependency in &job.after {
            match dependency.job {
                Some(on) => self.dependents.entry(on).or_default().insert(id),
                None => self.unresolved.entry(dependency.name.clone()).or_default().insert(id),
            };
        }
    }

    fn remove(&mut self, job: &Job) {
        let id = job.id;
        if self.line.remove(&key(job))
            && let Some(count) = self.asks.get_mut(&asked(job))
        {
            *count -= 1;
            if *count == 0 {
                self.asks.remove(&asked(job));
            }
            discount(&mut self.waiting, &job.owner.name);
        }
        if let Some(at) = job.spec.request.start_after_ms {
            self.start_after.remove(&(at, id));
        }
        self.paused.remove(&key(job));
        self.live.remove(&id);
        self.busy.remove(&id);
        self.retrying.remove(&id);
        self.unprepared.remove(&id);
        self.cancelling.remove(&id);
        self.editing.remove(&id);
        self.changed.remove(&id);
        if job.done.is_some() {
            self.history.retain(|done| *done != id);
        }
        for dependency in &job.after {
            match dependency.job {
                Some(on) => remove_from(&mut self.dependents, &on, id),
                None => remove_from(&mut self.unresolved, dependency.name.as_str(), id),
            }
        }
    }
}

fn remove_from<K, Q>(map: &mut HashMap<K, BTreeSet<JobId>>, at: &Q, job: JobId)
where
    K: std::hash::Hash + Eq + std::borrow::Borrow<Q>,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if let Some(set) = map.get_mut(at) {
        set.remove(&job);
        if set.is_empty() {
            map.remove(at);
        }
    }
}

fn count(counts: &mut BTreeMap<String, u32>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

fn discount(counts: &mut BTreeMap<String, u32>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

fn asked(job: &Job) -> u32 {
    match job.spec.request.gpus {
        Amount::Some(gpus) => gpus,
        Amount::All => u32::MAX,
    }
}

pub(super) const fn key(job: &Job) -> LineKey {
    LineKey { priority: Reverse(job.priority), position: job.position, job: job.id }
}
