//! Drops that are not read at once: those that come while events cannot be made durable, and what a power cut has left of
//! those that were accepted before.

use super::turns::Daemon;
use crate::inbox::{Drop, InboxEvent};
use crate::model::{DropIdent, Origin, SubmissionId};
use std::collections::BTreeSet;

/// Bytes of drops that are held; of those beyond only the names.
const BYTES: usize = 16 << 20;

/// Drops that came while events could not be made durable.
#[derive(Debug, Default)]
pub(super) struct Held {
    drops: Vec<Drop>,
    bytes: usize,
    names: BTreeSet<String>,
}

/// A drop that was accepted before this start.
#[derive(Debug)]
pub(super) struct Earlier {
    dev: u64,
    ino: u64,
    ctime_ns: i128,
    submission: SubmissionId,
}

impl Earlier {
    pub(super) const fn of(ident: &DropIdent, submission: SubmissionId) -> Self {
        Self { dev: ident.dev, ino: ident.ino, ctime_ns: ident.ctime_ns, submission }
    }
}

impl Held {
    /// Holds one. What became of the file meanwhile is seen when it is taken.
    pub(super) fn hold(&mut self, dropped: Drop) {
        if self.bytes + dropped.bytes.len() > BYTES {
            self.names.insert(dropped.name);
        } else {
            self.bytes += dropped.bytes.len();
            self.drops.push(dropped);
        }
    }
}

impl Daemon {
    /// Reads what was held.
    pub(super) fn take_held(&mut self) {
        let Held { drops, names, .. } = std::mem::take(&mut self.disk.held);
        let mut inputs = Vec::new();
        for dropped in drops {
            self.inbox_event(InboxEvent::Dropped(dropped), &mut inputs, &crate::clock::now());
        }
        self.pending.append(&mut inputs);
        for name in names {
            self.inbox.forget(&name);
        }
    }

    /// Whether that is what a power cut has left of a drop that was accepted before this start: the same inode, not
    /// changed since, with nothing in it but the beginning of what was accepted. It goes out of the inbox, as it would
    /// have then.
    pub(super) fn is_rest(&self, dropped: &Drop) -> bool {
        let Drop { ident, bytes, .. } = dropped;
        let earlier = self.earlier.iter().rev().find(|known| {
            (known.dev, known.ino) == (ident.dev, ident.ino) && ident.ctime_ns <= known.ctime_ns
        });
        let Some(Earlier { submission, .. }) = earlier else { return false };
        if self.world.queue.has_drop(ident) {
            // Nothing is missing: the core knows it.
            return false;
        }
        let Ok(Some(stored)) = self.store.reader().submission(*submission) else { return false };
        let source = stored.source.as_bytes();
        // Blocks that had not reached the disk read as zeros.
        let begins = bytes.len() <= source.len()
            && bytes.iter().zip(source).all(|(byte, accepted)| byte == accepted || *byte == 0);
        if begins && let Origin::Inbox { folder, .. } = stored.origin {
            tracing::info!(name = dropped.name, "an accepted drop is back after a power cut: taken again");
            self.take_drop(dropped.name.clone(), ident.clone(), folder);
        }
        begins
    }
}
