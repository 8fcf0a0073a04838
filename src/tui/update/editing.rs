//! Editing the request of a job that waits: the mark, its text, the editor, what changed, and the change. Pure.
//!
//! ```text
//!  BeginEdit ─► JobFile ─► editor ─► Edit, dry run ─► what changed ─ y ─► Edit
//!                            ▲                   └──► what is wrong
//!                            └─────────── e ────────────┘            every other way out: EndEdit
//! ```

use crate::model::{Generation, JobId};
use crate::protocol::{Command, JobFile, JobRow, Overrides, Reply, Request, Snapshot, SubmitFile};
use crate::tui::UiCommand;
use crate::tui::errand::Errand;
use crate::tui::keys::Action;
use crate::tui::look::text;
use crate::tui::overlay::{self, Diff, Overlay, Wrong};
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::flows::{FileFor, Flow, ask_file};
use crate::tui::update::undo;

/// A job that is edited.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Editing {
    job: JobId,
    /// What names the mark, or the job as it was last seen where there is none.
    generation: Generation,
    /// When the mark expires, wall milliseconds; `None`: there is none.
    until: Option<i64>,
    /// Its text.
    file: Option<JobFile>,
    /// What it is to become.
    text: Option<Vec<u8>>,
    /// Of a quick edit.
    overrides: Overrides,
    /// It is in the editor.
    is_open: bool,
    /// Its text was sent, and is answered or will be.
    is_sent: bool,
}

/// Marks a job, as the first step.
pub(in crate::tui) fn begin(ui: &mut Ui, row: &JobRow) -> Vec<UiCommand> {
    // Pressed twice: a second mark would keep the first one's editor from opening.
    if let Some(editing) = &ui.flows.edit {
        ui.say(Level::Info, format!("#{} is being opened for editing", editing.job), Some(editing.job));
        return Vec::new();
    }
    ui.flows.edit = Some(Editing {
        job: row.id,
        generation: row.generation,
        until: None,
        file: None,
        text: None,
        overrides: Overrides::default(),
        is_open: false,
        is_sent: false,
    });
    vec![mark(row)]
}

const fn mark(row: &JobRow) -> UiCommand {
    let request = Request::Command(Command::BeginEdit { job: row.id, generation: row.generation });
    UiCommand::Ask { flow: Flow::Mark(row.id), request }
}

/// A quick edit: the text as it is, with some fields changed.
pub(in crate::tui) fn quick(ui: &mut Ui, file: JobFile, overrides: Overrides) -> Vec<UiCommand> {
    ui.flows.edit = Some(Editing {
        job: file.job,
        generation: file.generation,
        until: None,
        text: Some(file.text.clone().into_bytes()),
        file: Some(file),
        overrides,
        is_open: false,
        is_sent: false,
    });
    send(ui, true)
}

/// Sends the text: to learn what it would change, or to change it.
fn send(ui: &mut Ui, dry_run: bool) -> Vec<UiCommand> {
    let is_live = ui.connected();
    let Some(editing) = &mut ui.flows.edit else { return Vec::new() };
    let (job, generation) = (editing.job, editing.generation);
    editing.is_sent = is_live;
    let (Some(file), Some(text)) = (&editing.file, &editing.text) else { return drop_mark(ui) };
    if !is_live {
        return Vec::new();
    }
    let file: SubmitFile =
        file.edited(text.clone(), format!("#{job} {}", file.name), editing.overrides.clone());
    let flow = if dry_run { Flow::Try(job) } else { Flow::Apply(job) };
    vec![UiCommand::Ask { flow, request: Request::Command(Command::Edit { job, generation, file, dry_run }) }]
}

/// Ends the flow; the job is as it was.
pub(in crate::tui) fn drop_mark(ui: &mut Ui) -> Vec<UiCommand> {
    let Some(Editing { job, generation, until, .. }) = ui.flows.edit.take() else { return Vec::new() };
    if until.is_none() || !ui.connected() {
        return Vec::new();
    }
    let request = Request::Command(Command::EndEdit { job, generation });
    vec![UiCommand::Ask { flow: Flow::Unmark(job), request }]
}

/// Gives up an edit whose editor is not open yet; `None`: there is none.
pub(in crate::tui) fn give_up(ui: &mut Ui) -> Option<Vec<UiCommand>> {
    let job = ui.flows.edit.as_ref().filter(|edit| !edit.is_open && edit.text.is_none())?.job;
    ui.say(Level::Info, format!("#{job} is not edited"), Some(job));
    // A mark that is still on its way is dropped when it comes.
    Some(drop_mark(ui))
}

/// Applies what was shown.
pub(in crate::tui) fn apply(ui: &mut Ui) -> Vec<UiCommand> {
    if let Some(job) = ui.flows.edit.as_ref().map(|editing| editing.job) {
        undo::changed(ui, job, false);
    }
    send(ui, false)
}

/// The same text in the editor once more; the mark is made again if there is none.
pub(in crate::tui) fn again(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    let Some(editing) = &mut ui.flows.edit else { return Vec::new() };
    if editing.until.is_some_and(|until| until > ui.now.wall_ms) {
        return open(editing);
    }
    match rows::told(snap, editing.job) {
        Some(row) => vec![mark(row)],
        None => drop_mark(ui),
    }
}

fn open(editing: &mut Editing) -> Vec<UiCommand> {
    let Some(file) = &editing.file else { return vec![ask_file(editing.job, FileFor::Edit)] };
    editing.is_open = true;
    let text = editing.text.clone().unwrap_or_else(|| file.text.clone().into_bytes());
    vec![UiCommand::Errand(Errand::EditText { name: format!("{}-{}", editing.job, file.name), text })]
}

