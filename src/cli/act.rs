//! The verbs that change something. Every command about a job carries the generation it was decided on.

use super::args::{CancelArgs, UndoArgs};
use super::output::{Fit, Table, Tone};
use super::session::Session;
use super::{CliError, Exit, Io, Setup, when};
use crate::client::{self, ClientError};
use crate::model::{Generation, JobId, Priority, Span};
use crate::protocol::{Command, GpuSelect, Place, Query, Reply, json};
use std::time::Duration;

/// How long a scheduler may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn cancel(args: &CancelArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let undo = args.undo.unwrap_or(Span(0));
    let now = args.now;
    each(&args.jobs, setup, io, |job, generation| Command::Cancel { job, generation, undo, now })
}

pub(super) fn undo(args: &UndoArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    if args.list {
        return list(&mut session, args.json, setup, io);
    }
    let job = args.job.as_deref().map(|typed| session.resolve(typed)).transpose()?.map(|(job, _)| job);
    let message = session.command(Command::Undo { job })?;
    io.line(&message)?;
    Ok(Exit::Ok)
}

fn list(session: &mut Session, json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let Reply::Undoable(rows) = session.query(Query::Undoable)? else { return Err(CliError::Answer) };
    if json {
        io.json(&json::undoable(&rows, &setup.zone))?;
        return Ok(Exit::Ok);
    }
    let columns = [
        ("ID", Fit::Right),
        ("NAME", Fit::Middle(8)),
        ("WHAT", Fit::End(12)),
        ("BY", Fit::Left),
        ("AT", Fit::Left),
        ("UNTIL", Fit::Left),
    ];
    let now = crate::clock::wall_ms();
    let mut table = Table::new(&columns);
    for row in &rows {
        table.cell(row.job.to_string(), Tone::Plain);
        table.cell(row.name.as_str(), Tone::Plain);
        table.cell(row.what.as_str(), Tone::Plain);
        table.cell(row.by.as_str(), Tone::Plain);
        table.cell(when::text(row.at, now, &setup.zone), Tone::Plain);
        table.cell(when::text(row.until, now, &setup.zone), Tone::Plain);
    }
    table.print(io)?;
    Ok(Exit::Ok)
}

pub(super) fn priority(
    job: &str,
    priority: Priority,
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    each(&[job.to_owned()], setup, io, |job, generation| Command::SetPriority { job, generation, priority })
}

pub(super) fn place(job: &str, to: Place, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each(&[job.to_owned()], setup, io, |job, generation| Command::Move { job, generation, to })
}

pub(super) fn pause(jobs: &[String], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each(jobs, setup, io, |job, generation| Command::Pause { job, generation })
}

pub(super) fn resume(jobs: &[String], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each(jobs, setup, io, |job, generation| Command::Resume { job, generation })
}

pub(super) fn retry(jobs: &[String], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each(jobs, setup, io, |job, generation| Command::Retry { job, generation })
}

pub(super) fn close(
    gpus: &[GpuSelect],
    reason: &str,
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    each_gpu(gpus, setup, io, |gpus| Command::Close { gpus, reason: reason.to_owned() })
}

pub(super) fn open(gpus: &[GpuSelect], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each_gpu(gpus, setup, io, |gpus| Command::Open { gpus })
}

pub(super) fn clear(gpus: &[GpuSelect], setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    each_gpu(gpus, setup, io, |gpu| Command::Clear { gpu })
}

pub(super) fn stop(setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let message = match Session::open(setup) {
        Ok(mut session) => match session.command(Command::Stop) {
            // It was told, and was gone before it could answer.
            Err(CliError::Client(ClientError::Closed)) => "the scheduler has ended; jobs go on".to_owned(),
            answer => answer?,
        },
        // It cannot be spoken to; that must not keep it from being replaced.
        Err(CliError::Client(ClientError::Version { .. })) => {
            client::end_scheduler(&setup.paths, PATIENCE)?;
            "the scheduler of the other version has ended; jobs go on".to_owned()
        }
        Err(error) => return Err(error),
    };
    io.line(&message)?;
    Ok(Exit::Ok)
}

/// One command for each job; a refusal is said and the others go on.
fn each(
    jobs: &[String],
    setup: &Setup,
    io: &mut Io<'_>,
    command: impl Fn(JobId, Generation) -> Command,
) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let mut exit = Exit::Ok;
    for typed in jobs {
        let one =
            session.resolve(typed).and_then(|(job, generation)| session.command(command(job, generation)));
        match one {
            Ok(message) => io.line(&message)?,
            Err(error @ CliError::Refused { .. }) => exit = super::said(&error, io)?,
            Err(error) => return Err(error),
        }
    }
    Ok(exit)
}

fn each_gpu(
    gpus: &[GpuSelect],
    setup: &Setup,
    io: &mut Io<'_>,
    command: impl Fn(GpuSelect) -> Command,
) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let mut exit = Exit::Ok;
    for gpu in gpus {
        match session.command(command(gpu.clone())) {
            Ok(message) => io.line(&message)?,
            Err(error @ CliError::Refused { .. }) => exit = super::said(&error, io)?,
            Err(error) => return Err(error),
        }
    }
    Ok(exit)
}
