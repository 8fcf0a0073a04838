//! The state of the scheduler: facts only. Config, paths, handles and caches live elsewhere.
//!
//! [`World::apply`] is the only mutator of what is durable: the step applies each event it decides, recovery restores
//! the folded parts. Each part has its own `apply` and its own `check`.

mod leases;
mod ledger;
mod people;
mod pool;
mod queue;

pub use leases::{Collecting, Leases};
pub use ledger::Ledger;
pub use people::People;
pub(in crate::sched) use pool::PROOFS;
pub use pool::{DRAIN_MAX, Device, Drained, Pool};
pub use queue::Queue;

use super::step::needs_directory;
use crate::model::{
    AttemptState, BootId, DeviceState, DropIdent, Event, EventRecord, Job, JobId, Lease, LeaseId, Now,
    Returned, Revision, Standing, SubmissionId, TransitionError, Uuid,
};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// So many of the leases that ended last are looked at for processes that may still live.
const UNPROVEN_DEPTH: usize = 1_000;

/// Everything the scheduler knows.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Jobs, and the line of those that wait.
    pub queue: Queue,
    /// Devices, cores and memory.
    pub pool: Pool,
    /// Leases that are not returned.
    pub leases: Leases,
    /// Leases that ended: the meter's records.
    pub ledger: Ledger,
    /// Who has how long run what.
    pub people: People,
    /// Numbers given out so far.
    pub counters: Counters,
    /// What the last turn touched: the rows to store and to publish.
    pub touched: Touched,
    /// A bug was found in the core: nothing is granted any more. Not durable.
    pub broken: bool,
    /// Nothing can be started, because of the disk: why, in words. Not durable.
    pub held_up: Option<String>,
}

/// Numbers given out so far; none is ever used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The last event's.
    pub seq: u64,
    /// The last job's.
    pub job: JobId,
    /// The last submission's.
    pub submission: SubmissionId,
    /// The last lease's.
    pub lease: LeaseId,
    /// The last turn's.
    pub revision: Revision,
}

/// The rows that changed since they were last taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Touched {
    /// Jobs as they were before: what may be shown of them while the change is not durable. `None`: not there yet.
    pub before: BTreeMap<JobId, Option<Box<Job>>>,
    /// Jobs.
    pub jobs: BTreeSet<JobId>,
    /// Leases.
    pub leases: BTreeSet<LeaseId>,
    /// Devices.
    pub devices: BTreeSet<Uuid>,
}

/// What a store remembers of a world.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// Jobs that are not done, and the newest that are.
    pub jobs: Vec<Job>,
    /// Leases that are not returned, and those that ended lately.
    pub leases: Vec<Lease>,
    /// Devices.
    pub devices: Vec<(Uuid, Standing)>,
    /// Drops that were accepted lately.
    pub drops: Vec<DropIdent>,
    /// Numbers given out.
    pub counters: Counters,
    /// The boot in which this is read, where the files of an earlier one may not have reached the disk.
    pub boot: Option<BootId>,
}

/// An event that does not fit: a bug in the core, or a damaged record. Never the outside world's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// The event names a job that is not there.
    #[error("no job {0}")]
    NoJob(JobId),
    /// The event names a lease that is not there.
    #[error("no lease {0}")]
    NoLease(LeaseId),
    /// The event names an attempt that is not there.
    #[error("job {0} has no such attempt")]
    NoAttempt(JobId),
    /// The attempt is in another state.
    #[error("job {job}: {source}")]
    Transition {
        /// Which.
        job: JobId,
        /// What does not fit.
        #[source]
        source: TransitionError,
    },
    /// The device belongs to another lease.
    #[error("{uuid} is granted while lease {by} has it")]
    Held {
        /// Which.
        uuid: Uuid,
        /// The other lease.
        by: LeaseId,
    },
    /// A job's, submission's or lease's number was given before.
    #[error("{what} {found} is given again")]
    Again {
        /// Of what.
        what: &'static str,
        /// The number.
        found: u64,
    },
    /// An event was skipped or is applied twice.
    #[error("event {found} follows event {last}")]
    Sequence {
        /// The last event's.
        last: u64,
        /// This event's.
        found: u64,
    },
}

