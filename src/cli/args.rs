//! The words of the command line. Parsing only: what they mean is in the files beside this one.

use super::values::{By, Kind, ServiceAction, State, depth, gpu, key_value, priority, span};
use crate::config::GpuSource;
use crate::model::{Priority, Span};
use crate::protocol::GpuSelect;
use crate::tui::Depth;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Drop a job file into a folder; it runs on GPUs that are really free, and hands its results back.
///
/// Without a verb: the dashboard. It starts a scheduler if none runs; closing it stops nothing.
#[derive(Debug, Parser)]
#[command(
    name = "overnight",
    version,
    propagate_version = false,
    after_help = "JOB is a number or an unambiguous name. Exit codes: 0 ok, 1 failed, 2 usage, 3 another scheduler owns \
                  the state, 4 state unreadable or another machine's, 5 no scheduler."
)]
pub(super) struct CommandLine {
    #[command(flatten)]
    pub(super) globals: Globals,
    #[command(flatten)]
    pub(super) dashboard: DashboardArgs,
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// The argument that says where the scheduler's state is.
const STATE_DIR: &str = "state_dir";

/// The command line as it is parsed, completed and documented.
pub fn command() -> clap::Command {
    let mut command = CommandLine::command();
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in names.iter().filter(|name| name.as_str() != "ls") {
        command = command.mut_subcommand(name, |verb| {
            let argument = clap::Arg::new(STATE_DIR)
                .long("state")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("The scheduler's state")
                .hide_short_help(true);
            if verb.is_hide_set() { verb } else { verb.arg(argument) }
        });
    }
    command
}

/// Reads the arguments of a process.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<CommandLine, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    let mut line = CommandLine::from_arg_matches(&matches)?;
    let of_verb =
        matches.subcommand().and_then(|(_, verb)| verb.try_get_one::<PathBuf>(STATE_DIR).ok().flatten());
    if let Some(state) = of_verb {
        line.globals.state = Some(state.clone());
    }
    match &mut line.verb {
        None => {}
        Some(Verb::Demo(demo)) => demo.dashboard = demo.dashboard.clone().or(&line.dashboard),
        Some(_) => {
            if let Some(given) = line.dashboard.looks() {
                let verb = matches.subcommand_name().unwrap_or_default();
                let why =
                    format!("{given} before a verb is of the dashboard and the demo: `{verb}` draws none");
                return Err(command().error(ErrorKind::ArgumentConflict, why));
            }
        }
    }
    Ok(line)
}

impl DashboardArgs {
    /// These, and of others what these do not say.
    fn or(self, other: &Self) -> Self {
        Self {
            ascii: self.ascii || other.ascii,
            theme: self.theme.or_else(|| other.theme.clone()),
            low_bandwidth: self.low_bandwidth || other.low_bandwidth,
            cwd_file: self.cwd_file.or_else(|| other.cwd_file.clone()),
            color: self.color.or(other.color),
        }
    }

    /// The first option that was given of how it looks. The shell's function gives `--cwd-file` to every verb.
    fn looks(&self) -> Option<&'static str> {
        match self {
            Self { ascii: true, .. } => Some("--ascii"),
            Self { theme: Some(_), .. } => Some("--theme"),
            Self { low_bandwidth: true, .. } => Some("--low-bandwidth"),
            Self { color: Some(_), .. } => Some("--color"),
            Self { .. } => None,
        }
    }
}

/// What holds for every verb.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// The folder with the inbox and the jobs (`OVERNIGHT_ROOT`; default ~/overnight).
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The scheduler's state (`OVERNIGHT_STATE`; a root given alone implies its .state).
    // Not global: `command` adds it to every verb but `ls`, whose `--state` means the jobs' state.
    #[arg(long = "state", id = STATE_DIR, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The config file, instead of the usual one.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Of the dashboard.
