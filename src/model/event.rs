//! Events: the least that must be remembered, in the past tense. `World::apply` folds them; the store keeps them.

use super::job::{Dependency, ReturnedFile};
use super::{
    Accepted, AttemptNo, Bytes, Change, Close, DeviceState, EndedBy, Enforcement, Fault, Held, JobId,
    JobSpec, LeaseId, Now, Outcome, Owner, Priority, Requested, RunEnd, Span, SubmissionId, TaskIx, Token,
    Uuid, Verdict,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Gap-free, from 1.
    pub seq: u64,
    /// When the turn that made it began.
    pub at: Now,
    /// What happened.
    pub event: Event,
}

/// What identifies one drop: the same file dropped twice is two drops; the same drop seen twice is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DropIdent {
    /// Device number of the file.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Change time in nanoseconds.
    pub ctime_ns: i128,
    /// BLAKE3 of its bytes, 64 hex digits.
    pub hash: String,
}

/// Where a submission came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A file or folder in the inbox.
    Inbox {
        /// Its name there.
        name: String,
        /// It was a folder: where it is kept now, and where its relative paths start.
        folder: Option<PathBuf>,
    },
    /// `overnight submit` or the dashboard.
    Submit {
        /// The file it read, if it was one.
        file: Option<PathBuf>,
    },
    /// `overnight retry`.
    Retry {
        /// Of which job.
        of: JobId,
    },
}

/// A cancel and its undo window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Who.
    pub by: String,
    /// When it was asked for, or its window was carried into another boot.
    pub asked: Now,
    /// When the window closes; nothing is signalled before.
    pub due: Now,
    /// Kill at once, without the warning signal.
    pub now: bool,
    /// The window has closed and the cancel is being carried out.
    pub carried_out: bool,
}

impl CancelRequest {
    /// The longest window: a client's number is not to be trusted.
    pub const LONGEST: Span = Span::secs(24 * 3_600);

