//! The five steps of a job: submit, rent, run, output, release. A line, and the lines of the job pane.

use crate::model::{Bytes, Cursor, Failure, Limit, Outcome};
use crate::protocol::{JobRow, Snapshot};
use crate::tui::View;
use crate::tui::errand::Measured;
use crate::tui::layout::{self, Pane};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{between, clock, duration, hours, moment, width, wrap};
use crate::tui::look::theme::Role;
use crate::tui::overlay::retry;
use crate::tui::panels::forecast;
use crate::tui::panels::log;
use crate::tui::panels::queue;
use crate::tui::rows;
use crate::tui::ui::{Tab, Ui};
use crate::tui::update::copying;
use ratatui::layout::Rect;

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Mark {
    Done,
    Now,
    Failed,
    ToCome,
    Skipped,
}

impl Mark {
    pub(in crate::tui) const fn shown(self) -> (&'static str, Role) {
        match self {
            Self::Done => ("[x]", Role::Text),
            Self::Now => ("[>]", Role::Run),
            Self::Failed => ("[!]", Role::Fail),
            Self::ToCome => ("[ ]", Role::Dim),
            Self::Skipped => ("[-]", Role::Dim),
        }
    }
}

/// The steps' names.
pub(in crate::tui) const STEPS: [&str; 5] = ["submit", "rent", "run", "output", "release"];

/// Where each step of a job stands, and when it began.
pub(in crate::tui) fn steps(row: &JobRow) -> [(Mark, Option<i64>); 5] {
    let times = [Some(row.submitted_at), row.rented_at, row.started_at, row.ended_at, row.done_at];
    let now = match row.state {
        Cursor::Queued => 0,
        Cursor::Renting => 1,
        Cursor::Running => 2,
        Cursor::Returning => 3,
        Cursor::Releasing => 4,
        Cursor::Done => 5,
    };
    let bad = row.outcome.as_ref().and_then(|outcome| failed_at(outcome, row));
    std::array::from_fn(|step| {
        let mark = if bad == Some(step) {
            Mark::Failed
        } else if step == 0 || step < now {
            if row.state == Cursor::Done && step > 0 && skipped(row, step) {
                Mark::Skipped
            } else {
                Mark::Done
            }
        } else if step == now {
            Mark::Now
        } else {
            Mark::ToCome
        };
        (mark, times[step])
    })
}

fn skipped(row: &JobRow, step: usize) -> bool {
    row.rented_at.is_none() || step == 2 && row.started_at.is_none()
}

/// The step at which a job that did not succeed came to its end.
fn failed_at(outcome: &Outcome, row: &JobRow) -> Option<usize> {
    let run = if row.rented_at.is_none() { 1 } else { 2 };
    match outcome {
        Outcome::Succeeded => None,
        // Nothing failed: it was taken out of the line.
        Outcome::Cancelled { .. } if row.rented_at.is_none() => None,
        Outcome::Failed(Failure::OutputMissing { .. }) => Some(3),
        Outcome::Failed(_) | Outcome::LimitReached | Outcome::Cancelled { .. } | Outcome::Lost { .. } => {
            Some(run)
        }
        Outcome::NeverStarted { .. } => Some(1),
    }
}

/// `09:14`, `+0:07`, `0h12m`: what is said beside a step.
fn beside(v: &View<'_>, row: &JobRow, step: usize, at: Option<i64>) -> String {
    let Some(at) = at else { return String::new() };
    match step {
        0 => moment(at, v.now.wall_ms, &v.ui.tz),
        2 => queue::time(v, row),
        _ => {
            let before = match step {
                1 => Some(row.submitted_at),
                3 => row.started_at.or(row.rented_at),
                _ => row.ended_at,
            };
            let s = between(before.unwrap_or(at), at).as_secs();
            if s < 3600 {
                format!("+{}:{:02}", s / 60, s % 60)
            } else {
                format!("+{}", duration(between(before.unwrap_or(at), at)))
            }
        }
    }
}

