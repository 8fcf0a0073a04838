//! The world as screens and lists show it. Computed when somebody asks; never stored.

mod answers;
mod detail;
mod pool;
mod row;

pub(super) use answers::bare;
pub use answers::{pool_facts, resolve, submitted, told, would_be};
pub use detail::detail;
pub use pool::{gpus, meter};
pub use row::row;

use super::forecast::{Forecasts, forecast};
use super::plan::{self, Reason};
use super::world::World;
use crate::model::{Cursor, Job, JobId, Now};
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
