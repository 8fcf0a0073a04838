//! That the checks check: worlds and turns that are broken on purpose are found, each by the invariant that it breaks.

use crate::build::{Ask, BEGIN, Disk, Rig, job, reading, submission};
use overnight::model::{
    Attempt, AttemptNo, AttemptState, BootId, Bytes, CancelRequest, DropIdent, EndedBy, Event, EventRecord,
    Job, JobId, Lease, LeaseId, Now, Origin, Outcome, RunEnd, Span, Token,
};
use overnight::protocol::Command;
use overnight::sched::{Decision, Effect, Input, Moment, World, check_transition, step};

/// Job 1 is done, job 2 runs, job 3 waits; lease 1 is returned, lease 2 is held.
fn rows() -> Rig {
    let mut rig = Rig::new(2);
    let done = rig.submit(job("done"));
    rig.started(done);
    rig.pass(Span::secs(10));
    rig.ended(done, RunEnd::Exited { code: 0 });
    rig.pass(Span::secs(1));
    rig.read();
    rig.collected(done);
    rig.released(done);
    let runs = rig.submit(job("runs"));
    rig.pass(Span::secs(1));
    rig.started(runs);
    rig.submit(job("waits").gpus(2));
    rig
}

fn found(change: impl FnOnce(&mut Disk)) -> String {
    let mut disk = rows().disk;
    change(&mut disk);
    disk.restore().check().expect_err("it is broken")
}

fn row(disk: &mut Disk, id: u64) -> &mut Job {
    disk.jobs.get_mut(&JobId(id)).unwrap()
}

fn attempt(disk: &mut Disk, id: u64) -> &mut Attempt {
    row(disk, id).tasks[0].attempts.last_mut().unwrap()
}

fn lease(disk: &mut Disk, id: u64) -> &mut Lease {
    disk.leases.get_mut(&LeaseId(id)).unwrap()
}

#[test]
fn a_world_that_is_whole_is_found_whole() {
    assert_eq!(rows().disk.restore().check(), Ok(()));
}

#[test]
fn a_job_is_live_or_done_and_done_as_its_tasks_are() {
    let mut world = rows().world;
    world.counters.job = JobId(2);
    assert_eq!(world.check(), Err("I1: job 3 has a number that was not given yet".to_owned()));
    let said = found(|disk| row(disk, 1).done.as_mut().unwrap().1 = Outcome::LimitReached);
    assert_eq!(said, "I3: job 1 is done as limit reached, which is not what its tasks came to");
    let said = found(|disk| row(disk, 1).done = None);
    assert_eq!(said, "I3: job 1 is at its end and not done");
    let said = found(|disk| {
        let (asked, due, by) = (Now::default(), Now::default(), "ana".to_owned());
        row(disk, 3).cancel = Some(CancelRequest { by, asked, due, now: false, carried_out: true });
    });
    assert_eq!(said, "I16: job 3 waits although its cancel is being carried out");
}

#[test]
fn a_task_has_one_live_attempt_and_counts_them() {
    let said = found(|disk| {
        let next = Attempt::queued(AttemptNo(2), Now::default(), true);
        row(disk, 3).tasks[0].attempts.push(next);
    });
    assert_eq!(said, "I4: job 3 has a further attempt while attempt 1 lives");
    let said = found(|disk| attempt(disk, 3).number = AttemptNo(7));
    assert_eq!(said, "I22: job 3 has attempt 7 in place 1");
}

