//! The keys of this screen, then all others, from the one table of keys. Typing narrows them, Enter does what the line says.

use super::choose::{Chooser, Chosen, Line, fits};
use super::{Overlay, palette};
use crate::protocol::Snapshot;
use crate::tui::keys::{Action, BASE, Mode, Row};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::{apply, mode_below};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// The rows that are left, in the order of the table: those of this screen, then those of other places.
fn left<'a>(ui: &'a Ui, mode: Mode, chooser: &Chooser) -> Vec<Row<'a>> {
    let typed = chooser.field.text();
    let here = ui.keys.of(mode);
    let elsewhere = ui.keys.rows().filter(|row| !row.binding.modes.has(mode));
    let all = here.chain(elsewhere).filter(|row| !row.keys.is_empty());
    all.filter(|row| fits(typed, &format!("{} {}", row.shown(), row.binding.about)).is_some()).collect()
}

/// Where a key of another place means something.
fn place(row: &Row<'_>) -> &'static str {
    Mode::ALL.iter().find(|mode| row.binding.modes.has(**mode)).map_or("", |mode| mode.name())
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, chooser: &Chooser) {
    let mode = mode_below(v.ui);
    let lines: Vec<Line> = left(v.ui, mode, chooser)
        .iter()
        .map(|row| {
            let here = row.binding.modes.has(mode);
            let refused = palette::refusal(v, &row.binding.action).is_some();
            Line {
                name: row.shown(),
                about: row.binding.about.to_owned(),
                keys: if here { "" } else { place(row) }.to_owned(),
                is_dim: !here || refused,
            }
        })
        .collect();
    chooser.paint(c, area, &format!("Keys: {}", mode.name()), "find ", &lines);
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut chooser: Chooser, action: &Action) -> Vec<UiCommand> {
    let rows = left(ui, mode_below(ui), &chooser);
    match chooser.update(action, rows.len()) {
        Chosen::Row(at) => {
            let Some(row) = rows.get(at) else { return Vec::new() };
            let action = row.binding.action.clone();
            if !row.binding.modes.meets(BASE) {
                let text = format!("{} works in a {}: {}", row.first(), place(row), row.binding.about);
                ui.say(Level::Info, text, None);
                return Vec::new();
            }
            apply(ui, action, snap)
        }
        Chosen::Stays => {
            ui.overlay = Some(Overlay::Help(chooser));
            Vec::new()
        }
    }
}
