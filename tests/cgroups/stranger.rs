//! A number that became another process's: the stranger is never signalled. In a pid namespace of its own, where the next
//! number can be chosen.

use super::skipped;
use crate::rig::{Scheduler, wait_for};
use overnight::cgroup::Groups;
use overnight::engine::Engine;
use overnight::model::{AttemptNo, JobId, LeaseId, TaskIx, Token};
use overnight::sched::EngineReport;
use overnight::supervisor::process::{self, ProcessId};
use overnight::supervisor::record::{Intent, Journal, Record};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

const INNER: &str = "stranger::inside_the_namespace";

#[test]
fn a_stranger_with_a_recycled_number_is_never_signalled() {
    let own = std::env::current_exe().unwrap();
    let inner = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(own)
        .args(["--exact", INNER, "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::null())
        .output();
    let Ok(output) = inner else { return skipped("no unshare") };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if err.contains("unshare:") {
        return skipped("a pid namespace needs root");
    }
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// Starts a process with this number.
fn with_number(pid: i32, program: &[&str]) -> Child {
    wait_for(|| {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let mut child = Command::new(program[0]).args(&program[1..]).spawn().unwrap();
        if child.id() as i32 == pid {
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        None
    })
}

/// A process that was, and a stranger that has its number now and leads a session.
fn recycled() -> (ProcessId, Child) {
    let mut first = Command::new("sleep").arg("600").spawn().unwrap();
    let id = process::look(first.id() as i32).unwrap().id;
    first.kill().unwrap();
    first.wait().unwrap();
    // The clock by which processes are told apart counts hundredths.
    let stranger = wait_for(|| {
        let mut stranger = with_number(id.pid, &["setsid", "sleep", "600"]);
        let seen = wait_for(|| {
            process::look(id.pid).filter(|seen| seen.session == id.pid && process::name(id.pid) == "sleep")
        });
        if seen.id.starttime > id.starttime {
            return Some(stranger);
        }
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        None
    });
    (id, stranger)
}

#[test]
#[ignore = "run by a_stranger_with_a_recycled_number_is_never_signalled"]
fn inside_the_namespace() {
    let mut it = Scheduler::new();
    let (supervisor, mut one) = recycled();
    let (main, mut other) = recycled();
    assert!(!process::signal(main, Signal::KILL) && !process::is_running(supervisor));
    let token = Token("0123456789abcdef0123456789abcdef".to_owned());
    let at = overnight::clock::now();
    std::fs::create_dir_all(it.run_dir(1)).unwrap();
    let intent = Intent {
        lease: LeaseId(1),
        token: token.clone(),
        job: JobId(1),
        task: TaskIx(0),
        attempt: AttemptNo(1),
        supervisor,
        groups: Groups::default(),
        at,
    };
    let mut journal = Journal::create(&it.run_dir(1), &Record::Intent(intent)).unwrap().unwrap();
    let started = Record::Started { task: TaskIx(0), attempt: AttemptNo(1), main, enforcement: None, at };
    journal.append(started).unwrap();
    it.engine().survey(&[(LeaseId(1), token)]).unwrap();
    let gone = it.until(|news| match news {
        EngineReport::Missing { gone, .. } => Some(*gone),
        _ => None,
    });
    assert!(gone, "nobody of the lease is left");
    // Nothing says what it was to return: the scheduler collects it.
    it.until(|news| matches!(news, EngineReport::Missing { collecting: false, .. }).then_some(()));
    for stranger in [&mut one, &mut other] {
        assert_eq!(stranger.try_wait().unwrap(), None, "a stranger was signalled");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
