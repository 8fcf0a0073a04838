//! The whole product over a real driver's interface: the shipped binary loads the fake `libnvidia-ml.so.1`.
//!
//! Each test has a machine of its own: a driver, a lock directory, and one or two schedulers on it.
#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/fake_nvml.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod fake_nvml;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use machine::{
    GIB, MIB, Machine, Process, began_ms, environment, gpu, gpu_in, hold, job, let_readings_age, still_runs,
    text, until, waits_because,
};
use overnight::clock;
use serde_json::Value;
use std::fs;
use std::process::Command;
use support::auditor::Auditor;
use support::sandbox::eventually;

#[test]
fn a_job_sees_its_gpu_by_the_index_of_now_and_its_receipt_names_the_uuid() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b", "GPU-c"]);
    machine.device("GPU-b", |gpu| (gpu.temperature_c, gpu.power_mw) = (41, 61_500));
    machine.device("GPU-c", |gpu| gpu.name = "NVIDIA H100 80GB HBM3".into());
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "first", "");
    let first = environment(&sandbox, "first");
    assert_eq!((&*first["CUDA_VISIBLE_DEVICES"], &*first["CUDA_DEVICE_ORDER"]), ("0", "PCI_BUS_ID"));
    assert_eq!((&*first["NVIDIA_VISIBLE_DEVICES"], &*first["OVERNIGHT_GPU_UUIDS"]), ("GPU-a", "GPU-a"));
    for own in ["LD_LIBRARY_PATH", "SCHEDULERS_OWN"] {
        assert!(!first.contains_key(own), "{own} of the scheduler is in {first:?}");
    }
    // The driver numbers anew: c, a, b. The scheduler has not been told.
    machine.device("GPU-c", |gpu| gpu.bus = 1);
    hold(&sandbox, "second", "");
    let second = environment(&sandbox, "second");
    assert_eq!((&*second["OVERNIGHT_GPU_UUIDS"], &*second["CUDA_VISIBLE_DEVICES"]), ("GPU-b", "2"));
    let held = gpu(&sandbox, "GPU-b");
    assert_eq!(held["state"], "held", "{held:#}");
    assert_eq!(held["jobs"], serde_json::json!([sandbox.show("second")["id"]]));
    assert_eq!((held["temperature_c"].as_i64(), held["power_w"].as_i64()), (Some(41), Some(62)));
    assert_eq!(held["name"], "NVIDIA A100 80GB PCIe");
    assert_eq!(held["memory_total"], 80 * GIB);
    assert_eq!(held["detail"], Value::Null);
    sandbox.open_gate("first");
    hold(&sandbox, "third", "gpu_ids: uuid, gpu_model: h100, ");
    assert_eq!(environment(&sandbox, "third")["CUDA_VISIBLE_DEVICES"], "GPU-c");
    sandbox.open_gate("second");
    sandbox.open_gate("third");
    for (name, uuid) in [("first", "GPU-a"), ("second", "GPU-b"), ("third", "GPU-c")] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
        gpu_in(&sandbox, uuid, "free");
        let folder = sandbox.job_folder(&sandbox.show(name));
        let receipt = eventually("a receipt that is final", || {
            let text = fs::read_to_string(folder.join("receipt.json")).ok()?;
            let receipt: Value = serde_json::from_str(&text).unwrap();
            (receipt["attempts"][0]["release"]["verdict"] != "pending").then_some(receipt)
        });
        let attempt = &receipt["attempts"][0];
        assert_eq!(attempt["devices"], serde_json::json!([uuid]), "{receipt:#}");
        assert_eq!((text(attempt, "ended_by"), text(&attempt["release"], "verdict")), ("proven", "clean"));
    }
    sandbox.run(&["meter", "--check"]).ok();
}

/// Not a check of a figure: those are for the bench. That a grant takes a reading and no tick shows in seconds.
#[test]
fn a_grant_takes_a_fresh_reading_and_no_tick() {
    let machine = Machine::with(&["GPU-a"]);
    let sandbox = machine.serving();
    for (what, request) in [("no", "gpus: 0"), ("by UUID, one", "gpus: 1, gpu_ids: uuid"), ("one", "gpus: 1")]
    {
        let mut took = Vec::new();
        for round in 0..5 {
            gpu_in(&sandbox, "GPU-a", "free");
            let_readings_age();
            let name = format!("{}{round}", what.replace([' ', ','], "-").to_lowercase());
            sandbox.open_gate(&name);
            let dropped = clock::wall_ms();
            sandbox.drop_file(&format!("{name}.yaml"), &job(&until(&sandbox.gate(&name)), request));
            assert_eq!(sandbox.wait_for_end(&name), "succeeded");
            took.push(began_ms(&sandbox, &name) - dropped as f64);
        }
        took.sort_by(f64::total_cmp);
        println!("drop to first instruction on {what} GPU, ms: {took:.1?}");
        // Every other wake-up is a second away at least.
        assert!(took[took.len() / 2] < 900.0, "{took:?}");
    }
}

