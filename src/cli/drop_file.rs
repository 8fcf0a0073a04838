//! Puts a job file or folder into the inbox while no scheduler runs: under a name that the inbox does not look at, then
//! by a rename, so that it is there whole or not at all. Never over what is there already.

use super::CliError;
use super::jobfiles::Source;
use crate::config::Paths;
use crate::model::slug;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Taken names that are tried with a number before giving up.
const MOST_NAMES: u32 = 10_000;

/// Where it lies now.
pub(super) fn into_inbox(source: &Source, paths: &Paths) -> Result<PathBuf, CliError> {
    let inbox = paths.inbox();
    for folder in [&paths.root, &inbox] {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed("make", folder, error))?;
    }
    let new = inbox.join(format!(".{}.{}.new", slug(&source.stem), std::process::id()));
    let placed = write(source, &new).and_then(|()| place(source, &new, &inbox));
    if placed.is_err() {
        // What was begun is not left behind; that it could not be removed either says nothing new.
        let _ = if source.folder { std::fs::remove_dir_all(&new) } else { std::fs::remove_file(&new) };
    }
    placed
}

fn write(source: &Source, new: &Path) -> Result<(), CliError> {
    match (&source.base, source.folder) {
        (Some(folder), true) => copy_folder(folder, new),
        _ => OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(new)
            .and_then(|mut file| {
                file.write_all(&source.text)?;
                file.sync_all()
            })
            .map_err(|error| failed("write", new, error)),
    }
}

/// Renames it to the first name that is free.
fn place(source: &Source, new: &Path, inbox: &Path) -> Result<PathBuf, CliError> {
    let stem = slug(&source.stem);
    let ending = if source.folder { "" } else { ".yaml" };
    for n in 1..MOST_NAMES {
        let name = if n == 1 { format!("{stem}{ending}") } else { format!("{stem}-{n}{ending}") };
        let place = inbox.join(name);
        match renameat_with(CWD, new, CWD, &place, RenameFlags::NOREPLACE) {
            // What is told to be there must be there after a power cut too.
            Ok(()) => return durable(source, &place, inbox).map(|()| place),
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(failed("move it to", &place, errno.into())),
        }
    }
    Err(failed("find a free name in", inbox, std::io::ErrorKind::AlreadyExists.into()))
}

fn durable(source: &Source, place: &Path, inbox: &Path) -> Result<(), CliError> {
    let dir = std::fs::File::open(inbox).map_err(|error| failed("open", inbox, error))?;
    let synced = if source.folder { rustix::fs::syncfs(&dir) } else { rustix::fs::fsync(&dir) };
    synced.map_err(|errno| failed("make durable", place, errno.into()))
}

/// Files, folders and links as they are; anything else is left out, as the inbox would refuse it.
fn copy_folder(from: &Path, to: &Path) -> Result<(), CliError> {
    DirBuilder::new().mode(0o700).create(to).map_err(|error| failed("make", to, error))?;
    for entry in std::fs::read_dir(from).map_err(|error| failed("read", from, error))? {
        let entry = entry.map_err(|error| failed("read", from, error))?;
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| failed("look at", &old, error))?;
        if kind.is_dir() {
            copy_folder(&old, &new)?;
        } else if kind.is_symlink() {
            std::fs::read_link(&old)
                .and_then(|target| std::os::unix::fs::symlink(target, &new))
                .map_err(|error| failed("copy", &old, error))?;
        } else if kind.is_file() {
            std::fs::copy(&old, &new).map_err(|error| failed("copy", &old, error))?;
        }
    }
    Ok(())
}

fn failed(doing: &'static str, path: &Path, source: std::io::Error) -> CliError {
    CliError::File { doing, path: path.to_owned(), source }
}
