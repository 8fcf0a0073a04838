//! Processes that did not answer their kill: the run has ended without them, and they are watched until they are gone
//! after all. Until then nothing says that the devices are clean, or that the task may be tried again.

use super::process::{self, ProcessId};
use super::tree::Tree;
use crate::model::{AttemptNo, Span, TaskIx};

/// Between two looks; the end of a child is a look of its own.
const LOOK_EVERY: Span = Span::secs(1);

/// What is left of an attempt.
#[derive(Debug)]
pub(super) struct Outlived {
    pub(super) task: TaskIx,
    pub(super) attempt: AttemptNo,
    tree: Tree,
    ids: Vec<ProcessId>,
    look_at: Span,
}

impl Outlived {
    pub(super) fn new(
        (task, attempt): (TaskIx, AttemptNo),
        tree: Tree,
        ids: Vec<ProcessId>,
        now: Span,
    ) -> Self {
        Self { task, attempt, tree, ids, look_at: Span(now.0 + LOOK_EVERY.0) }
    }

    /// Who they are, for people.
    pub(super) fn names(&self) -> String {
        process::names(&self.ids)
    }

    /// When to come back.
    pub(super) const fn wake_at(&self) -> Span {
        self.look_at
    }

    /// A child has ended: it may have been the last of them.
    pub(super) const fn look_now(&mut self, now: Span) {
        self.look_at = now;
    }

    /// Whether all of them are gone, if it is time to look.
    pub(super) fn are_gone(&mut self, now: Span) -> bool {
        if now < self.look_at {
            return false;
        }
        self.look_at = Span(now.0 + LOOK_EVERY.0);
        !self.ids.iter().any(|id| process::is_running(*id))
            && self.tree.groups_are_empty()
            && self.tree.marked().is_empty()
    }
}
