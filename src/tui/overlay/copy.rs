//! What of a job to copy: a letter each. The letter copies, and so does Enter on the row under the cursor.

use super::{Overlay, middle};
use crate::model::JobId;
use crate::protocol::Snapshot;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, left, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::Ui;
use crate::tui::update::copying::{self, Offer};
use crate::tui::{UiCommand, View, rows};
use ratatui::layout::Rect;

/// Of which job, and the row under the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyMenu {
    /// The job.
    pub job: JobId,
    /// The row under the cursor.
    pub at: usize,
}

fn offers(ui: &Ui, snap: &Snapshot, job: JobId) -> Vec<Offer> {
    rows::find(ui, snap, job).map(|row| copying::offers(ui, row)).into_iter().flatten().collect()
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut menu: CopyMenu, action: &Action) -> Vec<UiCommand> {
    let offers = offers(ui, snap, menu.job);
    let last = offers.len().saturating_sub(1);
    match action {
        Action::Insert(typed) if offers.iter().any(|(letter, ..)| letter == typed) => {
            return copying::copy(ui, snap, menu.job, *typed);
        }
        Action::Accept => {
            let letter = offers.get(menu.at).map(|(letter, ..)| *letter);
            return letter.map_or_else(Vec::new, |letter| copying::copy(ui, snap, menu.job, letter));
        }
        Action::Down => menu.at = if menu.at >= last { 0 } else { menu.at + 1 },
        Action::Up => menu.at = if menu.at == 0 { last } else { menu.at - 1 },
        _ => {}
    }
    ui.overlay = Some(Overlay::Copy(menu));
    Vec::new()
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, menu: CopyMenu) {
    let offers = offers(v.ui, v.snap, menu.job);
    let names = offers.iter().map(|(_, name, _)| width(name)).max().unwrap_or(0);
    let height = u16::try_from(offers.len()).unwrap_or(u16::MAX).saturating_add(2);
    let popup = middle(area, 64, height);
    c.clear(popup);
    let title = format!("Copy of #{}", menu.job);
    let inner = c.frame(popup, &[(&title, Role::Title)], &[("Esc: close", Role::Dim)], true);
    let room = usize::from(inner.width).saturating_sub(names + 7);
    for (row, (letter, name, text)) in offers.iter().enumerate() {
        let y = u16::try_from(row).unwrap_or(u16::MAX);
        let role = if text.is_some() { Role::Text } else { Role::Dim };
        let letter = format!("{}{letter}  ", if row == menu.at { ">" } else { " " });
        let name = left(name, names);
        let about = cut_middle(text.as_deref().unwrap_or("none"), room);
        c.pieces(inner, y, &[(&letter, Role::KeyHint), (&name, role), ("  ", role), (&about, Role::Dim)]);
        if row == menu.at {
            c.cursor_row(inner, y);
        }
    }
}
