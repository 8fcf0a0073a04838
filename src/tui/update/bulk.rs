//! One action on several jobs: what goes out, what is undone together, and one message of how it went. Pure.

use crate::model::{Cursor, Generation, JobId, Priority, Span};
use crate::protocol::{Command, JobRow, Place, Reply, Snapshot};
use crate::tui::UiCommand;
use crate::tui::effect;
use crate::tui::keys::Action;
use crate::tui::overlay::{Bulk, Overlay};
use crate::tui::rows;
use crate::tui::shell::feed::Asked as WhatAsked;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::acts::{self, STEP, undo_window};
use crate::tui::update::pending::{self, Change, Pending};
use crate::tui::update::{flows, undo};
use std::collections::BTreeSet;

/// More jobs than this are only cancelled, or submitted again, after their number was typed.
pub(in crate::tui) const ASKS_ABOVE: usize = 5;
/// What was done to them, where more than words hang on it.
const TAKEN_BACK: &str = "taken back";
const SUBMITTED: &str = "submitted again";
/// What has not answered by then is told as such.
const PATIENCE_MS: u64 = 10_000;

/// How one action on several jobs is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// What was done to them: `cancelled`.
    verb: &'static str,
    waiting: BTreeSet<JobId>,
    done: usize,
    refused: Vec<String>,
    /// One that was done: what the action does to others is known by it.
    told: Option<JobId>,
    /// When it is told as it stands, on the boot clock.
    pub(in crate::tui) until_ms: u64,
}

/// Does an action to several jobs, or asks first.
pub(in crate::tui) fn act(ui: &mut Ui, snap: &Snapshot, action: &Action, jobs: &[JobId]) -> Vec<UiCommand> {
    let mut refused = Vec::new();
    let mut able: Vec<&JobRow> = Vec::new();
    let found: Vec<JobRow> = jobs.iter().filter_map(|job| rows::find(ui, snap, *job)).cloned().collect();
    for row in &found {
        let stopping = *action == Action::Cancel && row.cancel_at.is_some();
        let already = stopping.then(|| format!("#{} is being cancelled already", row.id));
        match acts::refusal(ui, Some(row), action).or(already) {
            Some(reason) => refused.push(reason),
            None => able.push(row),
        }
    }
    if able.is_empty() {
        let why = refused.first().cloned().unwrap_or_else(|| "they are no longer there".to_owned());
        let more =
            if refused.len() > 1 { format!(" (and {} more)", refused.len() - 1) } else { String::new() };
        ui.say(Level::Warning, format!("{why}{more}"), None);
        return Vec::new();
    }
    match action {
        Action::Cancel | Action::Retry => {
            let asked = Bulk { refused, ..Bulk::new(ui, snap, action.clone(), &able) };
            ui.overlay = Some(Overlay::Bulk(asked));
            Vec::new()
        }
        Action::Raise => each(ui, "raised", &able, refused, |ui, row| priority(ui, row, STEP)),
        Action::Lower => each(ui, "lowered", &able, refused, |ui, row| priority(ui, row, -STEP)),
        Action::Pause => {
            let asked = |row: &JobRow| ui.pending.get(&row.id).and_then(Pending::paused);
            let is_paused = |row: &JobRow| asked(row).unwrap_or(row.paused_by.is_some());
            let pause = able.iter().any(|row| !is_paused(row));
            able.retain(|row| is_paused(row) != pause);
            let verb = if pause { "paused" } else { "resumed" };
            let change = Change::Pause(pause);
            each(ui, verb, &able, refused, |_, _| Ok(change))
        }
        Action::Top => moved(ui, snap, Place::Top, able, refused),
        Action::Bottom => moved(ui, snap, Place::Bottom, able, refused),
        Action::PlaceUp => moved(ui, snap, Place::Up, able, refused),
        Action::PlaceDown => moved(ui, snap, Place::Down, able, refused),
        _ => Vec::new(),
    }
}

/// What is asked of a job; or why nothing is.
type Asked = Result<Change, String>;

