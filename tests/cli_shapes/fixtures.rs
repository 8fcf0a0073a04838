//! Rows as a scheduler would send them: a fixed moment, a fixed zone.

use jiff::tz::TimeZone;
use overnight::model::{
    AttemptNo, BootId, Bytes, Cursor, DeviceState, EndedBy, EnforcedBy, Enforcement, Generation, GpuProcess,
    JobId, LeaseId, Limit, Now, Outcome, OutputKind, Priority, ProcessKind, Quarantine, ReturnedFile,
    Revision, Span, TaskIx, Token, Uuid, Verdict, WorkKind,
};
use overnight::protocol::{
    AttemptRow, GpuRow, JobDetail, JobRow, MeterBy, MeterRow, MeterTable, OpenLease, StepRow, TaskCounts,
};

/// 2026-11-30 10:00:00 in the zone below.
pub(crate) const NOW: Now = Now { boot: BootId(0xB007), boottime_ms: 10_000_000, wall_ms: 1_796_025_600_000 };

pub(crate) const GENERATION: Generation = Generation(5);

pub(crate) fn zone() -> TimeZone {
    TimeZone::fixed(jiff::tz::offset(2))
}

/// `ms` before now, on both clocks.
fn ago(ms: u64) -> Now {
    Now { boottime_ms: NOW.boottime_ms - ms, wall_ms: NOW.wall_ms - ms as i64, ..NOW }
}

pub(crate) fn uuid(n: u8) -> Uuid {
    Uuid(format!("GPU-5ca1ab1e-0000-4000-8000-00000000000{n}"))
}

/// A job of two GPUs that has been held for two minutes, waits in place 1, or succeeded a second ago.
pub(crate) fn row(id: u64, state: Cursor) -> JobRow {
    let waits = state == Cursor::Queued;
    let done = state == Cursor::Done;
    let wall = |ms: u64, there: bool| there.then(|| ago(ms).wall_ms);
    JobRow {
        id: JobId(id),
        revision: Revision(9),
        generation: GENERATION,
        name: format!("train-{id}"),
        user: "ana".into(),
        project: (id == 17).then(|| "perception".into()),
        kind: WorkKind::Training,
        state,
        paused_by: None,
        editing: None,
        outcome: done.then_some(Outcome::Succeeded),
        tasks: TaskCounts {
            total: 1,
            queued: u32::from(waits),
            active: u32::from(!waits && !done),
            succeeded: u32::from(done),
            ..TaskCounts::default()
        },
        gpus: 2,
        cpus: 8,
        memory: Bytes::gib(64),
        priority: Priority::NORMAL,
        rank: None,
        submitted_at: ago(180_000).wall_ms,
        rented_at: wall(121_500, !waits),
        started_at: wall(121_250, !waits),
        ended_at: wall(1_500, done),
        done_at: wall(1_000, done),
        limit_at: (!waits).then_some(NOW.wall_ms + 3_478_750),
        limit: Limit::For(Span::secs(3600)),
        closed_gpu_ms: if done { 240_000 } else { 0 },
        closed_core_ms: if done { 960_000 } else { 0 },
        waived_gpu_ms: 0,
        open: if waits || done {
            Vec::new()
        } else {
            vec![OpenLease { lease: LeaseId(9), granted: ago(121_500), gpus: 2, cores: 8 }]
        },
        place: waits.then_some(1),
        why: if waits {
            Some("needs 2 free".into())
        } else if done {
            None
        } else {
            Some("gpu 0,1".into())
        },
        starts_at: waits.then_some(NOW.wall_ms + 600_000),
        starts_by: waits.then_some(NOW.wall_ms + 3_600_000),
        finishes_at: (!done).then_some(NOW.wall_ms + 4_000_000),
        finish_by: None,
        late: false,
        cancel_at: None,
        cancel_by: None,
        retry_at: None,
        retry_of: None,
        staging: None,
        peak_memory: done.then_some(Bytes::gib(3)),
        peak_gpu_memory: None,
        mean_utilisation: done.then_some(71),
        devices: if waits { Vec::new() } else { vec![uuid(0), uuid(1)] },
        gpu_indices: if waits || done { Vec::new() } else { vec![0, 1] },
        command: "python train.py --epochs 30".into(),
        directory: format!("/home/ana/overnight/jobs/{id}-train-{id}").into(),
        log: format!("/home/ana/overnight/jobs/{id}-train-{id}/attempts/1/log.txt").into(),
        warnings: 1,
    }
}

