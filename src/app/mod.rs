//! The composition root: puts the parts together for each way in which the program is run. Layer 3.

mod background;
mod connector;
mod demo;
mod samples;

use crate::cli::{self, CliError, DashboardArgs, Exit, Invocation, ServeArgs, Setup};
use crate::config::{Environment, GpuSource, Spinner};
use crate::daemon::{self, DaemonError, ServeSetup};
use crate::engine::EngineError;
use crate::gpu::{self, GpuChoice, GpuError};
use crate::model::{Span, Uuid, chain};
use crate::store::StoreError;
use crate::supervisor::spec::NOT_LISTED;
use crate::tui;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// How long a terminal has to say what its background is.
const ANSWERS_WITHIN: Span = Span::secs(1);

/// The program's own processes besides the supervisor: the collector, and the resolver of device indices.
pub fn internal(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let verb = arguments.nth(1)?;
    if verb == "collect" {
        return Some(ExitCode::from(crate::files::collect_main()));
    }
    if verb == "gpu-indices" {
        let uuids: Vec<Uuid> = arguments.map(|uuid| Uuid(uuid.to_string_lossy().into_owned())).collect();
        return Some(match gpu::indices(&uuids) {
            Ok(indices) => {
                let mut out = std::io::stdout().lock();
                let written = indices.iter().try_for_each(|index| writeln!(out, "{index}"));
                if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            // Its caller tells a device that is not there from a driver that cannot be asked.
            Err(error @ (GpuError::NotListed(_) | GpuError::NoIndex(_))) => {
                complain(&error.to_string());
                ExitCode::from(NOT_LISTED)
            }
            Err(error) => complain(&error.to_string()),
        });
    }
    None
}

/// Everything a person runs.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (globals, invocation) = match cli::parse(arguments) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let setup = match Setup::load(&globals, Environment::read()) {
        Ok(setup) => setup,
        Err(error) => return fail(&error),
    };
    match invocation {
        Invocation::Verb(verb) => match cli::run(&verb, &setup) {
            Ok(exit) => exit.into(),
            Err(error) => fail(&error),
        },
        Invocation::Serve(args) => serve(setup, &args),
        Invocation::Dashboard(args) => dashboard(&setup, &args),
        Invocation::Demo(args) => demo::run(&setup, &args),
    }
}

/// One line on standard error.
pub fn complain(text: &str) -> ExitCode {
    // Where nothing can be printed nothing can be said.
    drop(writeln!(std::io::stderr(), "overnight: {}", crate::model::clean_line(text)));
    Exit::Failed.into()
}

fn fail(error: &CliError) -> ExitCode {
    if let Some(text) = cli::exit::message(error) {
        complain(&text);
    }
    cli::exit::of(error).into()
}

/// The scheduler in the foreground, or as `overnight` starts it in the background.
fn serve(setup: Setup, args: &ServeArgs) -> ExitCode {
    if args.detached {
        // The starter's terminal is not ours to be hung up by. Fails only where this is a session leader already.
        let _ = rustix::process::setsid();
    }
    one_arena();
    start_log();
    let choice = match args.gpus.unwrap_or(setup.config.gpus) {
        GpuSource::Auto => GpuChoice::Auto,
        GpuSource::None => GpuChoice::None,
        GpuSource::Simulated(n) => GpuChoice::Simulated(n),
    };
    let detached = args.detached;
    let serve = ServeSetup {
        paths: setup.paths,
        config: setup.config,
        environment: setup.environment,
        zone: setup.zone,
        gpus: choice,
        seed: args.seed,
        control: args.control.clone(),
        throw_away: args.throw_away,
    };
    let root = args.throw_away.then(|| serve.paths.root.clone());
    match daemon::serve(serve, move || ready(detached)) {
        Ok(()) => {
            // The starter removes it too, if it is still there to do so.
            if let Some(root) = root {
                drop(crate::files::remove_tree(&root));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&chain(&error));
            exit_of(&error).into()
        }
    }
}

