//! What a person names: links on the way are followed, as long as no stranger can have planted them.
//!
//! In a directory in which everybody may make names, such as `/tmp`, a link counts only if it is ours or the
//! directory's owner's. Kernels can be told to do the same (`fs.protected_symlinks`), and often are not.

use super::walk::{LINKS, names};
use super::{DIR, Dir, IS_LINK, LOOK, NOT_A_FILE, kind, reopen};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Opens a directory.
pub fn named(path: &Path) -> Result<Dir, Errno> {
    readable(&go(path, false)?)
}

/// Opens a directory, and makes what is missing of it: for its owner only.
pub fn make_named(path: &Path) -> Result<Dir, Errno> {
    readable(&go(path, true)?)
}

/// A directory as a place to make and remove names in: it need not be one that may be listed.
pub(super) fn place(path: &Path) -> Result<Dir, Errno> {
    let at = go(path, false)?;
    if kind(&rustix::fs::fstat(&at)?) == FileType::Directory { Ok(at) } else { Err(Errno::NOTDIR) }
}

/// What is there, links followed: a descriptor that can only be looked at.
pub fn look_named(path: &Path) -> Result<(OwnedFd, Stat), Errno> {
    let seen = go(path, false)?;
    let stat = rustix::fs::fstat(&seen)?;
    Ok((seen, stat))
}

/// Opens a regular file for reading, links followed. Anything else is refused, and never opened.
pub fn named_file(path: &Path) -> Result<(File, Stat), Errno> {
    let (seen, stat) = look_named(path)?;
    if kind(&stat) != FileType::RegularFile {
        return Err(NOT_A_FILE);
    }
    Ok((reopen(&seen)?, stat))
}

pub(super) fn readable(dir: &Dir) -> Result<Dir, Errno> {
    rustix::fs::openat(dir, ".", DIR, Mode::empty())
}

/// A name on the way.
struct Step {
    name: OsString,
    /// It came out of a link: what is missing there is not made, for a disk may only not be mounted.
    linked: bool,
}

fn go(path: &Path, make: bool) -> Result<Dir, Errno> {
    let mut at = start(path)?;
    let mut left: VecDeque<Step> = steps(path, false).collect();
    let mut followed = 0;
    while let Some(Step { name, linked }) = left.pop_front() {
        let next = match step(&at, &name) {
            Err(Errno::NOENT) if make && !linked => {
                match rustix::fs::mkdirat(&at, &name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                step(&at, &name)?
            }
            result => result?,
        };
        let stat = rustix::fs::fstat(&next)?;
        match kind(&stat) {
            FileType::Directory => at = next,
            FileType::Symlink => {
                followed += 1;
                if followed > LINKS {
                    return Err(IS_LINK);
                }
                if !may_follow(&stat, &rustix::fs::fstat(&at)?) {
                    return Err(Errno::ACCESS);
                }
                let target = OsString::from_vec(rustix::fs::readlinkat(&next, "", Vec::new())?.into_bytes());
                let target = Path::new(&target);
                if target.is_absolute() {
                    at = start(target)?;
                }
                let steps: Vec<Step> = steps(target, true).collect();
                steps.into_iter().rev().for_each(|step| left.push_front(step));
            }
            _ if left.is_empty() => return Ok(next),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Ok(at)
}

/// One name further. Asked for as a directory first: what is only mounted when somebody goes there is mounted then.
fn step(at: &Dir, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = LOOK | OFlags::NOFOLLOW;
    match rustix::fs::openat(at, name, flags | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => rustix::fs::openat(at, name, flags, Mode::empty()),
        result => result,
    }
}

fn start(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, if path.is_absolute() { "/" } else { "." }, LOOK, Mode::empty())
}

fn steps(path: &Path, linked: bool) -> impl Iterator<Item = Step> + '_ {
    names(path.as_os_str().as_bytes()).map(move |name| Step { name, linked })
}

/// Whether a link is followed, for what it and its directory are.
fn may_follow(link: &Stat, dir: &Stat) -> bool {
    const EVERYBODYS: u32 = libc::S_ISVTX | libc::S_IWOTH;
    dir.st_mode & EVERYBODYS != EVERYBODYS
        || link.st_uid == dir.st_uid
        || link.st_uid == rustix::process::geteuid().as_raw()
}
