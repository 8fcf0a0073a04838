//! Events of the watched folder as hints in a queue, and the wait for them.
//!
//! Reads of any file are events too and cannot be switched off: they are left out before anybody is woken.

use super::names::{self, NameKind};
use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{Config, Event, EventHandler, INotifyWatcher, RecursiveMode, Watcher};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// More hints than this are dropped for one look through the whole folder.
const HINTS_MAX: usize = 65_536;

/// What to look at again, and how soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hint {
    /// A name was renamed to: it is complete.
    MovedIn(OsString),
    /// A file was closed after writing.
    Written(OsString),
    /// A name appeared, was written to, or its owner, mode or links changed.
    Touched(OsString),
    /// A folder was made.
    Made(OsString),
    /// A name is gone.
    Removed(OsString),
    /// Who edits this name may have changed.
    Edited(OsString),
    /// Something below the folder of this name changed.
    Below(OsString),
    /// The inbox itself appeared, went or changed; whether it was removed, and its watch with it.
    Dir {
        /// It was.
        removed: bool,
    },
    /// Anything may have happened.
    Rescan,
    /// The watcher is at the end of its means.
    Trouble(String),
    /// The end.
    Stop,
}

/// The queue of hints, and how its reader is woken.
#[derive(Debug)]
pub(super) struct Hints {
    queue: Mutex<VecDeque<Hint>>,
    bell: OwnedFd,
}

impl Hints {
    pub(super) fn new() -> std::io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { queue: Mutex::default(), bell })
    }

    pub(super) fn push(&self, hint: Hint) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.len() >= HINTS_MAX {
                let stop = queue.contains(&Hint::Stop);
                queue.clear();
                queue.push_back(Hint::Rescan);
                queue.extend(stop.then_some(Hint::Stop));
            }
            queue.push_back(hint);
        }
        // Full means that the bell rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> VecDeque<Hint> {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits for hints. Also for changes of the mount table, because no event tells of an inbox that was mounted over or
/// unmounted.
#[derive(Debug)]
pub(super) struct Waiter {
    hints: Arc<Hints>,
    mounts: Option<File>,
}

impl Waiter {
    pub(super) fn new(hints: Arc<Hints>) -> Self {
        Self { hints, mounts: File::open("/proc/self/mountinfo").ok() }
    }

    /// The hints that came; none when the time is up.
    pub(super) fn wait(&mut self, timeout_ms: Option<u64>) -> VecDeque<Hint> {
        let timeout = timeout_ms.map(|ms| Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: (ms % 1000).cast_signed() * 1_000_000,
        });
        let mut fds = vec![PollFd::new(&self.hints.bell, PollFlags::IN)];
        if let Some(mounts) = &self.mounts {
            fds.push(PollFd::new(mounts, PollFlags::PRI));
        }
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, timeout.as_ref());
        let mounts_changed = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        let mut hints = self.hints.take();
        if mounts_changed {
            hints.push_back(Hint::Dir { removed: false });
        }
        hints
    }
}

/// The watcher of the inbox, of the folder it is in, and of folders dropped into it.
#[derive(Debug)]
pub(super) struct Watch {
    dir: PathBuf,
    watcher: INotifyWatcher,
}

impl Watch {
    pub(super) fn new(dir: &Path, hints: Arc<Hints>) -> notify::Result<Self> {
        let handler = Handler { dir: dir.to_owned(), hints };
        let watcher = INotifyWatcher::new(handler, Config::default().with_follow_symlinks(false))?;
        Ok(Self { dir: dir.to_owned(), watcher })
    }

    /// Watches the inbox as it is now.
    pub(super) fn arm(&mut self) -> notify::Result<()> {
        if let Some(parent) = self.dir.parent() {
            let _ = self.watcher.unwatch(parent);
            // Without it only a removed inbox is noticed later.
            let _ = self.watcher.watch(parent, RecursiveMode::NonRecursive);
        }
        let _ = self.watcher.unwatch(&self.dir);
        self.watcher.watch(&self.dir, RecursiveMode::NonRecursive)
    }

    /// Watches everything below a dropped folder.
    pub(super) fn arm_folder(&mut self, folder: &Path) -> notify::Result<()> {
        self.watcher.watch(folder, RecursiveMode::Recursive)
    }

    /// No longer watches below a dropped folder.
    pub(super) fn disarm_folder(&mut self, folder: &Path) {
        let _ = self.watcher.unwatch(folder);
    }
}

/// Runs on the watcher's thread.
struct Handler {
    dir: PathBuf,
    hints: Arc<Hints>,
}

impl EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        match event {
            Ok(event) if event.need_rescan() => self.hints.push(Hint::Rescan),
            Ok(event) => {
                if let Some(hint) = event.paths.first().and_then(|path| self.hint(event.kind, path)) {
                    self.hints.push(hint);
                }
            }
            Err(error) => self.hints.push(Hint::Trouble(words(&error))),
        }
    }
}

impl Handler {
    fn hint(&self, kind: EventKind, path: &Path) -> Option<Hint> {
        let removed = match kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            // The rename's two halves have come on their own.
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return None,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => true,
            _ => false,
        };
        let Ok(below) = path.strip_prefix(&self.dir) else {
            // The folder around the inbox: only its own end concerns us, not what else is in it.
            return (removed && self.dir.parent() == Some(path)).then_some(Hint::Dir { removed });
        };
        let mut parts = below.components();
        let Some(name) = parts.next().map(|part| part.as_os_str().to_owned()) else {
            return Some(Hint::Dir { removed });
        };
        let ignored = names::kind(&name) == NameKind::Ignored;
        if parts.next().is_some() {
            return (!ignored).then_some(Hint::Below(name));
        }
        if ignored {
            return names::edited(&name).map(|edited| Hint::Edited(edited.to_owned()));
        }
        Some(match kind {
            EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Hint::MovedIn(name),
            EventKind::Access(_) => Hint::Written(name),
            EventKind::Create(CreateKind::Folder) => Hint::Made(name),
            _ if removed => Hint::Removed(name),
            _ => Hint::Touched(name),
        })
    }
}

/// What the watcher says, with the way out where there is one.
pub(super) fn words(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "no more watches: raise fs.inotify.max_user_watches (sysctl); until then it is looked through every second"
                .to_owned()
        }
        notify::ErrorKind::Io(source) if source.raw_os_error() == Some(libc::EMFILE) => {
            "no more watchers: raise fs.inotify.max_user_instances (sysctl); until then it is looked through every second"
                .to_owned()
        }
        _ => crate::model::clean_line(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_hints_become_one_look_through_the_folder() {
        let hints = Hints::new().unwrap();
        for n in 0..=HINTS_MAX {
            hints.push(Hint::Touched(n.to_string().into()));
        }
        let queue: Vec<_> = hints.take().into();
        assert_eq!(queue, [Hint::Rescan, Hint::Touched(HINTS_MAX.to_string().into())]);
        assert!(hints.take().is_empty());
    }
}
