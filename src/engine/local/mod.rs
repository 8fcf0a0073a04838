//! The local engine: a supervisor process per lease, on this machine.
//!
//! It starts supervisors, passes orders on, turns their news into [`EngineReport`]s, and takes over what is left when a
//! supervisor is gone. It decides nothing. Of its neighbours it knows the supervisor's messages and journal only.

use super::{Engine, EngineError};
use crate::config::Paths;
use crate::model::{Bytes, LeaseId, Token};
use crate::sched::{EngineReport, Launch, StopKind};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the engine's news goes.
pub type Report = Arc<dyn Fn(EngineReport) + Send + Sync>;

/// What the engine has to know.
#[derive(Debug)]
pub struct LocalConfig {
    /// The scheduler's folders.
    pub paths: Paths,
    /// `PATH`, `LANG`, `LC_*` of the work.
    pub environment: BTreeMap<String, String>,
    /// How much of an attempt's log is kept.
    pub log_bound: Bytes,
    /// Where the cross-scheduler locks of real devices are.
    pub lock_dir: PathBuf,
    /// This program, kept open: an upgraded file on disk changes nothing for a running scheduler.
    pub executable: OwnedFd,
    /// The program that collects and its arguments; `None` is `overnight collect`.
    pub collector: Option<Vec<String>>,
}

/// The local engine.
pub struct LocalEngine {
    config: LocalConfig,
    report: Report,
}

impl LocalEngine {
    /// Starts the engine's thread.
    pub fn new(config: LocalConfig, report: Report) -> Result<Self, EngineError> {
        Ok(Self { config, report })
    }
}

impl Engine for LocalEngine {
    fn launch(&mut self, launch: &Launch) -> Result<(), EngineError> {
        let _ = (&self.config, &self.report);
        Err(EngineError::Unknown(launch.lease))
    }

    fn stop(&mut self, lease: LeaseId, _kind: &StopKind) -> Result<(), EngineError> {
        Err(EngineError::Unknown(lease))
    }

    fn dismiss(&mut self, lease: LeaseId) -> Result<(), EngineError> {
        Err(EngineError::Unknown(lease))
    }

    fn survey(&mut self, _leases: &[(LeaseId, Token)]) -> Result<(), EngineError> {
        Ok(())
    }
}
