//! The store's thread: the only writer. One commit for all that has queued up, then the news.

use super::error::StoreError;
use super::tables::{self, Batch, Encoded, database};
use super::{Done, Reopened, Shared, create, open};
use redb::Durability;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;

/// What the thread is asked to do.
pub(super) enum Message {
    /// Make a batch durable.
    Append(Box<Batch>, Done),
    /// Open the file again.
    Reopen(Reopened),
}

/// Batches in one commit.
const GROUP: usize = 256;
/// Bytes in one commit, beyond the batch that goes over.
const GROUP_BYTES: usize = 4 << 20;

/// Starts the thread. It ends when nobody can send any more and all is done.
pub(super) fn spawn(
    shared: Arc<Shared>,
    messages: mpsc::Receiver<Message>,
    last_seq: u64,
) -> Result<JoinHandle<()>, StoreError> {
    let path = shared.path.clone();
    std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || Writer { shared, last_seq }.run(&messages))
        .map_err(|source| StoreError::Io { doing: "start the thread of", path, source })
}

struct Writer {
    shared: Arc<Shared>,
    /// The last durable event.
    last_seq: u64,
}

impl Writer {
    fn run(mut self, messages: &mpsc::Receiver<Message>) {
        let mut next = messages.recv().ok();
        while let Some(message) = next.take() {
            match message {
                Message::Append(batch, done) => next = self.append_group((batch, done), messages),
                Message::Reopen(done) => done(self.reopen()),
            }
            next = next.or_else(|| messages.recv().ok());
        }
    }

    /// Commits a batch with those that have come meanwhile. Returns a message that is none of them.
    fn append_group(
        &mut self,
        first: (Box<Batch>, Done),
        messages: &mpsc::Receiver<Message>,
    ) -> Option<Message> {
        let (mut group, mut dones) = (Vec::new(), Vec::new());
        let (mut last, mut bytes) = (self.last_seq, 0);
        let mut next = Some(Message::Append(first.0, first.1));
        while let Some(Message::Append(batch, done)) = next {
            match Encoded::new(&self.shared.path, &batch, last) {
                Ok((encoded, seq)) => {
                    last = seq;
                    bytes += encoded.size();
                    group.push(encoded);
                    dones.push(done);
                }
                Err(error) => done(Err(error)),
            }
            if group.len() >= GROUP || bytes >= GROUP_BYTES {
                next = None;
                break;
            }
            next = messages.try_recv().ok();
        }
        self.commit_group(&group, last, dones);
        next
    }

    fn commit_group(&mut self, group: &[Encoded], last: u64, dones: Vec<Done>) {
        if group.is_empty() {
            return;
        }
        // A panic inside redb must not leave the callers waiting for an answer for ever.
        let result = catch_unwind(AssertUnwindSafe(|| self.commit(group)))
            .unwrap_or_else(|panic| Err(open::damaged(&self.shared.path, open::panic_text(&panic))));
        match result {
            Ok(()) => {
                self.last_seq = last;
                for done in dones {
                    done(Ok(()));
                }
            }
            Err(error) => {
                // What a failed sync left on disk is not known: nothing goes through this handle any more.
                self.close();
                let mut dones = dones.into_iter();
                if let Some(first) = dones.next() {
                    first(Err(error));
                }
                for done in dones {
                    done(Err(self.needs_reopen()));
                }
            }
        }
    }

    fn commit(&self, group: &[Encoded]) -> Result<(), StoreError> {
        let path = &self.shared.path;
        let guard = self.shared.database.read().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = guard.as_ref() else { return Err(self.needs_reopen()) };
        let mut txn = db.begin_write().map_err(database(path, "begin to write to"))?;
        txn.set_durability(Durability::Immediate).map_err(database(path, "begin to write to"))?;
        txn.set_quick_repair(true);
        tables::write(&txn, group).map_err(database(path, "write to"))?;
        txn.commit().map_err(database(path, "commit to"))
    }

    fn reopen(&mut self) -> Result<u64, StoreError> {
        self.close();
        let shared = &self.shared;
        if !create::is_at(&shared.storage.file, &shared.path)? {
            return Err(StoreError::Removed { path: shared.path.clone() });
        }
        // What the kernel still has in memory may never have reached the disk: read it from there.
        if let Err(errno) = rustix::fs::fadvise(&*shared.storage.file, 0, None, rustix::fs::Advice::DontNeed)
        {
            let path = shared.path.clone();
            return Err(StoreError::Io { doing: "drop the cached pages of", path, source: errno.into() });
        }
        let db = open::checked(&shared.path, &shared.storage, &shared.identity, shared.cache_bytes)?;
        let last = open::last_seq(&shared.path, &db)?;
        *shared.database.write().unwrap_or_else(PoisonError::into_inner) = Some(db);
        self.last_seq = last;
        Ok(last)
    }

    fn close(&self) {
        let db = self.shared.database.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(db);
    }

    fn needs_reopen(&self) -> StoreError {
        StoreError::NeedsReopen { path: self.shared.path.clone() }
    }
}
