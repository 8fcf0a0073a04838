//! Removing trees, whatever is in them.

use super::error::FilesError;
use super::tree::{self, Dir, Kind};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Names read at a time: a directory of millions is never in memory as a whole.
const BATCH: usize = 1024;
/// Levels that are gone down; what is deeper is first moved up.
const LEVELS: usize = 64;

/// Removes a file or a tree. Links are removed, not followed; directories without permission are opened up first.
/// Nothing there is no failure.
pub fn remove_tree(path: &Path) -> Result<(), FilesError> {
    match rustix::fs::unlinkat(CWD, path, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(FilesError::errno("remove", path)(errno)),
    }
    let top = open(|flags| rustix::fs::open(path, flags, Mode::empty()))
        .map_err(FilesError::errno("open", path))?;
    let mut remover = Remover { top: &top, moved: 0 };
    remover.empty(&top, path, LEVELS)?;
    match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(FilesError::errno("remove", path)(errno)),
    }
}

struct Remover<'a> {
    top: &'a Dir,
    /// Names given to directories that were moved up.
    moved: u64,
}

impl Remover<'_> {
    /// Removes all that is in a directory.
    fn empty(&mut self, dir: &Dir, path: &Path, levels: usize) -> Result<(), FilesError> {
        loop {
            let entries = tree::some_entries(dir, path, BATCH)?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in entries {
                let at = path.join(&entry.name);
                if entry.kind == Kind::Dir {
                    self.directory(dir, &entry.name, &at, levels)?;
                } else {
                    gone(unlink(dir, &entry.name, AtFlags::empty()), &at)?;
                }
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
        let opened = open(|flags| rustix::fs::openat(parent, name, flags, Mode::empty()));
        let Some(dir) = tree::optional(opened, path)? else { return Ok(()) };
        self.empty(&dir, path, levels - 1)?;
        gone(unlink(parent, name, AtFlags::REMOVEDIR), path)
    }
}

/// Opens a directory for emptying: with all its owner's rights, which it may lack.
fn open(open: impl Fn(OFlags) -> Result<Dir, Errno>) -> Result<Dir, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match open(flags | OFlags::RDONLY) {
        Err(Errno::ACCESS) => {
            // By descriptor, so that a link that takes its place is not followed.
            let closed = open(flags | OFlags::PATH)?;
            rustix::fs::chmod(format!("/proc/self/fd/{}", closed.as_raw_fd()), Mode::RWXU)?;
            open(flags | OFlags::RDONLY)?
        }
        other => other?,
    };
    let stat = rustix::fs::fstat(&dir)?;
    if stat.st_mode & 0o700 != 0o700 {
        // Without it nothing in it can be removed; where it is not ours the removal says why not.
        let _ = rustix::fs::fchmod(&dir, Mode::RWXU);
    }
    Ok(dir)
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
