//! What the devices were made to say: the control file of simulated ones, or the state file of the fake driver. Whoever
//! writes that file knows the truth; the scheduler has to find it out.

use super::procfs;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the truth is.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    path: PathBuf,
    driver: bool,
    seen: Option<(u64, i64, i64, u64)>,
}

/// What one device was made to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sick {
    /// It cannot be read, or is gone: never to be granted.
    Fault(String),
    /// Somebody else uses it.
    Outside(String),
    /// It stays dirty after a lease.
    Dirty,
}

/// One version of the file, and from when to when it was certainly the one.
#[derive(Debug, Clone)]
pub(crate) struct TruthSeen {
    /// By index or UUID.
    pub(crate) sick: Vec<(String, Sick)>,
    pub(crate) from_ms: u64,
    pub(crate) until_ms: u64,
}

impl Truth {
    /// The control file of simulated devices.
    pub(crate) fn control(path: &Path) -> Self {
        Self { path: path.to_owned(), driver: false, seen: None }
    }

    /// The state file of the fake driver.
    pub(crate) fn driver(path: &Path) -> Self {
        Self { path: path.to_owned(), driver: true, seen: None }
    }

    /// Whether the devices count as real ones.
    pub(crate) const fn is_driver(&self) -> bool {
        self.driver
    }

    /// Looks at the file: the version before lasted until it was last seen, at least.
    pub(super) fn look(&mut self, versions: &mut Vec<TruthSeen>) {
        let before = procfs::boottime_ms();
        let meta = fs::metadata(&self.path).ok();
        let seen = meta.map(|meta| (meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.size()));
        if let (Some(version), true) = (versions.last_mut(), seen == self.seen) {
            version.until_ms = before;
            return;
        }
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        // Read again if it changed meanwhile.
        let after = fs::metadata(&self.path).ok();
        if after.map(|meta| (meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.size())) != seen {
            return;
        }
        self.seen = seen;
        let sick = if self.driver { of_driver(&text) } else { of_control(&text) };
        let now = procfs::boottime_ms();
        versions.push(TruthSeen { sick, from_ms: now, until_ms: now });
    }
}

/// By index.
fn of_control(text: &str) -> Vec<(String, Sick)> {
    let Ok(file) = text.parse::<toml::Table>() else { return Vec::new() };
    let Some(gpus) = file.get("gpu").and_then(toml::Value::as_table) else { return Vec::new() };
    let mut sick = Vec::new();
    for (index, table) in gpus {
        if let Some(fault) = table.get("fault").and_then(toml::Value::as_str) {
            sick.push((index.clone(), Sick::Fault(fault.to_owned())));
        }
        if let Some(outside) = table.get("outside") {
            sick.push((index.clone(), Sick::Outside(outside.to_string())));
        }
        if table.get("dirty").is_some() {
            sick.push((index.clone(), Sick::Dirty));
        }
    }
    sick
}

/// By UUID. Processes on a device may be the work's own or on a list of those to ignore: only faults are certain.
fn of_driver(text: &str) -> Vec<(String, Sick)> {
    let mut sick = Vec::new();
    let (mut general, mut uuid) = (None, None);
    for line in text.lines() {
        if line.trim() == "[device]" {
            uuid = None;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "init" if value != "0" => general = Some(format!("init {value}")),
            "uuid" => {
                uuid = Some(value.to_owned());
                sick.extend(general.clone().map(|why| (value.to_owned(), Sick::Fault(why))));
            }
            "error" | "error.memory" | "error.compute" if value != "0" => {
                sick.extend(uuid.clone().map(|uuid| (uuid, Sick::Fault(format!("{key} {value}")))));
            }
            _ => {}
        }
    }
    sick
}
