//! `meter`: the ledger.

use super::args::MeterArgs;
use super::ls::hours;
use super::output::{Fit, Table, Tone};
use super::session::Session;
use super::{CliError, Exit, Io, Setup, Shown, when};
use crate::protocol::{GpuRow, MeterBy, MeterTable, Query, Reply, json};

pub(super) fn meter(args: &MeterArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let now = crate::clock::wall_ms();
    let moment = |what, typed: &Option<String>| {
        typed.as_deref().map(|typed| when::parse(what, typed, now, &setup.zone)).transpose()
    };
    let (since_ms, until_ms) = (moment("--since", &args.since)?, moment("--until", &args.until)?);
    let mut session = Session::open(setup)?;
    if args.check {
        return check(&mut session, io);
    }
    let Reply::Meter(table) = session.query(Query::Meter { by: args.by.into(), since_ms, until_ms })? else {
        return Err(CliError::Answer);
    };
    if args.json {
        io.json(&json::meter(&table, &setup.zone))?;
    } else if args.csv {
        io.show(&Shown::crlf(&csv(&table)))?;
    } else {
        let gpus =
            if table.by == MeterBy::Gpu { session.query(Query::Gpus)? } else { Reply::Gpus(Vec::new()) };
        let Reply::Gpus(gpus) = gpus else { return Err(CliError::Answer) };
        text(&table, &gpus, setup, io)?;
    }
    session.warn(io)?;
    Ok(Exit::Ok)
}

fn check(session: &mut Session, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let Reply::MeterChecked { leases, differences } = session.query(Query::MeterCheck)? else {
        return Err(CliError::Answer);
    };
    for difference in &differences {
        io.line(difference)?;
    }
    if differences.is_empty() {
        io.line(&format!("{leases} leases, and the ledger says the same"))?;
        return Ok(Exit::Ok);
    }
    io.line(&format!("{leases} leases, {} differences", differences.len()))?;
    Ok(Exit::Failed)
}

const fn title(by: MeterBy) -> &'static str {
    match by {
        MeterBy::User => "USER",
        MeterBy::Project => "PROJECT",
        MeterBy::Job => "JOB",
        MeterBy::Gpu => "GPU",
        MeterBy::Day => "DAY",
    }
}

/// `gpus` are those of the pool, to name the rows of a table by GPU.
fn text(table: &MeterTable, gpus: &[GpuRow], setup: &Setup, io: &mut Io<'_>) -> Result<(), CliError> {
    let costs = table.rows.iter().any(|row| row.cost.is_some());
    let by_gpu = table.by == MeterBy::Gpu;
    let mut columns = Vec::new();
    if by_gpu {
        columns.extend([("GPU", Fit::Right), ("NAME", Fit::Middle(10)), ("UUID", Fit::Middle(12))]);
    } else {
        columns.push((title(table.by), Fit::Middle(12)));
    }
    columns.extend([
        ("JOBS", Fit::Right),
        ("GPU-H", Fit::Right),
        ("CORE-H", Fit::Right),
        ("NOT BILLED", Fit::Right),
    ]);
    if costs {
        columns.push(("COST", Fit::Right));
    }
    let mut printed = Table::new(&columns);
    for row in &table.rows {
        if by_gpu {
            let gpu = gpus.iter().find(|gpu| gpu.uuid.0 == row.key);
            printed.cell(gpu.map_or("-".to_owned(), |gpu| gpu.index.to_string()), Tone::Plain);
            printed.cell(gpu.map_or("-".to_owned(), |gpu| gpu.name.clone()), Tone::Plain);
        }
        printed.cell(if row.key.is_empty() { "-" } else { row.key.as_str() }, Tone::Plain);
        printed.cell(row.jobs.to_string(), Tone::Plain);
        printed.cell(hours(row.gpu_ms), Tone::Plain);
        printed.cell(hours(row.core_ms), Tone::Plain);
        printed.cell(hours(row.waived_gpu_ms), Tone::Plain);
        if costs {
            printed.cell(row.cost.map_or("-".to_owned(), |cost| format!("{cost:.2}")), Tone::Plain);
        }
    }
    printed.print(io)?;
    let all: u64 = table.rows.iter().map(|row| row.gpu_ms).sum();
    let from = match table.since {
        Some(at) => format!("since {}", when::exact(at, &setup.zone)),
        None => "since the beginning".to_owned(),
    };
    let until = when::exact(table.until, &setup.zone);
    io.line(&format!("{} GPU-h {from} until {until}; {} GPUs held now", hours(all), table.held_now))
}

/// The figures as they are stored: whole milliseconds.
fn csv(table: &MeterTable) -> String {
    let title = title(table.by).to_lowercase();
    let lines = table.rows.iter().map(|row| {
        let key = field(&row.key);
        let cost = row.cost.map(|cost| cost.to_string()).unwrap_or_default();
        format!("{key},{},{},{},{},{cost}\r\n", row.jobs, row.gpu_ms, row.core_ms, row.waived_gpu_ms)
    });
    std::iter::once(format!("{title},jobs,gpu_ms,core_ms,waived_gpu_ms,cost\r\n")).chain(lines).collect()
}

/// Quoted where it has to be. A value that a spreadsheet would run as a formula becomes text.
fn field(text: &str) -> String {
    let text = crate::model::clean_line(text);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
