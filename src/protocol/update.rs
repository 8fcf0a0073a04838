//! What changed between two pictures, and how it is folded into the older one. Pure.
//!
//! An update costs what has changed: rows that are new or different, where the order moved, and of everything else only
//! what is not as it was. Places in line are counted, not sent: a job that leaves the front changes them all.

use super::{GpuRow, InboxRow, JobRow, MeterSummary, Notice, SchedulerInfo, Snapshot};
use crate::model::{JobId, JobState, Now, Revision, Uuid};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What changed since another picture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Update {
    /// The revision it leads to.
    pub revision: Revision,
    /// The revision it builds on, which is that of the last picture this connection was sent. `None`: it is everything,
    /// and nothing of what was known before stays.
    pub since: Option<Revision>,
    /// When it was taken.
    pub at: Now,
    /// The scheduler itself, if that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerInfo>,
    /// Rows of jobs, waiting, running and done, that are new or not as they were. Without [`JobRow::place`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Arc<JobRow>>,
    /// Rows of which only the forecast moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<JobTimes>,
    /// Rows of which only what they wait for is another, with or without their forecast: many wait for the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whys: Vec<Why>,
    /// How the order of [`Snapshot::jobs`] changed, one move after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Move>,
    /// How the order of [`Snapshot::history`] changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Move>,
    /// Rows of devices that are new or not as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuRow>,
    /// All devices in their order, if one came, went or moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_order: Option<Vec<Uuid>>,
    /// The running meter, if it changed. While something is held it does with time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterSummary>,
    /// All files of the inbox, if one changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Vec<InboxRow>>,
    /// All notices, if one changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Vec<Notice>>,
}

/// When a waiting job is expected, or a running one to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTimes {
    /// Which.
    pub job: JobId,
    /// The turn in which it changed.
    pub revision: Revision,
    /// [`JobRow::starts_at`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    /// [`JobRow::starts_by`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_by: Option<i64>,
    /// [`JobRow::finishes_at`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finishes_at: Option<i64>,
    /// [`JobRow::late`]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// Why some jobs wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// [`JobRow::why`]
    pub why: Option<String>,
    /// The turn in which it changed.
    pub revision: Revision,
    /// Which jobs.
    pub jobs: Vec<JobId>,
}

/// One change of an order. Positions are those after the moves before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// These many go from there on.
    Out {
        /// Position.
        at: u32,
        /// How many.
        count: u32,
    },
    /// These come before what is there.
    In {
        /// Position.
        at: u32,
        /// Which.
        jobs: Vec<JobId>,
    },
    /// This is the order, whatever it was.
    All {
        /// All of them.
        jobs: Vec<JobId>,
    },
}

/// An update builds on a picture that is not there, or names a row that never arrived: the whole snapshot is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomplete;

impl Update {
    /// Whether it says nothing.
    pub const fn is_empty(&self) -> bool {
        self.since.is_some()
            && self.scheduler.is_none()
            && self.rows.is_empty()
            && self.times.is_empty()
            && self.whys.is_empty()
            && self.jobs.is_empty()
            && self.history.is_empty()
            && self.gpus.is_empty()
            && self.gpu_order.is_none()
            && self.meter.is_none()
            && self.inbox.is_none()
            && self.notices.is_none()
    }

    /// The row of a job, if it is new or not as it was.
    pub fn row(&self, job: JobId) -> Option<&JobRow> {
        self.rows.iter().find(|row| row.id == job).map(|row| &**row)
    }
}

impl JobRow {
    /// Whether it has a place in line: it waits, and nobody has paused it.
    pub const fn is_in_line(&self) -> bool {
        matches!(self.state, JobState::Queued) && (self.paused_by.is_none() || self.cancel_at.is_some())
    }
}

impl Snapshot {
    /// Takes in what changed. On `Err` it is as new as it can be, and something is missing.
    pub fn fold(&mut self, update: Update) -> Result<(), Incomplete> {
        if update.since.is_some() && update.revision < self.revision {
            return Ok(());
        }
        let Update { revision, since, at, rows, times, whys, jobs, history, gpus, gpu_order, .. } = update;
        if since.is_none() {
            self.jobs.clear();
            self.history.clear();
            self.gpus.clear();
        }
        let mut complete = since.is_none_or(|since| since == self.revision);
        complete &= self.fold_rows(rows, (&times, &whys), (&jobs, &history));
        self.number();
        complete &= fold_gpus(&mut self.gpus, gpus, gpu_order);
        self.revision = revision;
        self.at = at;
        set(&mut self.scheduler, update.scheduler);
        set(&mut self.meter, update.meter);
        set(&mut self.inbox, update.inbox);
        set(&mut self.notices, update.notices);
        if complete { Ok(()) } else { Err(Incomplete) }
    }

