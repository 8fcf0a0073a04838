//! Done jobs: how each ended, what it held, how long it waited.

use crate::model::{Failure, Outcome};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::{self, Entry, Key};
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, duration, moment, result, right, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::columns::{self, Room, Shown};
use crate::tui::rows;
use ratatui::layout::Rect;

/// From here on there is room for whole names of users, and a date beside a time.
const WIDE: usize = 110;

/// The table; fewer columns where it is narrow.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, focus: bool) {
    let list = rows::history(v.ui, v.snap);
    if list.is_empty() {
        crate::tui::panels::empty::history(c, area, v);
        return;
    }
    let id = list.iter().map(|row| row.id.0).max().unwrap_or(0).to_string().len().max(3);
    let longest = list.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let table = &v.ui.tables.history;
    let total = usize::from(area.width);
    let room = Room {
        total,
        lead: id + 2,
        is_small: false,
        is_wide: total >= WIDE,
        mine: v.ui.mine,
        sideways: table.sideways,
        longest,
    };
    let shown = columns::fit(Pane::History, &table.columns, &room);
    let lead = format!("{} ", right("ID", id + 1));
    let x = columns::click(c, (area, area.x), Pane::History, &lead, Some(Key::Id));
    columns::heads(c, (area, x), Pane::History, &shown);
    let height = usize::from(area.height.saturating_sub(1));
    let lines = arrange::entries(v.ui, Pane::History, &list, &v.now);
    let top = v.top(Pane::History, height, lines.len());
    for (at, entry) in lines.iter().skip(top).take(height).enumerate() {
        let at = at as u16 + 1;
        let place = match entry {
            Entry::Head(text) => {
                c.pieces(area, at, &[("  ", Role::Dim), (text, Role::Title)]);
                continue;
            }
            Entry::Row(place) => *place,
        };
        let Some(row) = list.get(place) else { continue };
        c.spot(Rect { y: area.y + at, height: 1, ..area }, Action::Select(Pane::History, place));
        let selected = focus && v.ui.history_job == Some(row.id);
        line(c, area, at, (v, row, id, &shown), selected);
        if v.ui.marks.contains(&row.id) {
            c.marked_row(area, at);
        }
        if selected {
            c.cursor_row(area, at);
        }
    }
}

fn line(c: &mut Canvas<'_>, area: Rect, at: u16, of: (&View<'_>, &JobRow, usize, &[Shown]), selected: bool) {
    let (v, row, id, shown) = of;
    let cursor = if selected { ">" } else { " " };
    let mark = if v.ui.marks.contains(&row.id) { "*" } else { " " };
    let lead = format!("{cursor}{}{mark}", right(&row.id.to_string(), id));
    let mut x = c.pieces(area, at, &[(&lead, Role::Text)]);
    for one in shown {
        let (text, role) = one.cell(v, row);
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        x = c.pieces(rest, at, &[(&text, role)]);
    }
}

/// How it ended, with the exit code or signal.
pub(in crate::tui) fn result_of(row: &JobRow) -> (String, Role) {
    let (word, role) = row.outcome.as_ref().map_or(("ok", Role::Done), result);
    // Most rows say this: the quiet word, as in the header.
    let word = if word == "DONE" { "ok" } else { word };
    (format!("{word}{}", code(row)), role)
}

/// How long it waited.
pub(in crate::tui) fn waited(row: &JobRow) -> String {
    duration(between(row.submitted_at, row.rented_at.or(row.done_at).unwrap_or(row.submitted_at)))
}

/// How long it ran.
pub(in crate::tui) fn ran(row: &JobRow) -> String {
    let ran = row.started_at.map(|from| duration(between(from, row.ended_at.unwrap_or(from))));
    ran.unwrap_or_else(|| "-".to_owned())
}

/// The time of day; where there is no room for a date and a time, the date of another day.
pub(in crate::tui) fn ended(v: &View<'_>, row: &JobRow, columns: usize) -> String {
    let Some(at) = row.done_at else { return "-".to_owned() };
    let text = moment(at, v.now.wall_ms, &v.ui.tz);
    if width(&text) < columns { text } else { text.get(..6).unwrap_or_default().to_owned() }
}

/// The exit code or signal.
fn code(row: &JobRow) -> String {
    match &row.outcome {
        Some(Outcome::Failed(Failure::Code(code))) => format!(" {code}"),
        Some(Outcome::Failed(Failure::Signal(signal))) => format!(" s{signal}"),
        Some(Outcome::Failed(Failure::OutOfMemory { .. })) => " mem".to_owned(),
        Some(Outcome::Failed(Failure::OutputMissing { .. })) => " out".to_owned(),
        Some(_) | None => String::new(),
    }
}
