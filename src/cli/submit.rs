//! `submit`, `check` and `new`.

use super::args::{CheckArgs, OverrideArgs, SubmitArgs};
use super::jobfiles::{Source, print_findings};
use super::session::Session;
use super::{CliError, Exit, Io, Setup, Shown, drop_file, follow, when};
use crate::client::ClientError;
use crate::model::JobId;
use crate::protocol::{Command, Overrides, Reply, Request, SubmittedJob};
use jiff::tz::TimeZone;

impl OverrideArgs {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            name: self.name.clone(),
            env: self.env.iter().cloned().collect(),
            gpus: self.gpus,
            limit: self.limit,
            priority: None,
        }
    }
}

/// Submits each file; one that is refused does not keep the others from being accepted.
pub(super) fn submit(args: &SubmitArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    if args.overrides.name.is_some() && args.files.len() > 1 {
        return Err(CliError::Usage { what: "--name".to_owned(), why: "names one file's job".to_owned() });
    }
    let overrides = args.overrides.overrides();
    let Some(mut session) = connect(setup)? else {
        return without_scheduler(args, &overrides, setup, io);
    };
    let mut accepted = Vec::new();
    let mut exit = Exit::Ok;
    for file in &args.files {
        let source = match Source::read(file, &setup.config) {
            Ok(source) => source,
            Err(error) => {
                exit = super::said(&error, io)?;
                continue;
            }
        };
        let file = source.submit_file(setup, &overrides, args.paused);
        let command = if args.dry_run { Command::Check(file) } else { Command::Submit(file) };
        match session.ask(Request::Command(command)) {
            Ok(Reply::Submitted { jobs, diagnostics }) => {
                print_findings(&diagnostics, io)?;
                for job in &jobs {
                    io.line(&fate(job, &setup.zone))?;
                }
                accepted.extend(jobs.iter().filter_map(|job| job.id));
            }
            Ok(Reply::Checked { jobs, diagnostics }) => {
                if checked(&source.shown, &jobs, &diagnostics, setup, io)? == Exit::Failed {
                    exit = Exit::Failed;
                }
            }
            Ok(Reply::Invalid { diagnostics }) => {
                print_findings(&diagnostics, io)?;
                exit = Exit::Failed;
            }
            Ok(_) => return Err(CliError::Answer),
            Err(error @ CliError::Refused { .. }) => exit = super::said(&error, io)?,
            Err(error) => return Err(error),
        }
    }
    io.flush()?;
    if args.wait && !accepted.is_empty() {
        let waited = follow::until_done(&mut session, &accepted, setup, io)?;
        return Ok(if exit == Exit::Ok { waited } else { exit });
    }
    Ok(exit)
}