    /// New rows, times and orders. Whether nothing was missing.
    fn fold_rows(
        &mut self,
        rows: Vec<Arc<JobRow>>,
        (times, whys): (&[JobTimes], &[Why]),
        (jobs, history): (&[Move], &[Move]),
    ) -> bool {
        let times: HashMap<JobId, &JobTimes> = times.iter().map(|times| (times.job, times)).collect();
        let whys: HashMap<JobId, &Why> =
            whys.iter().flat_map(|why| why.jobs.iter().map(move |job| (*job, why))).collect();
        let mut rows: HashMap<JobId, Arc<JobRow>> = rows.into_iter().map(|row| (row.id, row)).collect();
        let moved: HashSet<JobId> = jobs.iter().chain(history).flat_map(Move::jobs).copied().collect();
        let mut known = HashMap::with_capacity(moved.len());
        for row in self.jobs.iter_mut().chain(&mut self.history) {
            if let Some(new) = rows.remove(&row.id) {
                *row = new;
            }
            if let Some(times) = times.get(&row.id) {
                times.write(Arc::make_mut(row));
            }
            if let Some(why) = whys.get(&row.id) {
                why.write(Arc::make_mut(row));
            }
            if moved.contains(&row.id) {
                known.insert(row.id, Arc::clone(row));
            }
        }
        known.extend(rows);
        // Both lists are arranged, whatever was missing in the first.
        let complete = arrange(&mut self.jobs, jobs, &known);
        arrange(&mut self.history, history, &known) && complete
    }

    /// Counts the places in line, which follow from the order.
    pub fn number(&mut self) {
        let mut last = 0;
        for row in &mut self.jobs {
            let place = row.is_in_line().then(|| {
                last += 1;
                last
            });
            if row.place != place {
                Arc::make_mut(row).place = place;
            }
        }
    }
}

impl JobTimes {
    fn write(&self, row: &mut JobRow) {
        row.revision = row.revision.max(self.revision);
        (row.starts_at, row.starts_by, row.finishes_at) = (self.starts_at, self.starts_by, self.finishes_at);
        row.late = self.late;
    }
}

impl Why {
    fn write(&self, row: &mut JobRow) {
        row.revision = row.revision.max(self.revision);
        row.why.clone_from(&self.why);
    }
}

impl Move {
    /// Those that it puts somewhere.
    fn jobs(&self) -> &[JobId] {
        match self {
            Self::Out { .. } => &[],
            Self::In { jobs, .. } | Self::All { jobs } => jobs,
        }
    }
}

/// Carries out moves, with the rows that come in. Whether each was there and had its place.
fn arrange(list: &mut Vec<Arc<JobRow>>, moves: &[Move], known: &HashMap<JobId, Arc<JobRow>>) -> bool {
    let mut complete = true;
    let mut find = |jobs: &[JobId]| -> Vec<Arc<JobRow>> {
        let found: Vec<_> = jobs.iter().filter_map(|job| known.get(job).cloned()).collect();
        complete &= found.len() == jobs.len();
        found
    };
    let mut misplaced = false;
    for one in moves {
        let len = list.len();
        match one {
            Move::Out { at, count } => {
                let (from, to) = (*at as usize, (*at as usize).saturating_add(*count as usize));
                misplaced |= to > len;
                list.drain(from.min(len)..to.min(len));
            }
            Move::In { at, jobs } => {
                let at = *at as usize;
                misplaced |= at > len;
                list.splice(at.min(len)..at.min(len), find(jobs));
            }
            Move::All { jobs } => *list = find(jobs),
        }
    }
    complete && !misplaced
}

/// New rows of devices and their order. Whether none was missing.
fn fold_gpus(gpus: &mut Vec<GpuRow>, new: Vec<GpuRow>, order: Option<Vec<Uuid>>) -> bool {
    let mut new: HashMap<Uuid, GpuRow> = new.into_iter().map(|row| (row.uuid.clone(), row)).collect();
    for row in &mut *gpus {
        if let Some(new) = new.remove(&row.uuid) {
            *row = new;
        }
    }
    let Some(order) = order else { return new.is_empty() };
    new.extend(gpus.drain(..).map(|row| (row.uuid.clone(), row)));
    let wanted = order.len();
    gpus.extend(order.into_iter().filter_map(|uuid| new.remove(&uuid)));
    gpus.len() == wanted
}

fn set<T>(to: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *to = new;
    }
}
