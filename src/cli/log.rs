//! `log`: the file itself, read here; only where it is comes from the scheduler.

use super::args::LogArgs;
use super::escapes::Escapes;
use super::session::Session;
use super::{CliError, Exit, Io, Setup, folder};
use crate::beneath;
use crate::client::ClientError;
use crate::model::{Bytes, Cursor, JobId};
use crate::protocol::JobDetail;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::SeekFrom;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
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
    file: Option<(File, u64)>,
    /// On a terminal only; elsewhere the bytes are the job's.
    escapes: Option<Escapes>,
    /// The end of what was printed.
    recent: Vec<u8>,
}

/// So much of what was printed is looked for in a log whose two parts were put together.
const RECENT: usize = 4096;
/// From so far before the end of such a log.
const LOOK_BACK: u64 = 8 << 20;
/// Holes begin and end at multiples of this.
const BLOCK: u64 = 4096;

/// Reads what the file has from a position on, which goes ahead. What was cut away while the work ran is a hole: that is
/// no part of what was printed, nor are the zeros before it, up to the end of a block.
fn read_data<'a>(file: &File, position: &mut u64, chunk: &'a mut [u8]) -> std::io::Result<Option<&'a [u8]>> {
    let size = file.metadata()?.size();
    if *position >= size {
        return Ok(None);
    }
    // Where the file system does not tell, all of it is data.
    *position = match rustix::fs::seek(file, SeekFrom::Data(*position)) {
        Err(Errno::NXIO) => size,
        data => data.unwrap_or(*position),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(*position)).unwrap_or(size);
    let is_cut = end < size;
    let mut most = end.saturating_sub(*position).min(chunk.len() as u64);
    if is_cut && *position + most < end && end - *position - most < BLOCK {
        // The last block before a hole is read at once.
        most = end - BLOCK - *position;
    }
    let read = file.read_at(&mut chunk[..most as usize], *position)?;
    *position += read as u64;
    let printed = &chunk[..read];
    let zeros = printed.iter().rev().take_while(|byte| **byte == 0).count();
    let is_last = is_cut && *position == end;
    Ok((read > 0).then(|| &printed[..if is_last { read - zeros } else { read }]))
}

/// Where what was printed last ends in a log that got shorter.
fn find_last(file: &File, recent: &[u8]) -> std::io::Result<Option<u64>> {
    let size = file.metadata()?.size();
    let from = size.saturating_sub(LOOK_BACK);
    let mut bytes = vec![0; (size - from) as usize];
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], from + got as u64)? {
            0 => break,
            read => got += read,
        }
    }
    let known = recent.len() == RECENT;
    // Of lines that come again and again the first: they are printed twice rather than not at all.
    let at = bytes[..got].windows(recent.len().max(1)).position(|place| place == recent);
    Ok(at.filter(|_| known).map(|at| from + (at + recent.len()) as u64))
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
        let before = self.file.as_ref().and_then(|(file, _)| file.metadata().ok());
        if now.is_some() && found && before.map(|file| (file.dev(), file.ino())) != now {
            self.file = None;
            self.recent.clear();
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
            let known = find_last(file, &self.recent).map_err(failed)?;
            *position = known.unwrap_or(0);
            if known.is_none() {
                io.note("the log was cut: from its beginning again");
                (*file, _) = beneath::named_file(path).map_err(|errno| failed(errno.into()))?;
            }
        }
        let mut chunk = vec![0_u8; 1 << 16];
        loop {
            let before = *position;
            let read = match read_data(file, position, &mut chunk) {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            let skipped = position.saturating_sub(before + read.len() as u64);
            // Not where the log says so itself.
            if skipped > BLOCK && !self.recent.ends_with(b" ---\n") {
                io.note(&format!("{} of the log were cut before they were read", Bytes(skipped)));
            }
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

    fn all(file: &File, mut position: u64) -> Vec<u8> {
        let (mut chunk, mut all) = (vec![0; 1 << 16], Vec::new());
        while let Some(read) = read_data(file, &mut position, &mut chunk).unwrap() {
            all.extend_from_slice(read);
        }
        all
    }

    #[test]
    fn what_was_cut_away_while_the_work_runs_is_not_printed_and_the_works_own_zeros_are() {
        let file = tempfile::tempfile().unwrap();
        let mark = b"\n--- overnight: 3.0 MiB of the log were cut here ---\n";
        for head in [4096, 65_536, 65_536 + 4096, 3 * 65_536] {
            let before = vec![b'a'; head];
            let zeros = b"b\0\0\0c".repeat(40_000);
            file.set_len(0).unwrap();
            file.write_all_at(&before, 0).unwrap();
            file.write_all_at(&vec![b'x'; 4 << 20], head as u64).unwrap();
            file.write_all_at(&zeros, 4 << 20).unwrap();
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(&file, hole, head as u64, (4 << 20) - head as u64).is_err() {
                println!("SKIPPED: the file system makes no holes");
                return;
            }
            file.write_all_at(mark, head as u64).unwrap();
            // What the test wrote beyond the 4 MiB was overwritten from there on.
            let rest = (head as u64 + (4 << 20)).max((4 << 20) + zeros.len() as u64) - (4 << 20);
            let mut tail = vec![0; rest as usize];
            file.read_exact_at(&mut tail, 4 << 20).unwrap();
            assert!(all(&file, 0) == [&before[..], mark, &tail].concat(), "{head}");
        }
    }

    #[test]
    fn a_log_that_was_put_together_goes_on_after_what_was_printed_last() {
        let file = tempfile::tempfile().unwrap();
        let lines: Vec<u8> = (0..100_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        file.write_all_at(&lines, 0).unwrap();
        let end = lines.len() - 70_000;
        assert_eq!(find_last(&file, &lines[end - RECENT..end]).unwrap(), Some(end as u64));
        assert_eq!(find_last(&file, &[b'x'; RECENT]).unwrap(), None);
        assert_eq!(find_last(&file, b"").unwrap(), None);
        file.set_len(0).unwrap();
        assert_eq!(find_last(&file, &lines[end - RECENT..end]).unwrap(), None);
    }
}
