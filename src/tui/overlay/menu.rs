//! A menu of one letter each. The letter chooses, and so does Enter on the row under the cursor.

use super::{Overlay, middle};
use crate::model::JobId;
use crate::protocol::Snapshot;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, left, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::Ui;
use crate::tui::update::copying;
use crate::tui::{UiCommand, View, rows};
use ratatui::layout::Rect;

/// What a menu is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MenuOf {
    /// What of a job to copy.
    Copy(JobId),
}

/// A menu, and the row under the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Menu {
    /// What it is about.
    pub of: MenuOf,
    /// The row under the cursor.
    pub at: usize,
}

impl Menu {
    /// One with the cursor on its first row.
    pub const fn new(of: MenuOf) -> Self {
        Self { of, at: 0 }
    }
}

/// A row.
pub(in crate::tui) struct Item {
    /// The key.
    pub(in crate::tui) letter: char,
    /// What it does.
    pub(in crate::tui) name: &'static str,
    /// More about it.
    pub(in crate::tui) about: String,
    /// It cannot be chosen now.
    pub(in crate::tui) is_off: bool,
}

/// The rows of a menu, and its title.
fn items(ui: &Ui, snap: &Snapshot, of: MenuOf) -> (String, Vec<Item>) {
    match of {
        MenuOf::Copy(job) => {
            let offers = rows::find(snap, job).map(|row| copying::offers(ui, row));
            let items = offers.into_iter().flatten().map(|(letter, name, text)| Item {
                letter,
                name,
                is_off: text.is_none(),
                about: text.unwrap_or_else(|| "none".to_owned()),
            });
            (format!("Copy of #{job}"), items.collect())
        }
    }
}

/// A row was chosen.
fn chosen(ui: &mut Ui, snap: &Snapshot, of: MenuOf, letter: char) -> Vec<UiCommand> {
    match of {
        MenuOf::Copy(job) => copying::copy(ui, snap, job, letter),
    }
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut menu: Menu, action: &Action) -> Vec<UiCommand> {
    let (_, items) = items(ui, snap, menu.of);
    let last = items.len().saturating_sub(1);
    match action {
        Action::Insert(letter) if items.iter().any(|item| item.letter == *letter) => {
            return chosen(ui, snap, menu.of, *letter);
        }
        Action::Accept => {
            return match items.get(menu.at) {
                Some(item) => chosen(ui, snap, menu.of, item.letter),
                None => Vec::new(),
            };
        }
        Action::Down => menu.at = if menu.at >= last { 0 } else { menu.at + 1 },
        Action::Up => menu.at = if menu.at == 0 { last } else { menu.at - 1 },
        _ => {}
    }
    ui.overlay = Some(Overlay::Menu(menu));
    Vec::new()
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, menu: Menu) {
    let (title, items) = items(v.ui, v.snap, menu.of);
    let names = items.iter().map(|item| width(item.name)).max().unwrap_or(0);
    let height = u16::try_from(items.len()).unwrap_or(u16::MAX).saturating_add(2);
    let popup = middle(area, 64, height);
    c.clear(popup);
    let inner = c.frame(popup, &[(&title, Role::Title)], &[("Esc: close", Role::Dim)], true);
    let room = usize::from(inner.width).saturating_sub(names + 7);
    for (row, item) in items.iter().enumerate() {
        let row_at = u16::try_from(row).unwrap_or(u16::MAX);
        let text = if item.is_off { Role::Dim } else { Role::Text };
        let letter = format!(" {}  ", item.letter);
        let name = left(item.name, names);
        let about = cut_middle(&item.about, room);
        c.pieces(
            inner,
            row_at,
            &[(&letter, Role::KeyHint), (&name, text), ("  ", text), (&about, Role::Dim)],
        );
        if row == menu.at {
            c.cursor_row(inner, row_at);
        }
    }
}
