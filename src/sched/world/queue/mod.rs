//! Jobs, and the line of those that wait.

mod fold;
mod index;

use crate::model::{
    AttemptNo, AttemptState, Change, Cursor, DropIdent, EditMark, Job, JobId, Now, Outcome, Priority, RunEnd,
    TaskIx,
};
use crate::sched::plan::retry_wait;
use index::{Indexes, key};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Done jobs that stay in memory; older ones are read from the store.
const HISTORY_LEN: usize = 500;
/// Drops remembered, to recognise one that is seen again.
const DROPS_LEN: usize = 20_000;
/// Room between two neighbours in line.
const STRIDE: i64 = 1 << 16;

/// The order of the line: priority, place, submit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineKey {
    priority: Reverse<Priority>,
    position: i64,
    job: JobId,
}

/// Jobs by number and by what they wait for.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Boxed: the tree's nodes are half empty where numbers only grow.
    jobs: BTreeMap<JobId, Box<Job>>,
    ix: Indexes,
    drops: HashSet<DropIdent>,
    drop_order: VecDeque<DropIdent>,
    /// Attempts whose directory is being made ready in this process. Not durable.
    preparing: HashSet<(JobId, TaskIx, AttemptNo)>,
}

impl Queue {
    /// A job by number.
    pub fn get(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job).map(Box::as_ref)
    }

    /// Jobs that are not done, by number.
    pub fn live(&self) -> impl Iterator<Item = &Job> {
        self.ix.live.iter().filter_map(|id| self.get(*id))
    }

    /// Jobs that are neither waiting nor done, by number.
    pub fn busy(&self) -> impl Iterator<Item = &Job> {
        self.ix.busy.iter().filter_map(|id| self.get(*id))
    }

    /// How many jobs are in memory.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a job is there and not done.
    pub fn is_live(&self, job: JobId) -> bool {
        self.ix.live.contains(&job)
    }

    /// All jobs in memory, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(Box::as_ref)
    }

    /// The line, first to go first.
    pub fn line(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.ix.line.iter().filter_map(|key| self.get(key.job))
    }

    /// The numbers of those in line that nobody has paused, first to go first; then those that somebody has. No job is
    /// looked at.
    pub fn line_ids(&self) -> impl Iterator<Item = JobId> {
        let going = self.ix.line.iter().filter(|key| !self.ix.paused.contains(key));
        going.chain(&self.ix.paused).map(|key| key.job)
    }

    /// How many jobs of each owner wait.
    pub fn waiting_by_owner(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ix.waiting.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.ix.line.len()
    }

    /// The fewest GPUs that any waiting job asks for.
    pub fn least_gpus(&self) -> u32 {
        match self.ix.asks.first_key_value() {
            Some((&u32::MAX, _)) | None => 1,
            Some((&gpus, _)) => gpus,
        }
    }

    /// The next moment at which time alone lets a waiting job start, boottime milliseconds: `start_after`, or the end of
    /// the wait before a retry.
    pub fn next_moment(&self, now: &Now) -> Option<u64> {
        let retries = self.ix.retrying.iter().filter_map(|id| self.get(*id)).flat_map(|job| {
            job.tasks.iter().filter_map(|task| match &task.current().state {
                AttemptState::Queued { since, .. } if since.boot == now.boot => {
                    retry_wait(task).map(|wait| since.boottime_ms + wait.0)
                }
                _ => None,
            })
        });
        let first_start = self.ix.start_after.range((now.wall_ms + 1, JobId(0))..).next();
        first_start
            .map(|(at, _)| now.boottime_ms.saturating_add_signed(at - now.wall_ms))
            .into_iter()
            .chain(retries)
            .filter(|at| *at > now.boottime_ms)
            .min()
    }

    /// Done jobs, newest first.
    pub fn history(&self) -> impl Iterator<Item = &Job> {
        self.ix.history.iter().rev().filter_map(|job| self.get(*job))
    }

    /// Jobs of a name, oldest first.
    pub fn named(&self, name: &str) -> impl DoubleEndedIterator<Item = &Job> {
        self.ix.names.get(name).into_iter().flatten().filter_map(|job| self.get(*job))
    }

    /// Notes that an attempt is being made ready.
    pub(in crate::sched) fn begin_preparing(&mut self, job: JobId, task: TaskIx, attempt: AttemptNo) {
        self.preparing.insert((job, task, attempt));
        self.ix.unprepared.remove(&job);
    }

    /// Notes that it is not any more, whatever came of it.
    pub(in crate::sched) fn end_preparing(&mut self, job: JobId, task: TaskIx, attempt: AttemptNo) {
        if self.preparing.remove(&(job, task, attempt)) {
            self.unindex(job);
            self.index(job);
        }
    }

    /// Jobs whose attempt has to be made ready, and is not being.
    pub fn unprepared(&self) -> impl Iterator<Item = &Job> {
        self.ix.unprepared.iter().filter_map(|job| self.get(*job))
    }

    /// Jobs with a cancel that is not carried out yet.
    pub fn cancelling(&self) -> impl Iterator<Item = &Job> {
        self.ix.cancelling.iter().filter_map(|job| self.get(*job))
    }

    /// Waiting jobs that somebody edits.
    pub fn editing(&self) -> impl Iterator<Item = (&Job, &EditMark)> {
        let jobs = self.ix.editing.iter().filter_map(|job| self.get(*job));
        jobs.filter_map(|job| Some((job, job.edit.as_deref()?)))
    }

    /// Waiting jobs of which a change can be taken back, with the newest one.
    pub fn changed(&self) -> impl Iterator<Item = (&Job, &Change)> {
        let jobs = self.ix.changed.iter().filter_map(|job| self.get(*job));
        jobs.filter_map(|job| Some((job, job.changes.last()?)))
    }

    /// Whether the directory of an attempt of a job is being made ready.
    pub fn is_preparing(&self, job: JobId) -> bool {
        self.preparing.iter().any(|(of, _, _)| *of == job)
    }

    /// Jobs that wait for a name no accepted job has.
    pub fn waiting_for_name(&self, name: &str) -> Vec<JobId> {
        self.ix.unresolved.get(name).into_iter().flatten().copied().collect()
    }

    /// Jobs that wait for this one.
    pub fn dependents(&self, job: JobId) -> Vec<JobId> {
        self.ix.dependents.get(&job).into_iter().flatten().copied().collect()
    }

    /// Whether this very drop was accepted before. Its device counts only while the machine is up: the next boot may
    /// number devices differently.
    pub fn has_drop(&self, ident: &DropIdent) -> bool {
        self.drops.contains(&DropIdent { dev: 0, ..ident.clone() })
    }

    /// Remembers a drop; forgets the oldest beyond a bound.
    pub(super) fn remember_drop(&mut self, ident: DropIdent) {
        let ident = DropIdent { dev: 0, ..ident };
        if self.drops.insert(ident.clone()) {
            self.drop_order.push_back(ident);
        }
        while self.drop_order.len() > DROPS_LEN {
            if let Some(old) = self.drop_order.pop_front() {
                self.drops.remove(&old);
            }
        }
    }

    /// Puts a stored job back.
    pub(super) fn restore(&mut self, job: Job) {
        let id = job.id;
        self.jobs.insert(id, Box::new(job));
        self.index(id);
    }

    /// Whether a job is in line.
    pub fn is_in_line(&self, job: &Job) -> bool {
        self.ix.line.contains(&key(job))
    }

    /// Whether nobody else is in line than those that wait.
    pub(in crate::sched) fn check(&self) -> Result<(), String> {
        let waiting = self.live().filter(|job| job.state() == Cursor::Queued).count();
        if self.ix.line.len() == waiting {
            Ok(())
        } else {
            Err(format!("I1: {waiting} jobs wait and {} are in line", self.ix.line.len()))
        }
    }
}