fn each(
    ui: &mut Ui,
    verb: &'static str,
    jobs: &[&JobRow],
    mut refused: Vec<String>,
    change: impl Fn(&Ui, &JobRow) -> Asked,
) -> Vec<UiCommand> {
    let asks = jobs.len() <= effect::ASKS;
    let is_cancel = verb == "cancelled";
    let mut changes: Vec<(&JobRow, Change)> = Vec::new();
    for row in jobs {
        match change(ui, row) {
            Ok(change) => changes.push((*row, change)),
            Err(why) => refused.push(why),
        }
    }
    let mut batch: Vec<JobId> = changes.iter().map(|(row, _)| row.id).collect();
    if let Some((_, how)) = changes.first() {
        // What the whole of it does is told, whichever of them was first.
        effect::begin(ui, batch.iter().copied(), *how);
    }
    let mut out = Vec::new();
    let (mut sent, mut done) = (BTreeSet::new(), 0);
    for (row, change) in changes {
        let commands = pending::ask(ui, row, &[change]);
        if commands.is_empty() {
            // It goes out when what is on its way has come back, and speaks for itself.
            done += 1;
        } else {
            sent.insert(row.id);
        }
        out.extend(commands.into_iter().filter(|one| asks || matches!(one, UiCommand::Send { .. })));
    }
    // The last one is taken back first.
    batch.reverse();
    undo::changed_together(ui, batch, is_cancel);
    begin(ui, verb, sent, done, refused);
    out
}

fn priority(ui: &Ui, row: &JobRow, by: i64) -> Asked {
    let old = ui.pending.get(&row.id).and_then(Pending::priority).unwrap_or(row.priority);
    let new = Priority::clamped(i64::from(old.get()) + by);
    if new == old {
        return Err(format!("#{} has priority {old}: it ends there", row.id));
    }
    Ok(Change::Priority(new))
}

/// Moves jobs so that they keep their order among themselves.
fn moved(
    ui: &mut Ui,
    snap: &Snapshot,
    to: Place,
    mut jobs: Vec<&JobRow>,
    refused: Vec<String>,
) -> Vec<UiCommand> {
    let line = pending::line(ui, snap);
    let at = |row: &&JobRow| line.iter().position(|other| other.id == row.id);
    jobs.sort_by_key(at);
    // Whoever is to end up nearest to where they go moves last to the top and first by one place.
    if matches!(to, Place::Top | Place::Down) {
        jobs.reverse();
    }
    let ids: BTreeSet<JobId> = jobs.iter().map(|row| row.id).collect();
    let stuck = |ui: &Ui, row: &JobRow| {
        let line = pending::line(ui, snap);
        let Some((places, own)) = pending::group(&line, row.id) else { return true };
        let marked = |at: &usize| line.get(*at).is_some_and(|other| ids.contains(&other.id));
        match to {
            // Everybody in front of it, or behind it, is marked too: they are where they go already.
            Place::Top | Place::Up => places[..own].iter().all(marked),
            Place::Bottom | Place::Down => places[own + 1..].iter().all(marked),
        }
    };
    let stays: BTreeSet<JobId> = jobs.iter().filter(|row| stuck(ui, row)).map(|row| row.id).collect();
    each(ui, "moved", &jobs, refused, |_, row| {
        if stays.contains(&row.id) {
            let end = if matches!(to, Place::Top | Place::Up) { "first" } else { "last" };
            let with = if ids.len() > 1 { ", or with the marked ones" } else { "" };
            return Err(format!(
                "#{} is already {end} of {}'s jobs at priority {}{with}",
                row.id, row.user, row.priority
            ));
        }
        Ok(Change::Move(to))
    })
}

/// Cancels jobs after the question, those that are still what was asked about.
pub(in crate::tui) fn cancel(
    ui: &mut Ui,
    snap: &Snapshot,
    jobs: &[(JobId, Generation)],
    refused: Vec<String>,
    at_once: bool,
) -> Vec<UiCommand> {
    if let ([one], true) = (jobs, refused.is_empty()) {
        // One that is somebody else's: as any one job.
        ui.marks.remove(&one.0);
        return acts::cancel(ui, snap, *one, at_once);
    }
    let (rows, refused) = unchanged(ui, snap, jobs, refused, "cancelled");
    unmark(ui, &rows);
    each(ui, "cancelled", &rows.iter().collect::<Vec<_>>(), refused, |_, row| {
        let kill = row.cancel_at.is_some();
        let undo = if at_once || kill { Span(0) } else { undo_window(row) };
        Ok(Change::Cancel { undo, now: kill })
    })
}

/// Whether a job is one of several whose answers are told together.
pub(in crate::tui) fn awaits(ui: &Ui, job: JobId) -> bool {
    ui.tally.as_ref().is_some_and(|tally| tally.waiting.contains(&job))
}

/// Submits jobs again.
pub(in crate::tui) fn retry(
    ui: &mut Ui,
    snap: &Snapshot,
    jobs: &[(JobId, Generation)],
    refused: Vec<String>,
) -> Vec<UiCommand> {
    let (rows, refused) = unchanged(ui, snap, jobs, refused, "retried");
    unmark(ui, &rows);
    begin(ui, SUBMITTED, rows.iter().map(|row| row.id).collect(), 0, refused);
    let command = |row: &JobRow| UiCommand::Send {
        job: Some(row.id),
        command: Command::Retry { job: row.id, generation: row.generation },
    };
    rows.iter().map(command).collect()
}

