//! What a job file says, parsed, resolved and checked: the request as the owner made it.
//!
//! Everything here is final: paths are absolute, times are instants, `all` is still `all` (the pool decides).

use super::{Bytes, Priority, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One job as its file declares it: *work, data, request, output*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// `[a-z0-9._-]{1,64}`; the file's stem if the file has none.
    pub name: String,
    /// Usage is also summed per project.
    pub project: Option<String>,
    /// What runs.
    pub work: Work,
    /// What it reads.
    pub data: Vec<DataItem>,
    /// How much, how long, by when.
    pub request: Request,
    /// What comes back.
    pub output: Vec<OutputItem>,
    /// An extra place for the output. Absolute.
    pub output_to: Option<PathBuf>,
    /// When to run the configured notification command.
    pub notify: Vec<NotifyOn>,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// For people and history only.
    pub kind: WorkKind,
    /// `in:`, the directory the work starts from. Absolute. Without it: an empty private directory.
    pub dir: Option<PathBuf>,
    /// How `dir` reaches the work.
    pub code: Code,
    /// Run before the work, without `-e`.
    pub setup: Setup,
    /// The command.
    pub run: Run,
    /// Environment variables, values as text.
    pub env: BTreeMap<String, String>,
    /// Read at start, never stored. Absolute.
    pub env_file: Option<PathBuf>,
    /// One task per combination.
    pub for_each: Option<ForEach>,
    /// Kept between attempts, relative to the work directory.
    pub checkpoint: Option<String>,
    /// The warning before the kill.
    pub stop: Stop,
}

/// What kind of work it is; changes nothing but filters and history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum WorkKind {
    Training,
    Inference,
    Processing,
    Simulation,
    #[default]
    Other,
}

/// How the directory named by `in:` reaches the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A private copy, `.gitignore` and `.overnightignore` honoured.
    Snapshot {
        /// Also left out.
        skip: Vec<String>,
        /// Taken although ignored.
        keep: Vec<String>,
    },
    /// Run in place.
    Live,
}

impl Default for Code {
    fn default() -> Self {
        Self::Snapshot { skip: Vec::new(), keep: Vec::new() }
    }
}

/// Set-up of the environment, in this order: modules, conda, venv, shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// `module load` each.
    pub modules: Vec<String>,
    /// A name or a prefix.
    pub conda: Option<String>,
    /// The directory of a virtual environment on disk. Absolute.
    pub venv: Option<PathBuf>,
    /// Shell text.
    pub shell: Option<String>,
}

impl Setup {
    /// Whether there is nothing to set up.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.conda.is_none() && self.venv.is_none() && self.shell.is_none()
    }
}

/// The command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// Text for `bash -eo pipefail`.
    Shell(String),
    /// A program and its arguments; no shell.
    Argv(Vec<String>),
}

/// One task per combination. Parsed today; more than one task is refused as not supported yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// One map of key to value for each task, in order.
    pub tasks: Vec<BTreeMap<String, String>>,
}

/// The warning signal and how long it has before the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Sent to every process of the attempt.
    pub signal: StopSignal,
    /// From the warning to the kill.
    pub grace: Span,
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: StopSignal::Term, grace: Span::secs(30) }
    }
}

/// The signals that may warn a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "named as the kernel names them")]
pub enum StopSignal {
    #[default]
    Term,
    Int,
    Hup,
    Usr1,
    Usr2,
}

/// One entry of `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataItem {
    /// Where it is.
    pub from: DataFrom,
    /// The name it appears under in the work directory and in `$OVERNIGHT_DATA`.
    pub name: String,
    /// How it gets there.
    pub stage: Stage,
    /// The hash its bytes must have, 64 hex digits.
    pub sha256: Option<String>,
}

/// Where a data item comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFrom {
    /// An absolute path on this host.
    Path(PathBuf),
    /// `job:NAME/PATH`: the returned output of an earlier job; implies `after: [NAME]`.
    Job {
        /// The earlier job's name.
        job: String,
        /// Relative to that job's output; empty for all of it.
        path: String,
    },
}

/// How a data item reaches the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A symbolic link.
    #[default]
    Link,
    /// A copy on fast disk, made before the rent.
    Copy,
    /// An archive unpacked before the rent.
    Unpack,
}

/// A number, or everything the pool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount<T> {
    /// This much.
    Some(T),
    /// All there is.
    All,
}

/// How much, how long, by when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// GPUs; 0 is CPU-only.
    pub gpus: Amount<u32>,
    /// Any of these, matched as words of the device's name, without regard to case.
    pub gpu_model: Vec<String>,
    /// Each; a card that reports 93 % of it fits.
    pub gpu_memory: Option<Bytes>,
    /// What `CUDA_VISIBLE_DEVICES` holds.
    pub gpu_ids: GpuIds,
    /// May share a GPU with others.
    pub share: bool,
    /// CPU cores; `None` takes the pool's share for its GPUs.
    pub cpus: Option<Amount<u32>>,
    /// Host memory; `None` takes the pool's share for its GPUs.
    pub memory: Option<Amount<Bytes>>,
    /// Scratch and staged data.
    pub disk: Option<Bytes>,
    /// How long the run may take.
    pub limit: Limit,
    /// When the result is needed, wall milliseconds.
    pub finish_by_ms: Option<i64>,
    /// Not started before, wall milliseconds.
    pub start_after_ms: Option<i64>,
    /// Names of jobs that must have succeeded.
    pub after: Vec<String>,
    /// Names of jobs that must have ended.
    pub after_any: Vec<String>,
    /// Higher goes first.
    pub priority: Priority,
    /// Tasks of this job at the same time.
    pub at_once: Option<u32>,
    /// When to try again.
    pub retry: Retry,
}

/// How long the run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Then the warning signal, the grace and the kill.
    For(Span),
    /// No limit; others cannot be promised a start while it runs.
    UntilDone,
}

impl Limit {
    /// The length, if there is one.
    pub const fn span(self) -> Option<Span> {
        match self {
            Self::For(span) => Some(span),
            Self::UntilDone => None,
        }
    }
}

/// What `CUDA_VISIBLE_DEVICES` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuIds {
    /// Indices in PCI order, resolved from UUIDs just before the work starts.
    #[default]
    Index,
    /// UUIDs.
    Uuid,
}

/// When a task is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How often at most, after the first attempt.
    pub times: u32,
    /// After which ends.
    pub when: Vec<RetryOn>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { times: 1, when: vec![RetryOn::Lost] }
    }
}

/// An end after which a task is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// The pool's own fault.
    Lost,
    /// The limit was reached.
    Limit,
    /// This exit code.
    Code(i32),
}

/// One entry of `output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputItem {
    /// A file, directory or glob, relative to `$OVERNIGHT_OUTPUT` or the work directory.
    pub path: String,
    /// For people and history.
    pub kind: OutputKind,
    /// Missing is no failure.
    pub optional: bool,
}

/// What kind of output it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum OutputKind {
    Model,
    Results,
    #[default]
    Files,
    Report,
}

/// When to notify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum NotifyOn {
    End,
    Fail,
    Late,
}
