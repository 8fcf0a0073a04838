//! The person's own editor, on a private copy of a text.

use super::CliError;
use crate::config::Paths;
use crate::protocol::JobFile;
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A text in a file that only its owner reads. Removed with the value, unless it is to be kept.
pub(super) struct Copy {
    dir: PathBuf,
    file: PathBuf,
    kept: bool,
}

impl Copy {
    /// Puts a job's text into a file below the state directory.
    pub(super) fn of(file: &JobFile, paths: &Paths) -> Result<Self, CliError> {
        let dir = paths.state.join("edit").join(format!("{}-{}", file.job, std::process::id()));
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| CliError::File { doing, path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed("make", &dir))?;
        let path = dir.join(format!("{}.yaml", file.name));
        let copy = Self { dir, file: path.clone(), kept: false };
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut open| open.write_all(file.text.as_bytes()))
            .map_err(failed("write", &path))?;
        Ok(copy)
    }

    /// What is in it now.
    pub(super) fn read(&self) -> Result<Vec<u8>, CliError> {
        fs::read(&self.file).map_err(|source| CliError::File {
            doing: "read",
            path: self.file.clone(),
            source,
        })
    }

    /// Leaves it where it is, and says where.
    pub(super) fn keep(&mut self) -> &Path {
        self.kept = true;
        &self.file
    }

    /// Opens it in an editor and waits for that to end. The editor's words are a command line, as in a shell.
    pub(super) fn edit(&self, editor: &str) -> Result<(), CliError> {
        // Ctrl-C is the editor's while it is there: what was begun is ended in any case.
        let caught = [SIGINT, SIGQUIT]
            .map(|signal| signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))));
        let status = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("{editor} \"$@\""))
            .arg(editor)
            .arg(&self.file)
            .status();
        for id in caught.into_iter().flatten() {
            signal_hook::low_level::unregister(id);
        }
        let how = match status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(CliError::Refused {
            message: format!(
                "the editor `{editor}` has failed ({how}); the job is as it was; set VISUAL or EDITOR to another one, or use --file"
            ),
        })
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is private, and small.
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}
