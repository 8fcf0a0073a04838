//! What changed from one picture to the next, for those who have one of the last.

use crate::model::{JobId, Revision, Uuid};
use crate::protocol::Move;
use std::collections::{BTreeSet, VecDeque};

/// Changes that are kept, and the jobs and devices named in them. Who has an older picture gets a whole one.
const CHANGES: usize = 256;
const NAMES: usize = 16_384;

/// Which picture somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Counts the pictures that were not like the one before.
    pub(super) serial: u64,
    /// Its revision.
    pub(super) revision: Revision,
}

/// What one picture has that the one before has not.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    pub(super) rows: BTreeSet<JobId>,
    pub(super) times: BTreeSet<JobId>,
    pub(super) whys: BTreeSet<JobId>,
    pub(super) jobs: Vec<Move>,
    pub(super) history: Vec<Move>,
    pub(super) gpus: BTreeSet<Uuid>,
    pub(super) gpu_order: bool,
    pub(super) scheduler: bool,
    pub(super) meter: bool,
    pub(super) inbox: bool,
    pub(super) notices: bool,
}

impl Change {
    pub(super) fn is_empty(&self) -> bool {
        self.names() == 0
            && self.jobs.is_empty()
            && self.history.is_empty()
            && !(self.gpu_order || self.scheduler || self.meter || self.inbox || self.notices)
    }

    fn names(&self) -> usize {
        let moved = |one: &Move| match one {
            Move::Out { .. } => 1,
            Move::In { jobs, .. } | Move::All { jobs } => jobs.len(),
        };
        let moved: usize = self.jobs.iter().chain(&self.history).map(moved).sum();
        self.rows.len() + self.times.len() + self.whys.len() + self.gpus.len() + moved
    }

    fn add(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.times.extend(&other.times);
        self.whys.extend(&other.whys);
        self.gpus.extend(other.gpus.iter().cloned());
        for (to, from) in [(&mut self.jobs, &other.jobs), (&mut self.history, &other.history)] {
            if let Some(Move::All { .. }) = from.first() {
                to.clear();
            }
            to.extend(from.iter().cloned());
        }
        self.gpu_order |= other.gpu_order;
        self.scheduler |= other.scheduler;
        self.meter |= other.meter;
        self.inbox |= other.inbox;
        self.notices |= other.notices;
    }
}

/// The last changes, each with the serial of the picture that it led to.
#[derive(Debug, Default)]
pub(super) struct Journal {
    changes: VecDeque<(u64, Change)>,
    names: usize,
}

impl Journal {
    pub(super) fn push(&mut self, serial: u64, change: Change) {
        self.names += change.names();
        self.changes.push_back((serial, change));
        while self.changes.len() > CHANGES || (self.names > NAMES && self.changes.len() > 1) {
            let Some((_, old)) = self.changes.pop_front() else { return };
            self.names -= old.names();
        }
    }

    /// All that changed after the picture of that serial; `None`: nobody knows any more.
    pub(super) fn since(&self, serial: u64) -> Option<Change> {
        let mut all = Change::default();
        if self.changes.back().is_none_or(|(last, _)| *last == serial) {
            return Some(all);
        }
        if self.changes.front().is_none_or(|(first, _)| *first > serial + 1) {
            return None;
        }
        for (_, change) in self.changes.iter().filter(|(led_to, _)| *led_to > serial) {
            all.add(change);
        }
        Some(all)
    }
}
