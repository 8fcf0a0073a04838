//! Reboots: a mount namespace has another boot id, a time namespace a clock that began anew.
//!
//! The machine's processes go with it in most tests; where they stay, they stand for strangers that have got the numbers
//! and start times of the earlier boot's processes, and even their tokens.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/bill.rs"]
mod bill;
#[path = "support/boots.rs"]
mod boots;
#[path = "support/small_disk.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod small_disk;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use boots::{Boots, end_of_the_machine, lease_of};
use overnight::supervisor::process::{self, ProcessId};
use overnight::supervisor::record::{self, JournalState};
use serde_json::Value;
use std::path::PathBuf;
use support::auditor::Auditor;
use support::sandbox::{Sandbox, eventually};

/// Two hours, in seconds.
const TWO_HOURS: i64 = 7200;

fn job(sandbox: &Sandbox, name: &str, more: &str) -> String {
    let gate = sandbox.gate(name);
    format!(
        "work:\n  run: |\n    echo half > half\n    until [ -e '{}' ]; do sleep 0.02; done\n\
         data: []\nrequest: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m{more}}}\noutput: [{{path: half, optional: true}}]\n",
        gate.display()
    )
}

fn journal(sandbox: &Sandbox, lease: u64) -> PathBuf {
    sandbox.root().join(format!(".state/run/{lease}")).join(record::NAME)
}

/// A journal whose supervisor has given a sign of life since the start of its work.
fn with_heartbeat(sandbox: &Sandbox, lease: u64) -> JournalState {
    let path = journal(sandbox, lease);
    eventually("a heartbeat", || record::read(&path).ok().filter(|state| state.heartbeat.is_some()))
}