impl Queue {
    /// How many wait before a job. Walks keys only, from the job to the nearer end of the line: a new one is last.
    pub fn ahead_of(&self, job: &Job) -> usize {
        let at = key(job);
        let (mut before, mut behind) = (self.ix.line.range(..at), self.ix.line.range(at..));
        let mut walked = 0;
        loop {
            match (before.next(), behind.next()) {
                (None, _) => return walked,
                (Some(_), None) => return self.ix.line.len() - walked,
                (Some(_), Some(_)) => walked += 1,
            }
        }
    }

    /// The place a job would have at the top, or at the bottom, of its owner's jobs of the same priority.
    pub fn end_position(&self, job: &Job, top: bool) -> Option<i64> {
        let mut own = self.line().filter(|other| {
            other.id != job.id && other.priority == job.priority && other.owner.uid == job.owner.uid
        });
        let neighbour = if top { own.next() } else { own.next_back() }?;
        Some(if top { neighbour.position - STRIDE } else { neighbour.position + STRIDE })
    }

    /// The line as it would be if these of its jobs were as they are here.
    pub fn line_with<'q>(&'q self, changed: &'q [Job]) -> Vec<&'q Job> {
        let mut line: Vec<&Job> =
            self.line().filter(|job| changed.iter().all(|other| other.id != job.id)).collect();
        for job in changed {
            let at = line.partition_point(|other| key(other) < key(job));
            line.insert(at, job);
        }
        line
    }

    /// The place that a job is born with.
    pub const fn born_position(job: JobId) -> i64 {
        job.0 as i64 * STRIDE
    }

    /// Whether nobody is behind a job among those of its priority.
    pub fn is_last(&self, job: &Job) -> bool {
        let behind = (std::ops::Bound::Excluded(key(job)), std::ops::Bound::Unbounded);
        self.ix.line.range(behind).next().is_none_or(|next| next.priority.0 != job.priority)
    }

    /// The next job up, or down, among its owner's jobs of the same priority.
    pub fn neighbour(&self, job: &Job, up: bool) -> Option<&Job> {
        let own = |other: &&Job| other.owner.uid == job.owner.uid;
        let key = key(job);
        let within = |other: &&LineKey| other.priority == key.priority;
        if up {
            self.ix
                .line
                .range(..key)
                .rev()
                .take_while(within)
                .filter_map(|other| self.get(other.job))
                .find(own)
        } else {
            self.ix
                .line
                .range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded))
                .take_while(within)
                .filter_map(|other| self.get(other.job))
                .find(own)
        }
    }

    /// How the run of an attempt ended, while its output is being collected.
    pub fn run_end(&self, job: JobId, task: TaskIx, attempt: AttemptNo) -> Option<RunEnd> {
        let current = self.get(job)?.task(task)?.current();
        match &current.state {
            AttemptState::Returning { end, .. } if current.number == attempt => Some(end.clone()),
            _ => None,
        }
    }

    /// The outputs that a job must return.
    pub fn required_outputs(&self, job: JobId) -> Vec<String> {
        self.get(job).map_or_else(Vec::new, |job| {
            job.spec.output.iter().filter(|item| !item.optional).map(|item| item.path.clone()).collect()
        })
    }

    /// What a dependency has come to.
    pub fn outcome_of(&self, job: JobId) -> Option<&Outcome> {
        self.get(job).and_then(|job| job.done.as_ref()).map(|(_, outcome)| outcome)
    }
}
