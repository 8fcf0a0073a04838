//! A job as lists show it.

use super::{Frame, Outlook};
use crate::model::{
    AttemptState, Bytes, Cursor, Job, JobId, Lease, Now, Outcome, Revision, Run, Task, Uuid, clean_line,
};
use crate::protocol::{EditMark, JobRow, OpenLease, TaskCounts};
use crate::sched::forecast::Forecast;
use crate::sched::plan::{Reason, ask};
use crate::sched::world::{Collecting, World};
use std::path::PathBuf;

/// What a job holds now.
struct Holding {
    open: Vec<OpenLease>,
    devices: Vec<Uuid>,
    indices: Vec<u32>,
}

fn holding(world: &World, job: &Job) -> Holding {
    let held: Vec<&Lease> = job
        .tasks
        .iter()
        .filter_map(|task| world.leases.get(task.current().state.lease()?))
        .filter(|lease| lease.ended.is_none())
        .collect();
    let open = held
        .iter()
        .map(|lease| OpenLease {
            lease: lease.id,
            granted: lease.granted,
            gpus: lease.held.devices.len() as u32,
            cores: lease.held.cores,
        })
        .collect();
    let devices: Vec<Uuid> =
        held.iter().flat_map(|lease| lease.held.devices.iter().map(|device| device.uuid.clone())).collect();
    let indices = devices.iter().filter_map(|uuid| Some(world.pool.get(uuid)?.gpu.as_ref()?.index)).collect();
    Holding { open, devices, indices }
}

/// The indices of the devices that a job holds now.
pub(super) fn indices(world: &World, job: &Job) -> Vec<u32> {
    holding(world, job).indices
}

/// A job as lists show it.
pub fn row(world: &World, job: &Job, outlook: &Outlook, frame: &Frame<'_>) -> JobRow {
    let ask = ask(world, job);
    let cancel = job.cancel.as_ref().filter(|_| job.done.is_none());
    let (closed_gpu_ms, closed_core_ms, waived_gpu_ms) = world.ledger.sums(job.id, &frame.now);
    let Holding { open, devices, indices } = holding(world, job);
    let (mean_utilisation, peak_gpu_memory) = usage(world, job, &open);
    let state = job.state();
    let [rented_at, started_at, ended_at] = times(world, job);
    let reason = outlook.reasons.get(&job.id);
    let (place, why) = place_and_why(world, (job, state), reason, frame, &indices);
    let forecast = outlook.forecasts.get(&job.id).cloned().unwrap_or_default();
    let [directory, log] = paths(job, frame);
    JobRow {
        id: job.id,
        revision: Revision::default(),
        generation: job.generation,
        name: job.spec.name.clone(),
        user: job.owner.name.clone(),
        project: job.spec.project.clone(),
        kind: job.spec.work.kind,
        state,
        paused_by: job.paused.clone().filter(|_| job.done.is_none()),
        editing: job.edit.as_ref().map(|mark| EditMark { by: mark.by.clone(), until: mark.until.wall_ms }),
        outcome: job.done.as_ref().map(|(_, outcome)| outcome.clone()),
        tasks: counts(job),
        gpus: ask.gpus,
        cpus: ask.cores,
        memory: ask.memory,
        priority: job.priority,
        rank: job.ranked.then_some(job.position),
        submitted_at: job.submitted.wall_ms,
        rented_at,
        started_at,
        ended_at,
        done_at: job.done.as_ref().map(|(at, _)| at.wall_ms),
        limit_at: limit_at(job),
        limit: job.spec.request.limit,
        closed_gpu_ms,
        closed_core_ms,
        waived_gpu_ms,
        open,
        place,
        why,
        starts_at: forecast.starts_at.filter(|_| state == Cursor::Queued),
        starts_by: forecast.starts_by.filter(|_| state == Cursor::Queued),
        finishes_at: forecast.finishes_at.filter(|_| job.done.is_none()),
        finish_by: job.spec.request.finish_by_ms,
        late: late(job, &forecast, frame.now.wall_ms),
        cancel_at: cancel.map(|cancel| cancel.due.wall_ms),
        cancel_by: cancel.map(|cancel| cancel.by.clone()),
        retry_at: reason.and_then(|(_, reason)| match reason {
            Reason::RetryAt { at_ms } => Some(*at_ms),
            _ => None,
        }),
        retry_of: job.retry_of,
        staging: reason.and_then(|(_, reason)| match reason {
            Reason::Preparing { what } => Some(what.clone()),
            _ => None,
        }),
        peak_memory: job.attempts().filter_map(|(_, attempt)| attempt.peak_memory).max(),
        peak_gpu_memory,
        mean_utilisation,
        devices,
        gpu_indices: indices,
        command: if frame.brief { String::new() } else { command(job) },
        log,
        directory,
        warnings: job.warnings.len() as u32,
    }
}

/// When it was rented, started and ended, wall milliseconds: the attempt that is under way; else from the first attempt to
/// the end of the last.
fn times(world: &World, job: &Job) -> [Option<i64>; 3] {
    let wall = |at: Option<&Now>| at.map(|at| at.wall_ms);
    let current = job.tasks.first().map(Task::current);
    if let Some(current) = current.filter(|current| current.state.lease().is_some() && job.done.is_none()) {
        let lease = current.state.lease().and_then(|lease| world.lease(lease));
        let granted = lease.map(|lease| lease.granted.wall_ms);
        return [granted, wall(current.state.started().as_ref()), wall(current.state.ended().as_ref())];
    }
    let started = job.attempts().find_map(|(_, attempt)| attempt.state.started());
    let ended = job.attempts().filter_map(|(_, attempt)| attempt.state.ended()).last();
    let rented = first_lease(world, job).map(|lease| lease.granted.wall_ms);
    [rented, wall(started.as_ref()), wall(ended.as_ref())]
}

