//! Which jobs start, and what is said of those that wait.

use crate::build::{Ask, BEGIN, Rig, gpu, job, uuid, why};
use overnight::model::{Amount, Bytes, Cursor, DeviceState, Limit, RunEnd, Span};
use overnight::protocol::{Command, GpuSelect, Place};
use overnight::sched::{Effect, forecast, plan};

#[test]
fn a_submission_and_its_grant_are_one_turn() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    assert_eq!(rig.state(id), Cursor::Renting);
    assert!(rig.last.effects.iter().any(|effect| matches!(effect, Effect::Launch(_))));
}

#[test]
fn the_line_goes_by_priority_then_place_then_number() {
    let mut rig = Rig::new(1);
    let running = rig.submit(job("running"));
    let first = rig.submit(job("first"));
    let second = rig.submit(job("second"));
    let urgent = rig.submit(job("urgent").priority(50));
    let generation = rig.generation(second);
    rig.command(Command::Move { job: second, generation, to: Place::Top });
    let line: Vec<_> = rig.world.queue.line().map(|job| job.id).collect();
    assert_eq!(line, [urgent, second, first]);
    rig.succeed(running);
    assert_eq!(rig.state(urgent), Cursor::Renting);
}

#[test]
fn a_stale_reading_is_probed_and_not_granted_on() {
    let mut rig = Rig::new(1);
    rig.pass(Span(251));
    rig.step(vec![overnight::sched::Input::Submission(Box::new(crate::build::submission(vec![job("a")])))]);
    let id = overnight::model::JobId(1);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(rig.last.effects.contains(&Effect::Probe));
    assert_eq!(rig.why(id), "checking GPU 0");
    rig.read();
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn a_device_that_waits_for_its_reading_is_kept_for_the_first_in_line() {
    let mut rig = Rig::new(2);
    rig.pass(Span(300));
    // Only GPU 1 is read afresh; the first job needs both.
    let fresh = crate::build::reading(&uuid(1), rig.now);
    let specs = vec![job("wide").gpus(2), job("small")];
    rig.step(vec![
        overnight::sched::Input::Readings(vec![fresh]),
        overnight::sched::Input::Submission(Box::new(crate::build::submission(specs))),
    ]);
    assert_eq!(rig.world.leases.iter().count(), 0, "nobody takes GPU 1 before the job that waits for both");
    rig.read();
    assert_eq!(rig.state(overnight::model::JobId(1)), Cursor::Renting);
}

#[test]
fn model_words_and_memory_choose_the_device() {
    let mut rig = Rig::with(vec![
        gpu(0, "NVIDIA A100 80GB PCIe", Bytes::mib(81_559)),
        gpu(1, "NVIDIA GeForce RTX 4090", Bytes::mib(24_564)),
    ]);
    let small = rig.submit(job("small"));
    let lease = rig.lease(small);
    let held = rig.world.leases.get(lease).unwrap().held.devices[0].uuid.clone();
    assert_eq!(held, uuid(1), "the smallest that fits");
    let big = rig.submit(job("big").with(|spec| spec.request.gpu_memory = Some(Bytes::gib(80))));
    assert_eq!(rig.state(big), Cursor::Renting);
    let other = rig.submit(job("other").with(|spec| spec.request.gpu_model = vec!["4090".to_owned()]));
    assert_eq!(rig.why(other), "needs a free GPU; #1 small holds");
    let none = rig.submit(job("none").with(|spec| spec.request.gpu_model = vec!["h100".to_owned()]));
    assert_eq!(rig.why(none), "needs 1 GPU; 0 of the pool fit");
}

#[test]
fn cores_and_memory_are_counted() {
    let mut rig = Rig::new(1);
    let first = rig.submit(job("first").gpus(0).cores(10));
    let second = rig.submit(job("second").gpus(0).cores(7));
    assert_eq!(rig.state(first), Cursor::Renting);
    assert_eq!(rig.why(second), "needs 7 cores, 6 free");
    let big =
        rig.submit(job("big").gpus(0).with(|spec| spec.request.memory = Some(Amount::Some(Bytes::gib(128)))));
    assert_eq!(rig.why(big), "needs 128 GiB memory, 127 GiB free");
    let all = rig.submit(job("all").gpus(0).with(|spec| spec.request.cpus = Some(Amount::All)));
    assert_eq!(rig.why(all), "needs 16 cores, 6 free");
}

#[test]
fn a_short_job_fills_the_gap_before_a_wide_one_and_a_long_one_does_not() {
    let mut rig = Rig::new(2);
    let running = rig.submit(job("running").secs(3_600));
    let wide = rig.submit(job("wide").gpus(2));
    assert_eq!(rig.why(wide), "needs 2 free, 1 is; #1 running holds");
    let long = rig.submit(job("long").secs(7_200));
    assert_eq!(rig.why(long), "would delay #2 wide");
    let short = rig.submit(job("short").secs(600));
    assert_eq!(rig.state(running), Cursor::Renting);
    assert_eq!(rig.why(wide), "needs 2 free, none is; #4 short holds");
    assert_eq!(rig.why(long), "needs a free GPU; #4 short holds");
    assert_eq!(rig.state(short), Cursor::Renting);
}

#[test]
fn what_the_head_does_not_need_is_used_for_as_long_as_anybody_likes() {
    let mut rig = Rig::new(4);
    let running = rig.submit(job("running").gpus(3));
    let wide = rig.submit(job("wide").gpus(3));
    let long = rig.submit(job("long").secs(99_999));
    assert_eq!(rig.state(running), Cursor::Renting);
    assert_eq!(rig.state(wide), Cursor::Queued);
    assert_eq!(rig.state(long), Cursor::Renting, "the head will take the three that come back");
}

#[test]
fn a_job_without_a_limit_gives_no_promise_and_does_not_idle_the_box() {
    let mut rig = Rig::new(2);
    let endless = rig.submit(job("endless").until_done());
    let wide = rig.submit(job("wide").gpus(2));
    let small = rig.submit(job("small"));
    assert_eq!(rig.state(endless), Cursor::Renting);
    assert_eq!(rig.state(small), Cursor::Renting);
    let forecast = forecast(&rig.world, &rig.now);
    assert_eq!(forecast.get(&wide).and_then(|forecast| forecast.starts_by), None);
    assert_eq!(rig.why(wide), "needs 2 free, none is; #3 small holds");
}

#[test]
fn a_job_that_cannot_be_promised_a_start_does_not_leave_the_next_one_unprotected() {
    let mut rig = Rig::with(vec![
        gpu(0, "NVIDIA A100", Bytes::gib(80)),
        gpu(1, "NVIDIA A100", Bytes::gib(80)),
        gpu(2, "NVIDIA H100", Bytes::gib(80)),
    ]);
    rig.command(Command::Close { gpus: GpuSelect::Index(2), reason: "fan".to_owned() });
    rig.submit(job("running"));
    let hopper = rig.submit(job("hopper").with(|spec| spec.request.gpu_model = vec!["h100".to_owned()]));
    let wide = rig.submit(job("wide").gpus(2).with(|spec| spec.request.gpu_model = vec!["a100".to_owned()]));
    let long = rig.submit(job("long").secs(99_999));
    assert_eq!(rig.why(hopper), "needs a free GPU; GPU 2 is closed");
    assert_eq!(rig.state(wide), Cursor::Queued);
    assert_eq!(rig.why(long), format!("would delay #{wide} wide"));
}

#[test]
fn nothing_starts_before_its_time_and_the_turn_says_when_to_wake() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("later").with(|spec| spec.request.start_after_ms = Some(BEGIN.wall_ms + 60_000)));
    assert_eq!(rig.why(id), "not before 60s");
    assert_eq!(rig.last.wake.map(|wake| wake.at), Some(BEGIN.boottime_ms + 60_000));
    rig.wait(60);
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn all_means_all_that_fit() {
    let mut rig = Rig::with(vec![
        gpu(0, "NVIDIA A100", Bytes::gib(80)),
        gpu(1, "NVIDIA A100", Bytes::gib(80)),
        gpu(2, "NVIDIA H100", Bytes::gib(80)),
    ]);
    let id = rig.submit(job("all").with(|spec| {
        spec.request.gpus = Amount::All;
        spec.request.gpu_model = vec!["a100".to_owned()];
    }));
    assert_eq!(rig.state(id), Cursor::Renting);
    let lease = rig.lease(id);
    assert_eq!(rig.world.leases.get(lease).unwrap().held.devices.len(), 2);
}

