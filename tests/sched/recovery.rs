//! What a scheduler that starts finds, and what it does about it: also of what is older than its clock says.

use crate::build::{BEGIN, Rig, job};
use overnight::model::{
    BootId, Cursor, EndedBy, Held, JobId, Lease, LeaseId, Now, Returned, RunEnd, Span, Token, Verdict,
};
use overnight::protocol::{Command, Reply};
use overnight::sched::{Effect, Input, Remembered, World, in_time, leases_to_find, resume};
use overnight::store::{Batch, Identity, Store, StoreOptions};
use std::sync::mpsc;

fn identity() -> Identity {
    Identity { machine_id: "m".to_owned(), hostname: "h".to_owned() }
}

/// The world of a scheduler that starts on what a rig has made durable, by way of the real store.
fn through_the_store(rig: &Rig) -> World {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.redb");
    let options = StoreOptions::new(dir.path().join("first-start"));
    let (store, _) = Store::open(&path, &identity(), &options).unwrap();
    let (done, durable) = mpsc::channel();
    let batch = Batch {
        events: rig.disk.log.clone(),
        jobs: rig.disk.jobs.values().cloned().collect(),
        leases: rig.disk.leases.values().cloned().collect(),
        devices: rig.disk.devices.clone().into_iter().collect(),
        forget_devices: Vec::new(),
    };
    store.append(batch, Box::new(move |result| drop(done.send(result))));
    durable.recv().unwrap().unwrap();
    drop(store);
    let (_store, loaded) = Store::open(&path, &identity(), &options).unwrap();
    World::restore(loaded.remembered(None))
}

/// The store loads the leases of the last days. A job that had been collecting its output for longer, or whose lease ended
/// before somebody set the clock, was in Returning for ever: nobody knew its lease.
#[test]
fn a_job_goes_on_whose_lease_ended_long_ago_by_the_clock() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    rig.started(id);
    rig.pass(Span::secs(60));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    rig.read();
    assert!(rig.world.leases.get(lease).is_none(), "its devices are back");
    // The clocks of these tests are years behind.
    rig.world = through_the_store(&rig);
    assert_eq!(rig.world.ledger.sums(id, &rig.now).0, 60_000, "what it has used is known");
    assert_eq!(leases_to_find(&rig.world, &rig.now).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [lease]);
    rig.collected(id);
    rig.released(id);
    assert_eq!(rig.outcome(id), "succeeded");
}

/// Likewise the ledger in memory: it forgets the oldest, but nothing of a job that is not done.
#[test]
fn the_ledger_forgets_nothing_of_a_job_that_is_not_done() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let first = rig.lease(id);
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.read();
    let mut remembered = Remembered {
        jobs: rig.disk.jobs.values().cloned().collect(),
        leases: rig.disk.leases.values().cloned().collect(),
        counters: rig.world.counters,
        ..Remembered::default()
    };
    let old = rig.disk.leases[&first].clone();
    let many = 2..=50_010_u64;
    remembered.leases.extend(many.map(|n| Lease { id: LeaseId(n), job: JobId(9_999), ..old.clone() }));
    let world = World::restore(remembered);
    assert_eq!(world.ledger.len(), 50_000);
    assert!(world.lease(first).is_some());
    assert!(world.lease(LeaseId(2)).is_none());
    world.check_indexes().unwrap();
}

/// A turn that a full disk held up for an hour has leases that were granted an hour ago. They were launched then, on readings
/// of an hour ago, and the hour was billed.
#[test]
fn a_grant_that_a_full_disk_held_up_is_not_launched_and_costs_nothing() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    let lease = rig.lease(id);
    let (soon, late) = (rig.now.plus(Span::secs(10)), rig.now.plus(Span::secs(3_600)));
    let launches =
        |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::Launch(_))).count();
    let decided = rig.last.effects.clone();
    let (effects, told) = in_time(decided.clone(), &soon, false);
    assert_eq!((&effects, told.len()), (&decided, 0), "a slow disk is no full one");
    let (effects, told) = in_time(decided.clone(), &late, false);
    assert_eq!(
        (launches(&effects), effects.len()),
        (0, decided.len() - 1),
        "the other effects are carried out"
    );
    let (effects, again) = in_time(decided.clone(), &rig.now, true);
    assert_eq!((launches(&effects), again.len()), (0, 1), "nobody pays for a disk that failed for a moment");
    rig.pass(Span::secs(3_600));
    rig.step(told);
    let record = rig.world.lease(lease).unwrap();
    assert_eq!(record.held_for(&rig.now), Some(Span(0)));
    rig.released(id);
    rig.wait(1);
    assert_eq!((rig.state(id), rig.attempt(id).0), (Cursor::Renting, 2), "and does not use up a retry");
    assert_eq!(rig.job(id).attempts().next().unwrap().1.state.outcome().unwrap().word(), "lost");
}

