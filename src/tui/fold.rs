//! What an update does to the snapshot, and what of it is news. Pure.

use crate::model::{JobId, JobState, Outcome};
use crate::protocol::{JobRow, Snapshot, Update};
use std::sync::Arc;

pub use crate::protocol::Incomplete;

/// Applies an update: [`Snapshot::fold`].
pub fn fold(snap: &mut Snapshot, update: Update) -> Result<(), Incomplete> {
    snap.fold(update)
}

/// The jobs that ended between two snapshots and what they came to: what nobody wanted last, and of those alike the
/// newest last. `was_open` is in order.
pub(in crate::tui) fn newly_done<'a>(
    was_open: &[JobId],
    new: &'a Snapshot,
) -> Vec<(&'a JobRow, &'a Outcome)> {
    let done = |row: &&Arc<JobRow>| row.state == JobState::Done && was_open.binary_search(&row.id).is_ok();
    let ended = new.history.iter().rev().filter(done);
    let mut ended: Vec<_> = ended.filter_map(|row| Some((&**row, row.outcome.as_ref()?))).collect();
    // A failure is news even if another job succeeded after it.
    ended.sort_by_key(|(_, outcome)| !is_fine(outcome));
    ended
}

/// Whether somebody wanted a job to end so.
pub(in crate::tui) fn is_fine(outcome: &Outcome) -> bool {
    outcome.is_success() || matches!(outcome, Outcome::Cancelled { .. })
}
