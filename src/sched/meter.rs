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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, EndedBy, Held, JobId, LeaseDevice, LeaseId, Owner, Span, Token, Uuid};

    const DAY: i64 = 86_400_000;

    fn day_of(at: i64) -> (String, i64) {
        (format!("day {}", at.div_euclid(DAY)), (at.div_euclid(DAY) + 1) * DAY)
    }

    fn lease(id: u64, wall_ms: i64, held: u64, gpus: usize) -> Lease {
        let granted = Now { boottime_ms: 1_000_000 * id, wall_ms, ..Now::default() };
        Lease {
            id: LeaseId(id),
            job: JobId(id),
            job_name: "a".to_owned(),
            owner: Owner { uid: 1, name: "ana".to_owned() },
            project: None,
            attempts: Vec::new(),
            held: Held {
                devices: (0..gpus)
                    .map(|n| LeaseDevice { uuid: Uuid(format!("GPU-{n}")), baseline: Bytes(0) })
                    .collect(),
                cores: 3,
                memory: Bytes(0),
            },
            token: Token(String::new()),
            granted,
            heartbeat: granted,
            ended: Some((granted.plus(Span(held)), EndedBy::Proven)),
            gone: None,
            waived: false,
            suspended_ms: 0,
            returned: None,
        }
    }

    fn rows(leases: &[Lease], by: MeterBy) -> Vec<(String, u64, u64, u64)> {
        let cut = Cut { by, since: None, until: None, day_of: &day_of, rates: None };
        let table = table(leases.iter(), &Now::default(), &cut);
        table.rows.into_iter().map(|row| (row.key, row.gpu_ms, row.core_ms, row.waived_gpu_ms)).collect()
    }

    #[test]
    fn a_run_over_midnight_is_split_at_midnight_and_the_days_sum_exactly() {
        let leases = [lease(1, DAY - 1_001, 2 * DAY as u64, 2)];
        let days = rows(&leases, MeterBy::Day);
        let gpu: Vec<u64> = days.iter().map(|(_, gpu, ..)| *gpu).collect();
        assert_eq!(gpu, [2_002, 2 * DAY as u64, 2 * (DAY as u64 - 1_001)]);
        assert_eq!(gpu.iter().sum::<u64>(), leases[0].gpu_ms(&Now::default()));
        assert_eq!(days[0].0, "day 0");
    }

    #[test]
    fn what_is_waived_is_counted_and_what_was_suspended_is_at_the_end() {
        let mut lost = lease(1, 0, 1_000, 2);
        lost.waived = true;
        let mut slept = lease(2, DAY - 100, 1_000, 1);
        slept.suspended_ms = 950;
        let users = rows(&[lost, slept.clone()], MeterBy::User);
        assert_eq!(users, [("ana".to_owned(), 3_000, 6_000, 2_000 + 950)]);
        let days = rows(&[slept], MeterBy::Day);
        assert_eq!(days.iter().map(|day| day.3).collect::<Vec<_>>(), [50, 900]);
    }

    #[test]
    fn rates_bill_what_is_not_waived() {
        let mut leases = [lease(1, 0, 3_600_000, 2), lease(2, 0, 3_600_000, 2)];
        leases[1].waived = true;
        let cut =
            Cut { by: MeterBy::Project, since: None, until: None, day_of: &day_of, rates: Some((2.0, 0.5)) };
        let table = table(leases.iter(), &Now::default(), &cut);
        assert_eq!(table.rows[0].cost, Some(2.0 * 2.0 + 6.0 * 0.5));
        assert_eq!(table.rows[0].key, "-");
    }

    #[test]
    fn an_open_lease_of_an_earlier_boot_is_not_billed_on() {
        let mut open = lease(1, 0, 0, 1);
        open.ended = None;
        let later = Now { boot: crate::model::BootId(9), boottime_ms: 9_000_000, wall_ms: 50 };
        let cut = Cut { by: MeterBy::User, since: None, until: None, day_of: &day_of, rates: None };
        assert!(table([&open].into_iter(), &later, &cut).rows.is_empty());
        assert_eq!(check([&open].into_iter(), &later, &day_of), Vec::<String>::new());
    }

    #[test]
    fn the_check_finds_two_leases_on_one_device() {
        let first = lease(1, 0, 3_000_000, 1);
        let second = lease(2, 0, 10, 1);
        let wrong = check([&first, &second].into_iter(), &Now::default(), &day_of);
        assert_eq!(wrong, ["GPU-0: leases 1 and 2 overlap"]);
    }
}
