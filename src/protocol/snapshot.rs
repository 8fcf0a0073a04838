//! What the screens show: rows with a revision, so that only what changed has to travel.
//!
//! Wall times are milliseconds since the epoch; `None` is "not yet" or "unknown". Texts are clean.

use super::{Diagnostic, EditMark};
use crate::model::{
    AttemptNo, Bytes, DeviceState, EndedBy, Enforcement, Generation, GpuProcess, JobId, JobState, LeaseId,
    Limit, Now, Outcome, Priority, ReturnedFile, Revision, Span, TaskIx, Uuid, Verdict, WorkKind,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything the screens show, as of one revision.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The scheduler's turn.
    pub revision: Revision,
    /// When it was taken.
    pub at: Now,
    /// The scheduler itself.
    pub scheduler: SchedulerInfo,
    /// Jobs that are not done: running ones first, then the line in its order, paused ones last.
    pub jobs: Vec<Arc<JobRow>>,
    /// The last done jobs, newest first.
    pub history: Vec<Arc<JobRow>>,
    /// Devices in index order.
    pub gpus: Vec<GpuRow>,
    /// The running meter.
    pub meter: MeterSummary,
    /// Files seen in the inbox: refused ones first, then newest first.
    pub inbox: Vec<InboxRow>,
    /// What an operator must know; the worst first.
    pub notices: Vec<Notice>,
}

/// The scheduler itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchedulerInfo {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The host's name.
    pub host: String,
    /// The account it runs as.
    pub user: String,
    /// Its root.
    pub root: PathBuf,
    /// Where files are dropped.
    pub inbox: PathBuf,
    /// Since when it runs, wall milliseconds.
    pub since: i64,
    /// What hands out devices: `nvml`, `simulated`, `none`, and why if none.
    pub gpus_by: String,
    /// Cores and memory of the pool, and how much is leased.
    pub cores: u32,
    /// Leased.
    pub cores_held: u32,
    /// Pool memory.
    pub memory: Bytes,
    /// Leased.
    pub memory_held: Bytes,
}

/// A job as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// Number.
    pub id: JobId,
    /// The turn in which this row last changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: Revision,
    /// What commands about it carry.
    pub generation: Generation,
    /// Name.
    pub name: String,
    /// Owner's account.
    pub user: String,
    /// Project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Kind of work.
    pub kind: WorkKind,
    /// Where it is.
    pub state: JobState,
    /// Who paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Somebody edits it: it is not started meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editing: Option<EditMark>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Its tasks.
    #[serde(default = "TaskCounts::one_waiting", skip_serializing_if = "TaskCounts::is_one_waiting")]
    pub tasks: TaskCounts,
    /// GPUs it asks for.
    pub gpus: u32,
    /// Cores it asks for.
    pub cpus: u32,
    /// Memory it asks for.
    pub memory: Bytes,
    /// Priority.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// Its owner placed it: its position in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<i64>,
    /// Accepted.
    pub submitted_at: i64,
    /// First lease granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rented_at: Option<i64>,
    /// First attempt's work started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// Last attempt's run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<i64>,
    /// When the limit will be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_at: Option<i64>,
    /// The limit.
    pub limit: Limit,
    /// GPU-milliseconds of leases that have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_gpu_ms: u64,
    /// Core-milliseconds of leases that have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed_core_ms: u64,
    /// Of `closed_gpu_ms`, not billed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waived_gpu_ms: u64,
    /// Leases that are open: they add to the above as time goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenLease>,
    /// Place in line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Why it waits, or where it is: `gpu 0,1`, `needs 8 free`, `after #12`, `copying ~/src`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Expected start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    /// Start at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_by: Option<i64>,
    /// Expected end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finishes_at: Option<i64>,
    /// Deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_by: Option<i64>,
    /// Will miss, or missed, its deadline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub late: bool,
    /// A cancel's undo window closes then; in the past: it is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_at: Option<i64>,
    /// Who cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_by: Option<String>,
    /// Not tried again before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<i64>,
    /// The job this retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<JobId>,
    /// What is being copied for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<String>,
    /// Highest resident memory seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Bytes>,
    /// Highest memory in use on one of its GPUs while it held them, as far as the scheduler has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_memory: Option<Bytes>,
    /// Percent: the mean over the readings of its GPUs while it held them, of a running job so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_utilisation: Option<u8>,
    /// Devices it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Uuid>,
    /// Their indices today.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_indices: Vec<u32>,
    /// The command's first line, secrets masked. Empty in lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The job's folder. Empty in lists.
    #[serde(default, skip_serializing_if = "is_no_path")]
    pub directory: PathBuf,
    /// The current attempt's log. Empty in lists.
    #[serde(default, skip_serializing_if = "is_no_path")]
    pub log: PathBuf,
    /// How many warnings it was accepted with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warnings: u32,
}

