//! What readings mean: devices that are free, draining, in quarantine, used from outside, or gone.

use super::step::Turn;
use super::world::{Drained, Pool};
use super::{Effect, ask, faults, plan};
use crate::model::{DeviceState, Event, Gpu, GpuReading, Lease, Now, Quarantine, Span, Token, Uuid, Verdict};

/// A draining device is read when its lease ends and after so many milliseconds, then every last one of them.
const DRAIN_PROBES: [u64; 8] = [1, 2, 5, 10, 20, 50, 200, 1_000];

/// A device in quarantine is read after so many milliseconds, then every last one of them.
const QUARANTINE_PROBES: [u64; 7] = [1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000];
/// A device that is out of service while a job waits is read this often.
const WATCH_EVERY: Span = Span::secs(1);
/// Jobs of the line that are looked at to see whether any could start.
const WATCH_DEPTH: usize = 64;
/// A lock is ours if it carries the token of one of this many leases that ended lately.
const OURS_LATELY: usize = 1_000;

/// Takes the list of devices that are there now.
pub(super) fn listed(turn: &mut Turn<'_>, gpus: &[Gpu]) {
    turn.world.pool.list(gpus);
    let missing: Vec<Uuid> = turn
        .world
        .pool
        .devices()
        .filter(|(_, device)| device.gpu.is_none())
        .map(|(uuid, _)| uuid.clone())
        .collect();
    for uuid in missing {
        faults::lost(turn, &uuid, "no longer listed by the driver");
    }
    if turn.world.pool.devices().any(|(_, device)| device.gpu.is_some() && device.reading.is_none()) {
        turn.effect(Effect::Probe);
        turn.wake(turn.now.boottime_ms + 1);
    }
}

/// Takes readings. Held devices keep their state; one that is lost ends its lease's run.
pub(super) fn read(turn: &mut Turn<'_>, readings: &[GpuReading]) {
    for reading in readings {
        let uuid = &reading.uuid;
        if !turn.world.pool.read(reading) {
            continue;
        }
        faults::examine(turn, uuid);
        let Some(device) = turn.world.pool.get(uuid) else { continue };
        match &device.state {
            DeviceState::Held { .. }
            | DeviceState::Draining { .. }
            | DeviceState::Closed { .. }
            | DeviceState::Quarantined(_) => {}
            DeviceState::Free
            | DeviceState::Outside { .. }
            | DeviceState::Gone { .. }
            | DeviceState::Unknown { .. } => {
                // A lock held by a supervisor of ours that has not left yet is not an outsider's.
                let next = Pool::judge(device, |token| is_ours(turn, token));
                put(turn, uuid, next);
            }
        }
        if let Some(DeviceState::Quarantined(quarantine)) =
            turn.world.pool.get(uuid).map(|device| &device.state)
        {
            let quarantine = quarantine.clone();
            quarantined(turn, uuid, &quarantine);
        }
    }
}

/// A device in quarantine was read. It is let out by what it was put in for, and must be free in every other way.
fn quarantined(turn: &mut Turn<'_>, uuid: &Uuid, quarantine: &Quarantine) {
    let lease = quarantine.lease.and_then(|lease| turn.world.lease(lease));
    let drained = lease.map_or(Drained::Clean, |lease| {
        if lease.is_unproven(&turn.now) {
            // What did not answer its kill may still use it: it is what the quarantine is for.
            Drained::NotYet(quarantine.why.clone())
        } else {
            turn.world.pool.drained(uuid, lease)
        }
    });
    faults::recover(turn, uuid, &drained);
    let Some(device) = turn.world.pool.get(uuid) else { return };
    let (why, lease) = match (drained, &device.fault) {
        (Drained::NotYet(why) | Drained::Gone(why), _) => (why, quarantine.lease),
        (Drained::Clean, Some(fault)) => (fault.why.clone(), None),
        (Drained::Clean, None) => {
            if Pool::judge(device, |token| is_ours(turn, token)) == DeviceState::Free {
                put(turn, uuid, DeviceState::Free);
            }
            return;
        }
    };
    // The culprit may be another one by now: what is true is shown.
    change(turn, uuid.clone(), DeviceState::Quarantined(Quarantine { why, since: quarantine.since, lease }));
}

