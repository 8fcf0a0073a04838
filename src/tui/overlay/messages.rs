//! What was said on the message row, the newest first, in full.

use super::{Overlay, confirm, middle};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::clock;
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// The lines at a width: time, text, how bad.
fn lines(ui: &Ui, columns: usize) -> Vec<(String, String, Role)> {
    let mut out = Vec::new();
    for said in ui.said.iter().rev() {
        let role = match said.level {
            Level::Info => Role::ToastInfo,
            Level::Warning => Role::ToastWarn,
            Level::Error => Role::ToastError,
        };
        let at = clock(said.at, &ui.tz);
        for (row, line) in confirm::wrapped(&said.text, columns).into_iter().enumerate() {
            out.push((if row == 0 { at.clone() } else { String::new() }, line, role));
        }
    }
    out
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, scroll: usize) {
    let popup = middle(area, 100.min(area.width.saturating_sub(2)), area.height.saturating_sub(4).max(3));
    c.clear(popup);
    let inner = c.frame(popup, &[("Messages", Role::Title)], &[("j k scroll  Esc close", Role::Dim)], true);
    let lines = lines(v.ui, usize::from(inner.width).saturating_sub(10).max(8));
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

pub(super) fn update(ui: &mut Ui, scroll: usize, action: &Action) -> Vec<UiCommand> {
    let columns = usize::from(ui.size.0).clamp(20, 102) - 14;
    let last = lines(ui, columns).len().saturating_sub(1);
    let to = match action {
        Action::Accept => return Vec::new(),
        Action::Down => (scroll + 1).min(last),
        Action::Up => scroll.saturating_sub(1),
        _ => scroll,
    };
    ui.overlay = Some(Overlay::Messages(to));
    Vec::new()
}
