//! What the scheduler answers.

use super::{
    Diagnostic, Edited, GpuHistory, GpuRow, Hello, JobDetail, JobFile, JobRow, Notice, Snapshot, Timeline,
    UndoRow, Update, WhatIf,
};
use crate::model::{Generation, JobId};
use serde::{Deserialize, Serialize};

/// What the scheduler sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// First.
    Hello(Hello),
    /// One for each request, in order; to `Query::Jobs` as many as it has parts.
    Reply(Reply),
    /// To subscribers.
    Update(Box<Update>),
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Done. The jobs or devices it changed, in words.
    Ok {
        /// One line for people.
        message: String,
    },
    /// A submission was accepted.
    Submitted {
        /// Its jobs, in the file's order.
        jobs: Vec<SubmittedJob>,
        /// Warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// A file was checked.
    Checked {
        /// What would be submitted; empty if it would be refused.
        jobs: Vec<SubmittedJob>,
        /// Errors and warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// A submission was refused.
    Invalid {
        /// Errors and warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// To `Command::BeginEdit`: it is not started before the mark ends.
    Editing {
        /// The job.
        job: JobId,
        /// Names the mark, in `Edit` and `EndEdit`.
        generation: Generation,
        /// When the mark expires, wall milliseconds.
        until: i64,
    },
    /// To `Command::Edit`, for a text without errors.
    Edited(Box<Edited>),
    /// Refused: somebody else is editing the job.
    BeingEdited {
        /// The job.
        job: JobId,
        /// Who.
        by: String,
        /// When the mark expires, wall milliseconds.
        until: i64,
    },
    /// Refused: the job has changed since, or cannot do that in its state.
    Refused {
        /// What, why, what next.
        message: String,
    },
    /// No job, or no device, of that name.
    NotFound {
        /// What was looked for, and what there is.
        message: String,
    },
    /// To `Query::Snapshot`.
    Snapshot(Box<Snapshot>),
    /// To `Query::Jobs`: rows in parts, all of one moment, so that both sides work on a long list at once.
    Jobs {
        /// This part.
        rows: Vec<JobRow>,
        /// How many rows follow; none: this is the last part.
        left: u32,
    },
    /// To `Query::Resolve`.
    Resolved {
        /// The job.
        job: JobId,
        /// As it is now.
        generation: Generation,
    },
    /// To `Query::Job`.
    Job(Box<JobDetail>),
    /// To `Query::JobFile`.
    JobFile(Box<JobFile>),
    /// To `Query::WhatIf`.
    WhatIf(WhatIf),
    /// To `Query::Undoable`; the newest first.
    Undoable(Vec<UndoRow>),
    /// To `Query::Gpus`.
    Gpus(Vec<GpuRow>),
    /// To `Query::GpuHistory`.
    GpuHistory(Box<GpuHistory>),
    /// To `Query::Timeline`.
    Timeline(Box<Timeline>),
    /// To `Query::Meter`.
    Meter(MeterTable),
    /// To `Query::MeterCheck`: what does not add up; empty if all does.
    MeterChecked {
        /// Lease records looked at.
        leases: u64,
        /// In words.
        differences: Vec<String>,
    },
    /// To `Query::Notices`; the worst first.
    Notices(Vec<Notice>),
    /// To `Query::Ping` and `Subscribe`.
    Pong,
    /// The scheduler cannot answer now.
    Unavailable {
        /// Why, and what to do.
        message: String,
    },
}

/// A job as its submitter is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubmittedJob {
    /// Its number; `None` for a check.
    pub id: Option<JobId>,
    /// Its name.
    pub name: String,
    /// Place in line; `None` if it starts at once.
    pub place: Option<u32>,
    /// Why it waits.
    pub why: Option<String>,
    /// When it is expected to start, wall milliseconds.
    pub starts_at: Option<i64>,
    /// When it will have started at the latest.
    pub starts_by: Option<i64>,
    /// It will miss its deadline as things are.
    pub late: bool,
    /// The devices it has, or would have, by their indices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
}

/// What the rows of a meter table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum MeterBy {
    #[default]
    User,
    Project,
    Job,
    Gpu,
    Day,
}

/// The ledger over a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeterTable {
    /// From, wall milliseconds.
    pub since: Option<i64>,
    /// To, wall milliseconds.
    pub until: i64,
    /// Rows by what.
    pub by: MeterBy,
    /// Largest first; days in order.
    pub rows: Vec<MeterRow>,
    /// GPUs held at `until`, if that is now.
    pub held_now: u32,
}

/// One row of it. Milliseconds are gross; `waived_gpu_ms` of them are not billed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeterRow {
    /// The user, project, job, GPU or day.
    pub key: String,
    /// Jobs that held something.
    pub jobs: u64,
    /// GPU-milliseconds.
    pub gpu_ms: u64,
    /// Core-milliseconds.
    pub core_ms: u64,
    /// GPU-milliseconds that are not billed.
    pub waived_gpu_ms: u64,
    /// Only with a configured rate.
    pub cost: Option<f64>,
}
