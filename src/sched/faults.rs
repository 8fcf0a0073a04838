//! What is wrong with devices: told by the driver as it happens, read from their figures, or seen by their absence.
//!
//! A fault stays with its device until an operator clears it, or a reset is proven and a few readings in a row show the
//! device clean. Until then it is in quarantine, or will be when its lease is over. What an Xid means is in `xid`.

use super::step::Turn;
use super::world::{Drained, Pool};
use super::xid::{self, Class};
use super::{Effect, StopKind, devices};
use crate::model::{
    AttemptNo, DeviceState, Event, Fault, FaultKind, FaultNews, Health, JobId, LeaseId, Quarantine, TaskIx,
    Unreadable, Uuid,
};

/// So many reasons are kept of one fault.
const REASONS: usize = 3;
/// So much is noted about one attempt; a driver may tell thousands of times a second.
const NOTES: usize = 20;

/// Takes what the driver told as it happened. Whatever it was: the devices are read again at once.
pub(super) fn told(turn: &mut Turn<'_>, news: &[FaultNews]) {
    for FaultNews { uuid, kind } in news {
        let Some(device) = turn.world.pool.get(uuid) else { continue };
        let health = device.reading.as_ref().map(|reading| reading.health).unwrap_or_default();
        let (class, what) = match kind {
            FaultKind::Xid(code) => {
                let entry = xid::entry(*code);
                (entry.class, format!("Xid {code}: {}", entry.words))
            }
            FaultKind::DoubleBit => (Class::Device, "a memory error that ECC could not correct".to_owned()),
        };
        let then = match class {
            Class::Program => "an error of the program, not of the GPU",
            Class::Notice => "nothing is wrong",
            Class::Device => "the GPU is not handed out again until it is reset or cleared",
            Class::Lost => "the run is ended",
        };
        note(turn, uuid, &format!("{what}, on GPU {uuid}; {then}"));
        if matches!(class, Class::Device | Class::Lost) {
            fault(turn, uuid, &what, (false, health));
        }
        if class == Class::Lost {
            end_run(turn, uuid, &what);
        }
    }
    turn.effect(Effect::Probe);
}

/// Looks for what is wrong in a device's last reading.
pub(super) fn examine(turn: &mut Turn<'_>, uuid: &Uuid) {
    let Some(device) = turn.world.pool.get(uuid) else { return };
    let Some(reading) = &device.reading else { return };
    if let Some(Unreadable::Gone { detail }) = &reading.unreadable {
        let detail = detail.clone();
        lost(turn, uuid, &detail);
        return;
    }
    let (boot, health) = (reading.at.boot, reading.health);
    if let Some(what) = health.ailment(boot, device.accepted.as_ref()) {
        if device.fault.as_ref().is_some_and(|fault| fault.is_reset(boot, &health)) {
            // The reset did not help: what was before it says nothing about the next one.
            let renewed = Fault { why: what.to_owned(), at: turn.now, lost: false, health };
            turn.emit(Event::DeviceFaulted { uuid: uuid.clone(), fault: renewed });
        }
        note(
            turn,
            uuid,
            &format!("GPU {uuid}: {what}; it is not handed out again until it is reset or cleared"),
        );
        fault(turn, uuid, what, (false, health));
        return;
    }
    if let (None, Some(old)) = (&device.fault, device.accepted)
        && old.after(boot, &health) != old
    {
        // It was reset: the same error again would be a new one.
        let accepted = Some(old.after(boot, &health));
        turn.emit(Event::DeviceCleared { uuid: uuid.clone(), accepted });
    }
}

/// A device is not there.
pub(super) fn lost(turn: &mut Turn<'_>, uuid: &Uuid, detail: &str) {
    fault(turn, uuid, &format!("it was gone: {detail}"), (true, Health::default()));
    let in_pool = |state: &DeviceState| {
        matches!(state, DeviceState::Free | DeviceState::Outside { .. } | DeviceState::Unknown { .. })
    };
    if turn.world.pool.get(uuid).is_some_and(|device| in_pool(&device.state)) {
        devices::change(turn, uuid.clone(), DeviceState::Gone { detail: detail.to_owned() });
    }
    end_run(turn, uuid, detail);
}

