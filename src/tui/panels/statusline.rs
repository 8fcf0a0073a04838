//! The last two lines: what just happened or what an operator must know, and the keys that work here.

use crate::model::JobId;
use crate::protocol::{Connection, NoticeLevel};
use crate::tui::View;
use crate::tui::keys::{Action, Mode};
use crate::tui::layout::{self, Layout, Pane};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_end, cut_middle, width};
use crate::tui::look::theme::Role;
use crate::tui::looks;
use crate::tui::overlay::{Overlay, palette};
use crate::tui::rows;
use crate::tui::ui::{Level, Message};
use crate::tui::update;
use crate::tui::update::{copying, pending};
use ratatui::layout::Rect;

/// What Enter does about the message row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Offer {
    /// Opens the job it is about.
    Job(JobId),
    /// Shows all of it.
    Details,
}

/// What the message row says: text, role, and what can be done about it.
struct Line {
    text: String,
    role: Role,
    tail: String,
    offer: Option<Offer>,
    /// It begins with a job and ends with what became of it: where there is no room its middle goes.
    of_job: bool,
}

impl Line {
    fn new(text: String, role: Role, tail: impl Into<String>) -> Self {
        Self { text, role, tail: tail.into(), offer: None, of_job: false }
    }

    /// Columns of the tail with what is before it; none where there is no room for one.
    fn tail_columns(&self, room: usize) -> usize {
        if self.tail.is_empty() || room < TAIL_FROM { 0 } else { width(&self.tail) + 2 }
    }

    fn fits(&self, room: usize) -> bool {
        width(&self.text) + self.tail_columns(room) <= room
    }
}

/// With fewer columns the text has them all.
const TAIL_FROM: usize = 40;

/// The worst first: what just failed, the lost scheduler, a cancel that can still be undone, what an operator must do something
/// about, news, what else an operator must know. What is done later than a cancel goes before it.
fn message(v: &View<'_>, room: usize) -> Option<Line> {
    let said = v.ui.message.as_ref();
    let closing = closing(v);
    let news = || said.map(|message| told(v, message, room));
    let newest = closing.as_ref().is_some_and(|(_, asked)| !v.ui.deeds.newer_than(*asked));
    let (first, then) = if newest { (closing, None) } else { (None, closing) };
    let failed = said.filter(|message| message.level > Level::Info);
    // One that a person has gone on after gives way for the seconds that a cancel can still be undone.
    let fresh = failed.filter(|message| message.armed || first.is_none());
    mistyped(v)
        .or_else(|| fresh.map(|message| told(v, message, room)))
        .or_else(|| lost(v))
        .or(first.map(|(line, _)| line))
        .or_else(|| notice(v, room).filter(|line| line.role == Role::ToastError))
        .or_else(news)
        .or(then.map(|(line, _)| line))
        .or_else(|| notice(v, room))
}

/// What Enter does about what the message row says, where it says so.
pub(in crate::tui) fn offered(v: &View<'_>, layout: &Layout) -> Option<Offer> {
    let room = usize::from(layout.message.width);
    if layout.message.height == 0 || room < TAIL_FROM { None } else { message(v, room)?.offer }
}

fn told(v: &View<'_>, message: &Message, room: usize) -> Line {
    let Message { level, text, armed, note, job, .. } = message;
    let (mark, role) = match level {
        Level::Info => ("", Role::ToastInfo),
        Level::Warning => ("! ", Role::ToastWarn),
        Level::Error => ("! ", Role::ToastError),
    };
    let clear = match level {
        Level::Error => "Esc: clear",
        _ if v.ui.behind.is_some() && note.is_empty() => "Esc: back to the error",
        Level::Info | Level::Warning => note,
    };
    let mut line = Line { of_job: job.is_some(), ..Line::new(format!("{mark}{text}"), role, clear) };
    let offer = match job {
        Some(job) => Some(Offer::Job(*job)),
        // What is to be selected by hand is not opened.
        None if note.is_empty() && !line.fits(room) => Some(Offer::Details),
        None => None,
    };
    // Only where that key follows the message.
    let key = v.ui.keys.key(update::mode_below(v.ui), &Action::Open);
    line.offer = offer.filter(|_| *armed && !key.is_empty());
    let words = match line.offer {
        Some(Offer::Job(_)) => format!("{key}: open"),
        Some(Offer::Details) => format!("{key}: details"),
        None => return line,
    };
    line.tail = if line.tail.is_empty() { words.clone() } else { format!("{words}   {clear}") };
    if !line.fits(room) {
        line.tail = words;
    }
    line
}

