//! The event log, walked from its first event: every job's events are a path of the state machine, every lease is opened
//! once and closed once, and the tables say what the events come to.
//!
//! The rules are written down here a second time, from the documents, not taken from the program.

use super::Findings;
use super::evidence::{After, Evidence, Fact, Held, Logged, Moment, word};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Queued,
    Renting(u64),
    Running(u64),
    Returning(u64),
    Releasing(u64),
    Done,
}

/// One attempt.
#[derive(Debug, Clone)]
pub(crate) struct AttemptLife {
    pub(crate) step: Step,
    pub(crate) lease: Option<u64>,
    pub(crate) started: Option<Moment>,
    pub(crate) end: Option<Value>,
    pub(crate) outcome: Option<Value>,
}

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct JobLife {
    pub(crate) name: String,
    pub(crate) submission: u64,
    pub(crate) after: Vec<After>,
    /// The job that it is tried again for by hand.
    pub(crate) retry_of: Option<u64>,
    pub(crate) attempts: BTreeMap<(u32, u32), AttemptLife>,
    pub(crate) done: Option<(Moment, Value)>,
    pub(crate) cancelling: bool,
    /// Somebody edits what it asks.
    pub(crate) edited: bool,
    pub(crate) outputs: Vec<super::evidence::Output>,
    /// The attempt that they came back from: a later one may have been dropped while it waited.
    pub(crate) outputs_of: u32,
}

/// One lease, from its events.
#[derive(Debug, Clone)]
pub(crate) struct LeaseLife {
    pub(crate) job: u64,
    pub(crate) task: u32,
    pub(crate) attempt: u32,
    pub(crate) held: Held,
    pub(crate) token: String,
    pub(crate) granted: Moment,
    /// When it was written that its attempt had started.
    pub(crate) began: Option<Moment>,
    /// When it ended, who says so, and when that was written.
    pub(crate) ended: Option<(Moment, String, Moment)>,
    pub(crate) waived: bool,
    pub(crate) suspended_ms: u64,
    pub(crate) returned: Option<(Moment, Value)>,
}

/// One change of a device, as the log has it.
#[derive(Debug, Clone)]
pub(crate) struct DeviceStep {
    pub(crate) at: Moment,
    /// When that was written.
    pub(crate) logged: Moment,
    pub(crate) state: String,
    pub(crate) lease: Option<u64>,
}

/// What the log comes to.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) jobs: BTreeMap<u64, JobLife>,
    pub(crate) leases: BTreeMap<u64, LeaseLife>,
    pub(crate) devices: BTreeMap<String, Vec<DeviceStep>>,
    pub(crate) submissions: BTreeSet<u64>,
    drops: BTreeSet<super::evidence::Ident>,
    /// What is wrong with a device, by UUID.
    faulty: BTreeMap<String, String>,
    last: Option<Moment>,
}

impl Lives {
    /// Walks the log; whatever does not fit is a finding, and the walk goes on.
    pub(crate) fn walk(evidence: &Evidence, findings: &mut Findings) -> Self {
        let mut lives = Self::default();
        for (logged, expected) in evidence.events.iter().zip(1..) {
            if logged.seq != expected {
                findings.add("I22", format!("event {} is where {expected} should be", logged.seq));
                break;
            }
            lives.clock(logged, findings);
            if let Err(why) = lives.take(logged) {
                findings.add(why.0, format!("event {}: {}", logged.seq, why.1));
            }
        }
        lives.ends_meet(evidence, findings);
        lives
    }

    /// Time does not run backwards within a boot.
    fn clock(&mut self, logged: &Logged, findings: &mut Findings) {
        if let Some(last) = &self.last
            && last.boot == logged.at.boot
            && last.boottime_ms > logged.at.boottime_ms
        {
            let (last, now) = (last.boottime_ms, logged.at.boottime_ms);
            findings.add("I12", format!("event {} is of {now} ms, after one of {last} ms", logged.seq));
        }
        self.last = Some(logged.at.clone());
    }

