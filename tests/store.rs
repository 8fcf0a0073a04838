//! The store over real files: reopening, refusals, crashes, full disks, questions.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

#[path = "support/small_disk.rs"]
mod small_disk;

use overnight::model::*;
use overnight::store::{Batch, Identity, Loaded, Store, StoreError, StoreOptions};
use small_disk::SmallDisk;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

// --- what is stored ---

fn at(ms: i64) -> Now {
    Now { boot: BootId(7), boottime_ms: ms.unsigned_abs(), wall_ms: ms }
}

fn owner() -> Owner {
    Owner { uid: 1000, name: "ana".to_owned() }
}

fn spec(name: &str) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        project: Some("perception".to_owned()),
        work: Work {
            kind: WorkKind::Training,
            dir: Some(PathBuf::from("/home/ana/src")),
            code: Code::Snapshot { skip: vec!["wandb".to_owned()], keep: Vec::new() },
            setup: Setup { conda: Some("detector".to_owned()), ..Setup::default() },
            run: Run::Shell("python train.py --epochs 30\n".to_owned()),
            env: [("A".to_owned(), "1".to_owned())].into(),
            env_file: None,
            for_each: None,
            checkpoint: Some("ckpt".to_owned()),
            stop: Stop::default(),
        },
        data: vec![DataItem {
            from: DataFrom::Job { job: "prepare".to_owned(), path: "corpus".to_owned() },
            name: "corpus".to_owned(),
            stage: Stage::Link,
            sha256: None,
        }],
        request: Request {
            gpus: Amount::Some(2),
            gpu_model: vec!["a100".to_owned()],
            gpu_memory: Some(Bytes::gib(80)),
            gpu_ids: GpuIds::Index,
            share: false,
            cpus: Some(Amount::All),
            memory: None,
            disk: None,
            limit: Limit::For(Span::secs(3600)),
            finish_by_ms: Some(1_800_000_000_000),
            start_after_ms: None,
            after: vec!["prepare".to_owned()],
            after_any: Vec::new(),
            priority: Priority::HIGH,
            at_once: None,
            retry: Retry { times: 2, when: vec![RetryOn::Lost, RetryOn::Code(75)] },
        },
        output: vec![OutputItem { path: "best.pt".to_owned(), kind: OutputKind::Model, optional: false }],
        output_to: None,
        notify: vec![NotifyOn::Late],
    }
}

fn changes() -> Vec<Change> {
    let old = Requested {
        spec: Arc::new(spec("before")),
        warnings: vec!["of before".to_owned()],
        after: Vec::new(),
        priority: Priority::HIGH,
        position: -7,
        ranked: true,
        file: None,
    };
    let passed = Some(Passed { job: JobId(2), old: 1, new: 2 });
    let what = [
        Changed::Priority { old: Priority::HIGH, new: Priority::clamped(-100) },
        Changed::Place { old: Position { at: 3, ranked: true }, new: 4, passed },
        Changed::Paused,
        Changed::Resumed { paused_by: "bob".to_owned() },
        Changed::Request { old: Box::new(old), fields: vec!["name".to_owned()] },
    ];
    let change = |(n, what)| Change { at: at(n), number: n as u64, by: "ana".to_owned(), what };
    (1..).zip(what).map(change).collect()
}

fn job(id: u64) -> Job {
    Job {
        id: JobId(id),
        submission: SubmissionId(id),
        spec: Arc::new(spec("train")),
        owner: owner(),
        origin: Origin::Inbox { name: "train.yaml".to_owned(), folder: None },
        submitted: at(1000),
        generation: Generation(1),
        priority: Priority::HIGH,
        position: id as i64,
        ranked: false,
        paused: Some("ana".to_owned()),
        file: Some(Arc::new(JobText { text: "name: x".to_owned(), base: Some("/x".into()), at_ms: 3 })),
        edit: Some(Box::new(EditMark {
            by: "ana".to_owned(),
            until: at(5_000),
            generation: Generation(4),
            priority: Priority::HIGH,
        })),
        changes: changes(),
        cancel: None,
        retry_of: None,
        warnings: vec!["a warning".to_owned()],
        after: vec![Dependency { name: "prepare".to_owned(), job: Some(JobId(1)), must_succeed: true }],
        tasks: vec![Task { ix: TaskIx(0), attempts: vec![Attempt::queued(AttemptNo(1), at(1000), true)] }],
        done: None,
    }
}

