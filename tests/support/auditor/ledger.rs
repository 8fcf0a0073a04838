//! The ledger, recomputed: holds never overlap, every millisecond of a device is accounted for once, and each lease is
//! what its supervisor's journal and the processes that were seen say it was.

use super::Findings;
use super::devices::Sick;
use super::evidence::{Evidence, LeaseRow, Moment, word};
use super::journal::{Journal, Part};
use super::lives::{DeviceStep, LeaseLife, Lives};
use super::procfs;
use super::watch::Seen;
use serde_json::Value;
use std::collections::BTreeMap;

/// A grant may stand on a reading of that age.
const READING_MS: u64 = 250;

/// Start times are known to the tick.
const TICK_MS: u64 = 10;

/// Figures of an audit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Device milliseconds that were watched.
    pub(crate) watched_ms: u64,
    /// Of them held.
    pub(crate) held_ms: u64,
    /// Neither in a hold nor in any other state, or in two.
    pub(crate) unaccounted_ms: u64,
    /// Gross, over all leases.
    pub(crate) gpu_ms: u64,
    /// Not billed of it.
    pub(crate) waived_gpu_ms: u64,
    /// Leases whose journal was read.
    pub(crate) journals: usize,
}

impl LeaseRow {
    /// How long it held; `None` while it does.
    pub(crate) fn held_ms(&self) -> Option<u64> {
        self.ended.as_ref().and_then(|ended| ended.at.after(&self.granted))
    }

    /// Gross, over its devices.
    pub(crate) fn gpu_ms(&self) -> u64 {
        self.held_ms().unwrap_or_default() * self.held.devices.len() as u64
    }

    /// Not billed of it.
    pub(crate) fn waived_gpu_ms(&self) -> u64 {
        let suspended = self.suspended_ms * self.held.devices.len() as u64;
        if self.waived { self.gpu_ms() } else { suspended.min(self.gpu_ms()) }
    }
}

/// Everything about leases and devices.
pub(crate) fn audit(evidence: &Evidence, lives: &Lives, seen: &Seen, findings: &mut Findings) -> Sums {
    same_twice(evidence, lives, findings);
    let mut sums = account(evidence, lives, findings);
    for lease in evidence.leases.values() {
        sums.gpu_ms += lease.gpu_ms();
        sums.waived_gpu_ms += lease.waived_gpu_ms();
        if let Some(journal) = seen.journals.get(&lease.token) {
            sums.journals += 1;
            witnessed(lease, lives.leases.get(&lease.id), lives, journal, findings);
        }
    }
    outlived(evidence, lives, seen, findings);
    granted_to_the_sick(lives, seen, findings);
    sums
}

/// From when to when, in milliseconds of boottime, and of which lease.
type Hold = (u64, u64, u64);

/// The table of leases says what the events say.
fn same_twice(evidence: &Evidence, lives: &Lives, findings: &mut Findings) {
    for (id, row) in &evidence.leases {
        let Some(life) = lives.leases.get(id) else {
            findings.add("I9", format!("lease {id} has a row and no event"));
            continue;
        };
        let row_end = row.ended.as_ref().map(|ended| (&ended.at, &ended.by));
        let event_end = life.ended.as_ref().map(|(at, by, _)| (at, by));
        let row_return = row.returned.as_ref().map(|returned| (&returned.at, &returned.verdict));
        let event_return = life.returned.as_ref().map(|(at, verdict)| (at, verdict));
        let same = row.id == *id
            && (row.job, &row.held, &row.token) == (life.job, &life.held, &life.token)
            && row.granted == life.granted
            && row_end == event_end
            && (row.waived, row.suspended_ms) == (life.waived, life.suspended_ms)
            && row_return == event_return;
        if !same {
            findings.add("I9", format!("lease {id}: the events say {life:?}, its row {row:?}"));
        }
    }
    for id in lives.leases.keys().filter(|id| !evidence.leases.contains_key(id)) {
        findings.add("I9", format!("lease {id} has events and no row"));
    }
}

