//! Why files could not be copied, collected or removed.

use crate::model::Bytes;
use std::path::PathBuf;
use thiserror::Error;

/// Why no snapshot was made.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The directory is larger than the limit. Nothing was copied.
    #[error(
        "{dir} is {what}: {largest}; leave directories out with .overnightignore or `code: {{skip: […]}}`"
    )]
    TooLarge {
        /// The directory.
        dir: PathBuf,
        /// Its size and the limit, in words.
        what: String,
        /// Its largest directories, in words.
        largest: String,
        /// Bytes in all.
        bytes: Bytes,
        /// Files in all.
        files: u64,
    },
    /// `in:` does not name a directory.
    #[error("{dir} is not a directory")]
    NotADirectory {
        /// What it names.
        dir: PathBuf,
    },
    /// A `skip` or `keep` pattern cannot be understood.
    #[error("`{pattern}` is not a pattern: {detail}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        detail: String,
    },
    /// A system call failed.
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// Why the output of an attempt could not be gathered.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The order itself cannot be read, or its answer cannot be written as JSON.
    #[error("cannot read the order to collect")]
    Order {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// No space, no quota, or a disk that cannot be read or written now: the same may succeed later.
pub fn is_worth_another_try(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    matches!(
        error.kind(),
        K::StorageFull
            | K::QuotaExceeded
            | K::ReadOnlyFilesystem
            | K::OutOfMemory
            | K::StaleNetworkFileHandle
    ) || matches!(error.raw_os_error(), Some(libc::EIO | libc::EMFILE | libc::ENFILE))
}

/// A system call on a file that failed.
#[derive(Debug, Error)]
#[error("cannot {doing} {path}")]
pub struct FilesError {
    /// What was being done.
    pub doing: &'static str,
    /// To what.
    pub path: PathBuf,
    /// The system's words.
    #[source]
    pub source: std::io::Error,
}

impl FilesError {
    /// [`is_worth_another_try`] of what the system said.
    pub fn is_worth_another_try(&self) -> bool {
        is_worth_another_try(&self.source)
    }

    /// A symbolic link stood in the way.
    pub(super) fn is_link(&self) -> bool {
        self.source.raw_os_error() == Some(libc::ELOOP)
    }

    pub(super) fn new(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self { doing, path, source }
    }

    /// The same for what rustix returns.
    pub(super) fn errno(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(rustix::io::Errno) -> Self {
        let new = Self::new(doing, path);
        move |errno| new(errno.into())
    }
}
