//! What arrives changes the [`Ui`] and the snapshot. Pure: what is to be asked in turn is returned.

use crate::model::{JobId, Now, Outcome, Span};
use crate::protocol::{Connection, JobDetail, JobRow, Reply, Snapshot};
use crate::tui::arrange;
use crate::tui::effect;
use crate::tui::figures;
use crate::tui::fold::{fold, is_fine, newly_done};
use crate::tui::look::text;
use crate::tui::looks;
use crate::tui::overlay::retry;
use crate::tui::panels::log;
use crate::tui::rows;
use crate::tui::shell::feed::{Asked, FeedEvent, UiCommand};
use crate::tui::ui::{Level, Ui};
use crate::tui::update::{bulk, editing, finding, flows, pending};

/// Takes in what arrived. Keys and hang-ups are the shell's and are not for here.
pub fn receive(ui: &mut Ui, snap: &mut Snapshot, event: FeedEvent, now: Now) -> Vec<UiCommand> {
    ui.now = now;
    let mut out = Vec::new();
    match event {
        FeedEvent::Update(update) => {
            let open = open_jobs(snap);
            let mut update = *update;
            figures::hold_back(ui, snap, &mut update);
            if fold(snap, update).is_err() {
                out.push(UiCommand::Refresh);
            }
            changed(ui, snap, &open, &mut out);
        }
        FeedEvent::Snapshot(snapshot) => {
            let open = open_jobs(snap);
            // Newer than any figure that waits to be shown.
            ui.gpus_behind.1.clear();
            *snap = *snapshot;
            changed(ui, snap, &open, &mut out);
        }
        FeedEvent::Detail(detail) => {
            told_cause(ui, &detail);
            // The one that is looked at is not put away for one that was only asked what it ended by, and stays as it is
            // while the display is frozen.
            let is_held =
                ui.frozen.is_some() && ui.detail.as_ref().is_some_and(|it| it.row.id == detail.row.id);
            if !is_held && ui.opened.is_none_or(|opened| opened.job == detail.row.id) {
                ui.detail = Some(detail);
            }
        }
        FeedEvent::Reply { asked: Asked::Flow(flow), reply } => {
            heard(ui, &reply);
            out = flows::answered(ui, snap, flow, *reply);
        }
        FeedEvent::Reply { asked, reply } => {
            heard(ui, &reply);
            if !bulk::answered(ui, asked, &reply) {
                answered(ui, asked, *reply);
            }
        }
        FeedEvent::Brought(brought) => out = flows::brought(ui, brought),
        FeedEvent::Connection(connection) => {
            if let Connection::Lost { retry_in, .. } = &connection {
                ui.retry_at = now.boottime_ms + retry_in.0;
                if !matches!(ui.connection, Connection::Lost { .. }) {
                    flows::lost(ui);
                }
            }
            ui.connection = connection;
        }
        FeedEvent::Log(window)
            if ui.frozen.is_some() && ui.log.stopped_at.is_none() && window.path == ui.log.window.path =>
        {
            ui.log_behind = Some(window);
        }
        FeedEvent::Log(window) => ui.log.window = *window,
        FeedEvent::Found(id, found) => finding::found(ui, id, found),
        FeedEvent::Written { .. }
        | FeedEvent::Input(_)
        | FeedEvent::Returned(_)
        | FeedEvent::ThemeChanged
        | FeedEvent::Hangup => {}
    }
    out
}

/// In order, so that one can be looked up.
fn open_jobs(snap: &Snapshot) -> Vec<JobId> {
    let mut open: Vec<JobId> = snap.jobs.iter().map(|row| row.id).collect();
    open.sort_unstable();
    open
}

fn changed(ui: &mut Ui, snap: &Snapshot, was_open: &[JobId], out: &mut Vec<UiCommand>) {
    let again = !ui.connected();
    ui.connection = Connection::Live;
    ui.known = true;
    if again {
        out.extend(editing::go_on(ui));
    }
    let ended = newly_done(was_open, snap);
    let (mut told, last) = (ended.iter(), ended.len().saturating_sub(1));
    // All of them are kept; the last one is on the screen, and its notes say what it ended by.
    for (row, outcome) in told.by_ref().take(last) {
        ui.note(level_of(outcome), news_of(row, outcome));
    }
    if let Some((row, outcome)) = told.next() {
        let text = news_of(row, outcome);
        let level = level_of(outcome);
        let more = if last == 0 { String::new() } else { format!(", and {last} more ended") };
        out.push(UiCommand::Notify(format!("overnight: {text}{more}")));
        // An error that nobody has read is not replaced by good news.
        if level == Level::Error || !ui.has_error() {
            ui.say(level, text, Some(row.id));
        } else {
            ui.note(level, text);
        }
        if matches!(outcome, Outcome::Failed(_)) {
            out.push(UiCommand::Detail(row.id));
        }
    }
    out.extend(pending::settle(ui, snap));
    rows::settle(ui, snap);
}

fn level_of(outcome: &Outcome) -> Level {
    if is_fine(outcome) { Level::Info } else { Level::Error }
}

fn news_of(row: &JobRow, outcome: &Outcome) -> String {
    format!("#{} {}: {outcome}", row.id, row.name)
}

/// What a job ended by is told with its end.
fn told_cause(ui: &mut Ui, detail: &JobDetail) {
    let (Some(outcome), Some(cause)) = (&detail.row.outcome, retry::cause(detail)) else { return };
    let text = news_of(&detail.row, outcome);
    let said = ui.said.iter_mut().rev().map(|said| &mut said.text);
    let shown = ui.message.iter_mut().chain(&mut ui.behind).map(|message| &mut message.text);
    for told in said.chain(shown).filter(|told| **told == text) {
        *told = format!("{told} ({cause})");
    }
}

