//! A menu: each choice has a letter. Letters choose at once; the arrows and Enter do too.

use super::{Overlay, middle};
use crate::protocol::Snapshot;
use crate::tui::arrange;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::left;
use crate::tui::look::theme::Role;
use crate::tui::ui::Ui;
use crate::tui::update::apply;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// A menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// What it is about.
    pub title: &'static str,
    /// Its choices.
    pub items: Vec<Item>,
    /// The choice under the cursor.
    pub at: usize,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its letter.
    pub letter: char,
    /// Its words.
    pub words: String,
    /// What it does.
    pub action: Action,
}

impl Menu {
    /// The orders that the table with the focus can have.
    pub(in crate::tui) fn sort(ui: &Ui) -> Self {
        let pane = if ui.focus == Pane::History { Pane::History } else { Pane::Queue };
        let table = ui.tables.of(pane);
        let keys = arrange::keys(pane);
        let item = |(letter, key, name): &(char, arrange::Key, &str)| {
            let now = if *key != table.key {
                ""
            } else if table.down {
                " v"
            } else {
                " ^"
            };
            Item { letter: *letter, words: format!("{name}{now}"), action: Action::SortBy(pane, *key) }
        };
        let at = keys.iter().position(|(_, key, _)| *key == table.key).unwrap_or(0);
        Self { title: "Order by", items: keys.iter().map(item).collect(), at }
    }
}

pub(super) fn paint(c: &mut Canvas<'_>, _v: &View<'_>, area: Rect, it: &Menu) {
    let popup = middle(area, 30, it.items.len() as u16 + 2);
    c.clear(popup);
    let foot = [("letter or Enter", Role::Dim)];
    let inner = c.frame(popup, &[(it.title, Role::Title)], &foot, true);
    let height = usize::from(inner.height);
    let top = crate::tui::rows::scrolled(0, it.at, height, it.items.len());
    for (row, item) in it.items.iter().enumerate().skip(top).take(height) {
        let y = (row - top) as u16;
        let letter = format!("{}{} ", if row == it.at { ">" } else { " " }, item.letter);
        let words = left(&format!(" {}", item.words), usize::from(inner.width).saturating_sub(3));
        c.pieces(inner, y, &[(&letter, Role::KeyHint), (&words, Role::Text)]);
        c.spot(Rect { y: inner.y + y, height: 1, ..inner }, Action::Insert(item.letter));
        if row == it.at {
            c.cursor_row(inner, y);
        }
    }
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut it: Menu, action: &Action) -> Vec<UiCommand> {
    let count = it.items.len().max(1);
    let chosen = match action {
        Action::Insert(letter) => it.items.iter().find(|item| item.letter == *letter),
        Action::Accept => it.items.get(it.at),
        _ => None,
    };
    if let Some(item) = chosen {
        return apply(ui, item.action.clone(), snap);
    }
    match action {
        Action::Down => it.at = (it.at + 1) % count,
        Action::Up => it.at = (it.at + count - 1) % count,
        _ => {}
    }
    ui.overlay = Some(Overlay::Menu(it));
    Vec::new()
}
