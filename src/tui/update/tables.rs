//! What is done to the way things are shown: orders, groups, columns, marks, one pane alone, settings. Pure.

use super::{export, marks, travel};
use crate::protocol::Snapshot;
use crate::tui::UiCommand;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::overlay::{Columns, Menu, Overlay, Settings};
use crate::tui::panels::columns::most_sideways;
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};

/// Does such an action; `None` if it is another one.
pub(super) fn act(ui: &mut Ui, snap: &Snapshot, action: &Action) -> Option<Vec<UiCommand>> {
    match action {
        Action::Left | Action::Right
            if matches!(ui.focus, Pane::Queue | Pane::History) && ui.opened.is_none() =>
        {
            let table = ui.tables.of_mut(ui.focus);
            let most = most_sideways(&table.columns);
            let to =
                if *action == Action::Left { table.sideways.saturating_sub(1) } else { table.sideways + 1 };
            table.sideways = to.min(most);
        }
        Action::Mine => ui.mine = !ui.mine,
        Action::Zoom => zoom(ui),
        Action::Sort => ui.overlay = Some(Overlay::Menu(Menu::sort(ui))),
        Action::SortBy(pane, key) => ui.tables.of_mut(*pane).sort(*key),
        Action::Group => {
            let group = ui.tables.regroup(ui.focus);
            ui.say(Level::Info, format!("grouped by {}", group.name()), None);
        }
        Action::Columns => ui.overlay = Some(Overlay::Columns(Columns::of(ui))),
        Action::Mark => {
            marks::toggle(ui, snap);
            travel(ui, snap, &Action::Down);
        }
        Action::MarkAll => marks::all(ui, snap),
        Action::Mouse => {
            ui.mouse = !ui.mouse;
            let text = if ui.mouse { "mouse on; Shift-drag selects text" } else { "mouse off" };
            ui.say(Level::Info, text, None);
        }
        Action::Settings => {
            ui.overlay = Some(Overlay::Settings(Settings::of(ui)));
            return Some(vec![UiCommand::Themes]);
        }
        Action::Messages => ui.overlay = Some(Overlay::Messages(0)),
        Action::Export => return Some(export::history(ui, snap)),
        Action::Panic => return Some(vec![UiCommand::Panic]),
        Action::Select(pane, row) => {
            ui.focus = *pane;
            ui.moved.insert(*pane);
            ui.tables.moved_at = ui.now.boottime_ms;
            let shown = ui.shown(snap).clone();
            rows::select(ui, &shown, *pane, *row);
            ui.tops.insert(Pane::Job, 0);
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// One pane has the whole screen, or its share again.
fn zoom(ui: &mut Ui) {
    ui.zoom = !ui.zoom && ui.opened.is_none();
    if ui.opened.is_some() {
        ui.say(Level::Info, "a job that is opened has the whole screen", None);
    }
}
