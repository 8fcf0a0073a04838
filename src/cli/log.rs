//! `log`: the file itself, read here; only where it is comes from the scheduler.

use super::args::LogArgs;
use super::escapes::Escapes;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, folder};
use crate::beneath;
use crate::client::ClientError;
use crate::model::{Cursor, JobId};
use crate::protocol::JobDetail;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) fn log(args: &LogArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = match Session::open(setup) {
        Ok(session) => session,
        Err(error @ CliError::Client(ClientError::NoScheduler { .. })) => {
            let Some(path) = folder::of(&args.job, &setup.paths).map(|folder| folder.join("log.txt")) else {
                return Err(error);
            };
            let mut tail = Tail::new(path, io);
            let found = tail.print_new(io)?;
            tail.end(io)?;
            if args.follow || !found {
                io.note("no scheduler runs: this is what there is");
            }
            return Ok(Exit::Ok);
        }
        Err(error) => return Err(error),
    };
    let detail = find(&args.job, &mut session)?;
    if args.follow && detail.row.state != Cursor::Done {
        return follow(detail, &mut session, io);
    }
    let mut tail = Tail::new(detail.row.log.clone(), io);
    if !tail.print_new(io)? {
        let why = detail.row.why.as_deref().map(|why| format!(", {why}")).unwrap_or_default();
        io.note(&format!("no output yet: job {} is {}{why}", detail.row.id, detail.row.state.word()));
    }
    tail.end(io)?;
    Ok(Exit::Ok)
}

/// `17`, `name`, `17.0`, `name.0`. A name may have a dot and a number at its end itself, so that is tried first.
fn find(typed: &str, session: &mut Session) -> Result<JobDetail, CliError> {
    let error = match session.resolve(typed) {
        Ok((job, _)) => return session.job(job),
        Err(error) => error,
    };
    let split = typed.rsplit_once('.').and_then(|(job, task)| Some((job, task.parse::<u32>().ok()?)));
    let (CliError::Refused { .. }, Some((job, task))) = (&error, split) else { return Err(error) };
    let (job, _) = session.resolve(job)?;
    let detail = session.job(job)?;
    if task >= detail.row.tasks.total {
        let message =
            format!("job {job} has no task {task}: it has {}, counted from 0", detail.row.tasks.total);
        return Err(CliError::Refused { message });
    }
    Ok(detail)
}

/// Until the job is done: wakes when the file grows and when the scheduler tells of a change, and never otherwise.
fn follow(detail: JobDetail, session: &mut Session, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let job = detail.row.id;
    let mut tail = Tail::new(detail.row.log, io);
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
        .map_err(|errno| tail.failed("watch", errno.into()))?;
    session.subscribe()?;
    // It may have been done, or begun another attempt, before the subscription.
    let mut done = look(job, session, &mut tail, io)?;
    loop {
        tail.arm(&watch)?;
        tail.print_new(io)?;
        if let Some(end) = done {
            tail.end(io)?;
            io.note(&end);
            return Ok(Exit::Ok);
        }
        let told = session.has_update() || wait(&watch, session, &tail)?;
        if told {
            match session.picture()?.jobs.iter().find(|row| row.id == job) {
                Some(row) => tail.turn_to(&row.log, io)?,
                None => done = look(job, session, &mut tail, io)?,
            }
        }
    }
}

/// How it ended, if it has.
fn look(
    job: JobId,
    session: &mut Session,
    tail: &mut Tail,
    io: &mut Io<'_>,
) -> Result<Option<String>, CliError> {
    let row = session.job(job)?.row;
    tail.turn_to(&row.log, io)?;
    let outcome = row.outcome.filter(|_| row.state == Cursor::Done);
    Ok(outcome.map(|outcome| format!("job {job} {}: {outcome}", row.name)))
}

