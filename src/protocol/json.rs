//! The public JSON documents: `ls`, `show`, `gpus`, `meter` and `receipt.json`. Stable, versioned.
//!
//! Made from the protocol's rows by pure functions; the order of fields is the order of the documents. Times are RFC 3339
//! with the zone's offset, durations integer milliseconds, memory bytes, and what is unknown is null.

pub use super::json_news::{About, News};
use super::{
    AttemptRow, Edited, GpuRow, JobDetail, JobRow, MeterBy, MeterRow, MeterTable, TaskCounts, UndoRow,
};
use crate::model::{Failure, GpuProcess, Now, Outcome, ProcessKind, Verdict, WorkKind, is_unsafe};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Write};

pub use super::receipt::receipt_markdown;

/// The version of these documents.
pub const SCHEMA: u32 = 1;

/// A document as text, on one line. Nothing is lost of it, and nothing in it acts on a terminal: see [`escape`].
pub fn text(document: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(document).map(escaped)
}

/// Likewise, with indented lines.
pub fn pretty(document: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(document).map(escaped)
}

fn escaped(text: String) -> String {
    match escape(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// Writes control, escape, bidirectional and invisible characters in the strings of a JSON text as `\u` escapes: for
/// whoever reads the JSON they are the same.
pub fn escape(json: &str) -> Cow<'_, str> {
    // Line feeds and tabs stand between values only: inside of strings JSON has them escaped already.
    let acts = |c: char| !matches!(c, '\n' | '\t') && is_unsafe(c);
    if !json.contains(acts) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A moment, written as RFC 3339 with the offset of a zone.
#[derive(Debug, Clone, Copy)]
pub struct At<'a>(pub i64, pub &'a TimeZone);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond what a calendar holds only for a damaged record: the nearest end then.
        let at = Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        at.display_with_offset(self.1.to_offset(at)).fmt(f)
    }
}

impl Serialize for At<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `ls --json`.
#[derive(Debug, Serialize)]
pub struct Ls<'a> {
    schema: u32,
    jobs: Vec<Job<'a>>,
}

/// `show --json` and `receipt.json`.
#[derive(Debug, Serialize)]
pub struct Show<'a> {
    schema: u32,
    #[serde(flatten)]
    job: Job<'a>,
    steps: Vec<Step<'a>>,
    attempts: Vec<Attempt<'a>>,
    outputs: Vec<Output<'a>>,
    /// Said at acceptance, and then what the attempts had to say: hints, numbered names, links not followed.
    warnings: Vec<&'a str>,
    spec: &'a serde_json::Value,
    directory: String,
    log: String,
}

/// `gpus --json`.
#[derive(Debug, Serialize)]
pub struct Gpus<'a> {
    schema: u32,
    gpus: Vec<Gpu<'a>>,
}

/// `meter --json`.
#[derive(Debug, Serialize)]
pub struct Meter<'a> {
    schema: u32,
    since: Option<At<'a>>,
    until: At<'a>,
    by: MeterBy,
    rows: &'a [MeterRow],
    held_now: HeldNow,
}

#[derive(Debug, Serialize)]
struct HeldNow {
    gpus: u32,
}

#[derive(Debug, Serialize)]
struct Job<'a> {
    id: u64,
    name: &'a str,
    user: &'a str,
    project: Option<&'a str>,
    kind: WorkKind,
    state: &'static str,
    paused: bool,
    outcome: Option<End>,
    tasks: TaskCounts,
    gpus: u32,
    cpus: u32,
    priority: i16,
    rank: Option<i64>,
    submitted_at: At<'a>,
    rented_at: Option<At<'a>>,
    started_at: Option<At<'a>>,
    ended_at: Option<At<'a>>,
    done_at: Option<At<'a>>,
    limit_at: Option<At<'a>>,
    gpu_ms: u64,
    core_ms: u64,
    waived_gpu_ms: u64,
    place: Option<u32>,
    why: Option<&'a str>,
    starts_at: Option<At<'a>>,
    starts_by: Option<At<'a>>,
    finishes_at: Option<At<'a>>,
    finish_by: Option<At<'a>>,
    late: bool,
    cancel_at: Option<At<'a>>,
    /// Only while somebody edits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_until: Option<At<'a>>,
    retry_at: Option<At<'a>>,
    retry_of: Option<u64>,
    staging: Option<&'a str>,
    /// Nothing tells the progress of a job's own work yet.
    progress: Option<f64>,
    peak_memory: Option<u64>,
    mean_utilisation: Option<u8>,
    devices: Vec<&'a str>,
    generation: u64,
}

