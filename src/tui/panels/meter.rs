//! The ledger in a pane: held now, GPU-hours today and in seven days, by user; the rate, the day, and what jobs have held.

use crate::model::{Cursor, DeviceState, Limit};
use crate::protocol::{JobRow, MeterSummary};
use crate::tui::View;
use crate::tui::look::canvas::{Canvas, Glyphs};
use crate::tui::look::chart;
use crate::tui::look::text::{duration, hours, left, moment, right, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::header::{since_snapshot, today_gpu_ms, todays};
use ratatui::layout::Rect;

/// One decimal for a week; two where it is little, so that it is never less than its days.
fn week(gpu_ms: u64) -> String {
    let hours = gpu_ms as f64 / 3_600_000.0;
    if hours < 10.0 { format!("{hours:.2}") } else { format!("{hours:.1}") }
}

/// A line of the pane or of the screen.
pub(in crate::tui) enum Line {
    Rule,
    Text(String, Role),
}

/// Lines from the one that is scrolled to.
pub(in crate::tui) fn lines_at(c: &mut Canvas<'_>, area: Rect, lines: &[Line], scroll: usize) {
    let scroll = scroll.min(lines.len().saturating_sub(usize::from(area.height)));
    for (at, line) in lines.iter().skip(scroll).take(area.height.into()).enumerate() {
        match line {
            Line::Rule => c.rule(area, at as u16, &[], &[]),
            Line::Text(text, role) => c.text(area, at as u16, text, *role),
        }
    }
    // That there are more is said where that hides nothing.
    let height = usize::from(area.height);
    let more = format!(" +{} more", (lines.len() - scroll).saturating_sub(height));
    if lines.len() - scroll > height
        && let Some(Line::Text(last, _)) = lines.get(scroll + height.saturating_sub(1))
        && width(last) + more.len() <= usize::from(area.width)
    {
        c.pieces_right(area, area.height.saturating_sub(1), &[(&more, Role::Dim)]);
    }
}

/// The pane: what fits of users, rate, day and jobs.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, scroll: usize) {
    lines_at(c, area, &lines(v, area, c.glyphs), scroll);
}

/// The users, the rate and the day first; where it is high, the sum, and what jobs have held.
fn lines(v: &View<'_>, area: Rect, glyphs: Glyphs) -> Vec<Line> {
    let mut out = users(v, usize::from(area.width));
    let height = usize::from(area.height);
    let jobs = jobs(v, usize::from(area.width));
    let rates = rates(v, usize::from(area.width), glyphs);
    out.push(Line::Rule);
    if height >= out.len() + rates.len() + 2 + jobs.len().min(4) {
        out.extend(sum(v, usize::from(area.width)));
    } else if height >= out.len() + 5 && v.ui.size.0 >= 180 {
        // The header has the rate at this size: the room is for the jobs.
        out.extend(sum(v, usize::from(area.width)));
        out.push(Line::Text(String::new(), Role::Text));
        out.extend(jobs);
        return out;
    }
    out.extend(rates);
    out.push(Line::Text(String::new(), Role::Text));
    out.extend(jobs);
    out
}

/// `USER HELD RUN WAIT TODAY 7 DAYS`
fn user_line(cells: [&str; 6], columns: usize) -> String {
    let widths = if columns < 45 { [8, 4, 5, 5, 9, 9] } else { [8, 4, 6, 5, 9, 11] };
    let mut text = left(cells[0], widths[0]);
    for (cell, width) in cells[1..].iter().zip(&widths[1..]) {
        text.push_str(&right(cell, *width));
    }
    text
}

fn users(v: &View<'_>, columns: usize) -> Vec<Line> {
    let head = user_line(["USER", "HELD", "RUN", "WAIT", "TODAY", "7 DAYS"], columns);
    let mut out = vec![Line::Text(head, Role::Title)];
    let me = v.ui.me(v.snap);
    for user in &v.snap.meter.users {
        let more = since_snapshot(v, |row| row.user == user.user);
        let cells = [
            &user.user,
            &user.held.to_string(),
            &user.running.to_string(),
            &user.waiting.to_string(),
            &hours(todays(v, user.today_gpu_ms, |row| row.user == user.user)),
            &week(user.week_gpu_ms.saturating_add_signed(more)),
        ];
        let text = user_line(cells.map(String::as_str), columns);
        out.push(Line::Text(text, if user.user == me { Role::Title } else { Role::Text }));
    }
    if v.snap.meter.users.is_empty() && v.ui.known {
        out.push(Line::Text("Nobody has held a GPU in seven days.".to_owned(), Role::Dim));
    }
    out
}

fn sum(v: &View<'_>, columns: usize) -> Option<Line> {
    let meter = &v.snap.meter;
    let all = |of: &dyn Fn(&crate::protocol::UserMeter) -> u64| meter.users.iter().map(of).sum::<u64>();
    let cells = [
        "all",
        &meter.gpus_held.to_string(),
        &all(&|u| u64::from(u.running)).to_string(),
        &all(&|u| u64::from(u.waiting)).to_string(),
        &hours(today_gpu_ms(v)),
        &week(all(&|u| u.week_gpu_ms).saturating_add_signed(since_snapshot(v, |_| true))),
    ];
    (meter.users.len() > 1).then(|| Line::Text(user_line(cells, columns), Role::Text))
}

