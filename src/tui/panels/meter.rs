//! The ledger on screen: held now, GPU-hours today and in seven days, by user; and what running jobs have held.

use crate::model::{DeviceState, Limit};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{duration, hours, left, right};
use crate::tui::look::theme::Role;
use crate::tui::panels::header::{since_snapshot, today_gpu_ms};
use crate::tui::panels::queue;
use ratatui::layout::Rect;

/// One decimal for a week.
fn week(gpu_ms: u64) -> String {
    format!("{:.1}", gpu_ms as f64 / 3_600_000.0)
}

/// The pane, and the whole screen: what fits of users, rate and jobs.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, scroll: usize) {
    let lines = lines(v, usize::from(area.width));
    let scroll = scroll.min(lines.len().saturating_sub(usize::from(area.height)));
    for (at, line) in lines.iter().skip(scroll).take(area.height.into()).enumerate() {
        match line {
            Line::Rule => c.rule(area, at as u16, &[], &[]),
            Line::Text(text, role) => c.text(area, at as u16, text, *role),
        }
    }
}

enum Line {
    Rule,
    Text(String, Role),
}

fn lines(v: &View<'_>, columns: usize) -> Vec<Line> {
    let meter = &v.snap.meter;
    let [name, held, running, waiting, today, week_columns] = match columns {
        0..45 => [8, 5, 5, 5, 9, 9],
        45..60 => [8, 7, 6, 5, 9, 10],
        _ => [14, 7, 6, 5, 9, 10],
    };
    let row = |cells: [&str; 6]| {
        let widths = [held, running, waiting, today, week_columns];
        let numbers = cells[1..].iter().zip(widths).map(|(cell, width)| right(cell, width));
        left(cells[0], name) + &numbers.collect::<String>()
    };
    let mut out = vec![Line::Text(row(["USER", "HELD", "RUN", "WAIT", "TODAY", "7 DAYS"]), Role::Title)];
    let me = v.ui.me(v.snap);
    for user in &meter.users {
        let more = since_snapshot(v, |row| row.user == user.user);
        let text = row([
            &user.user,
            &user.held.to_string(),
            &user.running.to_string(),
            &user.waiting.to_string(),
            &hours(user.today_gpu_ms + more),
            &week(user.week_gpu_ms + more),
        ]);
        out.push(Line::Text(text, if user.user == me { Role::Title } else { Role::Text }));
    }
    if meter.users.is_empty() {
        out.push(Line::Text("Nobody has held a GPU in seven days.".to_owned(), Role::Dim));
    }
    if meter.users.len() > 1 {
        let sum = |of: &dyn Fn(&crate::protocol::UserMeter) -> u64| meter.users.iter().map(of).sum::<u64>();
        let text = row([
            "all",
            &meter.gpus_held.to_string(),
            &sum(&|u| u64::from(u.running)).to_string(),
            &sum(&|u| u64::from(u.waiting)).to_string(),
            &hours(today_gpu_ms(v)),
            &week(sum(&|u| u.week_gpu_ms) + since_snapshot(v, |_| true)),
        ]);
        out.push(Line::Text(text, Role::Dim));
    }
    out.push(Line::Rule);
    out.extend(now_lines(v));
    out
}

/// What is held now, by job.
fn now_lines(v: &View<'_>) -> Vec<Line> {
    let mut out = Vec::new();
    // What is held costs as many GPU-hours an hour.
    let rate: u32 = v.snap.jobs.iter().flat_map(|row| &row.open).map(|lease| lease.gpus).sum();
    let idle = v.snap.gpus.iter().filter(|gpu| gpu.state == DeviceState::Free).count();
    out.push(Line::Text(format!("now +{rate}.0 GPU-h per hour   free GPUs {idle}"), Role::Text));
    let held: Vec<&JobRow> =
        v.snap.jobs.iter().filter(|row| !row.open.is_empty()).map(|row| &**row).collect();
    if !held.is_empty() {
        out.push(Line::Text(String::new(), Role::Text));
        let head = job_line("JOB", "USER", "GPU", "HELD", "LIMIT", "NAME");
        out.push(Line::Text(head, Role::Title));
    }
    for row in held {
        let limit = match row.limit {
            Limit::For(span) => duration(span),
            Limit::UntilDone => "none".to_owned(),
        };
        let text = job_line(
            &format!("#{}", row.id),
            &row.user,
            &row.gpus.to_string(),
            &hours(row.gpu_ms(&v.now)),
            &limit,
            &format!("{}  {}", row.name, queue::time(v, row)),
        );
        out.push(Line::Text(text, Role::Text));
    }
    out
}

fn job_line(job: &str, user: &str, gpus: &str, held: &str, limit: &str, name: &str) -> String {
    let job = left(job, 7);
    format!("{job} {}{}{}{}   {name}", left(user, 6), right(gpus, 5), right(held, 8), right(limit, 8))
}

/// The number of lines, for scrolling.
pub(in crate::tui) fn count(v: &View<'_>, columns: u16) -> usize {
    lines(v, usize::from(columns)).len()
}
