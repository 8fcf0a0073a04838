//! What is said where there is nothing to show: why, and the way out.

use crate::model::DeviceState;
use crate::protocol::Connection;
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::cut_middle;
use crate::tui::look::theme::Role;
use crate::tui::rows;
use crate::tui::ui::Screen;
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
        let history = v.ui.keys.way(&Action::Show(Screen::History));
        let text = format!("Nothing waits and nothing runs.  {history} shows what has run.");
        c.text(area, 0, &text, Role::Dim);
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
    let new = v.ui.keys.way(&Action::New);
    let new = format!("  or press  {new}  to start from a template, or:  overnight submit FILE");
    c.text(area, 2, &new, Role::Text);
    c.text(area, 3, "  Smallest job file:", Role::Text);
    for (at, line) in SMALLEST.iter().enumerate() {
        c.text(area, 4 + at as u16, &format!("      {line}"), Role::Run);
    }
    let [help, settings, quit] =
        [Action::Help, Action::Settings, Action::Back].map(|action| v.ui.keys.way(&action));
    let keys = format!("  {help} help    {settings} settings (theme)    {quit} quit");
    c.text(area, 8, &keys, Role::Dim);
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
            let (start, quit) = (v.ui.keys.way(&Action::Open), v.ui.keys.way(&Action::Back));
            let start = if v.ui.can_start { format!("{start} starts it.  ") } else { String::new() };
            c.text(area, 1, &format!("{start}It is tried again by itself.  {quit} quits."), Role::Dim);
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
        format!("None of {hidden} jobs is yours.  {} shows all.", v.ui.keys.way(&Action::Mine))
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