fn millis(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn runs_end_lost_at_their_last_heartbeat_and_the_time_the_machine_was_off_is_not_billed() {
    let Some(boots) = Boots::new("runs_end_lost_at_their_last_heartbeat") else { return };
    let mut sandbox = Sandbox::new("simulated:4");
    let audit = Auditor::watch(&sandbox);
    sandbox.wrap(boots.wrapper(1, 0));
    sandbox.serve();
    for (name, more) in
        [("lost", ", retry: {times: 0}"), ("again", ""), ("never-again", ", retry: {times: 2, when: [75]}")]
    {
        sandbox.drop_file(&format!("{name}.yaml"), &job(&sandbox, name, more));
        sandbox.wait_for_state(name, "running");
    }
    let leases: Vec<u64> = ["lost", "again", "never-again"].map(|name| lease_of(&sandbox, name, 0)).to_vec();
    let before: Vec<JournalState> = leases.iter().map(|lease| with_heartbeat(&sandbox, *lease)).collect();
    end_of_the_machine(&mut sandbox);
    // What the supervisors may have written until then.
    let before: Vec<(u64, JournalState)> = leases
        .iter()
        .zip(before)
        .map(|(lease, _)| (*lease, record::read(&journal(&sandbox, *lease)).unwrap()))
        .collect();

    // The clock that counts begins anew, and is soon far beyond where the earlier boot's was.
    sandbox.wrap(boots.wrapper(2, TWO_HOURS));
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("lost"), "lost");
    assert_eq!(sandbox.wait_for_end("never-again"), "lost");
    for (name, (lease, state)) in ["lost", "again", "never-again"].into_iter().zip(&before) {
        let shown = eventually("an attempt that ended", || {
            let shown = sandbox.show(name);
            (!shown["attempts"][0]["ended_at"].is_null()).then_some(shown)
        });
        let attempt = &shown["attempts"][0];
        assert_eq!(attempt["lease"], *lease);
        assert_eq!(attempt["ended_by"], "estimated", "{attempt:#}");
        assert_eq!(attempt["waived"], true, "{attempt:#}");
        let sign = state.last_sign().unwrap();
        assert_eq!(millis(&attempt["ended_at"]), sign.wall_ms, "{attempt:#}");
        // From the journal alone: the intent is later than the grant, by what a launch takes.
        let held = attempt["held_ms"].as_u64().unwrap();
        let least = sign.boottime_ms - state.intent().unwrap().at.boottime_ms;
        assert!(held >= least && held < least + 60_000, "held {held}, at least {least}: {attempt:#}");
        assert_eq!(attempt["gpu_ms"], held, "{attempt:#}");
        assert_eq!(shown["waived_gpu_ms"], held, "{shown:#}");
    }
    // Retried because the job asked, by default; what came to be before the end is still there.
    sandbox.open_gate("again");
    assert_eq!(sandbox.wait_for_end("again"), "succeeded");
    let again = sandbox.show("again");
    assert_eq!(again["attempts"].as_array().unwrap().len(), 2, "{again:#}");
    assert_eq!(sandbox.show("lost")["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.show("lost")["outputs"][0]["path"], "half", "{:#}", sandbox.show("lost"));
    assert_eq!(sandbox.show("lost")["outputs"][0]["partial"], true);

    // The bill: what was waived is shown, and every cut sums to the same.
    let jobs = ["lost", "again", "never-again"].map(|name| sandbox.show(name));
    let sum = |key: &str| jobs.iter().map(|job| job[key].as_u64().unwrap()).sum::<u64>();
    let billed = (sum("gpu_ms"), sum("waived_gpu_ms"));
    assert_eq!(bill::sums(&sandbox), billed);
    audit.finish();
}

#[test]
fn no_process_of_an_earlier_boot_is_signalled_whatever_it_looks_like() {
    let Some(boots) = Boots::new("no_process_of_an_earlier_boot_is_signalled") else { return };
    let mut sandbox = Sandbox::new("simulated:4");
    let audit = Auditor::watch(&sandbox);
    sandbox.wrap(boots.wrapper(1, 0));
    sandbox.serve();
    sandbox.drop_file("lost.yaml", &job(&sandbox, "lost", ", retry: {times: 0}"));
    sandbox.drop_file("cancelled.yaml", &job(&sandbox, "cancelled", ", retry: {times: 0}"));
    let mut strangers: Vec<ProcessId> = Vec::new();
    for name in ["lost", "cancelled"] {
        sandbox.wait_for_state(name, "running");
        let state = with_heartbeat(&sandbox, lease_of(&sandbox, name, 0));
        strangers.extend([state.intent().unwrap().supervisor, state.main().unwrap()]);
    }
    // The scheduler is ended with a cancel on its way, so that it has a reason to look for somebody to end.
    let id = sandbox.show("cancelled")["id"].to_string();
    sandbox.run(&["cancel", &id, "--undo", "1s"]).ok();
    sandbox.kill_scheduler();

    sandbox.wrap(boots.wrapper(2, 0));
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("lost"), "lost");
    sandbox.wait_for_end("cancelled");
    sandbox.run(&["stop"]).ok();
    sandbox.wait_for_scheduler();
    sandbox.serve();
    sandbox.jobs();
    for stranger in &strangers {
        assert!(process::is_running(*stranger), "{stranger:?} was ended by a scheduler of another boot");
    }
    for stranger in strangers {
        process::signal(stranger, rustix::process::Signal::KILL);
    }
    audit.finish();
}

#[test]
fn a_reboot_in_the_middle_of_recovery_is_just_another_reboot() {
    let Some(boots) = Boots::new("a_reboot_in_the_middle_of_recovery") else { return };
    let mut sandbox = Sandbox::new("simulated:2");
    let audit = Auditor::watch(&sandbox);
    sandbox.wrap(boots.wrapper(1, 0));
    sandbox.serve();
    sandbox.drop_file("lost.yaml", &job(&sandbox, "lost", ", retry: {times: 0}"));
    sandbox.wait_for_state("lost", "running");
    let lease = lease_of(&sandbox, "lost", 0);
    with_heartbeat(&sandbox, lease);
    end_of_the_machine(&mut sandbox);
    let sign = record::read(&journal(&sandbox, lease)).unwrap().last_sign().unwrap();
    for boot in 2..8 {
        sandbox.wrap(boots.wrapper(boot, TWO_HOURS * i64::from(boot)));
        sandbox.spawn_scheduler();
        // Each a little later in its recovery than the one before.
        for _ in 0..boot {
            std::thread::park_timeout(std::time::Duration::from_millis(15));
        }
        end_of_the_machine(&mut sandbox);
    }
    sandbox.wrap(boots.wrapper(9, 0));
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("lost"), "lost");
    let shown = sandbox.show("lost");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "{shown:#}");
    assert_eq!(millis(&shown["attempts"][0]["ended_at"]), sign.wall_ms, "{shown:#}");
    assert_eq!(shown["attempts"][0]["ended_by"], "estimated");
    assert_eq!(shown["waived_gpu_ms"], shown["gpu_ms"]);
    sandbox.run(&["meter", "--check"]).ok();
    audit.finish();
}
