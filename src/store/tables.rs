//! The tables, and how a batch gets into them.

use super::error::StoreError;
use super::index;
use super::records::{
    DropRecord, JobRecord, LeaseRecord, LoggedEvent, Record, RecordError, StandingRecord, SubmissionRecord,
    decode_record, encode, encode_record,
};
use crate::model::{DropIdent, Event, EventRecord, Job, Lease, LeaseId, Standing, Uuid};
use crate::sched::World;
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use std::collections::HashMap;
use std::path::Path;

/// A table of records by number.
pub(super) type Numbered = TableDefinition<'static, u64, &'static [u8]>;

pub(super) const EVENTS: Numbered = TableDefinition::new("events");
pub(super) const JOBS: Numbered = TableDefinition::new("jobs");
pub(super) const LEASES: Numbered = TableDefinition::new("leases");
pub(super) const SUBMISSIONS: Numbered = TableDefinition::new("submissions");
/// By submission.
pub(super) const DROPS: Numbered = TableDefinition::new("drops");
pub(super) const DEVICES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("devices");
/// Keys of [`index`]; the value is a number or 0.
pub(super) const INDEX: TableDefinition<'static, &[u8], u64> = TableDefinition::new("index");
pub(super) const META: TableDefinition<'static, &str, &str> = TableDefinition::new("meta");

/// What one turn made: its events, and what they fold into. Durable together or not at all.
#[derive(Debug, Default)]
pub struct Batch {
    /// In order, following on what is stored.
    pub events: Vec<EventRecord>,
    /// Jobs that changed, as they are now.
    pub jobs: Vec<Job>,
    /// Leases that changed, as they are now.
    pub leases: Vec<Lease>,
    /// Devices that must be remembered, as they are now.
    pub devices: Vec<(Uuid, Standing)>,
    /// Devices about which there is nothing more to remember.
    pub forget_devices: Vec<Uuid>,
}

impl Batch {
    /// The events of a turn, and the rows that it touched as they are now.
    pub fn of_turn(world: &World, events: &[EventRecord]) -> Self {
        let touched = &world.touched;
        Self {
            events: events.to_vec(),
            jobs: touched.jobs.iter().filter_map(|job| world.queue.get(*job).cloned()).collect(),
            leases: touched.leases.iter().filter_map(|lease| world.lease(*lease).cloned()).collect(),
            devices: touched
                .devices
                .iter()
                .filter_map(|uuid| Some((uuid.clone(), world.pool.get(uuid)?.standing())))
                .collect(),
            forget_devices: Vec::new(),
        }
    }
}

/// A batch as bytes. Encoding may fail, and then only the batch that it fails for.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    events: Vec<(u64, EventOf, Vec<u8>)>,
    submissions: Vec<(u64, Vec<u8>)>,
    drops: Vec<(u64, Vec<u8>, Vec<u8>)>,
    jobs: Vec<(u64, i64, Vec<u8>)>,
    leases: Vec<(u64, i64, Vec<u8>)>,
    devices: Vec<(String, Vec<u8>)>,
    forget_devices: Vec<String>,
}

/// Whose history an event belongs to.
#[derive(Debug, Clone, Copy)]
enum EventOf {
    Job(u64),
    Lease(LeaseId),
    Nobody,
}

impl Encoded {
    /// Encodes a batch whose events must follow on `last_seq`. Also says what the last event is then.
    pub(super) fn new(path: &Path, batch: &Batch, last_seq: u64) -> Result<(Self, u64), StoreError> {
        let mut encoded = Self::default();
        let mut last = last_seq;
        for event in &batch.events {
            if event.seq > last + 1 {
                return Err(StoreError::Gap { path: path.to_owned(), last, found: event.seq });
            }
            last = last.max(event.seq);
            encoded.event(path, event)?;
        }
        for job in &batch.jobs {
            let bytes = encode::<_, JobRecord>(job).map_err(record(path, "job", &job.id))?;
            let done = job.done.as_ref().map_or(index::OPEN, |(at, _)| at.wall_ms);
            encoded.jobs.push((job.id.0, done, bytes));
        }
        for lease in &batch.leases {
            let bytes = encode::<_, LeaseRecord>(lease).map_err(record(path, "lease", &lease.id))?;
            encoded.leases.push((lease.id.0, over_at(lease), bytes));
        }
        for (uuid, standing) in &batch.devices {
            let bytes = encode::<_, StandingRecord>(standing).map_err(record(path, "device", uuid))?;
            encoded.devices.push((uuid.0.clone(), bytes));
        }
        encoded.forget_devices = batch.forget_devices.iter().map(|uuid| uuid.0.clone()).collect();
        Ok((encoded, last))
    }

    fn event(&mut self, path: &Path, event: &EventRecord) -> Result<(), StoreError> {
        let bytes = encode::<_, LoggedEvent>(event).map_err(record(path, "event", &event.seq))?;
        self.events.push((event.seq, event_of(&event.event), bytes));
        if let Event::SubmissionAccepted { submission, owner, origin, ident, source } = &event.event {
            let stored = SubmissionRecord {
                owner: Record::of(owner),
                origin: Record::of(origin),
                source: source.clone(),
            };
            let bytes = encode_record(&stored).map_err(record(path, "submission", submission))?;
            self.submissions.push((submission.0, bytes));
            if let Some(ident) = ident {
                let bytes =
                    encode::<DropIdent, DropRecord>(ident).map_err(record(path, "drop", submission))?;
                self.drops.push((submission.0, index::dropped(ident), bytes));
            }
        }
        Ok(())
    }