#[test]
fn a_gpu_with_somebody_elses_process_is_not_granted_until_that_leaves() {
    let mut machine = Machine::with(&["GPU-a"]);
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    // It comes after the last reading: only the proof before the grant can see it.
    let_readings_age();
    let stranger = Process::sleep();
    machine.device("GPU-a", |gpu| gpu.lines.push(stranger.on_gpu("compute", 21 * GIB)));
    machine.device("GPU-a", |gpu| gpu.memory_used = 21 * GIB);
    hold(&sandbox, "patient", "");
    let outside = gpu_in(&sandbox, "GPU-a", "outside");
    let detail = text(&outside, "detail");
    assert!(detail.contains(&stranger.0.id().to_string()) && detail.contains("sleep"), "{detail}");
    assert_eq!(outside["processes"][0]["pid"], stranger.0.id(), "{outside:#}");
    waits_because(&sandbox, "patient", "GPU 0 is outside");
    // It goes; what it had allocated stays for now, with nobody to be seen.
    machine.device("GPU-a", |gpu| gpu.lines.clear());
    eventually("memory that nobody owns up to", || {
        let gpu = gpu(&sandbox, "GPU-a");
        assert_ne!(gpu["state"], "free", "{gpu:#}");
        assert_ne!(gpu["state"], "held", "{gpu:#}");
        gpu["detail"].as_str()?.contains("nobody").then_some(())
    });
    drop(stranger);
    machine.device("GPU-a", |gpu| gpu.memory_used = 4 * MIB);
    let left = clock::wall_ms();
    let waited = began_ms(&sandbox, "patient") - left as f64;
    println!("the stranger left, and the waiting job began after {waited:.0} ms");
    assert!(waited < 5_000.0, "{waited} ms");
    sandbox.open_gate("patient");
    assert_eq!(sandbox.wait_for_end("patient"), "succeeded");
}

#[test]
fn displays_and_the_drivers_helpers_are_no_strangers() {
    let mut machine = Machine::with(&["GPU-a"]);
    let helper = machine.locks.path().join("nvidia-helper");
    fs::copy("/bin/bash", &helper).unwrap();
    let helper = Process::of(Command::new(&helper).args(["-c", "read line"]));
    let display = Process::sleep();
    machine.device("GPU-a", |gpu| {
        gpu.lines.push(helper.on_gpu("compute", 3 * GIB));
        gpu.lines.push(display.on_gpu("graphics", GIB));
        gpu.memory_used = 4 * GIB + 4 * MIB;
    });
    let sandbox = machine.serving();
    let free = gpu_in(&sandbox, "GPU-a", "free");
    assert_eq!(free["processes"].as_array().unwrap().len(), 2, "{free:#}");
    sandbox.open_gate("beside");
    hold(&sandbox, "beside", "");
    assert_eq!(sandbox.wait_for_end("beside"), "succeeded");
    // They are still there, and it is as clean as it was found.
    gpu_in(&sandbox, "GPU-a", "free");
}