/// Mean utilisation and highest device memory: of what it holds so far, else of its last attempt.
fn usage(world: &World, job: &Job, open: &[OpenLease]) -> (Option<u8>, Option<Bytes>) {
    if let Some(held) = open.first() {
        return (world.pool.mean_utilisation(held.lease), world.pool.peak_memory(held.lease));
    }
    let last = job.tasks.first().map(Task::current);
    (last.and_then(|last| last.mean_utilisation), last.and_then(|last| last.peak_gpu_memory))
}

/// `0-2,5`
fn ranges(indices: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &index in indices {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let word = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(word).collect::<Vec<_>>().join(",")
}

/// When the limit of the run that is under way is reached.
fn limit_at(job: &Job) -> Option<i64> {
    let limit = job.spec.request.limit.span()?;
    match &job.tasks.first()?.current().state {
        AttemptState::Running { started, .. } => Some(started.wall_ms.saturating_add_unsigned(limit.0)),
        _ => None,
    }
}

fn place_and_why(
    world: &World,
    (job, state): (&Job, Cursor),
    reason: Option<&(u32, Reason)>,
    frame: &Frame<'_>,
    indices: &[u32],
) -> (Option<u32>, Option<String>) {
    let who = |job: JobId| world.queue.get(job).map(|job| job.owner.name.clone());
    let on = || {
        if indices.is_empty() { "no gpu".to_owned() } else { format!("gpu {}", ranges(indices)) }
    };
    match state {
        Cursor::Queued => reason.map_or((None, None), |(place, reason)| {
            ((*place > 0).then_some(*place), Some(clean_line(&reason.words(&who, frame.clock))))
        }),
        Cursor::Renting => (None, Some(format!("starting on {}", on()))),
        Cursor::Running => (None, Some(on())),
        Cursor::Returning => {
            let why = match how_collecting(world, job) {
                Some(Collecting::Waits(why)) => {
                    format!("collecting output: {}; tried again", clean_line(why))
                }
                Some(Collecting::Percent(percent)) => format!("copying {percent}%"),
                None => "collecting output".to_owned(),
            };
            (None, Some(why))
        }
        Cursor::Releasing => (None, Some("releasing".to_owned())),
        Cursor::Done => (None, None),
    }
}

/// Its folder and its log; where lists are brief, neither.
fn paths(job: &Job, frame: &Frame<'_>) -> [PathBuf; 2] {
    if frame.brief {
        return [PathBuf::default(), PathBuf::default()];
    }
    let directory = frame.jobs_dir.join(job.folder());
    let log = directory.join("log.txt");
    [directory, log]
}

/// How the collection of its output goes, where there is something to say.
fn how_collecting<'w>(world: &'w World, job: &Job) -> Option<&'w Collecting> {
    world.leases.how_collecting(job.tasks.iter().find_map(|task| task.current().state.lease())?)
}

/// Whether a job misses its deadline: it has, or it will as things are; one that no forecast reaches if its limit says so.
pub(super) fn late(job: &Job, forecast: &Forecast, now_ms: i64) -> bool {
    let Some(deadline) = job.spec.request.finish_by_ms else { return false };
    if let Some((at, _)) = &job.done {
        return at.wall_ms > deadline;
    }
    let limit = job.spec.request.limit.span().filter(|_| job.state() == Cursor::Queued);
    let finishes =
        forecast.finishes_at.or_else(|| limit.map(|limit| now_ms.saturating_add_unsigned(limit.0)));
    now_ms > deadline || finishes.is_some_and(|at| at > deadline)
}

fn first_lease<'w>(world: &'w World, job: &Job) -> Option<&'w Lease> {
    job.attempts().find_map(|(_, attempt)| attempt.state.lease()).and_then(|lease| world.lease(lease))
}

fn counts(job: &Job) -> TaskCounts {
    let mut counts = TaskCounts { total: job.tasks.len() as u32, ..TaskCounts::default() };
    for task in &job.tasks {
        let state = &task.current().state;
        match (state.cursor(), state.outcome()) {
            (Cursor::Queued, _) => counts.queued += 1,
            (Cursor::Done, Some(Outcome::Succeeded)) => counts.succeeded += 1,
            (Cursor::Done, Some(Outcome::Cancelled { .. })) => counts.cancelled += 1,
            (Cursor::Done, Some(Outcome::Lost { .. })) => counts.lost += 1,
            (Cursor::Done, _) => counts.failed += 1,
            _ => counts.active += 1,
        }
    }
    counts
}

/// The command's first line that does something.
fn command(job: &Job) -> String {
    let text = match &job.spec.work.run {
        Run::Shell(text) => text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default()
            .to_owned(),
        Run::Argv(argv) => argv.join(" "),
    };
    let mut line = clean_line(&text);
    if let Some((at, _)) = line.char_indices().nth(200) {
        line.truncate(at);
    }
    line
}
