//! Clocks and the meter: steps, sleep, hours without a scheduler, reboots, restarts by the dozen. What is billed is what a
//! stopwatch beside the machine shows.

use crate::build::{BEGIN, Rig, job};
use overnight::model::{AttemptNo, BootId, Cursor, EndedBy, JobId, Lease, Now, RunEnd, Span, TaskIx};
use overnight::protocol::{Command, MeterBy};
use overnight::sched::EngineReport;
use overnight::sched::meter::{Cut, check, table};

const HOUR: i64 = 3_600_000;

fn record(rig: &Rig, id: JobId) -> Lease {
    rig.world.ledger.of_job(id).last().cloned().expect("its lease has ended")
}

/// GPU-milliseconds of a job, gross and waived.
fn used(rig: &Rig, id: JobId) -> (u64, u64) {
    let (gpu, _, waived) = rig.world.ledger.sums(id, &rig.now);
    (gpu, waived)
}

fn ends(rig: &mut Rig, id: JobId, suspended: u64) {
    let mut report = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
    if let EngineReport::Ended { suspended_ms, .. } = &mut report {
        *suspended_ms = suspended;
    }
    rig.engine(report);
}

#[test]
fn c01_a_wall_clock_that_is_set_back_and_forth_changes_no_duration_and_nothing_starts_early() {
    for step in [-HOUR, HOUR, -50 * 365 * 24 * HOUR] {
        let mut rig = Rig::new(2);
        let id = rig.submit(job("a").clone());
        let later = rig.submit({
            let mut spec = job("later");
            spec.request.start_after_ms = Some(BEGIN.wall_ms + 30 * 60_000);
            spec
        });
        rig.pass(Span::secs(10));
        rig.started(id);
        rig.now.wall_ms += step;
        rig.step(Vec::new());
        rig.wait(50);
        rig.now.wall_ms -= step / 2;
        rig.wait(40);
        ends(&mut rig, id, 0);
        assert_eq!(used(&rig, id), (100_000, 0));
        let due = rig.now.wall_ms >= BEGIN.wall_ms + 30 * 60_000;
        rig.read();
        assert_eq!(rig.state(later) != Cursor::Queued, due || step > 0, "by the wall, as its owner said");
        let day = |at: i64| (at.div_euclid(HOUR).to_string(), (at.div_euclid(HOUR) + 1) * HOUR);
        let leases: Vec<Lease> = rig.world.ledger.iter().cloned().collect();
        assert_eq!(check(leases.iter(), &rig.now, &day), Vec::<String>::new());
    }
}

/// A job that waits, with a cancel whose undo window is so long.
fn cancelled_in(rig: &mut Rig, undo: Span) -> JobId {
    let job = rig.submit(job("a"));
    let generation = rig.generation(job);
    rig.command(Command::Cancel { job, generation, undo, now: false });
    job
}

#[test]
fn c01_an_undo_window_is_as_long_as_it_was_said_to_be_whatever_the_wall_clock_does() {
    let mut rig = Rig::new(0);
    let id = cancelled_in(&mut rig, Span::secs(10));
    rig.now.wall_ms += HOUR;
    rig.step(Vec::new());
    assert_eq!(rig.state(id), Cursor::Queued);
    rig.now.wall_ms -= 3 * HOUR;
    rig.wait(9);
    assert_eq!(rig.state(id), Cursor::Queued);
    rig.wait(1);
    assert_eq!(rig.outcome(id), "cancelled by ana");
}

/// Another boot, in which the wall clock was set back by hours.
fn boots_again(rig: &mut Rig) {
    let boot = BootId(rig.now.boot.0 + 1);
    rig.now = Now { boot, boottime_ms: 10_000, wall_ms: rig.now.wall_ms - 3 * HOUR };
    rig.restart();
}

#[test]
fn an_undo_window_is_no_longer_in_another_boot_whose_clock_was_set_back() {
    let mut rig = Rig::new(0);
    let id = cancelled_in(&mut rig, Span::secs(100));
    rig.wait(40);
    boots_again(&mut rig);
    boots_again(&mut rig);
    rig.wait(99);
    assert_eq!(rig.state(id), Cursor::Queued, "as long as it was said to be, at most");
    rig.wait(1);
    assert_eq!(rig.outcome(id), "cancelled by ana");
}

