//! One winner, one event: a cancel against whatever else happens to its job, in either order and in one turn; and several
//! clients with the same picture.

use crate::build::{Rig, job, owner};
use overnight::model::{Cursor, EndedBy, Event, Generation, JobId, Priority, RetryOn, RunEnd, Span, TaskIx};
use overnight::protocol::{Command, Place, Reply};
use overnight::sched::{Effect, EngineReport, Input};

fn cancel(rig: &Rig, job: JobId, undo: u64) -> Input {
    command(Command::Cancel { job, generation: rig.generation(job), undo: Span(undo), now: false }, 1)
}

fn command(command: Command, reply_to: u64) -> Input {
    Input::Command { by: owner("ana"), command, reply_to }
}

fn replies(rig: &Rig) -> Vec<bool> {
    rig.last
        .replies
        .iter()
        .map(|(_, reply)| matches!(reply, Reply::Ok { .. } | Reply::Submitted { .. }))
        .collect()
}

fn granted(rig: &Rig) -> usize {
    rig.disk.log.iter().filter(|record| matches!(record.event, Event::LeaseGranted { .. })).count()
}

fn ends(rig: &Rig) -> usize {
    rig.disk.log.iter().filter(|record| matches!(record.event, Event::JobDone { .. })).count()
}

fn stops(rig: &Rig) -> usize {
    rig.last.effects.iter().filter(|effect| matches!(effect, Effect::Stop { .. })).count()
}

/// Both orders of two inputs in one turn.
fn in_both_orders(check: impl Fn(bool)) {
    check(false);
    check(true);
}

fn order(first: Input, second: Input, swapped: bool) -> Vec<Input> {
    if swapped { vec![second, first] } else { vec![first, second] }
}

#[test]
fn a_cancel_in_the_turn_of_the_grant_wins() {
    in_both_orders(|swapped| {
        let mut rig = Rig::new(1);
        let busy = rig.submit(job("busy"));
        let id = rig.submit(job("a"));
        rig.started(busy);
        rig.pass(Span::secs(1));
        rig.ended(busy, RunEnd::Exited { code: 0 });
        rig.pass(Span(1));
        // The reading frees the device, and the plan would grant it in this turn.
        let free = Input::Readings(vec![crate::build::reading(&rig.gpus[0].uuid, rig.now)]);
        let inputs = order(cancel(&rig, id, 0), free, swapped);
        rig.step(inputs);
        assert_eq!(granted(&rig), 1, "nothing is granted to it");
        assert_eq!(rig.outcome(id), "cancelled by ana");
    });
}

#[test]
fn a_cancel_right_after_the_grant_that_was_decided_before_it_is_refused_and_one_after_it_stops() {
    let mut rig = Rig::new(1);
    let busy = rig.submit(job("busy"));
    let id = rig.submit(job("a"));
    let before = cancel(&rig, id, 0);
    rig.succeed(busy);
    assert_eq!(rig.state(id), Cursor::Renting);
    rig.step(vec![before]);
    assert_eq!((replies(&rig), stops(&rig)), (vec![false], 0));
    let after = cancel(&rig, id, 0);
    rig.step(vec![after]);
    assert_eq!((replies(&rig), stops(&rig)), (vec![true], 1));
}

#[test]
fn a_cancel_in_the_turn_of_the_start_stops_what_was_started() {
    in_both_orders(|swapped| {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        let (lease, attempt) = (rig.lease(id), rig.attempt(id));
        let started = Input::Engine(EngineReport::Started {
            lease,
            task: TaskIx(0),
            attempt,
            at: rig.now,
            enforcement: None,
        });
        let inputs = order(cancel(&rig, id, 0), started, swapped);
        rig.step(inputs);
        // Decided on a job that rents, and it runs by then: who comes second is told so.
        assert_eq!(replies(&rig), [!swapped]);
        assert_eq!(stops(&rig), usize::from(!swapped));
        if swapped {
            let again = cancel(&rig, id, 0);
            rig.step(vec![again]);
        }
        rig.finish(id, RunEnd::Cancelled { by: "ana".to_owned() });
        assert_eq!((rig.outcome(id).as_str(), ends(&rig)), ("cancelled by ana", 1));
    });
}

