//! The command line: every verb. Layer 3.
//!
//! It speaks to the scheduler by the same commands as the dashboard and holds no state of its own. The composition root
//! calls [`parse`] and decides: the dashboard, `serve` and `demo` are its own, everything else goes to [`run`].

mod act;
mod args;
mod doctor;
mod drop_file;
mod edit;
mod editor;
mod escapes;
pub mod exit;
mod folder;
mod follow;
mod jobfiles;
mod log;
mod ls;
mod meter;
mod output;
mod service;
mod session;
mod shell;
mod show;
mod submit;
mod theme;
mod values;
mod watch;
mod when;

pub use args::{DashboardArgs, DemoArgs, Globals, ServeArgs, Verb, command};
pub use escapes::Shown;
pub use exit::{CliError, Exit};
pub use jobfiles::limits;
pub use ls::table as job_table;
pub use output::Io;

use crate::protocol::Place;

use crate::config::{Config, Environment, Paths};
use crate::tui::{Variant, Wishes, choose_theme};
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

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
    match args::parse(arguments) {
        Ok(args::CommandLine { globals, dashboard, verb }) => Ok((
            globals,
            match verb {
                None => Invocation::Dashboard(dashboard),
                Some(Verb::Serve(args)) => Invocation::Serve(args),
                Some(Verb::Demo(args)) => Invocation::Demo(args),
                Some(verb) => Invocation::Verb(verb),
            },
        )),
        Err(error) => {
            say(&error);
            Err(if error.use_stderr() { Exit::Usage } else { Exit::Ok })
        }
    }
}

/// Help, or what is wrong with a command line: of which a word may be the name of anybody's file.
fn say(error: &clap::Error) {
    let to_person =
        if error.use_stderr() { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let styled = error.render();
    let shown =
        Shown::coloured(&if to_person { styled.ansi().to_string() } else { styled.to_string() }, to_person);
    // Nothing can be said where nothing can be printed.
    let _ = if error.use_stderr() {
        std::io::stderr().write_all(shown.as_str().as_bytes())
    } else {
        std::io::stdout().write_all(shown.as_str().as_bytes())
    };
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

    /// The name, or the path, of the theme that is wished for. `ask` finds out what background the terminal has; it is
    /// only asked where the config says so and that decides.
    pub fn theme(&self, flag: Option<&str>, ask: impl FnOnce() -> Option<Variant>) -> String {
        let mut wishes = Wishes {
            flag,
            variable: self.environment.theme.as_deref(),
            config: self.config.theme.as_ref(),
            no_color: self.environment.no_color,
            background: None,
            colorfgbg: self.environment.colorfgbg.as_deref(),
        };
        if wishes.ask() {
            wishes.background = ask();
        }
        let chosen = choose_theme(&wishes);
        // A path in the config begins like the others there.
        let home = chosen.strip_prefix("~/").zip(self.environment.home.as_deref());
        home.map_or_else(|| chosen.clone(), |(rest, home)| home.join(rest).display().to_string())
    }

    /// Where the user's own themes are.
    pub fn theme_dir(&self) -> Option<PathBuf> {
        Some(self.environment.config_file().ok()?.parent()?.join("themes"))
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
    run_on(verb, setup, &mut Io::new(&mut out, &mut err, width, colour))
}

/// Does what a verb says, on these streams.
pub fn run_on(verb: &Verb, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let exit = dispatch(verb, setup, io)?;
    io.flush()?;
    Ok(exit)
}

fn dispatch(verb: &Verb, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match verb {
        Verb::Submit(args) => submit::submit(args, setup, io),
        Verb::Check(args) => submit::check(args, setup, io),
        Verb::New { kind } => {
            io.show(&Shown::text(crate::jobfile::template((*kind).into())))?;
            Ok(Exit::Ok)
        }
        Verb::Ls(args) => ls::ls(args, setup, io),
        Verb::Show(args) => show::show(args, setup, io),
        Verb::Log(args) => log::log(args, setup, io),
        Verb::Gpus { json } => ls::gpus(*json, setup, io),
        Verb::Receipt(args) => show::receipt(args, setup, io),
        Verb::Cancel(args) => act::cancel(args, setup, io),
        Verb::Edit(args) => edit::edit(args, setup, io),
        Verb::Undo(args) => act::undo(args, setup, io),
        Verb::Priority { job, priority } => act::priority(job, *priority, setup, io),
        Verb::Top(args) => act::place(&args.job, Place::Top, setup, io),
        Verb::Bottom(args) => act::place(&args.job, Place::Bottom, setup, io),
        Verb::Up(args) => act::place(&args.job, Place::Up, setup, io),
        Verb::Down(args) => act::place(&args.job, Place::Down, setup, io),
        Verb::Pause(args) => act::pause(&args.jobs, setup, io),
        Verb::Resume(args) => act::resume(&args.jobs, setup, io),
        Verb::Retry(args) => act::retry(&args.jobs, setup, io),
        Verb::Wait(args) => follow::wait(&args.jobs, setup, io),
        Verb::Watch { json } => watch::watch(*json, setup, io),
        Verb::Meter(args) => meter::meter(args, setup, io),
        Verb::Close { gpus, reason } => act::close(&gpus.gpus, reason, setup, io),
        Verb::Open { gpus } => act::open(&gpus.gpus, setup, io),
        Verb::Clear { gpus } => act::clear(&gpus.gpus, setup, io),
        Verb::Stop => act::stop(setup, io),
        Verb::Service(args) => service::service(args, setup, io),
        Verb::Doctor { json } => doctor::doctor(*json, setup, io),
        Verb::Theme(args) => theme::theme(args, setup, io),
        Verb::Completions { shell } => shell::completions(*shell, io),
        Verb::Man { verb } => shell::man(verb.as_deref(), io),
        Verb::Serve(_) | Verb::Demo(_) | Verb::Supervise(_) | Verb::Collect(_) | Verb::GpuIndices(_) => {
            // The composition root takes these before; here they mean a call from a place that cannot.
            let why = "only the program's own main can do this".to_owned();
            Err(CliError::Usage { what: "this verb".to_owned(), why })
        }
    }
}

/// Says a failure that does not keep the others from going on.
fn said(error: &CliError, io: &mut Io<'_>) -> Result<Exit, CliError> {
    // In order with the results, where both go to one terminal.
    io.flush()?;
    if let Some(message) = exit::message(error) {
        io.note(&message);
    }
    Ok(Exit::Failed)
}