#[test]
fn an_edit_of_an_earlier_boot_holds_nothing_up() {
    let mut rig = Rig::new(1);
    rig.read();
    let busy = rig.submit(job("busy"));
    rig.started(busy);
    let id = rig.submit(job("a"));
    let generation = rig.generation(id);
    rig.command(Command::BeginEdit { job: id, generation });
    assert!(rig.job(id).edit.is_some());
    boots_again(&mut rig);
    assert_eq!(rig.job(id).edit, None, "its editor went with the boot");
}

#[test]
fn c03_what_was_slept_through_is_held_and_waived_once() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a").clone());
    rig.started(id);
    rig.pass(Span::secs(100));
    // Eight hours asleep: boottime and the wall go on, the work does not.
    rig.pass(Span(8 * HOUR as u64));
    rig.read();
    rig.pass(Span::secs(100));
    ends(&mut rig, id, 8 * HOUR as u64);
    assert_eq!(used(&rig, id), (8 * HOUR as u64 + 200_000, 8 * HOUR as u64));
    rig.restart();
    assert_eq!(used(&rig, id), (8 * HOUR as u64 + 200_000, 8 * HOUR as u64), "and not again after a restart");
}

/// A supervisor's figure of suspend was believed as it came.
#[test]
fn c03_more_suspend_than_was_held_is_no_more_than_was_held() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.pass(Span::secs(10));
    ends(&mut rig, id, 99_000_000);
    assert_eq!(record(&rig, id).suspended_ms, 10_000);
    assert_eq!(used(&rig, id), (10_000, 10_000));
}

#[test]
fn c04_hours_without_a_scheduler_are_billed_once_and_to_the_supervisors_end() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.pass(Span(2 * HOUR as u64));
    let ended = rig.ended_report(id, RunEnd::Exited { code: 7 }, EndedBy::Proven);
    rig.pass(Span(HOUR as u64));
    rig.restart();
    rig.engine(ended.clone());
    rig.restart();
    rig.engine(ended);
    assert_eq!(used(&rig, id), (2 * HOUR as u64, 0));
    rig.read();
    rig.collected(id);
    rig.released(id);
    assert_eq!(rig.outcome(id), "failed: exit 7");
}

#[test]
fn c05_the_time_the_machine_was_off_is_never_billed() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(100));
    rig.engine(EngineReport::Heartbeat { lease, at: rig.now });
    rig.pass(Span::secs(3));
    // Off for two hours; the clock of the new boot is already further than the old one was.
    rig.now =
        Now { boot: BootId(2), boottime_ms: BEGIN.boottime_ms * 9, wall_ms: rig.now.wall_ms + 2 * HOUR };
    rig.restart();
    let last = Some(BEGIN.plus(Span::secs(100)));
    let (at, gone, collecting, why) = (None, true, false, "the machine was started anew".to_owned());
    rig.engine(EngineReport::Missing { lease, heartbeat: last, at, gone, collecting, why });
    assert_eq!(used(&rig, id), (100_000, 100_000), "held to the last sign of life, and waived");
    assert_eq!(record(&rig, id).ended.unwrap().1, EndedBy::Estimated);
}

/// A run of which only the start was heard ended, by estimate, before it had begun.
#[test]
fn c05_a_start_is_a_sign_of_life() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.pass(Span::secs(2));
    rig.started(id);
    rig.pass(Span::secs(2));
    rig.restart();
    let (heartbeat, at, gone, collecting) = (None, None, true, false);
    let why = "its journal cannot be read".to_owned();
    rig.engine(EngineReport::Missing { lease, heartbeat, at, gone, collecting, why });
    assert_eq!(record(&rig, id).held_for(&rig.now), Some(Span::secs(2)));
    assert_eq!(rig.job(id).tasks[0].current().state.ended(), rig.job(id).tasks[0].current().state.started());
}

