//! Clocks and the meter, with real processes: restarts, a scheduler that was away for hours, a machine that slept, a wall
//! clock that is set, a midnight. What is billed is compared with what the event log and the supervisors' journals say.

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
use overnight::clock;
use overnight::model::{Event, LeaseId, Now};
use overnight::store::{Identity, Store, StoreOptions};
use overnight::supervisor::record::{self, Ended, JournalState};
use rustix::time::{ClockId, Timespec, clock_settime};
use small_disk::skipped;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::auditor::Auditor;
use support::sandbox::{Sandbox, eventually};

const HOUR_MS: i64 = 3_600_000;

fn job(sandbox: &Sandbox, name: &str, gpus: u32, more: &str) -> String {
    let gate = sandbox.gate(name);
    format!(
        "work: {{run: [sh, -c, \"until [ -e '{}' ]; do sleep 0.02; done\"]}}\ndata: []\n\
         request: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: 12h{more}}}\noutput: []\n",
        gate.display()
    )
}

/// A job that runs, and its journal under a name that stays when its run directory goes.
fn running(sandbox: &Sandbox, name: &str, gpus: u32) -> PathBuf {
    sandbox.drop_file(&format!("{name}.yaml"), &job(sandbox, name, gpus, ""));
    sandbox.wait_for_state(name, "running");
    let lease = lease_of(sandbox, name, 0);
    let kept = sandbox.dir().join(format!("{name}.journal"));
    fs::hard_link(sandbox.root().join(format!(".state/run/{lease}")).join(record::NAME), &kept).unwrap();
    kept
}

fn ended(journal: &Path) -> Option<Ended> {
    record::read(journal).unwrap().ended().cloned()
}

/// When each lease was granted and when it ended, from the event log alone. Ends the scheduler.
fn log(sandbox: &mut Sandbox) -> BTreeMap<LeaseId, (Now, Now)> {
    sandbox.run(&["stop"]).ok();
    sandbox.wait_for_scheduler();
    let root = sandbox.root();
    let options = StoreOptions::new(root.join(".first-start"));
    let (store, _) = Store::open(&root.join(".state/state.redb"), &Identity::read(), &options).unwrap();
    let mut granted = BTreeMap::new();
    let mut leases = BTreeMap::new();
    for record in store.reader().events_after(0, usize::MAX).unwrap() {
        match record.event {
            Event::LeaseGranted { lease, .. } => drop(granted.insert(lease, record.at)),
            Event::LeaseEnded { lease, ended, .. } => {
                let again = leases.insert(lease, (granted[&lease], ended));
                assert!(again.is_none(), "lease {lease} ended twice");
            }
            _ => {}
        }
    }
    leases
}

/// The bill of one job, and that every cut of the ledger sums to the same.
fn bill_of(sandbox: &Sandbox, name: &str) -> (u64, u64) {
    let shown = sandbox.show(name);
    let its = (shown["gpu_ms"].as_u64().unwrap(), shown["waived_gpu_ms"].as_u64().unwrap());
    bill::sums(sandbox);
    its
}

#[test]
fn fifty_restarts_during_one_job_are_billed_once_to_the_millisecond() {
    let mut sandbox = Sandbox::new("simulated:2");
    let audit = Auditor::watch(&sandbox);
    sandbox.serve();
    let journal = running(&sandbox, "long", 2);
    for _ in 0..50 {
        sandbox.kill_scheduler();
        sandbox.serve();
    }
    assert_eq!(sandbox.wait_for_state("long", "running")["waived_gpu_ms"], 0);
    sandbox.open_gate("long");
    assert_eq!(sandbox.wait_for_end("long"), "succeeded");
    let (gpu_ms, waived) = bill_of(&sandbox, "long");
    let shown = sandbox.show("long");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "{shown:#}");
    assert_eq!(shown["attempts"][0]["ended_by"], "proven");
    let seen = ended(&journal).unwrap().at;
    let leases = log(&mut sandbox);
    let (granted, _) = leases[&LeaseId(1)];
    assert_eq!(leases.len(), 1);
    assert_eq!(seen.boot, granted.boot);
    assert_eq!(
        gpu_ms,
        2 * (seen.boottime_ms - granted.boottime_ms),
        "the supervisor saw the end at {seen:?}"
    );
    assert_eq!(waived, 0);
    audit.finish();
}

