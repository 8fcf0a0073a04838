//! The queue's columns: switched on and off, and moved. What is chosen holds until the dashboard is closed.

use super::{Overlay, middle};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::left;
use crate::tui::look::theme::Role;
use crate::tui::panels::columns::{Column, most_sideways};
use crate::tui::ui::Ui;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    /// The row under it.
    pub at: usize,
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: Columns) {
    let columns = &v.ui.tables.columns;
    let popup = middle(area, 62, columns.len() as u16 + 2);
    c.clear(popup);
    let foot = [("Space on/off  J K move  for this session", Role::Dim)];
    let inner = c.frame(popup, &[("Columns of the queue", Role::Title)], &foot, true);
    let height = usize::from(inner.height);
    let top = crate::tui::rows::scrolled(0, it.at, height, columns.len());
    for (row, (column, on)) in columns.iter().enumerate().skip(top).take(height) {
        let y = (row - top) as u16;
        let spec = column.spec();
        let mark = if *on || *column == Column::Name { " [x] " } else { " [ ] " };
        let head = left(spec.head.trim(), 13);
        c.pieces(inner, y, &[(mark, Role::KeyHint), (&head, Role::Text), (spec.about, Role::Dim)]);
        if row == it.at {
            c.cursor_row(inner, y);
        }
    }
}

pub(super) fn update(ui: &mut Ui, mut it: Columns, action: &Action) -> Vec<UiCommand> {
    let columns = &mut ui.tables.columns;
    let last = columns.len().saturating_sub(1);
    it.at = it.at.min(last);
    match action {
        Action::Down => it.at = (it.at + 1).min(last),
        Action::Up => it.at = it.at.saturating_sub(1),
        Action::Mark => {
            // The name is what a row is known by.
            if let Some((column, on)) = columns.get_mut(it.at)
                && *column != Column::Name
            {
                *on = !*on;
            }
        }
        Action::PlaceDown if it.at < last => {
            columns.swap(it.at, it.at + 1);
            it.at += 1;
        }
        Action::PlaceUp if it.at > 0 => {
            columns.swap(it.at, it.at - 1);
            it.at -= 1;
        }
        Action::Accept => return Vec::new(),
        _ => {}
    }
    ui.tables.queue.sideways = ui.tables.queue.sideways.min(most_sideways(&ui.tables.columns));
    ui.overlay = Some(Overlay::Columns(it));
    Vec::new()
}