/// What is wrong with the filter that is being typed, whole: beside it there may be no room.
fn mistyped(v: &View<'_>) -> Option<Line> {
    let error = v.ui.filters.of(layout::filtered(v.ui)).error().filter(|_| v.ui.typing)?;
    Some(Line::new(format!("! {}", error.why), Role::ToastError, ""))
}

fn lost(v: &View<'_>) -> Option<Line> {
    match &v.ui.connection {
        Connection::Lost { why, .. } if v.ui.known => {
            let start = || format!("{}: start it", v.ui.keys.way(&Action::Start));
            // Where something lies over the screen its keys are that one's.
            let can_start = v.ui.can_start && v.ui.overlay.is_none();
            let tail = if can_start { start() } else { String::new() };
            Some(Line::new(format!("! {why}"), Role::ToastError, tail))
        }
        Connection::Lost { .. } | Connection::Live | Connection::Stale { .. } => None,
    }
}

/// The newest cancel whose undo window is open, and when it was asked for.
fn closing(v: &View<'_>) -> Option<(Line, i64)> {
    let asked = pending::cancel_asked;
    let closing = v.snap.jobs.iter().filter(|row| pending::undoable(row, &v.exact));
    let count = closing.clone().count();
    // One's own is what can be taken back from here.
    let row = closing.max_by_key(|row| (pending::is_own_cancel(v.ui, v.snap, row), asked(row), row.id))?;
    let left = between(v.exact.wall_ms, row.cancel_at.unwrap_or(0)).0.div_ceil(1000);
    let all = v.snap.jobs.iter().filter(|row| pending::undoable(row, &v.exact));
    let soonest = all.filter_map(|row| row.cancel_at).min().unwrap_or(0);
    let first = between(v.exact.wall_ms, soonest).0.div_ceil(1000);
    let more = match count - 1 {
        0 => String::new(),
        more if first < left => format!(" (+{more} more, the first in {first} s)"),
        more => format!(" (+{more} more)"),
    };
    if !pending::is_own_cancel(v.ui, v.snap, row) {
        let who = row.cancel_by.as_deref().unwrap_or("somebody");
        let text = format!("{who} cancels #{} in {left} s{more}", row.id);
        return Some((Line::new(text, Role::Stop, ""), asked(row)));
    }
    let text = format!("cancelling #{} in {left} s{more}", row.id);
    // Once something else was done, `u` is about that.
    let (action, words) = if v.ui.deeds.newer_than(asked(row)) {
        (Action::UndoList, "undo list")
    } else {
        (Action::Undo, "undo")
    };
    let tail = format!("{} {words}", v.ui.keys.way(&action));
    Some((Line::new(text, Role::Stop, tail), asked(row)))
}

/// What an operator must know; the worst is first.
fn notice(v: &View<'_>, room: usize) -> Option<Line> {
    let notice = v.snap.notices.first()?;
    let others = v.snap.notices.len() - 1;
    let more = if others > 0 { format!(" (+{others})") } else { String::new() };
    let (mark, role) = match notice.level {
        NoticeLevel::Info => ("", Role::ToastInfo),
        NoticeLevel::Warning => ("! ", Role::ToastWarn),
        NoticeLevel::Error => ("! ", Role::ToastError),
    };
    let line = Line::new(format!("{mark}{}{more}", notice.text), role, "");
    Some(if line.fits(room) { line } else { Line { tail: ":messages".to_owned(), ..line } })
}

/// The message row and the key line; where they share a row, the message has it.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout) {
    let shared = layout.message == layout.keys;
    let room = usize::from(layout.message.width);
    let message = message(v, room);
    if v.ui.typing && (shared || layout.keys.height == 0) {
        filter(c, layout.message, v);
        return;
    }
    if layout.keys.height > 0 && !(shared && message.is_some()) {
        keys(c, layout.keys, v);
    }
    let Some(mut line) = message else { return };
    let area = layout.message;
    if area.height == 0 {
        return;
    }
    // What is to be selected by hand goes before the words about it.
    if line.tail == copying::NOTE && !line.fits(room) {
        "sent (if allowed)".clone_into(&mut line.tail);
    }
    let columns = line.tail_columns(room);
    let cut = if line.of_job { cut_middle } else { cut_end };
    c.text(area, 0, &cut(&line.text, room.saturating_sub(columns)), line.role);
    if columns > 0 {
        c.pieces_right(area, 0, &[(&line.tail, Role::Dim)]);
    }
}

