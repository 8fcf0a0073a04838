//! The card before a submission: what would be asked for, and when it would start. Enter submits.

use super::picker::Picker;
use super::{Overlay, middle, tallest, verdict};
use crate::model::{Job, JobId, Priority};
use crate::protocol::{Command, JobFile, Overrides, Request, SubmittedJob};
use crate::tui::errand::Errand;
use crate::tui::field::Field;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_end, cut_middle, moment, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::draft::{Draft, Facts, Origin, Verdict};
use crate::tui::update::flows::Flow;
use crate::tui::update::undo;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// What is about to be submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The text.
    pub draft: Draft,
    facts: Option<Facts>,
    /// What was changed on the card.
    overrides: Overrides,
    /// How many jobs are made of it.
    copies: u32,
    verdict: Option<Verdict>,
    checking: Option<u64>,
    typing: Option<(Typing, Field)>,
    /// Where Esc goes.
    back: Option<Box<Picker>>,
}

/// What is typed on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    Priority,
    Copies,
}

/// The largest sweep.
const COPIES: u32 = 100;
/// The keys of the card.
const KEYS: [(&str, &str); 5] =
    [("Enter", "submit"), ("e", "edit"), ("p", "priority"), ("c", "copies"), ("Esc", "back")];

impl Review {
    /// What keys mean while it is there.
    pub(super) const fn mode(&self) -> Mode {
        if self.typing.is_some() { Mode::Form } else { Mode::Menu }
    }

    /// A verdict has come.
    pub(in crate::tui) fn judged(&mut self, serial: u64, verdict: Verdict) {
        if self.checking == Some(serial) {
            (self.checking, self.verdict) = (None, Some(verdict));
        }
    }

    /// What was asked gets no answer.
    pub(in crate::tui) fn lost(&mut self) {
        self.checking = None;
        self.verdict = Some(Verdict::Unknown("no scheduler".to_owned()));
    }
}

/// Opens the card over a text.
pub(in crate::tui) fn open(ui: &mut Ui, draft: Draft, back: Option<Box<Picker>>) -> Vec<UiCommand> {
    let review = Review {
        draft,
        facts: None,
        overrides: Overrides::default(),
        copies: 1,
        verdict: None,
        checking: None,
        typing: None,
        back,
    };
    checked(ui, Box::new(review))
}

/// Opens the card over the request of a job.
pub(in crate::tui) fn duplicate(ui: &mut Ui, file: JobFile) -> Vec<UiCommand> {
    open(ui, Draft::job(file), None)
}

/// Asks anew what would become of it.
fn checked(ui: &mut Ui, mut review: Box<Review>) -> Vec<UiCommand> {
    review.facts = review.draft.facts(ui, &review.overrides);
    let mut out = Vec::new();
    if ui.connected() {
        let (serial, ask) = review.draft.check(ui, review.overrides.clone());
        (review.checking, review.verdict) = (Some(serial), None);
        out.push(ask);
    } else {
        review.verdict = Some(Verdict::Unknown("no scheduler".to_owned()));
    }
    ui.overlay = Some(Overlay::Review(review));
    out
}

/// The editor has ended.
pub(in crate::tui) fn edited(ui: &mut Ui, text: Result<Option<Vec<u8>>, String>) -> Vec<UiCommand> {
    match (ui.overlay.take(), text) {
        (Some(Overlay::Review(mut review)), Ok(Some(text))) => {
            if let Origin::File(path) = &review.draft.origin {
                ui.flows.used(path);
            }
            review.draft.text = text;
            checked(ui, review)
        }
        (overlay, text) => {
            ui.overlay = overlay;
            if let Err(why) = text {
                ui.say(Level::Warning, why, None);
            }
            Vec::new()
        }
    }
}

/// Closed: what is typed, then the card, then back to where it was opened.
pub(super) fn close(ui: &mut Ui, mut review: Box<Review>) {
    if review.typing.take().is_some() {
        ui.overlay = Some(Overlay::Review(review));
    } else if let Some(picker) = review.back.take() {
        ui.overlay = Some(Overlay::Picker(picker));
    }
}

