//! The devices above the queue: a grid, and the more there are the less of each; down to one sign, or one line of numbers.

use crate::model::DeviceState;
use crate::protocol::GpuRow;
use crate::tui::View;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::chart;
use crate::tui::look::text::{left, right, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::gpus::{MEMORY_ENDS, is_wide, label, load, memory, shortened, tell_none, word};
use ratatui::layout::Rect;

/// More devices than this are one sign each.
pub(super) const FOLDS: usize = 16;
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
        (None, _, _) if gpu.idle_since.is_some() => (format!("{}:idle", gpu.index), Role::ToastWarn),
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

/// Many devices: one sign each, in groups of eight. The row with the cursor has the number of the device under it, and `>`.
pub(super) fn map(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let count = v.snap.gpus.len();
    let is_under = |gpu: &GpuRow| v.ui.gpu.as_ref() == Some(&gpu.uuid) && v.ui.focus == Pane::Gpus;
    for (at, gpu) in v.snap.gpus.iter().enumerate() {
        let (row, column) = ((at / MAP_COLUMNS) as u16, at % MAP_COLUMNS);
        if row >= area.height {
            break;
        }
        if column == 0 {
            c.text(area, row, &right(&gpu.index.to_string(), 3), Role::Title);
        }
        if is_under(gpu) {
            c.text(area, row, &format!("{}>", right(&gpu.index.to_string(), 3)), Role::Title);
        }
        let x = area.x + 4 + (column + column / 8) as u16;
        let (sign, role) = sign(c, v, gpu);
        let style = c.theme.style(role);
        if x < area.right() {
            let x = c.put(x, area.y + row, 1, &sign, style);
            if is_under(gpu) {
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