#[test]
fn a_scheduler_that_was_away_for_hours_bills_what_the_supervisors_saw() {
    let Some(boots) = Boots::new("a_scheduler_that_was_away_for_hours") else { return };
    let mut sandbox = Sandbox::new("simulated:2");
    let audit = Auditor::watch(&sandbox);
    sandbox.wrap(boots.wrapper(1, 0));
    sandbox.serve();
    let one = running(&sandbox, "one", 1);
    let two = running(&sandbox, "two", 1);
    sandbox.kill_scheduler();
    sandbox.open_gate("one");
    eventually("an end that only the supervisor sees", || ended(&one));
    sandbox.open_gate("two");
    eventually("an end that only the supervisor sees", || ended(&two));
    // Three hours later, as the clocks of the next scheduler have it.
    sandbox.wrap(boots.wrapper(1, 3 * HOUR_MS / 1000));
    sandbox.serve();
    for name in ["one", "two"] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    let bills = [bill_of(&sandbox, "one"), bill_of(&sandbox, "two")];
    let ends = [one, two].map(|journal| ended(&journal).unwrap().at);
    let leases = log(&mut sandbox);
    for (n, (bill, end)) in bills.into_iter().zip(ends).enumerate() {
        let (granted, _) = leases[&LeaseId(n as u64 + 1)];
        assert_eq!(bill, (end.boottime_ms - granted.boottime_ms, 0), "lease {}", n + 1);
    }
    audit.finish();
}

#[test]
fn a_machine_that_slept_while_nobody_was_there_bills_up_to_the_last_sign_of_life() {
    let Some(boots) = Boots::new("a_machine_that_slept") else { return };
    let mut sandbox = Sandbox::new("simulated:2");
    let audit = Auditor::watch(&sandbox);
    sandbox.wrap(boots.wrapper(1, 0));
    sandbox.serve();
    let journal = running(&sandbox, "lost", 1);
    let alive = |state: &JournalState| state.heartbeat.is_some();
    eventually("a heartbeat", || record::read(&journal).ok().filter(alive));
    end_of_the_machine(&mut sandbox);
    let sign = record::read(&journal).unwrap().last_sign().unwrap();
    // Eight hours asleep: boottime went on, monotonic did not.
    sandbox.wrap(boots.suspended(1, 8 * HOUR_MS / 1000, 0));
    sandbox.serve();
    eventually("an end", || (!sandbox.show("lost")["attempts"][0]["ended_at"].is_null()).then_some(()));
    let shown = sandbox.show("lost");
    assert_eq!(shown["attempts"][0]["ended_by"], "estimated", "{shown:#}");
    let billed = shown["attempts"][0]["gpu_ms"].as_u64().unwrap();
    // Its second attempt goes through the gate.
    sandbox.open_gate("lost");
    assert_eq!(sandbox.wait_for_end("lost"), "succeeded");
    bill_of(&sandbox, "lost");
    let (granted, _) = log(&mut sandbox)[&LeaseId(1)];
    assert_eq!(billed, sign.boottime_ms - granted.boottime_ms);
    audit.finish();
}

