//! What a journal says, and what follows from it. Pure.

use super::{Ended, Heartbeat, Intent, Record};
use crate::model::{EndedBy, Now};
use crate::supervisor::process::ProcessId;

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JournalState {
    /// In the order they were written.
    pub records: Vec<Record>,
    /// The newer of the two slots.
    pub heartbeat: Option<Heartbeat>,
    /// The records end in something that is no record.
    pub torn: bool,
}

impl JournalState {
    /// The last intent: which attempt the journal is about now.
    pub fn intent(&self) -> Option<&Intent> {
        self.records.iter().rev().find_map(|record| match record {
            Record::Intent(intent) => Some(intent),
            _ => None,
        })
    }

    /// The records after the last intent.
    pub fn current(&self) -> &[Record] {
        let last = self.records.iter().rposition(|record| matches!(record, Record::Intent(_)));
        last.map_or(&[], |at| &self.records[at + 1..])
    }

    /// How the current attempt ended.
    pub fn ended(&self) -> Option<&Ended> {
        self.current().iter().find_map(|record| match record {
            Record::Ended(ended) => Some(ended),
            _ => None,
        })
    }

    /// Whether the current attempt ended without some of its processes, which have not been seen to go since.
    pub fn is_outlived(&self) -> bool {
        self.ended().is_some_and(|ended| ended.by == EndedBy::AfterKill)
            && !self.current().iter().any(|record| matches!(record, Record::Gone { .. }))
    }

    /// The main process of the current attempt, if it was started.
    pub fn main(&self) -> Option<ProcessId> {
        self.current().iter().find_map(|record| match record {
            Record::Started { main, .. } => Some(*main),
            _ => None,
        })
    }

    /// Whether nothing is left to do for the current attempt.
    pub fn is_home(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Record::NotLaunched { .. } | Record::Void { .. }))
            || self.current().iter().any(|record| matches!(record, Record::Collected { .. }))
    }

    /// The last moment the supervisor is known to have lived.
    pub fn last_sign(&self) -> Option<Now> {
        let records = self.records.iter().rev().find_map(|record| match record {
            Record::Intent(Intent { at, .. })
            | Record::Started { at, .. }
            | Record::Told { at, .. }
            | Record::Outlived { at, .. }
            | Record::Gone { at, .. }
            | Record::Ended(Ended { at, .. })
            | Record::Collected { at, .. }
            | Record::NotLaunched { at, .. }
            | Record::Returned { at } => Some(*at),
            Record::Void { .. } | Record::Unknown => None,
        });
        let beat = self.heartbeat.map(|heartbeat| heartbeat.at);
        match (records, beat) {
            (Some(record), Some(beat)) if beat.since(&record).is_some_and(|span| span.0 > 0) => Some(beat),
            (None, beat) => beat,
            (record, _) => record,
        }
    }
}
