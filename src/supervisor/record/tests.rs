use super::*;
use crate::model::BootId;

fn now(ms: u64) -> Now {
    Now { boot: BootId(7), boottime_ms: ms, wall_ms: 1_000_000 + ms as i64 }
}

fn intent() -> Record {
    Record::Intent(Intent {
        lease: LeaseId(9),
        token: Token("00112233445566778899aabbccddeeff".to_owned()),
        job: JobId(17),
        task: TaskIx(0),
        attempt: AttemptNo(1),
        supervisor: ProcessId { pid: 100, starttime: 5000 },
        groups: Groups::default(),
        at: now(10),
    })
}

fn started() -> Record {
    Record::Started {
        task: TaskIx(0),
        attempt: AttemptNo(1),
        main: ProcessId { pid: 101, starttime: 5001 },
        enforcement: None,
        at: now(20),
    }
}

fn ended(notes: Vec<String>) -> Record {
    Record::Ended(Ended {
        task: TaskIx(0),
        attempt: AttemptNo(1),
        at: now(30),
        end: RunEnd::Exited { code: 7 },
        by: EndedBy::Proven,
        peak_memory: Some(Bytes::mib(3)),
        suspended_ms: 0,
        notes,
    })
}

fn collected() -> Record {
    Record::Collected { task: TaskIx(0), attempt: AttemptNo(1), failure: None, at: now(40) }
}

fn beat(ms: u64) -> Heartbeat {
    Heartbeat { at: now(ms), peak_memory: Some(Bytes::mib(1)), suspended_ms: 0 }
}

#[test]
fn what_was_written_is_read_and_the_file_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    let path = dir.path().join(NAME);
    let len = std::fs::metadata(&path).unwrap().len();
    journal.append(started()).unwrap();
    for ms in [5000, 10_000, 15_000] {
        journal.beat(beat(ms)).unwrap();
    }
    journal.append(ended(vec!["a note".to_owned()])).unwrap();
    journal.append(collected()).unwrap();
    journal.sync().unwrap();
    let state = read(&path).unwrap();
    assert_eq!(state.records, [intent(), started(), ended(vec!["a note".to_owned()]), collected()]);
    assert_eq!(state.heartbeat, Some(beat(15_000)));
    assert_eq!(state.last_sign(), Some(now(15_000)));
    assert!(!state.torn && state.is_home());
    assert_eq!(state.main().unwrap().pid, 101);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), len);
}

#[test]
fn a_name_is_taken_once() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Journal::create(dir.path(), &intent()).unwrap().is_some());
    assert!(Journal::create(dir.path(), &intent()).unwrap().is_none());
    assert!(!claim(dir.path(), now(1)).unwrap());
    let other = tempfile::tempdir().unwrap();
    assert!(claim(other.path(), now(1)).unwrap());
    assert!(Journal::create(other.path(), &intent()).unwrap().is_none());
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 1, "no half-made file is left");
}

#[test]
fn groups_limits_and_what_outlived_its_kill_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let groups =
        Groups { version2: Some("/cg/overnight-0-a/t-0-1".into()), version1: vec!["/m/o/t-0-1".into()] };
    let Record::Intent(first) = intent() else { unreachable!() };
    let first = Record::Intent(Intent { groups, ..first });
    let held = Enforcement { memory: true, why: Some("x".repeat(9000)), ..Enforcement::default() };
    let (task, attempt) = (TaskIx(0), AttemptNo(1));
    let main = ProcessId { pid: 101, starttime: 5001 };
    let begun = Record::Started { task, attempt, main, enforcement: Some(held), at: now(20) };
    let outlived = Record::Outlived { task, attempt, who: "4711 (dd)".to_owned(), at: now(30) };
    let gone = Record::Gone { task, attempt, at: now(50) };
    let Record::Ended(end) = ended(Vec::new()) else { unreachable!() };
    let end = Record::Ended(Ended { by: EndedBy::AfterKill, ..end });
    let mut journal = Journal::create(dir.path(), &first).unwrap().unwrap();
    for record in [begun, outlived.clone(), end] {
        journal.append(record).unwrap();
    }
    let path = dir.path().join(NAME);
    let state = read(&path).unwrap();
    assert_eq!((&state.records[0], &state.records[2]), (&first, &outlived));
    let Record::Started { enforcement: Some(held), .. } = &state.records[1] else { panic!("not started") };
    assert!(held.memory && held.why.as_ref().is_some_and(|why| why.len() == 256), "cut, not lost");
    assert!(state.is_outlived());
    journal.append(gone).unwrap();
    assert!(!read(&path).unwrap().is_outlived());
}

