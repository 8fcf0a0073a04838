//! The disk of the state.

use super::loop_disk::LoopDisk;
use super::small_disk::{SmallDisk, skipped};
use super::support::sandbox::{Sandbox, eventually};
use super::{
    Ballast, NO_OUTPUT, attempts, eat_inodes, is_gone, job, nothing_is_left_behind, until_refused, wait_at,
};
use overnight::supervisor::process;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Drops that come while the disk is full: more than any queue between the inbox and the loop holds.
const FLOOD: usize = 5_000;

/// A root whose state is on a disk of its own, without a scheduler yet.
fn with_state_on(disk: &Path, gpus: &str) -> Sandbox {
    let sandbox = Sandbox::new(gpus);
    fs::create_dir_all(sandbox.root()).unwrap();
    symlink(disk, sandbox.root().join(".state")).unwrap();
    sandbox
}

fn running(sandbox: &Sandbox, name: &str) {
    sandbox.drop_file(&format!("{name}.yaml"), &job(&wait_at(sandbox, name), "", NO_OUTPUT));
    sandbox.wait_for_state(name, "running");
}

#[test]
fn a_full_disk_is_said_on_every_screen_and_no_outcome_changes() {
    let Some(disk) = SmallDisk::new("a_full_disk_is_said_on_every_screen", 6 << 10) else { return };
    let mut sandbox = with_state_on(&disk.0, "simulated:4");
    sandbox.serve();
    let coded = job(&format!("{}\nexit 7", wait_at(&sandbox, "coded")), "", NO_OUTPUT);
    sandbox.drop_file("coded.yaml", &coded);
    sandbox.wait_for_state("coded", "running");
    running(&sandbox, "cancelled");
    running(&sandbox, "untouched");
    let mut terminal = sandbox.in_terminal(&[], 100, 30);
    terminal.wait_for_text("untouched");

    let ballast = Ballast::fill(&disk.0);
    let refused = until_refused(&sandbox, "refused", "nothing is changed");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("the state disk is full"), "{}", refused.stderr);
    // Whatever is looked at, the banner is there; nobody has to press a key for it.
    terminal.wait_for_text("the state disk is full");
    for screen in ["2", "3", "4", "5", "1"] {
        terminal.send(screen);
        terminal.wait_for_text("the state disk is full");
    }
    terminal.send("\r");
    terminal.wait_until("a job's own screen with the banner", |screen| {
        let text = screen.contents();
        text.contains("the state disk is full") && text.contains("Files")
    });
    for verb in [&["ls"][..], &["ls", "--all", "--json"], &["show", "untouched"], &["gpus"]] {
        let run = sandbox.run(verb).ok();
        assert!(run.stderr.contains("! the state disk is full"), "{verb:?}: {}", run.stderr);
    }

    // What runs ends as it ends, and is cancelled as it is cancelled.
    sandbox.open_gate("coded");
    eventually("the end of a run", || is_gone(&sandbox, "coded").then_some(()));
    let cancel = sandbox.run(&["cancel", "cancelled"]).ok();
    assert!(cancel.stdout.contains("is being stopped"), "{}", cancel.stdout);
    eventually("the end of what was cancelled", || is_gone(&sandbox, "cancelled").then_some(()));
    assert!(!is_gone(&sandbox, "untouched"));
    let freed_at = overnight::clock::wall_ms();

    // Whatever is dropped meanwhile: looks and cancels go through.
    for n in 0..FLOOD {
        File::create(sandbox.inbox().join(format!("flood-{n}.txt"))).unwrap();
    }
    sandbox.drop_file("late.yaml", &job("true", "", NO_OUTPUT));
    let listed = sandbox.run(&["ls", "--json"]).json();
    let named = |name: &str| listed["jobs"].as_array().unwrap().iter().any(|job| job["name"] == name);
    assert!(named("untouched") && !named("late"), "{listed:#}");

    ballast.remove();
    assert_eq!(sandbox.wait_for_end("coded"), "failed");
    let coded = sandbox.show("coded");
    assert_eq!(coded["outcome"]["code"], 7, "{coded:#}");
    let ended: jiff::Timestamp = coded["ended_at"].as_str().unwrap().parse().unwrap();
    assert!(ended.as_millisecond() <= freed_at, "the supervisor saw the end, not the disk: {coded:#}");
    assert_eq!((attempts(&coded).len(), &coded["waived_gpu_ms"]), (1, &Value::from(0)));
    assert_eq!(sandbox.wait_for_end("cancelled"), "cancelled");
    assert_eq!(sandbox.wait_for_end("late"), "succeeded");
    sandbox.open_gate("untouched");
    assert_eq!(sandbox.wait_for_end("untouched"), "succeeded");
    terminal.wait_for_no_text("the state disk is full");
    terminal.send("q");
    sandbox.run(&["retry", "coded"]).ok();
    nothing_is_left_behind_but_a_flood(&sandbox);
}