/// I5 and I10: by device and boot, holds never overlap, and held and the other states add up to the time watched.
fn account(evidence: &Evidence, lives: &Lives, findings: &mut Findings) -> Sums {
    let mut holds: BTreeMap<(&str, &str), Vec<Hold>> = BTreeMap::new();
    for lease in evidence.leases.values() {
        let Some(held) = lease.held_ms() else { continue };
        for device in &lease.held.devices {
            let from = lease.granted.boottime_ms;
            holds.entry((&device.uuid, &lease.granted.boot)).or_default().push((from, from + held, lease.id));
        }
    }
    for ((uuid, _), holds) in &mut holds {
        holds.sort_unstable();
        for pair in holds.windows(2) {
            if pair[1].0 < pair[0].1 {
                let text =
                    format!("{uuid}: the holds of leases {} and {} overlap: {pair:?}", pair[0].2, pair[1].2);
                findings.add("I10", text);
            }
        }
    }
    let last = evidence.events.last().map(|logged| logged.at.clone());
    let mut sums = Sums::default();
    for (uuid, steps) in &lives.devices {
        for (boot, spans) in spans(steps, last.as_ref()) {
            let watched = spans.until - spans.from;
            let held: u64 = holds
                .get(&(uuid.as_str(), boot.as_str()))
                .into_iter()
                .flatten()
                .map(|(from, to, _)| to - from)
                .sum();
            let other: u64 =
                spans.by_state.iter().filter(|(state, _)| *state != "held").map(|(_, ms)| ms).sum();
            sums.watched_ms += watched;
            sums.held_ms += held;
            // A hold that is still open has no end to add up to.
            if !spans.open && held + other != watched {
                let missing = (held + other).abs_diff(watched);
                sums.unaccounted_ms += missing;
                let states = &spans.by_state;
                let text = format!(
                    "{uuid}: {missing} of {watched} ms are not accounted for: leases hold {held} ms, {states:?}"
                );
                findings.add("I10", text);
            }
        }
    }
    sums
}

/// What a device was in one boot.
#[derive(Debug, Default)]
struct Spans {
    from: u64,
    until: u64,
    by_state: BTreeMap<String, u64>,
    /// A hold is still open.
    open: bool,
}

fn spans(steps: &[DeviceStep], last: Option<&Moment>) -> BTreeMap<String, Spans> {
    let mut boots: BTreeMap<String, Spans> = BTreeMap::new();
    let mut now: Option<(String, String, u64)> = None;
    // When each boot was last heard of.
    let mut heard: BTreeMap<&str, u64> = BTreeMap::new();
    for moment in steps.iter().flat_map(|step| [&step.at, &step.logged]).chain(last) {
        let at = heard.entry(&moment.boot).or_default();
        *at = (*at).max(moment.boottime_ms);
    }
    for step in steps {
        let boot = &step.at.boot;
        let spans = boots.entry(boot.clone()).or_insert_with(|| Spans {
            from: step.at.boottime_ms,
            until: step.at.boottime_ms,
            ..Spans::default()
        });
        if let Some((state, of, since)) = &now
            && of == boot
        {
            *spans.by_state.entry(state.clone()).or_default() += step.at.boottime_ms.saturating_sub(*since);
        }
        spans.until = spans.until.max(step.at.boottime_ms);
        now = Some((step.state.clone(), boot.clone(), step.at.boottime_ms));
    }
    if let Some((state, boot, since)) = now
        && let (Some(spans), Some(until)) = (boots.get_mut(&boot), heard.get(boot.as_str()))
    {
        *spans.by_state.entry(state.clone()).or_default() += until.saturating_sub(since);
        spans.until = spans.until.max(*until);
        spans.open = state == "held";
    }
    boots
}