pub(super) fn update(ui: &mut Ui, mut review: Box<Review>, action: &Action) -> Vec<UiCommand> {
    if let Some((what, mut field)) = review.typing.take() {
        if *action == Action::Accept {
            return take(ui, review, what, field);
        }
        field.edit(action);
        review.typing = Some((what, field));
        ui.overlay = Some(Overlay::Review(review));
        return Vec::new();
    }
    match action {
        Action::Accept => return submit(ui, review),
        Action::Insert('e') => {
            let draft = &review.draft;
            let errand = match &draft.origin {
                Origin::File(path) => Errand::EditFile(path.clone()),
                _ => Errand::EditText { name: draft.stem.clone(), text: draft.text.clone() },
            };
            ui.overlay = Some(Overlay::Review(review));
            return vec![UiCommand::Errand(errand)];
        }
        Action::Insert('p') => {
            review.typing = Some((Typing::Priority, Field::default()));
        }
        Action::Insert('c') if review.facts.as_ref().is_some_and(|facts| facts.jobs > 1) => {
            ui.say(Level::Warning, "a file of several jobs has no copies", None);
        }
        Action::Insert('c') => {
            review.typing = Some((Typing::Copies, Field::default()));
        }
        _ => {}
    }
    ui.overlay = Some(Overlay::Review(review));
    Vec::new()
}

/// What was typed is taken, or said to be wrong and typed on.
fn take(ui: &mut Ui, mut review: Box<Review>, what: Typing, field: Field) -> Vec<UiCommand> {
    let text = field.text().trim();
    match what {
        // Nothing typed: it stays.
        _ if text.is_empty() => {}
        Typing::Priority => {
            if let Some(priority) = Priority::read(text) {
                review.overrides.priority = Some(priority);
                return checked(ui, review);
            }
            let why = "a priority is low, normal, high, or a number from -100 to 100";
            ui.say(Level::Warning, why, None);
            review.typing = Some((what, field));
        }
        Typing::Copies => {
            if let Some(copies) = text.parse().ok().filter(|n| (1..=COPIES).contains(n)) {
                review.copies = copies;
            } else {
                ui.say(Level::Warning, format!("copies are a number from 1 to {COPIES}"), None);
                review.typing = Some((what, field));
            }
        }
    }
    ui.overlay = Some(Overlay::Review(review));
    Vec::new()
}

fn submit(ui: &mut Ui, review: Box<Review>) -> Vec<UiCommand> {
    let why_not = match &review.verdict {
        _ if !ui.connected() => ui.unable("submit"),
        Some(Verdict::Good(..)) => None,
        Some(Verdict::Bad(_)) => Some("it would be refused like this: e edits it".to_owned()),
        Some(Verdict::Unknown(why)) => Some(format!("cannot submit: {why}")),
        None => Some("it is being checked; Enter again in a moment".to_owned()),
    };
    if let Some(why) = why_not {
        ui.say(Level::Warning, why, None);
        ui.overlay = Some(Overlay::Review(review));
        return Vec::new();
    }
    if let Origin::File(path) = &review.draft.origin {
        ui.flows.used(path);
    }
    undo::begin_submission(ui);
    let name = review.facts.as_ref().map_or("job", |facts| facts.name.as_str());
    (1..=review.copies)
        .map(|n| {
            let mut overrides = review.overrides.clone();
            if review.copies > 1 {
                overrides.name = Some(numbered(name, n));
            }
            let file = review.draft.submit_file(&ui.flows.desk, overrides);
            UiCommand::Ask { flow: Flow::Submit, request: Request::Command(Command::Submit(file)) }
        })
        .collect()
}

/// A name of its own for each of a sweep.
fn numbered(name: &str, n: u32) -> String {
    let end = format!("-{n}");
    let room = 64_usize.saturating_sub(end.len());
    let name: String = name.chars().take(room).collect();
    name + &end
}

/// What would become of the jobs, in a few words.
pub(super) fn fate(jobs: &[SubmittedJob]) -> String {
    let Some(job) = jobs.first() else { return String::new() };
    let why = job.why.as_deref().map(|why| format!(", {why}")).unwrap_or_default();
    let fate = match job.place {
        Some(place) => format!("place {place}{why}"),
        None if why.is_empty() => "would start now".to_owned(),
        None => format!("would wait{why}"),
    };
    if jobs.len() > 1 { format!("{fate} (+{} jobs)", jobs.len() - 1) } else { fate }
}

/// When it would start.
fn start(v: &View<'_>, jobs: &[SubmittedJob]) -> String {
    let Some(job) = jobs.first() else { return String::new() };
    if job.place.is_none() && job.why.is_none() {
        let gpus: Vec<String> = job.gpus.iter().map(u32::to_string).collect();
        return if gpus.is_empty() { "now".to_owned() } else { format!("now on gpu {}", gpus.join(",")) };
    }
    let about = job
        .starts_at
        .map_or_else(String::new, |at| format!("; about {}", moment(at, v.ui.now.wall_ms, &v.ui.tz)));
    format!("{}{about}", fate(jobs))
}

