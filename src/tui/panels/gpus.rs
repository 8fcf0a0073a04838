//! The devices as a list, beside the queue and on their own screen. What could not be read is `n/a`, never 0.

use crate::model::{Cursor, DeviceState};
use crate::protocol::{GpuRow, JobRow};
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::chart;
use crate::tui::look::text::{cut_end, cut_middle, gib, left, right, width, wrap};
use crate::tui::look::theme::Role;
use crate::tui::panels::{charts, gpugrid};
use crate::tui::rows;
use ratatui::layout::Rect;

/// What a device does, in a few letters, where it has no bar.
pub(super) fn word(v: &View<'_>, gpu: &GpuRow) -> Option<(&'static str, Role)> {
    match &gpu.state {
        DeviceState::Free => None,
        DeviceState::Held { .. } => {
            let renting = job(v, gpu).is_some_and(|row| row.state == Cursor::Renting);
            renting.then_some(("rent", Role::Rent))
        }
        DeviceState::Draining { .. } => Some(("drain", Role::Rel)),
        DeviceState::Quarantined(_) => Some(("!quar", Role::Fail)),
        DeviceState::Outside { .. } => Some(("other", Role::ToastWarn)),
        DeviceState::Closed { .. } => Some(("closed", Role::Paused)),
        DeviceState::Gone { .. } => Some(("!gone", Role::Fail)),
        DeviceState::Unknown { .. } => Some(("n/a", Role::ToastWarn)),
    }
}

/// The first job that holds a device.
fn job<'a>(v: &'a View<'_>, gpu: &GpuRow) -> Option<&'a JobRow> {
    gpu.jobs.first().and_then(|id| v.find(*id))
}

/// Who has a device, in words.
pub(super) fn label(v: &View<'_>, gpu: &GpuRow, name_within: Option<usize>) -> (String, Role) {
    let detail = || gpu.detail.clone();
    match &gpu.state {
        DeviceState::Free => ("free".to_owned(), Role::Dim),
        DeviceState::Held { .. } => {
            let more = if gpu.jobs.len() > 1 { format!(" +{}", gpu.jobs.len() - 1) } else { String::new() };
            match (job(v, gpu), name_within) {
                (Some(row), Some(columns)) => {
                    let who = format!("#{} {:<4} ", row.id, row.user);
                    let name = cut_middle(&row.name, columns.saturating_sub(width(&who) + more.len()));
                    (format!("{who}{name}{more}"), Role::Text)
                }
                (Some(row), None) => (format!("#{} {}{more}", row.id, row.user), Role::Text),
                (None, _) => {
                    (gpu.jobs.first().map_or_else(|| "held".to_owned(), |id| format!("#{id}")), Role::Text)
                }
            }
        }
        DeviceState::Draining { .. } => {
            // The word before it says that it drains: what is waited for is left to be said.
            let why = detail().map(|detail| match detail.split_once(": ") {
                Some((_, why)) => why.to_owned(),
                None => detail.trim_start_matches("draining ").to_owned(),
            });
            (why.unwrap_or_else(|| "being proven clean".to_owned()), Role::Rel)
        }
        DeviceState::Quarantined(why) => (why.why.clone(), Role::Fail),
        DeviceState::Outside { who } => (who.clone(), Role::ToastWarn),
        DeviceState::Closed { reason, by } => (format!("by {by}: {reason}"), Role::Paused),
        DeviceState::Gone { detail } | DeviceState::Unknown { detail } => (detail.clone(), Role::Fail),
    }
}

/// Names are cut in the middle, sentences at their end.
pub(super) fn shortened(gpu: &GpuRow, label: &str, columns: usize) -> String {
    let is_name = matches!(gpu.state, DeviceState::Held { .. });
    if is_name { cut_middle(label, columns) } else { cut_end(label, columns) }
}

pub(super) fn memory(gpu: &GpuRow) -> String {
    let used = gpu.memory_used.map_or_else(|| "n/a".to_owned(), |used| gib(used).to_string());
    format!("{used}/{}G", gib(gpu.memory_total))
}

