//! What people ask for: submissions and commands, each with its answer.

use super::input::Submission;
use super::step::{Turn, needs_preparation};
use super::{Effect, lifecycle, plan, view};
use crate::model::{
    CancelRequest, Cursor, DataFrom, Dependency, DeviceState, Event, Generation, Job, JobId, JobSpec, Origin,
    Owner, Span, Uuid,
};
use crate::protocol::{Command, GpuSelect, Place, Reply};
use std::sync::Arc;

/// Accepts a submission whole. The jobs were checked; what is left to the core is who waits for whom.
pub(super) fn submit(turn: &mut Turn<'_>, submission: Submission) {
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
    let mut accepted = Vec::with_capacity(jobs.len());
    for (spec, warnings) in jobs {
        let job = turn.next_job();
        let after = dependencies(turn, &spec, job, &names);
        let failed = after.iter().find_map(|dependency| failed_already(turn, dependency));
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
        if let Some(why) = failed {
            never_start(turn, job, why);
        }
        for waiting in turn.world.queue.waiting_for_name(&name) {
            turn.emit(Event::DependencyResolved { job: waiting, name: name.clone(), on: job });
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

fn take_drop(turn: &mut Turn<'_>, origin: &Origin, ident: crate::model::DropIdent) {
    if let Origin::Inbox { name, folder } = origin {
        turn.effect(Effect::TakeDrop { name: name.clone(), ident, folder_to: folder.clone() });
    }
}

/// Whom a job waits for. Names mean, in this order: a job of the same submission, a job that is not done (the newest),
/// and for `data: job:` also the newest that succeeded. A job's own name means the one before it.
fn dependencies(turn: &Turn<'_>, spec: &JobSpec, job: JobId, names: &[(String, JobId)]) -> Vec<Dependency> {
    let mut after: Vec<Dependency> = Vec::new();
    let mut add = |name: &str, must_succeed: bool, done_too: bool| {
        let within = names.iter().rev().find(|(other, id)| other == name && *id != job).map(|(_, id)| *id);
        let named = || turn.world.queue.named(name).rev();
        let found = within
            .or_else(|| named().find(|other| other.done.is_none() && other.id != job).map(|other| other.id))
            .or_else(|| {
                named()
                    .find(|other| {
                        done_too && other.done.as_ref().is_some_and(|(_, outcome)| outcome.is_success())
                    })
                    .map(|other| other.id)
            });
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

fn failed_already(turn: &Turn<'_>, dependency: &Dependency) -> Option<String> {
    let on = dependency.job?;
    let outcome = turn.world.queue.outcome_of(on)?;
    (dependency.must_succeed && !outcome.is_success()).then(|| format!("after #{on}: {outcome}"))
}

fn never_start(turn: &mut Turn<'_>, job: JobId, why: String) {
    if let Some((task, attempt)) = turn.world.queue.get(job).and_then(plan::queued) {
        let outcome = crate::model::Outcome::NeverStarted { why };
        turn.emit(Event::AttemptDropped { job, task, attempt, outcome });
        lifecycle::finish(turn, job);
    }
}

/// Carries out one command and answers it.
pub(super) fn command(turn: &mut Turn<'_>, by: &Owner, command: Command, reply_to: u64) {
    let result = match command {
        Command::Cancel { job, generation, undo, now } => {
            fresh(turn, job, generation).and_then(|row| cancel(turn, &row, by, undo, now))
        }
        Command::Undo { job } => undo(turn, job),
        Command::SetPriority { job, generation, priority } => waiting(turn, job, generation, "reprioritised")
            .map(|_| {
                turn.emit(Event::PriorityChanged { job, priority });
                format!("#{job} has priority {priority}")
            }),
        Command::Move { job, generation, to } => {
            waiting(turn, job, generation, "moved").and_then(|row| move_job(turn, &row, to))
        }
        Command::Pause { job, generation } => waiting(turn, job, generation, "paused").and_then(|row| {
            if row.paused.is_some() {
                return Err(refused(format!("#{job} is paused already")));
            }
            turn.emit(Event::JobPaused { job, by: by.name.clone() });
            Ok(format!("#{job} is paused"))
        }),
        Command::Resume { job, generation } => fresh(turn, job, generation).and_then(|row| {
            if row.paused.is_none() {
                return Err(refused(format!("#{job} is not paused")));
            }
            turn.emit(Event::JobResumed { job });
            Ok(format!("#{job} waits for its turn again"))
        }),
        Command::Retry { job, generation } => match fresh(turn, job, generation) {
            Ok(row) if row.done.is_none() => {
                Err(refused(format!("#{job} is {}; only a done job can be retried", row.state().word())))
            }
            Ok(row) => {
                retry(turn, &row, by, reply_to);
                return;
            }
            Err(reply) => Err(reply),
        },
        Command::Close { gpus, reason } => each_gpu(turn, &gpus, |turn, uuid| close(turn, uuid, &reason, by)),
        Command::Open { gpus } => each_gpu(turn, &gpus, open),
        Command::Clear { gpu } => each_gpu(turn, &gpu, clear),
        Command::Submit(_) | Command::Check(_) | Command::Rescan | Command::Stop => {
            Err(refused("the scheduler's shell answers this".to_owned()))
        }
    };
    let reply = result.map_or_else(|reply| reply, |message| Reply::Ok { message });
    turn.reply(reply_to, reply);
}

const fn refused(message: String) -> Reply {
    Reply::Refused { message }
}

/// The job as the client saw it, or why not.
fn fresh(turn: &Turn<'_>, job: JobId, generation: Generation) -> Result<Job, Reply> {
    match turn.world.queue.get(job) {
        None => Err(Reply::NotFound { message: format!("no job {job}") }),
        Some(row) if row.generation != generation => Err(refused(format!(
            "#{job} has changed meanwhile: it is {} now; look again",
            row.done
                .as_ref()
                .map_or_else(|| row.state().word().to_owned(), |(_, outcome)| outcome.to_string())
        ))),
        Some(row) => Ok(row.clone()),
    }
}

/// Likewise, for what only a waiting job can have done to it.
fn waiting(turn: &Turn<'_>, job: JobId, generation: Generation, verb: &str) -> Result<Job, Reply> {
    let row = fresh(turn, job, generation)?;
    if row.state() == Cursor::Queued {
        Ok(row)
    } else {
        let more = if verb == "paused" { "; it can be cancelled" } else { "" };
        Err(refused(format!("#{job} is {}: only a waiting job can be {verb}{more}", row.state().word())))
    }
}

fn cancel(turn: &mut Turn<'_>, row: &Job, by: &Owner, undo: Span, now: bool) -> Result<String, Reply> {
    let job = row.id;
    match row.state() {
        Cursor::Done => return Err(refused(format!("#{job} is done already"))),
        Cursor::Returning | Cursor::Releasing => {
            return Err(refused(format!(
                "the run of #{job} has ended already; its output is being collected"
            )));
        }
        Cursor::Queued | Cursor::Renting | Cursor::Running => {}
    }
    let carried_out = row.cancel.as_ref().is_some_and(|cancel| cancel.carried_out);
    if carried_out && !now {
        return Err(refused(format!("#{job} is being cancelled already; --now kills it at once")));
    }
    let request = CancelRequest {
        by: by.name.clone(),
        asked: turn.now,
        due: turn.now.plus(undo),
        now,
        carried_out: false,
    };
    turn.emit(Event::CancelRequested { job, request });
    if undo.0 == 0 {
        lifecycle::carry_out_cancel(turn, job);
        return Ok(match row.state() {
            Cursor::Queued => format!("#{job} is cancelled"),
            _ => format!("#{job} is being stopped"),
        });
    }
    turn.wake(turn.now.boottime_ms + undo.0);
    Ok(format!("#{job} will be cancelled in {undo}; undo takes it back"))
}

fn undo(turn: &mut Turn<'_>, job: Option<JobId>) -> Result<String, Reply> {
    let newest = turn
        .world
        .queue
        .cancelling()
        .filter(|row| job.is_none_or(|job| job == row.id))
        .max_by_key(|row| row.cancel.as_ref().map(|cancel| (cancel.asked.wall_ms, row.id)))
        .map(|row| row.id);
    match newest {
        Some(job) => {
            turn.emit(Event::CancelWithdrawn { job });
            Ok(format!("#{job} is not cancelled"))
        }
        None => Err(refused("nothing can be undone: no cancel is in its window".to_owned())),
    }
}

fn move_job(turn: &mut Turn<'_>, row: &Job, to: Place) -> Result<String, Reply> {
    let job = row.id;
    let neighbour = |turn: &Turn<'_>, up: bool| {
        turn.world.queue.neighbour(row, up).map(|other| (other.id, other.position, other.ranked))
    };
    match to {
        Place::Top | Place::Bottom => {
            if let Some(position) = turn.world.queue.end_position(row, to == Place::Top) {
                turn.emit(Event::PositionChanged { job, position, ranked: true });
            }
        }
        Place::Up | Place::Down => {
            let Some((other, position, ranked)) = neighbour(turn, to == Place::Up) else {
                let end = if to == Place::Up { "first" } else { "last" };
                return Err(refused(format!("#{job} is {end} of its owner's jobs of its priority already")));
            };
            turn.emit(Event::PositionChanged { job: other, position: row.position, ranked });
            turn.emit(Event::PositionChanged { job, position, ranked: true });
        }
    }
    Ok(format!("#{job} is moved"))
}

/// Submits a done job again: a new number, the same request. Those that wait for the old one wait for the new one.
fn retry(turn: &mut Turn<'_>, row: &Job, by: &Owner, reply_to: u64) {
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
        turn.emit(Event::DependencyResolved { job, name: row.spec.name.clone(), on: new });
    }
}

fn each_gpu(
    turn: &mut Turn<'_>,
    select: &GpuSelect,
    mut act: impl FnMut(&mut Turn<'_>, Uuid) -> Result<String, Reply>,
) -> Result<String, Reply> {
    let matching: Vec<Uuid> = turn
        .world
        .pool
        .devices()
        .into_iter()
        .filter(|(uuid, device)| match select {
            GpuSelect::All => true,
            GpuSelect::Index(index) => device.gpu.as_ref().is_some_and(|gpu| gpu.index == *index),
            GpuSelect::Uuid(wanted) => uuid.0.starts_with(&wanted.0),
        })
        .map(|(uuid, _)| uuid.clone())
        .collect();
    if matching.is_empty() || (matching.len() > 1 && *select != GpuSelect::All) {
        let there: Vec<String> = turn
            .world
            .pool
            .devices()
            .into_iter()
            .map(|(uuid, device)| {
                device.gpu.as_ref().map_or_else(|| uuid.to_string(), |gpu| gpu.index.to_string())
            })
            .collect();
        return Err(Reply::NotFound { message: format!("no such GPU; there are: {}", there.join(" ")) });
    }
    let mut said = Vec::new();
    for uuid in matching {
        match act(turn, uuid) {
            Ok(message) => said.push(message),
            Err(reply) if *select != GpuSelect::All => return Err(reply),
            Err(_) => {}
        }
    }
    if said.is_empty() { Err(refused("nothing to do".to_owned())) } else { Ok(said.join("; ")) }
}

fn close(turn: &mut Turn<'_>, uuid: Uuid, reason: &str, by: &Owner) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Held { lease }) => {
            Err(refused(format!("{name} is held by lease {lease}; cancel its job, or wait for its end")))
        }
        Some(DeviceState::Draining { .. }) => {
            Err(refused(format!("{name} is draining; try again in a moment")))
        }
        Some(_) => {
            let state = DeviceState::Closed { reason: crate::model::clean_line(reason), by: by.name.clone() };
            turn.emit(Event::DeviceChanged { uuid, state });
            Ok(format!("{name} is closed"))
        }
        None => Err(Reply::NotFound { message: format!("no GPU {uuid}") }),
    }
}

fn open(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Closed { .. }) => {
            reread(turn, uuid);
            Ok(format!("{name} is open"))
        }
        _ => Err(refused(format!("{name} is not closed"))),
    }
}

fn clear(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Quarantined(_)) => {
            reread(turn, uuid);
            Ok(format!("{name} is out of quarantine; it is free once a reading shows it clean"))
        }
        _ => Err(refused(format!("{name} is not in quarantine"))),
    }
}

/// Lets the next reading decide what a device is.
fn reread(turn: &mut Turn<'_>, uuid: Uuid) {
    turn.emit(Event::DeviceChanged { uuid, state: DeviceState::Unknown { detail: "being read".to_owned() } });
    turn.effect(Effect::Probe);
}

fn gpu_name(turn: &Turn<'_>, uuid: &Uuid) -> String {
    turn.world
        .pool
        .get(uuid)
        .and_then(|device| device.gpu.as_ref())
        .map_or_else(|| uuid.to_string(), |gpu| format!("GPU {}", gpu.index))
}
