//! What is known of each name in the inbox, when to look at it again, and what a look leads to.
//!
//! Everything here runs under one lock, so that a look and a take never see each other half done. Nothing here waits
//! or calls out.

use super::entry::{Entry, Outcome, Told};
use super::folder::{self, Print, Walk};
use super::look::{self, Look, Seen, Whole};
use super::names::{self, NameKind};
use super::watch::Hint;
use super::{Drop, InboxConfig, InboxEvent};
use crate::model::DropIdent;
use rustix::fs::{CWD, FileType, Stat};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A name that somebody writes is looked at again after this long even if nothing is heard.
const BUSY_MS: u64 = 5_000;
/// A folder that was handed on is watched after this long, if it was not taken.
const ARM_MS: u64 = 200;

#[derive(Debug)]
pub(super) struct Desk {
    pub(super) config: InboxConfig,
    /// The file system tells whether somebody has a file open for writing.
    pub(super) leases: bool,
    entries: HashMap<OsString, Entry>,
    due: BTreeSet<(u64, OsString)>,
}

impl Desk {
    pub(super) fn new(config: InboxConfig) -> Self {
        Self { config, leases: true, entries: HashMap::new(), due: BTreeSet::new() }
    }

    /// When the next look is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next name that is due.
    pub(super) fn pop_due(&mut self, now_ms: u64) -> Option<OsString> {
        let first = self.due.first()?;
        if first.0 > now_ms {
            return None;
        }
        let (_, name) = self.due.pop_first()?;
        if let Some(entry) = self.entries.get_mut(&name) {
            entry.due = None;
        }
        Some(name)
    }

    fn schedule(&mut self, name: &OsStr, due: u64) {
        let entry = self.entries.entry(name.to_owned()).or_default();
        if let Some(old) = entry.due.replace(due) {
            self.due.remove(&(old, name.to_owned()));
        }
        self.due.insert((due, name.to_owned()));
    }

    /// An event said something about a name.
    pub(super) fn hint(&mut self, hint: &Hint, now_ms: u64) {
        let settled = now_ms + self.config.settle.0;
        match hint {
            Hint::MovedIn(name) => {
                self.schedule(name, now_ms);
                self.touch(name, true);
            }
            Hint::Written(name) | Hint::Touched(name) => {
                let due = match self.entries.get(name) {
                    Some(entry) if entry.watched => now_ms + self.half_quiet(),
                    // What is none of ours has time: it may be on its way to another name.
                    _ if matches!(names::kind(name), NameKind::Other(_)) => {
                        now_ms + self.config.settle_folder.0
                    }
                    _ => settled,
                };
                self.schedule(name, due);
                self.touch(name, false);
            }
            Hint::Made(name) => {
                // Soon, so that what is copied into it is heard.
                self.schedule(name, now_ms);
                self.touch(name, false);
            }
            Hint::Removed(name) => {
                if self.entries.contains_key(name) {
                    self.schedule(name, now_ms);
                }
            }
            Hint::Edited(name) => {
                if let Some(due) = self.entries.get(name).map(|entry| entry.due) {
                    self.schedule(name, due.unwrap_or(0).max(settled));
                }
            }
            Hint::Below(name) => {
                self.schedule(name, now_ms + self.half_quiet());
                self.touch(name, false);
            }
            Hint::Dir { .. } | Hint::Rescan | Hint::Trouble(_) | Hint::Stop => {}
        }
    }

    /// A folder is whole after half of its time without an event and two looks, half of it apart, that see the same.
    const fn half_quiet(&self) -> u64 {
        self.config.settle_folder.0 / 2
    }