#[test]
fn attempts_and_leases_say_the_same() {
    let said = found(|disk| drop(disk.leases.remove(&LeaseId(2))));
    assert_eq!(said, "I5: GPU-0000 is held and the leases say otherwise");
    let now = rows().now;
    let said = found(|disk| lease(disk, 2).ended = Some((now, EndedBy::Proven)));
    assert_eq!(said, "I7: attempt 1 of job 2 and lease 2: it is running and holds nothing");
    let said =
        found(|disk| attempt(disk, 2).state = AttemptState::Queued { since: Now::default(), prepared: true });
    assert_eq!(said, "I7: lease 2 is held, and job 2 neither rents nor runs");
    let said = found(|disk| drop(disk.jobs.remove(&JobId(2))));
    assert_eq!(said, "I7: lease 2 is held for job 2, which is not there");
    let said = found(|disk| lease(disk, 1).job = JobId(2));
    assert_eq!(said, "I14: attempt 1 of job 1 and lease 1 do not belong together");
    let said = found(|disk| lease(disk, 1).ended.as_mut().unwrap().0.boottime_ms -= 1);
    assert_eq!(said, "I9: attempt 1 of job 1 and lease 1 did not end in the same moment");
    let said = found(|disk| {
        let ended = attempt(disk, 1).state.ended();
        let (lease, started, at) = (None, None, ended.unwrap());
        attempt(disk, 1).state =
            AttemptState::Done { lease, started, ended, outcome: Outcome::Succeeded, at };
    });
    assert_eq!(said, "I11: attempt 1 of job 1 ran and held nothing");
    let said = found(|disk| {
        if let AttemptState::Done { ended, .. } = &mut attempt(disk, 1).state {
            *ended = None;
        }
    });
    assert_eq!(said, "I7: attempt 1 of job 1 is done and has not ended");
}

#[test]
fn devices_cores_and_tokens_are_given_once() {
    let mut world = rows().world;
    world.pool.cores_held += 1;
    assert_eq!(world.check(), Err("I5: 2 cores are held, the leases say 1".to_owned()));
    let twice = |disk: &mut Disk| {
        let held = disk.leases[&LeaseId(2)].clone();
        disk.leases.insert(LeaseId(1), Lease { id: LeaseId(1), ..held });
    };
    let said = found(|disk| {
        twice(disk);
        attempt(disk, 1).state = AttemptState::Running { lease: LeaseId(1), started: BEGIN };
        (row(disk, 1).done, lease(disk, 1).job) = (None, JobId(1));
    });
    assert_eq!(said, "I5: GPU-0000 has two leases, 1 and 2");
    let said = found(|disk| {
        twice(disk);
        lease(disk, 1).held.devices.clear();
        lease(disk, 1).ended = Some((lease(disk, 1).granted, EndedBy::Proven));
    });
    assert_eq!(said, "I14: lease 2 has no token of its own");
    let said = found(|disk| {
        let mut other = disk.leases[&LeaseId(1)].clone();
        other.id = LeaseId(2);
        other.granted.boottime_ms += 5;
        disk.jobs.remove(&JobId(2));
        disk.devices.clear();
        disk.leases.insert(other.id, other);
    });
    assert_eq!(said, "I10: GPU-0000 is held by leases 1 and 2 at once");
}

#[test]
fn moments_are_in_order_and_estimates_are_not_bold() {
    let said = found(|disk| {
        let granted = disk.leases[&LeaseId(2)].granted;
        if let AttemptState::Running { started, .. } = &mut attempt(disk, 2).state {
            started.boottime_ms = granted.boottime_ms - 1;
        }
    });
    assert_eq!(said, "I12: the moments of attempt 1 of job 2 are not in order");
    let said = found(|disk| {
        disk.jobs.remove(&JobId(1));
        lease(disk, 1).ended.as_mut().unwrap().0.boot = BootId(9);
    });
    assert_eq!(said, "I12: lease 1 ended before it was granted, or in another boot");
    let said = found(|disk| lease(disk, 1).suspended_ms = 10_001);
    assert_eq!(said, "I12: lease 1 was suspended for longer than it was held");
    let said = found(|disk| lease(disk, 1).returned.as_mut().unwrap().at.boottime_ms = 0);
    assert_eq!(said, "I12: lease 1 was returned before it ended");
    let said = found(|disk| lease(disk, 1).ended.as_mut().unwrap().1 = EndedBy::Estimated);
    assert_eq!(said, "I13: lease 1 is estimated to have ended after its last sign of life");
}

#[test]
fn a_quarantine_is_the_verdict_of_its_lease() {
    let why =
        overnight::model::Quarantine { why: "x".to_owned(), since: Now::default(), lease: Some(LeaseId(1)) };
    let said = found(|disk| {
        disk.devices.insert(crate::build::uuid(1), overnight::model::DeviceState::Quarantined(why).into());
    });
    assert_eq!(said, "I8: GPU-0001 is in quarantine after a lease that did not end so");
}