#[derive(Debug, Serialize)]
struct End {
    kind: &'static str,
    code: Option<i32>,
    signal: Option<i32>,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Step<'a> {
    step: &'a str,
    at: Option<At<'a>>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the words of the document")]
struct Attempt<'a> {
    task: u32,
    attempt: u32,
    lease: Option<u64>,
    devices: Vec<&'a str>,
    boot: Option<String>,
    granted_at: Option<At<'a>>,
    started_at: Option<At<'a>>,
    ended_at: Option<At<'a>>,
    returned_at: Option<At<'a>>,
    held_ms: Option<u64>,
    gpu_ms: u64,
    waived: bool,
    ended_by: Option<&'static str>,
    outcome: Option<End>,
    /// Null if it never held anything.
    release: Option<Release<'a>>,
}

#[derive(Debug, Serialize)]
struct Release<'a> {
    verdict: &'static str,
    detail: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    task: u32,
    path: String,
    kind: crate::model::OutputKind,
    bytes: u64,
    blake3: &'a str,
    partial: bool,
}

#[derive(Debug, Serialize)]
struct Gpu<'a> {
    uuid: &'a str,
    index: u32,
    node: &'a str,
    name: &'a str,
    state: &'static str,
    jobs: Vec<u64>,
    utilisation: Option<u8>,
    memory_used: Option<u64>,
    memory_total: u64,
    temperature_c: Option<i32>,
    power_w: Option<u32>,
    processes: Vec<Process<'a>>,
    detail: Option<&'a str>,
    enforced: bool,
}

/// Without the token: that is between the scheduler and its jobs.
#[derive(Debug, Serialize)]
struct Process<'a> {
    pid: u32,
    name: &'a str,
    uid: Option<u32>,
    user: Option<&'a str>,
    kind: ProcessKind,
    memory: Option<u64>,
    ignored: bool,
}

/// The document of `ls --json`; `now` is what running meters are read at.
pub fn ls<'a>(rows: &'a [JobRow], now: &Now, zone: &'a TimeZone) -> Ls<'a> {
    Ls { schema: SCHEMA, jobs: rows.iter().map(|row| job(row, now, zone)).collect() }
}

/// The document of `show --json`. Of a job that is done it is final: `receipt.json`.
pub fn show<'a>(detail: &'a JobDetail, zone: &'a TimeZone) -> Show<'a> {
    Show {
        schema: SCHEMA,
        job: job(&detail.row, &detail.at, zone),
        steps: detail
            .steps
            .iter()
            .map(|step| Step { step: &step.step, at: step.at.map(|at| At(at, zone)) })
            .collect(),
        attempts: detail.attempts.iter().map(|row| attempt(row, zone)).collect(),
        outputs: detail
            .outputs
            .iter()
            .map(|(task, file)| Output {
                task: task.0,
                path: file.path.to_string_lossy().into_owned(),
                kind: file.kind,
                bytes: file.bytes.0,
                blake3: &file.blake3,
                partial: file.partial,
            })
            .collect(),
        warnings: detail.warnings.iter().chain(&detail.notes).map(String::as_str).collect(),
        spec: &detail.spec,
        directory: detail.row.directory.to_string_lossy().into_owned(),
        log: detail.row.log.to_string_lossy().into_owned(),
    }
}

/// The document of `gpus --json`.
pub fn gpus(rows: &[GpuRow]) -> Gpus<'_> {
    Gpus { schema: SCHEMA, gpus: rows.iter().map(gpu).collect() }
}

/// The document of `meter --json`.
pub fn meter<'a>(table: &'a MeterTable, zone: &'a TimeZone) -> Meter<'a> {
    Meter {
        schema: SCHEMA,
        since: table.since.map(|at| At(at, zone)),
        until: At(table.until, zone),
        by: table.by,
        rows: &table.rows,
        held_now: HeldNow { gpus: table.held_now },
    }
}

/// The document of `edit --json`.
pub fn edited(edited: &Edited) -> impl Serialize {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(flatten)]
        edited: &'a Edited,
    }
    Document { schema: SCHEMA, edited }
}

/// The document of `undo --list --json`.
pub fn undoable(rows: &[UndoRow], zone: &TimeZone) -> impl Serialize {
    let row = |row: &UndoRow| {
        let (at, until) = (At(row.at, zone), At(row.until, zone));
        serde_json::json!({
            "id": row.job, "name": row.name, "what": row.what, "by": row.by, "at": at, "until": until
        })
    };
    serde_json::json!({"schema": SCHEMA, "undo": rows.iter().map(row).collect::<Vec<_>>()})
}

