//! The auditor itself: it finds nothing in a sound run, and finds what is wrong in evidence that was doctored.
//!
//! One real run is made; each test breaks a copy of its store, its journals or what was seen, in one way.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use redb::{Database, ReadableTable, TableDefinition};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use support::auditor::devices::{Sick, Truth, TruthSeen};
use support::auditor::evidence::Evidence;
use support::auditor::journal::{Journal, NoJournal};
use support::auditor::procfs::{self, Pidt};
use support::auditor::watch::{Seen, Work};
use support::auditor::{Auditor, Findings, Place, check, claims, inbox, unfinished};
use support::sandbox::{Sandbox, eventually};
use tempfile::TempDir;

/// A run that is over: two jobs one after the other on one device, the second tried twice.
struct Sound {
    /// The store's bytes.
    store: Vec<u8>,
    /// Files of the jobs' folders.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// By token.
    journals: Vec<(String, Journal)>,
    /// The bytes of the first job's journal while it ran.
    journal: Vec<u8>,
}

fn sound() -> &'static Sound {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    SOUND.get_or_init(|| {
        let sandbox = Sandbox::serving("simulated:1");
        let mut audit = Auditor::watch(&sandbox);
        let gate = sandbox.gate("go");
        let first = format!(
            "until [ -e '{}' ]; do sleep 0.02; done\necho made > \"$OVERNIGHT_OUTPUT/made\"",
            gate.display()
        );
        sandbox.drop_file("first.yaml", &job(&first, ""));
        sandbox.wait_for_state("first", "running");
        let journal = fs::read(sandbox.root().join(".state/run/1/journal")).unwrap();
        sandbox.drop_file(
            "second.yaml",
            &job("[ $OVERNIGHT_ATTEMPT = 2 ] || exit 75", ", after: [first], retry: {times: 1, when: [75]}"),
        );
        sandbox.wait_for_state("second", "queued");
        audit.snapshot();
        sandbox.open_gate("go");
        assert_eq!(sandbox.wait_for_end("first"), "succeeded");
        assert_eq!(sandbox.wait_for_end("second"), "succeeded");
        // Each lease's journal is read some time after its name is gone.
        let journals = eventually("three journals", || {
            let journals: Vec<_> = audit.seen().journals.clone().into_iter().collect();
            (journals.len() == 3).then_some(journals)
        });
        let report = audit.finish();
        assert!(report.meter_asked && report.looks > 1, "{report:#?}");
        let sums = report.sums;
        assert_eq!((report.leases, sums.journals, sums.unaccounted_ms), (3, 3, 0), "{report:#?}");
        sandbox.run(&["stop"]).ok();
        eventually("no scheduler", || Auditor::place(&sandbox).schedulers().is_empty().then_some(()));
        let store = fs::read(sandbox.root().join(".state/state.redb")).unwrap();
        let names = ["receipt.json", "attempts/1/output/made"].map(|name| format!("1-first/{name}"));
        let names = names.into_iter().chain(["2-second/receipt.json".to_owned()]);
        let files = names.map(|name| {
            let bytes = fs::read(sandbox.root().join("jobs").join(&name)).unwrap();
            (PathBuf::from(name), bytes)
        });
        Sound { store, files: files.collect(), journals, journal }
    })
}

fn job(run: &str, more: &str) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  run: |\n    {run}\ndata: []\nrequest: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m{more}}}\noutput: []\n"
    )
}

impl Sound {
    fn seen(&self) -> Seen {
        Seen { journals: self.journals.iter().cloned().collect(), ..Seen::default() }
    }
}

/// A copy of the store that may be doctored.
struct Store {
    #[expect(dead_code, reason = "removed at the end")]
    dir: TempDir,
    path: PathBuf,
}

