//! `watch`: one line for every change, for screen readers, logs and scripts. The same news as the dashboard's; no cursor
//! movement, each line as soon as it is true. It outlives the scheduler, and ends when nobody reads it any more.

use super::ls::word;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, when};
use crate::client::ClientError;
use crate::model::{Cursor, JobId, chain};
use crate::protocol::json::{About, News};
use crate::protocol::{GpuRow, InboxRow, InboxState, JobRow, Notice, NoticeLevel, Update};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::AsFd;

/// The first wait before the next try to reach a scheduler that is gone, and the longest.
const RETRY_MS: (u64, u64) = (250, 5_000);
/// Done jobs that are remembered, so that they are told once: the scheduler lists fewer.
const DONE: usize = 1_000;

/// One line for every change, until interrupted.
pub(super) fn watch(as_json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut seen = Seen::default();
    let mut session = Session::open(setup)?;
    let mut again = false;
    loop {
        let lost = match follow(&mut session, &mut seen, again, (as_json, setup), io) {
            Ok(never) => match never {},
            Err(CliError::Client(error)) if may_come_back(&error) => error,
            Err(error) => return Err(error),
        };
        let text = format!("connection lost: {}; jobs go on without it", chain(&lost));
        say(&About::Connection { live: false }, &text, crate::clock::wall_ms(), (as_json, setup), io)?;
        io.flush()?;
        session = reconnected(setup)?;
        again = true;
    }
}

/// There is nothing to return: a scheduler tells for as long as it is there.
enum Never {}

/// Tells of everything until the connection is lost.
fn follow(
    session: &mut Session,
    seen: &mut Seen,
    again: bool,
    (as_json, setup): (bool, &Setup),
    io: &mut Io<'_>,
) -> Result<Never, CliError> {
    session.subscribe()?;
    let first = read(session)?;
    let active = first.rows.iter().filter(|row| row.state != Cursor::Done);
    let (waiting, running): (Vec<_>, Vec<_>) = active.partition(|row| row.state == Cursor::Queued);
    let word = if again { "connected again" } else { "watching" };
    let (running, waiting, gpus) = (running.len(), waiting.len(), first.gpus.len());
    let text = format!("{word}: {running} running, {waiting} waiting, {gpus} GPUs");
    say(&About::Connection { live: true }, &text, first.at.wall_ms, (as_json, setup), io)?;
    io.flush()?;
    // What is there at the beginning is not news; what happened while nobody was told of it is.
    let mut update = first;
    let mut silent = !again;
    loop {
        let at = update.at.wall_ms;
        seen.changes(&update, |about, text| {
            if silent {
                return Ok(());
            }
            say(&about, &text, at, (as_json, setup), io)?;
            io.flush()
        })?;
        silent = false;
        update = read(session)?;
    }
}

/// The next change. Ends when nobody reads any more, also while nothing happens.
fn read(session: &mut Session) -> Result<Update, CliError> {
    while !session.has_update() {
        let output = rustix::stdio::stdout();
        let mut ready = [
            PollFd::from_borrowed_fd(session.as_fd(), PollFlags::IN),
            PollFd::new(&output, PollFlags::empty()),
        ];
        if is_ready(poll(&mut ready, None))? && !ready[0].revents().is_empty() {
            break;
        }
        still_read(ready[1].revents())?;
    }
    session.update()
}

fn is_ready(polled: Result<usize, Errno>) -> Result<bool, CliError> {
    match polled {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(CliError::Output { source: errno.into() }),
    }
}

fn still_read(output: PollFlags) -> Result<(), CliError> {
    if output.contains(PollFlags::ERR) {
        return Err(CliError::Output { source: ErrorKind::BrokenPipe.into() });
    }
    Ok(())
}

/// A scheduler that is not there now may be there later. One that is not ours, or of another version, will not do.
const fn may_come_back(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NoScheduler { .. }
            | ClientError::NotAnswering { .. }
            | ClientError::Closed
            | ClientError::Io { .. }
    )
}