#[test]
fn a_run_over_midnight_is_split_there_and_the_days_sum_exactly() {
    let mut sandbox = Sandbox::new("simulated:2");
    let audit = Auditor::watch(&sandbox);
    sandbox.serve();
    let journal = running(&sandbox, "night", 2);
    sandbox.kill_scheduler();
    // A zone in which it is midnight in two seconds.
    let midnight = clock::wall_ms() / 1000 + 2;
    let west = (midnight + 43_200).rem_euclid(86_400) - 43_200;
    let (sign, seconds) = (if west < 0 { "-" } else { "" }, west.abs());
    let zone = format!("NIGHT{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    sandbox.set("TZ", &zone);
    sandbox.serve();
    eventually("midnight, and a second more", || (clock::wall_ms() > (midnight + 1) * 1000).then_some(()));
    sandbox.open_gate("night");
    assert_eq!(sandbox.wait_for_end("night"), "succeeded");
    let (gpu_ms, _) = bill_of(&sandbox, "night");
    let days = sandbox.run(&["meter", "--by", "day", "--json"]).json();
    let rows: Vec<u64> =
        days["rows"].as_array().unwrap().iter().map(|row| row["gpu_ms"].as_u64().unwrap()).collect();
    let seen = ended(&journal).unwrap().at;
    let (granted, _) = log(&mut sandbox)[&LeaseId(1)];
    let before = 2 * (midnight * 1000 - granted.wall_ms).unsigned_abs();
    assert_eq!(gpu_ms, 2 * (seen.boottime_ms - granted.boottime_ms));
    assert_eq!(rows, [before, gpu_ms - before], "{zone}: {days:#}");
    audit.finish();
}

/// Sets the wall clock by an hour, and back at the end, however that comes.
struct Step {
    by_ms: i64,
}

impl Step {
    fn set(by_ms: i64) -> rustix::io::Result<Self> {
        let at = clock::wall_ms() + by_ms;
        let time = Timespec { tv_sec: at.div_euclid(1000), tv_nsec: at.rem_euclid(1000) * 1_000_000 };
        clock_settime(ClockId::Realtime, time)?;
        Ok(Self { by_ms })
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.by_ms != 0 {
            std::mem::forget(Self::set(-self.by_ms).unwrap());
        }
    }
}

/// The whole machine's clock is set, so only where that was asked for: `OVERNIGHT_TEST_CLOCK_STEPS=1`.
#[test]
fn a_wall_clock_that_is_set_changes_no_bill_and_wakes_who_waits_for_it() {
    let test = "a_wall_clock_that_is_set";
    if std::env::vars().all(|(name, _)| name != "OVERNIGHT_TEST_CLOCK_STEPS") {
        return skipped(test, "it sets the machine's clock: OVERNIGHT_TEST_CLOCK_STEPS=1 allows it");
    }
    let mut sandbox = Sandbox::new("simulated:4");
    sandbox.serve();
    let journal = running(&sandbox, "long", 2);
    let step = match Step::set(-HOUR_MS) {
        Ok(step) => step,
        Err(errno) => return skipped(test, &format!("the clock cannot be set here: {errno}")),
    };
    // An hour back: nothing is negative, and what starts at a time of day waits for it.
    let listed = sandbox.run(&["ls"]);
    let shown = sandbox.run(&["show", "long", "--json"]);
    let file = sandbox.dir().join("timed.yaml");
    let start = jiff::Timestamp::from_millisecond(clock::wall_ms() + HOUR_MS - 20_000).unwrap();
    fs::write(&file, job(&sandbox, "timed", 1, &format!(", start_after: \"{start:.0}\""))).unwrap();
    let submitted = sandbox.run(&["submit", file.to_str().unwrap()]);
    let waits = sandbox.run(&["ls", "--json"]);
    std::thread::park_timeout(Duration::from_millis(50));
    drop(step);
    // An hour forward again: it is due now.
    let (listed, shown, waits) = (listed.ok(), shown.json(), waits.json());
    submitted.ok();
    assert!(!listed.stdout.contains('-') || !listed.stdout.contains(" -1"), "{}", listed.stdout);
    assert!(shown["gpu_ms"].as_u64().unwrap() < HOUR_MS.unsigned_abs(), "{shown:#}");
    let timed = waits["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "timed").unwrap();
    assert_eq!(timed["state"], "queued", "{timed:#}");
    sandbox.wait_for_state("timed", "running");
    sandbox.open_gate("timed");
    sandbox.open_gate("long");
    assert_eq!(sandbox.wait_for_end("long"), "succeeded");
    assert_eq!(sandbox.wait_for_end("timed"), "succeeded");
    let (gpu_ms, waived) = bill_of(&sandbox, "long");
    let seen = ended(&journal).unwrap().at;
    let (granted, _) = log(&mut sandbox)[&LeaseId(1)];
    assert_eq!((gpu_ms, waived), (2 * (seen.boottime_ms - granted.boottime_ms), 0));
}
