//! What a supervisor makes while it waits for its launch, so that nothing has to be created on the path of a launch: a
//! run directory with a journal, a socket and the directories of a first attempt, and that attempt's folder.
//!
//! ```text
//! .blank-PID/journal            space that is taken and durable
//!           /ctl.sock           listens already
//!           /data-0-1 tmp-0-1 work-0-1
//!           /folder/attempts/1/log.txt output/
//! ```
//!
//! A launch gives it its names. Where a name is taken already, what is needed is moved there or made there.

use super::control::{Control, SOCKET};
use super::record::{self, BLANK, Journal, JournalError, NAME, Record};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An attempt's folder, without a job yet.
const FOLDER: &str = "folder";

/// Why a lease's run directory could not be begun.
#[derive(Debug, Error)]
pub(super) enum BlankError {
    #[error("the run directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("the supervisor's socket in {}", path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A run directory without a lease.
#[derive(Debug)]
pub(super) struct Blank {
    dir: PathBuf,
    journal: record::Blank,
}

impl Blank {
    /// Makes one among the run directories, and listens in it.
    pub(super) fn make(run: &Path, control: &mut Control) -> Result<Self, BlankError> {
        let dir = run.join(format!("{BLANK}{}", std::process::id()));
        let directory = |source| BlankError::Directory { path: dir.clone(), source };
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(directory(error)),
            _ => {}
        }
        DirBuilder::new().mode(0o700).create(&dir).map_err(directory)?;
        match fill(&dir, control) {
            Ok(journal) => Ok(Self { dir, journal }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&dir);
                Err(error)
            }
        }
    }

    /// It is not needed.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    /// Begins a lease: its journal with the first record is durable before it has its name.
    /// `None` if the name is taken: the lease has, or had, a supervisor.
    pub(super) fn begin(self, run_dir: &Path, first: &Record) -> Result<Option<Journal>, BlankError> {
        let Self { dir, journal } = self;
        let begun = journal.begin(first);
        if begun.is_err() {
            // A full disk is not to get fuller with every launch that it refuses.
            let _ = std::fs::remove_dir_all(&dir);
        }
        let mut journal = begun?;
        // The socket is there before the journal is: whoever finds the journal finds the supervisor.
        if rename(&dir, run_dir).is_ok() {
            journal.is_at(run_dir);
            return Ok(Some(journal));
        }
        let named = move_into(&dir, run_dir, &mut journal);
        let _ = std::fs::remove_dir_all(&dir);
        Ok(named?.then_some(journal))
    }
}

/// Listens in a directory and makes what a lease needs there.
fn fill(dir: &Path, control: &mut Control) -> Result<record::Blank, BlankError> {
    // The socket's name is short in its own directory, however long the path is.
    std::env::set_current_dir(dir)
        .and_then(|()| control.listen())
        .and_then(|()| std::env::set_current_dir("/"))
        .map_err(|source| BlankError::Socket { path: dir.to_owned(), source })?;
    make_scratch(dir);
    Ok(record::Blank::make(&dir.join(NAME))?)
}

/// Into a run directory that exists, or on a file system that renames no directories.
fn move_into(dir: &Path, run_dir: &Path, journal: &mut Journal) -> Result<bool, BlankError> {
    let directory = |source| BlankError::Directory { path: run_dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(run_dir).map_err(directory)?;
    if run_dir.join(NAME).try_exists().map_err(directory)? {
        return Ok(false);
    }
    std::fs::rename(dir.join(SOCKET), run_dir.join(SOCKET))
        .map_err(|source| BlankError::Socket { path: run_dir.to_owned(), source })?;
    Ok(journal.move_to(run_dir)?)
}

/// What is missing afterwards is made by the start of the attempt, which then says what the matter is.
fn make_scratch(dir: &Path) {
    for name in ["data-0-1", "tmp-0-1", "work-0-1"] {
        let _ = DirBuilder::new().mode(0o700).create(dir.join(name));
    }
    let attempt = dir.join(FOLDER).join("attempts/1");
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(attempt.join("output"));
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(attempt.join("log.txt"));
}

/// Gives the folder that was made ahead its name, at the first level that is not there yet.
pub(super) fn place_folder(run_dir: &Path, attempt: &Path) {
    let made = run_dir.join(FOLDER);
    let Some(attempts) = attempt.parent() else { return };
    let Some(job) = attempts.parent() else { return };
    let mut levels = vec![(made.join("attempts/1"), attempt)];
    // Only the first attempt's number is right already.
    if attempt.ends_with("attempts/1") {
        levels.splice(..0, [(made.clone(), job), (made.join("attempts"), attempts)]);
    }
    // What has no name afterwards is made where it is missing.
    let _ = levels.iter().any(|(from, to)| rename(from, to).is_ok());
}

/// Never replaces anything.
fn rename(from: &Path, to: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}
