//! Questions about what is stored, asked on any thread. A read transaction never waits for a commit.

use super::error::StoreError;
use super::load::ids;
use super::records::{JobRecord, LeaseRecord, LoggedEvent, Record, SubmissionRecord, decode, decode_record};
use super::tables::{EVENTS, INDEX, JOBS, LEASES, Numbered, SUBMISSIONS, database, record};
use super::{RecordError, Shared, index};
use crate::model::{DropIdent, Event, EventRecord, Job, JobId, Lease, Origin, Owner, SubmissionId};
use redb::{ReadTransaction, ReadableDatabase};
use std::sync::{Arc, PoisonError};

/// A handle for questions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) shared: Arc<Shared>,
}

/// What came in: one drop or one `submit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubmission {
    /// Whose.
    pub owner: Owner,
    /// Where from.
    pub origin: Origin,
    /// The file's text, as it was.
    pub source: String,
}

impl Reader {
    /// A job by its number.
    pub fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.read(|txn| self.value(txn, (JOBS, "job"), id.0, decode::<Job, JobRecord>))
    }

    /// Jobs that are done, newest first: those that were done before `before` (when, and which), or the newest of all.
    pub fn jobs_done(&self, before: Option<(i64, JobId)>, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.read(|txn| {
            let end = match before {
                Some((done_ms, JobId(0))) => index::job(done_ms.saturating_sub(1), u64::MAX),
                Some((done_ms, JobId(id))) => index::job(done_ms, id - 1),
                None => index::job(index::OPEN - 1, u64::MAX),
            };
            let mut left = limit;
            let ids = ids(txn, &index::job(i64::MIN, 0), &end, |_| {
                let more = left > 0;
                left = left.saturating_sub(1);
                more
            });
            let ids = ids.map_err(self.database())?;
            self.values(txn, (JOBS, "job"), ids, decode::<Job, JobRecord>)
        })
    }

    /// Leases that held something between these two moments of the wall clock, by number.
    pub fn leases_between(&self, since_ms: i64, until_ms: i64) -> Result<Vec<Lease>, StoreError> {
        self.read(|txn| {
            let mut ids =
                ids(txn, &index::lease(since_ms, 0), &index::lease(index::OPEN, u64::MAX), |_| true)
                    .map_err(self.database())?;
            ids.sort_unstable();
            let mut leases = self.values(txn, (LEASES, "lease"), ids, decode::<Lease, LeaseRecord>)?;
            leases.retain(|lease| {
                lease.granted.wall_ms < until_ms
                    && lease.ended.as_ref().is_none_or(|(ended, _)| ended.wall_ms > since_ms)
            });
            Ok(leases)
        })
    }

    /// What came in under this number.
    pub fn submission(&self, id: SubmissionId) -> Result<Option<StoredSubmission>, StoreError> {
        self.read(|txn| {
            self.value(txn, (SUBMISSIONS, "submission"), id.0, |bytes| {
                let SubmissionRecord { owner, origin, source } = decode_record(bytes)?;
                Ok(StoredSubmission { owner: owner.restore()?, origin: origin.restore()?, source })
            })
        })
    }

    /// The submission that a drop became.
    pub fn has_drop(&self, ident: &DropIdent) -> Result<Option<SubmissionId>, StoreError> {
        self.read(|txn| {
            let read = || -> Result<_, redb::Error> {
                let found = txn.open_table(INDEX)?.get(index::dropped(ident).as_slice())?;
                Ok(found.map(|id| SubmissionId(id.value())))
            };
            read().map_err(self.database())
        })
    }

    /// A job's history, in order.
    pub fn events_of(&self, job: JobId) -> Result<Vec<EventRecord>, StoreError> {
        self.read(|txn| {
            let seqs = ids(txn, &index::event(job.0, 0), &index::event(job.0, u64::MAX), |_| true);
            let mut seqs = seqs.map_err(self.database())?;
            seqs.reverse();
            self.values(txn, (EVENTS, "event"), seqs, decode::<EventRecord, LoggedEvent>)
        })
    }

    /// Events after `seq`, in order, `limit` at most. The source of an accepted submission is filled in.
    pub fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
        self.read(|txn| {
            let table = txn.open_table(EVENTS).map_err(self.database())?;
            let mut events = Vec::new();
            for row in table.range(seq + 1..).map_err(self.database())?.take(limit) {
                let (seq, bytes) = row.map_err(self.database())?;
                let mut event = decode::<EventRecord, LoggedEvent>(bytes.value()).map_err(record(
                    &self.shared.path,
                    "event",
                    &seq.value(),
                ))?;
                self.fill_source(txn, &mut event.event)?;
                events.push(event);
            }
            Ok(events)
        })
    }

    fn fill_source(&self, txn: &ReadTransaction, event: &mut Event) -> Result<(), StoreError> {
        if let Event::SubmissionAccepted { submission, source, .. } = event {
            let stored = self.value(txn, (SUBMISSIONS, "submission"), submission.0, |bytes| {
                decode_record::<SubmissionRecord>(bytes)
            })?;
            *source = stored.map(|stored| stored.source).unwrap_or_default();
        }
        Ok(())
    }

    /// Runs a question in a transaction. Holding the lock for its length keeps the file from being opened again under it.
    fn read<T>(
        &self,
        question: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let guard = self.shared.database.read().unwrap_or_else(PoisonError::into_inner);
        let Some(db) = guard.as_ref() else {
            return Err(StoreError::NeedsReopen { path: self.shared.path.clone() });
        };
        let txn = db.begin_read().map_err(self.database())?;
        question(&txn)
    }

    fn value<T>(
        &self,
        txn: &ReadTransaction,
        (table, name): (Numbered, &'static str),
        id: u64,
        decode: impl Fn(&[u8]) -> Result<T, RecordError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.values(txn, (table, name), vec![id], decode)?.pop())
    }

    fn values<T>(
        &self,
        txn: &ReadTransaction,
        (table, name): (Numbered, &'static str),
        ids: Vec<u64>,
        decode: impl Fn(&[u8]) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, StoreError> {
        let table = txn.open_table(table).map_err(self.database())?;
        let mut values = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(bytes) = table.get(id).map_err(self.database())? {
                values.push(decode(bytes.value()).map_err(record(&self.shared.path, name, &id))?);
            }
        }
        Ok(values)
    }

    fn database<E: Into<redb::Error>>(&self) -> impl FnOnce(E) -> StoreError {
        database(&self.shared.path, "read")
    }
}