#[test]
fn what_cannot_be_read_is_unknown_is_not_granted_and_heals() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b", "GPU-c"]);
    let sandbox = machine.serving();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "runs", "");
    environment(&sandbox, "runs");
    let_readings_age();
    machine.device("GPU-b", |gpu| gpu.lines.push("error = 999".into()));
    machine.device("GPU-c", |gpu| gpu.lines.push("error.compute = 999".into()));
    hold(&sandbox, "waits", "");
    let broken = gpu_in(&sandbox, "GPU-b", "unknown");
    for figure in ["utilisation", "memory_used", "temperature_c", "power_w"] {
        assert_eq!(broken[figure], Value::Null, "{broken:#}");
    }
    assert!(!text(&broken, "detail").is_empty());
    let listless = gpu_in(&sandbox, "GPU-c", "unknown");
    assert!(text(&listless, "detail").contains("processes"), "{listless:#}");
    assert_eq!(listless["memory_used"], 4 * MIB, "what can be read is shown: {listless:#}");
    waits_because(&sandbox, "waits", "unknown");
    still_runs(&sandbox, "runs");
    machine.device("GPU-c", |gpu| gpu.lines.clear());
    assert_eq!(environment(&sandbox, "waits")["OVERNIGHT_GPU_UUIDS"], "GPU-c");
    machine.device("GPU-b", |gpu| gpu.lines.clear());

    // Now the driver says nothing at all. One job more than this machine may have cores for.
    sandbox.open_gate("waits");
    assert_eq!(sandbox.wait_for_end("waits"), "succeeded");
    gpu_in(&sandbox, "GPU-b", "free");
    let_readings_age();
    machine.change(|says| says.hang_ms = 600_000);
    hold(&sandbox, "hangs", "");
    let silent = gpu_in(&sandbox, "GPU-b", "unknown");
    assert!(text(&silent, "detail").contains("did not answer"), "{silent:#}");
    assert_eq!(silent["memory_used"], Value::Null);
    let held = gpu(&sandbox, "GPU-a");
    assert_eq!((text(&held, "state"), &held["utilisation"]), ("held", &Value::Null), "{held:#}");
    waits_because(&sandbox, "hangs", "unknown");
    still_runs(&sandbox, "runs");
    machine.change(|says| says.hang_ms = 0);
    assert_eq!(environment(&sandbox, "hangs")["OVERNIGHT_GPU_UUIDS"], "GPU-b");
    for name in ["runs", "hangs"] {
        sandbox.open_gate(name);
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    audit.finish();
}

#[test]
fn a_driver_that_was_upgraded_under_its_module_stops_grants_and_nothing_else() {
    let mut machine = Machine::with(&["GPU-a"]);
    machine.change(|says| says.init = 18);
    let mut sandbox = machine.serving();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    let said = sandbox.run(&["gpus"]).ok();
    assert!(said.stderr.contains("reboot"), "{}", said.stderr);
    sandbox.drop_file("small.yaml", &job("true", "gpus: 0"));
    assert_eq!(sandbox.wait_for_end("small"), "succeeded");
    hold(&sandbox, "big", "");
    waits_because(&sandbox, "big", "GPU");
    machine.change(|says| says.init = 0);
    environment(&sandbox, "big");
    assert!(!sandbox.run(&["gpus"]).ok().stderr.contains("reboot"));

    // It happens again, under a scheduler that starts while a job runs.
    sandbox.kill_scheduler();
    machine.change(|says| says.init = 18);
    sandbox.serve();
    hold(&sandbox, "next", "");
    waits_because(&sandbox, "next", "");
    still_runs(&sandbox, "big");
    assert_eq!(gpu(&sandbox, "GPU-a")["state"], "held");
    sandbox.open_gate("big");
    assert_eq!(sandbox.wait_for_end("big"), "succeeded");
    let draining = gpu(&sandbox, "GPU-a");
    assert!(["draining", "quarantined"].contains(&text(&draining, "state")), "{draining:#}");
    machine.change(|says| says.init = 0);
    sandbox.open_gate("next");
    assert_eq!(sandbox.wait_for_end("next"), "succeeded");
    audit.finish();
}

#[test]
fn a_driver_that_cannot_be_loaded_at_a_start_is_no_proof_that_its_devices_are_gone() {
    let machine = Machine::with(&["GPU-a"]);
    let mut sandbox = machine.serving();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    hold(&sandbox, "long", "");
    environment(&sandbox, "long");
    sandbox.kill_scheduler();
    // As while a package is being replaced.
    let (library, away) = (machine.driver.library(), machine.driver.library_dir().join("away"));
    std::fs::rename(&library, &away).unwrap();
    sandbox.serve();
    hold(&sandbox, "next", "");
    waits_because(&sandbox, "next", "");
    still_runs(&sandbox, "long");
    sandbox.open_gate("long");
    assert_eq!(sandbox.wait_for_end("long"), "succeeded");
    std::fs::rename(&away, &library).unwrap();
    sandbox.open_gate("next");
    assert_eq!(sandbox.wait_for_end("next"), "succeeded");
    audit.finish();
}

