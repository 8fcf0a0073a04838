//! Walks a log of any size in pieces: the next line that matches, the lines that match, the number of lines.
//!
//! Each walk keeps where it is and does one piece when it is told to, so that a new wish never waits for a file's end.

use crate::tui::panels::logmatch::Pattern;
use crate::tui::panels::logtext::tidy;
use crate::tui::shell::logfeed::{LogFrom, LogLine, REACH, bounded, read_whole};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

/// Bytes read at a time.
pub(super) const PIECE: u64 = 1 << 20;
/// Lines kept of a filtered log.
const LINES: usize = 5_000;

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

/// Reads up to `PIECE` bytes between two places.
fn piece(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; to.saturating_sub(from).min(PIECE) as usize];
    let got = read_whole(file, &mut bytes, from)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// The bytes up to the end of the last whole line; all of them at the end of the file, or where one line is all.
fn whole(bytes: &[u8], at_end: bool) -> &[u8] {
    if at_end {
        return bytes;
    }
    bytes.iter().rposition(|b| *b == b'\n').map_or(bytes, |at| &bytes[..=at])
}

/// Where the first whole line begins in a piece that may begin within one.
fn first(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == b'\n').map(|at| at + 1)
}

/// A search under way.
pub(super) struct Finder {
    pub(super) ask: LogFind,
    at: u64,
    is_begun: bool,
    is_wrapped: bool,
}

impl Finder {
    pub(super) const fn new(ask: LogFind) -> Self {
        Self { at: ask.from, ask, is_begun: false, is_wrapped: false }
    }

    /// One piece.
    pub(super) fn step(&mut self, file: &File, size: u64) -> io::Result<LogFound> {
        self.at = self.at.min(size);
        let searched = if self.ask.forward { self.forward(file, size)? } else { self.backward(file, size)? };
        Ok(searched.unwrap_or_else(|| {
            let walked = if self.ask.forward {
                (self.at + size - self.ask.from.min(size)) % size.max(1)
            } else {
                (self.ask.from.min(size) + size - self.at) % size.max(1)
            };
            LogFound::Searching((walked * 100 / size.max(1)).min(99) as u8)
        }))
    }

    fn forward(&mut self, file: &File, size: u64) -> io::Result<Option<LogFound>> {
        let bytes = piece(file, self.at, size)?;
        let skip = if self.is_begun || self.ask.inclusive { Some(0) } else { first(&bytes) };
        let Some(skip) = skip.filter(|_| !bytes.is_empty()) else {
            if bytes.is_empty() || self.at + bytes.len() as u64 >= size {
                return Ok(self.wrap(0));
            }
            self.at += bytes.len() as u64;
            return Ok(None);
        };
        self.is_begun = true;
        let body = whole(&bytes[skip..], self.at + bytes.len() as u64 >= size);
        let begin = self.at + skip as u64;
        let mut found = None;
        let _all = self.ask.pattern.lines(body, |line| {
            if !self.is_shown(&body[line.clone()]) {
                return ControlFlow::Continue(());
            }
            found = Some(begin + line.start as u64);
            ControlFlow::Break(())
        });
        if let Some(at) = found {
            return Ok(Some(self.line(at)));
        }
        self.at = begin + body.len() as u64;
        if self.is_wrapped && self.at > self.ask.from {
            return Ok(Some(LogFound::Nothing));
        }
        Ok(if self.at >= size { self.wrap(0) } else { None })
    }

    fn backward(&mut self, file: &File, size: u64) -> io::Result<Option<LogFound>> {
        if self.at == 0 || self.is_wrapped && self.at <= self.ask.from {
            return Ok(self.wrap(size));
        }
        let from = self.at.saturating_sub(PIECE);
        let bytes = piece(file, from, self.at)?;
        let skip = if from == 0 { 0 } else { first(&bytes).filter(|at| *at < bytes.len()).unwrap_or(0) };
        let begin = from + skip as u64;
        let mut found = None;
        let body = &bytes[skip..];
        let _all = self.ask.pattern.lines(body, |line| {
            if self.is_shown(&body[line.clone()]) {
                found = Some(begin + line.start as u64);
            }
            ControlFlow::Continue(())
        });
        self.at = begin;
        Ok(found.map(|at| self.line(at)))
    }

    /// What was found after the other end is only news up to where the search began.
    fn line(&self, at: u64) -> LogFound {
        let passed = if self.ask.forward { at > self.ask.from } else { at < self.ask.from };
        if self.is_wrapped && passed { LogFound::Nothing } else { LogFound::Line(at, self.is_wrapped) }
    }

