//! `log`: the file itself, read here; only where it is comes from the scheduler.

use super::args::LogArgs;
use super::escapes::Escapes;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, folder};
use crate::client::ClientError;
use crate::model::{Bytes, Cursor, JobId};
use crate::protocol::JobDetail;
use crate::supervisor::log::LogFile;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io::ErrorKind;
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
        Ok(_) | Err(Errno::INTR) => {}
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
    file: Option<Followed>,
    /// On a terminal only; elsewhere the bytes are the job's.
    escapes: Option<Escapes>,
    /// The end of what was printed.
    recent: Vec<u8>,
}

/// A log, and how far it was printed.
struct Followed {
    log: LogFile,
    place: u64,
    /// It has or had a hole: its two parts are put together when the work has ended.
    has_parts: bool,
}

/// So much of what was printed is looked for in a log whose two parts were put together.
const RECENT: usize = 4096;
/// From so far before the end of such a log.
const LOOK_BACK: usize = 8 << 20;
/// Read at a time.
const CHUNK: usize = 1 << 16;

impl Followed {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { log: LogFile::open(path)?, place: 0, has_parts: false })
    }

    /// Looks again, and goes to where what was printed last ends by now; `false` if that is not there any more.
    fn look(&mut self, recent: &[u8]) -> std::io::Result<bool> {
        self.log.look()?;
        self.has_parts |= self.log.has_hole();
        let is_whole = self.has_parts && !self.log.has_hole();
        let is_shorter = self.log.size() < self.place;
        if !is_shorter && (!is_whole || recent.ends_with(&self.log.before(self.place, recent.len())?.bytes)) {
            return Ok(true);
        }
        let piece = self.log.before(self.log.size(), LOOK_BACK)?;
        // Of lines that come again and again the first: they are printed twice rather than not at all.
        let found = piece.bytes.windows(RECENT).position(|place| place == recent);
        self.place = found.map_or(0, |at| piece.begin + (at + RECENT) as u64);
        Ok(found.is_some())
    }
}

impl Tail {
    fn new(path: PathBuf, io: &Io<'_>) -> Self {
        let escapes = io.width.map(|_| Escapes::new(io.colour));
        Self { path, file: None, escapes, recent: Vec::new() }
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
            self.recent.clear();
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
                Ok(_) | Err(Errno::NOENT) => {}
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
        let before = self.file.as_ref().and_then(|file| file.log.file().metadata().ok());
        if now.is_some() && found && before.map(|file| (file.dev(), file.ino())) != now {
            self.file = None;
            self.recent.clear();
            return self.print_file(io);
        }
        Ok(found)
    }

    fn print_file(&mut self, io: &mut Io<'_>) -> Result<bool, CliError> {
        if self.file.is_none() {
            match Followed::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(self.failed("read", error)),
            }
        }
        let path = &self.path;
        let failed = |source| CliError::File { doing: "read", path: path.clone(), source };
        let Some(file) = &mut self.file else { return Ok(false) };
        if !file.look(&self.recent).map_err(failed)? {
            io.note("the log was cut: from its beginning again");
            *file = Followed::open(path).map_err(failed)?;
        }
        loop {
            let piece = file.log.after(file.place, CHUNK).map_err(failed)?;
            if piece.bytes.is_empty() {
                break;
            }
            let skipped = piece.begin - file.place;
            // Not where the log says so itself.
            if skipped > 0 && !self.recent.ends_with(b" ---\n") {
                io.note(&format!("{} of the log were cut before they were read", Bytes(skipped)));
            }
            file.place = piece.end();
            let read = &piece.bytes;
            self.recent.extend_from_slice(read);
            let old = self.recent.len().saturating_sub(RECENT);
            self.recent.drain(..old);
            match &mut self.escapes {
                Some(escapes) => io.show(&escapes.feed(read))?,
                None => io.bytes(read)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::os::unix::fs::FileExt as _;

    /// Follows a log up to `printed`, then its two parts are put together with `more` at the end; whether it was
    /// known where to go on, and then rightly. `None` without holes.
    fn goes_on(printed: usize, more: &[u8]) -> Option<bool> {
        let file = tempfile::tempfile().unwrap();
        let lines: Vec<u8> = (0..100_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        file.write_all_at(&lines, 0).unwrap();
        let (from, to) = (1 << 17, 1 << 19);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&file, hole, from, to - from).is_err() {
            println!("SKIPPED: the file system makes no holes");
            return None;
        }
        let log = LogFile::over(file.try_clone().unwrap()).unwrap();
        let mut followed = Followed { log, place: printed as u64, has_parts: false };
        let recent = &lines[printed - RECENT..printed];
        assert!(followed.look(recent).unwrap() && followed.place == printed as u64);
        let rest = [&lines[to as usize..], more].concat();
        file.write_all_at(&rest, from).unwrap();
        file.set_len(from + rest.len() as u64).unwrap();
        let is_known = followed.look(recent).unwrap();
        let left = followed.log.after(followed.place, 2 << 20).unwrap().bytes;
        assert!(!is_known || left == [&lines[printed..], more].concat(), "each byte once");
        Some(is_known)
    }

    #[test]
    fn a_log_that_was_put_together_goes_on_after_what_was_printed_last() {
        // All of it was printed, the end is missing, and so much that its place is within what is left.
        for printed in [1_088_890, 1_000_000, 600_000] {
            for more in [b"" as &[u8], &b"the end\n".repeat(100_000)] {
                let Some(is_known) = goes_on(printed, more) else { return };
                assert!(is_known, "{printed}");
            }
        }
        let Some(is_known) = goes_on(400_000, b"") else { return };
        assert!(!is_known, "what was printed last is cut");
    }
}