/// I9, I13, I15: a lease is what its supervisor wrote down.
fn witnessed(
    lease: &LeaseRow,
    life: Option<&LeaseLife>,
    lives: &Lives,
    journal: &Journal,
    findings: &mut Findings,
) {
    let Some(life) = life else { return };
    let id = lease.id;
    if (journal.lease, journal.job) != (Some(id), Some(lease.job)) {
        findings.add("I14", format!("the journal with lease {id}'s token is of {:?}", journal.lease));
    }
    let part = journal.parts.iter().find(|part| (part.task, part.attempt) == (life.task, life.attempt));
    let Some(part) = part else {
        findings.add("I14", format!("lease {id}: its journal has no intent for attempt {}", life.attempt));
        return;
    };
    if let Some(intent) = &part.intent
        && intent.after(&lease.granted).is_none()
    {
        findings
            .add("I14", format!("lease {id}: the intent is of {intent:?}, the grant of {:?}", lease.granted));
    }
    let attempt = lives.jobs.get(&life.job).and_then(|job| job.attempts.get(&(life.task, life.attempt)));
    let started = attempt.and_then(|attempt| attempt.started.as_ref());
    if let Some(told) = started
        && part.started.as_ref() != Some(told)
    {
        findings
            .add("I9", format!("lease {id}: it started at {told:?}, its journal says {:?}", part.started));
    }
    let Some((ended, by, logged)) = &life.ended else { return };
    match &part.ended {
        Some(end) => {
            // No more is waived for suspend than was held.
            let suspended_ms = end.suspended_ms.min(lease.held_ms().unwrap_or_default());
            let same = *ended == end.at && *by == end.by && life.suspended_ms == suspended_ms;
            let came = attempt.and_then(|attempt| attempt.end.as_ref());
            // What is lost while it is being cancelled is cancelled.
            let cancelled = word(&end.how) == "lost"
                && came.map(word) == Some("cancelled")
                && lives.jobs.get(&life.job).is_some_and(|job| job.cancelling);
            let same_end = came == Some(&end.how) || cancelled;
            if !same || !same_end {
                let text = format!(
                    "lease {id}: {ended:?} by {by}, {:?}; its journal says {end:?}",
                    attempt.map(|a| &a.end)
                );
                findings.add("I9", text);
            }
        }
        None if part.started.is_some() || started.is_some() => {
            unwitnessed(
                lease,
                (ended, by, logged),
                part,
                journal,
                attempt.and_then(|a| a.end.as_ref()),
                findings,
            );
        }
        None => {}
    }
}

/// Nobody wrote down how it ended: it is lost, and held until the last sign of life at most, unless somebody saw the last
/// process go.
fn unwitnessed(
    lease: &LeaseRow,
    (ended, by, logged): (&Moment, &str, &Moment),
    part: &Part,
    journal: &Journal,
    end: Option<&Value>,
    findings: &mut Findings,
) {
    let id = lease.id;
    // Whoever was cancelled got what was asked for.
    let fits = matches!(end.map(word), Some("lost" | "cancelled"));
    if !fits || !lease.waived {
        let not = if lease.waived { "" } else { "not " };
        findings.add("I13", format!("lease {id}: nobody saw how it ended; it came to {end:?}, {not}waived"));
    }
    let signs =
        [Some(&lease.granted), Some(&lease.heartbeat), journal.last_sign.as_ref(), part.started.as_ref()];
    let newest = signs
        .into_iter()
        .flatten()
        .filter(|sign| sign.boot == lease.granted.boot)
        .map(|sign| sign.boottime_ms)
        .max()
        .unwrap_or_default();
    match by {
        "estimated" if ended.boottime_ms > newest => {
            let text = format!(
                "lease {id} ends at {} ms, {by}; its last sign of life is of {newest} ms",
                ended.boottime_ms
            );
            findings.add("I13", text);
        }
        "estimated" => {}
        _ if ended.boot != logged.boot => {
            findings.add("I13", format!("lease {id}: its end is {by}, seen in another boot"));
        }
        _ => {}
    }
}