    fn is_shown(&self, line: &[u8]) -> bool {
        self.ask.only.as_ref().is_none_or(|only| only.is_in(line))
    }

    fn wrap(&mut self, to: u64) -> Option<LogFound> {
        if self.is_wrapped {
            return Some(LogFound::Nothing);
        }
        (self.is_wrapped, self.is_begun, self.at) = (true, true, to);
        None
    }
}

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
    pub(super) fn step(&mut self, file: &File, size: u64) -> io::Result<()> {
        if !self.is_begun {
            self.begin_at_a_line(file, size)?;
        }
        if self.goes_up && (self.from == LogFrom::Tail || !self.goes_down) {
            return self.up(file);
        }
        if self.goes_down { self.down(file, size) } else { Ok(()) }
    }

    /// From any byte to where a line begins.
    fn begin_at_a_line(&mut self, file: &File, size: u64) -> io::Result<()> {
        self.is_begun = true;
        if self.begin > 0 {
            let from = self.begin.saturating_sub(PIECE);
            let before = piece(file, from, self.begin)?;
            let line = before.iter().rposition(|b| *b == b'\n').map_or(from, |at| from + at as u64 + 1);
            (self.begin, self.end) = (line, line);
        }
        self.goes_down = self.end < size;
        Ok(())
    }

    fn is_full(&self, part: u64) -> bool {
        self.bytes >= part * REACH || self.lines.len() as u64 >= part * LINES as u64 / 3
    }

    fn up(&mut self, file: &File) -> io::Result<()> {
        let from = self.begin.saturating_sub(PIECE);
        let bytes = piece(file, from, self.begin)?;
        let skip = if from == 0 { 0 } else { first(&bytes).filter(|at| *at < bytes.len()).unwrap_or(0) };
        self.begin = from + skip as u64;
        let mut found = self.sift(&bytes[skip..], self.begin);
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

    fn down(&mut self, file: &File, size: u64) -> io::Result<()> {
        // The last line may have grown since.
        while self.lines.back().is_some_and(|line| line.at >= self.end) {
            self.lines.pop_back();
        }
        let bytes = piece(file, self.end, size)?;
        let is_last = self.end + bytes.len() as u64 >= size;
        let body = whole(&bytes, is_last);
        for line in self.sift(body, self.end) {
            self.bytes += line.text.len() as u64 + 1;
            self.lines.push_back(line);
        }
        let unfinished = body.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        self.end += if is_last { unfinished as u64 } else { body.len() as u64 };
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
            let (at, end) = (begin + line.start as u64, begin + line.end as u64);
            lines.push(LogLine { at, end, text: tidy(bounded(&bytes[line])), ..LogLine::default() });
            ControlFlow::Continue(())
        });
        lines
    }
}

/// How many lines there are before each piece of a log.
#[derive(Default)]
pub(super) struct LineCount {
    /// Before piece n.
    before: Vec<u64>,
    lines: u64,
    at: u64,
}

fn feeds(bytes: &[u8]) -> u64 {
    // By short sums, which the compiler makes wide ones of.
    bytes.chunks(255).map(|part| u64::from(part.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>())).sum()
}

impl LineCount {
    /// Counts from a byte on.
    pub(super) fn after(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// How many there are.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    /// One piece; whether there is more.
    pub(super) fn step(&mut self, file: &File, size: u64) -> io::Result<bool> {
        let bytes = piece(file, self.at, size)?;
        if self.at.is_multiple_of(PIECE) && self.before.len() as u64 == self.at / PIECE {
            self.before.push(self.lines);
        }
        // Up to the end of a piece, so that the next one begins where it should.
        let take = (PIECE - self.at % PIECE).min(bytes.len() as u64);
        self.lines += feeds(&bytes[..take as usize]);
        self.at += take;
        Ok(take > 0 && self.at < size)
    }

    /// Whether this far is counted.
    pub(super) const fn reaches(&self, at: u64) -> bool {
        at <= self.at
    }

    /// The number of the line that begins at a byte, from 1; `None` if that is not counted yet.
    pub(super) fn number(&self, file: &File, at: u64) -> io::Result<Option<u64>> {
        let Some(before) = self.before.get((at / PIECE) as usize).filter(|_| self.reaches(at)) else {
            return Ok(None);
        };
        Ok(Some(before + feeds(&piece(file, at / PIECE * PIECE, at)?) + 1))
    }
}
