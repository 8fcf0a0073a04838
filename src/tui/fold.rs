//! Folds updates into the snapshot: rows by id, orders by list. Pure.

use crate::model::{JobId, JobState, Outcome};
use crate::protocol::{JobRow, Snapshot, Update};
use std::collections::HashMap;
use std::sync::Arc;

/// An update names a row that never arrived: the whole snapshot is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomplete;

/// Applies an update. On `Err` the snapshot is as new as it can be, without the rows that are missing.
pub fn fold(snap: &mut Snapshot, update: Update) -> Result<(), Incomplete> {
    if update.revision < snap.revision {
        return Ok(());
    }
    let Update { revision, snapshot: mut new, order, history_order } = update;
    let mut known: HashMap<JobId, Arc<JobRow>> = HashMap::new();
    for row in snap.jobs.drain(..).chain(snap.history.drain(..)) {
        known.insert(row.id, row);
    }
    for row in new.jobs.drain(..).chain(new.history.drain(..)) {
        known.insert(row.id, row);
    }
    let mut missing = false;
    let mut arrange = |order: Vec<JobId>| -> Vec<Arc<JobRow>> {
        order
            .into_iter()
            .filter_map(|id| {
                let row = known.get(&id).cloned();
                missing |= row.is_none();
                row
            })
            .collect()
    };
    new.jobs = arrange(order);
    new.history = arrange(history_order);
    new.revision = revision;
    *snap = new;
    if missing { Err(Incomplete) } else { Ok(()) }
}

/// A job that ended between two snapshots and what it came to, the newest one only.
pub(in crate::tui) fn newly_done<'a>(
    was_open: &[JobId],
    new: &'a Snapshot,
) -> Option<(&'a JobRow, &'a Outcome)> {
    let done = |row: &&Arc<JobRow>| row.state == JobState::Done && was_open.contains(&row.id);
    let mut ended = new.history.iter().filter(done).filter_map(|row| Some((&**row, row.outcome.as_ref()?)));
    let first = ended.next()?;
    // A failure is news even if another job succeeded after it.
    let bad = |(_, outcome): &(&JobRow, &Outcome)| !outcome.is_success();
    Some(if bad(&first) { first } else { ended.find(bad).unwrap_or(first) })
}
