//! The lines around a place of a log.

use super::{LogFrom, LogLine, LogState, LogWindow, REACH};
use crate::beneath;
use crate::supervisor::log::{LogFile, Piece};
use crate::supervisor::marks::{self, Marks};
use crate::tui::panels::logtext::tidy;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Longer lines are cut for the screen.
const LINE_BYTES: usize = 8 * 1024;

/// Reads one window.
pub fn read_window(path: &Path, from: LogFrom) -> io::Result<LogWindow> {
    window(&mut LogFile::open(path)?, path, from)
}

pub(super) fn window(log: &mut LogFile, path: &Path, from: LogFrom) -> io::Result<LogWindow> {
    let (place, down) = match from {
        LogFrom::Tail => (log.size(), 0),
        LogFrom::Around(at) => (at.min(log.size()), 2 * REACH as usize),
    };
    let mut pieces = VecDeque::new();
    let (mut begin, mut up) = (place, REACH as usize);
    while up > 0 {
        let piece = log.before(begin, up)?;
        (begin, up) = (piece.begin, up.saturating_sub(piece.bytes.len()));
        if piece.bytes.is_empty() {
            break;
        }
        pieces.push_front(piece);
    }
    let (mut end, mut down) = (place, down);
    while down > 0 {
        let piece = log.after(end, down)?;
        if piece.bytes.is_empty() {
            end = log.size();
            break;
        }
        (end, down) = (piece.end(), down.saturating_sub(piece.bytes.len()));
        match pieces.back_mut().filter(|last| last.end() == piece.begin) {
            Some(last) => {
                last.bytes.extend(piece.bytes);
                last.is_last = piece.is_last;
            }
            None => pieces.push_back(piece),
        }
    }
    let lines: Vec<LogLine> = pieces.iter().flat_map(lines_of).collect();
    let is_cut = pieces.back().is_some_and(|last| !last.is_last);
    Ok(LogWindow {
        path: path.to_owned(),
        begin: lines.first().map_or(begin, |line| line.at),
        end: lines.last().filter(|_| is_cut).map_or(end, |line| end.min(line.end + 1)),
        lines,
        size: log.size(),
        state: LogState::There,
        ..LogWindow::default()
    })
}

/// The whole lines of a piece, where it has any: the first one may have begun before it, the last one may go on after
/// it.
pub(super) fn whole(piece: &Piece) -> Range<usize> {
    let bytes = &piece.bytes;
    let first = bytes.iter().position(is_feed).map_or(0, |at| at + 1);
    let skip = if piece.is_first || first == bytes.len() { 0 } else { first };
    let last = bytes.iter().rposition(is_feed).map_or(bytes.len(), |at| at + 1);
    skip..if piece.is_last { bytes.len() } else { last }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as iterators hand it over")]
pub(super) const fn is_feed(byte: &u8) -> bool {
    *byte == b'\n'
}

fn lines_of(piece: &Piece) -> Vec<LogLine> {
    let body = whole(piece);
    let mut at = piece.begin + body.start as u64;
    let mut lines = Vec::new();
    for raw in piece.bytes[body].split_inclusive(is_feed) {
        lines.push(line_of(raw.strip_suffix(b"\n").unwrap_or(raw), at));
        at += raw.len() as u64;
    }
    lines
}

/// The line whose bytes are at a place.
pub(super) fn line_of(bytes: &[u8], at: u64) -> LogLine {
    LogLine { at, end: at + bytes.len() as u64, text: tidy(bounded(bytes)), ..LogLine::default() }
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

/// Tells of each line where it came from, as far as that is known: of a progress bar, its newest state.
pub(super) fn mark(lines: &mut [LogLine], log: &File) {
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
