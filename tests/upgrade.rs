//! Upgrades: what each milestone has left on disk loads in this version, and a supervisor of each milestone goes on under
//! this scheduler.
//!
//! `tests/fixtures/state/<milestone>/` is the root of a scheduler of that milestone whose machine went down in the middle
//! of things, with its state in `state`, and in `ls.json` and `gpus.json` what it said last. A milestone that lands adds
//! one, and never changes an older one:
//!
//! ```text
//! OVERNIGHT_MILESTONE=2-name cargo test --test upgrade -- --ignored write_the_fixture
//! ```

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/boots.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod boots;
#[path = "upgrade/fixture.rs"]
mod fixture;
#[path = "upgrade/skew.rs"]
mod skew;
#[path = "support/small_disk.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod small_disk;
#[path = "upgrade/supervisor_v1.rs"]
mod supervisor_v1;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use fixture::{Fixture, milestones};
use overnight::store::{Identity, Store, StoreError, StoreOptions};
use overnight::supervisor::record;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use support::sandbox::{Sandbox, eventually};

/// What must not have changed about a job that was done.
const FACTS: [&str; 16] = [
    "id",
    "name",
    "user",
    "project",
    "kind",
    "state",
    "outcome",
    "gpus",
    "cpus",
    "priority",
    "submitted_at",
    "rented_at",
    "started_at",
    "ended_at",
    "gpu_ms",
    "waived_gpu_ms",
];

fn by_name(list: &Value) -> BTreeMap<String, Value> {
    let jobs = list["jobs"].as_array().unwrap();
    jobs.iter().map(|job| (job["name"].as_str().unwrap().to_owned(), job.clone())).collect()
}

/// Every file below a folder, with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_store_and_the_journals_of_every_milestone_can_be_read() {
    let all = milestones();
    assert!(!all.is_empty());
    for milestone in all {
        let fixture = Fixture::copy(&milestone);
        let version = fixture.meta("record_version");
        let said = by_name(&fixture.said("ls"));
        let options = StoreOptions::new(fixture.root.join(".first-start"));
        let (store, loaded) =
            Store::open(&fixture.root.join(".state/state.redb"), &Identity::read(), &options)
                .unwrap_or_else(|error| panic!("{milestone}, records of version {version}: {error}"));
        assert_eq!(loaded.jobs.len(), said.len(), "{milestone}");
        for job in &loaded.jobs {
            let before = &said[&job.spec.name];
            assert_eq!(before["id"], job.id.0, "{milestone}");
            assert_eq!(before["state"], job.state().word(), "{milestone}: {}", job.spec.name);
            let outcome = job.done.as_ref().map(|(_, outcome)| outcome.word());
            assert_eq!(before["outcome"]["kind"].as_str(), outcome, "{milestone}: {}", job.spec.name);
        }
        let events = store.reader().events_after(0, usize::MAX).unwrap();
        assert_eq!(events.len() as u64, loaded.last_seq, "{milestone}: the event log has no gap");
        assert!(!loaded.drops.is_empty() && !loaded.leases.is_empty(), "{milestone}");
        drop(store);

        let mut journals = 0;
        for run in fs::read_dir(fixture.root.join(".state/run")).unwrap() {
            let state = record::read(&run.unwrap().path().join(record::NAME)).unwrap();
            assert!(
                state.intent().is_some() && state.main().is_some() && !state.torn,
                "{milestone}: {state:?}"
            );
            assert!(
                state.records.iter().all(|record| *record != record::Record::Unknown),
                "{milestone}: {state:?}"
            );
            assert!(state.heartbeat.is_some(), "{milestone}: {state:?}");
            journals += 1;
        }
        assert!(journals > 0, "{milestone} has no journal");
    }
}

