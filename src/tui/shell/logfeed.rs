//! Reads the log on the screen: a window of bytes, never the whole file. One thread, which sleeps while no log is shown.
//!
//! inotify says when to look again; every two seconds it looks anyway, for file systems that do not tell. The view gets
//! tidied lines with the byte each begins at, so that a place in the log stays the same place while the file grows.
//! Searches, filters and line numbers walk the whole file, a piece between two looks at what is wished.

use crate::beneath;
use crate::clock;
use crate::supervisor::marks::{self, Mark, Marks};
use crate::tui::panels::logmatch::Pattern;
use crate::tui::panels::logtext::tidy;
use crate::tui::shell::feed::FeedEvent;
use crate::tui::shell::logscan::{Finder, LineCount, LogFind, LogFound, Sieve};
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// What of a log is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWant {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub from: LogFrom,
    /// Only lines that match.
    pub only: Option<Pattern>,
    /// How many lines came after this byte is to be told, and the numbers of lines.
    pub since: Option<u64>,
}

/// Where in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFrom {
    /// Its end, wherever that is.
    Tail,
    /// Around a byte.
    Around(u64),
}

/// The lines that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogWindow {
    /// The file.
    pub path: PathBuf,
    /// Tidied lines in order.
    pub lines: Vec<LogLine>,
    /// The byte the first line begins at.
    pub begin: u64,
    /// The byte after the last line.
    pub end: u64,
    /// The file's size.
    pub size: u64,
    /// What became of the file.
    pub state: LogState,
    /// The number of the first line in the file, from 1, once that is counted.
    pub number: Option<u64>,
    /// Lines after the byte that was asked about.
    pub fresh: Option<u64>,
    /// Matching lines are still being looked for.
    pub sifting: bool,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLine {
    /// The byte it begins at.
    pub at: u64,
    /// The byte after it, without its line feed.
    pub end: u64,
    /// What is left of it: text and colours.
    pub text: String,
    /// What is known of where it came from, and when.
    pub mark: Mark,
}

/// What became of a log's file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogState {
    /// Not looked at yet.
    #[default]
    Reading,
    /// It is there.
    There,
    /// It is not there yet.
    NotYet,
    /// It got shorter: wall milliseconds.
    Truncated(i64),
    /// Another file has its name: wall milliseconds. Who follows it sees that one's end, if it has one.
    Replaced(i64),
    /// It was there and is no more.
    Gone,
    /// It cannot be read.
    Failed(String),
}

/// Bytes read before the wanted place, and twice as many after it.
pub(in crate::tui) const REACH: u64 = 64 * 1024;
/// Longer lines are cut for the screen.
const LINE_BYTES: usize = 8 * 1024;
/// For so long it is said that a file got shorter, though it grows again.
const KEPT_MS: u64 = 6_000;
/// How often to look where inotify does not tell.
const POLL: Duration = Duration::from_secs(2);

/// Reads one window.
pub fn read_window(path: &Path, from: LogFrom) -> io::Result<LogWindow> {
    let (file, stat) = beneath::named_file(path)?;
    window(&file, u64::try_from(stat.st_size).unwrap_or(0), path, from)
}

