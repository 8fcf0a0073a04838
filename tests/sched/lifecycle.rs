//! From acceptance to the receipt, with every report late, lost, repeated or out of order.

use crate::build::{Ask, Rig, job, submission};
use overnight::model::{
    AttemptNo, Cursor, DropIdent, EndedBy, JobId, LeaseId, Limit, Now, Origin, RetryOn, RunEnd, Span, TaskIx,
};
use overnight::sched::{Effect, EngineReport, Input};

#[test]
fn a_job_goes_along_the_life_line_and_is_metered_while_it_holds() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a").gpus(2));
    let lease = rig.lease(id);
    rig.pass(Span(20));
    rig.started(id);
    assert_eq!(rig.state(id), Cursor::Running);
    rig.pass(Span(980));
    rig.ended(id, RunEnd::Exited { code: 0 });
    assert_eq!(rig.state(id), Cursor::Returning);
    rig.pass(Span::secs(60));
    rig.collected(id);
    assert_eq!(rig.state(id), Cursor::Releasing);
    rig.released(id);
    assert_eq!(rig.outcome(id), "succeeded");
    assert_eq!(rig.world.lease(lease).unwrap().gpu_ms(&rig.now), 2_000);
}

#[test]
fn a_missing_output_is_a_failure_and_a_failure_keeps_its_code() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.ended(id, RunEnd::Exited { code: 0 });
    let (lease, attempt) = (rig.lease(id), rig.attempt(id));
    let collected = overnight::model::Collected { missing: vec!["best.pt".to_owned()], ..Default::default() };
    rig.engine(EngineReport::Collected { lease, task: TaskIx(0), attempt, result: Ok(collected) });
    rig.released(id);
    assert_eq!(rig.outcome(id), "failed: output missing: best.pt");
}

#[test]
fn repeated_reordered_and_unknown_reports_change_nothing() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let other = rig.submit(job("b"));
    let lease = rig.lease(id);
    let task = TaskIx(0);
    let now = rig.now;
    let started = |lease, attempt| EngineReport::Started { lease, task, attempt, at: now, enforcement: None };
    let strangers = vec![
        started(LeaseId(99), AttemptNo(1)),
        started(lease, AttemptNo(7)),
        EngineReport::Collected {
            lease,
            task,
            attempt: AttemptNo(1),
            result: Ok(overnight::model::Collected::default()),
        },
        EngineReport::NotLaunched { lease: LeaseId(99), at: rig.now, why: String::new() },
    ];
    for report in strangers {
        let before = rig.disk.log.len();
        rig.engine(report);
        assert_eq!(rig.disk.log.len(), before);
    }
    // The end arrives before the start and twice, with another word the second time.
    let end = rig.ended_report(id, RunEnd::Exited { code: 5 }, EndedBy::Proven);
    let late = started(lease, AttemptNo(1));
    rig.engine(end);
    let events = rig.disk.log.len();
    rig.engine(late);
    let again = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
    rig.engine(again);
    assert_eq!(rig.disk.log.len(), events);
    rig.collected(id);
    rig.released(id);
    rig.step(vec![Input::Released { job: id, task, attempt: AttemptNo(1) }]);
    rig.step(vec![Input::Released { job: other, task, attempt: AttemptNo(1) }]);
    assert_eq!(rig.outcome(id), "failed: exit 5");
}

#[test]
fn an_end_is_within_the_grant_and_now_whatever_a_clock_says() {
    let ends: [fn(Now) -> Now; 3] = [
        |now| Now { boottime_ms: 1, ..now },
        |now| now.plus(Span::secs(9_999)),
        |now| Now { boot: overnight::model::BootId(77), boottime_ms: 5_000_000, ..now },
    ];
    for (n, change) in ends.into_iter().enumerate() {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        let lease = rig.lease(id);
        rig.started(id);
        rig.pass(Span::secs(10));
        let at = rig.now;
        rig.engine(EngineReport::Heartbeat { lease, at });
        rig.engine(EngineReport::Heartbeat { lease, at: Now { boot: overnight::model::BootId(9), ..at } });
        rig.pass(Span::secs(10));
        let mut end = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
        if let EngineReport::Ended { at, .. } = &mut end {
            *at = change(rig.now);
        }
        rig.engine(end);
        let record = rig.world.lease(lease).unwrap();
        let held = record.held_for(&rig.now).expect("one boot").as_secs();
        assert_eq!(held, [0, 20, 10][n]);
        assert_eq!(record.ended.unwrap().1 == EndedBy::Estimated, n == 2);
    }
}

#[test]
fn a_supervisor_that_is_gone_means_a_lost_attempt_that_is_not_billed_and_is_made_again() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    let lease = rig.lease(id);
    rig.pass(Span::secs(7));
    let why = "killed".to_owned();
    let at = Some(rig.now);
    rig.engine(EngineReport::Missing { lease, heartbeat: None, at, gone: true, collecting: false, why });
    assert!(rig.last.effects.contains(&Effect::Collect { lease }));
    let record = rig.world.lease(lease).unwrap();
    assert_eq!((record.gpu_ms(&rig.now), record.waived_gpu_ms(&rig.now)), (7_000, 7_000));
    rig.collected(id);
    rig.released(id);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert_eq!(rig.why(id), "again at 12s");
    rig.wait(5);
    assert_eq!((rig.state(id), rig.attempt(id)), (Cursor::Renting, AttemptNo(2)));
}

#[test]
fn the_engine_that_collects_itself_is_not_asked_to() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    let lease = rig.lease(id);
    let why = "killed".to_owned();
    rig.engine(EngineReport::Missing { lease, heartbeat: None, at: None, gone: true, collecting: true, why });
    assert!(!rig.last.effects.contains(&Effect::Collect { lease }));
}

