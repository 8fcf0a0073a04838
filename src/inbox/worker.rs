//! The inbox's thread: hints in, looks when they are due, events out. It sleeps while nothing happens.

use super::desk::Desk;
use super::entry::Outcome;
use super::owner::{OwnerMark, mark_owner};
use super::watch::{Hint, Hints, Waiter, Watch, words};
use super::{Deliver, Drop, InboxConfig, InboxError, InboxEvent, folder};
use crate::clock;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// While the folder cannot be watched it is tried, and looked through, this often.
const RETRY_MS: u64 = 1_000;

/// What the thread shares with whoever takes drops.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) hints: Arc<Hints>,
    desk: Mutex<Desk>,
}

impl Shared {
    pub(super) fn new(config: InboxConfig) -> std::io::Result<Self> {
        Ok(Self { hints: Arc::new(Hints::new()?), desk: Mutex::new(Desk::new(config)) })
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    config: InboxConfig,
    deliver: Deliver,
    waiter: Waiter,
    watch: Option<Watch>,
    /// The folder that is watched: device and inode.
    armed: Option<(u64, u64)>,
    /// The folder that is marked, and the mark.
    owned: Option<((u64, u64), OwnerMark)>,
    alarm: Option<String>,
    retry_at: Option<u64>,
    rescan_at: Option<u64>,
    remote: bool,
}

fn now_ms() -> u64 {
    clock::monotonic().0
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, config: InboxConfig, deliver: Deliver) -> Self {
        let waiter = Waiter::new(Arc::clone(&shared.hints));
        Self {
            shared,
            config,
            deliver,
            waiter,
            watch: None,
            armed: None,
            owned: None,
            alarm: None,
            retry_at: None,
            rescan_at: None,
            remote: false,
        }
    }

    /// Marks the folder before anything else happens, so that another's is refused at the start.
    pub(super) fn own(&mut self, id: (u64, u64)) -> Result<(), InboxError> {
        if self.owned.as_ref().is_none_or(|(owned, _)| *owned != id) {
            // The old folder's mark would not say that this one is ours.
            self.owned = None;
            let mark = mark_owner(&self.config.dir, Path::new(&self.config.owner_marker))?;
            self.owned = Some((id, mark));
        }
        Ok(())
    }

    pub(super) fn run(mut self) {
        self.check_dir(true);
        loop {
            self.look_at_due();
            let hints = self.waiter.wait(self.timeout_ms());
            let now = now_ms();
            for hint in hints {
                match hint {
                    Hint::Stop => return,
                    Hint::Dir { removed } => self.check_dir(removed),
                    Hint::Rescan => self.scan(),
                    Hint::Trouble(text) => self.raise(text),
                    other => self.shared.desk().hint(&other, now),
                }
            }
            if self.retry_at.is_some_and(|at| now >= at) {
                self.check_dir(true);
            }
            if self.rescan_at.is_some_and(|at| now >= at) {
                self.check_dir(false);
                self.scan();
            }
        }
    }

    fn timeout_ms(&self) -> Option<u64> {
        let next = [self.shared.desk().next_due(), self.retry_at, self.rescan_at].into_iter().flatten().min();
        next.map(|at| at.saturating_sub(now_ms()))
    }

    fn look_at_due(&mut self) {
        let now = now_ms();
        loop {
            let outcome = {
                let mut desk = self.shared.desk();
                let Some(name) = desk.pop_due(now) else { return };
                desk.look(&name, now)
            };
            self.act(outcome);
        }
    }

    fn act(&mut self, outcome: Outcome) {
        if let Some(event) = outcome.event {
            let event = self.durable(event);
            (self.deliver)(event);
        }
        let Some(watch) = &mut self.watch else { return };
        if let Some(folder) = outcome.disarm {
            watch.disarm_folder(&folder);
        }
        if let Some(folder) = outcome.arm
            && watch.arm_folder(&folder).is_err()
        {
            self.shared.desk().not_watched(&folder, now_ms());
        }
    }

