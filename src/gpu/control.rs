//! The control file of simulated devices.
//!
//! A TOML file, read again whenever it was replaced or changed (write it elsewhere and rename it), makes devices
//! misbehave. One table per index; everything is optional; without the file all devices are well:
//!
//! ```toml
//! [gpu.0]
//! fault = "fail"        # fail: the driver answers with an error · gone: fell off the bus · hang: no answer in time
//! detail = "Xid 79"     # the driver's words, for `fault`
//!
//! [gpu.1.dirty]         # stays dirty after a lease ended, until this table is removed
//! memory = "40GiB"      # default: half of the device's
//! pid = 4242            # the process left behind, with that lease's token; without it only the memory stays
//! name = "python"
//!
//! [gpu.2.outside]       # somebody else uses it
//! pid = 777
//! name = "python"
//! uid = 1001
//! memory = "21GiB"
//!
//! [gpu.3]
//! xids = [31, 48]       # told once each, as they are added to the list
//!
//! [gpu.3.health]        # of its memory
//! uncorrected = 1       # errors since the last reset that ECC could not correct
//! remap_pending = true  # a bad row is replaced at the next reset
//! remap_failed = true   # a bad row could not be replaced
//! ```
//!
//! A control file that cannot be read makes every device unreadable, with the reason.

use crate::model::{Bytes, GpuProcess, Health, ProcessKind, Token, Unreadable, clean_line, parse_bytes};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a control file says, and the file it was read from.
#[derive(Debug)]
pub(super) struct Control {
    path: Option<PathBuf>,
    /// Identity and change of the file that was read last.
    seen: Option<(u64, u64, i64, i64)>,
    read: Result<ControlFile, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlFile {
    #[serde(default)]
    gpu: BTreeMap<String, DeviceControl>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceControl {
    pub(super) fault: Option<Fault>,
    detail: Option<String>,
    pub(super) dirty: Option<Dirty>,
    pub(super) outside: Option<Outside>,
    #[serde(default)]
    pub(super) xids: Vec<u64>,
    #[serde(default)]
    health: HealthControl,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HealthControl {
    uncorrected: u64,
    remap_pending: bool,
    remap_failed: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    Fail,
    Gone,
    Hang,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dirty {
    #[serde(default, deserialize_with = "size")]
    pub(super) memory: Option<Bytes>,
    pid: Option<u32>,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outside {
    pid: u32,
    #[serde(default)]
    name: String,
    uid: Option<u32>,
    #[serde(deserialize_with = "some_size")]
    pub(super) memory: Bytes,
}

fn some_size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_bytes(&text).map_err(serde::de::Error::custom)
}

fn size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    some_size(deserializer).map(Some)
}

impl Control {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, seen: None, read: Ok(ControlFile::default()) }
    }

    /// Reads the file again if it is another one or changed. One `stat` where it is not.
    pub(super) fn refresh(&mut self) {
        let Some(path) = &self.path else { return };
        let seen = std::fs::metadata(path)
            .ok()
            .map(|meta| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()));
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        self.read = if seen.is_some() { read(path) } else { Ok(ControlFile::default()) };
    }

    pub(super) fn of(&self, index: u32) -> Result<Option<&DeviceControl>, &str> {
        match &self.read {
            Ok(file) => Ok(file.gpu.get(&index.to_string())),
            Err(detail) => Err(detail),
        }
    }
}

fn read(path: &Path) -> Result<ControlFile, String> {
    let wrong =
        |words: &dyn std::fmt::Display| clean_line(&format!("control file {}: {words}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    toml::from_str(&text).map_err(|error: toml::de::Error| wrong(&error.message()))
}

impl DeviceControl {
    pub(super) const fn health(&self) -> Health {
        let HealthControl { uncorrected, remap_pending, remap_failed } = self.health;
        Health {
            uncorrected: Some(uncorrected),
            remap_pending: Some(remap_pending),
            remap_failed: Some(remap_failed),
        }
    }

    pub(super) fn unreadable(&self) -> Option<Unreadable> {
        let detail = |default: &str| self.detail.clone().unwrap_or_else(|| default.to_owned());
        Some(match self.fault? {
            Fault::Fail => Unreadable::Failed { detail: detail("an internal driver error occurred") },
            Fault::Gone => Unreadable::Gone { detail: detail("fell off the bus") },
            Fault::Hang => Unreadable::Failed { detail: detail("did not answer in time") },
        })
    }
}

impl Outside {
    pub(super) fn process(&self, token: Option<Token>) -> GpuProcess {
        GpuProcess {
            pid: self.pid,
            name: clean_line(&self.name),
            uid: self.uid,
            user: None,
            kind: ProcessKind::Compute,
            memory: Some(self.memory),
            token,
            ignored: false,
        }
    }
}

impl Dirty {
    pub(super) fn process(&self, token: &Token) -> Option<GpuProcess> {
        Some(GpuProcess {
            pid: self.pid?,
            name: clean_line(&self.name),
            uid: None,
            user: None,
            kind: ProcessKind::Compute,
            memory: self.memory,
            token: Some(token.clone()),
            ignored: false,
        })
    }
}
