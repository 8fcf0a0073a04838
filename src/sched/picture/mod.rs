//! The picture that screens get, kept up to date at the cost of what changed. Pure.
//!
//! What changed is known from the events of a turn, from the front of the line, which is worked out anew each time, and
//! from the jobs whose time has come. All other rows are as they were. A subscriber has one of the last pictures and is
//! told what came since; to the wire goes nothing else.

mod journal;
mod order;

pub use journal::Mark;

use super::view::{self, Frame, MeterBook, Outlook};
use super::world::World;
use crate::model::{HostReading, JobId, Revision, Uuid};
use crate::protocol::{
    GpuRow, InboxRow, JobRow, JobTimes, MeterSummary, Move, Notice, SchedulerInfo, Snapshot, Update, Why,
};
use journal::{Change, Journal};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Done jobs in a picture.
pub const HISTORY: usize = 200;
/// A forecast that moved by less is the same: clocks are read to the millisecond, and screens show minutes.
const SAME_MS: i64 = 1_000;

/// What a picture has besides rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Margin {
    /// The scheduler itself.
    pub scheduler: SchedulerInfo,
    /// Files seen in the inbox.
    pub inbox: Vec<InboxRow>,
    /// What an operator must know.
    pub notices: Vec<Notice>,
}

/// What is shown, and what changed lately.
#[derive(Debug, Default)]
pub struct Picture {
    /// Without places in line.
    rows: HashMap<JobId, Arc<JobRow>>,
    order: Vec<JobId>,
    history: Vec<JobId>,
    gpus: Vec<GpuRow>,
    meter: MeterSummary,
    margin: Margin,
    at: crate::model::Now,
    mark: Mark,
    /// The revision of the world that was last looked at.
    seen: Option<Revision>,
    journal: Journal,
    book: MeterBook,
    /// Jobs that events have changed since.
    dirty: BTreeSet<JobId>,
    /// The front of the line, as it was.
    front: Vec<JobId>,
    /// Jobs further down that time alone changes, and when: wall milliseconds.
    restless: BTreeSet<(i64, JobId)>,
    dues: HashMap<JobId, i64>,
    today: i64,
    /// What every row depends on.
    basis: Basis,
}

/// What the rows of all jobs depend on.
#[derive(Debug, Clone, PartialEq, Default)]
struct Basis {
    gpus: Vec<(Uuid, u32)>,
    host: Option<HostReading>,
    held_up: Option<String>,
}

impl Picture {
    /// Notes which jobs the turn has changed, before that is forgotten.
    pub fn touch(&mut self, world: &World) {
        if self.seen.is_none() {
            return;
        }
        for id in &world.touched.jobs {
            self.dirty.insert(*id);
            if world.queue.get(*id).is_none_or(|job| job.done.is_some()) {
                self.dirty.extend(world.queue.dependents(*id));
            }
        }
    }

    /// Forgets everything: nobody looks any more.
    pub fn forget(&mut self) {
        let Mark { serial, revision } = self.mark;
        // A picture of before is never taken for one of the last.
        *self = Self { mark: Mark { serial: serial + 2, revision }, ..Self::default() };
    }

    /// Which picture this is.
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// The revision of the world that it shows.
    pub const fn seen(&self) -> Option<Revision> {
        self.seen
    }

    /// Brings it up to date.
    pub fn look(&mut self, world: &World, frame: &Frame<'_>, margin: Margin) {
        let revision = world.counters.revision;
        let mut outlook = view::front(world, &frame.now);
        let order = view::order_of_ids(world);
        let history: Vec<JobId> = world.queue.history().take(HISTORY).map(|job| job.id).collect();
        let mut change = Change {
            jobs: order::moves(&self.order, &order),
            history: order::moves(&self.history, &history),
            ..Change::default()
        };
        let stale = self.stale(world, frame, &outlook, (&order, &history), &change);
        for id in stale {
            self.row(world, id, &mut outlook, frame, revision, &mut change);
        }
        self.keep_listed(world, &history, &change);
        self.front = outlook.line().to_vec();
        (self.order, self.history) = (order, history);
        self.rest(world, frame, margin, &mut change);
        (self.at, self.seen) = (frame.now, Some(revision));
        if !change.is_empty() {
            self.mark = Mark { serial: self.mark.serial + 1, revision };
            self.journal.push(self.mark.serial, change);
        }
    }

