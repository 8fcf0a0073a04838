//! What can still be undone, the newest first. Enter takes one back.

use super::{Overlay, middle};
use crate::protocol::UndoRow;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_middle, duration, moment};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::{step, undo};
use crate::tui::{UiCommand, View, rows};
use ratatui::layout::Rect;
use std::collections::BTreeSet;

/// The list, and the row under the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoList {
    /// What the scheduler has said; `None`: it has not yet.
    pub rows: Option<Vec<UndoRow>>,
    /// The row under the cursor.
    pub at: usize,
}

pub(super) fn update(ui: &mut Ui, mut list: Box<UndoList>, action: &Action) -> Vec<UiCommand> {
    let open = open(ui.now.wall_ms, &list);
    let last = open.len().saturating_sub(1);
    match action {
        Action::Accept if !open.is_empty() => {
            let job = open.get(list.at.min(last)).map(|row| row.job);
            if let Some(why) = ui.unable("undo") {
                ui.say(Level::Warning, why, None);
                return Vec::new();
            }
            return vec![undo::undo(job)];
        }
        Action::Down => list.at = if list.at >= last { 0 } else { list.at + 1 },
        Action::Up => list.at = if list.at == 0 { last } else { list.at - 1 },
        action => {
            let seen = usize::from(ui.size.1).saturating_sub(4);
            list.at = step(list.at.min(last), open.len(), seen, action);
        }
    }
    ui.overlay = Some(Overlay::Undo(list));
    Vec::new()
}

/// Those whose time has not run out: of each job the newest, which has to be taken back before the ones below it.
fn open(now_ms: i64, list: &UndoList) -> Vec<&UndoRow> {
    let mut jobs = BTreeSet::new();
    list.rows.iter().flatten().filter(|row| row.until > now_ms && jobs.insert(row.job)).collect()
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, list: &UndoList) {
    let open = open(v.ui.now.wall_ms, list);
    let height = u16::try_from(open.len().max(1)).unwrap_or(u16::MAX).saturating_add(2);
    let popup = middle(area, 72, height.min(area.height.saturating_sub(2).max(3)));
    c.clear(popup);
    let foot = "Enter: undo it   Esc: close";
    let inner = c.frame(popup, &[("What can be undone", Role::Title)], &[(foot, Role::Dim)], true);
    if open.is_empty() {
        let text = if list.rows.is_some() { "  Nothing." } else { "  ..." };
        c.text(inner, 0, text, Role::Dim);
        return;
    }
    let at = list.at.min(open.len() - 1);
    let top = rows::scrolled(0, at, usize::from(inner.height), open.len());
    for (row, one) in open.iter().enumerate().skip(top).take(usize::from(inner.height)) {
        let y = u16::try_from(row - top).unwrap_or(u16::MAX);
        let left = between(v.ui.now.wall_ms, one.until);
        // A window of seconds is counted down; what lasts as long as the job waits has no end worth a number.
        let left = if left.as_secs() < 600 { format!("{} left", duration(left)) } else { String::new() };
        let who = format!("#{} {}  ", one.job, cut_middle(&one.name, 24));
        let alike =
            list.rows.iter().flatten().filter(|row| row.job == one.job && row.until > v.ui.now.wall_ms);
        let before = match alike.count().saturating_sub(1) {
            0 => String::new(),
            more => format!("  (then {more} before it)"),
        };
        let when = format!("{before}  {} {}", moment(one.at, v.ui.now.wall_ms, &v.ui.tz), one.by);
        c.pieces(
            inner,
            y,
            &[
                (if row == at { ">" } else { " " }, Role::Text),
                (&who, Role::Text),
                (&one.what, Role::Text),
                (&when, Role::Dim),
            ],
        );
        c.pieces_right(inner, y, &[(&left, Role::Dim)]);
        if row == at {
            c.cursor_row(inner, y);
        }
    }
}
