//! What readings mean: proof before a grant, proof after an end.

use crate::build::{Ask, Rig, job, reading, stranger, uuid};
use overnight::model::{
    Bytes, Cursor, DeviceState, EndedBy, GpuProcess, GpuReading, LockHolder, ProcessKind, RunEnd, Span,
    Token, Unreadable, Verdict,
};
use overnight::protocol::{Command, GpuSelect};
use overnight::sched::{Effect, EngineReport, Input, StopKind};

fn state(rig: &Rig, index: u32) -> DeviceState {
    rig.world.pool.get(&uuid(index)).unwrap().state.clone()
}

fn process(pid: u32, kind: ProcessKind, token: Option<Token>) -> GpuProcess {
    let name = "python".to_owned();
    GpuProcess {
        pid,
        name,
        uid: Some(1),
        user: None,
        kind,
        memory: Some(Bytes::gib(4)),
        token,
        ignored: false,
    }
}

fn used_by(kind: ProcessKind) -> impl Fn(&mut GpuReading) {
    move |reading| {
        reading.memory_used = Some(Bytes::gib(4));
        reading.processes = Some(vec![process(77, kind, None)]);
    }
}

#[test]
fn a_device_that_somebody_else_uses_is_outside_and_free_again_within_a_second() {
    let mut rig = Rig::new(1);
    rig.read_with(used_by(ProcessKind::Compute));
    assert_eq!(state(&rig, 0), DeviceState::Outside { who: "pid 77 python of uid 1".to_owned() });
    rig.pass(Span::secs(2));
    rig.step(vec![Input::Submission(Box::new(crate::build::submission(vec![job("a")])))]);
    let id = overnight::model::JobId(1);
    assert_eq!(rig.why(id), "needs a free GPU; GPU 0 is outside");
    let wake = |rig: &Rig| rig.last.wake.map(|wake| wake.at - rig.now.boottime_ms);
    assert!(rig.last.effects.contains(&Effect::Probe));
    assert_eq!(wake(&rig), Some(1_000));
    // The reading that comes of it asks for the next one only when that is due: it would have no end.
    rig.read_with(used_by(ProcessKind::Compute));
    assert!(!rig.last.effects.contains(&Effect::Probe));
    assert_eq!(wake(&rig), Some(1_000));
    rig.wait(1);
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn displays_and_ignored_processes_belong_to_the_baseline() {
    let mut rig = Rig::new(1);
    rig.read_with(used_by(ProcessKind::Graphics));
    assert_eq!(state(&rig, 0), DeviceState::Free);
    rig.read_with(|reading| {
        let mut ignored = process(5, ProcessKind::Compute, None);
        ignored.ignored = true;
        reading.processes = Some(vec![ignored]);
    });
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn what_cannot_be_read_is_unknown_and_not_granted() {
    let broken: [fn(&mut GpuReading); 3] = [
        |reading| reading.memory_used = None,
        |reading| reading.processes = None,
        |reading| reading.unreadable = Some(Unreadable::Failed { detail: "timeout".to_owned() }),
    ];
    for change in broken {
        let mut rig = Rig::new(1);
        rig.read_with(change);
        assert!(matches!(state(&rig, 0), DeviceState::Unknown { .. }));
        rig.step(vec![Input::Submission(Box::new(crate::build::submission(vec![job("a")])))]);
        assert_eq!(rig.world.leases.iter().count(), 0);
        rig.read();
        assert_eq!(rig.world.leases.iter().count(), 1, "it is free again once it is read");
    }
}

#[test]
fn the_words_of_an_outsider_do_not_change_with_its_memory() {
    let mut rig = Rig::new(1);
    rig.read_with(|reading| reading.memory_used = Some(Bytes::gib(10)));
    let events = rig.disk.log.len();
    rig.read_with(|reading| reading.memory_used = Some(Bytes::gib(20)));
    assert_eq!(rig.disk.log.len(), events, "a sample is not an event");
}

#[test]
fn another_schedulers_lock_is_outside_and_ours_is_not() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let token = rig.world.leases.get(rig.lease(id)).unwrap().token.clone();
    rig.succeed(id);
    let lock = |token: Token| {
        move |reading: &mut GpuReading| {
            let (uid, job, since_ms) = (7, "x".to_owned(), None);
            reading.lock = Some(LockHolder { uid, job, token: Some(token.clone()), since_ms });
        }
    };
    rig.read_with(lock(token));
    assert_eq!(state(&rig, 0), DeviceState::Free);
    rig.read_with(lock(stranger()));
    assert_eq!(state(&rig, 0), DeviceState::Outside { who: "uid 7 for x".to_owned() });
}

#[test]
fn a_device_drains_until_its_memory_is_back_at_the_baseline() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.pass(Span::secs(10));
    rig.ended(id, RunEnd::Exited { code: 0 });
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
    assert!(rig.last.effects.contains(&Effect::Probe));
    assert_eq!(rig.last.wake.map(|wake| wake.at - rig.now.boottime_ms), Some(1));
    rig.pass(Span(1));
    rig.read_with(|reading| reading.memory_used = Some(Bytes::gib(1)));
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
    rig.pass(Span(1));
    let lease = rig.lease(id);
    rig.read();
    assert_eq!(state(&rig, 0), DeviceState::Free);
    assert_eq!(rig.world.lease(lease).unwrap().returned.as_ref().unwrap().verdict, Verdict::Clean);
    assert!(rig.last.effects.contains(&Effect::Dismiss { lease }));
}

