//! Searching in the log that is shown. Pure: the walk itself is the reader's, who is told by [`LogFind`].

use crate::protocol::Snapshot;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::overlay::{Find, Overlay, Sought};
use crate::tui::panels::detail;
use crate::tui::panels::log;
use crate::tui::panels::logmatch::Pattern;
use crate::tui::shell::log::{LogFind, LogFound};
use crate::tui::ui::{Level, Tab, Ui};
use crate::tui::update::{log_size, tab_size};
use crate::tui::view;

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
    if in_tab(ui) {
        return seek(ui, snap, true, true);
    }
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
        let search = ui.keys.way(&Action::Search);
        ui.say(Level::Info, format!("nothing is searched for: {search} searches"), None);
        return;
    }
    if in_tab(ui) {
        return seek(ui, snap, forward, false);
    }
    let (columns, height) = log_size(ui, snap);
    let from = ui.log.found.unwrap_or_else(|| log::top_byte(&ui.log, columns, height));
    start(ui, from, forward, false);
}

/// Whether a tab that is text has the keys.
fn in_tab(ui: &Ui) -> bool {
    ui.opened.as_ref().is_some_and(|opened| opened.tab != Tab::Log)
}

/// The next line of an opened tab that has what is searched for, around its end.
fn seek(ui: &mut Ui, snap: &Snapshot, forward: bool, inclusive: bool) {
    let (columns, _) = tab_size(ui, snap);
    let (Some(pattern), Some(opened)) = (&ui.log.search, &ui.opened) else { return };
    let lines = detail::texts(&view(ui, snap), opened, columns).unwrap_or_default();
    let count = lines.len();
    let here = opened.scroll.min(count.saturating_sub(1));
    let steps = usize::from(!inclusive)..count + usize::from(!inclusive);
    let at =
        |step: usize| if forward { (here + step) % count } else { (here + count - step % count) % count };
    let found = steps.map(at).find(|at| lines.get(*at).is_some_and(|(text, _)| pattern.is_match(text)));
    let Some(found) = found else {
        let text = format!("no line of this tab has \"{}\"", pattern.text());
        return ui.say(Level::Warning, text, None);
    };
    if if forward { found < here } else { found > here } {
        let end = if forward { "beginning" } else { "end" };
        ui.say(Level::Info, format!("the search went on at the {end}"), None);
    }
    if let Some(opened) = &mut ui.opened {
        opened.scroll = found;
    }
}

fn start(ui: &mut Ui, from: u64, forward: bool, inclusive: bool) {
    let Some(pattern) = ui.log.search.clone() else { return };
    ui.log.finds += 1;
    ui.log.searched = 0;
    let only = ui.log.only.clone();
    ui.log.find = Some(LogFind { id: ui.log.finds, pattern, only, from, inclusive, forward });
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