/// GPU-hours an hour: what is held costs as many.
pub(in crate::tui) fn rate(v: &View<'_>) -> u32 {
    v.snap.jobs.iter().flat_map(|row| &row.open).map(|lease| lease.gpus).sum()
}

/// The rate and what nobody holds; the day in a line.
pub(in crate::tui) fn rates(v: &View<'_>, columns: usize, glyphs: Glyphs) -> Vec<Line> {
    let free = v.snap.gpus.iter().filter(|gpu| gpu.state == DeviceState::Free).count();
    let now = format!("now +{}.0 GPU-h per hour   idle GPUs {free}", rate(v));
    let mut out = vec![Line::Text(now, Role::Text)];
    if !v.ui.thrift {
        out.extend(day(v, columns.saturating_sub(7).min(MeterSummary::DAY_STEPS), glyphs));
    }
    out
}

/// GPU-hours of the last 24 hours, a full line being all GPUs all the time.
fn day(v: &View<'_>, columns: usize, glyphs: Glyphs) -> Option<Line> {
    let meter = &v.snap.meter;
    if meter.day.is_empty() {
        return None;
    }
    let full = MeterSummary::STEP_MS as f64 * f64::from(meter.gpus_total.max(1));
    let mut steps: Vec<Option<f64>> = meter.day.iter().map(|ms| Some(*ms as f64)).collect();
    // The last step is under way: it is compared with the part of it that is over.
    let begun = meter.day_began + (steps.len() as i64 - 1) * MeterSummary::STEP_MS;
    let over = (v.snap.at.wall_ms - begun).clamp(1, MeterSummary::STEP_MS) as f64;
    if let Some(Some(last)) = steps.last_mut() {
        *last *= MeterSummary::STEP_MS as f64 / over;
    }
    Some(Line::Text(format!("24 h  {}", chart::spark(&steps, columns, full, glyphs)), Role::Spark))
}

/// What jobs that are not done have held, the most first.
pub(in crate::tui) fn jobs(v: &View<'_>, columns: usize) -> Vec<Line> {
    let held = v.snap.jobs.iter().filter(|row| row.state != Cursor::Queued || !row.open.is_empty());
    let mut held: Vec<&JobRow> = held.map(|row| &**row).collect();
    if held.is_empty() && !v.ui.known {
        return Vec::new();
    }
    if held.is_empty() {
        return vec![Line::Text("Nobody holds a GPU now.".to_owned(), Role::Dim)];
    }
    // By what is shown of it: rows that look equal do not change places.
    held.sort_by_key(|row| (std::cmp::Reverse(row.gpu_ms(&v.minute) / 36_000), row.id));
    let more = if columns >= 60 { "   NAME" } else { "" };
    let head = format!("{}{more}", job_line(["JOB", "USER", "GPU", "HELD", "LIMIT"]));
    let mut out = vec![Line::Text(head, Role::Title)];
    for row in held {
        let limit = match row.limit {
            Limit::For(span) => duration(span),
            Limit::UntilDone => "none".to_owned(),
        };
        let cells = [
            &format!("#{}", row.id),
            &row.user,
            &row.gpus.to_string(),
            &hours(row.gpu_ms(&v.minute)),
            &limit,
        ];
        let mut text = job_line(cells.map(String::as_str));
        let idle = idle(v, row);
        if columns >= 60 {
            text = format!("{text}   {}{}", row.name, idle.as_deref().unwrap_or_default());
        } else if idle.is_some() {
            text.push_str("  idle");
        }
        out.push(Line::Text(text, if idle.is_some() { Role::ToastWarn } else { Role::Text }));
    }
    out
}

/// Which of its devices it holds and does not use.
fn idle(v: &View<'_>, row: &JobRow) -> Option<String> {
    let idle: Vec<_> = v.snap.gpus.iter().filter(|gpu| gpu.jobs.contains(&row.id)).collect();
    let since = idle.iter().filter_map(|gpu| gpu.idle_since).min()?;
    let which: Vec<String> =
        idle.iter().filter(|gpu| gpu.idle_since.is_some()).map(|gpu| gpu.index.to_string()).collect();
    let since = moment(since, v.now.wall_ms, &v.ui.tz);
    Some(format!("  idle: gpu {} since {since}", which.join(",")))
}

fn job_line(cells: [&str; 5]) -> String {
    let [job, user, gpus, held, limit] = cells;
    format!("{}{}{}{}{}", left(job, 8), left(user, 6), right(gpus, 3), right(held, 7), right(limit, 8))
}

/// The number of lines, for scrolling.
pub(in crate::tui) fn count(v: &View<'_>, area: Rect) -> usize {
    lines(v, area, v.ui.glyphs).len()
}
