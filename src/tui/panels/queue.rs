//! The queue: running jobs, the line, paused jobs; and in words why each waits.

use crate::model::{Cursor, Span};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::{self, Entry, Key};
use crate::tui::keys::Action;
use crate::tui::layout::{Kind, Pane};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_end, duration, left, minutes, right, state, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::columns::{self, Room, Shown};
use crate::tui::panels::forecast;
use crate::tui::rows::QueueRow;
use crate::tui::update::pending;
use ratatui::layout::Rect;

/// The head of the table, the rows, or why there are none.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, kind: Kind, focus: bool) {
    let list = v.queue();
    if list.is_empty() {
        crate::tui::panels::empty::queue(c, area, v);
        return;
    }
    let largest = |most: (u32, u64, usize), row: &QueueRow<'_>| {
        (most.0.max(row.place.unwrap_or(0)), most.1.max(row.id.0), most.2.max(row.name.len()))
    };
    let (place, id, longest) = list.iter().fold((0, 0, 0), largest);
    let lead = Lead::new(place.to_string().len(), id.to_string().len());
    let table = &v.ui.tables.queue;
    let room = Room {
        total: usize::from(area.width),
        lead: lead.columns(),
        is_small: matches!(kind, Kind::Line | Kind::Bare | Kind::Compact),
        is_wide: kind == Kind::Three,
        mine: v.ui.mine,
        sideways: table.sideways,
        longest,
    };
    let shown = columns::fit(Pane::Queue, &table.columns, &room);
    head(c, area, lead, &shown);
    let height = usize::from(area.height.saturating_sub(1));
    let lines = arrange::entries(v.ui, Pane::Queue, list, &v.now);
    let top = v.top(Pane::Queue, height, lines.len());
    for (at, entry) in lines.iter().skip(top).take(height).enumerate() {
        let at = at as u16 + 1;
        let row = match entry {
            Entry::Head(text) => {
                c.pieces(area, at, &[("  ", Role::Dim), (text, Role::Title)]);
                continue;
            }
            Entry::Row(row) => *row,
        };
        let Some(job) = list.get(row) else { continue };
        let selected = v.ui.queue_job == Some(job.id);
        line(c, area, at, (v, job, lead, &shown), selected);
        c.spot(Rect { y: area.y + at, height: 1, ..area }, Action::Select(Pane::Queue, row));
        if v.ui.marks.contains(&job.id) {
            c.marked_row(area, at);
        }
        if selected && (focus || kind != Kind::Bare) {
            c.cursor_row(area, at);
        }
    }
}

/// The widths of what always comes first: place, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lead {
    place: usize,
    id: usize,
}

impl Lead {
    fn new(place_digits: usize, id_digits: usize) -> Self {
        // The cursor, the place and the mark.
        Self { place: 1 + (place_digits + 1).max(2), id: id_digits.max(4) }
    }

    /// With the state behind them.
    const fn columns(self) -> usize {
        self.place + self.id + 1 + 5
    }
}

fn head(c: &mut Canvas<'_>, area: Rect, lead: Lead, shown: &[Shown]) {
    let click =
        |c: &mut Canvas<'_>, x, text: &str, key| columns::click(c, (area, x), Pane::Queue, text, Some(key));
    let x = click(c, area.x, &left("#", lead.place), Key::Line);
    let x = click(c, x, &right("ID", lead.id), Key::Id);
    let x = click(c, x, &format!(" {}", left("STATE", 5)), Key::State);
    columns::heads(c, (area, x), Pane::Queue, shown);
}

/// One row.
fn line(c: &mut Canvas<'_>, area: Rect, at: u16, of: (&View<'_>, &JobRow, Lead, &[Shown]), selected: bool) {
    let (v, row, widths, shown) = of;
    let (word, state_role) = state(row);
    let asked = v.ui.pending.get(&row.id);
    let base = if asked.is_some() {
        Role::Pending
    } else if matches!(row.state, Cursor::Queued) && row.paused_by.is_some() {
        Role::Dim
    } else {
        Role::Text
    };
    let mark = match (asked, v.ui.marks.contains(&row.id)) {
        (Some(_), _) => "~",
        (None, true) => "*",
        (None, false) => "",
    };
    let place = match (row.place, row.paused_by.as_ref()) {
        (_, Some(_)) if row.state == Cursor::Queued => format!("-{mark}"),
        (Some(place), _) => format!("{place}{mark}"),
        _ => mark.to_owned(),
    };
    let lead = left(&format!("{}{place}", if selected { ">" } else { "" }), widths.place);
    let id = right(&row.id.to_string(), widths.id);
    let word = format!(" {}", left(word, 5));
    let mut x = c.pieces(area, at, &[(&lead, base), (&id, base), (&word, state_role)]);
    for one in shown {
        let (text, own) = one.cell(v, row);
        let role = if base == Role::Text { own } else { base };
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        x = c.pieces(rest, at, &[(&text, role)]);
    }
}

/// How long it has waited, or run.
pub(in crate::tui) fn time(v: &View<'_>, row: &JobRow) -> String {
    let now = v.now.wall_ms;
    if row.state == Cursor::Queued {
        return minutes(between(row.submitted_at, now));
    }
    // Under low bandwidth it is that of the last whole minute.
    let shown = if v.ui.thrift { minutes } else { duration };
    shown(match row.state {
        Cursor::Queued => Span(0),
        Cursor::Renting => between(row.rented_at.unwrap_or(now), now),
        Cursor::Running => between(row.started_at.unwrap_or(now), now),
        Cursor::Returning | Cursor::Releasing | Cursor::Done => {
            let from = row.started_at.or(row.rented_at);
            between(from.unwrap_or(0), from.map_or(0, |_| row.ended_at.unwrap_or(now)))
        }
    })
}

