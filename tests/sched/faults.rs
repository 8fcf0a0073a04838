//! What is wrong with devices: what keeps one out of service, what ends a run, and what lets it back in.

use crate::build::{Rig, job, uuid};
use overnight::model::{
    Bytes, Cursor, DeviceState, Event, FaultKind, FaultNews, GpuReading, Health, JobId, RunEnd, Span,
    Unreadable, Verdict,
};
use overnight::protocol::{Command, GpuSelect, Reply};
use overnight::sched::{Effect, Input, StopKind};

fn state(rig: &Rig, index: u32) -> DeviceState {
    rig.world.pool.get(&uuid(index)).unwrap().state.clone()
}

/// Why a device is in quarantine.
fn why(rig: &Rig, index: u32) -> String {
    match state(rig, index) {
        DeviceState::Quarantined(quarantine) => quarantine.why,
        other => panic!("GPU {index} is {other:?}"),
    }
}

fn xid(rig: &mut Rig, index: u32, code: u64) {
    let news = FaultNews { uuid: uuid(index), kind: FaultKind::Xid(code) };
    rig.step(vec![Input::Faults(vec![news])]);
    assert!(rig.last.effects.contains(&Effect::Probe), "the devices are read again at once");
}

fn notes(rig: &Rig, id: JobId) -> Vec<String> {
    rig.job(id).tasks[0].attempts[0].notes.clone()
}

fn gone(reading: &mut GpuReading) {
    reading.unreadable = Some(Unreadable::Gone { detail: "fell off the bus".to_owned() });
}

fn tells(uncorrected: u64, remap_pending: bool, remap_failed: bool) -> impl Fn(&mut GpuReading) {
    move |reading| {
        reading.health = Health {
            uncorrected: Some(uncorrected),
            remap_pending: Some(remap_pending),
            remap_failed: Some(remap_failed),
        };
    }
}

fn clear(rig: &mut Rig, index: u32) -> Reply {
    rig.command(Command::Clear { gpu: GpuSelect::Index(index) })
}

fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Ok { .. })
}

/// The machine is started anew, and the scheduler with it.
fn reboot(rig: &mut Rig) {
    rig.now.boot.0 += 1;
    rig.now.boottime_ms = 30_000;
    rig.now.wall_ms += 90_000;
    rig.restart();
}

/// Reads so often that a device whose reset is proven is free; says how many readings that took, one a second.
fn readings_until_free(rig: &mut Rig, index: u32) -> usize {
    for n in 1..10 {
        rig.wait(1);
        if state(rig, index) == DeviceState::Free {
            return n;
        }
    }
    panic!("GPU {index} stays {:?}", state(rig, index));
}

#[test]
fn an_error_of_a_program_is_told_to_its_job_once_and_is_nothing_to_the_device() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    rig.started(id);
    for _ in 0..50 {
        xid(&mut rig, 0, 31);
    }
    xid(&mut rig, 0, 13);
    xid(&mut rig, 1, 31);
    let told = notes(&rig, id);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        told[0],
        "Xid 31: GPU memory page fault, on GPU GPU-0000; an error of the program, not of the GPU"
    );
    assert_eq!(rig.state(id), Cursor::Running);
    let generation = rig.generation(id);
    xid(&mut rig, 0, 43);
    assert_eq!(rig.generation(id), generation, "no decision about the job gets old by that");
    rig.succeed(id);
    assert_eq!((state(&rig, 0), state(&rig, 1)), (DeviceState::Free, DeviceState::Free));
    rig.restart();
    assert_eq!(notes(&rig, id).len(), 3);
    // A device that the pool does not know.
    xid(&mut rig, 9, 79);
    assert!(rig.last.events.is_empty());
}

#[test]
fn a_driver_that_tells_of_everything_there_is_fills_no_disk() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    for code in 0..200 {
        xid(&mut rig, 0, code);
    }
    assert!(notes(&rig, id).len() <= 20);
    let fault = rig.world.pool.get(&uuid(0)).unwrap().fault.clone().unwrap();
    assert!(fault.why.len() < 200, "{}", fault.why);
    let faulted =
        |record: &&overnight::model::EventRecord| matches!(record.event, Event::DeviceFaulted { .. });
    assert!(rig.disk.log.iter().filter(faulted).count() <= 4);
}

#[test]
fn a_device_that_is_not_well_goes_into_quarantine_after_its_run_and_stays_there() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    xid(&mut rig, 0, 48);
    assert_eq!(rig.state(id), Cursor::Running, "the run goes on");
    assert!(notes(&rig, id)[0].contains("Xid 48"), "{:?}", notes(&rig, id));
    let lease = rig.lease(id);
    rig.succeed(id);
    assert_eq!(rig.outcome(id), "succeeded");
    assert_eq!(rig.world.lease(lease).unwrap().returned.as_ref().unwrap().verdict, Verdict::Clean);
    assert_eq!(why(&rig, 0), "Xid 48: double-bit ECC error");
    let waits = rig.submit(job("b"));
    for _ in 0..100 {
        rig.wait(3_600);
        rig.restart();
    }
    assert_eq!(rig.state(waits), Cursor::Queued);
    assert_eq!(rig.why(waits), "needs a free GPU; GPU 0 is quarantined");
    assert!(is_ok(&clear(&mut rig, 0)));
    rig.read();
    assert_eq!(rig.state(waits), Cursor::Renting);
    assert!(!is_ok(&clear(&mut rig, 0)), "there is nothing to clear any more");
}

