//! The screen of the devices: the list, and below it charts, the timeline and the device itself, as many as there is room for.

use crate::model::ProcessKind;
use crate::protocol::GpuRow;
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::look::canvas::{Canvas, Piece};
use crate::tui::look::text::{cut_middle, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::{charts, gpus, timeline};
use crate::tui::rows;
use crate::tui::views::{Choice, GpuTab, GpusView, Range};
use ratatui::layout::Rect;

/// Here everything is shown at once.
const ALL_COLUMNS: u16 = 110;
const ALL_ROWS: u16 = 24;

/// Rows of the list, its head taken off.
pub(in crate::tui) fn list_rows(area: Rect, count: usize) -> u16 {
    let count = u16::try_from(count).unwrap_or(u16::MAX).max(1);
    let most = if area.height < 8 {
        area.height.saturating_sub(1)
    } else if area.width >= ALL_COLUMNS && area.height >= ALL_ROWS {
        area.height / 3
    } else {
        area.height.saturating_sub(2) / 2
    };
    count.min(most.max(1))
}

/// The devices' own screen.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if v.snap.gpus.is_empty() {
        gpus::tell_none(c, area, v);
        return;
    }
    c.text(area, 0, &gpus::head(v.snap.gpus.len()), Role::Title);
    let count = rows::gpus(v.ui, v.snap).len();
    let rows = list_rows(area, count);
    gpus::list(c, Rect { y: area.y + 1, height: rows.min(area.height.saturating_sub(1)), ..area }, v, true);
    let Some(gpu) = v.snap.gpus.iter().find(|row| Some(&row.uuid) == v.ui.gpu.as_ref()) else { return };
    let used = rows + 1;
    if area.height < used + 3 {
        return;
    }
    let below = Rect { y: area.y + used, height: area.height - used, ..area };
    if area.width >= ALL_COLUMNS && area.height >= ALL_ROWS {
        everything(c, below, v, gpu);
    } else {
        one(c, below, v, gpu);
    }
}

/// Where there is no room for more: one of the three.
fn one(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, gpu: &GpuRow) {
    let view = &v.ui.gpus_view;
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for tab in GpuTab::ALL {
        pieces.push((if tab == view.tab { "[" } else { " " }, Role::Title));
        pieces.push((tab.name(), if tab == view.tab { Role::Title } else { Role::Dim }));
        pieces.push((if tab == view.tab { "]" } else { " " }, Role::Title));
    }
    let columns: usize = pieces.iter().map(|(text, _)| width(text)).sum();
    let about = match view.tab {
        GpuTab::Charts => format!("GPU {}  {}", gpu.index, ranges(view.range)),
        GpuTab::Timeline => {
            let over = over(view);
            let room = usize::from(area.width).saturating_sub(columns + width(&over) + 14);
            let legend = timeline::legend(c.glyphs, room);
            if legend.is_empty() { over } else { format!("{over}  {legend}") }
        }
        GpuTab::Device => format!("GPU {}", gpu.index),
    };
    c.rule(area, 0, &pieces, &[(&about, Role::Dim)]);
    c.words(area, GpuTab::ALL.into_iter().map(|tab| (tab.name(), Action::View(Choice::Gpus(tab)))));
    if view.tab == GpuTab::Charts {
        range_spots(c, area);
    }
    let inner = Rect { y: area.y + 1, height: area.height - 1, ..area };
    match view.tab {
        GpuTab::Charts => charts::paint(c, inner, v, gpu),
        GpuTab::Timeline => timeline::paint(c, inner, v),
        GpuTab::Device => device(c, inner, gpu),
    }
}