#[test]
fn a_gpu_that_stays_dirty_is_quarantined_and_the_next_job_goes_elsewhere() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b"]);
    let mut sandbox = machine.sandbox("drain = \"3s\"");
    sandbox.serve();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "leaky", "");
    environment(&sandbox, "leaky");
    let culprit = Process::sleep();
    machine.device("GPU-a", |gpu| {
        gpu.lines.push(culprit.on_gpu("compute", 40 * GIB));
        gpu.memory_used = 40 * GIB;
    });
    sandbox.open_gate("leaky");
    let names_the_culprit = |gpu: &Value| {
        let detail = gpu["detail"].as_str().unwrap_or_default();
        detail.contains("since") && detail.contains(&format!("pid {} sleep", culprit.0.id()))
    };
    eventually("a GPU that drains, with the reason", || {
        let gpu = gpu(&sandbox, "GPU-a");
        (gpu["state"] == "draining" && names_the_culprit(&gpu)).then_some(())
    });
    assert_eq!(sandbox.wait_for_end("leaky"), "succeeded");
    let early = sandbox.show("leaky");
    assert_eq!(early["attempts"][0]["release"]["verdict"], "pending", "{early:#}");
    hold(&sandbox, "other", "");
    assert_eq!(environment(&sandbox, "other")["OVERNIGHT_GPU_UUIDS"], "GPU-b");
    // A scheduler that comes back goes on with the proof.
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_ne!(gpu(&sandbox, "GPU-a")["state"], "free");
    let quarantined = gpu_in(&sandbox, "GPU-a", "quarantined");
    assert!(names_the_culprit(&quarantined), "{quarantined:#}");
    let late = sandbox.show("leaky");
    assert_eq!(late["attempts"][0]["release"]["verdict"], "quarantined", "{late:#}");
    assert_eq!(late["gpu_ms"], early["gpu_ms"], "the meter stopped when the run ended");
    assert_eq!(late["outcome"]["kind"], "succeeded");
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_eq!(gpu(&sandbox, "GPU-a")["state"], "quarantined");
    hold(&sandbox, "third", "");
    waits_because(&sandbox, "third", "GPU 0 is quarantined");
    // The culprit goes; half a GiB more than was found is still no proof.
    drop(culprit);
    machine.device("GPU-a", |gpu| {
        gpu.lines.clear();
        gpu.memory_used = GIB / 2;
    });
    eventually("a reading without the culprit", || {
        let gpu = gpu(&sandbox, "GPU-a");
        assert_eq!(gpu["state"], "quarantined", "{gpu:#}");
        (gpu["memory_used"] == GIB / 2).then_some(())
    });
    machine.device("GPU-a", |gpu| gpu.memory_used = 4 * MIB);
    assert_eq!(environment(&sandbox, "third")["OVERNIGHT_GPU_UUIDS"], "GPU-a");
    for name in ["other", "third"] {
        sandbox.open_gate(name);
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    audit.finish();
}