#[test]
fn what_never_ran_is_made_again_whatever_the_job_says_but_not_for_ever() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a").with(|spec| spec.request.retry.times = 0));
    let mut attempts = 0;
    while rig.state(id) != Cursor::Done {
        assert_eq!(rig.state(id), Cursor::Renting);
        attempts += 1;
        let lease = rig.lease(id);
        rig.engine(EngineReport::NotLaunched { lease, at: rig.now, why: "no".to_owned() });
        assert_eq!(rig.state(id), Cursor::Releasing, "there is nothing to collect");
        rig.released(id);
        rig.wait(400);
    }
    assert_eq!((attempts, rig.outcome(id).as_str()), (6, "lost: no"));
}

#[test]
fn what_lost_a_race_for_its_devices_is_made_again_within_a_second() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    for (before, after) in [(0, 1), (9, 1)] {
        let lease = rig.lease(id);
        let why = "GPU-0000 is held by somebody else".to_owned();
        rig.engine(EngineReport::NotLaunched { lease, at: rig.now, why });
        rig.released(id);
        rig.wait(before);
        assert_eq!(rig.state(id), Cursor::Queued);
        rig.wait(after);
        assert_eq!(rig.state(id), Cursor::Renting, "what goes on failing waits longer");
    }
}

#[test]
fn retries_wait_longer_each_time_and_stop_at_the_count() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a").with(|spec| {
        spec.request.retry.times = 2;
        spec.request.retry.when = vec![RetryOn::Code(75), RetryOn::Limit];
    }));
    rig.finish(id, RunEnd::Exited { code: 75 });
    rig.wait(4);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(rig.last.wake.is_some());
    rig.wait(1);
    rig.finish(id, RunEnd::LimitReached);
    rig.wait(9);
    assert_eq!(rig.state(id), Cursor::Queued);
    rig.wait(1);
    rig.finish(id, RunEnd::Exited { code: 75 });
    assert_eq!(rig.outcome(id), "failed: exit 75");
    let mut rig = Rig::new(1);
    let id = rig.submit(job("b"));
    rig.finish(id, RunEnd::Exited { code: 75 });
    assert_eq!(rig.outcome(id), "failed: exit 75", "only what was lost is tried again by default");
}

#[test]
fn code_is_copied_before_anything_is_held() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a").code());
    assert_eq!(rig.why(id), "copying /src");
    let prepares =
        |rig: &Rig| rig.effects.iter().filter(|effect| matches!(effect, Effect::Prepare(_))).count();
    rig.read();
    assert_eq!(prepares(&rig), 1, "once");
    rig.restart();
    assert_eq!(prepares(&rig), 1, "and again after a restart");
    let attempt = AttemptNo(1);
    rig.step(vec![Input::Prepared { job: id, task: TaskIx(0), attempt, result: Ok(()) }]);
    rig.read();
    assert_eq!(rig.state(id), Cursor::Renting);
    let other = rig.submit(job("b").code());
    let result = Err("too large".to_owned());
    rig.step(vec![Input::Prepared { job: other, task: TaskIx(0), attempt, result: result.clone() }]);
    rig.step(vec![Input::Prepared { job: other, task: TaskIx(0), attempt, result }]);
    assert_eq!(rig.outcome(other), "never started: too large");
}

#[test]
fn the_same_drop_seen_twice_is_one_submission_also_across_a_restart() {
    let mut rig = Rig::new(1);
    let ident = DropIdent { dev: 1, ino: 2, ctime_ns: 3, hash: "h".to_owned() };
    let dropped = || {
        let origin = Origin::Inbox { name: "a.yaml".to_owned(), folder: None };
        let mut dropped = submission(vec![job("a")]);
        dropped.origin = origin;
        dropped.ident = Some(ident.clone());
        Input::Submission(Box::new(dropped))
    };
    rig.step(vec![dropped(), dropped()]);
    rig.restart();
    rig.step(vec![dropped()]);
    assert_eq!(rig.world.counters.job, JobId(1));
    assert!(matches!(rig.last.effects[..], [Effect::TakeDrop { .. }, ..]));
}

#[test]
fn receipts_and_dismissals_that_may_be_missing_are_made_again_after_a_restart() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.succeed(id);
    rig.restart();
    assert!(rig.effects.contains(&Effect::WriteReceipt { job: id }));
    assert!(rig.effects.contains(&Effect::Dismiss { lease }));
    let id = rig.submit(job("b").with(|spec| spec.request.limit = Limit::UntilDone));
    rig.read();
    rig.started(id);
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.collected(id);
    rig.restart();
    let again = |effect: &Effect| matches!(effect, Effect::Release { job, .. } if *job == id);
    assert!(rig.effects.iter().any(again));
}

#[test]
fn the_oldest_done_jobs_are_forgotten_in_order() {
    let mut rig = Rig::new(1);
    let kept = rig.submit(job("kept").gpus(0));
    let waits = rig.submit(job("waits").after_any("kept").with(|spec| {
        spec.request.start_after_ms = Some(crate::build::BEGIN.wall_ms + 1_000_000_000);
    }));
    rig.succeed(kept);
    for _ in 0..510 {
        let id = rig.submit(job("filler").gpus(0));
        rig.succeed(id);
    }
    assert_eq!(rig.world.queue.history().count(), 501);
    assert_eq!(rig.world.queue.history().last().map(|job| job.id), Some(kept), "somebody still waits for it");
    assert_eq!(rig.state(waits), Cursor::Queued);
}
