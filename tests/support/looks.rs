//! What screens ask for besides the snapshot, made up: telemetry, occupancy, ledger.

use super::fixtures::{WALL_MS, uuid};
use overnight::model::{Bytes, JobId, LeaseId};
use overnight::protocol::{
    GpuHistory, GpuRing, GpuTrace, MeterBy, MeterRow, MeterTable, Snapshot, SpanKind, Timeline, TimelineSpan,
};

/// A wave, and for a while nothing that was read.
pub(crate) fn telemetry(snap: &Snapshot, span_ms: u64) -> GpuHistory {
    let steps = 120_u32;
    let trace = |row: &overnight::protocol::GpuRow| {
        let top = row.utilisation.unwrap_or(0);
        let at =
            |n: u32| (!(40..50).contains(&n)).then(|| u8::try_from(n % 30 * u32::from(top) / 29).unwrap());
        let load: Vec<Option<u8>> = (0..steps).map(at).collect();
        let ring = GpuRing {
            period_ms: span_ms / u64::from(steps),
            until: WALL_MS,
            memory_used: load
                .iter()
                .map(|load| load.map(|load| Bytes::gib(u64::from(load) * 8 / 10)))
                .collect(),
            power_w: load.iter().map(|load| load.map(|load| 60 + u32::from(load) * 6)).collect(),
            temperature_c: load.iter().map(|load| load.map(|load| 30 + i32::from(load) / 2)).collect(),
            held: load.iter().map(|load| load.map(|_| !row.jobs.is_empty())).collect(),
            utilisation: load,
        };
        GpuTrace { uuid: row.uuid.clone(), index: row.index, rings: vec![ring] }
    };
    GpuHistory { gpus: snap.gpus.iter().map(trace).collect() }
}

pub(crate) const MINUTE: i64 = 60_000;

pub(crate) fn span(
    index: u32,
    kind: SpanKind,
    id: u64,
    name: &str,
    (from, until): (i64, Option<i64>),
) -> TimelineSpan {
    TimelineSpan {
        gpu: uuid(index),
        index: Some(index),
        kind,
        lease: (kind <= SpanKind::Held).then_some(LeaseId(id)),
        job: (id > 0).then_some(JobId(id)),
        name: name.into(),
        user: "ana".into(),
        from: WALL_MS + from * MINUTE,
        from_by: None,
        until: until.map(|until| WALL_MS + until * MINUTE),
        until_by: None,
    }
}

pub(crate) fn timeline(from: i64, until: i64) -> Timeline {
    use SpanKind::{Draining, Held, Past, Planned, Quarantined};
    let mut spans = vec![
        span(0, Past, 138, "vit-sweep-02", (-118, Some(-63))),
        span(0, Held, 142, "llama-ft-8b", (-62, Some(45))),
        span(0, Planned, 147, "llama-ft-70b", (60, Some(200))),
        span(1, Held, 142, "llama-ft-8b", (-62, Some(45))),
        span(1, Planned, 147, "llama-ft-70b", (60, Some(200))),
        span(2, Held, 143, "vit-sweep-03", (-39, Some(21))),
        span(3, Held, 143, "vit-sweep-03", (-39, Some(21))),
        span(4, Past, 136, "probe", (-100, Some(-90))),
        span(4, Held, 144, "eval-nightly", (-12, None)),
        span(5, Past, 140, "tokenise-test", (-70, Some(-45))),
        span(5, Draining, 140, "tokenise-test", (-45, Some(-44))),
        span(5, Planned, 151, "tokenise-wiki", (2, Some(30))),
        span(6, Held, 146, "llama-ft-8b-b", (0, Some(60))),
        span(7, Quarantined, 0, "", (-80, Some(-20))),
        span(7, Held, 146, "llama-ft-8b-b", (0, Some(60))),
    ];
    spans.sort_by_key(|span| (span.index, span.from));
    Timeline { from_ms: WALL_MS + from, until_ms: WALL_MS + until, now_ms: WALL_MS, spans, cut_before: None }
}

pub(crate) fn ledger(by: MeterBy, since: Option<i64>) -> MeterTable {
    let row = |key: &str, jobs, hundredths: u64, waived: u64| MeterRow {
        key: key.into(),
        jobs,
        gpu_ms: hundredths * 36_000,
        core_ms: hundredths * 8 * 36_000,
        waived_gpu_ms: waived * 36_000,
        cost: None,
    };
    let rows = match by {
        MeterBy::User => {
            vec![row("ana", 9, 3011, 0), row("bo", 14, 1490, 66), row("cy", 3, 961, 0), row("me", 31, 640, 0)]
        }
        MeterBy::Project => vec![row("", 40, 4102, 0), row("wiki", 17, 2000, 66)],
        MeterBy::Job => vec![row("142 llama-ft-8b", 1, 207, 0), row("143 vit-sweep-03", 1, 130, 0)],
        MeterBy::Gpu => (0..8).map(|at| row(&uuid(at).0, 5, 700 + u64::from(at) * 20, 0)).collect(),
        MeterBy::Day => vec![row("2026-11-29", 20, 9120, 66), row("2026-11-30", 57, 6102, 0)],
    };
    MeterTable { since, until: WALL_MS, by, rows, held_now: 7 }
}