const NUMBERED: fn(&'static str) -> TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new;

impl Store {
    fn copy() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.redb");
        fs::write(&path, &sound().store).unwrap();
        Self { dir, path }
    }

    /// Changes rows of a table; `None` takes a row out.
    fn doctor(&self, table: &'static str, change: impl Fn(u64, Value) -> Option<Value>) -> &Self {
        let db = Database::open(&self.path).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut rows = txn.open_table(NUMBERED(table)).unwrap();
            let all: Vec<(u64, Value)> = rows
                .iter()
                .unwrap()
                .map(|row| row.unwrap())
                .map(|(key, value)| (key.value(), serde_json::from_slice(value.value()).unwrap()))
                .collect();
            for (key, value) in all {
                let _ = match change(key, value) {
                    Some(value) => rows.insert(key, serde_json::to_vec(&value).unwrap().as_slice()).unwrap(),
                    None => rows.remove(key).unwrap(),
                };
            }
        }
        txn.commit().unwrap();
        self
    }

    /// Adds an event at the end.
    fn also(&self, event: impl Fn(&[Value]) -> Value) -> &Self {
        let events = self.events();
        let (seq, at) = (events.len() as u64 + 1, events.last().unwrap()["at"].clone());
        let logged = json!({"seq": seq, "at": at, "event": event(&events)});
        let db = Database::open(&self.path).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(NUMBERED("events"))
            .unwrap()
            .insert(seq, serde_json::to_vec(&logged).unwrap().as_slice())
            .unwrap();
        txn.commit().unwrap();
        self
    }

    fn events(&self) -> Vec<Value> {
        self.evidence().raw.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect()
    }

    fn evidence(&self) -> Evidence {
        Evidence::read(&self.path, &mut Findings::default())
    }

    fn audited(&self, seen: &Seen) -> Findings {
        let mut findings = Findings::default();
        let evidence = Evidence { copied_ms: u64::MAX, ..Evidence::read(&self.path, &mut findings) };
        let (lives, _) = check(&evidence, seen, &mut findings);
        unfinished(&lives, &mut findings);
        findings
    }
}

/// The evidence was found to break this invariant.
#[track_caller]
fn bites(findings: &Findings, invariant: &str) {
    assert!(findings.has(invariant), "{invariant} is not among {:#?}", findings.0);
}

fn is(event: &Value, kind: &str) -> bool {
    event["event"].as_object().is_some_and(|event| event.contains_key(kind))
}

/// Moves a moment.
fn shift(moment: &mut Value, ms: i64) {
    for clock in ["boottime_ms", "wall_ms"] {
        moment[clock] = json!(moment[clock].as_i64().unwrap() + ms);
    }
}

#[test]
fn a_sound_run_has_no_findings() {
    let findings = Store::copy().audited(&sound().seen());
    assert_eq!(findings, Findings::default(), "{findings:#?}");
}

#[test]
fn an_event_that_is_missing_or_of_no_path_is_found() {
    let seen = sound().seen();
    let gap = Store::copy();
    gap.doctor("events", |seq, event| (seq != 4).then_some(event));
    bites(&gap.audited(&seen), "I22");
    let started = Store::copy();
    started.also(|events| events.iter().find(|event| is(event, "attempt_prepared") || is(event, "attempt_started")).unwrap()["event"].clone());
    bites(&started.audited(&seen), "I3");
    let released = Store::copy();
    released.doctor("events", |_, mut event| {
        if is(&event, "attempt_released") {
            event["event"] = json!({"job_resumed": {"job": event["event"]["attempt_released"]["job"]}});
        }
        Some(event)
    });
    bites(&released.audited(&seen), "I3");
}

#[test]
fn an_end_that_comes_twice_or_never_is_found() {
    let seen = sound().seen();
    let twice = Store::copy();
    twice.also(|events| events.iter().rev().find(|event| is(event, "job_done")).unwrap()["event"].clone());
    bites(&twice.audited(&seen), "I3");
    let never = Store::copy();
    let last = never.events().iter().rposition(|event| is(event, "job_done")).unwrap() as u64 + 1;
    never.doctor("events", |seq, event| (seq < last).then_some(event));
    bites(&never.audited(&seen), "I3");
    let other = Store::copy();
    other.doctor("jobs", |_, mut row| {
        row["done"]["outcome"] = json!("limit_reached");
        Some(row)
    });
    bites(&other.audited(&seen), "I3");
}

