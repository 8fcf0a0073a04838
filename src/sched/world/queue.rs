//! Jobs, and the line of those that wait.

use super::ApplyError;
use crate::model::{
    Amount, Attempt, AttemptFact, AttemptNo, AttemptState, Cursor, DropIdent, Event, Generation, Job, JobId,
    Now, Outcome, Priority, RunEnd, Task, TaskIx,
};
use crate::sched::plan::retry_wait;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

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
    jobs: BTreeMap<JobId, Job>,
    line: BTreeSet<LineKey>,
    names: HashMap<String, BTreeSet<JobId>>,
    history: VecDeque<JobId>,
    unprepared: BTreeSet<JobId>,
    cancelling: BTreeSet<JobId>,
    unresolved: HashMap<String, BTreeSet<JobId>>,
    dependents: HashMap<JobId, BTreeSet<JobId>>,
    drops: HashSet<DropIdent>,
    drop_order: VecDeque<DropIdent>,
    asks: BTreeMap<u32, u32>,
    timed: BTreeSet<JobId>,
    /// Attempts whose directory is being made ready in this process. Not durable.
    pub preparing: HashSet<(JobId, TaskIx, AttemptNo)>,
}

impl Queue {
    /// A job by number.
    pub fn get(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// Jobs that are not done, by number.
    pub fn live(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| job.done.is_none())
    }