/// Ends the run on a device that was lost.
fn end_run(turn: &mut Turn<'_>, uuid: &Uuid, detail: &str) {
    if let Some(DeviceState::Held { lease }) = turn.world.pool.get(uuid).map(|device| &device.state) {
        let why = format!("GPU {uuid} is gone: {detail}");
        turn.effect(Effect::Stop { lease: *lease, kind: StopKind::Lost { why } });
    }
}

/// Remembers a fault, or adds to the one that is there.
fn fault(turn: &mut Turn<'_>, uuid: &Uuid, what: &str, (lost, health): (bool, Health)) {
    let Some(device) = turn.world.pool.get(uuid) else { return };
    let next = match &device.fault {
        None => Fault { why: what.to_owned(), at: turn.now, lost, health },
        Some(old) => {
            let reasons: Vec<&str> = old.why.split("; ").collect();
            let why = if reasons.contains(&what) || reasons.len() >= REASONS {
                old.why.clone()
            } else {
                format!("{}; {what}", old.why)
            };
            Fault { why, at: old.at, lost: lost || old.lost, health: old.health.worst(health) }
        }
    };
    if device.fault.as_ref() != Some(&next) {
        turn.emit(Event::DeviceFaulted { uuid: uuid.clone(), fault: next });
        if !lost {
            devices::put_current(turn, uuid);
        }
    }
}

/// What a fault makes of a device that nobody of ours holds. One that a lease left dirty has to be proven clean besides.
pub(super) fn quarantine(fault: &Fault, old: &DeviceState) -> DeviceState {
    let since = match old {
        DeviceState::Quarantined(quarantine) if quarantine.lease.is_some() => return old.clone(),
        DeviceState::Quarantined(quarantine) => quarantine.since,
        _ => fault.at,
    };
    DeviceState::Quarantined(Quarantine { why: fault.why.clone(), since, lease: None })
}

/// Ends the fault of a device in quarantine once a reset is proven and enough readings in a row show it clean.
pub(super) fn recover(turn: &mut Turn<'_>, uuid: &Uuid, drained: &Drained) {
    let Some(device) = turn.world.pool.get(uuid) else { return };
    let (Some(fault), Some(reading)) = (&device.fault, &device.reading) else { return };
    let (boot, health) = (reading.at.boot, reading.health);
    let clean = fault.is_reset(boot, &health)
        && health.ailment(boot, device.accepted.as_ref()).is_none()
        && *drained == Drained::Clean
        && Pool::judge(device, |token| devices::is_ours(turn, token)) == DeviceState::Free;
    let accepted = device.accepted.map(|accepted| accepted.after(boot, &health));
    if turn.world.pool.prove(uuid, clean) {
        turn.emit(Event::DeviceCleared { uuid: uuid.clone(), accepted });
    }
}

/// Tells the attempt that has a device, or had it last, something about it; once.
fn note(turn: &mut Turn<'_>, uuid: &Uuid, note: &str) {
    let Some((job, task, attempt)) = turn.world.pool.holder(uuid).and_then(|lease| attempt_of(turn, lease))
    else {
        return;
    };
    let known = turn.world.queue.get(job).and_then(|row| row.task(task)).is_none_or(|row| {
        let notes = &row.current().notes;
        row.current().number != attempt || notes.len() >= NOTES || notes.iter().any(|known| known == note)
    });
    if !known {
        turn.emit(Event::AttemptNoted { job, task, attempt, note: note.to_owned() });
    }
}

fn attempt_of(turn: &Turn<'_>, lease: LeaseId) -> Option<(JobId, TaskIx, AttemptNo)> {
    let lease = turn.world.leases.get(lease)?;
    let (task, attempt) = *lease.attempts.last()?;
    Some((lease.job, task, attempt))
}
