//! What the core costs: plans, reasons and forecasts, folding events, and one more job in a long line.
//!
//! Budgets, to be compared by hand on one machine: a plan with nothing free in microseconds at any length of the line, a
//! plan of 1,000 jobs with room below 1 ms, one submission at 10,000 queued what it costs at 10, all rows of 10,000 jobs
//! below 20 ms, what a move would do at 10,000 queued below 50 ms.

#![expect(unreachable_pub, dead_code, reason = "the builders are shared with test programs")]
#![expect(clippy::expect_used, reason = "an expectation is how a helper of a bench fails")]

#[path = "../sched/build.rs"]
mod build;

use build::{Ask, Rig, job, submission};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use overnight::model::Span;
use overnight::protocol::{Change, Place};
use overnight::sched::{Input, Moment, World, explain, forecast, plan, step, view};
use std::hint::black_box;
use std::path::Path;

/// All GPUs held, and a line behind them.
fn busy(gpus: u32, queued: usize) -> Rig {
    let mut rig = Rig::new(gpus);
    rig.submit_all((0..gpus).map(|_| job("running")).collect());
    let line = (0..queued).map(|n| {
        job(&format!("job{}", n % 50))
            .gpus(1 + n as u32 % 4)
            .secs(600 + n as u64 % 7_200)
            .priority(n as i64 % 3)
            .with(|spec| {
                spec.request.gpu_model = if n % 5 == 0 { vec!["a100".to_owned()] } else { Vec::new() }
            })
    });
    rig.submit_all(line.collect());
    rig
}

/// One job gone, so that there is room for one: the walk goes along the line.
fn room(gpus: u32, queued: usize) -> (World, overnight::model::Now) {
    let mut rig = busy(gpus, 0);
    let line = (0..queued).map(|n| job("wide").gpus(2).secs(600 + n as u64 % 7_200));
    rig.submit_all(line.collect());
    let first = rig.world.leases.iter().next().map(|lease| lease.job).expect("runs");
    rig.succeed(first);
    (rig.world, rig.now)
}

fn plans(c: &mut Criterion) {
    for gpus in [8, 64] {
        for queued in [10, 1_000, 10_000] {
            let rig = busy(gpus, queued);
            let at = format!("{queued} queued, {gpus} GPUs");
            c.bench_with_input(BenchmarkId::new("plan, nothing free", &at), &rig, |b, rig| {
                b.iter(|| plan(black_box(&rig.world), &rig.now));
            });
            let (world, now) = room(gpus, queued);
            c.bench_with_input(
                BenchmarkId::new("plan, one GPU free", &at),
                &(world, now),
                |b, (world, now)| {
                    b.iter(|| plan(black_box(world), now));
                },
            );
            c.bench_with_input(BenchmarkId::new("explain", &at), &rig, |b, rig| {
                b.iter(|| explain(black_box(&rig.world), &rig.now));
            });
            c.bench_with_input(BenchmarkId::new("forecast", &at), &rig, |b, rig| {
                b.iter(|| forecast(black_box(&rig.world), &rig.now));
            });
        }
    }
}

fn rows(c: &mut Criterion) {
    let rig = busy(8, 10_000);
    let clock = |at: i64| at.to_string();
    let frame = view::Frame {
        now: rig.now,
        jobs_dir: Path::new("/jobs"),
        clock: &clock,
        today_began: 0,
        brief: false,
    };
    c.bench_function("all rows of 10000 jobs, with reasons and forecasts", |b| {
        b.iter(|| {
            let outlook = view::outlook(&rig.world, &rig.now);
            let rows = view::order(&rig.world, &outlook)
                .into_iter()
                .filter_map(|id| rig.world.queue.get(id))
                .map(|job| view::row(&rig.world, job, &outlook, &frame));
            black_box(rows.collect::<Vec<_>>())
        });
    });
}

fn what_ifs(c: &mut Criterion) {
    for queued in [10, 10_000] {
        let rig = busy(8, queued);
        let last = rig.world.queue.line().last().expect("waits");
        c.bench_function(&format!("what a move to the top would do at {queued} queued"), |b| {
            b.iter(|| view::what_if(black_box(&rig.world), last, Change::Move(Place::Top), &rig.now));
        });
    }
}

fn folding(c: &mut Criterion) {
    let mut rig = Rig::new(8);
    while rig.disk.log.len() < 100_000 {
        let ids = rig.submit_all((0..8).map(|_| job("a")).collect());
        for id in ids {
            rig.succeed(id);
        }
    }
    c.bench_function("fold of 100000 events", |b| b.iter(|| black_box(rig.disk.fold())));
}

fn one_more(c: &mut Criterion) {
    for queued in [10, 10_000] {
        let mut rig = busy(8, queued);
        c.bench_function(&format!("one more job at {queued} queued"), |b| {
            b.iter_batched(
                || Input::Submission(Box::new(submission(vec![job("one")]))),
                |input| {
                    let decision = step(&mut rig.world, vec![input], Moment { now: rig.now, seed: 1 });
                    // Taken out again, so that the line does not grow.
                    black_box(decision)
                },
                BatchSize::SmallInput,
            );
        });
        rig.pass(Span(1));
    }
}

criterion_group!(
    name = core;
    config = Criterion::default().sample_size(10);
    targets = plans, rows, what_ifs, folding, one_more
);
criterion_main!(core);
