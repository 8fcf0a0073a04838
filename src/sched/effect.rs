//! What the shell is asked to do, after the events that justify it are durable. An effect may fail and be reported; it
//! never decides.

use crate::model::{
    AttemptNo, Bytes, DataItem, JobId, JobSpec, LeaseId, Now, Owner, Span, SubmissionId, TaskIx, Token, Uuid,
};
use std::path::PathBuf;
use std::sync::Arc;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start a supervisor for a lease and run its first attempt.
    Launch(Box<Launch>),
    /// End the run of a lease.
    Stop {
        /// Which.
        lease: LeaseId,
        /// How.
        kind: StopKind,
    },
    /// The devices of a lease are back: its supervisor may let go of their locks and leave once its output is collected.
    Dismiss {
        /// Which.
        lease: LeaseId,
    },
    /// Make an attempt's directory ready: snapshot of the code, data of earlier jobs checked.
    Prepare(Box<Prepare>),
    /// Write a job's folder: `job.yaml`, `answer.txt`.
    WriteAnswer {
        /// Job.
        job: JobId,
        /// Its submission, which has the source text.
        submission: SubmissionId,
    },
    /// A job was edited: its folder says what it asks now, under the name that it has now.
    Rewrite {
        /// Job.
        job: JobId,
        /// The folder's name before, where it has another one now.
        was: Option<String>,
    },
    /// Gather the output of an attempt whose supervisor is gone.
    Collect {
        /// Its lease.
        lease: LeaseId,
    },
    /// Remove scratch and write the receipt, then report [`Input::Released`](super::Input::Released).
    Release {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// The lease whose run directory goes.
        lease: LeaseId,
    },
    /// Rewrite the receipt of a job that is done, and drop its code snapshot.
    WriteReceipt {
        /// Job.
        job: JobId,
    },
    /// Move an accepted drop out of the inbox.
    TakeDrop {
        /// Its name there.
        name: String,
        /// What it must still be.
        ident: crate::model::DropIdent,
        /// Where a folder goes; `None` for a file.
        folder_to: Option<PathBuf>,
    },
    /// Take a fresh reading of the devices.
    Probe,
}

impl Effect {
    /// Effects are carried out in this order: a supervisor lets go of its devices before the next one asks for them, what
    /// starts or ends work comes next, and what is written for people last.
    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Dismiss { .. } => 0,
            Self::Launch(_) | Self::Stop { .. } | Self::Probe => 1,
            Self::Prepare(_)
            | Self::WriteAnswer { .. }
            | Self::Rewrite { .. }
            | Self::Collect { .. }
            | Self::Release { .. }
            | Self::WriteReceipt { .. }
            | Self::TakeDrop { .. } => 2,
        }
    }
}

/// Everything a supervisor must know to run one attempt. Paths are the engine's business.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Lease.
    pub lease: LeaseId,
    /// Identifies its processes.
    pub token: Token,
    /// Job.
    pub job: JobId,
    /// The job's folder below `jobs/`.
    pub folder: String,
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// What to run.
    pub spec: Arc<JobSpec>,
    /// Whose.
    pub owner: Owner,
    /// Devices.
    pub devices: Vec<LaunchDevice>,
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: Bytes,
    /// `job:` sources, resolved: where the output of the job that each one means is, below the folder of all jobs, in the
    /// order of `spec.data`; `None` for paths.
    pub sources: Vec<Option<PathBuf>>,
    /// When the grant was made.
    pub granted: Now,
    /// The limit.
    pub limit: Option<Span>,
    /// Deadline, wall milliseconds.
    pub finish_by_ms: Option<i64>,
    /// The attempt's work directory was prepared beforehand.
    pub prepared: bool,
}

/// A device of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDevice {
    /// Identity.
    pub uuid: Uuid,
    /// Index when it was last listed; checked again just before the work starts if it is real.
    pub index: u32,
    /// Takes the cross-scheduler lock.
    pub real: bool,
}

/// How a run is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopKind {
    /// Warning signal, grace, kill; the outcome is cancelled.
    Cancel {
        /// Who.
        by: String,
    },
    /// Kill at once; the outcome is cancelled.
    CancelNow {
        /// Who.
        by: String,
    },
    /// Kill at once; the outcome is lost.
    Lost {
        /// Why.
        why: String,
    },
}

/// What has to be ready before an attempt can be granted anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepare {
    /// Job.
    pub job: JobId,
    /// The job's folder below `jobs/`.
    pub folder: String,
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// What is to run.
    pub spec: Arc<JobSpec>,
    /// It may be another code than an earlier preparation copied.
    pub edited: bool,
    /// `job:` sources that must exist: the item, and where the output of the job it means is, below the folder of all jobs.
    pub sources: Vec<(DataItem, PathBuf)>,
}
