//! That a GPU is handed out again only when it is proven: the shipped binary over a fake driver, and over simulated GPUs.
//!
//! What is left on a GPU after a run, what its driver says is wrong with it, and a driver that does not answer.
#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/fake_nvml.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod fake_nvml;
#[path = "support/machine.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod machine;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use machine::{
    GIB, MIB, Machine, Process, environment, gpu, gpu_in, hold, job, let_readings_age, still_runs, text,
    waits_because,
};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::sandbox::{Sandbox, eventually};

/// What `show` says about a job besides its state: warnings, and notes of its attempts.
fn said(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let warnings = sandbox.show(name)["warnings"].as_array().unwrap().clone();
    warnings.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Waits until a job is told something that has this word.
fn is_told(sandbox: &Sandbox, name: &str, word: &str) {
    eventually(&format!("a note about {word}"), || {
        said(sandbox, name).iter().any(|text| text.contains(word)).then_some(())
    });
}

/// A job that ends by itself runs on this GPU and comes back.
fn runs_on(sandbox: &Sandbox, name: &str, uuid: &str) {
    hold(sandbox, name, "");
    assert_eq!(environment(sandbox, name)["OVERNIGHT_GPU_UUIDS"], uuid, "{name}");
    sandbox.open_gate(name);
    assert_eq!(sandbox.wait_for_end(name), "succeeded");
    gpu_in(sandbox, uuid, "free");
}

/// Tells of an Xid, and again until somebody heard it: the driver tells nobody what happened before it was asked.
fn xid(machine: &mut Machine, uuid: &str, code: u64, heard: impl Fn() -> bool) {
    let mut looks = 0_u32;
    eventually(&format!("somebody who heard Xid {code}"), || {
        if looks.is_multiple_of(50) {
            machine.device(uuid, |gpu| gpu.xids.push(code));
        }
        looks += 1;
        heard().then_some(())
    });
}

fn detail(sandbox: &Sandbox, uuid: &str) -> String {
    gpu(sandbox, uuid)["detail"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_process_of_the_job_that_only_draws_keeps_its_gpu_and_is_named_with_its_owner() {
    let mut machine = Machine::with(&["GPU-a"]);
    let mut sandbox = machine.sandbox("drain = \"2s\"");
    sandbox.serve();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "leaky", "");
    let token = environment(&sandbox, "leaky")["OVERNIGHT_TOKEN"].clone();
    // Memory holds up the proof until the process that stays is there.
    machine.device("GPU-a", |gpu| gpu.memory_used = 40 * GIB);
    sandbox.open_gate("leaky");
    assert_eq!(sandbox.wait_for_end("leaky"), "succeeded");
    let mut left = Command::new("sleep");
    let left = Process::of(left.arg("600").env("OVERNIGHT_TOKEN", token));
    machine.device("GPU-a", |gpu| {
        gpu.lines.push(left.on_gpu("graphics", MIB));
        gpu.memory_used = 4 * MIB;
    });
    let quarantined = gpu_in(&sandbox, "GPU-a", "quarantined");
    eventually("the culprit by name", || {
        detail(&sandbox, "GPU-a")
            .contains(&format!("left over: pid {} sleep of root", left.0.id()))
            .then_some(())
    });
    assert_eq!(quarantined["processes"][0]["user"], "root", "{quarantined:#}");
    // A scheduler that comes back knows why, since when and the culprit.
    let before = detail(&sandbox, "GPU-a");
    assert!(before.contains("since "), "{before}");
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_eq!(detail(&sandbox, "GPU-a"), before);
    // It goes, and nobody has to ask for anything.
    drop(left);
    machine.device("GPU-a", |gpu| gpu.lines.clear());
    gpu_in(&sandbox, "GPU-a", "free");
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn an_error_of_a_program_is_told_to_its_job_and_its_gpu_stays_in_service() {
    let mut machine = Machine::with(&["GPU-a"]);
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "buggy", "");
    environment(&sandbox, "buggy");
    let told = || said(&sandbox, "buggy").iter().any(|text| text.contains("Xid 31"));
    xid(&mut machine, "GPU-a", 31, told);
    let notes = said(&sandbox, "buggy");
    assert!(notes.iter().any(|text| text.contains("an error of the program, not of the GPU")), "{notes:?}");
    still_runs(&sandbox, "buggy");
    sandbox.open_gate("buggy");
    assert_eq!(sandbox.wait_for_end("buggy"), "succeeded");
    gpu_in(&sandbox, "GPU-a", "free");
    let folder = sandbox.job_folder(&sandbox.show("buggy"));
    let receipt = eventually("a receipt", || fs::read_to_string(folder.join("receipt.json")).ok());
    assert!(receipt.contains("Xid 31"), "{receipt}");
    runs_on(&sandbox, "next", "GPU-a");
}

#[test]
fn a_gpu_that_is_not_well_is_out_of_service_after_its_run_until_it_is_cleared() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b"]);
    let mut sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "unlucky", "");
    environment(&sandbox, "unlucky");
    let told = || detail(&sandbox, "GPU-a").contains("Xid 48");
    xid(&mut machine, "GPU-a", 48, told);
    is_told(&sandbox, "unlucky", "Xid 48");
    still_runs(&sandbox, "unlucky");
    assert_eq!(gpu(&sandbox, "GPU-a")["state"], "held");
    // It is known by a scheduler that was not there when it was told.
    sandbox.kill_scheduler();
    sandbox.serve();
    sandbox.open_gate("unlucky");
    assert_eq!(sandbox.wait_for_end("unlucky"), "succeeded");
    gpu_in(&sandbox, "GPU-a", "quarantined");
    runs_on(&sandbox, "elsewhere", "GPU-b");
    sandbox.kill_scheduler();
    sandbox.serve();
    let quarantined = gpu_in(&sandbox, "GPU-a", "quarantined");
    let why = text(&quarantined, "detail");
    assert!(why.contains("Xid 48: double-bit ECC error") && why.contains("overnight clear"), "{why}");
    sandbox.drop_file("wide.yaml", &job("true", "gpus: 2"));
    waits_because(&sandbox, "wide", "GPU 0 is quarantined");
    sandbox.run(&["clear", "0"]).ok();
    assert_eq!(sandbox.wait_for_end("wide"), "succeeded");
    let again = sandbox.run(&["clear", "0"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("not in quarantine"), "{}", again.stderr);
}

#[test]
fn a_gpu_that_falls_off_the_bus_ends_its_attempt_and_proves_itself_before_it_is_used_again() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b", "GPU-c"]);
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "unlucky", "retry: {times: 0}");
    let lost = environment(&sandbox, "unlucky")["OVERNIGHT_GPU_UUIDS"].clone();
    hold(&sandbox, "lucky", "");
    environment(&sandbox, "lucky");
    // The driver tells of it at once: no reading has to come for that.
    machine.device(&lost, |gpu| {
        gpu.xids.push(79);
        gpu.lines.push("error = 15".into());
    });
    assert_eq!(sandbox.wait_for_end("unlucky"), "lost");
    let shown = sandbox.show("unlucky");
    let reason = text(&shown["outcome"], "reason");
    assert!(reason.contains(&format!("{lost} is gone")), "{reason}");
    assert_eq!(shown["waived_gpu_ms"], shown["gpu_ms"], "{shown:#}");
    gpu_in(&sandbox, &lost, "gone");
    still_runs(&sandbox, "lucky");
    runs_on(&sandbox, "next", "GPU-c");
    sandbox.open_gate("lucky");
    assert_eq!(sandbox.wait_for_end("lucky"), "succeeded");
    // It is back: in quarantine for as long as it takes to read it clean three times.
    machine.device(&lost, |gpu| gpu.lines.clear());
    sandbox.drop_file("wide.yaml", &job("true", "gpus: 3"));
    eventually("a look at what is back", || {
        detail(&sandbox, &lost).contains("of 3 clean readings").then_some(())
    });
    assert_eq!(sandbox.wait_for_end("wide"), "succeeded");
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn what_a_gpu_tells_of_its_memory_keeps_it_out_of_service_until_it_is_reset() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b", "GPU-c"]);
    // It happened while no scheduler was there.
    machine.device("GPU-a", |gpu| gpu.lines.push("ecc = 1".into()));
    machine.device("GPU-b", |gpu| gpu.lines.push("remap = pending".into()));
    let mut sandbox = machine.serving();
    let sick = gpu_in(&sandbox, "GPU-a", "quarantined");
    assert!(text(&sick, "detail").contains("ECC could not correct"), "{sick:#}");
    let worn = gpu_in(&sandbox, "GPU-b", "quarantined");
    assert!(text(&worn, "detail").contains("next reset"), "{worn:#}");
    runs_on(&sandbox, "first", "GPU-c");
    sandbox.drop_file("wide.yaml", &job("true", "gpus: 3"));
    waits_because(&sandbox, "wide", "GPU 0 is quarantined, GPU 1 is quarantined");
    // One is cleared by a person, and that is remembered; the other is reset, as the driver's counters show.
    sandbox.run(&["clear", "GPU-a"]).ok();
    gpu_in(&sandbox, "GPU-a", "free");
    sandbox.kill_scheduler();
    sandbox.serve();
    gpu_in(&sandbox, "GPU-a", "free");
    assert_eq!(gpu(&sandbox, "GPU-b")["state"], "quarantined");
    machine.device("GPU-b", |gpu| gpu.lines.clear());
    assert_eq!(sandbox.wait_for_end("wide"), "succeeded");
}

