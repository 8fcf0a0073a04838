//! `wait`: told of changes by a subscription, so that waiting costs nothing.

use super::session::Session;
use super::{CliError, Exit, Io, Setup, when};
use crate::model::{Cursor, JobId, Outcome};
use crate::protocol::JobRow;
use std::collections::{BTreeSet, HashSet};

/// Waits until these jobs are done.
pub(super) fn wait(jobs: &[String], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let ids =
        jobs.iter().map(|typed| session.resolve(typed).map(|(job, _)| job)).collect::<Result<Vec<_>, _>>()?;
    until_done(&mut session, &ids, setup, io)
}

/// Tells of each job when it is done. Exit 0 only if all succeeded.
pub(super) fn until_done(
    session: &mut Session,
    jobs: &[JobId],
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    let mut pending: BTreeSet<JobId> = jobs.iter().copied().collect();
    let mut exit = Exit::Ok;
    session.subscribe()?;
    // First all of them are looked at: one may have been done before the subscription.
    let mut look: Vec<JobId> = pending.iter().copied().collect();
    loop {
        for id in look {
            let row = session.job(id)?.row;
            let Some(outcome) = row.outcome.as_ref().filter(|_| row.state == Cursor::Done) else { continue };
            pending.remove(&id);
            if !outcome.is_success() {
                exit = Exit::Failed;
            }
            io.line(&ended(&row, outcome, setup))?;
            io.flush()?;
        }
        if pending.is_empty() {
            return Ok(exit);
        }
        let active: HashSet<JobId> = session.picture()?.jobs.iter().map(|row| row.id).collect();
        look = pending.iter().copied().filter(|id| !active.contains(id)).collect();
    }
}

fn ended(row: &JobRow, outcome: &Outcome, setup: &Setup) -> String {
    let at = row.done_at.map(|at| when::exact(at, &setup.zone)).unwrap_or_default();
    format!("{at} {} {}: {outcome}", row.id, row.name)
}
