//! What lies over the screen; one at a time.
//!
//! Each kind has a file with its state, `paint` and `update`. A new one is a variant of [`Overlay`] and an arm in each of the
//! three functions below. `update` takes the state out of the [`Ui`]: what is to stay open is put back.

pub(in crate::tui) mod choose;
pub(in crate::tui) mod confirm;
pub(in crate::tui) mod fix;
pub(in crate::tui) mod help;
pub(in crate::tui) mod palette;

use crate::protocol::Snapshot;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::canvas::Canvas;
use crate::tui::ui::Ui;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

pub use choose::Chooser;
pub use confirm::{Button, Clear, Confirm};
pub use fix::{Fix, Mended};

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
    /// The question before a job file is mended.
    Fix(Fix),
}

impl Overlay {
    /// What keys mean while it is there.
    pub(in crate::tui) const fn mode(&self) -> Mode {
        match self {
            Self::Help(_) | Self::Palette(_) => Mode::Choose,
            Self::Confirm(_) | Self::Clear(_) | Self::Fix(_) => Mode::Dialog,
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
        Overlay::Fix(it) => fix::update(ui, it, action),
    }
}

/// The middle of an area.
pub(in crate::tui) fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