    fn take(&mut self, logged: &Logged) -> Result<(), (&'static str, String)> {
        let at = &logged.at;
        match &logged.event {
            Fact::SubmissionAccepted { submission, ident } => {
                if !self.submissions.insert(*submission) {
                    return Err(("I2", format!("submission {submission} is accepted twice")));
                }
                if let Some(ident) = ident
                    && !self.drops.insert(ident.clone())
                {
                    return Err(("I2", format!("one drop became a second submission: {ident:?}")));
                }
                Ok(())
            }
            Fact::JobAccepted { job, submission, spec, after, retry_of } => {
                if !self.submissions.contains(submission) {
                    return Err((
                        "I1",
                        format!("job {job} is of submission {submission}, which is not there"),
                    ));
                }
                let life = JobLife {
                    name: spec.name.clone(),
                    submission: *submission,
                    after: after.clone(),
                    retry_of: *retry_of,
                    attempts: BTreeMap::from([((0, 1), AttemptLife::queued())]),
                    done: None,
                    cancelling: false,
                    edited: false,
                    outputs: Vec::new(),
                    outputs_of: 1,
                };
                match self.jobs.insert(*job, life) {
                    None => Ok(()),
                    Some(_) => Err(("I22", format!("job {job} is accepted twice"))),
                }
            }
            Fact::DeviceChanged { uuid, state } => self.device(uuid, at, at, word(state), None),
            Fact::DeviceFaulted { uuid, fault } => {
                self.faulty.insert(uuid.clone(), fault["why"].to_string());
                Ok(())
            }
            Fact::DeviceCleared { uuid } => {
                self.faulty.remove(uuid);
                Ok(())
            }
            Fact::DeviceClosing { .. } => Ok(()),
            Fact::LeaseGranted { .. }
            | Fact::LeaseEnded { .. }
            | Fact::LeaseReturned { .. }
            | Fact::LeaseProven { .. } => self.lease_event(&logged.event, at),
            event => self.job_event(event, at),
        }
    }

