//! What lies over the screen; one at a time.
//!
//! Each kind has a file with its state, `paint` and `update`. A new one is a variant of [`Overlay`] and an arm in each of the
//! functions below. `update` takes the state out of the [`Ui`]: what is to stay open is put back.

pub(in crate::tui) mod bulk;
pub(in crate::tui) mod choose;
pub(in crate::tui) mod columns;
pub(in crate::tui) mod confirm;
mod copy;
mod diff;
pub(in crate::tui) mod editor;
pub(in crate::tui) mod find;
pub(in crate::tui) mod fix;
pub(in crate::tui) mod help;
pub(in crate::tui) mod menu;
pub(in crate::tui) mod messages;
pub(in crate::tui) mod palette;
pub(in crate::tui) mod picker;
pub(in crate::tui) mod quick;
pub(in crate::tui) mod retry;
pub(in crate::tui) mod review;
pub(in crate::tui) mod settings;
mod undo;
pub(in crate::tui) mod verdict;

use crate::protocol::Snapshot;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::Ui;
use crate::tui::update::editing;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

pub use bulk::Bulk;
pub use choose::Chooser;
pub use columns::Columns;
pub use confirm::{Button, Clear, Confirm};
pub use copy::CopyMenu;
pub use diff::{Diff, Wrong};
pub use editor::Editor;
pub use find::{Find, Sought};
pub use fix::{Fix, Mended};
pub use menu::Menu;
pub use picker::Picker;
pub use quick::Quick;
pub use retry::Retry;
pub use review::Review;
pub use settings::Settings;
pub use undo::UndoList;

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq)]
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
    /// Where a new job starts.
    Picker(Box<Picker>),
    /// What is about to be submitted.
    Review(Box<Review>),
    /// What is about to be retried.
    Retry(Retry),
    /// What an edit changes.
    Diff(Box<Diff>),
    /// What is wrong with an edit.
    Wrong(Box<Wrong>),
    /// A text, where there is no editor.
    Editor(Box<Editor>),
    /// Four fields of a request.
    Quick(Box<Quick>),
    /// What can be undone.
    Undo(Box<UndoList>),
    /// What of a job to copy.
    Copy(CopyMenu),
}

impl Overlay {
    /// It shows its own keys.
    pub(in crate::tui) const fn has_keys(&self) -> bool {
        !matches!(self, Self::Help(_) | Self::Palette(_) | Self::Confirm(_) | Self::Clear(_))
    }

    pub(in crate::tui) const fn is_picker(&self) -> bool {
        matches!(self, Self::Picker(_))
    }

    /// What keys mean while it is there.
    pub(in crate::tui) const fn mode(&self) -> Mode {
        match self {
            Self::Help(_) | Self::Palette(_) => Mode::Choose,
            Self::Confirm(_) | Self::Clear(_) | Self::Fix(_) | Self::Diff(_) | Self::Wrong(_) => Mode::Dialog,
            Self::Picker(_) | Self::Quick(_) => Mode::Form,
            Self::Review(review) => review.mode(),
            Self::Bulk(bulk) => bulk.mode(),
            Self::Menu(_) | Self::Copy(_) | Self::Retry(_) => Mode::Menu,
            Self::Columns(_) | Self::Settings(_) | Self::Messages(_) | Self::Undo(_) => Mode::Picker,
            Self::Find(_) => Mode::Input,
            Self::Editor(_) => Mode::Lines,
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
        Overlay::Columns(columns) => columns::paint(c, v, area, columns),
        Overlay::Settings(settings) => settings::paint(c, v, area, settings),
        Overlay::Messages(scroll) => messages::paint(c, v, area, *scroll),
        Overlay::Find(find) => find::paint(c, v, area, find),
        Overlay::Fix(it) => fix::paint(c, v, area, it),
        Overlay::Picker(picker) => picker::paint(c, v, area, picker),
        Overlay::Review(review) => review::paint(c, v, area, review),
        Overlay::Retry(retry) => retry::paint(c, v, area, *retry),
        Overlay::Diff(diff) => diff::paint(c, area, diff),
        Overlay::Wrong(wrong) => diff::paint_wrong(c, area, wrong),
        Overlay::Editor(editor) => editor::paint(c, area, editor),
        Overlay::Quick(quick) => quick::paint(c, area, quick),
        Overlay::Undo(list) => undo::paint(c, v, area, list),
        Overlay::Copy(menu) => copy::paint(c, v, area, *menu),
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
        Overlay::Messages(scroll) => messages::update(ui, snap, scroll, action),
        Overlay::Find(find) => find::update(ui, snap, find, action),
        Overlay::Fix(it) => fix::update(ui, it, action),
        Overlay::Picker(picker) => picker::update(ui, snap, picker, action),
        Overlay::Review(review) => review::update(ui, review, action),
        Overlay::Retry(retry) => retry::update(ui, retry, action),
        Overlay::Diff(diff) => diff::update(ui, snap, diff, action),
        Overlay::Wrong(wrong) => diff::update_wrong(ui, snap, wrong, action),
        Overlay::Editor(editor) => editor::update(ui, editor, action),
        Overlay::Quick(quick) => quick::update(ui, quick, action),
        Overlay::Undo(list) => undo::update(ui, list, action),
        Overlay::Copy(menu) => copy::update(ui, snap, menu, action),
    }
}

/// What is to be done when it was closed by [`Action::Escape`]: one level goes, where it has several.
pub(in crate::tui) fn closed(ui: &mut Ui, overlay: Overlay) -> Vec<UiCommand> {
    match overlay {
        Overlay::Review(review) => review::close(ui, review),
        Overlay::Editor(editor) => return editor::close(ui, editor),
        Overlay::Diff(_) | Overlay::Wrong(_) => return editing::drop_mark(ui),
        Overlay::Columns(columns) => columns::revert(ui, columns),
        Overlay::Settings(settings) => return settings::revert(ui, &settings),
        _ => {}
    }
    Vec::new()
}

/// The rows in the middle that leave the message row to be seen, where there is one.
pub(in crate::tui) const fn tallest(area: Rect) -> u16 {
    if area.height >= 12 { area.height - 4 } else { area.height }
}

/// The middle of an area.
pub(in crate::tui) fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
