//! The world as screens and lists show it. Computed when somebody asks; never stored.

use super::forecast::{Forecast, Forecasts, forecast};
use super::plan::{self, Reason, ask};
use super::world::{Device, Drained, World};
use crate::model::{
    Attempt, AttemptState, Cursor, DeviceState, Job, JobId, Lease, Now, Outcome, Revision, Run, Unreadable,
    Uuid, clean_line,
};
use crate::protocol::{
    AttemptRow, GpuRow, JobDetail, JobRow, MeterSummary, OpenLease, PoolFacts, StepRow, SubmittedJob,
    TaskCounts, UserMeter,
};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What the shell adds to a view.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The clocks.
    pub now: Now,
    /// The folder of all jobs.
    pub jobs_dir: &'a Path,
    /// A wall time as people read it.
    pub clock: &'a dyn Fn(i64) -> String,
    /// When today began, wall milliseconds.
    pub today_began: i64,
}

/// Reasons and forecasts of the whole line, from one revision.
#[derive(Debug, Clone, Default)]
pub struct Outlook {
    reasons: HashMap<JobId, (u32, Reason)>,
    forecasts: Forecasts,
}

/// Works out why each job waits, and when it is expected.
pub fn outlook(world: &World, now: &Now) -> Outlook {
    let mut place = 0;
    let reasons = plan::explain(world, now)
        .into_iter()
        .map(|(job, reason)| {
            let paused = matches!(reason, Reason::Paused { .. });
            place += u32::from(!paused);
            (job, (if paused { 0 } else { place }, reason))
        })
        .collect();
    Outlook { reasons, forecasts: forecast(world, now) }
}

/// Jobs that are not done, in the order of screens: running ones first, then the line, paused ones last.
pub fn order(world: &World) -> Vec<JobId> {
    let mut running: Vec<&Job> = world.queue.live().filter(|job| job.state() != Cursor::Queued).collect();
    running.sort_by_key(|job| (std::cmp::Reverse(job.state()), job.id));
    let (waiting, paused): (Vec<&Job>, Vec<&Job>) = world.queue.line().partition(|job| job.paused.is_none());
    running.into_iter().chain(waiting).chain(paused).map(|job| job.id).collect()
}

/// A job as lists show it.
pub fn row(world: &World, job: &Job, outlook: &Outlook, frame: &Frame<'_>) -> JobRow {
    let ask = ask(world, job);
    let (gpu_ms, core_ms, waived) = world.ledger.sums(job.id, &frame.now);
    let held: Vec<&Lease> = job
        .tasks
        .iter()
        .filter_map(|task| world.leases.get(task.current().state.lease()?))
        .filter(|lease| lease.ended.is_none())
        .collect();
    let open: Vec<OpenLease> = held
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
    let gpu_indices: Vec<u32> =
        devices.iter().filter_map(|uuid| Some(world.pool.get(uuid)?.gpu.as_ref()?.index)).collect();
    let current = job.tasks.first().map(crate::model::Task::current);
    let started = job.attempts().find_map(|(_, attempt)| attempt.state.started());
    let limit_at = current.and_then(|attempt| match &attempt.state {
        AttemptState::Running { started, .. } => {
            job.spec.request.limit.span().map(|limit| started.wall_ms + limit.0 as i64)
        }
        _ => None,
    });
    let (place, why) = place_and_why(world, job, outlook, frame, &gpu_indices);
    let forecast = outlook.forecasts.get(&job.id).copied().unwrap_or_default();
    let finish_by = job.spec.request.finish_by_ms;
    let done_at = job.done.as_ref().map(|(at, _)| at.wall_ms);
    let directory = frame.jobs_dir.join(job.folder());
    let retry_at = outlook.reasons.get(&job.id).and_then(|(_, reason)| match reason {
        Reason::RetryAt { at_ms } => Some(*at_ms),
        _ => None,
    });
    JobRow {
        id: job.id,
        revision: Revision::default(),
        generation: job.generation,
        name: job.spec.name.clone(),
        user: job.owner.name.clone(),
        project: job.spec.project.clone(),
        kind: job.spec.work.kind,
        state: job.state(),
        paused_by: job.paused.clone().filter(|_| job.done.is_none()),
        outcome: job.done.as_ref().map(|(_, outcome)| outcome.clone()),
        tasks: counts(job),
        gpus: ask.gpus,
        cpus: ask.cores,
        memory: ask.memory,
        priority: job.priority,
        rank: job.ranked.then_some(job.position),
        submitted_at: job.submitted.wall_ms,
        rented_at: first_lease(world, job).map(|lease| lease.granted.wall_ms),
        started_at: started.map(|at| at.wall_ms),
        ended_at: job.attempts().filter_map(|(_, attempt)| attempt.state.ended()).last().map(|at| at.wall_ms),
        done_at,
        limit_at,
        limit: job.spec.request.limit,
        closed_gpu_ms: gpu_ms,
        closed_core_ms: core_ms,
        waived_gpu_ms: waived,
        open,
        place,
        why,
        starts_at: forecast.starts_at.filter(|_| job.state() == Cursor::Queued),
        starts_by: forecast.starts_by.filter(|_| job.state() == Cursor::Queued),
        finishes_at: forecast.finishes_at.filter(|_| job.done.is_none()),
        finish_by,
        late: late(finish_by, job, &forecast),
        cancel_at: job.cancel.as_ref().filter(|_| job.done.is_none()).map(|cancel| cancel.due.wall_ms),
        retry_at,
        retry_of: job.retry_of,
        staging: outlook.reasons.get(&job.id).and_then(|(_, reason)| match reason {
            Reason::Preparing { what } => Some(what.clone()),
            _ => None,
        }),
        peak_memory: job.attempts().filter_map(|(_, attempt)| attempt.peak_memory).max(),
        mean_utilisation: current.and_then(|attempt| attempt.mean_utilisation),
        devices,
        gpu_indices,
        command: command(job),
        log: directory.join("log.txt"),
        directory,
        warnings: job.warnings.len() as u32,
    }
}

