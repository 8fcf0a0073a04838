//! Starts a scheduler in the background: own session, clean environment, cwd `/`, no inherited descriptors.

use crate::cli::{CliError, Setup};
use crate::client::{Client, ClientError};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

/// How long a scheduler that runs may take to answer.
const ANSWER: Duration = Duration::from_secs(3);
/// A log that has grown beyond this is put aside at the next start.
const LOG_BYTES: u64 = 8 << 20;

/// Makes sure that a scheduler answers; starts one if none runs.
pub(super) fn ensure(setup: &Setup) -> Result<(), CliError> {
    match Client::connect(&setup.paths, ANSWER) {
        Ok(_) => Ok(()),
        Err(ClientError::NoScheduler { .. }) => start(setup, &[], Stdio::null()).map(drop),
        Err(error) => Err(error.into()),
    }
}

/// Starts one that ends with its jobs and its folders when what is returned is dropped, also by the end of this process.
pub(super) fn start_throw_away(
    setup: &Setup,
    arguments: &[OsString],
) -> Result<Option<ChildStdin>, CliError> {
    let mut all = arguments.to_vec();
    all.push("--throw-away".into());
    start(setup, &all, Stdio::piped())
}

/// Starts one and waits until it answers, or says why it cannot.
fn start(setup: &Setup, arguments: &[OsString], stdin: Stdio) -> Result<Option<ChildStdin>, CliError> {
    let paths = &setup.paths;
    let file = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { doing, path, source }
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&paths.state)
        .map_err(file("make", &paths.state))?;
    let log_path = paths.log();
    if std::fs::metadata(&log_path).is_ok_and(|log| log.len() > LOG_BYTES) {
        std::fs::rename(&log_path, log_path.with_extension("log.1")).map_err(file("put aside", &log_path))?;
    }
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&log_path)
        .map_err(file("open", &log_path))?;
    let began = log.metadata().map_or(0, |log| log.len());
    let itself = Path::new("/proc/self/exe");
    let program = std::fs::read_link(itself).map_err(file("find", itself))?;
    let environment = &setup.environment;
    let mut command = Command::new(&program);
    command
        .arg("serve")
        .arg("--detached")
        .arg("--root")
        .arg(&paths.root)
        .arg("--state")
        .arg(&paths.state)
        .args(arguments)
        .args(setup.config.named.iter().flat_map(|config| [OsStr::new("--config"), config.as_os_str()]))
        .env_clear()
        .env("USER", &environment.user)
        .env("LOGNAME", &environment.user)
        .env("SHELL", &environment.shell)
        .envs(environment.for_work())
        .envs(environment.for_driver())
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(log);
    if let Some(home) = &environment.home {
        command.env("HOME", home);
    }
    if let Some(config) = &environment.config_home {
        command.env("XDG_CONFIG_HOME", config);
    }
    let mut child = command.spawn().map_err(file("start", &program))?;
    let mut said = String::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut said).map_err(file("hear from", &program))?;
    }
    if said.contains("ready") {
        return Ok(child.stdin.take());
    }
    // It has ended; its words are the last ones of the log.
    child.wait().map_err(file("wait for", &program))?;
    let words = std::fs::read(&log_path).unwrap_or_default();
    let words = String::from_utf8_lossy(words.get(began as usize..).unwrap_or_default()).into_owned();
    let message = words.lines().last().unwrap_or("the scheduler ended at once and said nothing").to_owned();
    Err(CliError::Refused { message: message.trim_start_matches("overnight: ").to_owned() })
}
