//! The keys of this screen, from the one table of keys. Typing narrows them, Enter does what the line says.

use super::choose::{Chooser, Chosen, Line, fits};
use super::{Overlay, palette};
use crate::protocol::Snapshot;
use crate::tui::keys::{Action, Mode, Row};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::Ui;
use crate::tui::update::{apply, mode_below};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// The rows that are left, in the order of the table.
fn left<'a>(ui: &'a Ui, mode: Mode, chooser: &Chooser) -> Vec<Row<'a>> {
    let typed = chooser.field.text();
    let all = ui.keys.of(mode).filter(|row| !row.keys.is_empty());
    all.filter(|row| fits(typed, &format!("{} {}", row.shown(), row.binding.about)).is_some()).collect()
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, chooser: &Chooser) {
    let mode = mode_below(v.ui);
    let lines: Vec<Line> = left(v.ui, mode, chooser)
        .iter()
        .map(|row| Line {
            name: row.shown(),
            about: row.binding.about.to_owned(),
            keys: String::new(),
            is_dim: palette::refusal(v.ui, v.snap, &row.binding.action).is_some(),
        })
        .collect();
    chooser.paint(c, area, &format!("Keys: {}", mode.name()), "find ", &lines);
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut chooser: Chooser, action: &Action) -> Vec<UiCommand> {
    let rows = left(ui, mode_below(ui), &chooser);
    match chooser.update(action, rows.len()) {
        Chosen::Row(at) => {
            let chosen = rows.get(at).map(|row| row.binding.action.clone());
            chosen.map_or_else(Vec::new, |action| apply(ui, action, snap))
        }
        Chosen::Stays => {
            ui.overlay = Some(Overlay::Help(chooser));
            Vec::new()
        }
    }
}