/// An answer came: somebody is there, unless it says that nobody is.
fn heard(ui: &mut Ui, reply: &Reply) {
    if ui.known && !matches!(reply, Reply::Unavailable { .. }) {
        ui.connection = Connection::Live;
    }
}

/// The job that was asked about.
const fn job_of(asked: Asked) -> Option<JobId> {
    match asked {
        Asked::Command(job) => job,
        Asked::Subscription | Asked::Snapshot | Asked::Ping | Asked::Look(_) | Asked::Flow(_) => None,
        Asked::Detail(job) => Some(job),
    }
}

fn answered(ui: &mut Ui, asked: Asked, reply: Reply) {
    let job = job_of(asked);
    if let Asked::Look(look) = asked {
        return looks::took(ui, look, reply);
    }
    match reply {
        Reply::Ok { message } => done(ui, asked, job, message),
        Reply::Submitted { jobs, .. } => flows::submitted(ui, &jobs),
        Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message } => {
            if let Some(job) = job {
                ui.pending.remove(&job);
                // What was refused has no effect.
                effect::end(ui, job);
            }
            if !matches!(asked, Asked::Detail(_) | Asked::Ping | Asked::Subscription) {
                ui.say(Level::Error, message, None);
            }
        }
        Reply::Invalid { diagnostics } => {
            let first = diagnostics.first().map_or_else(|| "refused".to_owned(), |d| d.message.clone());
            ui.say(Level::Error, first, None);
        }
        Reply::Edited(edited) => {
            if let Some(job) = job {
                pending::answered(ui, job);
            }
            ui.say(Level::Info, edited.message, Some(edited.job));
        }
        Reply::BeingEdited { job, by, until } => {
            ui.pending.remove(&job);
            let until = text::moment(until, ui.now.wall_ms, &ui.tz);
            ui.say(Level::Error, editing::held_by(ui, job, &by, &until), Some(job));
        }
        Reply::Checked { .. }
        | Reply::Editing { .. }
        | Reply::JobFile(_)
        | Reply::WhatIf(_)
        | Reply::Undoable(_)
        | Reply::Snapshot(_)
        | Reply::Jobs { .. }
        | Reply::Resolved { .. }
        | Reply::Job(_)
        | Reply::Gpus(_)
        | Reply::GpuHistory(_)
        | Reply::Timeline(_)
        | Reply::Meter(_)
        | Reply::MeterChecked { .. }
        | Reply::Notices(_)
        | Reply::Pong => {}
    }
}

/// A command was carried out.
fn done(ui: &mut Ui, asked: Asked, job: Option<JobId>, message: String) {
    if let Some(job) = job {
        pending::answered(ui, job);
    }
    if message.is_empty() || !matches!(asked, Asked::Command(_)) {
        return;
    }
    // The countdown is told by the row, as long as there is one.
    if job.is_some_and(|job| pending::is_undoable_cancel(ui, job)) {
        return ui.note(Level::Info, message);
    }
    // What a change does to others was told just before, and is told with it.
    let words = job.and_then(|job| ui.fetched.effect.words_of(job));
    let message = match words {
        Some(words) => format!("{message}; {words}"),
        None => message,
    };
    ui.say(Level::Info, message, None);
}

/// Time has passed: messages go, changes without an answer are given up, a countdown to the next try goes on.
pub fn tick(ui: &mut Ui, snap: &Snapshot, now: Now) -> Vec<UiCommand> {
    ui.now = now;
    if ui.message.as_ref().and_then(|message| message.until).is_some_and(|until| until <= now.boottime_ms) {
        ui.hush();
    }
    if ui.tables.moved_at > 0 && arrange::deadline(ui).is_none() {
        // An order that stood still moves again.
        ui.tables.moved_at = 0;
        rows::settle(ui, snap);
    }
    if let Connection::Lost { retry_in, .. } = &mut ui.connection {
        *retry_in = Span(ui.retry_at.saturating_sub(now.boottime_ms));
    }
    effect::tick(ui);
    let mut out = editing::go_on(ui);
    out.extend(pending::settle(ui, snap));
    bulk::expire(ui);
    out
}

/// What the screen shows and the dashboard does not have: the log's file of the job beside, the opened job whole.
pub(in crate::tui) fn wants(
    ui: &mut Ui,
    snap: &Snapshot,
    before: Option<&crate::tui::LogWant>,
) -> (Option<crate::tui::LogWant>, Option<UiCommand>) {
    let path = rows::companion(ui).and_then(|job| rows::find(ui, snap, job)).map(|row| row.log.clone());
    if let Some(path) = path.filter(|path| ui.log.path != *path) {
        let wrap = ui.log.wrap;
        // What is searched for is searched in the next log too; searches go on being counted.
        let (search, finds, times) = (ui.log.search.take(), ui.log.finds, ui.log.times);
        ui.log = crate::tui::LogView { path, wrap, times, search, finds, ..crate::tui::LogView::default() };
    }
    let want = log::wanted(ui, snap, before);
    let detail = ui.opened.as_ref().and_then(|opened| {
        let have = ui.detail.as_ref().filter(|detail| detail.row.id == opened.job);
        let newest = rows::find(ui, snap, opened.job).map(|row| row.revision);
        let changes = newest.filter(|_| ui.frozen.is_none());
        let stale = have.is_none_or(|have| changes.is_some_and(|newest| newest > have.row.revision));
        stale.then_some(UiCommand::Detail(opened.job))
    });
    (want, detail)
}