#[test]
fn clear_takes_a_gpu_out_of_quarantine_and_still_needs_a_clean_reading() {
    let mut machine = Machine::with(&["GPU-a"]);
    let mut sandbox = machine.sandbox("drain = \"1s\"");
    sandbox.serve();
    gpu_in(&sandbox, "GPU-a", "free");
    let refused = sandbox.run(&["clear", "0"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("not in quarantine"), "{}", refused.stderr);
    hold(&sandbox, "leaky", "");
    environment(&sandbox, "leaky");
    machine.device("GPU-a", |gpu| gpu.memory_used = 40 * GIB);
    sandbox.open_gate("leaky");
    let quarantined = gpu_in(&sandbox, "GPU-a", "quarantined");
    assert!(text(&quarantined, "detail").contains("nobody"), "{quarantined:#}");
    sandbox.run(&["clear", "0"]).ok();
    gpu_in(&sandbox, "GPU-a", "outside");
    machine.device("GPU-a", |gpu| gpu.memory_used = GIB / 2);
    // Less than a job needs to be sure that somebody is there; a person has said that it is nobody's.
    sandbox.open_gate("next");
    hold(&sandbox, "next", "");
    assert_eq!(sandbox.wait_for_end("next"), "succeeded");
}

#[test]
fn a_gpu_that_falls_off_the_bus_ends_its_attempt_as_lost_and_no_other() {
    let mut machine = Machine::with(&["GPU-a", "GPU-b"]);
    let sandbox = machine.serving();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    gpu_in(&sandbox, "GPU-a", "free");
    hold(&sandbox, "unlucky", "retry: {times: 0}");
    hold(&sandbox, "lucky", "");
    let lost = environment(&sandbox, "unlucky")["OVERNIGHT_GPU_UUIDS"].clone();
    environment(&sandbox, "lucky");
    machine.device(&lost, |gpu| gpu.lines.push("error = 15".into()));
    assert_eq!(sandbox.wait_for_end("unlucky"), "lost");
    let shown = sandbox.show("unlucky");
    assert!(text(&shown["outcome"], "reason").contains(&lost), "{shown:#}");
    let attempt = &shown["attempts"][0];
    assert_eq!((&attempt["waived"], text(attempt, "ended_by")), (&Value::Bool(true), "proven"));
    assert_eq!(shown["waived_gpu_ms"], shown["gpu_ms"], "{shown:#}");
    let gone = gpu_in(&sandbox, &lost, "gone");
    assert!(!text(&gone, "detail").is_empty());
    still_runs(&sandbox, "lucky");
    sandbox.open_gate("lucky");
    assert_eq!(sandbox.wait_for_end("lucky"), "succeeded");
    sandbox.open_gate("next");
    hold(&sandbox, "next", "");
    assert_eq!(sandbox.wait_for_end("next"), "succeeded");
    machine.device(&lost, |gpu| gpu.lines.clear());
    hold(&sandbox, "both", "");
    sandbox.drop_file("wide.yaml", &job("true", "gpus: 2"));
    sandbox.open_gate("both");
    assert_eq!(sandbox.wait_for_end("wide"), "succeeded");
    sandbox.run(&["meter", "--check"]).ok();
    audit.finish();
}

#[test]
fn two_schedulers_never_run_on_one_gpu_and_each_names_the_other() {
    let machine = Machine::with(&["GPU-a"]);
    let (here, there) = (machine.serving(), machine.serving());
    let audits =
        [&here, &there].map(|sandbox| Auditor::watch_with_driver(sandbox, &machine.driver.state_file()));
    gpu_in(&here, "GPU-a", "free");
    gpu_in(&there, "GPU-a", "free");
    hold(&here, "mine", "");
    environment(&here, "mine");
    let_readings_age();
    hold(&there, "theirs", "");
    let outside = gpu_in(&there, "GPU-a", "outside");
    let detail = text(&outside, "detail");
    let uid = rustix::process::getuid().as_raw();
    assert!(detail.contains(&format!("uid {uid}")) && detail.contains("mine"), "{detail}");
    waits_because(&there, "theirs", "outside");
    here.open_gate("mine");
    environment(&there, "theirs");
    there.open_gate("theirs");
    assert_eq!(here.wait_for_end("mine"), "succeeded");
    assert_eq!(there.wait_for_end("theirs"), "succeeded");
    assert_eq!(there.show("theirs")["attempts"].as_array().unwrap().len(), 1);
    for audit in audits {
        audit.finish();
    }
}

#[test]
fn two_schedulers_that_grant_in_the_same_instant_run_one_job_after_the_other() {
    let mut machine = Machine::with(&["GPU-a"]);
    let (here, there) = (machine.serving(), machine.serving());
    let audits =
        [&here, &there].map(|sandbox| Auditor::watch_with_driver(sandbox, &machine.driver.state_file()));
    gpu_in(&here, "GPU-a", "free");
    gpu_in(&there, "GPU-a", "free");
    let_readings_age();
    // A driver that is slow for a moment lets both ask before either grants.
    machine.change(|says| says.hang_ms = 600_000);
    let marks = machine.locks.path().join("marks");
    let run = format!(
        "mkdir '{0}'; sleep 0.3; rmdir '{0}'; echo $EPOCHREALTIME >$OVERNIGHT_OUTPUT/began",
        marks.display()
    );
    for sandbox in [&here, &there] {
        sandbox.drop_file("racer.yaml", &job(&run, "gpus: 1, retry: {times: 0}"));
    }
    for sandbox in [&here, &there] {
        waits_because(sandbox, "racer", "GPU 0");
    }
    machine.change(|says| says.hang_ms = 0);
    let mut attempts = Vec::new();
    for sandbox in [&here, &there] {
        // mkdir and rmdir fail where both run at once.
        assert_eq!(sandbox.wait_for_end("racer"), "succeeded");
        attempts.push(sandbox.show("racer")["attempts"].as_array().unwrap().len());
    }
    println!("attempts of the two: {attempts:?}");
    for sandbox in [&here, &there] {
        gpu_in(sandbox, "GPU-a", "free");
        sandbox.run(&["meter", "--check"]).ok();
    }
    for audit in audits {
        audit.finish();
    }
}

#[test]
fn an_attempt_that_was_never_launched_is_nobodys_retry() {
    let machine = Machine::with(&["GPU-a"]);
    let sandbox = machine.serving();
    let audit = Auditor::watch_with_driver(&sandbox, &machine.driver.state_file());
    gpu_in(&sandbox, "GPU-a", "free");
    // No supervisor takes a lock that is not a plain file; to a reading nobody holds it.
    let lock = machine.locks.path().join("GPU-a.lock");
    std::os::unix::fs::symlink("/dev/null", &lock).unwrap();
    sandbox.open_gate("again");
    hold(&sandbox, "again", "retry: {times: 0}");
    eventually("a second attempt", || {
        let job = sandbox.jobs().into_iter().find(|job| job["name"] == "again")?;
        (job["retry_at"] != Value::Null).then_some(())
    });
    fs::remove_file(&lock).unwrap();
    assert_eq!(sandbox.wait_for_end("again"), "succeeded");
    let shown = sandbox.show("again");
    let attempts = shown["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{shown:#}");
    assert_eq!((&attempts[0]["waived"], &attempts[0]["started_at"]), (&Value::Bool(true), &Value::Null));
    assert_eq!(attempts[0]["outcome"]["kind"], "lost", "{shown:#}");
    assert_eq!(attempts[1]["outcome"]["kind"], "succeeded", "{shown:#}");
    sandbox.run(&["meter", "--check"]).ok();
    audit.finish();
}

#[test]
fn a_closed_gpu_is_not_granted_and_refusals_say_why() {
    let machine = Machine::with(&["GPU-a", "GPU-b"]);
    let sandbox = machine.serving();
    gpu_in(&sandbox, "GPU-a", "free");
    sandbox.run(&["close", "0", "--reason", "fan is loud"]).ok();
    let closed = gpu(&sandbox, "GPU-a");
    assert_eq!(closed["state"], "closed");
    assert!(text(&closed, "detail").contains("fan is loud"), "{closed:#}");
    hold(&sandbox, "goes", "");
    assert_eq!(environment(&sandbox, "goes")["OVERNIGHT_GPU_UUIDS"], "GPU-b");
    for (args, why) in [
        (&["clear", "1"][..], "not in quarantine; it is held"),
        (&["open", "1"], "not closed"),
        (&["close", "7"], "no such GPU; there are: 0 1"),
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code, 1, "{args:?}");
        assert!(refused.stderr.contains(why), "{args:?}: {}", refused.stderr);
    }
    hold(&sandbox, "waits", "");
    waits_because(&sandbox, "waits", "GPU 0 is closed");
    sandbox.run(&["open", "GPU-a"]).ok();
    assert_eq!(environment(&sandbox, "waits")["OVERNIGHT_GPU_UUIDS"], "GPU-a");
    for name in ["goes", "waits"] {
        sandbox.open_gate(name);
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
}

#[test]
fn a_model_and_a_memory_size_find_the_cards_that_vendors_call_so() {
    let mut machine = Machine::with(&["GPU-a", "GPU-h", "GPU-l"]);
    let cards = [
        ("GPU-a", "NVIDIA A100-SXM4-40GB", 40_960),
        ("GPU-h", "NVIDIA H100 80GB HBM3", 81_559),
        ("GPU-l", "NVIDIA L40S", 46_068),
    ];
    for (uuid, name, mib) in cards {
        machine.device(uuid, |gpu| {
            name.clone_into(&mut gpu.name);
            gpu.memory_total = mib * MIB;
        });
    }
    let sandbox = machine.serving();
    for (name, request, uuid) in [
        ("model", "gpu_model: [h100, a100], gpu_memory: 80GiB, ", "GPU-h"),
        ("memory", "gpu_memory: 48GB, ", "GPU-l"),
        ("word", "gpu_model: A100, ", "GPU-a"),
    ] {
        hold(&sandbox, name, request);
        assert_eq!(environment(&sandbox, name)["OVERNIGHT_GPU_UUIDS"], uuid, "{name}");
        sandbox.open_gate(name);
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    // `l4` is no word of `L40S`.
    let request = "gpus: 1, gpu_model: l4, ";
    fs::write(sandbox.dir().join("l4.yaml"), job("true", request)).unwrap();
    let refused = sandbox.run(&["submit", "l4.yaml"]);
    assert_eq!(refused.code, 1);
    let told = refused.stdout + &refused.stderr;
    assert!(told.contains("L40S"), "what there is: {told}");
}
