//! What needs a disk that fails on command.

use super::*;
use crate::model::{Event, EventRecord, JobId, Now};
use std::sync::atomic::Ordering;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);

fn paused(seq: u64) -> Batch {
    let event = Event::JobPaused { job: JobId(seq), by: "ana".to_owned() };
    Batch { events: vec![EventRecord { seq, at: Now::default(), event }], ..Batch::default() }
}

fn open(dir: &Path) -> (Store, Loaded) {
    let identity = Identity { machine_id: "0".repeat(32), hostname: "box".to_owned() };
    Store::open(&dir.join("state.redb"), &identity, &StoreOptions::new(dir.join("marker"))).unwrap()
}

fn append(store: &Store, batch: Batch) -> Result<(), StoreError> {
    let (sender, receiver) = mpsc::channel();
    store.append(batch, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn a_failed_sync_is_never_believed_and_the_file_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    append(&store, paused(1)).unwrap();
    store.reader().shared.storage.faults.sync.store(true, Ordering::SeqCst);
    let error = append(&store, paused(2)).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
    // The disk is fine again, but what was in that commit is not known.
    assert!(matches!(append(&store, paused(2)), Err(StoreError::NeedsReopen { .. })));

    let (sender, receiver) = mpsc::channel();
    store.reopen(Box::new(move |result| sender.send(result).unwrap()));
    let last = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(last == 1 || last == 2, "{last}");
    append(&store, paused(2)).unwrap();
    append(&store, paused(3)).unwrap();
    drop(store);
    assert_eq!(open(dir.path()).1.last_seq, 3);
}

#[test]
fn a_store_of_an_older_version_is_brought_up_in_one_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    append(&store, paused(1)).unwrap();
    let guard = store.reader().shared.database.read().unwrap();
    let db = guard.as_ref().unwrap();
    // From today's version there is nothing to climb: every value is rewritten as it is.
    migrate::migrate(Path::new("x"), db, records::RECORD_VERSION).unwrap();
    assert_eq!(open::last_seq(Path::new("x"), db).unwrap(), 1);
    // There is no way up from a version that never was, and then nothing is committed.
    let error = migrate::migrate(Path::new("x"), db, 0).unwrap_err();
    assert!(matches!(error, StoreError::Record { .. }), "{error:?}");
    drop(guard);
    assert_eq!(store.reader().events_after(0, 10).unwrap().len(), 1);
}
