//! `PATH`, `LANG` and `LC_*` as the owner's login shell sets them: what dropped jobs run with.
//!
//! Captured once and kept in `STATE/environment.json`, so that a changed shell file changes nothing by surprise.

use super::{Environment, Paths};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How long a login shell may take.
const DEADLINE_MS: u64 = 3000;
/// Stands before the environment in the shell's output: shell files may print.
const MARK: &str = "=overnight-environment=";
/// Stands behind it: something that the shell's files left running may hold the pipe open.
const END: &str = "=overnight-end=";
/// More than any environment.
const MOST_BYTES: usize = 1 << 22;

/// What dropped jobs run with: the captured environment, and what the config says instead.
pub fn work_environment(
    paths: &Paths,
    config: &super::Config,
    environment: &Environment,
) -> BTreeMap<String, String> {
    let mut all = capture_login_path(paths, environment);
    let set = [("PATH", &config.environment.path), ("LANG", &config.environment.lang)];
    all.extend(set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    all
}

/// The kept environment; captures and keeps it if there is none yet. Never fails: what cannot be learnt is defaulted.
pub fn capture_login_path(paths: &Paths, environment: &Environment) -> BTreeMap<String, String> {
    let file = paths.state.join("environment.json");
    let kept = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept {
        return kept;
    }
    match ask_shell(environment) {
        Some(captured) => {
            // Not kept means asked again at the next start: no harm.
            let _ = keep(&file, &captured);
            captured
        }
        None => default_login_path(environment),
    }
}

/// What is used where the login shell does not answer: the caller's locale and the system's usual `PATH`.
pub fn default_login_path(environment: &Environment) -> BTreeMap<String, String> {
    let mut all = environment.locale.clone();
    all.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    all
}

fn keep(file: &Path, captured: &BTreeMap<String, String>) -> std::io::Result<()> {
    let new = file.with_extension("json.new");
    let bytes = serde_json::to_vec_pretty(captured)?;
    let mut out =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(&bytes)?;
    drop(out);
    std::fs::rename(&new, file)
}

fn ask_shell(environment: &Environment) -> Option<BTreeMap<String, String>> {
    let mut command = Command::new(&environment.shell);
    command
        .arg("-lc")
        .arg(format!("echo; echo {MARK}; env; echo {END}"))
        .env_clear()
        .env("USER", &environment.user)
        .env("LOGNAME", &environment.user)
        .env("SHELL", &environment.shell)
        .env("TERM", "dumb")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0);
    if let Some(home) = &environment.home {
        command.env("HOME", home);
    }
    let mut child = command.spawn().ok()?;
    let bytes = read_until_deadline(&mut child);
    // Its own group: whatever its files started goes with it.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
    parse(&String::from_utf8_lossy(&bytes?))
}

/// Its output up to the end of the environment; `None` if it does not end in time.
fn read_until_deadline(child: &mut Child) -> Option<Vec<u8>> {
    let mut out = child.stdout.take()?;
    let begun = crate::clock::monotonic().0;
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 8192];
    loop {
        let left = DEADLINE_MS.checked_sub(crate::clock::monotonic().0 - begun)?;
        let timeout = Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as i64 };
        match poll(&mut [PollFd::new(&out, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        match out.read(&mut chunk) {
            Ok(0) => return Some(bytes),
            Ok(n) => {
                bytes.extend_from_slice(&chunk[..n]);
                if bytes.trim_ascii_end().ends_with(END.as_bytes()) {
                    return Some(bytes);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if bytes.len() > MOST_BYTES {
            return None;
        }
    }
}

fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let lines = text.lines().skip_while(|line| *line != MARK).skip(1);
    let found: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| *name == "PATH" || *name == "LANG" || name.starts_with("LC_"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    found.contains_key("PATH").then_some(found)
}
