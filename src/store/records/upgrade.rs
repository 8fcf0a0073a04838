//! The way up from older shapes: a chain of small steps, each from one version to the next.

use super::{RECORD_VERSION, RecordError};
use serde_json::{Value, json};

/// What a step is given: the table a value is in, and the value as the older version stored it.
pub(in crate::store) type Step = fn(table: &str, value: Value) -> Result<Value, RecordError>;

/// The step that leads on from each version: `STEPS[0]` makes version 2 out of version 1.
const STEPS: &[Step] = &[devices_have_a_standing, jobs_have_changes];

/// 1 to 2: beside its state, what stands between a device and the next grant is remembered. What an attempt was held to,
/// and when what outlived its kill went, are null where they are not there, which is what they are in all that 1 knows.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a step")]
fn devices_have_a_standing(table: &str, value: Value) -> Result<Value, RecordError> {
    Ok(if table == "devices" {
        json!({"state": value, "close": null, "fault": null, "accepted": null})
    } else {
        value
    })
}

/// 2 to 3: what was changed about a job that waits is remembered. Neither has it been edited, nor is it being, in all that
/// 2 knows: these are null where they are not there, as is the highest memory in use on an attempt's devices.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a step")]
fn jobs_have_changes(table: &str, mut value: Value) -> Result<Value, RecordError> {
    if table == "jobs"
        && let Some(job) = value.as_object_mut()
    {
        job.insert("changes".to_owned(), json!([]));
    }
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
