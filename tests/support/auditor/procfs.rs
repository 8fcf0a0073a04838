//! Processes, locks and clocks as the kernel shows them.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// A process, told apart from any later one of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pidt {
    pub(crate) pid: i32,
    /// Start time in ticks since boot.
    pub(crate) start: u64,
}

/// One line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) id: Pidt,
    pub(crate) parent: i32,
    pub(crate) state: u8,
}

impl Stat {
    /// More than an entry that waits to be reaped.
    pub(crate) const fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

/// Milliseconds of `CLOCK_BOOTTIME`.
pub(crate) fn boottime_ms() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    t.tv_sec as u64 * 1000 + t.tv_nsec as u64 / 1_000_000
}

/// The boot, in the notation of the store.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().replace('-', "")
}

/// When a process was started, in milliseconds of boottime; to the tick.
pub(crate) fn started_ms(id: Pidt) -> u64 {
    id.start * 1000 / rustix::param::clock_ticks_per_second()
}

/// One process.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The name is in parentheses and may hold anything.
    let pid = text.split(' ').next()?.parse().ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { id: Pidt { pid, start }, parent, state })
}

/// All numbers in use.
pub(crate) fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether that very process lives now.
pub(crate) fn lives(id: Pidt) -> bool {
    stat(id.pid).is_some_and(|stat| stat.id == id && stat.lives())
}

/// A process's arguments.
pub(crate) fn arguments(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The environment a process was started with: as far as it can be read.
pub(crate) fn environment(pid: i32) -> Vec<(String, String)> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    bytes
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            Some((text(&entry[..equals]), text(&entry[equals + 1..])))
        })
        .collect()
}

/// The files a process has open whose names end like this.
pub(crate) fn open_files(pid: i32, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect()
}

/// Inodes that somebody holds an exclusive flock on.
pub(crate) fn flocked() -> HashSet<u64> {
    // `1: FLOCK  ADVISORY  WRITE 1234 00:2d:567 0 EOF`
    let text = fs::read_to_string("/proc/locks").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let exclusive = words.get(1) == Some(&"FLOCK") && words.get(3) == Some(&"WRITE");
            exclusive.then(|| words.get(5)?.rsplit(':').next()?.parse().ok()).flatten()
        })
        .collect()
}

/// Whether all threads of a process are stopped.
pub(crate) fn is_stopped(pid: i32) -> bool {
    let threads = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    threads.into_iter().flatten().flatten().all(|thread| {
        let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        parse(&text).is_none_or(|stat| matches!(stat.state, b'T' | b't' | b'Z' | b'X'))
    })
}

/// Signals that very process; `false` if it is gone.
pub(crate) fn signal(id: Pidt, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(id.pid) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // The descriptor keeps to one process; the start time tells that it is the one that was meant.
    stat(id.pid).is_some_and(|stat| stat.id == id) && pidfd_send_signal(&pidfd, signal).is_ok()
}
