//! The disks of logs, outputs and job folders.

use super::small_disk::SmallDisk;
use super::support::sandbox::{Sandbox, eventually};
use super::{Ballast, NO_OUTPUT, attempts, eat_inodes, job, nothing_is_left_behind, wait_at};
use overnight::supervisor::{process, record};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A root whose job folders are on a disk of their own, with a scheduler.
fn with_jobs_on(disk: &Path, gpus: &str) -> Sandbox {
    let mut sandbox = Sandbox::new(gpus);
    fs::create_dir_all(sandbox.root()).unwrap();
    symlink(disk, sandbox.root().join("jobs")).unwrap();
    sandbox.serve();
    sandbox
}

fn receipt_of(sandbox: &Sandbox, job: &Value) -> Value {
    let file = sandbox.job_folder(job).join("receipt.json");
    let text = eventually("a receipt", || fs::read_to_string(&file).ok());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_log_that_its_disk_does_not_take_has_its_gap_marked_and_the_exit_is_the_works_own() {
    let Some(disk) = SmallDisk::new("a_log_that_its_disk_does_not_take", 2 << 10) else { return };
    let sandbox = with_jobs_on(&disk.0, "simulated:2");
    let print = "head -c 10000000 /dev/zero | tr '\\0' x\nexit 3";
    sandbox.drop_file("prints.yaml", &job(print, "", NO_OUTPUT));
    assert_eq!(sandbox.wait_for_end("prints"), "failed");
    let shown = sandbox.show("prints");
    assert_eq!(shown["outcome"]["code"], 3, "{shown:#}");
    let log = fs::read(disk.0.join("1-prints/attempts/1/log.txt")).unwrap();
    let text = String::from_utf8_lossy(&log);
    let mark = text.lines().last().unwrap();
    assert!(mark.starts_with("--- overnight:") && mark.contains("No space left on device"), "{mark}");
    assert!(text.starts_with("xxxx") && log.len() > 100_000, "{} bytes are kept", log.len());
    let told = shown["warnings"].to_string();
    assert!(told.contains("of the log are lost"), "{told}");
    // The disk is still full: what people read comes when there is room.
    assert!(!disk.0.join("1-prints/receipt.json").exists());
    let listed = sandbox.run(&["ls", "--all"]).ok();
    assert!(listed.stdout.contains("prints"), "{}", listed.stdout);
    fs::remove_file(disk.0.join("1-prints/attempts/1/log.txt")).unwrap();
    assert_eq!(receipt_of(&sandbox, &shown)["outcome"]["code"], 3);
    nothing_is_left_behind(&sandbox);
}

/// Why a job that returns its output is not done yet.
fn why_it_returns(sandbox: &Sandbox, name: &str) -> String {
    eventually("a job that returns and says why", || {
        let row = sandbox.jobs().into_iter().find(|job| job["name"] == name)?;
        let why = row["why"].as_str()?.to_owned();
        (row["state"] == "returning" && why.contains("No space left on device")).then_some(why)
    })
}

/// A job that makes one file of 300 KiB.
fn makes_a_file(to: &Path) -> String {
    let output = format!("output: [made.bin]\noutput_to: {}", to.display());
    job("head -c 300000 /dev/urandom > made.bin", "", &output)
}

#[test]
fn an_output_that_its_disk_does_not_take_stays_on_its_way_and_says_why_and_comes_home() {
    let Some(disk) = SmallDisk::new("an_output_that_its_disk_does_not_take", 1 << 10) else { return };
    let sandbox = Sandbox::serving("simulated:1");
    let ballast = Ballast::fill(&disk.0);
    sandbox.drop_file("made.yaml", &makes_a_file(&disk.0));
    let why = why_it_returns(&sandbox, "made");
    assert!(why.starts_with("collecting output:") && why.ends_with("tried again"), "{why}");
    // Its device is free meanwhile: nobody waits for a disk.
    sandbox.drop_file("next.yaml", &job("true", "", NO_OUTPUT));
    assert_eq!(sandbox.wait_for_end("next"), "succeeded");
    ballast.remove();
    assert_eq!(sandbox.wait_for_end("made"), "succeeded");
    let shown = sandbox.show("made");
    let home = fs::read(sandbox.job_folder(&shown).join("output/made.bin")).unwrap();
    assert_eq!(home.len(), 300_000);
    assert!(fs::read(disk.0.join("made.bin")).unwrap() == home, "the copy is not the same");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn an_output_on_its_way_to_a_full_disk_survives_its_scheduler_and_its_supervisor() {
    let Some(disk) = SmallDisk::new("an_output_on_its_way_to_a_full_disk", 1 << 10) else { return };
    let mut sandbox = Sandbox::serving("simulated:1");
    let ballast = Ballast::fill(&disk.0);
    sandbox.drop_file("made.yaml", &makes_a_file(&disk.0));
    why_it_returns(&sandbox, "made");
    sandbox.kill_scheduler();
    sandbox.serve();
    why_it_returns(&sandbox, "made");
    let journal = sandbox.root().join(".state/run/1").join(record::NAME);
    let supervisor = record::read(&journal).unwrap().intent().unwrap().supervisor;
    assert!(process::signal(supervisor, Signal::KILL));
    eventually("the end of the supervisor", || (!process::is_running(supervisor)).then_some(()));
    why_it_returns(&sandbox, "made");
    // Nor does it matter that nobody knows any more what was to be collected: the scheduler does.
    sandbox.kill_scheduler();
    fs::remove_file(sandbox.root().join(".state/run/1/collect-0-1.json")).unwrap();
    sandbox.serve();
    why_it_returns(&sandbox, "made");
    ballast.remove();
    assert_eq!(sandbox.wait_for_end("made"), "succeeded", "{:#}", sandbox.show("made"));
    assert_eq!(fs::metadata(disk.0.join("made.bin")).unwrap().len(), 300_000);
    nothing_is_left_behind(&sandbox);
}

#[test]
fn nothing_is_started_while_its_log_has_no_room_and_all_starts_by_itself() {
    let test = "nothing_is_started_while_its_log_has_no_room";
    let Some(disk) = SmallDisk::with(test, "size=1m,nr_inodes=100") else { return };
    let mut sandbox = with_jobs_on(&disk.0, "simulated:2");
    sandbox.drop_file("runs.yaml", &job(&wait_at(&sandbox, "runs"), "", NO_OUTPUT));
    sandbox.wait_for_state("runs", "running");
    let eaten = eat_inodes(&disk.0);
    for n in 0..4 {
        sandbox.drop_file(&format!("waits-{n}.yaml"), &job("true", ", retry: {times: 0}", NO_OUTPUT));
    }
    let waits = |sandbox: &Sandbox| {
        let jobs = sandbox.jobs();
        let all = jobs.iter().filter(|job| job["name"].as_str().unwrap().starts_with("waits"));
        let why =
            |job: &Value| job["why"].as_str().is_some_and(|why| why.contains("No space left on device"));
        (all.clone().count() == 4 && all.clone().all(|job| job["state"] == "queued" && why(job)))
            .then_some(())
    };
    eventually("four jobs that wait for room", || waits(&sandbox));
    // A new scheduler finds out again.
    sandbox.kill_scheduler();
    sandbox.serve();
    eventually("four jobs that wait for room", || waits(&sandbox));
    fs::remove_dir_all(&eaten).unwrap();
    for n in 0..4 {
        let name = format!("waits-{n}");
        assert_eq!(sandbox.wait_for_end(&name), "succeeded", "{:#}", sandbox.show(&name));
        assert!(attempts(&sandbox.show(&name)).len() <= 4);
    }
    sandbox.open_gate("runs");
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    for job in sandbox.jobs() {
        let folder = sandbox.job_folder(&job);
        receipt_of(&sandbox, &job);
        for file in ["job.yaml", "answer.txt"] {
            eventually("a job's folder", || {
                fs::metadata(folder.join(file)).is_ok_and(|file| file.len() > 0).then_some(())
            });
        }
    }
    nothing_is_left_behind(&sandbox);
}

#[test]
fn a_read_only_disk_of_job_folders_holds_up_starts_and_receipts_until_it_is_not() {
    let Some(disk) = SmallDisk::new("a_read_only_disk_of_job_folders", 2 << 10) else { return };
    let sandbox = with_jobs_on(&disk.0, "simulated:2");
    sandbox.drop_file("first.yaml", &job("true", "", NO_OUTPUT));
    assert_eq!(sandbox.wait_for_end("first"), "succeeded");
    receipt_of(&sandbox, &sandbox.show("first"));
    let remount = |how: &str| {
        eventually("a disk that can be remounted", || {
            let status =
                Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&disk.0).status().unwrap();
            status.success().then_some(())
        });
    };
    // The supervisor that waits for the next launch has files open there.
    let taken = sandbox.run(&["stop"]);
    assert_eq!(taken.code, 0);
    let mut sandbox = sandbox;
    sandbox.wait_for_scheduler();
    remount("ro");
    sandbox.serve();
    sandbox.drop_file("second.yaml", &job("true", ", retry: {times: 0}", NO_OUTPUT));
    eventually("a job that waits for the disk", || {
        let row = sandbox.jobs().into_iter().find(|job| job["name"] == "second")?;
        row["why"].as_str()?.contains("Read-only file system").then_some(())
    });
    let listed = sandbox.run(&["ls"]).ok();
    assert!(listed.stderr.contains("Read-only file system"), "{}", listed.stderr);
    remount("rw");
    assert_eq!(sandbox.wait_for_end("second"), "succeeded");
    assert_eq!(receipt_of(&sandbox, &sandbox.show("second"))["outcome"]["kind"], "succeeded");
    nothing_is_left_behind(&sandbox);
}