    /// A folder is accepted by its name alone: what is in it must be on disk before. A file's bytes go into the store.
    fn durable(&self, event: InboxEvent) -> InboxEvent {
        let InboxEvent::Dropped(Drop { name, folder: Some(folder), .. }) = &event else { return event };
        let Err(error) = folder::sync(folder) else { return event };
        let why = format!("it cannot be made durable: {error}; tried again");
        self.shared.desk().put_off(name.as_ref(), now_ms());
        InboxEvent::Waiting { name: name.clone(), why }
    }

    /// Sees whether the inbox is the folder that is watched, and watches it if it is not. `again`: in any case.
    fn check_dir(&mut self, again: bool) {
        let dir = &self.config.dir;
        let shown = crate::model::clean_line(&dir.display().to_string());
        let id = match std::fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => (meta.dev(), meta.ino()),
            Ok(_) => {
                return self
                    .lost(format!("{shown} is not a folder: move that file away, then mkdir {shown}"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.lost(format!("{shown} is gone: mkdir {shown}"));
            }
            Err(error) => return self.lost(format!("{shown} cannot be reached: {error}")),
        };
        if !again && self.armed == Some(id) && self.alarm.is_none() {
            return;
        }
        if let Err(error) = self.own(id) {
            return self.lost(match error {
                InboxError::Owned { .. } => crate::model::clean_line(&error.to_string()),
                other @ InboxError::Io { .. } => crate::model::clean_line(&format!(
                    "{other}: {}",
                    std::error::Error::source(&other).map(ToString::to_string).unwrap_or_default()
                )),
            });
        }
        self.remote = is_remote(&self.config.dir);
        let rescans = self.remote || self.config.always_rescan;
        self.rescan_at = rescans.then(|| now_ms() + self.config.rescan.0);
        {
            let mut desk = self.shared.desk();
            desk.leases = !self.remote;
            desk.unwatched();
        }
        let trouble = self.arm().err().map(|error| format!("{shown} cannot be watched: {}", words(&error)));
        self.armed = trouble.is_none().then_some(id);
        self.retry_at = None;
        let healed = self.alarm.clone();
        self.scan();
        match trouble {
            Some(text) => self.raise(text),
            None if healed.is_some() && self.alarm == healed => {
                self.alarm = None;
                self.retry_at = None;
                (self.deliver)(InboxEvent::Healed);
            }
            None => {}
        }
    }

    fn arm(&mut self) -> notify::Result<()> {
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => self.watch.insert(Watch::new(&self.config.dir, Arc::clone(&self.shared.hints))?),
        };
        watch.arm()
    }

    /// Looks through the folder.
    fn scan(&mut self) {
        let now = now_ms();
        if let Some(at) = &mut self.rescan_at {
            *at = now + self.config.rescan.0;
        }
        let names = std::fs::read_dir(&self.config.dir).and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<OsString>>>()
        });
        match names {
            Ok(names) => self.shared.desk().scanned(names, now),
            Err(error) => {
                let shown = crate::model::clean_line(&self.config.dir.display().to_string());
                self.raise(format!("{shown} cannot be read: {error}"));
            }
        }
    }

    fn lost(&mut self, text: String) {
        self.armed = None;
        self.raise(text);
    }

    fn raise(&mut self, text: String) {
        self.retry_at = Some(now_ms() + RETRY_MS);
        if self.alarm.as_ref() != Some(&text) {
            self.alarm = Some(text.clone());
            (self.deliver)(InboxEvent::Alarm { text });
        }
    }
}

/// A file system on which others may write without an event here.
fn is_remote(dir: &Path) -> bool {
    /// NFS, SMB, CIFS, SMB2, FUSE, 9p, Ceph, AFS, Lustre, GPFS, `BeeGFS`.
    const REMOTE: [u32; 11] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x6573_5546,
        0x0102_1997,
        0x00C3_6400,
        0x5346_414F,
        0x0BD0_0BD0,
        0x4750_4653,
        0x1983_0326,
    ];
    rustix::fs::statfs(dir).is_ok_and(|fs| REMOTE.contains(&(fs.f_type as u32)))
}