fn job<'a>(row: &'a JobRow, now: &Now, zone: &'a TimeZone) -> Job<'a> {
    let at = |ms: Option<i64>| ms.map(|ms| At(ms, zone));
    Job {
        id: row.id.0,
        name: &row.name,
        user: &row.user,
        project: row.project.as_deref(),
        kind: row.kind,
        state: row.state.word(),
        paused: row.paused_by.is_some(),
        outcome: row.outcome.as_ref().map(end),
        tasks: row.tasks,
        gpus: row.gpus,
        cpus: row.cpus,
        priority: row.priority.get(),
        rank: row.rank,
        submitted_at: At(row.submitted_at, zone),
        rented_at: at(row.rented_at),
        started_at: at(row.started_at),
        ended_at: at(row.ended_at),
        done_at: at(row.done_at),
        limit_at: at(row.limit_at),
        gpu_ms: row.gpu_ms(now),
        core_ms: row.core_ms(now),
        waived_gpu_ms: row.waived_gpu_ms,
        place: row.place,
        why: row.why.as_deref(),
        starts_at: at(row.starts_at),
        starts_by: at(row.starts_by),
        finishes_at: at(row.finishes_at),
        finish_by: at(row.finish_by),
        late: row.late,
        cancel_at: at(row.cancel_at),
        edited_until: at(row.editing.as_ref().map(|mark| mark.until)),
        retry_at: at(row.retry_at),
        retry_of: row.retry_of.map(|of| of.0),
        staging: row.staging.as_deref(),
        progress: None,
        peak_memory: row.peak_memory.map(|bytes| bytes.0),
        mean_utilisation: row.mean_utilisation,
        devices: row.devices.iter().map(|uuid| uuid.0.as_str()).collect(),
        generation: row.generation.0,
    }
}

/// An outcome as data: `code` is the work's exit code wherever it exited.
fn end(outcome: &Outcome) -> End {
    let (code, signal, reason) = match outcome {
        Outcome::Succeeded => (Some(0), None, None),
        Outcome::Failed(failure) => match failure {
            Failure::Code(code) => (Some(*code), None, Some(failure.to_string())),
            Failure::Signal(signal) => (None, Some(*signal), Some(failure.to_string())),
            Failure::OutOfMemory { .. } => (None, None, Some(failure.to_string())),
            Failure::OutputMissing { .. } => (Some(0), None, Some(failure.to_string())),
        },
        Outcome::LimitReached => (None, None, Some(outcome.to_string())),
        Outcome::Cancelled { by } => (None, None, Some(format!("by {by}"))),
        Outcome::NeverStarted { why } | Outcome::Lost { why } => (None, None, Some(why.clone())),
    };
    End { kind: outcome.word(), code, signal, reason }
}

fn attempt<'a>(row: &'a AttemptRow, zone: &'a TimeZone) -> Attempt<'a> {
    let at = |moment: Option<Now>| moment.map(|moment| At(moment.wall_ms, zone));
    let (verdict, detail) = match &row.verdict {
        None => ("pending", None),
        Some(Verdict::Clean) => ("clean", None),
        Some(Verdict::Quarantined { detail }) => ("quarantined", Some(detail.as_str())),
    };
    Attempt {
        task: row.task.0,
        attempt: row.attempt.0,
        lease: row.lease.map(|lease| lease.0),
        devices: row.devices.iter().map(|uuid| uuid.0.as_str()).collect(),
        boot: row.granted.map(|granted| granted.boot.to_string()),
        granted_at: at(row.granted),
        started_at: at(row.started),
        ended_at: at(row.ended),
        returned_at: at(row.returned),
        held_ms: row.held.map(|span| span.0),
        gpu_ms: row.gpu_ms,
        waived: row.waived,
        ended_by: row.ended_by.map(crate::model::EndedBy::word),
        outcome: row.outcome.as_ref().map(end),
        release: row.lease.map(|_| Release { verdict, detail }),
    }
}

fn gpu(row: &GpuRow) -> Gpu<'_> {
    Gpu {
        uuid: &row.uuid.0,
        index: row.index,
        node: &row.node,
        name: &row.name,
        state: row.state.word(),
        jobs: row.jobs.iter().map(|job| job.0).collect(),
        utilisation: row.utilisation,
        memory_used: row.memory_used.map(|bytes| bytes.0),
        memory_total: row.memory_total.0,
        temperature_c: row.temperature_c,
        power_w: row.power_w,
        processes: row.processes.iter().map(process).collect(),
        detail: row.detail.as_deref(),
        enforced: row.enforced,
    }
}

fn process(process: &GpuProcess) -> Process<'_> {
    Process {
        pid: process.pid,
        name: &process.name,
        uid: process.uid,
        user: process.user.as_deref(),
        kind: process.kind,
        memory: process.memory.map(|bytes| bytes.0),
        ignored: process.ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_nothing_acts() {
        let hostile =
            "\u{1b}]52;c;\u{7}\u{9b}31m\u{7f}\u{202e}\u{200b}\u{feff}\u{e0041}\n\t\"\\ \u{65e5}\u{fffd}";
        for json in [text(&[hostile]).unwrap(), pretty(&[hostile]).unwrap()] {
            assert!(!json.chars().any(|c| c != '\n' && is_unsafe(c)), "{json}");
            let back: Vec<String> = serde_json::from_str(&json).unwrap();
            assert_eq!(back, [hostile]);
            assert_eq!(escape(&json), json);
        }
    }
}