/// Title, life and the last log line: the bottom of the one-column layout.
pub(in crate::tui) fn bottom(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if area.height < 3 {
        return;
    }
    let row = rows::companion(v.ui).and_then(|job| v.find(job));
    let Some(row) = row else {
        c.rule(area, 0, &[], &[]);
        return;
    };
    let title = format!("#{} {}", row.id, row.name);
    c.rule(area, 0, &[(&title, Role::Title)], &[]);
    line(c, Rect { y: area.y + 1, height: 1, ..area }, v, row);
    let last = Rect { y: area.y + 2, height: 1, ..area };
    if row.state == Cursor::Queued {
        let (text, role) = waits(v, row, usize::from(area.width).saturating_sub(6));
        c.pieces(last, 0, &[("wait| ", Role::Dim), (&text, role)]);
    } else {
        log::last_line(c, last, v, row);
    }
}

/// When a waiting job starts; before that whether it will be late and why, else why it waits, as far as there is room.
fn waits(v: &View<'_>, row: &JobRow, columns: usize) -> (String, Role) {
    let starts = forecast::starts(v, row);
    let starts = starts.as_deref();
    if let Some(late) = forecast::late(v, row).filter(|_| row.cancel_at.is_none()) {
        return (queue::fitted(&late, starts, columns, false), Role::ToastWarn);
    }
    let (why, role) = queue::why(v, row);
    (queue::fitted(&why, starts.filter(|_| row.cancel_at.is_none()), columns, row.late), role)
}

/// The steps in one line.
pub(in crate::tui) fn line(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, row: &JobRow) {
    let mut x = area.x;
    let columns: usize = steps(row)
        .iter()
        .enumerate()
        .map(|(step, (mark, at))| {
            let is_told = *mark != Mark::ToCome && *mark != Mark::Skipped;
            let beside = if is_told { width(&beside(v, row, step, *at)) } else { 0 };
            3 + STEPS[step].len() + if beside > 0 { beside + 1 } else { 0 }
        })
        .sum();
    // Where there is no room for arrows there is room for the words.
    let between = if columns + 4 * 4 <= usize::from(area.width) { " -> " } else { " > " };
    for (step, (mark, at)) in steps(row).into_iter().enumerate() {
        let (sign, role) = mark.shown();
        let beside = if mark == Mark::ToCome || mark == Mark::Skipped {
            String::new()
        } else {
            beside(v, row, step, at)
        };
        let arrow = if step == 0 { "" } else { between };
        let text = format!("{sign}{}{}{beside}", STEPS[step], if beside.is_empty() { "" } else { " " });
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        x = c.pieces(rest, 0, &[(arrow, Role::Dim), (&text, role)]);
    }
    if row.state == Cursor::Queued {
        let (why, role) = queue::why(v, row);
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        let why = queue::fitted(&why, None, usize::from(rest.width).saturating_sub(2), row.late);
        c.pieces(rest, 0, &[("  ", Role::Dim), (&why, role)]);
    }
}

/// The job whose life is on the screen, in the job pane or the Summary tab.
pub(in crate::tui) fn shown<'a>(ui: &'a Ui, snap: &'a Snapshot) -> Option<&'a JobRow> {
    let snap = ui.shown(snap);
    let layout = layout::plan(Rect::new(0, 0, ui.size.0, ui.size.1), ui, snap);
    let is_shown = match &ui.opened {
        Some(opened) => opened.tab == Tab::Summary,
        None => layout.order().contains(&Pane::Job),
    };
    rows::find(ui, snap, rows::companion(ui)?).filter(|_| is_shown)
}

/// The job pane and the Summary tab.
pub(in crate::tui) fn summary(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, row: &JobRow, skip: usize) {
    let lines = lines(v, row, area.width.into());
    let skip = skip.min(lines.len().saturating_sub(usize::from(area.height).max(1)));
    for (at, (text, role)) in lines.iter().skip(skip).take(area.height.into()).enumerate() {
        c.text(area, at as u16, text, *role);
    }
}