#[test]
fn a_cancel_in_the_turn_of_the_natural_end_has_one_winner() {
    in_both_orders(|swapped| {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        rig.started(id);
        rig.pass(Span::secs(5));
        let report = rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven);
        let inputs = order(cancel(&rig, id, 0), Input::Engine(report), swapped);
        rig.step(inputs);
        assert_eq!(rig.state(id), Cursor::Returning);
        assert_eq!(replies(&rig), [!swapped], "it is not said to be cancelled once it has ended");
        rig.read();
        rig.collected(id);
        rig.released(id);
        // The work was done before anybody told it to end: that is what it came to.
        assert_eq!((rig.outcome(id).as_str(), ends(&rig)), ("succeeded", 1));
        assert_eq!(rig.world.ledger.sums(id, &rig.now), (5_000, 5_000, 0));
    });
}

#[test]
fn a_cancel_in_the_turn_of_the_collection_or_the_release_is_refused() {
    for released in [false, true] {
        in_both_orders(|swapped| {
            let mut rig = Rig::new(1);
            let id = rig.submit(job("a"));
            rig.started(id);
            rig.ended(id, RunEnd::Exited { code: 3 });
            let (lease, attempt, task) = (rig.lease(id), rig.attempt(id), TaskIx(0));
            let mut next = Input::Engine(EngineReport::Collected {
                lease,
                task,
                attempt,
                result: Ok(overnight::model::Collected::default()),
            });
            if released {
                rig.step(vec![next]);
                next = Input::Released { job: id, task, attempt };
            }
            let inputs = order(cancel(&rig, id, 0), next, swapped);
            rig.step(inputs);
            assert_eq!(replies(&rig), [false]);
            if !released {
                rig.released(id);
            }
            assert_eq!((rig.outcome(id).as_str(), ends(&rig)), ("failed: exit 3", 1));
        });
    }
}

#[test]
fn the_end_of_the_run_in_the_turn_in_which_an_undo_window_closes_has_one_winner() {
    in_both_orders(|undone| {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        rig.started(id);
        let window = cancel(&rig, id, 5_000);
        rig.step(vec![window]);
        rig.pass(Span::secs(5));
        let report = Input::Engine(rig.ended_report(id, RunEnd::Exited { code: 0 }, EndedBy::Proven));
        let undo = command(Command::Undo { job: Some(id) }, 2);
        rig.step(if undone { vec![undo, report] } else { vec![report] });
        assert_eq!(stops(&rig), 0, "nothing is left to stop");
        rig.read();
        rig.collected(id);
        rig.released(id);
        assert_eq!((rig.outcome(id).as_str(), ends(&rig)), ("succeeded", 1));
    });
}

#[test]
fn an_undo_in_the_turn_in_which_the_window_closes_wins_and_one_after_it_is_refused() {
    let mut rig = Rig::new(0);
    let (kept, gone) = (rig.submit(job("kept")), rig.submit(job("gone")));
    let windows = vec![cancel(&rig, kept, 5_000), cancel(&rig, gone, 5_000)];
    rig.step(windows);
    rig.pass(Span::secs(5));
    rig.step(vec![command(Command::Undo { job: Some(kept) }, 1)]);
    assert_eq!(replies(&rig), [true]);
    assert_eq!((rig.state(kept), rig.outcome(gone).as_str()), (Cursor::Queued, "cancelled by ana"));
    rig.step(vec![command(Command::Undo { job: Some(gone) }, 1)]);
    assert_eq!(replies(&rig), [false]);
    rig.wait(60);
    assert_eq!(rig.state(kept), Cursor::Queued);
}

/// A run that ended within an undo window, and would have been tried again, was done for good: nothing could be undone.
#[test]
fn a_retry_that_falls_into_an_undo_window_waits_for_it() {
    for undone in [false, true] {
        let mut rig = Rig::new(1);
        let mut spec = job("a");
        spec.request.retry.when.push(RetryOn::Code(75));
        let id = rig.submit(spec);
        rig.started(id);
        let window = cancel(&rig, id, 60_000);
        rig.step(vec![window]);
        rig.pass(Span::secs(1));
        rig.finish(id, RunEnd::Exited { code: 75 });
        assert_eq!((rig.state(id), rig.why(id).as_str()), (Cursor::Queued, "being cancelled"));
        if undone {
            rig.step(vec![command(Command::Undo { job: Some(id) }, 1)]);
            assert_eq!(replies(&rig), [true]);
        }
        rig.wait(60);
        if undone {
            assert_eq!((rig.state(id), rig.attempt(id).0), (Cursor::Renting, 2));
        } else {
            assert_eq!((rig.outcome(id).as_str(), ends(&rig)), ("cancelled by ana", 1));
        }
    }
}

