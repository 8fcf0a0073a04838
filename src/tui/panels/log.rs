//! A job's log: the window that the feeder read, at the end or where the person stopped.

use crate::model::Cursor;
use crate::protocol::{JobRow, Snapshot};
use crate::tui::View;
use crate::tui::keys::{Action, Mode};
use crate::tui::layout;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, clock, cut, duration, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::logmarks::{self, Times};
use crate::tui::panels::logtext::{plain, styled, wrap, wrapped};
use crate::tui::rows;
use crate::tui::shell::log::{LogFrom, LogLine, LogState, LogWant, LogWindow, REACH};
use crate::tui::ui::{Level, LogView, Ui};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Which log is on the screen, and where in it: derived from what is visible, in this one place.
///
/// What was wanted before stays wanted while its lines reach far enough around the place that is shown, so that most
/// moves read nothing.
pub(in crate::tui) fn wanted(ui: &Ui, snap: &Snapshot, before: Option<&LogWant>) -> Option<LogWant> {
    let shown = ui.shown(snap);
    let layout = layout::plan(Rect::new(0, 0, ui.size.0, ui.size.1), ui, shown);
    let is_read = layout.order().contains(&layout::Pane::Log);
    let visible = layout.life.height > 0 || is_read;
    let row = rows::find(ui, snap, rows::companion(ui)?).filter(|_| visible)?;
    row.rented_at?;
    let path = row.log.clone();
    let only = ui.log.only.clone().filter(|_| ui.log.path == path);
    // The line of a log that is not open is its newest one.
    let Some(at) = ui.log.stopped_at.filter(|_| is_read && ui.log.path == path) else {
        return Some(LogWant { path, from: LogFrom::Tail, only, since: None });
    };
    let since = Some(ui.log.seen);
    let is_same = |want: &&LogWant| want.path == path && want.only == only && want.since == since;
    let kept = before.filter(|want| want.from != LogFrom::Tail).filter(is_same);
    match kept {
        Some(want) if ui.log.window.path == path && reaches(&ui.log.window, at) => Some(want.clone()),
        _ => Some(LogWant { path, from: LogFrom::Around(at / STEP * STEP), only, since }),
    }
}

/// Places are asked for in steps of this many bytes.
const STEP: u64 = REACH / 4;

/// Whether a window has lines before and after a place, or the file has none.
const fn reaches(window: &LogWindow, at: u64) -> bool {
    let before = window.begin == 0 || at >= window.begin + STEP;
    let after = window.end >= window.size || at + 2 * STEP <= window.end;
    before && after && at <= window.end
}

/// Rows a line takes.
fn rows_of(view: &LogView, line: &LogLine, columns: usize) -> usize {
    if !view.wrap {
        return 1;
    }
    let before = logmarks::columns(&line.mark, view.times);
    wrapped(&plain(&line.text), columns.saturating_sub(before))
}

/// The top line when the last line is at the bottom.
fn end_top(view: &LogView, columns: usize, height: usize) -> usize {
    let mut used = 0;
    let lines = &view.window.lines;
    for (at, line) in lines.iter().enumerate().rev() {
        used += rows_of(view, line, columns);
        if used > height {
            return (at + 1).min(lines.len() - 1);
        }
    }
    0
}

/// The index of the top line.
fn top(view: &LogView, columns: usize, height: usize) -> usize {
    match view.stopped_at {
        None => end_top(view, columns, height),
        Some(at) => {
            let top = view.window.lines.partition_point(|line| line.at < at);
            top.min(end_top(view, columns, height))
        }
    }
}

/// Moves the view by lines; up stops following.
pub(in crate::tui) fn scroll(view: &mut LogView, columns: usize, height: usize, by: isize) {
    let here = top(view, columns, height);
    let Some(last) = view.window.lines.len().checked_sub(1) else { return };
    if by > 0 && view.stopped_at.is_none() {
        return;
    }
    let to = here.saturating_add_signed(by).min(last).min(end_top(view, columns, height));
    stop_at(view, view.window.lines.get(to).map_or(0, |line| line.at));
}

