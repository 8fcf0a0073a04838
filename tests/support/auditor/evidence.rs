//! The store as evidence: a copy of its file, read through redb and plain JSON, without any of the program's own code.
//!
//! Names of tables, keys and fields are those on disk; a row that does not read is a finding of its own.

use super::Findings;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

type Numbered = TableDefinition<'static, u64, &'static [u8]>;
const EVENTS: Numbered = TableDefinition::new("events");
const JOBS: Numbered = TableDefinition::new("jobs");
const LEASES: Numbered = TableDefinition::new("leases");
const SUBMISSIONS: Numbered = TableDefinition::new("submissions");
const DROPS: Numbered = TableDefinition::new("drops");
const DEVICES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("devices");

/// A moment on both clocks, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Moment {
    pub(crate) boot: String,
    pub(crate) boottime_ms: u64,
    pub(crate) wall_ms: i64,
}

/// An event with its place in the log.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Logged {
    pub(crate) seq: u64,
    pub(crate) at: Moment,
    pub(crate) event: Fact,
}

/// What identifies a drop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Ident {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) ctime_ns: i128,
    pub(crate) hash: String,
}

/// As much of an event as is audited.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fact {
    SubmissionAccepted { submission: u64, ident: Option<Ident> },
    JobAccepted { job: u64, submission: u64, spec: Spec, after: Vec<After>, retry_of: Option<u64> },
    DependencyResolved { job: u64, name: String, on: u64 },
    AttemptPrepared { job: u64, task: u32, attempt: u32 },
    LeaseGranted { lease: u64, job: u64, task: u32, attempt: u32, held: Held, token: String },
    AttemptStarted { lease: u64, job: u64, task: u32, attempt: u32, started: Moment },
    AttemptEnded { lease: u64, job: u64, task: u32, attempt: u32, ended: Moment, end: Value },
    LeaseEnded { lease: u64, ended: Moment, by: String, waived: bool, suspended_ms: u64 },
    LeaseReturned { lease: u64, verdict: Value },
    LeaseProven { lease: u64 },
    AttemptReturned { job: u64, task: u32, attempt: u32, outputs: Vec<Output>, outcome: Value },
    AttemptReleased { job: u64, task: u32, attempt: u32 },
    AttemptDropped { job: u64, task: u32, attempt: u32, outcome: Value },
    AttemptNoted { job: u64, task: u32, attempt: u32 },
    RetryQueued { job: u64, task: u32, attempt: u32 },
    JobDone { job: u64, outcome: Value },
    CancelRequested { job: u64 },
    CancelDue { job: u64 },
    CancelWithdrawn { job: u64 },
    PriorityChanged { job: u64 },
    PositionChanged { job: u64 },
    JobPaused { job: u64 },
    JobResumed { job: u64 },
    EditBegan { job: u64 },
    EditEnded { job: u64 },
    JobEdited { job: u64, request: Requested },
    ChangeKept { job: u64 },
    ChangeUndone { job: u64 },
    DeviceChanged { uuid: String, state: Value },
    DeviceFaulted { uuid: String, fault: Value },
    DeviceCleared { uuid: String },
    DeviceClosing { uuid: String },
}

/// What a job asks after an edit.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Requested {
    pub(crate) spec: Spec,
    pub(crate) after: Vec<After>,
}

/// What a job asks, as far as it is audited.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Spec {
    pub(crate) name: String,
}

/// A job that another one waits for.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct After {
    pub(crate) name: String,
    pub(crate) job: Option<u64>,
    pub(crate) must_succeed: bool,
}

/// What a lease holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Held {
    pub(crate) devices: Vec<HeldDevice>,
    pub(crate) cores: u64,
}

/// A device of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct HeldDevice {
    pub(crate) uuid: String,
}

/// A file that came back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Output {
    pub(crate) path: Value,
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
}

/// A row of the table of leases.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LeaseRow {
    pub(crate) id: u64,
    pub(crate) job: u64,
    pub(crate) job_name: String,
    pub(crate) owner: Owner,
    pub(crate) project: Option<String>,
    pub(crate) held: Held,
    pub(crate) token: String,
    pub(crate) granted: Moment,
    pub(crate) heartbeat: Moment,
    pub(crate) ended: Option<Ended>,
    pub(crate) waived: bool,
    pub(crate) suspended_ms: u64,
    pub(crate) returned: Option<Returned>,
}

/// Whose a lease is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Owner {
    pub(crate) name: String,
}

/// When a lease ended, and who says so.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Ended {
    pub(crate) at: Moment,
    pub(crate) by: String,
}

/// When the devices were back.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Returned {
    pub(crate) at: Moment,
    pub(crate) verdict: Value,
}