/// The scheduler has answered a step.
pub(in crate::tui) fn answered(ui: &mut Ui, flow: Flow, reply: Reply) -> Vec<UiCommand> {
    let Some(editing) = &mut ui.flows.edit else {
        // The flow was given up while the mark was on its way: it is dropped.
        return match reply {
            Reply::Editing { job, generation, .. } => {
                let request = Request::Command(Command::EndEdit { job, generation });
                vec![UiCommand::Ask { flow: Flow::Unmark(job), request }]
            }
            _ => Vec::new(),
        };
    };
    match (flow, reply) {
        (Flow::Mark(_), Reply::Editing { generation, until, .. }) => {
            (editing.generation, editing.until) = (generation, Some(until));
            open(editing)
        }
        (Flow::File(..), Reply::JobFile(file)) => {
            editing.file = Some(*file);
            open(editing)
        }
        (Flow::Try(_), Reply::Edited(edited)) if edited.changes.is_empty() => {
            let job = edited.job;
            unchanged(ui, job)
        }
        (Flow::Try(_), Reply::Edited(edited)) => {
            ui.overlay = Some(Overlay::Diff(Box::new(Diff::new(*edited))));
            Vec::new()
        }
        (Flow::Apply(job), Reply::Edited(edited)) => {
            ui.flows.edit = None;
            ui.say(Level::Info, edited.message, Some(job));
            Vec::new()
        }
        (Flow::Try(_), reply @ (Reply::Invalid { .. } | Reply::Refused { .. }))
            if matches!(ui.overlay, Some(Overlay::Quick(_))) =>
        {
            ui.flows.edit = None;
            overlay::quick::refused(ui, reply);
            Vec::new()
        }
        (Flow::Try(job) | Flow::Apply(job), Reply::Invalid { diagnostics }) => {
            ui.overlay = Some(Overlay::Wrong(Box::new(Wrong { job, diagnostics, why: None, top: 0 })));
            Vec::new()
        }
        (Flow::Mark(_), Reply::BeingEdited { job, by, until }) => {
            ui.flows.edit = None;
            let until = text::moment(until, ui.now.wall_ms, &ui.tz);
            ui.say(Level::Error, held_by(ui, job, &by, &until), Some(job));
            Vec::new()
        }
        (
            Flow::Try(job) | Flow::Apply(job),
            Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message },
        ) => {
            // The mark is gone, or the job moved on: the text is not, until the person drops it.
            editing.until = None;
            let why = Some(message);
            ui.overlay = Some(Overlay::Wrong(Box::new(Wrong { job, diagnostics: Vec::new(), why, top: 0 })));
            Vec::new()
        }
        (_, Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message }) => {
            ui.say(Level::Error, message, None);
            drop_mark(ui)
        }
        (_, _) => drop_mark(ui),
    }
}

fn unchanged(ui: &mut Ui, job: JobId) -> Vec<UiCommand> {
    ui.say(Level::Info, format!("#{job}: nothing was changed"), Some(job));
    drop_mark(ui)
}

/// The editor has ended.
pub(in crate::tui) fn returned(ui: &mut Ui, text: Result<Option<Vec<u8>>, String>) -> Vec<UiCommand> {
    let Some(editing) = &mut ui.flows.edit else { return Vec::new() };
    let job = editing.job;
    editing.is_open = false;
    match text {
        Err(why) => {
            ui.say(Level::Warning, format!("{why}: #{job} is as it was"), Some(job));
            drop_mark(ui)
        }
        // Opened again after a mistake and left as it was: the mistake is still there.
        Ok(None) if editing.text.is_some() => send(ui, true),
        Ok(None) => unchanged(ui, job),
        Ok(Some(text)) => {
            editing.text = Some(text);
            if !ui.connected() {
                ui.say(
                    Level::Warning,
                    format!("no scheduler: the edit of #{job} is sent when it is back"),
                    None,
                );
            }
            send(ui, true)
        }
    }
}

/// Whether a job is in the editor: what comes back from there is its text.
pub(in crate::tui) fn is_open(ui: &Ui) -> bool {
    ui.flows.edit.as_ref().is_some_and(|editing| editing.is_open)
}

/// An edit that waited for a connection, or for what lay over the screen, goes out.
pub(in crate::tui) fn go_on(ui: &mut Ui) -> Vec<UiCommand> {
    let waits = |editing: &Editing| editing.text.is_some() && !editing.is_open && !editing.is_sent;
    let waits = ui.connected() && ui.overlay.is_none() && ui.flows.edit.as_ref().is_some_and(waits);
    if waits { send(ui, true) } else { Vec::new() }
}

/// That somebody edits a job already, and what can be done about it.
pub(in crate::tui) fn held_by(ui: &Ui, job: JobId, by: &str, until: &str) -> String {
    let key = ui.keys.way(&Action::Pause);
    format!("#{job} is being edited by {by} until {until}; {key} ends that, if it is you and nobody is there")
}

/// The connection is gone. Where a text was written it is kept; else the mark ends by itself.
pub(in crate::tui) fn lost(ui: &mut Ui) {
    let Some(editing) = &mut ui.flows.edit else { return };
    editing.is_sent = false;
    let until = editing.until.map(|until| text::moment(until, ui.now.wall_ms, &ui.tz));
    let end = until.map_or_else(String::new, |until| format!("; its mark ends by itself at {until}"));
    let job = editing.job;
    if matches!(ui.overlay, Some(Overlay::Diff(_) | Overlay::Wrong(_))) {
        ui.overlay = None;
    }
    if editing.file.is_none() {
        ui.flows.edit = None;
        ui.say(Level::Warning, format!("no scheduler: #{job} is as it was{end}"), None);
    } else {
        ui.say(Level::Warning, format!("no scheduler: #{job} is as it was{end}"), None);
    }
}
