//! From a supervisor's records to the core's words.

use crate::model::{AttemptNo, Collected, LeaseId, TaskIx};
use crate::sched::EngineReport;
use crate::supervisor::collection::manifest_path;
use crate::supervisor::record::{Ended, Record};
use std::path::Path;

/// The report a record is worth; none for what the scheduler itself caused.
pub(super) fn report(lease: LeaseId, run_dir: &Path, record: &Record) -> Option<EngineReport> {
    match record {
        Record::Started { task, attempt, at, enforcement, .. } => Some(EngineReport::Started {
            lease,
            task: *task,
            attempt: *attempt,
            at: *at,
            enforcement: enforcement.clone(),
        }),
        Record::Outlived { who, .. } => Some(EngineReport::Outlived { lease, who: who.clone() }),
        Record::Gone { .. } => Some(EngineReport::Gone { lease }),
        Record::Ended(ended) => {
            let Ended { task, attempt, at, end, by, peak_memory, suspended_ms, notes } = ended.clone();
            Some(EngineReport::Ended { lease, task, attempt, at, end, by, peak_memory, suspended_ms, notes })
        }
        Record::Collected { task, attempt, failure, .. } => {
            let result = failure.clone().map_or_else(|| manifest(run_dir, *task, *attempt), Err);
            Some(EngineReport::Collected { lease, task: *task, attempt: *attempt, result })
        }
        Record::NotLaunched { why, at } => {
            Some(EngineReport::NotLaunched { lease, at: *at, why: why.clone() })
        }
        Record::Void { at } => Some(EngineReport::NotLaunched {
            lease,
            at: *at,
            why: "its supervisor was never started".to_owned(),
        }),
        Record::Intent(_) | Record::Told { .. } | Record::Returned { .. } | Record::Unknown => None,
    }
}

/// What the collector found.
pub(super) fn manifest(run_dir: &Path, task: TaskIx, attempt: AttemptNo) -> Result<Collected, String> {
    let path = manifest_path(run_dir, task, attempt);
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}