#[test]
fn a_driver_that_is_upgraded_under_a_running_scheduler_stops_grants_and_nothing_else() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b"]);
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "runs", "");
    environment(&sandbox, "runs");
    machine.change(|says| {
        says.init = 18;
        says.devices.iter_mut().for_each(|device| device.lines.push("error = 18".into()));
    });
    let_readings_age();
    hold(&sandbox, "waits", "");
    let unknown = gpu_in(&sandbox, "GPU-b", "unknown");
    assert!(text(&unknown, "detail").contains("reboot"), "{unknown:#}");
    waits_because(&sandbox, "waits", "unknown");
    sandbox.drop_file("small.yaml", &job("true", "gpus: 0"));
    assert_eq!(sandbox.wait_for_end("small"), "succeeded");
    still_runs(&sandbox, "runs");
    let held = gpu(&sandbox, "GPU-a");
    assert_eq!((text(&held, "state"), &held["memory_used"]), ("held", &Value::Null));
    // It ends while the driver tells nothing: that proves nothing.
    sandbox.open_gate("runs");
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    assert_eq!(gpu(&sandbox, "GPU-a")["state"], "draining");
    machine.change(|says| {
        says.init = 0;
        says.devices.iter_mut().for_each(|device| device.lines.clear());
    });
    let granted = environment(&sandbox, "waits")["OVERNIGHT_GPU_UUIDS"].clone();
    gpu_in(&sandbox, if granted == "GPU-a" { "GPU-b" } else { "GPU-a" }, "free");
    // Faults are heard again, too.
    let told = || said(&sandbox, "waits").iter().any(|text| text.contains("Xid 13"));
    xid(&mut machine, &granted, 13, told);
    sandbox.open_gate("waits");
    assert_eq!(sandbox.wait_for_end("waits"), "succeeded");
}