#[test]
fn a_hold_that_is_left_open_is_found() {
    let store = Store::copy();
    store.doctor("events", |_, event| {
        (!is(&event, "lease_ended") || event["event"]["lease_ended"]["lease"] != 3).then_some(event)
    });
    store.doctor("leases", |id, mut row| {
        if id == 3 {
            (row["ended"], row["returned"]) = (Value::Null, Value::Null);
        }
        Some(row)
    });
    bites(&store.audited(&sound().seen()), "I22");
    let last = Store::copy();
    let from = last.events().iter().rposition(|event| is(event, "attempt_ended")).unwrap() as u64 + 1;
    last.doctor("events", |seq, event| (seq < from).then_some(event));
    last.doctor("leases", |id, mut row| {
        if id == 3 {
            (row["ended"], row["returned"]) = (Value::Null, Value::Null);
        }
        Some(row)
    });
    bites(&last.audited(&sound().seen()), "I7");
}

#[test]
fn holds_that_overlap_are_found() {
    let store = Store::copy();
    // The second lease begins before the first has ended: in its row only, then in its event too.
    let back = |moment: &mut Value| shift(moment, -400);
    store.doctor("leases", |id, mut row| {
        if id == 2 {
            back(&mut row["granted"]);
        }
        Some(row)
    });
    let findings = store.audited(&sound().seen());
    bites(&findings, "I9");
    bites(&findings, "I10");
    store.doctor("events", |_, mut event| {
        if is(&event, "lease_granted") && event["event"]["lease_granted"]["lease"] == 2 {
            back(&mut event["at"]);
        }
        Some(event)
    });
    let findings = store.audited(&sound().seen());
    bites(&findings, "I10");
    bites(&findings, "I12");
}

#[test]
fn a_millisecond_that_is_billed_and_was_not_held_is_found() {
    let row = Store::copy();
    row.doctor("leases", |_, mut row| {
        shift(&mut row["ended"]["at"], 1);
        Some(row)
    });
    bites(&row.audited(&sound().seen()), "I9");
    // Consistently, so that only the journals tell.
    let both = Store::copy();
    both.doctor("leases", |_, mut row| {
        shift(&mut row["ended"]["at"], -1);
        Some(row)
    });
    both.doctor("events", |_, mut event| {
        for kind in ["lease_ended", "attempt_ended"] {
            if is(&event, kind) {
                shift(&mut event["event"][kind]["ended"], -1);
            }
        }
        Some(event)
    });
    bites(&both.audited(&sound().seen()), "I9");
    assert!(!both.audited(&Seen::default()).has("I9"), "only the journals know");
}

#[test]
fn a_drop_that_became_two_jobs_is_found_and_one_whose_bytes_are_not_stored() {
    let twice = Store::copy();
    let ident = twice.events().iter().find(|event| is(event, "submission_accepted")).unwrap()["event"]
        ["submission_accepted"]["ident"]
        .clone();
    twice.doctor("events", |_, mut event| {
        if is(&event, "submission_accepted") {
            event["event"]["submission_accepted"]["ident"] = ident.clone();
        }
        Some(event)
    });
    bites(&twice.audited(&sound().seen()), "I2");
    let lost = Store::copy();
    lost.doctor("submissions", |id, row| (id != 1).then_some(row));
    bites(&lost.audited(&sound().seen()), "I1");
}

#[test]
fn a_file_that_was_accepted_and_still_lies_in_the_inbox_is_found() {
    use std::os::unix::fs::MetadataExt;
    let root = tempfile::tempdir().unwrap();
    let place = Place::below(root.path());
    fs::create_dir(root.path().join("inbox")).unwrap();
    let file = root.path().join("inbox/first.yaml");
    fs::write(&file, "work").unwrap();
    let store = Store::copy();
    let look = |store: &Store| {
        let mut findings = Findings::default();
        inbox(&place, &store.evidence(), &mut findings);
        findings
    };
    assert_eq!(look(&store), Findings::default());
    let meta = fs::metadata(&file).unwrap();
    store.doctor("drops", |_, mut row| {
        row["dev"] = json!(meta.dev());
        row["ino"] = json!(meta.ino());
        row["ctime_ns"] = json!(meta.ctime() * 1_000_000_000 + meta.ctime_nsec());
        Some(row)
    });
    bites(&look(&store), "I1");
}

