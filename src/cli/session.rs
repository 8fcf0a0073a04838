//! One verb's conversation with the scheduler.

use super::{CliError, Io, Setup};
use crate::client::Client;
use crate::model::{Generation, JobId};
use crate::protocol::{Command, JobDetail, JobRow, NoticeLevel, Query, Reply, Request, Snapshot, Update};
use jiff::tz::TimeZone;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the greeting may take: the scheduler answers at once unless something is wrong.
const GREETING: Duration = Duration::from_secs(5);
/// How often a subscriber is told at most.
const EVERY_MS: u64 = 200;

pub(super) struct Session {
    client: Client,
    zone: TimeZone,
    inbox: PathBuf,
    /// What a subscription has told.
    picture: Snapshot,
}

/// What lies beside a file that was refused, behind its name.
const WHY: &str = ".why.txt";

impl Session {
    pub(super) fn open(setup: &Setup) -> Result<Self, CliError> {
        let client = Client::connect(&setup.paths, GREETING)?;
        let inbox = setup.paths.inbox();
        Ok(Self { client, zone: setup.zone.clone(), inbox, picture: Snapshot::default() })
    }

    /// An answer; a refusal in any form is an error with the scheduler's words.
    pub(super) fn ask(&mut self, request: Request) -> Result<Reply, CliError> {
        match self.client.request(request)? {
            Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message } => {
                Err(CliError::Refused { message })
            }
            Reply::BeingEdited { job, by, until } => {
                let until = super::when::text(until, crate::clock::wall_ms(), &self.zone);
                Err(CliError::Refused {
                    message: format!(
                        "#{job} is being edited by {by} until {until}; `overnight resume {job}` ends that, if it is you"
                    ),
                })
            }
            reply => Ok(reply),
        }
    }

    pub(super) fn query(&mut self, query: Query) -> Result<Reply, CliError> {
        self.ask(Request::Query(query))
    }

    /// A list of jobs, part by part as it comes.
    pub(super) fn jobs(&mut self, done: u32, mut part: impl FnMut(Vec<JobRow>)) -> Result<(), CliError> {
        let mut reply = self.query(Query::Jobs { done })?;
        loop {
            let Reply::Jobs { rows, left } = reply else { return Err(CliError::Answer) };
            part(rows);
            if left == 0 {
                return Ok(());
            }
            reply = self.client.next_part()?;
        }
    }

    /// Does it, and says what was done in the scheduler's words. A retry is answered like a submission.
    pub(super) fn command(&mut self, command: Command) -> Result<String, CliError> {
        match self.ask(Request::Command(command))? {
            Reply::Ok { message } => Ok(message),
            Reply::Submitted { jobs, .. } => {
                let lines: Vec<String> =
                    jobs.iter().map(|job| super::submit::fate(job, &self.zone)).collect();
                Ok(lines.join("; "))
            }
            _ => Err(CliError::Answer),
        }
    }

    /// The job that a person means, and the generation that a command about it must carry.
    pub(super) fn resolve(&mut self, typed: &str) -> Result<(JobId, Generation), CliError> {
        let name = typed.strip_prefix('#').unwrap_or(typed).to_owned();
        match self.query(Query::Resolve { name }) {
            Ok(Reply::Resolved { job, generation }) => Ok((job, generation)),
            Ok(_) => Err(CliError::Answer),
            Err(CliError::Refused { message }) => {
                // The job may be none because its file was refused.
                let of_it = |file: &String| {
                    file == typed || Path::new(file).file_stem().is_some_and(|stem| stem == typed)
                };
                let file = refused(&self.inbox).into_iter().find(of_it);
                let more = file.map(|file| format!("; {}", refusal(&self.inbox, &file))).unwrap_or_default();
                Err(CliError::Refused { message: message + &more })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn job(&mut self, job: JobId) -> Result<JobDetail, CliError> {
        match self.query(Query::Job { job })? {
            Reply::Job(detail) => Ok(*detail),
            _ => Err(CliError::Answer),
        }
    }

    /// Says which files in the inbox are no jobs, after the jobs.
    pub(super) fn warn_of_refused(&self, io: &mut Io<'_>) {
        match refused(&self.inbox).as_slice() {
            [] => {}
            [file] => io.note(&format!("! {}", refusal(&self.inbox, file))),
            [first, more @ ..] => {
                io.note(&format!("! {}; and {} more there", refusal(&self.inbox, first), more.len()));
            }
        }
    }

    /// Says what an operator must know of, after what was asked for: a full disk, a folder that is gone.
    pub(super) fn warn(&mut self, io: &mut Io<'_>) -> Result<(), CliError> {
        if let Reply::Notices(notices) = self.query(Query::Notices)? {
            let errors = notices.iter().filter(|notice| notice.level == NoticeLevel::Error);
            errors.for_each(|notice| io.note(&format!("! {}", notice.text)));
        }
        Ok(())
    }

    /// From now on [`Session::update`] tells of changes.
    pub(super) fn subscribe(&mut self) -> Result<(), CliError> {
        match self.ask(Request::Subscribe { every_ms: EVERY_MS })? {
            Reply::Pong => Ok(()),
            _ => Err(CliError::Answer),
        }
    }

    /// What changed next.
    pub(super) fn update(&mut self) -> Result<Update, CliError> {
        Ok(self.client.next_update()?)
    }

    /// Everything, after the next change.
    pub(super) fn picture(&mut self) -> Result<&Snapshot, CliError> {
        let update = self.update()?;
        if self.picture.fold(update).is_err()
            && let Reply::Snapshot(whole) = self.query(Query::Snapshot { since: None })?
        {
            self.picture = *whole;
        }
        Ok(&self.picture)
    }

    /// Whether [`Session::update`] would not have to wait for the socket.
    pub(super) fn has_update(&self) -> bool {
        self.client.has_update()
    }
}

/// Files in the inbox that were refused, by their names.
pub(super) fn refused(inbox: &Path) -> Vec<String> {
    // A folder that cannot be read is told of by the scheduler.
    let entries = std::fs::read_dir(inbox).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let files = names.filter_map(|name| name.strip_suffix(WHY).map(str::to_owned));
    let mut refused: Vec<String> = files.filter(|file| inbox.join(file).exists()).collect();
    refused.sort();
    refused
}

fn refusal(inbox: &Path, file: &str) -> String {
    format!("{} was refused: {file}{WHY} beside it says why", inbox.join(file).display())
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.as_fd()
    }
}
