//! Looks at the machine. Writes nothing, starts no scheduler, and waits for nothing without an end.

mod disk;
mod kernel;
mod process;
mod scheduler;

use super::facts::{Boot, Clock, Facts, Folder, Gpus, Part, Program, There, Work};
use crate::beneath;
use crate::cli::Setup;
use crate::cli::service;
use crate::config::GpuSource;
use crate::gpu::{GpuBackend, GpuError, Nvml, NvmlConfig, nvml};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long the driver may take.
const DRIVER: Duration = Duration::from_secs(5);
/// Programs that work starts with, mostly.
const TOOLS: [&str; 5] = ["bash", "python3", "nvidia-smi", "git", "conda"];
/// A captured environment is shorter.
const ENVIRONMENT_BYTES: u64 = 4 << 20;

/// Everything there is to know.
pub(super) fn facts(setup: &Setup) -> Facts {
    let paths = &setup.paths;
    let scheduler = scheduler::scheduler(setup);
    let mounts = disk::mounts();
    let folder = |what, path: PathBuf| folder(what, path, &mounts);
    Facts {
        program: program(setup),
        account: process::account(setup),
        store: scheduler::store(paths, &scheduler),
        scheduler,
        folders: vec![
            folder(Part::Root, paths.root.clone()),
            folder(Part::Inbox, paths.inbox()),
            folder(Part::Jobs, paths.jobs()),
            folder(Part::State, paths.state.clone()),
        ],
        refused: crate::cli::session::refused(&paths.inbox()),
        work: work(setup),
        inotify: process::inotify(setup.environment.uid),
        cgroup: kernel::cgroup(),
        landlock: kernel::landlock(),
        gpus: gpus(setup),
        clock: clock(setup),
        boot: boot(setup),
    }
}

fn program(setup: &Setup) -> Program {
    let config = setup.config.named.clone().or_else(|| setup.environment.config_file().ok());
    Program {
        version: env!("CARGO_PKG_VERSION"),
        path: std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        config: config.filter(|path| path.exists()),
        keys: crate::tui::Keymap::with(&setup.config.keys).1,
        theme: setup.config.theme.as_ref().and_then(|theme| theme.complaint()).map(str::to_owned),
    }
}

fn folder(what: Part, path: PathBuf, mounts: &[disk::Mount]) -> Folder {
    let there = match std::fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => There::Folder { uid: meta.uid(), mode: meta.mode() & 0o7777 },
        Ok(_) => There::Other("is not a folder".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A link to nothing is not nothing.
            match path.symlink_metadata() {
                Ok(_) => There::Other("is a link to nothing".to_owned()),
                Err(_) => There::Nothing,
            }
        }
        Err(error) => There::Other(format!("cannot be reached: {error}")),
    };
    let nearest = path.ancestors().find(|path| path.is_dir()).map(Path::to_owned);
    let real = nearest.as_ref().and_then(|nearest| nearest.canonicalize().ok());
    // The folders below the root lie in it: what is above that is said once.
    let above = real.as_ref().filter(|_| matches!(what, Part::Root | Part::State));
    Folder {
        what,
        disk: real.as_ref().and_then(|real| disk::disk(real, mounts)),
        loose: above.and_then(|real| loose(real)),
        there,
        path,
    }
}

/// A directory above this one in which an account that is neither ours nor root's may rename what is in it.
fn loose(path: &Path) -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let is_loose = |dir: &&Path| {
        let Ok(meta) = std::fs::metadata(dir) else { return false };
        let trusted = meta.uid() == own || meta.uid() == 0;
        // Where everybody may make names, the sticky bit keeps them from taking others'.
        !trusted || (meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0)
    };
    path.ancestors().skip(1).find(is_loose).map(Path::to_owned)
}

