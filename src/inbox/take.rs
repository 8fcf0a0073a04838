//! Takes an accepted drop out of the inbox, and only that one.
//!
//! A rename cannot be told which inode to move. So the name is checked before and what was moved is checked after; a
//! drop that slipped in between is put back and delivered on its own. A file on its way out is named by its identity,
//! so that after a crash an accepted one is told from one that was moved by mistake.

use super::desk::Desk;
use super::look::{Seen, has_writers, hash_of};
use super::names::{FOLDER_JOB, TAKEN};
use super::{InboxConfig, InboxError, Taken};
use crate::beneath::{self, Dir, Links};
use crate::model::DropIdent;
use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, Stat, fstat, mkdirat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// So many numbered names are tried for a drop that is put back while its own name is taken.
const NAMES_TRIED: u32 = 10_000;
/// So much of the end of a name that is cut is kept: what kind of file it is.
const ENDING: usize = 16;

fn error(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> InboxError {
    InboxError::Io { doing, path: path.to_owned(), source: source.into() }
}

/// A name in an open directory, and its path for messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    dir: &'a Dir,
    name: &'a OsStr,
    path: &'a Path,
}

impl Place<'_> {
    fn stat(self) -> Result<Stat, Errno> {
        statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// Takes what `ident` names, if it is what `name` holds.
pub(super) fn take(
    inbox: &Desk,
    name: &OsStr,
    ident: &DropIdent,
    folder_to: Option<&Path>,
) -> Result<Taken, InboxError> {
    let InboxConfig { dir: dir_path, max_bytes, .. } = &inbox.config;
    let (max_bytes, leases) = (*max_bytes, inbox.leases);
    let path = dir_path.join(name);
    let dir = match beneath::named(dir_path) {
        Ok(dir) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Taken::Gone),
        Err(source) => return Err(error("open", dir_path, source)),
    };
    let from = Place { dir: &dir, name, path: &path };
    let stat = match from.stat() {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Taken::Gone),
        Err(source) => return Err(error("look at", &path, source)),
    };
    if (stat.st_dev, stat.st_ino) != (ident.dev, ident.ino) {
        return Ok(Taken::Replaced);
    }
    let is_folder = beneath::kind(&stat) == FileType::Directory;
    let Some((mut file, before)) = open_same(from, ident, is_folder, max_bytes)? else {
        return Ok(Taken::Replaced);
    };
    // What is written from now on would leave the inbox unread.
    if leases && has_writers(&file) {
        return Ok(Taken::Replaced);
    }
    let (target_dir, target) = target(&dir, dir_path, (name, ident), folder_to)?;
    let target_name = target.file_name().unwrap_or(name);
    let to = Place { dir: &target_dir, name: target_name, path: &target };
    match rename(from, to, folder_to.is_some()) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Taken::Gone),
        Err(source) => return Err(error("move", &path, source)),
    }
    let moved = to.stat().map_err(|source| error("look at", &target, source))?;
    let same = (moved.st_dev, moved.st_ino) == (ident.dev, ident.ino)
        && (unchanged(&file, before) || hash_of(&mut file, max_bytes).is_ok_and(|hash| hash == ident.hash));
    if !same {
        put_back(from, to)?;
        return Ok(Taken::Replaced);
    }
    if folder_to.is_none() && !is_folder {
        remove(to)?;
        return Ok(Taken::Moved(None));
    }
    Ok(Taken::Moved(Some(target)))
}

/// Where it goes: the open directory, and the whole path.
fn target(
    dir: &Dir,
    dir_path: &Path,
    (name, ident): (&OsStr, &DropIdent),
    folder_to: Option<&Path>,
) -> Result<(Dir, PathBuf), InboxError> {
    if let Some(target) = folder_to {
        let above = target.parent().unwrap_or(dir_path);
        let opened = beneath::make_named(above).map_err(|source| error("make", above, source))?;
        return Ok((opened, target.to_owned()));
    }
    let path = dir_path.join(TAKEN);
    match mkdirat(dir, TAKEN, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(source) => return Err(error("make", &path, source)),
    }
    let taken = open_taken(dir).map_err(|source| error("use", &path, source))?;
    Ok((taken, path.join(outgoing(name, ident))))
}

/// The folder of what is on its way out. One that is a link, or somebody else's, is not used.
fn open_taken(dir: &Dir) -> Result<Dir, Errno> {
    let taken = beneath::dir(dir, Path::new(TAKEN), Links::Refused)?;
    let owner = fstat(&taken)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() { Ok(taken) } else { Err(Errno::PERM) }
}

