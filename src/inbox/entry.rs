//! What is remembered of one name in the inbox.

use super::InboxEvent;
use super::folder::Print;
use super::look::Seen;
use crate::model::DropIdent;
use std::path::PathBuf;

/// What was last said about a name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Told {
    #[default]
    Nothing,
    Waiting(String),
    Refused(String),
    Dropped,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Milliseconds of the monotonic clock.
    pub(super) due: Option<u64>,
    /// It came by a rename: it is complete.
    pub(super) moved_in: bool,
    /// Something happened to it: read it even if nothing shows.
    pub(super) touched: bool,
    pub(super) told: Told,
    /// As it was when that was said.
    pub(super) seen: Option<Seen>,
    /// What was read of it then.
    pub(super) read: Option<(DropIdent, Seen)>,
    pub(super) print: Option<Print>,
    /// As it was at the last look, where only staying the same tells that it is complete.
    pub(super) unsure: Option<Seen>,
    pub(super) walked: Option<Print>,
    pub(super) empty_since: Option<u64>,
    pub(super) watched: bool,
}

/// What a look leads to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) event: Option<InboxEvent>,
    /// Watch below this folder.
    pub(super) arm: Option<PathBuf>,
    /// No longer watch below this one.
    pub(super) disarm: Option<PathBuf>,
}

impl From<InboxEvent> for Outcome {
    fn from(event: InboxEvent) -> Self {
        Self { event: Some(event), ..Self::default() }
    }
}
