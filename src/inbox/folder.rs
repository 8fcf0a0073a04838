//! Looks at a dropped folder: whether all of it is there, and its job file.

use super::InboxConfig;
use super::look::{self, Look, Seen};
use super::names::{FOLDER_JOB, editing, is_in_transit};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A folder with more entries than this is no drop.
const ENTRIES_MAX: usize = 100_000;
/// Folders inside folders, likewise.
const DEPTH_MAX: usize = 64;
/// So many files are asked whether somebody still writes them; of a larger copy only the quiet is waited for.
const WRITERS_ASKED_MAX: usize = 5_000;

/// What tells a changed folder from an unchanged one: all names, kinds, sizes and times below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    /// The folder itself.
    pub(super) dev: u64,
    pub(super) ino: u64,
    entries: blake3::Hash,
    /// The latest change of anything in it.
    pub(super) ctime_ns: i128,
}

/// What a walk through a folder found.
#[derive(Debug)]
pub(super) enum Walk {
    /// Nothing is there any more.
    Gone,
    /// A copying program is at work in it.
    Busy(String),
    /// It cannot be a drop: why.
    Refused(String),
    /// This is all of it.
    Whole(Print),
}

/// Walks through a folder of which all must be `uid`'s: what somebody else put into it would run as them.
/// `ask_writers`: also look for files that somebody still writes.
pub(super) fn walk(path: &Path, uid: u32, ask_writers: bool) -> Walk {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = match openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Walk::Gone,
        Err(error) => return Walk::Refused(format!("it cannot be read: {}", std::io::Error::from(error))),
    };
    let Ok(stat) = fstat(&root) else { return Walk::Gone };
    let mut walker = Walker { uid, ask_writers, asked: 0, lines: Vec::new(), ctime_ns: 0, found: None };
    walker.note(Path::new(""), &stat);
    walker.folder(&root, Path::new(""), 0);
    if let Some(found) = walker.found {
        return found;
    }
    // Directory order is the file system's business.
    walker.lines.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for line in &walker.lines {
        hasher.update(line);
    }
    Walk::Whole(Print {
        dev: stat.st_dev,
        ino: stat.st_ino,
        entries: hasher.finalize(),
        ctime_ns: walker.ctime_ns,
    })
}

struct Walker {
    uid: u32,
    ask_writers: bool,
    asked: usize,
    lines: Vec<Vec<u8>>,
    ctime_ns: i128,
    found: Option<Walk>,
}

impl Walker {
    /// Adds an entry to what identifies the folder.
    fn note(&mut self, relative: &Path, stat: &Stat) {
        use std::os::unix::ffi::OsStrExt;
        let seen = Seen::of(stat);
        // The root's own times change when it is moved; what is in it says enough.
        let (size, mtime) = if relative.as_os_str().is_empty() { (0, 0) } else { (seen.size, seen.mtime_ns) };
        let mut line = relative.as_os_str().as_bytes().to_vec();
        line.push(0);
        line.extend(stat.st_mode.to_le_bytes());
        line.extend(seen.ino.to_le_bytes());
        line.extend(size.to_le_bytes());
        line.extend(mtime.to_le_bytes());
        self.lines.push(line);
        self.ctime_ns = self.ctime_ns.max(seen.ctime_ns);
    }

    fn folder(&mut self, folder: &OwnedFd, relative: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            self.found = Some(Walk::Refused(format!("folders are nested more than {DEPTH_MAX} deep")));
            return;
        }
        let Ok(mut entries) = rustix::fs::Dir::read_from(folder) else { return };
        while let Some(Ok(entry)) = entries.read() {
            let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entry(folder.as_fd(), relative, name, depth);
            if self.found.is_some() {
                return;
            }
        }
    }

    fn entry(&mut self, folder: std::os::fd::BorrowedFd<'_>, relative: &Path, name: &OsStr, depth: usize) {
        if is_in_transit(name) {
            self.found = Some(Walk::Busy(format!("{} is still being copied", name.to_string_lossy())));
            return;
        }
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        // An entry that vanished under the walk makes the next walk differ.
        let Ok(stat) = rustix::fs::statat(folder, name, flags) else { return };
        let relative = relative.join(name);
        self.note(&relative, &stat);
        if stat.st_uid != self.uid {
            let (name, uid) = (relative.display(), stat.st_uid);
            self.found = Some(Walk::Refused(format!(
                "{name} in it belongs to another account (uid {uid}): copy it, so that all of it is yours: cp -r"
            )));
            return;
        }
        if self.lines.len() > ENTRIES_MAX {
            self.found = Some(Walk::Refused(format!("it has more than {ENTRIES_MAX} files")));
            return;
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(fd) = openat(folder, name, flags, Mode::empty()) {
                    self.folder(&fd, &relative, depth + 1);
                }
            }
            FileType::RegularFile if self.ask_writers && self.asked < WRITERS_ASKED_MAX => {
                self.asked += 1;
                if look::is_being_written(folder, name) {
                    self.found = Some(Walk::Busy(format!("{} is still being written", relative.display())));
                }
            }
            _ => {}
        }
    }
}

/// Files of a folder that are made durable one by one. Beyond that the whole file system is.
const SYNCED_MAX: usize = 256;

/// Makes a folder durable with all that is in it.
pub(super) fn sync(path: &Path) -> std::io::Result<()> {
    let root = std::fs::File::open(path)?;
    let mut open = vec![path.to_owned()];
    let mut left = SYNCED_MAX;
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let Some(more) = left.checked_sub(1) else { return Ok(rustix::fs::syncfs(&root)?) };
            left = more;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match openat(CWD, entry.path(), flags, Mode::empty()) {
                    Ok(file) => rustix::fs::fsync(file)?,
                    // It went, or became something else.
                    Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {}
                    Err(Errno::ACCESS) => return Ok(rustix::fs::syncfs(&root)?),
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        std::fs::File::open(&dir)?.sync_all()?;
    }
    Ok(())
}

/// Reads the job file of a folder that is whole.
pub(super) fn job_file(folder: &Path, config: &InboxConfig, leases: bool, settled: Option<Seen>) -> Look {
    let path = folder.join(FOLDER_JOB);
    if editing(OsStr::new(FOLDER_JOB)).any(|name| folder.join(name).symlink_metadata().is_ok()) {
        return Look::Busy("its job.yaml is being edited");
    }
    if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Look::Refused(None, "its job.yaml is a folder".to_owned(), "");
    }
    match look::look(&path, config, leases, settled) {
        Look::Gone => Look::Refused(
            None,
            "there is no job.yaml in this folder".to_owned(),
            "name the job file job.yaml; it is read as soon as it is there",
        ),
        Look::Refused(seen, why, hint) => Look::Refused(seen, format!("its job.yaml: {why}"), hint),
        other => other,
    }
}
