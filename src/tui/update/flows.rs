//! Flows that take more than one step: submitting, retrying, editing, copying, undoing. Pure.
//!
//! Each step is a question to the scheduler ([`Flow`] names it, and its answer) or an errand; what comes back leads to the
//! next one. What is open on the screen is an overlay; what is under way while nothing is open is here.

use crate::model::JobId;
use crate::protocol::{Query, Reply, Request, Snapshot, SubmittedJob};
use crate::tui::UiCommand;
use crate::tui::errand::{Brought, Errand, Measured};
use crate::tui::keys::Action;
use crate::tui::overlay::{self, Overlay};
use crate::tui::shell::options::Outside;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::draft::Verdict;
use crate::tui::update::editing::{self, Editing};
use crate::tui::update::{copying, undo};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which step a question is, and so what its answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// What would become of a text.
    Check(u64),
    /// A submission.
    Submit,
    /// The mark that keeps a job from starting while it is edited.
    Mark(JobId),
    /// The text of a job.
    File(JobId, FileFor),
    /// What an edit would come to.
    Try(JobId),
    /// An edit.
    Apply(JobId),
    /// The end of the mark.
    Unmark(JobId),
    /// What can be undone.
    Undoable,
    /// What of it is the newest, to be taken back.
    Newest,
}

/// What a job's text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are their own documentation")]
pub enum FileFor {
    Edit,
    Quick,
    Copy,
    Duplicate,
    History,
}

/// What is handed in once and goes with texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Desk {
    /// The folder the dashboard was started in.
    pub start: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// What goes along with a submission.
    pub environment: BTreeMap<String, String>,
}

impl Desk {
    pub(in crate::tui) fn of(outside: &Outside) -> Self {
        Self {
            start: outside.start.clone(),
            home: outside.home.clone(),
            environment: outside.environment.clone(),
        }
    }

    /// The file that a path typed in the start folder names; `None`: it is no path.
    pub(in crate::tui) fn named(&self, typed: &str) -> Option<PathBuf> {
        if let Some(below) = typed.strip_prefix("~/").filter(|below| !below.is_empty()) {
            return Some(self.home.join(below));
        }
        let is_path =
            ["/", "./", "../"].iter().any(|begin| typed.starts_with(begin) && typed.len() > begin.len());
        is_path.then(|| self.start.join(typed.strip_prefix("./").unwrap_or(typed)))
    }

    /// A path as a person in the start folder would write it.
    pub(in crate::tui) fn short(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.start) {
            return below.display().to_string();
        }
        self.homely(path)
    }

    /// A path as a person would write it anywhere.
    pub(in crate::tui) fn homely(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(below) if !self.home.as_os_str().is_empty() => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        }
    }
}

/// What is under way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flows {
    /// Goes with texts.
    pub desk: Desk,
    /// The job that is edited.
    pub(in crate::tui) edit: Option<Editing>,
    /// Files that were submitted or edited here, the newest first.
    pub(in crate::tui) recent: Vec<PathBuf>,
    /// How much lies in the folder that was measured last.
    pub(in crate::tui) measured: Option<(PathBuf, Measured)>,
    /// Numbers the checks.
    pub(in crate::tui) serial: u64,
}

/// More recent files are not kept.
const RECENT: usize = 20;

impl Flows {
    /// How much lies in a folder, if that was measured last and there is something.
    pub(in crate::tui) fn lies_in(&self, folder: &Path) -> Option<Measured> {
        self.measured
            .as_ref()
            .filter(|(path, found)| path == folder && found.files > 0)
            .map(|(_, found)| *found)
    }

    /// A file was of use.
    pub(in crate::tui) fn used(&mut self, path: &Path) {
        self.recent.retain(|known| known != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(RECENT);
    }
}

/// Asks for the text of a job.
pub(in crate::tui) const fn ask_file(job: JobId, what_for: FileFor) -> UiCommand {
    let request = Request::Query(Query::JobFile { job });
    UiCommand::Ask { flow: Flow::File(job, what_for), request }
}

/// An answer leads to the next step.
pub(in crate::tui) fn answered(ui: &mut Ui, snap: &Snapshot, flow: Flow, reply: Reply) -> Vec<UiCommand> {
    match (flow, reply) {
        (Flow::Newest, Reply::Undoable(rows)) => undo::answered(ui, snap, Some(&rows)),
        (Flow::Check(serial), reply) => {
            let verdict = Verdict::of(reply);
            match &mut ui.overlay {
                Some(Overlay::Picker(picker)) => picker.judged(serial, verdict),
                Some(Overlay::Review(review)) => review.judged(serial, verdict),
                _ => {}
            }
            overlay::picker::go_on(ui)
        }
        (Flow::File(_, FileFor::History), reply) => {
            if let Some(Overlay::Picker(picker)) = &mut ui.overlay {
                picker.remembered(match reply {
                    Reply::JobFile(file) => Some(*file),
                    _ => None,
                });
            }
            overlay::picker::go_on(ui)
        }
        (Flow::File(_, FileFor::Duplicate), Reply::JobFile(file)) => overlay::review::duplicate(ui, *file),
        (Flow::File(_, FileFor::Copy), Reply::JobFile(file)) => copying::send(ui, &file.text),
        (Flow::File(_, FileFor::Quick), Reply::JobFile(file)) => overlay::quick::asked(ui, *file),
        (Flow::Submit, Reply::Submitted { jobs, .. }) => {
            submitted(ui, &jobs);
            Vec::new()
        }
        (Flow::Submit, Reply::Invalid { diagnostics }) => {
            let first = diagnostics.first().map_or("it was refused", |found| &found.message);
            ui.say(Level::Error, format!("not submitted: {first}"), None);
            Vec::new()
        }
        (Flow::Undoable, Reply::Undoable(rows)) => {
            if let Some(Overlay::Undo(list)) = &mut ui.overlay {
                list.rows = Some(rows);
            }
            Vec::new()
        }
        (Flow::Mark(_) | Flow::Try(_) | Flow::Apply(_) | Flow::File(_, FileFor::Edit), reply) => {
            editing::answered(ui, flow, reply)
        }
        (Flow::Unmark(_), _) => Vec::new(),
        (_, Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message }) => {
            if flow == Flow::Newest {
                undo::answered(ui, snap, None);
            } else if matches!(ui.overlay, Some(Overlay::Undo(_) | Overlay::Quick(_))) {
                ui.overlay = None;
            }
            ui.say(Level::Error, message, None);
            Vec::new()
        }
        (_, _) => Vec::new(),
    }
}

