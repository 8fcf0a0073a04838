//! Submissions and retries: what is accepted, and who waits for whom.

use crate::model::{
    Cursor, DataFrom, Dependency, DropIdent, Event, Job, JobId, JobSpec, Origin, Outcome, Owner,
};
use crate::protocol::Reply;
use crate::sched::step::{Turn, needs_preparation};
use crate::sched::world::Queue;
use crate::sched::{Effect, Submission, lifecycle, plan, view};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Accepts a submission whole. The jobs were checked; what is left to the core is who waits for whom.
pub(in crate::sched) fn submit(turn: &mut Turn<'_>, submission: Submission) {
    let Submission { owner, origin, ident, source, jobs, paused, retry_of, reply_to } = submission;
    if let Some(ident) = &ident
        && turn.world.queue.has_drop(ident)
    {
        // Seen before: the same drop is only moved.
        take_drop(turn, &origin, ident.clone());
        return;
    }
    let id = turn.next_submission();
    let first = turn.next_job();
    turn.emit(Event::SubmissionAccepted {
        submission: id,
        owner: owner.clone(),
        origin: origin.clone(),
        ident: ident.clone(),
        source,
    });
    let names: Vec<(String, JobId)> = jobs
        .iter()
        .enumerate()
        .map(|(ix, (spec, _))| (spec.name.clone(), JobId(first.0 + ix as u64)))
        .collect();
    let old = retry_of.and_then(|of| turn.world.queue.get(of)).cloned();
    let mut accepted = Vec::with_capacity(jobs.len());
    for (spec, warnings) in jobs {
        let job = turn.next_job();
        let after = dependencies(&turn.world.queue, &spec, job, &names, old.as_ref());
        let failed = after.iter().find_map(|dependency| failed_already(&turn.world.queue, dependency));
        let circle = circle(&turn.world.queue, &after, job);
        let name = spec.name.clone();
        turn.emit(Event::JobAccepted {
            job,
            submission: id,
            owner: owner.clone(),
            origin: origin.clone(),
            prepared: !needs_preparation(&spec),
            spec: Arc::new(spec),
            warnings,
            after,
            retry_of,
            paused: paused.then(|| owner.name.clone()),
        });
        if let Some(why) = failed.or(circle) {
            never_start(turn, job, why);
        }
        for waiting in turn.world.queue.waiting_for_name(&name) {
            point_to(turn, waiting, &name, job);
        }
        accepted.push(job);
        turn.effect(Effect::WriteAnswer { job, submission: id });
    }
    if let Some(ident) = ident {
        take_drop(turn, &origin, ident);
    }
    if let Some(to) = reply_to {
        // Places and forecasts are worked out after the launches: `view::submitted`.
        let jobs = accepted.iter().map(|job| view::bare(turn.world, *job)).collect();
        turn.reply(to, Reply::Submitted { jobs, diagnostics: Vec::new() });
    }
}

fn take_drop(turn: &mut Turn<'_>, origin: &Origin, ident: DropIdent) {
    if let Origin::Inbox { name, folder } = origin {
        turn.effect(Effect::TakeDrop { name: name.clone(), ident, folder_to: folder.clone() });
    }
}

