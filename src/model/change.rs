//! Changes to a job that waits: the mark of an edit, what an edit replaces, and what takes a change back.

use super::{Dependency, Generation, JobId, JobSpec, Now, Priority, Span};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Somebody edits a job: it is not started before that ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditMark {
    /// Who.
    pub by: String,
    /// When the mark ends by itself.
    pub until: Now,
    /// A generation that its job has passed over: only who made the mark knows it.
    pub generation: Generation,
    /// The job's priority when its text was opened: what the text says of it is no change.
    pub priority: Priority,
}

impl EditMark {
    /// How long it lasts from here on. Whoever edits is a process of this machine: none of an earlier boot is there.
    pub fn left(&self, now: &Now) -> Span {
        if self.until.boot == now.boot { now.left_to(&self.until) } else { Span(0) }
    }
}

/// A job's text, where it is not its submission's any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobText {
    /// One document.
    pub text: String,
    /// Where its relative paths start.
    pub base: Option<PathBuf>,
    /// What its relative times were counted from, wall milliseconds.
    pub at_ms: i64,
}

/// What an edit replaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requested {
    /// What the job asks.
    pub spec: Arc<JobSpec>,
    /// Said when that was accepted.
    pub warnings: Vec<String>,
    /// What it waits for.
    pub after: Vec<Dependency>,
    /// Its priority.
    pub priority: Priority,
    /// Its place in line.
    pub position: i64,
    /// Its owner placed it there.
    pub ranked: bool,
    /// Its text; `None`: its submission's.
    pub file: Option<Arc<JobText>>,
}

/// A change of a job that waits, with what takes it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When.
    pub at: Now,
    /// Later changes, of whichever job, have higher ones.
    pub number: u64,
    /// Who.
    pub by: String,
    /// What.
    pub what: Changed,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Its priority.
    Priority {
        /// As it was.
        old: Priority,
        /// As it was made.
        new: Priority,
    },
    /// Its place.
    Place {
        /// As it was.
        old: Position,
        /// As it was made.
        new: i64,
        /// The job that it went past by one place, with its place before and after.
        passed: Option<Passed>,
    },
    /// It was paused.
    Paused,
    /// It was resumed.
    Resumed {
        /// Who had paused it.
        paused_by: String,
    },
    /// Its request.
    Request {
        /// As it was.
        old: Box<Requested>,
        /// The names of the fields that were changed.
        fields: Vec<String>,
    },
}

/// A place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Lower goes first.
    pub at: i64,
    /// The owner placed it.
    pub ranked: bool,
}

/// A job that another one went past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Which.
    pub job: JobId,
    /// Its place before.
    pub old: i64,
    /// Its place after.
    pub new: i64,
}
