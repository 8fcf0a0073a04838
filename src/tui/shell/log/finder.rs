//! The next line of a log that matches.

use super::window::{is_feed, whole};
use super::{LogFind, LogFound, PIECE};
use crate::supervisor::log::LogFile;
use std::io;
use std::ops::ControlFlow;

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
    pub(super) fn step(&mut self, log: &mut LogFile) -> io::Result<LogFound> {
        let size = log.size();
        self.at = self.at.min(size);
        let searched = if self.ask.forward { self.forward(log)? } else { self.backward(log)? };
        Ok(searched.unwrap_or_else(|| {
            let walked = if self.ask.forward {
                (self.at + size - self.ask.from.min(size)) % size.max(1)
            } else {
                (self.ask.from.min(size) + size - self.at) % size.max(1)
            };
            LogFound::Searching((walked * 100 / size.max(1)).min(99) as u8)
        }))
    }

    fn forward(&mut self, log: &mut LogFile) -> io::Result<Option<LogFound>> {
        let piece = log.after(self.at, PIECE)?;
        if piece.bytes.is_empty() {
            return Ok(self.wrap(0));
        }
        let skip = match piece.bytes.iter().position(is_feed) {
            _ if self.is_begun || self.ask.inclusive => 0,
            Some(at) => at + 1,
            // The line where it begins goes on.
            None => piece.bytes.len(),
        };
        self.is_begun |= skip < piece.bytes.len() || piece.is_last;
        let body = &piece.bytes[skip..whole(&piece).end.max(skip)];
        let begin = piece.begin + skip as u64;
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
        Ok((self.is_wrapped && self.at > self.ask.from).then_some(LogFound::Nothing))
    }

    fn backward(&mut self, log: &mut LogFile) -> io::Result<Option<LogFound>> {
        let piece = log.before(self.at, PIECE)?;
        if piece.bytes.is_empty() || self.is_wrapped && self.at <= self.ask.from {
            return Ok(self.wrap(log.size()));
        }
        let body = whole(&piece);
        let (begin, body) = (piece.begin + body.start as u64, &piece.bytes[body.start..]);
        let mut found = None;
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
