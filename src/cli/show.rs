//! `show` and `receipt`: one job.

use super::args::OneJob;
use super::ls::{hours, tone, word};
use super::output::{Fit, Table, Tone};
use super::session::Session;
use super::{CliError, Exit, Io, Setup, Shown, folder, when};
use crate::beneath;
use crate::client::ClientError;
use crate::model::{Cursor, Limit};
use crate::protocol::{JobDetail, json};
use std::io::Read;
use std::path::Path;

/// A receipt with a hundred thousand outputs is a fifth of this.
const RECEIPT_BYTES: u64 = 256 << 20;

pub(super) fn show(args: &OneJob, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let (job, _) = session.resolve(&args.job)?;
    let detail = session.job(job)?;
    if args.json {
        io.json(&json::show(&detail, &setup.zone))?;
    } else {
        text(&detail, setup, io)?;
    }
    session.warn(io)?;
    Ok(Exit::Ok)
}

/// From the scheduler, or from the job's folder where none runs.
pub(super) fn receipt(args: &OneJob, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = match Session::open(setup) {
        Ok(session) => session,
        Err(error @ CliError::Client(ClientError::NoScheduler { .. })) => {
            let name = if args.json { "receipt.json" } else { "receipt.md" };
            let Some(text) = folder::of(&args.job, &setup.paths).and_then(|folder| read(&folder.join(name)))
            else {
                return Err(error);
            };
            io.show(&if args.json { Shown::json(&text) } else { Shown::text(&text) })?;
            return Ok(Exit::Ok);
        }
        Err(error) => return Err(error),
    };
    let (job, _) = session.resolve(&args.job)?;
    let detail = session.job(job)?;
    if detail.row.state != Cursor::Done {
        let message = format!(
            "job {job} is not done yet: {}; `overnight show {job}` says more",
            detail.row.state.word()
        );
        return Err(CliError::Refused { message });
    }
    if args.json {
        io.json(&json::show(&detail, &setup.zone))?;
    } else {
        io.show(&Shown::text(&json::receipt_markdown(&detail, &setup.zone)))?;
    }
    Ok(Exit::Ok)
}

fn text(detail: &JobDetail, setup: &Setup, io: &mut Io<'_>) -> Result<(), CliError> {
    let columns = [("JOB", Fit::Left), (detail.row.name.as_str(), Fit::End(40))];
    let mut table = Table::new(&columns);
    for (name, value, tone) in request(detail).into_iter().chain(course(detail, setup)) {
        table.cell(name, Tone::Dim);
        table.cell(value, tone);
    }
    table.print(io)?;
    steps(detail, setup, io)?;
    attempts(detail, setup, io)?;
    outputs(detail, io)?;
    for (title, lines) in [("warning", &detail.warnings), ("note", &detail.notes)] {
        for line in lines {
            io.line(&format!("{title}: {line}"))?;
        }
    }
    let spec = json::pretty(&detail.spec).map_err(|source| CliError::Json { source })?;
    io.gap()?;
    io.show(&Shown::text(&spec))?;
    io.gap()
}

