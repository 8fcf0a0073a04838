//! What people ask for, in every state of a job.

use crate::build::{Rig, job};
use overnight::model::{Cursor, JobId, Priority, RunEnd, Span};
use overnight::protocol::{Command, GpuSelect, Place, Reply};
use overnight::sched::{Effect, StopKind};

fn cancel(rig: &mut Rig, job: JobId, undo: Span, now: bool) -> Reply {
    let generation = rig.generation(job);
    rig.command(Command::Cancel { job, generation, undo, now })
}

fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Ok { .. })
}

fn stops(rig: &Rig) -> Vec<&StopKind> {
    rig.effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Stop { kind, .. } => Some(kind),
            _ => None,
        })
        .collect()
}

#[test]
fn a_waiting_job_is_cancelled_at_once_and_never_held_anything() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    assert!(is_ok(&cancel(&mut rig, id, Span(0), false)));
    assert_eq!(rig.outcome(id), "cancelled by ana");
    assert!(rig.effects.contains(&Effect::WriteReceipt { job: id }));
    assert_eq!(rig.world.ledger.iter().count(), 0);
}

#[test]
fn a_cancel_can_be_undone_within_its_window_and_not_after() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    assert!(is_ok(&cancel(&mut rig, id, Span::secs(10), false)));
    assert_eq!(rig.last.wake.map(|wake| wake.at), Some(rig.now.boottime_ms + 10_000));
    assert_eq!(rig.why(id), "being cancelled");
    rig.wait(9);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(is_ok(&rig.command(Command::Undo { job: Some(id) })));
    rig.wait(60);
    assert_eq!(rig.state(id), Cursor::Queued);
    cancel(&mut rig, id, Span::secs(10), false);
    rig.wait(10);
    assert_eq!(rig.outcome(id), "cancelled by ana");
    assert!(matches!(rig.command(Command::Undo { job: None }), Reply::Refused { .. }));
}

#[test]
fn an_undo_of_nothing_in_particular_is_not_about_what_was_done_before_a_cancel() {
    let mut rig = Rig::new(0);
    let (kept, gone) = (rig.submit(job("kept")), rig.submit(job("gone")));
    let generation = rig.job(kept).generation;
    assert!(is_ok(&rig.command(Command::Pause { job: kept, generation })));
    rig.wait(1);
    assert!(is_ok(&cancel(&mut rig, gone, Span(0), false)));
    let Reply::Refused { message } = rig.command(Command::Undo { job: None }) else { panic!("undone") };
    assert!(message.contains("#2 was cancelled last") && message.contains("`overnight undo 1`"), "{message}");
    assert!(rig.job(kept).paused.is_some());
    assert!(is_ok(&rig.command(Command::Undo { job: Some(kept) })));
    assert!(rig.job(kept).paused.is_none());
}

#[test]
fn a_window_survives_a_restart_and_a_reboot() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    cancel(&mut rig, id, Span::secs(10), false);
    rig.restart();
    rig.pass(Span::secs(5));
    rig.now.boot.0 += 1;
    rig.now.boottime_ms = 3_000;
    rig.step(Vec::new());
    assert_eq!(rig.state(id), Cursor::Queued);
    rig.wait(5);
    assert_eq!(rig.outcome(id), "cancelled by ana");
}

#[test]
fn a_renting_and_a_running_job_are_stopped_and_end_as_cancelled() {
    for run in [false, true] {
        let mut rig = Rig::new(1);
        let id = rig.submit(job("a"));
        if run {
            rig.started(id);
        }
        assert!(is_ok(&cancel(&mut rig, id, Span(0), false)));
        assert_eq!(stops(&rig), [&StopKind::Cancel { by: "ana".to_owned() }]);
        // A second one kills at once, also if it asks for a window: what is under way cannot be undone.
        assert!(matches!(cancel(&mut rig, id, Span(0), false), Reply::Refused { .. }));
        assert!(is_ok(&cancel(&mut rig, id, Span::secs(5), true)));
        assert!(matches!(rig.command(Command::Undo { job: Some(id) }), Reply::Refused { .. }));
        assert_eq!(stops(&rig).len(), 2);
        rig.ended(id, RunEnd::Cancelled { by: "ana".to_owned() });
        rig.collected(id);
        rig.released(id);
        assert_eq!(rig.outcome(id), "cancelled by ana");
    }
}

#[test]
fn a_stop_that_may_not_have_been_carried_out_is_asked_for_again_after_a_restart() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    cancel(&mut rig, id, Span(0), false);
    rig.restart();
    assert_eq!(stops(&rig).len(), 1);
}

#[test]
fn the_end_of_a_run_wins_over_a_cancel_whose_window_is_open() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    cancel(&mut rig, id, Span::secs(5), false);
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.wait(6);
    assert_eq!(stops(&rig).len(), 0);
    rig.collected(id);
    rig.released(id);
    assert_eq!(rig.outcome(id), "succeeded");
}

#[test]
fn a_job_whose_run_has_ended_cannot_be_cancelled_nor_can_a_done_one() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.ended(id, RunEnd::Exited { code: 0 });
    assert!(matches!(cancel(&mut rig, id, Span(0), false), Reply::Refused { .. }));
    rig.collected(id);
    assert!(matches!(cancel(&mut rig, id, Span(0), false), Reply::Refused { .. }));
    rig.released(id);
    assert!(matches!(cancel(&mut rig, id, Span(0), false), Reply::Refused { .. }));
    assert_eq!(rig.outcome(id), "succeeded");
}

