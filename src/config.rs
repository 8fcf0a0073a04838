//! Where things are, and what the operator has set.

use std::path::{Path, PathBuf};

/// The folders of one scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The root: `~/overnight`.
    pub root: PathBuf,
    /// State: `$XDG_STATE_HOME/overnight/<hostname>`.
    pub state: PathBuf,
}

impl Paths {
    /// Where job files are dropped.
    pub fn inbox(&self) -> PathBuf {
        self.root.join("inbox")
    }

    /// Everything about each job, for people.
    pub fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.state.join("state.redb")
    }

    /// The scheduler's socket.
    pub fn socket(&self) -> PathBuf {
        self.state.join("overnight.sock")
    }

    /// The run directory of a lease: its supervisor's journal and socket, and the attempt's scratch.
    pub fn run(&self, lease: crate::model::LeaseId) -> PathBuf {
        self.state.join("run").join(lease.to_string())
    }

    /// The code snapshot of a job.
    pub fn snapshot(&self, job: crate::model::JobId) -> PathBuf {
        self.state.join("snapshots").join(job.to_string())
    }

    /// A work directory that was made ready before the grant.
    pub fn prepared(&self, job: crate::model::JobId, task: u32, attempt: u32) -> PathBuf {
        self.state.join("work").join(format!("{job}-{task}-{attempt}"))
    }

    /// An attempt's folder for people: `log.txt` and `output/`.
    pub fn attempt(&self, folder: &str, attempt: u32) -> PathBuf {
        self.jobs().join(folder).join("attempts").join(attempt.to_string())
    }

    /// The scheduler's log.
    pub fn log(&self) -> PathBuf {
        self.state.join("scheduler.log")
    }

    /// Below `root` alone: `--root R` implies `--state R/.state`.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), state: root.join(".state") }
    }
}
