//! Opening a store that is there: first through an overlay that leaves the file as it is, then for good.

use super::backend::{FileStorage, Overlay};
use super::error::StoreError;
use super::identity::Identity;
use super::migrate::migrate;
use super::records::RECORD_VERSION;
use super::tables::{EVENTS, META, database};
use redb::{Builder, Database, ReadableDatabase, ReadableTable, StorageBackend};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// What `meta` calls us.
pub(super) const PRODUCT: &str = "overnight";
/// Every page of a file up to this size is verified at each start: well under a second.
const VERIFY_BYTES: u64 = 256 << 20;
/// How the file of any redb begins.
const MAGIC: &[u8; 4] = b"redb";

/// Checks the file without changing it, then opens it and brings it up to today's version.
pub(super) fn checked(
    path: &Path,
    storage: &FileStorage,
    identity: &Identity,
    cache_bytes: usize,
) -> Result<Database, StoreError> {
    let version = check(path, storage, identity)?;
    let db =
        guarded(path, || Builder::new().set_cache_size(cache_bytes).create_with_backend(storage.clone()))?;
    if version < RECORD_VERSION {
        migrate(path, &db, version)?;
    }
    Ok(db)
}

/// The last event in the log.
pub(super) fn last_seq(path: &Path, db: &Database) -> Result<u64, StoreError> {
    let read = || -> Result<u64, redb::Error> {
        let txn = db.begin_read()?;
        let last = txn.open_table(EVENTS)?.last()?.map_or(0, |(seq, _)| seq.value());
        Ok(last)
    };
    read().map_err(database(path, "read"))
}

/// Refuses what is not a store of this machine in a version we know. Returns its version.
pub(super) fn check(path: &Path, storage: &FileStorage, identity: &Identity) -> Result<u32, StoreError> {
    let io = |source| StoreError::Io { doing: "read", path: path.to_owned(), source };
    let len = storage.len().map_err(io)?;
    if len == 0 {
        return Err(damaged(path, "it is empty".to_owned()));
    }
    let mut start = [0; MAGIC.len()];
    match storage.file.read_exact_at(&mut start, 0) {
        Ok(()) if &start == MAGIC => {}
        Ok(()) => return Err(not_ours(path, "it is no redb file")),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(not_ours(path, "it is no redb file"));
        }
        Err(error) => return Err(io(error)),
    }
    let overlay = Overlay::new(Arc::clone(&storage.file)).map_err(io)?;
    let db = guarded(path, || {
        Builder::new()
            .set_cache_size(1 << 20)
            .set_check_integrity_on_open(len <= VERIFY_BYTES)
            .create_with_backend(overlay)
    })?;
    let meta = catch_unwind(AssertUnwindSafe(|| read_meta(&db)))
        .unwrap_or_else(|panic| Err(redb::Error::Corrupted(panic_text(&panic))));
    match meta {
        Ok(Some(meta)) => meta.check(path, identity),
        Ok(None) => Err(not_ours(path, "it has no `meta` of ours")),
        Err(redb::Error::TableDoesNotExist(_) | redb::Error::TableTypeMismatch { .. }) => {
            Err(not_ours(path, "it has no `meta` of ours"))
        }
        Err(error) => Err(refusal(path, error)),
    }
}

/// What `meta` says.
struct Meta {
    version: Option<u32>,
    machine_id: String,
    hostname: String,
}

impl Meta {
    fn check(&self, path: &Path, identity: &Identity) -> Result<u32, StoreError> {
        let version = match self.version {
            None | Some(0) => return Err(not_ours(path, "its `meta` has no version")),
            Some(found) if found > RECORD_VERSION => {
                return Err(StoreError::Newer { path: path.to_owned(), found, known: RECORD_VERSION });
            }
            Some(found) => found,
        };
        if self.machine_id != identity.machine_id {
            let name = |host: &str, id: &str| {
                format!("{} ({})", crate::model::clean_line(host), crate::model::clean_line(id))
            };
            return Err(StoreError::ForeignMachine {
                path: path.to_owned(),
                theirs: name(&self.hostname, &self.machine_id),
                ours: name(&identity.hostname, &identity.machine_id),
            });
        }
        Ok(version)
    }
}

fn read_meta(db: &Database) -> Result<Option<Meta>, redb::Error> {
    let txn = db.begin_read()?;
    let meta = txn.open_table(META)?;
    let get = |key: &str| -> Result<Option<String>, redb::Error> {
        Ok(meta.get(key)?.map(|value| value.value().to_owned()))
    };
    if get("product")?.as_deref() != Some(PRODUCT) {
        return Ok(None);
    }
    Ok(Some(Meta {
        version: get("record_version")?.and_then(|text| text.parse().ok()),
        machine_id: get("machine_id")?.unwrap_or_default(),
        hostname: get("hostname")?.unwrap_or_default(),
    }))
}

/// Opens, and makes a refusal of what redb says, or of its panic over a file that makes no sense.
fn guarded(
    path: &Path,
    open: impl FnOnce() -> Result<Database, redb::DatabaseError>,
) -> Result<Database, StoreError> {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(db)) => Ok(db),
        Ok(Err(error)) => Err(refusal(path, error.into())),
        Err(panic) => Err(damaged(path, panic_text(&panic))),
    }
}

fn refusal(path: &Path, error: redb::Error) -> StoreError {
    match error {
        redb::Error::Io(source)
            if !matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            StoreError::Io { doing: "read", path: path.to_owned(), source }
        }
        redb::Error::DatabaseAlreadyOpen => StoreError::Owned { path: path.to_owned() },
        error => damaged(path, error.to_string()),
    }
}

pub(super) fn damaged(path: &Path, detail: String) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), detail }
}

fn not_ours(path: &Path, detail: &str) -> StoreError {
    StoreError::NotOurs { path: path.to_owned(), detail: detail.to_owned() }
}

pub(super) fn panic_text(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it makes no sense".to_owned())
}