fn done(id: u64, done_ms: i64) -> Job {
    let mut job = job(id);
    job.done = Some((at(done_ms), Outcome::Failed(Failure::OutputMissing { paths: vec!["x".to_owned()] })));
    job
}

fn lease(id: u64, granted_ms: i64, ended_ms: Option<i64>, returned: bool) -> Lease {
    Lease {
        id: LeaseId(id),
        job: JobId(id),
        job_name: "train".to_owned(),
        owner: owner(),
        project: None,
        attempts: vec![(TaskIx(0), AttemptNo(1))],
        held: Held {
            devices: vec![LeaseDevice { uuid: Uuid("GPU-1".to_owned()), baseline: Bytes::mib(3) }],
            cores: 8,
            memory: Bytes::gib(32),
        },
        token: Token("00ff".repeat(8)),
        granted: at(granted_ms),
        heartbeat: at(granted_ms),
        ended: ended_ms.map(|ms| (at(ms), EndedBy::Proven)),
        gone: None,
        waived: false,
        suspended_ms: 0,
        returned: returned.then(|| Returned { at: at(ended_ms.unwrap_or(0)), verdict: Verdict::Clean }),
    }
}

fn ident(n: u64) -> DropIdent {
    DropIdent {
        dev: 1,
        ino: n,
        ctime_ns: 1_700_000_000_000_000_000 + i128::from(n),
        hash: format!("{n:064x}"),
    }
}

fn accepted(seq: u64, id: u64) -> EventRecord {
    let event = Event::SubmissionAccepted {
        submission: SubmissionId(id),
        owner: owner(),
        origin: Origin::Inbox { name: format!("{id}.yaml"), folder: Some(PathBuf::from("/kept")) },
        ident: Some(ident(id)),
        source: format!("name: job-{id}\n"),
    };
    EventRecord { seq, at: at(1000), event }
}

fn job_event(seq: u64, id: u64) -> EventRecord {
    EventRecord { seq, at: at(1000), event: Event::JobPaused { job: JobId(id), by: "ana".to_owned() } }
}

// --- the store under test ---

fn identity() -> Identity {
    Identity { machine_id: "0".repeat(32), hostname: "box".to_owned() }
}

fn options(dir: &Path) -> StoreOptions {
    StoreOptions::new(dir.join("root/.overnight"))
}

fn path(dir: &Path) -> PathBuf {
    dir.join("state/state.redb")
}

fn open(dir: &Path) -> Result<(Store, Loaded), StoreError> {
    Store::open(&path(dir), &identity(), &options(dir))
}