#[test]
fn a_grant_that_is_not_proven_or_not_due_is_found() {
    let seen = sound().seen();
    let outside = Store::copy();
    outside.doctor("events", |_, mut event| {
        if is(&event, "device_changed") {
            event["event"]["device_changed"]["state"] = json!({"outside": {"who": "python"}});
        }
        Some(event)
    });
    bites(&outside.audited(&seen), "I6");
    let early = Store::copy();
    early.doctor("events", |_, mut event| {
        if is(&event, "job_accepted") && event["event"]["job_accepted"]["job"] == 1 {
            event["event"]["job_accepted"]["after"] =
                json!([{"name": "second", "job": 2, "must_succeed": true}]);
        }
        Some(event)
    });
    bites(&early.audited(&seen), "I22");
    // The device was made to fail from well before the first grant until well after.
    let uuid = Store::copy().evidence().leases[&1].held.devices[0].uuid.clone();
    let granted = Store::copy().evidence().leases[&1].granted.boottime_ms;
    let sick = vec![("0".to_owned(), Sick::Fault("fail".to_owned()))];
    let mut seen = sound().seen();
    seen.indices.insert(uuid, "0".to_owned());
    seen.truths.push(TruthSeen { sick, from_ms: granted - 1_000, until_ms: granted + 5 });
    bites(&Store::copy().audited(&seen), "I6");
    // Not certain: it may have been well at the reading.
    seen.truths[0].from_ms = granted - 100;
    assert_eq!(Store::copy().audited(&seen), Findings::default());
}

#[test]
fn a_process_that_outlives_its_lease_is_found() {
    let evidence = Store::copy().evidence();
    let lease = &evidence.leases[&1];
    let work = |token: &str, alive_ms| Work {
        token: token.to_owned(),
        job: 1,
        task: 0,
        attempt: 1,
        uuids: Vec::new(),
        command: "python train.py".to_owned(),
        parent: 1,
        known_ms: lease.granted.boottime_ms,
        alive_ms,
    };
    let id = Pidt { pid: 4_242, start: u64::MAX / 100_000 };
    let with = |token: &str, alive_ms| {
        let mut seen = sound().seen();
        seen.work.insert(id, work(token, alive_ms));
        Store::copy().audited(&seen)
    };
    let ended = lease.ended.as_ref().unwrap().at.boottime_ms;
    assert_eq!(with(&lease.token, ended), Findings::default());
    bites(&with(&lease.token, ended + 1), "I7");
    bites(&with(&lease.token, ended + 60_000), "I8");
    bites(&with("of nobody", ended), "I14");
    // Known as the lease's work before the grant.
    let mut seen = sound().seen();
    let early = Work { known_ms: lease.granted.boottime_ms - 1, ..work(&lease.token, ended) };
    seen.work.insert(id, early);
    bites(&Store::copy().audited(&seen), "I11");
}

#[test]
fn a_journal_that_says_something_else_is_found() {
    let token = Store::copy().evidence().leases[&1].token.clone();
    let with = |change: &dyn Fn(&mut Journal)| {
        let mut seen = sound().seen();
        change(seen.journals.get_mut(&token).unwrap());
        Store::copy().audited(&seen)
    };
    assert_eq!(with(&|_| {}), Findings::default());
    bites(
        &with(&|journal| journal.parts[0].ended.as_mut().unwrap().how = json!({"exited": {"code": 1}})),
        "I9",
    );
    bites(&with(&|journal| journal.parts[0].started.as_mut().unwrap().boottime_ms += 1), "I9");
    // Nobody saw the end, and yet it is proven and billed.
    bites(&with(&|journal| journal.parts[0].ended = None), "I13");
    bites(&with(&|journal| journal.lease = Some(9)), "I14");
    bites(&with(&|journal| journal.parts.clear()), "I14");
}

