//! What readings mean: devices that are free, draining, in quarantine, used from outside, or gone.

use super::step::Turn;
use super::world::{DRAIN_MAX, Drained, Pool};
use super::{Effect, StopKind};
use crate::model::{DeviceState, Event, Gpu, GpuReading, Lease, Span, Token, Unreadable, Uuid, Verdict};

/// A draining device is read again after these spans, then every last one of them.
const DRAIN_PROBES: [Span; 8] =
    [Span(1), Span(2), Span(5), Span(10), Span(20), Span(50), Span(200), Span(1_000)];

/// Takes the list of devices that are there now.
pub(super) fn listed(turn: &mut Turn<'_>, gpus: &[Gpu]) {
    turn.world.pool.list(gpus);
    let missing: Vec<Uuid> = turn
        .world
        .pool
        .devices()
        .into_iter()
        .filter(|(_, device)| device.gpu.is_none() && idle(&device.state))
        .map(|(uuid, _)| uuid.clone())
        .collect();
    for uuid in missing {
        change(turn, uuid, DeviceState::Gone { detail: "no longer listed by the driver".to_owned() });
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
            DeviceState::Quarantined(_) => {
                if Pool::judge(device, |_| false) == DeviceState::Free {
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
        let not_yet: Vec<String> = lease
            .held
            .devices
            .iter()
            .filter_map(|held| match turn.world.pool.drained(&held.uuid, &lease) {
                Drained::Clean => None,
                Drained::NotYet(why) => Some(format!("{}: {why}", held.uuid)),
            })
            .collect();
        let ended = lease.ended.map_or(lease.granted, |(ended, _)| ended);
        // A lease of an earlier boot left no process behind, but memory and health are still proven by a reading.
        let waited = turn.now.since(&ended).unwrap_or(Span(0));
        if not_yet.is_empty() {
            turn.emit(Event::LeaseReturned { lease: lease.id, verdict: Verdict::Clean });
            turn.effect(Effect::Dismiss { lease: lease.id });
        } else if waited >= DRAIN_MAX {
            let verdict = Verdict::Quarantined { detail: not_yet.join("; ") };
            turn.emit(Event::LeaseReturned { lease: lease.id, verdict });
            turn.effect(Effect::Dismiss { lease: lease.id });
        } else {
            let next =
                DRAIN_PROBES.iter().find(|span| span.0 > waited.0).copied().unwrap_or(Span(waited.0 + 1_000));
            turn.effect(Effect::Probe);
            turn.wake(ended.boottime_ms.max(turn.now.boottime_ms - waited.0) + next.0);
        }
    }
}

/// Whether a device is in a state that readings alone decide.
const fn idle(state: &DeviceState) -> bool {
    matches!(state, DeviceState::Free | DeviceState::Outside { .. } | DeviceState::Unknown { .. })
}

fn is_ours(turn: &Turn<'_>, token: &Token) -> bool {
    turn.world.leases.iter().chain(turn.world.ledger.iter()).any(|lease| lease.token == *token)
}

fn change(turn: &mut Turn<'_>, uuid: Uuid, state: DeviceState) {
    if turn.world.pool.get(&uuid).is_some_and(|device| device.state != state) {
        turn.emit(Event::DeviceChanged { uuid, state });
    }
}
