//! The last two lines: what just happened or what an operator must know, and the keys that work here.

use crate::protocol::{Connection, NoticeLevel};
use crate::tui::View;
use crate::tui::keys::Mode;
use crate::tui::layout::Layout;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut, width};
use crate::tui::look::theme::Role;
use crate::tui::looks;
use crate::tui::overlay::{Overlay, palette};
use crate::tui::rows;
use crate::tui::ui::{Level, Message};
use crate::tui::update;
use crate::tui::update::{copying, pending};
use ratatui::layout::Rect;

/// What the message row says: text, role, and what can be done about it.
///
/// The worst first: what failed, the lost scheduler, a cancel that can still be undone, what an operator must do something
/// about, news, what else an operator must know.
fn message(v: &View<'_>) -> Option<(String, Role, &'static str)> {
    let said = v.ui.message.as_ref();
    said.filter(|message| message.level > Level::Info)
        .map(told)
        .or_else(|| lost(v))
        .or_else(|| closing(v))
        .or_else(|| notice(v).filter(|(_, role, _)| *role == Role::ToastError))
        .or_else(|| said.map(told))
        .or_else(|| notice(v))
}

fn told(Message { level, text, armed, note, .. }: &Message) -> (String, Role, &'static str) {
    let (mark, role) = match level {
        Level::Info => ("", Role::ToastInfo),
        Level::Warning => ("! ", Role::ToastWarn),
        Level::Error => ("! ", Role::ToastError),
    };
    let tail = match (level, armed) {
        (Level::Error, true) => "Enter: open   Esc: clear",
        (Level::Error, false) => "Esc: clear",
        (_, true) => "Enter: open",
        (_, false) => note,
    };
    (format!("{mark}{text}"), role, tail)
}

fn lost(v: &View<'_>) -> Option<(String, Role, &'static str)> {
    match &v.ui.connection {
        Connection::Lost { why, .. } if v.ui.known => {
            let tail = if v.ui.can_start { "S: start it" } else { "" };
            Some((format!("! {why}"), Role::ToastError, tail))
        }
        Connection::Lost { .. } | Connection::Live | Connection::Stale { .. } => None,
    }
}

/// A cancel whose undo window is open.
fn closing(v: &View<'_>) -> Option<(String, Role, &'static str)> {
    let mut closing = v.snap.jobs.iter().filter(|row| pending::undoable(row, &v.exact));
    let row = closing.next()?;
    let left = between(v.exact.wall_ms, row.cancel_at.unwrap_or(0)).0.div_ceil(1000);
    let more = closing.count();
    let more = if more > 0 { format!(" (+{more} more)") } else { String::new() };
    Some((format!("cancelling #{} in {left} s{more}", row.id), Role::Stop, "u undo"))
}

/// What an operator must know; the worst is first.
fn notice(v: &View<'_>) -> Option<(String, Role, &'static str)> {
    let notice = v.snap.notices.first()?;
    let others = v.snap.notices.len() - 1;
    let more = if others > 0 { format!(" (+{others})") } else { String::new() };
    let (mark, role) = match notice.level {
        NoticeLevel::Info => ("", Role::ToastInfo),
        NoticeLevel::Warning => ("! ", Role::ToastWarn),
        NoticeLevel::Error => ("! ", Role::ToastError),
    };
    Some((format!("{mark}{}{more}", notice.text), role, ""))
}

/// The message row and the key line; where they share a row, the message has it.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout) {
    let shared = layout.message == layout.keys;
    let message = message(v);
    if v.ui.typing && (shared || layout.keys.height == 0) {
        filter(c, layout.message, v);
        return;
    }
    if layout.keys.height > 0 && !(shared && message.is_some()) {
        keys(c, layout.keys, v);
    }
    let Some((text, role, tail)) = message else { return };
    let area = layout.message;
    if area.height == 0 {
        return;
    }
    let room = usize::from(area.width);
    // What is to be selected by hand goes before the words about it.
    let selectable = tail == copying::NOTE && width(&text) + width(tail) + 2 > room;
    let tail = if selectable { "sent (if allowed)" } else { tail };
    let tail_columns = if tail.is_empty() || room < 40 { 0 } else { width(tail) + 2 };
    let text = cut(&text, room.saturating_sub(tail_columns));
    c.text(area, 0, text, role);
    if tail_columns > 0 {
        c.pieces_right(area, 0, &[(tail, Role::Dim)]);
    }
}

/// The filter as it is typed, with the terminal's cursor in it.
pub(in crate::tui) fn filter(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let end = c.pieces(area, 0, &[("/", Role::KeyHint), (v.ui.filter.text(), Role::Input)]);
    if v.ui.filter.text().is_empty() {
        let rest = Rect { x: end + 1, width: area.right().saturating_sub(end + 1), ..area };
        c.text(rest, 0, " words  u:ana s:run g:>2 gpu:4 n:/re/ p: id: !not ", Role::Dim);
    }
    if let Some(error) = v.ui.filter.error() {
        let rest = Rect { x: end, width: area.right().saturating_sub(end), ..area };
        c.pieces(rest, 0, &[("  ! ", Role::ToastError), (&error.why, Role::ToastError), (" ", Role::Text)]);
    }
    let x = area.x + 1 + width(v.ui.filter.before()) as u16;
    c.cursor = Some((x.min(area.right().saturating_sub(1)), area.y, true));
}

/// `3/11` where something is hidden.
pub(in crate::tui) fn counted(v: &View<'_>) -> String {
    let (shown, all) = if v.ui.screen == crate::tui::Screen::History {
        let all = v.snap.history.len() + looks::older(v.ui, v.snap).count();
        (rows::history(v.ui, v.snap).len(), all)
    } else {
        (v.queue().len(), v.snap.jobs.len())
    };
    if v.ui.screen == crate::tui::Screen::History && looks::has_further(v.ui, v.snap) {
        return format!("{shown}/{all} newest jobs, End asks for older");
    }
    let jobs = if all == 1 { "job" } else { "jobs" };
    if shown == all { format!("{all} {jobs}") } else { format!("{shown}/{all} {jobs}") }
}

/// The same, and how many are marked.
pub(in crate::tui) fn counted_marked(v: &View<'_>) -> String {
    let marked = update::marks::words(v.ui, v.snap, crate::tui::layout::main_pane(v.ui));
    format!("{}{marked}", counted(v))
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
    for (key, words) in last {
        let words = if words == "quit" && v.ui.opened.is_some() { "back" } else { words };
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
