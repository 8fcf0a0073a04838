//! What keys do to jobs, and the reason where they cannot. Pure: commands are returned.

use crate::model::{Cursor, Generation, JobId, Priority, Span};
use crate::protocol::{Command, Connection, JobRow, Place, Snapshot};
use crate::tui::UiCommand;
use crate::tui::keys::Action;
use crate::tui::overlay::{Bulk, Button, Confirm, Overlay};
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::pending::{self, Change, Undoable};
use crate::tui::update::{bulk, marks};

/// How far `+` and `-` go.
pub(in crate::tui) const STEP: i64 = 10;
/// Older changes are not undone any more.
pub(in crate::tui) const UNDO_DEPTH: usize = 20;

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
        Action::Open if row.is_none() => return Some("nothing is selected".to_owned()),
        Action::Log if row.is_none() => return Some("no job is selected".to_owned()),
        _ => return None,
    };
    match &ui.connection {
        Connection::Live => {}
        Connection::Stale { .. } => {
            return Some(format!("cannot {verb}: the scheduler has not answered for a while"));
        }
        Connection::Lost { .. } => return Some(format!("cannot {verb}: no scheduler")),
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
        (Action::Retry | Action::Cancel, _) => return None,
        (Action::Pause, Some("already running")) => {
            return Some("running jobs cannot be paused; x cancels".to_owned());
        }
        (_, Some(reason)) => reason,
        (Action::Top | Action::Bottom | Action::PlaceUp | Action::PlaceDown, None)
            if row.paused_by.is_some() =>
        {
            "paused jobs have no place in line; H resumes"
        }
        (_, None) => return None,
    };
    Some(format!("cannot {verb} #{}: {reason}", row.id))
}

/// Does an action to the selected job.
pub(in crate::tui) fn act(ui: &mut Ui, snap: &Snapshot, action: &Action) -> Vec<UiCommand> {
    let marked = marks::shown(ui, ui.shown(snap));
    if !marked.is_empty() {
        return bulk::act(ui, snap, action, &marked);
    }
    let row = rows::selected(ui, ui.shown(snap)).and_then(|job| rows::find(snap, job));
    if let Some(reason) = refusal(ui, row, action) {
        ui.say(Level::Warning, reason, None);
        return Vec::new();
    }
    let Some(row) = row else { return Vec::new() };
    match action {
        Action::Cancel if row.user != ui.me(snap) => {
            ui.overlay = Some(Overlay::Bulk(Bulk::new(ui, snap, Action::Cancel, &[row])));
            Vec::new()
        }
        Action::Cancel => {
            let (job, generation, button) = (row.id, row.generation, Button::Keep);
            ui.overlay = Some(Overlay::Confirm(Confirm { job, generation, button }));
            Vec::new()
        }
        Action::Raise => priority(ui, row, STEP),
        Action::Lower => priority(ui, row, -STEP),
        Action::Top => place(ui, snap, row, Place::Top),
        Action::Bottom => place(ui, snap, row, Place::Bottom),
        Action::PlaceUp => place(ui, snap, row, Place::Up),
        Action::PlaceDown => place(ui, snap, row, Place::Down),
        Action::Pause => {
            let pause = row.paused_by.is_none();
            remember(ui, row.id, vec![Change::Pause(!pause)]);
            pending::ask(ui, row, &[Change::Pause(pause)])
        }
        Action::Retry => {
            let command = Command::Retry { job: row.id, generation: row.generation };
            vec![UiCommand::Send { job: Some(row.id), command }]
        }
        _ => Vec::new(),
    }
}

fn priority(ui: &mut Ui, row: &JobRow, by: i64) -> Vec<UiCommand> {
    let asked = ui.pending.get(&row.id).and_then(pending::Pending::priority);
    let old = asked.unwrap_or(row.priority);
    let new = Priority::clamped(i64::from(old.get()) + by);
    if new == old {
        ui.say(Level::Warning, format!("#{} has priority {old}: it ends there", row.id), None);
        return Vec::new();
    }
    if asked.is_none() {
        remember(ui, row.id, vec![Change::Priority(old)]);
    }
    pending::ask(ui, row, &[Change::Priority(new)])
}