impl World {
    /// Rebuilds a world from what a store remembers.
    pub fn restore(remembered: Remembered) -> Self {
        let mut world = Self { counters: remembered.counters, ..Self::default() };
        for lease in remembered.leases {
            if lease.ended.is_some() {
                world.ledger.record(&lease);
            }
            if lease.returned.is_none() {
                world.leases.restore(lease);
            }
        }
        for (uuid, standing) in remembered.devices {
            world.pool.restore(&uuid, standing);
        }
        for lease in world.leases.iter() {
            world.pool.hold(lease);
        }
        let mut jobs = remembered.jobs;
        jobs.sort_by_key(|job| job.done.as_ref().map(|(at, _)| at.wall_ms));
        for mut job in jobs {
            if let Some(boot) = remembered.boot {
                distrust_prepared(&mut job, boot);
            }
            world.people.restore(&job);
            world.queue.restore(job);
        }
        world.ledger.trim(|job| world.queue.is_live(job));
        for ident in remembered.drops {
            world.queue.remember_drop(ident);
        }
        world
    }

    /// Folds one event into the parts it concerns.
    ///
    /// Cannot fail on an event that the step decided; on a loaded one it says what does not fit, and changes nothing.
    pub fn apply(&mut self, record: &EventRecord) -> Result<(), ApplyError> {
        if record.seq != self.counters.seq + 1 {
            return Err(ApplyError::Sequence { last: self.counters.seq, found: record.seq });
        }
        let at = record.at;
        match &record.event {
            Event::SubmissionAccepted { submission, ident, .. } => {
                unused("submission", submission.0, self.counters.submission.0)?;
                self.counters.submission = *submission;
                if let Some(ident) = ident {
                    self.queue.remember_drop(ident.clone());
                }
            }
            Event::JobAccepted { job, .. } => {
                unused("job", job.0, self.counters.job.0)?;
                self.keep(*job);
                self.queue.apply(&record.event, at)?;
                self.counters.job = *job;
                self.touched.jobs.insert(*job);
            }
            event @ Event::LeaseGranted { .. } => self.grant(event, at)?,
            event @ (Event::LeaseEnded { .. } | Event::LeaseReturned { .. } | Event::LeaseProven { .. }) => {
                self.close(event, at)?;
            }
            Event::DeviceChanged { uuid, state } => {
                self.pool.set_state(uuid, state.clone());
                self.touched.devices.insert(uuid.clone());
            }
            Event::DeviceFaulted { uuid, fault } => {
                self.pool.set_fault(uuid, Some(fault.clone()), None);
                self.touched.devices.insert(uuid.clone());
            }
            Event::DeviceCleared { uuid, accepted } => {
                self.pool.set_fault(uuid, None, *accepted);
                self.touched.devices.insert(uuid.clone());
            }
            Event::DeviceClosing { uuid, close } => {
                self.pool.set_close(uuid, close.clone());
                self.touched.devices.insert(uuid.clone());
            }
            event => {
                let job = event.job().ok_or(ApplyError::NoJob(JobId::default()))?;
                self.keep(job);
                self.queue.apply(event, at)?;
                if let Event::AttemptEnded { ended, end, .. } = event
                    && let Some(row) = self.queue.get(job)
                {
                    self.people.ended(row, *ended, end);
                }
                self.touched.jobs.insert(job);
            }
        }
        self.counters.seq = record.seq;
        Ok(())
    }

    fn grant(&mut self, event: &Event, at: Now) -> Result<(), ApplyError> {
        let Event::LeaseGranted { lease, job, task, attempt, held, token } = event else { return Ok(()) };
        unused("lease", lease.0, self.counters.lease.0)?;
        for device in &held.devices {
            if let Some(holder) = self.pool.holder(&device.uuid) {
                return Err(ApplyError::Held { uuid: device.uuid.clone(), by: holder });
            }
        }
        self.keep(*job);
        self.queue.apply(event, at)?;
        let row = self.queue.get(*job).ok_or(ApplyError::NoJob(*job))?;
        let granted = Lease {
            id: *lease,
            job: *job,
            job_name: row.spec.name.clone(),
            owner: row.owner.clone(),
            project: row.spec.project.clone(),
            attempts: vec![(*task, *attempt)],
            held: held.clone(),
            token: token.clone(),
            granted: at,
            heartbeat: at,
            ended: None,
            gone: None,
            waived: false,
            suspended_ms: 0,
            returned: None,
        };
        self.counters.lease = *lease;
        self.pool.hold(&granted);
        self.touch(&granted);
        self.leases.restore(granted);
        Ok(())
    }

