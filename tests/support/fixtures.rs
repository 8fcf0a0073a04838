//! Snapshots that do not depend on anything: nothing yet, a busy evening, five hundred jobs.

use overnight::model::{
    BootId, Bytes, Cursor, DeviceState, Failure, Generation, JobId, LeaseId, Limit, Now, Outcome, Priority,
    Revision, Span, Uuid, WorkKind,
};
use overnight::protocol::{
    Connection, Diagnostic, Edit, GpuRow, InboxRow, InboxState, JobRow, MeterSummary, Notice, NoticeLevel,
    OpenLease, SchedulerInfo, Severity, Snapshot, TaskCounts, UserMeter,
};
use overnight::supervisor::marks::{Mark, Stream};
use overnight::tui::{Glyphs, LogLine, LogState, LogWindow, Ui, settle};
use std::path::PathBuf;
use std::sync::Arc;

/// 2026-11-30 09:26:40 UTC.
pub(crate) const WALL_MS: i64 = 1_796_030_800_000;

pub(crate) const fn now() -> Now {
    Now { boot: BootId(7), boottime_ms: 500_000_000, wall_ms: WALL_MS }
}

pub(crate) const fn ago(seconds: u64) -> Now {
    Now {
        boot: BootId(7),
        boottime_ms: 500_000_000 - seconds * 1000,
        wall_ms: WALL_MS - seconds as i64 * 1000,
    }
}

/// A job that waits; builders below change what a test is about.
pub(crate) fn job(id: u64, user: &str, name: &str, gpus: u32) -> JobRow {
    JobRow {
        id: JobId(id),
        revision: Revision(id),
        generation: Generation(1),
        name: name.into(),
        user: user.into(),
        project: None,
        kind: WorkKind::Training,
        state: Cursor::Queued,
        paused_by: None,
        editing: None,
        outcome: None,
        tasks: TaskCounts { total: 1, queued: 1, ..TaskCounts::default() },
        gpus,
        cpus: gpus * 8,
        memory: Bytes::gib(u64::from(gpus) * 32),
        priority: Priority::NORMAL,
        rank: None,
        submitted_at: ago(240).wall_ms,
        rented_at: None,
        started_at: None,
        ended_at: None,
        done_at: None,
        limit_at: None,
        limit: Limit::For(Span::secs(3600)),
        closed_gpu_ms: 0,
        closed_core_ms: 0,
        waived_gpu_ms: 0,
        open: Vec::new(),
        place: None,
        why: None,
        starts_at: None,
        starts_by: None,
        finishes_at: None,
        finish_by: None,
        late: false,
        cancel_at: None,
        cancel_by: None,
        retry_at: None,
        retry_of: None,
        staging: None,
        peak_memory: None,
        peak_gpu_memory: None,
        mean_utilisation: None,
        devices: Vec::new(),
        gpu_indices: Vec::new(),
        command: format!("python {name}.py"),
        directory: PathBuf::from(format!("/home/ana/overnight/jobs/{id}-{name}")),
        log: PathBuf::from(format!("/home/ana/overnight/jobs/{id}-{name}/log.txt")),
        warnings: 0,
    }
}

/// Runs since some seconds on these devices.
pub(crate) fn running(mut row: JobRow, seconds: u64, gpus: &[u32]) -> JobRow {
    row.state = Cursor::Running;
    row.rented_at = Some(ago(seconds + 7).wall_ms);
    row.submitted_at = ago(seconds + 14).wall_ms;
    row.started_at = Some(ago(seconds).wall_ms);
    row.limit_at = Some(ago(seconds).wall_ms + 3_600_000);
    row.open = vec![OpenLease {
        lease: LeaseId(row.id.0),
        granted: ago(seconds + 7),
        gpus: row.gpus,
        cores: row.cpus,
    }];
    row.gpu_indices = gpus.to_vec();
    row.devices = gpus.iter().map(|index| uuid(*index)).collect();
    row.tasks = TaskCounts { total: 1, active: 1, ..TaskCounts::default() };
    row
}

