//! The lines of a log that match, around a place or at its end.

use super::window::{is_feed, line_of, whole};
use super::{LogFrom, LogLine, PIECE, REACH};
use crate::supervisor::log::{self, LogFile};
use crate::tui::panels::logmatch::Pattern;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

/// Lines kept of a filtered log.
const LINES: usize = 5_000;

/// The lines of a log that match, around a place or at its end.
pub(super) struct Sieve {
    only: Pattern,
    from: LogFrom,
    lines: VecDeque<LogLine>,
    bytes: u64,
    /// What was walked: from here
    begin: u64,
    /// up to the line that may still grow.
    end: u64,
    is_begun: bool,
    goes_up: bool,
    goes_down: bool,
}

impl Sieve {
    pub(super) fn new(only: Pattern, from: LogFrom, size: u64) -> Self {
        let at = match from {
            LogFrom::Tail => size,
            LogFrom::Around(at) => at.min(size),
        };
        Self {
            only,
            from,
            lines: VecDeque::new(),
            bytes: 0,
            begin: at,
            end: at,
            is_begun: false,
            goes_up: true,
            goes_down: true,
        }
    }

    /// Whether it is this one.
    pub(super) fn is(&self, only: &Pattern, from: LogFrom) -> bool {
        self.only == *only && self.from == from
    }

    /// The file has grown: at its end that is news.
    pub(super) fn grown(&mut self) {
        self.goes_down |= self.from == LogFrom::Tail || !self.is_full(2);
    }

    pub(super) const fn is_done(&self) -> bool {
        !self.goes_up && !self.goes_down
    }

    /// What was found, and between which bytes.
    pub(super) fn found(&self, size: u64) -> (Vec<LogLine>, u64, u64) {
        let end = if self.from == LogFrom::Tail { size } else { self.end };
        (self.lines.iter().cloned().collect(), self.begin, end)
    }

    /// One piece.
    pub(super) fn step(&mut self, log: &mut LogFile) -> io::Result<()> {
        if !self.is_begun {
            self.begin_at_a_line(log)?;
        }
        if self.goes_up && (self.from == LogFrom::Tail || !self.goes_down) {
            return self.up(log);
        }
        if self.goes_down { self.down(log) } else { Ok(()) }
    }

    /// From any byte to where a line begins.
    fn begin_at_a_line(&mut self, log: &mut LogFile) -> io::Result<()> {
        self.is_begun = true;
        let before = log.before(self.begin, PIECE)?;
        let line = before.begin + before.bytes.iter().rposition(is_feed).map_or(0, |at| at as u64 + 1);
        (self.begin, self.end) = (line, line);
        self.goes_down = self.end < log.size();
        Ok(())
    }

    fn is_full(&self, part: u64) -> bool {
        self.bytes >= part * REACH || self.lines.len() as u64 >= part * LINES as u64 / 3
    }

    fn up(&mut self, log: &mut LogFile) -> io::Result<()> {
        let piece = log.before(self.begin, PIECE)?;
        let skip = whole(&piece).start;
        self.begin = piece.begin + skip as u64;
        let mut found = self.sift(&piece.bytes[skip..], self.begin);
        while let Some(line) = found.pop() {
            if self.is_full(3) {
                self.begin = line.at + 1;
                break;
            }
            self.bytes += line.text.len() as u64 + 1;
            self.lines.push_front(line);
        }
        self.goes_up = self.begin > 0 && !self.is_full(3);
        Ok(())
    }

    fn down(&mut self, log: &mut LogFile) -> io::Result<()> {
        // The last line may have grown since.
        while self.lines.back().is_some_and(|line| line.at >= self.end) {
            let again = self.lines.pop_back();
            self.bytes -= again.map_or(0, |line| line.text.len() as u64 + 1).min(self.bytes);
        }
        let piece = log.after(self.end, PIECE)?;
        let is_last = piece.bytes.is_empty() || piece.end() >= log.size();
        let body = &piece.bytes[..whole(&piece).end];
        for line in self.sift(body, piece.begin) {
            self.bytes += line.text.len() as u64 + 1;
            self.lines.push_back(line);
        }
        let unfinished = body.iter().rposition(is_feed).map_or(0, |at| at + 1);
        self.end = piece.begin + if is_last { unfinished } else { body.len() } as u64;
        if self.from == LogFrom::Tail {
            while self.is_full(4) {
                let Some(line) = self.lines.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(line.text.len() as u64 + 1);
                self.begin = line.at + 1;
            }
            self.goes_down = !is_last;
        } else {
            self.goes_down = !is_last && !self.is_full(2);
        }
        Ok(())
    }

    fn sift(&self, bytes: &[u8], begin: u64) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let _all = self.only.lines(bytes, |line| {
            lines.push(line_of(&bytes[line.clone()], begin + line.start as u64));
            ControlFlow::Continue(())
        });
        // What says that lines are missing is about those on either side.
        if let Some(gap) = log::gap(bytes) {
            let line = line_of(&bytes[gap.clone()], begin + gap.start as u64);
            let place = lines.partition_point(|other: &LogLine| other.at < line.at);
            if lines.get(place).is_none_or(|other| other.at != line.at) {
                lines.insert(place, line);
            }
        }
        lines
    }
}
