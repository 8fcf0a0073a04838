//! What a change would do to the line: the plan's own walk, over the line as it would be. Nothing is changed for it.

use super::row::late;
use super::{Outlook, outlook, outlook_of};
use crate::model::{Cursor, Job, JobId, Now};
use crate::protocol::{Change, Expectation, Reply, WhatIf, WhatIfRow};
use crate::sched::commands::place::placed;
use crate::sched::world::World;

/// Rows of an answer.
const ROWS: usize = 50;

/// What a change would do.
pub fn what_if(world: &World, row: &Job, change: Change, now: &Now) -> WhatIf {
    let changed = match changed(world, row, change) {
        Ok(changed) => changed,
        Err(refused) => return WhatIf { refused: Some(refused), ..WhatIf::default() },
    };
    let old = outlook(world, now);
    let line = world.queue.line_with(&changed);
    let new = outlook_of(world, &line, now);
    let mut answer = WhatIf::default();
    // The changed job first, then the others in the order of the line as it would be.
    let others = line.iter().copied().filter(|job| job.id != row.id);
    for job in line.iter().copied().filter(|job| job.id == row.id).chain(others) {
        let before = world.queue.get(job.id).unwrap_or(job);
        let (was, is) = (expectation(&old, before, now), expectation(&new, job, now));
        if was == is && job.id != row.id {
            continue;
        }
        if answer.rows.len() == ROWS {
            answer.more += 1;
            continue;
        }
        let (name, user) = (job.spec.name.clone(), job.owner.name.clone());
        answer.rows.push(WhatIfRow { job: job.id, name, user, old: was, new: is });
    }
    answer
}

fn expectation(outlook: &Outlook, job: &Job, now: &Now) -> Expectation {
    let forecast = outlook.forecasts.get(&job.id).cloned().unwrap_or_default();
    Expectation {
        place: outlook.reasons.get(&job.id).map(|(place, _)| *place).filter(|place| *place > 0),
        starts_at: forecast.starts_at,
        starts_by: forecast.starts_by,
        finishes_at: forecast.finishes_at,
        late: late(job, &forecast, now.wall_ms),
    }
}

/// The jobs that the change would change, as they would be.
fn changed(world: &World, row: &Job, change: Change) -> Result<Vec<Job>, String> {
    let id: JobId = row.id;
    if row.state() != Cursor::Queued {
        return Err(format!("#{id} is {}: only a waiting job has a place in line", row.state().word()));
    }
    let mut job = row.clone();
    match change {
        Change::Move(to) => {
            let placed = placed(&world.queue, row, to).map_err(|reply| match reply {
                Reply::Refused { message } => message,
                _ => format!("#{id} cannot be moved"),
            })?;
            let Some(placed) = placed else {
                return Err(format!("#{id} is the only one of its owner's jobs of its priority"));
            };
            job.position = placed.position;
            let other = placed
                .passed
                .and_then(|(other, position)| Some(Job { position, ..world.queue.get(other)?.clone() }));
            return Ok(std::iter::once(job).chain(other).collect());
        }
        Change::Priority(priority) => job.priority = priority,
        Change::Pause if job.paused.is_some() => return Err(format!("#{id} is paused already")),
        Change::Pause => job.paused = Some(job.owner.name.clone()),
        Change::Resume if job.paused.is_none() => return Err(format!("#{id} is not paused")),
        Change::Resume => job.paused = None,
    }
    Ok(vec![job])
}
