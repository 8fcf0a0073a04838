//! Actions change the [`Ui`]. Pure: what is to be said to the scheduler or the shell is returned.

pub(in crate::tui) mod acts;
pub(in crate::tui) mod bulk;
pub(in crate::tui) mod copying;
pub(in crate::tui) mod draft;
pub(in crate::tui) mod editing;
pub(in crate::tui) mod export;
pub(in crate::tui) mod finding;
pub(in crate::tui) mod flows;
pub(in crate::tui) mod marks;
pub(in crate::tui) mod mouse;
mod moving;
pub(in crate::tui) mod pending;
pub(in crate::tui) mod quarantine;
mod tables;
pub(in crate::tui) mod undo;

use crate::model::Now;
use crate::protocol::{Command, Connection, InboxState, Snapshot};
use crate::tui::UiCommand;
use crate::tui::keys::{Action, Mode};
use crate::tui::layout::{self, Pane, main_pane};
use crate::tui::looks;
use crate::tui::overlay::{self, Chooser, Overlay, fix, messages};
use crate::tui::panels::detail;
use crate::tui::panels::life;
use crate::tui::panels::log;
use crate::tui::panels::statusline::{self, Offer};
use crate::tui::panels::{meter, meterscreen};
use crate::tui::rows;
use crate::tui::ui::{Level, Opened, Screen, Tab, Ui};
use crate::tui::view;
use crate::tui::views;
pub(in crate::tui) use moving::step;
use moving::{paging, travel_log};
use ratatui::layout::Rect;

/// What keys mean now.
pub fn mode(ui: &Ui) -> Mode {
    match &ui.overlay {
        // What cannot be seen takes no keys.
        _ if layout::is_too_small(ui) => Mode::Queue,
        Some(overlay) => overlay.mode(),
        None if ui.typing => Mode::Input,
        None => mode_below(ui),
    }
}

/// What keys mean when nothing lies over the screen.
pub(in crate::tui) fn mode_below(ui: &Ui) -> Mode {
    let alone = layout::foremost(ui) == ui.focus;
    match (&ui.opened, ui.focus) {
        (Some(opened), _) if opened.tab == Tab::Log => Mode::Log,
        (Some(_), _) => Mode::Detail,
        (None, Pane::Queue) => Mode::Queue,
        (None, Pane::History) => Mode::History,
        (None, Pane::Log) => Mode::LogPane,
        (None, Pane::Gpus) if alone => Mode::Gpus,
        (None, Pane::Gpus) => Mode::GpusPane,
        (None, Pane::Meter) if alone => Mode::Meter,
        (None, Pane::Meter) => Mode::MeterPane,
        (None, Pane::Inbox) => Mode::Inbox,
        (None, Pane::Job) => Mode::Job,
    }
}

/// Does what an action means.
pub fn update(ui: &mut Ui, action: Action, snap: &Snapshot, now: Now) -> Vec<UiCommand> {
    ui.now = now;
    ui.prefix = None;
    if let Some(message) = &mut ui.message
        && !matches!(action, Action::Open | Action::Escape | Action::Repaint)
    {
        // Whoever does something else has the screen in mind, not the message.
        message.armed = false;
        if message.fleeting {
            ui.hush();
        }
    }
    let out = apply(ui, action, snap);
    rows::settle(ui, snap);
    out
}

/// Does what an action means to what is on top: the overlay, the line that is typed, the screen.
pub(in crate::tui) fn apply(ui: &mut Ui, action: Action, snap: &Snapshot) -> Vec<UiCommand> {
    if layout::is_too_small(ui) {
        match action {
            Action::Back | Action::Interrupt => return vec![UiCommand::Quit],
            Action::Repaint | Action::Suspend => {}
            _ => return Vec::new(),
        }
    }
    match action {
        Action::Escape => return escape(ui),
        Action::Interrupt if ui.overlay.is_some() || ui.typing => return escape(ui),
        Action::Interrupt => return vec![UiCommand::Quit],
        Action::Prefix(c) => {
            ui.prefix = Some(c);
            return Vec::new();
        }
        Action::Repaint => return vec![UiCommand::Repaint],
        Action::Suspend => return vec![UiCommand::Suspend],
        Action::Click(x, y) => return mouse::click(ui, snap, (x, y)),
        Action::Wheel(x, y, down) => return mouse::wheel(ui, snap, (x, y), down),
        _ => {}
    }
    if let Some(overlay) = ui.overlay.take() {
        return overlay::update(ui, snap, overlay, &action);
    }
    if ui.typing {
        typed(ui, &action);
        return Vec::new();
    }
    below(ui, action, snap)
}

