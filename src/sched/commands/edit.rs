//! Editing a job that waits: the mark that keeps it from starting meanwhile, and what replaces its request.

use super::submit::{circle, dependencies, failed_already, point_to};
use super::undo::keep;
use super::{refused, waiting};
use crate::model::{
    Changed, Cursor, DataFrom, Dependency, Event, Generation, Job, JobId, JobSpec, Owner, Requested, Span,
};
use crate::protocol::{Edited, FieldChange, Reply};
use crate::sched::step::{Turn, needs_preparation};
use crate::sched::world::{Queue, World};
use crate::sched::{Edit, Effect, plan};
use std::sync::Arc;

/// How long a job is kept from starting for an edit.
const EDIT_MAX: Span = Span::secs(600);
/// So many fields are named in one line.
const NAMED: usize = 3;

/// Marks a job.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    (job, generation): (JobId, Generation),
    by: &Owner,
) -> Result<Reply, Reply> {
    if let Some(reply) = turn.world.queue.get(job).and_then(being_edited) {
        return Err(reply);
    }
    let row = waiting(turn, job, generation, "edited")?;
    not_cancelled(&row)?;
    let until = turn.now.plus(EDIT_MAX);
    turn.emit(Event::EditBegan { job, by: by.name.clone(), until });
    // The wake is set where marks are looked after, at the end of the turn.
    let mark = turn.world.queue.get(job).and_then(|row| row.edit.as_ref());
    let generation = mark.map_or(generation, |mark| mark.generation);
    Ok(Reply::Editing { job, generation, until: until.wall_ms })
}

/// Drops a mark. One that has ended already, or is another's, is left alone.
pub(super) fn end(turn: &mut Turn<'_>, job: JobId, generation: Generation) -> Result<String, Reply> {
    let Some(row) = turn.world.queue.get(job) else {
        return Err(Reply::NotFound { message: format!("no job {job}") });
    };
    if row.edit.as_ref().is_some_and(|mark| mark.generation == generation) {
        turn.emit(Event::EditEnded { job });
    }
    Ok(format!("#{job} is as it was"))
}

fn being_edited(row: &Job) -> Option<Reply> {
    let mark = row.edit.as_ref()?;
    Some(Reply::BeingEdited { job: row.id, by: mark.by.clone(), until: mark.until.wall_ms })
}

fn not_cancelled(row: &Job) -> Result<(), Reply> {
    if row.cancel.is_some() {
        return Err(refused(format!("#{} is being cancelled; undo that first", row.id)));
    }
    Ok(())
}

/// What an edit comes to.
struct Judged {
    request: Requested,
    prepared: bool,
    loses_place: bool,
    /// Nothing is asked that was not asked before.
    same: bool,
}

/// Says what an edit would come to. Changes nothing.
pub fn would_edit(world: &World, edit: &Edit) -> Reply {
    match judge(world, edit) {
        Ok(judged) => edited(edit, &judged, false),
        Err(reply) => reply,
    }
}

/// Replaces what a job asks.
pub(in crate::sched) fn edit(turn: &mut Turn<'_>, edit: &Edit) {
    let reply = match judge(turn.world, edit) {
        Ok(judged) => {
            let reply = edited(edit, &judged, true);
            apply(turn, edit, judged);
            reply
        }
        Err(reply) => reply,
    };
    turn.reply(edit.reply_to, reply);
}

fn apply(turn: &mut Turn<'_>, edit: &Edit, judged: Judged) {
    let job = edit.job;
    let Some(row) = turn.world.queue.get(job).cloned() else { return };
    if judged.same && edit.unchanged {
        if row.edit.is_some() {
            turn.emit(Event::EditEnded { job });
        }
        return;
    }
    let name = judged.request.spec.name.clone();
    let was = (row.spec.name != name).then(|| row.folder());
    turn.emit(Event::JobEdited { job, request: Box::new(judged.request), prepared: judged.prepared });
    let fields = edit.fields.iter().map(|change| change.field.clone()).collect();
    keep(turn, job, &edit.by, Changed::Request { old: Box::new(requested(&row)), fields });
    for waiting in turn.world.queue.waiting_for_name(&name) {
        if waiting != job {
            point_to(turn, waiting, &name, job);
        }
    }
    turn.effect(Effect::Rewrite { job, was });
}

fn requested(row: &Job) -> Requested {
    Requested {
        spec: row.spec.clone(),
        warnings: row.warnings.clone(),
        after: row.after.clone(),
        priority: row.priority,
        position: row.position,
        ranked: row.ranked,
        file: row.file.clone(),
    }
}

fn judge(world: &World, edit: &Edit) -> Result<Judged, Reply> {
    let job = edit.job;
    let row = world.queue.get(job).ok_or_else(|| Reply::NotFound { message: format!("no job {job}") })?;
    let marked = row.edit.as_ref().filter(|mark| mark.generation == edit.generation);
    if let Some(reply) = being_edited(row).filter(|_| marked.is_none()) {
        return Err(reply);
    }
    if marked.is_none() && row.generation != edit.generation {
        let is = if row.state() == Cursor::Queued {
            "the time for this edit is over, or it was changed".to_owned()
        } else {
            format!("it is {} now", row.state().word())
        };
        return Err(refused(format!("#{job} has changed meanwhile: {is}; look at it again")));
    }
    if row.state() != Cursor::Queued {
        return Err(refused(format!("#{job} is {}: only a waiting job can be edited", row.state().word())));
    }
    not_cancelled(row)?;
    // What the text says of the priority is news only where it is not what it said when it was opened.
    let text_priority = edit.spec.request.priority;
    let unchanged = marked.is_some_and(|mark| mark.priority == text_priority);
    let priority = if unchanged { row.priority } else { text_priority };
    let same = asks_the_same(&row.spec, &edit.spec) && priority == row.priority;
    let (position, ranked, loses_place) = place(world, row, &edit.spec);
    let after = after(world, row, &edit.spec, &row.after)?;
    let request = Requested {
        spec: Arc::new(edit.spec.clone()),
        warnings: edit.warnings.clone(),
        after,
        priority,
        position,
        ranked,
        file: Some(Arc::new(edit.file.clone())),
    };
    let prepared = prepared(world, row, &request)?;
    Ok(Judged { request, prepared, loses_place, same })
}