    fn touch(&mut self, name: &OsStr, moved_in: bool) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.touched = true;
            entry.moved_in = moved_in;
        }
    }

    /// The folder was looked through: these names are in it.
    pub(super) fn scanned(&mut self, names: Vec<OsString>, now_ms: u64) {
        let there: std::collections::HashSet<&OsString> = names.iter().collect();
        let missing: Vec<OsString> =
            self.entries.keys().filter(|name| !there.contains(name)).cloned().collect();
        for name in missing {
            self.schedule(&name, now_ms);
        }
        for name in names {
            if names::kind(&name) == NameKind::Ignored {
                continue;
            }
            // What an event has scheduled keeps its time.
            if self.entries.get(&name).is_none_or(|entry| entry.due.is_none()) {
                self.schedule(&name, now_ms);
            }
        }
    }

    /// All watches below the inbox are gone.
    pub(super) fn unwatched(&mut self) {
        for entry in self.entries.values_mut() {
            entry.watched = false;
        }
    }

    /// This folder could not be watched: it is looked at from time to time instead.
    pub(super) fn not_watched(&mut self, folder: &std::path::Path, now_ms: u64) {
        let Some(name) = folder.file_name() else { return };
        if let Some(entry) = self.entries.get_mut(name) {
            entry.watched = false;
            let due = now_ms + self.config.settle_folder.0;
            self.schedule(name, due);
        }
    }

    /// What is there is new, even if it did not change.
    pub(super) fn forget(&mut self, name: &OsStr, now_ms: u64) {
        let watched = self.entries.get(name).is_some_and(|entry| entry.watched);
        self.remove(name);
        self.schedule(name, now_ms);
        if let Some(entry) = self.entries.get_mut(name) {
            // Something was said of it: if it is gone, that is said too.
            let told = Told::Waiting(String::new());
            *entry =
                Entry { due: entry.due, moved_in: true, touched: true, watched, told, ..Entry::default() };
        }
    }

    /// What was just handed on could not be: it is looked at anew a while later.
    pub(super) fn put_off(&mut self, name: &OsStr, now_ms: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            (entry.told, entry.print, entry.walked, entry.read, entry.seen) =
                (Told::Nothing, None, None, None, None);
            entry.touched = true;
            self.schedule(name, now_ms + BUSY_MS);
        }
    }

    /// The name is out of the inbox by our own doing.
    pub(super) fn remove(&mut self, name: &OsStr) {
        if let Some(due) = self.entries.remove(name).and_then(|entry| entry.due) {
            self.due.remove(&(due, name.to_owned()));
        }
        // A thousand files at once are seldom: their room is given back.
        if self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    /// Looks at a name.
    pub(super) fn look(&mut self, name: &OsStr, now_ms: u64) -> Outcome {
        let path = self.config.dir.join(name);
        let stat = match rustix::fs::statat(CWD, &path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return self.gone(name),
            // The folder itself cannot be searched: that is said once, of the folder.
            Err(_) => return Outcome::default(),
        };
        if names::kind(name) == NameKind::NotText {
            let (why, hint) = ("its name is not UTF-8 text", "rename it");
            return self.refuse(name, Some(Seen::of(&stat)), why.to_owned(), hint);
        }
        let strange = |what: &str| format!("it is a {what}, not a file or a folder");
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.look_folder(name, path, &stat, now_ms),
            FileType::RegularFile => self.look_file(name, &path, &stat, now_ms),
            FileType::Symlink => {
                self.refuse(name, Some(Seen::of(&stat)), look::SYMLINK.to_owned(), look::SYMLINK_HINT)
            }
            FileType::Fifo => self.refuse(name, Some(Seen::of(&stat)), strange("pipe"), ""),
            FileType::Socket => self.refuse(name, Some(Seen::of(&stat)), strange("socket"), ""),
            _ => self.refuse(name, Some(Seen::of(&stat)), strange("device"), ""),
        }
    }

    fn look_file(&mut self, name: &OsStr, path: &std::path::Path, stat: &Stat, now_ms: u64) -> Outcome {
        let seen = Seen::of(stat);
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        if !entry.touched && entry.seen == Some(seen) {
            return Outcome::default();
        }
        if let Some(by) = names::editing(name).find(|by| self.config.dir.join(by).symlink_metadata().is_ok())
        {
            return self.wait(name, format!("it is being edited ({})", by.to_string_lossy()), None);
        }
        let is_job = matches!(names::kind(name), NameKind::Job(_));
        if seen.size == 0 && is_job {
            let until = *entry.empty_since.get_or_insert(now_ms) + self.config.settle_empty.0;
            if now_ms < until {
                self.schedule(name, until);
                return Outcome::default();
            }
        } else {
            entry.empty_since = None;
        }
        match look::look(path, &self.config, self.leases, entry.unsure) {
            Look::Gone => self.gone(name),
            Look::Busy(why) => self.wait(name, why.to_owned(), Some(now_ms + BUSY_MS)),
            Look::Unsure(seen) => self.unsure(name, seen, now_ms),
            Look::Refused(seen, why, hint) => self.refuse(name, seen, why, hint),
            Look::Whole(whole) => self.whole(name, whole),
        }
    }

    /// A file that was read whole: new, or changed, or what was said of it before.
    fn whole(&mut self, name: &OsStr, whole: Whole) -> Outcome {
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        entry.unsure = None;
        entry.touched = false;
        entry.moved_in = false;
        entry.seen = Some(whole.seen);
        // A change of mode or links alone is no new drop.
        let same = entry.read.as_ref().is_some_and(|(read, seen)| {
            read.hash == whole.ident.hash
                && (seen.dev, seen.ino, seen.mtime_ns)
                    == (whole.seen.dev, whole.seen.ino, whole.seen.mtime_ns)
        });
        entry.read = Some((whole.ident.clone(), whole.seen));
        match names::kind(name) {
            NameKind::Job(_) if same && entry.told == Told::Dropped => Outcome::default(),
            NameKind::Job(stem) => {
                entry.told = Told::Dropped;
                let (name, stem) = (name.to_string_lossy().into_owned(), stem.to_owned());
                let Whole { bytes, ident, uid, .. } = whole;
                InboxEvent::Dropped(Drop { name, stem, ident, uid, bytes, folder: None }).into()
            }
            _ => {
                let (why, hint) = look::not_a_job(&whole.bytes);
                self.refuse(name, Some(whole.seen), why.to_owned(), hint)
            }
        }
    }

    fn look_folder(&mut self, name: &OsStr, path: PathBuf, stat: &Stat, now_ms: u64) -> Outcome {
        let quiet = now_ms + self.half_quiet();
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        if stat.st_uid != self.config.uid {
            let why = format!("it belongs to another account (uid {})", stat.st_uid);
            return self.refuse(name, Some(Seen::of(stat)), why, "copy it, so that the copy is yours: cp -r");
        }
        let arm = (!std::mem::replace(&mut entry.watched, true)).then(|| path.clone());
        let ask_writers = self.leases && !entry.moved_in && arm.is_none();
        let print = match folder::walk(&path, self.config.uid, ask_writers) {
            Walk::Gone => return self.gone(name),
            Walk::Busy(why) => return Outcome { arm, ..self.wait(name, why, Some(quiet)) },
            Walk::Refused(why) => {
                // Too much to watch: its own events and a look through the inbox have to do.
                entry.watched = arm.is_none();
                return self.refuse(name, Some(Seen::of(stat)), why, "");
            }
            Walk::Whole(print) => print,
        };
        if entry.print == Some(print) && matches!(entry.told, Told::Dropped | Told::Refused(_)) {
            // The watch began after the last walk: something may have changed between.
            if arm.is_some() {
                self.schedule(name, quiet);
            }
            return Outcome { arm, ..Outcome::default() };
        }
        if entry.moved_in {
            // It is handed on first and watched later, if it is not taken.
            entry.watched = arm.is_none();
        } else if arm.is_some() || entry.walked != Some(print) {
            // What was seen before the watch began does not count.
            entry.walked = arm.is_none().then_some(print);
            self.schedule(name, quiet);
            return Outcome { arm, ..Outcome::default() };
        }
        self.folder_job(name, path, print, now_ms)
    }

    /// The folder is whole: reads its job file.
    fn folder_job(&mut self, name: &OsStr, path: PathBuf, print: Print, now_ms: u64) -> Outcome {
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        let look = folder::job_file(&path, &self.config, self.leases, entry.unsure);
        if let Look::Busy(why) = look {
            return self.wait(name, why.to_owned(), Some(now_ms + self.half_quiet()));
        }
        if let Look::Unsure(seen) = look {
            return self.unsure(name, seen, now_ms);
        }
        entry.print = Some(print);
        entry.unsure = None;
        entry.moved_in = false;
        entry.touched = false;
        if !entry.watched {
            self.schedule(name, now_ms + ARM_MS);
        }
        match look {
            Look::Gone | Look::Busy(_) | Look::Unsure(_) => Outcome::default(),
            Look::Refused(seen, why, hint) => self.refuse(name, seen, why, hint),
            Look::Whole(Whole { bytes, ident, uid, .. }) => {
                if let Some(entry) = self.entries.get_mut(name) {
                    entry.told = Told::Dropped;
                }
                let ident = DropIdent { dev: print.dev, ino: print.ino, ctime_ns: print.ctime_ns, ..ident };
                let name = name.to_string_lossy().into_owned();
                let stem = name.clone();
                InboxEvent::Dropped(Drop { name, stem, ident, uid, bytes, folder: Some(path) }).into()
            }
        }
    }

    fn gone(&mut self, name: &OsStr) -> Outcome {
        let Some(entry) = self.entries.get(name) else { return Outcome::default() };
        let known = entry.told != Told::Nothing;
        let disarm = entry.watched.then(|| self.config.dir.join(name));
        self.remove(name);
        let event = known.then(|| InboxEvent::Gone { name: name.to_string_lossy().into_owned() });
        Outcome { event, disarm, ..Outcome::default() }
    }

    fn unsure(&mut self, name: &OsStr, seen: Seen, now_ms: u64) -> Outcome {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.unsure = Some(seen);
        }
        // Times on a network file system may be cached for a while.
        let wait = if self.leases { self.config.settle } else { self.config.settle_empty };
        self.schedule(name, now_ms + wait.0);
        Outcome::default()
    }

    fn wait(&mut self, name: &OsStr, why: String, again: Option<u64>) -> Outcome {
        if let Some(due) = again {
            self.schedule(name, due);
        }
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        // A drop that is about to be taken stays one.
        if entry.told == Told::Dropped || entry.told == Told::Waiting(why.clone()) {
            return Outcome::default();
        }
        entry.told = Told::Waiting(why.clone());
        (entry.seen, entry.read, entry.print) = (None, None, None);
        InboxEvent::Waiting { name: name.to_string_lossy().into_owned(), why }.into()
    }

    fn refuse(&mut self, name: &OsStr, seen: Option<Seen>, reason: String, hint: &str) -> Outcome {
        let Some(entry) = self.entries.get_mut(name) else { return Outcome::default() };
        entry.touched = false;
        entry.moved_in = false;
        let told = Told::Refused(reason.clone());
        if entry.told == told && entry.seen.is_some() && entry.seen == seen && entry.print.is_none() {
            return Outcome::default();
        }
        entry.seen = seen;
        entry.told = told;
        let ident = entry.read.as_ref().map(|(ident, _)| ident.clone());
        let name = name.to_string_lossy().into_owned();
        InboxEvent::Refused { name, ident, reason, hint: hint.to_owned() }.into()
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
