//! The keys of this screen, from the one table of keys.

use crate::tui::View;
use crate::tui::keys::{Mode, bindings};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::left;
use crate::tui::look::theme::Role;
use ratatui::layout::Rect;

/// A line for each key that does something here.
fn lines(mode: Mode) -> Vec<(&'static str, &'static str)> {
    bindings(mode).filter(|row| !row.shown.is_empty()).map(|row| (row.shown, row.help)).collect()
}

/// How many lines there are.
pub(in crate::tui) fn count(mode: Mode) -> usize {
    lines(mode).len()
}

/// Over the screen; two columns where there is room.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, scroll: usize) {
    let mode = crate::tui::update::mode_below(v.ui);
    let lines = lines(mode);
    let wide = area.width >= 110;
    let per_column = if wide { lines.len().div_ceil(2) } else { lines.len() };
    let width = area.width.min(if wide { 120 } else { 66 });
    let height = area.height.min(per_column as u16 + 2);
    let popup =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    c.clear(popup);
    let title = format!("Keys: {}", crate::tui::update::mode_name(mode));
    let foot = if per_column + 2 > usize::from(height) { "j k scroll   Esc closes" } else { "Esc closes" };
    let inner = c.frame(popup, &[(&title, Role::Title)], &[(foot, Role::Dim)], true);
    let scroll = scroll.min(per_column.saturating_sub(usize::from(inner.height)));
    let half = if wide { inner.width / 2 } else { inner.width };
    for (at, (keys, what)) in lines.iter().enumerate() {
        let (column, row) = (at / per_column.max(1), at % per_column.max(1));
        let Some(row) = row.checked_sub(scroll) else { continue };
        if row >= usize::from(inner.height) {
            continue;
        }
        let x = inner.x + half * column as u16;
        let cell = Rect { x, width: half.min(inner.right().saturating_sub(x)), ..inner };
        let keys = format!(" {} ", left(keys, 13));
        c.pieces(cell, row as u16, &[(&keys, Role::KeyHint), (what, Role::Text)]);
    }
}