/// The filter as it is typed, with the terminal's cursor in it.
pub(in crate::tui) fn filter(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let filter = v.ui.filters.of(layout::filtered(v.ui));
    let end = c.pieces(area, 0, &[("/", Role::KeyHint), (filter.text(), Role::Input)]);
    if filter.text().is_empty() {
        let rest = Rect { x: end + 1, width: area.right().saturating_sub(end + 1), ..area };
        c.text(rest, 0, &format!(" {} ", filter.hint()), Role::Dim);
    }
    if let Some(error) = filter.error() {
        let rest = Rect { x: end, width: area.right().saturating_sub(end), ..area };
        let why = cut_end(&error.why, usize::from(rest.width).saturating_sub(5));
        c.pieces(rest, 0, &[("  ! ", Role::ToastError), (&why, Role::ToastError), (" ", Role::Text)]);
    }
    let x = area.x + 1 + width(filter.before()) as u16;
    c.cursor = Some((x.min(area.right().saturating_sub(1)), area.y, true));
}

/// `3/11` where something is hidden.
pub(in crate::tui) fn counted(v: &View<'_>, pane: Pane) -> String {
    let (shown, all, one) = match pane {
        Pane::History => {
            let all = v.snap.history.len() + looks::older(v.ui, v.snap).count();
            (rows::history(v.ui, v.snap).len(), all, "job")
        }
        Pane::Gpus => (rows::gpus(v.ui, v.snap).len(), v.snap.gpus.len(), "GPU"),
        Pane::Inbox => (rows::files(v.ui, v.snap).len(), v.snap.inbox.len(), "file"),
        Pane::Queue | Pane::Meter | Pane::Job | Pane::Log => (v.queue().len(), v.snap.jobs.len(), "job"),
    };
    if pane == Pane::History && looks::has_further(v.ui, v.snap) {
        return format!("{shown}/{all} newest jobs, End asks for older");
    }
    let plural = if all == 1 { "" } else { "s" };
    if shown == all { format!("{all} {one}{plural}") } else { format!("{shown}/{all} {one}{plural}") }
}

/// The same, and how many are marked.
pub(in crate::tui) fn counted_marked(v: &View<'_>, pane: Pane) -> String {
    format!("{}{}", counted(v, pane), update::marks::words(v.ui, v.snap, pane))
}

/// Only keys that do something for the selected job.
fn keys(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if v.ui.overlay.as_ref().is_some_and(Overlay::has_keys) {
        return;
    }
    let mode = update::mode(v.ui);
    let mut x = area.x;
    let mut last: Vec<(String, &str)> = Vec::new();
    for row in v.ui.keys.of(mode) {
        let hint = row.binding.hint;
        let key = row.first();
        let refused = palette::refusal(v, &row.binding.action);
        if hint.is_empty() || key.is_empty() || refused.is_some() {
            continue;
        }
        // How to get help and out is never pushed off the line.
        if matches!(hint, "help" | "quit") {
            last.push((key, hint));
            continue;
        }
        let columns = width(&key) + 1 + width(hint) + 2;
        if usize::from(x) + columns + reserve(mode) > usize::from(area.right()) {
            continue;
        }
        x = write_hint(c, area, x, &key, hint);
    }
    let spare = v.ui.keys.of(mode).map(|row| (row.first(), row.binding));
    let mut spare: Vec<_> =
        spare.filter(|(key, binding)| !key.is_empty() && !binding.spare.is_empty()).collect();
    // The shortest first: so most of them fit.
    spare.sort_by_key(|(_, binding)| width(binding.spare));
    for (key, binding) in spare {
        let columns = width(&key) + 1 + width(binding.spare) + 2;
        let fits = usize::from(x) + columns + reserve(mode) <= usize::from(area.right());
        if fits && palette::refusal(v, &binding.action).is_none() {
            x = write_hint(c, area, x, &key, binding.spare);
        }
    }
    for (key, words) in last {
        let words = if words == "quit" && (v.ui.opened.is_some() || v.ui.zoom) { "back" } else { words };
        x = write_hint(c, area, x, &key, words);
    }
}

/// Columns kept for `? help  q quit`.
const fn reserve(mode: Mode) -> usize {
    if mode.is_text() || matches!(mode, Mode::Dialog) { 0 } else { 16 }
}

fn write_hint(c: &mut Canvas<'_>, area: Rect, x: u16, key: &str, words: &str) -> u16 {
    let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
    c.pieces(
        rest,
        0,
        &[(key, Role::KeyHint), (" ", Role::KeyText), (words, Role::KeyText), ("  ", Role::KeyText)],
    )
}