    /// The line, first to go first.
    pub fn line(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.line.iter().filter_map(|key| self.jobs.get(&key.job))
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    /// The fewest GPUs that any waiting job asks for.
    pub fn least_gpus(&self) -> u32 {
        match self.asks.first_key_value() {
            Some((&u32::MAX, _)) | None => 1,
            Some((&gpus, _)) => gpus,
        }
    }

    /// The next moment at which time alone lets a waiting job start, boottime milliseconds: `start_after`, or the end of
    /// the wait before a retry.
    pub fn next_moment(&self, now: &Now) -> Option<u64> {
        self.timed
            .iter()
            .filter_map(|id| self.jobs.get(id))
            .flat_map(|job| {
                let retries = job.tasks.iter().filter_map(|task| match &task.current().state {
                    AttemptState::Queued { since, .. } if since.boot == now.boot => {
                        retry_wait(task.current().number).map(|wait| since.boottime_ms + wait.0)
                    }
                    _ => None,
                });
                let start_after = job.spec.request.start_after_ms.filter(|at| *at > now.wall_ms);
                start_after
                    .map(|at| now.boottime_ms.saturating_add_signed(at - now.wall_ms))
                    .into_iter()
                    .chain(retries)
            })
            .filter(|at| *at > now.boottime_ms)
            .min()
    }

    /// Done jobs, newest first.
    pub fn history(&self) -> impl Iterator<Item = &Job> {
        self.history.iter().rev().filter_map(|job| self.jobs.get(job))
    }

    /// Jobs of a name, oldest first.
    pub fn named(&self, name: &str) -> impl DoubleEndedIterator<Item = &Job> {
        self.names.get(name).into_iter().flatten().filter_map(|job| self.jobs.get(job))
    }

    /// Jobs whose attempt has to be made ready.
    pub fn unprepared(&self) -> impl Iterator<Item = &Job> {
        self.unprepared.iter().filter_map(|job| self.jobs.get(job))
    }

    /// Jobs with a cancel that is not carried out yet.
    pub fn cancelling(&self) -> impl Iterator<Item = &Job> {
        self.cancelling.iter().filter_map(|job| self.jobs.get(job))
    }

    /// Jobs that wait for a name no accepted job has.
    pub fn waiting_for_name(&self, name: &str) -> Vec<JobId> {
        self.unresolved.get(name).into_iter().flatten().copied().collect()
    }

    /// Jobs that wait for this one.
    pub fn dependents(&self, job: JobId) -> Vec<JobId> {
        self.dependents.get(&job).into_iter().flatten().copied().collect()
    }

    /// Whether this very drop was accepted before.
    pub fn has_drop(&self, ident: &DropIdent) -> bool {
        self.drops.contains(ident)
    }

    /// Remembers a drop; forgets the oldest beyond a bound.
    pub(super) fn remember_drop(&mut self, ident: DropIdent) {
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
        self.jobs.insert(id, job);
        self.index(id);
    }

    /// Folds an event that concerns a job.
    pub(super) fn apply(&mut self, event: &Event, at: Now) -> Result<(), ApplyError> {
        match event {
            Event::JobAccepted { job, .. } => {
                if let Some(new) = accepted(event, at) {
                    self.jobs.insert(*job, new);
                    self.index(*job);
                }
                Ok(())
            }
            Event::DependencyResolved { job, name, on } => self.change(*job, |job| {
                for dependency in job.after.iter_mut().filter(|dependency| dependency.name == *name) {
                    dependency.job = Some(*on);
                }
                Ok(())
            }),
            Event::AttemptPrepared { job, task, attempt } => {
                self.preparing.remove(&(*job, *task, *attempt));
                self.advance(*job, *task, *attempt, AttemptFact::Prepared)
            }
            Event::LeaseGranted { lease, job, task, attempt, .. } => {
                self.advance(*job, *task, *attempt, AttemptFact::Granted { lease: *lease })
            }
            Event::AttemptStarted { job, task, attempt, started, .. } => {
                self.advance(*job, *task, *attempt, AttemptFact::Started { at: *started })
            }
            Event::AttemptEnded {
                job,
                task,
                attempt,
                ended,
                end,
                peak_memory,
                mean_utilisation,
                notes,
                ..
            } => self.change_attempt(*job, *task, *attempt, |row| {
                row.peak_memory = *peak_memory;
                row.mean_utilisation = *mean_utilisation;
                row.notes.extend(notes.iter().cloned());
                row.state.next(AttemptFact::Ended { at: *ended, end: end.clone() })
            }),
            Event::AttemptReturned { job, task, attempt, outputs, outcome, notes } => {
                self.change_attempt(*job, *task, *attempt, |row| {
                    row.outputs.clone_from(outputs);
                    row.notes.extend(notes.iter().cloned());
                    row.state.next(AttemptFact::Collected { outcome: outcome.clone() })
                })
            }
            Event::AttemptReleased { job, task, attempt } => {
                self.advance(*job, *task, *attempt, AttemptFact::Released { at })
            }
            Event::AttemptDropped { job, task, attempt, outcome } => {
                self.preparing.remove(&(*job, *task, *attempt));
                self.advance(*job, *task, *attempt, AttemptFact::Dropped { outcome: outcome.clone(), at })
            }
            Event::RetryQueued { job, task, attempt, prepared } => self.change(*job, |row| {
                let task = row.tasks.get_mut(task.0 as usize).ok_or(ApplyError::NoAttempt(*job))?;
                task.attempts.push(Attempt::queued(*attempt, at, *prepared));
                Ok(())
            }),
            Event::JobDone { job, outcome } => {
                self.change(*job, |row| {
                    row.done = Some((at, outcome.clone()));
                    Ok(())
                })?;
                self.trim_history();
                Ok(())
            }
            Event::CancelRequested { job, request } => self.change(*job, |row| {
                row.cancel = Some(request.clone());
                Ok(())
            }),
            Event::CancelDue { job } => self.change(*job, |row| {
                if let Some(cancel) = &mut row.cancel {
                    cancel.carried_out = true;
                }
                Ok(())
            }),
            Event::CancelWithdrawn { job } => self.change(*job, |row| {
                row.cancel = None;
                Ok(())
            }),
            Event::PriorityChanged { job, priority } => self.change(*job, |row| {
                row.priority = *priority;
                Ok(())
            }),
            Event::PositionChanged { job, position, ranked } => self.change(*job, |row| {
                row.position = *position;
                row.ranked |= *ranked;
                Ok(())
            }),
            Event::JobPaused { job, by } => self.change(*job, |row| {
                row.paused = Some(by.clone());
                Ok(())
            }),
            Event::JobResumed { job } => self.change(*job, |row| {
                row.paused = None;
                Ok(())
            }),
            Event::SubmissionAccepted { .. }
            | Event::LeaseEnded { .. }
            | Event::LeaseReturned { .. }
            | Event::DeviceChanged { .. } => Ok(()),
        }
    }

    fn advance(
        &mut self,
        job: JobId,
        task: TaskIx,
        attempt: AttemptNo,
        fact: AttemptFact,
    ) -> Result<(), ApplyError> {
        self.change_attempt(job, task, attempt, |row| row.state.next(fact))
    }

    fn change_attempt(
        &mut self,
        id: JobId,
        task: TaskIx,
        attempt: AttemptNo,
        next: impl FnOnce(&mut Attempt) -> Result<crate::model::AttemptState, crate::model::TransitionError>,
    ) -> Result<(), ApplyError> {
        self.change(id, |job| {
            let row = job
                .tasks
                .get_mut(task.0 as usize)
                .and_then(|task| task.attempts.iter_mut().find(|row| row.number == attempt))
                .ok_or(ApplyError::NoAttempt(id))?;
            row.state = next(row).map_err(|source| ApplyError::Transition { job: id, source })?;
            Ok(())
        })
    }

    /// Changes a job and keeps every index right. The generation counts the change.
    fn change(
        &mut self,
        id: JobId,
        change: impl FnOnce(&mut Job) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        self.unindex(id);
        let job = self.jobs.get_mut(&id).ok_or(ApplyError::NoJob(id))?;
        let result = change(job);
        job.generation = job.generation.next();
        self.index(id);
        result
    }

    fn index(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        self.names.entry(job.spec.name.clone()).or_default().insert(id);
        if job.done.is_some() {
            self.history.push_back(id);
            return;
        }
        let state = job.state();
        if state == Cursor::Queued {
            self.line.insert(key(job));
            *self.asks.entry(asked(job)).or_default() += 1;
            if job.spec.request.start_after_ms.is_some() || job.attempts().count() > job.tasks.len() {
                self.timed.insert(id);
            }
            if job.tasks.iter().any(|task| {
                matches!(task.current().state, crate::model::AttemptState::Queued { prepared: false, .. })
            }) {
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

    fn unindex(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if self.line.remove(&key(job))
            && let Some(count) = self.asks.get_mut(&asked(job))
        {
            *count -= 1;
            if *count == 0 {
                self.asks.remove(&asked(job));
            }
        }
        self.timed.remove(&id);
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

    fn trim_history(&mut self) {
        while self.history.len() > HISTORY_LEN {
            // A job that somebody still waits for stays.
            let Some(old) = self.history.pop_front() else { return };
            if self.dependents.get(&old).is_some_and(|waiting| !waiting.is_empty()) {
                self.history.push_back(old);
                return;
            }
            if let Some(job) = self.jobs.remove(&old) {
                remove_from(&mut self.names, &job.spec.name, old);
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (id, job) in &self.jobs {
            let state = job.state();
            if job.tasks.is_empty() {
                return Err(format!("job {id} has no task"));
            }
            if self.line.contains(&key(job)) != (state == Cursor::Queued) {
                return Err(format!("job {id} is {} and its place in line does not agree", state.word()));
            }
            if job.done.is_some()
                && job.tasks.iter().any(|task| task.current().state.cursor() != Cursor::Done)
            {
                return Err(format!("job {id} is done with a live attempt"));
            }
            for task in &job.tasks {
                let live =
                    task.attempts.iter().filter(|attempt| attempt.state.cursor() != Cursor::Done).count();
                if live > 1 {
                    return Err(format!("job {id} task {} has {live} live attempts", task.ix));
                }
            }
        }
        if self.line.len() > self.jobs.len() {
            return Err("the line is longer than the jobs".to_owned());
        }
        Ok(())
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

const fn key(job: &Job) -> LineKey {
    LineKey { priority: Reverse(job.priority), position: job.position, job: job.id }
}

fn accepted(event: &Event, at: Now) -> Option<Job> {
    let Event::JobAccepted {
        job,
        submission,
        owner,
        origin,
        spec,
        warnings,
        after,
        retry_of,
        prepared,
        paused,
    } = event
    else {
        return None;
    };
    Some(Job {
        id: *job,
        submission: *submission,
        spec: spec.clone(),
        owner: owner.clone(),
        origin: origin.clone(),
        submitted: at,
        generation: Generation(1),
        priority: spec.request.priority,
        position: job.0 as i64 * STRIDE,
        ranked: false,
        paused: paused.clone(),
        cancel: None,
        retry_of: *retry_of,
        warnings: warnings.clone(),
        after: after.clone(),
        tasks: vec![Task { ix: TaskIx(0), attempts: vec![Attempt::queued(AttemptNo(1), at, *prepared)] }],
        done: None,
    })
}

impl Queue {
    /// The place a job would have at the top, or at the bottom, of its owner's jobs of the same priority.
    pub fn end_position(&self, job: &Job, top: bool) -> Option<i64> {
        let mut own = self.line().filter(|other| {
            other.id != job.id && other.priority == job.priority && other.owner.uid == job.owner.uid
        });
        let neighbour = if top { own.next() } else { own.next_back() }?;
        Some(if top { neighbour.position - STRIDE } else { neighbour.position + STRIDE })
    }

    /// The next job up, or down, among its owner's jobs of the same priority.
    pub fn neighbour(&self, job: &Job, up: bool) -> Option<&Job> {
        let own = |other: &&Job| other.owner.uid == job.owner.uid;
        let key = key(job);
        let within = |other: &&LineKey| other.priority == key.priority;
        if up {
            self.line
                .range(..key)
                .rev()
                .take_while(within)
                .filter_map(|other| self.jobs.get(&other.job))
                .find(own)
        } else {
            self.line
                .range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded))
                .take_while(within)
                .filter_map(|other| self.jobs.get(&other.job))
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