/// Gives back what is proven clean, or has not been for too long; asks for the next reading when it is due.
pub(super) fn settle(turn: &mut Turn<'_>) {
    let draining: Vec<Lease> = turn.world.leases.draining().cloned().collect();
    for lease in draining {
        let unproven = lease.is_unproven(&turn.now);
        let since = turn.world.leases.draining_since(lease.id, turn.now);
        let late = turn.now.since(&since).is_none_or(|waited| waited >= turn.world.pool.drain_max());
        let late = late.then(|| turn.world.leases.late_since(lease.id, turn.now));
        match drain(turn, &lease, unproven, (&since, late)) {
            Drain::Over(verdict) => give_back(turn, &lease, unproven, verdict),
            Drain::Goes { probe, next } => {
                if probe {
                    turn.effect(Effect::Probe);
                }
                turn.wake(next);
            }
        }
    }
}

/// How far the proof after a lease is.
enum Drain {
    /// Proven, or given up.
    Over(Verdict),
    /// It goes on.
    Goes {
        /// A reading is due and has not been taken.
        probe: bool,
        /// When the next one is due, boottime milliseconds.
        next: u64,
    },
}

fn drain(turn: &Turn<'_>, lease: &Lease, unproven: bool, (since, late): (&Now, Option<Now>)) -> Drain {
    let max = turn.world.pool.drain_max();
    let waited = turn.now.since(since).unwrap_or(max);
    let (last, next) = probes(&DRAIN_PROBES, waited.0);
    let (mut details, mut open, mut due, mut seen) = (Vec::new(), unproven, false, true);
    if unproven {
        details.push(turn.world.leases.culprit(lease.id));
    }
    for held in &lease.held.devices {
        let (why, not_yet) = match turn.world.pool.drained(&held.uuid, lease) {
            Drained::Clean => continue,
            Drained::Gone(why) => (why, false),
            Drained::NotYet(why) => (why, true),
        };
        let one = lease.held.devices.len() == 1;
        details.push(if one { why } else { format!("{}: {why}", held.uuid) });
        if not_yet {
            open = true;
            let reading = turn.world.pool.get(&held.uuid).and_then(|device| device.reading.as_ref());
            let read = reading
                .filter(|reading| reading.at.boottime_ms >= since.boottime_ms)
                .and_then(|reading| reading.at.since(since));
            due |= read.is_none_or(|read| read.0 < last);
            // A scheduler that slept meanwhile, or waited for its disk, looks before it condemns; for as long again.
            seen &= read.is_some_and(|read| read >= max)
                || late.is_some_and(|late| turn.now.since(&late).is_none_or(|looked| looked >= max));
        }
    }
    if details.is_empty() {
        Drain::Over(Verdict::Clean)
    } else if !open || (waited >= max && seen) {
        Drain::Over(Verdict::Quarantined { detail: details.join("; ") })
    } else {
        let next = if waited < max { next.min(max.0) } else { next };
        Drain::Goes { probe: due, next: turn.now.boottime_ms + (next - waited.0) }
    }
}

/// The last reading that was due by `waited`, and the next one, in milliseconds since the first.
fn probes(schedule: &[u64], waited: u64) -> (u64, u64) {
    let every = schedule.last().copied().unwrap_or(1_000);
    let last = schedule.iter().rev().find(|at| **at <= waited).copied().unwrap_or(0);
    let last = if last == every { waited - waited % every } else { last };
    (last, schedule.iter().find(|at| **at > waited).copied().unwrap_or(last + every))
}

/// Closes a lease. Of its devices, those that are proven are what their last reading makes of them: free, gone, or taken
/// by somebody else meanwhile. Each of the others is in quarantine for what was found on it.
fn give_back(turn: &mut Turn<'_>, lease: &Lease, unproven: bool, verdict: Verdict) {
    let found: Vec<(Uuid, Drained)> = lease
        .held
        .devices
        .iter()
        .map(|held| (held.uuid.clone(), turn.world.pool.drained(&held.uuid, lease)))
        .collect();
    turn.emit(Event::LeaseReturned { lease: lease.id, verdict });
    turn.effect(Effect::Dismiss { lease: lease.id });
    if turn.world.queue.get(lease.job).is_some_and(|job| job.done.is_some()) {
        // Its receipt has been written without the proof.
        turn.effect(Effect::WriteReceipt { job: lease.job });
    }
    for (uuid, drained) in found {
        let Some(device) = turn.world.pool.get(&uuid) else { continue };
        match (drained, &device.state) {
            (Drained::NotYet(why), DeviceState::Quarantined(quarantine)) if !unproven => {
                let quarantine = Quarantine { why, ..quarantine.clone() };
                change(turn, uuid, DeviceState::Quarantined(quarantine));
            }
            (Drained::Clean | Drained::Gone(_), _) if !unproven => {
                let next = Pool::judge(device, |token| is_ours(turn, token));
                put(turn, &uuid, next);
            }
            _ => {}
        }
    }
}