fn append(store: &Store, batch: Batch) -> Result<(), StoreError> {
    let (sender, receiver) = mpsc::channel();
    store.append(batch, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn reopen(store: &Store) -> Result<u64, StoreError> {
    let (sender, receiver) = mpsc::channel();
    store.reopen(Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn jobs(jobs: Vec<Job>) -> Batch {
    Batch { jobs, ..Batch::default() }
}

/// A directory with a store in it that has some of everything.
fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (store, loaded) = open(dir.path()).unwrap();
    assert!(loaded.first_start);
    let batch = Batch {
        events: (1..=20).map(|n| accepted(n, n)).collect(),
        jobs: (1..=20).map(job).collect(),
        leases: vec![lease(1, 1000, None, false)],
        devices: vec![(Uuid("GPU-1".to_owned()), DeviceState::Held { lease: LeaseId(1) }.into())],
        forget_devices: Vec::new(),
    };
    append(&store, batch).unwrap();
    dir
}

#[test]
fn what_was_stored_comes_back() {
    let dir = filled();
    let quarantine = DeviceState::Quarantined(Quarantine {
        why: "4711 python".to_owned(),
        since: at(5),
        lease: Some(LeaseId(1)),
    });
    let (store, first) = open(dir.path()).unwrap();
    assert!(!first.first_start);
    let devices = vec![(Uuid("GPU-2".to_owned()), quarantine.into())];
    let batch = Batch {
        events: vec![job_event(21, 3)],
        devices: devices.clone(),
        forget_devices: vec![Uuid("GPU-1".to_owned()), Uuid("GPU-never".to_owned())],
        ..jobs(vec![done(3, 9000)])
    };
    append(&store, batch).unwrap();
    drop(store);

    let (_store, loaded) = open(dir.path()).unwrap();
    let mut want: Vec<Job> = (1..=20).map(job).collect();
    want[2] = done(3, 9000);
    assert_eq!(loaded.jobs, want);
    assert_eq!(loaded.leases, [lease(1, 1000, None, false)]);
    assert_eq!(loaded.devices, devices);
    assert_eq!(loaded.last_seq, 21);
    assert_eq!(
        (loaded.next_job, loaded.next_submission, loaded.next_lease),
        (JobId(21), SubmissionId(21), LeaseId(2))
    );
    assert_eq!(loaded.drops, (1..=20).map(|n| (ident(n), SubmissionId(n))).collect::<Vec<_>>());
}

#[test]
fn an_empty_store_begins_with_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, loaded) = open(dir.path()).unwrap();
    let want = Loaded {
        next_job: JobId(1),
        next_submission: SubmissionId(1),
        next_lease: LeaseId(1),
        first_start: true,
        ..Loaded::default()
    };
    assert_eq!(loaded, want);
    assert_eq!(store.reader().jobs_done(None, 10).unwrap(), []);
    assert_eq!(path(dir.path()).metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(path(dir.path()).parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn all_open_jobs_and_the_newest_done_ones_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { done_jobs: 3, drops: 2, ..options(dir.path()) };
    let (store, _) = Store::open(&path(dir.path()), &identity(), &options).unwrap();
    // Done in another order than they came.
    let stored = vec![job(1), done(2, 900), done(3, 100), done(4, 300), done(5, 200), job(6)];
    append(&store, Batch { events: (1..=3).map(|n| accepted(n, n)).collect(), ..jobs(stored) }).unwrap();
    drop(store);
    let (store, loaded) = Store::open(&path(dir.path()), &identity(), &options).unwrap();
    assert_eq!(loaded.jobs.iter().map(|job| job.id.0).collect::<Vec<_>>(), [1, 2, 4, 5, 6]);
    assert_eq!(loaded.drops.iter().map(|drop| drop.1.0).collect::<Vec<_>>(), [2, 3]);

    let reader = store.reader();
    let ids = |jobs: Vec<Job>| jobs.iter().map(|job| job.id.0).collect::<Vec<_>>();
    assert_eq!(ids(reader.jobs_done(None, 3).unwrap()), [2, 4, 5]);
    assert_eq!(ids(reader.jobs_done(Some((200, JobId(5))), 3).unwrap()), [3]);
    assert_eq!(ids(reader.jobs_done(Some((100, JobId(3))), 3).unwrap()), [0; 0]);
    assert_eq!(reader.job(JobId(3)).unwrap(), Some(done(3, 100)));
    assert_eq!(reader.job(JobId(7)).unwrap(), None);
}

#[test]
fn leases_are_kept_at_hand_until_returned_and_for_some_days() {
    let dir = tempfile::tempdir().unwrap();
    let now = overnight::clock::wall_ms();
    let day = 86_400_000;
    let stored = vec![
        lease(1, now - 20 * day, Some(now - 19 * day), true),
        lease(2, now - 20 * day, Some(now - 19 * day), false),
        lease(3, now - 20 * day, None, false),
        lease(4, now - 20 * day, Some(now - 7 * day), true),
        lease(5, now - day, Some(now), true),
    ];
    let (store, _) = open(dir.path()).unwrap();
    append(&store, Batch { leases: stored.clone(), ..Batch::default() }).unwrap();
    // It was open once: the older row of the index must not bring it up.
    append(&store, Batch { leases: vec![lease(6, now - 20 * day, None, false)], ..Batch::default() })
        .unwrap();
    append(
        &store,
        Batch { leases: vec![lease(6, now - 20 * day, Some(now - 19 * day), true)], ..Batch::default() },
    )
    .unwrap();
    let between = |since, until| {
        let leases = store.reader().leases_between(since, until).unwrap();
        leases.iter().map(|lease| lease.id.0).collect::<Vec<_>>()
    };
    assert_eq!(between(now - 30 * day, now + day), [1, 2, 3, 4, 5, 6]);
    assert_eq!(between(now - 8 * day, now), [3, 4, 5]);
    assert_eq!(between(now - 30 * day, now - 20 * day), [0; 0]);
    assert_eq!(between(now - 19 * day, now - 18 * day), [3, 4]);
    drop(store);
    let (_store, loaded) = open(dir.path()).unwrap();
    assert_eq!(loaded.leases.iter().map(|lease| lease.id.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
}

#[test]
fn questions_are_answered_from_the_log_and_the_submissions() {
    let dir = filled();
    let (store, _) = open(dir.path()).unwrap();
    let granted = Event::LeaseGranted {
        lease: LeaseId(2),
        job: JobId(4),
        task: TaskIx(0),
        attempt: AttemptNo(1),
        held: Held::default(),
        token: Token("t".to_owned()),
    };
    let ended = Event::LeaseEnded {
        lease: LeaseId(2),
        ended: at(3000),
        by: EndedBy::AfterKill,
        waived: true,
        suspended_ms: 5,
    };
    let record = |seq, event| EventRecord { seq, at: at(2000), event };
    let mut of_lease = lease(2, 2000, Some(3000), false);
    of_lease.job = JobId(4);
    let events =
        vec![job_event(21, 4), record(22, granted), job_event(23, 5), record(24, ended), job_event(25, 4)];
    append(&store, Batch { events: events.clone(), leases: vec![of_lease], ..Batch::default() }).unwrap();
    // The lease is not in this batch, but its job is known.
    let returned = record(26, Event::LeaseReturned { lease: LeaseId(2), verdict: Verdict::Clean });
    append(&store, Batch { events: vec![returned.clone()], ..Batch::default() }).unwrap();

    let reader = store.reader();
    let want = [&events[0], &events[1], &events[3], &events[4], &returned].map(Clone::clone);
    assert_eq!(reader.events_of(JobId(4)).unwrap(), want);
    let submission = reader.submission(SubmissionId(7)).unwrap().unwrap();
    assert_eq!(submission.source, "name: job-7\n");
    assert_eq!(submission.owner, owner());
    assert_eq!(reader.submission(SubmissionId(21)).unwrap(), None);
    assert_eq!(reader.has_drop(&ident(7)).unwrap(), Some(SubmissionId(7)));
    assert_eq!(reader.has_drop(&DropIdent { ctime_ns: 0, ..ident(7) }).unwrap(), None);
    assert_eq!(reader.events_after(6, 1).unwrap(), [accepted(7, 7)]);
    assert_eq!(reader.events_after(26, 1).unwrap(), []);
}

#[test]
fn batches_queue_up_and_each_is_told_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path()).unwrap();
    let (sender, receiver) = mpsc::channel();
    for n in 1..=1000 {
        let sender = sender.clone();
        let batch = Batch { events: vec![job_event(n, n)], ..jobs(vec![job(n)]) };
        store.append(batch, Box::new(move |result| sender.send((n, result.is_ok())).unwrap()));
    }
    // Closing finishes what was handed over.
    drop(store);
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), (1..=1000).map(|n| (n, true)).collect::<Vec<_>>());
    let (_store, loaded) = open(dir.path()).unwrap();
    assert_eq!((loaded.jobs.len(), loaded.last_seq), (1000, 1000));
}

#[test]
fn events_with_a_gap_are_refused_and_repeated_ones_change_nothing() {
    let dir = filled();
    let (store, _) = open(dir.path()).unwrap();
    let error = append(&store, Batch { events: vec![job_event(22, 1)], ..jobs(vec![job(99)]) }).unwrap_err();
    assert!(matches!(error, StoreError::Gap { last: 20, found: 22, .. }), "{error:?}");
    assert_eq!(store.reader().job(JobId(99)).unwrap(), None);
    for _ in 0..2 {
        append(&store, Batch { events: vec![job_event(21, 1)], ..jobs(vec![done(1, 5)]) }).unwrap();
    }
    append(&store, Batch { events: vec![job_event(22, 1)], ..Batch::default() }).unwrap();
    assert_eq!(store.reader().events_of(JobId(1)).unwrap().len(), 2);
    assert_eq!(store.reader().jobs_done(None, 10).unwrap().len(), 1);
}

// --- who may open it ---

#[test]
fn a_second_scheduler_is_told_who_owns_it_and_one_of_twenty_lives() {
    let dir = tempfile::tempdir().unwrap();
    let barrier = std::sync::Barrier::new(20);
    let results: Vec<_> = std::thread::scope(|scope| {
        let start = || {
            barrier.wait();
            open(dir.path())
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (alive, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(alive.len(), 1);
    for error in refused.into_iter().filter_map(Result::err) {
        assert!(matches!(error, StoreError::Owned { .. }), "{error:?}");
    }
    drop(alive);
    open(dir.path()).unwrap();
    let left: Vec<_> =
        fs::read_dir(dir.path().join("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["state.redb"]);
}

/// Opens, and asserts that the file was left as it was, to the byte and to its times.
fn refused(dir: &Path, identity: &Identity) -> StoreError {
    let state = |path: &Path| {
        let meta = path.metadata().unwrap();
        (
            fs::read(path).unwrap(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        )
    };
    let before = state(&path(dir));
    let error = Store::open(&path(dir), identity, &options(dir)).unwrap_err();
    assert!(state(&path(dir)) == before, "the file has changed: {error:?}");
    error
}

/// Changes what `meta` says.
fn set_meta(dir: &Path, key: &str, value: &str) {
    let db = redb::Database::open(path(dir)).unwrap();
    let txn = db.begin_write().unwrap();
    let meta: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
    txn.open_table(meta).unwrap().insert(key, value).unwrap();
    txn.commit().unwrap();
}

#[test]
fn another_machines_store_is_refused_untouched_and_says_what_to_do() {
    let dir = filled();
    let other = Identity { machine_id: "1".repeat(32), hostname: "other".to_owned() };
    let error = refused(dir.path(), &other);
    let text = error.to_string();
    assert!(matches!(error, StoreError::ForeignMachine { .. }), "{error:?}");
    for part in ["box (0000", "other (1111", "--state DIR"] {
        assert!(text.contains(part), "{text}");
    }
    open(dir.path()).unwrap();
}

#[test]
fn a_newer_store_is_refused_untouched() {
    let dir = filled();
    set_meta(dir.path(), "record_version", "4000");
    let error = refused(dir.path(), &identity());
    assert!(matches!(error, StoreError::Newer { found: 4000, .. }), "{error:?}");
    assert!(error.to_string().contains("newer"), "{error}");
}

#[test]
fn what_is_not_a_store_is_refused_untouched() {
    let dir = filled();
    for content in [b"x".to_vec(), b"SQLite format 3\0 and more".to_vec(), vec![0; 100_000]] {
        fs::write(path(dir.path()), content).unwrap();
        let error = refused(dir.path(), &identity());
        assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");
    }
    // Another program's redb file.
    fs::remove_file(path(dir.path())).unwrap();
    let other: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("other");
    let db = redb::Database::create(path(dir.path())).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(other).unwrap();
    txn.commit().unwrap();
    drop(db);
    let error = refused(dir.path(), &identity());
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");

    fs::remove_file(path(dir.path())).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path(dir.path())).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}

#[test]
fn an_emptied_or_shortened_store_is_refused_untouched() {
    let dir = filled();
    let whole = fs::read(path(dir.path())).unwrap();
    for len in [0, 4, 100, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(path(dir.path()), &whole[..len]).unwrap();
        let error = refused(dir.path(), &identity());
        assert!(matches!(error, StoreError::Damaged { .. }), "{len}: {error:?}");
        assert!(error.to_string().contains("left as it is"), "{error}");
    }
}

#[test]
fn a_flipped_bit_is_found_or_does_no_harm() {
    let dir = filled();
    let (_, want) = open(dir.path()).unwrap();
    let whole = fs::read(path(dir.path())).unwrap();
    let mut found = 0;
    let places: Vec<usize> =
        (0..whole.len()).step_by(4096).flat_map(|page| [page + 9, page + 40, page + 1500]).collect();
    for place in places {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        fs::write(path(dir.path()), &bytes).unwrap();
        match open(dir.path()) {
            Ok((_store, loaded)) => assert_eq!(loaded, want, "a flipped bit at {place} went unnoticed"),
            Err(StoreError::Damaged { .. } | StoreError::NotOurs { .. }) => {
                assert!(fs::read(path(dir.path())).unwrap() == bytes, "refused, and changed");
                found += 1;
            }
            Err(error) => panic!("{place}: {error:?}"),
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn a_store_that_is_gone_is_no_first_start() {
    let dir = filled();
    fs::remove_dir_all(path(dir.path()).parent().unwrap()).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Emptied { .. }), "{error:?}");
    assert!(error.to_string().contains("not the first start"), "{error}");
    assert!(!path(dir.path()).exists());
    fs::remove_file(options(dir.path()).first_start_marker).unwrap();
    assert!(open(dir.path()).unwrap().1.first_start);
}

#[test]
fn folders_that_another_store_owns_are_refused_and_moved_ones_are_not() {
    let dir = filled();
    let elsewhere = dir.path().join("elsewhere/state.redb");
    let error = Store::open(&elsewhere, &identity(), &options(dir.path())).unwrap_err();
    assert!(matches!(error, StoreError::OtherState { .. }), "{error:?}");
    assert!(!elsewhere.exists());

    fs::rename(path(dir.path()).parent().unwrap(), dir.path().join("elsewhere")).unwrap();
    let (_store, loaded) = Store::open(&elsewhere, &identity(), &options(dir.path())).unwrap();
    assert_eq!(loaded.jobs.len(), 20);
    let marker = fs::read_to_string(options(dir.path()).first_start_marker).unwrap();
    assert!(marker.starts_with(elsewhere.canonicalize().unwrap().to_str().unwrap()), "{marker}");
}

#[test]
fn a_crash_while_creating_leaves_a_first_start() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    fs::write(dir.path().join("state/state.new"), "half").unwrap();
    assert!(open(dir.path()).unwrap().1.first_start);
    assert!(!dir.path().join("state/state.new").exists());
}

#[test]
fn a_store_that_was_taken_away_while_in_use_is_not_opened_again_until_it_is_back() {
    let dir = filled();
    let (store, _) = open(dir.path()).unwrap();
    let away = dir.path().join("away");
    fs::rename(path(dir.path()), &away).unwrap();
    let error = reopen(&store).unwrap_err();
    assert!(matches!(error, StoreError::Removed { .. }), "{error:?}");
    fs::rename(&away, path(dir.path())).unwrap();
    assert_eq!(reopen(&store).unwrap(), 20);
    append(&store, jobs(vec![job(21)])).unwrap();
}

// --- crashes and full disks ---

const CHILD: &str = "OVERNIGHT_TEST_STORE";

/// Not a test of its own: the process that is killed. Says each job that is durable.
#[test]
fn a_writer_to_be_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let (store, loaded) = open(Path::new(&dir)).unwrap();
    let (mut seq, mut id) = (loaded.last_seq, loaded.next_job.0);
    loop {
        // Two at a time, so that commits hold more than one.
        let (sender, receiver) = mpsc::channel();
        for _ in 0..2 {
            let sender = sender.clone();
            let batch = Batch {
                events: vec![accepted(seq + 1, id), job_event(seq + 2, id)],
                leases: vec![lease(id, 1, None, false)],
                ..jobs(vec![job(id)])
            };
            store.append(batch, Box::new(move |result| sender.send((id, result)).unwrap()));
            (seq, id) = (seq + 2, id + 1);
        }
        for _ in 0..2 {
            let (id, result) = receiver.recv().unwrap();
            result.unwrap();
            println!("\nacked {id}");
        }
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_writer_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut last_acked = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["a_writer_to_be_killed", "--nocapture", "--test-threads=1"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acked = lines
            .filter_map(|line| line.unwrap().strip_prefix("acked ").map(|id| id.parse::<u64>().unwrap()));
        let mut killed = false;
        for (n, id) in acked.enumerate() {
            last_acked = id;
            if n >= 20 + round * 7 && !killed {
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        let (store, loaded) = open(dir.path()).unwrap();
        assert!(loaded.next_job.0 > last_acked, "job {last_acked} was acknowledged and is lost");
        let stored = loaded.jobs.iter().map(|job| job.id.0);
        assert!(stored.eq(1..loaded.next_job.0));
        // A batch is there as a whole or not at all.
        assert_eq!(loaded.last_seq, 2 * (loaded.next_job.0 - 1));
        assert_eq!((loaded.next_lease.0, loaded.next_submission.0), (loaded.next_job.0, loaded.next_job.0));
        assert_eq!(store.reader().events_of(JobId(last_acked)).unwrap().len(), 1);
    }
}

#[test]
fn a_full_disk_fails_the_append_and_a_reopened_store_goes_on_without_loss() {
    let Some(disk) = SmallDisk::new("a_full_disk_fails_the_append", 8 << 10) else { return };
    let (store, _) = open(&disk.0).unwrap();
    fs::write(disk.0.join("ballast"), vec![1; 3 << 20]).unwrap();
    let mut stored = 0;
    let error = loop {
        let id = stored + 1;
        let mut job = job(id);
        job.warnings = vec!["x".repeat(100_000)];
        match append(&store, Batch { events: vec![job_event(id, id)], ..jobs(vec![job]) }) {
            Ok(()) => stored = id,
            Err(error) => break error,
        }
        assert!(stored < 1000, "the disk never was full");
    };
    assert!(error.is_no_space(), "{error:?}");
    assert!(stored > 5);
    // Nothing goes through until the file has been opened again, and nobody else gets hold of it meanwhile.
    let again = append(&store, jobs(vec![job(stored + 1)])).unwrap_err();
    assert!(matches!(again, StoreError::NeedsReopen { .. }), "{again:?}");
    assert!(matches!(store.reader().job(JobId(1)).unwrap_err(), StoreError::NeedsReopen { .. }));
    assert!(matches!(open(&disk.0).unwrap_err(), StoreError::Owned { .. }));

    fs::remove_file(disk.0.join("ballast")).unwrap();
    let last = reopen(&store).unwrap();
    assert!(last == stored || last == stored + 1, "{last} after {stored}");
    append(&store, Batch { events: vec![job_event(stored + 1, stored + 1)], ..jobs(vec![job(stored + 1)]) })
        .unwrap();
    drop(store);
    let (_store, loaded) = open(&disk.0).unwrap();
    assert!(loaded.jobs.iter().map(|job| job.id.0).eq(1..=stored + 1));
    assert_eq!(loaded.last_seq, stored + 1);
}