/// Bar and percent, or the word that stands for them; returns the column after it.
pub(super) fn load(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, at: (u16, u16), bar: u16) -> u16 {
    let (x, y) = at;
    let word = word(v, gpu);
    let percent =
        gpu.utilisation.filter(|_| word.is_none() || matches!(gpu.state, DeviceState::Outside { .. }));
    let x = c.bar(x, y, bar, percent.unwrap_or(0));
    let idle = gpu.idle_since.is_some() && word.is_none();
    let (text, role) = match (word, percent) {
        _ if idle => (" idle".to_owned(), Role::ToastWarn),
        (Some((word, role)), _) => (format!(" {}", left(word, 5.max(word.len()))), role),
        (None, Some(percent)) => (right(&format!("{percent}%"), 4), Role::Text),
        (None, None) => (right("n/a", 4), Role::Dim),
    };
    let style = c.theme.style(role);
    c.put(x, y, 7, &text, style)
}

/// Columns from the end of the bar to the end of the memory figures.
pub(super) const MEMORY_ENDS: u16 = 12;

/// A hundred gibibytes and more take a column more.
pub(super) fn is_wide(v: &View<'_>) -> bool {
    v.snap.gpus.iter().any(|gpu| gib(gpu.memory_total) >= 100)
}

/// Why there is no device, and what can be had without one.
fn none(v: &View<'_>) -> String {
    let by = &v.snap.scheduler.gpus_by;
    let why = match by.split_once(": ") {
        Some((_, why)) => why.trim_end_matches('.').to_owned(),
        None if by == "none" => "none were asked for".to_owned(),
        None => format!("{by} lists none"),
    };
    format!("No GPU found (simulated ones: overnight demo): {why}.")
}

/// The same in as many lines as it takes; the lines that it took.
pub(in crate::tui) fn tell_none(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) -> u16 {
    if !v.ui.known {
        return 0;
    }
    let lines = wrap(&none(v), area.width.into(), 0);
    for (row, line) in lines.iter().enumerate() {
        c.text(area, row as u16, line, Role::Dim);
    }
    lines.len() as u16
}

/// Columns from the left to who has it.
const FIGURES: u16 = 47;
/// Columns for who has it, where something comes behind.
const WHO: u16 = 24;

/// The columns of a line of figures, for a list of so many devices.
pub(in crate::tui) fn head(count: usize) -> String {
    let index = if count > 10 { 3 } else { 2 };
    format!("{}LOAD                        MEMORY TEMP POWER  JOB", left("#", index))
}

/// Whether there is room for what the devices did lately.
pub(in crate::tui) const fn has_sparks(area: Rect) -> bool {
    area.width >= FIGURES + WHO + 12
}

/// The list beside the queue.
pub(in crate::tui) fn list(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, focus: bool) {
    if v.snap.gpus.is_empty() {
        tell_none(c, area, v);
        return;
    }
    let mut area = area;
    let shown = rows::gpus(v.ui, v.snap);
    if shown.is_empty() {
        crate::tui::panels::empty::hidden(c, area, v, Pane::Gpus);
        return;
    }
    if shown.len() > gpugrid::FOLDS && area.height > 4 {
        let rows = gpugrid::grid_rows(v.snap.gpus.len()).min(area.height - 3);
        gpugrid::map(c, Rect { height: rows, ..area }, v);
        area = Rect { y: area.y + rows, height: area.height - rows, ..area };
    }
    let top = v.top(Pane::Gpus, usize::from(area.height), shown.len());
    for (row, gpu) in shown.into_iter().skip(top).take(area.height.into()).enumerate() {
        let at = top + row;
        let row = row as u16;
        let selected = focus && v.ui.gpu.as_ref() == Some(&gpu.uuid);
        line(c, v, gpu, (area, row), selected);
        c.spot(Rect { y: area.y + row, height: 1, ..area }, Action::Select(Pane::Gpus, at));
        if selected {
            c.cursor_row(area, row);
        }
    }
}

