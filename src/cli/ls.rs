//! `ls` and `gpus`: what there is.

use super::args::LsArgs;
use super::output::{Fit, Table, Tone};
use super::session::Session;
use super::values::State;
use super::{CliError, Exit, Io, Setup, when};
use crate::model::{Cursor, DeviceState, Now, Outcome, Span};
use crate::protocol::{GpuRow, JobRow, Query, Reply, json};
use crate::tui::Filter;
use jiff::tz::TimeZone;
use std::borrow::Cow;

pub(super) fn ls(args: &LsArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let now = crate::clock::now();
    let since = args
        .since
        .as_deref()
        .map(|typed| when::parse("--since", typed, now.wall_ms, &setup.zone))
        .transpose()?;
    let filter = filter(args.filter.as_deref().unwrap_or_default())?;
    let ended =
        args.all || args.state.iter().any(|state| *state == State::Done || outcome_word(*state).is_some());
    let done = if ended { u32::MAX } else { 0 };
    let wanted = |row: &JobRow| {
        since.is_none_or(|since| row.submitted_at >= since)
            && args.user.as_ref().is_none_or(|user| row.user == *user)
            && filter.matches(row)
            && args.project.as_ref().is_none_or(|project| row.project.as_ref() == Some(project))
            && (args.state.is_empty() || args.state.iter().any(|state| is_in(row, *state)))
    };
    let mut session = Session::open(setup)?;
    if args.json {
        let mut rows = Vec::new();
        session.jobs(done, |part| rows.extend(part.into_iter().filter(wanted)))?;
        io.json(&json::ls(&rows, &crate::clock::now(), &setup.zone))?;
        session.warn(io)?;
        return Ok(Exit::Ok);
    }
    let mut listing = Listing::new(now, &setup.zone);
    let mut hidden = 0;
    session.jobs(done, |part| {
        hidden += part.len();
        for row in part.iter().filter(|row| wanted(row)) {
            listing.add(row);
        }
    })?;
    if listing.rows == 0 {
        io.note(&match hidden {
            0 if args.all => "no job".to_owned(),
            0 => "no job waits or runs (--all lists those that are done)".to_owned(),
            _ => {
                let more = if ended { "" } else { " (--all looks among those that are done too)" };
                format!("no job matches, of {hidden}{more}")
            }
        });
    } else {
        listing.print(io)?;
    }
    session.warn_of_refused(io);
    session.warn(io)?;
    Ok(Exit::Ok)
}

/// A filter that can be read; else where it cannot.
fn filter(text: &str) -> Result<Filter, CliError> {
    let filter = Filter::from(text);
    match filter.error() {
        None => Ok(filter),
        Some(error) => {
            let word =
                text.get(error.at..).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
            Err(CliError::Usage { what: format!("--filter {word}"), why: error.why.clone() })
        }
    }
}

/// The rows as people read them. Public for the measurement of 10,000 of them.
pub fn table(rows: &[JobRow], now: &Now, zone: &TimeZone, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut listing = Listing::new(*now, zone);
    for row in rows {
        listing.add(row);
    }
    listing.print(io)
}

const COLUMNS: [(&str, Fit); 10] = [
    ("#", Fit::Right),
    ("ID", Fit::Right),
    ("STATE", Fit::Left),
    ("USER", Fit::End(6)),
    ("NAME", Fit::Middle(12)),
    ("GPU", Fit::Right),
    (PRIORITY, Fit::Right),
    ("HELD", Fit::Right),
    ("TIME", Fit::Right),
    ("WHY / WHERE", Fit::End(11)),
];
const PRIORITY: &str = "PRIO";

/// A table of jobs that grows while the next rows are on their way.
struct Listing<'a> {
    now: Now,
    zone: &'a TimeZone,
    table: Table<'static>,
    rows: usize,
    /// Some row has a priority of its own.
    prioritised: bool,
}

impl<'a> Listing<'a> {
    fn new(now: Now, zone: &'a TimeZone) -> Self {
        Self { now, zone, table: Table::new(&COLUMNS), rows: 0, prioritised: false }
    }