/// I7 and I8: no process of a lease lives after it has ended, nor after its devices are free.
fn outlived(evidence: &Evidence, lives: &Lives, seen: &Seen, findings: &mut Findings) {
    let boot = procfs::boot_id();
    let leases: BTreeMap<&str, &LeaseRow> =
        evidence.leases.values().map(|lease| (lease.token.as_str(), lease)).collect();
    for (id, work) in &seen.work {
        let Some(lease) = leases.get(work.token.as_str()) else {
            // Its grant may be younger than the copy of the store.
            if work.known_ms >= evidence.copied_ms {
                continue;
            }
            let text = format!(
                "process {} of job {} carries a token that no lease has: {}",
                id.pid, work.job, work.command
            );
            findings.add("I14", text);
            continue;
        };
        if lease.granted.boot != boot {
            continue;
        }
        let who = || format!("process {} ({}) of lease {}", id.pid, work.command, lease.id);
        if work.known_ms < lease.granted.boottime_ms {
            findings.add("I11", format!("{} was this lease's work before the grant", who()));
        }
        let Some(ended) = &lease.ended else { continue };
        if ended.by == "proven" && work.alive_ms > ended.at.boottime_ms {
            let text = format!(
                "{} lives at {} ms, the lease ended, proven, at {} ms",
                who(),
                work.alive_ms,
                ended.at.boottime_ms
            );
            findings.add("I7", text);
        }
        for device in &lease.held.devices {
            let again = lives.devices.get(&device.uuid).into_iter().flatten().find(|step| {
                let later = step.logged.boottime_ms >= ended.at.boottime_ms && step.lease != Some(lease.id);
                later && matches!(step.state.as_str(), "free" | "held")
            });
            if let Some(again) = again
                && again.logged.boot == boot
                && work.alive_ms > again.logged.boottime_ms
            {
                let text = format!(
                    "{} lives at {} ms, {} was {} at {} ms",
                    who(),
                    work.alive_ms,
                    device.uuid,
                    again.state,
                    again.logged.boottime_ms
                );
                findings.add("I8", text);
            }
        }
    }
}

/// I6: a device is never granted while it is certainly not as it should be; nor returned as clean while it is dirty.
fn granted_to_the_sick(lives: &Lives, seen: &Seen, findings: &mut Findings) {
    let boot = procfs::boot_id();
    for (uuid, steps) in &lives.devices {
        let name = seen.indices.get(uuid).unwrap_or(uuid);
        for pair in steps.windows(2) {
            let (was, step) = (&pair[0], &pair[1]);
            let granted = step.state == "held";
            let returned = was.state == "draining" && step.state == "free";
            if step.logged.boot != boot || !(granted || returned) {
                continue;
            }
            let at = step.logged.boottime_ms;
            let version = seen
                .truths
                .iter()
                .find(|version| version.from_ms + READING_MS <= at && version.until_ms >= at);
            for (device, sick) in version.into_iter().flat_map(|version| &version.sick) {
                let counts = match sick {
                    Sick::Fault(_) => true,
                    Sick::Outside(_) => granted,
                    Sick::Dirty => returned && left_dirty(lives, was, seen, at),
                };
                if (device == name || device == uuid) && counts {
                    let text =
                        format!("{uuid} is made {} at {at} ms although it is {sick:?} then", step.state);
                    findings.add(if granted { "I6" } else { "I8" }, text);
                }
            }
        }
    }
}

/// Whether a simulated device is dirty when its lease returns: it is for the scheduler process that has read it while
/// the lease ran, in a turn of its own between the grant and the end.
fn left_dirty(lives: &Lives, draining: &DeviceStep, seen: &Seen, until: u64) -> bool {
    let Some(lease) = draining.lease.and_then(|lease| lives.leases.get(&lease)) else { return false };
    let Some(began) = &lease.began else { return false };
    began.boottime_ms < draining.logged.boottime_ms
        && seen
            .schedulers
            .iter()
            .any(|(id, span)| procfs::started_ms(*id) + TICK_MS < began.boottime_ms && span.last_ms >= until)
}
