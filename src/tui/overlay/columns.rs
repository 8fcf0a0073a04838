//! The columns of the queue or of the history: switched on and off, and moved. What is chosen holds until the dashboard
//! is closed; the words that make it last are said.

use super::{Overlay, middle};
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::left;
use crate::tui::look::theme::Role;
use crate::tui::panels::columns::{Column, defaults, find, most_sideways, written};
use crate::tui::ui::{Level, Ui};
use crate::tui::update::step;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// Of which table, and where the cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The pane with the table.
    pub pane: Pane,
    /// The row under it.
    pub at: usize,
    /// The columns as they were.
    was: Vec<(Column, bool)>,
}

impl Columns {
    /// The columns of the pane that has the focus.
    pub(in crate::tui) fn of(ui: &Ui) -> Self {
        let pane = if ui.focus == Pane::History { Pane::History } else { Pane::Queue };
        Self { pane, at: 0, was: ui.tables.of(pane).columns.clone() }
    }
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: &Columns) {
    let columns = &v.ui.tables.of(it.pane).columns;
    let popup = middle(area, 62, columns.len() as u16 + 2);
    c.clear(popup);
    let title = if it.pane == Pane::History { "Columns of the history" } else { "Columns of the queue" };
    let foot = [("Space on/off  J K move  Enter keep  Esc as before", Role::Dim)];
    let inner = c.frame(popup, &[(title, Role::Title)], &foot, true);
    let height = usize::from(inner.height);
    let top = crate::tui::rows::scrolled(0, it.at, height, columns.len());
    for (row, (column, on)) in columns.iter().enumerate().skip(top).take(height) {
        let y = (row - top) as u16;
        let Some(spec) = find(it.pane, *column) else { continue };
        let cursor = if row == it.at { ">" } else { " " };
        let mark = if *on || *column == Column::Name { "[x] " } else { "[ ] " };
        let head = left(spec.head.trim(), 13);
        c.pieces(
            inner,
            y,
            &[(cursor, Role::Text), (mark, Role::KeyHint), (&head, Role::Text), (spec.about, Role::Dim)],
        );
        if row == it.at {
            c.cursor_row(inner, y);
        }
    }
}

/// Everything as it was.
pub(super) fn revert(ui: &mut Ui, was: Columns) {
    ui.tables.of_mut(was.pane).columns = was.was;
}

pub(super) fn update(ui: &mut Ui, mut it: Columns, action: &Action) -> Vec<UiCommand> {
    let table = ui.tables.of_mut(it.pane);
    let columns = &mut table.columns;
    let last = columns.len().saturating_sub(1);
    it.at = it.at.min(last);
    match action {
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
        Action::Accept => {
            if ui.tables.of(it.pane).columns != defaults(it.pane) {
                let line = written(it.pane, &ui.tables.of(it.pane).columns);
                ui.say(Level::Info, format!("for this session; for good, [ui] in config.toml: {line}"), None);
            }
            return Vec::new();
        }
        action => it.at = step(it.at, last + 1, usize::from(ui.size.1).saturating_sub(2), action),
    }
    table.sideways = table.sideways.min(most_sideways(&table.columns));
    ui.overlay = Some(Overlay::Columns(it));
    Vec::new()
}