/// Whom a job waits for. Names mean, in this order: a job of the same submission, a job that is not done (the newest),
/// and for `data: job:` also the newest that succeeded. A job's own name means the one before it.
///
/// A retry (of `old`) takes what its job had already waited for, or the newest that succeeded: it is not to wait for
/// another run of what is there.
pub(super) fn dependencies(
    queue: &Queue,
    spec: &JobSpec,
    job: JobId,
    names: &[(String, JobId)],
    old: Option<&Job>,
) -> Vec<Dependency> {
    let mut after: Vec<Dependency> = Vec::new();
    let mut add = |name: &str, must_succeed: bool, done_too: bool| {
        let satisfied = || {
            let had = old?.after.iter().find(|dependency| dependency.name == name)?.job?;
            let outcome = queue.outcome_of(had)?;
            (outcome.is_success() || !must_succeed).then_some(had)
        };
        // Its own name means one before it; any other may also come later in the file.
        let of_file = |id: JobId| id < job || (id > job && name != spec.name);
        let within =
            || names.iter().rev().find(|(other, id)| other == name && of_file(*id)).map(|(_, id)| *id);
        let live = || queue.named(name).rev().find(|other| other.done.is_none() && other.id != job);
        let succeeded = || {
            queue
                .named(name)
                .rev()
                .filter(|_| done_too || old.is_some())
                .find(|other| other.done.as_ref().is_some_and(|(_, outcome)| outcome.is_success()))
        };
        let found = satisfied()
            .or_else(within)
            .or_else(|| live().map(|other| other.id))
            .or_else(|| succeeded().map(|other| other.id));
        if found.is_none() && name == spec.name {
            return;
        }
        match after.iter_mut().find(|dependency| dependency.name == name) {
            Some(dependency) => dependency.must_succeed |= must_succeed,
            None => after.push(Dependency { name: name.to_owned(), job: found, must_succeed }),
        }
    };
    for item in &spec.data {
        if let DataFrom::Job { job: name, .. } = &item.from {
            add(name, true, true);
        }
    }
    for name in &spec.request.after {
        add(name, true, false);
    }
    for name in &spec.request.after_any {
        add(name, false, false);
    }
    after
}

/// Lets a waiting job wait for `on` by that name, unless `on` itself waits for it: two that wait for each other never start.
/// Nor if `on` is done already, for it can never start: its end has been told, and nobody would tell this one.
pub(super) fn point_to(turn: &mut Turn<'_>, waiting: JobId, name: &str, on: JobId) {
    let queue = &turn.world.queue;
    let waits = queue.get(waiting).is_some_and(|row| row.state() == Cursor::Queued);
    let lives = queue.get(on).is_some_and(|row| row.done.is_none());
    if waits && lives && !leads_to(queue, on, waiting) {
        turn.emit(Event::DependencyResolved { job: waiting, name: name.to_owned(), on });
    }
}

/// Whether a job waits for another, directly or by way of others.
fn leads_to(queue: &Queue, from: JobId, to: JobId) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(job) = next.pop() {
        if job == to {
            return true;
        }
        if seen.insert(job) {
            let after = queue.get(job).into_iter().flat_map(|row| &row.after);
            next.extend(after.filter_map(|dependency| dependency.job));
        }
    }
    false
}

/// A job would wait for one that waits for it, in words.
pub(super) fn circle(queue: &Queue, after: &[Dependency], job: JobId) -> Option<String> {
    after
        .iter()
        .filter_map(|dependency| dependency.job)
        .find(|on| leads_to(queue, *on, job))
        .map(|on| format!("it waits for #{on}, which waits for it"))
}

pub(super) fn failed_already(queue: &Queue, dependency: &Dependency) -> Option<String> {
    let on = dependency.job?;
    let outcome = queue.outcome_of(on)?;
    (dependency.must_succeed && !outcome.is_success()).then(|| lifecycle::never_after(on, outcome))
}

fn never_start(turn: &mut Turn<'_>, job: JobId, why: String) {
    if let Some((task, attempt)) = turn.world.queue.get(job).and_then(plan::queued) {
        let outcome = Outcome::NeverStarted { why };
        turn.emit(Event::AttemptDropped { job, task, attempt, outcome });
        lifecycle::finish(turn, job);
    }
}

/// Submits a done job again: a new number, the same request. Those that wait for the old one wait for the new one.
pub(super) fn retry(turn: &mut Turn<'_>, row: &Job, by: &Owner, reply_to: u64) {
    let waiting = turn.world.queue.dependents(row.id);
    let new = turn.next_job();
    let mut spec = (*row.spec).clone();
    spec.request.priority = row.priority;
    // A deadline or a start time of the first run says nothing about this one.
    spec.request.start_after_ms = spec.request.start_after_ms.filter(|at| *at > turn.now.wall_ms);
    submit(
        turn,
        Submission {
            owner: by.clone(),
            origin: Origin::Retry { of: row.id },
            ident: None,
            source: String::new(),
            jobs: vec![(spec, row.warnings.clone())],
            paused: false,
            retry_of: Some(row.id),
            reply_to: Some(reply_to),
        },
    );
    for job in waiting {
        point_to(turn, job, &row.spec.name, new);
    }
}
