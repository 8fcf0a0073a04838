//! Who has how long run what: the recent run times that predictions are made of. Derived; not stored.

use crate::model::{Failure, Job, Now, Outcome, RunEnd, Span};
use std::collections::{HashMap, VecDeque};

/// Run times remembered for one user's job name.
const RECENT: usize = 5;
/// Job names remembered; the oldest are forgotten.
const NAMES: usize = 10_000;

/// Recent run times by owner and job name.
#[derive(Debug, Clone, Default)]
pub struct People {
    runs: HashMap<(u32, String), VecDeque<Span>>,
    order: VecDeque<(u32, String)>,
}

impl People {
    /// How long a job is expected to run: the median of its namesake's recent runs, never above its limit.
    pub fn predicted(&self, job: &Job) -> Option<Span> {
        let limit = job.spec.request.limit.span();
        let recent = self.runs.get(&(job.owner.uid, job.spec.name.clone()))?;
        let mut sorted: Vec<Span> = recent.iter().copied().collect();
        sorted.sort_unstable();
        let median = *sorted.get(sorted.len() / 2)?;
        Some(limit.map_or(median, |limit| median.min(limit)))
    }

    /// Takes the run time of a run that went to its own end: one that failed, was cancelled or lost says nothing.
    pub(super) fn ended(&mut self, job: &Job, ended: Now, end: &RunEnd) {
        if matches!(end, RunEnd::Exited { code: 0 } | RunEnd::LimitReached) {
            self.took(job, ended);
        }
    }

    pub(super) fn restore(&mut self, job: &Job) {
        let whole = matches!(
            job.done,
            Some((
                _,
                Outcome::Succeeded | Outcome::LimitReached | Outcome::Failed(Failure::OutputMissing { .. })
            ))
        );
        if let Some(ended) = job.attempts().filter_map(|(_, attempt)| attempt.state.ended()).last()
            && whole
        {
            self.took(job, ended);
        }
    }

    fn took(&mut self, job: &Job, ended: Now) {
        let started = job.attempts().filter_map(|(_, attempt)| attempt.state.started()).last();
        let Some(span) = started.and_then(|started| ended.since(&started)) else { return };
        let name = (job.owner.uid, job.spec.name.clone());
        if !self.runs.contains_key(&name) {
            self.order.push_back(name.clone());
        }
        let recent = self.runs.entry(name).or_default();
        recent.push_back(span);
        if recent.len() > RECENT {
            recent.pop_front();
        }
        while self.order.len() > NAMES {
            if let Some(old) = self.order.pop_front() {
                self.runs.remove(&old);
            }
        }
    }
}
