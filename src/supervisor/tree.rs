//! The process tree of an attempt: who belongs to it, and its end.
//!
//! The supervisor is the subreaper of everything below it: a process whose parent dies becomes its child, whatever
//! sessions it went through. So "no children left" proves that nobody is left, at the cost of one system call; walking
//! `/proc` is only needed to reach those that are.

use super::process::{self, ProcessId, Seen};
use crate::cgroup::Groups;
use rustix::process::{Signal, WaitOptions, WaitStatus, wait};
use std::collections::HashSet;
use std::io::Read;

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reaped {
    pub(super) pid: i32,
    pub(super) status: WaitStatus,
}

/// Reaps one ended child. `Err` when there are no children at all.
pub(super) fn reap() -> Result<Option<Reaped>, NoChildren> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(ended) => {
                return Ok(ended.map(|(pid, status)| Reaped { pid: pid.as_raw_nonzero().get(), status }));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(NoChildren),
        }
    }
}

/// Nobody is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoChildren;

/// How the processes of an attempt are known: they descend from the supervisor, are in the attempt's groups, or carry
/// the token.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    token: String,
    groups: Groups,
}

impl Tree {
    pub(super) const fn new(token: String, groups: Groups) -> Self {
        Self { token, groups }
    }

    /// All processes of the attempt.
    pub(super) fn members(&self) -> Vec<Seen> {
        let own = std::process::id() as i32;
        let all = process::all();
        let mut members = process::below(&[own], &all);
        self.add_marked(&all, &mut members);
        members
    }

    /// Those that are more than an entry waiting to be reaped, by the groups and the token only: a collector also
    /// descends from the supervisor.
    pub(super) fn marked(&self) -> Vec<ProcessId> {
        let mut marked = Vec::new();
        self.add_marked(&process::all(), &mut marked);
        alive(&marked).collect()
    }

    fn add_marked(&self, all: &[Seen], members: &mut Vec<Seen>) {
        let own = std::process::id() as i32;
        let known: HashSet<ProcessId> = members.iter().map(|member| member.id).collect();
        let grouped = self.groups.processes();
        // Looked at again: the number may have become another process's since the list was made.
        let in_group = |pid: i32| grouped.binary_search(&pid).is_ok() && self.groups.holds(pid);
        members.extend(all.iter().filter(|seen| {
            let pid = seen.id.pid;
            pid != own && !known.contains(&seen.id) && (in_group(pid) || process::has_token(pid, &self.token))
        }));
    }

    /// Sends a signal to every process of the attempt. What is started meanwhile is not meant.
    pub(super) fn signal_all(&self, signal: Signal) {
        // A shell's short-lived children are gone before every process of the machine has been looked at.
        let near = self.near();
        for id in alive(&near) {
            process::signal(id, signal);
        }
        let own = std::process::id() as i32;
        let all = process::all();
        let known: HashSet<ProcessId> =
            near.iter().chain(&process::below(&[own], &all)).map(|seen| seen.id).collect();
        let strays = all.iter().filter(|seen| seen.id.pid != own && !known.contains(&seen.id));
        for seen in strays.filter(|seen| process::has_token(seen.id.pid, &self.token)) {
            process::signal(seen.id, signal);
        }
    }

    /// Those that the kernel's own lists name: descendants, and who is in the groups.
    fn near(&self) -> Vec<Seen> {
        let own = std::process::id() as i32;
        let mut pids = process::descendants(own);
        let parents: HashSet<i32> = pids.iter().copied().chain([own]).collect();
        pids.extend(self.groups.processes());
        pids.sort_unstable();
        pids.dedup();
        // Looked at again: a number may have become another process's since the list was made.
        let ours = |seen: &Seen| parents.contains(&seen.parent) || self.groups.holds(seen.id.pid);
        pids.into_iter().filter(|pid| *pid != own).filter_map(process::look).filter(ours).collect()
    }

    /// Ends all of them: by the groups at once, and one by one whoever has left these.
    pub(super) fn kill(&self) {
        self.groups.kill();
        for id in alive(&self.near()).chain(alive(&self.members())) {
            process::signal(id, Signal::KILL);
        }
    }

    /// Whether nobody is left who is not waiting to be reaped.
    pub(super) fn is_empty(&self) -> bool {
        alive(&self.members()).next().is_none()
    }

    /// Whether the kernel says that nobody is in the groups.
    pub(super) fn groups_are_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many of them the kernel has killed for memory, where it counts that.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        self.groups.oom_kills()
    }

    /// Those that a kill did not end.
    pub(super) fn left(&self) -> Vec<ProcessId> {
        alive(&self.members()).collect()
    }
}

/// Those of `members` that are more than an entry waiting to be reaped.
fn alive(members: &[Seen]) -> impl Iterator<Item = ProcessId> + '_ {
    members.iter().filter(|seen| seen.state != b'Z').map(|seen| seen.id)
}

/// Resident memory of the whole tree.
pub(super) fn resident() -> u64 {
    process::descendants(std::process::id() as i32).into_iter().map(process::resident).sum()
}

/// How often the kernel has killed for memory since it started; `None` where it does not say.
pub(super) fn oom_kills() -> Option<u64> {
    // One read: the kernel makes the whole text anew for each.
    let mut text = String::with_capacity(16 << 10);
    std::fs::File::open("/proc/vmstat").ok()?.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// The largest resident memory of any child that was reaped, and of theirs.
#[expect(unsafe_code, reason = "rustix does not wrap getrusage")]
pub(super) fn largest_child() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage, and one of zeros is a valid value.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).ok().map(|kib| kib * 1024)
}

/// Gives the heap that is not needed back: a supervisor is small for days.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the standard library has no call for it")]
pub(super) fn trim() {
    // SAFETY: takes no pointers; the allocator may be called at any time in a process of one thread.
    unsafe { libc::malloc_trim(0) };
    unmap_code();
}

/// Lets go of the pages of code that the start needed: the kernel maps sixteen for each one touched, and what is needed
/// again comes back from its cache.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the standard library has no call for it")]
fn unmap_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let itself = unmap_code as fn() as usize;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some("r-xp")) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)) else {
            continue;
        };
        if (from..to).contains(&itself) {
            // SAFETY: the range is this program's code as the kernel has mapped it: read-only, private and never
            // written, so that every page comes back from the file as it was.
            unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) };
        }
    }
}

/// Other allocators give back by themselves.
#[cfg(not(target_env = "gnu"))]
pub(super) const fn trim() {}
