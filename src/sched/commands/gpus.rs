//! What operators do to devices.

use super::refused;
use crate::model::{DeviceState, Event, Owner, Uuid, clean_line};
use crate::protocol::{GpuSelect, Reply};
use crate::sched::Effect;
use crate::sched::step::Turn;

pub(super) fn each_gpu(
    turn: &mut Turn<'_>,
    select: &GpuSelect,
    mut act: impl FnMut(&mut Turn<'_>, Uuid) -> Result<String, Reply>,
) -> Result<String, Reply> {
    let matching: Vec<Uuid> = turn
        .world
        .pool
        .devices()
        .filter(|(uuid, device)| match select {
            GpuSelect::All => true,
            GpuSelect::Index(index) => device.gpu.as_ref().is_some_and(|gpu| gpu.index == *index),
            GpuSelect::Uuid(wanted) => uuid.0.starts_with(&wanted.0),
        })
        .map(|(uuid, _)| uuid.clone())
        .collect();
    if matching.is_empty() || (matching.len() > 1 && *select != GpuSelect::All) {
        let there: Vec<String> = turn
            .world
            .pool
            .devices()
            .map(|(uuid, device)| {
                device.gpu.as_ref().map_or_else(|| uuid.to_string(), |gpu| gpu.index.to_string())
            })
            .collect();
        return Err(Reply::NotFound { message: format!("no such GPU; there are: {}", there.join(" ")) });
    }
    let mut said = Vec::new();
    for uuid in matching {
        match act(turn, uuid) {
            Ok(message) => said.push(message),
            Err(reply) if *select != GpuSelect::All => return Err(reply),
            Err(_) => {}
        }
    }
    if said.is_empty() { Err(refused("nothing to do".to_owned())) } else { Ok(said.join("; ")) }
}

pub(super) fn close(turn: &mut Turn<'_>, uuid: Uuid, reason: &str, by: &Owner) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Held { lease }) => {
            Err(refused(format!("{name} is held by lease {lease}; cancel its job, or wait for its end")))
        }
        Some(DeviceState::Draining { .. }) => {
            Err(refused(format!("{name} is draining; try again in a moment")))
        }
        Some(_) => {
            let state = DeviceState::Closed { reason: clean_line(reason), by: by.name.clone() };
            turn.emit(Event::DeviceChanged { uuid, state });
            Ok(format!("{name} is closed"))
        }
        None => Err(Reply::NotFound { message: format!("no GPU {uuid}") }),
    }
}

pub(super) fn open(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Closed { .. }) => {
            reread(turn, uuid);
            Ok(format!("{name} is open"))
        }
        _ => Err(refused(format!("{name} is not closed"))),
    }
}

pub(super) fn clear(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Quarantined(quarantine)) => {
            let lease = quarantine.lease;
            reread(turn, uuid);
            if let Some(lease) = lease {
                // Its supervisor may still have the device's lock.
                turn.effect(Effect::Dismiss { lease });
            }
            Ok(format!("{name} is out of quarantine; it is free once a reading shows it clean"))
        }
        _ => Err(refused(format!("{name} is not in quarantine"))),
    }
}

/// Lets the next reading decide what a device is.
fn reread(turn: &mut Turn<'_>, uuid: Uuid) {
    turn.emit(Event::DeviceChanged { uuid, state: DeviceState::Unknown { detail: "being read".to_owned() } });
    turn.effect(Effect::Probe);
}

fn gpu_name(turn: &Turn<'_>, uuid: &Uuid) -> String {
    turn.world
        .pool
        .get(uuid)
        .and_then(|device| device.gpu.as_ref())
        .map_or_else(|| uuid.to_string(), |gpu| format!("GPU {}", gpu.index))
}
