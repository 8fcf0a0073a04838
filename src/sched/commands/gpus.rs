//! What operators do to devices.

use super::refused;
use crate::model::{Accepted, Close, DeviceState, Event, Owner, Uuid, clean_line};
use crate::protocol::{GpuSelect, Reply};
use crate::sched::Effect;
use crate::sched::step::Turn;

pub(super) fn each_gpu(
    turn: &mut Turn<'_>,
    select: &GpuSelect,
    mut act: impl FnMut(&mut Turn<'_>, Uuid) -> Result<String, Reply>,
) -> Result<String, Reply> {
    let mut matching: Vec<Uuid> = turn
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
    if let GpuSelect::Uuid(wanted) = select
        && matching.contains(wanted)
    {
        // A whole name may be the beginning of another.
        matching = vec![wanted.clone()];
    }
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

/// Nobody gets a closed device. One that is held, or not proven clean, is closed when it is given back.
pub(super) fn close(turn: &mut Turn<'_>, uuid: Uuid, reason: &str, by: &Owner) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    let close = Close { reason: clean_line(reason), by: by.name.clone() };
    let after = match turn.world.pool.get(&uuid).map(|device| &device.state) {
        Some(DeviceState::Held { lease }) => {
            let job = turn.world.lease(*lease).map_or_else(String::new, |lease| format!(" #{}", lease.job));
            format!("{name} is closed when its job{job} has ended")
        }
        Some(DeviceState::Draining { .. }) => format!("{name} is closed once it is proven clean"),
        Some(DeviceState::Quarantined(_)) => format!("{name} is closed once it is out of quarantine"),
        Some(_) => {
            let Close { reason, by } = close;
            turn.emit(Event::DeviceChanged { uuid, state: DeviceState::Closed { reason, by } });
            return Ok(format!("{name} is closed"));
        }
        None => return Err(Reply::NotFound { message: format!("no GPU {uuid}") }),
    };
    if turn.world.pool.get(&uuid).and_then(|device| device.close.as_ref()) != Some(&close) {
        turn.emit(Event::DeviceClosing { uuid, close: Some(close) });
    }
    Ok(after)
}

pub(super) fn open(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    match turn.world.pool.get(&uuid) {
        Some(device) if matches!(device.state, DeviceState::Closed { .. }) => {
            reread(turn, uuid);
            Ok(format!("{name} is open"))
        }
        Some(device) if device.close.is_some() => {
            turn.emit(Event::DeviceClosing { uuid, close: None });
            Ok(format!("{name} stays open"))
        }
        _ => Err(refused(format!("{name} is not closed"))),
    }
}

/// An operator has looked at it. What it tells of its health now is lived with; anything new is a new fault.
pub(super) fn clear(turn: &mut Turn<'_>, uuid: Uuid) -> Result<String, Reply> {
    let name = gpu_name(turn, &uuid);
    let Some(device) = turn.world.pool.get(&uuid) else {
        return Err(Reply::NotFound { message: format!("no GPU {uuid}") });
    };
    let quarantined = matches!(device.state, DeviceState::Quarantined(_));
    let is_faulty = device.fault.is_some();
    if !quarantined && !is_faulty {
        return Err(refused(format!("{name} is not in quarantine; it is {}", device.state.word())));
    }
    if is_faulty {
        let accepted = Accepted {
            boot: turn.now.boot,
            health: device.reading.as_ref().map(|reading| reading.health).unwrap_or_default(),
        };
        turn.emit(Event::DeviceCleared { uuid: uuid.clone(), accepted: Some(accepted) });
    }
    if let Some(DeviceState::Quarantined(quarantine)) = turn.world.pool.get(&uuid).map(|device| &device.state)
    {
        let lease = quarantine.lease;
        reread(turn, uuid);
        if let Some(lease) = lease {
            // Its supervisor may still have the device's lock.
            turn.effect(Effect::Dismiss { lease });
        }
        return Ok(format!("{name} is out of quarantine; it is free once a reading shows it clean"));
    }
    Ok(format!("{name} has no fault any more"))
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