#[test]
fn a_scheduler_over_the_state_of_every_milestone_goes_on_where_that_one_stopped() {
    for milestone in milestones() {
        let fixture = Fixture::copy(&milestone);
        let (said, gpus) = (fixture.said("ls"), fixture.said("gpus"));
        let receipts: BTreeMap<PathBuf, Vec<u8>> = files(&fixture.root.join("jobs"))
            .into_iter()
            .filter(|(path, _)| {
                path.file_name().unwrap() != "receipt.json" && path.file_name().unwrap() != "receipt.md"
            })
            // A job that waits is told anew what it waits for.
            .filter(|(path, _)| !path.ends_with("12-edited/answer.txt"))
            .collect();
        let journal = fixture.journal_of("running");
        let sign = record::read(&journal).unwrap().last_sign().unwrap();
        let mut sandbox = Sandbox::on(&fixture.root, "simulated:4");
        let control = sandbox.dir().join("control.toml");
        fs::write(&control, fixture::STILL_DIRTY).unwrap();
        sandbox.serve_with(&["--control", control.to_str().unwrap()]);
        sandbox.serve();

        let now = by_name(&sandbox.run(&["ls", "--all", "--json"]).json());
        for (name, before) in by_name(&said).iter().filter(|(_, job)| job["state"] == "done") {
            for fact in FACTS {
                assert_eq!(now[name][fact], before[fact], "{milestone}: {name} has another {fact}");
            }
            assert_eq!(
                sandbox.run(&["receipt", name, "--json"]).json()["outcome"],
                before["outcome"],
                "{milestone}"
            );
        }
        // The machine went down: that run is lost, and made again because its job says so.
        let lost = eventually("the end of the run that was under way", || {
            let shown = sandbox.show("running");
            (!shown["attempts"][0]["ended_at"].is_null()).then_some(shown)
        });
        let first = &lost["attempts"][0];
        assert_eq!((&first["ended_by"], &first["waived"]), (&"estimated".into(), &true.into()), "{first:#}");
        let ended: jiff::Timestamp = first["ended_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(ended.as_millisecond(), sign.wall_ms, "{milestone}: {first:#}");
        assert_eq!(sandbox.wait_for_end("running"), "succeeded", "{milestone}");
        assert_eq!(sandbox.wait_for_end("after-it"), "succeeded", "{milestone}");
        assert_eq!(now["paused"]["paused"], true, "{milestone}");
        sandbox.run(&["resume", "paused"]).ok();
        assert_eq!(sandbox.wait_for_end("paused"), "succeeded", "{milestone}");
        // Since the second milestone jobs can be edited.
        if now.contains_key("edited") {
            let shown = sandbox.show("edited");
            let asks = (&shown["spec"]["request"]["for"], &shown["priority"]);
            assert_eq!(asks, (&"7m".into(), &(-3).into()), "{shown:#}");
            sandbox.run(&["resume", "edited"]).ok();
            assert_eq!(sandbox.wait_for_end("edited"), "succeeded", "{milestone}");
        }

        // A device in quarantine stays there as long as it is dirty; then the widest job runs.
        let states = |list: &Value| -> Vec<(Value, Value)> {
            let list = list["gpus"].as_array().unwrap();
            list.iter()
                .map(|gpu| (gpu["uuid"].clone(), gpu["state"].clone()))
                .filter(|gpu| gpu.1 == "quarantined")
                .collect()
        };
        let quarantined = states(&gpus);
        assert_eq!(quarantined.len(), 1, "{milestone}: {gpus:#}");
        assert_eq!(states(&sandbox.run(&["gpus", "--json"]).json()), quarantined, "{milestone}");
        assert_eq!(sandbox.show("wide")["state"], "queued", "{milestone}");
        fs::write(&control, "").unwrap();
        sandbox.run(&["clear", "3"]);
        assert_eq!(sandbox.wait_for_end("wide"), "succeeded", "{milestone}");
        sandbox.run(&["meter", "--check"]).ok();

        for (path, bytes) in receipts {
            // Links of a further attempt may name other files; what was there is untouched.
            assert!(fs::read(&path).unwrap() == bytes, "{milestone}: {} has changed", path.display());
        }
        let last =
            said["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()).max().unwrap();
        sandbox.drop_file("newest.yaml", &fixture::job("true", ""));
        assert_eq!(sandbox.wait_for_end("newest"), "succeeded");
        assert_eq!(sandbox.show("newest")["id"], last + 1, "{milestone}: no number is used again");
    }
}

/// A copy of the newest milestone's state, changed, and that no scheduler touches it.
fn is_refused(change: impl FnOnce(&Fixture), code: i32, words: &[&str]) {
    let fixture = Fixture::copy(milestones().last().unwrap());
    change(&fixture);
    let state = fixture.root.join(".state");
    // As a scheduler makes it: another mode is put right, and said.
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
    let before = files(&fixture.root);
    let sandbox = Sandbox::on(&fixture.root, "simulated:4");
    for verb in [&["serve", "--gpus", "simulated:4"][..], &["serve", "--detached"]] {
        let run = sandbox.run(verb);
        assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
        let said: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(said.len(), 1, "one line: {}", run.stderr);
        assert!(words.iter().all(|word| said[0].contains(word)), "{}", run.stderr);
    }
    let mut after = files(&fixture.root);
    // Whoever is refused has had the lock.
    after.remove(&state.join("lock"));
    let changed: Vec<&PathBuf> =
        before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "these were touched: {changed:?}");
    let made: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(made.is_empty(), "these were made: {made:?}");
    // The test has nothing to end.
    sandbox.leave();
}

#[test]
fn a_store_of_a_later_version_is_refused_untouched() {
    let change = |fixture: &Fixture| fixture.set_meta("record_version", "4000");
    is_refused(change, 4, &["newer Overnight", "format 4000", "use the newer version"]);
}

#[test]
fn a_journal_of_a_later_version_is_refused_untouched() {
    let change = |fixture: &Fixture| {
        let path = fixture.journal_of("running");
        let mut bytes = fs::read(&path).unwrap();
        bytes[8..12].copy_from_slice(&77_u32.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    };
    is_refused(change, 4, &["newer Overnight", "journal format 77", "use the newer version"]);
}

#[test]
fn another_machines_state_is_refused_untouched() {
    let change = |fixture: &Fixture| fixture.set_meta("machine_id", &"f".repeat(32));
    is_refused(change, 4, &["belongs to the machine", "--state DIR"]);
}

#[test]
fn a_state_that_is_gone_or_emptied_is_no_first_start() {
    let remove = |fixture: &Fixture| fs::remove_file(fixture.root.join(".state/state.redb")).unwrap();
    is_refused(remove, 4, &["is gone", ".first-start", "restore it"]);
    let empty = |fixture: &Fixture| fs::write(fixture.root.join(".state/state.redb"), "").unwrap();
    is_refused(empty, 4, &["damaged", "it is empty", "restore a copy"]);
    // Also where the marker went with it: the folders of the jobs tell.
    let all = |fixture: &Fixture| {
        fs::remove_dir_all(fixture.root.join(".state")).unwrap();
        fs::create_dir(fixture.root.join(".state")).unwrap();
        fs::remove_file(fixture.root.join(".first-start")).unwrap();
    };
    is_refused(all, 4, &["is gone", "jobs/", "restore it"]);
}

#[test]
fn a_fixture_is_small() {
    for milestone in milestones() {
        let size: u64 =
            files(&fixture::dir(&milestone)).keys().map(|path| path.metadata().unwrap().size()).sum();
        assert!(size < 1 << 20, "{milestone} has {size} bytes");
    }
    match Store::open(
        Path::new("/dev/null/state"),
        &Identity::read(),
        &StoreOptions::new("/dev/null/m".into()),
    ) {
        Err(StoreError::Io { .. }) => {}
        other => panic!("{other:?}"),
    }
}
