//! The queue: running jobs, the line, paused jobs; and in words why each waits.

use crate::model::{Cursor, Span};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::layout::{Kind, Pane};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, cut_middle, duration, hours, left, minutes, right, state, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::forecast;
use crate::tui::rows;
use crate::tui::update::pending;
use ratatui::layout::Rect;

/// Which columns there is room for, and how wide they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    lead: usize,
    id: usize,
    user: usize,
    name: usize,
    gpus: bool,
    priority: bool,
    held: bool,
    time: bool,
    why: usize,
}

/// WHY shrinks first, then PRIO, HELD, USER and TIME go; NAME is cut in the middle.
fn columns(total: usize, kind: Kind, digits: (usize, usize), mine: bool) -> Columns {
    let lead = 1 + digits.0.max(2);
    // A long place and the cursor's mark fill the lead: the number keeps its distance.
    let id = (digits.1 + usize::from(digits.0 > 2)).max(4);
    let mut c = Columns {
        lead,
        id,
        user: if kind == Kind::Three { 7 } else { 5 },
        name: 0,
        gpus: kind != Kind::Bare && kind != Kind::Compact,
        priority: true,
        held: true,
        time: kind != Kind::Bare,
        why: 0,
    };
    if kind == Kind::Compact || kind == Kind::Bare {
        (c.priority, c.held, c.user) = (false, false, 0);
    }
    let fixed = |c: &Columns| {
        lead + id
            + 7
            + if c.user > 0 { c.user + 1 } else { 0 }
            + if c.gpus { 4 } else { 0 }
            + if c.priority { 5 } else { 0 }
            + if c.held { 7 } else { 0 }
            + if c.time { 7 } else { 0 }
            + 2
    };
    let (least_name, least_why) = (12, 7);
    for step in 0..4 {
        if total >= fixed(&c) + least_name + least_why || kind == Kind::Bare {
            break;
        }
        match step {
            0 => c.priority = false,
            1 => c.held = false,
            2 if mine => c.user = 0,
            2 => {}
            _ => c.time = false,
        }
    }
    let room = total.saturating_sub(fixed(&c));
    if kind == Kind::Bare {
        c.name = total.saturating_sub(lead + id + 7);
    } else {
        c.name = (room * 4 / 7).clamp(17.min(room), 26);
        c.why = room - c.name;
    }
    c
}

/// The head of the table, the rows, or why there are none.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, kind: Kind, focus: bool) {
    let list = rows::queue(v.ui, v.snap);
    if list.is_empty() {
        crate::tui::panels::empty::queue(c, area, v);
        return;
    }
    let place = list.iter().filter_map(|row| row.place).max().unwrap_or(0);
    let id = list.iter().map(|row| row.id.0).max().unwrap_or(0);
    let digits = (place.to_string().len(), id.to_string().len());
    let cols = columns(usize::from(area.width), kind, digits, v.ui.mine);
    c.text(area, 0, &head(&cols), Role::Title);
    let height = usize::from(area.height.saturating_sub(1));
    let top = v.top(Pane::Queue, height, list.len());
    for (at, row) in list.iter().skip(top).take(height).enumerate() {
        let selected = v.ui.queue_job == Some(row.id);
        line(
            c,
            Rect { y: area.y + 1, height: area.height - 1, ..area },
            at as u16,
            (v, row, &cols),
            selected,
        );
        if selected && (focus || kind != Kind::Bare) {
            c.cursor_row(area, at as u16 + 1);
        }
    }
}

fn head(cols: &Columns) -> String {
    let mut text = format!("{}{} {} ", left("#", cols.lead), right("ID", cols.id), left("STATE", 5));
    if cols.user > 0 {
        text = format!("{text}{} ", left("USER", cols.user));
    }
    text.push_str(&left("NAME", cols.name));
    if cols.gpus {
        text.push_str(" GPU");
    }
    if cols.priority {
        text.push_str(" PRIO");
    }
    if cols.held {
        text.push_str("   HELD");
    }
    if cols.time {
        text.push_str("  TIME ");
    }
    if cols.why > 0 {
        text = format!("{text}  {}", left("WHY / WHERE", cols.why));
    }
    text
}

