//! Searching in the log that is shown. Pure: the walk itself is the reader's, who is told by [`LogFind`].

use crate::protocol::Snapshot;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::overlay::{Find, Overlay, Sought};
use crate::tui::panels::log;
use crate::tui::panels::logmatch::Pattern;
use crate::tui::shell::logscan::{LogFind, LogFound};
use crate::tui::ui::{Level, Ui};
use crate::tui::update::log_size;

/// Does an action to the log.
pub(super) fn act(ui: &mut Ui, snap: &Snapshot, action: &Action) {
    match action {
        Action::Times => log::change_times(ui),
        Action::Search => ask(ui, Sought::Next),
        Action::Only => ask(ui, Sought::Only),
        action => next(ui, snap, *action == Action::NextMatch),
    }
}

/// Asks for a text.
fn ask(ui: &mut Ui, what: Sought) {
    ui.overlay = Some(Overlay::Find(Find { what, field: Field::default() }));
}

/// Begins a search: from the line at the top on, or from the end back while the end is followed. Nothing typed goes on
/// with the search before.
pub(in crate::tui) fn search(ui: &mut Ui, snap: &Snapshot, pattern: Option<Pattern>) {
    let Some(pattern) = pattern else { return next(ui, snap, true) };
    ui.log.search = Some(pattern);
    ui.log.found = None;
    if ui.log.stopped_at.is_none() {
        let end = ui.log.window.size;
        start(ui, end, false, false);
    } else {
        let (columns, height) = log_size(ui, snap);
        let top = log::top_byte(&ui.log, columns, height);
        start(ui, top, true, true);
    }
}

/// The next match, or the one before.
fn next(ui: &mut Ui, snap: &Snapshot, forward: bool) {
    if ui.log.search.is_none() {
        ui.say(Level::Info, "nothing is searched for: / searches", None);
        return;
    }
    let (columns, height) = log_size(ui, snap);
    let from = ui.log.found.unwrap_or_else(|| log::top_byte(&ui.log, columns, height));
    start(ui, from, forward, false);
}

fn start(ui: &mut Ui, from: u64, forward: bool, inclusive: bool) {
    let Some(pattern) = ui.log.search.clone() else { return };
    ui.log.finds += 1;
    ui.log.searched = 0;
    ui.log.find = Some(LogFind { id: ui.log.finds, pattern, from, inclusive, forward });
}

/// How the search stands.
pub(in crate::tui) fn found(ui: &mut Ui, id: u64, found: LogFound) {
    let Some(find) = ui.log.find.take_if(|find| find.id == id) else { return };
    match found {
        LogFound::Searching(percent) => {
            ui.log.searched = percent;
            ui.log.find = Some(find);
        }
        LogFound::Line(at, wrapped) => {
            log::stop_at(&mut ui.log, at);
            ui.log.found = Some(at);
            if wrapped {
                let end = if find.forward { "beginning" } else { "end" };
                ui.say(Level::Info, format!("the search went on at the {end}"), None);
                if let Some(message) = &mut ui.message {
                    message.fleeting = true;
                }
            }
        }
        LogFound::Nothing => {
            ui.say(Level::Warning, format!("no line of this log has \"{}\"", find.pattern.text()), None);
        }
    }
}

/// Esc: the search under way, then what is searched for, then the filter. Whether there was any.
pub(super) fn give_up(ui: &mut Ui) -> bool {
    ui.log.find.take().is_some() || ui.log.search.take().is_some() || ui.log.only.take().is_some()
}
