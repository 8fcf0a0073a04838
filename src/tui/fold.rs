//! What an update does to the snapshot, and what of it is news. Pure.

use crate::model::{JobId, JobState, Outcome};
use crate::protocol::{JobRow, Snapshot, Update};
use std::sync::Arc;

pub use crate::protocol::Incomplete;

/// Applies an update: [`Snapshot::fold`].
pub fn fold(snap: &mut Snapshot, update: Update) -> Result<(), Incomplete> {
    snap.fold(update)
}

/// A job that ended between two snapshots and what it came to, the newest one only. `was_open` is in order.
pub(in crate::tui) fn newly_done<'a>(
    was_open: &[JobId],
    new: &'a Snapshot,
) -> Option<(&'a JobRow, &'a Outcome)> {
    let done = |row: &&Arc<JobRow>| row.state == JobState::Done && was_open.binary_search(&row.id).is_ok();
    let mut ended = new.history.iter().filter(done).filter_map(|row| Some((&**row, row.outcome.as_ref()?)));
    let first = ended.next()?;
    // A failure is news even if another job succeeded after it.
    let bad = |(_, outcome): &(&JobRow, &Outcome)| !outcome.is_success();
    Some(if bad(&first) { first } else { ended.find(bad).unwrap_or(first) })
}
