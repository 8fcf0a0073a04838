//! How an attempt, and with it a job, ended: exactly one of these.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Exactly one for every attempt and every job. Cleaning up never changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work ended with 0 and every required output came back.
    Succeeded,
    /// The work's own failure.
    Failed(Failure),
    /// The limit was reached; the work was warned, then killed.
    LimitReached,
    /// Somebody cancelled it.
    Cancelled {
        /// Who.
        by: String,
    },
    /// It never held anything.
    NeverStarted {
        /// Why, in words.
        why: String,
    },
    /// The pool's fault: the user is not charged for it.
    Lost {
        /// Why, in words.
        why: String,
    },
}

/// How the work itself failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A non-zero exit code.
    Code(i32),
    /// Ended by a signal that was not ours.
    Signal(i32),
    /// The kernel killed it for memory. `certain` if a cgroup told.
    OutOfMemory {
        /// Told by a cgroup, not guessed from the kernel's counter.
        certain: bool,
    },
    /// It ended with 0 but a required output is not there.
    OutputMissing {
        /// The declared paths without a match.
        paths: Vec<String>,
    },
}

impl Outcome {
    /// Whether dependents of `after` may start.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded)
    }

    /// The word of `ls --json`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::LimitReached => "limit_reached",
            Self::Cancelled { .. } => "cancelled",
            Self::NeverStarted { .. } => "never_started",
            Self::Lost { .. } => "lost",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
            Self::LimitReached => f.write_str("limit reached"),
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::NeverStarted { why } => write!(f, "never started: {why}"),
            Self::Lost { why } => write!(f, "lost: {why}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::OutOfMemory { certain: true } => f.write_str("out of memory"),
            Self::OutOfMemory { certain: false } => f.write_str("killed, probably out of memory"),
            Self::OutputMissing { paths } => write!(f, "output missing: {}", paths.join(", ")),
        }
    }
}
