//! Looks at one file: finds it without following links, opens it only if it is one of ours, and takes bytes and identity
//! from that one descriptor.

use super::InboxConfig;
use crate::beneath::{self, Links};
use crate::model::{Bytes, DropIdent};
use rustix::fs::{FileType, Stat, fstat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// What tells a changed file from an unchanged one without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) dev: u64,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) mtime_ns: i128,
    pub(super) ctime_ns: i128,
}

impl Seen {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: stat.st_size.unsigned_abs(),
            mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

fn nanoseconds(seconds: i64, rest: u64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// A file read whole.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) seen: Seen,
    pub(super) bytes: Vec<u8>,
    pub(super) ident: DropIdent,
    pub(super) uid: u32,
}

/// What a look found.
#[derive(Debug)]
pub(super) enum Look {
    /// Nothing is there.
    Gone,
    /// Somebody has it open for writing, or it changed while it was read.
    Busy(&'static str),
    /// Nothing tells whether somebody writes; it is whole if it stays like this for a while.
    Unsure(Seen),
    /// It cannot be a drop as it is: why, and what to do.
    Refused(Option<Seen>, String, &'static str),
    /// Here it is.
    Whole(Whole),
}

/// Whether somebody has a file open for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writers {
    None,
    Some,
    Unknown,
}

/// Reads a file if it may be a drop. `settled` is the state in which it was found a while ago, where leases do not
/// tell; `leases` says that they do.
pub(super) fn look(path: &Path, config: &InboxConfig, leases: bool, settled: Option<Seen>) -> Look {
    let closed = |seen, error| {
        let why = format!("it cannot be opened: {}", std::io::Error::from(error));
        Look::Refused(seen, why, "check its mode: chmod u+r")
    };
    let (found, stat) = match beneath::own_look(path, std::slice::from_ref(&config.dir)) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Look::Gone,
        Err(beneath::IS_LINK) => return Look::Refused(None, SYMLINK.to_owned(), SYMLINK_HINT),
        Err(error) => return closed(None, error),
    };
    // A pipe or a device is not even opened, and neither is what somebody else owns.
    if let Some((why, hint)) = strange(&stat, config) {
        return Look::Refused(Some(Seen::of(&stat)), why, hint);
    }
    let file = match beneath::reopen(&found) {
        Ok(file) => file,
        Err(error) => return closed(Some(Seen::of(&stat)), error),
    };
    let Ok(stat) = fstat(&file) else { return Look::Busy("it cannot be read") };
    let seen = Seen::of(&stat);
    let open_for_writing = if leases { writers(&file) } else { Writers::Unknown };
    if open_for_writing == Writers::Some {
        return Look::Busy("it is still being written");
    }
    if let Some((why, hint)) = unfit(&stat, config) {
        return Look::Refused(Some(seen), why, hint);
    }
    if open_for_writing == Writers::Unknown && settled != Some(seen) {
        return Look::Unsure(seen);
    }
    read(file, seen, stat.st_uid, config.max_bytes)
}

pub(super) const SYMLINK: &str = "it is a symbolic link";
pub(super) const SYMLINK_HINT: &str = "copy the file itself: cp -L";

/// Why something is not opened.
fn strange(stat: &Stat, config: &InboxConfig) -> Option<(String, &'static str)> {
    let kind = beneath::kind(stat);
    if kind != FileType::RegularFile {
        return Some((format!("it is a {}, not a regular file", beneath::word(kind)), ""));
    }
    (stat.st_uid != config.uid).then(|| {
        (
            format!("it belongs to another account (uid {})", stat.st_uid),
            "copy it, so that the copy is yours: cp",
        )
    })
}

/// Why an open file cannot be a drop, whatever is in it.
fn unfit(stat: &Stat, config: &InboxConfig) -> Option<(String, &'static str)> {
    if stat.st_nlink > 1 {
        return Some((
            format!("it is a hard link: the file has {} names", stat.st_nlink),
            "copy it instead: cp",
        ));
    }
    let size = stat.st_size.unsigned_abs();
    (size > config.max_bytes).then(|| {
        let (size, most) = (Bytes(size), Bytes(config.max_bytes));
        (
            format!("it is too large: {size}, at most {most}"),
            "a job file only says what to run; data stays outside",
        )
    })
}

fn read(mut file: File, seen: Seen, uid: u32, max_bytes: u64) -> Look {
    let mut bytes = Vec::with_capacity(usize::try_from(seen.size.min(max_bytes)).unwrap_or(0) + 1);
    if let Err(error) = file.by_ref().take(max_bytes + 1).read_to_end(&mut bytes) {
        return Look::Refused(Some(seen), format!("it cannot be read: {error}"), "");
    }
    let after = fstat(&file).map(|stat| Seen::of(&stat));
    if after.ok() != Some(seen) || bytes.len() as u64 != seen.size {
        return Look::Busy("it changed while it was read");
    }
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let ident = DropIdent { dev: seen.dev, ino: seen.ino, ctime_ns: seen.ctime_ns, hash };
    Look::Whole(Whole { seen, bytes, ident, uid })
}

/// The hash of a file as it is now, through an open descriptor.
pub(super) fn hash_of(file: &mut File, max_bytes: u64) -> std::io::Result<String> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(max_bytes + 1))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Asks the kernel whether somebody has this file open for writing: it grants a read lease only if nobody has.
///
/// Somebody who opens it for writing within the microseconds of the lease waits that long. The kernel would tell us
/// so by a signal: one that is ignored by default is chosen.
#[expect(unsafe_code, reason = "rustix does not wrap leases")]
fn writers(file: &File) -> Writers {
    /// Not in `libc`; the same number on every Linux architecture that Rust has.
    const F_SETSIG: libc::c_int = 10;
    let fd = file.as_raw_fd();
    // SAFETY: plain commands with integer arguments on a descriptor that is open for the length of this function.
    let lease = unsafe {
        if libc::fcntl(fd, F_SETSIG, libc::SIGURG) == -1 {
            return Writers::Unknown;
        }
        libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK)
    };
    if lease == -1 {
        let error = std::io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::EAGAIN) { Writers::Some } else { Writers::Unknown };
    }
    // SAFETY: as above.
    unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
    Writers::None
}

/// Whether somebody has this file open for writing, as far as can be told.
pub(super) fn has_writers(file: &File) -> bool {
    writers(file) == Writers::Some
}

/// Whether somebody has a file in this folder open for writing, as far as can be told.
pub(super) fn is_being_written(folder: impl AsFd, name: &OsStr) -> bool {
    beneath::file(folder, Path::new(name), Links::Refused).is_ok_and(|(file, _)| has_writers(&file))
}

/// What to say about a file without a job file's ending.
pub(super) fn not_a_job(bytes: &[u8]) -> (&'static str, &'static str) {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let has_line = |key: &str| start.lines().any(|line| line.starts_with(key));
    if start.starts_with("#!") || has_line("#SBATCH") || has_line("#PBS") {
        ("this is a shell script", "a job file names it: `run: bash script.sh`")
    } else if has_line("work:") || has_line("request:") {
        ("names of job files end in .yaml", "rename it: mv NAME NAME.yaml")
    } else {
        ("not a job file: names end in .yaml", "")
    }
}
