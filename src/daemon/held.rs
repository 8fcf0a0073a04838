//! Drops that are not read at once: those that come while events cannot be made durable, and what a power cut has left of
//! those that were accepted before.

use super::turns::Daemon;
use crate::inbox::{Drop, InboxEvent};
use crate::model::{DropIdent, Origin, SubmissionId};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

/// Bytes of drops that are held; of those beyond only the names.
const BYTES: usize = 16 << 20;

/// Drops that came while events could not be made durable.
#[derive(Debug, Default)]
pub(super) struct Held {
    drops: Vec<Drop>,
    bytes: usize,
    names: BTreeSet<String>,
}

/// Whether nothing is there but the beginning of what was accepted. Blocks that had not reached the disk read as zeros.
fn is_rest_of(bytes: &[u8], accepted: &[u8]) -> bool {
    bytes.len() <= accepted.len()
        && bytes.iter().zip(accepted).all(|(byte, accepted)| byte == accepted || *byte == 0)
}

/// A drop that was accepted before this start.
#[derive(Debug)]
pub(super) struct Earlier {
    ino: u64,
    ctime_ns: i128,
    submission: SubmissionId,
}

impl Earlier {
    pub(super) const fn of(ident: &DropIdent, submission: SubmissionId) -> Self {
        Self { ino: ident.ino, ctime_ns: ident.ctime_ns, submission }
    }
}

impl Held {
    /// Holds one. An earlier text of the same name was not accepted, and is not what its owner wants any more.
    pub(super) fn hold(&mut self, dropped: Drop) {
        self.gone(&dropped.name);
        if self.bytes + dropped.bytes.len() > BYTES {
            self.names.insert(dropped.name);
        } else {
            self.bytes += dropped.bytes.len();
            self.drops.push(dropped);
        }
    }

    /// The file was taken away, or spoilt, before it could be accepted: it is not.
    pub(super) fn gone(&mut self, name: &str) {
        self.names.remove(name);
        self.drops.retain(|held| held.name != *name);
        self.bytes = self.drops.iter().map(|held| held.bytes.len()).sum();
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
        if self.world.queue.has_drop(ident) {
            // Nothing is missing: the core knows it.
            return false;
        }
        // Inodes are used again: it may be any of several.
        let was = self.earlier.iter().filter(|was| was.ino == ident.ino && ident.ctime_ns <= was.ctime_ns);
        let stored = was.filter_map(|was| self.store.reader().submission(was.submission).ok().flatten());
        let Some(stored) = stored.into_iter().find(|stored| is_rest_of(bytes, stored.source.as_bytes()))
        else {
            return false;
        };
        if let Origin::Inbox { folder, .. } = stored.origin {
            tracing::info!(name = dropped.name, "an accepted drop is back after a power cut: taken again");
            self.take_drop(dropped.name.clone(), ident.clone(), folder);
        }
        true
    }

    /// Accepted folders that a power cut has put back into the inbox go to their place before anything else happens:
    /// their jobs look for them there.
    pub(super) fn take_folders_again(&self) {
        for job in self.world.queue.live() {
            let Origin::Inbox { name, folder: Some(folder) } = &job.origin else { continue };
            let drop = self.earlier.iter().rev().find(|drop| drop.submission == job.submission);
            let place = self.intake.paths.inbox().join(name);
            let (Some(drop), Ok(there)) = (drop, std::fs::symlink_metadata(&place)) else { continue };
            if folder.exists() || there.ino() != drop.ino {
                continue;
            }
            let Ok(bytes) = std::fs::read(place.join("job.yaml")) else { continue };
            let hash = blake3::hash(&bytes).to_hex().to_string();
            let ident = DropIdent { dev: there.dev(), ino: drop.ino, ctime_ns: drop.ctime_ns, hash };
            tracing::info!(name, "an accepted folder is back after a power cut: taken again");
            self.take_drop(name.clone(), ident, Some(folder.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop_of(name: &str, text: &str) -> Drop {
        Drop {
            name: name.to_owned(),
            stem: "a".to_owned(),
            ident: DropIdent { dev: 1, ino: 1, ctime_ns: 1, hash: text.to_owned() },
            uid: 0,
            bytes: text.as_bytes().to_vec(),
            folder: None,
        }
    }

    #[test]
    fn a_file_that_is_taken_away_or_written_anew_before_it_is_accepted_is_not_what_it_was() {
        let mut held = Held::default();
        held.hold(drop_of("a.yaml", "first"));
        held.hold(drop_of("b.yaml", "other"));
        held.hold(drop_of("a.yaml", "second"));
        let texts = |held: &Held| held.drops.iter().map(|one| one.ident.hash.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&held), ["other", "second"]);
        assert_eq!(held.bytes, 11);
        held.gone("a.yaml");
        assert_eq!((texts(&held).as_slice(), held.bytes), (["other".to_owned()].as_slice(), 5));
        held.hold(drop_of("large.yaml", &"x".repeat(BYTES)));
        held.gone("large.yaml");
        assert!(held.names.is_empty(), "and so is one of which only the name is held");
    }
}