/// The flood is refused, each file with its reason.
fn nothing_is_left_behind_but_a_flood(sandbox: &Sandbox) {
    sandbox.run(&["cancel", "coded"]);
    eventually("a reason beside every refused file", || {
        let reasons = (0..FLOOD).all(|n| sandbox.inbox().join(format!("flood-{n}.txt.why.txt")).exists());
        reasons.then_some(())
    });
    nothing_is_left_behind(sandbox);
}

#[test]
fn a_scheduler_starts_on_a_full_disk_and_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::new("a_scheduler_starts_on_a_full_disk", 6 << 10) else { return };
    let mut sandbox = with_state_on(&disk.0, "simulated:2");
    sandbox.serve();
    running(&sandbox, "before");
    sandbox.kill_scheduler();
    let ballast = Ballast::fill(&disk.0);
    sandbox.drop_file("dropped.yaml", &job("true", "", NO_OUTPUT));
    sandbox.serve();
    until_refused(&sandbox, "refused", "nothing is changed");
    let listed = sandbox.run(&["ls", "--json"]).json();
    assert_eq!(listed["jobs"][0]["name"], "before", "what is durable is shown: {listed:#}");
    assert_eq!(listed["jobs"][0]["state"], "running");
    sandbox.open_gate("before");
    eventually("the end of a run", || is_gone(&sandbox, "before").then_some(()));
    ballast.remove();
    assert_eq!(sandbox.wait_for_end("before"), "succeeded");
    assert_eq!(sandbox.wait_for_end("dropped"), "succeeded");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn without_inodes_nothing_is_started_and_no_attempt_is_used_up() {
    let test = "without_inodes_nothing_is_started";
    let Some(disk) = LoopDisk::new(test, 32, &["-N", "160"], "") else { return };
    let mut sandbox = with_state_on(disk.path(), "simulated:2");
    sandbox.serve();
    running(&sandbox, "before");
    let eaten = eat_inodes(disk.path());
    // The store needs none: it is accepted, waits, and says why.
    for name in ["one", "two"] {
        sandbox.drop_file(&format!("{name}.yaml"), &job("true", ", retry: {times: 0}", NO_OUTPUT));
    }
    for name in ["one", "two"] {
        eventually("a job that waits for room", || {
            let shown = sandbox.jobs().into_iter().find(|job| job["name"] == name)?;
            shown["why"].as_str()?.contains("No space left on device").then_some(())
        });
    }
    let listed = sandbox.run(&["ls"]).ok();
    assert!(listed.stderr.contains("nothing is started until"), "{}", listed.stderr);
    sandbox.open_gate("before");
    eventually("the end of a run", || is_gone(&sandbox, "before").then_some(()));
    fs::remove_dir_all(&eaten).unwrap();
    assert_eq!(sandbox.wait_for_end("before"), "succeeded");
    for name in ["one", "two"] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded", "{:#}", sandbox.show(name));
        let shown = sandbox.show(name);
        assert!(
            attempts(&shown).len() <= 3,
            "one that could not start is tried once, then it waits: {shown:#}"
        );
        for lost in attempts(&shown).iter().rev().skip(1) {
            assert_eq!(lost["waived"], true, "{shown:#}");
        }
    }
    nothing_is_left_behind(&sandbox);
}

