//! What events do to jobs.

use super::Queue;
use crate::model::{
    Attempt, AttemptFact, AttemptNo, AttemptState, Changed, Cursor, EditMark, Event, Generation, Job, JobId,
    Now, Requested, Task, TaskIx, TransitionError,
};
use crate::sched::world::ApplyError;

/// So many changes of a job can be taken back, one after another.
const CHANGES_LEN: usize = 8;

impl Queue {
    /// Folds an event that concerns a job. An event that does not fit changes nothing.
    pub(in crate::sched::world) fn apply(&mut self, event: &Event, at: Now) -> Result<(), ApplyError> {
        if let Some(Step { job, task, attempt, fact }) = step_of(event, at) {
            self.change(job, |row| {
                let row = row
                    .tasks
                    .get_mut(task.0 as usize)
                    .and_then(|task| task.attempts.iter_mut().find(|row| row.number == attempt))
                    .ok_or(ApplyError::NoAttempt(job))?;
                row.state = row.state.next(fact).map_err(|source| ApplyError::Transition { job, source })?;
                note(row, event);
                Ok(())
            })?;
            self.preparing.remove(&(job, task, attempt));
            return Ok(());
        }
        match event {
            Event::JobAccepted { job, .. } => {
                if let Some(new) = accepted(event, at) {
                    self.jobs.insert(*job, Box::new(new));
                    self.index(*job);
                }
                Ok(())
            }
            Event::AttemptNoted { job, task, attempt, note } => self.note(*job, *task, *attempt, note),
            Event::RetryQueued { job, task, attempt, prepared } => self.change(*job, |row| {
                let id = row.id;
                let task = row.tasks.get_mut(task.0 as usize).ok_or(ApplyError::NoAttempt(id))?;
                let last = task.current();
                if last.state.cursor() != Cursor::Done || last.number.next() != *attempt {
                    let source = TransitionError { state: last.state.cursor().word(), fact: "tried again" };
                    return Err(ApplyError::Transition { job: id, source });
                }
                task.attempts.push(Attempt::queued(*attempt, at, *prepared));
                Ok(())
            }),
            Event::JobDone { job, outcome } => {
                self.change(*job, |row| {
                    let live = row.tasks.iter().find(|task| task.current().state.cursor() != Cursor::Done);
                    if let (Some(task), _) | (None, Some(task)) =
                        (live, row.done.as_ref().and(row.tasks.first()))
                    {
                        let state = task.current().state.cursor().word();
                        let source = TransitionError { state, fact: "the end of its job" };
                        return Err(ApplyError::Transition { job: row.id, source });
                    }
                    row.done = Some((at, outcome.clone()));
                    Ok(())
                })?;
                self.trim_history();
                Ok(())
            }
            _ => self.apply_wish(event),
        }
    }

    /// Remembers something about an attempt. No decision about the job gets old by that: its generation stays.
    fn note(&mut self, job: JobId, task: TaskIx, attempt: AttemptNo, note: &str) -> Result<(), ApplyError> {
        self.jobs
            .get_mut(&job)
            .ok_or(ApplyError::NoJob(job))?
            .tasks
            .get_mut(task.0 as usize)
            .and_then(|task| task.attempts.iter_mut().find(|row| row.number == attempt))
            .ok_or(ApplyError::NoAttempt(job))?
            .notes
            .push(note.to_owned());
        Ok(())
    }

    /// What people and other jobs change about a job, whatever its attempts do.
    fn apply_wish(&mut self, event: &Event) -> Result<(), ApplyError> {
        let wish = |row: &mut Job| match event {
            Event::DependencyResolved { name, on, .. } => {
                for dependency in row.after.iter_mut().filter(|dependency| dependency.name == *name) {
                    dependency.job = Some(*on);
                }
            }
            Event::CancelRequested { request, .. } => row.cancel = Some(request.clone()),
            Event::CancelDue { .. } => {
                if let Some(cancel) = &mut row.cancel {
                    cancel.carried_out = true;
                }
            }
            Event::CancelWithdrawn { .. } => row.cancel = None,
            Event::PriorityChanged { priority, .. } => row.priority = *priority,
            Event::PositionChanged { position, ranked, .. } => {
                row.position = *position;
                row.ranked |= *ranked;
            }
            Event::JobPaused { by, .. } => row.paused = Some(by.clone()),
            Event::JobResumed { .. } => row.paused = None,
            Event::EditBegan { by, until, .. } => {
                let (by, until) = (by.clone(), *until);
                // One that nobody else is told: who knows it has made the mark.
                let (generation, priority) = (row.generation.next(), row.priority);
                row.generation = generation;
                row.edit = Some(Box::new(EditMark { by, until, generation, priority }));
            }
            Event::EditEnded { .. } => row.edit = None,
            Event::ChangeKept { change, .. } => {
                if row.changes.len() == CHANGES_LEN {
                    row.changes.remove(0);
                }
                row.changes.push((**change).clone());
            }
            Event::ChangeUndone { .. } => {
                if let Some(change) = row.changes.pop() {
                    take_back(row, change.what);
                }
            }
            _ => {}
        };
        match event {
            Event::DependencyResolved { job, .. }
            | Event::CancelRequested { job, .. }
            | Event::CancelDue { job }
            | Event::CancelWithdrawn { job }
            | Event::PriorityChanged { job, .. }
            | Event::PositionChanged { job, .. }
            | Event::JobPaused { job, .. }
            | Event::JobResumed { job }
            | Event::EditBegan { job, .. }
            | Event::EditEnded { job }
            | Event::ChangeKept { job, .. }
            | Event::ChangeUndone { job } => self.change(*job, |row| {
                wish(row);
                Ok(())
            }),
            Event::JobEdited { job, request, prepared } => self.edit(*job, request, *prepared),
            _ => Ok(()),
        }
    }

