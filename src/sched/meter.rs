//! The meter: sums over lease records. Integer milliseconds; recomputing gives the same integer.
//!
//! A lease covers `[granted, granted + held)` on the wall clock as it was when it was granted, so that days and any
//! other cut of time sum exactly to the whole.

use crate::model::{Lease, Now};
use crate::protocol::{MeterBy, MeterRow, MeterTable};
use std::collections::{BTreeMap, BTreeSet};

/// The local day that a wall time belongs to: its name, and when the next one begins.
pub type DayOf<'a> = &'a dyn Fn(i64) -> (String, i64);

/// What to sum.
#[derive(Clone, Copy)]
pub struct Cut<'a> {
    /// Rows by what.
    pub by: MeterBy,
    /// From, wall milliseconds.
    pub since: Option<i64>,
    /// To, wall milliseconds.
    pub until: Option<i64>,
    /// Names days.
    pub day_of: DayOf<'a>,
    /// Per GPU-hour and core-hour, if configured.
    pub rates: Option<(f64, f64)>,
}

/// Sums leases into a table.
pub fn table<'l>(leases: impl Iterator<Item = &'l Lease>, now: &Now, cut: &Cut<'_>) -> MeterTable {
    let mut rows: BTreeMap<String, (MeterRow, BTreeSet<u64>)> = BTreeMap::new();
    let mut held_now = 0;
    for lease in leases {
        if lease.ended.is_none() {
            held_now += lease.held.devices.len() as u32;
        }
        let Some(held) = lease.held_for(now) else { continue };
        let begin = lease.granted.wall_ms;
        let end = begin + held.0 as i64;
        let (from, to) = (begin.max(cut.since.unwrap_or(begin)), end.min(cut.until.unwrap_or(end)));
        if from > to || (from == to && begin != end) {
            continue;
        }
        for part in parts(lease, from, to, cut) {
            let (row, jobs) = rows.entry(part.key.clone()).or_default();
            row.key = part.key;
            row.gpu_ms += part.gpu_ms;
            row.core_ms += part.core_ms;
            row.waived_gpu_ms += waived(lease, now, part.gpu_ms, begin, (part.from, part.to));
            if jobs.insert(lease.job.0) {
                row.jobs += 1;
            }
        }
    }
    let mut rows: Vec<MeterRow> = rows.into_values().map(|(row, _)| row).collect();
    if cut.by != MeterBy::Day {
        rows.sort_by(|a, b| {
            b.gpu_ms.cmp(&a.gpu_ms).then_with(|| b.core_ms.cmp(&a.core_ms)).then_with(|| a.key.cmp(&b.key))
        });
    }
    if let Some((gpu, core)) = cut.rates {
        for row in &mut rows {
            let hours = |ms: u64| ms as f64 / 3_600_000.0;
            row.cost =
                Some(hours(row.gpu_ms.saturating_sub(row.waived_gpu_ms)) * gpu + hours(row.core_ms) * core);
        }
    }
    MeterTable { since: cut.since, until: cut.until.unwrap_or(now.wall_ms), by: cut.by, rows, held_now }
}

/// A piece of a lease that belongs to one row.
struct Part {
    key: String,
    gpu_ms: u64,
    core_ms: u64,
    from: i64,
    to: i64,
}

fn parts(lease: &Lease, from: i64, to: i64, cut: &Cut<'_>) -> Vec<Part> {
    let gpus = lease.held.devices.len() as u64;
    let cores = u64::from(lease.held.cores);
    let span = (to - from).unsigned_abs();
    let whole = |key: String| vec![Part { key, gpu_ms: span * gpus, core_ms: span * cores, from, to }];
    match cut.by {
        MeterBy::User => whole(lease.owner.name.clone()),
        MeterBy::Project => whole(lease.project.clone().unwrap_or_else(|| "-".to_owned())),
        MeterBy::Job => whole(format!("{} {}", lease.job, lease.job_name)),
        MeterBy::Gpu => lease
            .held
            .devices
            .iter()
            .map(|device| Part { key: device.uuid.to_string(), gpu_ms: span, core_ms: 0, from, to })
            .collect(),
        MeterBy::Day => {
            let mut days = Vec::new();
            let mut at = from;
            loop {
                let (key, next) = (cut.day_of)(at);
                let until = next.max(at + 1).min(to);
                let span = (until - at).unsigned_abs();
                days.push(Part { key, gpu_ms: span * gpus, core_ms: span * cores, from: at, to: until });
                if until >= to {
                    return days;
                }
                at = until;
            }
        }
    }
}

/// How much of a piece is not billed: all of it if the lease is waived; suspended time is counted at the lease's end, so
/// that pieces sum exactly.
fn waived(lease: &Lease, now: &Now, gpu_ms: u64, begin: i64, (from, to): (i64, i64)) -> u64 {
    if lease.waived {
        return gpu_ms;
    }
    let end = begin + lease.held_for(now).map_or(0, |held| held.0 as i64);
    let suspended_from = (end - lease.suspended_ms as i64).max(begin);
    let overlap = (to.min(end) - from.max(suspended_from)).max(0).unsigned_abs();
    let span = (to - from).max(1).unsigned_abs();
    gpu_ms / span * overlap
}

/// Compares the ledger with itself, cut in every way: what does not add up, in words.
pub fn check<'l>(
    leases: impl Iterator<Item = &'l Lease> + Clone,
    now: &Now,
    day_of: DayOf<'_>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected: u64 = leases.clone().map(|lease| lease.gpu_ms(now)).sum();
    for by in [MeterBy::User, MeterBy::Project, MeterBy::Job, MeterBy::Gpu, MeterBy::Day] {
        let cut = Cut { by, since: None, until: None, day_of, rates: None };
        let found: u64 = table(leases.clone(), now, &cut).rows.iter().map(|row| row.gpu_ms).sum();
        if found != expected {
            wrong.push(format!("by {by:?}: {found} ms, the leases have {expected} ms"));
        }
    }
    // By device and boot: from, to, lease.
    let mut spans: BTreeMap<_, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for lease in leases {
        let end = lease.granted.boottime_ms + lease.held_for(now).map_or(0, |held| held.0);
        for device in &lease.held.devices {
            let boot = lease.granted.boot.0;
            spans.entry((device.uuid.0.as_str(), boot)).or_default().push((
                lease.granted.boottime_ms,
                end,
                lease.id.0,
            ));
        }
    }
    for ((uuid, _), mut held) in spans {
        held.sort_unstable();
        for pair in held.windows(2) {
            if pair[1].0 < pair[0].1 {
                wrong.push(format!("{uuid}: leases {} and {} overlap", pair[0].2, pair[1].2));
            }
        }
    }
    wrong
}