    /// Jobs whose rows are worked out anew.
    fn stale(
        &mut self,
        world: &World,
        frame: &Frame<'_>,
        outlook: &Outlook,
        (order, history): (&[JobId], &[JobId]),
        change: &Change,
    ) -> BTreeSet<JobId> {
        let basis = Basis::of(world);
        let mut stale = std::mem::take(&mut self.dirty);
        if self.seen.is_none() || basis != self.basis {
            self.basis = basis;
            stale.extend(order.iter().chain(history));
            return stale;
        }
        stale.extend(world.queue.busy().map(|job| job.id));
        stale.extend(outlook.line().iter().chain(&self.front));
        let another_day = self.today != frame.today_began;
        let due = self.restless.iter().take_while(|(at, _)| another_day || *at <= frame.now.wall_ms);
        stale.extend(due.map(|(_, id)| *id));
        for one in change.jobs.iter().chain(&change.history) {
            if let Move::In { jobs, .. } | Move::All { jobs } = one {
                stale.extend(jobs.iter().filter(|id| !self.rows.contains_key(id)));
            }
        }
        stale
    }

    fn row(
        &mut self,
        world: &World,
        id: JobId,
        outlook: &mut Outlook,
        frame: &Frame<'_>,
        revision: Revision,
        change: &mut Change,
    ) {
        if let Some(due) = self.dues.remove(&id) {
            self.restless.remove(&(due, id));
        }
        let Some(job) = world.queue.get(id) else {
            self.rows.remove(&id);
            return;
        };
        outlook.look_at(world, job, &frame.now);
        if let Some(due) = outlook.due(job, frame.now.wall_ms) {
            self.dues.insert(id, due);
            self.restless.insert((due, id));
        }
        let mut row = view::row(world, job, outlook, frame);
        row.place = None;
        if let Some(old) = self.rows.get(&id) {
            settle_times(&mut row, old);
            row.revision = old.revision;
            if **old == row {
                return;
            }
            match light(&row, old) {
                Some((times, why)) => {
                    change.times.extend(times.then_some(id));
                    change.whys.extend(why.then_some(id));
                }
                None => drop(change.rows.insert(id)),
            }
        } else {
            change.rows.insert(id);
        }
        row.revision = revision;
        self.rows.insert(id, Arc::new(row));
    }

    /// Rows of done jobs that are in no list go.
    fn keep_listed(&mut self, world: &World, history: &[JobId], change: &Change) {
        let listed: HashSet<&JobId> = history.iter().collect();
        let gone = |id: &&JobId| !listed.contains(id) && !world.queue.is_live(**id);
        for id in self.history.iter().chain(&change.rows).filter(gone) {
            self.rows.remove(id);
        }
    }

    /// Everything but jobs.
    fn rest(&mut self, world: &World, frame: &Frame<'_>, margin: Margin, change: &mut Change) {
        let gpus = view::gpus(world, frame);
        let same_order = gpus.iter().map(|row| &row.uuid).eq(self.gpus.iter().map(|row| &row.uuid));
        change.gpu_order = !same_order;
        let mut old: HashMap<&Uuid, &GpuRow> = self.gpus.iter().map(|row| (&row.uuid, row)).collect();
        let new = gpus.iter().filter(|row| old.remove(&row.uuid) != Some(*row));
        change.gpus.extend(new.map(|row| row.uuid.clone()));
        self.gpus = gpus;
        let meter = self.book.look(world, frame);
        let first = self.seen.is_none();
        change.meter = first || meter != self.meter;
        change.scheduler = first || margin.scheduler != self.margin.scheduler;
        change.inbox = first || margin.inbox != self.margin.inbox;
        change.notices = first || margin.notices != self.margin.notices;
        (self.meter, self.margin, self.today) = (meter, margin, frame.today_began);
    }

    /// Everything.
    pub fn snapshot(&self) -> Snapshot {
        let rows = |ids: &[JobId]| ids.iter().filter_map(|id| self.rows.get(id).cloned()).collect();
        let mut snapshot = Snapshot {
            revision: self.mark.revision,
            at: self.at,
            scheduler: self.margin.scheduler.clone(),
            jobs: rows(&self.order),
            history: rows(&self.history),
            gpus: self.gpus.clone(),
            meter: self.meter.clone(),
            inbox: self.margin.inbox.clone(),
            notices: self.margin.notices.clone(),
        };
        snapshot.number();
        snapshot
    }