/// Stops following at a byte.
pub(in crate::tui) fn stop_at(view: &mut LogView, at: u64) {
    if view.stopped_at.is_none() {
        view.seen = view.window.size;
    }
    view.stopped_at = Some(at);
}

/// Stops where the view is.
pub(in crate::tui) fn hold(view: &mut LogView, columns: usize, height: usize) {
    let at = top(view, columns, height);
    stop_at(view, view.window.lines.get(at).map_or(0, |line| line.at));
}

/// The byte at which the line at the top begins.
pub(in crate::tui) fn top_byte(view: &LogView, columns: usize, height: usize) -> u64 {
    view.window.lines.get(top(view, columns, height)).map_or(0, |line| line.at)
}

/// `FOLLOW`, or the line or the part of the log where it stopped and what came since; what is searched and shown.
pub(in crate::tui) fn title(v: &View<'_>) -> String {
    let view = &v.ui.log;
    let place = match view.stopped_at {
        None => "FOLLOW".to_owned(),
        // What is sifted is not counted.
        Some(at) if view.only.is_some() => {
            format!("AT {}%{}", at.saturating_mul(100) / view.window.size.max(1), came_since(&view.window))
        }
        Some(at) => format!("AT LINE {}{}", line_number(view, at), came_since(&view.window)),
    };
    let only = view.only.as_ref().map_or_else(String::new, |only| {
        format!("  &{}{}", only.text(), if view.window.sifting { " .." } else { "" })
    });
    let search = match (&view.find, &view.search) {
        (Some(find), _) => format!("  /{} {}%", find.pattern.text(), view.searched),
        (None, Some(search)) => format!("  /{}", search.text()),
        (None, None) => String::new(),
    };
    let turns = turning(v.ui).map_or_else(String::new, |sign| format!(" {sign}"));
    format!("{place}{only}{search}{turns}  {}", if view.wrap { "wrap on" } else { "wrap off" })
}

/// Whether a sign turns: that is wanted, and the log is being gone through for what somebody typed.
pub(in crate::tui) const fn turns(ui: &Ui) -> bool {
    let searches = ui.log.find.is_some() || (ui.log.only.is_some() && ui.log.window.sifting);
    ui.spinner && searches && !ui.thrift && ui.frozen.is_none()
}

/// What turns, once a second.
fn turning(ui: &Ui) -> Option<char> {
    let second = ui.now.wall_ms.div_euclid(1000).rem_euclid(4);
    turns(ui).then(|| ['|', '/', '-', '\\'][second as usize])
}

/// `1840 lines`, once they are counted; what is sifted is not all of them.
pub(in crate::tui) fn length(v: &View<'_>) -> String {
    let (view, window) = (&v.ui.log, &v.ui.log.window);
    let first = window.number.or((window.begin == 0).then_some(1));
    let whole = window.end >= window.size && view.only.is_none() && !window.lines.is_empty();
    match first.filter(|_| whole).map(|first| first + window.lines.len() as u64 - 1) {
        Some(1) => "  1 line".to_owned(),
        Some(lines) => format!("  {lines} lines"),
        None => String::new(),
    }
}

/// The keys of the log, for the foot of its box: as many as fit.
pub(in crate::tui) fn keys(v: &View<'_>, mode: Mode, columns: usize) -> String {
    let mut out = String::new();
    let hints = [
        (Action::Search, "search"),
        (Action::NextMatch, "next"),
        (Action::Follow, "follow"),
        (Action::Wrap, "wrap"),
        (Action::Log, "full"),
    ];
    for (action, words) in hints {
        let key = v.ui.keys.key(mode, &action);
        let text = format!("{}{key} {words}", if out.is_empty() { "" } else { "  " });
        if !key.is_empty() && width(&out) + width(&text) <= columns {
            out.push_str(&text);
        }
    }
    out
}

/// Exact where the lines before are counted; with `~` by the length of the lines on hand where they are not.
fn line_number(view: &LogView, at: u64) -> String {
    let window = &view.window;
    let index = window.lines.partition_point(|line| line.at < at) as u64;
    if let Some(first) = window.number {
        return (first + index).to_string();
    }
    if window.begin == 0 {
        return (index + 1).to_string();
    }
    let lines = window.lines.len() as u64;
    let bytes = window.end.saturating_sub(window.begin).max(1);
    format!("~{}", at.saturating_mul(lines) / bytes + 1)
}

