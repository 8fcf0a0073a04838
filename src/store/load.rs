//! What the scheduler needs to begin.

use super::StoreOptions;
use super::error::StoreError;
use super::records::{DeviceStateRecord, DropRecord, JobRecord, LeaseRecord, decode};
use super::tables::{DEVICES, DROPS, EVENTS, INDEX, JOBS, LEASES, Numbered, SUBMISSIONS, database, record};
use super::{index, open};
use crate::clock;
use crate::model::{DeviceState, DropIdent, Job, JobId, Lease, LeaseId, Revision, SubmissionId, Uuid};
use crate::sched::{Counters, Remembered};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What was stored, as far as the scheduler keeps it in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// All that are not done, and the newest of those that are; by number.
    pub jobs: Vec<Job>,
    /// All that have not been returned, those that ended in the last days, and those of the loaded jobs; by number.
    pub leases: Vec<Lease>,
    /// Devices whose state was to be remembered.
    pub devices: Vec<(Uuid, DeviceState)>,
    /// The last event; 0 if there is none.
    pub last_seq: u64,
    /// The number of the next job.
    pub next_job: JobId,
    /// The number of the next submission.
    pub next_submission: SubmissionId,
    /// The number of the next lease.
    pub next_lease: LeaseId,
    /// The newest drops, oldest first.
    pub drops: Vec<(DropIdent, SubmissionId)>,
    /// The store was created just now.
    pub first_start: bool,
}

impl Loaded {
    /// What a world is made of again.
    pub fn remembered(self) -> Remembered {
        Remembered {
            jobs: self.jobs,
            leases: self.leases,
            devices: self.devices,
            drops: self.drops.into_iter().map(|(ident, _)| ident).collect(),
            counters: Counters {
                seq: self.last_seq,
                job: JobId(self.next_job.0.saturating_sub(1)),
                submission: SubmissionId(self.next_submission.0.saturating_sub(1)),
                lease: LeaseId(self.next_lease.0.saturating_sub(1)),
                revision: Revision(0),
            },
        }
    }
}

/// Reads all of it.
pub(super) fn load(path: &Path, db: &Database, options: &StoreOptions) -> Result<Loaded, StoreError> {
    catch_unwind(AssertUnwindSafe(|| Loader { path, options }.load(db)))
        .unwrap_or_else(|panic| Err(open::damaged(path, open::panic_text(&panic))))
}

struct Loader<'a> {
    path: &'a Path,
    options: &'a StoreOptions,
}

impl Loader<'_> {
    fn load(&self, db: &Database) -> Result<Loaded, StoreError> {
        let txn = db.begin_read().map_err(database(self.path, "read"))?;
        let jobs = self.jobs(&txn)?;
        Ok(Loaded {
            leases: self.leases(&txn, &jobs)?,
            jobs,
            devices: self.devices(&txn)?,
            last_seq: self.last(&txn, EVENTS)?,
            next_job: JobId(self.last(&txn, JOBS)? + 1),
            next_submission: SubmissionId(self.last(&txn, SUBMISSIONS)? + 1),
            next_lease: LeaseId(self.last(&txn, LEASES)? + 1),
            drops: self.drops(&txn)?,
            first_start: false,
        })
    }

    fn jobs(&self, txn: &ReadTransaction) -> Result<Vec<Job>, StoreError> {
        let open = index::job(index::OPEN, 0);
        let mut done = 0;
        let ids = ids(txn, &index::job(i64::MIN, 0), &index::job(index::OPEN, u64::MAX), |key| {
            done += usize::from(key < open.as_slice());
            done <= self.options.done_jobs
        });
        let table = txn.open_table(JOBS).map_err(database(self.path, "read"))?;
        rows(self.path, "job", &table, ids.map_err(database(self.path, "read"))?, |bytes| {
            decode::<Job, JobRecord>(bytes)
        })
    }

    /// Whatever a clock said when a lease ended: without the lease of its attempt a job could not go on, and without those
    /// of the attempts before nobody could say what it has used.
    fn leases(&self, txn: &ReadTransaction, jobs: &[Job]) -> Result<Vec<Lease>, StoreError> {
        let since = clock::wall_ms() - i64::from(self.options.lease_days) * 86_400_000;
        let mut ids = ids(txn, &index::lease(since, 0), &index::lease(index::OPEN, u64::MAX), |_| true)
            .map_err(database(self.path, "read"))?;
        let of_jobs = jobs.iter().flat_map(Job::attempts).filter_map(|(_, attempt)| attempt.state.lease());
        ids.extend(of_jobs.map(|lease| lease.0));
        let table = txn.open_table(LEASES).map_err(database(self.path, "read"))?;
        rows(self.path, "lease", &table, ids, decode::<Lease, LeaseRecord>)
    }

    fn devices(&self, txn: &ReadTransaction) -> Result<Vec<(Uuid, DeviceState)>, StoreError> {
        let table = txn.open_table(DEVICES).map_err(database(self.path, "read"))?;
        let mut devices = Vec::new();
        for row in table.iter().map_err(database(self.path, "read"))? {
            let (uuid, bytes) = row.map_err(database(self.path, "read"))?;
            let uuid = Uuid(uuid.value().to_owned());
            let state =
                decode::<_, DeviceStateRecord>(bytes.value()).map_err(record(self.path, "device", &uuid))?;
            devices.push((uuid, state));
        }
        Ok(devices)
    }

    fn drops(&self, txn: &ReadTransaction) -> Result<Vec<(DropIdent, SubmissionId)>, StoreError> {
        let table = txn.open_table(DROPS).map_err(database(self.path, "read"))?;
        let mut drops = Vec::new();
        for row in table.iter().map_err(database(self.path, "read"))?.rev().take(self.options.drops) {
            let (id, bytes) = row.map_err(database(self.path, "read"))?;
            let id = SubmissionId(id.value());
            let ident = decode::<_, DropRecord>(bytes.value()).map_err(record(self.path, "drop", &id))?;
            drops.push((ident, id));
        }
        drops.reverse();
        Ok(drops)
    }

    fn last(&self, txn: &ReadTransaction, table: Numbered) -> Result<u64, StoreError> {
        let read = || -> Result<u64, redb::Error> {
            Ok(txn.open_table(table)?.last()?.map_or(0, |(id, _)| id.value()))
        };
        read().map_err(database(self.path, "read"))
    }
}

/// The numbers in a stretch of the index, from its end backwards while `keep` says so.
pub(super) fn ids(
    txn: &ReadTransaction,
    from: &[u8],
    to: &[u8],
    mut keep: impl FnMut(&[u8]) -> bool,
) -> Result<Vec<u64>, redb::Error> {
    let table = txn.open_table(INDEX)?;
    let mut ids = Vec::new();
    for row in table.range(from..=to)?.rev() {
        let (key, _) = row?;
        if !keep(key.value()) {
            break;
        }
        ids.extend(index::parts(key.value()).map(|(_, id)| id));
    }
    Ok(ids)
}

/// The values of these numbers, by number.
fn rows<T>(
    path: &Path,
    name: &'static str,
    table: &impl ReadableTable<u64, &'static [u8]>,
    mut ids: Vec<u64>,
    decode: impl Fn(&[u8]) -> Result<T, super::RecordError>,
) -> Result<Vec<T>, StoreError> {
    ids.sort_unstable();
    ids.dedup();
    let mut values = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(bytes) = table.get(id).map_err(database(path, "read"))? {
            values.push(decode(bytes.value()).map_err(record(path, name, &id))?);
        }
    }
    Ok(values)
}
