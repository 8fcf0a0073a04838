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

/// Holes are made in whole blocks.
const BLOCK: u64 = 4096;