    fn close(&mut self, event: &Event, at: Now) -> Result<(), ApplyError> {
        let lease = match event {
            Event::LeaseEnded { lease, ended, by, waived, suspended_ms } => {
                let end = leases::End { at: *ended, by: *by, waived: *waived, suspended_ms: *suspended_ms };
                let ended = self.leases.end(*lease, end)?.clone();
                self.pool.drain(&ended);
                ended
            }
            Event::LeaseReturned { lease, verdict } => {
                let returned = self.leases.give_back(*lease, Returned { at, verdict: verdict.clone() })?;
                self.pool.give_back(&returned, at);
                returned
            }
            Event::LeaseProven { lease } => {
                let mut proven = self.lease(*lease).ok_or(ApplyError::NoLease(*lease))?.clone();
                proven.gone = Some(at);
                self.leases.prove(*lease, at);
                proven
            }
            _ => return Ok(()),
        };
        self.ledger.record(&lease);
        self.ledger.trim(|job| self.queue.is_live(job));
        self.touch(&lease);
        Ok(())
    }

    /// Keeps a job as it is, before the first change since the rows were last taken.
    fn keep(&mut self, job: JobId) {
        let queue = &self.queue;
        self.touched.before.entry(job).or_insert_with(|| queue.get(job).cloned().map(Box::new));
    }

    fn touch(&mut self, lease: &Lease) {
        self.touched.devices.extend(lease.held.devices.iter().map(|device| device.uuid.clone()));
        self.touched.jobs.insert(lease.job);
        self.touched.leases.insert(lease.id);
    }

    /// A lease, open or ended.
    pub fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(id).or_else(|| self.ledger.get(id))
    }

    /// Whether a device may be there that the driver has not told of, or that came back: worth asking which ones there are.
    pub fn lacks_devices(&self) -> bool {
        let gone =
            |state: &DeviceState| matches!(state, DeviceState::Gone { .. } | DeviceState::Unknown { .. });
        self.pool.gpus() == 0
            || self.pool.devices().any(|(_, device)| device.gpu.is_none() || gone(&device.state))
    }

    /// Leases of which a process may still live, the newest that ended.
    pub fn unproven<'w>(&'w self, now: &'w Now) -> impl Iterator<Item = &'w Lease> {
        self.ledger.iter().rev().take(UNPROVEN_DEPTH).filter(|lease| lease.is_unproven(now))
    }

    /// A supervisor's sign of life. Not an event: it is stored with the next change of the lease.
    pub fn heartbeat(&mut self, lease: LeaseId, at: Now) {
        self.leases.heartbeat(lease, at);
    }

    /// Checks every invariant that can be seen in one world; what is broken, in words.
    ///
    /// Called after every step in debug builds, tests and simulation; [`check_transition`](super::check_transition) says
    /// what can be seen in a turn only.
    pub fn check(&self) -> Result<(), String> {
        super::check::world(self)
    }

    /// Checks that every index says what the rows say, by making them anew: too slow for every step.
    pub fn check_indexes(&self) -> Result<(), String> {
        self.queue.check_indexes()?;
        self.ledger.check_index()
    }
}

/// A directory that was made ready in an earlier boot is made again: a power cut may have left empty files in it.
fn distrust_prepared(job: &mut Job, boot: BootId) {
    if !needs_directory(job) {
        return;
    }
    for task in &mut job.tasks {
        if let Some(AttemptState::Queued { since, prepared }) =
            task.attempts.last_mut().map(|attempt| &mut attempt.state)
        {
            *prepared &= since.boot == boot;
        }
    }
}

const fn unused(what: &'static str, found: u64, last: u64) -> Result<(), ApplyError> {
    if found > last { Ok(()) } else { Err(ApplyError::Again { what, found }) }
}
