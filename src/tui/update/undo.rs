//! What `u` takes back: the newest of all that can be, be it a submission, one change or an action on several jobs. Pure.
//!
//! Changes are the scheduler's to know. That several of them were one action, and what was submitted a moment ago, is
//! known here: while there is anything of the kind, the scheduler is first asked what its newest change is.

use crate::model::{JobId, Span};
use crate::protocol::{Command, Query, Request, Snapshot, SubmittedJob, UndoRow};
use crate::tui::UiCommand;
use crate::tui::effect::Effect;
use crate::tui::keys::Action;
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::flows::Flow;
use crate::tui::update::{bulk, pending};

/// What was done here, as far as the scheduler does not know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deeds {
    /// The newest last.
    submissions: Vec<Submission>,
    /// The newest last.
    batches: Vec<Batch>,
    /// The newest of those that can be taken back no more, until that was said.
    late: Option<Submission>,
    /// When one job was last changed, wall milliseconds.
    single_ms: i64,
    /// When anything but a cancel was last done, wall milliseconds.
    other_ms: i64,
    /// So often `u` was pressed and waits for the scheduler to say what is newest.
    wanted: u32,
}

/// Submitted together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Submission {
    jobs: Vec<JobId>,
    /// Wall milliseconds.
    at: i64,
    /// It can be taken back until then, on the boot clock.
    until: u64,
}

/// Changed together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Batch {
    /// In the order in which they are taken back.
    jobs: Vec<JobId>,
    /// Changes of these jobs from then on are part of it, wall milliseconds ...
    from: i64,
    /// ... until one of them was changed by itself.
    to: Option<i64>,
}

impl Batch {
    fn has(&self, row: &UndoRow) -> bool {
        self.jobs.contains(&row.job) && row.at >= self.from && self.to.is_none_or(|to| row.at < to)
    }

    fn ends(&mut self, jobs: &[JobId], now: i64) {
        if self.to.is_none() && self.jobs.iter().any(|job| jobs.contains(job)) {
            self.to = Some(now);
        }
    }
}

/// How long a submission can be taken back.
pub(in crate::tui) const TAKE_BACK_MS: u64 = 10_000;
/// Submissions that come so close together are one sweep.
const SWEEP_MS: u64 = 500;
/// More actions on several jobs are not remembered as such.
const BATCHES: usize = 20;

impl Deeds {
    /// Something was done after this moment that is no cancel: it is what `u` takes back first.
    pub(in crate::tui) const fn newer_than(&self, wall_ms: i64) -> bool {
        self.other_ms > wall_ms
    }

    /// What was asked gets no answer.
    pub(in crate::tui) const fn lost(&mut self) {
        self.wanted = 0;
    }
}

/// One job is changed by itself.
pub(in crate::tui) fn changed(ui: &mut Ui, job: JobId, is_cancel: bool) {
    let now = ui.now.wall_ms;
    ui.deeds.batches.iter_mut().for_each(|batch| batch.ends(&[job], now));
    ui.deeds.single_ms = now;
    if !is_cancel {
        ui.deeds.other_ms = now;
    }
}

/// Several jobs are changed together; the first of them is taken back first.
pub(in crate::tui) fn changed_together(ui: &mut Ui, jobs: Vec<JobId>, is_cancel: bool) {
    let now = ui.now.wall_ms;
    let deeds = &mut ui.deeds;
    deeds.batches.iter_mut().for_each(|batch| batch.ends(&jobs, now));
    if jobs.is_empty() {
        return;
    }
    deeds.batches.push(Batch { jobs, from: now, to: None });
    if deeds.batches.len() > BATCHES {
        deeds.batches.remove(0);
    }
    if !is_cancel {
        deeds.other_ms = now;
    }
}

/// The change of one of several was refused: nothing of it is to be taken back with the others.
pub(in crate::tui) fn refused(ui: &mut Ui, job: JobId) {
    if let Some(batch) = ui.deeds.batches.last_mut() {
        batch.jobs.retain(|other| *other != job);
    }
}

/// Jobs were submitted; returns them and those that were a moment before.
pub(in crate::tui) fn submitted(ui: &mut Ui, jobs: &[SubmittedJob]) -> Vec<JobId> {
    let until = ui.now.boottime_ms + TAKE_BACK_MS;
    let at = ui.now.wall_ms;
    let ids = jobs.iter().filter_map(|job| job.id);
    let deeds = &mut ui.deeds;
    deeds.other_ms = at;
    match deeds.submissions.last_mut() {
        Some(last) if last.until + SWEEP_MS >= until => {
            last.jobs.extend(ids);
            (last.at, last.until) = (at, until);
        }
        _ => deeds.submissions.push(Submission { jobs: ids.collect(), at, until }),
    }
    deeds.submissions.last().map(|last| last.jobs.clone()).unwrap_or_default()
}

/// The next submission is not one sweep with those before.
pub(in crate::tui) fn begin_submission(ui: &mut Ui) {
    let now = ui.now.boottime_ms;
    for submission in &mut ui.deeds.submissions {
        // Half a second sooner.
        submission.until = submission.until.min(now + TAKE_BACK_MS - SWEEP_MS - 1);
    }
}