/// What is cancelled or submitted again has been dealt with: the next action is not about it.
fn unmark(ui: &mut Ui, rows: &[JobRow]) {
    for row in rows {
        ui.marks.remove(&row.id);
    }
}

fn unchanged(
    ui: &Ui,
    snap: &Snapshot,
    jobs: &[(JobId, Generation)],
    mut refused: Vec<String>,
    verb: &str,
) -> (Vec<JobRow>, Vec<String>) {
    let mut able = Vec::new();
    for (job, generation) in jobs {
        match rows::find(ui, snap, *job) {
            _ if !ui.connected() => refused.push(format!("#{job}: no scheduler")),
            None => refused.push(format!("#{job} is no longer there")),
            Some(row) if row.generation != *generation => {
                refused.push(format!("#{job} changed meanwhile: not {verb}"));
            }
            Some(row) => able.push(row.clone()),
        }
    }
    (able, refused)
}

/// Takes one action on several jobs back, the whole of it, the last one first.
pub(in crate::tui) fn undo(ui: &mut Ui, snap: &Snapshot, jobs: &[JobId]) -> Vec<UiCommand> {
    let is_done = |job: &JobId| rows::find(ui, snap, *job).is_none_or(|row| row.state == Cursor::Done);
    let (gone, back): (Vec<JobId>, Vec<JobId>) = jobs.iter().copied().partition(is_done);
    let refused = gone.iter().map(|job| format!("#{job} is no longer there")).collect();
    // What has not gone out yet just does not.
    let (unsent, sent): (Vec<JobId>, Vec<JobId>) =
        back.into_iter().partition(|job| pending::take_back(ui, Some(*job)));
    begin(ui, TAKEN_BACK, sent.iter().copied().collect(), unsent.len(), refused);
    sent.into_iter().map(|job| undo::undo(Some(job))).collect()
}

fn begin(ui: &mut Ui, verb: &'static str, waiting: BTreeSet<JobId>, done: usize, refused: Vec<String>) {
    let until_ms = ui.now.boottime_ms + PATIENCE_MS;
    ui.tally = Some(Tally { verb, waiting, done, refused, told: None, until_ms });
    finish(ui, false);
}

/// Takes an answer in; `false` if nobody counts it.
pub(in crate::tui) fn answered(ui: &mut Ui, asked: WhatAsked, reply: &Reply) -> bool {
    let (WhatAsked::Command(Some(job)), Some(tally)) = (asked, &mut ui.tally) else { return false };
    if !tally.waiting.remove(&job) {
        return false;
    }
    let why = match reply {
        Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message } => {
            Some(message.clone())
        }
        Reply::Invalid { diagnostics } => {
            Some(diagnostics.first().map_or_else(|| "refused".to_owned(), |d| d.message.clone()))
        }
        Reply::BeingEdited { by, .. } => Some(format!("#{job} is being edited by {by}")),
        _ => None,
    };
    if let Some(why) = why {
        tally.refused.push(why);
        if tally.verb != TAKEN_BACK {
            undo::refused(ui, job);
        }
        ui.pending.remove(&job);
    } else {
        tally.done += 1;
        tally.told = Some(job);
        pending::answered(ui, job);
    }
    if let Reply::Submitted { jobs, .. } = reply {
        undo::submitted(ui, jobs);
    }
    finish(ui, false);
    true
}

/// Tells how it went once everybody has answered, or at last.
fn finish(ui: &mut Ui, at_last: bool) {
    let Some(tally) = ui.tally.take_if(|tally| tally.waiting.is_empty() || at_last) else { return };
    let mut text = format!("{} {}", tally.done, tally.verb);
    if let Some(words) = tally.told.and_then(|job| ui.fetched.effect.words_of(job)) {
        text = format!("{text}; {words}");
    }
    if !tally.waiting.is_empty() {
        text = format!("{text}, {} without an answer", tally.waiting.len());
    }
    if !tally.refused.is_empty() {
        text = format!("{text}, {} refused: {}", tally.refused.len(), tally.refused.join("; "));
    }
    let level =
        if tally.refused.is_empty() && tally.waiting.is_empty() { Level::Info } else { Level::Warning };
    if tally.verb != SUBMITTED || tally.done == 0 {
        return ui.say(level, text, None);
    }
    let undo = ui.keys.way(&Action::Undo);
    ui.say(level, format!("{text}   {undo} removes them"), None);
    flows::keep_message(ui);
}

/// Time has passed.
pub(in crate::tui) fn expire(ui: &mut Ui) {
    if ui.tally.as_ref().is_some_and(|tally| tally.until_ms <= ui.now.boottime_ms) {
        finish(ui, true);
    }
}
