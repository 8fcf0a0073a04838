//! Directories as open descriptors: everything below one is reached by name from its parent, never through a link.

use super::error::FilesError;
use crate::beneath::{self, Links};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) use crate::beneath::Dir;

/// Deeper trees are refused: each level holds a descriptor.
pub(super) const DEPTH: usize = 128;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: Kind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Dir,
    File,
    Link,
    /// A FIFO, a socket or a device: never opened.
    Special,
}

impl Kind {
    pub(super) const fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Dir,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }

    pub(super) const fn of_stat(stat: &Stat) -> Self {
        Self::of(FileType::from_raw_mode(stat.st_mode))
    }
}

const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory that a person names, through the links that lead there.
pub(super) fn open_root(path: &Path) -> Result<Dir, Errno> {
    beneath::named(path)
}

/// Opens a directory below another. A link is refused.
pub(super) fn open_dir(parent: &Dir, name: &OsStr) -> Result<Dir, Errno> {
    rustix::fs::openat(parent, name, DIR | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a regular file below a directory for reading. Links and special files are refused, and never opened.
pub(super) fn open_file(parent: &Dir, name: &OsStr) -> Result<(std::fs::File, Stat), Errno> {
    beneath::file(parent, Path::new(name), Links::Refused)
}

/// What an entry is, itself: a link is not followed.
pub(super) fn stat(parent: &Dir, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Makes a directory that only its owner can enter, and opens it. One that is there is opened.
pub(super) fn make_dir(parent: &Dir, name: &OsStr, path: &Path) -> Result<Dir, FilesError> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(FilesError::errno("make", path)(errno)),
    }
    open_dir(parent, name).map_err(FilesError::errno("open", path))
}

/// [`make_dir`] for a path that a person names, parents included.
pub(super) fn make_root(path: &Path) -> Result<Dir, FilesError> {
    beneath::make_named(path).map_err(FilesError::errno("make", path))
}

/// [`make_dir`] for a path of the scheduler's, parents included: below its own trees no link is followed.
pub(super) fn make_own(path: &Path, own: &[PathBuf]) -> Result<Dir, FilesError> {
    match beneath::base(path, own) {
        Some((base, rest)) => make_below(&make_root(base)?, base, rest),
        None => make_root(path),
    }
}

/// Follows a relative path down from a directory, through no link. `None` if it ends on the way, or leads out.
pub(super) fn descend(root: &Dir, path: &Path) -> Result<Option<Dir>, Errno> {
    match beneath::dir(root, path, Links::Refused) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT | Errno::NOTDIR | beneath::IS_LINK | beneath::LEADS_OUT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A name of somebody else's file beside others of its names, in a place where neither of us put it: whoever made that
/// name may have meant us to read for them what they cannot. `owner` is who owns the place.
pub(super) fn is_strangers_link(stat: &Stat, owner: u32) -> bool {
    stat.st_nlink > 1 && stat.st_uid != owner && stat.st_uid != rustix::process::geteuid().as_raw()
}

/// Makes the directories of a relative path below a directory.
pub(super) fn make_below(root: &Dir, root_path: &Path, path: &Path) -> Result<Dir, FilesError> {
    let mut at = root_path.to_owned();
    let mut dir = root.try_clone().map_err(FilesError::new("open", root_path))?;
    for component in path.components() {
        at.push(component);
        dir = make_dir(&dir, component.as_os_str(), &at)?;
    }
    Ok(dir)
}

/// The entries of a directory, sorted by name.
pub(super) fn entries(dir: &Dir, path: &Path) -> Result<Vec<Entry>, FilesError> {
    let mut entries = some_entries(dir, path, usize::MAX)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Up to `limit` entries of a directory, in no order.
pub(super) fn some_entries(dir: &Dir, path: &Path, limit: usize) -> Result<Vec<Entry>, FilesError> {
    let list = rustix::fs::Dir::read_from(dir).map_err(FilesError::errno("list", path))?;
    let mut entries = Vec::new();
    for entry in list {
        let entry = entry.map_err(FilesError::errno("list", path))?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match stat(dir, name) {
                Ok(stat) => Kind::of_stat(&stat),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(FilesError::errno("look at", path.join(name))(errno)),
            },
            kind => Kind::of(kind),
        };
        entries.push(Entry { name: name.to_owned(), kind });
        if entries.len() >= limit {
            break;
        }
    }
    Ok(entries)
}

/// `None` where an entry has gone, or has become something else, since it was listed.
pub(super) fn optional<T>(result: Result<T, Errno>, path: &Path) -> Result<Option<T>, FilesError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => Ok(None),
        Err(errno) => Err(FilesError::errno("open", path)(errno)),
    }
}

/// Entries that are made durable one by one. Beyond that the whole file system is, with all that others write to it.
const SYNCED: usize = 512;

/// Makes a tree durable.
pub(super) fn sync(dir: &Dir, path: &Path) -> Result<(), FilesError> {
    let mut left = SYNCED;
    if sync_below(dir, path, &mut left, DEPTH)? {
        return Ok(());
    }
    rustix::fs::syncfs(dir).map_err(FilesError::errno("sync", path))
}

/// `false` if there is more than `left`.
fn sync_below(dir: &Dir, path: &Path, left: &mut usize, depth: usize) -> Result<bool, FilesError> {
    for entry in some_entries(dir, path, *left + 1)? {
        if *left == 0 || depth == 0 {
            return Ok(false);
        }
        *left -= 1;
        let at = path.join(&entry.name);
        match entry.kind {
            Kind::Dir => {
                let Some(child) = optional(open_dir(dir, &entry.name), &at)? else { continue };
                if !sync_below(&child, &at, left, depth - 1)? {
                    return Ok(false);
                }
            }
            Kind::File => {
                let Some((file, _)) = optional(open_file(dir, &entry.name), &at)? else { continue };
                rustix::fs::fsync(&file).map_err(FilesError::errno("sync", &at))?;
            }
            Kind::Link | Kind::Special => {}
        }
    }
    rustix::fs::fsync(dir).map_err(FilesError::errno("sync", path))?;
    Ok(true)
}

/// Renames, and makes the new name durable.
pub(super) fn rename_durably(from: &Path, to: &Path) -> Result<(), FilesError> {
    rustix::fs::renameat(CWD, from, CWD, to).map_err(FilesError::errno("rename", from))?;
    let parent = to.parent().unwrap_or(Path::new("."));
    let dir = open_root(parent).map_err(FilesError::errno("open", parent))?;
    rustix::fs::fsync(&dir).map_err(FilesError::errno("sync", parent))
}

/// Nanoseconds since the epoch.
pub(super) fn mtime_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}