#[test]
fn a_journals_bytes_are_read_as_far_as_they_are_whole() {
    let bytes = &sound().journal;
    let journal = Journal::parse(bytes).unwrap();
    assert_eq!((journal.lease, journal.job, journal.torn), (Some(1), Some(1), false));
    let part = &journal.parts[0];
    assert!(part.intent.is_some() && part.started.is_some() && part.ended.is_none(), "{journal:#?}");
    assert_eq!(journal.supervisor.map(|(pid, _)| pid > 1), Some(true));
    // A byte of the second record is another: the first one still counts, and the rest is said to be torn.
    let first = u32::from_le_bytes(bytes[4096..4100].try_into().unwrap()) as usize;
    let second = 4096 + (12 + first).next_multiple_of(8);
    let mut flipped = bytes.clone();
    flipped[second + 20] ^= 1;
    let torn = Journal::parse(&flipped).unwrap();
    assert!(torn.torn && torn.parts[0].intent.is_some() && torn.parts[0].started.is_none(), "{torn:#?}");
    assert_eq!(Journal::parse(&vec![0; 8192]), Err(NoJournal::Blank));
    assert!(matches!(Journal::parse(b"something else, and long enough"), Err(NoJournal::Foreign(_))));
}

#[test]
fn an_estimated_end_after_the_last_sign_of_life_is_found() {
    let store = Store::copy();
    store.doctor("events", |_, mut event| {
        if is(&event, "lease_ended") {
            event["event"]["lease_ended"]["by"] = json!("estimated");
        }
        Some(event)
    });
    store.doctor("leases", |_, mut row| {
        row["ended"]["by"] = json!("estimated");
        Some(row)
    });
    let mut seen = sound().seen();
    for journal in seen.journals.values_mut() {
        journal.parts[0].ended = None;
        journal.last_sign = journal.parts[0].intent.clone();
    }
    bites(&store.audited(&seen), "I13");
}

