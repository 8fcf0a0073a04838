//! The demo: everything for real over simulated GPUs in a throw-away root.

use super::{background, complain, fail, samples, show};
use crate::cli::{CliError, DashboardArgs, DemoArgs, Exit, Setup};
use crate::client::{Client, ClientError};
use crate::config::Paths;
use crate::model::{Generation, JobId, JobState, Span, chain};
use crate::protocol::{Command, JobRow, Query, Reply, Request, Snapshot, Update};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

/// Between two drops.
const PACE: Duration = Duration::from_millis(1_200);
/// The sample jobs take a fraction of this.
const DEADLINE_MS: u64 = 10 * 60_000;

/// Runs the demo.
pub(super) fn run(setup: &Setup, args: &DemoArgs) -> ExitCode {
    let root = match throw_away() {
        Ok(root) => root,
        Err(error) => return complain(&format!("cannot make a folder for the demo: {error}")),
    };
    let mut setup = setup.clone();
    setup.paths = Paths::below(&root);
    // The demo is the same everywhere: nobody's own settings reach it.
    setup.config =
        crate::config::Config { theme: setup.config.theme, ui: setup.config.ui, ..Default::default() };
    let arguments = [
        "--gpus".into(),
        format!("simulated:{}", args.gpus).into(),
        "--seed".into(),
        args.seed.to_string().into(),
    ];
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let plain = crate::tui::refusal(terminal, setup.environment.term.as_deref()).is_some();
    // However this process ends, its scheduler sees that and clears up.
    let (code, alive) = match background::start_throw_away(&setup, &arguments) {
        Err(error) => (fail(&error), None),
        Ok(alive) => (if plain { in_lines(&setup) } else { on_screen(&setup, &args.dashboard) }, alive),
    };
    clear_away(&setup, &root);
    drop(alive);
    code
}

/// Without a terminal: progress lines, and exit code 0 if all ended as expected.
fn in_lines(setup: &Setup) -> ExitCode {
    let dropper = Dropper::start(setup.paths.inbox());
    let result = follow(setup);
    drop(dropper);
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => Exit::Failed.into(),
        Err(error) => fail(&error),
    }
}

fn on_screen(setup: &Setup, args: &DashboardArgs) -> ExitCode {
    let dropper = Dropper::start(setup.paths.inbox());
    let code = show(setup, args);
    drop(dropper);
    code
}

/// Prints each change until all sample jobs are done; whether all ended as expected.
fn follow(setup: &Setup) -> Result<bool, CliError> {
    let expected = expected();
    let began = crate::clock::monotonic();
    let mut client = Client::connect(&setup.paths, Duration::from_secs(5))?;
    say(&format!("demo in {}: {} sample jobs on simulated GPUs", setup.paths.root.display(), expected.len()));
    client.request(Request::Subscribe { every_ms: 100 })?;
    let mut seen: HashMap<JobId, JobState> = HashMap::new();
    let mut outcomes: HashMap<String, String> = HashMap::new();
    while outcomes.len() < expected.len() {
        let update: Update = client.next_update()?;
        let took = Span(crate::clock::monotonic().0 - began.0);
        for row in &update.rows {
            if seen.insert(row.id, row.state) != Some(row.state) {
                say(&line(row, took));
            }
            if let Some(outcome) = &row.outcome {
                outcomes.insert(row.name.clone(), outcome.word().to_owned());
            }
        }
        if took.0 > DEADLINE_MS {
            break;
        }
    }
    let mut as_expected = true;
    for (name, wanted) in &expected {
        let found = outcomes.get(name).map_or("nothing", String::as_str);
        if found != wanted {
            as_expected = false;
            say(&format!("{name}: {found}, expected {wanted}"));
        }
    }
    if let Reply::Meter(table) = client_meter(setup)? {
        for row in table.rows {
            let seconds = row.gpu_ms as f64 / 1000.0;
            say(&format!("meter: {} held {seconds:.1} GPU-seconds over {} jobs", row.key, row.jobs));
        }
    }
    say(if as_expected { "all ended as expected" } else { "not all ended as expected" });
    Ok(as_expected)
}