    fn add(&mut self, row: &JobRow) {
        let Self { now, zone, table, .. } = self;
        table.cell(row.place.map_or(Cow::Borrowed(""), |place| place.to_string().into()), Tone::Dim);
        table.cell(row.id.to_string(), Tone::Plain);
        table.cell(word(row), tone(row));
        table.cell(row.user.clone(), Tone::Plain);
        table.cell(row.name.clone(), Tone::Plain);
        table.cell(row.gpus.to_string(), Tone::Plain);
        table.cell(row.priority.to_string(), Tone::Plain);
        let gpu_ms = row.gpu_ms(now);
        table.cell(if gpu_ms == 0 { Cow::Borrowed("-") } else { hours(gpu_ms).into() }, Tone::Plain);
        table.cell(time(row, now).map_or(Cow::Borrowed("-"), |span| span.to_string().into()), Tone::Plain);
        table.cell(why(row, now, zone).into_owned(), Tone::Plain);
        self.rows += 1;
        self.prioritised |= row.priority.get() != 0;
    }

    fn print(mut self, io: &mut Io<'_>) -> Result<(), CliError> {
        // On a terminal a column of noughts is not worth its room; for programs that read it the columns stay.
        if io.width.is_some() && !self.prioritised {
            self.table.hide(PRIORITY);
        }
        self.table.print(io)
    }
}

/// GPU-hours to two digits.
pub(super) fn hours(ms: u64) -> String {
    format!("{:.2}", ms as f64 / 3_600_000.0)
}

/// A job's state in one word: how it ended, once it has.
pub(super) fn word(row: &JobRow) -> &'static str {
    match (&row.outcome, row.state) {
        (Some(outcome), Cursor::Done) => outcome.word(),
        (_, state) if row.cancel_at.is_some() && state != Cursor::Done => "cancelling",
        (_, Cursor::Queued) if row.editing.is_some() => "editing",
        (_, Cursor::Queued) if row.paused_by.is_some() => "paused",
        (_, state) => state.word(),
    }
}

pub(super) fn tone(row: &JobRow) -> Tone {
    match (&row.outcome, row.state) {
        (Some(outcome), Cursor::Done) => match outcome {
            Outcome::Succeeded => Tone::Good,
            Outcome::Cancelled { .. } => Tone::Dim,
            Outcome::Failed(_)
            | Outcome::LimitReached
            | Outcome::NeverStarted { .. }
            | Outcome::Lost { .. } => Tone::Bad,
        },
        (_, Cursor::Renting | Cursor::Running | Cursor::Returning | Cursor::Releasing) => Tone::Busy,
        (_, Cursor::Queued | Cursor::Done) => Tone::Plain,
    }
}

/// How long it waits, holds, or held.
fn time(row: &JobRow, now: &Now) -> Option<Span> {
    let (from, to) = match (row.rented_at, row.state) {
        (None, Cursor::Done) => return None,
        (None, _) => (row.submitted_at, now.wall_ms),
        (Some(rented), _) => (rented, row.ended_at.unwrap_or(now.wall_ms)),
    };
    // The wall clock may have been set back in between.
    Some(Span(u64::try_from(to - from).unwrap_or(0)))
}

fn why<'a>(row: &'a JobRow, now: &Now, zone: &TimeZone) -> Cow<'a, str> {
    if let (Some(outcome), Cursor::Done) = (&row.outcome, row.state) {
        let at = row.done_at.map(|at| when::text(at, now.wall_ms, zone)).unwrap_or_default();
        return match outcome {
            Outcome::Succeeded | Outcome::LimitReached => at.into(),
            Outcome::Failed(failure) => format!("{at} {failure}").into(),
            Outcome::Cancelled { by } => format!("{at} by {by}").into(),
            Outcome::NeverStarted { why } | Outcome::Lost { why } => format!("{at} {why}").into(),
        };
    }
    let mut text = Cow::Borrowed(row.why.as_deref().or(row.staging.as_deref()).unwrap_or_default());
    let mut add = |part: &str| {
        let text = text.to_mut();
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(part);
    };
    if row.late {
        add("late");
    }
    if let Some(at) = row.starts_at.filter(|_| row.state == Cursor::Queued) {
        add(&format!("about {}", when::text(at, now.wall_ms, zone)));
    }
    text
}

