//! The indexes over jobs: kept right by one pair of functions, called around every change.

use super::{HISTORY_LEN, LineKey, Queue};
use crate::model::{Amount, AttemptState, Cursor, Job, JobId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

impl Queue {
    pub(super) fn index(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        self.names.entry(job.spec.name.clone()).or_default().insert(id);
        if job.done.is_some() {
            self.history.push_back(id);
            return;
        }
        self.live.insert(id);
        if job.state() == Cursor::Queued {
            self.line.insert(key(job));
            *self.asks.entry(asked(job)).or_default() += 1;
            if let Some(at) = job.spec.request.start_after_ms {
                self.start_after.insert((at, id));
            }
            if job.attempts().count() > job.tasks.len() {
                self.retrying.insert(id);
            }
            let to_prepare = job.tasks.iter().any(|task| {
                let current = task.current();
                matches!(current.state, AttemptState::Queued { prepared: false, .. })
                    && !self.preparing.contains(&(id, task.ix, current.number))
            });
            if to_prepare {
                self.unprepared.insert(id);
            }
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

    pub(super) fn unindex(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if self.line.remove(&key(job))
            && let Some(count) = self.asks.get_mut(&asked(job))
        {
            *count -= 1;
            if *count == 0 {
                self.asks.remove(&asked(job));
            }
        }
        if let Some(at) = job.spec.request.start_after_ms {
            self.start_after.remove(&(at, id));
        }
        self.live.remove(&id);
        self.retrying.remove(&id);
        self.unprepared.remove(&id);
        self.cancelling.remove(&id);
        if job.done.is_some() {
            self.history.retain(|done| *done != id);
        }
        for dependency in &job.after {
            match dependency.job {
                Some(on) => remove_from(&mut self.dependents, &on, id),
                None => remove_from(&mut self.unresolved, &dependency.name, id),
            }
        }
    }

    /// Forgets the oldest done jobs beyond a bound; one that somebody still waits for stays in its place.
    pub(super) fn trim_history(&mut self) {
        let mut kept = 0;
        while self.history.len() > HISTORY_LEN + kept {
            let Some(&old) = self.history.get(kept) else { return };
            if self.dependents.contains_key(&old) {
                kept += 1;
                continue;
            }
            self.history.remove(kept);
            if let Some(job) = self.jobs.remove(&old) {
                remove_from(&mut self.names, &job.spec.name, old);
            }
        }
    }

    /// Whether every index says what the jobs say; what is wrong, in words.
    pub(super) fn check_indexes(&self) -> Result<(), String> {
        let mut fresh = Self { preparing: self.preparing.clone(), ..Self::default() };
        fresh.jobs.clone_from(&self.jobs);
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            fresh.index(id);
        }
        let same = [
            ("line", fresh.line == self.line),
            ("names", fresh.names == self.names),
            ("live", fresh.live == self.live),
            ("asks", fresh.asks == self.asks),
            ("unprepared", fresh.unprepared == self.unprepared),
            ("cancelling", fresh.cancelling == self.cancelling),
            ("unresolved", fresh.unresolved == self.unresolved),
            ("dependents", fresh.dependents == self.dependents),
            ("start_after", fresh.start_after == self.start_after),
            ("retrying", fresh.retrying == self.retrying),
            ("history", fresh.history.len() == self.history.len()),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((name, _)) => Err(format!("the index `{name}` does not say what the jobs say")),
            None => Ok(()),
        }
    }
}

fn remove_from<K: std::hash::Hash + Eq + Clone>(map: &mut HashMap<K, BTreeSet<JobId>>, at: &K, job: JobId) {
    if let Some(set) = map.get_mut(at) {
        set.remove(&job);
        if set.is_empty() {
            map.remove(at);
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
