//! What readings mean: devices that are free, draining, in quarantine, used from outside, or gone.

use super::step::Turn;
use super::world::{DRAIN_MAX, Drained, Pool};
use super::{Effect, StopKind, ask, plan};
use crate::model::{
    DeviceState, Event, Gpu, GpuReading, Lease, LeaseId, Span, Token, Unreadable, Uuid, Verdict,
};

/// A draining device is read again after these spans, then every last one of them.
const DRAIN_PROBES: [Span; 8] =
    [Span(1), Span(2), Span(5), Span(10), Span(20), Span(50), Span(200), Span(1_000)];

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
                let clean =
                    lease.is_none_or(|lease| turn.world.pool.drained(&reading.uuid, lease) == Drained::Clean);
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

/// Gives back what is proven clean, or has not been for too long; asks for the next reading otherwise.
pub(super) fn settle(turn: &mut Turn<'_>) {
    let draining: Vec<Lease> = turn.world.leases.draining().cloned().collect();
    for lease in draining {
        let unproven = turn.world.leases.is_unproven(&lease, &turn.now);
        let (clean, mut not_yet) = (clean_devices(turn, &lease), Vec::new());
        if unproven {
            not_yet.push("a process did not answer its kill".to_owned());
        }
        for held in lease.held.devices.iter().filter(|held| !clean.contains(&held.uuid)) {
            if let Drained::NotYet(why) = turn.world.pool.drained(&held.uuid, &lease) {
                let one = lease.held.devices.len() == 1;
                not_yet.push(if one { why } else { format!("{}: {why}", held.uuid) });
            }
        }
        let first_seen = turn.world.leases.draining_since(lease.id, turn.now);
        let waited = turn.now.since(&first_seen).unwrap_or(DRAIN_MAX);
        if not_yet.is_empty() {
            give_back(turn, lease.id, Verdict::Clean);
        } else if waited >= DRAIN_MAX {
            give_back(turn, lease.id, Verdict::Quarantined { detail: not_yet.join("; ") });
            for uuid in clean.into_iter().filter(|_| !unproven) {
                change(turn, uuid, DeviceState::Free);
            }
        } else {
            let again = DRAIN_PROBES.iter().find(|span| **span > waited);
            let next = again.map_or(waited.0 + 1_000, |span| span.0).min(DRAIN_MAX.0);
            turn.effect(Effect::Probe);
            turn.wake(turn.now.boottime_ms + (next - waited.0));
        }
    }
}

fn clean_devices(turn: &Turn<'_>, lease: &Lease) -> Vec<Uuid> {
    let clean = |uuid: &&Uuid| turn.world.pool.drained(uuid, lease) == Drained::Clean;
    lease.held.devices.iter().map(|held| &held.uuid).filter(clean).cloned().collect()
}

fn give_back(turn: &mut Turn<'_>, lease: LeaseId, verdict: Verdict) {
    turn.emit(Event::LeaseReturned { lease, verdict });
    turn.effect(Effect::Dismiss { lease });
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
    let some_out = turn.world.pool.devices().any(|(_, device)| device.gpu.is_some() && out(&device.state));
    if !some_out {
        return;
    }
    let waits = turn
        .world
        .queue
        .line()
        .take(WATCH_DEPTH)
        .any(|job| ask(turn.world, job).gpus > 0 && plan::gate(turn.world, job, &turn.now).is_none());
    if waits {
        turn.effect(Effect::Probe);
        turn.wake(turn.now.boottime_ms + WATCH_EVERY.0);
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