/// `#153 queued, place 4`
fn fate(job: &SubmittedJob) -> Option<String> {
    let fate = match (job.place, &job.why) {
        (Some(place), _) => format!("queued, place {place}"),
        (None, Some(why)) => format!("waits: {why}"),
        (None, None) => "starts".to_owned(),
    };
    Some(format!("#{} {fate}", job.id?))
}

/// Says what became of a submission, which can be taken back for a while; several at once belong together.
pub(in crate::tui) fn submitted(ui: &mut Ui, jobs: &[SubmittedJob]) {
    let all = undo::submitted(ui, jobs);
    let undo = ui.keys.way(&Action::Undo);
    let told = match (all.as_slice(), jobs.first().and_then(fate)) {
        ([first, .., last], _) => format!("{} jobs, #{first} to #{last}   {undo} removes them", all.len()),
        (_, Some(fate)) => format!("{fate}   {undo} removes it"),
        (_, None) => return,
    };
    ui.say(Level::Info, told, None);
    keep_message(ui);
}

/// The message stays as long as it can be followed.
pub(in crate::tui) const fn keep_message(ui: &mut Ui) {
    if let Some(message) = &mut ui.message {
        message.until = Some(ui.now.boottime_ms + undo::TAKE_BACK_MS);
    }
}

/// What an errand has brought leads to the next step.
pub(in crate::tui) fn brought(ui: &mut Ui, brought: Brought) -> Vec<UiCommand> {
    match brought {
        Brought::Browsed(browsed) => {
            if let Some(Overlay::Picker(picker)) = &mut ui.overlay {
                picker.browsed = Some(browsed);
            }
            overlay::picker::go_on(ui)
        }
        Brought::Text { path, text } => {
            let desk = ui.flows.desk.clone();
            if let Some(Overlay::Picker(mut picker)) = ui.overlay.take_if(|over| over.is_picker()) {
                picker.read(&desk, &path, text);
                if let Some(draft) = picker.entered(&path) {
                    return overlay::review::open(ui, draft, Some(picker));
                }
                ui.overlay = Some(Overlay::Picker(picker));
            }
            overlay::picker::go_on(ui)
        }
        Brought::Measured { path, found } => {
            ui.flows.measured = found.map(|found| (path, found));
            Vec::new()
        }
        Brought::EditHere { was, text, file } => overlay::editor::open(ui, was, text, file),
        Brought::Edited(text) if editing::is_open(ui) => editing::returned(ui, text),
        Brought::Edited(text) => overlay::review::edited(ui, text),
        Brought::Back => Vec::new(),
        Brought::Failed(why) => {
            ui.say(Level::Warning, why, None);
            Vec::new()
        }
    }
}

/// The connection is gone: what was asked gets no answer.
pub(in crate::tui) fn lost(ui: &mut Ui) {
    editing::lost(ui);
    ui.deeds.lost();
    match &mut ui.overlay {
        Some(Overlay::Picker(picker)) => picker.lost(),
        Some(Overlay::Review(review)) => review.lost(),
        Some(Overlay::Undo(_) | Overlay::Quick(_)) => {
            ui.overlay = None;
            ui.say(Level::Warning, "the scheduler is gone: nothing was changed", None);
        }
        _ => {}
    }
}

/// Opens the picker.
pub(in crate::tui) fn new_job(ui: &mut Ui) -> Vec<UiCommand> {
    ui.overlay = Some(Overlay::Picker(Box::default()));
    vec![UiCommand::Errand(Errand::Browse)]
}

/// Opens the list of what can be undone.
pub(in crate::tui) fn undo_list(ui: &mut Ui) -> Vec<UiCommand> {
    if let Some(why) = ui.unable("undo") {
        ui.say(Level::Warning, why, None);
        return Vec::new();
    }
    ui.overlay = Some(Overlay::Undo(Box::default()));
    vec![UiCommand::Ask { flow: Flow::Undoable, request: Request::Query(Query::Undoable) }]
}