/// A file in a job's folder, if it is one and not a pipe that the work has put in its place.
fn read(path: &Path) -> Option<String> {
    let (file, _) = beneath::named_file(path).ok()?;
    let mut text = String::new();
    file.take(RECEIPT_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

type Fact = (&'static str, String, Tone);

/// What it is and asks for.
fn request(detail: &JobDetail) -> Vec<Fact> {
    let row = &detail.row;
    let limit = match row.limit {
        Limit::For(span) => span.to_string(),
        Limit::UntilDone => "until done".to_owned(),
    };
    let state = row.outcome.as_ref().map_or_else(|| word(row).to_owned(), ToString::to_string);
    let mut facts = vec![
        ("number", row.id.to_string(), Tone::Plain),
        ("state", state, tone(row)),
        ("owner", row.user.clone(), Tone::Plain),
    ];
    let mut plain = |name, value| facts.push((name, value, Tone::Plain));
    if let Some(project) = &row.project {
        plain("project", project.clone());
    }
    plain("asks for", format!("{} GPU, {} cores, {}, for {limit}", row.gpus, row.cpus, row.memory));
    plain("priority", row.priority.to_string());
    if let Some(of) = row.retry_of {
        plain("retries", format!("#{of}"));
    }
    plain("command", row.command.clone());
    plain("folder", row.directory.display().to_string());
    plain("log", row.log.display().to_string());
    facts
}

/// Where it is, and what it has used.
fn course(detail: &JobDetail, setup: &Setup) -> Vec<Fact> {
    let row = &detail.row;
    let mut facts = Vec::new();
    let mut plain = |name, value| facts.push((name, value, Tone::Plain));
    if let Some(place) = row.place {
        plain("place", place.to_string());
    }
    if let Some(why) = &row.why {
        plain("why", why.clone());
    }
    let moments = [
        ("starts about", row.starts_at),
        ("starts by", row.starts_by),
        ("ends about", row.finishes_at),
        ("limit at", row.limit_at.filter(|_| row.state != Cursor::Done)),
        ("finish by", row.finish_by),
        ("cancel at", row.cancel_at),
        ("tried again", row.retry_at),
    ];
    for (name, at) in moments {
        if let Some(at) = at {
            let late = if name == "finish by" && row.late { ", late" } else { "" };
            plain(name, format!("{}{late}", when::exact(at, &setup.zone)));
        }
    }
    let (gpu, core) = (hours(row.gpu_ms(&detail.at)), hours(row.core_ms(&detail.at)));
    plain("held", format!("{gpu} GPU-h, {core} core-h"));
    if let Some(enforcement) = detail.attempts.iter().rev().find_map(|row| row.enforcement.as_ref()) {
        plain("limits", enforcement.to_string());
    }
    if let Some(peak) = row.peak_memory {
        plain("peak memory", peak.to_string());
    }
    if let Some(percent) = row.mean_utilisation {
        plain("mean load", format!("{percent}%"));
    }
    if !row.gpu_indices.is_empty() {
        let indices: Vec<String> = row.gpu_indices.iter().map(ToString::to_string).collect();
        plain("on GPU", indices.join(","));
    }
    facts
}

fn steps(detail: &JobDetail, setup: &Setup, io: &mut Io<'_>) -> Result<(), CliError> {
    io.gap()?;
    let columns = [("STEP", Fit::Left), ("REACHED", Fit::Left)];
    let mut table = Table::new(&columns);
    for step in &detail.steps {
        table.cell(step.step.as_str(), Tone::Plain);
        table.cell(step.at.map_or("-".to_owned(), |at| when::exact(at, &setup.zone)), Tone::Plain);
    }
    table.print(io)
}

fn attempts(detail: &JobDetail, setup: &Setup, io: &mut Io<'_>) -> Result<(), CliError> {
    if detail.attempts.iter().all(|row| row.lease.is_none()) {
        return Ok(());
    }
    io.gap()?;
    let columns = [
        ("TASK", Fit::Right),
        ("TRY", Fit::Right),
        ("STATE", Fit::Left),
        ("GRANTED", Fit::Left),
        ("HELD", Fit::Right),
        ("GPU-H", Fit::Right),
        ("RELEASE", Fit::End(12)),
    ];
    let mut table = Table::new(&columns);
    for row in &detail.attempts {
        table.cell(row.task.to_string(), Tone::Plain);
        table.cell(row.attempt.to_string(), Tone::Plain);
        table.cell(
            row.outcome.as_ref().map_or_else(|| row.state.word().to_owned(), ToString::to_string),
            Tone::Plain,
        );
        table
            .cell(row.granted.map_or("-".to_owned(), |at| when::exact(at.wall_ms, &setup.zone)), Tone::Plain);
        table.cell(row.held.map_or("-".to_owned(), |span| span.to_string()), Tone::Plain);
        table.cell(hours(row.gpu_ms), Tone::Plain);
        table.cell(
            match &row.verdict {
                None => "pending".to_owned(),
                Some(crate::model::Verdict::Clean) => "clean".to_owned(),
                Some(crate::model::Verdict::Quarantined { detail }) => format!("quarantined: {detail}"),
            },
            Tone::Plain,
        );
    }
    table.print(io)
}

fn outputs(detail: &JobDetail, io: &mut Io<'_>) -> Result<(), CliError> {
    if detail.outputs.is_empty() {
        return Ok(());
    }
    io.gap()?;
    let columns = [("SIZE", Fit::Right), ("CAME BACK", Fit::Middle(20)), ("", Fit::Left)];
    let mut table = Table::new(&columns);
    for (_, file) in &detail.outputs {
        table.cell(file.bytes.to_string(), Tone::Plain);
        table.cell(file.path.display().to_string(), Tone::Plain);
        table.cell(if file.partial { "partial" } else { "" }, Tone::Plain);
    }
    table.print(io)
}