fn work(setup: &Setup) -> Work {
    let kept = setup.paths.state.join("environment.json");
    let kept = beneath::own_read(&kept, &[], ENVIRONMENT_BYTES).ok();
    let kept: Option<BTreeMap<String, String>> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let set = &setup.config.environment;
    let known = kept.is_some() || set.path.is_some();
    let mut variables = kept.unwrap_or_else(|| crate::config::default_login_path(&setup.environment));
    for (name, value) in [("PATH", &set.path), ("LANG", &set.lang)] {
        variables.extend(value.clone().map(|value| (name.to_owned(), value)));
    }
    let path = variables.get("PATH").cloned().unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let find = |name: &str| dirs.iter().map(|dir| dir.join(name)).find(|file| is_program(file));
    Work {
        variables,
        known,
        tools: TOOLS.iter().map(|name| (*name, find(name))).collect(),
        loose: dirs.iter().filter(|dir| others_may_write(dir)).cloned().collect(),
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

fn others_may_write(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(dir)
        .is_ok_and(|meta| meta.mode() & 0o002 != 0 || (meta.uid() != own && meta.uid() != 0))
}

/// The driver may hang: it is asked on a thread that nobody waits for any longer than this.
fn gpus(setup: &Setup) -> Gpus {
    match setup.config.gpus {
        GpuSource::Auto => {}
        other @ (GpuSource::None | GpuSource::Simulated(_)) => return Gpus::NotAsked(other.to_string()),
    }
    let (tell, told) = mpsc::channel();
    let asked = std::thread::Builder::new().name("nvml".to_owned()).spawn(move || {
        let config = NvmlConfig { library: None, ignore: Vec::new(), lock_dir: PathBuf::new() };
        // Nobody listens any more: it took too long.
        let _ = tell.send(Nvml::new(config).list());
    });
    let answer = asked.ok().and_then(|_| told.recv_timeout(DRIVER).ok());
    match answer {
        Some(Ok(listed)) => Gpus::Listed(listed.into_iter().map(|gpu| gpu.name).collect()),
        Some(Err(error)) => refused(&error),
        None => Gpus::Silent,
    }
}

fn refused(error: &GpuError) -> Gpus {
    Gpus::Refused { why: error.to_string(), hint: error.hint(), absent: nvml::is_absent(error) }
}

fn clock(setup: &Setup) -> Clock {
    let now = crate::clock::now();
    let year = Timestamp::from_millisecond(now.wall_ms).map_or(0, |at| setup.zone.to_datetime(at).year());
    Clock {
        zone: setup.zone.iana_name().map(str::to_owned),
        year,
        synchronised: kernel::synchronised(),
        suspended_ms: now.boottime_ms.saturating_sub(crate::clock::monotonic().0),
    }
}

fn boot(setup: &Setup) -> Boot {
    let environment = &setup.environment;
    let starts = |unit: &Path| {
        let text = beneath::own_read(unit, &[], ENVIRONMENT_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines()
            .any(|line| {
                line.starts_with("ExecStart=") && line.contains("overnight") && line.contains(" serve")
            })
            .then_some(text)
    };
    let units = |dir: &Path| {
        let mut units: Vec<PathBuf> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "service"))
            .collect();
        units.sort();
        units
    };
    let user = format!("User={}", environment.user);
    let own = |text: String| text.lines().any(|line| line == user) || environment.uid == 0;
    let user_unit = service::user_units(environment)
        .and_then(|dir| units(&dir).into_iter().find(|unit| starts(unit).is_some()));
    let system_unit =
        units(Path::new(service::SYSTEM_UNITS)).into_iter().find(|unit| starts(unit).is_some_and(own));
    Boot {
        systemd: Path::new(service::SYSTEMD).is_dir(),
        lingers: Path::new(service::LINGER).join(&environment.user).exists(),
        user_unit,
        system_unit,
        cron: crontab().lines().any(|line| {
            !line.trim_start().starts_with('#') && line.contains("overnight") && line.contains(" serve")
        }),
    }
}

/// This account's crontab; empty where it has none.
fn crontab() -> String {
    let output = Command::new("crontab").arg("-l").stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}
