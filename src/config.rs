//! Where things are, what the operator has set, and the environment: read once, here, and handed on as values.
//!
//! Knows nothing of jobs and decides nothing; every adapter and the shell may use it.

mod environment;
mod file;
mod login;
mod reference;
mod theme;

pub use environment::{Environment, hostname};
pub use file::{
    Config, Defaults, EnvironmentConfig, GpuSource, KeepConfig, LimitsConfig, Notify, NotifyConfig,
    OutsideConfig, Rates, Spinner, UiConfig, UntilDone,
};
pub use login::{capture_login_path, default_login_path, work_environment};
pub use reference::markdown;
pub use theme::{Detect, ThemeSetting};

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the settings cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file is there (or was named) and cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// It does not say what it should.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// From 1; 1 if the finding has no place.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong, with the nearest known name if there is one.
        message: String,
    },
    /// Neither `HOME` nor the account's entry says where home is.
    #[error("no home directory: set HOME, or give --root")]
    NoHome,
    /// A relative folder cannot be resolved: the current directory is gone.
    #[error("cannot resolve {}", path.display())]
    Relative {
        /// What was given.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
}

/// The folders of one scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The root: `~/overnight`.
    pub root: PathBuf,
    /// State: `$XDG_STATE_HOME/overnight/<hostname>`.
    pub state: PathBuf,
}

impl Paths {
    /// From the flags, else the environment, else the config, else the defaults.
    ///
    /// A root that is given alone implies the state below it; a flag is never mixed with a state of the environment.
    pub fn resolve(
        root: Option<&Path>,
        state: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let chosen_root = match (root, &environment.root, &config.root) {
            (Some(flag), _, _) => absolute(flag)?,
            (None, Some(set), _) => absolute(set)?,
            (None, None, Some(set)) => environment.expand(set)?,
            (None, None, None) => environment.home()?.join("overnight"),
        };
        let chosen_state = match (state, root, &environment.state, &environment.root) {
            (Some(flag), _, _, _) => absolute(flag)?,
            (None, Some(_), _, _) | (None, None, None, Some(_)) => chosen_root.join(".state"),
            (None, None, Some(set), _) => absolute(set)?,
            (None, None, None, None) => environment.state_home()?.join("overnight").join(hostname()),
        };
        Ok(Self { root: chosen_root, state: chosen_state })
    }

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

    /// Trees in which only the scheduler, and the work that it runs, makes names. Each may lie behind a link of the
    /// owner's; below them there are none that count.
    pub fn own_trees(&self) -> Vec<PathBuf> {
        vec![self.jobs(), self.state.join("run"), self.state.join("work"), self.state.join("snapshots")]
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

fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    std::path::absolute(path).map_err(|source| ConfigError::Relative { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
