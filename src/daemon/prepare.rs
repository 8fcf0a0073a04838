//! Makes the work directory of an attempt before it is granted anything: a copy of the code, and a look whether the data
//! of earlier jobs are there. A full disk is no end: it is tried again.

use super::intake::Intake;
use super::message::Message;
use crate::beneath::{self, Links};
use crate::config::Paths;
use crate::files::{self, FilesError, SnapshotError, SnapshotLimits, SnapshotRequest};
use crate::model::{Bytes, Code, DataFrom, chain};
use crate::sched::{Input, Prepare};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two tries while the disk is full.
const AGAIN: Duration = Duration::from_secs(10);

/// Why it is not ready.
enum Unready {
    /// It never will be.
    Never(String),
    /// The disk is full, or does not answer; the same may succeed later.
    Later(String),
}

impl From<FilesError> for Unready {
    fn from(error: FilesError) -> Self {
        let later = error.is_worth_another_try();
        let words = chain(&error);
        if later { Self::Later(words) } else { Self::Never(words) }
    }
}

impl From<SnapshotError> for Unready {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Files(error) => error.into(),
            other => Self::Never(chain(&other)),
        }
    }
}

/// Starts the work; its end is an input of the core.
pub(super) fn start(prepare: Prepare, intake: &Intake) {
    let paths = intake.paths.clone();
    let limits = SnapshotLimits {
        bytes: Bytes::mib(intake.config.limits.snapshot_mib),
        files: intake.config.limits.snapshot_files,
    };
    let mailbox = intake.mailbox.clone();
    tokio::spawn(async move {
        let Prepare { job, task, attempt, .. } = prepare;
        let result = loop {
            let (prepare, paths) = (prepare.clone(), paths.clone());
            let made = tokio::task::spawn_blocking(move || make_ready(&prepare, &paths, limits)).await;
            match made {
                Ok(Ok(())) => break Ok(()),
                Ok(Err(Unready::Never(why))) => break Err(why),
                Ok(Err(Unready::Later(why))) => {
                    tracing::warn!(%job, why, "cannot make a work directory; tried again");
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => break Err(format!("its directory could not be made ready: {error}")),
            }
        };
        mailbox.send(Message::Input(Input::Prepared { job, task, attempt, result })).await;
    });
}

fn make_ready(prepare: &Prepare, paths: &Paths, limits: SnapshotLimits) -> Result<(), Unready> {
    for (item, output) in &prepare.sources {
        if let DataFrom::Job { job, path } = &item.from {
            let mut parts = output.components();
            let folder = parts.next().map(|name| PathBuf::from(name.as_os_str())).unwrap_or_default();
            returned(&paths.jobs().join(&folder), parts.as_path(), path, &paths.own_trees())
                .map_err(|why| Unready::Never(format!("job:{job}/{path} {why} {}", folder.display())))?;
        }
    }
    let (Some(dir), Code::Snapshot { skip, keep }) = (&prepare.spec.work.dir, &prepare.spec.work.code) else {
        return Ok(());
    };
    let tree = paths.snapshot(prepare.job);
    let (marker, of) = (marker(&tree), fingerprint(dir, skip, keep));
    // Of a tree without a word about what it is of only an edit makes another one.
    let said = std::fs::read_to_string(&marker).ok();
    if said.as_ref().map_or(prepare.edited, |said| *said != of) {
        files::remove_tree(&tree)?;
    }
    if !tree.exists() {
        if let Some(parent) = marker.parent() {
            super::clerk::private_dir(parent).map_err(|error| later(&error))?;
        }
        std::fs::write(&marker, &of).map_err(|error| later(&error))?;
        let (skip, keep) = (skip.clone(), keep.clone());
        let request = SnapshotRequest { dir: dir.clone(), skip, keep, limits, dest: tree.clone() };
        let report = files::snapshot(&request)?;
        if !report.skipped_special.is_empty() {
            let left_out = report.skipped_special.join(", ");
            tracing::info!(job = %prepare.job, left_out, "pipes, devices and strangers' links are not copied");
        }
    }
    let work = paths.prepared(prepare.job, prepare.task.0, prepare.attempt.0);
    files::remove_tree(&work)?;
    files::copy_tree(&tree, &work)?;
    Ok(())
}

/// Says beside a job's copy of its code which code that is.
pub(super) fn marker(tree: &Path) -> PathBuf {
    tree.with_extension("of")
}

fn fingerprint(dir: &Path, skip: &[String], keep: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [dir.as_os_str().as_bytes(), skip.join("\n").as_bytes(), keep.join("\n").as_bytes()] {
        hasher.update(part).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}

fn later(error: &std::io::Error) -> Unready {
    Unready::Later(error.to_string())
}

/// Whether a path is among the outputs in a job's folder: links count as far as they stay among them. Why not, in words.
fn returned(folder: &Path, output: &Path, path: &str, own: &[PathBuf]) -> Result<(), &'static str> {
    let absent = "is not among the outputs of";
    let output = beneath::own_dir(folder, own)
        .and_then(|folder| beneath::dir(folder, output, Links::Inside))
        .map_err(|_| absent)?;
    match beneath::look(output, Path::new(path), Links::Inside) {
        Ok(_) => Ok(()),
        Err(beneath::LEADS_OUT) => Err("is a link that leads out of the outputs of"),
        Err(_) => Err(absent),
    }
}
