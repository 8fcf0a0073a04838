//! `service`: what starts the scheduler when the machine does. Prints it, puts it where it belongs and says what is next, or
//! takes it away; starts, stops and enables nothing by itself.

mod cron;
mod place;
mod unit;

use super::args::ServiceArgs;
use super::values::ServiceAction;
use super::{CliError, Exit, Io, Setup, Shown};
use crate::client::{Lock, lock};
use crate::config::{Environment, Paths};
use std::path::{Path, PathBuf};

/// Where units of the machine are.
pub(super) const SYSTEM_UNITS: &str = "/etc/systemd/system";
/// There where systemd is the first process.
pub(super) const SYSTEMD: &str = "/run/systemd/system";
/// A file for each account whose services run while nobody is logged in.
pub(super) const LINGER: &str = "/var/lib/systemd/linger";

/// Where it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    System,
    Cron,
}

/// Everything that has to be known to start this scheduler again.
#[derive(Debug, Clone)]
struct Service {
    program: PathBuf,
    paths: Paths,
    /// `--config`, if it was given.
    config: Option<PathBuf>,
    environment: Environment,
    kind: Kind,
    /// Of the unit.
    name: String,
}

pub(super) fn service(args: &ServiceArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let service = Service::of(args, setup)?;
    let text = match service.kind {
        Kind::User | Kind::System => unit::text(&service),
        Kind::Cron => cron::line(&service).map_err(|why| CliError::Refused { message: why })? + "\n",
    };
    match args.action {
        ServiceAction::Print => io.show(&Shown::text(&text))?,
        ServiceAction::Install => {
            let done = match service.kind {
                Kind::User | Kind::System => place::unit(&service, &text, args.force, io)?,
                Kind::Cron => cron::install(text.trim_end(), &service, args.force, io)?,
            };
            io.line(&done)?;
            next(&service, io)?;
        }
        ServiceAction::Remove => {
            let done = match service.kind {
                Kind::User | Kind::System => place::remove(&service, args.force)?,
                Kind::Cron => cron::remove(text.trim_end(), &service, io)?,
            };
            io.line(&done)?;
        }
    }
    Ok(Exit::Ok)
}

impl Service {
    fn of(args: &ServiceArgs, setup: &Setup) -> Result<Self, CliError> {
        let systemd = Path::new(SYSTEMD).is_dir();
        let kind = match (args.user, args.system, args.cron) {
            (true, _, _) => Kind::User,
            (_, true, _) => Kind::System,
            (_, _, true) => Kind::Cron,
            _ if !systemd => Kind::Cron,
            _ if setup.environment.uid == 0 => Kind::System,
            _ => Kind::User,
        };
        let usual = || match kind {
            Kind::System => format!("overnight-{}", setup.environment.user),
            Kind::User | Kind::Cron => "overnight".to_owned(),
        };
        let name = args.name.clone().unwrap_or_else(usual);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || ":_.-".contains(c)) {
            let why = "a unit's name has letters, digits and :_.- only".to_owned();
            return Err(CliError::Usage { what: format!("--name {name}"), why });
        }
        Ok(Self {
            program: program()?,
            paths: setup.paths.clone(),
            config: setup.config.named.clone(),
            environment: setup.environment.clone(),
            kind,
            name,
        })
    }

    /// The words after the program's name.
    fn arguments(&self) -> Vec<&std::ffi::OsStr> {
        let mut all: Vec<&std::ffi::OsStr> =
            vec!["serve".as_ref(), "--root".as_ref(), self.paths.root.as_ref()];
        all.extend(["--state".as_ref(), self.paths.state.as_os_str()]);
        if let Some(config) = &self.config {
            all.extend(["--config".as_ref(), config.as_os_str()]);
        }
        all
    }
}

/// Where units of an account are.
pub(super) fn user_units(environment: &Environment) -> Option<PathBuf> {
    let config = environment.config_home.clone();
    let config = config.or_else(|| environment.home.as_ref().map(|home| home.join(".config")))?;
    Some(config.join("systemd/user"))
}

/// A word as a shell reads it.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=+,-@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// This program's file, which must still be there at the next boot.
fn program() -> Result<PathBuf, CliError> {
    let itself = Path::new("/proc/self/exe");
    let file = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { doing, path, source }
    };
    let program = std::fs::read_link(itself).map_err(file("find", itself))?;
    std::fs::metadata(&program).map_err(file("find this program at", &program))?;
    Ok(program)
}

/// What is left to do, as commands.
fn next(service: &Service, io: &mut Io<'_>) -> Result<(), CliError> {
    let Service { name, environment, .. } = service;
    let user = &environment.user;
    io.line("next:")?;
    let mut say = |command: &str, why: &str| {
        let blank = if why.is_empty() { "" } else { "  # " };
        io.line(&format!("  {command}{blank}{why}"))
    };
    if let Lock::Held(_) = lock(&service.paths.state.join("lock")) {
        let root = shell_word(&service.paths.root.to_string_lossy());
        say(&format!("overnight --root {root} stop"), "one runs now; jobs go on")?;
    }
    let sudo = if environment.uid == 0 { "" } else { "sudo " };
    match service.kind {
        Kind::User => {
            say("systemctl --user daemon-reload", "")?;
            say(&format!("systemctl --user enable --now {name}"), "")?;
            if !Path::new(LINGER).join(user).exists() {
                say(&format!("loginctl enable-linger {user}"), "or it ends, jobs too, when you log out")?;
            }
        }
        Kind::System => {
            say(&format!("{sudo}systemctl daemon-reload"), "")?;
            say(&format!("{sudo}systemctl enable --now {name}"), "")?;
        }
        Kind::Cron => say("overnight", "starts it now; at the next boot cron does")?,
    }
    if service.kind != Kind::Cron && !Path::new(SYSTEMD).is_dir() {
        io.note("systemd does not run here: `--cron` makes a crontab line instead");
    }
    if let (0, Some(person)) = (environment.uid, &environment.sudo_user) {
        io.note(&format!(
            "this is root's scheduler, not {person}'s: for that run as {person} `overnight service print --system` and put it where this one is"
        ));
    }
    Ok(())
}
