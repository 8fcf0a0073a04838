//! The devices: a grid, a list beside the queue, and a screen of their own. What could not be read is `n/a`, never 0.

use crate::model::{Cursor, DeviceState};
use crate::protocol::{GpuRow, JobRow};
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::chart;
use crate::tui::look::text::{cut_end, cut_middle, gib, left, right, width, wrap};
use crate::tui::look::theme::Role;
use crate::tui::panels::charts;
use ratatui::layout::Rect;

/// More devices than this are one sign each.
const FOLDS: usize = 16;
/// Signs in a row of such a map.
const MAP_COLUMNS: usize = 32;

/// Rows of the grid: two devices a row, up to eight; more fold into cells.
pub(in crate::tui) const fn grid_rows(gpus: usize) -> u16 {
    match gpus {
        1..=8 => gpus.div_ceil(2) as u16,
        // Where there is none, why.
        0 | 9..=FOLDS => 2,
        // Hosts with more than six rows of signs do not exist; what is cut is in the list.
        _ if gpus > 6 * MAP_COLUMNS => 6,
        _ => gpus.div_ceil(MAP_COLUMNS) as u16,
    }
}

/// What a device does, in a few letters, where it has no bar.
fn word(v: &View<'_>, gpu: &GpuRow) -> Option<(&'static str, Role)> {
    match &gpu.state {
        DeviceState::Free => None,
        DeviceState::Held { .. } => {
            let renting = job(v, gpu).is_some_and(|row| row.state == Cursor::Renting);
            renting.then_some(("rent", Role::Rent))
        }
        DeviceState::Draining { .. } => Some(("drain", Role::Rel)),
        DeviceState::Quarantined(_) => Some(("!quar", Role::Fail)),
        DeviceState::Outside { .. } => Some(("other", Role::ToastWarn)),
        DeviceState::Closed { .. } => Some(("close", Role::Paused)),
        DeviceState::Gone { .. } => Some(("!gone", Role::Fail)),
        DeviceState::Unknown { .. } => Some(("n/a", Role::ToastWarn)),
    }
}

/// The first job that holds a device.
fn job<'a>(v: &'a View<'_>, gpu: &GpuRow) -> Option<&'a JobRow> {
    gpu.jobs.first().and_then(|id| v.find(*id))
}

