//! What people ask for: submissions and commands, each with its answer.

mod gpus;
mod submit;

pub(super) use submit::submit;

use super::lifecycle;
use super::step::Turn;
use crate::model::{CancelRequest, Cursor, Event, Generation, Job, JobId, Owner, Span};
use crate::protocol::{Command, Place, Reply};
/// The longest undo window: a client's number is not to be trusted.
const UNDO_MAX: Span = Span::secs(24 * 3_600);

use gpus::{clear, close, each_gpu, open};
use submit::retry;

/// Carries out one command and answers it.
pub(super) fn command(turn: &mut Turn<'_>, by: &Owner, command: Command, reply_to: u64) {
    let result = match command {
        Command::Cancel { job, generation, undo, now } => {
            fresh(turn, job, generation).and_then(|row| cancel(turn, &row, by, undo, now))
        }
        Command::Undo { job } => undo(turn, job),
        Command::SetPriority { job, generation, priority } => waiting(turn, job, generation, "reprioritised")
            .map(|_| {
                turn.emit(Event::PriorityChanged { job, priority });
                format!("#{job} has priority {priority}")
            }),
        Command::Move { job, generation, to } => {
            waiting(turn, job, generation, "moved").and_then(|row| move_job(turn, &row, to))
        }
        Command::Pause { job, generation } => waiting(turn, job, generation, "paused").and_then(|row| {
            if row.paused.is_some() {
                return Err(refused(format!("#{job} is paused already")));
            }
            turn.emit(Event::JobPaused { job, by: by.name.clone() });
            Ok(format!("#{job} is paused"))
        }),
        Command::Resume { job, generation } => waiting(turn, job, generation, "resumed").and_then(|row| {
            if row.paused.is_none() {
                return Err(refused(format!("#{job} is not paused")));
            }
            turn.emit(Event::JobResumed { job });
            Ok(format!("#{job} waits for its turn again"))
        }),
        Command::Retry { job, generation } => match fresh(turn, job, generation) {
            Ok(row) if row.done.is_none() => {
                Err(refused(format!("#{job} is {}; only a done job can be retried", row.state().word())))
            }
            Ok(row) => {
                let tried = |other: &&Job| other.retry_of == Some(job);
                let other = turn.world.queue.live().find(tried).map(|other| other.id);
                if let Some(other) = other {
                    Err(refused(format!("#{job} is tried again already, as #{other}")))
                } else {
                    retry(turn, &row, by, reply_to);
                    return;
                }
            }
            Err(reply) => Err(reply),
        },
        Command::Close { gpus, reason } => each_gpu(turn, &gpus, |turn, uuid| close(turn, uuid, &reason, by)),
        Command::Open { gpus } => each_gpu(turn, &gpus, open),
        Command::Clear { gpu } => each_gpu(turn, &gpu, clear),
        Command::BeginEdit { .. } | Command::Edit { .. } | Command::EndEdit { .. } => {
            Err(refused("jobs cannot be edited yet".to_owned()))
        }
        Command::Submit(_) | Command::Check(_) | Command::Rescan | Command::Stop => {
            Err(refused("the scheduler's shell answers this".to_owned()))
        }
    };
    let reply = result.map_or_else(|reply| reply, |message| Reply::Ok { message });
    turn.reply(reply_to, reply);
}

const fn refused(message: String) -> Reply {
    Reply::Refused { message }
}

/// The job as the client saw it, or why not.
fn fresh(turn: &Turn<'_>, job: JobId, generation: Generation) -> Result<Job, Reply> {
    match turn.world.queue.get(job) {
        None => Err(Reply::NotFound { message: format!("no job {job}") }),
        Some(row) if row.generation != generation => Err(refused(format!(
            "#{job} has changed meanwhile: it is {} now; look again",
            match (&row.done, &row.cancel) {
                (Some((_, outcome)), _) => outcome.to_string(),
                (None, Some(cancel)) => format!("being cancelled by {}", cancel.by),
                (None, None) => row.state().word().to_owned(),
            }
        ))),
        Some(row) => Ok(row.clone()),
    }
}