fn reconnected(setup: &Setup) -> Result<Session, CliError> {
    let (mut wait, longest) = RETRY_MS;
    loop {
        match Session::open(setup) {
            Err(CliError::Client(error)) if may_come_back(&error) => {}
            other => return other,
        }
        let output = rustix::stdio::stdout();
        let mut ready = [PollFd::new(&output, PollFlags::empty())];
        let timeout = Timespec { tv_sec: (wait / 1_000) as i64, tv_nsec: (wait % 1_000 * 1_000_000) as i64 };
        is_ready(poll(&mut ready, Some(&timeout)))?;
        still_read(ready[0].revents())?;
        wait = (wait * 2).min(longest);
    }
}

fn say(
    about: &About<'_>,
    text: &str,
    at: i64,
    (as_json, setup): (bool, &Setup),
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    if as_json {
        return io.json(&News::new(about, text, at, &setup.zone));
    }
    io.line(&format!("{} {text}", when::exact(at, &setup.zone)))
}

/// What was last told.
#[derive(Default)]
struct Seen {
    jobs: BTreeMap<JobId, (&'static str, Vec<u32>)>,
    done: BTreeSet<JobId>,
    gpus: BTreeMap<u32, (&'static str, bool)>,
    inbox: BTreeMap<String, InboxState>,
    notices: BTreeSet<String>,
}

impl Seen {
    /// Takes note of everything, and tells what is new.
    fn changes(
        &mut self,
        update: &Update,
        mut tell: impl FnMut(About<'_>, String) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        for row in update.rows.iter().filter(|row| self.job(row)) {
            tell(About::Job(row), job_line(row))?;
        }
        for row in &update.gpus {
            if let Some(text) = self.gpu(row) {
                tell(About::Gpu(row), text)?;
            }
        }
        if let Some(rows) = &update.inbox {
            for (row, text) in self.inbox(rows) {
                tell(About::Inbox(row), text)?;
            }
        }
        if let Some(notices) = &update.notices {
            for (about, text) in self.notices(notices) {
                tell(about, text)?;
            }
        }
        Ok(())
    }

    /// Whether there is news of a job.
    fn job(&mut self, row: &JobRow) -> bool {
        let now = (word(row), row.gpu_indices.clone());
        if row.state == Cursor::Done {
            self.done.insert(row.id);
            if self.done.len() > DONE
                && let Some(oldest) = self.done.pop_first()
            {
                self.jobs.remove(&oldest);
            }
        }
        self.jobs.insert(row.id, now.clone()) != Some(now)
    }

    /// The details of a device that is used change with every reading; its state does not.
    fn gpu(&mut self, row: &GpuRow) -> Option<String> {
        let now = (row.state.word(), row.idle_since.is_some());
        if self.gpus.insert(row.index, now) == Some(now) {
            return None;
        }
        let idle = if now.1 { ", idle" } else { "" };
        let detail = row.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        Some(format!("gpu {}: {}{idle}{detail}", row.index, now.0))
    }

    /// Files that were refused, also again for another reason.
    fn inbox<'a>(&mut self, rows: &'a [InboxRow]) -> Vec<(&'a InboxRow, String)> {
        let mut news = Vec::new();
        self.inbox.retain(|name, _| rows.iter().any(|row| row.name == *name));
        for row in rows {
            let known = self.inbox.insert(row.name.clone(), row.state.clone());
            if known.as_ref() != Some(&row.state)
                && let InboxState::Refused { diagnostics } = &row.state
            {
                let why = diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
                news.push((row, format!("inbox {}: refused: {why}", row.name)));
            }
        }
        news
    }

    /// What an operator must know, and what is over.
    fn notices<'a>(&mut self, notices: &'a [Notice]) -> Vec<(About<'a>, String)> {
        let worth = notices.iter().filter(|notice| notice.level != NoticeLevel::Info);
        let texts: BTreeSet<String> = worth.clone().map(|notice| notice.text.clone()).collect();
        let mut news = Vec::new();
        for notice in worth.filter(|notice| !self.notices.contains(&notice.text)) {
            news.push((About::Notice { level: Some(notice.level) }, format!("! {}", notice.text)));
        }
        let over = self.notices.difference(&texts);
        news.extend(over.map(|text| (About::Notice { level: None }, format!("over: {text}"))));
        self.notices = texts;
        news
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