#[test]
fn a_receipt_or_an_output_that_is_not_what_the_store_says_is_found() {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in &sound().files {
        let path = root.path().join("jobs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let place = Place::below(root.path());
    let receipt = root.path().join("jobs/1-first/receipt.json");
    let look = || {
        let store = Store::copy();
        let (mut findings, evidence) = (Findings::default(), store.evidence());
        let (lives, _) = check(&evidence, &Seen::default(), &mut findings);
        claims::receipts(&place, &evidence, &lives, &mut findings);
        findings
    };
    assert_eq!(look(), Findings::default());
    let good = fs::read_to_string(&receipt).unwrap();
    let mut document: Value = serde_json::from_str(&good).unwrap();
    document["gpu_ms"] = json!(document["gpu_ms"].as_u64().unwrap() + 1);
    fs::write(&receipt, document.to_string()).unwrap();
    bites(&look(), "I9");
    document["gpu_ms"] = json!(document["gpu_ms"].as_u64().unwrap() - 1);
    document["outcome"]["kind"] = json!("failed");
    fs::write(&receipt, document.to_string()).unwrap();
    bites(&look(), "I3");
    fs::remove_file(&receipt).unwrap();
    bites(&look(), "I3");
    fs::write(&receipt, good).unwrap();
    fs::write(root.path().join("jobs/1-first/attempts/1/output/made"), "fake").unwrap();
    bites(&look(), "I3");
}

/// A process that looks like some work of this place; ended with it.
struct Pretender(Child);

impl Pretender {
    fn new(root: &Path, job: u32, attempt: u32, token: &str, uuid: &str) -> Self {
        let mut command = Command::new("sleep");
        command
            .arg("600")
            .env("OVERNIGHT_OUTPUT", root.join("jobs/1-a/attempts/1/output"))
            .env("OVERNIGHT_TOKEN", token)
            .env("OVERNIGHT_JOB", job.to_string())
            .env("OVERNIGHT_TASK", "0")
            .env("OVERNIGHT_ATTEMPT", attempt.to_string())
            .env("OVERNIGHT_GPU_UUIDS", uuid);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Pretender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_attempts_at_once_and_two_holders_of_one_device_are_seen_while_they_live() {
    let root = tempfile::tempdir().unwrap();
    let audit = Auditor::over(Place::below(root.path()));
    let first = Pretender::new(root.path(), 1, 1, "a", "GPU-1");
    let looks = |n| {
        let before = audit.seen().looks;
        eventually("more looks", || (audit.seen().looks > before + n).then_some(()));
    };
    looks(2);
    assert_eq!(audit.findings(), Findings::default());
    assert_eq!(audit.work().len(), 1);
    let other_device = Pretender::new(root.path(), 2, 1, "b", "GPU-2");
    looks(2);
    assert_eq!(audit.findings(), Findings::default());
    let same_job = Pretender::new(root.path(), 1, 2, "c", "GPU-3");
    eventually("two attempts", || audit.findings().has("I4").then_some(()));
    let same_device = Pretender::new(root.path(), 3, 1, "d", "GPU-1");
    eventually("two holders", || audit.findings().has("I5").then_some(()));
    drop((first, other_device, same_job, same_device));
    // There is no store at all.
    bites(&audit.report().findings, "I1");
}

/// A process that looks like a supervisor, with work below it; has a lock of `GPU-9` where `locks` says so.
fn supervisor_of_gpu_9(root: &Path, locks: bool) -> Child {
    let script = root.join("supervise");
    let lock = root.join("GPU-9.lock").display().to_string();
    let take = if locks { format!("exec 9> '{lock}'; flock -x 9\n") } else { String::new() };
    fs::write(&script, format!("{take}sleep 600 9>&- & echo $! > '{}'; wait\n", root.join("work").display()))
        .unwrap();
    Command::new("bash")
        .args(["-c", "exec -a overnight bash supervise"])
        .current_dir(root)
        .env("OVERNIGHT_OUTPUT", root.join("jobs/1-a/attempts/1/output"))
        .env("OVERNIGHT_TOKEN", "locked")
        .env("OVERNIGHT_JOB", "1")
        .env("OVERNIGHT_GPU_UUIDS", "GPU-9")
        .spawn()
        .unwrap()
}

#[test]
fn work_on_a_real_device_whose_lock_nobody_holds_is_seen() {
    for locks in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let truth = Some(Truth::driver(&root.path().join("state")));
        let audit = Auditor::over(Place { truth, ..Place::below(root.path()) });
        let mut supervisor = supervisor_of_gpu_9(root.path(), locks);
        let work = eventually("its work", || {
            let pid = fs::read_to_string(root.path().join("work")).ok()?;
            procfs::stat(pid.trim().parse().ok()?)
        });
        let looks = audit.seen().looks;
        eventually("more looks", || (audit.seen().looks > looks + 3).then_some(()));
        assert_eq!(audit.findings().has("I5"), !locks, "{:?}", audit.findings());
        procfs::signal(work.id, Signal::KILL);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
    }
}

#[test]
fn what_was_durable_once_and_is_gone_is_found() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join(".state");
    fs::create_dir(&state).unwrap();
    let store = Store::copy();
    fs::copy(&store.path, state.join("state.redb")).unwrap();
    let mut audit = Auditor::over(Place::below(root.path()));
    audit.snapshot();
    assert_eq!(audit.findings(), Findings::default());
    let last = store.events().len() as u64;
    store.doctor("events", |seq, event| (seq < last).then_some(event));
    fs::copy(&store.path, state.join("state.redb")).unwrap();
    audit.snapshot();
    bites(&audit.findings(), "I22");
}

#[test]
fn clocks_and_processes_are_read_as_the_kernel_counts_them() {
    let child = Pretender::new(Path::new("/nowhere"), 1, 1, "x", "");
    let id = procfs::stat(child.0.id() as i32).unwrap().id;
    assert!(procfs::boottime_ms().abs_diff(procfs::started_ms(id)) < 60_000, "{id:?}");
    assert!(procfs::lives(id) && !procfs::lives(Pidt { start: id.start + 1, ..id }));
    drop(child);
    assert!(!procfs::lives(id));
}
