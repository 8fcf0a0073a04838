//! Every action by its name, with its key beside it. Enter does it, wherever one is.

use super::choose::{Chooser, Chosen, Line, fits};
use super::{Overlay, fix};
use crate::protocol::Snapshot;
use crate::tui::keys::{Action, Row};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::Ui;
use crate::tui::update::{acts, apply, quarantine};
use crate::tui::{UiCommand, View, rows, views};
use ratatui::layout::Rect;
use std::cmp::Reverse;

/// Why an action cannot be done now; `None` if it can.
pub(in crate::tui) fn refusal(v: &View<'_>, action: &Action) -> Option<String> {
    let (ui, snap) = (v.ui, v.snap);
    match action {
        Action::Clear => quarantine::refusal(ui, snap),
        Action::Fix => fix::refusal(ui, snap),
        Action::EditFile => fix::no_file(ui, snap),
        Action::Range | Action::ZoomIn | Action::ZoomOut | Action::ToNow => views::refusal(ui, action),
        action => {
            let job = rows::selected(ui, snap);
            let row = job.and_then(|job| v.find(job));
            acts::refusal(ui, row, action)
        }
    }
}

/// The actions that are left, the best first.
fn left<'a>(ui: &'a Ui, chooser: &Chooser) -> Vec<Row<'a>> {
    let typed = chooser.field.text();
    let named = ui.keys.rows().filter(|row| !row.binding.id.is_empty() && row.binding.id != "palette");
    let mut found: Vec<(u32, Row<'_>)> = named
        .filter_map(|row| {
            let by_name = fits(typed, row.binding.id).map(|score| score + 2);
            let by_words = fits(typed, row.binding.about);
            Some((by_name.max(by_words)?, row))
        })
        .collect();
    found.sort_by_key(|(score, _)| Reverse(*score));
    found.into_iter().map(|(_, row)| row).collect()
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, chooser: &Chooser) {
    let lines: Vec<Line> = left(v.ui, chooser)
        .iter()
        .map(|row| {
            let refused = refusal(v, &row.binding.action);
            Line {
                name: row.binding.id.to_owned(),
                is_dim: refused.is_some(),
                // Why it cannot be done says more than what it would do.
                about: refused.unwrap_or_else(|| row.binding.about.to_owned()),
                keys: row.first(),
            }
        })
        .collect();
    chooser.paint(c, area, "Actions", ":", &lines);
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut chooser: Chooser, action: &Action) -> Vec<UiCommand> {
    let rows = left(ui, &chooser);
    match chooser.update(action, rows.len()) {
        Chosen::Row(at) => {
            let chosen = rows.get(at).map(|row| row.binding.action.clone());
            chosen.map_or_else(Vec::new, |action| apply(ui, action, snap))
        }
        Chosen::Stays => {
            ui.overlay = Some(Overlay::Palette(chooser));
            Vec::new()
        }
    }
}
