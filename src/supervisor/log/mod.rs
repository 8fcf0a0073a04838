//! The log of an attempt: what the work printed, bounded, never in the work's way.
//!
//! The first half of the bound is kept as it came; of the rest, the newest. What lies between is cut: while the run
//! lasts it is a hole in the file (so that whoever follows the end goes on following it), and when the run has ended
//! the newest part is moved up to a line that says how much is missing.
//!
//! Where each line came from, and when, is beside it: [`super::marks`].

mod reader;
mod writer;

pub use reader::{LogFile, Piece};
pub(super) use writer::Log;

use std::ops::Range;

/// How a line begins that says that something is missing here.
const MARK: &str = "--- overnight: ";

/// The first line of a piece of a log that says that something is missing.
pub fn gap(bytes: &[u8]) -> Option<Range<usize>> {
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let begin =
        std::iter::once(0).chain(ends.by_ref()).find(|at| bytes[*at..].starts_with(MARK.as_bytes()))?;
    let end = bytes[begin..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| begin + at);
    Some(begin..end)
}

/// Holes are made in whole blocks.
const BLOCK: u64 = 4096;