fn asks_the_same(old: &JobSpec, new: &JobSpec) -> bool {
    let mut old = old.clone();
    old.request.priority = new.request.priority;
    old == *new
}

/// A job keeps its place, unless it asks for more GPUs: then it waits where a new one of its size would.
fn place(world: &World, row: &Job, spec: &JobSpec) -> (i64, bool, bool) {
    let larger = Job { spec: Arc::new(spec.clone()), ..row.clone() };
    if plan::ask(world, &larger).gpus > plan::ask(world, row).gpus {
        (Queue::born_position(world.counters.job.next()), false, !world.queue.is_last(row))
    } else {
        (row.position, row.ranked, false)
    }
}

/// Whom it waits for: what it waited for stays what it was.
fn after(world: &World, row: &Job, spec: &JobSpec, known: &[Dependency]) -> Result<Vec<Dependency>, Reply> {
    let job = row.id;
    let mut after = dependencies(&world.queue, spec, job, &[], None);
    for dependency in &mut after {
        let before = known.iter().find(|before| before.name == dependency.name);
        dependency.job = before.and_then(|before| before.job).or(dependency.job);
    }
    if let Some(why) = circle(&world.queue, &after, job) {
        return Err(refused(format!("#{job} would never start: {why}")));
    }
    if let Some(why) = after.iter().find_map(|dependency| failed_already(&world.queue, dependency)) {
        return Err(refused(format!("#{job} would never start: {why}")));
    }
    Ok(after)
}

/// Whether nothing has to be made ready for what a job asks now.
fn prepared(world: &World, row: &Job, new: &Requested) -> Result<bool, Reply> {
    let job = row.id;
    if row.spec.name != new.spec.name && row.attempts().count() > row.tasks.len() {
        return Err(refused(format!(
            "#{job} was tried before, and what that returned is in a folder of its name: leave `name` as it is"
        )));
    }
    let ready = row.tasks.iter().any(|task| {
        matches!(task.current().state, crate::model::AttemptState::Queued { prepared: true, .. })
    });
    let sources = |spec: &JobSpec, after: &[Dependency]| -> Vec<(DataFrom, Option<JobId>)> {
        let of = |name: &str| after.iter().find(|on| on.name == name).and_then(|on| on.job);
        let items = spec.data.iter().filter_map(|item| match &item.from {
            from @ DataFrom::Job { job, .. } => Some((from.clone(), of(job))),
            DataFrom::Path(_) => None,
        });
        items.collect()
    };
    let same_code = row.spec.work.dir == new.spec.work.dir && row.spec.work.code == new.spec.work.code;
    if same_code && sources(&row.spec, &row.after) == sources(&new.spec, &new.after) {
        return Ok(ready);
    }
    if world.queue.is_preparing(job) {
        return Err(refused(format!(
            "the code and data of #{job} are being made ready now: `in`, `code` and `data: job:` can be changed when that is done"
        )));
    }
    Ok(!needs_preparation(&new.spec))
}

/// What a job asked before an edit, as it can be asked again.
pub(super) struct Old {
    pub(super) request: Requested,
    pub(super) prepared: bool,
}

/// Whether that can be asked again.
pub(super) fn again(turn: &Turn<'_>, row: &Job, old: &Requested) -> Result<Old, Reply> {
    if let Some(reply) = being_edited(row) {
        return Err(reply);
    }
    let after = after(turn.world, row, &old.spec, &old.after)?;
    let request = Requested { after, ..old.clone() };
    let prepared = prepared(turn.world, row, &request)?;
    Ok(Old { request, prepared })
}

fn edited(edit: &Edit, judged: &Judged, applied: bool) -> Reply {
    let job = edit.job;
    let (changes, loses_place) = (edit.fields.clone(), judged.loses_place);
    let applied = applied && !(judged.same && edit.unchanged);
    let is = if applied { "is changed" } else { "would be changed" };
    let place = match (loses_place, applied) {
        (true, true) => "; it asks for more GPUs and waits where a new job would",
        (true, false) => "; it would ask for more GPUs and wait where a new job would",
        (false, _) => "",
    };
    let message = if judged.same && edit.unchanged {
        format!("#{job} is as it was")
    } else if changes.is_empty() {
        format!("#{job} {is} in its comments only")
    } else {
        format!("#{job} {is}: {}{place}", in_words(&changes))
    };
    let diagnostics = Vec::new();
    Reply::Edited(Box::new(Edited { job, message, applied, changes, loses_place, diagnostics }))
}

/// `gpus 2 -> 1, for 4h -> 6h`
fn in_words(changes: &[FieldChange]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let short = |text: String| {
        if text.trim().chars().count() > 24 { "...".to_owned() } else { text.trim().to_owned() }
    };
    let mut parts: Vec<String> = changes
        .iter()
        .take(NAMED)
        .map(|one| format!("{} {} -> {}", one.field, short(value(&one.old)), short(value(&one.new))))
        .collect();
    if changes.len() > NAMED {
        parts.push(format!("{} more", changes.len() - NAMED));
    }
    parts.join(", ")
}