/// Label and value of each line.
fn lines(v: &View<'_>, review: &Review) -> Vec<(&'static str, String, Role)> {
    let mut lines = vec![("from", review.draft.shown.clone(), Role::Dim)];
    if let Some(facts) = &review.facts {
        let more = if facts.jobs > 1 { format!("  (+{} jobs)", facts.jobs - 1) } else { String::new() };
        let name = if review.copies > 1 {
            format!("{} .. {}", numbered(&facts.name, 1), numbered(&facts.name, review.copies))
        } else {
            facts.name.clone()
        };
        let priority = review.overrides.priority.map_or(facts.priority, Priority::get);
        lines.push(("name", format!("{name}{more}"), Role::Title));
        lines.push(("GPUs", facts.gpus.clone(), Role::Text));
        lines.push(("priority", priority.to_string(), Role::Text));
        lines.push(("limit", facts.limit.clone(), Role::Text));
        lines.push(("command", facts.command.clone(), Role::Text));
        // The number is the scheduler's to give.
        let own = v.snap.scheduler.root.join("jobs").join(Job::folder_of(JobId(0), &facts.name));
        let own = v.ui.flows.desk.homely(&own).replace("/0-", "/N-");
        let copy = if review.copies > 1 { "-1" } else { "" };
        lines.push(("output", format!("{own}{copy}/output"), Role::Text));
        lines.extend(facts.output_to.iter().map(|to| ("and to", to.clone(), Role::Text)));
    }
    if review.copies > 1 {
        lines.push(("copies", review.copies.to_string(), Role::Text));
    }
    lines.push(match &review.verdict {
        None => ("start", "being checked ...".to_owned(), Role::Dim),
        Some(Verdict::Good(jobs, _)) => ("start", start(v, jobs), Role::ToastInfo),
        Some(Verdict::Bad(_)) => ("start", "never: it would be refused".to_owned(), Role::ToastError),
        Some(Verdict::Unknown(why)) => ("start", format!("not known: {why}"), Role::ToastWarn),
    });
    lines
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, review: &Review) {
    let lines = lines(v, review);
    let findings = match &review.verdict {
        Some(Verdict::Bad(findings) | Verdict::Good(_, findings)) => verdict::lines(findings),
        Some(Verdict::Unknown(_)) | None => Vec::new(),
    };
    let rows = verdict::fitted(&findings, usize::from(area.width.min(84)).saturating_sub(3)).len();
    let height = u16::try_from(lines.len() + rows + 4).unwrap_or(u16::MAX);
    let popup = middle(area, 84, height.min(tallest(area)));
    c.clear(popup);
    let inner = c.frame(popup, &[("Submit ?", Role::Title)], &[], true);
    let room = usize::from(inner.width).saturating_sub(12);
    for (row, (label, value, role)) in lines.iter().enumerate() {
        let label = format!(" {label:<9} ");
        let value = if *label.trim() == *"output" { cut_middle(value, room) } else { cut_end(value, room) };
        c.pieces(inner, row as u16, &[(&label, Role::Dim), (&value, *role)]);
    }
    let below = inner.y + (lines.len() as u16).min(inner.height);
    let left = inner.bottom().saturating_sub(below).saturating_sub(1);
    let body = Rect { x: inner.x + 1, y: below, width: inner.width.saturating_sub(1), height: left };
    verdict::paint(c, body, &findings, 0);
    foot(c, inner, review);
}

/// The keys of the card, or what is typed.
fn foot(c: &mut Canvas<'_>, inner: Rect, review: &Review) {
    let row = inner.height.saturating_sub(1);
    if let Some((what, field)) = &review.typing {
        let prompt = match what {
            Typing::Priority => " priority (low, normal, high, -100 to 100): ",
            Typing::Copies => " how many copies: ",
        };
        c.pieces(inner, row, &[(prompt, Role::KeyHint), (field.text(), Role::Input)]);
        let x = inner.x + (width(prompt) + width(field.before())) as u16;
        c.cursor = Some((x.min(inner.right().saturating_sub(1)), inner.y + row, true));
        return;
    }
    c.keys(inner, row, &KEYS);
}
