//! Copying files and trees: by reflink where the file system can, else byte by byte. Never hard links.

use super::error::FilesError;
use super::remove::remove_tree;
use super::snapshot::partial_name;
use super::tree::{self, Dir, Kind};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

/// Copies a tree with modes, modification times and links. The copy appears whole or not at all, and replaces what is
/// there. FIFOs, sockets and devices are left out.
pub fn copy_tree(src: &Path, dst: &Path) -> Result<(), FilesError> {
    let from = tree::open_root(src).map_err(FilesError::errno("open", src))?;
    let partial = partial_name(dst);
    remove_tree(&partial)?;
    let to = tree::make_root(&partial)?;
    let mut copier = Copier::new(u64::MAX);
    copier.dir((&from, src), (&to, &partial), tree::DEPTH)?;
    remove_tree(dst)?;
    rustix::fs::renameat(rustix::fs::CWD, &partial, rustix::fs::CWD, dst)
        .map_err(FilesError::errno("rename", &partial))
}

/// Copies entries, and counts what it copied.
pub(super) struct Copier<'a> {
    bytes: u64,
    files: u64,
    limit: u64,
    /// Is told of bytes as they are copied.
    tell: Option<&'a mut dyn FnMut(u64)>,
}

/// So much is copied before it is told of.
const PART: u64 = 16 << 20;

/// An entry: its directory, its name there, and its path for messages.
type Place<'a> = (&'a Dir, &'a OsStr, &'a Path);

impl<'a> Copier<'a> {
    /// One that copies no more than `limit` bytes, however its sources grow meanwhile.
    pub(super) const fn new(limit: u64) -> Self {
        Self { bytes: 0, files: 0, limit, tell: None }
    }

    /// One that copies all, and tells how many bytes more it has copied.
    pub(super) fn telling(tell: &'a mut dyn FnMut(u64)) -> Self {
        Self { tell: Some(tell), ..Self::new(u64::MAX) }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn files(&self) -> u64 {
        self.files
    }

    /// The limit was reached.
    pub(super) const fn over(&self) -> bool {
        self.bytes > self.limit
    }

    /// Copies all that is in a directory, and then its mode and times.
    pub(super) fn dir(
        &mut self,
        (from, from_path): (&Dir, &Path),
        (to, to_path): (&Dir, &Path),
        depth: usize,
    ) -> Result<(), FilesError> {
        if depth == 0 {
            return Err(FilesError::errno("go deeper than 128 levels into", from_path)(Errno::NAMETOOLONG));
        }
        for entry in tree::entries(from, from_path)? {
            let (source_path, target_path) = (from_path.join(&entry.name), to_path.join(&entry.name));
            if entry.kind == Kind::Dir {
                let source = tree::open_dir(from, &entry.name);
                let Some(source) = tree::optional(source, &source_path)? else { continue };
                let target = tree::make_dir(to, &entry.name, &target_path)?;
                self.dir((&source, &source_path), (&target, &target_path), depth - 1)?;
            } else {
                self.entry((from, &entry.name, &source_path), (to, &entry.name, &target_path))?;
            }
        }
        finish_dir(from, to, to_path)
    }

    /// Copies a file or a link. What has gone meanwhile, or has become something else, is left out.
    pub(super) fn entry(&mut self, from: Place<'_>, to: Place<'_>) -> Result<(), FilesError> {
        let stat = tree::stat(from.0, from.1);
        let Some(stat) = tree::optional(stat, from.2)? else { return Ok(()) };
        match Kind::of_stat(&stat) {
            Kind::Link => self.link(from, to, &stat),
            Kind::File => {
                let source = tree::open_file(from.0, from.1);
                let Some((source, stat)) = tree::optional(source, from.2)? else { return Ok(()) };
                self.file(&source, &stat, to)
            }
            Kind::Dir | Kind::Special => Ok(()),
        }
    }

    fn link(&mut self, from: Place<'_>, to: Place<'_>, stat: &Stat) -> Result<(), FilesError> {
        let target = match rustix::fs::readlinkat(from.0, from.1, Vec::new()) {
            // It is no link any more.
            Err(Errno::INVAL) => return Ok(()),
            target => target,
        };
        let Some(target) = tree::optional(target, from.2)? else { return Ok(()) };
        rustix::fs::symlinkat(target, to.0, to.1).map_err(FilesError::errno("make", to.2))?;
        self.files += 1;
        // A file system that cannot date links is no reason to fail.
        let _ = rustix::fs::utimensat(to.0, to.1, &times(stat), AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    /// Copies an open file under a new name.
    pub(super) fn file(&mut self, source: &File, stat: &Stat, to: Place<'_>) -> Result<(), FilesError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let target = rustix::fs::openat(to.0, to.1, flags, Mode::RUSR | Mode::WUSR)
            .map_err(FilesError::errno("make", to.2))?;
        let target = File::from(target);
        let limit = self.limit.saturating_sub(self.bytes);
        let mut untold = |_| {};
        let tell: &mut dyn FnMut(u64) = match &mut self.tell {
            Some(tell) => *tell,
            None => &mut untold,
        };
        self.bytes +=
            copy_bytes(source, &target, stat, limit, tell).map_err(FilesError::new("copy to", to.2))?;
        self.files += 1;
        if self.over() {
            return Err(FilesError::errno("copy to", to.2)(Errno::FBIG));
        }
        finish(&target, stat, to.2)
    }
}

/// Gives a copied directory its mode and times, once nothing more is put into it.
pub(super) fn finish_dir(from: &Dir, to: &Dir, to_path: &Path) -> Result<(), FilesError> {
    let stat = rustix::fs::fstat(from).map_err(FilesError::errno("look at", to_path))?;
    finish(to, &stat, to_path)
}

/// Copies the bytes; one more than `limit` at most.
fn copy_bytes(
    source: &File,
    mut target: &File,
    stat: &Stat,
    limit: u64,
    tell: &mut dyn FnMut(u64),
) -> std::io::Result<u64> {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size <= limit && rustix::fs::ioctl_ficlone(target, source).is_ok() {
        tell(size);
        return Ok(size);
    }
    let mut copied = 0;
    loop {
        let part = PART.min(limit.saturating_add(1) - copied);
        // The standard library uses copy_file_range, and falls back where the file systems do not offer it.
        let more = std::io::copy(&mut std::io::Read::take(source, part), &mut target)?;
        copied += more;
        tell(more);
        if more < part || copied > limit {
            return Ok(copied);
        }
    }
}

/// Mode and times. The bits that change whose rights a program has are left out.
fn finish(target: impl AsFd, stat: &Stat, path: &Path) -> Result<(), FilesError> {
    let target = target.as_fd();
    rustix::fs::fchmod(target, Mode::from_raw_mode(stat.st_mode & 0o777))
        .map_err(FilesError::errno("set the mode of", path))?;
    rustix::fs::futimens(target, &times(stat)).map_err(FilesError::errno("set the times of", path))
}

fn times(stat: &Stat) -> Timestamps {
    let at = |tv_sec: i64, nsec: u64| Timespec { tv_sec, tv_nsec: i64::try_from(nsec).unwrap_or(0) };
    Timestamps {
        last_access: at(stat.st_atime, stat.st_atime_nsec),
        last_modification: at(stat.st_mtime, stat.st_mtime_nsec),
    }
}
