//! Done jobs: how each ended, what it held, how long it waited.

use crate::model::{Failure, Outcome};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::{self, Entry, Key};
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_middle, duration, hours, left, moment, result, right, width};
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
    let id = list.iter().map(|row| row.id.0).max().unwrap_or(0).to_string().len().max(3);
    let cols = Columns::at(usize::from(area.width), id, v.ui.tables.history.sideways);
    let head = cols.head();
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
        let rest = Rect { y: area.y + 1, height: area.height - 1, ..area };
        line(c, rest, at as u16, (v, row, &cols), selected && focus);
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

/// The columns between the number and the name, from left to right; the first ones go when the table is scrolled.
const GROUPS: usize = 6;

/// How far the table can be scrolled sideways.
pub(in crate::tui) const MOST_SIDEWAYS: usize = GROUPS;

/// Which columns there is room for, and how wide they are.
struct Columns {
    id: usize,
    /// So many groups are scrolled out.
    gone: usize,
    user: usize,
    /// Wait, run, peak and load.
    figures: bool,
    /// Peak of a GPU's memory, GPUs, priority.
    gpu_memory: bool,
    /// The end with its date.
    end: usize,
    name: usize,
}

impl Columns {
    fn at(total: usize, id: usize, sideways: usize) -> Self {
        let gone = sideways.min(MOST_SIDEWAYS);
        let user = if total >= 110 { 10 } else { 5 };
        let end = if total >= 110 { 13 } else { 7 };
        let widths = [user, 9, 6, end, 29, 21];
        let freed: usize = widths[..gone].iter().sum();
        let (figures, gpu_memory) = (gone < 5 && total + freed >= 76, gone < 6 && total + freed >= 110);
        let mut used: usize = id + 3 + widths[gone.min(4)..4].iter().sum::<usize>();
        used += if figures { 29 } else { 0 } + if gpu_memory { 21 } else { 0 };
        Self { id, gone, user, figures, gpu_memory, end, name: total.saturating_sub(used + 1).max(4) }
    }

    /// Whether a group is there, as far as scrolling goes.
    const fn has(&self, group: usize) -> bool {
        self.gone <= group
    }

    fn head(&self) -> String {
        let mut text = format!("{} ", right("ID", self.id + 1));
        let cells = [left("USER", self.user), left("RESULT", 9), right("GPU-h", 6), right("END", self.end)];
        text.extend(cells.into_iter().skip(self.gone));
        if self.figures {
            text.push_str("   WAIT    RUN      PEAK LOAD");
        }
        if self.gpu_memory {
            text.push_str("  GPU PEAK GPU PRIO  ");
        }
        format!("{text}  NAME")
    }
}

fn line(c: &mut Canvas<'_>, area: Rect, at: u16, of: (&View<'_>, &JobRow, &Columns), selected: bool) {
    let (v, row, cols) = of;
    let (word, role) = row.outcome.as_ref().map_or(("ok", Role::Done), result);
    // Most rows say this: the quiet word, as in the header.
    let word = if word == "DONE" { "ok" } else { word };
    let mut first = format!(
        "{}{}{}",
        if selected { ">" } else { " " },
        right(&row.id.to_string(), cols.id),
        if v.ui.marks.contains(&row.id) { "*" } else { " " },
    );
    if cols.has(0) {
        first.push_str(&left(&row.user, cols.user));
    }
    let word = if cols.has(1) { left(&format!("{word}{}", code(row)), 9) } else { String::new() };
    let ended = row.done_at.map_or_else(|| "-".to_owned(), |at| ended(v, at, cols.end));
    let mut rest = String::new();
    if cols.has(2) {
        rest.push_str(&right(&hours(row.gpu_ms(&v.now)), 6));
    }
    if cols.has(3) {
        rest.push_str(&right(&ended, cols.end));
    }
    figures(row, cols, &mut rest);
    let name = format!("  {}", cut_middle(&row.name, cols.name));
    c.pieces(area, at, &[(&first, Role::Text), (&word, role), (&rest, Role::Text), (&name, Role::Text)]);
}

/// How long it waited and ran, and what it took.
fn figures(row: &JobRow, cols: &Columns, rest: &mut String) {
    let bytes =
        |peak: Option<crate::model::Bytes>| peak.map_or_else(|| "n/a".to_owned(), |peak| peak.to_string());
    if cols.figures {
        let waited = between(row.submitted_at, row.rented_at.or(row.done_at).unwrap_or(row.submitted_at));
        let ran = row
            .started_at
            .map_or_else(|| "-".to_owned(), |from| duration(between(from, row.ended_at.unwrap_or(from))));
        let load = row.mean_utilisation.map_or_else(|| "n/a".to_owned(), |load| format!("{load}%"));
        let waited = right(&duration(waited), 7);
        *rest += &[waited, right(&ran, 7), right(&bytes(row.peak_memory), 10), right(&load, 5)].concat();
    }
    if cols.gpu_memory {
        let (gpus, priority) = (row.gpus.to_string(), row.priority.to_string());
        let peak = right(&bytes(row.peak_gpu_memory), 10);
        *rest += &[peak, right(&gpus, 4), right(&priority, 5), "  ".to_owned()].concat();
    }
}

/// The time of day; where there is no room for a date and a time, the date of another day.
fn ended(v: &View<'_>, at: i64, columns: usize) -> String {
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
