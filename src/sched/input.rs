//! What the shell tells the core.

use crate::model::{
    AttemptNo, Bytes, Collected, DropIdent, EndedBy, Enforcement, FaultNews, Generation, Gpu, GpuReading,
    HostReading, JobId, JobSpec, JobText, LeaseId, Now, Origin, Owner, RunEnd, TaskIx,
};
use crate::protocol::{Command, FieldChange};

/// One thing that happened outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A file was parsed without errors.
    Submission(Box<Submission>),
    /// A client's command (anything but `Submit`, `Check` and `Edit`, which the shell parses first).
    Command {
        /// Who asks.
        by: Owner,
        /// What.
        command: Command,
        /// Answered under this number.
        reply_to: u64,
    },
    /// A client's edit of a job, parsed without errors.
    Edit(Box<Edit>),
    /// The engine's news.
    Engine(EngineReport),
    /// The devices that are there now.
    Devices(Vec<Gpu>),
    /// Fresh readings.
    Readings(Vec<GpuReading>),
    /// What the driver told of devices as it happened; empty if it only said that something did.
    Faults(Vec<FaultNews>),
    /// Cores and memory of the pool.
    Host(HostReading),
    /// Nothing can be started, because of the disk: why, in words. `None`: it can again.
    HeldUp(Option<String>),
    /// An attempt's directory is ready, or never will be.
    Prepared {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// Why not.
        result: Result<(), String>,
    },
    /// Scratch is gone and the receipt is written.
    Released {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
    },
}

/// The jobs of one file, parsed and without errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Whose.
    pub owner: Owner,
    /// Where from.
    pub origin: Origin,
    /// The drop.
    pub ident: Option<DropIdent>,
    /// The file's text.
    pub source: String,
    /// The jobs in the file's order, each with the warnings it is accepted with.
    pub jobs: Vec<(JobSpec, Vec<String>)>,
    /// Accepted paused.
    pub paused: bool,
    /// The job this retries.
    pub retry_of: Option<JobId>,
    /// Answered under this number, if somebody waits for an answer.
    pub reply_to: Option<u64>,
}

/// What a job is to ask from now on, parsed and without errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// Who asks.
    pub by: Owner,
    /// Which job.
    pub job: JobId,
    /// The mark's, or as last seen.
    pub generation: Generation,
    /// What it is to ask.
    pub spec: JobSpec,
    /// Said of it.
    pub warnings: Vec<String>,
    /// Its text.
    pub file: JobText,
    /// That is the text that it has.
    pub unchanged: bool,
    /// What is changed by that, in the job file's words.
    pub fields: Vec<FieldChange>,
    /// Answered under this number.
    pub reply_to: u64,
}

/// What the engine saw of a lease. Reports may be late, lost, repeated or out of order; the core takes each once.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineReport {
    /// The work's first process was started.
    Started {
        /// Lease.
        lease: LeaseId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// When.
        at: Now,
        /// What the kernel holds the work to, if the supervisor said.
        enforcement: Option<Enforcement>,
    },
    /// The last durable sign of life of a lease's supervisor.
    Heartbeat {
        /// Lease.
        lease: LeaseId,
        /// When.
        at: Now,
    },
    /// The work's last process is gone.
    Ended {
        /// Lease.
        lease: LeaseId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// When.
        at: Now,
        /// How.
        end: RunEnd,
        /// Who says so.
        by: EndedBy,
        /// Highest resident memory of the tree that was seen.
        peak_memory: Option<Bytes>,
        /// Suspend within the run.
        suspended_ms: u64,
        /// Hints for the receipt.
        notes: Vec<String>,
    },
    /// Some processes have not answered their kill: the run ends without them.
    Outlived {
        /// Lease.
        lease: LeaseId,
        /// Who, for people.
        who: String,
    },
    /// They are gone after all.
    Gone {
        /// Lease.
        lease: LeaseId,
    },
    /// The output is home.
    Collected {
        /// Lease.
        lease: LeaseId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// What came back, or why nothing could be collected.
        result: Result<Collected, String>,
    },
    /// The output cannot be brought home now: the disk it goes to is full or broken. It is tried again.
    CollectionWaits {
        /// Lease.
        lease: LeaseId,
        /// Why, in words.
        why: String,
    },
    /// The output is being brought home.
    Collecting {
        /// Lease.
        lease: LeaseId,
        /// How far, in percent.
        percent: u8,
    },
    /// The lease's supervisor is gone without having said how its run ended. What was left of its tree has been ended.
    Missing {
        /// Lease.
        lease: LeaseId,
        /// Its last durable sign of life, if its journal could be read.
        heartbeat: Option<Now>,
        /// When what was left of its tree was ended, if anybody saw that.
        at: Option<Now>,
        /// All of it is gone; `false`: some process did not answer its kill.
        gone: bool,
        /// The engine collects the output itself and will report it.
        collecting: bool,
        /// Why, in words.
        why: String,
    },
    /// The supervisor could not be started at all, or could not get hold of its devices; nothing ran.
    NotLaunched {
        /// Lease.
        lease: LeaseId,
        /// When.
        at: Now,
        /// Why, in words.
        why: String,
    },
}

impl EngineReport {
    /// The lease it is about.
    pub const fn lease(&self) -> LeaseId {
        match self {
            Self::Started { lease, .. }
            | Self::Heartbeat { lease, .. }
            | Self::Ended { lease, .. }
            | Self::Collected { lease, .. }
            | Self::CollectionWaits { lease, .. }
            | Self::Collecting { lease, .. }
            | Self::Outlived { lease, .. }
            | Self::Gone { lease }
            | Self::Missing { lease, .. }
            | Self::NotLaunched { lease, .. } => *lease,
        }
    }
}