/// One heap for all threads: a heap for each costs memory, and grows by a page at a time. Large buffers, such as the
/// answer to a list of ten thousand jobs, go back to the system at once.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the standard library has no call for it")]
fn one_arena() {
    // SAFETY: takes no pointers; called before any other thread is started.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
const fn one_arena() {}

/// Tells whoever started a background scheduler that it answers now, and lets go of their pipe.
fn ready(detached: bool) {
    if !detached {
        return;
    }
    drop(std::io::stdout().write_all(b"ready\n"));
    drop(std::io::stdout().flush());
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

const fn exit_of(error: &DaemonError) -> Exit {
    match error {
        DaemonError::Taken { .. }
        | DaemonError::NotAnswering { .. }
        | DaemonError::Store(StoreError::Owned { .. }) => Exit::OtherScheduler,
        DaemonError::Store(_)
        | DaemonError::NotYours { .. }
        | DaemonError::Engine(EngineError::Newer { .. }) => Exit::State,
        DaemonError::Inbox(_) | DaemonError::Engine(_) | DaemonError::Io { .. } => Exit::Failed,
    }
}

/// Diagnostics of the scheduler go to standard error: `scheduler.log` in the background.
fn start_log() {
    use tracing_subscriber::EnvFilter;
    let filter =
        EnvFilter::try_from_env("OVERNIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("warn,overnight=info"));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LogLines).with_ansi(false);
    // Fails only if a log was started before, as in tests.
    drop(subscriber.try_init());
}

/// Standard error, a line for each event: names and words from outside neither act on a terminal nor begin lines.
struct LogLines;

impl Write for LogLines {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = crate::model::clean_line(text.trim_end_matches('\n'));
        std::io::stderr().write_all((line + "\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// The dashboard. Starts a scheduler if none runs; closing it stops nothing.
fn dashboard(setup: &Setup, args: &DashboardArgs) -> ExitCode {
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if let Some(why) = tui::refusal(terminal, setup.environment.term.as_deref()) {
        return complain(why);
    }
    if let Err(error) = background::ensure(setup) {
        return fail(&error);
    }
    show(setup, args, true)
}

/// The dashboard over a scheduler that runs.
fn show(setup: &Setup, args: &DashboardArgs, may_start: bool) -> ExitCode {
    let mut options = tui::Options::from_lookup(&|name| lookup(setup, name));
    options.theme = setup.theme(args.theme.as_deref(), || tui::ask_background(ANSWERS_WITHIN));
    let is_wished = args.theme.is_some() || setup.environment.theme.is_some();
    let theme = setup.config.theme.as_ref().filter(|_| !is_wished);
    options.complaint = theme.and_then(|theme| theme.complaint()).map(str::to_owned);
    options.depth = args.color.unwrap_or(options.depth);
    if args.ascii || setup.config.ui.ascii == Some(true) {
        options.glyphs = tui::Glyphs::Ascii;
    }
    options.tz = setup.zone.clone();
    options.me.clone_from(&setup.environment.user);
    options.keys.clone_from(&setup.config.keys);
    options.outside = outside(setup, args, options.outside.templates.take());
    let ui = &setup.config.ui;
    options.low_bandwidth = args.low_bandwidth || ui.low_bandwidth;
    (options.mouse, options.sync, options.notify) = (ui.mouse, ui.sync, ui.notify);
    options.spinner = ui.spinner == Spinner::On;
    options.columns.clone_from(&ui.columns);
    options.history_columns.clone_from(&ui.history_columns);
    match tui::run(options, connector::Scheduler::new(setup.clone(), may_start)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => complain(&chain(&error)),
    }
}

/// What the dashboard's flows need of the world outside.
fn outside(setup: &Setup, args: &DashboardArgs, templates: Option<std::path::PathBuf>) -> tui::Outside {
    let environment = &setup.environment;
    tui::Outside {
        editor: environment.editor.clone(),
        pager: environment.pager.clone(),
        shell: environment.own_shell.clone().or_else(|| Some(environment.shell.clone())),
        // A folder that was removed while somebody is in it has no path: then nothing is found below it.
        start: std::env::current_dir().unwrap_or_default(),
        templates,
        home: environment.home.clone().unwrap_or_default(),
        environment: environment.for_work(),
        cwd_file: args.cwd_file.clone(),
    }
}

/// The environment that was read at the start, by name.
fn lookup(setup: &Setup, name: &str) -> Option<String> {
    let environment = &setup.environment;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    match name {
        "OVERNIGHT_THEME" => environment.theme.clone(),
        "NO_COLOR" => environment.no_color.then(|| "1".to_owned()),
        "TERM" => environment.term.clone(),
        "COLORTERM" => environment.colorterm.clone(),
        "SSH_CONNECTION" => environment.ssh.then(|| "1".to_owned()),
        "XDG_CONFIG_HOME" => path(&environment.config_home),
        "HOME" => path(&environment.home),
        other => environment.locale.get(other).cloned(),
    }
}