/// While a job could start, devices that are out of service are looked at again: one that is free again starts it within
/// a second. Those in quarantine are looked at whether or not anybody waits, less and less often.
pub(super) fn watch(turn: &mut Turn<'_>) {
    watch_quarantines(turn);
    let out = |state: &DeviceState| {
        matches!(
            state,
            DeviceState::Outside { .. }
                | DeviceState::Unknown { .. }
                | DeviceState::Gone { .. }
                | DeviceState::Quarantined(_)
        )
    };
    // How long ago the one that was read longest ago was read: a reading must not ask for the next one at once.
    let age = |reading: &GpuReading| turn.now.since(&reading.at).unwrap_or(WATCH_EVERY);
    let devices = turn.world.pool.devices().map(|(_, device)| device);
    let ages = devices
        .filter(|device| device.gpu.is_some() && out(&device.state))
        .map(|device| device.reading.as_ref().map_or(WATCH_EVERY, age));
    let Some(oldest) = ages.max() else { return };
    let waits = turn
        .world
        .queue
        .line()
        .take(WATCH_DEPTH)
        .any(|job| ask(turn.world, job).gpus > 0 && plan::gate(turn.world, job, &turn.now).is_none());
    if waits && oldest >= WATCH_EVERY {
        turn.effect(Effect::Probe);
        turn.wake(turn.now.boottime_ms + WATCH_EVERY.0);
    } else if waits {
        turn.wake(turn.now.boottime_ms + (WATCH_EVERY.0 - oldest.0));
    }
}

/// Asks for the readings of devices in quarantine that are due, and for a turn when the next one is.
fn watch_quarantines(turn: &mut Turn<'_>) {
    let now = turn.now;
    let mut next: Option<u64> = None;
    let mut due = false;
    for (_, device) in turn.world.pool.devices() {
        let DeviceState::Quarantined(quarantine) = &device.state else { continue };
        // After a new boot the looks begin anew with it.
        let waited = now.since(&quarantine.since).map_or(now.boottime_ms, |span| span.0);
        let (last, at) = probes(&QUARANTINE_PROBES, waited);
        let (last, at) =
            (now.boottime_ms - waited.min(now.boottime_ms) + last, now.boottime_ms + (at - waited));
        let read = device.reading.as_ref().filter(|reading| reading.at.boot == now.boot);
        due |= read.is_none_or(|reading| reading.at.boottime_ms < last);
        let proof = device.next_proof();
        due |= proof.is_some_and(|proof| proof <= now.boottime_ms);
        let at = proof.filter(|proof| *proof > now.boottime_ms).map_or(at, |proof| proof.min(at));
        next = Some(next.map_or(at, |next| next.min(at)));
    }
    if due {
        turn.effect(Effect::Probe);
    }
    if let Some(at) = next {
        turn.wake(at);
    }
}

/// Whether a token is of a lease of this scheduler that is open or ended lately.
pub(super) fn is_ours(turn: &Turn<'_>, token: &Token) -> bool {
    let lately = turn.world.ledger.iter().rev().take(OURS_LATELY);
    turn.world.leases.iter().chain(lately).any(|lease| lease.token == *token)
}

/// Gives a device that nobody of ours holds the state that a reading makes of it, as far as a fault or an operator's wish
/// allows.
pub(super) fn put(turn: &mut Turn<'_>, uuid: &Uuid, judged: DeviceState) {
    let Some(device) = turn.world.pool.get(uuid) else { return };
    let next = match (judged, &device.fault, &device.close) {
        (gone @ DeviceState::Gone { .. }, _, _) => gone,
        (_, Some(fault), _) => faults::quarantine(fault, &device.state),
        (_, None, Some(close)) => DeviceState::Closed { reason: close.reason.clone(), by: close.by.clone() },
        (judged, None, None) => judged,
    };
    change(turn, uuid.clone(), next);
}

/// Likewise, with the state that it has: a fault has come.
pub(super) fn put_current(turn: &mut Turn<'_>, uuid: &Uuid) {
    match turn.world.pool.get(uuid).map(|device| device.state.clone()) {
        Some(
            state @ (DeviceState::Free
            | DeviceState::Outside { .. }
            | DeviceState::Unknown { .. }
            | DeviceState::Quarantined(_)),
        ) => put(turn, uuid, state),
        Some(
            DeviceState::Held { .. }
            | DeviceState::Draining { .. }
            | DeviceState::Closed { .. }
            | DeviceState::Gone { .. },
        )
        | None => {}
    }
}

pub(super) fn change(turn: &mut Turn<'_>, uuid: Uuid, state: DeviceState) {
    if turn.world.pool.get(&uuid).is_some_and(|device| device.state != state) {
        turn.emit(Event::DeviceChanged { uuid, state });
    }
}
