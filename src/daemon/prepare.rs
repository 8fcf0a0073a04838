//! Makes the work directory of an attempt before it is granted anything: a copy of the code, and a look whether the data
//! of earlier jobs are there. A full disk is no end: it is tried again.

use super::intake::Intake;
use super::message::Message;
use crate::config::Paths;
use crate::files::{self, FilesError, SnapshotError, SnapshotLimits, SnapshotRequest};
use crate::model::{Bytes, Code, DataFrom, chain};
use crate::sched::{Input, Prepare};
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
        if let DataFrom::Job { job, path } = &item.from
            && !paths.jobs().join(output).join(path).exists()
        {
            let folder = output.iter().next().unwrap_or_default().display();
            return Err(Unready::Never(format!("job:{job}/{path} is not among the outputs of {folder}")));
        }
    }
    let (Some(dir), Code::Snapshot { skip, keep }) = (&prepare.spec.work.dir, &prepare.spec.work.code) else {
        return Ok(());
    };
    let tree = paths.snapshot(prepare.job);
    if !tree.exists() {
        let (skip, keep) = (skip.clone(), keep.clone());
        files::snapshot(&SnapshotRequest { dir: dir.clone(), skip, keep, limits, dest: tree.clone() })?;
    }
    let work = paths.prepared(prepare.job, prepare.task.0, prepare.attempt.0);
    files::remove_tree(&work)?;
    files::copy_tree(&tree, &work)?;
    Ok(())
}