/// Ended some seconds ago after having run for some.
pub(crate) fn done(mut row: JobRow, ago_s: u64, ran_s: u64, outcome: Outcome) -> JobRow {
    row.state = Cursor::Done;
    row.submitted_at = ago(ago_s + ran_s + 60).wall_ms;
    row.rented_at = Some(ago(ago_s + ran_s + 2).wall_ms);
    row.started_at = Some(ago(ago_s + ran_s).wall_ms);
    row.ended_at = Some(ago(ago_s).wall_ms);
    row.done_at = Some(ago(ago_s).wall_ms + 400);
    row.closed_gpu_ms = u64::from(row.gpus) * (ran_s + 2) * 1000;
    row.peak_memory = Some(Bytes::mib(6200));
    row.mean_utilisation = Some(83);
    row.outcome = Some(outcome);
    row
}

pub(crate) fn waiting(mut row: JobRow, place: u32, minutes: u64, why: &str) -> JobRow {
    row.place = Some(place);
    row.submitted_at = ago(minutes * 60 + 20).wall_ms;
    row.why = Some(why.into());
    row
}

pub(crate) fn uuid(index: u32) -> Uuid {
    Uuid(format!("GPU-5d1c{index:04}-0000-4000-8000-00000000{index:04}"))
}

pub(crate) fn gpu(index: u32, state: DeviceState, load: Option<u8>, jobs: &[u64]) -> GpuRow {
    GpuRow {
        uuid: uuid(index),
        index,
        node: "lab1".into(),
        name: "NVIDIA A100-SXM4-80GB".into(),
        state,
        jobs: jobs.iter().map(|id| JobId(*id)).collect(),
        utilisation: load,
        memory_used: load.map(|load| Bytes::gib(u64::from(load) * 76 / 100)),
        memory_total: Bytes::gib(80),
        temperature_c: load.map(|load| 33 + i32::from(load) * 2 / 5),
        power_w: load.map(|load| 55 + u32::from(load) * 6),
        processes: Vec::new(),
        detail: None,
        enforced: false,
        idle_since: None,
    }
}

const fn held(lease: u64) -> DeviceState {
    DeviceState::Held { lease: LeaseId(lease) }
}

fn scheduler() -> SchedulerInfo {
    SchedulerInfo {
        version: "0.1.0".into(),
        pid: 4100,
        host: "lab1".into(),
        user: "me".into(),
        root: "/home/ana/overnight".into(),
        inbox: "/home/ana/overnight/inbox".into(),
        since: ago(86_400).wall_ms,
        gpus_by: "simulated".into(),
        cores: 128,
        cores_held: 56,
        memory: Bytes::gib(1024),
        memory_held: Bytes::gib(224),
    }
}

/// A first run: eight free devices.
pub(crate) fn empty() -> Snapshot {
    Snapshot {
        revision: Revision(1),
        at: now(),
        scheduler: scheduler(),
        jobs: Vec::new(),
        history: Vec::new(),
        gpus: (0..8).map(|index| gpu(index, DeviceState::Free, Some(0), &[])).collect(),
        meter: MeterSummary { gpus_total: 8, ..MeterSummary::default() },
        inbox: Vec::new(),
        notices: Vec::new(),
    }
}

fn user(user: &str, held: u32, running: u32, waiting: u32, today: u64, week: u64) -> UserMeter {
    // Hundredths and tenths of GPU-hours.
    UserMeter {
        user: user.into(),
        held,
        running,
        waiting,
        today_gpu_ms: today * 36_000,
        week_gpu_ms: week * 360_000,
    }
}

