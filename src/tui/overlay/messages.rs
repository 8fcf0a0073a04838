//! What an operator must know, then what was said on the message row, the newest first; in full.

use super::{Overlay, confirm, middle};
use crate::protocol::{NoticeLevel, Snapshot};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::clock;
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, SAID, Ui};
use crate::tui::update::step;
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
    ui.overlay = Some(Overlay::Messages(notices(snap, room(ui).0).len()));
}

/// Its place.
fn popup(area: Rect) -> Rect {
    middle(area, 100.min(area.width.saturating_sub(2)), area.height.saturating_sub(4).max(3))
}

/// The columns and rows of the texts.
fn room(ui: &Ui) -> (usize, usize) {
    let popup = popup(Rect::new(0, 0, ui.size.0, ui.size.1));
    let columns = usize::from(popup.width).saturating_sub(12).max(8);
    (columns, usize::from(popup.height.saturating_sub(2)).max(1))
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, scroll: usize) {
    let popup = popup(area);
    c.clear(popup);
    let kept = format!("  the newest {SAID} are kept");
    let title = [("Messages", Role::Title), (kept.as_str(), Role::Dim)];
    let inner = c.frame(popup, &title, &[("j k PgDn PgUp scroll  Esc close", Role::Dim)], true);
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
    if *action == Action::Accept {
        return Vec::new();
    }
    let (columns, height) = room(ui);
    // Not further than to where the last line is at the bottom.
    let tops = (lines(ui, ui.shown(snap), columns).len() + 1).saturating_sub(height).max(1);
    ui.overlay = Some(Overlay::Messages(step(scroll.min(tops - 1), tops, height, action)));
    Vec::new()
}
