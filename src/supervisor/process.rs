//! Processes as `/proc` shows them, and signals that reach only the process that was meant.
//!
//! A bare number names nobody: a signal goes through a pidfd, to a process whose start time is the one that was seen.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::Read;

/// A process, told apart from any later one with the same number (within one boot).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Number.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub starttime: u64,
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Which.
    pub id: ProcessId,
    /// Its parent.
    pub parent: i32,
    /// Its session.
    pub session: i32,
    /// `Z` for one that only waits to be reaped.
    pub state: u8,
}

/// One process; `None` if there is none.
pub fn look(pid: i32) -> Option<Seen> {
    let mut buffer = [0; 1024];
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let len = file.read(&mut buffer).ok()?;
    parse(&buffer[..len])
}

/// This process.
pub fn own() -> ProcessId {
    let pid = std::process::id() as i32;
    look(pid).map_or(ProcessId { pid, starttime: 0 }, |seen| seen.id)
}

/// All processes.
pub fn all() -> Vec<Seen> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(look).collect()
}

/// Whether that very process still runs (or waits to be reaped).
pub fn is_there(id: ProcessId) -> bool {
    look(id.pid).is_some_and(|seen| seen.id == id)
}

/// Whether that very process still runs and is not only an entry waiting to be reaped.
pub fn is_running(id: ProcessId) -> bool {
    look(id.pid).is_some_and(|seen| seen.id == id && seen.state != b'Z')
}

/// The processes that descend from any of `roots`, without the roots.
pub fn below(roots: &[i32], all: &[Seen]) -> Vec<Seen> {
    let mut known: HashSet<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for seen in all {
            if known.contains(&seen.parent) && known.insert(seen.id.pid) {
                found.push(*seen);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The numbers of all that descend from a process, by the kernel's own lists: far cheaper than a look at every process
/// of the machine, and good for a measurement only, since the tree may change under the walk.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut open = vec![root];
    let mut found = Vec::new();
    while let Some(pid) = open.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children: Vec<i32> =
                children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            open.extend(&children);
            found.extend(children);
        }
    }
    found
}

/// Whether a process was started with this token in its environment.
pub fn has_token(pid: i32, token: &str) -> bool {
    environ_token(pid).is_some_and(|found| found == token)
}

/// The token in a process's environment, if it may be read and is there.
pub fn environ_token(pid: i32) -> Option<String> {
    environ(pid, "OVERNIGHT_TOKEN")
}

/// A variable of the environment that a process was started with, if it may be read and is there.
pub fn environ(pid: i32, key: &str) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environ.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(key.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The command's name, for people.
pub fn name(pid: i32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    crate::model::clean_line(text.trim_end())
}

/// A few of these processes, for people: `4711 (dd), 4712 (dd)`.
pub fn names(ids: &[ProcessId]) -> String {
    let names: Vec<String> = ids.iter().take(5).map(|id| format!("{} ({})", id.pid, name(id.pid))).collect();
    match ids.len().checked_sub(names.len()) {
        _ if names.is_empty() => "a process that could not be named".to_owned(),
        Some(more @ 1..) => format!("{} and {more} more", names.join(", ")),
        _ => names.join(", "),
    }
}

/// Resident memory in bytes.
pub fn resident(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Signals that very process; `false` if it is gone.
pub fn signal(id: ProcessId, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(id.pid) else { return false };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // The descriptor holds one process for good; looking now proves that it is the one that was meant.
    is_there(id) && pidfd_send_signal(&pidfd, signal).is_ok()
}

fn parse(stat: &[u8]) -> Option<Seen> {
    // The name is in parentheses and may hold anything, also parentheses.
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(stat.get(close + 2..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let starttime = fields.nth(15)?.parse().ok()?;
    Some(Seen { id: ProcessId { pid, starttime }, parent, session, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let stat = b"42 (a) b (c) S 7 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2";
        assert_eq!(
            parse(stat),
            Some(Seen { id: ProcessId { pid: 42, starttime: 9876 }, parent: 7, session: 40, state: b'S' })
        );
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"42 (x"), None);
    }

    #[test]
    fn descendants_are_found_over_generations_and_strangers_are_not() {
        let seen =
            |pid, parent| Seen { id: ProcessId { pid, starttime: 1 }, parent, session: 1, state: b'S' };
        let all = [seen(5, 4), seen(2, 1), seen(4, 3), seen(3, 2), seen(9, 8)];
        let mut found: Vec<i32> = below(&[2], &all).iter().map(|seen| seen.id.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4, 5]);
    }

    #[test]
    fn a_grandchild_is_a_descendant() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let pid = child.id() as i32;
        let found = (0..5000).find_map(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
            descendants(pid).first().copied()
        });
        let grandchild = look(found.unwrap()).unwrap();
        assert_eq!(grandchild.parent, pid);
        assert!(descendants(std::process::id() as i32).contains(&grandchild.id.pid));
        signal(grandchild.id, Signal::KILL);
        child.wait().unwrap();
    }

    #[test]
    fn a_process_with_another_start_time_is_not_signalled() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = look(child.id() as i32).unwrap().id;
        assert!(!signal(ProcessId { starttime: id.starttime + 1, ..id }, Signal::KILL));
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(signal(id, Signal::KILL));
        assert!(!child.wait().unwrap().success());
        assert!(!signal(id, Signal::KILL));
    }
}
