//! Resolves a path as `openat2` with `RESOLVE_BENEATH` does, one name at a time: for kernels without it.

use super::{IS_LINK, LEADS_OUT, LOOK, Links, kind};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Links on one way, as many as the kernel follows.
pub(super) const LINKS: usize = 40;
/// Directories on one way: each holds a descriptor.
const DEPTH: usize = 256;

/// What is at `path` below `root`, as a descriptor that can only be looked at.
pub(super) fn walk(root: BorrowedFd<'_>, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
    // Every directory on the way stays open: `..` in a link goes back to the one we came from, wherever it is by now.
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut left: VecDeque<OsString> = path.iter().map(OsStr::to_owned).collect();
    let mut followed = 0;
    while let Some(name) = left.pop_front() {
        if name == "." {
            continue;
        }
        if name == ".." {
            way.pop().ok_or(LEADS_OUT)?;
            continue;
        }
        let at = way.last().map_or(root, AsFd::as_fd);
        let next = rustix::fs::openat(at, &name, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
        match kind(&rustix::fs::fstat(&next)?) {
            FileType::Symlink => {
                followed += 1;
                if links == Links::Refused || followed > LINKS {
                    return Err(IS_LINK);
                }
                for name in target(&next)?.into_iter().rev() {
                    left.push_front(name);
                }
            }
            FileType::Directory if way.len() >= DEPTH => return Err(Errno::NAMETOOLONG),
            FileType::Directory => way.push(next),
            _ if left.is_empty() => return Ok(next),
            _ => return Err(Errno::NOTDIR),
        }
    }
    match way.pop() {
        Some(dir) => Ok(dir),
        None => rustix::fs::openat(root, ".", LOOK, Mode::empty()),
    }
}

/// The names in a link; `.` and `..` among them.
fn target(link: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let text = rustix::fs::readlinkat(link, "", Vec::new())?;
    if text.as_bytes().starts_with(b"/") {
        return Err(LEADS_OUT);
    }
    Ok(names(text.as_bytes()).collect())
}

/// The names in a path. What ends in a slash has to be a directory, as what ends in `/.` has.
pub(super) fn names(path: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    let last = path.ends_with(b"/").then_some(&b"."[..]);
    let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).chain(last);
    names.map(|name| OsStr::from_bytes(name).to_owned())
}
