//! The thread: takes wishes, looks when it is time, and goes on with walks in between.

use super::finder::Finder;
use super::looking::Looking;
use super::{LogFound, LogMessage, LogState};
use crate::tui::shell::feed::FeedEvent;
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The reader's thread: runs until the screen is gone.
pub(in crate::tui) struct LogReader {
    pub(in crate::tui) wants: Receiver<LogMessage>,
    /// For the watcher, which is another thread.
    pub(in crate::tui) wake: Sender<LogMessage>,
    pub(in crate::tui) events: Sender<FeedEvent>,
    /// No two readings of a growing file within this.
    pub(in crate::tui) pause: Duration,
}

/// The screen is gone.
struct Gone;

impl LogReader {
    pub(in crate::tui) fn run(mut self) {
        let mut looking: Option<Looking> = None;
        // The screen is gone: nothing is read any more.
        while let Ok(()) = self.turn(&mut looking) {}
    }

    /// Waits for a message or for the next look, then does one piece of what is to be done.
    fn turn(&mut self, looking: &mut Option<Looking>) -> Result<(), Gone> {
        let message = match looking.as_ref().map(|looking| looking.rest(self.pause)) {
            None => self.wants.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(rest) => self.wants.recv_timeout(rest),
        };
        let mut next = match message {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
        };
        while let Some(message) = next {
            self.hear(message, looking);
            next = self.wants.try_recv().ok();
        }
        let Some(looking) = looking else { return Ok(()) };
        if looking.is_due(self.pause) {
            if looking.watch.is_none() && looking.want.path.exists() {
                looking.watch = self.watch(&looking.want.path);
            }
            looking.look();
            self.tell(looking)?;
        } else {
            self.work(looking)?;
        }
        Ok(())
    }

    fn hear(&mut self, message: LogMessage, looking: &mut Option<Looking>) {
        match (message, looking) {
            (LogMessage::Want(None), looking) => *looking = None,
            (LogMessage::Want(Some(want)), Some(looking)) if looking.want.path == want.path => {
                looking.want = want;
                looking.looked_ms = 0;
                // Whoever moves has read what became of the file.
                if matches!(looking.state, LogState::Truncated(_) | LogState::Replaced(_)) {
                    looking.state = LogState::There;
                }
            }
            (LogMessage::Want(Some(want)), looking) => *looking = Some(Looking::new(want)),
            (LogMessage::Find(ask), Some(looking)) => looking.finder = ask.map(Finder::new),
            (LogMessage::Changed, Some(looking)) => looking.is_changed = true,
            (LogMessage::Pace(pause), _) => self.pause = pause,
            (LogMessage::Find(_) | LogMessage::Changed, None) => {}
        }
    }

    /// Tells what is to be seen, if that is news.
    fn tell(&self, looking: &mut Looking) -> Result<(), Gone> {
        let window = looking.window();
        if looking.told == window {
            return Ok(());
        }
        looking.told = window.clone();
        self.events.send(FeedEvent::Log(Box::new(window))).map_err(|_| Gone)
    }

    /// One piece of a walk: the search first, it is waited for.
    fn work(&self, looking: &mut Looking) -> Result<(), Gone> {
        let Some(log) = &mut looking.file else {
            if let Some(finder) = looking.finder.take() {
                self.found(&finder, LogFound::Nothing)?;
            }
            return Ok(());
        };
        if let Some(finder) = &mut looking.finder {
            let found = finder.step(log).unwrap_or(LogFound::Nothing);
            self.found(finder, found)?;
            if !matches!(found, LogFound::Searching(_)) {
                looking.finder = None;
            }
            return Ok(());
        }
        if let Some(sieve) = looking.sieve.as_mut().filter(|sieve| !sieve.is_done()) {
            // What cannot be read now is tried again at the next look.
            let is_over = sieve.step(log).is_err() || sieve.is_done();
            return if is_over { self.tell(looking) } else { Ok(()) };
        }
        let size = log.size();
        let fresh = looking.fresh.as_mut().map(|(_, count)| count).filter(|count| !count.reaches(size));
        let count = fresh.or_else(|| Some(&mut looking.count).filter(|count| !count.reaches(size)));
        if let Some(count) = count {
            let is_over = !count.step(log).unwrap_or(false);
            return if is_over { self.tell(looking) } else { Ok(()) };
        }
        Ok(())
    }

    fn found(&self, finder: &Finder, found: LogFound) -> Result<(), Gone> {
        self.events.send(FeedEvent::Found(finder.ask.id, found)).map_err(|_| Gone)
    }

    /// Watches a file, if it is there and the system has watches left; the poll does without.
    fn watch(&self, path: &Path) -> Option<notify::RecommendedWatcher> {
        let wake = self.wake.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the file raises events of its own; only writes and removals count.
            if matches!(event.map(|e| e.kind), Ok(EventKind::Modify(_) | EventKind::Remove(_))) {
                // The reader is gone: so is the screen.
                let _gone = wake.send(LogMessage::Changed);
            }
        })
        .ok()?;
        watcher.watch(path, RecursiveMode::NonRecursive).ok()?;
        Some(watcher)
    }
}
