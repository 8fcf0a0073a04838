//! Who has how long run what: the recent run times that predictions are made of. Derived; not stored.

use crate::model::{Job, Now, Span};
use std::collections::{HashMap, VecDeque};

/// Run times remembered for one user's job name.
const RECENT: usize = 5;

/// Recent run times by owner and job name.
#[derive(Debug, Clone, Default)]
pub struct People {
    runs: HashMap<(u32, String), VecDeque<Span>>,
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

    /// Whether nothing has been run yet.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn ended(&mut self, job: &Job, ended: Now) {
        let started = job.attempts().filter_map(|(_, attempt)| attempt.state.started()).last();
        if let Some(span) = started.and_then(|started| ended.since(&started)) {
            let recent = self.runs.entry((job.owner.uid, job.spec.name.clone())).or_default();
            recent.push_back(span);
            if recent.len() > RECENT {
                recent.pop_front();
            }
        }
    }

    pub(super) fn restore(&mut self, job: &Job) {
        if let Some(ended) = job.attempts().filter_map(|(_, attempt)| attempt.state.ended()).last()
            && job.done.is_some()
        {
            self.ended(job, ended);
        }
    }
}