/// A turn, with the world before it and the world after it.
struct Turn {
    before: World,
    after: World,
    decision: Decision,
    now: Now,
}

impl Turn {
    fn of(rig: &Rig, inputs: Vec<Input>) -> Self {
        let before = rig.world.clone();
        let mut after = rig.world.clone();
        let decision = step(&mut after, inputs, Moment { now: rig.now, seed: 7 });
        let whole = Self { before, after, decision, now: rig.now };
        assert_eq!(
            check_transition(&mut whole.before.clone(), &whole.after, &whole.decision, &whole.now),
            Ok(())
        );
        whole
    }

    fn found(mut self, change: impl FnOnce(&mut Self)) -> String {
        change(&mut self);
        check_transition(&mut self.before, &self.after, &self.decision, &self.now).expect_err("it is broken")
    }

    fn without(self, effect: fn(&Effect) -> bool) -> String {
        self.found(|turn| turn.decision.effects.retain(|one| !effect(one)))
    }
}

/// A submission that is granted at once.
fn grants() -> Turn {
    let rig = Rig::new(1);
    let drop = DropIdent { dev: 1, ino: 2, ctime_ns: 3, hash: String::new() };
    let mut new = submission(vec![job("a")]);
    new.origin = Origin::Inbox { name: "a.yaml".to_owned(), folder: None };
    new.ident = Some(drop);
    Turn::of(&rig, vec![Input::Submission(Box::new(new))])
}

/// A job that runs, and its end.
fn ends() -> Rig {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.pass(Span::secs(5));
    rig
}

#[test]
fn a_turn_is_its_events_and_no_more() {
    let said = grants().found(|turn| turn.before.counters.seq = 99);
    assert_eq!(said, "I22: event 2: event 2 follows event 99");
    let said = grants().found(|turn| {
        let last = turn.decision.events.last().cloned();
        turn.decision.events.extend(last);
    });
    assert!(said.starts_with("I22: event 4: event 4 follows event 4"), "{said}");
    let said = grants().found(|turn| turn.decision.events[0].at.boottime_ms -= 1);
    assert_eq!(said, "I22: event 2 is of another moment than its turn");
    // Something was changed of which there is no event.
    let secretly = |turn: &mut Turn| {
        let (job, by) = (JobId(3), "x".to_owned());
        let event = Event::JobPaused { job, by };
        let record = EventRecord { seq: turn.after.counters.seq + 1, at: turn.now, event };
        turn.after.apply(&record).unwrap();
    };
    let quiet = || Turn::of(&rows(), Vec::new());
    assert_eq!(quiet().found(secretly), "I22: the numbers given out are not those of the events");
    let said = quiet().found(|turn| {
        secretly(turn);
        turn.after.counters.seq -= 1;
    });
    assert_eq!(said, "I21: the events do not make the same jobs");
}

#[test]
fn a_grant_has_its_proof_and_its_launch_has_a_grant() {
    let said = grants().found(|turn| turn.now = turn.now.plus(Span(251)));
    assert_eq!(said, "I6: GPU-0000 is granted to job 1 on a reading of Some(Span(251)) ago");
    let said = grants().found(|turn| {
        let mut dirty = reading(&crate::build::uuid(0), turn.now);
        dirty.memory_used = Some(Bytes::gib(5));
        turn.after.pool.read(&dirty);
    });
    assert_eq!(said, "I6: GPU-0000 is granted to job 1 and was not read clean");
    let said = grants().found(|turn| turn.after.pool.host.as_mut().unwrap().cores = 0);
    assert_eq!(said, "I5: job 1 is granted cores or memory that are not there");
    let said = grants().found(|turn| {
        for effect in &mut turn.decision.effects {
            if let Effect::Launch(launch) = effect {
                launch.token = Token("another".to_owned());
            }
        }
    });
    assert_eq!(said, "I14: lease 1 is launched without a grant");
    let said = grants().without(|effect| matches!(effect, Effect::WriteAnswer { .. }));
    assert_eq!(said, "I1: accepted and not answered: job 1");
    let said = grants().found(|turn| turn.before = turn.after.clone());
    assert_eq!(said, "I2: the drop of inode 2 is accepted a second time");
}