impl JobRow {
    /// GPU-milliseconds up to `now`, gross.
    pub fn gpu_ms(&self, now: &Now) -> u64 {
        self.closed_gpu_ms
            + self.open.iter().map(|lease| lease.held_ms(now) * u64::from(lease.gpus)).sum::<u64>()
    }

    /// Core-milliseconds up to `now`, gross.
    pub fn core_ms(&self, now: &Now) -> u64 {
        self.closed_core_ms
            + self.open.iter().map(|lease| lease.held_ms(now) * u64::from(lease.cores)).sum::<u64>()
    }
}

/// An open lease, for the running meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLease {
    /// Number.
    pub lease: LeaseId,
    /// Since when.
    pub granted: Now,
    /// Devices.
    pub gpus: u32,
    /// Cores.
    pub cores: u32,
}

impl OpenLease {
    /// Milliseconds held up to `now`; 0 across boots.
    pub fn held_ms(&self, now: &Now) -> u64 {
        now.since(&self.granted).map_or(0, |span| span.0)
    }
}

/// What most rows of a long list have is not sent.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_no_path(path: &std::path::Path) -> bool {
    path.as_os_str().is_empty()
}

/// How many of a job's tasks are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words of `ls --json`")]
pub struct TaskCounts {
    pub total: u32,
    pub queued: u32,
    pub active: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub lost: u32,
}

impl TaskCounts {
    /// A plain job that waits: what most rows of a long list are.
    const fn one_waiting() -> Self {
        Self { total: 1, queued: 1, active: 0, succeeded: 0, failed: 0, cancelled: 0, lost: 0 }
    }

    fn is_one_waiting(&self) -> bool {
        *self == Self::one_waiting()
    }
}

/// One job, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobDetail {
    /// As lists show it.
    pub row: JobRow,
    /// When this was taken.
    pub at: Now,
    /// The five steps.
    pub steps: Vec<StepRow>,
    /// All attempts.
    pub attempts: Vec<AttemptRow>,
    /// What came back, by task.
    pub outputs: Vec<(TaskIx, ReturnedFile)>,
    /// Said at acceptance.
    pub warnings: Vec<String>,
    /// Hints and notes of all attempts.
    pub notes: Vec<String>,
    /// The spec in the job file's words, secrets masked.
    pub spec: serde_json::Value,
}

/// One of the five steps and when it was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRow {
    /// submit, rent, run, output, release.
    pub step: String,
    /// When it was reached.
    pub at: Option<i64>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRow {
    /// Task.
    pub task: TaskIx,
    /// Number.
    pub attempt: AttemptNo,
    /// Where it is.
    pub state: JobState,
    /// Its lease.
    pub lease: Option<LeaseId>,
    /// Devices.
    pub devices: Vec<Uuid>,
    /// Granted.
    pub granted: Option<Now>,
    /// Work started.
    pub started: Option<Now>,
    /// What the kernel holds the work to, if it was started and its supervisor said.
    #[serde(default)]
    pub enforcement: Option<Enforcement>,
    /// Run ended.
    pub ended: Option<Now>,
    /// Devices back.
    pub returned: Option<Now>,
    /// Held.
    pub held: Option<Span>,
    /// GPU-milliseconds, gross.
    pub gpu_ms: u64,
    /// Not billed.
    pub waived: bool,
    /// Who says when it ended.
    pub ended_by: Option<EndedBy>,
    /// What it came to.
    pub outcome: Option<Outcome>,
    /// The release; `None`: pending.
    pub verdict: Option<Verdict>,
}