/// That it is being cancelled; else what the newest change does to it; else why it waits and when it will start, both as
/// far as there is room.
pub(in crate::tui) fn beside(v: &View<'_>, row: &JobRow, columns: usize) -> (String, Role) {
    let (words, role) = why(v, row);
    let is_stopping = row.cancel_at.is_some();
    if !is_stopping && let Some((effect, is_late)) = forecast::effect(v, row, columns) {
        return (effect, if is_late { Role::ToastWarn } else { Role::Pending });
    }
    let starts = if row.state == Cursor::Queued && !is_stopping { forecast::starts(v, row) } else { None };
    (fitted(&words, starts.as_deref(), columns, row.late), role)
}

/// A reason and a start in so many columns: whole clauses of the one as long as there is something of the other.
pub(in crate::tui) fn fitted(words: &str, starts: Option<&str>, columns: usize, is_late: bool) -> String {
    let mut ends: Vec<usize> = words.match_indices([',', ';']).map(|(at, _)| at).collect();
    // `gpu 0,1` is one clause; and that it is late is none without the rest.
    ends.retain(|at| words[at + 1..].starts_with(' '));
    if is_late && !ends.is_empty() {
        ends.remove(0);
    }
    let clauses = || std::iter::once(words).chain(ends.iter().rev().map(|at| &words[..*at]));
    let about = starts.map(|starts| starts.split(',').next().unwrap_or_default());
    let with = |clause: &str, starts: &str| format!("{clause}, {starts}");
    let whole = starts.map(|starts| with(words, starts));
    let some = about.into_iter().flat_map(|about| clauses().map(move |clause| with(clause, about)));
    let fits = whole.into_iter().chain(some).chain(clauses().map(str::to_owned));
    let mut fits = fits.filter(|text| width(text) <= columns);
    fits.next().unwrap_or_else(|| cut_end(words, columns))
}

/// Why it waits, or where it is.
pub(in crate::tui) fn why(v: &View<'_>, row: &JobRow) -> (String, Role) {
    let late = if row.late { "LATE, " } else { "" };
    if let Some(at) = row.cancel_at.filter(|_| row.state != Cursor::Done) {
        if pending::undoable(row, &v.exact) {
            let left = between(v.exact.wall_ms, at).0.div_ceil(1000);
            let words = match row.cancel_by.as_deref() {
                Some(who) if !pending::is_own_cancel(v.ui, v.snap, row) => {
                    format!("{who} cancels in {left} s")
                }
                _ if pending::is_next_undone(v.ui, v.snap, row, &v.exact) => {
                    format!("cancel in {left} s, {} undoes", v.ui.keys.way(&Action::Undo))
                }
                _ => format!("cancel in {left} s"),
            };
            return (words, Role::Stop);
        }
        return ("being cancelled".to_owned(), Role::Stop);
    }
    let role = if row.late { Role::ToastWarn } else { Role::Dim };
    let words = match (&row.why, row.state) {
        (_, Cursor::Queued) if row.staging.is_some() => row.staging.clone().unwrap_or_default(),
        (Some(why), _) => why.clone(),
        (None, Cursor::Queued) => {
            row.paused_by.as_ref().map_or_else(String::new, |who| format!("paused by {who}"))
        }
        (None, Cursor::Renting) => {
            format!("starting {}", on(row).trim_start_matches(" on gpu ").trim_start_matches(" on "))
        }
        (None, Cursor::Running) => on(row).trim_start_matches(" on ").to_owned(),
        (None, Cursor::Returning) => "collecting output".to_owned(),
        (None, Cursor::Releasing) => "cleaning up".to_owned(),
        (None, Cursor::Done) => row.outcome.as_ref().map_or_else(String::new, ToString::to_string),
    };
    (format!("{late}{words}"), role)
}

/// ` on gpu 0,1`; nothing for a job without GPUs.
pub(in crate::tui) fn on(row: &JobRow) -> String {
    if row.gpu_indices.is_empty() {
        return if row.gpus == 0 { " on cpu".to_owned() } else { String::new() };
    }
    let list: Vec<String> = row.gpu_indices.iter().map(ToString::to_string).collect();
    format!(" on gpu {}", list.join(","))
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_reason_has_the_room_there_is_in_whole_clauses_and_the_start_with_it() {
        let words = "needs 2 free, none is; #5 root holds";
        let starts = Some("about 21:08, no later than 22:00");
        let at = |columns| fitted(words, starts, columns, false);
        assert_eq!(at(80), "needs 2 free, none is; #5 root holds, about 21:08, no later than 22:00");
        assert_eq!(at(50), "needs 2 free, none is; #5 root holds, about 21:08");
        assert_eq!(at(40), "needs 2 free, none is, about 21:08");
        assert_eq!(at(26), "needs 2 free, about 21:08");
        assert_eq!(at(15), "needs 2 free");
        assert_eq!(at(9), "needs 2..");
        assert_eq!(fitted("gpu 0,1,2", None, 7, false), "gpu 0..");
        assert_eq!(fitted("LATE, needs 2 free, none is", None, 20, true), "LATE, needs 2 free");
    }
}