#[test]
fn ends_are_followed_up() {
    let mut rig = ends();
    let id = JobId(1);
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    let clean = || Turn::of(&rig, vec![Input::Readings(vec![reading(&crate::build::uuid(0), rig.now)])]);
    let said = clean().without(|effect| matches!(effect, Effect::Dismiss { .. }));
    assert_eq!(said, "I7: lease 1 is returned and its supervisor is not told");
    let said = clean().found(|turn| {
        let mut dirty = reading(&crate::build::uuid(0), turn.now);
        dirty.processes = None;
        turn.after.pool.read(&dirty);
    });
    assert_eq!(said, "I8: GPU-0000 is free and was not read clean");
    let said = clean().found(|turn| turn.before = rows().world);
    assert!(said.starts_with('I'), "{said}");
    let early = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
    let none = Turn::of(&rig, vec![Input::Engine(early)]);
    let said = none.found(|turn| turn.decision.effects.push(Effect::Dismiss { lease: LeaseId(1) }));
    assert_eq!(said, "I7: the supervisor of lease 1 is dismissed before its devices are back");
    rig.read();
    let collected = overnight::sched::EngineReport::Collected {
        lease: LeaseId(1),
        task: overnight::model::TaskIx(0),
        attempt: AttemptNo(1),
        result: Ok(overnight::model::Collected::default()),
    };
    let said = Turn::of(&rig, vec![Input::Engine(collected)])
        .without(|effect| matches!(effect, Effect::Release { .. }));
    assert_eq!(said, "I7: returned and not released: job 1");
    rig.collected(id);
    let task = overnight::model::TaskIx(0);
    let released = Input::Released { job: id, task, attempt: AttemptNo(1) };
    let said = Turn::of(&rig, vec![released]).without(|effect| matches!(effect, Effect::WriteReceipt { .. }));
    assert_eq!(said, "I3: done without a receipt: job 1");
}

#[test]
fn nothing_leaves_its_end_and_nobody_is_forgotten() {
    let rig = rows();
    let quiet = || Turn::of(&rig, Vec::new());
    let said = quiet().found(|turn| {
        let mut disk = rig.disk.clone();
        row(&mut disk, 1).ranked = true;
        turn.before = disk.restore();
        turn.after.touched.jobs.insert(JobId(1));
    });
    assert_eq!(said, "I3: job 1 was done and has changed");
    let said = quiet().found(|turn| {
        let mut disk = rig.disk.clone();
        disk.jobs.remove(&JobId(3));
        turn.after = disk.restore();
        turn.after.touched.jobs.insert(JobId(3));
    });
    assert_eq!(said, "I1: job 3 was live and is forgotten");
}

#[test]
fn a_cancel_is_told_and_what_waits_for_time_is_come_back_to() {
    let rig = ends();
    let cancel = |undo| {
        let generation = rig.generation(JobId(1));
        let command = Command::Cancel { job: JobId(1), generation, undo: Span(undo), now: false };
        vec![Input::Command { by: crate::build::owner("ana"), command, reply_to: 1 }]
    };
    let said = Turn::of(&rig, cancel(0)).without(|effect| matches!(effect, Effect::Stop { .. }));
    assert_eq!(said, "I16: cancelled, running, and not told to end: job 1");
    let said = Turn::of(&rig, cancel(7_000)).found(|turn| turn.decision.wake = None);
    assert_eq!(said, format!("I23: a turn is due at {} and the next is None", rig.now.boottime_ms + 7_000));
}

#[test]
fn nothing_is_left_that_could_start() {
    let mut rig = Rig::new(1);
    rig.pass(Span::secs(1));
    let waits = || {
        let new = submission(vec![job("a"), job("b").gpus(0).cores(16)]);
        Turn::of(&rig, vec![Input::Submission(Box::new(new))])
    };
    let said = waits().without(|effect| matches!(effect, Effect::Probe));
    assert_eq!(said, "I23: a job only waits for a reading and none is asked for");
    let said = waits().found(|turn| turn.after.pool.host.as_mut().unwrap().cores = 64);
    assert_eq!(said, "I23: job 2 could start and does not");
}
