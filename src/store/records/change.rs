//! Records of changes to jobs that wait.

use super::job::DependencyRecord;
use super::scalars::{NowRecord, PathRecord};
use super::spec::SpecRecord;
use super::{Record, RecordError, record};
use crate::model::{Change, Changed, EditMark, JobText, Passed, Position, Requested};
use std::sync::Arc;

record! {
    /// Somebody edits a job.
    struct EditMarkRecord for EditMark { by: String, until: NowRecord, generation: u64, priority: i16 }
}

record! {
    /// A job's text, where it is not its submission's.
    struct JobTextRecord for JobText { text: String, base: Option<PathRecord>, at_ms: i64 }
}

record! {
    /// What an edit replaces.
    struct RequestedRecord for Requested {
        spec: SpecRecord,
        warnings: Vec<String>,
        after: Vec<DependencyRecord>,
        priority: i16,
        position: i64,
        ranked: bool,
        file: Option<JobTextRecord>,
    }
}

record! {
    /// A change that can be taken back.
    struct ChangeRecord for Change { at: NowRecord, number: u64, by: String, what: ChangedRecord }
}

record! {
    /// What was changed.
    #[expect(clippy::large_enum_variant, reason = "it lives only while it is being written or read")]
    enum ChangedRecord for Changed {
        Priority { old: i16, new: i16 },
        Place { old: PositionRecord, new: i64, passed: Option<PassedRecord> },
        Paused,
        Resumed { paused_by: String },
        Request { old: RequestedRecord, fields: Vec<String> },
    }
}

record! {
    /// A place in line.
    struct PositionRecord for Position { at: i64, ranked: bool }
}

record! {
    /// A job that another one went past.
    struct PassedRecord for Passed { job: u64, old: i64, new: i64 }
}

/// Values that the model keeps behind a pointer.
macro_rules! behind {
    ($($pointer:ident<$model:ident> as $record:ident),+ $(,)?) => {
        $(impl Record<$pointer<$model>> for $record {
            fn of(model: &$pointer<$model>) -> Self {
                Record::of(model.as_ref())
            }
            fn restore(self) -> Result<$pointer<$model>, RecordError> {
                Record::<$model>::restore(self).map($pointer::new)
            }
        })+
    };
}

behind!(
    Box<EditMark> as EditMarkRecord,
    Box<Requested> as RequestedRecord,
    Box<Change> as ChangeRecord,
    Arc<JobText> as JobTextRecord,
);
