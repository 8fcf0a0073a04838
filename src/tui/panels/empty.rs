//! What is said where there is nothing to show: why, and the way out.

use crate::model::DeviceState;
use crate::protocol::Connection;
use crate::tui::View;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::cut_middle;
use crate::tui::look::theme::Role;
use crate::tui::rows;
use ratatui::layout::Rect;

/// The smallest job file, shown to a newcomer and checked by a test.
pub const SMALLEST: [&str; 4] =
    ["work:    {run: nvidia-smi}", "data:    []", "request: {gpus: 1, for: 5m}", "output:  []"];

/// The queue without rows.
pub(in crate::tui) fn queue(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if !v.ui.known {
        unknown(c, area, v);
        return;
    }
    if !v.snap.jobs.is_empty() {
        hidden(c, area, v, Pane::Queue);
        return;
    }
    if !v.snap.history.is_empty() {
        c.text(area, 0, "Nothing waits and nothing runs.  4 shows what has run.", Role::Dim);
        return;
    }
    let inbox = v.ui.flows.desk.homely(&v.snap.scheduler.inbox);
    let end = c.pieces(area, 0, &[("No jobs yet.", Role::Title), ("  ", Role::Dim)]);
    let beside = Rect { x: end, width: area.right().saturating_sub(end), ..area };
    let mut area = area;
    if v.snap.gpus.is_empty() && v.ui.size.0 >= 80 && v.ui.size.1 >= 20 {
        // It stands where the devices would be.
    } else if v.snap.gpus.is_empty() {
        // Why there is none can take more than a line.
        let used = crate::tui::panels::gpus::tell_none(c, beside, v).saturating_sub(1).min(area.height);
        area = Rect { y: area.y + used, height: area.height - used, ..area };
    } else {
        c.text(beside, 0, &found(v), Role::Dim);
    }
    c.text(area, 1, &format!("  Drop a job file into  {inbox}"), Role::Text);
    let new =
        key(v, "new").map_or_else(String::new, |key| format!("press  {key}  to start from a template, "));
    c.text(area, 2, &format!("  or {new}or:  overnight submit FILE").replace("or or:", "or:"), Role::Text);
    c.text(area, 3, "  Smallest job file:", Role::Text);
    for (at, line) in SMALLEST.iter().enumerate() {
        c.text(area, 4 + at as u16, &format!("      {line}"), Role::Run);
    }
    let settings = key(v, "settings").map_or_else(String::new, |key| format!("    {key} settings (theme)"));
    c.text(area, 8, &format!("  ? help{settings}    q quit"), Role::Dim);
}

/// The first key of an action, if there is such an action and it has one.
fn key(v: &View<'_>, id: &str) -> Option<String> {
    let row = v.ui.keys.rows().find(|row| row.binding.id == id)?;
    Some(row.first()).filter(|key| !key.is_empty())
}

/// `8 GPUs found, all free.`
fn found(v: &View<'_>) -> String {
    let all = v.snap.gpus.len();
    let free = v.snap.gpus.iter().filter(|gpu| gpu.state == DeviceState::Free).count();
    let gpus = if all == 1 { "1 GPU".to_owned() } else { format!("{all} GPUs") };
    match () {
        () if free == all => format!("{gpus} found, all free."),
        () => format!("{gpus} found, {free} free."),
    }
}

/// No snapshot has arrived.
fn unknown(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    match &v.ui.connection {
        Connection::Lost { why, .. } if v.ui.retry_at > 0 => {
            c.text(area, 0, why, Role::ToastError);
            let start = if v.ui.can_start { "Enter starts it.  " } else { "" };
            c.text(area, 1, &format!("{start}It is tried again by itself.  q quits."), Role::Dim);
        }
        Connection::Live | Connection::Stale { .. } | Connection::Lost { .. } => {
            c.text(area, 0, "Asking the scheduler.", Role::Dim);
        }
    }
}

/// A list none of whose rows passes.
pub(in crate::tui) fn hidden(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, pane: Pane) {
    let (what, hidden) = match pane {
        Pane::Gpus => ("GPU", v.snap.gpus.len()),
        Pane::Inbox => ("file", v.snap.inbox.len()),
        Pane::History => ("job", rows::done(v.ui, v.snap).count()),
        Pane::Queue | Pane::Meter | Pane::Job | Pane::Log => ("job", v.snap.jobs.len()),
    };
    let filter = v.ui.filters.of(pane);
    let text = if filter.is_empty() {
        format!("None of {hidden} jobs is yours.  m shows all.")
    } else {
        format!("No {what} matches \"{}\" ({hidden} hidden).  Esc clears.", filter.text().trim())
    };
    c.text(area, 0, &text, Role::ToastWarn);
}

/// The history without rows.
pub(in crate::tui) fn history(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if !v.ui.known {
        unknown(c, area, v);
    } else if v.snap.history.is_empty() {
        c.text(area, 0, "No history yet.", Role::Dim);
    } else {
        hidden(c, area, v, Pane::History);
    }
}

/// The inbox without files.
pub(in crate::tui) fn inbox(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if v.ui.known {
        let lead = "Inbox empty: watching ";
        let room = usize::from(area.width).saturating_sub(lead.len());
        let path = v.ui.flows.desk.homely(&v.snap.scheduler.inbox);
        c.text(area, 0, &format!("{lead}{}", cut_middle(&path, room)), Role::Dim);
        c.text(area, 1, "A job file that is put there is read at once.", Role::Dim);
    } else {
        unknown(c, area, v);
    }
}
