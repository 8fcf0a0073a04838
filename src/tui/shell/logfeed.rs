//! Reads the log on the screen: a window of bytes, never the whole file. One thread, which sleeps while no log is shown.
//!
//! inotify says when to look again; every two seconds it looks anyway, for file systems that do not tell. The view gets
//! tidied lines with the byte each begins at, so that a place in the log stays the same place while the file grows.

use crate::beneath;
use crate::clock;
use crate::tui::panels::logtext::tidy;
use crate::tui::shell::feed::FeedEvent;
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom};
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
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The byte it begins at.
    pub at: u64,
    /// What is left of it: text and colours.
    pub text: String,
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
    /// It was there and is no more.
    Gone,
    /// It cannot be read.
    Failed(String),
}

/// Bytes read before the wanted place, and twice as many after it.
pub(in crate::tui) const REACH: u64 = 64 * 1024;
/// Longer lines are cut for the screen.
const LINE_BYTES: usize = 8 * 1024;
/// How often to look where inotify does not tell.
const POLL: Duration = Duration::from_secs(2);

/// Reads one window.
pub fn read_window(path: &Path, from: LogFrom) -> io::Result<LogWindow> {
    // A pipe that the work has put in its place would be waited for without an end.
    let (mut file, stat) = beneath::named_file(path)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let (begin, end) = match from {
        LogFrom::Tail => (size.saturating_sub(REACH), size),
        LogFrom::Around(at) => {
            let at = at.min(size);
            (at.saturating_sub(REACH), size.min(at.saturating_add(2 * REACH)))
        }
    };
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::with_capacity(usize::try_from(end - begin).unwrap_or(0));
    file.take(end - begin).read_to_end(&mut bytes)?;
    let end = begin + bytes.len() as u64;
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
        lines.push(LogLine { at, text: tidy(bounded(raw.strip_suffix(b"\n").unwrap_or(raw))) });
        at += raw.len() as u64;
    }
    Ok(LogWindow {
        path: path.to_owned(),
        lines,
        begin: begin + skip as u64,
        end: begin + keep.max(skip) as u64,
        size,
        state: LogState::There,
    })
}

/// The end of a progress bar's line, the beginning of any other.
fn bounded(raw: &[u8]) -> &[u8] {
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

impl LogReader {
    pub(in crate::tui) fn run(self) {
        let mut want: Option<LogWant> = None;
        let mut watch: Option<notify::RecommendedWatcher> = None;
        let mut last: Option<LogWindow> = None;
        loop {
            let message = match &want {
                None => self.wants.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => self.wants.recv_timeout(POLL),
            };
            let (mut fresh, mut next) = match message {
                Ok(LogMessage::Want(new)) => (true, new),
                Ok(LogMessage::Changed) | Err(RecvTimeoutError::Timeout) => (false, want.clone()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // A file that grows all the time is read a few times a second; a new wish is met at once.
            let until = clock::monotonic().0 + self.pause.as_millis() as u64;
            loop {
                let left = if fresh { 0 } else { until.saturating_sub(clock::monotonic().0) };
                match self.wants.recv_timeout(Duration::from_millis(left)) {
                    Ok(LogMessage::Want(new)) => (fresh, next) = (true, new),
                    Ok(LogMessage::Changed) => {}
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            let moved = want.as_ref().map(|w| &w.path) != next.as_ref().map(|w| &w.path);
            if moved {
                last = None;
                watch = None;
            }
            want = next;
            let Some(want) = &want else { continue };
            if watch.is_none() && want.path.exists() {
                watch = self.watch(&want.path);
            }
            let window = look(want, last.as_ref());
            if last.as_ref() != Some(&window) {
                last = Some(window.clone());
                if self.events.send(FeedEvent::Log(Box::new(window))).is_err() {
                    return;
                }
            }
        }
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

/// Reads what is wanted; where it cannot, the lines seen last stay.
fn look(want: &LogWant, last: Option<&LogWindow>) -> LogWindow {
    let keep =
        |state: LogState| LogWindow { path: want.path.clone(), state, ..last.cloned().unwrap_or_default() };
    let seen = last.is_some_and(|window| !window.lines.is_empty());
    match read_window(&want.path, want.from) {
        Ok(window) => {
            let shrunk = last.is_some_and(|last| window.size < last.size);
            let state = if shrunk { LogState::Truncated(clock::wall_ms()) } else { LogState::There };
            match last.map(|last| &last.state) {
                // Said until the file grows again.
                Some(old @ LogState::Truncated(_)) if last.is_some_and(|l| l.size == window.size) => {
                    LogWindow { state: old.clone(), ..window }
                }
                _ => LogWindow { state, ..window },
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            keep(if seen { LogState::Gone } else { LogState::NotYet })
        }
        Err(error) => keep(LogState::Failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn a_growing_file_is_shown_as_it_grows_and_nothing_is_read_when_nothing_is_wanted() {
        const PATIENCE: Duration = Duration::from_secs(20);
        let (_dir, path) = file(b"one\n");
        let (send, wants) = std::sync::mpsc::channel();
        let (events, arrives) = std::sync::mpsc::channel();
        let reader = LogReader { wants, wake: send.clone(), events, pause: Duration::from_millis(10) };
        let thread = std::thread::spawn(move || reader.run());
        let next = || match arrives.recv_timeout(PATIENCE).unwrap() {
            FeedEvent::Log(window) => window.lines.last().map(|line| line.text.clone()).unwrap_or_default(),
            other => panic!("{other:?}"),
        };
        let want = LogWant { path: path.clone(), from: LogFrom::Tail };
        send.send(LogMessage::Want(Some(want))).unwrap();
        assert_eq!(next(), "one");
        let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        for n in 0..3 {
            writeln!(log, "more {n}").unwrap();
            while next() != format!("more {n}") {}
        }
        send.send(LogMessage::Want(None)).unwrap();
        writeln!(log, "unseen").unwrap();
        send.send(LogMessage::Changed).unwrap();
        drop(arrives);
        // The thread has nobody to tell: the next window ends it.
        send.send(LogMessage::Want(Some(LogWant { path, from: LogFrom::Tail }))).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_file_that_shrinks_or_goes_keeps_its_last_lines() {
        let (dir, path) = file(b"one\ntwo\n");
        let want = LogWant { path: path.clone(), from: LogFrom::Tail };
        assert_eq!(
            look(&LogWant { path: dir.path().join("none"), ..want.clone() }, None).state,
            LogState::NotYet
        );
        let first = look(&want, None);
        std::fs::write(&path, "x\n").unwrap();
        let second = look(&want, Some(&first));
        assert!(matches!(second.state, LogState::Truncated(_)), "{second:?}");
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"y\n").unwrap();
        assert_eq!(look(&want, Some(&second)).state, LogState::There);
        std::fs::remove_file(&path).unwrap();
        let gone = look(&want, Some(&second));
        assert_eq!((gone.state, gone.lines.len()), (LogState::Gone, 1));
    }
}