/// A device as screens show it. What could not be read is `None`, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuRow {
    /// Identity.
    pub uuid: Uuid,
    /// Index today.
    pub index: u32,
    /// Host.
    pub node: String,
    /// Model.
    pub name: String,
    /// What the pool thinks of it.
    pub state: DeviceState,
    /// Jobs that hold it.
    pub jobs: Vec<JobId>,
    /// Percent.
    pub utilisation: Option<u8>,
    /// In use.
    pub memory_used: Option<Bytes>,
    /// In all.
    pub memory_total: Bytes,
    /// Degrees.
    pub temperature_c: Option<i32>,
    /// Watts.
    pub power_w: Option<u32>,
    /// Who is on it.
    pub processes: Vec<GpuProcess>,
    /// The state in words: culprit, reason, since when.
    pub detail: Option<String>,
    /// Others cannot reach it while it is held.
    pub enforced: bool,
    /// It is held, and every reading since then said that it does nothing: wall milliseconds, only once that has been so
    /// for five minutes. What cannot be read is never idle.
    #[serde(default)]
    pub idle_since: Option<i64>,
}

/// The running meter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MeterSummary {
    /// GPUs held now.
    pub gpus_held: u32,
    /// GPUs in the pool.
    pub gpus_total: u32,
    /// Where today began, wall milliseconds.
    pub today_began: i64,
    /// GPU-milliseconds of today up to the snapshot's moment, open leases included.
    pub today_gpu_ms: u64,
    /// Jobs that succeeded today.
    pub today_ok: u32,
    /// Jobs that failed or reached their limit today.
    pub today_failed: u32,
    /// Jobs lost today.
    pub today_lost: u32,
    /// Where the first step of `day` begins, wall milliseconds.
    #[serde(default)]
    pub day_began: i64,
    /// GPU-milliseconds of the last 24 hours in steps of [`MeterSummary::STEP_MS`], up to the snapshot's moment: the last
    /// step is under way.
    #[serde(default)]
    pub day: Vec<u64>,
    /// By user.
    pub users: Vec<UserMeter>,
}

impl MeterSummary {
    /// Half an hour.
    pub const STEP_MS: i64 = 1_800_000;
    /// So many steps are a day.
    pub const DAY_STEPS: usize = 48;
}

/// One user's line of the meter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UserMeter {
    /// Account.
    pub user: String,
    /// GPUs held now.
    pub held: u32,
    /// Jobs that hold something.
    pub running: u32,
    /// Jobs that wait.
    pub waiting: u32,
    /// GPU-milliseconds of today up to the snapshot's moment.
    pub today_gpu_ms: u64,
    /// GPU-milliseconds of the last seven days up to the snapshot's moment.
    pub week_gpu_ms: u64,
}

/// A file that was seen in the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxRow {
    /// Its name there.
    pub name: String,
    /// When, wall milliseconds.
    pub at: i64,
    /// What became of it.
    pub state: InboxState,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Not taken yet: being written or edited.
    Waiting {
        /// Why.
        why: String,
    },
    /// Accepted.
    Accepted {
        /// Its jobs.
        jobs: Vec<JobId>,
        /// Warnings.
        warnings: Vec<Diagnostic>,
    },
    /// Refused: left where it is, read again when it changes.
    Refused {
        /// Why.
        diagnostics: Vec<Diagnostic>,
    },
}

/// What an operator must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// How bad.
    pub level: NoticeLevel,
    /// One line: what, why, what next.
    pub text: String,
    /// The job it is about.
    pub job: Option<JobId>,
}

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// How a client stands with the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Messages arrive.
    Live,
    /// None for a while: the picture may be old.
    Stale {
        /// For how long.
        age: Span,
    },
    /// No scheduler.
    Lost {
        /// Why, in words.
        why: String,
        /// The next try.
        retry_in: Span,
    },
}

/// What a job file is checked against.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PoolFacts {
    /// Model name and memory of each GPU, in index order.
    pub gpus: Vec<(String, Bytes)>,
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: Bytes,
    /// Names of jobs that are not done, newest first.
    pub jobs: Vec<String>,
    /// Whether the scheduler has looked at its devices yet; if not, the pool is not checked against.
    pub known: bool,
}