/// Of two cancels whose windows close in one turn, the first may end the other's job: its cancel was carried out on a job
/// that was done.
#[test]
fn two_windows_that_close_together_end_each_job_once() {
    let mut rig = Rig::new(0);
    let first = rig.submit(job("first"));
    let mut spec = job("second");
    spec.request.after.push("first".to_owned());
    let second = rig.submit(spec);
    let windows = vec![cancel(&rig, first, 5_000), cancel(&rig, second, 5_000)];
    rig.step(windows);
    rig.wait(5);
    assert_eq!(rig.outcome(first), "cancelled by ana");
    assert_eq!(rig.outcome(second), "never started: after #1 was cancelled");
    assert_eq!(ends(&rig), 2);
}

/// What was cancelled and then lost was said to be lost.
#[test]
fn b14_what_is_cancelled_between_its_grant_and_its_start_is_cancelled_whatever_becomes_of_it() {
    for never_launched in [true, false] {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        let lease = rig.lease(id);
        let now = cancel(&rig, id, 0);
        rig.step(vec![now]);
        rig.restart();
        let why = "its supervisor is gone".to_owned();
        if never_launched {
            rig.engine(EngineReport::NotLaunched { lease, at: rig.now, why });
        } else {
            let (heartbeat, at, gone, collecting) = (None, Some(rig.now), true, true);
            rig.engine(EngineReport::Missing { lease, heartbeat, at, gone, collecting, why });
            rig.collected(id);
        }
        rig.released(id);
        assert_eq!((rig.outcome(id).as_str(), granted(&rig)), ("cancelled by ana", 1));
        let attempt = &rig.job(id).tasks[0].attempts[0];
        assert_eq!(attempt.notes, ["its supervisor is gone"], "and why is not forgotten");
        assert!(rig.world.lease(lease).unwrap().waived, "nobody pays for it");
    }
}

#[test]
fn of_two_dashboards_and_a_command_line_on_one_job_one_wins() {
    let all: [fn(JobId, Generation) -> Command; 4] = [
        |job, generation| Command::Cancel { job, generation, undo: Span(0), now: false },
        |job, generation| Command::SetPriority { job, generation, priority: Priority::clamped(9) },
        |job, generation| Command::Pause { job, generation },
        |job, generation| Command::Move { job, generation, to: Place::Down },
    ];
    for (ix, first) in all.iter().enumerate() {
        for one_turn in [true, false] {
            let mut rig = Rig::new(0);
            let id = rig.submit(job("a"));
            rig.submit(job("b"));
            let generation = rig.generation(id);
            let mut commands = vec![first(id, generation)];
            commands
                .extend(all.iter().enumerate().filter(|(n, _)| *n != ix).map(|(_, one)| one(id, generation)));
            let inputs: Vec<Input> =
                commands.into_iter().enumerate().map(|(n, one)| command(one, n as u64 + 1)).collect();
            let before = rig.disk.log.len();
            let mut said = Vec::new();
            if one_turn {
                rig.step(inputs);
                said = rig.last.replies.clone();
            } else {
                for input in inputs {
                    rig.step(vec![input]);
                    said.append(&mut rig.last.replies.clone());
                }
            }
            let won: Vec<u64> = said
                .iter()
                .filter(|(_, reply)| matches!(reply, Reply::Ok { .. }))
                .map(|(to, _)| *to)
                .collect();
            assert_eq!(won, [1], "{said:?}");
            let polite = said.iter().filter(|(_, reply)| match reply {
                Reply::Refused { message } => {
                    message.starts_with("#1 has changed meanwhile") && message.ends_with("look again")
                }
                _ => false,
            });
            assert_eq!(polite.count(), 3, "{said:?}");
            // One command: the events that belong to it, what undoes it, and no others.
            let events = rig.disk.log.len() - before;
            assert_eq!(events, [4, 2, 2, 3][ix], "{:?}", &rig.disk.log[before..]);
        }
    }
}

/// Two that pressed retry on one picture made two jobs.
#[test]
fn a_job_is_tried_again_once_however_many_ask_for_it() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.finish(id, RunEnd::Exited { code: 1 });
    let retry = Command::Retry { job: id, generation: rig.generation(id) };
    rig.step(vec![command(retry.clone(), 1), command(retry.clone(), 2)]);
    assert_eq!(replies(&rig), [true, false]);
    let Reply::Refused { message } = &rig.last.replies[1].1 else { panic!("refused") };
    assert_eq!(message, "#1 is tried again already, as #2");
    rig.read();
    rig.finish(JobId(2), RunEnd::Exited { code: 1 });
    assert!(matches!(rig.command(retry), Reply::Submitted { .. }), "once that is over it may be tried again");
}