/// Does what an action means to the screen.
fn below(ui: &mut Ui, action: Action, snap: &Snapshot) -> Vec<UiCommand> {
    if let Some(out) = tables::act(ui, snap, &action) {
        return out;
    }
    if ui.opened.is_none() && views::act(ui, &action) {
        return Vec::new();
    }
    match action {
        Action::Back => return back(ui),
        Action::Help => ui.overlay = Some(Overlay::Help(Chooser::default())),
        Action::Palette => ui.overlay = Some(Overlay::Palette(Chooser::default())),
        Action::Show(screen) => show(ui, screen),
        Action::NextPane => turn(ui, snap, 1),
        Action::PreviousPane => turn(ui, snap, -1),
        Action::Down
        | Action::Up
        | Action::First
        | Action::Last
        | Action::HalfDown
        | Action::HalfUp
        | Action::PageDown
        | Action::PageUp => travel(ui, snap, &action),
        Action::Left => ui.log.sideways = ui.log.sideways.saturating_sub(8),
        Action::Right => ui.log.sideways = (ui.log.sideways + 8).min(2000),
        Action::Start => return start(ui),
        Action::Open => return open(ui, snap),
        Action::ShowTab(tab) => {
            if let Some(job) = rows::companion(ui) {
                open_job(ui, job, tab);
            }
        }
        Action::NextTab => next_tab(ui, 1),
        Action::PreviousTab => next_tab(ui, Tab::ALL.len() - 1),
        Action::Fix => return fix::ask(ui, snap),
        Action::EditFile => return fix::edit(ui, snap),
        Action::Filter => {
            ui.typing = true;
            ui.before_filter = ui.cursors();
        }
        Action::Undo => return undo::newest(ui, snap),
        Action::UndoList => return flows::undo_list(ui),
        Action::New => return flows::new_job(ui),
        Action::Log => open_log(ui, snap),
        Action::Follow | Action::Hold if ui.log.stopped_at.is_some() => ui.log.stopped_at = None,
        Action::Follow | Action::Hold => hold(ui, snap),
        Action::Wrap => (ui.log.wrap, ui.log.sideways) = (!ui.log.wrap, 0),
        Action::Times | Action::Search | Action::Only | Action::NextMatch | Action::PreviousMatch => {
            finding::act(ui, snap, &action);
        }
        Action::Freeze => freeze(ui, snap),
        Action::Refresh => return vec![UiCommand::Refresh, send(Command::Rescan)],
        Action::Thrift => thrift(ui),
        Action::Clear => quarantine::ask(ui, snap),
        Action::Unknown(key) => unknown(ui, &key),
        action if acts::is_about_jobs(&action) => return acts::act(ui, snap, &action),
        // Of overlays and texts, done above, or chosen by name where there is no view.
        action => {
            if let Some(why) = views::refusal(ui, &action) {
                ui.say(Level::Warning, why, None);
            }
        }
    }
    Vec::new()
}

/// There is no scheduler, and there can be one.
pub(in crate::tui) const fn can_start(ui: &Ui) -> bool {
    ui.can_start && matches!(ui.connection, Connection::Lost { .. })
}

fn start(ui: &mut Ui) -> Vec<UiCommand> {
    if can_start(ui) {
        ui.say(Level::Info, "starting the scheduler, with the GPUs of config.toml", None);
        return vec![UiCommand::Start];
    }
    let why = if ui.connected() { "the scheduler runs" } else { "the scheduler cannot be started from here" };
    ui.say(Level::Info, why, None);
    Vec::new()
}

/// A key without a meaning here: where it has one is said, if there is such a place.
fn unknown(ui: &mut Ui, key: &str) {
    let help = ui.keys.way(&Action::Help);
    let place =
        ui.keys.elsewhere(key).map_or_else(String::new, |(place, about)| format!(" ({place}: {about})"));
    ui.say(Level::Info, format!("{key} does nothing here{place}; {help} shows the keys"), None);
}

const fn send(command: Command) -> UiCommand {
    UiCommand::Send { job: None, command }
}

/// One level back; at the root, out.
fn back(ui: &mut Ui) -> Vec<UiCommand> {
    if leave(ui) || std::mem::take(&mut ui.zoom) {
        return Vec::new();
    }
    editing::give_up(ui).unwrap_or_else(|| vec![UiCommand::Quit])
}

/// Closes the opened job, if one is; what was left out of its log is there again, for the line that shows its end.
fn leave(ui: &mut Ui) -> bool {
    let was = ui.opened.take().is_some();
    if was {
        ui.log.only = None;
    }
    was
}

