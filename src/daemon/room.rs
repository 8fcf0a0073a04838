//! Whether the disks have room for a start. Tried when a start has failed, and then again until it works: an attempt of
//! which nothing ran for want of room is no attempt of its job.

use super::message::{Mailbox, Message};
use super::turns::Daemon;
use crate::config::Paths;
use crate::model::{Cursor, LeaseId, RunEnd};
use crate::sched::{EngineReport, Input};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

/// Between two tries.
const AGAIN: Duration = Duration::from_secs(2);
/// A start needs less: its journal, its script, its directories.
const BYTES: usize = 256 << 10;
/// Files and directories that a start makes, and some more.
const ENTRIES: usize = 16;

impl Daemon {
    /// The input, unless it has to wait for a look at the disks: a start that came to nothing may be their fault. What
    /// else is said of that lease waits behind it.
    pub(super) fn admit(&mut self, input: Input) -> Option<Input> {
        let Input::Engine(report) = &input else { return Some(input) };
        let lease = report.lease();
        if let Some((_, waiting)) = self.disk.asking.iter_mut().find(|(asking, _)| *asking == lease) {
            waiting.push(input);
            return None;
        }
        let failed = matches!(
            report,
            EngineReport::NotLaunched { .. } | EngineReport::Ended { end: RunEnd::Lost { .. }, .. }
        );
        if !failed || !self.is_renting(lease) || self.disk.held_up.is_some() {
            return Some(input);
        }
        self.disk.asking.push((lease, vec![input]));
        let (paths, mailbox) = (self.intake.paths.clone(), self.intake.mailbox.clone());
        tokio::spawn(async move {
            let why = look(&paths).await;
            mailbox.send(Message::Room { why, asked_by: Some(lease) }).await;
        });
        None
    }

    fn is_renting(&self, lease: LeaseId) -> bool {
        let job = self.world.lease(lease).and_then(|lease| self.world.queue.get(lease.job));
        job.is_some_and(|job| {
            job.tasks.iter().any(|task| {
                let state = &task.current().state;
                state.lease() == Some(lease) && state.cursor() == Cursor::Renting
            })
        })
    }

    /// What a look at the disks found, as inputs.
    pub(super) fn room(&mut self, why: Option<String>, asked_by: Option<LeaseId>) -> Vec<Input> {
        if why.is_some() && self.disk.held_up.is_none() {
            tokio::spawn(until_room(self.intake.paths.clone(), self.intake.mailbox.clone()));
        }
        self.disk.held_up.clone_from(&why);
        let asked = self.disk.asking.iter().position(|(lease, _)| Some(*lease) == asked_by);
        let waited = asked.map(|at| self.disk.asking.swap_remove(at).1).unwrap_or_default();
        std::iter::once(Input::HeldUp(why)).chain(waited).collect()
    }
}

/// Tells when there is room again.
async fn until_room(paths: Paths, mailbox: Mailbox) {
    loop {
        tokio::time::sleep(AGAIN).await;
        let why = look(&paths).await;
        let over = why.is_none();
        mailbox.send(Message::Room { why, asked_by: None }).await;
        if over {
            return;
        }
    }
}

/// Why nothing can be started; `None` if it can.
async fn look(paths: &Paths) -> Option<String> {
    let dirs = [paths.state.join("run"), paths.jobs()];
    let tried = tokio::task::spawn_blocking(move || {
        dirs.iter().find_map(|dir| {
            let error = try_disk(dir).err()?;
            Some(format!("{} cannot be written ({error})", dir.display()))
        })
    });
    tried.await.unwrap_or_default()
}

/// Makes, and removes, what a start makes.
fn try_disk(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".room");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&probe).and_then(|()| {
        for n in 0..ENTRIES {
            File::create(probe.join(n.to_string()))?;
        }
        File::create(probe.join("0"))?.write_all(&vec![0; BYTES])
    });
    let removed = std::fs::remove_dir_all(&probe);
    made.and(removed)
}
