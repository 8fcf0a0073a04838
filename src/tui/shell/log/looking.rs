//! A log that is looked at: which file it is, what has become of it, and what is to be seen of it.

use super::count::LineCount;
use super::finder::Finder;
use super::sieve::Sieve;
use super::window::{mark, window};
use super::{LogFrom, LogState, LogWant, LogWindow};
use crate::clock;
use crate::supervisor::log::LogFile;
use std::io;
use std::time::Duration;

/// For so long it is said that a file got shorter, though it grows again.
pub(super) const KEPT_MS: u64 = 6_000;
/// How often to look where inotify does not tell.
const POLL: Duration = Duration::from_secs(2);

/// A log that is looked at.
pub(super) struct Looking {
    pub(super) want: LogWant,
    pub(super) watch: Option<notify::RecommendedWatcher>,
    /// As it was opened last.
    pub(super) file: Option<LogFile>,
    /// Which file it was before, its size, and whether it had a hole.
    last: Option<(u64, u64, bool)>,
    pub(super) state: LogState,
    /// When it was seen to be shorter or another, and whether it has grown since.
    pub(super) lost_ms: u64,
    has_grown: bool,
    /// What was told last.
    pub(super) told: LogWindow,
    pub(super) sieve: Option<Sieve>,
    pub(super) count: LineCount,
    /// Counts what came since a byte.
    pub(super) fresh: Option<(u64, LineCount)>,
    pub(super) finder: Option<Finder>,
    /// When it was looked at last, and whether it has changed since.
    pub(super) looked_ms: u64,
    pub(super) is_changed: bool,
}

impl Looking {
    pub(super) fn new(want: LogWant) -> Self {
        Self {
            want,
            watch: None,
            file: None,
            last: None,
            state: LogState::Reading,
            lost_ms: 0,
            has_grown: false,
            told: LogWindow::default(),
            sieve: None,
            count: LineCount::default(),
            fresh: None,
            finder: None,
            looked_ms: 0,
            is_changed: false,
        }
    }

    /// Whether there is a walk to go on with.
    fn has_work(&self) -> bool {
        self.finder.is_some() || self.sieve.as_ref().is_some_and(|sieve| !sieve.is_done()) || self.counts()
    }

    /// Whether lines are still to be counted.
    fn counts(&self) -> bool {
        let Some(size) = self.file.as_ref().map(LogFile::size) else { return false };
        let fresh = self.fresh.as_ref().is_some_and(|(_, count)| !count.reaches(size));
        self.want.since.is_some() && (fresh || !self.count.reaches(size))
    }

    /// When the file is looked at again: a wish at once, a file that grows a few times a second.
    fn due_ms(&self, pause: Duration) -> u64 {
        let wait = if self.is_changed { pause } else { POLL };
        if self.looked_ms == 0 { 0 } else { self.looked_ms + wait.as_millis() as u64 }
    }

    pub(super) fn is_due(&self, pause: Duration) -> bool {
        clock::monotonic().0 >= self.due_ms(pause)
    }

    /// How long nothing is to be done.
    pub(super) fn rest(&self, pause: Duration) -> Duration {
        if self.has_work() {
            return Duration::ZERO;
        }
        Duration::from_millis(self.due_ms(pause).saturating_sub(clock::monotonic().0))
    }

