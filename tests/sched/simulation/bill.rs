//! The auditor's arithmetic: from grants and ends alone, and by other ways than the scheduler's.

use overnight::model::{EndedBy, Event, JobId, Lease, LeaseId, Now, Token, Uuid};
use overnight::protocol::MeterBy;
use overnight::sched::World;
use overnight::sched::meter::{self, Cut};
use std::collections::BTreeMap;

/// What was held, from when to when.
pub(super) struct Hold {
    pub(super) lease: LeaseId,
    pub(super) job: JobId,
    pub(super) token: Token,
    pub(super) devices: Vec<Uuid>,
    /// Memory that was in use on each before.
    pub(super) baselines: Vec<u64>,
    pub(super) cores: u32,
    pub(super) memory: u64,
    pub(super) open: Now,
    pub(super) close: Option<Now>,
    pub(super) by: Option<EndedBy>,
    pub(super) waived: bool,
    pub(super) suspended: u64,
    pub(super) returned: bool,
}

/// GPU-, core- and waived GPU-milliseconds.
pub(super) type Sum = (u64, u64, u64);

impl Hold {
    /// Of a grant.
    pub(super) fn open(event: &Event, at: Now) -> Self {
        let Event::LeaseGranted { lease, job, held, token, .. } = event else { panic!("a grant") };
        Self {
            lease: *lease,
            job: *job,
            token: token.clone(),
            devices: held.devices.iter().map(|device| device.uuid.clone()).collect(),
            baselines: held.devices.iter().map(|device| device.baseline.0).collect(),
            cores: held.cores,
            memory: held.memory.0,
            open: at,
            close: None,
            by: None,
            waived: false,
            suspended: 0,
            returned: false,
        }
    }

    /// From when to when, boottime; nothing of one that is open in another boot than this.
    fn span(&self, now: &Now) -> Option<(u64, u64)> {
        let until = self.close.as_ref().unwrap_or(now);
        (until.boot == self.open.boot).then_some((self.open.boottime_ms, until.boottime_ms))
    }

    /// What it comes to between two moments of its own span.
    fn part(&self, from: u64, to: u64, now: &Now) -> Sum {
        let Some((begin, end)) = self.span(now) else { return (0, 0, 0) };
        let gpus = self.devices.len() as u64;
        let span = to.saturating_sub(from);
        // What was slept through counts at the end of it.
        let asleep_from = if self.waived { begin } else { end.saturating_sub(self.suspended).max(begin) };
        let asleep = to.saturating_sub(from.max(asleep_from));
        (span * gpus, span * u64::from(self.cores), asleep * gpus)
    }
}

/// The sum of some.
pub(super) fn sum<'h>(holds: impl Iterator<Item = &'h Hold>, now: &Now) -> Sum {
    holds.fold((0, 0, 0), |sum, hold| {
        let (from, to) = hold.span(now).unwrap_or_default();
        let part = hold.part(from, to, now);
        (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2)
    })
}

/// The job that an event changes the use of, or the place of.
pub(super) fn job_of(event: &Event, holds: &BTreeMap<LeaseId, Hold>) -> Option<JobId> {
    match event {
        Event::JobAccepted { job, .. }
        | Event::AttemptPrepared { job, .. }
        | Event::LeaseGranted { job, .. }
        | Event::AttemptStarted { job, .. }
        | Event::AttemptEnded { job, .. }
        | Event::AttemptReturned { job, .. }
        | Event::AttemptReleased { job, .. }
        | Event::AttemptDropped { job, .. }
        | Event::RetryQueued { job, .. }
        | Event::JobDone { job, .. } => Some(*job),
        Event::LeaseEnded { lease, .. } => holds.get(lease).map(|hold| hold.job),
        _ => None,
    }
}

/// Every device is held by one at a time, boot by boot.
pub(super) fn overlap(holds: &BTreeMap<LeaseId, Hold>) {
    for (ix, (id, hold)) in holds.iter().enumerate() {
        for (other_id, other) in holds.iter().skip(ix + 1) {
            let shared = hold.devices.iter().any(|uuid| other.devices.contains(uuid));
            if shared && hold.open.boot == other.open.boot {
                let end = hold.close.map_or(u64::MAX, |close| close.boottime_ms);
                assert!(other.open.boottime_ms >= end, "leases {id} and {other_id} hold one device at once");
            }
        }
    }
}

