//! What keys do to jobs, and the reason where they cannot. Pure: commands are returned.

use crate::model::{Cursor, Generation, JobId, Priority, Span};
use crate::protocol::{JobRow, Place, Snapshot};
use crate::tui::UiCommand;
use crate::tui::effect;
use crate::tui::errand::Errand;
use crate::tui::keys::Action;
use crate::tui::overlay::{Bulk, Button, Confirm, CopyMenu, Overlay, Quick, retry};
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::flows::{self, FileFor};
use crate::tui::update::pending::{self, Change};
use crate::tui::update::{bulk, copying, editing, marks, undo};

/// How far `+` and `-` go.
pub(in crate::tui) const STEP: i64 = 10;

/// How long a cancel of this job can be undone.
pub(in crate::tui) const fn undo_window(row: &JobRow) -> Span {
    match row.state {
        Cursor::Queued => Span::secs(10),
        Cursor::Renting | Cursor::Running | Cursor::Returning | Cursor::Releasing | Cursor::Done => {
            Span::secs(5)
        }
    }
}

/// Why an action cannot be done to a job; `None` if it can, or is not about jobs.
pub(in crate::tui) fn refusal(ui: &Ui, row: Option<&JobRow>, action: &Action) -> Option<String> {
    let verb = match action {
        Action::Cancel => "cancel",
        Action::Raise => "raise",
        Action::Lower => "lower",
        Action::Top | Action::Bottom | Action::PlaceUp | Action::PlaceDown => "move",
        Action::Pause => "pause",
        Action::Retry => "retry",
        Action::Duplicate => "duplicate",
        Action::Edit | Action::QuickEdit => "edit",
        Action::Copy | Action::Shell | Action::Leave | Action::Pager if row.is_none() => {
            return Some("no job is selected".to_owned());
        }
        Action::Open if row.is_none() => return Some("nothing is selected".to_owned()),
        Action::Log if row.is_none() => return Some("no job is selected".to_owned()),
        _ => return None,
    };
    if let Some(why) = ui.unable(verb) {
        return Some(why);
    }
    let Some(row) = row else { return Some("no job is selected".to_owned()) };
    let state = match row.state {
        Cursor::Queued => None,
        Cursor::Renting | Cursor::Running => Some("already running"),
        Cursor::Returning | Cursor::Releasing => Some("its run has ended"),
        Cursor::Done => Some("it has ended"),
    };
    let reason = match (action, state) {
        (Action::Retry, _) if row.state != Cursor::Done => "it has not ended",
        (Action::Cancel, _) if row.state == Cursor::Done => "it has ended",
        (Action::Retry | Action::Cancel | Action::Duplicate, _) => return None,
        (_, None) if row.cancel_at.is_some() => "it is being cancelled",
        (Action::Pause, Some("already running")) => {
            return Some(format!("running jobs cannot be paused; {} cancels", ui.keys.way(&Action::Cancel)));
        }
        (_, Some(reason)) => reason,
        (Action::Top | Action::Bottom | Action::PlaceUp | Action::PlaceDown, None)
            if row.paused_by.is_some() =>
        {
            let resume = ui.keys.way(&Action::Pause);
            return Some(format!(
                "cannot {verb} #{}: paused jobs have no place in line; {resume} resumes",
                row.id
            ));
        }
        (_, None) => return None,
    };
    Some(format!("cannot {verb} #{}: {reason}", row.id))
}

/// Whether an action is done to jobs, and so by [`act`].
pub(in crate::tui) const fn is_about_jobs(action: &Action) -> bool {
    let is_for_one = matches!(
        action,
        Action::Duplicate
            | Action::Edit
            | Action::QuickEdit
            | Action::Copy
            | Action::Shell
            | Action::Leave
            | Action::Pager
    );
    is_for_one || is_for_many(action)
}

/// Whether an action is done to all marked jobs.
const fn is_for_many(action: &Action) -> bool {
    matches!(
        action,
        Action::Cancel
            | Action::Raise
            | Action::Lower
            | Action::Top
            | Action::Bottom
            | Action::PlaceUp
            | Action::PlaceDown
            | Action::Pause
            | Action::Retry
    )
}

/// Does an action to the marked jobs, else to the selected one; where it cannot be done, the reason is said.
pub(in crate::tui) fn act(ui: &mut Ui, snap: &Snapshot, action: &Action) -> Vec<UiCommand> {
    let marked = marks::shown(ui, ui.shown(snap));
    if !marked.is_empty() && is_for_many(action) {
        return bulk::act(ui, snap, action, &marked);
    }
    let row = rows::selected(ui, ui.shown(snap)).and_then(|job| rows::find(ui, snap, job)).cloned();
    if let Some(reason) = refusal(ui, row.as_ref(), action) {
        ui.say(Level::Warning, reason, None);
        return Vec::new();
    }
    row.map_or_else(Vec::new, |row| act_on(ui, snap, action, &row))
}