/// One row.
fn line(c: &mut Canvas<'_>, area: Rect, at: u16, of: (&View<'_>, &JobRow, &Columns), selected: bool) {
    let (v, row, cols) = of;
    let (word, state_role) = state(row);
    let asked = v.ui.pending.get(&row.id);
    let base = if asked.is_some() {
        Role::Pending
    } else if matches!(row.state, Cursor::Queued) && row.paused_by.is_some() {
        Role::Dim
    } else {
        Role::Text
    };
    let mark = if asked.is_some() { "~" } else { "" };
    let place = match (row.place, row.paused_by.as_ref()) {
        (_, Some(_)) if row.state == Cursor::Queued => format!("-{mark}"),
        (Some(place), _) => format!("{place}{mark}"),
        _ => mark.to_owned(),
    };
    let lead = left(&format!("{}{place}", if selected { ">" } else { "" }), cols.lead);
    let id = format!("{} ", right(&row.id.to_string(), cols.id));
    let word = format!("{} ", left(word, 5));
    let mut middle = String::new();
    if cols.user > 0 {
        middle = format!("{middle}{} ", left(&row.user, cols.user));
    }
    middle.push_str(&left(&cut_middle(&row.name, cols.name), cols.name));
    if cols.gpus {
        middle.push_str(&right(&row.gpus.to_string(), 4));
    }
    if cols.priority {
        middle.push_str(&right(&row.priority.to_string(), 5));
    }
    if cols.held {
        let held = row.gpu_ms(&v.now);
        let never = row.rented_at.is_none();
        middle.push_str(&right(&if never { "- ".to_owned() } else { hours(held) }, 7));
    }
    if cols.time {
        middle.push_str(&right(&time(v, row), 7));
    }
    let end = c.pieces(area, at, &[(&lead, base), (&id, base), (&word, state_role), (&middle, base)]);
    if cols.why > 0 {
        let (why, role) = beside(v, row, cols.why);
        let role = if base == Role::Text { role } else { base };
        let rest = Rect { x: (end + 2).min(area.right()), ..area };
        let rest = Rect { width: area.right() - rest.x, ..rest };
        c.text(rest, at, &why, role);
    }
}

/// How long it has waited, or run.
pub(in crate::tui) fn time(v: &View<'_>, row: &JobRow) -> String {
    let now = v.now.wall_ms;
    if row.state == Cursor::Queued {
        return minutes(between(row.submitted_at, now));
    }
    duration(match row.state {
        Cursor::Queued => Span(0),
        Cursor::Renting => between(row.rented_at.unwrap_or(now), now),
        Cursor::Running => between(row.started_at.unwrap_or(now), now),
        Cursor::Returning | Cursor::Releasing | Cursor::Done => {
            let from = row.started_at.or(row.rented_at);
            between(from.unwrap_or(0), from.map_or(0, |_| row.ended_at.unwrap_or(now)))
        }
    })
}

/// What the newest change does to it; else why it waits and, as far as there is room, when it will start.
fn beside(v: &View<'_>, row: &JobRow, columns: usize) -> (String, Role) {
    if let Some((effect, is_late)) = forecast::effect(v, row, columns) {
        return (effect, if is_late { Role::ToastWarn } else { Role::Pending });
    }
    let (words, role) = why(v, row);
    if row.state != Cursor::Queued || row.cancel_at.is_some() {
        return (words, role);
    }
    let Some(starts) = forecast::starts(v, row) else { return (words, role) };
    let about = starts.split(',').next().unwrap_or_default();
    let both = [format!("{words}, {starts}"), format!("{words}, {about}")];
    let fits = both.into_iter().find(|text| width(text) <= columns);
    (fits.unwrap_or(words), role)
}

/// Why it waits, or where it is.
pub(in crate::tui) fn why(v: &View<'_>, row: &JobRow) -> (String, Role) {
    let late = if row.late { "LATE, " } else { "" };
    if let Some(at) = row.cancel_at.filter(|_| row.state != Cursor::Done) {
        if pending::undoable(row, &v.now) {
            let left = between(v.now.wall_ms, at).0.div_ceil(1000);
            return (format!("cancel in {left} s, u undoes"), Role::Stop);
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
    use super::*;

    #[test]
    fn columns_fit_and_go_in_order() {
        let at = |total, kind| columns(total, kind, (1, 3), false);
        let wide = at(80, Kind::One);
        assert_eq!((wide.name, wide.why), (20, 15));
        for total in 60..200 {
            let c = at(total, Kind::Two);
            assert!(head(&c).len() <= total, "{total}: {c:?}");
        }
        assert!(!at(62, Kind::One).priority && at(62, Kind::One).held);
        assert!(!at(56, Kind::One).held && at(56, Kind::One).time);
        assert_eq!(at(30, Kind::Bare).name, 16);
    }
}