#[test]
fn a_draining_device_that_is_gone_is_not_waited_for() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a").gpus(2));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    rig.read_with(|reading| {
        if reading.uuid == uuid(1) {
            reading.unreadable = Some(Unreadable::Gone { detail: "off the bus".to_owned() });
        }
    });
    assert_eq!(state(&rig, 0), DeviceState::Free);
    assert_eq!(state(&rig, 1), DeviceState::Gone { detail: "off the bus".to_owned() });
    let returned = rig.world.lease(lease).unwrap().returned.clone().unwrap();
    assert_eq!(returned.verdict, Verdict::Quarantined { detail: "GPU-0001: off the bus".to_owned() });
    rig.restart();
    assert!(matches!(state(&rig, 1), DeviceState::Gone { .. }), "it is remembered as what it was");
}

#[test]
fn a_device_that_another_scheduler_took_right_after_a_run_is_outside_and_not_in_quarantine() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    let theirs = |name: Option<Token>| {
        move |reading: &mut GpuReading| {
            used_by(ProcessKind::Compute)(reading);
            let (uid, job, since_ms) = (7, "x".to_owned(), None);
            reading.lock = Some(LockHolder { uid, job, token: name.clone(), since_ms });
        }
    };
    rig.read_with(theirs(None));
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }), "a lock without a name proves nothing");
    rig.pass(Span(1));
    rig.read_with(theirs(Some(stranger())));
    assert_eq!(state(&rig, 0), DeviceState::Outside { who: "uid 7 for x".to_owned() });
    assert_eq!(rig.world.lease(lease).unwrap().returned.as_ref().unwrap().verdict, Verdict::Clean);
}

#[test]
fn a_drain_asks_for_a_reading_only_when_one_is_due() {
    let mut rig = Rig::new(1);
    rig.ran("a");
    let leak = |reading: &mut GpuReading| reading.memory_used = Some(Bytes::gib(1));
    rig.pass(Span(3));
    rig.read_with(leak);
    assert!(!rig.last.effects.contains(&Effect::Probe), "this was the one that was due at 2 ms");
    assert_eq!(rig.last.wake.map(|wake| wake.at - rig.now.boottime_ms), Some(2));
    rig.pass(Span(2));
    rig.step(Vec::new());
    assert!(rig.last.effects.contains(&Effect::Probe));
}

#[test]
fn the_operator_says_how_long_the_proof_may_take() {
    let mut rig = Rig::new(1);
    rig.world.pool.drain_max = Some(Span::secs(3));
    rig.ran("a");
    let leak = |reading: &mut GpuReading| reading.memory_used = Some(Bytes::gib(1));
    rig.pass(Span(2_999));
    rig.read_with(leak);
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
    rig.pass(Span(1));
    rig.read_with(leak);
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
}

#[test]
fn a_receipt_that_was_written_before_the_proof_is_written_again_with_it() {
    let mut rig = Rig::new(1);
    let id = rig.ran("a");
    rig.collected(id);
    rig.released(id);
    assert_eq!(rig.state(id), Cursor::Done);
    let receipt = Effect::WriteReceipt { job: id };
    assert!(rig.last.effects.contains(&receipt));
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
    rig.pass(Span(1));
    rig.read();
    assert_eq!(state(&rig, 0), DeviceState::Free);
    assert!(rig.last.effects.contains(&receipt));
}

