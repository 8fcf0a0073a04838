//! Trees of files: code snapshots, copies, removal, and the collection of outputs. Layer 2.
//!
//! What users name is opened below open directories by [`crate::beneath`] and never through a symbolic link; links are
//! copied as links. Nothing here knows jobs or decides what is kept: it is told directories and patterns.

mod collect;
mod copy;
mod error;
mod order;
mod plan;
mod progress;
mod publish;
mod remove;
mod search;
mod snapshot;
mod tree;

pub use collect::collect;
pub use copy::copy_tree;
pub use error::{CollectError, FilesError, SnapshotError, is_worth_another_try};
pub use order::collect_main;
pub use remove::{remove_own, remove_tree};
pub use snapshot::{SnapshotLimits, SnapshotReport, SnapshotRequest, snapshot};
