//! What an attempt is held to, in the files of its groups.

use super::Controller;
use crate::model::Bytes;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Processes and threads that an attempt may have: more than any sane work has, and few enough for the machine.
const PROCESSES: u64 = 16_384;
/// A small machine has fewer to give: this part of what its kernel can have.
const PROCESSES_SHARE: u64 = 4;
/// The period over which processor time is counted out, microseconds.
const PERIOD_US: u64 = 100_000;

/// What an attempt asked for and is held to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, if it asked for some.
    pub memory: Option<Bytes>,
    /// Cores, if it asked for some.
    pub cpus: Option<u32>,
    /// Cores it was given: its share of the processors when there are not enough for all.
    pub share: u32,
}

/// Processes an attempt may have on this machine.
pub(super) fn processes() -> u64 {
    let read = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let most =
        ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].into_iter().filter_map(read).min();
    most.map_or(PROCESSES, |most| (most / PROCESSES_SHARE).clamp(512, PROCESSES))
}

impl Limits {
    /// Holds a group of version 2 to one of them. `Ok(false)`: nothing was asked for.
    pub(super) fn set_version2(&self, controller: Controller, group: &Path) -> Result<bool, String> {
        match controller {
            Controller::Memory => {
                let Some(Bytes(memory)) = self.memory else { return Ok(false) };
                put(group, "memory.max", &memory.to_string())?;
                // Work that pages is slow and makes all others slow. Not there without swap.
                let _ = put(group, "memory.swap.max", "0");
            }
            Controller::Pids => put(group, "pids.max", &processes().to_string())?,
            Controller::Cpu => {
                let _ = put(group, "cpu.weight", &(u64::from(self.share) * 100).clamp(1, 10_000).to_string());
                let Some(cpus) = self.cpus else { return Ok(false) };
                put(group, "cpu.max", &format!("{} {PERIOD_US}", quota_us(cpus)))?;
            }
        }
        Ok(true)
    }

    /// The same for version 1.
    pub(super) fn set_version1(&self, controller: Controller, group: &Path) -> Result<bool, String> {
        match controller {
            Controller::Memory => {
                let Some(Bytes(memory)) = self.memory else { return Ok(false) };
                put(group, "memory.limit_in_bytes", &memory.to_string())?;
                let _ = put(group, "memory.memsw.limit_in_bytes", &memory.to_string());
            }
            Controller::Pids => put(group, "pids.max", &processes().to_string())?,
            Controller::Cpu => {
                let _ =
                    put(group, "cpu.shares", &(u64::from(self.share) * 1024).clamp(2, 262_144).to_string());
                let Some(cpus) = self.cpus else { return Ok(false) };
                let _ = put(group, "cpu.cfs_period_us", &PERIOD_US.to_string());
                put(group, "cpu.cfs_quota_us", &quota_us(cpus).to_string())?;
            }
        }
        Ok(true)
    }
}

/// Processor time a period.
const fn quota_us(cpus: u32) -> u64 {
    if cpus == 0 { PERIOD_US } else { cpus as u64 * PERIOD_US }
}

fn put(group: &Path, file: &str, value: &str) -> Result<(), String> {
    // Not created where it is not there: this is no ordinary file system.
    let written = fs::OpenOptions::new()
        .write(true)
        .open(group.join(file))
        .and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|error| format!("{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(dir.path().join(file), "").unwrap();
        }
        dir
    }

    #[test]
    fn what_was_asked_for_is_written_and_the_rest_is_left_alone() {
        let files = ["memory.max", "memory.swap.max", "pids.max", "cpu.max", "cpu.weight"];
        let dir = group(&files);
        let read = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
        let limits = Limits { memory: None, cpus: None, share: 2 };
        let set = |limits: &Limits| Controller::ALL.map(|one| limits.set_version2(one, dir.path()).unwrap());
        assert_eq!(set(&limits), [false, true, false]);
        assert_eq!(files.map(read), ["", "", &processes().to_string(), "", "200"]);
        let limits = Limits { memory: Some(Bytes::gib(2)), cpus: Some(3), share: 3 };
        assert_eq!(set(&limits), [true, true, true]);
        assert_eq!((read("memory.max"), read("memory.swap.max")), ("2147483648".to_owned(), "0".to_owned()));
        assert_eq!(read("cpu.max"), "300000 100000");
    }

    #[test]
    fn version_1_has_other_files_for_the_same() {
        let files =
            ["memory.limit_in_bytes", "pids.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"];
        let dir = group(&files);
        let read = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
        let limits = Limits { memory: Some(Bytes::mib(64)), cpus: Some(2), share: 2 };
        assert_eq!(Controller::ALL.map(|one| limits.set_version1(one, dir.path()).unwrap()), [true; 3]);
        assert_eq!(files.map(read), ["67108864", &processes().to_string(), "200000", "100000", "2048"]);
    }

    #[test]
    fn a_limit_that_cannot_be_set_is_named() {
        let dir = group(&[]);
        let limits = Limits { memory: Some(Bytes::mib(64)), ..Limits::default() };
        let why = limits.set_version2(Controller::Memory, dir.path()).unwrap_err();
        assert!(why.starts_with("memory.max: "), "{why}");
        assert!(!dir.path().join("memory.max").exists());
    }

    #[test]
    fn there_is_room_for_processes_and_not_without_end() {
        assert!((512..=PROCESSES).contains(&processes()));
    }
}
