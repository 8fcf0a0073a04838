//! What lies over the screen; one at a time.
//!
//! Each kind has a file with its state, `paint` and `update`. A new one is a variant of [`Overlay`] and an arm in each of the
//! three functions below. `update` takes the state out of the [`Ui`]: what is to stay open is put back.

pub(in crate::tui) mod bulk;
pub(in crate::tui) mod choose;
pub(in crate::tui) mod columns;
pub(in crate::tui) mod confirm;
pub(in crate::tui) mod find;
pub(in crate::tui) mod fix;
pub(in crate::tui) mod help;
pub(in crate::tui) mod menu;
pub(in crate::tui) mod messages;
pub(in crate::tui) mod palette;
pub(in crate::tui) mod settings;

use crate::protocol::Snapshot;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::Ui;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

pub use bulk::Bulk;
pub use choose::Chooser;
pub use columns::Columns;
pub use confirm::{Button, Clear, Confirm};
pub use find::{Find, Sought};
pub use fix::{Fix, Mended};
pub use menu::Menu;
pub use settings::Settings;

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The keys of this screen.
    Help(Chooser),
    /// Every action by its name.
    Palette(Chooser),
    /// The question before a cancel.
    Confirm(Confirm),
    /// The question before a quarantine is lifted.
    Clear(Clear),
    /// The question before several jobs are cancelled, or somebody else's.
    Bulk(Bulk),
    /// A menu of letters.
    Menu(Menu),
    /// The queue's columns.
    Columns(Columns),
    /// How the dashboard looks.
    Settings(Settings),
    /// What was said, so many lines scrolled down.
    Messages(usize),
    /// A search in the log, or a filter of it, is typed.
    Find(Find),
    /// The question before a job file is mended.
    Fix(Fix),
}

impl Overlay {
    /// What keys mean while it is there.
    pub(in crate::tui) const fn mode(&self) -> Mode {
        match self {
            Self::Help(_) | Self::Palette(_) => Mode::Choose,
            Self::Confirm(_) | Self::Clear(_) | Self::Fix(_) => Mode::Dialog,
            Self::Bulk(bulk) => bulk.mode(),
            Self::Menu(_) => Mode::Menu,
            Self::Columns(_) | Self::Settings(_) | Self::Messages(_) => Mode::Picker,
            Self::Find(_) => Mode::Input,
        }
    }
}

/// Draws it.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, overlay: &Overlay) {
    match overlay {
        Overlay::Help(chooser) => help::paint(c, v, area, chooser),
        Overlay::Palette(chooser) => palette::paint(c, v, area, chooser),
        Overlay::Confirm(confirm) => confirm::paint(c, v, area, confirm),
        Overlay::Clear(clear) => confirm::paint_clear(c, v, area, clear),
        Overlay::Bulk(bulk) => bulk::paint(c, v, area, bulk),
        Overlay::Menu(menu) => menu::paint(c, v, area, menu),
        Overlay::Columns(columns) => columns::paint(c, v, area, *columns),
        Overlay::Settings(settings) => settings::paint(c, v, area, settings),
        Overlay::Messages(scroll) => messages::paint(c, v, area, *scroll),
        Overlay::Find(find) => find::paint(c, v, area, find),
        Overlay::Fix(it) => fix::paint(c, v, area, it),
    }
}

/// Does what an action means to it. Closing it by [`Action::Escape`] is the caller's.
pub(in crate::tui) fn update(
    ui: &mut Ui,
    snap: &Snapshot,
    overlay: Overlay,
    action: &Action,
) -> Vec<UiCommand> {
    match overlay {
        Overlay::Help(chooser) => help::update(ui, snap, chooser, action),
        Overlay::Palette(chooser) => palette::update(ui, snap, chooser, action),
        Overlay::Confirm(confirm) => confirm::update(ui, snap, confirm, action),
        Overlay::Clear(clear) => confirm::update_clear(ui, snap, clear, action),
        Overlay::Bulk(bulk) => bulk::update(ui, snap, bulk, action),
        Overlay::Menu(menu) => menu::update(ui, snap, menu, action),
        Overlay::Columns(columns) => columns::update(ui, columns, action),
        Overlay::Settings(settings) => settings::update(ui, settings, action),
        Overlay::Messages(scroll) => messages::update(ui, scroll, action),
        Overlay::Find(find) => find::update(ui, snap, find, action),
        Overlay::Fix(it) => fix::update(ui, it, action),
    }
}

/// What is to be done when it was closed by [`Action::Escape`].
pub(in crate::tui) fn closed(ui: &mut Ui, overlay: Overlay) -> Vec<UiCommand> {
    match overlay {
        Overlay::Settings(settings) => settings::revert(ui, &settings),
        _ => Vec::new(),
    }
}

/// The middle of an area.
pub(in crate::tui) fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
