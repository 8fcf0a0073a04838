//! The launch spec: all that a supervisor is told about one attempt, as one JSON line through its control channel.
//!
//! It is never written to disk: it carries the job's environment. Fields that a later version adds are ignored by an
//! earlier one; fields that an earlier version does not send have defaults.

use crate::cgroup::Limits;
use crate::model::{
    AttemptNo, Bytes, Collect, GpuIds, JobId, LeaseId, Run, Setup, Span, Stop, TaskIx, Token, Uuid,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How the program's hidden verb `gpu-indices` exits when the driver does not list one of the devices.
pub const NOT_LISTED: u8 = 66;

/// One attempt, ready to run: every path absolute, every value final.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Lease.
    pub lease: LeaseId,
    /// Identifies the processes of the lease.
    pub token: Token,
    /// Job.
    pub job: JobId,
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// The run directory of the lease: journal, socket, script, scratch.
    pub run_dir: PathBuf,
    /// What to run.
    pub run: Run,
    /// What to set up before; shell text and shell runs only differ in who reads the result.
    pub setup: Setup,
    /// The environment, by whose word counts more.
    pub environment: Environment,
    /// Where the work starts.
    pub work: WorkDir,
    /// Data, linked into the work directory and into `$OVERNIGHT_DATA`.
    pub data: Vec<DataLink>,
    /// Everything below it comes back.
    pub output_dir: PathBuf,
    /// Where the log goes.
    pub log: PathBuf,
    /// How much of it is kept.
    pub log_bound: Bytes,
    /// How long the run may take.
    pub limit: Option<Span>,
    /// The warning before the kill.
    pub stop: Stop,
    /// Devices.
    pub devices: Devices,
    /// What its groups hold it to.
    #[serde(default)]
    pub limits: Limits,
    /// What to collect once the run has ended; `partial` and `newer_than_ns` are filled in then.
    pub collect: Collect,
    /// The program that collects and its arguments; the path of the manifest is added as the last one.
    pub collector: Vec<String>,
}

/// Environment variables in layers: later fields win.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// The owner's: `PATH`, `LANG`, `HOME` and the like.
    pub base: BTreeMap<String, String>,
    /// `KEY=value` lines; must be 0600 and the owner's. Read at start, never stored.
    pub file: Option<PathBuf>,
    /// The job's own, and its task's `for_each` values.
    pub job: BTreeMap<String, String>,
    /// Overnight's: nothing overrides them.
    pub fixed: BTreeMap<String, String>,
}

/// The directory the work starts in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkDir {
    /// Made empty by the supervisor.
    Fresh(PathBuf),
    /// Made ready before the grant.
    Prepared(PathBuf),
    /// The owner's own.
    Live(PathBuf),
}

/// A data item at its final place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataLink {
    /// What it points at.
    pub target: PathBuf,
    /// What it is called.
    pub name: String,
}

/// The devices of the lease, and how the work is told about them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Devices {
    /// Which; empty for a CPU-only job.
    pub held: Vec<Device>,
    /// Indices or UUIDs.
    pub ids: GpuIds,
    /// Where the cross-scheduler locks of real devices are.
    pub lock_dir: PathBuf,
    /// Written into a lock for whoever finds it taken.
    pub holder: String,
    /// What the process that asks the driver for indices needs to find its library. The work does not see it.
    #[serde(default)]
    pub driver_environment: BTreeMap<String, String>,
}

/// A device of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Identity.
    pub uuid: Uuid,
    /// Index when it was last listed.
    pub index: u32,
    /// Has a cross-scheduler lock, and its index is looked up again just before the work starts.
    pub real: bool,
}

impl WorkDir {
    /// Where it is.
    pub const fn path(&self) -> &PathBuf {
        match self {
            Self::Fresh(path) | Self::Prepared(path) | Self::Live(path) => path,
        }
    }
}

/// Without the environment and the command: both may hold secrets.
impl std::fmt::Debug for LaunchSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("lease", &self.lease)
            .field("job", &self.job)
            .field("task", &self.task)
            .field("attempt", &self.attempt)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}