/// Takes back the newest thing that can be taken back.
pub(in crate::tui) fn newest(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if let Some(why) = ui.unable("undo") {
        ui.say(Level::Warning, why, None);
        return Vec::new();
    }
    // What the change would have done is no news any more.
    ui.fetched.effect = Effect::default();
    let now = ui.now.boottime_ms;
    let deeds = &mut ui.deeds;
    deeds.other_ms = 0;
    let late = deeds.submissions.extract_if(.., |submission| submission.until <= now).last();
    deeds.late = late.or(deeds.late.take());
    if deeds.wanted > 0 {
        deeds.wanted += 1;
        return Vec::new();
    }
    let batch = deeds.batches.last().map_or(0, |batch| batch.from);
    let submission = deeds.submissions.last().map_or(0, |submission| submission.at);
    // What was pressed and has not gone out yet is the newest.
    if deeds.single_ms >= batch.max(submission) && pending::take_back(ui, None) {
        return Vec::new();
    }
    ask(ui, snap)
}

fn ask(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    let own: Vec<JobId> = ui.deeds.submissions.iter().flat_map(|one| &one.jobs).copied().collect();
    if own.iter().all(|job| is_done(snap, *job)) {
        ui.deeds.submissions.clear();
    }
    ui.deeds.late.take_if(|late| late.jobs.iter().all(|job| is_done(snap, *job)));
    if ui.deeds.submissions.is_empty() && ui.deeds.batches.is_empty() && ui.deeds.late.is_none() {
        ui.deeds.wanted = 0;
        return vec![undo(None)];
    }
    ui.deeds.wanted = ui.deeds.wanted.max(1);
    vec![UiCommand::Ask { flow: Flow::Newest, request: Request::Query(Query::Undoable) }]
}

fn is_done(snap: &Snapshot, job: JobId) -> bool {
    rows::told(snap, job).is_some_and(|row| row.state == crate::model::Cursor::Done)
}

/// The scheduler has said what can be undone, the newest first; `None`: it has not.
pub(in crate::tui) fn answered(ui: &mut Ui, snap: &Snapshot, listed: Option<&[UndoRow]>) -> Vec<UiCommand> {
    let more = ui.deeds.wanted.saturating_sub(1);
    let Some(listed) = listed else {
        ui.deeds.wanted = 0;
        return Vec::new();
    };
    let me = ui.me(snap).to_owned();
    let row = listed.iter().find(|row| row.by == me && row.until > ui.now.wall_ms);
    let mut out = take_back(ui, snap, row);
    ui.deeds.wanted = more;
    if more > 0 {
        out.extend(ask(ui, snap));
    }
    out
}

/// Takes back what is newest: that change, what it was part of, or what was submitted after it.
fn take_back(ui: &mut Ui, snap: &Snapshot, row: Option<&UndoRow>) -> Vec<UiCommand> {
    let changed = row.map_or(i64::MIN, |row| row.at);
    if let Some(last) = ui.deeds.submissions.pop_if(|last| last.at >= changed) {
        return remove(ui, snap, last);
    }
    if let Some(late) = ui.deeds.late.take_if(|late| late.at >= changed) {
        ui.say(Level::Warning, too_late(ui, &late, row), None);
        return Vec::new();
    }
    let batch = row.and_then(|row| ui.deeds.batches.iter().rposition(|batch| batch.has(row)));
    if let Some(at) = batch {
        let batch = ui.deeds.batches.remove(at);
        return bulk::undo(ui, snap, &batch.jobs);
    }
    vec![undo(None)]
}

/// Why the newest submission stays, and what is taken back instead: not what nobody has in mind.
fn too_late(ui: &Ui, late: &Submission, row: Option<&UndoRow>) -> String {
    let key = |action| ui.keys.way(&action);
    let jobs: Vec<String> = late.jobs.iter().map(|job| format!("#{job}")).collect();
    let (was, it) = if jobs.len() == 1 { ("was", "it") } else { ("were", "them") };
    let cancels = format!("{} {was} submitted last, {} cancels {it}", jobs.join(" "), key(Action::Cancel));
    row.map_or_else(
        || cancels.clone(),
        |row| {
            format!(
                "{cancels}; before: #{} {}, {} again takes that back",
                row.job,
                row.what,
                key(Action::Undo)
            )
        },
    )
}

/// Removes what was submitted a moment ago.
fn remove(ui: &mut Ui, snap: &Snapshot, submission: Submission) -> Vec<UiCommand> {
    let jobs = &submission.jobs;
    let rows: Vec<_> = jobs.iter().filter_map(|job| rows::find(ui, snap, *job)).cloned().collect();
    if rows.len() < jobs.len() {
        let again = ui.keys.way(&Action::Undo);
        ui.say(Level::Info, format!("it is on its way into the line; {again} again in a moment"), None);
        ui.deeds.submissions.push(submission);
        return Vec::new();
    }
    let (waiting, started): (Vec<_>, Vec<_>) = rows.iter().partition(|row| pending::is_queued(row));
    if let Some(row) = started.iter().find(|row| row.state != crate::model::Cursor::Done) {
        let stays = if waiting.is_empty() { "" } else { " and stays" };
        let cancel = ui.keys.way(&Action::Cancel);
        let text = format!("#{} has started already{stays}; {cancel} cancels it", row.id);
        ui.say(Level::Warning, text, Some(row.id));
    }
    let cancel = pending::Change::Cancel { undo: Span(0), now: false };
    waiting.into_iter().flat_map(|row| pending::ask(ui, row, &[cancel])).collect()
}

/// Takes a change of one job back, or the newest one.
pub(in crate::tui) const fn undo(job: Option<JobId>) -> UiCommand {
    UiCommand::Send { job, command: Command::Undo { job } }
}