fn place_and_why(
    world: &World,
    job: &Job,
    outlook: &Outlook,
    frame: &Frame<'_>,
    indices: &[u32],
) -> (Option<u32>, Option<String>) {
    let who = |job: JobId| world.queue.get(job).map(|job| job.owner.name.clone());
    let list: Vec<String> = indices.iter().map(u32::to_string).collect();
    let on = if list.is_empty() { "no gpu".to_owned() } else { format!("gpu {}", list.join(",")) };
    match job.state() {
        Cursor::Queued => outlook.reasons.get(&job.id).map_or((None, None), |(place, reason)| {
            ((*place > 0).then_some(*place), Some(clean_line(&reason.words(&who, frame.clock))))
        }),
        Cursor::Renting => (None, Some(format!("starting on {on}"))),
        Cursor::Running => (None, Some(on)),
        Cursor::Returning => (None, Some("collecting output".to_owned())),
        Cursor::Releasing => (None, Some("releasing".to_owned())),
        Cursor::Done => (None, None),
    }
}

fn late(finish_by: Option<i64>, job: &Job, forecast: &Forecast) -> bool {
    let Some(deadline) = finish_by else { return false };
    match &job.done {
        Some((at, _)) => at.wall_ms > deadline,
        None => forecast.finishes_at.is_some_and(|at| at > deadline),
    }
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

/// One job, whole. `spec` is the spec in the job file's words, secrets masked.
pub fn detail(
    world: &World,
    job: &Job,
    outlook: &Outlook,
    frame: &Frame<'_>,
    spec: serde_json::Value,
) -> JobDetail {
    let row = row(world, job, outlook, frame);
    let step = |step: &str, at: Option<i64>| StepRow { step: step.to_owned(), at };
    let steps = vec![
        step("submit", Some(row.submitted_at)),
        step("rent", row.rented_at),
        step("run", row.started_at),
        step("output", row.ended_at),
        step("release", row.done_at.filter(|_| row.ended_at.is_some())),
    ];
    let attempts = job.attempts().map(|(task, attempt)| attempt_row(world, task, attempt, frame)).collect();
    let outputs = job
        .attempts()
        .flat_map(|(task, attempt)| attempt.outputs.iter().map(move |output| (task, output.clone())))
        .collect();
    let notes = job.attempts().flat_map(|(_, attempt)| attempt.notes.iter().cloned()).collect();
    JobDetail { row, at: frame.now, steps, attempts, outputs, warnings: job.warnings.clone(), notes, spec }
}

fn attempt_row(
    world: &World,
    task: crate::model::TaskIx,
    attempt: &Attempt,
    frame: &Frame<'_>,
) -> AttemptRow {
    let lease = attempt.state.lease().and_then(|lease| world.lease(lease));
    AttemptRow {
        task,
        attempt: attempt.number,
        state: attempt.state.cursor(),
        lease: attempt.state.lease(),
        devices: lease
            .map_or_else(Vec::new, |lease| lease.held.devices.iter().map(|held| held.uuid.clone()).collect()),
        granted: lease.map(|lease| lease.granted),
        started: attempt.state.started(),
        ended: attempt.state.ended(),
        returned: lease.and_then(|lease| lease.returned.as_ref()).map(|returned| returned.at),
        held: lease.and_then(|lease| lease.held_for(&frame.now)),
        gpu_ms: lease.map_or(0, |lease| lease.gpu_ms(&frame.now)),
        waived: lease.is_some_and(|lease| lease.waived),
        ended_by: lease.and_then(|lease| lease.ended).map(|(_, by)| by),
        outcome: attempt.state.outcome().cloned(),
        verdict: lease.and_then(|lease| lease.returned.as_ref()).map(|returned| returned.verdict.clone()),
    }
}

/// The devices.
pub fn gpus(world: &World, frame: &Frame<'_>) -> Vec<GpuRow> {
    world
        .pool
        .devices()
        .into_iter()
        .enumerate()
        .map(|(ix, (uuid, device))| gpu(world, uuid, device, ix, frame))
        .collect()
}

fn gpu(world: &World, uuid: &Uuid, device: &Device, ix: usize, frame: &Frame<'_>) -> GpuRow {
    let holder = match &device.state {
        DeviceState::Held { lease } | DeviceState::Draining { lease, .. } => world.lease(*lease),
        _ => None,
    };
    // What is no longer listed is still shown by its name.
    let listed = device.gpu.as_ref().or(device.was.as_ref());
    let reading = device.reading.as_ref();
    GpuRow {
        uuid: uuid.clone(),
        index: listed.map_or(ix as u32, |gpu| gpu.index),
        node: listed.map_or_else(String::new, |gpu| gpu.node.clone()),
        name: listed.map_or_else(String::new, |gpu| clean_line(&gpu.name)),
        state: device.state.clone(),
        jobs: holder.map(|lease| lease.job).into_iter().collect(),
        utilisation: reading.and_then(|reading| reading.utilisation),
        memory_used: reading.and_then(|reading| reading.memory_used),
        memory_total: listed.map_or_else(Default::default, |gpu| gpu.memory),
        temperature_c: reading.and_then(|reading| reading.temperature_c),
        power_w: reading.and_then(|reading| reading.power_w),
        processes: reading.and_then(|reading| reading.processes.clone()).unwrap_or_default(),
        detail: device_detail(device, uuid, holder, world, frame),
        enforced: false,
    }
}

fn device_detail(
    device: &Device,
    uuid: &Uuid,
    holder: Option<&Lease>,
    world: &World,
    frame: &Frame<'_>,
) -> Option<String> {
    let text = match &device.state {
        DeviceState::Free => return None,
        DeviceState::Held { .. } => match &device.reading.as_ref()?.unreadable {
            Some(Unreadable::Gone { detail } | Unreadable::Failed { detail }) => detail.clone(),
            None => return None,
        },
        DeviceState::Draining { since, .. } => {
            let since = format!("draining since {}", (frame.clock)(since.wall_ms));
            match holder.map(|lease| world.pool.drained(uuid, lease)) {
                Some(Drained::NotYet(why) | Drained::Gone(why)) => format!("{since}: {why}"),
                Some(Drained::Clean) | None => since,
            }
        }
        DeviceState::Quarantined(quarantine) => {
            format!("{}, since {}", quarantine.why, (frame.clock)(quarantine.since.wall_ms))
        }
        DeviceState::Outside { who } => format!("used by {who}"),
        DeviceState::Closed { reason, by } if reason.is_empty() => format!("closed by {by}"),
        DeviceState::Closed { reason, by } => format!("closed by {by}: {reason}"),
        DeviceState::Gone { detail } | DeviceState::Unknown { detail } => detail.clone(),
    };
    Some(clean_line(&text))
}

/// The running meter.
pub fn meter(world: &World, frame: &Frame<'_>) -> MeterSummary {
    let now = &frame.now;
    let week_began = frame.today_began - 6 * 86_400_000;
    let mut users: BTreeMap<&str, UserMeter> = BTreeMap::new();
    let mut summary = MeterSummary {
        gpus_total: world.pool.gpus(),
        today_began: frame.today_began,
        ..MeterSummary::default()
    };
    for lease in world.ledger.iter().chain(world.leases.held()) {
        let user = users.entry(&lease.owner.name).or_default();
        let gpus = lease.held.devices.len() as u64;
        let from = lease.granted.wall_ms;
        let to = from + lease.held_for(now).map_or(0, |held| held.0 as i64);
        let overlap = |since: i64| (to - from.max(since)).max(0).unsigned_abs() * gpus;
        user.today_gpu_ms += overlap(frame.today_began);
        user.week_gpu_ms += overlap(week_began);
        summary.today_gpu_ms += overlap(frame.today_began);
        if lease.ended.is_none() {
            user.held += gpus as u32;
            user.running += 1;
            summary.gpus_held += gpus as u32;
        }
    }
    for job in world.queue.line() {
        users.entry(&job.owner.name).or_default().waiting += 1;
    }
    for job in world
        .queue
        .history()
        .take_while(|job| job.done.as_ref().is_some_and(|(at, _)| at.wall_ms >= frame.today_began))
    {
        match job.done.as_ref().map(|(_, outcome)| outcome) {
            Some(Outcome::Succeeded) => summary.today_ok += 1,
            Some(Outcome::Failed(_) | Outcome::LimitReached) => summary.today_failed += 1,
            Some(Outcome::Lost { .. }) => summary.today_lost += 1,
            Some(Outcome::Cancelled { .. } | Outcome::NeverStarted { .. }) | None => {}
        }
    }
    summary.users =
        users.into_iter().map(|(user, meter)| UserMeter { user: user.to_owned(), ..meter }).collect();
    summary
}

/// What a submitter is told of the jobs of a submission.
pub fn submitted(world: &World, jobs: &[JobId], now: &Now) -> Vec<SubmittedJob> {
    let outlook = outlook(world, now);
    jobs.iter()
        .filter_map(|id| world.queue.get(*id))
        .map(|job| {
            let forecast = outlook.forecasts.get(&job.id).copied().unwrap_or_default();
            let reason = outlook.reasons.get(&job.id);
            let who = |job: JobId| world.queue.get(job).map(|job| job.owner.name.clone());
            SubmittedJob {
                id: Some(job.id),
                name: job.spec.name.clone(),
                place: reason.map(|(place, _)| *place).filter(|place| *place > 0),
                why: reason.map(|(_, reason)| reason.words(&who, &|_| "its start time".to_owned())),
                starts_at: forecast.starts_at,
                starts_by: forecast.starts_by,
                late: late(job.spec.request.finish_by_ms, job, &forecast),
            }
        })
        .collect()
}

/// A job's number and name, before anything is worked out about it.
pub(super) fn bare(world: &World, job: JobId) -> SubmittedJob {
    SubmittedJob {
        id: Some(job),
        name: world.queue.get(job).map_or_else(String::new, |job| job.spec.name.clone()),
        place: None,
        why: None,
        starts_at: None,
        starts_by: None,
        late: false,
    }
}

/// What a submission would be told if it were made now: it is made, in a copy of the world.
pub fn would_be(world: &World, submission: super::Submission, now: &Now) -> Vec<SubmittedJob> {
    let mut copy = world.clone();
    let first = copy.counters.job.next();
    let count = submission.jobs.len() as u64;
    let input = super::Input::Submission(Box::new(submission));
    if super::step(&mut copy, vec![input], super::Moment { now: *now, seed: 0 }).is_err() {
        return Vec::new();
    }
    let ids: Vec<JobId> = (0..count).map(|n| JobId(first.0 + n)).collect();
    let mut told = submitted(&copy, &ids, now);
    for job in &mut told {
        job.id = None;
    }
    told
}

/// What a job file is checked against.
pub fn pool_facts(world: &World) -> PoolFacts {
    let gpus = world.pool.devices().into_iter().filter_map(|(_, device)| device.gpu.as_ref());
    PoolFacts {
        gpus: gpus.map(|gpu| (gpu.name.clone(), gpu.memory)).collect(),
        cores: world.pool.host.map_or(0, |host| host.cores),
        memory: world.pool.host.map_or_else(Default::default, |host| host.memory),
        jobs: world.queue.live().map(|job| job.spec.name.clone()).collect(),
        known: world.pool.listed && world.pool.host.is_some(),
    }
}

/// The job that a person means by an id or an unambiguous name: the newest that is not done, else the newest.
pub fn resolve<'w>(world: &'w World, text: &str) -> Result<&'w Job, String> {
    let text = text.trim();
    if let Ok(id) = text.trim_start_matches('#').parse::<u64>() {
        return world.queue.get(JobId(id)).ok_or_else(|| format!("no job {id}"));
    }
    let live: Vec<&Job> = world.queue.named(text).filter(|job| job.done.is_none()).collect();
    match live.as_slice() {
        [one] => Ok(one),
        [] => world.queue.named(text).next_back().ok_or_else(|| {
            let names: Vec<&str> = world.queue.live().take(5).map(|job| job.spec.name.as_str()).collect();
            if names.is_empty() {
                format!("no job named {}", clean_line(text))
            } else {
                format!("no job named {}; there are: {}", clean_line(text), names.join(", "))
            }
        }),
        many => {
            let ids: Vec<String> = many.iter().map(|job| format!("#{}", job.id)).collect();
            Err(format!(
                "{} jobs are named {}: {}; say which by its number",
                many.len(),
                clean_line(text),
                ids.join(" ")
            ))
        }
    }
}