/// Popup, then the message, then what is opened, then the filter, then marks. Never out.
fn escape(ui: &mut Ui) -> Vec<UiCommand> {
    if let Some(overlay) = ui.overlay.take() {
        return overlay::closed(ui, overlay);
    }
    if ui.typing {
        ui.typing = false;
        ui.filters.of_mut(layout::filtered(ui)).clear();
        let before = std::mem::take(&mut ui.before_filter);
        ui.put_cursors(before);
    } else if ui.hush()
        || matches!(mode_below(ui), Mode::Log | Mode::LogPane | Mode::Detail) && finding::give_up(ui)
        || leave(ui)
    {
        // One thing a press.
    } else if !ui.filters.of(layout::filtered(ui)).is_empty() {
        ui.filters.of_mut(layout::filtered(ui)).clear();
    } else if !ui.marks.is_empty() {
        ui.marks.clear();
    } else {
        ui.zoom = false;
    }
    Vec::new()
}

fn thrift(ui: &mut Ui) {
    ui.thrift = !ui.thrift;
    let text = if ui.thrift {
        "low bandwidth: 16 colours, timers in minutes, GPU figures every 5 s, logs once a second"
    } else {
        "low bandwidth is off"
    };
    ui.say(Level::Info, text, None);
}

/// The display stops, or goes on with everything that came meanwhile.
fn freeze(ui: &mut Ui, snap: &Snapshot) {
    if ui.frozen.take().is_none() {
        ui.frozen = Some((ui.now, Box::new(snap.clone())));
    } else if let Some(window) = ui.log_behind.take() {
        ui.log.window = *window;
    }
}

fn show(ui: &mut Ui, screen: Screen) {
    ui.screen = screen;
    leave(ui);
    ui.zoom = false;
    ui.focus = main_pane(ui);
}

/// The next pane; the next tab of a job; the next screen where a screen has one pane.
fn turn(ui: &mut Ui, snap: &Snapshot, by: isize) {
    if ui.opened.is_some() {
        next_tab(ui, if by > 0 { 1 } else { Tab::ALL.len() - 1 });
        return;
    }
    let zoom = std::mem::take(&mut ui.zoom);
    let order = plan(ui, snap).order();
    ui.zoom = zoom;
    if order.len() > 1 {
        let at = order.iter().position(|pane| *pane == ui.focus).unwrap_or(0);
        if let Some(pane) = order.get(wrapped(at, by, order.len())) {
            ui.focus = *pane;
        }
        return;
    }
    let at = Screen::ALL.iter().position(|screen| *screen == ui.screen).unwrap_or(0);
    show(ui, Screen::ALL[wrapped(at, by, Screen::ALL.len())]);
}

const fn wrapped(at: usize, by: isize, len: usize) -> usize {
    (at as isize + by).rem_euclid(len as isize) as usize
}

fn next_tab(ui: &mut Ui, by: usize) {
    // The pane of a job is its first tab: the next one has the whole screen.
    if ui.opened.is_none()
        && ui.focus == Pane::Job
        && let Some(job) = rows::companion(ui)
    {
        open_job(ui, job, Tab::Summary);
    }
    if let Some(opened) = &mut ui.opened {
        let at = Tab::ALL.iter().position(|tab| *tab == opened.tab).unwrap_or(0);
        opened.tab = Tab::ALL[(at + by) % Tab::ALL.len()];
        opened.scroll = 0;
    }
}

fn plan(ui: &Ui, snap: &Snapshot) -> layout::Layout {
    layout::plan(Rect::new(0, 0, ui.size.0, ui.size.1), ui, ui.shown(snap))
}

/// What the message row offers, as long as it says so; else what is selected.
fn open(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if !ui.known && can_start(ui) {
        return start(ui);
    }
    let job = match statusline::offered(&view(ui, snap), &plan(ui, snap)) {
        Some(Offer::Job(job)) => {
            ui.hush();
            Some(job)
        }
        Some(Offer::Details) => {
            messages::details(ui, snap);
            return Vec::new();
        }
        None => rows::selected(ui, ui.shown(snap)),
    };
    if let Some(job) = job {
        open_job(ui, job, Tab::Summary);
        return Vec::new();
    }
    let shown = ui.shown(snap);
    let file = shown.inbox.iter().find(|row| Some(&row.name) == ui.file.as_ref());
    let refused = file.is_some_and(|row| matches!(row.state, InboxState::Refused { .. }));
    match (ui.screen, ui.focus) {
        (Screen::Inbox, _) if refused => {
            let edit = ui.keys.way(&Action::EditFile);
            let text = format!("{edit} edits the file where it lies; it is read again when it is saved");
            ui.say(Level::Info, text, None);
        }
        (_, Pane::Inbox) => show(ui, Screen::Inbox),
        _ => ui.say(Level::Info, "nothing to open here", None),
    }
    Vec::new()
}