fn window(file: &File, size: u64, path: &Path, from: LogFrom) -> io::Result<LogWindow> {
    let (begin, end) = match from {
        LogFrom::Tail => (size.saturating_sub(REACH), size),
        LogFrom::Around(at) => {
            // What was cut away while it was read is a hole.
            let data = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)).unwrap_or(at);
            let at = data.min(size);
            (at.saturating_sub(REACH), size.min(at.saturating_add(2 * REACH)))
        }
    };
    let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or(0)];
    // Cut off while it is read: it is seen to be shorter at the next look.
    let got = read_whole(file, &mut bytes, begin)?;
    bytes.truncate(got);
    let end = begin + got as u64;
    // Whole lines only, where there are any: the first one may have begun before the window, the last may go on after it.
    let skip = if begin == 0 { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) };
    let keep = if end == size {
        bytes.len()
    } else {
        bytes.iter().rposition(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
    };
    let body = bytes.get(skip..keep.max(skip)).unwrap_or_default();
    let mut lines = Vec::new();
    let mut at = begin + skip as u64;
    for raw in body.split_inclusive(|b| *b == b'\n') {
        let line = raw.strip_suffix(b"\n").unwrap_or(raw);
        let end = at + line.len() as u64;
        lines.push(LogLine { at, end, text: tidy(bounded(line)), ..LogLine::default() });
        at += raw.len() as u64;
    }
    Ok(LogWindow {
        path: path.to_owned(),
        lines,
        begin: begin + skip as u64,
        end: begin + keep.max(skip) as u64,
        size,
        state: LogState::There,
        ..LogWindow::default()
    })
}

/// Tells of each line where it came from, as far as that is known: of a progress bar, its newest state.
fn mark(lines: &mut [LogLine], log: &File) {
    // Beside the very file that was read: the job's link may lead to the next attempt's by now.
    let place = std::fs::read_link(format!("/proc/self/fd/{}", log.as_raw_fd()));
    let beside = place.map(|log| log.with_file_name(marks::NAME));
    let opened = beside.and_then(|path| Ok(beneath::named_file(&path)?.0));
    // Without marks nothing is said.
    let Ok(mut marks) = opened.and_then(Marks::new) else { return };
    for line in lines {
        let Ok(mark) = marks.at(line.at.max(line.end.saturating_sub(1))) else { return };
        line.mark = mark.unwrap_or_default();
    }
}

/// Reads from a place until the buffer is full or the file ends; how much.
pub(super) fn read_whole(file: &File, bytes: &mut [u8], from: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], from + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The end of a progress bar's line, the beginning of any other.
pub(super) fn bounded(raw: &[u8]) -> &[u8] {
    if raw.len() <= LINE_BYTES {
        raw
    } else if raw.contains(&b'\r') {
        &raw[raw.len() - LINE_BYTES..]
    } else {
        &raw[..LINE_BYTES]
    }
}

/// What wakes the reader.
#[derive(Debug)]
pub(in crate::tui) enum LogMessage {
    /// Show this, or nothing.
    Want(Option<LogWant>),
    /// Search, or give a search up.
    Find(Option<LogFind>),
    /// No two readings of a growing file within this.
    Pace(Duration),
    /// The file may have changed.
    Changed,
}

/// The reader's thread: runs until the screen is gone.
pub(in crate::tui) struct LogReader {
    pub(in crate::tui) wants: Receiver<LogMessage>,
    /// For the watcher, which is another thread.
    pub(in crate::tui) wake: Sender<LogMessage>,
    pub(in crate::tui) events: Sender<FeedEvent>,
    /// No two readings of a growing file within this.
    pub(in crate::tui) pause: Duration,
}

