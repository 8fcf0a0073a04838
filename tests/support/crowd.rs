//! A crowded machine.

use super::fixtures::{gpu, job, many, waiting};
use overnight::model::DeviceState;
use overnight::protocol::Snapshot;
use std::sync::Arc;

/// So many jobs in line on 64 devices, and the last thousand done.
pub(crate) fn crowd(jobs: u64) -> Snapshot {
    let mut snap = many();
    for n in 0..jobs.saturating_sub(snap.jobs.len() as u64) {
        let name = format!("sweep-lr{:04}-seed{}", n % 997, n % 7);
        let user = ["ana", "bo", "cy", "me"][n as usize % 4];
        let row =
            waiting(job(20_000 + n, user, &name, 1 + n as u32 % 8), 500 + n as u32, n % 300, "behind others");
        snap.jobs.push(Arc::new(row));
    }
    for index in 8..64 {
        let load = Some((index % 100) as u8);
        snap.gpus.push(gpu(index, DeviceState::Free, load, &[]));
    }
    snap
}