fn came_since(window: &LogWindow) -> String {
    window.fresh.filter(|fresh| *fresh > 0).map_or_else(String::new, |fresh| format!(", {fresh} new"))
}

/// Whether the window on hand is that of `row`.
fn belongs(v: &View<'_>, row: &JobRow) -> bool {
    v.ui.log.path == row.log && v.ui.log.window.path == row.log
}

/// Why there is nothing to see.
fn nothing(v: &View<'_>, row: &JobRow) -> String {
    match (&v.ui.log.window.state, row.started_at) {
        _ if row.rented_at.is_none() && row.state == Cursor::Done => "It never ran: no output.".to_owned(),
        _ if row.rented_at.is_none() => "No output yet: it has not started.".to_owned(),
        // What is shown is still another job's.
        (_, Some(_)) if !belongs(v, row) => "Reading.".to_owned(),
        (LogState::Failed(why), _) if belongs(v, row) => format!("The log cannot be read: {why}"),
        (LogState::Gone, _) if belongs(v, row) => "The log's file is gone.".to_owned(),
        (LogState::Reading, _) => "Reading.".to_owned(),
        (_, Some(at)) if row.state == Cursor::Running => {
            format!("No output yet (started {} ago).", duration(between(at, v.now.wall_ms)))
        }
        _ => "No output.".to_owned(),
    }
}

/// The lines.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, row: &JobRow) {
    let view = &v.ui.log;
    if belongs(v, row) && view.window.lines.is_empty() && view.only.is_some() && view.window.size > 0 {
        let only = view.only.as_ref().map_or("", |only| only.text());
        let text = if view.window.sifting {
            "Searching.".to_owned()
        } else {
            format!("No line has \"{only}\".  Esc shows all.")
        };
        c.text(area, 0, &text, Role::ToastWarn);
        return;
    }
    if !belongs(v, row) || view.window.lines.is_empty() {
        c.text(area, 0, &nothing(v, row), Role::Dim);
        return;
    }
    let (columns, mut height) = (usize::from(area.width), area.height);
    let state = match &view.window.state {
        LogState::Truncated(at) => format!("file truncated {}", clock(*at, &v.ui.tz)),
        LogState::Replaced(at) => format!("file replaced {}", clock(*at, &v.ui.tz)),
        LogState::Gone => "file gone".to_owned(),
        LogState::Failed(why) => format!("cannot be read: {why}"),
        LogState::Reading | LogState::There | LogState::NotYet => String::new(),
    };
    if !state.is_empty() && height > 1 {
        height -= 1;
        c.text(area, height, &state, Role::ToastWarn);
    }
    let top = top(view, columns, usize::from(height));
    let mut at = 0;
    for (n, line) in view.window.lines.iter().enumerate().skip(top) {
        let mut text = styled(&line.text, c.theme.depth, c.theme.log_ansi);
        for pattern in view.search.iter().chain(&view.only) {
            text = pattern.mark(text, c.theme.style(Role::Search));
        }
        let indent = logmarks::columns(&line.mark, view.times);
        let pieces = if view.wrap {
            wrap(&text, columns.saturating_sub(indent))
        } else {
            vec![sideways(text, view.sideways)]
        };
        let earlier = n.checked_sub(1).and_then(|n| view.window.lines.get(n)).map(|line| &line.mark);
        let mut before = logmarks::pieces(&line.mark, earlier, view.times, &v.ui.tz, c.theme);
        for mut piece in pieces {
            if at >= height {
                return;
            }
            // What goes on below stands under its beginning.
            let blanks = vec![Span::raw(" ".repeat(indent))];
            piece.spans.splice(..0, std::mem::replace(&mut before, blanks));
            c.line(area, at, &piece);
            at += 1;
        }
    }
}