#[test]
fn a_driver_that_hangs_from_the_start_holds_up_neither_the_scheduler_nor_jobs_without_a_gpu() {
    let mut machine = Machine::with(&["GPU-a"]);
    machine.change(|says| says.hang_ms = 600_000);
    let sandbox = machine.serving();
    sandbox.drop_file("small.yaml", &job("true", "gpus: 0"));
    assert_eq!(sandbox.wait_for_end("small"), "succeeded");
    let said = sandbox.run(&["gpus"]).ok();
    assert!(said.stderr.contains("did not answer"), "{}", said.stderr);
    hold(&sandbox, "waits", "");
    waits_because(&sandbox, "waits", "GPU");
    machine.change(|says| says.hang_ms = 0);
    environment(&sandbox, "waits");
    assert!(!sandbox.run(&["gpus"]).ok().stderr.contains("did not answer"));
    sandbox.open_gate("waits");
    assert_eq!(sandbox.wait_for_end("waits"), "succeeded");
}

#[test]
fn a_driver_that_hangs_after_a_run_proves_nothing_and_the_gpu_comes_back_by_itself() {
    let mut machine = Machine::with(&["GPU-a"]);
    let mut sandbox = machine.sandbox("drain = \"3s\"");
    sandbox.serve();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "first", "");
    environment(&sandbox, "first");
    machine.change(|says| says.hang_ms = 600_000);
    sandbox.open_gate("first");
    assert_eq!(sandbox.wait_for_end("first"), "succeeded");
    let silent = gpu_in(&sandbox, "GPU-a", "quarantined");
    let why = text(&silent, "detail");
    assert!(why.contains("did not answer") || why.contains("not read"), "{why}");
    machine.change(|says| says.hang_ms = 0);
    gpu_in(&sandbox, "GPU-a", "free");
    runs_on(&sandbox, "next", "GPU-a");
}