#[test]
fn c06_fifty_restarts_during_one_job_change_not_a_millisecond() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.pass(Span(17));
    rig.started(id);
    let stopwatch = 17 + 50 * 60_013;
    for n in 0..50_u64 {
        rig.pass(Span(60_013));
        if n % 2 == 0 {
            rig.engine(EngineReport::Heartbeat { lease, at: rig.now });
        }
        rig.restart();
        // The survey tells of the start again.
        let (task, attempt) = (TaskIx(0), AttemptNo(1));
        rig.engine(EngineReport::Started {
            lease,
            task,
            attempt,
            at: BEGIN.plus(Span(17)),
            enforcement: None,
        });
        rig.read();
        let open = rig.world.leases.held().map(|lease| lease.gpu_ms(&rig.now)).sum::<u64>();
        assert_eq!(open, 17 + (n + 1) * 60_013);
    }
    ends(&mut rig, id, 0);
    assert_eq!(used(&rig, id), (stopwatch, 0));
    assert_eq!(rig.world.ledger.of_job(id).count(), 1);
}

#[test]
fn c08_the_meter_runs_from_the_grant_to_the_end_and_no_further() {
    let mut rig = Rig::new(1);
    rig.pass(Span::secs(1_000));
    let id = rig.submit(job("a"));
    rig.pass(Span::secs(30));
    rig.started(id);
    rig.pass(Span::secs(30));
    ends(&mut rig, id, 0);
    // Neither the drain, nor the collection, nor the release costs anything.
    rig.wait(20);
    rig.pass(Span(HOUR as u64));
    rig.collected(id);
    rig.released(id);
    assert_eq!(used(&rig, id), (60_000, 0));
}

#[test]
fn c09_a_lease_that_is_lost_is_shown_as_waived_in_every_cut() {
    let mut rig = Rig::new(2);
    let lost = rig.submit(job("lost").clone());
    let paid = rig.submit(job("paid"));
    let lease = rig.lease(lost);
    rig.started(lost);
    rig.started(paid);
    rig.pass(Span(2 * HOUR as u64));
    let (at, gone, collecting, why) = (Some(rig.now), true, false, "killed".to_owned());
    rig.engine(EngineReport::Missing { lease, heartbeat: None, at, gone, collecting, why });
    ends(&mut rig, paid, 0);
    let leases: Vec<Lease> = rig.world.ledger.iter().cloned().collect();
    // Days that are not equally long.
    let day = |at: i64| {
        let n = at.div_euclid(2_500_000);
        (
            n.to_string(),
            (n * 2_500_000 + if at.rem_euclid(2_500_000) < 999_999 { 999_999 } else { 2_500_000 }),
        )
    };
    for by in [MeterBy::User, MeterBy::Project, MeterBy::Job, MeterBy::Gpu, MeterBy::Day] {
        let cut = Cut { by, since: None, until: None, day_of: &day, rates: None };
        let rows = table(leases.iter(), &rig.now, &cut).rows;
        let sums = rows.iter().fold((0, 0), |sum, row| (sum.0 + row.gpu_ms, sum.1 + row.waived_gpu_ms));
        assert_eq!(sums, (4 * HOUR as u64, 2 * HOUR as u64), "{by:?}");
    }
}

/// A drain that was begun before the machine slept was given up when it woke, without another look.
#[test]
fn a_device_is_read_before_it_is_condemned_also_after_a_sleep_or_a_full_disk() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    let leak = |reading: &mut overnight::model::GpuReading| {
        reading.memory_used = Some(overnight::model::Bytes::gib(1));
    };
    rig.read_with(leak);
    rig.pass(Span(8 * HOUR as u64));
    rig.step(Vec::new());
    assert!(rig.world.leases.get(lease).is_some(), "nobody has looked at it since");
    assert!(rig.last.effects.contains(&overnight::sched::Effect::Probe));
    rig.pass(Span(5));
    rig.read();
    let returned = rig.world.lease(lease).unwrap().returned.clone().unwrap();
    assert_eq!(returned.verdict, overnight::model::Verdict::Clean);
}

/// One whose driver answers nothing at all is given up nevertheless.
#[test]
fn a_device_that_is_never_read_again_is_condemned_in_the_end() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    for (wait, kept) in [(31, true), (29, true), (1, false)] {
        rig.pass(Span::secs(wait));
        rig.step(Vec::new());
        assert_eq!(rig.world.leases.get(lease).is_some(), kept);
    }
    assert!(matches!(
        rig.world.lease(lease).unwrap().returned.as_ref().unwrap().verdict,
        overnight::model::Verdict::Quarantined { .. }
    ));
}