/// Whether the scheduler has something to tell.
fn wait(watch: &OwnedFd, session: &Session, tail: &Tail) -> Result<bool, CliError> {
    let mut ready =
        [PollFd::new(watch, PollFlags::IN), PollFd::from_borrowed_fd(session.as_fd(), PollFlags::IN)];
    match poll(&mut ready, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(tail.failed("wait for", errno.into())),
    }
    let told = !ready[1].revents().is_empty();
    // Which event it was does not matter: the file is looked at anyway.
    let mut events = [0_u8; 4096];
    while matches!(rustix::io::read(watch, &mut events), Ok(n) if n > 0) {}
    Ok(told)
}

/// A file that grows, may not be there yet, and may be another one later.
struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    /// On a terminal only; elsewhere the bytes are the job's.
    escapes: Option<Escapes>,
}

impl Tail {
    fn new(path: PathBuf, io: &Io<'_>) -> Self {
        Self { path, file: None, escapes: io.width.map(|_| Escapes::new(io.colour)) }
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> CliError {
        CliError::File { doing, path: self.path.clone(), source }
    }

    /// Goes on with another attempt's log, after the rest of this one's.
    fn turn_to(&mut self, path: &Path, io: &mut Io<'_>) -> Result<(), CliError> {
        if self.path != path {
            self.print_new(io)?;
            path.clone_into(&mut self.path);
            self.file = None;
        }
        Ok(())
    }

    /// Watches the file, and the nearest folders that are there of it and of what it links to: a change of any wakes.
    fn arm(&self, watch: impl AsFd) -> Result<(), CliError> {
        let flags = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF;
        let target = std::fs::read_link(&self.path).map(|to| self.path.with_file_name(to)).ok();
        let nearest =
            |path: &Path| path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned);
        let folders = [nearest(&self.path), target.as_deref().and_then(nearest)];
        for path in folders.into_iter().flatten().chain([self.path.clone()]) {
            match inotify::add_watch(&watch, &path, flags) {
                // Not there (any more): a folder's event, or the scheduler's update, wakes.
                Ok(_) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => return Err(self.failed("watch", errno.into())),
            }
        }
        Ok(())
    }

    /// Prints what is new; `false` if there is no such file. A link that leads to another file by now, the log of the
    /// next attempt, is followed after the rest of the first.
    fn print_new(&mut self, io: &mut Io<'_>) -> Result<bool, CliError> {
        let found = self.print_file(io)?;
        let now = std::fs::metadata(&self.path).map(|file| (file.dev(), file.ino())).ok();
        let before = self.file.as_ref().and_then(|(file, _)| file.metadata().ok());
        if now.is_some() && found && before.map(|file| (file.dev(), file.ino())) != now {
            self.file = None;
            return self.print_file(io);
        }
        Ok(found)
    }

    fn print_file(&mut self, io: &mut Io<'_>) -> Result<bool, CliError> {
        if self.file.is_none() {
            // A pipe that the work has put in its place would be waited for without an end.
            match beneath::named_file(&self.path).map_err(std::io::Error::from) {
                Ok((file, _)) => self.file = Some((file, 0)),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(self.failed("read", error)),
            }
        }
        let path = &self.path;
        let failed = |source| CliError::File { doing: "read", path: path.clone(), source };
        let Some((file, position)) = &mut self.file else { return Ok(false) };
        if file.metadata().map_err(failed)?.size() < *position {
            io.note("the log was cut: from its beginning again");
            (*file, _) = beneath::named_file(path).map_err(|errno| failed(errno.into()))?;
            *position = 0;
        }
        let mut chunk = vec![0_u8; 1 << 16];
        loop {
            let n = match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            *position += n as u64;
            match &mut self.escapes {
                Some(escapes) => io.show(&escapes.feed(&chunk[..n]))?,
                None => io.bytes(&chunk[..n])?,
            }
        }
        io.flush()?;
        Ok(true)
    }

    fn end(&mut self, io: &mut Io<'_>) -> Result<(), CliError> {
        match &mut self.escapes {
            Some(escapes) => io.show(&escapes.end()),
            None => Ok(()),
        }
    }
}