#[test]
fn what_is_not_clean_after_thirty_seconds_is_in_quarantine_with_the_culprit() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a").gpus(2));
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    let lease = rig.lease(id);
    let token = rig.world.leases.get(lease).unwrap().token.clone();
    let dirty = |reading: &mut GpuReading| {
        if reading.uuid == uuid(1) {
            reading.processes = Some(vec![process(9, ProcessKind::Compute, Some(token.clone()))]);
        }
    };
    for _ in 0..29 {
        rig.pass(Span::secs(1));
        rig.read_with(dirty);
        assert!(matches!(state(&rig, 1), DeviceState::Draining { .. }));
    }
    rig.pass(Span::secs(2));
    rig.read_with(dirty);
    assert_eq!(state(&rig, 0), DeviceState::Free, "the clean one is not kept");
    let DeviceState::Quarantined(why) = state(&rig, 1) else { panic!("quarantined") };
    assert_eq!(why.why, "left over: pid 9 python of uid 1");
    // The quarantine is durable, and ends by itself once the device is clean.
    rig.restart();
    assert!(matches!(state(&rig, 1), DeviceState::Quarantined(_)));
    rig.read();
    assert_eq!(state(&rig, 1), DeviceState::Free);
}

#[test]
fn memory_that_a_run_left_behind_keeps_its_device_in_quarantine_until_somebody_clears_it() {
    let mut rig = Rig::new(1);
    rig.ran("a");
    let leak = |reading: &mut GpuReading| reading.memory_used = Some(Bytes::gib(1));
    rig.pass(Span::secs(31));
    rig.read_with(leak);
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
    rig.read_with(leak);
    assert!(
        matches!(state(&rig, 0), DeviceState::Quarantined(_)),
        "less than an outsider's 2 GiB is too much here"
    );
    rig.command(Command::Clear { gpu: GpuSelect::Index(0) });
    rig.read_with(leak);
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_device_in_quarantine_is_looked_at_less_and_less_often_whether_or_not_anybody_waits() {
    let mut rig = Rig::new(1);
    rig.ran("a");
    let leak = |reading: &mut GpuReading| reading.memory_used = Some(Bytes::gib(1));
    rig.pass(Span::secs(31));
    rig.read_with(leak);
    let began = rig.now;
    let mut looks = Vec::new();
    while looks.len() < 9 {
        let wake = rig.last.wake.expect("a next look").at;
        rig.pass(Span(wake - rig.now.boottime_ms));
        rig.step(Vec::new());
        assert!(rig.last.effects.contains(&Effect::Probe), "due at {looks:?}");
        looks.push(rig.now.since(&began).unwrap().as_secs());
        rig.read_with(leak);
        assert!(!rig.last.effects.contains(&Effect::Probe), "once is enough");
    }
    assert_eq!(looks, [1, 2, 5, 10, 20, 30, 60, 120, 180]);
    // The looks go on after a restart.
    rig.restart();
    rig.read_with(leak);
    assert_eq!(rig.last.wake.map(|wake| wake.at - rig.now.boottime_ms), Some(60_000));
}

#[test]
fn what_is_wrong_with_a_device_in_quarantine_is_what_is_wrong_with_it_now() {
    let mut rig = Rig::new(1);
    let id = rig.ran("a");
    let token = rig.world.leases.get(rig.lease(id)).unwrap().token.clone();
    let why = |rig: &Rig| match state(rig, 0) {
        DeviceState::Quarantined(quarantine) => (quarantine.why, quarantine.since),
        other => panic!("{other:?}"),
    };
    rig.pass(Span::secs(31));
    rig.read_with(|reading| {
        let ours = |pid| process(pid, ProcessKind::Compute, Some(token.clone()));
        reading.processes = Some((1..=5).map(ours).collect());
    });
    let (first, since) = why(&rig);
    let named = "left over: pid 1 python of uid 1, pid 2 python of uid 1, pid 3 python of uid 1 and more";
    assert_eq!(first, named);
    rig.pass(Span::secs(1));
    rig.read_with(|reading| reading.memory_used = Some(Bytes::gib(40)));
    assert_eq!(why(&rig), ("memory in use by nobody who can be seen".to_owned(), since));
}

#[test]
fn a_process_of_the_lease_is_left_over_whatever_it_does_on_the_device() {
    for change in [
        |process: &mut GpuProcess| process.kind = ProcessKind::Graphics,
        |process: &mut GpuProcess| process.ignored = true,
    ] {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        rig.started(id);
        let token = rig.world.leases.get(rig.lease(id)).unwrap().token.clone();
        rig.pass(Span::secs(1));
        rig.ended(id, RunEnd::Exited { code: 0 });
        rig.pass(Span(5));
        rig.read_with(|reading| {
            let mut left = process(9, ProcessKind::Compute, Some(token.clone()));
            change(&mut left);
            left.memory = None;
            reading.processes = Some(vec![left]);
        });
        assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
        rig.pass(Span(5));
        rig.read();
        assert_eq!(state(&rig, 0), DeviceState::Free);
    }
}

#[test]
fn what_a_display_holds_is_not_counted_twice() {
    let mut rig = Rig::new(1);
    let display = |used: u64, held: u64| {
        move |reading: &mut GpuReading| {
            let mut display = process(5, ProcessKind::Graphics, None);
            display.memory = Some(Bytes::gib(held));
            reading.memory_used = Some(Bytes::gib(used));
            reading.processes = Some(vec![display]);
        }
    };
    rig.step(vec![Input::Submission(Box::new(crate::build::submission(vec![job("a")])))]);
    rig.read_with(display(20, 20));
    let id = overnight::model::JobId(1);
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(5));
    rig.read_with(display(38, 20));
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }), "18 GiB are nobody's");
    rig.pass(Span(5));
    rig.read_with(display(30, 30));
    assert_eq!(state(&rig, 0), DeviceState::Free, "a display may grow");
}