#[test]
fn forecasts_say_about_and_no_later_than() {
    let mut rig = Rig::new(1);
    // Two earlier runs of ten minutes each, under a limit of an hour.
    for _ in 0..2 {
        let id = rig.submit(job("train"));
        rig.started(id);
        rig.wait(600);
        rig.succeed(id);
    }
    let running = rig.submit(job("train"));
    rig.started(running);
    let next = rig.submit(job("next"));
    let told = forecast(&rig.world, &rig.now);
    let seconds = |at: Option<i64>| (at.expect("known") - rig.now.wall_ms) / 1000;
    assert_eq!(seconds(told[&running].finishes_at), 600);
    assert_eq!(seconds(told[&next].starts_at), 600);
    let by = seconds(told[&next].starts_by);
    assert!((3_600..=3_620).contains(&by), "by the limit: {by}");
    assert_eq!(seconds(told[&next].finishes_at), 600 + 3_600);
}

#[test]
fn a_promise_to_the_head_is_not_broken_by_those_that_pass_it() {
    let mut rig = Rig::new(4);
    for n in 1..=3 {
        rig.submit(job("running").secs(n * 600));
    }
    let head = rig.submit(job("head").gpus(4));
    let promised = forecast(&rig.world, &rig.now)[&head].starts_by.expect("all have limits");
    for round in 0..20 {
        rig.submit(job("filler").secs(100 + round * 100));
        let now = forecast(&rig.world, &rig.now)[&head].starts_by.expect("still");
        assert!(now <= promised, "round {round}: {now} is later than {promised}");
        rig.wait(30);
    }
    // Everybody uses all of their limit; the head starts in time.
    for _ in 0..200 {
        rig.wait(10);
        let is_over = |lease: &overnight::model::Lease| {
            rig.now.since(&lease.granted) >= rig.job(lease.job).spec.request.limit.span()
        };
        let over: Vec<_> =
            rig.world.leases.held().filter(|lease| is_over(lease)).map(|lease| lease.job).collect();
        for id in over {
            rig.finish(id, RunEnd::LimitReached);
        }
        rig.read();
        if rig.state(head) != Cursor::Queued {
            assert!(rig.now.wall_ms <= promised);
            return;
        }
    }
    panic!("the head never started: {}", rig.why(head));
}