    /// Bytes in all, to bound what one commit takes.
    pub(super) fn size(&self) -> usize {
        let numbered = |rows: &[(u64, Vec<u8>)]| rows.iter().map(|row| row.1.len()).sum::<usize>();
        self.events.iter().map(|row| row.2.len()).sum::<usize>()
            + numbered(&self.submissions)
            + self.jobs.iter().map(|row| row.2.len()).sum::<usize>()
    }
}

/// Puts batches into the tables, in order.
pub(super) fn write(txn: &WriteTransaction, batches: &[Encoded]) -> Result<(), redb::Error> {
    let mut index = txn.open_table(INDEX)?;
    let mut jobs_of_leases = HashMap::new();
    let mut leases = txn.open_table(LEASES)?;
    for (id, over, bytes) in batches.iter().flat_map(|batch| &batch.leases) {
        leases.insert(id, bytes.as_slice())?;
        move_in_index(&mut index, index::lease, *id, *over)?;
    }
    let mut jobs = txn.open_table(JOBS)?;
    for (id, done, bytes) in batches.iter().flat_map(|batch| &batch.jobs) {
        jobs.insert(id, bytes.as_slice())?;
        move_in_index(&mut index, index::job, *id, *done)?;
    }
    let mut events = txn.open_table(EVENTS)?;
    for (seq, of, bytes) in batches.iter().flat_map(|batch| &batch.events) {
        events.insert(seq, bytes.as_slice())?;
        let job = match of {
            EventOf::Job(job) => Some(*job),
            EventOf::Lease(lease) => *jobs_of_leases
                .entry(*lease)
                .or_insert(leases.get(lease.0)?.and_then(|bytes| job_of_lease(bytes.value()))),
            EventOf::Nobody => None,
        };
        if let Some(job) = job {
            index.insert(index::event(job, *seq).as_slice(), 0)?;
        }
    }
    write_submissions(txn, &mut index, batches)?;
    write_devices(txn, batches)
}

fn write_submissions(
    txn: &WriteTransaction,
    index: &mut redb::Table<'_, &'static [u8], u64>,
    batches: &[Encoded],
) -> Result<(), redb::Error> {
    if batches.iter().all(|batch| batch.submissions.is_empty()) {
        return Ok(());
    }
    let mut submissions = txn.open_table(SUBMISSIONS)?;
    let mut drops = txn.open_table(DROPS)?;
    for batch in batches {
        for (id, bytes) in &batch.submissions {
            submissions.insert(id, bytes.as_slice())?;
        }
        for (id, key, bytes) in &batch.drops {
            drops.insert(id, bytes.as_slice())?;
            index.insert(key.as_slice(), id)?;
        }
    }
    Ok(())
}

fn write_devices(txn: &WriteTransaction, batches: &[Encoded]) -> Result<(), redb::Error> {
    if batches.iter().all(|batch| batch.devices.is_empty() && batch.forget_devices.is_empty()) {
        return Ok(());
    }
    let mut devices = txn.open_table(DEVICES)?;
    for batch in batches {
        for (uuid, bytes) in &batch.devices {
            devices.insert(uuid.as_str(), bytes.as_slice())?;
        }
        for uuid in &batch.forget_devices {
            devices.remove(uuid.as_str())?;
        }
    }
    Ok(())
}

/// A row is under [`index::OPEN`] until it is over, and then under when that was.
fn move_in_index(
    index: &mut redb::Table<'_, &'static [u8], u64>,
    key: fn(i64, u64) -> [u8; 17],
    id: u64,
    at: i64,
) -> Result<(), redb::Error> {
    if at != index::OPEN {
        index.remove(key(index::OPEN, id).as_slice())?;
    }
    index.insert(key(at, id).as_slice(), 0)?;
    Ok(())
}

/// Where a lease is in the index: open until its devices are back, for it is needed until then.
fn over_at(lease: &Lease) -> i64 {
    match (&lease.ended, &lease.returned) {
        (Some((ended, _)), Some(_)) => ended.wall_ms,
        (None, _) | (_, None) => index::OPEN,
    }
}

fn job_of_lease(bytes: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct JobOf {
        job: u64,
    }
    decode_record::<JobOf>(bytes).ok().map(|lease| lease.job)
}

fn event_of(event: &Event) -> EventOf {
    match event {
        Event::LeaseEnded { lease, .. }
        | Event::LeaseReturned { lease, .. }
        | Event::LeaseProven { lease } => EventOf::Lease(*lease),
        event => event.job().map_or(EventOf::Nobody, |job| EventOf::Job(job.0)),
    }
}

/// Says which value it was that could not be stored or read.
pub(super) fn record(
    path: &Path,
    table: &'static str,
    key: &dyn std::fmt::Display,
) -> impl FnOnce(RecordError) -> StoreError {
    let (path, key) = (path.to_owned(), key.to_string());
    move |source| StoreError::Record { path, table, key, source }
}

/// Says what the database could not do.
pub(super) fn database<E: Into<redb::Error>>(
    path: &Path,
    doing: &'static str,
) -> impl FnOnce(E) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Database { doing, path, source: Box::new(source.into()) }
}