/// Other times, if the log has any.
pub(in crate::tui) fn change_times(ui: &mut Ui) {
    let is_known = ui.log.window.lines.iter().any(|line| line.mark.second.is_some());
    if !is_known && ui.log.times == Times::Off {
        ui.say(Level::Info, "nothing is known of when the lines of this log came", None);
        return;
    }
    let (times, words) = ui.log.times.next();
    ui.log.times = times;
    ui.say(Level::Info, words, None);
}

/// A line without its first columns.
fn sideways(line: Line<'static>, mut columns: usize) -> Line<'static> {
    if columns == 0 {
        return line;
    }
    let style = line.style;
    let spans = line.spans.into_iter().filter_map(|span| {
        let gone = cut(&span.content, columns);
        columns -= width(gone).min(columns);
        let rest = span.content[gone.len()..].to_owned();
        (!rest.is_empty()).then(|| Span::styled(rest, span.style))
    });
    Line::from(spans.collect::<Vec<_>>()).style(style)
}

/// `log| step 1840/5000`: the newest line with something on it.
pub(in crate::tui) fn last_line(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, row: &JobRow) {
    let x = c.pieces(area, 0, &[("log| ", Role::Dim)]);
    let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
    let last = v.ui.log.window.lines.iter().rev().find(|line| !plain(&line.text).trim().is_empty());
    match last.filter(|_| belongs(v, row)) {
        Some(last) => {
            let mut text = styled(&last.text, c.theme.depth, c.theme.log_ansi);
            text.spans.splice(..0, logmarks::pieces(&last.mark, None, Times::Off, &v.ui.tz, c.theme));
            c.line(rest, 0, &text);
        }
        None => c.text(rest, 0, &nothing(v, row), Role::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(lines: u64) -> LogView {
        let lines: Vec<LogLine> = (0..lines)
            .map(|n| LogLine { at: n * 10, text: format!("line {n:04}"), ..LogLine::default() })
            .collect();
        let end = lines.len() as u64 * 10;
        let window = LogWindow { end, size: end, lines, state: LogState::There, ..LogWindow::default() };
        LogView { window, ..LogView::default() }
    }

    #[test]
    fn an_upward_move_stops_following_and_stays_while_the_file_grows() {
        let mut log = view(100);
        assert_eq!(top(&log, 80, 20), 80);
        scroll(&mut log, 80, 20, 1);
        assert_eq!(log.stopped_at, None, "down at the end goes on following");
        scroll(&mut log, 80, 20, -1);
        assert_eq!((log.stopped_at, top(&log, 80, 20)), (Some(790), 79));
        let place = log.stopped_at;
        log.window = view(500).window;
        assert_eq!((log.stopped_at, top(&log, 80, 20)), (place, 79));
        scroll(&mut log, 80, 20, 10_000);
        assert_eq!(top(&log, 80, 20), 480);
        scroll(&mut log, 80, 20, -10_000);
        assert_eq!(top(&log, 80, 20), 0);
    }

    #[test]
    fn wrapped_lines_count_as_the_rows_they_take() {
        let mut log = view(10);
        log.wrap = true;
        assert_eq!(top(&log, 5, 4), 8, "two rows a line");
        assert_eq!(top(&log, 9, 4), 6, "one row a line");
    }

    #[test]
    fn a_window_reaches_around_the_middle_and_to_the_ends_of_the_file() {
        let window = |begin, end, size| LogWindow { begin, end, size, ..LogWindow::default() };
        let middle = window(10 * REACH, 13 * REACH, 100 * REACH);
        assert!(reaches(&middle, 11 * REACH));
        assert!(!reaches(&middle, 10 * REACH + 1) && !reaches(&middle, 13 * REACH - 1));
        assert!(!reaches(&middle, 5 * REACH) && !reaches(&middle, 50 * REACH));
        assert!(reaches(&window(0, 2 * REACH, 100 * REACH), 0));
        assert!(reaches(&window(97 * REACH, 100 * REACH, 100 * REACH), 100 * REACH - 1));
    }

    #[test]
    fn an_empty_log_can_be_scrolled() {
        let mut log = view(0);
        scroll(&mut log, 80, 20, -3);
        hold(&mut log, 80, 20);
        assert_eq!(top(&log, 80, 20), 0);
    }
}
