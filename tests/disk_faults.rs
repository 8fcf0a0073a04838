//! Disks that are full, out of inodes, broken, read-only or slow: admission stops and says so, what runs goes on, no
//! outcome changes, and all goes on by itself.
//!
//! The state's disk is here, the disks of logs and outputs are in `places`.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/loop_disk.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod loop_disk;
#[path = "disk_faults/places.rs"]
mod places;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "disk_faults/state.rs"]
mod state;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use overnight::supervisor::process;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use support::auditor::Auditor;
use support::sandbox::{Run, Sandbox, eventually};

/// A job on one GPU that runs `run`; `more` goes into its request, `output` is what it declares.
fn job(run: &str, more: &str, output: &str) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  stop: {{grace: 1s}}\n  run: |\n    {run}\ndata: []\nrequest: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m{more}}}\n{output}\n"
    )
}

const NO_OUTPUT: &str = "output: []";

/// Shell that says which process it is, and waits for a gate.
fn wait_at(sandbox: &Sandbox, gate: &str) -> String {
    let pid = pid_file(sandbox, gate);
    format!(
        "echo $$ > '{}'\nuntil [ -e '{}' ]; do sleep 0.02; done",
        pid.display(),
        sandbox.gate(gate).display()
    )
}

fn pid_file(sandbox: &Sandbox, gate: &str) -> PathBuf {
    sandbox.dir().join("gates").join(format!("{gate}.pid"))
}

/// Whether the shell that waited at this gate is gone.
fn is_gone(sandbox: &Sandbox, gate: &str) -> bool {
    let pid = fs::read_to_string(pid_file(sandbox, gate)).unwrap().trim().parse().unwrap();
    process::look(pid).is_none_or(|seen| seen.state == b'Z')
}

/// Everything that a disk had left.
struct Ballast(PathBuf);

impl Ballast {
    fn fill(disk: &Path) -> Self {
        let path = disk.join("ballast");
        let mut file = File::create(&path).unwrap();
        // Block by block, then byte by byte: until nothing fits any more.
        while file.write_all(&[1; 4096]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
        Self(path)
    }

    /// Gives it back.
    fn remove(self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// Takes all inodes that a disk had left; where they are.
fn eat_inodes(disk: &Path) -> PathBuf {
    let eaten = disk.join("eaten");
    fs::create_dir(&eaten).unwrap();
    let made = (0..100_000).take_while(|n| File::create(eaten.join(n.to_string())).is_ok()).count();
    assert!(made > 10, "the disk had hardly any inodes: {made}");
    eaten
}

/// Submits until the answer is that it cannot be: pages that are free already may still take a submission or two.
fn until_refused(sandbox: &Sandbox, name: &str, word: &str) -> Run {
    let file = sandbox.dir().join(format!("{name}.yaml"));
    fs::write(&file, job("true", "", NO_OUTPUT)).unwrap();
    eventually("a submit that is refused", || {
        let run = sandbox.run(&["submit", file.to_str().unwrap()]);
        (run.code != 0 && run.stderr.contains(word)).then_some(run)
    })
}

fn attempts(shown: &Value) -> &Vec<Value> {
    shown["attempts"].as_array().unwrap()
}

/// What must hold when all is quiet again.
fn nothing_is_left_behind(sandbox: &Sandbox) {
    eventually("a pool whose GPUs are all free", || {
        let list = sandbox.run(&["gpus", "--json"]).json();
        list["gpus"].as_array().unwrap().iter().all(|gpu| gpu["state"] == "free").then_some(())
    });
    assert_eq!(sandbox.run(&["meter", "--json"]).json()["held_now"]["gpus"], 0);
    sandbox.run(&["meter", "--check"]).ok();
    // A file that was refused is still there, and still said.
    let notices = sandbox.run(&["ls"]).stderr;
    let notices: Vec<&str> = notices.lines().filter(|line| !line.contains(" was refused: ")).collect();
    assert!(!notices.concat().contains('!'), "nothing is wrong any more: {notices:?}");
    Auditor::watch(sandbox).finish();
}
