//! stub
use super::error::CollectError;
use crate::model::{Collect, Collected};
/// Gathers, checks and hands over the output of one attempt.
pub fn collect(order: &Collect) -> Result<Collected, CollectError> {
    let _ = order;
    Ok(Collected::default())
}
