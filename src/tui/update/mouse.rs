//! The mouse, where it is on: a click does what is drawn there, the wheel moves what is under it. Pure.

use super::{apply, plan};
use crate::protocol::Snapshot;
use crate::tui::keys::Action;
use crate::tui::layout::main_pane;
use crate::tui::ui::Ui;
use crate::tui::{UiCommand, hit};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// Rows a notch of the wheel moves by.
const NOTCH: usize = 3;

/// What a pointer does, where one is told of.
pub(in crate::tui) const fn pointed(mouse: MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Action::Click(mouse.column, mouse.row)),
        MouseEventKind::ScrollDown => Some(Action::Wheel(mouse.column, mouse.row, true)),
        MouseEventKind::ScrollUp => Some(Action::Wheel(mouse.column, mouse.row, false)),
        _ => None,
    }
}

/// Does what is drawn there; else the pane there has the focus.
pub(super) fn click(ui: &mut Ui, snap: &Snapshot, at: (u16, u16)) -> Vec<UiCommand> {
    if let Some(action) = hit(ui, snap, at) {
        return apply(ui, action, snap);
    }
    focus(ui, snap, at);
    Vec::new()
}

/// Moves in the pane under the pointer, which has the focus then.
pub(super) fn wheel(ui: &mut Ui, snap: &Snapshot, at: (u16, u16), down: bool) -> Vec<UiCommand> {
    let action = if down { Action::Down } else { Action::Up };
    if ui.overlay.is_none() && (ui.typing || !focus(ui, snap, at)) {
        return Vec::new();
    }
    let times = if ui.overlay.is_some() { 1 } else { NOTCH };
    (0..times).flat_map(|_| apply(ui, action.clone(), snap)).collect()
}

fn focus(ui: &mut Ui, snap: &Snapshot, at: (u16, u16)) -> bool {
    if ui.overlay.is_some() || ui.typing {
        return false;
    }
    let layout = plan(ui, snap);
    let pane = layout.panes.iter().find(|(_, rect, _)| rect.contains(at.into())).map(|(pane, _, _)| *pane);
    if let Some(pane) = pane {
        ui.focus = if ui.opened.is_some() { main_pane(ui) } else { pane };
    }
    pane.is_some()
}