fn client_meter(setup: &Setup) -> Result<Reply, CliError> {
    let mut client = Client::connect(&setup.paths, Duration::from_secs(5))?;
    let query = Query::Meter { by: crate::protocol::MeterBy::User, since_ms: None, until_ms: None };
    Ok(client.request(Request::Query(query))?)
}

fn line(row: &JobRow, took: Span) -> String {
    let seconds = took.0 as f64 / 1000.0;
    let what = match (&row.outcome, row.state) {
        (Some(outcome), _) => outcome.to_string(),
        (None, JobState::Queued) => format!("queued: {}", row.why.as_deref().unwrap_or("next")),
        (None, state) => match &row.why {
            Some(why) => format!("{}: {why}", state.word()),
            None => state.word().to_owned(),
        },
    };
    format!("{seconds:6.1}s  #{:<3} {:<18} {what}", row.id.to_string(), row.name)
}

fn say(text: &str) {
    // A reader that has seen enough is no failure of the demo.
    drop(writeln!(std::io::stdout(), "{}", crate::model::clean_line(text)));
}

/// `NAME OUTCOME` of every sample job, in the order in which they are dropped.
fn expected() -> Vec<(String, String)> {
    samples::EXPECTED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(name, outcome)| (name.to_owned(), outcome.trim().to_owned()))
        .collect()
}

/// Drops the sample jobs one after another, as a person would.
struct Dropper {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Dropper {
    fn start(inbox: PathBuf) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("dropper".to_owned()).spawn(move || {
            for (name, _) in expected() {
                if let Err(error) = put(&inbox, &name) {
                    tracing::warn!(%error, name, "cannot drop a sample job");
                }
                if stopped.recv_timeout(PACE) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Dropper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Writes one sample beside the inbox, then renames it in: a drop is whole from its first moment.
fn put(inbox: &Path, name: &str) -> std::io::Result<()> {
    let beside = inbox.with_file_name(".demo");
    let folder = format!("{name}/");
    let file = format!("{name}.yaml");
    for (path, text) in samples::FILES.iter().filter(|(path, _)| path.starts_with(&folder) || *path == file) {
        let to = beside.join(path);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&to, text)?;
    }
    let is_file = samples::FILES.iter().any(|(path, _)| *path == file);
    let entry = if is_file { file.as_str() } else { name };
    std::fs::rename(beside.join(entry), inbox.join(entry))
}

fn throw_away() -> std::io::Result<PathBuf> {
    let mut random = [0_u8; 6];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let number = random.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let root = std::env::temp_dir().join(format!("overnight-demo-{number:012x}"));
    std::fs::create_dir(&root)?;
    Ok(root)
}

/// Ends what still runs, then the scheduler, then the folder.
fn clear_away(setup: &Setup, root: &Path) {
    if let Err(error) = end_jobs(setup)
        && !matches!(error, ClientError::NoScheduler { .. } | ClientError::Closed)
    {
        complain(&format!("cannot end the demo's jobs: {}", chain(&error)));
    }
    if let Err(error) = crate::files::remove_tree(root) {
        complain(&format!("cannot remove {}: {}", root.display(), chain(&error)));
    }
}

fn end_jobs(setup: &Setup) -> Result<(), ClientError> {
    let mut client = Client::connect(&setup.paths, Duration::from_secs(5))?;
    client.request(Request::Subscribe { every_ms: 50 })?;
    let mut picture = Snapshot::default();
    let mut live: HashMap<JobId, Generation> = HashMap::new();
    loop {
        // Nothing else is asked on this connection, so that each update builds on the one before.
        let _whole = picture.fold(client.next_update()?);
        live.retain(|id, _| picture.jobs.iter().any(|row| row.id == *id));
        for row in &picture.jobs {
            let new = live.insert(row.id, row.generation) != Some(row.generation);
            if new && matches!(row.state, JobState::Queued | JobState::Renting | JobState::Running) {
                let cancel =
                    Command::Cancel { job: row.id, generation: row.generation, undo: Span(0), now: true };
                client.request(Request::Command(cancel))?;
            }
        }
        if live.is_empty() {
            break;
        }
    }
    client.request(Request::Command(Command::Stop))?;
    // It has ended once it closes the connection.
    while client.next_update().is_ok() {}
    Ok(())
}