#[test]
fn a_plan_of_an_empty_pool_starts_nothing() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(plan(&rig.world, &rig.now).starts.is_empty());
    let cpu = rig.submit(job("cpu").gpus(0));
    assert_eq!(rig.state(cpu), Cursor::Renting);
}

#[test]
fn an_unread_device_is_not_free() {
    let mut rig = Rig::new(1);
    rig.restart();
    assert!(matches!(rig.world.pool.get(&uuid(0)).unwrap().state, DeviceState::Free));
    let spec = crate::build::submission(vec![job("a")]);
    rig.step(vec![overnight::sched::Input::Submission(Box::new(spec))]);
    let id = overnight::model::JobId(1);
    assert_eq!(why(&rig.world, &rig.now, id), "checking GPU 0");
}

/// What the same walk had just given away was not seen to come back: the head got no promise, and a long job behind it took
/// what was left.
#[test]
fn a_promise_counts_on_what_starts_in_the_same_turn() {
    let mut rig = Rig::new(2);
    let ids = rig.submit_all(vec![job("first").secs(3_600), job("head").gpus(2), job("long").secs(36_000)]);
    assert_eq!(rig.state(ids[0]), Cursor::Renting);
    assert_eq!(rig.why(ids[1]), "needs 2 free, 1 is; #1 first holds");
    assert_eq!(rig.why(ids[2]), "would delay #2 head");
    let promise = overnight::sched::promise(&rig.world, &rig.now);
    assert_eq!(promise, Some((ids[1], rig.now.boottime_ms + 3_610_000)));
}

#[test]
fn no_limit_is_too_long_to_be_planned_with() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a").with(|spec| spec.request.limit = Limit::For(Span(u64::MAX))));
    let waits = rig.submit(job("b"));
    assert_eq!(rig.state(id), Cursor::Renting);
    rig.wait(1);
    assert_eq!(rig.state(waits), Cursor::Queued);
    overnight::sched::forecast(&rig.world, &rig.now);
}