const fn outcome_word(state: State) -> Option<&'static str> {
    match state {
        State::Succeeded => Some("succeeded"),
        State::Failed => Some("failed"),
        State::LimitReached => Some("limit_reached"),
        State::Cancelled => Some("cancelled"),
        State::NeverStarted => Some("never_started"),
        State::Lost => Some("lost"),
        State::Queued
        | State::Paused
        | State::Renting
        | State::Running
        | State::Returning
        | State::Releasing
        | State::Done => None,
    }
}

fn is_in(row: &JobRow, state: State) -> bool {
    match state {
        State::Queued => row.state == Cursor::Queued,
        State::Paused => row.state == Cursor::Queued && row.paused_by.is_some(),
        State::Renting => row.state == Cursor::Renting,
        State::Running => row.state == Cursor::Running,
        State::Returning => row.state == Cursor::Returning,
        State::Releasing => row.state == Cursor::Releasing,
        State::Done => row.state == Cursor::Done,
        State::Succeeded
        | State::Failed
        | State::LimitReached
        | State::Cancelled
        | State::NeverStarted
        | State::Lost => row.outcome.as_ref().map(Outcome::word) == outcome_word(state),
    }
}

pub(super) fn gpus(json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let Reply::Gpus(rows) = session.query(Query::Gpus)? else {
        return Err(CliError::Answer);
    };
    if json {
        io.json(&json::gpus(&rows))?;
    } else if rows.is_empty() {
        io.note("no GPU in the pool");
        // The scheduler knows why: a driver that refuses is one of its notices.
        if let Reply::Notices(notices) = session.query(Query::Notices)? {
            for notice in notices {
                io.note(&notice.text);
            }
        }
        return Ok(Exit::Ok);
    } else {
        gpu_table(&rows, io)?;
    }
    session.warn(io)?;
    Ok(Exit::Ok)
}

fn gpu_table(rows: &[GpuRow], io: &mut Io<'_>) -> Result<(), CliError> {
    let columns = [
        ("GPU", Fit::Right),
        ("STATE", Fit::Left),
        ("LOAD", Fit::Right),
        ("MEMORY", Fit::Right),
        ("TEMP", Fit::Right),
        ("POWER", Fit::Right),
        ("NAME", Fit::Middle(10)),
        ("JOBS / WHO", Fit::End(10)),
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.cell(row.index.to_string(), Tone::Plain);
        table.cell(row.state.word(), device_tone(&row.state));
        table.cell(maybe(row.utilisation, "%"), Tone::Plain);
        let used = row.memory_used.map_or("-".to_owned(), |used| used.to_string());
        table.cell(format!("{used} / {}", row.memory_total), Tone::Plain);
        table.cell(maybe(row.temperature_c, "C"), Tone::Plain);
        table.cell(maybe(row.power_w, "W"), Tone::Plain);
        table.cell(row.name.as_str(), Tone::Plain);
        let jobs: Vec<String> = row.jobs.iter().map(|job| format!("#{job}")).collect();
        let mut who = jobs.join(" ");
        if let Some(detail) = &row.detail {
            who = if who.is_empty() { detail.clone() } else { format!("{who}, {detail}") };
        }
        table.cell(who, Tone::Plain);
    }
    table.print(io)
}

/// What is unknown is a dash, never 0.
fn maybe(value: Option<impl std::fmt::Display>, unit: &str) -> Cow<'static, str> {
    value.map_or(Cow::Borrowed("-"), |value| format!("{value}{unit}").into())
}

pub(super) const fn device_tone(state: &DeviceState) -> Tone {
    match state {
        DeviceState::Free => Tone::Good,
        DeviceState::Held { .. } | DeviceState::Draining { .. } => Tone::Busy,
        DeviceState::Quarantined(_) | DeviceState::Gone { .. } | DeviceState::Unknown { .. } => Tone::Bad,
        DeviceState::Outside { .. } | DeviceState::Closed { .. } => Tone::Dim,
    }
}
