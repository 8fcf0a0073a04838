//! What people ask for: submissions and commands, each with its answer.

mod edit;
mod gpus;
pub(super) mod place;
mod submit;
mod undo;

pub(super) use edit::edit;
pub use edit::would_edit;
pub(super) use submit::submit;
pub use undo::undoable;

use super::lifecycle;
use super::step::Turn;
use crate::model::{
    CancelRequest, Changed, Cursor, Event, Generation, Job, JobId, Owner, Passed, Position, Span,
};
use crate::protocol::{Command, Place, Reply};

use gpus::{clear, close, each_gpu, open};
use place::{Placed, placed};
use submit::retry;
use undo::keep;

/// Carries out one command and answers it.
pub(super) fn command(turn: &mut Turn<'_>, by: &Owner, command: Command, reply_to: u64) {
    let result = match command {
        Command::Cancel { job, generation, undo, now } => {
            fresh(turn, job, generation).and_then(|row| cancel(turn, &row, by, undo, now))
        }
        Command::Undo { job } => undo::undo(turn, by, job),
        Command::SetPriority { job, generation, priority } => waiting(turn, job, generation, "reprioritised")
            .map(|row| {
                turn.emit(Event::PriorityChanged { job, priority });
                if row.priority != priority {
                    keep(turn, job, by, Changed::Priority { old: row.priority, new: priority });
                }
                format!("#{job} has priority {priority}")
            }),
        Command::Move { job, generation, to } => {
            waiting(turn, job, generation, "moved").and_then(|row| move_job(turn, &row, to, by))
        }
        Command::Pause { job, generation } => waiting(turn, job, generation, "paused").and_then(|row| {
            if row.paused.is_some() {
                return Err(refused(format!("#{job} is paused already")));
            }
            turn.emit(Event::JobPaused { job, by: by.name.clone() });
            keep(turn, job, by, Changed::Paused);
            Ok(format!("#{job} is paused"))
        }),
        Command::Resume { job, generation } => waiting(turn, job, generation, "resumed").and_then(|row| {
            let Some(paused_by) = row.paused else {
                // An editor that died with its terminal holds the job up for nothing.
                if row.edit.as_ref().is_some_and(|mark| mark.by == by.name) {
                    turn.emit(Event::EditEnded { job });
                    return Ok(format!("#{job} is no longer being edited: it waits for its turn"));
                }
                return Err(refused(format!("#{job} is not paused")));
            };
            turn.emit(Event::JobResumed { job });
            keep(turn, job, by, Changed::Resumed { paused_by });
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
        Command::BeginEdit { job, generation } => {
            let reply = edit::begin(turn, (job, generation), by).unwrap_or_else(|reply| reply);
            turn.reply(reply_to, reply);
            return;
        }
        Command::EndEdit { job, generation } => edit::end(turn, job, generation),
        Command::Submit(_) | Command::Check(_) | Command::Edit { .. } | Command::Rescan | Command::Stop => {
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
    let undo = if carried_out { Span(0) } else { undo.min(CancelRequest::LONGEST) };
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

fn move_job(turn: &mut Turn<'_>, row: &Job, to: Place, by: &Owner) -> Result<String, Reply> {
    let job = row.id;
    if let Some(Placed { position, passed }) = placed(&turn.world.queue, row, to)? {
        let passed = passed.and_then(|(other, new)| {
            let old = turn.world.queue.get(other)?.position;
            turn.emit(Event::PositionChanged { job: other, position: new, ranked: false });
            Some(Passed { job: other, old, new })
        });
        turn.emit(Event::PositionChanged { job, position, ranked: true });
        let old = Position { at: row.position, ranked: row.ranked };
        keep(turn, job, by, Changed::Place { old, new: position, passed });
    }
    Ok(format!("#{job} is moved"))
}
