//! What is said to those who submit, check or name a job.

use super::row::{indices, late};
use super::{Outlook, outlook};
use crate::model::{Cursor, Job, JobId, Now, clean_line};
use crate::protocol::{PoolFacts, SubmittedJob};
use crate::sched::forecast::HORIZON;
use crate::sched::plan;
use crate::sched::world::World;
use crate::sched::{Input, Moment, Submission, step};
use std::collections::BTreeSet;

/// For more jobs than this, one walk along the whole line costs less than finding each one's place.
const FEW: usize = 16;

/// What a submitter is told of the jobs of a submission.
///
/// What is beyond every forecast is told its place without one: an answer costs no more because many wait.
pub fn submitted(world: &World, jobs: &[JobId], now: &Now) -> Vec<SubmittedJob> {
    let waiting = |id: &&JobId| world.queue.get(**id).is_some_and(|job| job.state() == Cursor::Queued);
    let ahead = |id: &JobId| world.queue.get(*id).map_or(0, |job| world.queue.ahead_of(job));
    let near = jobs.len() > FEW || jobs.iter().filter(waiting).any(|id| ahead(id) < HORIZON);
    let mut known = if near { outlook(world, now) } else { Outlook::default() };
    if !near {
        let far = jobs.iter().filter(waiting).filter_map(|id| world.queue.get(*id));
        known.reasons.extend(
            far.map(|job| (job.id, (world.queue.ahead_of(job) as u32 + 1, plan::in_line(world, job, now)))),
        );
    }
    told(world, jobs, &known, now)
}

/// The same, from an outlook that is there already.
pub fn told(world: &World, jobs: &[JobId], outlook: &Outlook, now: &Now) -> Vec<SubmittedJob> {
    let who = |job: JobId| world.queue.get(job).map(|job| job.owner.name.clone());
    jobs.iter()
        .filter_map(|id| world.queue.get(*id))
        .map(|job| {
            let forecast = outlook.forecasts.get(&job.id).cloned().unwrap_or_default();
            let reason = outlook.reasons.get(&job.id);
            SubmittedJob {
                id: Some(job.id),
                name: job.spec.name.clone(),
                place: reason.map(|(place, _)| *place).filter(|place| *place > 0),
                why: reason.map(|(_, reason)| reason.words(&who, &|_| "its start time".to_owned())),
                starts_at: forecast.starts_at,
                starts_by: forecast.starts_by,
                late: late(job, &forecast, now.wall_ms),
                gpus: indices(world, job),
            }
        })
        .collect()
}

/// A job's number and name, before anything is worked out about it.
pub(in crate::sched) fn bare(world: &World, job: JobId) -> SubmittedJob {
    SubmittedJob {
        id: Some(job),
        name: world.queue.get(job).map_or_else(String::new, |job| job.spec.name.clone()),
        place: None,
        why: None,
        starts_at: None,
        starts_by: None,
        late: false,
        gpus: Vec::new(),
    }
}

/// What a submission would be told if it were made now: it is made, in a copy of the world.
pub fn would_be(world: &World, submission: Submission, now: &Now) -> Vec<SubmittedJob> {
    let mut copy = world.clone();
    let first = copy.counters.job.next();
    let count = submission.jobs.len() as u64;
    let input = Input::Submission(Box::new(submission));
    let decision = step(&mut copy, vec![input], Moment { now: *now, seed: 0 });
    if decision.bug.is_some() {
        return Vec::new();
    }
    let ids: Vec<JobId> = (0..count).map(|n| JobId(first.0 + n)).collect();
    let known = outlook(&copy, now);
    let mut told = told(&copy, &ids, &known, now);
    for (job, id) in told.iter_mut().zip(&ids) {
        // The devices are free as far as is known: a look at them is all that is missing.
        if let Some((_, plan::Reason::Checking { gpus })) = known.reasons.get(id) {
            *job = SubmittedJob { gpus: gpus.clone(), name: job.name.clone(), ..bare(&copy, *id) };
        }
        job.id = None;
    }
    told
}

/// What a job file is checked against; with the names of jobs only for a file that could mention one.
pub fn pool_facts(world: &World, names: bool) -> PoolFacts {
    let gpus = world.pool.devices().filter_map(|(_, device)| device.gpu.as_ref());
    let jobs = names.then(|| world.queue.live().map(|job| job.spec.name.clone()).collect());
    PoolFacts {
        gpus: gpus.map(|gpu| (gpu.name.clone(), gpu.memory)).collect(),
        cores: world.pool.host.map_or(0, |host| host.cores),
        memory: world.pool.host.map_or_else(Default::default, |host| host.memory),
        jobs: jobs.unwrap_or_default(),
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
            let mut names: Vec<&str> = world.queue.live().take(5).map(|job| job.spec.name.as_str()).collect();
            if names.is_empty() {
                format!("no job named {}", clean_line(text))
            } else {
                let mut seen = BTreeSet::new();
                names.retain(|name| seen.insert(*name));
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