fn open_job(ui: &mut Ui, job: crate::model::JobId, tab: Tab) {
    ui.opened = Some(Opened { job, tab, scroll: 0 });
    ui.log.sideways = 0;
}

fn open_log(ui: &mut Ui, snap: &Snapshot) {
    match rows::selected(ui, ui.shown(snap)) {
        Some(job) => {
            if ui.opened.is_none() {
                ui.log.stopped_at = None;
            }
            open_job(ui, job, Tab::Log);
        }
        None => ui.say(Level::Warning, "no job is selected", None),
    }
}

/// The columns and rows of the tab that is open.
pub(in crate::tui) fn tab_size(ui: &Ui, snap: &Snapshot) -> (usize, usize) {
    plan(ui, snap).inner(Pane::Job).map_or((80, 20), |area| (area.width.into(), area.height.into()))
}

pub(in crate::tui) fn log_size(ui: &Ui, snap: &Snapshot) -> (usize, usize) {
    plan(ui, snap).inner(Pane::Log).map_or((80, 20), |area| (area.width.into(), area.height.into()))
}

fn hold(ui: &mut Ui, snap: &Snapshot) {
    let (columns, height) = log_size(ui, snap);
    log::hold(&mut ui.log, columns, height);
}

/// Moves in the pane that has the focus.
fn travel(ui: &mut Ui, snap: &Snapshot, action: &Action) {
    let layout = plan(ui, snap);
    let pane = if ui.opened.is_some() { main_pane(ui) } else { ui.focus };
    let height = layout.rows(pane).max(1);
    match pane {
        Pane::Log => travel_log(ui, snap, action),
        Pane::Inbox if paging(action) && ui.screen == Screen::Inbox => {
            let at = step(ui.top(Pane::Job), 1000, height.max(4), action);
            ui.tops.insert(Pane::Job, at);
        }
        Pane::Queue | Pane::History | Pane::Gpus | Pane::Inbox => {
            ui.tables.moved_at = ui.now.boottime_ms.max(1);
            ui.moved.insert(pane);
            let frozen = ui.frozen.take();
            let shown = frozen.as_ref().map_or(snap, |(_, frozen)| frozen);
            let (count, to) =
                rows::go(ui, shown, pane, |_, count, at| step(at.unwrap_or(0), count, height, action));
            ui.tops.insert(Pane::Job, 0);
            if pane == Pane::History && to + 1 >= count && looks::further(ui, shown) {
                ui.say(Level::Info, "asking for jobs further back", None);
            }
            ui.frozen = frozen;
        }
        Pane::Meter | Pane::Job => {
            let v = view(ui, snap);
            let area = layout.inner(pane).unwrap_or_default();
            let (count, at) = match (&ui.opened, pane) {
                (Some(opened), _) => {
                    let lines = detail::texts(&v, opened, area.width.into());
                    (lines.map_or(0, |lines| lines.len()), opened.scroll)
                }
                (None, Pane::Meter) if layout.panes.len() == 1 => {
                    (meterscreen::count(&v, area), ui.top(Pane::Meter))
                }
                (None, Pane::Meter) => (meter::count(&v, area), ui.top(Pane::Meter)),
                (None, _) => {
                    let row = rows::companion(ui).and_then(|job| v.find(job));
                    let count = row.map_or(0, |row| life::lines(&v, row, area.width.into()).len());
                    (count, ui.top(Pane::Job))
                }
            };
            let to = step(at, (count + 1).saturating_sub(height).max(1), height, action);
            match &mut ui.opened {
                Some(opened) => opened.scroll = to,
                None => {
                    ui.tops.insert(pane, to);
                }
            }
        }
    }
}

/// The filter is being typed: rows narrow at once.
fn typed(ui: &mut Ui, action: &Action) {
    let pane = layout::filtered(ui);
    if *action == Action::Accept {
        // One that cannot be read stays open, with why not beside it.
        ui.typing = ui.filters.of(pane).error().is_some();
        return;
    }
    ui.filters.of_mut(pane).edit(action);
    // A cursor whose row is hidden goes to the first match.
    for pane in [Pane::Queue, Pane::History, pane] {
        ui.at.insert(pane, 0);
    }
}