/// The beginnings of days that are not all equally long, as where clocks are put forward and back.
const LONG: i64 = 600_000;
const SHORT: i64 = 540_000;

fn day_of(at: i64) -> (String, i64) {
    let (pair, within) = (at.div_euclid(LONG + SHORT), at.rem_euclid(LONG + SHORT));
    let begins = pair * (LONG + SHORT);
    if within < LONG {
        (format!("{}", pair * 2), begins + LONG)
    } else {
        (format!("{}", pair * 2 + 1), begins + LONG + SHORT)
    }
}

/// The same days, by counting them.
fn days(hold: &Hold, now: &Now) -> Vec<(String, Sum)> {
    let Some((begin, end)) = hold.span(now) else { return Vec::new() };
    let anchor = hold.open.wall_ms - begin as i64;
    let mut borders: Vec<(i64, i64, i64)> = Vec::new();
    let first = (hold.open.wall_ms).div_euclid(LONG + SHORT) - 1;
    let mut pair = first;
    loop {
        let at = pair * (LONG + SHORT);
        borders.push((pair * 2, at, at + LONG));
        borders.push((pair * 2 + 1, at + LONG, at + LONG + SHORT));
        if at > anchor + end as i64 {
            break;
        }
        pair += 1;
    }
    borders
        .into_iter()
        .filter_map(|(name, from, to)| {
            let from = (from - anchor).max(begin as i64) as u64;
            let to = (to - anchor).min(end as i64);
            (to > from as i64).then(|| (name.to_string(), hold.part(from, to as u64, now)))
        })
        .collect()
}

/// The scheduler's meter, cut in every way, against the auditor's.
pub(super) fn compare(holds: &BTreeMap<LeaseId, Hold>, world: &World, now: &Now) {
    let leases: Vec<&Lease> = world.ledger.iter().chain(world.leases.held()).collect();
    assert_eq!(leases.len(), holds.len(), "the meter has every lease");
    let whole = sum(holds.values(), now);
    for by in [MeterBy::User, MeterBy::Project, MeterBy::Job, MeterBy::Gpu, MeterBy::Day] {
        let cut = Cut { by, since: None, until: None, day_of: &day_of, rates: None };
        let table = meter::table(leases.iter().copied(), now, &cut);
        let found = table
            .rows
            .iter()
            .fold((0, 0, 0), |sum, row| (sum.0 + row.gpu_ms, sum.1 + row.core_ms, sum.2 + row.waived_gpu_ms));
        // A device has no cores.
        let expected = if by == MeterBy::Gpu { (whole.0, 0, whole.2) } else { whole };
        assert_eq!(found, expected, "the meter by {by:?}");
        let held = holds.values().filter(|hold| hold.close.is_none()).map(|hold| hold.devices.len() as u32);
        assert_eq!(table.held_now, held.sum::<u32>());
        let own: BTreeMap<String, Sum> = match by {
            MeterBy::Job => keyed(holds.values().map(|hold| {
                let name = world.queue.get(hold.job).map_or_else(String::new, |job| job.spec.name.clone());
                (format!("{} {name}", hold.job), sum(std::iter::once(hold), now))
            })),
            MeterBy::Day => keyed(holds.values().flat_map(|hold| days(hold, now))),
            MeterBy::Gpu => keyed(holds.values().flat_map(|hold| {
                let one = sum(std::iter::once(hold), now);
                let gpus = hold.devices.len() as u64;
                hold.devices.iter().map(move |uuid| (uuid.to_string(), (one.0 / gpus, 0, one.2 / gpus)))
            })),
            _ => continue,
        };
        for row in &table.rows {
            let expected = own.get(&row.key).copied().unwrap_or_default();
            assert_eq!((row.gpu_ms, row.core_ms, row.waived_gpu_ms), expected, "{by:?} {}", row.key);
        }
    }
    let wrong = meter::check(leases.iter().copied(), now, &day_of);
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn keyed(parts: impl Iterator<Item = (String, Sum)>) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for (key, part) in parts {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2);
    }
    sums
}
