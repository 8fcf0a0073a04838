//! Control groups: what this machine has of them, and one group for every attempt.
//!
//! Beside the layers, as the clock is: the supervisor puts its work into a group, and the engine ends what is left in one.
//! It knows paths, files and process numbers, and neither of the two.
//!
//! ```text
//! version 2, beside the group the scheduler is in:      version 1, below it, for each of memory, pids, cpu:
//!   overnight-<uid>-<state>/                              overnight-<uid>-<state>/
//!     supervisors/               all supervisors            waiting-<pid>/               made before there is a lease,
//!     <token>-<task>-<attempt>/  one attempt                <token>-<task>-<attempt>/    and renamed when there is
//! ```
//!
//! Supervisors are beside the scheduler's group, so that whatever ends that group, a service manager first of all, does
//! not end the jobs. Nothing outside `overnight-…` is written, but for the controllers that its parent hands down to it.
//!
//! A group that cannot be made is never the job's failure: it runs, and what it asked for is advisory, which is said.
//!
//! Moving a process into a group waits for all processors to have noticed (milliseconds); starting one inside does not.
//! So nothing is moved while a launch waits for it.

mod find;
mod groups;
mod limits;
mod make;
mod mounts;

pub use groups::Groups;
pub use limits::Limits;
pub use make::{Door, Made, enter};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Memory.
    Memory,
    /// The number of processes.
    Pids,
    /// Processor time.
    Cpu,
}

/// Where this scheduler's groups are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Layout {
    /// Our directory in version 2, if attempts get a group there.
    pub version2: Option<PathBuf>,
    /// What can be limited there.
    pub controllers: Vec<Controller>,
    /// Our directories in version 1.
    pub version1: Vec<Version1>,
    /// The groups that every supervisor moves into.
    pub supervisors: Vec<PathBuf>,
    /// All of our directories.
    pub tops: Vec<PathBuf>,
    /// Why there is less than there could be.
    pub why: Option<String>,
}

/// A hierarchy of version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version1 {
    /// What it can limit.
    pub controllers: Vec<Controller>,
    /// Our directory.
    pub top: PathBuf,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

impl Layout {
    /// Without any group: everything is advisory.
    pub fn none(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::default() }
    }

    /// Whether attempts get groups.
    pub const fn has_groups(&self) -> bool {
        self.version2.is_some() || !self.version1.is_empty()
    }

    /// Whether a process can be in an attempt's groups before it is known which attempt that is: groups of version 1 can
    /// be renamed.
    pub const fn can_wait(&self) -> bool {
        self.version2.is_none()
    }
}

/// For the log of the scheduler.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |controllers: &[Controller]| {
            controllers.iter().map(|controller| controller.name()).collect::<Vec<_>>().join(", ")
        };
        let mut parts = Vec::new();
        if self.version2.is_some() {
            let limits = names(&self.controllers);
            let limits = if limits.is_empty() { "no limits".to_owned() } else { limits };
            parts.push(format!("cgroup v2 ({limits})"));
        }
        if !self.version1.is_empty() {
            let all: Vec<Controller> =
                self.version1.iter().flat_map(|tree| tree.controllers.iter().copied()).collect();
            parts.push(format!("cgroup v1 ({})", names(&all)));
        }
        if !self.supervisors.is_empty() {
            parts.push("supervisors outside the scheduler's group".to_owned());
        }
        if parts.is_empty() {
            parts.push("none".to_owned());
        }
        f.write_str(&parts.join("; "))?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, "; {why}"))
    }
}