    /// Opens the file and sees what has become of it.
    pub(super) fn look(&mut self) {
        (self.looked_ms, self.is_changed) = (clock::monotonic().0.max(1), false);
        let opened = LogFile::open(&self.want.path);
        // One that was gone for a while may be another when it is back.
        let before = self.file.take().map(|log| (log.inode(), log.size(), log.has_hole())).or(self.last);
        self.last = before;
        let state = match opened {
            Ok(log) => {
                let (inode, size) = (log.inode(), log.size());
                self.file = Some(log);
                match before {
                    Some((old, ..)) if old != inode => LogState::Replaced(clock::wall_ms()),
                    // Its two parts were put together when the run was over.
                    Some((_, old, true)) if old > size && self.follows(size) => {
                        (self.sieve, self.count, self.fresh) = (None, LineCount::default(), None);
                        LogState::There
                    }
                    Some((_, old, _)) if old > size => LogState::Truncated(clock::wall_ms()),
                    // Said until the file grows again, and long enough to be read.
                    Some((_, old, _)) => {
                        self.has_grown |= old < size;
                        let is_kept = clock::monotonic().0 < self.lost_ms + KEPT_MS;
                        let is_lost = matches!(self.state, LogState::Truncated(_) | LogState::Replaced(_));
                        let is_over = self.has_grown || self.follows(size);
                        let stays = !is_over || (is_lost && is_kept);
                        if stays { self.state.clone() } else { LogState::There }
                    }
                    None => LogState::There,
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let was_never = matches!(self.state, LogState::Reading | LogState::NotYet);
                if was_never { LogState::NotYet } else { LogState::Gone }
            }
            Err(error) => LogState::Failed(error.to_string()),
        };
        if matches!(state, LogState::Replaced(_) | LogState::Truncated(_)) && state != self.state {
            (self.lost_ms, self.has_grown) = (clock::monotonic().0, false);
            // Another file has to be watched anew, and nothing that was counted counts.
            (self.sieve, self.count, self.fresh, self.watch) = (None, LineCount::default(), None, None);
        }
        self.state = state;
        let Some(size) = self.file.as_ref().map(LogFile::size) else { return };
        match &self.want.only {
            None => self.sieve = None,
            Some(only) => match &mut self.sieve {
                Some(sieve) if sieve.is(only, self.want.from) => sieve.grown(),
                sieve => *sieve = Some(Sieve::new(only.clone(), self.want.from, size)),
            },
        }
        match self.want.since {
            None => self.fresh = None,
            Some(since) if self.fresh.as_ref().is_some_and(|(from, _)| *from == since) => {}
            Some(since) => self.fresh = Some((since, LineCount::after(since))),
        }
    }

    /// Whether the end of the log is looked at, and it has one: nobody is in the middle of reading what is gone.
    fn follows(&self, size: u64) -> bool {
        self.want.from == LogFrom::Tail && size > 0
    }

    /// What is to be seen. Where the file cannot be read, or is not what it was, the lines seen last stay.
    pub(super) fn window(&mut self) -> LogWindow {
        let path = self.want.path.clone();
        let size = self.file.as_ref().map_or(0, LogFile::size);
        let follows = self.follows(size);
        let kept = |state| LogWindow { path: path.clone(), state, ..self.told.clone() };
        let Some(log) = &mut self.file else { return kept(self.state.clone()) };
        let is_shown = match self.state {
            LogState::There => true,
            // The next attempt's, mostly.
            LogState::Replaced(_) => follows,
            _ => false,
        };
        if !is_shown {
            return kept(self.state.clone());
        }
        let mut window = match &self.sieve {
            None => match window(log, &path, self.want.from) {
                Ok(window) => window,
                Err(error) => return kept(LogState::Failed(error.to_string())),
            },
            Some(sieve) => {
                let (lines, begin, end) = sieve.found(size);
                let sifting = !sieve.is_done();
                LogWindow { path, lines, begin, end, size, sifting, ..LogWindow::default() }
            }
        };
        window.state = self.state.clone();
        mark(&mut window.lines, log.file());
        if self.want.since.is_some() {
            let first = window.lines.first().map_or(0, |line| line.at);
            window.number = self.count.number(log, first).ok().flatten().filter(|_| self.sieve.is_none());
            // What was counted last stays while the count runs after a log that grows.
            window.fresh = match &self.fresh {
                Some((_, count)) if count.reaches(size) => Some(count.lines()),
                Some((_, count)) => self.told.fresh.map(|last| last.max(count.lines())),
                None => None,
            };
        }
        window
    }
}
