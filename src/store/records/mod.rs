//! The stored shapes: versioned types of the store's own, as JSON.
//!
//! Model types are not stored directly, so that renaming a field in the model cannot change what is on disk unnoticed:
//! the names here are the names on disk. A model type that gains a field does not compile until its record has one too;
//! a record that changes fails the fingerprint test until [`RECORD_VERSION`] counts on and [`upgrade`] has a step.

mod change;
mod event;
mod job;
mod lease;
mod scalars;
mod spec;
pub(super) mod upgrade;

#[cfg(test)]
mod tests;

#[cfg(test)]
use event::OriginRecord;
pub(super) use event::{DropRecord, LoggedEvent, SubmissionRecord};
pub(super) use job::JobRecord;
pub(super) use lease::{LeaseRecord, StandingRecord};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The version of all shapes below. Stored once for the file; a file of another version is upgraded or refused.
pub(super) const RECORD_VERSION: u32 = 3;

/// Why a value cannot be stored or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It is not the JSON of its record.
    #[error("is not what this version stores")]
    Json {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A field holds what it cannot hold.
    #[error("holds {what}")]
    Value {
        /// What.
        what: &'static str,
    },
    /// No step leads on from this version.
    #[error("has format {from}, for which there is no way up")]
    NoStep {
        /// The version.
        from: u32,
    },
}

/// The stored shape of a model type.
pub(super) trait Record<M>: Sized {
    /// The record of a value.
    fn of(model: &M) -> Self;
    /// The value of a record.
    fn restore(self) -> Result<M, RecordError>;
}

/// A value's bytes.
pub(super) fn encode<M, R: Record<M> + Serialize>(model: &M) -> Result<Vec<u8>, RecordError> {
    encode_record(&R::of(model))
}

/// A record's bytes.
pub(super) fn encode_record<R: Serialize>(record: &R) -> Result<Vec<u8>, RecordError> {
    serde_json::to_vec(record).map_err(|source| RecordError::Json { source })
}

/// A value out of its bytes.
pub(super) fn decode<M, R: Record<M> + DeserializeOwned>(bytes: &[u8]) -> Result<M, RecordError> {
    decode_record::<R>(bytes)?.restore()
}

/// A record out of its bytes.
pub(super) fn decode_record<R: DeserializeOwned>(bytes: &[u8]) -> Result<R, RecordError> {
    serde_json::from_slice(bytes).map_err(|source| RecordError::Json { source })
}

impl<M, R: Record<M>> Record<Option<M>> for Option<R> {
    fn of(model: &Option<M>) -> Self {
        model.as_ref().map(R::of)
    }
    fn restore(self) -> Result<Option<M>, RecordError> {
        self.map(R::restore).transpose()
    }
}

impl<M, R: Record<M>> Record<Vec<M>> for Vec<R> {
    fn of(model: &Vec<M>) -> Self {
        model.iter().map(R::of).collect()
    }
    fn restore(self) -> Result<Vec<M>, RecordError> {
        // Not by `collect`, which keeps the room that JSON's list grew into: most lists here have one entry.
        let mut models = Vec::with_capacity(self.len());
        for record in self {
            models.push(record.restore()?);
        }
        Ok(models)
    }
}

/// Declares a record and both ways between it and its model type. The model is taken apart by name, so that neither
/// can gain a field or a variant alone.
macro_rules! record {
    ($(#[$meta:meta])* struct $name:ident for $model:ident { $($field:ident: $ty:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub(crate) struct $name { $(pub(crate) $field: $ty),+ }

        impl $crate::store::records::Record<$model> for $name {
            fn of(model: &$model) -> Self {
                let $model { $($field),+ } = model;
                Self { $($field: $crate::store::records::Record::of($field)),+ }
            }
            fn restore(self) -> Result<$model, $crate::store::records::RecordError> {
                let Self { $($field),+ } = self;
                Ok($model { $($field: $crate::store::records::Record::restore($field)?),+ })
            }
        }
    };
    ($(#[$meta:meta])* enum $name:ident for $model:ident {
        $($variant:ident $( ( $bind:ident: $inner:ty ) )? $( { $($field:ident: $ty:ty),+ $(,)? } )? ),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub(crate) enum $name { $($variant $( ($inner) )? $( { $($field: $ty),+ } )? ),+ }

        impl $crate::store::records::Record<$model> for $name {
            fn of(model: &$model) -> Self {
                match model {
                    $($model::$variant $( ($bind) )? $( { $($field),+ } )? => Self::$variant
                        $( ($crate::store::records::Record::of($bind)) )?
                        $( { $($field: $crate::store::records::Record::of($field)),+ } )? ),+
                }
            }
            fn restore(self) -> Result<$model, $crate::store::records::RecordError> {
                Ok(match self {
                    $(Self::$variant $( ($bind) )? $( { $($field),+ } )? => $model::$variant
                        $( ($crate::store::records::Record::restore($bind)?) )?
                        $( { $($field: $crate::store::records::Record::restore($field)?),+ } )? ),+
                })
            }
        }
    };
}
use record;