#[test]
fn a_new_boot_is_a_reset_and_a_device_is_free_after_three_readings_that_show_it_clean() {
    let mut rig = Rig::new(2);
    xid(&mut rig, 0, 119);
    assert!(why(&rig, 0).contains("Xid 119"));
    assert_eq!(state(&rig, 1), DeviceState::Free);
    rig.wait(60);
    reboot(&mut rig);
    // Readings that come at once are one.
    for _ in 0..20 {
        rig.pass(Span(10));
        rig.read();
    }
    rig.wait(1);
    // One that shows somebody there begins the count anew.
    rig.pass(Span::secs(1));
    rig.read_with(|reading| reading.memory_used = Some(Bytes::gib(9)));
    assert_eq!(readings_until_free(&mut rig, 0), 3);
    rig.restart();
    assert_eq!(state(&rig, 0), DeviceState::Free);
    assert_eq!(rig.world.pool.get(&uuid(0)).unwrap().fault, None);
}

#[test]
fn the_readings_that_prove_a_reset_are_asked_for_once_a_second() {
    let mut rig = Rig::new(1);
    xid(&mut rig, 0, 62);
    reboot(&mut rig);
    // Half an hour later looks are rare.
    rig.pass(Span::secs(1_800));
    rig.read();
    for _ in 0..2 {
        let wake = rig.last.wake.unwrap().at;
        assert_eq!(wake - rig.now.boottime_ms, 1_000);
        rig.pass(Span::secs(1));
        rig.step(Vec::new());
        assert!(rig.last.effects.contains(&Effect::Probe));
        rig.read();
    }
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_device_that_fell_off_the_bus_ends_its_run_by_name_and_no_other() {
    let mut rig = Rig::new(3);
    let (a, b) = (rig.submit(job("a")), rig.submit(job("b")));
    rig.started(a);
    rig.started(b);
    xid(&mut rig, 0, 79);
    let stops = |rig: &Rig| {
        let lost = |effect: &Effect| match effect {
            Effect::Stop { lease, kind: StopKind::Lost { why } } => Some((*lease, why.clone())),
            _ => None,
        };
        rig.last.effects.iter().filter_map(lost).collect::<Vec<_>>()
    };
    let named = "GPU GPU-0000 is gone: Xid 79: fell off the bus".to_owned();
    assert_eq!(stops(&rig), [(rig.lease(a), named)]);
    let off = |reading: &mut GpuReading| {
        if reading.uuid == uuid(0) {
            gone(reading);
        }
    };
    rig.read_with(off);
    rig.ended(a, RunEnd::Lost { why: "x".to_owned() });
    rig.pass(Span(1));
    rig.read_with(off);
    rig.collected(a);
    rig.released(a);
    assert_eq!(state(&rig, 0), DeviceState::Gone { detail: "fell off the bus".to_owned() });
    assert_eq!(rig.state(b), Cursor::Running);
    // The attempt is made again, on another device.
    rig.wait_with(6, off);
    let held = rig.world.leases.get(rig.lease(a)).unwrap().held.devices[0].uuid.clone();
    assert_eq!(held, uuid(2));
    // It is back, which only a reset can have done.
    rig.restart();
    rig.read();
    assert!(why(&rig, 0).contains("it was gone: fell off the bus"), "{}", why(&rig, 0));
    assert_eq!(readings_until_free(&mut rig, 0), 2);
}

#[test]
fn a_device_that_is_no_longer_listed_is_gone_and_has_to_prove_itself_when_it_is_back() {
    let mut rig = Rig::new(2);
    let all = rig.gpus.clone();
    rig.gpus.pop();
    rig.step(vec![Input::Devices(rig.gpus.clone())]);
    assert!(matches!(state(&rig, 1), DeviceState::Gone { .. }));
    rig.gpus = all;
    rig.step(vec![Input::Devices(rig.gpus.clone())]);
    assert_eq!(readings_until_free(&mut rig, 1), 3);
}

#[test]
fn errors_that_ecc_could_not_correct_keep_a_device_out_until_it_is_reset_or_cleared() {
    let mut rig = Rig::new(1);
    rig.read_with(tells(1, false, false));
    assert_eq!(why(&rig, 0), "memory errors that ECC could not correct");
    rig.wait_with(3_600, tells(1, false, false));
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
    // An operator lives with the one, also after a restart, and not with a second.
    assert!(is_ok(&clear(&mut rig, 0)));
    rig.read_with(tells(1, false, false));
    assert_eq!(state(&rig, 0), DeviceState::Free);
    rig.restart();
    rig.read_with(tells(1, false, false));
    assert_eq!(state(&rig, 0), DeviceState::Free);
    rig.read_with(tells(2, false, false));
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
    // Counts from the beginning again: it was reset.
    for n in 0..3 {
        assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)), "after {n}");
        rig.wait_with(1, tells(0, false, false));
    }
    assert_eq!(state(&rig, 0), DeviceState::Free);
    // What was lived with is over with the reset, and with the boot.
    rig.read_with(tells(1, false, false));
    assert!(is_ok(&clear(&mut rig, 0)));
    rig.read_with(tells(0, false, false));
    rig.read_with(tells(1, false, false));
    assert!(is_ok(&clear(&mut rig, 0)));
    reboot(&mut rig);
    rig.read_with(tells(1, false, false));
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
}

