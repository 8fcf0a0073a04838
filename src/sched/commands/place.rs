//! A place in line among one's own.

use super::refused;
use crate::model::{Job, JobId};
use crate::protocol::{Place, Reply};
use crate::sched::world::Queue;

/// Where a move leads.
pub(in crate::sched) struct Placed {
    /// The job's place then.
    pub(in crate::sched) position: i64,
    /// The job that it goes past by one place, and that one's place then.
    pub(in crate::sched) passed: Option<(JobId, i64)>,
}

/// Where a job goes; `None`: there is nobody to go past.
pub(in crate::sched) fn placed(queue: &Queue, row: &Job, to: Place) -> Result<Option<Placed>, Reply> {
    match to {
        Place::Top | Place::Bottom => {
            let position = queue.end_position(row, to == Place::Top);
            Ok(position.map(|position| Placed { position, passed: None }))
        }
        Place::Up | Place::Down => {
            let Some(other) = queue.neighbour(row, to == Place::Up) else {
                let end = if to == Place::Up { "first" } else { "last" };
                let job = row.id;
                return Err(refused(format!("#{job} is {end} of its owner's jobs of its priority already")));
            };
            Ok(Some(if other.position == row.position {
                // What was moved to the end may have the place that a later job was born with.
                let position = if to == Place::Up { row.position - 1 } else { row.position + 1 };
                Placed { position, passed: None }
            } else {
                Placed { position: other.position, passed: Some((other.id, row.position)) }
            }))
        }
    }
}
