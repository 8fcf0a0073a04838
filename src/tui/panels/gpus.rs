//! The devices: a grid, a list beside the queue, and a screen of their own. What could not be read is `n/a`, never 0.

use crate::model::{Cursor, DeviceState, Now, ProcessKind, Uuid};
use crate::protocol::{Command, Connection, GpuRow, GpuSelect, JobRow, Snapshot};
use crate::tui::UiCommand;
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, gib, left, right, width};
use crate::tui::look::theme::Role;
use crate::tui::overlay::{Button, Clear, Overlay};
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use ratatui::layout::Rect;

/// Rows below the list on the devices' own screen.
pub(in crate::tui) const DETAIL_ROWS: u16 = 5;

/// Rows of the grid: two devices a row, up to eight; more fold into cells.
pub(in crate::tui) const fn grid_rows(gpus: usize) -> u16 {
    match gpus {
        0 => 1,
        1..=8 => gpus.div_ceil(2) as u16,
        9..=16 => 2,
        17..=32 => 3,
        _ => 4,
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
    gpu.jobs.first().and_then(|id| rows::find(v.snap, *id))
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
            (detail().unwrap_or_else(|| "being proven clean".to_owned()), Role::Rel)
        }
        DeviceState::Quarantined(why) => (why.why.clone(), Role::Fail),
        DeviceState::Outside { who } => (who.clone(), Role::ToastWarn),
        DeviceState::Closed { reason, by } => (format!("by {by}: {reason}"), Role::Paused),
        DeviceState::Gone { detail } | DeviceState::Unknown { detail } => (detail.clone(), Role::Fail),
    }
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
    let (text, role) = match (word, percent) {
        (Some((word, role)), _) => (format!(" {}", left(word, 5)), role),
        (None, Some(percent)) => (right(&format!("{percent}%"), 4), Role::Text),
        (None, None) => (right("n/a", 4), Role::Dim),
    };
    let style = c.theme.style(role);
    c.put(x, y, 7, &text, style)
}

/// Columns from the end of the bar to the end of the memory figures.
const MEMORY_ENDS: u16 = 13;

/// One device in half a line.
fn cell(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, area: Rect) {
    let index = left(&gpu.index.to_string(), 2);
    let x = c.pieces(area, 0, &[(&index, Role::Title)]);
    let mut x = load(c, v, gpu, (x, area.y), 12);
    let quiet = word(v, gpu).is_some();
    let text = c.theme.style(Role::Text);
    if !quiet {
        x = c.put(x, area.y, 9, &format!(" {}", right(&memory(gpu), 7)), text);
    }
    let (label, role) = label(v, gpu, None);
    let room = area.right().saturating_sub(x + 1);
    let style = c.theme.style(role);
    c.put(x + 1, area.y, room, &cut_middle(&label, usize::from(room)), style);
}

