//! What the caller knows and what it gets back.

use crate::model::{JobSpec, Span};
use crate::protocol::{Diagnostic, Overrides, PoolFacts};
use std::path::{Path, PathBuf};

/// What the caller knows about a job file before it is read.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The file name shown in findings.
    pub shown: &'a str,
    /// Where the default job name comes from: the file's stem, or the folder's name.
    pub stem: &'a str,
    /// Where relative paths start; `None` makes them an error.
    pub base: Option<Base>,
    /// The owner's home directory, for `~/`.
    pub home: &'a Path,
    /// The moment that relative times count from, wall milliseconds.
    pub now_wall_ms: i64,
    /// The time zone of times without an offset.
    pub zone: jiff::tz::TimeZone,
    /// What the pool has, if that is known.
    pub pool: Option<&'a PoolFacts>,
    /// What the operator allows.
    pub limits: Limits,
    /// What `submit --name --env --gpus --for` change.
    pub overrides: &'a Overrides,
    /// Whether to look at the file system: do `in`, `conda`, `venv`, `env_file` and `data` exist, what do scripts say.
    pub check_host: bool,
}

/// Where relative paths start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Where they are now: existence is checked there.
    pub at: PathBuf,
    /// What is recorded: a dropped folder is moved after it is accepted.
    pub will_be: PathBuf,
}

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A larger file is refused unread.
    pub file_bytes: u64,
    /// Tasks of one job.
    pub tasks: u32,
    /// Whether `for: until_done` is.
    pub until_done: UntilDone,
    /// The longest `for`.
    pub max_for: Option<Span>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 1 << 20, tasks: 100_000, until_done: UntilDone::Allowed, max_for: None }
    }
}

/// Whether a job may run without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum UntilDone {
    #[default]
    Allowed,
    Forbidden,
}

/// What a job file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// One for each document, with that job's warnings; empty when there is any error.
    pub jobs: Vec<(JobSpec, Vec<Diagnostic>)>,
    /// All errors and warnings, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

/// How findings are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RenderStyle {
    /// Text only.
    #[default]
    Plain,
    /// With colours for a terminal.
    Ansi,
}