fn place(ui: &mut Ui, snap: &Snapshot, row: &JobRow, to: Place) -> Vec<UiCommand> {
    let mut jobs = snap.jobs.clone();
    pending::reorder(ui, &mut jobs);
    let Some((places, own)) = pending::group(&jobs, row.id) else { return Vec::new() };
    let last = places.len() - 1;
    let (stays, back) = match to {
        Place::Top => (own == 0, vec![Change::Move(Place::Down); own]),
        Place::Up => (own == 0, vec![Change::Move(Place::Down)]),
        Place::Bottom => (own == last, vec![Change::Move(Place::Up); last - own]),
        Place::Down => (own == last, vec![Change::Move(Place::Up)]),
    };
    if stays {
        let end = if matches!(to, Place::Top | Place::Up) { "first" } else { "last" };
        let text =
            format!("#{} is already {end} of {}'s jobs at priority {}", row.id, row.user, row.priority);
        ui.say(Level::Warning, text, None);
        return Vec::new();
    }
    remember(ui, row.id, back);
    pending::ask(ui, row, &[Change::Move(to)])
}

fn remember(ui: &mut Ui, job: JobId, changes: Vec<Change>) {
    ui.undo.push(Undoable { job, changes, batch: 0 });
    if ui.undo.len() > UNDO_DEPTH {
        ui.undo.remove(0);
    }
}

/// Carries out a cancel that was confirmed, if the job is still what was asked about.
pub(in crate::tui) fn cancel(
    ui: &mut Ui,
    snap: &Snapshot,
    of: (JobId, Generation),
    at_once: bool,
) -> Vec<UiCommand> {
    let (job, generation) = of;
    let Some(row) = rows::find(snap, job) else {
        ui.say(Level::Warning, format!("#{job} is no longer there: nothing was cancelled"), None);
        return Vec::new();
    };
    if row.generation != generation {
        let (word, _) = crate::tui::look::text::state(row);
        let text = format!("#{job} changed meanwhile, it is {word} now: nothing was cancelled");
        ui.say(Level::Warning, text, Some(job));
        return Vec::new();
    }
    if !ui.connected() {
        ui.say(Level::Warning, "cannot cancel: no scheduler", None);
        return Vec::new();
    }
    if row.cancel_at.is_some() {
        return pending::ask(ui, row, &[Change::Cancel { undo: Span(0), now: true }]);
    }
    let undo = if at_once { Span(0) } else { undo_window(row) };
    if !at_once {
        remember(ui, job, Vec::new());
    }
    pending::ask(ui, row, &[Change::Cancel { undo, now: false }])
}

/// Takes back the newest thing that can be taken back.
pub(in crate::tui) fn undo(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if !ui.connected() {
        ui.say(Level::Warning, "cannot undo: no scheduler", None);
        return Vec::new();
    }
    if let Some(batch) = bulk::newest(ui) {
        return bulk::undo(ui, snap, &batch);
    }
    while let Some(last) = ui.undo.pop() {
        let Some(row) = rows::find(snap, last.job).filter(|row| row.state != Cursor::Done) else { continue };
        if last.changes.is_empty() {
            if pending::undoable(row, &ui.now) || ui.pending.contains_key(&row.id) {
                return vec![take_back(last.job)];
            }
        } else if row.state == Cursor::Queued {
            return pending::ask(ui, row, &last.changes);
        }
    }
    // A cancel that another client asked for, or this one before it was closed.
    let open = snap.jobs.iter().filter(|row| pending::undoable(row, &ui.now));
    if let Some(row) = open.max_by_key(|row| row.cancel_at) {
        return vec![take_back(row.id)];
    }
    ui.say(Level::Warning, "nothing to undo", None);
    Vec::new()
}

pub(in crate::tui) const fn take_back(job: JobId) -> UiCommand {
    UiCommand::Send { job: Some(job), command: Command::Undo { job: Some(job) } }
}