/// The evening of the wireframes.
pub(crate) fn busy() -> Snapshot {
    let mut out_job = running(job(145, "cy", "render-frames", 1), 12_240, &[]);
    out_job.state = Cursor::Returning;
    out_job.open.clear();
    out_job.closed_gpu_ms = 12_240_000;
    out_job.ended_at = Some(ago(9).wall_ms);
    out_job.why = Some("copying 71%".into());
    let mut rent = running(job(146, "ana", "llama-ft-8b-b", 2), 0, &[6, 7]);
    rent.state = Cursor::Renting;
    rent.started_at = None;
    rent.priority = Priority::clamped(10);
    let mut paused = job(148, "me", "big-eval", 4);
    paused.paused_by = Some("me".into());
    paused.submitted_at = ago(9600).wall_ms;
    let mut eval = running(job(144, "bo", "eval-nightly", 1), 760, &[4]);
    eval.priority = Priority::clamped(-10);
    eval.command = "python eval.py --suite nightly".into();
    let mut wide = waiting(job(147, "ana", "llama-ft-70b", 8), 1, 70, "needs 8 free");
    wide.priority = Priority::clamped(10);
    wide.starts_at = Some(WALL_MS + 3_600_000);
    wide.starts_by = Some(WALL_MS + 9_000_000);
    let mut low = waiting(job(150, "bo", "vit-sweep-04", 2), 5, 22, "low prio");
    low.priority = Priority::clamped(-10);
    let jobs = vec![
        running(job(142, "ana", "llama-ft-8b", 2), 3720, &[0, 1]),
        running(job(143, "bo", "vit-sweep-03", 2), 2340, &[2, 3]),
        eval,
        out_job,
        rent,
        wide,
        waiting(job(151, "me", "tokenise-wiki", 1), 2, 4, "next"),
        waiting(job(152, "me", "tokenise-books", 1), 3, 4, "after #151"),
        waiting(job(149, "cy", "diffusion-xl", 4), 4, 31, "user cap 2"),
        low,
        paused,
    ];
    let history = vec![
        done(job(141, "ana", "llama-ft-8b-a", 2), 2100, 14_400, Outcome::Succeeded),
        done(job(140, "me", "tokenise-test", 1), 2800, 1500, Outcome::Succeeded),
        done(job(139, "cy", "diffusion-xl", 1), 4500, 390, Outcome::Failed(Failure::Code(1))),
        done(job(138, "bo", "vit-sweep-02", 2), 5300, 3950, Outcome::LimitReached),
        done(job(137, "bo", "vit-sweep-01", 2), 7000, 1300, Outcome::Cancelled { by: "bo".into() }),
        done(job(136, "me", "probe", 1), 9000, 30, Outcome::Lost { why: "GPU 3 fell off the bus".into() }),
    ];
    Snapshot {
        revision: Revision(900),
        jobs: jobs.into_iter().map(Arc::new).collect(),
        history: history.into_iter().map(Arc::new).collect(),
        gpus: vec![
            gpu(0, held(142), Some(93), &[142]),
            gpu(1, held(142), Some(91), &[142]),
            gpu(2, held(143), Some(66), &[143]),
            gpu(3, held(143), Some(58), &[143]),
            gpu(4, held(144), Some(21), &[144]),
            gpu(5, DeviceState::Free, Some(0), &[]),
            gpu(6, held(146), Some(0), &[146]),
            gpu(7, held(146), None, &[146]),
        ],
        meter: MeterSummary {
            gpus_held: 7,
            gpus_total: 8,
            today_began: ago(34_000).wall_ms,
            today_gpu_ms: 6102 * 36_000,
            today_ok: 18,
            today_failed: 2,
            today_lost: 0,
            day_began: WALL_MS - 47 * 1_800_000 - 900_000,
            // GPU-milliseconds of eight GPUs in half an hour, in eighths of all; the last step is half over.
            day: (0..48_u64).map(|n| (n * 5 % 9) * 1_800_000 / if n == 47 { 2 } else { 1 }).collect(),
            users: vec![
                user("ana", 4, 2, 1, 3011, 2124),
                user("bo", 3, 2, 1, 1490, 1010),
                user("cy", 0, 0, 1, 961, 775),
                user("me", 0, 0, 3, 640, 218),
            ],
        },
        inbox: vec![
            InboxRow {
                name: "sweep.yaml".into(),
                at: ago(300).wall_ms,
                state: InboxState::Refused { diagnostics: vec![unknown_field()] },
            },
            InboxRow {
                name: "eval-nightly.yaml".into(),
                at: ago(774).wall_ms,
                state: InboxState::Accepted { jobs: vec![JobId(144)], warnings: Vec::new() },
            },
            InboxRow {
                name: "half.yaml".into(),
                at: ago(2).wall_ms,
                state: InboxState::Waiting { why: "being edited".into() },
            },
        ],
        notices: vec![Notice {
            level: NoticeLevel::Warning,
            text: "GPU 7 has not answered for 4 s: its figures are unknown".into(),
            job: None,
        }],
        ..empty()
    }
}