    /// How long the window is open from here on. Of one that was opened in an earlier boot the wall clock tells; that may
    /// have been set, and the window is never longer than it was.
    pub fn left(&self, now: &Now) -> Span {
        now.left_to(&self.due).min(self.due.since(&self.asked).unwrap_or(Span(0)))
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A drop or a `submit` was accepted, with its bytes.
    SubmissionAccepted {
        /// Its number.
        submission: SubmissionId,
        /// Whose.
        owner: Owner,
        /// Where from.
        origin: Origin,
        /// The drop, for recognising it again.
        ident: Option<DropIdent>,
        /// The file's text, as it was.
        source: String,
    },
    /// A job of a submission was accepted.
    JobAccepted {
        /// Its number.
        job: JobId,
        /// Its submission.
        submission: SubmissionId,
        /// Whose.
        owner: Owner,
        /// Where from.
        origin: Origin,
        /// What it asks.
        spec: Arc<JobSpec>,
        /// Said at acceptance.
        warnings: Vec<String>,
        /// What it waits for.
        after: Vec<Dependency>,
        /// Which job it retries.
        retry_of: Option<JobId>,
        /// Nothing has to be made ready for it.
        prepared: bool,
        /// Not started until resumed: who paused it.
        paused: Option<String>,
    },
    /// A job that was waited for by name has appeared, or a retry took the place of the old one.
    DependencyResolved {
        /// The job that waits.
        job: JobId,
        /// The name it waits for.
        name: String,
        /// The job it means now.
        on: JobId,
    },
    /// The attempt's directory is ready.
    AttemptPrepared {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
    },
    /// Devices, cores and memory were given to a job; the meter starts.
    LeaseGranted {
        /// Its number.
        lease: LeaseId,
        /// Job.
        job: JobId,
        /// The task whose attempt runs first.
        task: TaskIx,
        /// That attempt.
        attempt: AttemptNo,
        /// What is held.
        held: Held,
        /// Identifies its processes.
        token: Token,
    },
    /// The first process of an attempt was started.
    AttemptStarted {
        /// Lease.
        lease: LeaseId,
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// When, by its supervisor.
        started: Now,
        /// What the kernel holds it to, if its supervisor said.
        enforcement: Option<Enforcement>,
    },
    /// The last process of an attempt is gone.
    AttemptEnded {
        /// Lease.
        lease: LeaseId,
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// When.
        ended: Now,
        /// How.
        end: RunEnd,
        /// Highest resident memory of the tree that was seen.
        peak_memory: Option<Bytes>,
        /// Mean utilisation of its devices over its run, percent.
        mean_utilisation: Option<u8>,
        /// Highest memory in use on one of its devices over its run.
        peak_gpu_memory: Option<Bytes>,
        /// Hints for the receipt.
        notes: Vec<String>,
    },
    /// The lease holds nothing any more; the meter stops.
    LeaseEnded {
        /// Which.
        lease: LeaseId,
        /// When.
        ended: Now,
        /// Who says so.
        by: EndedBy,
        /// Not billed.
        waived: bool,
        /// Milliseconds of suspend within it.
        suspended_ms: u64,
    },
    /// The devices of a lease are back, or in quarantine.
    LeaseReturned {
        /// Which.
        lease: LeaseId,
        /// With what verdict.
        verdict: Verdict,
    },
    /// The processes of a lease that had not answered their kill are gone after all.
    LeaseProven {
        /// Which.
        lease: LeaseId,
    },
    /// The output of an attempt is home.
    AttemptReturned {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// What came back.
        outputs: Vec<ReturnedFile>,
        /// Final.
        outcome: Outcome,
        /// Hints for the receipt.
        notes: Vec<String>,
    },
    /// Scratch is gone and the receipt is written.
    AttemptReleased {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
    },
    /// A queued attempt will not run.
    AttemptDropped {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// Final.
        outcome: Outcome,
    },
    /// A task is tried again.
    RetryQueued {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// The new attempt.
        attempt: AttemptNo,
        /// Nothing has to be made ready for it.
        prepared: bool,
    },
    /// All tasks of a job are done.
    JobDone {
        /// Job.
        job: JobId,
        /// What it came to.
        outcome: Outcome,
    },
    /// Somebody asked for a cancel.
    CancelRequested {
        /// Job.
        job: JobId,
        /// Who, and until when it can be undone.
        request: CancelRequest,
    },
    /// The undo window closed: the cancel is being carried out.
    CancelDue {
        /// Job.
        job: JobId,
    },
    /// The cancel was undone within its window.
    CancelWithdrawn {
        /// Job.
        job: JobId,
    },
    /// Somebody changed a priority.
    PriorityChanged {
        /// Job.
        job: JobId,
        /// The new one.
        priority: Priority,
    },
    /// Somebody changed a job's place in line.
    PositionChanged {
        /// Job.
        job: JobId,
        /// The new one.
        position: i64,
        /// The owner placed this job; `false` where another job was moved past it.
        ranked: bool,
    },
    /// Somebody paused a waiting job.
    JobPaused {
        /// Job.
        job: JobId,
        /// Who.
        by: String,
    },
    /// Somebody resumed it.
    JobResumed {
        /// Job.
        job: JobId,
    },
    /// Somebody began to edit a waiting job.
    EditBegan {
        /// Job.
        job: JobId,
        /// Who.
        by: String,
        /// When the mark ends by itself.
        until: Now,
    },
    /// Nobody edits it any more, and nothing came of it.
    EditEnded {
        /// Job.
        job: JobId,
    },
    /// What a waiting job asks was replaced. That ends the edit.
    JobEdited {
        /// Job.
        job: JobId,
        /// What it asks now, and where it waits.
        request: Box<Requested>,
        /// Nothing has to be made ready for it.
        prepared: bool,
    },
    /// A change can be taken back.
    ChangeKept {
        /// Job.
        job: JobId,
        /// What was changed.
        change: Box<Change>,
    },
    /// The newest change of a job was taken back.
    ChangeUndone {
        /// Job.
        job: JobId,
    },
    /// Something about a running attempt that its owner should know.
    AttemptNoted {
        /// Job.
        job: JobId,
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// For the receipt.
        note: String,
    },
    /// Something is wrong with a device: it is not handed out until that is over.
    DeviceFaulted {
        /// Which.
        uuid: Uuid,
        /// What.
        fault: Fault,
    },
    /// What was wrong with a device is over: an operator lives with it, or a reset was proven.
    DeviceCleared {
        /// Which.
        uuid: Uuid,
        /// What an operator has seen and lives with.
        accepted: Option<Accepted>,
    },
    /// An operator wants a device closed once it is given back, or does not any more.
    DeviceClosing {
        /// Which.
        uuid: Uuid,
        /// Why, and who.
        close: Option<Close>,
    },
    /// A device's state changed for another reason than a grant, an end or a return.
    DeviceChanged {
        /// Which.
        uuid: Uuid,
        /// What it is now.
        state: DeviceState,
    },
}

impl Event {
    /// The job that it happened to.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::JobAccepted { job, .. }
            | Self::DependencyResolved { job, .. }
            | Self::AttemptPrepared { job, .. }
            | Self::LeaseGranted { job, .. }
            | Self::AttemptStarted { job, .. }
            | Self::AttemptEnded { job, .. }
            | Self::AttemptReturned { job, .. }
            | Self::AttemptReleased { job, .. }
            | Self::AttemptDropped { job, .. }
            | Self::AttemptNoted { job, .. }
            | Self::RetryQueued { job, .. }
            | Self::JobDone { job, .. }
            | Self::CancelRequested { job, .. }
            | Self::CancelDue { job }
            | Self::CancelWithdrawn { job }
            | Self::PriorityChanged { job, .. }
            | Self::PositionChanged { job, .. }
            | Self::JobPaused { job, .. }
            | Self::JobResumed { job }
            | Self::EditBegan { job, .. }
            | Self::EditEnded { job }
            | Self::JobEdited { job, .. }
            | Self::ChangeKept { job, .. }
            | Self::ChangeUndone { job } => Some(*job),
            Self::SubmissionAccepted { .. }
            | Self::LeaseEnded { .. }
            | Self::LeaseReturned { .. }
            | Self::LeaseProven { .. }
            | Self::DeviceChanged { .. }
            | Self::DeviceFaulted { .. }
            | Self::DeviceCleared { .. }
            | Self::DeviceClosing { .. } => None,
        }
    }
}