/// Their lines in so many columns: nothing is cut.
pub(in crate::tui) fn lines(v: &View<'_>, row: &JobRow, columns: usize) -> Vec<(String, Role)> {
    let whole = whole(v, row, columns);
    whole
        .into_iter()
        .flat_map(|(text, role)| wrap(&text, columns, 6).into_iter().map(move |line| (line, role)))
        .collect()
}

fn whole(v: &View<'_>, row: &JobRow, columns: usize) -> Vec<(String, Role)> {
    let mut lines: Vec<(String, Role)> = Vec::new();
    for (step, (mark, at)) in steps(row).into_iter().enumerate() {
        let (sign, role) = mark.shown();
        lines.push((format!("{sign} {:<8}{}", STEPS[step], told(v, row, (step, mark, at), columns)), role));
    }
    let mut say = |label: &str, text: String| lines.push((format!("{label:<6}{text}"), Role::Text));
    if row.state == Cursor::Queued {
        say("why", queue::why(v, row).0);
        say("start", start(v, row, columns.saturating_sub(6)));
    }
    if let Some(outcome) = &row.outcome {
        say("end", retry::ended(v.ui, row.id, outcome));
    }
    say("cmd", row.command.clone());
    say("held", held(v, row));
    if let Some(deadline) = row.finish_by {
        let kept = || format!("{}, kept as things are", moment(deadline, v.now.wall_ms, &v.ui.tz));
        say("by", forecast::late(v, row).unwrap_or_else(kept));
    }
    say("dir", v.ui.flows.desk.homely(&row.directory));
    if !row.devices.is_empty() {
        let devices: Vec<&str> = row.devices.iter().map(|uuid| uuid.0.as_str()).collect();
        say("gpus", devices.join(" "));
    }
    let pids = pids(v, row);
    if !pids.is_empty() {
        say("pids", pids);
    }
    say("asks", asks(row));
    if let Some(project) = &row.project {
        say("for", format!("project {project}"));
    }
    if row.tasks.total > 1 {
        say("tasks", tasks(row));
    }
    let peaks = [
        row.peak_memory.map(|peak| format!("{peak} resident")),
        row.peak_gpu_memory.map(|peak| format!("{peak} of a GPU")),
        row.mean_utilisation.map(|load| format!("mean load {load}%")),
    ];
    let peaks: Vec<String> = peaks.into_iter().flatten().collect();
    if !peaks.is_empty() {
        say("peak", peaks.join("   "));
    }
    if let Some(mark) = &row.editing {
        let until = moment(mark.until, v.now.wall_ms, &v.ui.tz);
        say("edit", format!("by {} until {until}: it does not start meanwhile", mark.by));
    }
    if let Some(of) = row.retry_of {
        say("retry", format!("of #{of}"));
    }
    if row.warnings > 0 {
        lines
            .push((format!("{} warning(s) when it was accepted: tab Events", row.warnings), Role::ToastWarn));
    }
    lines
}

/// ` (214 MiB, 31 files so far)`, where there is room for the files.
fn so_far(found: Measured, columns: usize) -> String {
    let Measured { bytes, files } = found;
    let files = match files {
        _ if columns < 56 => String::new(),
        1 => ", 1 file".to_owned(),
        files => format!(", {files} files"),
    };
    format!(" ({}{files} so far)", Bytes(bytes))
}

