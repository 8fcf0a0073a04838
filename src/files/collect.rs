//! The output of an attempt: found, brought home, checked and handed over.
//!
//! Doing it again after a crash gives the same result: what is home stays, and is never replaced.

use super::copy::Copier;
use super::error::{CollectError, FilesError};
use super::progress::Progress;
use super::publish::publish;
use super::search::{Found, Pattern, Search, kind_of, shown};
use super::tree::{self, Dir};
use crate::beneath::{self, Links};
use crate::model::{Bytes, Collect, Collected, ReturnedFile};
use rustix::fs::{AtFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is being copied has this name until it is whole.
const PARTIAL: &str = ".overnight-partial";
/// A file's time may lie this far before the moment at which it was written: the kernel's clock for it ticks coarsely.
const TIME_GRAIN_NS: i128 = 20_000_000;
/// Notes for the receipt.
const NOTES: usize = 100;

/// Gathers, checks and hands over the output of one attempt. What takes long is told of in percent, once a second.
pub fn collect(order: &Collect, tell: &mut dyn FnMut(u8)) -> Result<Collected, CollectError> {
    let output = match tree::make_own(&order.output_dir, &order.own) {
        Ok(output) => output,
        Err(error) if error.is_link() => return Ok(nothing(order)),
        Err(error) => return Err(error.into()),
    };
    let mut notes = Vec::new();
    let mut patterns = Vec::new();
    let mut missing = Vec::new();
    for item in &order.items {
        match Pattern::new(item) {
            Ok(pattern) => patterns.push(pattern),
            Err(why) => {
                notes.push(format!("`{}` {why}: not looked for", shown(Path::new(&item.path))));
                missing.extend((!item.optional).then(|| item.path.clone()));
            }
        }
    }
    let mut progress = Progress::new(tell);
    let mut home = Home { order, output: &output, notes, progress: &mut progress };
    home.remove_partial()?;
    home.gather(&patterns)?;
    let outputs = home.list(&patterns)?;
    for pattern in &patterns {
        let there = |file: &ReturnedFile| file.bytes.0 > 0 && pattern.covers(&file.path);
        if !pattern.item.optional && !outputs.iter().any(there) {
            missing.push(pattern.item.path.clone());
        }
    }
    let mut notes = home.notes;
    if let Some(place) = &order.output_to {
        publish((order, &output, place), &outputs, &mut notes, &mut progress)?;
    }
    // What the receipt names must be on disk before the receipt is.
    tree::sync(&output, &order.output_dir)?;
    let mut seen = BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    let more = notes.len().saturating_sub(NOTES);
    if more > 0 {
        notes.truncate(NOTES);
        notes.push(format!("and {more} more notes"));
    }
    Ok(Collected { outputs: outputs.into_iter().map(listed).collect(), missing, notes })
}

/// The work has put a link in the place of its output directory: what that leads to is not its output.
fn nothing(order: &Collect) -> Collected {
    Collected {
        outputs: Vec::new(),
        missing: order.items.iter().filter(|item| !item.optional).map(|item| item.path.clone()).collect(),
        notes: vec!["$OVERNIGHT_OUTPUT is a link, or behind one: nothing is taken from it".to_owned()],
    }
}

/// Listed names are text: one that is not is shown as near as it can be.
fn listed(file: ReturnedFile) -> ReturnedFile {
    let path = PathBuf::from(file.path.to_string_lossy().into_owned());
    ReturnedFile { path, ..file }
}

/// The output directory, while things are brought there.
struct Home<'a, 'p> {
    order: &'a Collect,
    output: &'a Dir,
    notes: Vec<String>,
    progress: &'a mut Progress<'p>,
}

impl Home<'_, '_> {
    /// How often a byte that is found is handled: brought here, read for its hash, perhaps copied to a second home.
    const fn passes(&self) -> u64 {
        2 + self.order.output_to.is_some() as u64
    }

    fn remove_partial(&self) -> Result<(), FilesError> {
        match rustix::fs::unlinkat(self.output, PARTIAL, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
            Err(errno) => Err(FilesError::errno("remove", self.order.output_dir.join(PARTIAL))(errno)),
        }
    }

    /// Brings home what is declared and lies in the work directory.
    fn gather(&mut self, patterns: &[Pattern<'_>]) -> Result<(), FilesError> {
        let work_dir = &self.order.work_dir;
        let opened = if self.order.live {
            tree::open_root(work_dir)
        } else {
            beneath::own_dir(work_dir, &self.order.own)
        };
        if opened.as_ref().is_err_and(|errno| *errno == beneath::IS_LINK) {
            self.notes.push("the work directory is a link: nothing is looked for in it".to_owned());
        }
        let Some(work) = tree::optional(opened, work_dir)? else { return Ok(()) };
        let stat = rustix::fs::fstat(self.output);
        let stat = stat.map_err(FilesError::errno("look at", &self.order.output_dir))?;
        let except = Some((stat.st_dev, stat.st_ino));
        let stat = rustix::fs::fstat(&work).map_err(FilesError::errno("look at", work_dir))?;
        let owner = self.order.live.then_some(stat.st_uid);
        let mut found = Found::default();
        for pattern in patterns {
            let search = Search { root: &work, path: work_dir, except, owner };
            if let Err(error) = search.pattern(pattern, &mut found) {
                self.survive(error)?;
            }
        }
        self.notes.append(&mut found.notes);
        // Links first: their targets may be about to move.
        for path in &found.links {
            if let Err(error) = self.bring_link(&work, path) {
                self.survive(error)?;
            }
        }
        let all: u64 =
            found.files.iter().filter(|(_, stat)| self.counts(stat)).map(|(_, stat)| size(stat)).sum();
        self.progress.left(all.saturating_mul(self.passes()));
        for (path, stat) in &found.files {
            if self.counts(stat)
                && let Err(error) = self.bring_file(&work, path, stat)
            {
                self.survive(error)?;
            }
        }
        Ok(())
    }

    /// One file that cannot be had is a note; a disk that is full or broken ends the collection, to be tried again.
    fn survive(&mut self, error: FilesError) -> Result<(), FilesError> {
        if error.is_worth_another_try() {
            return Err(error);
        }
        self.notes.push(format!("{error}: {}", error.source));
        Ok(())
    }

    /// In the owner's own directory only what the attempt wrote is its output.
    fn counts(&self, stat: &Stat) -> bool {
        !self.order.live || tree::mtime_ns(stat) >= self.order.newer_than_ns - TIME_GRAIN_NS
    }

    fn bring_file(&mut self, work: &Dir, path: &Path, stat: &Stat) -> Result<(), FilesError> {
        let Some((from, name)) = parent(work, path).map_err(FilesError::errno("open", self.from(path)))?
        else {
            return Ok(());
        };
        let Some(to) = self.free_place(path, name)? else { return Ok(()) };
        if !self.order.live {
            match rustix::fs::renameat_with(&from, name, &to, name, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    self.progress.did(size(stat));
                    return Ok(());
                }
                Err(Errno::EXIST | Errno::NOENT) => return Ok(()),
                // Another file system, or one that cannot promise not to replace.
                Err(Errno::XDEV | Errno::INVAL) => {}
                Err(errno) => return Err(FilesError::errno("move", self.from(path))(errno)),
            }
        }
        let opened = tree::open_file(&from, name);
        let Some((file, stat)) = tree::optional(opened, &self.from(path))? else { return Ok(()) };
        self.copy_in(&file, &stat, (&to, name, path))
    }

    /// A declared link to a regular file below the work directory comes home as a copy of that file.
    fn bring_link(&mut self, work: &Dir, path: &Path) -> Result<(), FilesError> {
        let (file, stat) = match beneath::file(work, path, Links::Inside) {
            Ok(opened) => opened,
            Err(errno) => {
                let what =
                    if errno == beneath::NOT_A_FILE { "to no file" } else { "out of the work directory" };
                self.notes.push(format!("{} is a link {what}: not followed", shown(path)));
                return Ok(());
            }
        };
        let Some(name) = path.file_name() else { return Ok(()) };
        if !self.counts(&stat) {
            return Ok(());
        }
        let Some(to) = self.free_place(path, name)? else { return Ok(()) };
        self.copy_in(&file, &stat, (&to, name, path))
    }

    /// The directory for it in the output directory; `None` if something of that name is home already.
    fn free_place(&self, path: &Path, name: &OsStr) -> Result<Option<Dir>, FilesError> {
        let above = path.parent().unwrap_or(Path::new(""));
        let dir = tree::make_below(self.output, &self.order.output_dir, above)?;
        match tree::stat(&dir, name) {
            Ok(_) => Ok(None),
            Err(Errno::NOENT) => Ok(Some(dir)),
            Err(errno) => Err(FilesError::errno("look at", self.order.output_dir.join(path))(errno)),
        }
    }

    fn copy_in(&mut self, file: &File, stat: &Stat, to: (&Dir, &OsStr, &Path)) -> Result<(), FilesError> {
        let target = self.order.output_dir.join(to.2);
        self.remove_partial()?;
        let mut tell = |bytes| self.progress.did(bytes);
        Copier::telling(&mut tell).file(file, stat, (self.output, OsStr::new(PARTIAL), &target))?;
        rustix::fs::renameat(self.output, PARTIAL, to.0, to.1).map_err(FilesError::errno("move to", &target))
    }

    /// Everything that is home, with its hash.
    fn list(&mut self, patterns: &[Pattern<'_>]) -> Result<Vec<ReturnedFile>, FilesError> {
        let mut found = Found::default();
        let path = &self.order.output_dir;
        Search { root: self.output, path, except: None, owner: None }.all(&mut found)?;
        self.notes.append(&mut found.notes);
        found.files.sort_by(|a, b| a.0.cmp(&b.0));
        let all: u64 = found.files.iter().map(|(_, stat)| size(stat)).sum();
        self.progress.left(all.saturating_mul(self.passes() - 1));
        let mut files = Vec::new();
        for (path, _) in found.files {
            match self.check(&path) {
                Ok(Some((bytes, blake3))) => files.push(ReturnedFile {
                    kind: kind_of(patterns, &path),
                    path,
                    bytes: Bytes(bytes),
                    blake3,
                    partial: self.order.partial,
                }),
                Ok(None) => {}
                Err(error) => self.survive(error)?,
            }
        }
        Ok(files)
    }

    fn check(&mut self, path: &Path) -> Result<Option<(u64, String)>, FilesError> {
        let at = self.order.output_dir.join(path);
        let place = parent(self.output, path).map_err(FilesError::errno("open", &at))?;
        let Some((dir, name)) = place else { return Ok(None) };
        let Some((file, _)) = tree::optional(tree::open_file(&dir, name), &at)? else { return Ok(None) };
        hash(&file, &mut |bytes| self.progress.did(bytes)).map(Some).map_err(FilesError::new("read", &at))
    }

    fn from(&self, path: &Path) -> PathBuf {
        self.order.work_dir.join(path)
    }
}

/// The directory that a path below another is in, and its name there.
pub(super) fn parent<'p>(root: &Dir, path: &'p Path) -> Result<Option<(Dir, &'p OsStr)>, Errno> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let dir = tree::descend(root, path.parent().unwrap_or(Path::new("")))?;
    Ok(dir.map(|dir| (dir, name)))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Size and BLAKE3 of an open file; is told of bytes as they are read.
pub(super) fn hash(mut file: &File, tell: &mut dyn FnMut(u64)) -> std::io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((bytes, hasher.finalize().to_hex().to_string())),
            Ok(n) => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
                tell(n as u64);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
