//! The command line: every verb. Layer 3.
//!
//! It speaks to the scheduler by the same commands as the dashboard and holds no state of its own. The composition root
//! calls [`parse`] and decides: the dashboard, `serve` and `demo` are its own, everything else goes to [`run`].

mod args;
pub mod exit;
mod output;

pub use args::{CommandLine, DashboardArgs, DemoArgs, Globals, ServeArgs, Verb};
pub use exit::{CliError, Exit};
pub use output::Io;

use crate::config::{Config, Environment, Paths};
use clap::Parser;
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal};

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// The scheduler in the foreground.
    Serve(ServeArgs),
    /// The demo.
    Demo(DemoArgs),
    /// The dashboard.
    Dashboard(DashboardArgs),
    /// A verb for [`run`].
    Verb(Verb),
}

/// Reads the command line. `Err` carries the exit code after help, the version or a mistake has been printed.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<(Globals, Invocation), Exit> {
    match CommandLine::try_parse_from(arguments) {
        Ok(CommandLine { globals, dashboard, verb }) => Ok((
            globals,
            match verb {
                None => Invocation::Dashboard(dashboard),
                Some(Verb::Serve(args)) => Invocation::Serve(args),
                Some(Verb::Demo(args)) => Invocation::Demo(args),
                Some(verb) => Invocation::Verb(verb),
            },
        )),
        Err(error) => {
            // Nothing can be said where nothing can be printed.
            let _ = error.print();
            Err(if error.use_stderr() { Exit::Usage } else { Exit::Ok })
        }
    }
}

/// What every verb works with: settings and environment, read once.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folders.
    pub paths: Paths,
    /// What the operator has set.
    pub config: Config,
    /// The environment.
    pub environment: Environment,
    /// The zone that times are shown in.
    pub zone: TimeZone,
}

impl Setup {
    /// Reads the config and finds the folders.
    pub fn load(globals: &Globals, environment: Environment) -> Result<Self, CliError> {
        let config = Config::load(globals.config.as_deref(), &environment)?;
        let paths = Paths::resolve(globals.root.as_deref(), globals.state.as_deref(), &config, &environment)?;
        Ok(Self { paths, config, environment, zone: TimeZone::system() })
    }
}

/// Does what a verb says, on the process's own streams.
pub fn run(verb: &Verb, setup: &Setup) -> Result<Exit, CliError> {
    let stdout = std::io::stdout();
    let tty = stdout.is_terminal();
    let colour = tty && !setup.environment.no_color && setup.environment.term.as_deref() != Some("dumb");
    let width =
        tty.then(|| rustix::termios::tcgetwinsize(&stdout).map_or(80, |size| usize::from(size.ws_col)));
    // Some terminals say 0 columns.
    let width = width.map(|width| if width == 0 { 80 } else { width });
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = std::io::stderr().lock();
    run_on(verb, setup, &mut Io { out: &mut out, err: &mut err, width, colour })
}

/// Does what a verb says, on these streams.
pub fn run_on(verb: &Verb, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let _ = (verb, setup);
    io.flush()?;
    Ok(Exit::Ok)
}
