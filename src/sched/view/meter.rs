//! The running meter. Sums over lease records; what has ended is summed once, and what is open with each look.

use super::Frame;
use crate::model::{Lease, LeaseId, Now, Outcome};
use crate::protocol::{MeterSummary, UserMeter};
use crate::sched::world::World;
use std::collections::{BTreeMap, BTreeSet};

const DAY_MS: i64 = 86_400_000;

/// The running meter.
pub fn meter(world: &World, frame: &Frame<'_>) -> MeterSummary {
    MeterBook::default().look(world, frame)
}

/// What the leases that have ended come to, so that a look costs what is open.
#[derive(Debug, Clone, Default)]
pub struct MeterBook {
    /// Where today and the steps of the last day began: with another one all is summed anew.
    began: Option<(i64, i64)>,
    closed: Sums,
    /// The last lease that was looked at, and those up to it that had not ended then.
    last: LeaseId,
    open: BTreeSet<LeaseId>,
}

/// GPU-milliseconds.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// Of today and of seven days, by user.
    users: BTreeMap<String, (u64, u64)>,
    /// By step of the last day.
    steps: Vec<u64>,
}

impl Sums {
    fn add(&mut self, lease: &Lease, now: &Now, (today, steps): (i64, i64)) {
        let gpus = lease.held.devices.len() as u64;
        let from = lease.granted.wall_ms;
        let to = from + lease.held_for(now).map_or(0, |held| held.0 as i64);
        let overlap = |since: i64, until: i64| (to.min(until) - from.max(since)).max(0).unsigned_abs() * gpus;
        if !self.users.contains_key(&lease.owner.name) {
            self.users.insert(lease.owner.name.clone(), (0, 0));
        }
        if let Some((day, week)) = self.users.get_mut(&lease.owner.name) {
            *day += overlap(today, i64::MAX);
            *week += overlap(today - 6 * DAY_MS, i64::MAX);
        }
        let step = MeterSummary::STEP_MS;
        let first = ((from - steps) / step).max(0) as usize;
        for (ix, sum) in self.steps.iter_mut().enumerate().skip(first) {
            let begin = steps + ix as i64 * step;
            if begin >= to {
                break;
            }
            *sum += overlap(begin, begin + step);
        }
    }
}

impl MeterBook {
    /// The meter now.
    pub fn look(&mut self, world: &World, frame: &Frame<'_>) -> MeterSummary {
        let (now, step) = (&frame.now, MeterSummary::STEP_MS);
        let began = (frame.today_began, now.wall_ms.div_euclid(step) * step - DAY_MS);
        if self.began == Some(began) {
            let newer = (self.last.0 + 1..=world.counters.lease.0).map(LeaseId);
            let ended = self.open.iter().copied().chain(newer).filter_map(|id| world.ledger.get(id));
            for lease in ended {
                self.closed.add(lease, now, began);
            }
        } else {
            *self = Self { began: Some(began), ..Self::default() };
            self.closed.steps = vec![0; (DAY_MS / step) as usize + 1];
            for lease in world.ledger.iter() {
                self.closed.add(lease, now, began);
            }
        }
        self.open = world.leases.held().map(|lease| lease.id).collect();
        self.last = world.counters.lease;
        let mut sums = self.closed.clone();
        let mut summary = MeterSummary {
            gpus_total: world.pool.gpus(),
            today_began: frame.today_began,
            day_began: began.1,
            ..MeterSummary::default()
        };
        let mut users: BTreeMap<&str, UserMeter> = BTreeMap::new();
        for lease in world.leases.held() {
            sums.add(lease, now, began);
            let user = users.entry(&lease.owner.name).or_default();
            user.held += lease.held.devices.len() as u32;
            user.running += 1;
            summary.gpus_held += lease.held.devices.len() as u32;
        }
        for (user, (day, week)) in &sums.users {
            let row = users.entry(user).or_default();
            (row.today_gpu_ms, row.week_gpu_ms) = (*day, *week);
            summary.today_gpu_ms += day;
        }
        for (user, waiting) in world.queue.waiting_by_owner() {
            users.entry(user).or_default().waiting = waiting;
        }
        summary.users =
            users.into_iter().map(|(user, meter)| UserMeter { user: user.to_owned(), ..meter }).collect();
        summary.day = sums.steps;
        outcomes(world, &mut summary);
        summary
    }
}

fn outcomes(world: &World, summary: &mut MeterSummary) {
    let began = summary.today_began;
    let today = |at: &Now| at.wall_ms >= began;
    for job in world.queue.history().take_while(|job| job.done.as_ref().is_some_and(|(at, _)| today(at))) {
        match job.done.as_ref().map(|(_, outcome)| outcome) {
            Some(Outcome::Succeeded) => summary.today_ok += 1,
            Some(Outcome::Failed(_) | Outcome::LimitReached) => summary.today_failed += 1,
            Some(Outcome::Lost { .. }) => summary.today_lost += 1,
            Some(Outcome::Cancelled { .. } | Outcome::NeverStarted { .. }) | None => {}
        }
    }
}