#[test]
fn what_is_known_of_a_gpu_follows_its_uuid_when_the_driver_numbers_anew() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b", "GPU-c"]);
    let mut sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    sandbox.run(&["close", "2", "--reason", "fan"]).ok();
    hold(&sandbox, "runs", "");
    environment(&sandbox, "runs");
    let told = || gpu(&sandbox, "GPU-b")["state"] == "quarantined";
    xid(&mut machine, "GPU-b", 119, told);
    sandbox.kill_scheduler();
    // c, b, a.
    machine.change(|says| says.devices.iter_mut().zip([3, 2, 1]).for_each(|(device, bus)| device.bus = bus));
    sandbox.serve();
    let state =
        |uuid: &str| (gpu(&sandbox, uuid)["index"].as_u64(), text(&gpu(&sandbox, uuid), "state").to_owned());
    assert_eq!(state("GPU-a"), (Some(2), "held".to_owned()));
    assert_eq!(state("GPU-b"), (Some(1), "quarantined".to_owned()));
    assert_eq!(state("GPU-c"), (Some(0), "closed".to_owned()));
    still_runs(&sandbox, "runs");
    sandbox.open_gate("runs");
    assert_eq!(sandbox.wait_for_end("runs"), "succeeded");
    runs_on(&sandbox, "next", "GPU-a");
    let table = sandbox.run(&["meter", "--by", "gpu"]).ok().stdout;
    assert!(table.lines().any(|line| line.contains("A100") && line.trim_start().starts_with('2')), "{table}");
}

#[test]
fn a_gpu_is_closed_when_its_job_has_ended() {
    let machine = Machine::with(&["GPU-a"]);
    let mut sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "last", "");
    environment(&sandbox, "last");
    let said = sandbox.run(&["close", "all", "--reason", "new fan"]).ok().stdout;
    assert!(said.contains("when its job") && said.contains("has ended"), "{said}");
    assert!(
        detail(&sandbox, "GPU-a").contains("to be closed for root: new fan"),
        "{}",
        detail(&sandbox, "GPU-a")
    );
    hold(&sandbox, "after", "");
    sandbox.kill_scheduler();
    sandbox.serve();
    still_runs(&sandbox, "last");
    sandbox.open_gate("last");
    assert_eq!(sandbox.wait_for_end("last"), "succeeded");
    let closed = gpu_in(&sandbox, "GPU-a", "closed");
    assert!(text(&closed, "detail").contains("new fan"), "{closed:#}");
    waits_because(&sandbox, "after", "GPU 0 is closed");
    sandbox.run(&["open", "all"]).ok();
    environment(&sandbox, "after");
    sandbox.open_gate("after");
    assert_eq!(sandbox.wait_for_end("after"), "succeeded");
}

#[test]
fn the_dashboard_lifts_a_quarantine_after_it_has_asked() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b"]);
    machine.device("GPU-b", |gpu| gpu.lines.push("remap = failed".into()));
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-b", "quarantined");
    let mut terminal = sandbox.in_terminal(&[], 120, 40);
    terminal.wait_for_text("is in quarantine");
    terminal.send("2");
    terminal.wait_for_text("!quar");
    // On a GPU that is well it says why not.
    terminal.send("c");
    terminal.wait_for_text("cannot clear GPU 0: it is free, not in quarantine");
    terminal.send("j");
    terminal.wait_for_text("c clear");
    terminal.send("c");
    terminal.wait_for_text("Clear GPU 1 ?");
    terminal.wait_for_text("could not be replaced");
    // Enter presses the safe button.
    terminal.send("\r");
    terminal.wait_for_no_text("Clear GPU 1 ?");
    assert_eq!(gpu(&sandbox, "GPU-b")["state"], "quarantined");
    terminal.send("c");
    terminal.wait_for_text("Clear GPU 1 ?");
    terminal.send("y");
    gpu_in(&sandbox, "GPU-b", "free");
    terminal.wait_for_no_text("!quar");
    terminal.send("q");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
}

