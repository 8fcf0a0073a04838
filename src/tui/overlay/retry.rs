//! The card before a retry: what will be the same, where output goes, and what the last end hints at.

use super::{Overlay, middle};
use crate::model::{Failure, Generation, JobId, Outcome};
use crate::protocol::{Command, JobDetail, JobRow};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, state};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::draft::limit;
use crate::tui::update::flows::{FileFor, ask_file};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// Which job, as it was when the card was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The job.
    pub job: JobId,
    /// As it was.
    pub generation: Generation,
}

/// The keys of the card.
const KEYS: [(&str, &str); 3] = [("Enter", "retry"), ("D", "duplicate and change"), ("Esc", "close")];

pub(super) fn update(ui: &mut Ui, retry: Retry, action: &Action) -> Vec<UiCommand> {
    let Retry { job, generation } = retry;
    match action {
        Action::Accept | Action::Insert('y' | 'D') if !ui.connected() => {
            ui.say(Level::Warning, ui.unable("retry").unwrap_or_default(), None);
            Vec::new()
        }
        Action::Accept | Action::Insert('y') => {
            vec![UiCommand::Send { job: Some(job), command: Command::Retry { job, generation } }]
        }
        Action::Insert('D') => vec![ask_file(job, FileFor::Duplicate)],
        _ => {
            ui.overlay = Some(Overlay::Retry(retry));
            Vec::new()
        }
    }
}

/// What a job ended by, where its notes say so.
pub(in crate::tui) fn cause(detail: &JobDetail) -> Option<&'static str> {
    let signs = ["the GPU's memory was not enough", "CUDA out of memory"];
    let tells = |note: &String| signs.iter().any(|sign| note.contains(sign));
    detail.notes.iter().any(tells).then_some("CUDA out of memory")
}

/// How a job ended, and by what if that is known: `failed: exit 1 (CUDA out of memory)`.
pub(in crate::tui) fn ended(ui: &Ui, job: JobId, outcome: &Outcome) -> String {
    let detail = ui.detail.as_ref().filter(|detail| detail.row.id == job && !outcome.is_success());
    let cause = detail.and_then(|detail| cause(detail));
    cause.map_or_else(|| outcome.to_string(), |cause| format!("{outcome} ({cause})"))
}

/// What the end of a job hints at, where it ran out of memory.
fn hint(ui: &Ui, row: &JobRow) -> Option<String> {
    let detail = ui.detail.as_ref().filter(|detail| detail.row.id == row.id);
    let cause = detail.and_then(|detail| cause(detail));
    let gpus = if row.gpus == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", row.gpus) };
    match row.outcome {
        _ if cause.is_some() => cause.map(|cause| format!("#{} ended by {cause} on {gpus}", row.id)),
        Some(Outcome::Failed(Failure::OutOfMemory { .. })) => {
            Some(format!("#{} ran out of memory: it had {}", row.id, row.memory))
        }
        Some(Outcome::LimitReached) => {
            Some(format!("#{} reached its limit of {}: D changes it", row.id, limit(row.limit)))
        }
        _ => None,
    }
}

fn lines(v: &View<'_>, row: &JobRow) -> Vec<(&'static str, String, Role)> {
    let gpus = if row.gpus == 0 { "none: CPU only".to_owned() } else { row.gpus.to_string() };
    let end = row.outcome.as_ref().map_or_else(String::new, ToString::to_string);
    let mut lines = vec![
        ("ended", end, state(row).1),
        ("again", "the same request, under a new number".to_owned(), Role::Text),
        ("GPUs", gpus, Role::Text),
        ("priority", row.priority.to_string(), Role::Text),
        ("limit", limit(row.limit), Role::Text),
        ("command", row.command.clone(), Role::Text),
        ("output", format!("a folder of its own; that of #{} stays as it is", row.id), Role::Text),
    ];
    lines.extend(hint(v.ui, row).map(|hint| ("hint", hint, Role::ToastWarn)));
    lines
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, retry: Retry) {
    let Some(row) = v.find(retry.job) else { return };
    let lines = lines(v, row);
    let popup = middle(area, 76, u16::try_from(lines.len() + 4).unwrap_or(u16::MAX).min(area.height));
    c.clear(popup);
    let title = format!("Retry #{} {} ?", row.id, cut_middle(&row.name, 40));
    let inner = c.frame(popup, &[(&title, Role::Title)], &[], true);
    let room = usize::from(inner.width).saturating_sub(12);
    for (at, (label, value, role)) in lines.iter().enumerate() {
        let label = format!(" {label:<9} ");
        let value = cut_middle(value, room);
        c.pieces(inner, at as u16, &[(&label, Role::Dim), (&value, *role)]);
    }
    c.keys(inner, inner.height.saturating_sub(1), &KEYS);
}

/// Opens the card.
pub(in crate::tui) fn open(ui: &mut Ui, row: &JobRow) -> Vec<UiCommand> {
    ui.overlay = Some(Overlay::Retry(Retry { job: row.id, generation: row.generation }));
    let known = ui.detail.as_ref().is_some_and(|detail| detail.row.id == row.id);
    // Its notes say what the end means.
    if known { Vec::new() } else { vec![UiCommand::Detail(row.id)] }
}
