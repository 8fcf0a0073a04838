//! Records of numbers, names, moments and paths.

use super::{Record, RecordError, record};
use crate::model::{
    AttemptNo, BootId, Bytes, Generation, JobId, LeaseId, Now, Owner, Priority, Span, SubmissionId, TaskIx,
    Token, Uuid,
};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Types that are stored as they are.
macro_rules! plain {
    ($($ty:ty),+ $(,)?) => {
        $(impl Record<$ty> for $ty {
            fn of(model: &$ty) -> Self {
                model.clone()
            }
            fn restore(self) -> Result<$ty, RecordError> {
                Ok(self)
            }
        })+
    };
}

plain!(bool, u8, u32, u64, i32, i64, i128, String, BTreeMap<String, String>);

/// Newtypes that are stored as what they wrap.
macro_rules! wrapped {
    ($($model:ident($ty:ty)),+ $(,)?) => {
        $(impl Record<$model> for $ty {
            fn of(model: &$model) -> Self {
                model.0.clone()
            }
            fn restore(self) -> Result<$model, RecordError> {
                Ok($model(self))
            }
        })+
    };
}

wrapped!(
    JobId(u64),
    SubmissionId(u64),
    LeaseId(u64),
    Generation(u64),
    Bytes(u64),
    Span(u64),
    TaskIx(u32),
    AttemptNo(u32),
    Uuid(String),
    Token(String),
);

impl Record<Priority> for i16 {
    fn of(model: &Priority) -> Self {
        model.get()
    }
    fn restore(self) -> Result<Priority, RecordError> {
        let priority = Priority::clamped(i64::from(self));
        if priority.get() == self {
            Ok(priority)
        } else {
            Err(RecordError::Value { what: "a priority beyond ±100" })
        }
    }
}

impl Record<BootId> for String {
    fn of(model: &BootId) -> Self {
        model.to_string()
    }
    fn restore(self) -> Result<BootId, RecordError> {
        BootId::parse(&self).ok_or(RecordError::Value { what: "a boot id that is none" })
    }
}

record! {
    /// One moment on both clocks.
    struct NowRecord for Now { boot: String, boottime_ms: u64, wall_ms: i64 }
}

record! {
    /// The account a job belongs to.
    struct OwnerRecord for Owner { uid: u32, name: String }
}

/// A path: text where it is UTF-8, its bytes where it is not, since a returned file may have any name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathRecord(PathBuf);

impl Record<PathBuf> for PathRecord {
    fn of(model: &PathBuf) -> Self {
        Self(model.clone())
    }
    fn restore(self) -> Result<PathBuf, RecordError> {
        Ok(self.0)
    }
}

impl Serialize for PathRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(self.0.as_os_str().as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for PathRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Path;
        impl<'de> Visitor<'de> for Path {
            type Value = PathRecord;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a path as text or as bytes")
            }
            fn visit_str<E>(self, text: &str) -> Result<PathRecord, E> {
                Ok(PathRecord(PathBuf::from(text)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PathRecord, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element::<u8>()? {
                    bytes.push(byte);
                }
                Ok(PathRecord(PathBuf::from(OsString::from_vec(bytes))))
            }
        }
        deserializer.deserialize_any(Path)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for PathRecord {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PathRecord".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["string", "array"], "items": {"type": "integer"}})
    }
}
