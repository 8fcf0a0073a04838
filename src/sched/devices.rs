//! What readings mean: devices that are free, draining, in quarantine, used from outside, or gone.

use super::step::Turn;
use super::world::{Drained, Pool};
use super::{Effect, StopKind, ask, plan};
use crate::model::{DeviceState, Event, Gpu, GpuReading, Lease, Now, Span, Token, Unreadable, Uuid, Verdict};

/// A draining device is read when its lease ends and after so many milliseconds, then every last one of them.
const DRAIN_PROBES: [u64; 8] = [1, 2, 5, 10, 20, 50, 200, 1_000];

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
        let why = "no longer listed by the driver";
        match turn.world.pool.get(&uuid).map(|device| device.state.clone()) {
            Some(DeviceState::Free | DeviceState::Outside { .. } | DeviceState::Unknown { .. }) => {
                change(turn, uuid, DeviceState::Gone { detail: why.to_owned() });
            }
            Some(DeviceState::Held { lease }) => {
                let why = format!("GPU {uuid} is gone: {why}");
                turn.effect(Effect::Stop { lease, kind: StopKind::Lost { why } });
            }
            _ => {}
        }
    }
    if turn.world.pool.devices().any(|(_, device)| device.gpu.is_some() && device.reading.is_none()) {
        turn.effect(Effect::Probe);
        turn.wake(turn.now.boottime_ms + 1);
    }
}

/// Takes readings. Held devices keep their state; one that is lost ends its lease's run.
pub(super) fn read(turn: &mut Turn<'_>, readings: &[GpuReading]) {
    for reading in readings {
        turn.world.pool.read(reading);
        let Some(device) = turn.world.pool.get(&reading.uuid) else { continue };
        match &device.state {
            DeviceState::Held { lease } => {
                if let Some(Unreadable::Gone { detail }) = &reading.unreadable {
                    let why = format!("GPU {} is gone: {detail}", reading.uuid);
                    let lease = *lease;
                    turn.effect(Effect::Stop { lease, kind: StopKind::Lost { why } });
                }
            }
            DeviceState::Draining { .. } | DeviceState::Closed { .. } => {}
            DeviceState::Quarantined(quarantine) => {
                // It is let out by what it was put in for, and must be free in every other way.
                let lease = quarantine.lease.and_then(|lease| turn.world.lease(lease));
                let clean = lease.is_none_or(|lease| {
                    !lease.is_unproven(&turn.now)
                        && turn.world.pool.drained(&reading.uuid, lease) == Drained::Clean
                });
                if clean && Pool::judge(device, |token| is_ours(turn, token)) == DeviceState::Free {
                    change(turn, reading.uuid.clone(), DeviceState::Free);
                }
            }
            DeviceState::Free
            | DeviceState::Outside { .. }
            | DeviceState::Gone { .. }
            | DeviceState::Unknown { .. } => {
                // A lock held by a supervisor of ours that has not left yet is not an outsider's.
                let next = Pool::judge(device, |token| is_ours(turn, token));
                change(turn, reading.uuid.clone(), next);
            }
        }
    }
}

/// Gives back what is proven clean, or has not been for too long; asks for the next reading when it is due.
pub(super) fn settle(turn: &mut Turn<'_>) {
    let draining: Vec<Lease> = turn.world.leases.draining().cloned().collect();
    for lease in draining {
        let unproven = lease.is_unproven(&turn.now);
        let since = turn.world.leases.draining_since(lease.id, turn.now);
        match drain(turn, &lease, unproven, &since) {
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

fn drain(turn: &Turn<'_>, lease: &Lease, unproven: bool, since: &Now) -> Drain {
    let max = turn.world.pool.drain_max();
    let waited = turn.now.since(since).unwrap_or(max);
    let (last, next) = probes(waited.0);
    let (mut details, mut open, mut due) = (Vec::new(), unproven, false);
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
        }
    }
    if details.is_empty() {
        Drain::Over(Verdict::Clean)
    } else if !open || waited >= max {
        Drain::Over(Verdict::Quarantined { detail: details.join("; ") })
    } else {
        Drain::Goes { probe: due, next: turn.now.boottime_ms + (next.min(max.0) - waited.0) }
    }
}

/// The last reading that was due by `waited`, and the next one, in milliseconds since the drain began.
fn probes(waited: u64) -> (u64, u64) {
    let every = DRAIN_PROBES[DRAIN_PROBES.len() - 1];
    let last = DRAIN_PROBES.iter().rev().find(|at| **at <= waited).copied().unwrap_or(0);
    let last = if last == every { waited - waited % every } else { last };
    (last, DRAIN_PROBES.iter().find(|at| **at > waited).copied().unwrap_or(last + every))
}

/// Closes a lease. Of its devices, those that are proven are what their last reading makes of them: free, gone, or taken
/// by somebody else meanwhile.
fn give_back(turn: &mut Turn<'_>, lease: &Lease, unproven: bool, verdict: Verdict) {
    let proven: Vec<Uuid> = lease
        .held
        .devices
        .iter()
        .map(|held| &held.uuid)
        .filter(|uuid| !unproven && !matches!(turn.world.pool.drained(uuid, lease), Drained::NotYet(_)))
        .cloned()
        .collect();
    turn.emit(Event::LeaseReturned { lease: lease.id, verdict });
    turn.effect(Effect::Dismiss { lease: lease.id });
    if turn.world.queue.get(lease.job).is_some_and(|job| job.done.is_some()) {
        // Its receipt has been written without the proof.
        turn.effect(Effect::WriteReceipt { job: lease.job });
    }
    for uuid in proven {
        if let Some(device) = turn.world.pool.get(&uuid) {
            let next = Pool::judge(device, |token| is_ours(turn, token));
            change(turn, uuid, next);
        }
    }
}

/// While a job could start, devices that are out of service are looked at again: one that is free again starts it within
/// a second.
pub(super) fn watch(turn: &mut Turn<'_>) {
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

fn is_ours(turn: &Turn<'_>, token: &Token) -> bool {
    let lately = turn.world.ledger.iter().rev().take(OURS_LATELY);
    turn.world.leases.iter().chain(lately).any(|lease| lease.token == *token)
}

fn change(turn: &mut Turn<'_>, uuid: Uuid, state: DeviceState) {
    if turn.world.pool.get(&uuid).is_some_and(|device| device.state != state) {
        turn.emit(Event::DeviceChanged { uuid, state });
    }
}