#[test]
fn a_row_that_is_to_be_replaced_keeps_a_device_out_until_it_is() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.wait_with(5, tells(0, true, false));
    assert_eq!(rig.state(id), Cursor::Running);
    assert!(notes(&rig, id)[0].contains("replaced at its next reset"), "{:?}", notes(&rig, id));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.wait_with(1, tells(0, true, false));
    assert_eq!(why(&rig, 0), "a bad row of its memory is replaced at its next reset");
    for _ in 0..3 {
        rig.wait_with(1, tells(0, false, false));
    }
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn what_a_reset_does_not_cure_stays_until_an_operator_lives_with_it() {
    let mut rig = Rig::new(1);
    rig.read_with(tells(0, false, true));
    for _ in 0..2 {
        reboot(&mut rig);
        for _ in 0..5 {
            rig.wait_with(1, tells(0, false, true));
        }
        assert_eq!(why(&rig, 0), "a bad row of its memory could not be replaced");
    }
    assert!(is_ok(&clear(&mut rig, 0)));
    reboot(&mut rig);
    rig.read_with(tells(0, false, true));
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_fault_may_be_cleared_while_its_job_runs() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    xid(&mut rig, 0, 74);
    assert!(is_ok(&clear(&mut rig, 0)));
    rig.succeed(id);
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn a_device_with_a_fault_is_not_waited_for() {
    let mut rig = Rig::new(2);
    let long = rig.submit(job("long"));
    rig.started(long);
    xid(&mut rig, 0, 95);
    // Two are needed, and one of them does not come back: nobody is held up for that.
    let wide = rig.submit(crate::build::Ask::gpus(job("wide"), 2));
    let small = rig.submit(job("small"));
    assert_eq!((rig.state(wide), rig.state(small)), (Cursor::Queued, Cursor::Renting));
}

#[test]
fn a_device_is_closed_after_its_job_and_that_outlives_a_restart() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    rig.started(id);
    let close = |gpus| Command::Close { gpus, reason: "fan is loud".to_owned() };
    let Reply::Ok { message } = rig.command(close(GpuSelect::All)) else { panic!("it can be closed") };
    assert_eq!(message, "GPU 0 is closed when its job #1 has ended; GPU 1 is closed");
    assert_eq!(rig.state(id), Cursor::Running);
    let events = rig.disk.log.len();
    assert!(is_ok(&rig.command(close(GpuSelect::Index(0)))));
    assert_eq!(rig.disk.log.len(), events, "asked twice is asked once");
    rig.restart();
    rig.read();
    rig.succeed(id);
    let closed = DeviceState::Closed { reason: "fan is loud".to_owned(), by: "ana".to_owned() };
    assert_eq!((state(&rig, 0), state(&rig, 1)), (closed.clone(), closed));
    let waits = rig.submit(job("b"));
    assert_eq!(rig.state(waits), Cursor::Queued);
    assert!(is_ok(&rig.command(Command::Open { gpus: GpuSelect::All })));
    rig.read();
    assert_eq!(rig.state(waits), Cursor::Renting);
    // And it may be left open after all.
    rig.started(waits);
    assert!(is_ok(&rig.command(close(GpuSelect::Index(0)))));
    assert!(is_ok(&rig.command(Command::Open { gpus: GpuSelect::Index(0) })));
    rig.succeed(waits);
    assert_eq!(state(&rig, 0), DeviceState::Free);
}

#[test]
fn closing_a_device_in_quarantine_does_not_let_it_out() {
    let mut rig = Rig::new(1);
    xid(&mut rig, 0, 48);
    assert!(is_ok(&rig.command(Command::Close { gpus: GpuSelect::Index(0), reason: String::new() })));
    assert!(matches!(state(&rig, 0), DeviceState::Quarantined(_)));
    assert!(is_ok(&clear(&mut rig, 0)));
    rig.read();
    assert!(matches!(state(&rig, 0), DeviceState::Closed { .. }));
    // One that was closed before it got its fault is not opened into service.
    xid(&mut rig, 0, 48);
    assert!(matches!(state(&rig, 0), DeviceState::Closed { .. }));
    assert!(is_ok(&rig.command(Command::Open { gpus: GpuSelect::Index(0) })));
    rig.read();
    assert_eq!(why(&rig, 0), "Xid 48: double-bit ECC error");
}
