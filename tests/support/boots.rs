//! Boots of the machine, as a scheduler and what it starts see them: a boot id each, and clocks of their own.

use crate::small_disk::skipped;
use crate::support::sandbox::{Sandbox, eventually};
use overnight::supervisor::process::{self, ProcessId, Seen};
use rustix::process::Signal;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// Files that stand for the kernel's boot id.
pub(crate) struct Boots(TempDir);

impl Boots {
    /// `None`, said so, where namespaces are not to be had.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let boots = Self(tempfile::tempdir().unwrap());
        let wrapper = boots.wrapper(1, 0);
        let probe = Command::new(&wrapper[0])
            .args(&wrapper[1..])
            .args(["/bin/cat", "/proc/sys/kernel/random/boot_id"])
            .output();
        let works = probe.is_ok_and(|output| output.stdout == boot_id(1).as_bytes());
        if !works {
            skipped(test, "boots need mount and time namespaces, which root has");
            return None;
        }
        Some(boots)
    }

    /// What a scheduler of that boot is started by; its boottime is so many seconds ahead of the machine's.
    pub(crate) fn wrapper(&self, boot: u32, ahead_s: i64) -> Vec<String> {
        self.suspended(boot, ahead_s, ahead_s)
    }

    /// Likewise, where the two clocks are not the same: boottime is ahead of monotonic by what the machine slept.
    pub(crate) fn suspended(&self, boot: u32, boottime_s: i64, monotonic_s: i64) -> Vec<String> {
        let file = self.0.path().join(boot.to_string());
        fs::write(&file, boot_id(boot)).unwrap();
        let script = r#"mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@""#;
        let (boottime, monotonic) = (boottime_s.to_string(), monotonic_s.to_string());
        ["unshare", "-m", "-T", "--boottime", &boottime, "--monotonic", &monotonic, "sh", "-c", script, "sh"]
            .into_iter()
            .map(str::to_owned)
            .chain([file.to_str().unwrap().to_owned()])
            .collect()
    }
}

fn boot_id(boot: u32) -> String {
    format!("{boot:08x}-0000-4000-8000-000000000000\n")
}

/// The supervisors of a sandbox, also one that waits for its launch.
pub(crate) fn supervisors(sandbox: &Sandbox) -> Vec<ProcessId> {
    let run = sandbox.root().join(".state/run");
    let is_one = |seen: &Seen| {
        let line = fs::read(format!("/proc/{}/cmdline", seen.id.pid)).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        words.next() == Some(b"supervise") && words.next() == run.to_str().map(str::as_bytes)
    };
    process::all().iter().filter(|seen| is_one(seen)).map(|seen| seen.id).collect()
}

/// The power is gone: the scheduler, its supervisors and all that they run, at once and without a word.
pub(crate) fn end_of_the_machine(sandbox: &mut Sandbox) {
    sandbox.kill_scheduler();
    let supervisors = supervisors(sandbox);
    let all = process::all();
    let numbers: Vec<i32> = supervisors.iter().map(|id| id.pid).collect();
    let below: Vec<ProcessId> = process::below(&numbers, &all).into_iter().map(|seen| seen.id).collect();
    // The supervisors first, so that they report no end.
    for id in supervisors.iter().chain(&below) {
        process::signal(*id, Signal::KILL);
    }
    eventually("the end of every process", || {
        supervisors.iter().chain(&below).all(|id| !process::is_running(*id)).then_some(())
    });
}

/// The lease of an attempt, counted from 0.
pub(crate) fn lease_of(sandbox: &Sandbox, job: &str, attempt: usize) -> u64 {
    eventually("a lease", || sandbox.show(job)["attempts"][attempt]["lease"].as_u64())
}
