//! Reads the log on the screen: a window of bytes, never the whole file. One thread, which sleeps while no log is shown.
//!
//! inotify says when to look again; every two seconds it looks anyway, for file systems that do not tell. The view gets
//! tidied lines with the byte each begins at, so that a place in the log stays the same place while the file grows.
//! Searches, filters and line numbers walk the whole file, a piece between two looks at what is wished, so that a new
//! wish never waits for a file's end.
//!
//! ```text
//! reader ─► looking ─► window    the lines around a place
//!                   ─► sieve     those that match
//!                   ─► finder    the next one that matches
//!                   ─► count     how many there are
//! ```

mod count;
mod finder;
mod looking;
mod reader;
mod sieve;
#[cfg(test)]
mod tests;
mod window;

pub(in crate::tui) use reader::LogReader;
pub use window::read_window;

use crate::supervisor::marks::Mark;
use crate::tui::panels::logmatch::Pattern;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes read before the wanted place, and twice as many after it.
pub(in crate::tui) const REACH: u64 = 64 * 1024;
/// Bytes that a walk reads at a time.
const PIECE: usize = 1 << 20;

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

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFind {
    /// Which one: an answer to another one is late.
    pub id: u64,
    /// What is searched for.
    pub pattern: Pattern,
    /// Only lines that match this too are shown.
    pub only: Option<Pattern>,
    /// The byte at which a line begins: forward the search begins after this line, backward before it.
    pub from: u64,
    /// That line too.
    pub inclusive: bool,
    /// Towards the end.
    pub forward: bool,
}

/// How a search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFound {
    /// It goes on: percent of the log.
    Searching(u8),
    /// The line that begins at this byte, and whether the search went on at the other end.
    Line(u64, bool),
    /// No line matches.
    Nothing,
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