/// Which receipts may be missing was told by the wall clock: after it was set back an hour none was written again.
#[test]
fn receipts_are_written_again_whatever_the_wall_clock_did() {
    let mut rig = Rig::new(1);
    let early = rig.submit(job("early"));
    rig.succeed(early);
    rig.pass(Span::secs(100));
    let before = rig.submit(job("before"));
    rig.succeed(before);
    rig.now.wall_ms -= 3_600_000;
    rig.pass(Span::secs(5));
    let after = rig.submit(job("after"));
    rig.succeed(after);
    let again = |world: &World| -> Vec<JobId> {
        let job = |effect: Effect| match effect {
            Effect::WriteReceipt { job } => Some(job),
            _ => None,
        };
        let mut jobs: Vec<JobId> = resume(world).into_iter().filter_map(job).collect();
        jobs.sort_unstable();
        jobs
    };
    assert_eq!(again(&rig.disk.restore()), [before, after]);
}

#[test]
fn a_recovery_that_is_interrupted_is_the_same_recovery_again() {
    let mut rig = Rig::new(2);
    let (a, b) = (rig.submit(job("a")), rig.submit(job("b")));
    rig.started(a);
    let generation = rig.generation(b);
    assert!(matches!(
        rig.command(Command::Cancel { job: b, generation, undo: Span(0), now: false }),
        Reply::Ok { .. }
    ));
    let first = rig.disk.restore();
    rig.restart();
    let second = rig.disk.restore();
    assert_eq!(resume(&first), resume(&second));
    assert_eq!(leases_to_find(&first, &rig.now), leases_to_find(&second, &rig.now));
    assert!(resume(&first).iter().any(|effect| matches!(effect, Effect::Stop { .. })));
}

#[test]
fn dismissals_come_first_and_what_is_for_people_last() {
    let mut rig = Rig::new(1);
    let first = rig.submit(job("a"));
    rig.submit(job("b"));
    rig.started(first);
    rig.pass(Span::secs(1));
    rig.ended(first, RunEnd::Exited { code: 0 });
    rig.pass(Span(1));
    let readings: Vec<_> = rig.gpus.iter().map(|gpu| crate::build::reading(&gpu.uuid, rig.now)).collect();
    rig.step(vec![
        Input::Submission(Box::new(crate::build::submission(vec![job("c")]))),
        Input::Readings(readings),
    ]);
    let place = |what: fn(&Effect) -> bool| rig.last.effects.iter().position(what).unwrap();
    let dismissed = place(|effect| matches!(effect, Effect::Dismiss { .. }));
    let launched = place(|effect| matches!(effect, Effect::Launch(_)));
    let answered = place(|effect| matches!(effect, Effect::WriteAnswer { .. }));
    assert!(dismissed < launched && launched < answered, "{:?}", rig.last.effects);
}

#[test]
fn a_lease_that_was_never_returned_in_an_earlier_boot_is_told_of_after_a_start() {
    let held = Held::default();
    let lease = Lease {
        id: LeaseId(1),
        job: JobId(1),
        job_name: "a".to_owned(),
        owner: crate::build::owner("ana"),
        project: None,
        attempts: Vec::new(),
        held,
        token: Token("t".to_owned()),
        granted: BEGIN,
        heartbeat: BEGIN,
        ended: Some((BEGIN, EndedBy::Proven)),
        gone: None,
        waived: false,
        suspended_ms: 0,
        returned: None,
    };
    let returned = Returned { at: Now { boot: BootId(2), ..BEGIN }, verdict: Verdict::Clean };
    let over = Lease { id: LeaseId(2), returned: Some(returned), ..lease.clone() };
    let world = World::restore(Remembered { leases: vec![lease, over], ..Remembered::default() });
    assert_eq!(leases_to_find(&world, &BEGIN), [(LeaseId(1), Token("t".to_owned()))]);
}
