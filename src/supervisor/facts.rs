//! Facts as they are now, for the journal.

use super::process;
use super::record::{Ended, Intent, Record};
use super::spec::LaunchSpec;
use crate::cgroup::Groups;
use crate::clock;
use crate::model::{AttemptNo, EndedBy, RunEnd, TaskIx};

/// Who is about to run what, now.
pub(super) fn intent(spec: &LaunchSpec, groups: Groups) -> Intent {
    Intent {
        lease: spec.lease,
        token: spec.token.clone(),
        job: spec.job,
        task: spec.task,
        attempt: spec.attempt,
        supervisor: process::own(),
        groups,
        at: clock::now(),
    }
}

/// The end of a run that had none of its own.
pub(super) fn ended_now(task: TaskIx, attempt: AttemptNo, end: RunEnd) -> Record {
    Record::Ended(Ended {
        task,
        attempt,
        at: clock::now(),
        end,
        by: EndedBy::Proven,
        peak_memory: None,
        suspended_ms: 0,
        notes: Vec::new(),
    })
}

/// The end of a collection.
pub(super) fn collected_now(task: TaskIx, attempt: AttemptNo, failure: Option<String>) -> Record {
    Record::Collected { task, attempt, failure, at: clock::now() }
}