#[derive(Debug, Clone, Default, Args)]
pub struct DashboardArgs {
    /// Only ASCII characters on the screen.
    #[arg(long)]
    pub ascii: bool,
    /// A theme's name, or a path.
    #[arg(long, value_name = "THEME")]
    pub theme: Option<String>,
    /// For slow links: 16 colours, timers in minutes, GPU figures every five seconds, logs once a second.
    #[arg(long)]
    pub low_bandwidth: bool,
    /// `O` writes the output folder there, for a shell function that goes to it.
    #[arg(long, value_name = "FILE")]
    pub cwd_file: Option<PathBuf>,
    /// How many colours, instead of what TERM and COLORTERM say: none, 16, 256 or true.
    #[arg(long, value_name = "DEPTH", value_parser = depth)]
    pub color: Option<Depth>,
}

/// Everything that can be asked for.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Submit job files, a folder with a job.yaml, or standard input (-).
    Submit(SubmitArgs),
    /// Say what is wrong with job files, and whether this pool can run them.
    Check(CheckArgs),
    /// Print an annotated job file to start from.
    New {
        /// The kind of work.
        #[arg(value_enum, default_value_t = Kind::Other)]
        kind: Kind,
    },
    /// List jobs that wait or run.
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Show one job whole.
    Show(OneJob),
    /// Print a job's log.
    Log(LogArgs),
    /// List the GPUs.
    Gpus {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the receipt of a job that is done.
    Receipt(OneJob),
    /// Cancel jobs.
    Cancel(CancelArgs),
    /// Change what a waiting job asks for: in an editor ($VISUAL, $EDITOR), by a file, or by options.
    Edit(EditArgs),
    /// Undo the newest change that can still be undone: a cancel in its window, or a move, priority, pause, resume or edit
    /// of a job that still waits.
    Undo(UndoArgs),
    /// Set a job's priority: low, normal, high, or -100 to 100.
    Priority {
        /// Number or name.
        job: String,
        /// Higher goes first.
        #[arg(value_name = "N", allow_hyphen_values = true, value_parser = priority)]
        priority: Priority,
    },
    /// Put a job before all others of its owner and priority.
    Top(JobArg),
    /// Put a job behind all others of its owner and priority.
    Bottom(JobArg),
    /// Move a job one place forward.
    Up(JobArg),
    /// Move a job one place back.
    Down(JobArg),
    /// Do not start these jobs until they are resumed.
    Pause(Jobs),
    /// Let paused jobs start when their turn comes.
    Resume(Jobs),
    /// Submit jobs that are done again.
    Retry(Jobs),
    /// Wait until jobs are done; exit 0 only if all succeeded.
    Wait(Jobs),
    /// Print one line for every change, until interrupted.
    Watch {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// The ledger: who held how much.
    Meter(MeterArgs),
    /// Hand GPUs to nobody until they are opened.
    Close {
        #[command(flatten)]
        gpus: GpuArgs,
        /// Why, for whoever looks.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Hand closed GPUs out again.
    Open {
        #[command(flatten)]
        gpus: GpuArgs,
    },
    /// Lift a quarantine; the GPU is free once a reading shows it clean.
    Clear {
        #[command(flatten)]
        gpus: GpuArgs,
    },
    /// End the scheduler; jobs go on.
    Stop,
    /// The scheduler in the foreground.
    Serve(ServeArgs),
    /// Everything for real over simulated GPUs, in a throw-away root.
    Demo(DemoArgs),
    /// Have the scheduler come back with the machine: print or install a systemd unit, or a crontab line.
    Service(ServiceArgs),
    /// Say what this machine gives the scheduler and its jobs, what is in the way, and what to do.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List themes, show or preview one, or check one for contrast and colour vision.
    Theme(ThemeArgs),
    /// Print a completion script.
    Completions {
        /// For which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or that of one verb.
    Man {
        /// Which verb.
        verb: Option<String>,
    },
    /// Owns one lease and runs its attempts. Started by the scheduler; handled before this parser.
    #[command(hide = true)]
    Supervise(Internal),
    /// Gathers one attempt's output. Started by the supervisor; handled before this parser.
    #[command(hide = true)]
    Collect(Internal),
    /// Resolves device identities to indices. Started by the supervisor; handled before this parser.
    #[command(hide = true)]
    GpuIndices(Internal),
}

/// Arguments of the program's own processes.
#[derive(Debug, Clone, Args)]
pub struct Internal {
    /// As their callers have them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<OsString>,
}

/// Of `submit`.
#[derive(Debug, Clone, Default, Args)]
pub struct SubmitArgs {
    /// Job files, folders with a job.yaml, or -.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Wait until the jobs are done; exit 0 only if all succeeded.
    #[arg(long)]
    pub wait: bool,
    /// Only say what would happen.
    #[arg(long, conflicts_with = "wait")]
    pub dry_run: bool,
    /// Accept them paused.
    #[arg(long)]
    pub paused: bool,
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Changes to the job, written into what is stored.
#[derive(Debug, Clone, Default, Args)]
pub struct OverrideArgs {
    /// Another name.
    #[arg(long)]
    pub name: Option<String>,
    /// A variable for the work; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub env: Vec<(String, String)>,
    /// Another number of GPUs.
    #[arg(long, value_name = "N")]
    pub gpus: Option<u32>,
    /// Another limit, such as 6h.
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub limit: Option<Span>,
}

/// Of `edit`.
#[derive(Debug, Clone, Args)]
pub struct EditArgs {
    /// Number or name.
    pub job: String,
    /// Apply this file, or - for standard input, instead of opening an editor.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Apply without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Only say what would change.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Another priority: low, normal, high, or -100 to 100.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = priority)]
    pub priority: Option<Priority>,
    #[command(flatten)]
    pub overrides: OverrideArgs,
    /// What changed, as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Of `undo`.
#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// Number or name; without one the newest change of any of your jobs.
    pub job: Option<String>,
    /// Only list what can be undone, the newest first.
    #[arg(long, conflicts_with = "job")]
    pub list: bool,
    /// The list as JSON.
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// Of `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Job files, folders with a job.yaml, or -.
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print the JSON Schema of job files instead.
    #[arg(long)]
    pub schema: bool,
}

/// Of `ls`.
#[derive(Debug, Clone, Default, Args)]
pub struct LsArgs {
    /// Also jobs that are done.
    #[arg(long, short)]
    pub all: bool,
    /// Only in this state; may be repeated. (The state directory goes before the verb: overnight --state DIR ls.)
    #[arg(long, value_enum)]
    pub state: Vec<State>,
    /// Only this account's.
    #[arg(long)]
    pub user: Option<String>,
    /// Only this project's.
    #[arg(long)]
    pub project: Option<String>,
    /// Only submitted since: a date, a time, or a length of time such as 2d.
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only what this lets through, written as in the dashboard: words, u:ana s:run n:vit g:>2 gpu:4, ! or - before one
    /// that must not match.
    #[arg(long, value_name = "FILTER", allow_hyphen_values = true)]
    pub filter: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// One job, in one of two forms.
#[derive(Debug, Clone, Args)]
pub struct OneJob {
    /// Number or name.
    pub job: String,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Of `log`.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Number or name; with .TASK for one task.
    #[arg(value_name = "JOB[.TASK]")]
    pub job: String,
    /// Go on as it grows, until the job is done.
    #[arg(long, short)]
    pub follow: bool,
}

/// One job.
#[derive(Debug, Clone, Args)]
pub struct JobArg {
    /// Number or name.
    pub job: String,
}

/// Some jobs.
#[derive(Debug, Clone, Args)]
pub struct Jobs {
    /// Numbers or names.
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
}

/// Of `cancel`.
#[derive(Debug, Clone, Args)]
pub struct CancelArgs {
    /// Numbers or names.
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Leave so much time to undo it, such as 5s; nothing is signalled before.
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "now")]
    pub undo: Option<Span>,
    /// Kill at once, without the warning signal.
    #[arg(long)]
    pub now: bool,
}

/// Of `meter`.
#[derive(Debug, Clone, Default, Args)]
pub struct MeterArgs {
    /// Rows by what.
    #[arg(long, value_enum, default_value_t = By::User)]
    pub by: By,
    /// From: a date, a time, or a length of time such as 7d.
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// To.
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// As comma-separated values.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Recompute the ledger from the leases and compare.
    #[arg(long, conflicts_with_all = ["csv", "json", "since", "until"])]
    pub check: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Some devices.
#[derive(Debug, Clone, Args)]
pub struct GpuArgs {
    /// An index, a UUID or its beginning, or all.
    #[arg(required = true, value_name = "GPU", value_parser = gpu)]
    pub gpus: Vec<GpuSelect>,
}

/// Of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// auto, none or simulated:N; default as in the config.
    #[arg(long)]
    pub gpus: Option<GpuSource>,
    /// Of simulated GPUs: the same seed gives the same load, memory and power curves.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Of simulated GPUs: a file that makes them fail, hang, stay dirty or be used from outside.
    #[arg(long, value_name = "FILE")]
    pub control: Option<PathBuf>,
    /// Started by `overnight` in the background: own session, and says on standard output when it answers.
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Started by `overnight demo`: ends its jobs, itself and its folders when standard input is closed.
    #[arg(long, hide = true)]
    pub throw_away: bool,
}

/// Of `service`.
#[derive(Debug, Clone, Args)]
pub struct ServiceArgs {
    /// Show it, put it where it belongs, or take it away again.
    #[arg(value_enum)]
    pub action: ServiceAction,
    /// As a systemd unit of this account (the default with systemd).
    #[arg(long, group = "kind")]
    pub user: bool,
    /// As a systemd unit of the machine that runs as this account (the default of root).
    #[arg(long, group = "kind")]
    pub system: bool,
    /// As a line of this account's crontab (the default without systemd).
    #[arg(long, group = "kind")]
    pub cron: bool,
    /// Another name of the unit, for a second scheduler.
    #[arg(long)]
    pub name: Option<String>,
    /// Replace what is there, though somebody else wrote or edited it.
    #[arg(long)]
    pub force: bool,
}

/// Of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// How many simulated GPUs.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpus: u32,
    /// The same seed gives the same load, memory and power curves.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub dashboard: DashboardArgs,
}

/// Of `theme`.
#[derive(Debug, Clone, Args)]
pub struct ThemeArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ThemeAction,
}

/// What is done with themes.
#[derive(Debug, Clone, Subcommand)]
pub enum ThemeAction {
    /// List all there are, your own first.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a theme makes of every role.
    Show {
        /// Its name, or a path.
        theme: String,
        /// How many colours: none, 16, 256 or true.
        #[arg(long, value_name = "DEPTH", value_parser = depth)]
        color: Option<Depth>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure contrast, and the distance of colours for different eyes; exit 1 if something falls short.
    Check {
        /// Its name, or a path; all of them without.
        theme: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Draw a small dashboard in a theme.
    Preview {
        /// Its name, or a path.
        theme: String,
        /// How many colours: none, 16, 256 or true.
        #[arg(long, value_name = "DEPTH", value_parser = depth)]
        color: Option<Depth>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<CommandLine, clap::Error> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn options_of_the_dashboard_go_before_and_after_the_demo_and_before_no_other_verb() {
        let line = parsed("overnight --ascii --theme nord --color 16 demo --theme mono --gpus 2").unwrap();
        let Some(Verb::Demo(demo)) = line.verb else { panic!("{line:?}") };
        assert!(demo.dashboard.ascii && demo.gpus == 2);
        assert_eq!((demo.dashboard.theme.as_deref(), demo.dashboard.color), (Some("mono"), Some(Depth::C16)));
        assert!(parsed("overnight --ascii").unwrap().dashboard.ascii);
        for (given, line) in [
            ("--ascii", "overnight --ascii ls"),
            ("--theme", "overnight --theme nord watch"),
            ("--low-bandwidth", "overnight --low-bandwidth log 1"),
            ("--color", "overnight --color 16 theme show nord"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.use_stderr() && error.to_string().contains(given), "{line}: {error}");
        }
        assert!(parsed("overnight --root x ls --state running").is_ok());
        assert!(parsed("overnight --cwd-file x ls").is_ok(), "as the shell's function calls it");
    }
}
