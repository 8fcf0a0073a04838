//! The world as screens and lists show it. Computed when somebody asks; never stored.

mod answers;
mod detail;
mod meter;
mod pool;
mod row;
mod timeline;
mod whatif;

pub(super) use answers::bare;
pub use answers::{pool_facts, resolve, submitted, told, would_be};
pub use detail::detail;
pub use meter::{MeterBook, meter};
pub use pool::gpus;
pub use row::row;
pub use timeline::timeline;
pub use whatif::what_if;

use super::forecast::{Forecasts, forecast, forecast_line};
use super::plan::{self, Reason};
use super::world::World;
use crate::model::{Job, JobId, Now};
use std::collections::HashMap;
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
    /// For lists: without command, folder and log.
    pub brief: bool,
}

/// Reasons and forecasts of the whole line, from one revision.
#[derive(Debug, Clone, Default)]
pub struct Outlook {
    /// The line in its order.
    line: Vec<JobId>,
    /// Place in line, 0 for one that is paused, and why it waits.
    reasons: HashMap<JobId, (u32, Reason)>,
    forecasts: Forecasts,
}

/// Works out why each job waits, and when it is expected.
pub fn outlook(world: &World, now: &Now) -> Outlook {
    let line: Vec<&Job> = world.queue.line().collect();
    outlook_of(world, &line, now)
}

/// The same for another line: some of its jobs may be others than the world's.
fn outlook_of(world: &World, line: &[&Job], now: &Now) -> Outlook {
    let mut place = 0;
    let explained = plan::explain_line(world, line, now);
    let order = explained.iter().map(|(job, _)| *job).collect();
    let reasons = explained
        .into_iter()
        .map(|(job, reason)| {
            let paused = matches!(reason, Reason::Paused { .. });
            place += u32::from(!paused);
            (job, (if paused { 0 } else { place }, reason))
        })
        .collect();
    Outlook { line: order, reasons, forecasts: forecast_line(world, line, now) }
}

/// The same, of the front of the line only. Of any other job [`Outlook::look_at`] tells.
pub fn front(world: &World, now: &Now) -> Outlook {
    let front = plan::explain_front(world, now);
    let line = front.iter().map(|(job, _)| *job).collect();
    let reasons = front.into_iter().map(|(job, reason)| (job, (0, reason))).collect();
    Outlook { line, reasons, forecasts: forecast(world, now) }
}

impl Outlook {
    /// The line, as far as it was looked at.
    pub fn line(&self) -> &[JobId] {
        &self.line
    }

    /// Works out why a job waits that is far down the line.
    pub fn look_at(&mut self, world: &World, job: &Job, now: &Now) {
        if world.queue.is_in_line(job) {
            self.reasons.entry(job.id).or_insert_with(|| (0, plan::in_line(world, job, now)));
        }
    }

    /// When the row of a waiting job may change by time alone, and not before: wall milliseconds.
    pub fn due(&self, job: &Job, now_ms: i64) -> Option<i64> {
        let due = match &self.reasons.get(&job.id)?.1 {
            Reason::StartAfter { at_ms } | Reason::RetryAt { at_ms } => Some(*at_ms),
            Reason::LastAttemptAlive => Some(now_ms),
            _ => None,
        };
        let request = &job.spec.request;
        let late = request.finish_by_ms.map(|at| at - request.limit.span().map_or(0, |limit| limit.0 as i64));
        due.into_iter().chain(late.filter(|at| *at >= now_ms)).min()
    }
}

/// The order of screens, without a look at those that wait: running ones first, then the line, paused ones last.
pub fn order_of_ids(world: &World) -> Vec<JobId> {
    let mut busy: Vec<&Job> = world.queue.busy().collect();
    busy.sort_by_key(|job| (std::cmp::Reverse(job.state()), job.id));
    busy.into_iter().map(|job| job.id).chain(world.queue.line_ids()).collect()
}

/// Jobs that are not done, in the order of screens: running ones first, then the line, paused ones last.
pub fn order(world: &World, outlook: &Outlook) -> Vec<JobId> {
    let mut busy: Vec<&Job> = world.queue.busy().collect();
    busy.sort_by_key(|job| (std::cmp::Reverse(job.state()), job.id));
    let is_paused = |job: &JobId| outlook.reasons.get(job).is_some_and(|(place, _)| *place == 0);
    let (paused, waiting): (Vec<JobId>, Vec<JobId>) = outlook.line.iter().partition(|job| is_paused(job));
    busy.into_iter().map(|job| job.id).chain(waiting).chain(paused).collect()
}
