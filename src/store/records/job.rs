//! Records of jobs, tasks and attempts.

use super::change::{ChangeRecord, EditMarkRecord, JobTextRecord};
use super::event::{CancelRecord, OriginRecord};
use super::scalars::{NowRecord, OwnerRecord, PathRecord};
use super::spec::{OutputKindRecord, SpecRecord};
use super::{Record, RecordError, record};
use crate::model::{
    Attempt, AttemptState, Dependency, EnforcedBy, Enforcement, Failure, Job, Now, Outcome, ReturnedFile,
    RunEnd, Task,
};

record! {
    /// A job as it is now.
    struct JobRecord for Job {
        id: u64,
        submission: u64,
        spec: SpecRecord,
        file: Option<JobTextRecord>,
        owner: OwnerRecord,
        origin: OriginRecord,
        submitted: NowRecord,
        generation: u64,
        priority: i16,
        position: i64,
        ranked: bool,
        paused: Option<String>,
        edit: Option<EditMarkRecord>,
        changes: Vec<ChangeRecord>,
        cancel: Option<CancelRecord>,
        retry_of: Option<u64>,
        warnings: Vec<String>,
        after: Vec<DependencyRecord>,
        tasks: Vec<TaskRecord>,
        done: Option<DoneRecord>,
    }
}

/// When a job was done, and what it came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DoneRecord {
    at: NowRecord,
    outcome: OutcomeRecord,
}

impl Record<(Now, Outcome)> for DoneRecord {
    fn of((at, outcome): &(Now, Outcome)) -> Self {
        Self { at: Record::of(at), outcome: Record::of(outcome) }
    }
    fn restore(self) -> Result<(Now, Outcome), RecordError> {
        Ok((self.at.restore()?, self.outcome.restore()?))
    }
}

record! {
    /// Another job that this one waits for.
    struct DependencyRecord for Dependency { name: String, job: Option<u64>, must_succeed: bool }
}

record! {
    /// One element of a job.
    struct TaskShape for Task { ix: u32, attempts: Vec<AttemptRecord> }
}

/// A task has at least one attempt: code relies on it, so a record without one is refused.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TaskRecord(TaskShape);

impl Record<Task> for TaskRecord {
    fn of(model: &Task) -> Self {
        Self(Record::of(model))
    }
    fn restore(self) -> Result<Task, RecordError> {
        if self.0.attempts.is_empty() {
            return Err(RecordError::Value { what: "a task without an attempt" });
        }
        self.0.restore()
    }
}

record! {
    /// One try at running a task.
    struct AttemptRecord for Attempt {
        number: u32,
        state: AttemptStateRecord,
        outputs: Vec<ReturnedFileRecord>,
        peak_memory: Option<u64>,
        mean_utilisation: Option<u8>,
        peak_gpu_memory: Option<u64>,
        enforcement: Option<EnforcementRecord>,
        notes: Vec<String>,
    }
}

record! {
    /// What the kernel holds an attempt to.
    struct EnforcementRecord for Enforcement {
        by: EnforcedByRecord,
        memory: bool,
        cpus: bool,
        processes: bool,
        why: Option<String>,
    }
}

record! {
    /// What enforces.
    enum EnforcedByRecord for EnforcedBy { CgroupV2, CgroupV1, Nothing }
}

record! {
    /// Where an attempt is.
    enum AttemptStateRecord for AttemptState {
        Queued { since: NowRecord, prepared: bool },
        Renting { lease: u64 },
        Running { lease: u64, started: NowRecord },
        Returning { lease: u64, started: Option<NowRecord>, ended: NowRecord, end: RunEndRecord },
        Releasing { lease: u64, started: Option<NowRecord>, ended: NowRecord, outcome: OutcomeRecord },
        Done {
            lease: Option<u64>,
            started: Option<NowRecord>,
            ended: Option<NowRecord>,
            outcome: OutcomeRecord,
            at: NowRecord,
        },
    }
}

record! {
    /// How a run ended.
    enum RunEndRecord for RunEnd {
        Exited { code: i32 },
        Signalled { signal: i32 },
        OutOfMemory { certain: bool },
        LimitReached,
        Cancelled { by: String },
        NotStarted { why: String },
        Lost { why: String },
    }
}

record! {
    /// What an attempt or a job came to.
    enum OutcomeRecord for Outcome {
        Succeeded,
        Failed(failure: FailureRecord),
        LimitReached,
        Cancelled { by: String },
        NeverStarted { why: String },
        Lost { why: String },
    }
}

record! {
    /// How the work itself failed.
    enum FailureRecord for Failure {
        Code(code: i32),
        Signal(signal: i32),
        OutOfMemory { certain: bool },
        OutputMissing { paths: Vec<String> },
    }
}

record! {
    /// A file that came back.
    struct ReturnedFileRecord for ReturnedFile {
        path: PathRecord,
        kind: OutputKindRecord,
        bytes: u64,
        blake3: String,
        partial: bool,
    }
}