#[test]
fn every_torn_tail_keeps_the_records_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    journal.append(started()).unwrap();
    let before = journal.next as usize;
    journal.append(ended(Vec::new())).unwrap();
    let after = journal.next as usize;
    let whole = std::fs::read(&path).unwrap();
    for cut in before..after {
        let mut torn = whole.clone();
        torn[cut..].fill(0);
        std::fs::write(&path, &torn).unwrap();
        let state = read(&path).unwrap();
        // The padding at the end belongs to no record.
        if torn == whole {
            assert_eq!(state.records.len(), 3);
        } else {
            assert_eq!(state.records, [intent(), started()], "cut at {cut}");
            assert_eq!(state.torn, cut > before);
        }
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(read(&path).unwrap().records.len() >= 2);
    }
    let mut flipped = whole;
    flipped[before + frame::HEAD + 3] ^= 1;
    std::fs::write(&path, &flipped).unwrap();
    assert_eq!(read(&path).unwrap().records.len(), 2);
}

#[test]
fn a_torn_heartbeat_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    journal.beat(beat(5000)).unwrap();
    journal.beat(beat(10_000)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The second one went into slot A.
    bytes[SLOTS[0] as usize + 40] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path).unwrap().heartbeat, Some(beat(5000)));
}

#[test]
fn an_end_with_endless_notes_still_fits() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    journal.append(ended(vec!["\u{1F4A5}\"".repeat(5000); 50])).unwrap();
    let state = read(&dir.path().join(NAME)).unwrap();
    assert_eq!(state.ended().map(|ended| &ended.end), Some(&RunEnd::Exited { code: 7 }));
}

#[test]
fn there_is_room_for_the_end_of_every_attempt_that_was_begun() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    for _ in 0..50 {
        journal.reserve().unwrap();
        journal.append(intent()).unwrap();
        journal.append(started()).unwrap();
        journal.append(ended(vec!["x".repeat(5000)])).unwrap();
        journal.append(collected()).unwrap();
    }
    assert_eq!(read(&dir.path().join(NAME)).unwrap().records.len(), 201);
}

#[test]
fn other_files_and_later_versions_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    std::fs::write(&path, "hello").unwrap();
    assert!(matches!(read(&path), Err(JournalError::Foreign { .. })));
    std::fs::remove_file(&path).unwrap();
    drop(Journal::create(dir.path(), &intent()).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 99;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(read(&path), Err(JournalError::Newer { version: 99, .. })));
}

#[test]
fn the_journal_of_the_first_version_still_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-v1");
    let state = read(&path).unwrap();
    assert_eq!(
        state.records,
        [
            intent(),
            started(),
            Record::Told { stop: Stopping::Cancel { by: "ana".to_owned() }, at: now(25) },
            ended(vec!["a note".to_owned()]),
            collected(),
            Record::Returned { at: now(50) },
        ]
    );
    assert_eq!(state.heartbeat, Some(beat(5000)));
}

/// Writes the fixture; run by hand when a new version is made, never for an old one.
#[test]
#[ignore = "writes tests/fixtures"]
fn write_the_fixture() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &intent()).unwrap().unwrap();
    journal.append(started()).unwrap();
    journal.beat(beat(5000)).unwrap();
    journal.append(Record::Told { stop: Stopping::Cancel { by: "ana".to_owned() }, at: now(25) }).unwrap();
    journal.append(ended(vec!["a note".to_owned()])).unwrap();
    journal.append(collected()).unwrap();
    journal.append(Record::Returned { at: now(50) }).unwrap();
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/journal-v{VERSION}"));
    std::fs::copy(dir.path().join(NAME), to).unwrap();
}

/// A scheduler that starts removes blanks while a supervisor of the one before gives its own a lease's name: the run
/// directory was emptied under its new name, and a job that ran was taken for one that never had.
#[test]
fn a_blank_that_becomes_a_leases_is_whole_or_not_there() {
    let run = tempfile::tempdir().unwrap();
    let (blank, lease) = (run.path().join(format!("{BLANK}7")), run.path().join("4"));
    let names: Vec<String> = (0..40).map(|n| format!("file-{n}")).collect();
    for _ in 0..200 {
        std::fs::create_dir(&blank).unwrap();
        for name in &names {
            std::fs::write(blank.join(name), "x").unwrap();
        }
        let start = std::sync::Barrier::new(2);
        let named = std::thread::scope(|scope| {
            let remover = scope.spawn(|| {
                start.wait();
                remove_blanks(run.path());
            });
            start.wait();
            let named = std::fs::rename(&blank, &lease).is_ok();
            remover.join().unwrap();
            named
        });
        if named {
            assert_eq!(std::fs::read_dir(&lease).unwrap().count(), names.len());
            std::fs::remove_dir_all(&lease).unwrap();
        }
        assert_eq!(std::fs::read_dir(run.path()).unwrap().count(), 0, "nothing else is left");
    }
}