#[test]
fn of_two_clients_on_the_same_generation_the_second_is_refused() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    let generation = rig.generation(id);
    let set = |priority| Command::SetPriority { job: id, generation, priority: Priority::clamped(priority) };
    assert!(is_ok(&rig.command(set(10))));
    let Reply::Refused { message } = rig.command(set(20)) else { panic!("refused") };
    assert_eq!(message, "#1 has changed meanwhile: it is queued now; look again");
    let Reply::Refused { .. } = rig.command(Command::Pause { job: id, generation }) else {
        panic!("refused")
    };
    assert_eq!(rig.job(id).priority, Priority::clamped(10));
}

#[test]
fn a_paused_job_is_not_started_until_it_is_resumed() {
    let mut rig = Rig::new(1);
    let running = rig.submit(job("running"));
    let id = rig.submit(job("a"));
    let generation = rig.generation(id);
    assert!(is_ok(&rig.command(Command::Pause { job: id, generation })));
    assert_eq!(rig.why(id), "paused by ana");
    rig.succeed(running);
    assert_eq!(rig.state(id), Cursor::Queued);
    let generation = rig.generation(id);
    assert!(is_ok(&rig.command(Command::Resume { job: id, generation })));
    rig.read();
    assert_eq!(rig.state(id), Cursor::Renting);
    let generation = rig.generation(id);
    assert!(matches!(rig.command(Command::Pause { job: id, generation }), Reply::Refused { .. }));
}

#[test]
fn moves_go_past_one_neighbour_or_to_the_end() {
    let mut rig = Rig::new(0);
    let ids: Vec<JobId> = (0..4).map(|_| rig.submit(job("a"))).collect();
    let mut go = |id: JobId, to: Place| {
        let generation = rig.generation(id);
        let reply = rig.command(Command::Move { job: id, generation, to });
        let line: Vec<u64> = rig.world.queue.line().map(|job| job.id.0).collect();
        (is_ok(&reply), line)
    };
    assert_eq!(go(ids[3], Place::Up), (true, vec![1, 2, 4, 3]));
    assert_eq!(go(ids[3], Place::Top), (true, vec![4, 1, 2, 3]));
    assert_eq!(go(ids[3], Place::Up), (false, vec![4, 1, 2, 3]));
    assert_eq!(go(ids[0], Place::Bottom), (true, vec![4, 2, 3, 1]));
    assert_eq!(go(ids[1], Place::Down), (true, vec![4, 3, 2, 1]));
}

#[test]
fn operators_close_open_and_clear_devices() {
    let mut rig = Rig::new(2);
    let id = rig.submit(job("a"));
    let close = |gpus| Command::Close { gpus, reason: "fan".to_owned() };
    assert!(is_ok(&rig.command(close(GpuSelect::Index(1)))));
    assert!(matches!(rig.command(close(GpuSelect::Index(7))), Reply::NotFound { .. }));
    let waits = rig.submit(job("b"));
    assert_eq!(rig.why(waits), "needs a free GPU; #1 a holds; GPU 1 is closed");
    assert!(is_ok(&rig.command(Command::Open { gpus: GpuSelect::Index(1) })));
    rig.read();
    assert_eq!(rig.state(waits), Cursor::Renting);
    assert!(matches!(rig.command(Command::Clear { gpu: GpuSelect::Index(1) }), Reply::Refused { .. }));
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn an_unknown_job_is_not_found() {
    let mut rig = Rig::new(0);
    let command = Command::Retry { job: JobId(9), generation: overnight::model::Generation(1) };
    assert!(matches!(rig.command(command), Reply::NotFound { .. }));
}

/// A job that was moved to the end has the place that the next one is born with: moving it past that one did nothing.
#[test]
fn a_move_goes_past_a_neighbour_in_the_same_place() {
    let mut rig = Rig::new(0);
    let ids: Vec<JobId> = (0..3).map(|_| rig.submit(job("a"))).collect();
    let go = |rig: &mut Rig, job: JobId, to: Place| {
        let generation = rig.generation(job);
        assert!(is_ok(&rig.command(Command::Move { job, generation, to })));
        rig.world.queue.line().map(|job| job.id.0).collect::<Vec<_>>()
    };
    go(&mut rig, ids[0], Place::Bottom);
    let last = rig.submit(job("a"));
    assert_eq!(rig.job(ids[0]).position, rig.job(last).position);
    assert_eq!(go(&mut rig, ids[0], Place::Down), [2, 3, 4, 1]);
    assert_eq!(go(&mut rig, ids[0], Place::Up), [2, 3, 1, 4]);
    assert_eq!(go(&mut rig, last, Place::Up), [2, 3, 4, 1]);
}

/// A paused job that was cancelled could be resumed, done as it was.
#[test]
fn a_done_job_is_not_resumed() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    let generation = rig.generation(id);
    assert!(is_ok(&rig.command(Command::Pause { job: id, generation })));
    cancel(&mut rig, id, Span(0), false);
    let before = rig.job(id).clone();
    let Reply::Refused { message } = rig.command(Command::Resume { job: id, generation: before.generation })
    else {
        panic!("refused")
    };
    assert_eq!(message, "#1 is done: only a waiting job can be resumed");
    assert_eq!(*rig.job(id), before);
}

#[test]
fn the_longest_undo_window_is_a_day() {
    let mut rig = Rig::new(0);
    let id = rig.submit(job("a"));
    let Reply::Ok { message } = cancel(&mut rig, id, Span(u64::MAX), false) else { panic!("accepted") };
    assert_eq!(message, "#1 will be cancelled in 1d00h; undo takes it back");
}