/// A log that is looked at.
struct Looking {
    want: LogWant,
    watch: Option<notify::RecommendedWatcher>,
    /// The file as it was opened last, which file that is, and its size.
    file: Option<(File, u64, u64)>,
    state: LogState,
    /// It has a hole: more was printed than the log may have, and the middle of it is cut away.
    has_hole: bool,
    /// When it was seen to be shorter or another, and whether it has grown since.
    lost_ms: u64,
    has_grown: bool,
    /// What was told last.
    told: LogWindow,
    sieve: Option<Sieve>,
    count: LineCount,
    /// Counts what came since a byte.
    fresh: Option<(u64, LineCount)>,
    finder: Option<Finder>,
    /// When it was looked at last, and whether it has changed since.
    looked_ms: u64,
    is_changed: bool,
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
        let Some((file, _, size)) = &looking.file else {
            if let Some(finder) = looking.finder.take() {
                self.found(&finder, LogFound::Nothing)?;
            }
            return Ok(());
        };
        if let Some(finder) = &mut looking.finder {
            let found = finder.step(file, *size).unwrap_or(LogFound::Nothing);
            self.found(finder, found)?;
            if !matches!(found, LogFound::Searching(_)) {
                looking.finder = None;
            }
            return Ok(());
        }
        if let Some(sieve) = looking.sieve.as_mut().filter(|sieve| !sieve.is_done()) {
            // What cannot be read now is tried again at the next look.
            let is_over = sieve.step(file, *size).is_err() || sieve.is_done();
            return if is_over { self.tell(looking) } else { Ok(()) };
        }
        let fresh = looking.fresh.as_mut().map(|(_, count)| count).filter(|count| !count.reaches(*size));
        let count = fresh.or_else(|| Some(&mut looking.count).filter(|count| !count.reaches(*size)));
        if let Some(count) = count {
            let is_over = !count.step(file, *size).unwrap_or(false);
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

impl Looking {
    fn new(want: LogWant) -> Self {
        Self {
            want,
            watch: None,
            file: None,
            has_hole: false,
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
        let Some((_, _, size)) = self.file else { return false };
        let fresh = self.fresh.as_ref().is_some_and(|(_, count)| !count.reaches(size));
        self.want.since.is_some() && (fresh || !self.count.reaches(size))
    }

    /// When the file is looked at again: a wish at once, a file that grows a few times a second.
    fn due_ms(&self, pause: Duration) -> u64 {
        let wait = if self.is_changed { pause } else { POLL };
        if self.looked_ms == 0 { 0 } else { self.looked_ms + wait.as_millis() as u64 }
    }

    fn is_due(&self, pause: Duration) -> bool {
        clock::monotonic().0 >= self.due_ms(pause)
    }

    /// How long nothing is to be done.
    fn rest(&self, pause: Duration) -> Duration {
        if self.has_work() {
            return Duration::ZERO;
        }
        Duration::from_millis(self.due_ms(pause).saturating_sub(clock::monotonic().0))
    }

    /// Opens the file and sees what has become of it.
    fn look(&mut self) {
        (self.looked_ms, self.is_changed) = (clock::monotonic().0.max(1), false);
        // A pipe that the work has put in its place would be waited for without an end.
        let opened = beneath::named_file(&self.want.path);
        let before = self.file.as_ref().map(|(_, which, size)| (*which, *size));
        self.file = None;
        let state = match opened {
            Ok((file, stat)) => {
                let (which, size) = (stat.st_ino, u64::try_from(stat.st_size).unwrap_or(0));
                let has_hole =
                    rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)).is_ok_and(|at| at < size);
                self.file = Some((file, which, size));
                let had_hole = std::mem::replace(&mut self.has_hole, has_hole);
                match before {
                    Some((old, _)) if old != which => LogState::Replaced(clock::wall_ms()),
                    // Its two parts were put together when the run was over.
                    Some((_, old)) if old > size && had_hole && self.follows(size) => {
                        (self.sieve, self.count, self.fresh) = (None, LineCount::default(), None);
                        LogState::There
                    }
                    Some((_, old)) if old > size => LogState::Truncated(clock::wall_ms()),
                    // Said until the file grows again, and long enough to be read.
                    Some((_, old)) => {
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
        let Some((_, _, size)) = &self.file else { return };
        match &self.want.only {
            None => self.sieve = None,
            Some(only) => match &mut self.sieve {
                Some(sieve) if sieve.is(only, self.want.from) => sieve.grown(),
                sieve => *sieve = Some(Sieve::new(only.clone(), self.want.from, *size)),
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
    fn window(&self) -> LogWindow {
        let path = self.want.path.clone();
        let kept = |state| LogWindow { path: path.clone(), state, ..self.told.clone() };
        let Some((file, _, size)) = &self.file else { return kept(self.state.clone()) };
        let is_shown = match self.state {
            LogState::There => true,
            // The next attempt's, mostly.
            LogState::Replaced(_) => self.follows(*size),
            _ => false,
        };
        if !is_shown {
            return kept(self.state.clone());
        }
        let mut window = match &self.sieve {
            None => match window(file, *size, &path, self.want.from) {
                Ok(window) => window,
                Err(error) => return kept(LogState::Failed(error.to_string())),
            },
            Some(sieve) => {
                let (lines, begin, end) = sieve.found(*size);
                let sifting = !sieve.is_done();
                LogWindow { path, lines, begin, end, size: *size, sifting, ..LogWindow::default() }
            }
        };
        window.state = self.state.clone();
        mark(&mut window.lines, file);
        if self.want.since.is_some() {
            let first = window.lines.first().map_or(0, |line| line.at);
            window.number = self.count.number(file, first).ok().flatten().filter(|_| self.sieve.is_none());
            // What was counted last stays while the count runs after a log that grows.
            window.fresh = match &self.fresh {
                Some((_, count)) if count.reaches(*size) => Some(count.lines()),
                Some((_, count)) => self.told.fresh.map(|last| last.max(count.lines())),
                None => None,
            };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::marks::Stream;
    use std::io::Write as _;

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.txt");
        std::fs::write(&path, content).unwrap();
        (dir, path)
    }

    fn numbered(lines: usize) -> Vec<u8> {
        (0..lines).flat_map(|n| format!("line {n:07}\n").into_bytes()).collect()
    }

    #[test]
    fn the_tail_of_a_large_file_is_whole_lines_only() {
        let (_dir, path) = file(&numbered(100_000));
        let window = read_window(&path, LogFrom::Tail).unwrap();
        assert_eq!(window.lines.last().unwrap().text, "line 0099999");
        assert!(window.lines.iter().all(|line| line.text.len() == 12), "{:?}", window.lines.first());
        assert!(window.lines.len() < 6000);
        assert_eq!(window.end, window.size);
    }

    #[test]
    fn a_place_is_the_byte_its_line_begins_at() {
        let (_dir, path) = file(&numbered(100_000));
        let window = read_window(&path, LogFrom::Around(13 * 50_000)).unwrap();
        let line = window.lines.iter().find(|line| line.at == 13 * 50_000).unwrap();
        assert_eq!(line.text, "line 0050000");
        assert!(window.begin < line.at && window.end > line.at);
        let first = read_window(&path, LogFrom::Around(0)).unwrap();
        assert_eq!((first.begin, first.lines[0].text.as_str()), (0, "line 0000000"));
    }

    #[test]
    fn an_unfinished_line_is_shown_and_a_progress_bar_is_one_line() {
        let (_dir, path) = file(b"one\n10%\r20%\r30%");
        let lines: Vec<String> =
            read_window(&path, LogFrom::Tail).unwrap().lines.into_iter().map(|l| l.text).collect();
        assert_eq!(lines, ["one", "30%"]);
        let bar: Vec<u8> = (0..200_000).flat_map(|n| format!("{n:06}\r").into_bytes()).collect();
        let (_dir, path) = file(&bar);
        let window = read_window(&path, LogFrom::Tail).unwrap();
        assert_eq!(window.lines.len(), 1);
        assert_eq!(window.lines[0].text, "199999");
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    fn reader() -> (Sender<LogMessage>, Receiver<FeedEvent>, std::thread::JoinHandle<()>) {
        let (send, wants) = std::sync::mpsc::channel();
        let (events, arrives) = std::sync::mpsc::channel();
        let reader = LogReader { wants, wake: send.clone(), events, pause: Duration::from_millis(10) };
        (send, arrives, std::thread::spawn(move || reader.run()))
    }

    fn want(path: &Path, from: LogFrom) -> LogWant {
        LogWant { path: path.to_owned(), from, only: None, since: None }
    }

    /// The next window that is as it should be.
    fn until(arrives: &Receiver<FeedEvent>, is: impl Fn(&LogWindow) -> bool) -> LogWindow {
        loop {
            match arrives.recv_timeout(PATIENCE).unwrap() {
                FeedEvent::Log(window) if is(&window) => return *window,
                _ => {}
            }
        }
    }

    fn last(window: &LogWindow) -> &str {
        window.lines.last().map_or("", |line| &line.text)
    }

    #[test]
    fn a_growing_file_is_shown_as_it_grows_and_nothing_is_read_when_nothing_is_wanted() {
        let (_dir, path) = file(b"one\n");
        let (send, arrives, thread) = reader();
        send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
        until(&arrives, |window| last(window) == "one");
        let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        for n in 0..3 {
            writeln!(log, "more {n}").unwrap();
            until(&arrives, |window| last(window) == format!("more {n}"));
        }
        send.send(LogMessage::Want(None)).unwrap();
        writeln!(log, "unseen").unwrap();
        send.send(LogMessage::Changed).unwrap();
        drop(arrives);
        // The thread has nobody to tell: the next window ends it.
        send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn each_line_is_told_by_the_mark_that_holds_at_its_end_also_behind_a_link() {
        let (dir, path) = file(b"out\nerr\n10%\r20%\nlast");
        let marks = [(0_u128, 1_u128, 1_u128), (4, 2, 1), (12, 2, 5), (16, 1, 5)];
        let records: Vec<u8> = marks
            .iter()
            .flat_map(|(at, stream, second)| (at | stream << 56 | second << 58).to_le_bytes()[..12].to_vec())
            .collect();
        std::fs::write(dir.path().join(marks::NAME), records).unwrap();
        let jobs = tempfile::tempdir().unwrap();
        let link = jobs.path().join("log.txt");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let seen = |want: LogWant| {
            let mut looking = Looking::new(want);
            looking.look();
            while let Some(sieve) = looking.sieve.as_mut().filter(|sieve| !sieve.is_done()) {
                let (file, _, size) = looking.file.as_ref().unwrap();
                sieve.step(file, *size).unwrap();
            }
            let lines = looking.window().lines.into_iter();
            lines.map(|line| (line.text, line.mark.stream, line.mark.second)).collect::<Vec<_>>()
        };
        let line = |text: &str, stream, second| (text.to_owned(), Some(stream), Some(second));
        let all = [
            line("out", Stream::Out, 1),
            line("err", Stream::Err, 1),
            line("20%", Stream::Err, 5),
            line("last", Stream::Out, 5),
        ];
        assert_eq!(seen(want(&link, LogFrom::Tail)), all);
        let only = Some(Pattern::new("re:[0t]").unwrap());
        let sifted = [all[0].clone(), all[2].clone(), all[3].clone()];
        assert_eq!(seen(LogWant { only, ..want(&link, LogFrom::Tail) }), sifted);
        std::fs::remove_file(dir.path().join(marks::NAME)).unwrap();
        assert!(
            seen(want(&link, LogFrom::Tail))
                .iter()
                .all(|(_, stream, second)| stream.is_none() && second.is_none())
        );
    }

    #[test]
    fn a_file_that_shrinks_is_replaced_or_goes_keeps_its_last_lines() {
        let (dir, path) = file(b"one\ntwo\n");
        let none = dir.path().join("none");
        let mut looking = Looking::new(want(&none, LogFrom::Tail));
        looking.look();
        assert_eq!(looking.window().state, LogState::NotYet);
        let mut looking = Looking::new(want(&path, LogFrom::Tail));
        let see = |looking: &mut Looking| {
            looking.look();
            looking.told = looking.window();
            (looking.told.state.clone(), looking.told.lines.len())
        };
        let is_over = |looking: &mut Looking| looking.lost_ms -= KEPT_MS.min(looking.lost_ms);
        assert_eq!(see(&mut looking), (LogState::There, 2));
        std::fs::write(&path, "x\n").unwrap();
        let append = |text: &[u8]| {
            std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text).unwrap();
        };
        for after in [b"y\n" as &[u8], b"", b"z\n", b""] {
            let seen = see(&mut looking);
            assert!(matches!(seen, (LogState::Truncated(_), 2)), "kept though the job goes on: {seen:?}");
            append(after);
        }
        is_over(&mut looking);
        assert_eq!(see(&mut looking), (LogState::There, 3), "what came meanwhile is shown");
        std::fs::write(&path, "").unwrap();
        assert!(matches!(see(&mut looking), (LogState::Truncated(_), 3)));
        is_over(&mut looking);
        assert!(matches!(see(&mut looking), (LogState::Truncated(_), 3)), "until there is something else");
        append(b"z\n");
        assert_eq!(see(&mut looking), (LogState::There, 1));
        std::fs::write(&none, "another\nattempt\n").unwrap();
        std::fs::rename(&none, &path).unwrap();
        for _ in 0..2 {
            let seen = see(&mut looking);
            assert!(matches!(seen, (LogState::Replaced(_), 2)), "its end, and that it is another: {seen:?}");
        }
        is_over(&mut looking);
        assert_eq!(see(&mut looking), (LogState::There, 2));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(see(&mut looking), (LogState::Gone, 2));
        assert_eq!(see(&mut looking), (LogState::Gone, 2));
    }

    #[test]
    fn a_log_whose_middle_is_cut_is_shown_where_it_has_lines_and_to_its_end_when_it_is_put_together() {
        let (_dir, path) = file(&numbered(300_000));
        let log = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (from, to) = (1_u64 << 20, 3_u64 << 20);
        let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(&log, hole, from, to - from).is_err() {
            println!("SKIPPED: the file system makes no holes");
            return;
        }
        let stopped = read_window(&path, LogFrom::Around(2 << 20)).unwrap();
        assert!(
            stopped.lines[0].at >= to && !stopped.lines[0].text.is_empty(),
            "{:?}",
            stopped.lines.first()
        );
        let mut looking = Looking::new(want(&path, LogFrom::Tail));
        looking.look();
        looking.told = looking.window();
        let mut rest = vec![0; (300_000 * 13 - to) as usize];
        log.read_exact_at(&mut rest, to).unwrap();
        rest.extend(b"the end\n");
        log.write_all_at(&rest, from).unwrap();
        log.set_len(from + rest.len() as u64).unwrap();
        looking.look();
        let window = looking.window();
        assert_eq!((window.state.clone(), last(&window)), (LogState::There, "the end"));
    }

    #[test]
    fn line_numbers_and_what_came_since_are_counted_beside() {
        let (_dir, path) = file(&numbered(300_000));
        let (send, arrives, _thread) = reader();
        let since = Some(13 * 300_000);
        let around = LogWant { since, ..want(&path, LogFrom::Around(13 * 200_000)) };
        send.send(LogMessage::Want(Some(around))).unwrap();
        let window = until(&arrives, |window| window.number.is_some() && window.fresh.is_some());
        assert_eq!(window.number, Some(window.begin / 13 + 1));
        assert_eq!(window.fresh, Some(0));
        let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"one\ntwo\nthree\n").unwrap();
        let window = until(&arrives, |window| window.fresh != Some(0) && window.fresh.is_some());
        assert_eq!(window.fresh, Some(3));
    }

    fn found(arrives: &Receiver<FeedEvent>, wanted: u64) -> LogFound {
        loop {
            match arrives.recv_timeout(PATIENCE).unwrap() {
                FeedEvent::Found(id, found) if id == wanted && !matches!(found, LogFound::Searching(_)) => {
                    return found;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_search_goes_both_ways_and_round_over_pieces_of_any_size() {
        // Three pieces, a match at both ends and one in the middle.
        let mut log = numbered(200_000);
        log[13 * 100_000..13 * 100_000 + 4].copy_from_slice(b"MARK");
        let (_dir, path) = file(&log);
        let (send, arrives, _thread) = reader();
        send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
        let mut id = 0;
        let mut find_in = |only: Option<&str>, typed: &str, from: u64, inclusive: bool, forward: bool| {
            id += 1;
            let pattern = Pattern::new(typed).unwrap();
            let only = only.map(|only: &str| Pattern::new(only).unwrap());
            let find = LogFind { id, pattern, only, from, inclusive, forward };
            send.send(LogMessage::Find(Some(find))).unwrap();
            found(&arrives, id)
        };
        // Among the lines that are shown, whatever is between them.
        assert_eq!(find_in(Some("re:3$"), "0001", 0, true, true), LogFound::Line(13 * 13, false));
        assert_eq!(
            find_in(Some("re:3$"), "00015", 13 * 199_999, false, false),
            LogFound::Line(13 * 1_593, false)
        );
        let mut find = |typed: &str, from, inclusive, forward| find_in(None, typed, from, inclusive, forward);
        let middle = 13 * 100_000;
        for (from, forward, wraps) in
            [(0, true, false), (middle, true, true), (middle + 13, true, true), (13 * 199_999, false, false)]
        {
            assert_eq!(find("mark", from, false, forward), LogFound::Line(middle, wraps), "{from} {forward}");
        }
        assert_eq!(find("mark", middle, true, true), LogFound::Line(middle, false));
        assert_eq!(find("mark", middle, false, false), LogFound::Line(middle, true));
        assert_eq!(find("0000000", 13 * 5, false, false), LogFound::Line(0, false));
        assert_eq!(find("0199999", 0, false, false), LogFound::Line(13 * 199_999, true));
        assert_eq!(find("re:line 0000001$", 13 * 7, false, true), LogFound::Line(13, true));
        for forward in [true, false] {
            assert_eq!(find("nowhere", middle, false, forward), LogFound::Nothing);
        }
    }

    #[test]
    fn a_filter_shows_matching_lines_only_around_any_place_and_as_the_file_grows() {
        let (_dir, path) = file(&numbered(300_000));
        let (send, arrives, _thread) = reader();
        let mut wish = want(&path, LogFrom::Tail);
        wish.only = Some(Pattern::new("re:00$").unwrap());
        send.send(LogMessage::Want(Some(wish.clone()))).unwrap();
        let window = until(&arrives, |window| !window.sifting);
        assert!(window.lines.len() > 900 && window.lines.iter().all(|line| line.text.ends_with("00")));
        assert_eq!(last(&window), "line 0299900");
        let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"line 03").unwrap();
        log.write_all(b"00000\nnot this\nand 00").unwrap();
        let window = until(&arrives, |window| !window.sifting && last(window) == "and 00");
        assert_eq!(window.lines[window.lines.len() - 2].text, "line 0300000");
        log.write_all(b"1\n").unwrap();
        until(&arrives, |window| !window.sifting && last(window) == "line 0300000");
        wish.from = LogFrom::Around(13 * 150_000);
        send.send(LogMessage::Want(Some(wish.clone()))).unwrap();
        let window = until(&arrives, |window| !window.sifting && window.begin < 13 * 150_000);
        assert!(window.lines.iter().any(|line| line.text == "line 0149900"));
        assert!(window.lines.iter().any(|line| line.text == "line 0150000"));
        // One line in the whole file, far from the place.
        wish.only = Some(Pattern::new("line 0000007").unwrap());
        send.send(LogMessage::Want(Some(wish))).unwrap();
        let window = until(&arrives, |window| !window.sifting && window.lines.len() == 1);
        assert_eq!((last(&window), window.begin), ("line 0000007", 0));
    }
}
