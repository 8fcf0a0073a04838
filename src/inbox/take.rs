//! Takes an accepted drop out of the inbox, and only that one.
//!
//! A rename cannot be told which inode to move. So the name is checked before and what was moved is checked after; a
//! drop that slipped in between is put back and delivered on its own. A file on its way out is named by its identity,
//! so that after a crash an accepted one is told from one that was moved by mistake.

use super::desk::Desk;
use super::look::{Seen, has_writers, hash_of};
use super::names::{FOLDER_JOB, TAKEN};
use super::{InboxConfig, InboxError, Taken};
use crate::model::DropIdent;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fstat, openat, renameat_with, statat,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// So many numbered names are tried for a drop that is put back while its own name is taken.
const NAMES_TRIED: u32 = 10_000;

fn error(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> InboxError {
    InboxError::Io { doing, path: path.to_owned(), source: source.into() }
}

fn lstat(path: &Path) -> io::Result<Stat> {
    Ok(statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Takes what `ident` names, if it is what `name` holds.
pub(super) fn take(
    inbox: &Desk,
    name: &OsStr,
    ident: &DropIdent,
    folder_to: Option<&Path>,
) -> Result<Taken, InboxError> {
    let InboxConfig { dir, max_bytes, .. } = &inbox.config;
    let (max_bytes, leases) = (*max_bytes, inbox.leases);
    let path = dir.join(name);
    let stat = match lstat(&path) {
        Ok(stat) => stat,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
        Err(source) => return Err(error("look at", &path, source)),
    };
    if (stat.st_dev, stat.st_ino) != (ident.dev, ident.ino) {
        return Ok(Taken::Replaced);
    }
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let job = if is_folder { path.join(FOLDER_JOB) } else { path.clone() };
    let Some((mut file, before)) = open_same(&job, ident, is_folder, max_bytes)? else {
        return Ok(Taken::Replaced);
    };
    // What is written from now on would leave the inbox unread.
    if leases && has_writers(&file) {
        return Ok(Taken::Replaced);
    }
    let target = match folder_to {
        Some(target) => target.to_owned(),
        None => dir.join(TAKEN).join(outgoing(name, ident)),
    };
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(|source| error("make", parent, source))?;
    }
    match rename(&path, &target, folder_to.is_some()) {
        Ok(()) => {}
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
        Err(source) => return Err(error("move", &path, source)),
    }
    let moved = lstat(&target).map_err(|source| error("look at", &target, source))?;
    let same = (moved.st_dev, moved.st_ino) == (ident.dev, ident.ino)
        && (unchanged(&file, before) || hash_of(&mut file, max_bytes).is_ok_and(|hash| hash == ident.hash));
    if !same {
        put_back(dir, name, &target)?;
        return Ok(Taken::Replaced);
    }
    if folder_to.is_none() && !is_folder {
        std::fs::remove_file(&target).map_err(|source| error("remove", &target, source))?;
        return Ok(Taken::Moved(None));
    }
    Ok(Taken::Moved(Some(target)))
}

/// Opens the job file if its content is still that of `ident`.
fn open_same(
    job: &Path,
    ident: &DropIdent,
    in_folder: bool,
    max_bytes: u64,
) -> Result<Option<(File, Seen)>, InboxError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match openat(CWD, job, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(None),
        Err(source) => return Err(error("open", job, source)),
    };
    let seen = Seen::of(&fstat(&file).map_err(|source| error("look at", job, source))?);
    if !in_folder && (seen.dev, seen.ino) != (ident.dev, ident.ino) {
        return Ok(None);
    }
    if in_folder || seen.ctime_ns != ident.ctime_ns {
        let hash = hash_of(&mut file, max_bytes).map_err(|source| error("read", job, source))?;
        if hash != ident.hash {
            return Ok(None);
        }
    }
    Ok(Some((file, seen)))
}

/// Nothing was written since. The change time is left out: a rename changes it.
fn unchanged(file: &File, before: Seen) -> bool {
    fstat(file)
        .map(|stat| Seen::of(&stat))
        .is_ok_and(|now| (now.size, now.mtime_ns) == (before.size, before.mtime_ns))
}

/// Moves a name. `keep`: what is there already stays, and the move is refused.
fn rename(from: &Path, to: &Path, keep: bool) -> io::Result<()> {
    if !keep {
        return std::fs::rename(from, to);
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every network file system knows the flag.
        Err(rustix::io::Errno::INVAL) if lstat(to).is_err() => std::fs::rename(from, to),
        other => Ok(other?),
    }
}

/// Puts back what was moved by mistake: under its name, or under a numbered one where that is taken again.
fn put_back(dir: &Path, name: &OsStr, target: &Path) -> Result<(), InboxError> {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').unwrap_or(bytes.len());
    let (stem, ending) = bytes.split_at(dot);
    let mut to = dir.join(name);
    for number in 2..NAMES_TRIED {
        match rename(target, &to, true) {
            Ok(()) => return Ok(()),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                let numbered = [stem, format!(".{number}").as_bytes(), ending].concat();
                to = dir.join(OsString::from_vec(numbered));
            }
            Err(source) => return Err(error("put back", &to, source)),
        }
    }
    Err(error("put back", &to, io::Error::from(io::ErrorKind::AlreadyExists)))
}

/// The name of a drop on its way out: what it must be, and what it was called.
fn outgoing(name: &OsStr, ident: &DropIdent) -> OsString {
    let mut out = OsString::from(format!("{:x}-{:x}-{}-", ident.dev, ident.ino, ident.hash));
    out.push(name);
    out
}

/// Identity and name out of [`outgoing`].
fn parse_outgoing(name: &OsStr) -> Option<(u64, u64, String, OsString)> {
    let mut parts = name.as_bytes().splitn(4, |byte| *byte == b'-');
    let mut number = || u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?, 16).ok();
    let (dev, ino) = (number()?, number()?);
    let hash = std::str::from_utf8(parts.next()?).ok()?.to_owned();
    Some((dev, ino, hash, OsStr::from_bytes(parts.next()?).to_owned()))
}

/// After a crash: what is on its way out and was accepted is removed, what was moved by mistake is put back.
/// Folders that were accepted stay for whoever moved them.
pub(super) fn recover(dir: &Path, max_bytes: u64) -> Result<(), InboxError> {
    let taken: PathBuf = dir.join(TAKEN);
    let entries = match std::fs::read_dir(&taken) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(error("read", &taken, source)),
    };
    for entry in entries.flatten() {
        let Some((_, ino, hash, name)) = parse_outgoing(&entry.file_name()) else { continue };
        let path = entry.path();
        let Ok(stat) = lstat(&path) else { continue };
        // The device may have another number since the last boot.
        let same_inode = stat.st_ino == ino;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if same_inode => {
                let mut file = File::open(&path).map_err(|source| error("open", &path, source))?;
                // After a power cut the bytes may be gone: nobody has written there since.
                let is_rest = stat.st_size == 0;
                if is_rest || hash_of(&mut file, max_bytes).is_ok_and(|now| now == hash) {
                    std::fs::remove_file(&path).map_err(|source| error("remove", &path, source))?;
                } else {
                    put_back(dir, &name, &path)?;
                }
            }
            FileType::Directory if same_inode => {}
            _ => put_back(dir, &name, &path)?,
        }
    }
    Ok(())
}
