//! `wait` and `watch`: told of changes by a subscription, so that waiting costs nothing.

use super::ls::word;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, when};
use crate::model::{Cursor, JobId, Outcome};
use crate::protocol::{InboxState, JobRow, NoticeLevel, Update};
use std::collections::{BTreeMap, BTreeSet, HashSet};

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

/// What a line was last printed about.
#[derive(Default)]
struct Seen {
    jobs: BTreeMap<JobId, (&'static str, Vec<u32>)>,
    gpus: BTreeMap<u32, (&'static str, Option<String>)>,
    inbox: BTreeMap<String, bool>,
    notices: BTreeSet<String>,
}

/// One line for every change: no cursor movement, for screen readers, logs and scripts.
pub(super) fn watch(setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    session.subscribe()?;
    let first = session.update()?;
    let mut seen = Seen::default();
    // What is there already is not news; how much it is, is.
    seen.changes(&first);
    let active = first.rows.iter().filter(|row| row.state != Cursor::Done);
    let (waiting, running): (Vec<_>, Vec<_>) = active.partition(|row| row.state == Cursor::Queued);
    let at = when::exact(first.at.wall_ms, &setup.zone);
    let (running, waiting, gpus) = (running.len(), waiting.len(), first.gpus.len());
    io.line(&format!("{at} watching: {running} running, {waiting} waiting, {gpus} GPUs"))?;
    io.flush()?;
    loop {
        let update = session.update()?;
        let at = when::exact(update.at.wall_ms, &setup.zone);
        for line in seen.changes(&update) {
            io.line(&format!("{at} {line}"))?;
        }
        io.flush()?;
    }
}

impl Seen {
    /// Takes note of everything, and says what is new.
    fn changes(&mut self, update: &Update) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &update.rows {
            let now = (word(row), row.gpu_indices.clone());
            if self.jobs.get(&row.id) != Some(&now) {
                lines.push(job_line(row));
                self.jobs.insert(row.id, now);
            }
        }
        for row in &update.gpus {
            let now = (row.state.word(), row.detail.clone());
            let before = self.gpus.insert(row.index, now.clone());
            // The details of a device that is used change with every reading; its state does not.
            if before.is_none_or(|before| before.0 != now.0) {
                let detail = now.1.map(|detail| format!(": {detail}")).unwrap_or_default();
                lines.push(format!("gpu {}: {}{detail}", row.index, now.0));
            }
        }
        for row in update.inbox.iter().flatten() {
            let refused = matches!(row.state, InboxState::Refused { .. });
            if self.inbox.insert(row.name.clone(), refused) != Some(refused)
                && let InboxState::Refused { diagnostics } = &row.state
            {
                let why = diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
                lines.push(format!("inbox {}: refused: {why}", row.name));
            }
        }
        if let Some(notices) = &update.notices {
            let notices: BTreeSet<String> = notices
                .iter()
                .filter(|notice| notice.level != NoticeLevel::Info)
                .map(|notice| notice.text.clone())
                .collect();
            lines.extend(notices.difference(&self.notices).map(|text| format!("! {text}")));
            self.notices = notices;
        }
        lines
    }
}

fn job_line(row: &JobRow) -> String {
    let what = match (&row.outcome, row.state) {
        (Some(outcome), Cursor::Done) => outcome.to_string(),
        _ => word(row).to_owned(),
    };
    let why = match &row.why {
        Some(why) if row.state != Cursor::Done => format!(": {why}"),
        _ => String::new(),
    };
    format!("{} {} ({}): {what}{why}", row.id, row.name, row.user)
}
