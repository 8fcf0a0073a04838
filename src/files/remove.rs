//! Removing trees, whatever is in them.

use super::error::FilesError;
use super::tree::{self, Dir, Kind};
use crate::beneath;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Names read at a time: a directory of millions is never in memory as a whole.
const BATCH: usize = 1024;
/// How often what is put in its place meanwhile is removed too.
const TRIES: u32 = 100;
/// Levels that are gone down; what is deeper is first moved up.
const LEVELS: usize = 64;

/// Removes a file or a tree. Links are removed, not followed; directories without permission are opened up first; what
/// is mounted in it is not gone into. Nothing there is no failure.
pub fn remove_tree(path: &Path) -> Result<(), FilesError> {
    remove_own(path, &[])
}

/// [`remove_tree`] for a path of the scheduler's: below its own trees no link leads to it.
pub fn remove_own(path: &Path, own: &[PathBuf]) -> Result<(), FilesError> {
    let (dir, name) = beneath::split(path).map_err(FilesError::errno("remove", path))?;
    let parent = match beneath::own_place(dir, own) {
        Ok(parent) => parent,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(FilesError::errno("reach the directory of", path)(errno)),
    };
    let mut tries = TRIES;
    loop {
        match unlink(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(FilesError::errno("remove", path)(errno)),
        }
        if let Some(top) = open(&parent, name, path)? {
            Remover { top: &top, moved: 0 }.empty(&top, path, LEVELS)?;
        }
        match unlink(&parent, name, AtFlags::REMOVEDIR) {
            // Somebody has put something else there, or something into it, meanwhile.
            Err(Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) if tries > 0 => tries -= 1,
            result => return gone(result, path),
        }
    }
}

struct Remover<'a> {
    top: &'a Dir,
    /// Names given to directories that were moved up.
    moved: u64,
}

impl Remover<'_> {
    /// Removes all that is in a directory. What cannot be removed keeps nothing else from being.
    fn empty(&mut self, dir: &Dir, path: &Path, levels: usize) -> Result<(), FilesError> {
        loop {
            let entries = tree::some_entries(dir, path, BATCH)?;
            if entries.is_empty() {
                return Ok(());
            }
            let (mut removed, mut failure) = (false, None);
            for entry in entries {
                let at = path.join(&entry.name);
                let result = if entry.kind == Kind::Dir {
                    self.directory(dir, &entry.name, &at, levels)
                } else {
                    gone(unlink(dir, &entry.name, AtFlags::empty()), &at)
                };
                match result {
                    Ok(()) => removed = true,
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if let Some(error) = failure.filter(|_| !removed) {
                return Err(error);
            }
        }
    }

    fn directory(
        &mut self,
        parent: &Dir,
        name: &OsStr,
        path: &Path,
        levels: usize,
    ) -> Result<(), FilesError> {
        if levels == 0 {
            // Moved to the top it is met again there, with all levels to go.
            return loop {
                self.moved += 1;
                let up = OsString::from(format!(".overnight-remove-{}", self.moved));
                match rustix::fs::renameat(parent, name, self.top, &up) {
                    Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                    result => break gone(result, path),
                }
            };
        }
        let Some(dir) = open(parent, name, path)? else { return Ok(()) };
        self.empty(&dir, path, levels - 1)?;
        match unlink(parent, name, AtFlags::REMOVEDIR) {
            // Something else by now: it is met again when its directory is read again.
            Err(Errno::NOTDIR) => Ok(()),
            result => gone(result, path),
        }
    }
}

/// Opens a directory for emptying: with all its owner's rights, which it may lack. `None` if it has become something
/// else.
fn open(parent: &Dir, name: &OsStr, path: &Path) -> Result<Option<Dir>, FilesError> {
    let opened = match beneath::unmounted(parent, name, OFlags::RDONLY) {
        Err(Errno::ACCESS) => open_up(parent, name),
        // Whoever mounted something there wants to keep it.
        Err(beneath::IS_MOUNT) => {
            return Err(FilesError::errno("go into what is mounted at", path)(beneath::IS_MOUNT));
        }
        other => other,
    };
    let Some(dir) = tree::optional(opened, path)? else { return Ok(None) };
    let stat = rustix::fs::fstat(&dir).map_err(FilesError::errno("look at", path))?;
    if stat.st_mode & 0o700 != 0o700 {
        // Without it nothing in it can be removed; where it is not ours the removal says why not.
        let _ = rustix::fs::fchmod(&dir, Mode::RWXU);
    }
    Ok(Some(dir))
}

/// Gives its owner all rights, by descriptor, so that a link that takes its place is not followed.
fn open_up(parent: &Dir, name: &OsStr) -> Result<Dir, Errno> {
    let closed = beneath::unmounted(parent, name, OFlags::PATH)?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", closed.as_raw_fd()), Mode::RWXU)?;
    beneath::unmounted(parent, name, OFlags::RDONLY)
}

fn unlink(parent: &Dir, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    rustix::fs::unlinkat(parent, name, flags)
}

fn gone(result: Result<(), Errno>, path: &Path) -> Result<(), FilesError> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(FilesError::errno("remove", path)(errno)),
    }
}