fn everything(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, gpu: &GpuRow) {
    let view = &v.ui.gpus_view;
    // The timeline needs a row for each device and one for the axis.
    let wanted = u16::try_from(rows::gpus(v.ui, v.snap).len()).unwrap_or(u16::MAX).saturating_add(2);
    let lower = wanted.min(area.height / 2);
    let upper = Rect { height: area.height - lower, ..area };
    let lower = Rect { y: upper.bottom(), height: lower, ..area };
    let side = (area.width / 3).clamp(40, 64);
    let left = Rect { width: upper.width - side - 2, ..upper };
    let right = Rect { x: left.right() + 2, width: side, ..upper };
    let title = format!("GPU {} {}", gpu.index, gpu.name);
    let range = ranges(view.range);
    c.rule(left, 0, &[(&title, Role::Title)], &[(&range, Role::Dim)]);
    range_spots(c, left);
    charts::paint(c, Rect { y: left.y + 1, height: left.height - 1, ..left }, v, gpu);
    c.rule(right, 0, &[("Device", Role::Title)], &[]);
    device(c, Rect { y: right.y + 1, height: right.height - 1, ..right }, gpu);
    let over = over(view);
    let legend = timeline::legend(c.glyphs, usize::from(lower.width).saturating_sub(width(&over) + 20));
    let title = [("Timeline  ", Role::Title), (over.as_str(), Role::Dim)];
    c.rule(lower, 0, &title, &[(&legend, Role::Dim)]);
    timeline::paint(c, Rect { y: lower.y + 1, height: lower.height - 1, ..lower }, v);
}

fn range_spots(c: &mut Canvas<'_>, row: Rect) {
    c.words(row, Range::ALL.into_iter().map(|range| (range.name(), Action::View(Choice::Range(range)))));
}

/// `20 min [1 h] 24 h`
fn ranges(at: Range) -> String {
    let names =
        Range::ALL.map(|one| if one == at { format!("[{}]", one.name()) } else { one.name().to_owned() });
    names.join(" ")
}

/// How much time the timeline covers, and how far it is scrolled.
fn over(view: &GpusView) -> String {
    let span = view.span_ms() / 60_000;
    let span = if span < 120 { format!("{span} min") } else { format!("{} h", span / 60) };
    match view.offset_ms / 60_000 {
        0 => span,
        minutes => {
            let (sign, minutes) = if minutes < 0 { ("-", -minutes) } else { ("+", minutes) };
            format!("{span}  {sign}{}h{:02}m, 0 is now", minutes / 60, minutes % 60)
        }
    }
}

/// What is known of a device, and who is on it.
fn device(c: &mut Canvas<'_>, area: Rect, gpu: &GpuRow) {
    let columns = usize::from(area.width);
    let about = match &gpu.detail {
        Some(detail) => format!("{}  {detail}", gpu.state.word()),
        None => gpu.state.word().to_owned(),
    };
    let enforced = if gpu.enforced {
        "enforced: others cannot reach it while held"
    } else {
        "advisory: nothing keeps others off it"
    };
    let lines =
        [(format!("{}  {}", gpu.name, gpu.node), Role::Text), (cut_middle(&gpu.uuid.0, columns), Role::Dim)];
    let mut row = 0;
    for (text, role) in &lines {
        c.text(area, row, text, *role);
        row += 1;
    }
    for line in crate::tui::overlay::confirm::wrapped(&about, columns).into_iter().take(3) {
        c.text(area, row, &line, Role::Text);
        row += 1;
    }
    c.text(area, row, enforced, Role::Dim);
    processes(c, Rect { y: area.y + row + 1, height: area.height.saturating_sub(row + 1), ..area }, gpu);
}

fn processes(c: &mut Canvas<'_>, area: Rect, gpu: &GpuRow) {
    if gpu.processes.is_empty() {
        c.text(area, 0, "no process on it", Role::Dim);
        return;
    }
    let rows = usize::from(area.height);
    for (row, process) in gpu.processes.iter().take(rows).enumerate() {
        let owner = if process.token.is_some() { "job's" } else { "other" };
        let kind = if process.kind == ProcessKind::Graphics { " graphics" } else { "" };
        let memory = process.memory.map_or_else(String::new, |bytes| format!("  {bytes}"));
        let text = format!("{owner} {}{kind}{memory}", process.words());
        let role = if process.token.is_some() { Role::Text } else { Role::ToastWarn };
        c.text(area, row as u16, &text, role);
    }
    if gpu.processes.len() > rows && rows > 0 {
        let more = format!(" +{} more", gpu.processes.len() - rows);
        let style = c.theme.style(Role::Dim);
        let columns = width(&more) as u16;
        c.put(area.right().saturating_sub(columns), area.bottom() - 1, columns, &more, style);
    }
}
