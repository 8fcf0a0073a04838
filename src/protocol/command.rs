//! What a client asks for. Every command names the generation it was decided on; a stale one is refused politely.

use super::MeterBy;
use crate::model::{Generation, JobId, Priority, Revision, Span, Uuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version of these shapes. Both sides must have the same; the remedy for a difference is one line.
pub const PROTOCOL: u32 = 3;

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
pub enum ClientMessage {
    /// First.
    Hello(Hello),
    /// Then any number of these.
    Request(Request),
}

/// One request; one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Undo a cancel that is still in its window; the newest one if no job is named.
    Undo {
        /// Which.
        job: Option<JobId>,
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

/// What `submit --name --env --gpus --for` change.
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
}