fn line(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, (area, row): (Rect, u16), selected: bool) {
    let y = area.y + row;
    let text = c.theme.style(Role::Text);
    let digits = if v.snap.gpus.len() > 10 { 2 } else { 1 };
    let index = format!("{}{}", left(&gpu.index.to_string(), digits), if selected { ">" } else { " " });
    let start = c.pieces(area, row, &[(&index, Role::Title)]);
    let mut x = load(c, v, gpu, (start, y), 22);
    // Words that say what is wrong have the room of the line of what was.
    let is_plain =
        matches!(gpu.state, DeviceState::Held { .. } | DeviceState::Free) && stranger(gpu).is_none();
    let sparks = has_sparks(area) && is_plain && !v.ui.thrift;
    let who = if sparks { area.x + FIGURES + WHO } else { area.right() };
    let room = |x: u16| who.saturating_sub(x);
    let word = word(v, gpu).map(|(word, _)| word);
    if word.is_none_or(|word| word == "drain") {
        let watts = gpu.power_w.map_or_else(|| "n/a".to_owned(), |watts| format!("{watts}W"));
        let columns = usize::from((start + 22 + MEMORY_ENDS + u16::from(is_wide(v))).saturating_sub(x));
        x = c.put(x, y, room(x), &right(&memory(gpu), columns), text);
        let (degrees, role) = temperature(c, gpu);
        let style = c.theme.style(role);
        x = c.put(x, y, room(x), &right(&degrees, 4), style);
        x = c.put(x, y, room(x), &format!(" {}", right(&watts, 4)), text);
    } else if word == Some("rent") {
        x = (start + FIGURES - 4).min(area.right());
    }
    x = c.put(x, y, room(x), "  ", text);
    let (mut label, role) = label(v, gpu, Some(usize::from(room(x))));
    if word == Some("rent")
        && let Some(row) = job(v, gpu)
    {
        label = format!("#{} {:<4} starting", row.id, row.user);
    }
    let ours = v.ui.queue_job.is_some_and(|job| gpu.jobs.contains(&job));
    let role = if ours && role == Role::Text { Role::Title } else { role };
    let style = c.theme.style(role);
    x = c.put(x, y, room(x), &shortened(gpu, &label, usize::from(room(x))), style);
    if let Some(other) = stranger(gpu) {
        let style = c.theme.style(Role::ToastWarn);
        c.put(x, y, room(x), &other, style);
    }
    if sparks && let Some(values) = charts::utilisation(v, gpu) {
        let columns = usize::from(area.right().saturating_sub(who + 1)).min(80);
        let line = chart::spark(&values, columns, 100.0, c.glyphs);
        let style = c.theme.style(Role::Spark);
        c.put(who, y, columns as u16, &line, style);
    }
}

/// What is odd about a device that a job holds or nobody does: that it is to be closed, or a process that no job owns.
fn stranger(gpu: &GpuRow) -> Option<String> {
    let is_held = matches!(gpu.state, DeviceState::Held { .. });
    if let Some(detail) = gpu.detail.as_ref().filter(|detail| is_held && detail.starts_with("to be closed")) {
        return Some(format!("  {detail}"));
    }
    if !matches!(gpu.state, DeviceState::Held { .. } | DeviceState::Free) {
        return None;
    }
    let other = gpu.processes.iter().find(|process| process.token.is_none() && !process.ignored)?;
    let name = if other.name.is_empty() { String::new() } else { format!(" {}", other.name) };
    let owner = other.user.clone().or_else(|| other.uid.map(|uid| format!("uid {uid}")));
    let owner = owner.map(|owner| format!(" {owner}")).unwrap_or_default();
    Some(format!("  other pid {}{owner}{name}", other.pid))
}

fn temperature(c: &Canvas<'_>, gpu: &GpuRow) -> (String, Role) {
    let [mid, high] = c.theme.temp_at;
    match gpu.temperature_c {
        None => ("n/a".to_owned(), Role::Dim),
        Some(t) if t >= i32::from(high) => (format!("{t}!"), Role::GaugeHigh),
        Some(t) if t >= i32::from(mid) => (format!("{t}C"), Role::GaugeMid),
        Some(t) => (format!("{t}C"), Role::Text),
    }
}