/// Likewise, for what only a waiting job can have done to it.
fn waiting(turn: &Turn<'_>, job: JobId, generation: Generation, verb: &str) -> Result<Job, Reply> {
    let row = fresh(turn, job, generation)?;
    if row.state() == Cursor::Queued {
        Ok(row)
    } else {
        let more = if verb == "paused" { "; it can be cancelled" } else { "" };
        Err(refused(format!("#{job} is {}: only a waiting job can be {verb}{more}", row.state().word())))
    }
}

fn cancel(turn: &mut Turn<'_>, row: &Job, by: &Owner, undo: Span, now: bool) -> Result<String, Reply> {
    let job = row.id;
    match row.state() {
        Cursor::Done => return Err(refused(format!("#{job} is done already"))),
        Cursor::Returning | Cursor::Releasing => {
            return Err(refused(format!(
                "the run of #{job} has ended already; its output is being collected"
            )));
        }
        Cursor::Queued | Cursor::Renting | Cursor::Running => {}
    }
    let carried_out = row.cancel.as_ref().is_some_and(|cancel| cancel.carried_out);
    if carried_out && !now {
        return Err(refused(format!("#{job} is being cancelled already; --now kills it at once")));
    }
    // What is under way cannot be undone: it is only made harder, at once.
    let undo = if carried_out { Span(0) } else { undo.min(UNDO_MAX) };
    let due = turn.now.plus(undo);
    let request = CancelRequest { by: by.name.clone(), asked: turn.now, due, now, carried_out: false };
    turn.emit(Event::CancelRequested { job, request });
    if undo.0 == 0 {
        lifecycle::carry_out_cancel(turn, job);
        return Ok(match row.state() {
            Cursor::Queued => format!("#{job} is cancelled"),
            _ => format!("#{job} is being stopped"),
        });
    }
    turn.wake(turn.now.boottime_ms + undo.0);
    Ok(format!("#{job} will be cancelled in {undo}; undo takes it back"))
}

fn undo(turn: &mut Turn<'_>, job: Option<JobId>) -> Result<String, Reply> {
    let newest = turn
        .world
        .queue
        .cancelling()
        .filter(|row| job.is_none_or(|job| job == row.id))
        .max_by_key(|row| row.cancel.as_ref().map(|cancel| (cancel.asked.wall_ms, row.id)))
        .map(|row| row.id);
    match newest {
        Some(job) => {
            turn.emit(Event::CancelWithdrawn { job });
            Ok(format!("#{job} is not cancelled"))
        }
        None => Err(refused("nothing can be undone: no cancel is in its window".to_owned())),
    }
}

fn move_job(turn: &mut Turn<'_>, row: &Job, to: Place) -> Result<String, Reply> {
    let job = row.id;
    let neighbour = |turn: &Turn<'_>, up: bool| {
        turn.world.queue.neighbour(row, up).map(|other| (other.id, other.position, other.ranked))
    };
    match to {
        Place::Top | Place::Bottom => {
            if let Some(position) = turn.world.queue.end_position(row, to == Place::Top) {
                turn.emit(Event::PositionChanged { job, position, ranked: true });
            }
        }
        Place::Up | Place::Down => {
            let Some((other, position, ranked)) = neighbour(turn, to == Place::Up) else {
                let end = if to == Place::Up { "first" } else { "last" };
                return Err(refused(format!("#{job} is {end} of its owner's jobs of its priority already")));
            };
            if position == row.position {
                // What was moved to the end may have the place that a later job was born with.
                let position = if to == Place::Up { position - 1 } else { position + 1 };
                turn.emit(Event::PositionChanged { job, position, ranked: true });
            } else {
                turn.emit(Event::PositionChanged { job: other, position: row.position, ranked });
                turn.emit(Event::PositionChanged { job, position, ranked: true });
            }
        }
    }
    Ok(format!("#{job} is moved"))
}