#[test]
fn a_scheduler_that_was_away_reads_a_device_before_it_condemns_it() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    let ended = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
    rig.pass(Span::secs(3_600));
    rig.restart();
    rig.engine(ended);
    assert!(matches!(state(&rig, 0), DeviceState::Draining { .. }));
    rig.read();
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_lease_of_an_earlier_boot_gives_its_devices_back() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    let lease = rig.lease(id);
    rig.pass(Span::secs(50));
    rig.now.boot.0 += 1;
    rig.now.boottime_ms = 40_000;
    rig.restart();
    let heartbeat = Some(crate::build::BEGIN.plus(Span::secs(20)));
    let why = "the machine was started anew".to_owned();
    let (at, gone, collecting) = (None, true, true);
    rig.engine(overnight::sched::EngineReport::Missing { lease, heartbeat, at, gone, collecting, why });
    let record = rig.world.lease(lease).unwrap().clone();
    assert_eq!(record.ended.unwrap().1, EndedBy::Estimated);
    assert_eq!(
        record.held_for(&rig.now),
        Some(Span::secs(20)),
        "the time the machine was off is never billed"
    );
    assert!(record.waived);
    let woken = rig.last.wake.map_or(0, |wake| wake.at - rig.now.boottime_ms);
    assert!(woken >= 1, "no turn without end");
    rig.read();
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_device_that_falls_off_ends_the_run_on_it_and_nothing_else() {
    let mut rig = Rig::new(2);
    let (a, b) = (rig.submit(job("a")), rig.submit(job("b")));
    rig.started(a);
    rig.started(b);
    rig.read_with(|reading| {
        if reading.uuid == uuid(0) {
            reading.unreadable = Some(Unreadable::Gone { detail: "Xid 79".to_owned() });
        }
    });
    let stops: Vec<_> = rig
        .last
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Stop { lease, kind: StopKind::Lost { why } } => Some((*lease, why.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(stops, [(rig.lease(a), "GPU GPU-0000 is gone: Xid 79")]);
}

#[test]
fn a_held_device_that_is_no_longer_listed_ends_its_run() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.step(vec![Input::Devices(vec![rig.gpus[1].clone()])]);
    let stop = |effect: &Effect| matches!(effect, Effect::Stop { kind: StopKind::Lost { .. }, .. });
    assert!(rig.last.effects.iter().any(stop));
}

#[test]
fn a_reordered_bus_changes_nothing_but_indices() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    let before = state(&rig, 0);
    let mut gpus = rig.gpus.clone();
    gpus[0].index = 1;
    gpus[1].index = 0;
    rig.step(vec![Input::Devices(gpus)]);
    assert_eq!(state(&rig, 0), before);
    assert_eq!(rig.state(id), Cursor::Renting);
    let order: Vec<_> = rig.world.pool.devices().map(|(uuid, _)| uuid.clone()).collect();
    assert_eq!(order, [uuid(1), uuid(0)]);
}