fn act_on(ui: &mut Ui, snap: &Snapshot, action: &Action, row: &JobRow) -> Vec<UiCommand> {
    match action {
        Action::Raise => priority(ui, row, STEP),
        Action::Lower => priority(ui, row, -STEP),
        Action::Top => place(ui, snap, row, Place::Top),
        Action::Bottom => place(ui, snap, row, Place::Bottom),
        Action::PlaceUp => place(ui, snap, row, Place::Up),
        Action::PlaceDown => place(ui, snap, row, Place::Down),
        Action::Pause => {
            let asked = ui.pending.get(&row.id).and_then(pending::Pending::paused);
            // One that is being edited is held up already: it is let go.
            let is_held = row.paused_by.is_some() || row.editing.is_some();
            let pause = !asked.unwrap_or(is_held);
            change(ui, row, Change::Pause(pause))
        }
        Action::Cancel if row.user != ui.me(snap) => {
            ui.overlay = Some(Overlay::Bulk(Bulk::new(ui, snap, Action::Cancel, &[row])));
            Vec::new()
        }
        Action::Cancel => {
            let (job, generation, button) = (row.id, row.generation, Button::Keep);
            ui.overlay = Some(Overlay::Confirm(Confirm { job, generation, button }));
            let known = ui.detail.as_ref().is_some_and(|detail| detail.row.id == job);
            if pending::is_queued(row) {
                return Vec::new();
            }
            let output = UiCommand::Errand(Errand::Measure(copying::output(row)));
            // Its file says how it is stopped.
            let detail = (!known).then_some(UiCommand::Detail(job));
            std::iter::once(output).chain(detail).collect()
        }
        Action::Retry => retry::open(ui, row),
        Action::Duplicate => vec![flows::ask_file(row.id, FileFor::Duplicate)],
        Action::Edit => editing::begin(ui, row),
        Action::QuickEdit => {
            ui.overlay = Some(Overlay::Quick(Box::new(Quick::new(row))));
            Vec::new()
        }
        Action::Copy => {
            ui.overlay = Some(Overlay::Copy(CopyMenu { job: row.id, at: 0 }));
            Vec::new()
        }
        Action::Shell => vec![UiCommand::Errand(Errand::Shell(copying::output(row)))],
        Action::Leave => vec![UiCommand::Errand(Errand::Leave(copying::output(row)))],
        Action::Pager => vec![UiCommand::Errand(Errand::Pager(row.log.clone()))],
        _ => Vec::new(),
    }
}

/// Changes one job: it is what `u` takes back next.
fn change(ui: &mut Ui, row: &JobRow, change: Change) -> Vec<UiCommand> {
    undo::changed(ui, row.id, matches!(change, Change::Cancel { .. }));
    effect::begin(ui, [row.id], change);
    pending::ask(ui, row, &[change])
}

fn priority(ui: &mut Ui, row: &JobRow, by: i64) -> Vec<UiCommand> {
    let asked = ui.pending.get(&row.id).and_then(pending::Pending::priority);
    let old = asked.unwrap_or(row.priority);
    let new = Priority::clamped(i64::from(old.get()) + by);
    if new == old {
        ui.say(Level::Warning, format!("#{} has priority {old}: it ends there", row.id), None);
        return Vec::new();
    }
    change(ui, row, Change::Priority(new))
}

fn place(ui: &mut Ui, snap: &Snapshot, row: &JobRow, to: Place) -> Vec<UiCommand> {
    let jobs = pending::line(ui, snap);
    let Some((places, own)) = pending::group(&jobs, row.id) else { return Vec::new() };
    let stays = match to {
        Place::Top | Place::Up => own == 0,
        Place::Bottom | Place::Down => own + 1 == places.len(),
    };
    if stays {
        let end = if matches!(to, Place::Top | Place::Up) { "first" } else { "last" };
        let text =
            format!("#{} is already {end} of {}'s jobs at priority {}", row.id, row.user, row.priority);
        ui.say(Level::Warning, text, None);
        return Vec::new();
    }
    change(ui, row, Change::Move(to))
}

/// Carries out a cancel that was confirmed, if the job is still what was asked about.
pub(in crate::tui) fn cancel(
    ui: &mut Ui,
    snap: &Snapshot,
    of: (JobId, Generation),
    at_once: bool,
) -> Vec<UiCommand> {
    let (job, generation) = of;
    let Some(row) = rows::told(snap, job) else {
        ui.say(Level::Warning, format!("#{job} is no longer there: nothing was cancelled"), None);
        return Vec::new();
    };
    if row.generation != generation {
        let (word, _) = crate::tui::look::text::state(row);
        let text = format!("#{job} changed meanwhile, it is {word} now: nothing was cancelled");
        ui.say(Level::Warning, text, Some(job));
        return Vec::new();
    }
    if let Some(why) = ui.unable("cancel") {
        ui.say(Level::Warning, why, None);
        return Vec::new();
    }
    if row.cancel_at.is_some() {
        return change(ui, row, Change::Cancel { undo: Span(0), now: true });
    }
    let undo = if at_once { Span(0) } else { undo_window(row) };
    change(ui, row, Change::Cancel { undo, now: false })
}