/// Who has a device, in words.
fn label(v: &View<'_>, gpu: &GpuRow, name_within: Option<usize>) -> (String, Role) {
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
fn shortened(gpu: &GpuRow, label: &str, columns: usize) -> String {
    let is_name = matches!(gpu.state, DeviceState::Held { .. });
    if is_name { cut_middle(label, columns) } else { cut_end(label, columns) }
}

fn memory(gpu: &GpuRow) -> String {
    let used = gpu.memory_used.map_or_else(|| "n/a".to_owned(), |used| gib(used).to_string());
    format!("{used}/{}G", gib(gpu.memory_total))
}

/// Bar and percent, or the word that stands for them; returns the column after it.
fn load(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, at: (u16, u16), bar: u16) -> u16 {
    let (x, y) = at;
    let word = word(v, gpu);
    let percent =
        gpu.utilisation.filter(|_| word.is_none() || matches!(gpu.state, DeviceState::Outside { .. }));
    let x = c.bar(x, y, bar, percent.unwrap_or(0));
    let idle = gpu.idle_since.is_some() && word.is_none();
    let (text, role) = match (word, percent) {
        _ if idle => (" idle".to_owned(), Role::ToastWarn),
        (Some((word, role)), _) => (format!(" {}", left(word, 5)), role),
        (None, Some(percent)) => (right(&format!("{percent}%"), 4), Role::Text),
        (None, None) => (right("n/a", 4), Role::Dim),
    };
    let style = c.theme.style(role);
    c.put(x, y, 7, &text, style)
}

/// Columns from the end of the bar to the end of the memory figures.
const MEMORY_ENDS: u16 = 12;

/// A hundred gibibytes and more take a column more.
fn is_wide(v: &View<'_>) -> bool {
    v.snap.gpus.iter().any(|gpu| gib(gpu.memory_total) >= 100)
}

/// One device in half a line.
fn cell(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, area: Rect) {
    let index = left(&gpu.index.to_string(), 2);
    let x = c.pieces(area, 0, &[(&index, Role::Title)]);
    let mut x = load(c, v, gpu, (x, area.y), 12);
    let text = c.theme.style(Role::Text);
    let ends = 14 + MEMORY_ENDS + u16::from(is_wide(v));
    let room = |x: u16| area.right().saturating_sub(x);
    match word(v, gpu) {
        None => {
            let columns = usize::from((area.x + ends).saturating_sub(x));
            x = c.put(x, area.y, room(x), &right(&memory(gpu), columns), text);
        }
        // Who gets it stands below who has the others.
        Some(("rent", _)) => x = (area.x + ends).min(area.right()),
        Some(_) => {}
    }
    let (label, role) = label(v, gpu, None);
    let room = area.right().saturating_sub(x + 1);
    let style = c.theme.style(role);
    c.put(x + 1, area.y, room, &shortened(gpu, &label, usize::from(room)), style);
}

/// The grid of the one-column layout.
pub(in crate::tui) fn grid(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if area.height == 0 || !v.ui.known {
        return;
    }
    let count = v.snap.gpus.len();
    if count == 0 {
        tell_none(c, area, v);
        return;
    }
    if count > FOLDS {
        map(c, area, v);
        return;
    }
    if count > 8 {
        folded(c, area, v);
        return;
    }
    let half = area.width / 2 - 1;
    let per_column = count.div_ceil(2);
    for (at, gpu) in v.snap.gpus.iter().enumerate() {
        let x = if at < per_column { area.x } else { area.x + half + 1 };
        let y = (at % per_column) as u16;
        if y < area.height {
            cell(c, v, gpu, Rect { x, y: area.y + y, width: half, height: 1 });
        }
    }
}

/// One short cell for each of many devices.
fn folded(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let mut x = area.x;
    let mut y = 0;
    for gpu in &v.snap.gpus {
        let (text, role) = short(v, gpu);
        let text = left(&text, 9);
        if x + 9 > area.right() {
            x = area.x;
            y += 1;
        }
        c.pieces(Rect { x, width: area.right() - x, ..area }, y, &[(&text, role)]);
        x += 9;
    }
}

fn short(v: &View<'_>, gpu: &GpuRow) -> (String, Role) {
    match (word(v, gpu), &gpu.state, gpu.utilisation) {
        (Some((word, role)), _, _) => (format!("{}:{word}", gpu.index), role),
        (None, DeviceState::Free, _) => (format!("{}:-", gpu.index), Role::Dim),
        (None, _, Some(percent)) => (format!("{}:{percent}", gpu.index), Role::Run),
        (None, _, None) => (format!("{}:n/a", gpu.index), Role::Dim),
    }
}

/// All devices in one line: `GPU 0:93 1:91 2:-`.
pub(in crate::tui) fn one_line(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if area.height == 0 || !v.ui.known {
        return;
    }
    let columns: usize = v.snap.gpus.iter().map(|gpu| width(&short(v, gpu).0) + 1).sum();
    if columns + 3 > usize::from(area.width) {
        let line = counted(v);
        c.pieces(area, 0, &[("GPU ", Role::Title), (&line, Role::Text)]);
        return;
    }
    let mut x = c.pieces(area, 0, &[("GPU", Role::Title)]);
    for gpu in &v.snap.gpus {
        let (text, role) = short(v, gpu);
        let text = format!(" {text}");
        x = c.pieces(Rect { x, width: area.right().saturating_sub(x), ..area }, 0, &[(&text, role)]);
    }
    if v.snap.gpus.is_empty() {
        c.pieces(Rect { x, width: area.right().saturating_sub(x), ..area }, 0, &[(" none", Role::Dim)]);
    }
}

/// Why there is no device, and what can be had without one.
fn none(v: &View<'_>) -> String {
    let by = &v.snap.scheduler.gpus_by;
    let why = match by.split_once(": ") {
        Some((_, why)) => why.trim_end_matches('.').to_owned(),
        None if by == "none" => "none were asked for".to_owned(),
        None => format!("{by} lists none"),
    };
    format!("No GPU found: {why}. Simulated GPUs: overnight demo.")
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

/// One sign for a device: how busy it is, or what is wrong with it.
fn sign(c: &Canvas<'_>, v: &View<'_>, gpu: &GpuRow) -> (String, Role) {
    let (sign, role) = match (&gpu.state, word(v, gpu), gpu.utilisation) {
        (DeviceState::Free, _, _) => ("-", Role::Dim),
        (DeviceState::Draining { .. }, _, _) => ("~", Role::Rel),
        (DeviceState::Quarantined(_) | DeviceState::Gone { .. }, _, _) => ("!", Role::Fail),
        (DeviceState::Outside { .. }, _, _) => ("o", Role::ToastWarn),
        (DeviceState::Closed { .. }, _, _) => ("x", Role::Paused),
        (DeviceState::Unknown { .. }, _, _) => ("?", Role::ToastWarn),
        (DeviceState::Held { .. }, Some(_), _) => ("r", Role::Rent),
        (DeviceState::Held { .. }, None, _) if gpu.idle_since.is_some() => ("i", Role::ToastWarn),
        (DeviceState::Held { .. }, None, None) => ("?", Role::Dim),
        (DeviceState::Held { .. }, None, Some(percent)) => {
            let [mid, high] = c.theme.gauge_at;
            let role = match percent {
                p if p >= high => Role::GaugeHigh,
                p if p >= mid => Role::GaugeMid,
                _ => Role::GaugeLow,
            };
            return (chart::spark(&[Some(f64::from(percent))], 1, 100.0, c.glyphs), role);
        }
    };
    (sign.to_owned(), role)
}

/// Many devices: one sign each, in groups of eight.
fn map(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let count = v.snap.gpus.len();
    for (at, gpu) in v.snap.gpus.iter().enumerate() {
        let (row, column) = ((at / MAP_COLUMNS) as u16, at % MAP_COLUMNS);
        if row >= area.height {
            break;
        }
        if column == 0 {
            c.text(area, row, &right(&gpu.index.to_string(), 3), Role::Title);
        }
        let x = area.x + 4 + (column + column / 8) as u16;
        let (sign, role) = sign(c, v, gpu);
        let style = c.theme.style(role);
        if x < area.right() {
            let x = c.put(x, area.y + row, 1, &sign, style);
            if v.ui.gpu.as_ref() == Some(&gpu.uuid) && v.ui.focus == crate::tui::layout::Pane::Gpus {
                c.over(Rect { x: x - 1, y: area.y + row, width: 1, height: 1 }, Role::CursorRow);
            }
        }
    }
    let beside = Rect { x: (area.x + 41).min(area.right()), ..area };
    let beside = Rect { width: area.right() - beside.x, ..beside };
    let all = format!("{count} GPUs: {}", counted(v));
    let lines = crate::tui::overlay::confirm::wrapped(&all, usize::from(beside.width));
    for (row, line) in lines.iter().enumerate().take(area.height.into()) {
        c.text(beside, row as u16, line, Role::Text);
    }
}

/// How many devices are in which state.
fn counted(v: &View<'_>) -> String {
    let mut states: Vec<(&str, usize)> = Vec::new();
    for gpu in &v.snap.gpus {
        let word = gpu.state.word();
        match states.iter_mut().find(|(other, _)| *other == word) {
            Some((_, count)) => *count += 1,
            None => states.push((word, 1)),
        }
    }
    let words: Vec<String> = states.iter().map(|(word, count)| format!("{count} {word}")).collect();
    words.join(", ")
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
    if v.snap.gpus.len() > FOLDS && area.height > 4 {
        let rows = grid_rows(v.snap.gpus.len()).min(area.height - 3);
        map(c, Rect { height: rows, ..area }, v);
        area = Rect { y: area.y + rows, height: area.height - rows, ..area };
    }
    let top = v.top(crate::tui::layout::Pane::Gpus, usize::from(area.height), v.snap.gpus.len());
    for (row, gpu) in v.snap.gpus.iter().skip(top).take(area.height.into()).enumerate() {
        let at = top + row;
        let row = row as u16;
        let selected = focus && v.ui.gpu.as_ref() == Some(&gpu.uuid);
        line(c, v, gpu, (area, row), selected);
        c.spot(
            Rect { y: area.y + row, height: 1, ..area },
            Action::Select(crate::tui::layout::Pane::Gpus, at),
        );
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

/// A process that no job owns, on a device that a job holds or nobody does.
fn stranger(gpu: &GpuRow) -> Option<String> {
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