fn told(v: &View<'_>, row: &JobRow, (step, mark, at): (usize, Mark, Option<i64>), columns: usize) -> String {
    let when = |at: i64| clock(at, &v.ui.tz);
    match (step, mark, at) {
        (3, Mark::ToCome, _) => {
            let found = v.ui.flows.lies_in(&copying::output(row));
            format!("-> output/{}", found.map_or_else(String::new, |found| so_far(found, columns)))
        }
        (_, Mark::ToCome | Mark::Skipped, _) => String::new(),
        (2, _, Some(_)) => {
            let limit = match row.limit {
                Limit::For(span) => format!("limit {}", duration(span)),
                Limit::UntilDone => "until done".to_owned(),
            };
            let ends = row.limit_at.filter(|_| row.state == Cursor::Running);
            let ends = ends
                .map_or_else(String::new, |at| format!("  ends<={}", moment(at, v.now.wall_ms, &v.ui.tz)));
            format!("{:<9} {limit}{ends}", queue::time(v, row))
        }
        (1, _, Some(at)) => {
            let leases: Vec<String> = row.open.iter().map(|open| open.lease.to_string()).collect();
            let lease =
                if leases.is_empty() { String::new() } else { format!("  lease {}", leases.join(",")) };
            format!(
                "{}  {} {}{lease}",
                when(at),
                beside(v, row, step, Some(at)),
                queue::on(row).trim_start_matches(" on")
            )
        }
        (3, Mark::Now, _) => row.why.clone().unwrap_or_else(|| "being collected".to_owned()),
        (_, _, Some(at)) if step > 0 => format!("{}  {}", when(at), beside(v, row, step, Some(at))),
        (_, _, Some(at)) => when(at),
        (_, _, None) => String::new(),
    }
}

/// Its processes on its devices, as the driver lists them: `48122 python`.
fn pids(v: &View<'_>, row: &JobRow) -> String {
    let on = v.snap.gpus.iter().filter(|gpu| row.state != Cursor::Done && gpu.jobs.contains(&row.id));
    // Where jobs share a device, whose a process is cannot be told.
    let own = on.filter(|gpu| gpu.jobs.len() == 1).flat_map(|gpu| &gpu.processes);
    let mut found: Vec<String> = Vec::new();
    for process in own.filter(|process| process.token.is_some()) {
        let text = format!("{} {}", process.pid, process.name);
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found.join("  ").trim_end().to_owned()
}

/// When a waiting job will start.
fn start(v: &View<'_>, row: &JobRow, columns: usize) -> String {
    let text = row.place.map_or_else(String::new, |place| format!("place {place}  "));
    let when = forecast::starts(v, row).unwrap_or_else(|| "not known yet".to_owned());
    let whole = format!("{text}{when}");
    if width(&whole) <= columns { whole } else { whole.replace("no later than", "by") }
}

fn held(v: &View<'_>, row: &JobRow) -> String {
    let mut text = format!("{} GPU-h", hours(row.gpu_ms(&v.minute)));
    if row.gpus == 0 {
        text = format!("{} core-h", hours(row.core_ms(&v.now)));
    }
    if row.waived_gpu_ms > 0 {
        text = format!("{text}, {} not billed", hours(row.waived_gpu_ms));
    }
    if let (Limit::For(limit), true) = (row.limit, row.state == Cursor::Running && row.gpus > 0) {
        text = format!("{text}   at the limit {}", hours(limit.0 * u64::from(row.gpus)));
    }
    text
}

/// `12: 3 waiting, 2 running, 7 succeeded`
fn tasks(row: &JobRow) -> String {
    let it = &row.tasks;
    let all = [
        (it.queued, "waiting"),
        (it.active, "under way"),
        (it.succeeded, "succeeded"),
        (it.failed, "failed"),
        (it.cancelled, "cancelled"),
        (it.lost, "lost"),
    ];
    let some: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    format!("{}: {}", it.total, some.join(", "))
}

fn asks(row: &JobRow) -> String {
    let limit = match row.limit {
        Limit::For(span) => format!("for {}", duration(span)),
        Limit::UntilDone => "until done".to_owned(),
    };
    format!("{} GPU  {} cores  {}  {limit}  priority {}", row.gpus, row.cpus, row.memory, row.priority)
}
