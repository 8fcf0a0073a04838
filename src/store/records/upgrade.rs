//! The way up from older shapes: a chain of small steps, each from one version to the next.

use super::{RECORD_VERSION, RecordError};
use serde_json::Value;

/// What a step is given: the table a value is in, and the value as the older version stored it.
pub(in crate::store) type Step = fn(table: &str, value: Value) -> Result<Value, RecordError>;

/// The step that leads on from each version: `STEPS[0]` makes version 2 out of version 1.
const STEPS: &[Step] = &[enforcement];

/// Version 2 says what an attempt was held to, and when what outlived its kill went: both are null where they are not
/// there, which is what they are in all that version 1 knows.
#[expect(clippy::unnecessary_wraps, reason = "other steps may fail")]
fn enforcement(_table: &str, value: Value) -> Result<Value, RecordError> {
    Ok(value)
}

/// Brings one value from version `from` to today's.
pub(in crate::store) fn upgrade(from: u32, table: &str, bytes: &[u8]) -> Result<Vec<u8>, RecordError> {
    climb(STEPS, (from, RECORD_VERSION), table, bytes)
}

/// [`upgrade`] with another chain.
pub(super) fn climb(
    steps: &[Step],
    (from, to): (u32, u32),
    table: &str,
    bytes: &[u8],
) -> Result<Vec<u8>, RecordError> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|source| RecordError::Json { source })?;
    for version in from..to {
        let step = version.checked_sub(1).and_then(|ix| steps.get(ix as usize));
        let step = step.ok_or(RecordError::NoStep { from: version })?;
        value = step(table, value)?;
    }
    serde_json::to_vec(&value).map_err(|source| RecordError::Json { source })
}
