//! Who waits for whom.

use crate::build::{Ask, Rig, job};
use overnight::model::{Cursor, JobId, RunEnd};
use overnight::protocol::{Command, Reply};
use overnight::sched::Effect;

fn retry(rig: &mut Rig, job: JobId) -> JobId {
    let generation = rig.generation(job);
    let Reply::Submitted { jobs, .. } = rig.command(Command::Retry { job, generation }) else {
        panic!("accepted")
    };
    jobs[0].id.unwrap()
}

#[test]
fn names_mean_jobs_of_the_same_file_first_in_any_order() {
    let mut rig = Rig::new(2);
    let older = rig.submit(job("prepare"));
    let ids = rig.submit_all(vec![job("train").after("prepare"), job("prepare")]);
    assert_eq!(rig.job(ids[0]).after[0].job, Some(ids[1]));
    assert_eq!(rig.why(ids[0]), format!("after #{} prepare", ids[1]));
    rig.succeed(older);
    assert_eq!(rig.state(ids[0]), Cursor::Queued);
    rig.succeed(ids[1]);
    assert_eq!(rig.state(ids[0]), Cursor::Renting);
}

#[test]
fn an_unknown_name_waits_until_a_job_of_that_name_comes() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("eval").after("train"));
    assert_eq!(rig.why(id), "for a job named train; none yet");
    let train = rig.submit(job("train"));
    assert_eq!(rig.why(id), format!("after #{train} train"));
    rig.succeed(train);
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn two_that_would_wait_for_each_other_do_not() {
    let mut rig = Rig::new(1);
    let a = rig.submit(job("a").after("b"));
    let b = rig.submit(job("b").after("a"));
    assert_eq!(rig.why(a), "for a job named b; none yet");
    assert_eq!(rig.why(b), format!("after #{a} a"));
    overnight::sched::forecast(&rig.world, &rig.now);
}

#[test]
fn a_circle_within_one_file_never_starts_and_says_so() {
    let mut rig = Rig::new(1);
    let ids = rig.submit_all(vec![job("a").after("b"), job("b").after("a"), job("c").after_any("b")]);
    assert_eq!(rig.outcome(ids[1]), "never started: it waits for #1, which waits for it");
    assert_eq!(rig.outcome(ids[0]), "never started: after #2 never started");
    assert_eq!(rig.state(ids[2]), Cursor::Renting);
}

#[test]
fn what_waits_for_a_failed_job_never_starts_and_so_on_down_the_chain() {
    let mut rig = Rig::new(1);
    let ids = rig.submit_all(vec![
        job("a"),
        job("b").after("a"),
        job("c").after("b"),
        job("any").after_any("a").gpus(0),
    ]);
    rig.finish(ids[0], RunEnd::Exited { code: 3 });
    assert_eq!(rig.outcome(ids[0]), "failed: exit 3");
    assert_eq!(rig.outcome(ids[1]), "never started: after #1 failed");
    assert_eq!(rig.outcome(ids[2]), "never started: after #2 never started");
    assert_eq!(rig.state(ids[3]), Cursor::Renting, "after_any asks only for an end");
}

#[test]
fn a_retry_before_the_end_keeps_dependents_waiting() {
    let mut rig = Rig::new(1);
    let retried = job("a").with(|spec| {
        spec.request.retry.times = 1;
        spec.request.retry.when = vec![overnight::model::RetryOn::Code(75)];
    });
    let ids = rig.submit_all(vec![retried, job("b").after("a")]);
    rig.finish(ids[0], RunEnd::Exited { code: 75 });
    assert_eq!(rig.state(ids[1]), Cursor::Queued);
    rig.wait(5);
    rig.succeed(ids[0]);
    assert_eq!(rig.state(ids[1]), Cursor::Renting);
}

#[test]
fn its_own_name_in_after_any_means_one_at_a_time() {
    let mut rig = Rig::new(4);
    let ids: Vec<_> = (0..3).map(|_| rig.submit(job("nightly").after_any("nightly"))).collect();
    assert_eq!(rig.state(ids[0]), Cursor::Renting);
    assert_eq!(rig.why(ids[1]), "after #1 nightly");
    rig.finish(ids[0], RunEnd::Exited { code: 1 });
    assert_eq!(rig.state(ids[1]), Cursor::Renting);
    assert_eq!(rig.why(ids[2]), "after #2 nightly");
}