/// A row of the table of jobs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct JobRow {
    pub(crate) id: u64,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) done: Option<DoneRow>,
}

/// A task of a stored job.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) ix: u32,
    pub(crate) attempts: Vec<AttemptRow>,
}

/// An attempt of a stored job.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AttemptRow {
    pub(crate) number: u32,
    pub(crate) state: Value,
}

/// What a stored job came to.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct DoneRow {
    pub(crate) outcome: Value,
}

/// Everything the store says.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// When the copy began, in milliseconds of boottime: what was durable before is in it.
    pub(crate) copied_ms: u64,
    pub(crate) events: Vec<Logged>,
    /// The bytes of each event, to see that nothing that was once durable changes.
    pub(crate) raw: Vec<Vec<u8>>,
    pub(crate) jobs: BTreeMap<u64, JobRow>,
    pub(crate) leases: BTreeMap<u64, LeaseRow>,
    pub(crate) devices: BTreeMap<String, Value>,
    pub(crate) drops: BTreeMap<u64, Ident>,
    /// Whether the text of each submission is stored.
    pub(crate) submissions: BTreeMap<u64, bool>,
}

impl Evidence {
    /// Reads a copy of a store. The copy may be repaired by redb, as the original would be.
    pub(crate) fn read(copy: &Path, findings: &mut Findings) -> Self {
        match Self::tables(copy, findings) {
            Ok(evidence) => evidence,
            Err(error) => {
                findings.add("I22", format!("the store cannot be read: {error}"));
                Self::default()
            }
        }
    }

    fn tables(copy: &Path, findings: &mut Findings) -> Result<Self, redb::Error> {
        let db = Database::open(copy)?;
        let txn = db.begin_read()?;
        let mut evidence = Self::default();
        for row in txn.open_table(EVENTS)?.iter()? {
            let (seq, bytes) = row?;
            if let Some(event) = decode::<Logged>("event", &seq.value(), bytes.value(), findings) {
                if event.seq != seq.value() {
                    findings.add("I22", format!("event {} is stored under {}", event.seq, seq.value()));
                }
                evidence.events.push(event);
            }
            evidence.raw.push(bytes.value().to_vec());
        }
        for row in txn.open_table(JOBS)?.iter()? {
            let (id, bytes) = row?;
            evidence
                .jobs
                .extend(decode("job", &id.value(), bytes.value(), findings).map(|row| (id.value(), row)));
        }
        for row in txn.open_table(LEASES)?.iter()? {
            let (id, bytes) = row?;
            evidence
                .leases
                .extend(decode("lease", &id.value(), bytes.value(), findings).map(|row| (id.value(), row)));
        }
        for row in txn.open_table(DROPS)?.iter()? {
            let (id, bytes) = row?;
            evidence
                .drops
                .extend(decode("drop", &id.value(), bytes.value(), findings).map(|row| (id.value(), row)));
        }
        for row in txn.open_table(SUBMISSIONS)?.iter()? {
            let (id, bytes) = row?;
            let stored: Option<Value> = decode("submission", &id.value(), bytes.value(), findings);
            let Some(row) = stored else { continue };
            // What is tried again by hand has its first job's text.
            let retry = word(&row["origin"]) == "retry";
            evidence.submissions.insert(id.value(), retry || row["source"] != "");
        }
        for row in txn.open_table(DEVICES)?.iter()? {
            let (uuid, bytes) = row?;
            let uuid = uuid.value().to_owned();
            if let Some(state) = decode("device", &uuid, bytes.value(), findings) {
                evidence.devices.insert(uuid, state);
            }
        }
        Ok(evidence)
    }

    /// The name a job was accepted under.
    pub(crate) fn name_of(&self, job: u64) -> &str {
        self.events
            .iter()
            .find_map(|logged| match &logged.event {
                Fact::JobAccepted { job: found, spec, .. } if *found == job => Some(spec.name.as_str()),
                _ => None,
            })
            .unwrap_or("?")
    }
}

impl Moment {
    /// Milliseconds from an earlier moment of the same boot; `None` across boots or backwards.
    pub(crate) fn after(&self, earlier: &Self) -> Option<u64> {
        (self.boot == earlier.boot).then(|| self.boottime_ms.checked_sub(earlier.boottime_ms)).flatten()
    }
}

/// The word of a stored enum: the text itself, or its only key.
pub(crate) fn word(value: &Value) -> &str {
    match value {
        Value::String(word) => word,
        Value::Object(fields) => fields.keys().next().map_or("?", String::as_str),
        _ => "?",
    }
}

fn decode<T: DeserializeOwned>(
    what: &str,
    key: &dyn std::fmt::Display,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| findings.add("I22", format!("{what} {key} does not read: {error}")))
        .ok()
}
