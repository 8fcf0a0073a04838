//! Done jobs: how each ended, what it held, how long it waited.

use crate::model::{Failure, Outcome};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::{self, Entry, Key};
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_middle, duration, hours, left, moment, result, right};
use crate::tui::look::theme::Role;
use crate::tui::rows;
use ratatui::layout::Rect;

/// The table; fewer columns where it is narrow.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, focus: bool) {
    let list = rows::history(v.ui, v.snap);
    if list.is_empty() {
        crate::tui::panels::empty::history(c, area, v);
        return;
    }
    let wide = area.width >= 76;
    let id = list.iter().map(|row| row.id.0).max().unwrap_or(0).to_string().len().max(4);
    let name = usize::from(area.width).saturating_sub(id + if wide { 61 } else { 33 }).max(4);
    let more = if wide { "   WAIT    RUN      PEAK LOAD" } else { "" };
    let head = format!(
        "{} {}{} {} {}{more}  NAME",
        right("ID", id + 1),
        left("USER", 6),
        left("RESULT", 9),
        right("GPU-h", 6),
        right("END", 6)
    );
    c.text(area, 0, &head, Role::Title);
    heads(c, area, &head);
    let height = usize::from(area.height.saturating_sub(1));
    let lines = arrange::entries(v.ui, Pane::History, &list, &v.now);
    let top = v.top(Pane::History, height, lines.len());
    for (at, entry) in lines.iter().skip(top).take(height).enumerate() {
        let place = match entry {
            Entry::Head(text) => {
                c.pieces(area, at as u16 + 1, &[("  ", Role::Dim), (text, Role::Title)]);
                continue;
            }
            Entry::Row(place) => *place,
        };
        let Some(row) = list.get(place) else { continue };
        let spot = Rect { y: area.y + 1 + at as u16, height: 1, ..area };
        c.spot(spot, Action::Select(Pane::History, place));
        let selected = v.ui.history_job == Some(row.id);
        line(
            c,
            Rect { y: area.y + 1, height: area.height - 1, ..area },
            at as u16,
            (v, row, id, name),
            selected && focus,
        );
        if selected && focus {
            c.cursor_row(area, at as u16 + 1);
        }
    }
}

/// A click on a column's head orders by it.
fn heads(c: &mut Canvas<'_>, area: Rect, head: &str) {
    for (word, key) in [
        ("ID", Key::Id),
        ("USER", Key::User),
        ("RESULT", Key::Result),
        ("GPU-h", Key::Held),
        ("END", Key::End),
        ("WAIT", Key::Wait),
        ("RUN", Key::Ran),
        ("NAME", Key::Name),
    ] {
        if let Some(at) = head.find(word) {
            let spot = Rect { x: area.x + at as u16, y: area.y, width: word.len() as u16, height: 1 };
            c.spot(spot.intersection(area), Action::SortBy(Pane::History, key));
        }
    }
}

fn line(c: &mut Canvas<'_>, area: Rect, at: u16, of: (&View<'_>, &JobRow, usize, usize), selected: bool) {
    let (v, row, id, name) = of;
    let (word, role) = row.outcome.as_ref().map_or(("DONE", Role::Done), result);
    let first = format!(
        "{}{}{}{}",
        if selected { ">" } else { " " },
        right(&row.id.to_string(), id),
        if v.ui.marks.contains(&row.id) { "*" } else { " " },
        left(&row.user, 6)
    );
    let word = left(&format!("{word}{}", code(row)), 9);
    let ended = row.done_at.map_or_else(|| "-".to_owned(), |at| moment(at, v.now.wall_ms, &v.ui.tz));
    let ended = if ended.len() > 6 { left(&ended, 6) } else { right(&ended, 6) };
    let mut rest = format!(" {} {ended}", right(&hours(row.gpu_ms(&v.now)), 6));
    if area.width >= 76 {
        let waited = between(row.submitted_at, row.rented_at.or(row.done_at).unwrap_or(row.submitted_at));
        let ran = row
            .started_at
            .map_or_else(|| "-".to_owned(), |from| duration(between(from, row.ended_at.unwrap_or(from))));
        let peak = row.peak_memory.map_or_else(|| "n/a".to_owned(), |bytes| bytes.to_string());
        let load = row.mean_utilisation.map_or_else(|| "n/a".to_owned(), |load| format!("{load}%"));
        rest = format!(
            "{rest}{}{}{}{}",
            right(&duration(waited), 7),
            right(&ran, 7),
            right(&peak, 10),
            right(&load, 5)
        );
    }
    let name = format!("  {}", cut_middle(&row.name, name));
    c.pieces(area, at, &[(&first, Role::Text), (&word, role), (&rest, Role::Text), (&name, Role::Text)]);
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