#[test]
fn retry_points_those_that_wait_to_the_new_job() {
    let mut rig = Rig::new(0);
    let a = rig.submit(job("a").gpus(0));
    // Waits for a GPU that is not there, with its predecessor already done.
    let b = rig.submit(job("b").after_any("a"));
    rig.finish(a, RunEnd::Exited { code: 1 });
    let again = retry(&mut rig, a);
    assert_eq!(rig.job(again).retry_of, Some(a));
    assert_eq!(rig.why(b), format!("after #{again} a"));
}

#[test]
fn a_retry_does_not_wait_for_another_run_of_what_is_there() {
    let mut rig = Rig::new(1);
    let train = rig.submit(job("train"));
    let eval = rig.submit(job("eval").after("train"));
    rig.succeed(train);
    rig.finish(eval, RunEnd::Exited { code: 1 });
    let again = retry(&mut rig, eval);
    assert_eq!(rig.job(again).after[0].job, Some(train));
    rig.read();
    assert_eq!(rig.state(again), Cursor::Renting);
}

#[test]
fn a_retry_of_what_never_started_waits_for_the_retry_of_what_failed() {
    let mut rig = Rig::new(1);
    let ids = rig.submit_all(vec![job("a"), job("b").after("a")]);
    rig.finish(ids[0], RunEnd::Exited { code: 1 });
    let a = retry(&mut rig, ids[0]);
    let b = retry(&mut rig, ids[1]);
    assert_eq!(rig.why(b), format!("after #{a} a"));
    rig.read();
    rig.succeed(a);
    assert_eq!(rig.state(b), Cursor::Renting);
}

#[test]
fn data_of_an_earlier_job_is_looked_at_when_that_is_done_and_before_the_rent() {
    let mut rig = Rig::new(1);
    let ids = rig.submit_all(vec![job("train"), job("eval").data_of("train")]);
    assert!(!rig.effects.iter().any(|effect| matches!(effect, Effect::Prepare(_))));
    rig.succeed(ids[0]);
    let sources: Vec<_> = rig
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Prepare(prepare) => Some(prepare.sources[0].1.clone()),
            _ => None,
        })
        .collect();
    // Not by the link in its folder, which may not be there yet.
    assert_eq!(sources, [std::path::Path::new("1-train/attempts/1/output")]);
    assert_eq!(rig.why(ids[1]), "checking its data");
    // It is known however many jobs were done since.
    for _ in 0..600 {
        let filler = rig.submit(job("filler").gpus(0));
        rig.succeed(filler);
    }
    let attempt = rig.attempt(ids[1]);
    let task = overnight::model::TaskIx(0);
    rig.effects.clear();
    rig.step(vec![overnight::sched::Input::Prepared { job: ids[1], task, attempt, result: Ok(()) }]);
    rig.read();
    let launch = rig.effects.iter().find_map(|effect| match effect {
        Effect::Launch(launch) => Some(launch.sources.clone()),
        _ => None,
    });
    assert_eq!(launch, Some(vec![Some("1-train/attempts/1/output".into())]));
}

/// A name that somebody waited for was given to a job that could never start, whose end had been told by then: who waited
/// started as if it had succeeded.
#[test]
fn what_can_never_start_is_not_what_somebody_waits_for() {
    let mut rig = Rig::new(1);
    let waits = rig.submit(job("eval").after("b"));
    let ids = rig.submit_all(vec![job("a").after("b"), job("b").after("a")]);
    assert_eq!(rig.outcome(ids[1]), "never started: it waits for #2, which waits for it");
    rig.read();
    assert_eq!(rig.why(waits), "for a job named b; none yet");
    let b = rig.submit(job("b"));
    rig.succeed(b);
    assert_eq!(rig.state(waits), Cursor::Renting);
}

/// The first of two jobs of one name in one file waited for the second, which then waited for the first.
#[test]
fn two_jobs_of_one_name_in_one_file_go_one_after_the_other() {
    let mut rig = Rig::new(2);
    let ids = rig.submit_all((0..3).map(|_| job("nightly").after_any("nightly")).collect());
    assert_eq!(rig.state(ids[0]), Cursor::Renting);
    assert_eq!(rig.why(ids[1]), "after #1 nightly");
    assert_eq!(rig.why(ids[2]), "after #2 nightly");
    rig.succeed(ids[0]);
    assert_eq!(rig.state(ids[1]), Cursor::Renting);
}