    /// What a job asks is replaced; where it waits may be.
    fn edit(&mut self, job: JobId, request: &Requested, prepared: bool) -> Result<(), ApplyError> {
        let name = self.get(job).map(|row| row.spec.name.clone());
        self.change(job, |row| {
            let last = row.tasks.iter_mut().find_map(|task| task.attempts.last_mut());
            let last = last.ok_or(ApplyError::NoAttempt(job))?;
            let AttemptState::Queued { prepared: ready, .. } = &mut last.state else {
                let source = TransitionError { state: last.state.cursor().word(), fact: "edited" };
                return Err(ApplyError::Transition { job, source });
            };
            *ready = prepared;
            let Requested { spec, warnings, after, priority, position, ranked, file } = request.clone();
            (row.spec, row.warnings, row.after, row.file) = (spec, warnings, after, file);
            (row.priority, row.position, row.ranked) = (priority, position, ranked);
            row.edit = None;
            Ok(())
        })?;
        if let Some(name) = name.filter(|name| self.get(job).is_some_and(|row| row.spec.name != *name)) {
            self.renamed(job, &name);
        }
        Ok(())
    }

    /// Changes a job and keeps every index right. The generation counts the change. `change` fails before it changes.
    fn change(
        &mut self,
        id: JobId,
        change: impl FnOnce(&mut Job) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        self.unindex(id);
        let job = self.jobs.get_mut(&id).ok_or(ApplyError::NoJob(id))?;
        let result = change(job);
        if result.is_ok() {
            job.generation = job.generation.next();
            if job.state() != Cursor::Queued {
                // What was wished for while it waited is over.
                job.changes = Vec::new();
                job.edit = None;
            }
        }
        self.index(id);
        result
    }
}

/// What a change made of a job is as it was before. A request is replaced by an event of its own.
fn take_back(row: &mut Job, what: Changed) {
    match what {
        Changed::Priority { old, .. } => row.priority = old,
        Changed::Place { old, .. } => (row.position, row.ranked) = (old.at, old.ranked),
        Changed::Paused => row.paused = None,
        Changed::Resumed { paused_by } => row.paused = Some(paused_by),
        Changed::Request { .. } => {}
    }
}

/// A step of one attempt along the life line.
struct Step {
    job: JobId,
    task: TaskIx,
    attempt: AttemptNo,
    fact: AttemptFact,
}

fn step_of(event: &Event, at: Now) -> Option<Step> {
    let (job, task, attempt, fact) = match event {
        Event::AttemptPrepared { job, task, attempt } => (job, task, attempt, AttemptFact::Prepared),
        Event::LeaseGranted { lease, job, task, attempt, .. } => {
            (job, task, attempt, AttemptFact::Granted { lease: *lease })
        }
        Event::AttemptStarted { job, task, attempt, started, .. } => {
            (job, task, attempt, AttemptFact::Started { at: *started })
        }
        Event::AttemptEnded { job, task, attempt, ended, end, .. } => {
            (job, task, attempt, AttemptFact::Ended { at: *ended, end: end.clone() })
        }
        Event::AttemptReturned { job, task, attempt, outcome, .. } => {
            (job, task, attempt, AttemptFact::Collected { outcome: outcome.clone() })
        }
        Event::AttemptReleased { job, task, attempt } => (job, task, attempt, AttemptFact::Released { at }),
        Event::AttemptDropped { job, task, attempt, outcome } => {
            (job, task, attempt, AttemptFact::Dropped { outcome: outcome.clone(), at })
        }
        _ => return None,
    };
    Some(Step { job: *job, task: *task, attempt: *attempt, fact })
}

/// What an event says about an attempt besides its state.
fn note(row: &mut Attempt, event: &Event) {
    match event {
        Event::AttemptStarted { enforcement, .. } => row.enforcement.clone_from(enforcement),
        Event::AttemptEnded { peak_memory, mean_utilisation, peak_gpu_memory, notes, .. } => {
            row.peak_memory = *peak_memory;
            row.mean_utilisation = *mean_utilisation;
            row.peak_gpu_memory = *peak_gpu_memory;
            row.notes.extend(notes.iter().cloned());
        }
        Event::AttemptReturned { outputs, notes, .. } => {
            row.outputs.clone_from(outputs);
            row.notes.extend(notes.iter().cloned());
        }
        _ => {}
    }
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
        file: None,
        owner: owner.clone(),
        origin: origin.clone(),
        submitted: at,
        generation: Generation(1),
        priority: spec.request.priority,
        position: Queue::born_position(*job),
        ranked: false,
        paused: paused.clone(),
        edit: None,
        changes: Vec::new(),
        cancel: None,
        retry_of: *retry_of,
        warnings: warnings.clone(),
        after: after.clone(),
        tasks: vec![Task { ix: TaskIx(0), attempts: vec![Attempt::queued(AttemptNo(1), at, *prepared)] }],
        done: None,
    })
}
