//! How many lines a log has before a place, and after one.

use super::PIECE;
use crate::supervisor::log::LogFile;
use std::io;

/// Lines of a log, counted piece by piece.
pub(super) struct LineCount {
    /// How many there are before each multiple of [`PIECE`], as far as it has come; not kept by one that begins anywhere.
    before: Option<Vec<u64>>,
    lines: u64,
    at: u64,
}

impl Default for LineCount {
    fn default() -> Self {
        Self { before: Some(Vec::new()), lines: 0, at: 0 }
    }
}

impl LineCount {
    /// Counts from a byte on.
    pub(super) const fn after(at: u64) -> Self {
        Self { before: None, lines: 0, at }
    }

    /// How many there are.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    /// One piece; whether there is more.
    pub(super) fn step(&mut self, log: &mut LogFile) -> io::Result<bool> {
        let piece = log.after(self.at, PIECE)?;
        if let Some(before) = &mut self.before {
            while before.len() as u64 * PIECE as u64 <= piece.begin {
                before.push(self.lines);
            }
        }
        // Up to a multiple, so that the next one begins there.
        let most = PIECE - (piece.begin % PIECE as u64) as usize;
        let counted = piece.bytes.get(..most).unwrap_or(&piece.bytes);
        self.lines += feeds(counted);
        self.at = piece.begin + counted.len() as u64;
        Ok(!counted.is_empty() && self.at < log.size())
    }

    /// Whether this far is counted.
    pub(super) const fn reaches(&self, at: u64) -> bool {
        at <= self.at
    }

    /// The number of the line that begins at a byte, from 1; `None` if that is not counted yet.
    pub(super) fn number(&self, log: &mut LogFile, at: u64) -> io::Result<Option<u64>> {
        let before = self.before.as_ref().and_then(|before| before.get(at as usize / PIECE));
        let Some(mut lines) = before.copied().filter(|_| self.reaches(at)) else { return Ok(None) };
        let mut here = at - at % PIECE as u64;
        while here < at {
            let piece = log.after(here, PIECE)?;
            let counted = at.saturating_sub(piece.begin).min(piece.bytes.len() as u64);
            lines += feeds(&piece.bytes[..counted as usize]);
            here = if counted == 0 { at } else { piece.begin + counted };
        }
        Ok(Some(lines + 1))
    }
}

fn feeds(bytes: &[u8]) -> u64 {
    // By short sums, which the compiler makes wide ones of.
    bytes.chunks(255).map(|part| u64::from(part.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>())).sum()
}