/// The same job whole.
pub(crate) fn detail(id: u64, state: Cursor) -> JobDetail {
    let row = row(id, state);
    let done = state == Cursor::Done;
    let step = |word: &str, at| StepRow { step: word.into(), at };
    JobDetail {
        at: NOW,
        steps: vec![
            step("submit", Some(row.submitted_at)),
            step("rent", row.rented_at),
            step("run", row.started_at),
            step("output", row.ended_at),
            step("release", row.done_at),
        ],
        attempts: vec![AttemptRow {
            task: TaskIx(0),
            attempt: AttemptNo(1),
            state,
            lease: Some(LeaseId(9)),
            devices: vec![uuid(0), uuid(1)],
            granted: Some(ago(121_500)),
            started: Some(ago(121_250)),
            enforcement: Some(Enforcement {
                by: EnforcedBy::CgroupV2,
                memory: true,
                cpus: false,
                processes: true,
                why: None,
            }),
            ended: done.then(|| ago(1_500)),
            returned: done.then(|| ago(1_400)),
            held: Some(Span(120_000)),
            gpu_ms: 240_000,
            waived: false,
            ended_by: done.then_some(EndedBy::Proven),
            outcome: row.outcome.clone(),
            verdict: done.then_some(Verdict::Clean),
        }],
        outputs: vec![(
            TaskIx(0),
            ReturnedFile {
                path: "runs/best.pt".into(),
                kind: OutputKind::Model,
                bytes: Bytes::mib(98),
                blake3: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262".into(),
                partial: false,
            },
        )],
        warnings: vec!["`WANDB_API_KEY` looks like a secret".into()],
        notes: vec!["best.pt was there already: left as best.19.pt".into()],
        spec: serde_json::json!({"work": {"run": "python train.py --epochs 30"}}),
        row,
    }
}

pub(crate) fn gpus() -> Vec<GpuRow> {
    let free = GpuRow {
        uuid: uuid(0),
        index: 0,
        node: "lab1".into(),
        name: "NVIDIA A100 80GB PCIe".into(),
        state: DeviceState::Held { lease: LeaseId(9) },
        jobs: vec![JobId(17)],
        utilisation: Some(93),
        memory_used: Some(Bytes::gib(71)),
        memory_total: Bytes::gib(80),
        temperature_c: Some(68),
        power_w: Some(280),
        processes: vec![GpuProcess {
            pid: 4711,
            name: "python".into(),
            uid: Some(1000),
            user: Some("ana".into()),
            kind: ProcessKind::Compute,
            memory: Some(Bytes::gib(70)),
            token: Some(Token("0123456789abcdef0123456789abcdef".into())),
            ignored: false,
        }],
        detail: None,
        enforced: false,
        idle_since: None,
    };
    let dirty = GpuRow {
        uuid: uuid(1),
        index: 1,
        state: DeviceState::Quarantined(Quarantine { why: "pid 12 stays".into(), since: NOW, lease: None }),
        jobs: Vec::new(),
        utilisation: None,
        memory_used: None,
        temperature_c: None,
        power_w: None,
        processes: Vec::new(),
        detail: Some("pid 12 stays".into()),
        ..free.clone()
    };
    vec![free, dirty]
}

pub(crate) fn meter() -> MeterTable {
    let row = |key: &str, gpu_ms, cost| MeterRow {
        key: key.into(),
        jobs: 3,
        gpu_ms,
        core_ms: gpu_ms * 4,
        waived_gpu_ms: 1_000,
        cost,
    };
    MeterTable {
        since: None,
        until: NOW.wall_ms,
        by: MeterBy::Project,
        rows: vec![
            row("perception", 7_200_000, Some(3.0)),
            row("=cmd, \"x\"", 3_600_000, None),
            row("", 1, None),
        ],
        held_now: 2,
    }
}
