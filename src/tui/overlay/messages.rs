//! What an operator must know, then what was said on the message row, the newest first; in full.

use super::{Overlay, confirm, middle};
use crate::protocol::{NoticeLevel, Snapshot};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::clock;
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// Time, text, how bad.
type Line = (String, String, Role);

/// One message at a width.
fn put(out: &mut Vec<Line>, at: String, text: &str, level: Level, columns: usize) {
    let role = match level {
        Level::Info => Role::ToastInfo,
        Level::Warning => Role::ToastWarn,
        Level::Error => Role::ToastError,
    };
    let first = out.len();
    out.extend(confirm::wrapped(text, columns).into_iter().map(|line| (String::new(), line, role)));
    if let Some(line) = out.get_mut(first) {
        line.0 = at;
    }
}

/// The lines at a width.
fn lines(ui: &Ui, snap: &Snapshot, columns: usize) -> Vec<Line> {
    let mut out = notices(snap, columns);
    for said in ui.said.iter().rev() {
        put(&mut out, clock(said.at, &ui.tz), &said.text, said.level, columns);
    }
    out
}

/// What is so until somebody does something about it.
fn notices(snap: &Snapshot, columns: usize) -> Vec<Line> {
    let mut out = Vec::new();
    for notice in &snap.notices {
        let level = match notice.level {
            NoticeLevel::Info => Level::Info,
            NoticeLevel::Warning => Level::Warning,
            NoticeLevel::Error => Level::Error,
        };
        put(&mut out, "now".to_owned(), &notice.text, level, columns);
    }
    out
}

/// Opens on the newest message.
pub(in crate::tui) fn details(ui: &mut Ui, snap: &Snapshot) {
    if let Some(message) = &mut ui.message {
        message.armed = false;
    }
    ui.overlay = Some(Overlay::Messages(notices(snap, columns(ui)).len()));
}

/// The width of a text.
fn columns(ui: &Ui) -> usize {
    usize::from(middle(whole(ui), 100.min(ui.size.0.saturating_sub(2)), 3).width).saturating_sub(12).max(8)
}

fn whole(ui: &Ui) -> Rect {
    Rect::new(0, 0, ui.size.0, ui.size.1)
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, scroll: usize) {
    let popup = middle(area, 100.min(area.width.saturating_sub(2)), area.height.saturating_sub(4).max(3));
    c.clear(popup);
    let inner = c.frame(popup, &[("Messages", Role::Title)], &[("j k scroll  Esc close", Role::Dim)], true);
    let lines = lines(v.ui, v.snap, usize::from(inner.width).saturating_sub(10).max(8));
    let height = usize::from(inner.height);
    let top = scroll.min(lines.len().saturating_sub(height));
    for (row, (at, text, role)) in lines.iter().skip(top).take(height).enumerate() {
        let at = format!("{at:8}  ");
        c.pieces(inner, row as u16, &[(&at, Role::Dim), (text, *role)]);
    }
    if lines.is_empty() {
        c.text(inner, 0, "Nothing has been said yet.", Role::Dim);
    }
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, scroll: usize, action: &Action) -> Vec<UiCommand> {
    let last = lines(ui, ui.shown(snap), columns(ui)).len().saturating_sub(1);
    let to = match action {
        Action::Accept => return Vec::new(),
        Action::Down => (scroll + 1).min(last),
        Action::Up => scroll.saturating_sub(1),
        _ => scroll,
    };
    ui.overlay = Some(Overlay::Messages(to));
    Vec::new()
}