/// The store's thread of a scheduler.
fn store_thread(scheduler: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{scheduler}/task")).unwrap().flatten();
    let name = |task: &Path| fs::read_to_string(task.join("comm")).unwrap_or_default();
    let found = tasks.map(|task| task.path()).find(|task| name(task).trim() == "store");
    found.unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// strace at the store's thread of a scheduler; `None`, said so, where that is not to be had.
fn traced(sandbox: &Sandbox, test: &str, what: &[&str]) -> Option<Tracer> {
    let thread = store_thread(sandbox.scheduler_pid());
    let spawned =
        Command::new("strace").args(["-qq"]).args(what).args(["-p", &thread]).stderr(Stdio::null()).spawn();
    let Ok(child) = spawned else {
        skipped(test, "there is no strace");
        return None;
    };
    let mut tracer = Tracer(child);
    let status = format!("/proc/{}/task/{thread}/status", sandbox.scheduler_pid());
    let attached = eventually("strace at work", || {
        let status = fs::read_to_string(&status).unwrap();
        let traced = status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"));
        if traced { Some(true) } else { tracer.0.try_wait().unwrap().map(|_| false) }
    });
    if !attached {
        skipped(test, "strace may not attach here");
        return None;
    }
    Some(tracer)
}

/// Detaches at the end.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        if let Some(seen) = process::look(self.0.id() as i32) {
            process::signal(seen.id, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

#[test]
fn a_slow_sync_holds_up_no_look_no_cancel_and_no_end() {
    let mut sandbox = Sandbox::new("simulated:4");
    sandbox.serve();
    for name in ["cancelled", "killed", "ends", "runs"] {
        running(&sandbox, name);
    }
    let mut terminal = sandbox.in_terminal(&[], 100, 30);
    terminal.wait_for_text("runs");
    // Longer than any test waits: it ends when the tracer lets go.
    let what = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=600000000"];
    let Some(tracer) = traced(&sandbox, "a_slow_sync_holds_up", &what) else { return };
    sandbox.drop_file("waits.yaml", &job("true", "", NO_OUTPUT));
    terminal.wait_for_text("the state disk does not answer");
    let listed = sandbox.run(&["ls"]).ok();
    assert!(listed.stderr.contains("! the state disk does not answer"), "{}", listed.stderr);
    assert!(listed.stdout.contains("runs") && !listed.stdout.contains("waits"), "{}", listed.stdout);
    assert_eq!(sandbox.show("runs")["state"], "running");
    sandbox.run(&["cancel", "cancelled"]).ok();
    sandbox.run(&["cancel", "--now", "killed"]).ok();
    sandbox.open_gate("ends");
    for name in ["cancelled", "killed", "ends"] {
        eventually("the end of a process", || is_gone(&sandbox, name).then_some(()));
    }
    let refused = until_refused(&sandbox, "refused", "nothing is changed");
    assert_eq!(refused.code, 1);
    terminal.send("2");
    terminal.wait_for_text("the state disk does not answer");
    drop(tracer);
    for (name, outcome) in
        [("cancelled", "cancelled"), ("killed", "cancelled"), ("ends", "succeeded"), ("waits", "succeeded")]
    {
        assert_eq!(sandbox.wait_for_end(name), outcome, "{name}");
    }
    terminal.wait_for_no_text("the state disk does not answer");
    assert_eq!(sandbox.wait_for_state("runs", "running")["outcome"], Value::Null);
    sandbox.open_gate("runs");
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn a_disk_that_stands_still_for_a_while_loses_nobody() {
    let test = "a_disk_that_stands_still";
    let Some(disk) = LoopDisk::new(test, 64, &[], "") else { return };
    let mut sandbox = Sandbox::on(disk.path(), "simulated:2");
    sandbox.serve();
    for name in ["cancelled", "runs"] {
        let file = sandbox.dir().join(format!("{name}.yaml"));
        fs::write(&file, job(&wait_at(&sandbox, name), "", NO_OUTPUT)).unwrap();
        sandbox.run(&["submit", file.to_str().unwrap()]).ok();
        sandbox.wait_for_state(name, "running");
    }
    let frozen = disk.freeze();
    let since = overnight::clock::monotonic().0;
    // It has to be accepted, which cannot be; whether it is told so or waits is not the point here.
    let file = sandbox.dir().join("asked.yaml");
    fs::write(&file, job("true", "", NO_OUTPUT)).unwrap();
    let mut asked =
        sandbox.command(&["submit", file.to_str().unwrap()]).stderr(Stdio::null()).spawn().unwrap();
    eventually("a list that says that the disk does not answer", || {
        let listed = sandbox.run(&["ls"]).ok();
        (listed.stdout.contains("runs") && listed.stderr.contains("does not answer")).then_some(())
    });
    let cancel = sandbox.run(&["cancel", "cancelled"]).ok();
    assert!(cancel.stdout.contains("is being stopped"), "{}", cancel.stdout);
    // Longer than between two heartbeats.
    eventually("six seconds", || (overnight::clock::monotonic().0 > since + 6000).then_some(()));
    sandbox.run(&["ls"]).ok();
    drop(frozen);
    asked.wait().unwrap();
    assert_eq!(sandbox.wait_for_end("cancelled"), "cancelled");
    let runs = sandbox.wait_for_state("runs", "running");
    assert_eq!(attempts(&sandbox.show("runs")).len(), 1, "{runs:#}");
    sandbox.open_gate("runs");
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    let many = sandbox.jobs().iter().filter(|job| job["name"] == "asked").count();
    assert_eq!(many, 1, "what was asked for is there once");
    assert_eq!(sandbox.wait_for_end("asked"), "succeeded");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn a_sync_that_failed_is_not_believed_and_the_same_events_are_made_durable_again() {
    let mut sandbox = Sandbox::new("simulated:2");
    sandbox.serve();
    running(&sandbox, "before");
    let trace = sandbox.dir().join("trace");
    let what = [
        "-f",
        "-e",
        "trace=fdatasync,fadvise64,pwrite64",
        "-e",
        "inject=fdatasync:error=EIO:when=1",
        "-o",
        trace.to_str().unwrap(),
    ];
    let Some(tracer) = traced(&sandbox, "a_sync_that_failed_is_not_believed", &what) else { return };
    let file = sandbox.dir().join("asked.yaml");
    fs::write(&file, job("true", "", NO_OUTPUT)).unwrap();
    let asked = sandbox.run(&["submit", file.to_str().unwrap()]);
    assert_eq!(asked.code, 1, "{}", asked.stdout);
    assert!(
        asked.stderr.contains("Input/output error") && asked.stderr.contains("look with `ls`"),
        "{}",
        asked.stderr
    );
    assert_eq!(sandbox.wait_for_end("asked"), "succeeded");
    drop(tracer);

    let trace = fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> =
        trace.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim()).collect();
    let failed = calls.iter().position(|call| call.starts_with("fdatasync") && call.contains("EIO")).unwrap();
    let dropped = calls.iter().position(|call| call.starts_with("fadvise64") && call.contains("DONTNEED"));
    let dropped = dropped.expect("what the kernel had in memory was never dropped");
    assert!(dropped > failed, "{trace}");
    let after = &calls[dropped..];
    let written = after.iter().position(|call| call.starts_with("pwrite64")).unwrap();
    let synced =
        after.iter().skip(written).any(|call| call.starts_with("fdatasync") && call.ends_with("= 0"));
    assert!(synced, "nothing was written and synced anew:\n{trace}");
    assert_eq!(sandbox.jobs().iter().filter(|job| job["name"] == "asked").count(), 1);
    sandbox.open_gate("before");
    assert_eq!(sandbox.wait_for_end("before"), "succeeded");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn a_disk_that_the_kernel_made_read_only_stops_admission_and_a_restart_on_a_mended_one_loses_nothing() {
    let test = "a_disk_that_the_kernel_made_read_only";
    let Some(disk) = LoopDisk::new(test, 32, &[], "errors=remount-ro") else { return };
    let trigger = Path::new("/sys/fs/ext4").join(disk.device()).join("trigger_fs_error");
    let mut sandbox = with_state_on(disk.path(), "simulated:2");
    sandbox.serve();
    running(&sandbox, "runs");
    sandbox.drop_file("done.yaml", &job("true", "", NO_OUTPUT));
    assert_eq!(sandbox.wait_for_end("done"), "succeeded");
    if let Err(error) = fs::write(&trigger, "a test\n") {
        return skipped(test, &format!("{}: {error}", trigger.display()));
    }
    let refused = until_refused(&sandbox, "refused", "nothing is changed");
    assert!(refused.stderr.contains("the state cannot be written"), "{}", refused.stderr);
    let listed = sandbox.run(&["ls"]).ok();
    assert!(listed.stderr.contains("! the state cannot be written"), "{}", listed.stderr);
    assert!(!is_gone(&sandbox, "runs"), "what runs goes on");
    sandbox.open_gate("runs");
    eventually("the end of a run", || is_gone(&sandbox, "runs").then_some(()));
    // Only a new mount helps here, and nothing may use the disk for that.
    sandbox.kill_scheduler();
    disk.restart();
    sandbox.serve();
    assert_eq!(sandbox.show("done")["outcome"]["kind"], "succeeded");
    let asked = sandbox.jobs().into_iter().filter(|job| job["name"] == "refused").count();
    assert!(asked <= 1);
    // Its end was seen by a supervisor that could write it nowhere, and that is gone with the disk.
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    let shown = sandbox.show("runs");
    assert_eq!(attempts(&shown)[0]["ended_by"], "estimated", "{shown:#}");
    assert_eq!(attempts(&shown)[0]["waived"], true, "{shown:#}");
    nothing_is_left_behind(&sandbox);
}
