//! What subscribers are told: however often they look and whatever happens, it adds up to the whole picture, and costs
//! what has changed.

use crate::build::{Ask, Rig, job, submission};
use crate::properties::noise;
use overnight::model::{Cursor, DeviceState, JobId, Now, RunEnd, Span};
use overnight::protocol::{Command, JobRow, Place, Snapshot, SpanKind, Update};
use overnight::sched::picture::{HISTORY, Margin, Mark};
use overnight::sched::{Input, World, view};
use proptest::prelude::*;
use std::path::Path;

/// A day in virtual time.
const DAY_MS: i64 = 86_400_000;

fn with_frame<R>(now: Now, view: impl FnOnce(&view::Frame<'_>) -> R) -> R {
    let clock = |at: i64| format!("{}d {}", at / DAY_MS - now.wall_ms / DAY_MS, at / 60_000 % 1_440);
    let today_began = now.wall_ms / DAY_MS * DAY_MS;
    view(&view::Frame { now, jobs_dir: Path::new("/jobs"), clock: &clock, today_began, brief: false })
}

/// The picture as it would be worked out from nothing.
fn naive(world: &World, now: Now) -> (Vec<JobRow>, Vec<JobRow>, overnight::protocol::MeterSummary) {
    with_frame(now, |frame| {
        let outlook = view::outlook(world, &now);
        let row = |id: JobId| view::row(world, world.queue.get(id).unwrap(), &outlook, frame);
        let jobs = view::order(world, &outlook).into_iter().map(row).collect();
        let history = world.queue.history().take(HISTORY).map(|job| row(job.id)).collect();
        (jobs, history, view::meter(world, frame))
    })
}

fn look(rig: &mut Rig) {
    let mut picture = std::mem::take(&mut rig.picture);
    with_frame(rig.now, |frame| picture.look(&rig.world, frame, Margin::default()));
    rig.picture = picture;
}

/// Somebody at the other end of a wire.
#[derive(Default)]
struct Viewer {
    mark: Option<Mark>,
    snap: Snapshot,
    bytes: usize,
}

impl Viewer {
    fn look(&mut self, rig: &Rig) {
        let update = rig.picture.since(self.mark);
        self.mark = Some(rig.picture.mark());
        let Some(update) = update else { return };
        let line = serde_json::to_string(&update).unwrap();
        self.bytes = line.len();
        let update: Update = serde_json::from_str(&line).unwrap();
        assert_eq!(self.snap.fold(update), Ok(()), "nothing is missing");
    }
}

/// Forecasts within a second of each other are one: the rest is the same to the letter.
fn assert_same(shown: &[std::sync::Arc<JobRow>], naive: &[JobRow]) {
    let ids = |row: &JobRow| row.id;
    assert_eq!(
        shown.iter().map(|row| ids(row)).collect::<Vec<_>>(),
        naive.iter().map(ids).collect::<Vec<_>>()
    );
    for (shown, naive) in shown.iter().zip(naive) {
        let near = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => a.abs_diff(b) < 1_000,
            (a, b) => a == b,
        };
        assert!(near(shown.starts_at, naive.starts_at), "{shown:?} {naive:?}");
        assert!(near(shown.starts_by, naive.starts_by), "{shown:?} {naive:?}");
        assert!(near(shown.finishes_at, naive.finishes_at), "{shown:?} {naive:?}");
        let naive = JobRow {
            revision: shown.revision,
            starts_at: shown.starts_at,
            starts_by: shown.starts_by,
            finishes_at: shown.finishes_at,
            ..naive.clone()
        };
        assert_eq!(**shown, naive);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: Some(Box::new(prop::test_runner::FileFailurePersistence::Direct(
            "tests/sched/proptest-regressions.txt",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_what_changed_adds_up_to_the_whole(
        inputs in prop::collection::vec((noise(), 0..4_u8), 1..60),
    ) {
        let mut rig = Rig::new(3);
        let (mut eager, mut lazy) = (Viewer::default(), Viewer::default());
        for ((wait, noise), looks) in inputs {
            rig.pass(Span(wait));
            let input = noise.input(&rig);
            rig.step(vec![input]);
            if looks == 0 {
                continue;
            }
            look(&mut rig);
            eager.look(&rig);
            if looks == 1 {
                lazy.look(&rig);
                lazy.snap.at = eager.snap.at;
                prop_assert_eq!(&lazy.snap, &eager.snap);
            }
            let mut whole = Viewer::default();
            whole.look(&rig);
            whole.snap.at = eager.snap.at;
            prop_assert_eq!(&whole.snap, &eager.snap);
            let (jobs, history, meter) = naive(&rig.world, rig.now);
            assert_same(&eager.snap.jobs, &jobs);
            assert_same(&eager.snap.history, &history);
            prop_assert_eq!(&eager.snap.meter, &meter);
            prop_assert_eq!(&with_frame(rig.now, |frame| view::gpus(&rig.world, frame)), &eager.snap.gpus);
        }
    }
}

/// A full pool and so many that wait.
fn long_line(waiting: usize) -> (Rig, Viewer, Vec<JobId>) {
    let mut rig = Rig::new(2);
    let ids = rig.submit_all((0..waiting + 2).map(|n| job(&format!("train-{n}")).secs(7_200)).collect());
    let mut viewer = Viewer::default();
    look(&mut rig);
    viewer.look(&rig);
    assert_eq!(viewer.snap.jobs.len(), waiting + 2);
    (rig, viewer, ids)
}

#[test]
fn one_change_costs_the_same_at_ten_thousand_as_at_three_hundred() {
    let costs = [300, 10_000].map(|waiting| {
        let (mut rig, mut viewer, ids) = long_line(waiting);
        let whole = viewer.bytes;
        let mut cost = |rig: &mut Rig| {
            look(rig);
            viewer.look(rig);
            let (jobs, history, _) = naive(&rig.world, rig.now);
            assert_same(&viewer.snap.jobs, &jobs);
            assert_same(&viewer.snap.history, &history);
            viewer.bytes
        };
        rig.submit(job("one-more"));
        let submitted = cost(&mut rig);
        let last = *ids.last().unwrap();
        let generation = rig.generation(last);
        rig.command(Command::Move { job: last, generation, to: Place::Top });
        let moved = cost(&mut rig);
        let generation = rig.generation(ids[200]);
        rig.command(Command::Pause { job: ids[200], generation });
        let paused = cost(&mut rig);
        rig.finish(ids[0], RunEnd::Exited { code: 0 });
        let ended = cost(&mut rig);
        rig.pass(Span(300));
        look(&mut rig);
        assert!(
            rig.picture.since(viewer.mark).is_none_or(|update| update.rows.len() <= 2 && update.times.is_empty()),
            "time alone changes what is held"
        );
        println!("{waiting} waiting: whole {whole} B; submit {submitted}, to the top {moved}, pause {paused}, end and start {ended}");
        (whole, [submitted, moved, paused, ended])
    });
    let [(_, few), (whole, many)] = costs;
    for (few, many) in few.into_iter().zip(many) {
        assert!(many < few + few / 5 + 500, "{few} and {many} bytes");
        assert!(many < whole / 50, "{many} of {whole} bytes");
    }
    assert!(many[0] < 3_000 && many[3] < 12_000, "{many:?}");
}

#[test]
fn nothing_is_said_where_nothing_changed() {
    let mut rig = Rig::new(2);
    rig.submit(job("held-back").with(|spec| spec.request.start_after_ms = Some(rig_later())));
    let mut viewer = Viewer::default();
    look(&mut rig);
    viewer.look(&rig);
    for _ in 0..10 {
        rig.wait(60);
        look(&mut rig);
        assert_eq!(rig.picture.since(viewer.mark), None);
    }
}

fn rig_later() -> i64 {
    crate::build::BEGIN.wall_ms + DAY_MS
}

#[test]
fn who_has_been_away_for_long_gets_everything() {
    let mut rig = Rig::new(1);
    let mut viewer = Viewer::default();
    look(&mut rig);
    viewer.look(&rig);
    for n in 0..400 {
        rig.step(vec![Input::Submission(Box::new(submission(vec![job(&format!("j{n}"))])))]);
        look(&mut rig);
    }
    assert_eq!(rig.picture.since(viewer.mark).unwrap().since, None);
    viewer.look(&rig);
    assert_eq!(viewer.snap.jobs.len(), 400);
    rig.picture.forget();
    look(&mut rig);
    assert_eq!(rig.picture.since(viewer.mark).unwrap().since, None, "what was forgotten is not built on");
}

#[test]
fn a_held_device_that_does_nothing_for_five_minutes_is_idle_and_one_that_cannot_be_read_is_not() {
    let mut rig = Rig::new(2);
    let ids = rig.submit_all(vec![job("lazy"), job("unreadable")]);
    for id in &ids {
        rig.started(*id);
    }
    let since = rig.now.plus(Span::secs(1));
    let read = |rig: &mut Rig, secs, percent: Option<u8>| {
        rig.wait_with(secs, |reading| {
            reading.utilisation = if reading.uuid == crate::build::uuid(0) { percent } else { None };
            reading.memory_used = Some(overnight::model::Bytes::gib(7));
        });
    };
    let idle = |rig: &Rig| -> Vec<Option<i64>> {
        let rows = with_frame(rig.now, |frame| view::gpus(&rig.world, frame));
        rows.into_iter().map(|row| row.idle_since).collect()
    };
    read(&mut rig, 1, Some(0));
    read(&mut rig, 299, Some(0));
    assert_eq!(idle(&rig), [None, None]);
    read(&mut rig, 1, Some(0));
    assert_eq!(idle(&rig), [Some(since.wall_ms), None]);
    look(&mut rig);
    let running = &rig.picture.snapshot().jobs[0];
    assert_eq!(
        (running.mean_utilisation, running.peak_gpu_memory),
        (Some(0), Some(overnight::model::Bytes::gib(7)))
    );
    read(&mut rig, 1, Some(30));
    assert_eq!(idle(&rig), [None, None]);
    rig.succeed(ids[0]);
    assert_eq!(idle(&rig)[0], None, "what is not held is not idle");
    let (_, history, _) = naive(&rig.world, rig.now);
    let done = &history[0];
    assert_eq!(
        (done.mean_utilisation, done.peak_gpu_memory),
        (Some(7), Some(overnight::model::Bytes::gib(7)))
    );
    assert!(done.submitted_at <= done.rented_at.unwrap() && done.started_at <= done.ended_at);
}

#[test]
fn the_timeline_shows_what_was_what_is_and_what_is_expected() {
    let mut rig = Rig::new(2);
    let begin = rig.now.wall_ms;
    let first = rig.submit(job("first").secs(600));
    rig.pass(Span::secs(60));
    rig.succeed(first);
    let ids = rig.submit_all(vec![
        job("long").secs(7_200),
        job("short").secs(1_800),
        job("wide").gpus(2).secs(900),
    ]);
    let now = rig.now;
    let shown = view::timeline(&rig.world, &now, Some(begin), None);
    let of = |id: JobId| -> Vec<_> { shown.spans.iter().filter(|span| span.job == Some(id)).collect() };
    let past = of(first);
    assert_eq!(past.len(), 1);
    assert_eq!((past[0].kind, past[0].from), (SpanKind::Past, begin));
    assert!(past[0].until.unwrap() <= now.wall_ms);
    let long = of(ids[0]);
    assert_eq!((long[0].kind, long[0].from), (SpanKind::Held, now.wall_ms));
    assert!(long[0].until.is_some() && long[0].until_by >= long[0].until);
    let wide = of(ids[2]);
    assert_eq!(
        wide.iter().map(|span| span.index).collect::<Vec<_>>(),
        [Some(0), Some(1)],
        "both, when both are back"
    );
    for span in wide {
        assert_eq!(span.kind, SpanKind::Planned);
        assert!(span.from >= long[0].until.unwrap() && span.from_by.unwrap() >= span.from, "{span:?}");
        assert!(span.until.unwrap() > span.from);
    }
    assert_eq!(shown.cut_before, None);
    let later = view::timeline(&rig.world, &now, Some(now.wall_ms), Some(now.wall_ms + 1));
    assert!(later.spans.iter().all(|span| span.kind == SpanKind::Held), "only what is asked for: {later:?}");
}

#[test]
fn a_device_in_quarantine_is_on_the_timeline_under_the_job_that_left_it() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("dirty"));
    rig.started(id);
    rig.pass(Span::secs(1));
    rig.ended(id, RunEnd::Exited { code: 0 });
    rig.pass(Span::secs(31));
    rig.read_with(|reading| reading.memory_used = Some(overnight::model::Bytes::gib(1)));
    let is_out =
        |rig: &Rig| matches!(rig.world.pool.devices().next().unwrap().1.state, DeviceState::Quarantined(_));
    assert!(is_out(&rig));
    let shown = view::timeline(&rig.world, &rig.now, None, None);
    let kinds: Vec<_> = shown.spans.iter().map(|span| (span.kind, span.job)).collect();
    assert_eq!(kinds, [(SpanKind::Past, Some(id)), (SpanKind::Quarantined, Some(id))]);
    assert_ne!(rig.state(id), Cursor::Running);
}