    /// What somebody who has that picture does not have yet: everything, if it is none of the last. `None`: nothing.
    pub fn since(&self, mark: Option<Mark>) -> Option<Update> {
        let Some((mark, change)) = mark.and_then(|mark| Some((mark, self.journal.since(mark.serial)?)))
        else {
            return Some(self.whole());
        };
        if change.is_empty() {
            return None;
        }
        let rows = change.rows.iter().filter_map(|id| self.rows.get(id).cloned()).collect();
        let times = change.times.difference(&change.rows);
        Some(Update {
            revision: self.mark.revision,
            since: Some(mark.revision),
            at: self.at,
            scheduler: change.scheduler.then(|| self.margin.scheduler.clone()),
            rows,
            times: times.filter_map(|id| self.rows.get(id)).map(|row| times_of(row)).collect(),
            whys: whys(
                change.whys.difference(&change.rows).filter_map(|id| self.rows.get(id)).map(|row| &**row),
            ),
            jobs: change.jobs,
            history: change.history,
            gpus: self.gpus.iter().filter(|row| change.gpus.contains(&row.uuid)).cloned().collect(),
            gpu_order: change.gpu_order.then(|| self.gpus.iter().map(|row| row.uuid.clone()).collect()),
            meter: change.meter.then(|| self.meter.clone()),
            inbox: change.inbox.then(|| self.margin.inbox.clone()),
            notices: change.notices.then(|| self.margin.notices.clone()),
        })
    }

    fn whole(&self) -> Update {
        let order = |jobs: &[JobId]| vec![Move::All { jobs: jobs.to_vec() }];
        Update {
            revision: self.mark.revision,
            since: None,
            at: self.at,
            scheduler: Some(self.margin.scheduler.clone()),
            rows: self
                .order
                .iter()
                .chain(&self.history)
                .filter_map(|id| self.rows.get(id).cloned())
                .collect(),
            times: Vec::new(),
            whys: Vec::new(),
            jobs: order(&self.order),
            history: order(&self.history),
            gpus: self.gpus.clone(),
            gpu_order: Some(self.gpus.iter().map(|row| row.uuid.clone()).collect()),
            meter: Some(self.meter.clone()),
            inbox: Some(self.margin.inbox.clone()),
            notices: Some(self.margin.notices.clone()),
        }
    }
}

/// A snapshot as an update that is everything.
pub fn whole(snapshot: Snapshot) -> Update {
    let order = |rows: &[Arc<JobRow>]| vec![Move::All { jobs: rows.iter().map(|row| row.id).collect() }];
    Update {
        revision: snapshot.revision,
        since: None,
        at: snapshot.at,
        scheduler: Some(snapshot.scheduler),
        jobs: order(&snapshot.jobs),
        history: order(&snapshot.history),
        rows: snapshot.jobs.into_iter().chain(snapshot.history).collect(),
        times: Vec::new(),
        whys: Vec::new(),
        gpu_order: Some(snapshot.gpus.iter().map(|row| row.uuid.clone()).collect()),
        gpus: snapshot.gpus,
        meter: Some(snapshot.meter),
        inbox: Some(snapshot.inbox),
        notices: Some(snapshot.notices),
    }
}

impl Basis {
    fn of(world: &World) -> Self {
        let listed = world.pool.devices().filter_map(|(_, device)| device.gpu.as_ref());
        Self {
            gpus: listed.map(|gpu| (gpu.uuid.clone(), gpu.index)).collect(),
            host: world.pool.host,
            held_up: world.held_up.clone(),
        }
    }
}

/// A forecast that is as good as the old one is the old one.
fn settle_times(row: &mut JobRow, old: &JobRow) {
    let pairs = [
        (&mut row.starts_at, old.starts_at),
        (&mut row.starts_by, old.starts_by),
        (&mut row.finishes_at, old.finishes_at),
    ];
    for (new, old) in pairs {
        if new.zip(old).is_some_and(|(new, old)| new.abs_diff(old) < SAME_MS.unsigned_abs()) {
            *new = old;
        }
    }
}

/// Whether the forecast is new, and whether why it waits is; `None`: something else is.
fn light(row: &JobRow, old: &JobRow) -> Option<(bool, bool)> {
    let times = |row: &JobRow| (row.starts_at, row.starts_by, row.finishes_at, row.late);
    let as_before = JobRow {
        starts_at: old.starts_at,
        starts_by: old.starts_by,
        finishes_at: old.finishes_at,
        late: old.late,
        why: old.why.clone(),
        ..row.clone()
    };
    (as_before == *old).then(|| (times(row) != times(old), row.why != old.why))
}

/// The same words are said once.
fn whys<'a>(rows: impl Iterator<Item = &'a JobRow>) -> Vec<Why> {
    let mut by_words: BTreeMap<(&Option<String>, Revision), Vec<JobId>> = BTreeMap::new();
    for row in rows {
        by_words.entry((&row.why, row.revision)).or_default().push(row.id);
    }
    by_words.into_iter().map(|((why, revision), jobs)| Why { why: why.clone(), revision, jobs }).collect()
}

const fn times_of(row: &JobRow) -> JobTimes {
    JobTimes {
        job: row.id,
        revision: row.revision,
        starts_at: row.starts_at,
        starts_by: row.starts_by,
        finishes_at: row.finishes_at,
        late: row.late,
    }
}
