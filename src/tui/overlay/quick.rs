//! Four fields of a waiting job's request: GPUs, priority, time limit, name. The same path as an edit of its file.

use super::{Overlay, middle};
use crate::model::{JobId, Limit, Priority, Span, parse_span};
use crate::protocol::{JobFile, JobRow, Overrides, Reply};
use crate::tui::UiCommand;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::editing;
use crate::tui::update::flows::{FileFor, ask_file};
use ratatui::layout::Rect;

/// The labels, and the words of a job file for them.
const FIELDS: [(&str, &str); 4] =
    [("GPUs", "gpus"), ("priority", "priority"), ("time limit", "for"), ("name", "name")];
/// The keys of the form.
const KEYS: [(&str, &str); 3] = [("Enter", "what would change"), ("Tab", "next field"), ("Esc", "close")];

/// The fields as they are typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quick {
    /// Which job.
    pub job: JobId,
    was: [String; 4],
    fields: [Field; 4],
    at: usize,
    /// What is wrong with each, and with all of them.
    faults: [Option<String>; 4],
    why: Option<String>,
}

impl Quick {
    /// The fields of a job as they are.
    pub(in crate::tui) fn new(row: &JobRow) -> Self {
        let limit = match row.limit {
            Limit::For(span) => written(span),
            Limit::UntilDone => "until_done".to_owned(),
        };
        let was = [row.gpus.to_string(), row.priority.to_string(), limit, row.name.clone()];
        let fields = [0, 1, 2, 3].map(|at: usize| Field::from(was[at].as_str()));
        Self { job: row.id, was, fields, at: 0, faults: Default::default(), why: None }
    }

    fn text(&self, at: usize) -> Option<&str> {
        let text = self.fields[at].text().trim();
        (text != self.was[at]).then_some(text)
    }

    /// What was changed, or what is wrong with each field.
    fn overrides(&self) -> Result<Overrides, [Option<String>; 4]> {
        let mut faults: [Option<String>; 4] = Default::default();
        let mut out = Overrides::default();
        match self.text(0).map(str::parse::<u32>) {
            Some(Ok(gpus)) => out.gpus = Some(gpus),
            Some(Err(_)) => faults[0] = Some("a whole number; 0 is CPU only".to_owned()),
            None => {}
        }
        match self.text(1).map(Priority::read) {
            Some(None) => faults[1] = Some("low, normal, high or a number from -100 to 100".to_owned()),
            priority => out.priority = priority.flatten(),
        }
        match self.text(2).map(parse_span) {
            Some(Ok(limit)) => out.limit = Some(limit),
            Some(Err(error)) => faults[2] = Some(format!("{error}: write it like 30m, 2h or 1d12h")),
            None => {}
        }
        match self.text(3) {
            Some(name) if crate::model::slug(name) != name => {
                faults[3] = Some("small letters, digits, . _ and -, 64 at most".to_owned());
            }
            name => out.name = name.map(str::to_owned),
        }
        if faults.iter().any(Option::is_some) { Err(faults) } else { Ok(out) }
    }
}

/// A length as a job file has it: exact, unlike one that is read at a glance.
fn written(span: Span) -> String {
    let (mut left, mut out) = (span.as_secs(), String::new());
    for (unit, length) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if left >= length {
            out.push_str(&(left / length).to_string());
            out.push_str(unit);
            left %= length;
        }
    }
    out
}

pub(super) fn update(ui: &mut Ui, mut quick: Box<Quick>, action: &Action) -> Vec<UiCommand> {
    let last = FIELDS.len();
    let mut out = Vec::new();
    match action {
        Action::NextButton | Action::Down => quick.at = (quick.at + 1) % last,
        Action::PreviousButton | Action::Up => quick.at = (quick.at + last - 1) % last,
        Action::Accept => match quick.overrides() {
            Ok(overrides) if overrides == Overrides::default() => {
                ui.say(Level::Info, format!("#{}: nothing was changed", quick.job), Some(quick.job));
                return Vec::new();
            }
            Ok(_) if !ui.connected() => ui.say(Level::Warning, ui.unable("edit").unwrap_or_default(), None),
            Ok(_) => {
                quick.faults = Default::default();
                quick.why = None;
                out.push(ask_file(quick.job, FileFor::Quick));
            }
            Err(faults) => {
                quick.at = faults.iter().position(Option::is_some).unwrap_or(quick.at);
                quick.faults = faults;
            }
        },
        action => {
            if quick.fields[quick.at].edit(action) {
                let at = quick.at;
                quick.faults[at] = None;
            }
        }
    }
    ui.overlay = Some(Overlay::Quick(quick));
    out
}

/// The job's text has come: what the fields would change in it is asked.
pub(in crate::tui) fn asked(ui: &mut Ui, file: JobFile) -> Vec<UiCommand> {
    let Some(Overlay::Quick(quick)) = &ui.overlay else { return Vec::new() };
    let overrides = quick.overrides();
    match overrides {
        Ok(overrides) if quick.job == file.job => editing::quick(ui, file, overrides),
        _ => Vec::new(),
    }
}

/// It would be refused: said under the field that it is about.
pub(in crate::tui) fn refused(ui: &mut Ui, reply: Reply) {
    let Some(Overlay::Quick(quick)) = &mut ui.overlay else { return };
    match reply {
        Reply::Invalid { diagnostics } => {
            for found in diagnostics {
                let source = found.source.unwrap_or_default();
                let about = FIELDS.iter().position(|(_, word)| source.contains(&format!("{word}:")));
                match about {
                    Some(at) => quick.faults[at] = Some(found.message),
                    None => quick.why = Some(found.message),
                }
            }
        }
        Reply::Refused { message } => quick.why = Some(message),
        _ => {}
    }
}

pub(super) fn paint(c: &mut Canvas<'_>, area: Rect, quick: &Quick) {
    let popup = middle(area, 64, 12);
    c.clear(popup);
    let title = format!("Change #{}", quick.job);
    let inner = c.frame(popup, &[(&title, Role::Title)], &[], true);
    let mut row = 0;
    for (at, (label, _)) in FIELDS.iter().enumerate() {
        let mark = if at == quick.at { ">" } else { " " };
        let label = format!("{mark} {label:<11} ");
        let role = if at == quick.at { Role::Title } else { Role::Dim };
        let changed =
            if quick.text(at).is_some() { format!("   was {}", quick.was[at]) } else { String::new() };
        c.pieces(
            inner,
            row,
            &[(&label, role), (quick.fields[at].text(), Role::Input), (&changed, Role::Dim)],
        );
        if at == quick.at {
            let x = inner.x + (width(&label) + width(quick.fields[at].before())) as u16;
            c.cursor = Some((x.min(inner.right().saturating_sub(1)), inner.y + row, true));
        }
        row += 1;
        if let Some(fault) = &quick.faults[at] {
            let room = usize::from(inner.width).saturating_sub(14);
            c.pieces(inner, row, &[("              ", Role::Text), (cut(fault, room), Role::ToastError)]);
            row += 1;
        }
    }
    if let Some(why) = &quick.why {
        c.pieces(inner, row, &[("  ", Role::Text), (why, Role::ToastError)]);
    }
    c.keys(inner, inner.height.saturating_sub(1), &KEYS);
}
