//! Records of events, submissions and drops.

use super::change::{ChangeRecord, RequestedRecord};
use super::job::{DependencyRecord, EnforcementRecord, OutcomeRecord, ReturnedFileRecord, RunEndRecord};
use super::lease::{
    AcceptedRecord, CloseRecord, DeviceStateRecord, EndedByRecord, FaultRecord, HeldRecord, VerdictRecord,
};
use super::scalars::{NowRecord, OwnerRecord, PathRecord};
use super::spec::SpecRecord;
use super::{Record, RecordError, record};
use crate::model::{CancelRequest, DropIdent, Event, EventRecord, Origin};

record! {
    /// An event with its place in the log.
    struct LoggedEvent for EventRecord { seq: u64, at: NowRecord, event: EventShape }
}

record! {
    /// What identifies one drop.
    struct DropRecord for DropIdent { dev: u64, ino: u64, ctime_ns: i128, hash: String }
}

record! {
    /// Where a submission came from.
    enum OriginRecord for Origin {
        Inbox { name: String, folder: Option<PathRecord> },
        Submit { file: Option<PathRecord> },
        Retry { of: u64 },
    }
}

record! {
    /// A cancel and its undo window.
    struct CancelRecord for CancelRequest {
        by: String,
        asked: NowRecord,
        due: NowRecord,
        now: bool,
        carried_out: bool,
    }
}

/// A submission: the bytes of what was dropped.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SubmissionRecord {
    pub(crate) owner: OwnerRecord,
    pub(crate) origin: OriginRecord,
    pub(crate) source: String,
}

record! {
    /// What happened. The source of an accepted submission is stored once, with the submission: here it is empty.
    enum EventShape for Event {
        SubmissionAccepted {
            submission: u64,
            owner: OwnerRecord,
            origin: OriginRecord,
            ident: Option<DropRecord>,
            source: Elsewhere,
        },
        JobAccepted {
            job: u64,
            submission: u64,
            owner: OwnerRecord,
            origin: OriginRecord,
            spec: SpecRecord,
            warnings: Vec<String>,
            after: Vec<DependencyRecord>,
            retry_of: Option<u64>,
            prepared: bool,
            paused: Option<String>,
        },
        DependencyResolved { job: u64, name: String, on: u64 },
        AttemptPrepared { job: u64, task: u32, attempt: u32 },
        LeaseGranted { lease: u64, job: u64, task: u32, attempt: u32, held: HeldRecord, token: String },
        AttemptStarted {
            lease: u64,
            job: u64,
            task: u32,
            attempt: u32,
            started: NowRecord,
            enforcement: Option<EnforcementRecord>,
        },
        AttemptEnded {
            lease: u64,
            job: u64,
            task: u32,
            attempt: u32,
            ended: NowRecord,
            end: RunEndRecord,
            peak_memory: Option<u64>,
            mean_utilisation: Option<u8>,
            peak_gpu_memory: Option<u64>,
            notes: Vec<String>,
        },
        LeaseEnded { lease: u64, ended: NowRecord, by: EndedByRecord, waived: bool, suspended_ms: u64 },
        LeaseReturned { lease: u64, verdict: VerdictRecord },
        LeaseProven { lease: u64 },
        AttemptReturned {
            job: u64,
            task: u32,
            attempt: u32,
            outputs: Vec<ReturnedFileRecord>,
            outcome: OutcomeRecord,
            notes: Vec<String>,
        },
        AttemptReleased { job: u64, task: u32, attempt: u32 },
        AttemptDropped { job: u64, task: u32, attempt: u32, outcome: OutcomeRecord },
        AttemptNoted { job: u64, task: u32, attempt: u32, note: String },
        RetryQueued { job: u64, task: u32, attempt: u32, prepared: bool },
        JobDone { job: u64, outcome: OutcomeRecord },
        CancelRequested { job: u64, request: CancelRecord },
        CancelDue { job: u64 },
        CancelWithdrawn { job: u64 },
        PriorityChanged { job: u64, priority: i16 },
        PositionChanged { job: u64, position: i64, ranked: bool },
        JobPaused { job: u64, by: String },
        JobResumed { job: u64 },
        EditBegan { job: u64, by: String, until: NowRecord },
        EditEnded { job: u64 },
        JobEdited { job: u64, request: RequestedRecord, prepared: bool },
        ChangeKept { job: u64, change: ChangeRecord },
        ChangeUndone { job: u64 },
        DeviceChanged { uuid: String, state: DeviceStateRecord },
        DeviceFaulted { uuid: String, fault: FaultRecord },
        DeviceCleared { uuid: String, accepted: Option<AcceptedRecord> },
        DeviceClosing { uuid: String, close: Option<CloseRecord> },
    }
}

/// Text that is stored elsewhere.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Elsewhere {}

impl Record<String> for Elsewhere {
    fn of(_: &String) -> Self {
        Self {}
    }
    fn restore(self) -> Result<String, RecordError> {
        Ok(String::new())
    }
}