/// The grid of the one-column layout.
pub(in crate::tui) fn grid(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if area.height == 0 || !v.ui.known {
        return;
    }
    let count = v.snap.gpus.len();
    if count == 0 {
        c.text(area, 0, &none(v), Role::Dim);
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

fn none(v: &View<'_>) -> String {
    format!("No GPU found: {}. Simulated GPUs: overnight demo.", v.snap.scheduler.gpus_by)
}

/// The list beside the queue.
pub(in crate::tui) fn list(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, focus: bool) {
    if v.snap.gpus.is_empty() {
        c.text(area, 0, &none(v), Role::Dim);
        return;
    }
    let top = v.top(crate::tui::layout::Pane::Gpus, usize::from(area.height), v.snap.gpus.len());
    for (row, gpu) in v.snap.gpus.iter().skip(top).take(area.height.into()).enumerate() {
        let at = top + row;
        let row = row as u16;
        line(c, v, gpu, area, row);
        c.spot(
            Rect { y: area.y + row, height: 1, ..area },
            Action::Select(crate::tui::layout::Pane::Gpus, at),
        );
        if focus && v.ui.gpu.as_ref() == Some(&gpu.uuid) {
            c.cursor_row(area, row);
        }
    }
}

fn line(c: &mut Canvas<'_>, v: &View<'_>, gpu: &GpuRow, area: Rect, row: u16) {
    let y = area.y + row;
    let text = c.theme.style(Role::Text);
    let index = left(&gpu.index.to_string(), if v.snap.gpus.len() > 10 { 3 } else { 2 });
    let start = c.pieces(area, row, &[(&index, Role::Title)]);
    let mut x = load(c, v, gpu, (start, y), 22);
    let room = |x: u16| area.right().saturating_sub(x);
    if word(v, gpu).is_none_or(|(word, _)| word == "rent" || word == "drain") {
        let watts = gpu.power_w.map_or_else(|| "n/a".to_owned(), |watts| format!("{watts}W"));
        let columns = usize::from((start + 22 + MEMORY_ENDS).saturating_sub(x));
        x = c.put(x, y, room(x), &right(&memory(gpu), columns), text);
        let (degrees, role) = temperature(c, gpu);
        let style = c.theme.style(role);
        x = c.put(x, y, room(x), &right(&degrees, 4), style);
        x = c.put(x, y, room(x), &format!(" {}", right(&watts, 4)), text);
    }
    x = c.put(x, y, room(x), "  ", text);
    let (label, role) = label(v, gpu, Some(usize::from(room(x))));
    let style = c.theme.style(role);
    c.put(x, y, room(x), &label, style);
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

/// The devices' own screen.
pub(in crate::tui) fn screen(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if v.snap.gpus.is_empty() {
        c.text(area, 0, &none(v), Role::Text);
        return;
    }
    c.text(area, 0, "#  LOAD                         MEMORY TEMP POWER JOB", Role::Title);
    let rows = area.height.saturating_sub(1 + DETAIL_ROWS);
    let body = Rect { y: area.y + 1, height: rows.max(1).min(area.height.saturating_sub(1)), ..area };
    list(c, body, v, true);
    let Some(gpu) = v.snap.gpus.iter().find(|row| Some(&row.uuid) == v.ui.gpu.as_ref()) else { return };
    if area.height < 3 + DETAIL_ROWS {
        return;
    }
    let foot = Rect { y: area.bottom() - DETAIL_ROWS, height: DETAIL_ROWS, ..area };
    let title = format!("GPU {} {}", gpu.index, gpu.name);
    c.rule(foot, 0, &[(&title, Role::Title)], &[]);
    let node = format!("  on {}", gpu.node);
    c.pieces(foot, 1, &[(&gpu.uuid.0, Role::Text), (&node, Role::Dim)]);
    let enforced = if gpu.enforced {
        "enforced: others cannot reach it while held"
    } else {
        "advisory: nothing keeps others off it"
    };
    let about = format!("{}  {}", gpu.state.word(), gpu.detail.as_deref().unwrap_or_default());
    c.pieces(foot, 2, &[(&about, Role::Text), ("   ", Role::Text), (enforced, Role::Dim)]);
    processes(c, foot, gpu);
}

fn processes(c: &mut Canvas<'_>, foot: Rect, gpu: &GpuRow) {
    if gpu.processes.is_empty() {
        c.text(foot, 3, "no process on it", Role::Dim);
        return;
    }
    let rows = usize::from(foot.height - 3);
    let mut row = 3;
    for process in gpu.processes.iter().take(rows) {
        let owner = if process.token.is_some() { "job's" } else { "other" };
        let kind = if process.kind == ProcessKind::Graphics { " graphics" } else { "" };
        let memory = process.memory.map_or_else(String::new, |bytes| format!("  {bytes}"));
        let text = format!("{owner} {}{kind}{memory}", process.words());
        c.text(foot, row, &text, if process.token.is_some() { Role::Text } else { Role::ToastWarn });
        row += 1;
    }
    if gpu.processes.len() > rows {
        let more = format!("+{} more ", gpu.processes.len() - rows);
        let style = c.theme.style(Role::Dim);
        let x = foot.right().saturating_sub(width(&more) as u16);
        c.put(x, foot.y + row - 1, width(&more) as u16, &more, style);
    }
}

/// The device under the cursor.
fn selected<'a>(ui: &Ui, snap: &'a Snapshot) -> Option<&'a GpuRow> {
    let gpu = ui.gpu.as_ref()?;
    snap.gpus.iter().find(|row| row.uuid == *gpu)
}

/// Why the quarantine of the device under the cursor cannot be lifted; `None` if it can.
pub(in crate::tui) fn refusal(ui: &Ui, snap: &Snapshot) -> Option<String> {
    match &ui.connection {
        Connection::Live => {}
        Connection::Stale { .. } => {
            return Some("cannot clear: the scheduler has not answered for a while".to_owned());
        }
        Connection::Lost { .. } => return Some("cannot clear: no scheduler".to_owned()),
    }
    match selected(ui, snap) {
        None => Some("no GPU is selected".to_owned()),
        Some(GpuRow { state: DeviceState::Quarantined(_), .. }) => None,
        Some(row) => {
            Some(format!("cannot clear GPU {}: it is {}, not in quarantine", row.index, row.state.word()))
        }
    }
}

/// Asks whether the quarantine of the device under the cursor is to be lifted.
pub(in crate::tui) fn ask(ui: &mut Ui, snap: &Snapshot) {
    if let Some(reason) = refusal(ui, ui.shown(snap)) {
        ui.say(Level::Warning, reason, None);
        return;
    }
    if let Some(GpuRow { uuid, state: DeviceState::Quarantined(quarantine), .. }) =
        selected(ui, ui.shown(snap))
    {
        let (gpu, since, button) = (uuid.clone(), quarantine.since, Button::Keep);
        ui.overlay = Some(Overlay::Clear(Clear { gpu, since, button }));
    }
}

/// Lifts a quarantine, if it is still the one that was asked about.
pub(in crate::tui) fn clear(ui: &mut Ui, snap: &Snapshot, gpu: &Uuid, since: &Now) -> Vec<UiCommand> {
    let Some(row) = snap.gpus.iter().find(|row| row.uuid == *gpu) else {
        ui.say(Level::Warning, "that GPU is no longer there: nothing was cleared", None);
        return Vec::new();
    };
    let same = matches!(&row.state, DeviceState::Quarantined(quarantine) if quarantine.since == *since);
    if !same {
        let text = format!(
            "GPU {} changed meanwhile, it is {} now: nothing was cleared",
            row.index,
            row.state.word()
        );
        ui.say(Level::Warning, text, None);
        return Vec::new();
    }
    if !ui.connected() {
        ui.say(Level::Warning, "cannot clear: no scheduler", None);
        return Vec::new();
    }
    vec![UiCommand::Send { job: None, command: Command::Clear { gpu: GpuSelect::Uuid(gpu.clone()) } }]
}