/// The devices by index.
fn uuids(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.run(&["gpus", "--json"]).json();
    let gpus = listed["gpus"].as_array().unwrap();
    gpus.iter().map(|gpu| gpu["uuid"].as_str().unwrap().to_owned()).collect()
}

/// What is wrong with simulated devices from now on.
fn control_says(control: &Path, text: &str) {
    let next = control.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, control).unwrap();
}

#[test]
fn simulated_gpus_misbehave_in_the_same_ways() {
    let control = tempfile::NamedTempFile::new().unwrap();
    let mut sandbox = Sandbox::new("simulated:3");
    sandbox.serve_with(&["--control", control.path().to_str().unwrap()]);
    sandbox.serve();
    let uuids = uuids(&sandbox);
    let says = |text: &str| control_says(control.path(), text);
    hold(&sandbox, "buggy", "");
    environment(&sandbox, "buggy");
    says("[gpu.0]\nxids = [13]\n[gpu.1]\nxids = [95]\n[gpu.2.health]\nuncorrected = 2\n");
    gpu_in(&sandbox, &uuids[1], "quarantined");
    gpu_in(&sandbox, &uuids[2], "quarantined");
    is_told(&sandbox, "buggy", "Xid 13");
    hold(&sandbox, "waits", "");
    waits_because(&sandbox, "waits", "GPU 1 is quarantined");
    says("[gpu.0]\nxids = [13]\n[gpu.1]\nxids = [95]\n");
    assert_eq!(environment(&sandbox, "waits")["OVERNIGHT_GPU_UUIDS"], uuids[2]);
    says("[gpu.0]\nxids = [13]\nfault = \"gone\"\n[gpu.1]\nxids = [95]\n");
    hold(&sandbox, "more", "");
    let lost = eventually("an attempt that lost its GPU", || {
        let attempts = sandbox.show("buggy")["attempts"].clone();
        (attempts[0]["outcome"]["kind"] == "lost").then_some(attempts)
    });
    assert!(text(&lost[0]["outcome"], "reason").contains(&uuids[0]), "{lost:#}");
    sandbox.run(&["clear", "1"]).ok();
    says("");
    for name in ["buggy", "waits", "more"] {
        sandbox.open_gate(name);
        assert_eq!(sandbox.wait_for_end(name), "succeeded", "{name}");
    }
    for uuid in &uuids {
        gpu_in(&sandbox, uuid, "free");
    }
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn a_gpu_that_was_gone_when_the_scheduler_started_is_whole_once_it_is_back() {
    let control = tempfile::NamedTempFile::new().unwrap();
    let says = |text: &str| control_says(control.path(), text);
    let mut sandbox = Sandbox::new("simulated:2");
    sandbox.serve_with(&["--control", control.path().to_str().unwrap()]);
    sandbox.serve();
    let uuids = uuids(&sandbox);
    hold(&sandbox, "first", "");
    environment(&sandbox, "first");
    sandbox.drop_file("both.yaml", &job("true", "gpus: 2"));
    sandbox.wait_for_state("both", "queued");
    sandbox.kill_scheduler();
    says("[gpu.1]\nfault = \"gone\"\n");
    sandbox.serve();
    gpu_in(&sandbox, &uuids[1], "gone");
    says("");
    sandbox.open_gate("first");
    assert_eq!(sandbox.wait_for_end("first"), "succeeded");
    // It waits for a whole GPU, and not for the next start.
    assert_eq!(sandbox.wait_for_end("both"), "succeeded");
    assert_eq!(gpu(&sandbox, &uuids[1])["name"], gpu(&sandbox, &uuids[0])["name"]);
}
