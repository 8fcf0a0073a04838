//! The watched folder. Layer 2.
//!
//! Events are hints, the directory scan is the truth: an event only says which name to look at again and how soon.
//! A name is looked at by opening it without following links, and its bytes and its identity come from that one
//! descriptor. Nothing half-written is handed on: a file that somebody still has open for writing waits until it is
//! closed. Nothing is parsed here, nothing is decided: drops go to the shell, which says what to take.
//!
//! Neighbours: the shell makes drops durable and calls [`Inbox::take`]; `jobfile` reads the bytes.

mod desk;
mod entry;
mod folder;
mod look;
mod names;
mod owner;
mod take;
mod watch;
mod worker;

use crate::model::{DropIdent, Span};
use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use watch::Hint;
use worker::{Shared, Worker};

pub use owner::{OwnerMark, mark_owner};

/// How the folder is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxConfig {
    /// The folder. Made if it is missing.
    pub dir: PathBuf,
    /// The state directory that owns it, as it is written into the folder's marker.
    pub owner_marker: String,
    /// Only this account's files are taken.
    pub uid: u32,
    /// A file may be this long.
    pub max_bytes: u64,
    /// How long after the last write a file is due.
    pub settle: Span,
    /// How long after the last change below it a copied folder is due.
    pub settle_folder: Span,
    /// How long an empty file may still be filled.
    pub settle_empty: Span,
    /// How often the folder is looked through where its file system reports nothing.
    pub rescan: Span,
    /// Look through it that often in any case.
    pub always_rescan: bool,
}

impl InboxConfig {
    /// The usual times for this folder, state directory and account.
    pub fn new(dir: PathBuf, state: &Path, uid: u32) -> Self {
        Self {
            dir,
            owner_marker: state.display().to_string(),
            uid,
            max_bytes: 1 << 20,
            settle: Span(150),
            settle_folder: Span::secs(1),
            settle_empty: Span::secs(2),
            rescan: Span::secs(30),
            always_rescan: false,
        }
    }
}

/// One drop: a file or a folder, complete, seen for the first time or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Its name in the inbox.
    pub name: String,
    /// The name without its ending: the job's default name.
    pub stem: String,
    /// What it is.
    pub ident: DropIdent,
    /// Whose.
    pub uid: u32,
    /// The job file's bytes.
    pub bytes: Vec<u8>,
    /// It is a folder, and where that is now.
    pub folder: Option<PathBuf>,
}

/// What happened in the folder. Names are as they are on disk: clean them before showing them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxEvent {
    /// Read it.
    Dropped(Drop),
    /// It cannot be a drop as it is. It stays where it is and is looked at again when it changes.
    Refused {
        /// Its name.
        name: String,
        /// What it is, if it could be read.
        ident: Option<DropIdent>,
        /// Why.
        reason: String,
        /// What to do; empty if there is nothing to say.
        hint: String,
    },
    /// Not yet.
    Waiting {
        /// Its name.
        name: String,
        /// Why, in words.
        why: String,
    },
    /// A name that was refused, waiting or dropped is no longer there, and was not taken.
    Gone {
        /// The name.
        name: String,
    },
    /// The folder cannot be watched. Tried again by itself.
    Alarm {
        /// Why, in words.
        text: String,
    },
    /// It is watched again.
    Healed,
}

/// Where events go. Called on the inbox's thread, without locks held.
pub type Deliver = Arc<dyn Fn(InboxEvent) + Send + Sync>;

/// What became of an accepted drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Out of the inbox. A folder, or a file that was to go somewhere, is now here.
    Moved(Option<PathBuf>),
    /// The name now holds another drop, or one that somebody writes: it stays and is delivered on its own.
    Replaced,
    /// Nothing is there under this name.
    Gone,
}

/// Why the inbox could not do it.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The system refused.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// Another scheduler that runs has it.
    #[error("the inbox {dir} belongs to the scheduler with the state {owner}")]
    Owned {
        /// The folder.
        dir: PathBuf,
        /// The other state directory.
        owner: String,
    },
}

/// The watched folder. Dropping it ends the watch.
#[derive(Debug)]
pub struct Inbox {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Inbox {
    /// Starts to watch. What is there already is delivered too. A folder that cannot be watched is an
    /// [`InboxEvent::Alarm`] and tried again; only one that another scheduler has is an error.
    pub fn start(config: InboxConfig, deliver: Deliver) -> Result<Self, InboxError> {
        let (dir, max_bytes) = (config.dir.clone(), config.max_bytes);
        let io = |source| InboxError::Io { doing: "watch", path: dir.clone(), source };
        // What stands in the way is reported by the thread.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        let shared = Arc::new(Shared::new(config.clone()).map_err(io)?);
        let mut worker = Worker::new(Arc::clone(&shared), config, deliver);
        if let Ok(meta) = std::fs::metadata(&dir)
            && meta.is_dir()
        {
            worker.own((meta.dev(), meta.ino()))?;
            take::recover(&dir, max_bytes)?;
        }
        let thread =
            std::thread::Builder::new().name("inbox".to_owned()).spawn(move || worker.run()).map_err(io)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Looks through the folder now.
    pub fn rescan(&self) {
        self.shared.hints.push(Hint::Rescan);
    }

    /// Takes an accepted drop out of the inbox: a file is removed (its bytes are stored) unless `folder_to` says where
    /// it goes, a folder goes to `folder_to`, which must be on the same file system and not be there yet. Only what
    /// `ident` names is taken: where the name holds another drop by now, that one stays and is delivered.
    pub fn take(&self, name: &str, ident: &DropIdent, folder_to: Option<&Path>) -> Result<Taken, InboxError> {
        let name = OsStr::new(name);
        let mut desk = self.shared.desk();
        let taken = take::take(&desk, name, ident, folder_to)?;
        match &taken {
            Taken::Moved(_) => desk.remove(name),
            Taken::Replaced => self.shared.hints.push(Hint::Rescan),
            Taken::Gone => {}
        }
        Ok(taken)
    }

    /// Forgets that this name was seen: what is there is delivered again, even if it did not change.
    pub fn forget(&self, name: &str) {
        self.shared.desk().forget(OsStr::new(name), crate::clock::monotonic().0);
        // Wakes the thread.
        self.shared.hints.push(Hint::MovedIn(name.into()));
    }
}

impl std::ops::Drop for Inbox {
    fn drop(&mut self) {
        self.shared.hints.push(Hint::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}
