//! What the collection of an attempt's output is asked to do, and what it found.

use super::{OutputItem, ReturnedFile};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An order to gather the output of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collect {
    /// What was declared.
    pub items: Vec<OutputItem>,
    /// The directory the work ran in.
    pub work_dir: PathBuf,
    /// Everything in `$OVERNIGHT_OUTPUT` comes back, listed or not. This is also where all output ends up.
    pub output_dir: PathBuf,
    /// The work ran in its owner's own directory: copy, never move, and only what is newer than `newer_than_ns` counts.
    pub live: bool,
    /// The attempt's start on the wall clock, nanoseconds since the epoch.
    pub newer_than_ns: i128,
    /// An extra place.
    pub output_to: Option<PathBuf>,
    /// Names what is put into `output_to` if a name there is taken: `best.pt` becomes `best.17.pt`.
    pub job: String,
    /// The attempt did not succeed: whatever exists comes back.
    pub partial: bool,
    /// The scheduler's trees that these directories lie in: below them no link is followed.
    #[serde(default)]
    pub own: Vec<PathBuf>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collected {
    /// Files, by path.
    pub outputs: Vec<ReturnedFile>,
    /// Required paths without a match, or with nothing in it.
    pub missing: Vec<String>,
    /// For the receipt: numbered names, links not followed, and the like.
    pub notes: Vec<String>,
}
