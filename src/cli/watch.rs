//! `watch`: one line for every change, for screen readers, logs and scripts. The same news as the dashboard's; no cursor
//! movement, each line as soon as it is true. It outlives the scheduler, and ends when nobody reads it any more.

use super::ls::word;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, when};
use crate::client::ClientError;
use crate::model::{Bytes, Cursor, DeviceState, JobId, Limit, Priority, chain};
use crate::protocol::json::{About, News};
use crate::protocol::{Diagnostic, GpuRow, InboxRow, InboxState, JobRow, Notice, NoticeLevel, Update};
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
    let plural = if gpus == 1 { "" } else { "s" };
    let text = format!("{word}: {running} running, {waiting} waiting, {gpus} GPU{plural}");
    say(&About::Connection { live: true }, &text, first.at.wall_ms, (as_json, setup), io)?;
    io.flush()?;
    // What is there at the beginning is not news; what happened while nobody was told of it is.
    let mut update = first;
    let mut silent = !again;
    let mut is_first = true;
    loop {
        let at = update.at.wall_ms;
        seen.changes((&update, is_first), |about, text| {
            if silent {
                return Ok(());
            }
            say(&about, &text, at, (as_json, setup), io)?;
            io.flush()
        })?;
        (silent, is_first) = (false, false);
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
    jobs: BTreeMap<JobId, Known>,
    done: BTreeSet<JobId>,
    gpus: BTreeMap<u32, (&'static str, bool, Option<String>)>,
    /// Those that are refused, and why.
    inbox: BTreeMap<String, Vec<Diagnostic>>,
    notices: BTreeSet<String>,
}

impl Seen {
    /// Takes note of everything, and tells what is new.
    fn changes(
        &mut self,
        (update, is_first): (&Update, bool),
        mut tell: impl FnMut(About<'_>, String) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        for row in &update.rows {
            if let Some(text) = self.job(row) {
                tell(About::Job(row), text)?;
            }
        }
        for row in &update.gpus {
            if let Some(text) = self.gpu(row) {
                tell(About::Gpu(row), text)?;
            }
        }
        if let Some(rows) = &update.inbox {
            for (name, state, text) in self.inbox(rows, is_first) {
                tell(About::Inbox { name: &name, state }, text)?;
            }
        }
        if let Some(notices) = &update.notices {
            for (about, text) in self.notices(notices) {
                tell(about, text)?;
            }
        }
        Ok(())
    }

    /// What is new of a job.
    fn job(&mut self, row: &JobRow) -> Option<String> {
        if row.state == Cursor::Done {
            self.done.insert(row.id);
            if self.done.len() > DONE
                && let Some(oldest) = self.done.pop_first()
            {
                self.jobs.remove(&oldest);
            }
        }
        let now = Known::of(row);
        let Some(before) = self.jobs.insert(row.id, now.clone()) else { return Some(job_line(row)) };
        if before.place_in_life() != now.place_in_life() {
            return Some(job_line(row));
        }
        let changes = now.changes(&before, row);
        (!changes.is_empty())
            .then(|| format!("{} {} ({}): {}", row.id, row.name, row.user, changes.join(", ")))
    }

    /// The details of a device that is used from outside change with every reading; its state does not. Those of one that
    /// a job holds say that it will be closed, or what is wrong with it.
    fn gpu(&mut self, row: &GpuRow) -> Option<String> {
        let of_held = row.detail.clone().filter(|_| matches!(row.state, DeviceState::Held { .. }));
        let now = (row.state.word(), row.idle_since.is_some(), of_held);
        let (word, is_idle) = (now.0, now.1);
        if self.gpus.get(&row.index) == Some(&now) {
            return None;
        }
        self.gpus.insert(row.index, now);
        let idle = if is_idle { ", idle" } else { "" };
        let detail = row.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        Some(format!("gpu {}: {word}{idle}{detail}", row.index))
    }

    /// Files that were refused, also again for another reason, and what becomes of them. A scheduler that has just
    /// started may not have looked at them yet: in its first words none is missing.
    fn inbox(&mut self, rows: &[InboxRow], is_first: bool) -> Vec<(String, &'static str, String)> {
        let mut news = Vec::new();
        for row in rows {
            let name = &row.name;
            match &row.state {
                InboxState::Refused { diagnostics } if self.inbox.get(name) != Some(diagnostics) => {
                    let why = diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
                    news.push((name.clone(), "refused", format!("inbox {name}: refused: {why}")));
                    self.inbox.insert(name.clone(), diagnostics.clone());
                }
                InboxState::Accepted { jobs, .. } if self.inbox.remove(name).is_some() => {
                    let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
                    let text = format!("inbox {name}: accepted: {}", jobs.join(" "));
                    news.push((name.clone(), "accepted", text));
                }
                // Read again: what comes of it is told.
                InboxState::Refused { .. } | InboxState::Accepted { .. } | InboxState::Waiting { .. } => {}
            }
        }
        self.inbox.retain(|name, _| {
            let is_there = is_first || rows.iter().any(|row| row.name == *name);
            if !is_there {
                news.push((name.clone(), "removed", format!("inbox {name}: removed")));
            }
            is_there
        });
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

/// What is told of a job when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    word: &'static str,
    gpu_indices: Vec<u32>,
    name: String,
    priority: Priority,
    rank: Option<i64>,
    asks: (u32, u32, Bytes, Limit),
}

impl Known {
    fn of(row: &JobRow) -> Self {
        Self {
            word: word(row),
            gpu_indices: row.gpu_indices.clone(),
            name: row.name.clone(),
            priority: row.priority,
            rank: row.rank,
            asks: (row.gpus, row.cpus, row.memory, row.limit),
        }
    }

    fn place_in_life(&self) -> (&'static str, &[u32]) {
        (self.word, &self.gpu_indices)
    }

    /// What somebody has changed of a job that is where it was.
    fn changes(&self, before: &Self, row: &JobRow) -> Vec<String> {
        let mut changes = Vec::new();
        if self.name != before.name {
            changes.push(format!("renamed, it was {}", before.name));
        }
        if self.priority != before.priority {
            changes.push(format!("priority {}, it was {}", self.priority, before.priority));
        }
        if self.rank != before.rank {
            let place = row.place.map(|place| format!(" to place {place}")).unwrap_or_default();
            changes.push(format!("moved{place}"));
        }
        if self.asks != before.asks {
            let (gpus, cpus, memory, limit) = self.asks;
            let limit = limit.span().map_or_else(|| "until done".to_owned(), |span| format!("for {span}"));
            changes.push(format!("asks for GPUs {gpus}, cores {cpus}, memory {memory}, {limit}"));
        }
        changes
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
