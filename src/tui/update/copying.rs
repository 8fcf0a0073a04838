//! Copying: what of a job goes to the clipboard, as far as the terminal allows it. Pure.

use crate::model::{clean, clean_line};
use crate::protocol::{JobRow, Snapshot};
use crate::tui::UiCommand;
use crate::tui::errand::Errand;
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::flows::{FileFor, ask_file};

/// What can be copied: letter, name, and what it is; `None`: there is nothing of the kind.
pub(in crate::tui) type Offer = (char, &'static str, Option<String>);

/// What can be copied of a job.
pub(in crate::tui) fn offers(ui: &Ui, row: &JobRow) -> [Offer; 6] {
    let path = |path: std::path::PathBuf| (!path.as_os_str().is_empty()).then(|| path.display().to_string());
    [
        ('i', "id", Some(row.id.to_string())),
        ('o', "output path", path(output(row))),
        ('l', "log path", path(row.log.clone())),
        ('c', "command", Some(row.command.clone()).filter(|text| !text.is_empty())),
        ('y', "YAML", Some("the job file".to_owned())),
        ('e', "error", error(ui, row)),
    ]
}

/// The folder that a job's output comes back to.
pub(in crate::tui) fn output(row: &JobRow) -> std::path::PathBuf {
    if row.directory.as_os_str().is_empty() { row.directory.clone() } else { row.directory.join("output") }
}

/// What it ended with, if that is a failure, and what is known about it.
pub(in crate::tui) fn error(ui: &Ui, row: &JobRow) -> Option<String> {
    let outcome = row.outcome.as_ref().filter(|outcome| !outcome.is_success())?;
    let detail = ui.detail.as_ref().filter(|detail| detail.row.id == row.id);
    let notes = detail.map(|detail| detail.notes.join("; ")).filter(|notes| !notes.is_empty());
    let notes = notes.map_or_else(String::new, |notes| format!(" ({notes})"));
    Some(format!("#{} {}: {outcome}{notes}", row.id, row.name))
}

/// A letter of the menu was chosen.
pub(in crate::tui) fn copy(
    ui: &mut Ui,
    snap: &Snapshot,
    job: crate::model::JobId,
    letter: char,
) -> Vec<UiCommand> {
    let Some(row) = rows::find(ui, snap, job) else {
        ui.say(Level::Warning, format!("#{job} is no longer there"), None);
        return Vec::new();
    };
    if letter == 'y' {
        return vec![ask_file(job, FileFor::Copy)];
    }
    let offer = offers(ui, row).into_iter().find(|(key, ..)| *key == letter);
    match offer {
        Some((_, _, Some(text))) => send(ui, &text),
        Some((_, what, None)) => {
            ui.say(Level::Warning, format!("#{job} has no {what}"), None);
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The longest sequence: mosh sends it in one packet, and terminals have limits of their own.
const LONGEST: usize = 8 << 10;
/// Whether the terminal took it nobody learns.
pub(in crate::tui) const NOTE: &str = "sent to clipboard (if your terminal allows it)";
/// Around the text: `ESC ] 52 ; c ;` and the bell.
const AROUND: usize = 8;

/// Sends a text, and shows it to be selected by hand where the terminal does not take it.
pub(in crate::tui) fn send(ui: &mut Ui, text: &str) -> Vec<UiCommand> {
    let text = clean(text);
    let bytes = text.len().div_ceil(3) * 4 + AROUND;
    if bytes > LONGEST {
        let kib = bytes.div_ceil(1024);
        ui.say(Level::Warning, format!("too long for a terminal's clipboard: {kib} KiB, 8 at most"), None);
        return Vec::new();
    }
    let lines = text.trim_end().lines().count();
    let first = clean_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    let more = if lines > 1 { format!(" (+{} lines)", lines - 1) } else { String::new() };
    ui.say(Level::Info, format!("[{first}]{more}"), None);
    if let Some(message) = &mut ui.message {
        message.note = NOTE;
    }
    vec![UiCommand::Errand(Errand::Copy(text))]
}