pub(crate) fn unknown_field() -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: 12,
        message: "unknown field `gpu_count`".into(),
        file: "~/overnight/inbox/sweep.yaml".into(),
        line: 7,
        column: 3,
        width: 9,
        source: Some("  gpu_count: 2".into()),
        label: Some("not a field of request".into()),
        hint: Some("did you mean `gpus`?".into()),
        known: ["gpus", "gpu_memory", "gpu_model", "share", "cpus", "for"].map(String::from).to_vec(),
        fix: Some(Edit { line: 7, column: 3, width: 9, text: "gpus".into() }),
    }
}

/// Five hundred in line behind the busy ones, five hundred done.
pub(crate) fn many() -> Snapshot {
    let mut snap = busy();
    for n in 0..489_u64 {
        let name = format!("sweep-lr{:03}-seed{}", n % 97, n % 7);
        let row = waiting(
            job(1000 + n, ["ana", "bo", "cy", "me"][n as usize % 4], &name, 1),
            6 + n as u32,
            n,
            "behind others",
        );
        snap.jobs.push(Arc::new(row));
    }
    for n in 0..500_u64 {
        let row = done(job(500 + n, "ana", &format!("old-{n}"), 1), 10_000 + n * 60, 600, Outcome::Succeeded);
        snap.history.push(Arc::new(row));
    }
    snap
}

/// The state of somebody who has just opened the dashboard over `snap`.
pub(crate) fn ui(snap: &Snapshot, size: (u16, u16), glyphs: Glyphs) -> Ui {
    let mut ui = Ui::new(now(), jiff::tz::TimeZone::UTC, glyphs);
    ui.size = size;
    ui.connection = Connection::Live;
    ui.known = true;
    if snap.jobs.len() > 2 {
        ui.queue_job = Some(JobId(144));
        ui.log = log();
    }
    settle(&mut ui, snap);
    ui
}

/// Forty lines of the job under the cursor.
pub(crate) fn log() -> overnight::tui::LogView {
    let path = job(144, "bo", "eval-nightly", 1).log;
    let mut lines = Vec::new();
    let mut at = 0;
    for n in 0..40 {
        let text =
            format!("09:{:02}:{:02} step {}/5000 acc 0.{}", 20 + n / 10, n % 10 * 6, 1000 + n * 20, 700 + n);
        let len = text.len() as u64 + 1;
        let second = Some(WALL_MS / 1000 - 400 + n * 6);
        let mark = Mark { at, second, stream: Some(Stream::Out) };
        lines.push(LogLine { at, end: at + len - 1, text, mark });
        at += len;
    }
    let window = LogWindow {
        path: path.clone(),
        lines,
        begin: 0,
        end: at,
        size: at,
        state: LogState::There,
        ..LogWindow::default()
    };
    overnight::tui::LogView { path, window, ..overnight::tui::LogView::default() }
}
