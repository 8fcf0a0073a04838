//! What follows from a break: the scheduler was gone, or its disk was, and what it had decided may not have been done.

use super::lifecycle::{running_lease, stop_kind};
use super::world::World;
use super::{Effect, EngineReport, Input};
use crate::model::{AttemptState, BootId, Job, LeaseId, Now, Span, Token};
use std::collections::{BTreeMap, BTreeSet};

/// After a start, so many of the newest leases are dismissed again.
const DISMISS_AGAIN: usize = 256;
/// After a start, the receipts of jobs that were done this long before the newest of their boot are written again.
const RECEIPTS_AGAIN: Span = Span::secs(60);
/// A grant that took longer than this to become durable is not carried out: its proof is too old by then, and nobody is to
/// pay for a full disk.
const GRANT_MAX_AGE: Span = Span::secs(10);

/// Leases whose attempt is not done: their supervisors live, or have left word in their journals. An engine is asked for
/// them after a start.
pub fn leases_to_find(world: &World, now: &Now) -> Vec<(LeaseId, Token)> {
    let current =
        world.queue.live().flat_map(|job| job.tasks.iter()).filter_map(|task| task.current().state.lease());
    // Those of which a process outlived its kill: somebody has to see it go.
    let unproven = world.unproven(now).map(|lease| lease.id);
    let ids: BTreeSet<LeaseId> =
        current.chain(world.leases.iter().map(|lease| lease.id)).chain(unproven).collect();
    ids.into_iter().filter_map(|id| world.lease(id).map(|lease| (id, lease.token.clone()))).collect()
}

/// What has to be done again after a start: effects of durable events that may not have been carried out.
pub fn resume(world: &World) -> Vec<Effect> {
    let mut effects = Vec::new();
    for job in world.queue.live() {
        for task in &job.tasks {
            let attempt = task.current();
            if let AttemptState::Releasing { lease, .. } = attempt.state {
                effects.push(Effect::Release { job: job.id, task: task.ix, attempt: attempt.number, lease });
            }
        }
        if let Some(cancel) = &job.cancel
            && cancel.carried_out
            && let Some(lease) = running_lease(job)
        {
            effects.push(Effect::Stop { lease, kind: stop_kind(cancel) });
        }
        effects.push(Effect::WriteAnswer { job: job.id, submission: job.submission });
        if job.file.is_some() {
            effects.push(Effect::Rewrite { job: job.id, was: None });
        }
    }
    // A supervisor whose devices are back may not have been told; a receipt and what belongs to it may not have been
    // written, or not have reached the disk.
    let dismissed = world.ledger.iter().rev().take(DISMISS_AGAIN).filter(|lease| lease.returned.is_some());
    effects.extend(dismissed.map(|lease| Effect::Dismiss { lease: lease.id }));
    effects.extend(done_lately(world).into_iter().flat_map(|job| {
        [
            Effect::WriteAnswer { job: job.id, submission: job.submission },
            Effect::WriteReceipt { job: job.id },
        ]
    }));
    effects.sort_by_key(Effect::rank);
    effects
}

/// Jobs that were done shortly before the newest of their boot: by the clock that nobody sets.
fn done_lately(world: &World) -> Vec<&Job> {
    let done = |job: &Job| job.done.as_ref().map(|(at, _)| (at.boot, at.boottime_ms));
    let mut newest: BTreeMap<BootId, u64> = BTreeMap::new();
    for (boot, at) in world.queue.history().filter_map(done) {
        let last = newest.entry(boot).or_default();
        *last = at.max(*last);
    }
    let lately = |job: &&Job| {
        done(job)
            .is_some_and(|(boot, at)| newest.get(&boot).is_some_and(|last| last - at <= RECEIPTS_AGAIN.0))
    };
    world.queue.history().filter(lately).collect()
}

/// The effects of a turn that became durable at `now`, without the launches for which that is too late: those are told as
/// never made, and their jobs get another lease on fresh readings.
///
/// A disk that was full for an hour would else start work on an hour-old proof, and bill the hour. After a commit that
/// failed (`failed`) it is too late for all of them: whatever the disk took to come back would be billed. A disk that is
/// only slow is not: nothing would ever start on it.
pub fn in_time(effects: Vec<Effect>, now: &Now, failed: bool) -> (Vec<Effect>, Vec<Input>) {
    let is_late = |granted: &Now| failed || now.since(granted).is_none_or(|age| age > GRANT_MAX_AGE);
    let mut late = Vec::new();
    let mut kept = Vec::with_capacity(effects.len());
    for effect in effects {
        match effect {
            Effect::Launch(launch) if is_late(&launch.granted) => {
                let why = "its grant took too long to be written to the state's disk".to_owned();
                let (lease, at) = (launch.lease, launch.granted);
                late.push(Input::Engine(EngineReport::NotLaunched { lease, at, why }));
            }
            effect => kept.push(effect),
        }
    }
    (kept, late)
}
