//! The store: what must be remembered, on disk. Layer 2.
//!
//! An append-only log of events and the tables they fold into, in one redb file. One thread writes: it drains what has
//! been handed to [`Store::append`], makes one durable commit of all of it, and only then tells each caller. Reads go
//! through a [`Reader`] on the caller's thread and never wait for a commit.
//!
//! redb's types and the stored shapes (`records`) do not leave this module. It decides nothing: it neither folds events
//! nor retries a failed commit by itself. A file that is not ours, not this machine's, damaged or newer is refused and
//! left as it is, to the byte.

mod backend;
mod create;
mod error;
mod examine;
mod identity;
mod index;
mod load;
mod migrate;
mod open;
mod reader;
mod records;
mod tables;
mod writer;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use examine::examine;
pub use identity::Identity;
pub use load::Loaded;
pub use reader::{Reader, StoredSubmission};
pub use records::RecordError;
pub use tables::Batch;

use backend::FileStorage;
use redb::Database;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;
use writer::Message;

/// Told on the store's thread once a batch is durable, or why it is not.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Told on the store's thread once the file is open again: the last event that is in it.
pub type Reopened = Box<dyn FnOnce(Result<u64, StoreError>) + Send>;

/// What [`Store::open`] must know beside the path.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// A file beside the inbox, written at the first start: it names the store that owns the folders, and tells a first
    /// start from one whose state was lost.
    pub first_start_marker: PathBuf,
    /// The folder of what people are shown of each job: where there is any, it is no first start either.
    pub jobs_dir: Option<PathBuf>,
    /// Memory that redb may use for caching.
    pub cache_bytes: usize,
    /// The newest jobs that are done and loaded at start.
    pub done_jobs: usize,
    /// The newest drops that are loaded at start.
    pub drops: usize,
    /// How long ago a loaded lease may have ended.
    pub lease_days: u32,
}

impl StoreOptions {
    /// The sizes a scheduler uses.
    pub const fn new(first_start_marker: PathBuf) -> Self {
        Self {
            first_start_marker,
            jobs_dir: None,
            cache_bytes: 4 << 20,
            done_jobs: 500,
            drops: 20_000,
            lease_days: 8,
        }
    }
}

/// The open store. Dropping it finishes what was handed to it; the file is closed once its readers are gone too.
#[derive(Debug)]
pub struct Store {
    sender: Option<mpsc::Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    reader: Reader,
}

/// What the writer's thread and the readers share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The file, locked for as long as the store lives: also while redb's handle is being replaced.
    storage: FileStorage,
    identity: Identity,
    cache_bytes: usize,
    /// `None` after a failed commit, until [`Store::reopen`].
    database: RwLock<Option<Database>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.database.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        // A process that is just being started has a copy of the descriptor until it executes its program: closing ours
        // would leave the lock to it. An error changes nothing, for the descriptor is closed next.
        drop(self.storage.file.unlock());
    }
}

impl Store {
    /// Opens the store, or creates it at the first start, and reads what the scheduler needs to begin.
    pub fn open(
        path: &Path,
        identity: &Identity,
        options: &StoreOptions,
    ) -> Result<(Self, Loaded), StoreError> {
        let found = create::locked_file(path, identity, options)?;
        let storage = FileStorage::new(Arc::clone(&found.file));
        let database = open::checked(path, &storage, identity, options.cache_bytes)?;
        let mut loaded = load::load(path, &database, options)?;
        loaded.first_start = found.first_start;
        found.mark(path, &options.first_start_marker)?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            storage,
            identity: identity.clone(),
            cache_bytes: options.cache_bytes,
            database: RwLock::new(Some(database)),
        });
        let (sender, receiver) = mpsc::channel();
        let thread = writer::spawn(Arc::clone(&shared), receiver, loaded.last_seq)?;
        Ok((Self { sender: Some(sender), thread: Some(thread), reader: Reader { shared } }, loaded))
    }

    /// Hands over a batch and returns at once. Batches become durable in the order in which they came, several in one
    /// commit where they queue up. Repeating a batch whose events are stored already changes nothing.
    ///
    /// After a failed commit every further batch fails with [`StoreError::NeedsReopen`].
    pub fn append(&self, batch: Batch, done: Done) {
        if let Some(Message::Append(_, done)) = self.send(Message::Append(Box::new(batch), done)) {
            done(Err(self.closed()));
        }
    }

    /// After a failed commit: opens the file again and verifies it. Says which event is the last one in it, for what
    /// failed may have become durable nevertheless. On failure the store stays as it was and this can be called again.
    pub fn reopen(&self, done: Reopened) {
        if let Some(Message::Reopen(done)) = self.send(Message::Reopen(done)) {
            done(Err(self.closed()));
        }
    }

    /// What has been stored, for any thread.
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The message, if nobody takes it any more.
    fn send(&self, message: Message) -> Option<Message> {
        match &self.sender {
            Some(sender) => sender.send(message).err().map(|refused| refused.0),
            None => Some(message),
        }
    }

    fn closed(&self) -> StoreError {
        StoreError::Closed { path: self.reader.shared.path.clone() }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches its own panics; there is nothing to do about one here.
            drop(thread.join());
        }
    }
}
