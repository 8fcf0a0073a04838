//! What a client asks for. Every command names the generation it was decided on; a stale one is refused politely.

use super::MeterBy;
use crate::model::{Generation, JobId, Priority, Revision, Span, Uuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of these shapes. Both sides must have the same; the remedy for a difference is one line.
pub const PROTOCOL: u32 = 4;

/// The first message each way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender.
    pub protocol: u32,
    /// The sender's version, for people.
    pub version: String,
    /// The sender's process.
    pub pid: u32,
}

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time; a box would be noise at every use")]
pub enum ClientMessage {
    /// First.
    Hello(Hello),
    /// Then any number of these.
    Request(Request),
}

/// One request; one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time; a box would be noise at every use")]
pub enum Request {
    /// Change something.
    Command(Command),
    /// Look.
    Query(Query),
    /// From now on, send an update when something changed, at most every `every_ms`.
    Subscribe {
        /// Milliseconds between updates at least.
        every_ms: u64,
    },
}

/// Looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// Everything the screens show; rows changed after `since` only, if that is given.
    Snapshot {
        /// The revision the client has.
        since: Option<Revision>,
    },
    /// Jobs that are not done, and the last `done` that are (0: none).
    Jobs {
        /// How many done ones at most, newest first.
        done: u32,
    },
    /// The job that a person means by an id or an unambiguous name.
    Resolve {
        /// What they typed.
        name: String,
    },
    /// One job, whole.
    Job {
        /// Which.
        job: JobId,
    },
    /// The text of a job's file, to open in an editor and send back with [`Command::Edit`], or to copy.
    JobFile {
        /// Which.
        job: JobId,
    },
    /// What a change would do to the line. Changes nothing.
    WhatIf {
        /// Which.
        job: JobId,
        /// What would be done to it.
        change: Change,
    },
    /// What [`Command::Undo`] can still take back; the newest first.
    Undoable,
    /// The devices.
    Gpus,
    /// What the scheduler has read of the devices.
    GpuHistory {
        /// One device only.
        gpu: Option<Uuid>,
        /// Only the finest steps that cover so many of the last milliseconds; `None`: all.
        span_ms: Option<u64>,
    },
    /// Who had, has and is expected to get which device.
    Timeline {
        /// From, wall milliseconds; `None`: a day ago.
        from_ms: Option<i64>,
        /// To, wall milliseconds; `None`: as far as the forecast goes.
        until_ms: Option<i64>,
    },
    /// The ledger.
    Meter {
        /// Rows by what.
        by: MeterBy,
        /// From, wall milliseconds; `None`: from the beginning.
        since_ms: Option<i64>,
        /// To, wall milliseconds; `None`: now.
        until_ms: Option<i64>,
    },
    /// Recomputes the ledger from lease records and compares.
    MeterCheck,
    /// What an operator must know.
    Notices,
    /// Whether it is there.
    Ping,
}

/// Changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Submit one file's text; all its jobs are accepted or none.
    Submit(SubmitFile),
    /// Diagnose one file's text against this pool; changes nothing.
    Check(SubmitFile),
    /// Cancel a job.
    Cancel {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
        /// How long it can be undone; 0: at once.
        undo: Span,
        /// Kill at once, without the warning signal.
        now: bool,
    },
    /// Take back the newest change that can still be taken back, of this job or of all: a cancel in its window; a move, a
    /// priority, a pause, a resume or an edit of a job that still waits.
    Undo {
        /// Which.
        job: Option<JobId>,
    },
    /// Mark a waiting or paused job as being edited: it is not started until the mark is dropped or has expired.
    BeginEdit {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
    },
    /// Replace the request of a waiting or paused job by a file's text, read and checked as for a submission. Ends the mark.
    Edit {
        /// Which.
        job: JobId,
        /// What [`Reply::Editing`](super::Reply::Editing) named, if the job was marked; else as last seen.
        generation: Generation,
        /// One job. Its overrides are written into the text that is kept.
        file: SubmitFile,
        /// Only say what would change.
        dry_run: bool,
    },
    /// Drop the mark of [`Command::BeginEdit`]. One that is not there any more is no error.
    EndEdit {
        /// Which.
        job: JobId,
        /// What [`Reply::Editing`](super::Reply::Editing) named: nobody else's mark is dropped.
        generation: Generation,
    },
    /// Set a priority.
    SetPriority {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
        /// The new one.
        priority: Priority,
    },
    /// Change a waiting job's place among its owner's jobs of the same priority.
    Move {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
        /// Where to.
        to: Place,
    },
    /// Do not start it until resumed.
    Pause {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
    },
    /// Start it again when its turn comes.
    Resume {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
    },
    /// Submit a done job again.
    Retry {
        /// Which.
        job: JobId,
        /// As last seen.
        generation: Generation,
    },
    /// Hand these devices to nobody until opened.
    Close {
        /// Which.
        gpus: GpuSelect,
        /// Why.
        reason: String,
    },
    /// Hand these devices out again.
    Open {
        /// Which.
        gpus: GpuSelect,
    },
    /// Lift a quarantine; the device is free once a reading shows it clean.
    Clear {
        /// Which.
        gpu: GpuSelect,
    },
    /// Look at the inbox again.
    Rescan,
    /// End the scheduler; jobs go on.
    Stop,
}

/// Which devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuSelect {
    /// All of them.
    All,
    /// By index.
    Index(u32),
    /// By identity, or an unambiguous beginning of one.
    Uuid(Uuid),
}

/// A place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum Place {
    Top,
    Bottom,
    Up,
    Down,
}

/// What could be done to a waiting job, for [`Query::WhatIf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// As [`Command::Move`].
    Move(Place),
    /// As [`Command::SetPriority`].
    Priority(Priority),
    /// As [`Command::Pause`].
    Pause,
    /// As [`Command::Resume`].
    Resume,
}

/// One file to submit or check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitFile {
    /// Its text, as bytes were read: may not be UTF-8.
    pub text: Vec<u8>,
    /// The name shown in diagnostics.
    pub shown: String,
    /// The default job name.
    pub stem: String,
    /// The file, if it was one.
    pub file: Option<PathBuf>,
    /// Where its relative paths start.
    pub base: Option<PathBuf>,
    /// Changes written into the stored job.
    pub overrides: Overrides,
    /// The caller's `PATH`, `LANG`, `LC_*`.
    pub environment: BTreeMap<String, String>,
    /// Accept it paused.
    pub paused: bool,
}

/// What `submit --name --env --gpus --for`, and a quick edit, change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// `--name`
    pub name: Option<String>,
    /// `--env K=V`
    pub env: BTreeMap<String, String>,
    /// `--gpus`
    pub gpus: Option<u32>,
    /// `--for`
    pub limit: Option<Span>,
    /// Of a quick edit.
    #[serde(default)]
    pub priority: Option<Priority>,
}