/// Says what is wrong with each file, and what would become of its jobs.
pub(super) fn check(args: &CheckArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    if args.schema {
        let text = serde_json::to_string_pretty(&crate::jobfile::schema())
            .map_err(|source| CliError::Json { source })?;
        io.show(&Shown::text(&text))?;
        io.gap()?;
        return Ok(Exit::Ok);
    }
    let mut session = connect(setup)?;
    let none = Overrides::default();
    let mut exit = Exit::Ok;
    for file in &args.files {
        let one = Source::read(file, &setup.config).and_then(|source| match &mut session {
            Some(session) => {
                let file = source.submit_file(setup, &none, false);
                match session.ask(Request::Command(Command::Check(file)))? {
                    Reply::Checked { jobs, diagnostics } => {
                        checked(&source.shown, &jobs, &diagnostics, setup, io)
                    }
                    Reply::Invalid { diagnostics } => checked(&source.shown, &[], &diagnostics, setup, io),
                    _ => Err(CliError::Answer),
                }
            }
            None => checked_alone(&source, &none, setup, io),
        });
        match one {
            Ok(Exit::Ok) => {}
            Ok(_) => exit = Exit::Failed,
            Err(error @ (CliError::Refused { .. } | CliError::File { .. })) => {
                exit = super::said(&error, io)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(exit)
}

fn checked(
    shown: &str,
    jobs: &[SubmittedJob],
    findings: &[crate::protocol::Diagnostic],
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    if print_findings(findings, io)? {
        return Ok(Exit::Failed);
    }
    for job in jobs {
        io.line(&format!("{shown}: ok: {}", fate(job, &setup.zone)))?;
    }
    Ok(Exit::Ok)
}

fn checked_alone(
    source: &Source,
    overrides: &Overrides,
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    let parsed = source.parse(setup, source.base.as_deref(), overrides)?;
    if print_findings(&parsed.diagnostics, io)? {
        return Ok(Exit::Failed);
    }
    for (job, _) in &parsed.jobs {
        io.line(&format!(
            "{}: ok: {}, not checked against a pool: no scheduler runs",
            source.shown, job.name
        ))?;
    }
    Ok(Exit::Ok)
}

/// The scheduler, or `None` if there is none. One that does not answer is an error, never taken for none.
fn connect(setup: &Setup) -> Result<Option<Session>, CliError> {
    match Session::open(setup) {
        Ok(session) => Ok(Some(session)),
        Err(CliError::Client(ClientError::NoScheduler { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Files go to the inbox; what cannot be said there is refused instead of lost.
fn without_scheduler(
    args: &SubmitArgs,
    overrides: &Overrides,
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    let nobody = || CliError::Client(ClientError::NoScheduler { state: setup.paths.state.clone() });
    if !args.dry_run && (args.paused || *overrides != Overrides::default()) {
        io.note("without a scheduler a file goes to the inbox as it is: leave out --name, --env, --gpus, --for, --paused, or");
        return Err(nobody());
    }
    let mut exit = Exit::Ok;
    for file in &args.files {
        let one = Source::read(file, &setup.config).and_then(|source| {
            if args.dry_run {
                return checked_alone(&source, overrides, setup, io);
            }
            // In the inbox a single file has no directory of its own for relative paths to start in.
            let base = source.base.as_deref().filter(|_| source.folder);
            let parsed = source.parse(setup, base, overrides)?;
            if print_findings(&parsed.diagnostics, io)? {
                return Ok(Exit::Failed);
            }
            let place = drop_file::into_inbox(&source, &setup.paths)?;
            io.line(&format!("no scheduler runs: left in {}; it is taken when one starts", place.display()))?;
            Ok(Exit::Ok)
        });
        match one {
            Ok(Exit::Ok) => {}
            Ok(_) => exit = Exit::Failed,
            Err(error @ (CliError::Refused { .. } | CliError::File { .. })) => {
                exit = super::said(&error, io)?;
            }
            Err(error) => return Err(error),
        }
    }
    io.flush()?;
    if args.wait && exit == Exit::Ok { Err(nobody()) } else { Ok(exit) }
}

/// What becomes of a job, in one line: `17 retrain: place 3, starts about 14:20: needs 8 free`.
pub(super) fn fate(job: &SubmittedJob, zone: &TimeZone) -> String {
    let now = crate::clock::wall_ms();
    let time = |at: i64| when::text(at, now, zone);
    // One that is paused has no place in line and does not start either.
    let waits = job.why.is_some();
    let mut parts = vec![match (job.place, job.id) {
        (Some(place), Some(_)) => format!("place {place}"),
        (Some(place), None) => format!("would be place {place}"),
        (None, Some(_)) if waits => "waits".to_owned(),
        (None, None) if waits => "would wait".to_owned(),
        (None, Some(_)) => "starts at once".to_owned(),
        (None, None) => "would start at once".to_owned(),
    }];
    if job.place.is_some() {
        parts.extend(job.starts_at.map(|at| format!("starts about {}", time(at))));
        parts.extend(job.starts_by.map(|by| format!("no later than {}", time(by))));
    }
    if job.late {
        parts.push("will miss its deadline".to_owned());
    }
    let name = job.id.map_or_else(|| job.name.clone(), |JobId(id)| format!("{id} {}", job.name));
    let why = job.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{name}: {}{why}", parts.join(", "))
}