#[test]
fn a_process_that_survives_its_kill_holds_up_the_next_attempt_until_it_is_gone() {
    for gpus in [0, 1] {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a").gpus(gpus));
        rig.started(id);
        let how = RunEnd::Lost { why: "x".to_owned() };
        let report = rig.ended_report(id, how.clone(), EndedBy::AfterKill);
        let lease = rig.lease(id);
        rig.engine(EngineReport::Outlived { lease, who: "4711 (dd)".to_owned() });
        rig.engine(report);
        rig.collected(id);
        rig.released(id);
        assert_eq!(rig.attempt(id).0, 2);
        rig.pass(Span::secs(31));
        rig.read();
        let verdict = rig.world.lease(lease).unwrap().returned.clone().unwrap().verdict;
        assert_eq!(verdict, Verdict::Quarantined { detail: "4711 (dd) did not answer the kill".to_owned() });
        // Nothing of it is seen on the device, and still it is not proven gone.
        rig.read();
        assert_eq!(rig.why(id), "its last attempt is not proven gone");
        if gpus == 1 {
            assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
        }
        // A scheduler that was away hears of it again.
        rig.restart();
        rig.step(vec![Input::Devices(rig.gpus.clone())]);
        rig.read();
        let unproven: Vec<_> = rig.world.unproven(&rig.now).map(|lease| lease.id).collect();
        assert_eq!((unproven, rig.state(id)), (vec![lease], Cursor::Queued));
        rig.engine(if gpus == 0 { report_of(lease, how) } else { EngineReport::Gone { lease } });
        assert!(rig.last.effects.contains(&Effect::Dismiss { lease }), "its supervisor had to stay");
        rig.read();
        assert_eq!(rig.state(id), Cursor::Renting, "{gpus} GPUs");
        assert_eq!(rig.world.unproven(&rig.now).count(), 0);
        rig.restart();
        assert_eq!(rig.world.unproven(&rig.now).count(), 0, "the proof is durable");
    }
}

fn report_of(lease: overnight::model::LeaseId, end: RunEnd) -> overnight::sched::EngineReport {
    overnight::sched::EngineReport::Ended {
        lease,
        task: overnight::model::TaskIx(0),
        attempt: overnight::model::AttemptNo(1),
        at: crate::build::BEGIN,
        end,
        by: EndedBy::Proven,
        peak_memory: None,
        suspended_ms: 0,
        notes: Vec::new(),
    }
}

/// A reading that is overtaken by a newer one took the newer one's place, and a device was granted on it.
#[test]
fn a_reading_that_is_older_than_the_last_says_nothing() {
    let mut rig = Rig::new(1);
    rig.pass(Span(100));
    let old = reading(&uuid(0), rig.now);
    rig.pass(Span(100));
    rig.read_with(used_by(ProcessKind::Compute));
    let before = state(&rig, 0);
    rig.step(vec![Input::Readings(vec![old])]);
    assert_eq!(state(&rig, 0), before);
    let mut gone = reading(&uuid(0), rig.now);
    gone.at.boottime_ms -= 50;
    gone.unreadable = Some(Unreadable::Gone { detail: "off the bus".to_owned() });
    rig.wait(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.step(vec![Input::Readings(vec![gone])]);
    assert!(!rig.last.effects.iter().any(|effect| matches!(effect, Effect::Stop { .. })));
}

/// The quarantine of a device was over when an operator closed it, or cleared it: that was taken for the proof that nothing
/// of the run was left, and the next attempt was started beside it.
#[test]
fn a_device_that_an_operator_takes_out_of_quarantine_proves_nothing_until_it_is_read() {
    for close in [true, false] {
        let mut rig = Rig::new(2);
        let id = rig.submit(job("a"));
        rig.started(id);
        let report = rig.ended_report(id, RunEnd::Lost { why: "x".to_owned() }, EndedBy::AfterKill);
        rig.engine(report);
        rig.collected(id);
        rig.released(id);
        let dirty = |reading: &mut GpuReading| {
            if reading.uuid == uuid(0) {
                reading.processes = Some(vec![process(9, ProcessKind::Compute, None)]);
            }
        };
        rig.pass(Span::secs(31));
        rig.read_with(dirty);
        assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
        let gpus = GpuSelect::Index(0);
        let (how, and) = if close {
            (Command::Close { gpus: gpus.clone(), reason: String::new() }, Command::Open { gpus })
        } else {
            (Command::Clear { gpu: gpus.clone() }, Command::Open { gpus })
        };
        rig.command(how);
        rig.pass(Span::secs(1));
        rig.read_with(dirty);
        assert_eq!(rig.why(id), "its last attempt is not proven gone");
        rig.command(and);
        rig.pass(Span::secs(1));
        rig.read();
        if close {
            // The quarantine is under the wish to close, and is still there.
            assert_eq!(rig.state(id), Cursor::Queued);
            rig.command(Command::Clear { gpu: GpuSelect::Index(0) });
            rig.pass(Span::secs(1));
            rig.read();
        }
        assert_eq!(rig.state(id), Cursor::Renting);
    }
}