    fn lease_event(&mut self, event: &Fact, at: &Moment) -> Result<(), (&'static str, String)> {
        match event {
            Fact::LeaseGranted { lease, job, task, attempt, held, token } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Queued => Ok(Step::Renting(*lease)),
                    _ => Err("granted"),
                })?;
                self.may_start(*job)?;
                if self.job(*job)?.edited {
                    return Err(("I9", format!("job {job} starts while somebody edits it")));
                }
                let life = LeaseLife {
                    job: *job,
                    task: *task,
                    attempt: *attempt,
                    held: held.clone(),
                    token: token.clone(),
                    granted: at.clone(),
                    began: None,
                    ended: None,
                    waived: false,
                    suspended_ms: 0,
                    returned: None,
                };
                if self.leases.insert(*lease, life).is_some() {
                    return Err(("I5", format!("lease {lease} is granted twice")));
                }
                if let Some(attempt) =
                    self.jobs.get_mut(job).and_then(|job| job.attempts.get_mut(&(*task, *attempt)))
                {
                    attempt.lease = Some(*lease);
                }
                for device in &held.devices {
                    self.grant_device(&device.uuid, *lease, at)?;
                }
                Ok(())
            }
            Fact::LeaseEnded { lease, ended, by, waived, suspended_ms } => {
                let life = self.leases.get_mut(lease).ok_or(("I7", format!("lease {lease} is unknown")))?;
                if life.ended.is_some() {
                    return Err(("I7", format!("lease {lease} ends twice")));
                }
                life.ended = Some((ended.clone(), by.clone(), at.clone()));
                (life.waived, life.suspended_ms) = (*waived, *suspended_ms);
                let granted = life.granted.clone();
                let uuids: Vec<String> = life.held.devices.iter().map(|held| held.uuid.clone()).collect();
                if ended.after(&granted).is_none() {
                    return Err(("I12", format!("lease {lease} ends at {ended:?}, granted at {granted:?}")));
                }
                if ended.boot == at.boot && ended.boottime_ms > at.boottime_ms {
                    return Err(("I12", format!("lease {lease} ends after it was written that it did")));
                }
                for uuid in uuids {
                    self.device(&uuid, ended, at, "draining", Some(*lease))?;
                }
                Ok(())
            }
            Fact::LeaseReturned { lease, verdict } => {
                let life = self.leases.get_mut(lease).ok_or(("I7", format!("lease {lease} is unknown")))?;
                if life.ended.is_none() || life.returned.is_some() {
                    return Err(("I7", format!("lease {lease} returns before it ends, or twice")));
                }
                life.returned = Some((at.clone(), verdict.clone()));
                let uuids: Vec<String> = life.held.devices.iter().map(|held| held.uuid.clone()).collect();
                let state = if word(verdict) == "clean" { "free" } else { "quarantined" };
                for uuid in uuids {
                    self.device(&uuid, at, at, state, None)?;
                }
                Ok(())
            }
            Fact::LeaseProven { lease } => {
                let ended = self.leases.get(lease).is_some_and(|life| life.ended.is_some());
                ended.then_some(()).ok_or(("I7", format!("lease {lease} is proven over before it ends")))
            }
            _ => Ok(()),
        }
    }

    fn job_event(&mut self, event: &Fact, at: &Moment) -> Result<(), (&'static str, String)> {
        match event {
            Fact::AttemptPrepared { job, task, attempt } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Queued => Ok(Step::Queued),
                    _ => Err("prepared"),
                })
            }
            Fact::AttemptStarted { lease, job, task, attempt, started } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Renting(of) if of == *lease => Ok(Step::Running(of)),
                    _ => Err("started"),
                })?;
                self.attempt(*job, (*task, *attempt))?.started = Some(started.clone());
                if let Some(life) = self.leases.get_mut(lease) {
                    life.began = Some(at.clone());
                }
                Ok(())
            }
            Fact::AttemptEnded { lease, job, task, attempt, end, .. } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Renting(of) | Step::Running(of) if of == *lease => Ok(Step::Returning(of)),
                    _ => Err("ended"),
                })?;
                self.attempt(*job, (*task, *attempt))?.end = Some(end.clone());
                Ok(())
            }
            Fact::AttemptReturned { job, task, attempt, outputs, outcome } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Returning(of) => Ok(Step::Releasing(of)),
                    _ => Err("returned"),
                })?;
                self.attempt(*job, (*task, *attempt))?.outcome = Some(outcome.clone());
                let life = self.job(*job)?;
                life.outputs.clone_from(outputs);
                life.outputs_of = *attempt;
                Ok(())
            }
            Fact::AttemptReleased { job, task, attempt } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Releasing(_) => Ok(Step::Done),
                    _ => Err("released"),
                })
            }
            Fact::AttemptDropped { job, task, attempt, outcome } => {
                self.move_on(*job, (*task, *attempt), |step| match step {
                    Step::Queued => Ok(Step::Done),
                    _ => Err("dropped"),
                })?;
                self.attempt(*job, (*task, *attempt))?.outcome = Some(outcome.clone());
                Ok(())
            }
            Fact::RetryQueued { job, task, attempt } => self.retry(*job, *task, *attempt),
            Fact::JobDone { job, outcome } => self.done(*job, at, outcome),
            Fact::CancelRequested { job } => {
                self.open_job(*job)?.cancelling = true;
                Ok(())
            }
            Fact::EditBegan { job } | Fact::EditEnded { job } => {
                self.open_job(*job)?.edited = matches!(event, Fact::EditBegan { .. });
                Ok(())
            }
            Fact::JobEdited { job, request } => {
                let life = self.open_job(*job)?;
                life.edited = false;
                life.name.clone_from(&request.spec.name);
                life.after.clone_from(&request.after);
                Ok(())
            }
            Fact::CancelWithdrawn { job } => {
                self.open_job(*job)?.cancelling = false;
                Ok(())
            }
            Fact::DependencyResolved { job, name, on } => {
                let waiting = self.open_job(*job)?;
                waiting
                    .after
                    .iter_mut()
                    .filter(|after| after.name == *name)
                    .for_each(|after| after.job = Some(*on));
                Ok(())
            }
            // May be told of a device that is still draining when all else is done.
            Fact::AttemptNoted { job, .. } => self.job(*job).map(|_| ()),
            Fact::CancelDue { job }
            | Fact::PriorityChanged { job }
            | Fact::PositionChanged { job }
            | Fact::JobPaused { job }
            | Fact::JobResumed { job }
            | Fact::ChangeKept { job }
            | Fact::ChangeUndone { job } => self.open_job(*job).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn job(&mut self, job: u64) -> Result<&mut JobLife, (&'static str, String)> {
        self.jobs.get_mut(&job).ok_or(("I22", format!("job {job} was never accepted")))
    }

    /// Nothing happens to a job that is done.
    fn open_job(&mut self, job: u64) -> Result<&mut JobLife, (&'static str, String)> {
        let life = self.job(job)?;
        if life.done.is_some() {
            return Err(("I3", format!("something happens to job {job}, which is done")));
        }
        Ok(life)
    }

    fn attempt(&mut self, job: u64, attempt: (u32, u32)) -> Result<&mut AttemptLife, (&'static str, String)> {
        self.open_job(job)?
            .attempts
            .get_mut(&attempt)
            .ok_or(("I22", format!("attempt {attempt:?} of job {job} was never queued")))
    }

    fn move_on(
        &mut self,
        job: u64,
        attempt: (u32, u32),
        next: impl FnOnce(Step) -> Result<Step, &'static str>,
    ) -> Result<(), (&'static str, String)> {
        let life = self.attempt(job, attempt)?;
        match next(life.step) {
            Ok(step) => {
                life.step = step;
                Ok(())
            }
            Err(what) => Err((
                "I22",
                format!("attempt {attempt:?} of job {job} is {:?} and cannot be {what}", life.step),
            )),
        }
    }

    fn retry(&mut self, job: u64, task: u32, attempt: u32) -> Result<(), (&'static str, String)> {
        let before = self.attempt(job, (task, attempt.wrapping_sub(1)))?;
        if before.step != Step::Done {
            let step = before.step;
            return Err((
                "I4",
                format!("job {job} is tried again while attempt {} is {step:?}", attempt - 1),
            ));
        }
        match self.open_job(job)?.attempts.insert((task, attempt), AttemptLife::queued()) {
            None => Ok(()),
            Some(_) => Err(("I22", format!("attempt {attempt} of job {job} is queued twice"))),
        }
    }

    fn done(&mut self, job: u64, at: &Moment, outcome: &Value) -> Result<(), (&'static str, String)> {
        let life = self.open_job(job)?;
        life.done = Some((at.clone(), outcome.clone()));
        if life.attempts.values().any(|attempt| attempt.step != Step::Done) {
            return Err(("I3", format!("job {job} is done while an attempt is not")));
        }
        let last = life.attempts.values().next_back().and_then(|attempt| attempt.outcome.as_ref());
        // With several tasks any of them may tell.
        let one_task = life.attempts.keys().all(|(task, _)| *task == 0);
        if one_task && last != Some(outcome) {
            return Err(("I3", format!("job {job} comes to {outcome}, its last attempt to {last:?}")));
        }
        Ok(())
    }

    /// Nothing is granted to a job before those that it waits for are done.
    fn may_start(&mut self, job: u64) -> Result<(), (&'static str, String)> {
        let after = self.open_job(job)?.after.clone();
        for waits_for in after {
            let on = waits_for.job.and_then(|on| self.jobs.get(&on)).and_then(|on| on.done.as_ref());
            let fits = on.is_some_and(|(_, outcome)| !waits_for.must_succeed || word(outcome) == "succeeded");
            if !fits {
                return Err((
                    "I22",
                    format!("job {job} starts before {} has ended as it must", waits_for.name),
                ));
            }
        }
        Ok(())
    }

    /// A device is granted only if it was free.
    fn grant_device(&mut self, uuid: &str, lease: u64, at: &Moment) -> Result<(), (&'static str, String)> {
        let was = self.devices.get(uuid).and_then(|steps| steps.last()).map(|step| step.state.clone());
        self.device(uuid, at, at, "held", Some(lease))?;
        if let Some(why) = self.faulty.get(uuid) {
            return Err(("I6", format!("{uuid} is granted to lease {lease} with a fault: {why}")));
        }
        match was.as_deref() {
            Some("free") => Ok(()),
            Some("held" | "draining") => Err((
                "I5",
                format!("{uuid} is granted to lease {lease} while it is {}", was.unwrap_or_default()),
            )),
            _ => Err(("I6", format!("{uuid} is granted to lease {lease} while it is {was:?}"))),
        }
    }

    fn device(
        &mut self,
        uuid: &str,
        at: &Moment,
        logged: &Moment,
        state: &str,
        lease: Option<u64>,
    ) -> Result<(), (&'static str, String)> {
        let steps = self.devices.entry(uuid.to_owned()).or_default();
        let before = steps.last().map(|step| (step.state.clone(), step.at.clone()));
        steps.push(DeviceStep { at: at.clone(), logged: logged.clone(), state: state.to_owned(), lease });
        let Some((was, since)) = before else { return Ok(()) };
        if since.boot == at.boot && since.boottime_ms > at.boottime_ms {
            let (from, to) = (since.boottime_ms, at.boottime_ms);
            return Err(("I10", format!("{uuid} is {was} from {from} ms on and {state} from {to} ms on")));
        }
        // What is held or draining is let go by its lease only.
        if matches!(was.as_str(), "held" | "draining") && lease.is_none() && !self.is_returned(uuid) {
            return Err((
                "I8",
                format!("{uuid} was {was} and is made {state} without the return of its lease"),
            ));
        }
        Ok(())
    }

    /// Whether the last lease of a device has returned.
    fn is_returned(&self, uuid: &str) -> bool {
        let of = |life: &&LeaseLife| life.held.devices.iter().any(|held| held.uuid == uuid);
        self.leases.values().rfind(of).is_none_or(|life| life.returned.is_some())
    }

    /// The tables say what the events come to.
    fn ends_meet(&self, evidence: &Evidence, findings: &mut Findings) {
        for (job, life) in &self.jobs {
            let Some(row) = evidence.jobs.get(job) else {
                findings.add("I1", format!("job {job} was accepted and has no row"));
                continue;
            };
            let done = life.done.as_ref().map(|(_, outcome)| outcome);
            if row.id != *job || row.done.as_ref().map(|done| &done.outcome) != done {
                findings.add("I3", format!("job {job}: the events say {done:?}, its row {:?}", row.done));
            }
            let rows: BTreeMap<(u32, u32), &str> = row
                .tasks
                .iter()
                .flat_map(|task| task.attempts.iter().map(|row| ((task.ix, row.number), word(&row.state))))
                .collect();
            let events: BTreeMap<(u32, u32), &str> =
                life.attempts.iter().map(|(attempt, life)| (*attempt, life.step.word())).collect();
            if rows != events {
                findings.add("I22", format!("job {job}: the events say {events:?}, its row {rows:?}"));
            }
            if evidence.submissions.get(&life.submission) != Some(&true) {
                findings.add("I1", format!("job {job} was accepted and its file's bytes are not stored"));
            }
        }
        for job in evidence.jobs.keys().filter(|job| !self.jobs.contains_key(job)) {
            findings.add("I22", format!("job {job} has a row and no event"));
        }
        for (uuid, state) in &evidence.devices {
            let last = self.devices.get(uuid).and_then(|steps| steps.last()).map(|step| step.state.as_str());
            // All that is remembered of a device has its state in it.
            let row = state.get("state").unwrap_or(state);
            if last != Some(word(row)) {
                findings.add("I22", format!("{uuid}: the events say {last:?}, its row {state}"));
            }
        }
        let idents: BTreeSet<_> = evidence.drops.values().cloned().collect();
        if idents != self.drops || idents.len() != evidence.drops.len() {
            findings.add("I2", "the drops of the table are not those of the events".to_owned());
        }
    }
}

impl AttemptLife {
    const fn queued() -> Self {
        Self { step: Step::Queued, lease: None, started: None, end: None, outcome: None }
    }
}

impl Step {
    const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Renting(_) => "renting",
            Self::Running(_) => "running",
            Self::Returning(_) => "returning",
            Self::Releasing(_) => "releasing",
            Self::Done => "done",
        }
    }
}
