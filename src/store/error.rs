//! Why the store could not do it.

use super::records::RecordError;
use std::path::PathBuf;
use thiserror::Error;

/// What went wrong with the store. Every refusal to open leaves the file as it was, to the byte.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process has the store open.
    #[error("another scheduler owns {path}")]
    Owned {
        /// The store.
        path: PathBuf,
    },
    /// The store was written on another machine.
    #[error(
        "{path} belongs to the machine {theirs}, this is {ours}; run the scheduler there, \
         or give this machine a state of its own with --state DIR"
    )]
    ForeignMachine {
        /// The store.
        path: PathBuf,
        /// Host name and machine id in the store.
        theirs: String,
        /// Host name and machine id of this machine.
        ours: String,
    },
    /// The file is not a store, or one of something else.
    #[error(
        "{path} is not a store of Overnight ({detail}); it was left as it is: move it away, or name another --state DIR"
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        detail: String,
    },
    /// The file was a store once.
    #[error(
        "{path} is damaged ({detail}); it was left as it is: restore a copy of it, or move it away to begin with an empty queue"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A later version of Overnight wrote it.
    #[error(
        "{path} was written by a newer Overnight (format {found}, this one knows {known}); it was left as it is: use the newer version"
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// There is no store, but there was one.
    #[error(
        "{path} is gone, but {sign} says that this is not the first start; restore it; to begin with an empty queue \
         instead, move {marker} and the folders of earlier jobs away"
    )]
    Emptied {
        /// The store.
        path: PathBuf,
        /// What tells that it is not the first start.
        sign: PathBuf,
        /// The marker of the first start.
        marker: PathBuf,
    },
    /// The folders belong to a scheduler with another state.
    #[error("{marker} says that {owner} owns these folders; use that state, or another --root DIR")]
    OtherState {
        /// What tells it.
        marker: PathBuf,
        /// The store that owns the folders.
        owner: PathBuf,
    },
    /// A system call failed.
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
    /// The database could not do it.
    #[error("cannot {doing} {path}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Its words.
        #[source]
        source: Box<redb::Error>,
    },
    /// A stored value cannot be read, or a value cannot be stored.
    #[error("{path}: {table} {key}")]
    Record {
        /// The store.
        path: PathBuf,
        /// Which table.
        table: &'static str,
        /// Which value.
        key: String,
        /// Why.
        #[source]
        source: RecordError,
    },
    /// Events did not follow on those that are stored: a bug of the caller.
    #[error("{path}: event {found} does not follow {last}")]
    Gap {
        /// The store.
        path: PathBuf,
        /// The last stored event.
        last: u64,
        /// What came.
        found: u64,
    },
    /// An earlier commit failed; nothing is stored until the file has been opened again.
    #[error("{path} has to be opened again after an error")]
    NeedsReopen {
        /// The store.
        path: PathBuf,
    },
    /// The file was removed or replaced under the running scheduler.
    #[error("{path} was removed or replaced while in use; put it back, or stop the scheduler")]
    Removed {
        /// The store.
        path: PathBuf,
    },
    /// The store's thread has ended.
    #[error("{path} is closed")]
    Closed {
        /// The store.
        path: PathBuf,
    },
}

impl StoreError {
    /// No space, quota or inodes left: it may go again by itself once there is room.
    pub fn is_no_space(&self) -> bool {
        let io = match self {
            Self::Io { source, .. } => Some(source),
            Self::Database { source, .. } => match source.as_ref() {
                redb::Error::Io(source) => Some(source),
                _ => None,
            },
            _ => None,
        };
        io.is_some_and(|source| {
            matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
        })
    }
}