/// Opens the job file if its content is still that of `ident`.
fn open_same(
    from: Place<'_>,
    ident: &DropIdent,
    in_folder: bool,
    max_bytes: u64,
) -> Result<Option<(File, Seen)>, InboxError> {
    let job = if in_folder { Path::new(from.name).join(FOLDER_JOB) } else { PathBuf::from(from.name) };
    let mut file = match beneath::file(from.dir, &job, Links::Refused) {
        Ok((file, _)) => file,
        Err(Errno::NOENT | Errno::NOTDIR | beneath::IS_LINK | beneath::NOT_A_FILE) => return Ok(None),
        Err(source) => return Err(error("open", from.path, source)),
    };
    let seen = Seen::of(&fstat(&file).map_err(|source| error("look at", from.path, source))?);
    if !in_folder && (seen.dev, seen.ino) != (ident.dev, ident.ino) {
        return Ok(None);
    }
    if in_folder || seen.ctime_ns != ident.ctime_ns {
        let hash = hash_of(&mut file, max_bytes).map_err(|source| error("read", from.path, source))?;
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
fn rename(from: Place<'_>, to: Place<'_>, keep: bool) -> Result<(), Errno> {
    let plain = || rustix::fs::renameat(from.dir, from.name, to.dir, to.name);
    if !keep {
        return plain();
    }
    match renameat_with(from.dir, from.name, to.dir, to.name, RenameFlags::NOREPLACE) {
        // Not every network file system knows the flag.
        Err(Errno::INVAL) if to.stat().is_err() => plain(),
        other => other,
    }
}

fn remove(place: Place<'_>) -> Result<(), InboxError> {
    unlinkat(place.dir, place.name, AtFlags::empty()).map_err(|source| error("remove", place.path, source))
}

/// Puts back what was moved by mistake: under its name, or under a numbered one where that is taken again.
fn put_back(home: Place<'_>, target: Place<'_>) -> Result<(), InboxError> {
    let bytes = home.name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').unwrap_or(bytes.len());
    let (stem, ending) = bytes.split_at(dot);
    let mut to = home.name.to_owned();
    for number in 2..NAMES_TRIED {
        match rename(target, Place { name: &to, ..home }, true) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {
                to = OsString::from_vec([stem, format!(".{number}").as_bytes(), ending].concat());
            }
            Err(source) => return Err(error("put back", home.path, source)),
        }
    }
    Err(error("put back", home.path, io::Error::from(io::ErrorKind::AlreadyExists)))
}

/// The name of a drop on its way out: what it must be, and what it was called; of a long name its beginning and its end.
fn outgoing(name: &OsStr, ident: &DropIdent) -> OsString {
    let mut out = OsString::from(format!("{:x}-{:x}-{}-", ident.dev, ident.ino, ident.hash));
    let (bytes, room) = (name.as_bytes(), beneath::NAME_BYTES.saturating_sub(out.len()));
    if bytes.len() <= room {
        out.push(name);
        return out;
    }
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let (mut head, mut tail) = (room.saturating_sub(ENDING), bytes.len() - ENDING.min(room));
    while inside(head) {
        head -= 1;
    }
    while inside(tail) {
        tail += 1;
    }
    out.push(OsStr::from_bytes(&bytes[..head]));
    out.push(OsStr::from_bytes(&bytes[tail..]));
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
pub(super) fn recover(dir_path: &Path, max_bytes: u64) -> Result<(), InboxError> {
    let path = dir_path.join(TAKEN);
    let dir = beneath::named(dir_path).map_err(|source| error("open", dir_path, source))?;
    let taken = match open_taken(&dir) {
        Ok(taken) => taken,
        Err(Errno::NOENT) => return Ok(()),
        Err(source) => return Err(error("use", &path, source)),
    };
    let listed = rustix::fs::Dir::read_from(&taken).map_err(|source| error("read", &path, source))?;
    // Read whole before anything in it is moved.
    let names: Vec<OsString> =
        listed.flatten().map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()).collect();
    for outgoing in names {
        let Some((_, ino, hash, name)) = parse_outgoing(&outgoing) else { continue };
        let here = path.join(&outgoing);
        let out = Place { dir: &taken, name: &outgoing, path: &here };
        let home_path = dir_path.join(&name);
        let home = Place { dir: &dir, name: &name, path: &home_path };
        let Ok(stat) = out.stat() else { continue };
        // The device may have another number since the last boot.
        let same_inode = stat.st_ino == ino;
        match beneath::kind(&stat) {
            FileType::RegularFile if same_inode => {
                let opened = beneath::file(&taken, Path::new(&outgoing), Links::Refused);
                let (mut file, _) = opened.map_err(|source| error("open", &here, source))?;
                // After a power cut the bytes may be gone: nobody has written there since.
                let is_rest = stat.st_size == 0;
                if is_rest || hash_of(&mut file, max_bytes).is_ok_and(|now| now == hash) {
                    remove(out)?;
                } else {
                    put_back(home, out)?;
                }
            }
            FileType::Directory if same_inode => {}
            _ => put_back(home, out)?,
        }
    }
    Ok(())
}
