//! The line in which a search in the log, or a filter of it, is typed: at the bottom, so that the log stays to be seen.

use super::Overlay;
use crate::protocol::Snapshot;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::width;
use crate::tui::look::theme::Role;
use crate::tui::panels::logmatch::Pattern;
use crate::tui::ui::Ui;
use crate::tui::update::finding;
use crate::tui::{UiCommand, View, layout};
use ratatui::layout::Rect;

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// The next line with it.
    Next,
    /// Only lines with it.
    Only,
}

/// A text that is typed about the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// What it is for.
    pub what: Sought,
    /// What was typed.
    pub field: Field,
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, find: &Find) {
    let row = layout::plan(area, v.ui, v.snap).message;
    let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    let row = if row.height > 0 { row } else { last };
    let prompt = if find.what == Sought::Next { "/" } else { "&" };
    c.clear(row);
    c.pieces(row, 0, &[(prompt, Role::KeyHint), (find.field.text(), Role::Input)]);
    if find.field.is_empty() {
        let about = "small letters find large ones; re: before an expression";
        c.pieces_right(
            Rect { x: row.x + 2, width: row.width.saturating_sub(2), ..row },
            0,
            &[(about, Role::Dim)],
        );
    }
    if let (false, Err(why)) = (find.field.is_empty(), Pattern::new(find.field.text())) {
        let end = (1 + width(find.field.text())) as u16;
        let rest = Rect { x: row.x + end, width: row.width.saturating_sub(end), ..row };
        c.pieces(rest, 0, &[("  ! ", Role::ToastError), (&why, Role::ToastError)]);
    }
    let x = row.x + (1 + width(find.field.before())) as u16;
    c.cursor = Some((x.min(row.right().saturating_sub(1)), row.y, true));
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut find: Find, action: &Action) -> Vec<UiCommand> {
    if *action != Action::Accept {
        find.field.edit(action);
        ui.overlay = Some(Overlay::Find(find));
        return Vec::new();
    }
    let typed = find.field.text();
    let pattern = if typed.is_empty() { Ok(None) } else { Pattern::new(typed).map(Some) };
    match (pattern, find.what) {
        (Ok(pattern), Sought::Next) => finding::search(ui, snap, pattern),
        (Ok(pattern), Sought::Only) => ui.log.only = pattern,
        // Why not stands beside it.
        (Err(_), _) => ui.overlay = Some(Overlay::Find(find)),
    }
    Vec::new()
}
