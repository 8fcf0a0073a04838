//! What readings mean: devices that are free, draining, in quarantine, used from outside, or gone.

use super::step::Turn;
use super::world::{Drained, Pool};
use super::{Effect, StopKind};
use crate::model::{
    DeviceState, Event, Gpu, GpuReading, Lease, LeaseId, Now, Span, Token, Unreadable, Uuid, Verdict,
};

/// A draining device is read when its lease ends and after these spans, then every last one of them.
const DRAIN_PROBES: [u64; 8] = [1, 2, 5, 10, 20, 50, 200, 1_000];

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
            DeviceState::Quarantined(quarantine) => {
                if Pool::judge(device, |_| false) == DeviceState::Free
                    && is_drained(turn, &reading.uuid, quarantine.lease)
                {
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
        match drain(turn, &lease) {
            Drain::Over(verdict) => {
                turn.emit(Event::LeaseReturned { lease: lease.id, verdict });
                turn.effect(Effect::Dismiss { lease: lease.id });
            }
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

fn drain(turn: &Turn<'_>, lease: &Lease) -> Drain {
    let ended = lease.ended.map_or(lease.granted, |(ended, _)| ended);
    // A lease of an earlier boot left no process behind; its proof begins with this boot.
    let since = if ended.boot == turn.now.boot {
        ended
    } else {
        Now { boot: turn.now.boot, boottime_ms: 0, wall_ms: turn.now.wall_ms }
    };
    let waited = turn.now.since(&since).unwrap_or(Span(0)).0;
    let (last, next) = probes(waited);
    let (mut details, mut open, mut unread, mut due) = (Vec::new(), false, false, false);
    for held in &lease.held.devices {
        match turn.world.pool.drained(&held.uuid, lease) {
            Drained::Clean => {}
            Drained::Gone(why) => details.push(format!("{}: {why}", held.uuid)),
            Drained::NotYet(why) => {
                details.push(format!("{}: {why}", held.uuid));
                open = true;
                let device = turn.world.pool.get(&held.uuid);
                let read = device
                    .and_then(|device| device.reading.as_ref())
                    .filter(|reading| reading.at.boottime_ms >= since.boottime_ms)
                    .and_then(|reading| reading.at.since(&since));
                // One that nobody can read any more is not waited for.
                unread |= read.is_none() && device.is_some_and(|device| device.gpu.is_some());
                due |= read.is_none_or(|read| read.0 < last);
            }
        }
    }
    let max = turn.world.pool.drain_max().0;
    if details.is_empty() {
        Drain::Over(Verdict::Clean)
    } else if !open || (waited >= max && !unread) {
        Drain::Over(Verdict::Quarantined { detail: details.join("; ") })
    } else {
        let next = if waited < max { next.min(max) } else { next };
        Drain::Goes { probe: due, next: since.boottime_ms + next }
    }
}

/// The last reading that was due by `waited`, and the next one, in milliseconds since the end.
fn probes(waited: u64) -> (u64, u64) {
    let every = DRAIN_PROBES[DRAIN_PROBES.len() - 1];
    let last = DRAIN_PROBES.iter().rev().find(|at| **at <= waited).copied().unwrap_or(0);
    let last = if last == every { waited - waited % every } else { last };
    (last, DRAIN_PROBES.iter().find(|at| **at > waited).copied().unwrap_or(last + every))
}

/// Whether a device in quarantine is as clean as the lease that left it so had found it.
fn is_drained(turn: &Turn<'_>, uuid: &Uuid, lease: Option<LeaseId>) -> bool {
    let lease = lease.and_then(|lease| turn.world.lease(lease));
    lease.is_none_or(|lease| !matches!(turn.world.pool.drained(uuid, lease), Drained::NotYet(_)))
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
