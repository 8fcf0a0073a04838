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
            let result = match failure {
                Some(why) => Err(why.clone()),
                None => match manifest(run_dir, *task, *attempt) {
                    Ok(collected) => Ok(collected),
                    // What was found cannot be read, so it is looked for again: it is all still there.
                    Err(why) => return Some(not_read(lease, why)),
                },
            };
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

/// The scheduler collects what its supervisor's collector has found and nobody can read.
pub(super) const fn not_read(lease: LeaseId, why: String) -> EngineReport {
    EngineReport::Missing { lease, heartbeat: None, at: None, gone: true, collecting: false, why }
}

/// What the collector found.
pub(super) fn manifest(run_dir: &Path, task: TaskIx, attempt: AttemptNo) -> Result<Collected, String> {
    let path = manifest_path(run_dir, task, attempt);
    let own = [run_dir.to_owned()];
    let bytes = crate::beneath::own_read(&path, &own, crate::supervisor::collection::MOST_BYTES)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}
