//! The world as screens and lists show it. Computed when somebody asks; never stored.

mod answers;
mod detail;
mod pool;
mod row;
mod whatif;

pub(super) use answers::bare;
pub use answers::{pool_facts, resolve, submitted, told, would_be};
pub use detail::detail;
pub use pool::{gpus, meter};
pub use row::row;
pub use whatif::what_if;

use super::forecast::{Forecasts, forecast_line};
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

/// Jobs that are not done, in the order of screens: running ones first, then the line, paused ones last.
pub fn order(world: &World, outlook: &Outlook) -> Vec<JobId> {
    let mut busy: Vec<&Job> = world.queue.busy().collect();
    busy.sort_by_key(|job| (std::cmp::Reverse(job.state()), job.id));
    let is_paused = |job: &JobId| outlook.reasons.get(job).is_some_and(|(place, _)| *place == 0);
    let (paused, waiting): (Vec<JobId>, Vec<JobId>) = outlook.line.iter().partition(|job| is_paused(job));
    busy.into_iter().map(|job| job.id).chain(waiting).chain(paused).collect()
}
