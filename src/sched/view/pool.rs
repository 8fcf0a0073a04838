//! The devices.

use super::Frame;
use crate::model::{DeviceState, Lease, Unreadable, Uuid, clean_line};
use crate::protocol::GpuRow;
use crate::sched::world::{Device, Drained, PROOFS, World};

/// The devices.
pub fn gpus(world: &World, frame: &Frame<'_>) -> Vec<GpuRow> {
    world.pool.devices().enumerate().map(|(ix, (uuid, device))| gpu(world, uuid, device, ix, frame)).collect()
}

fn gpu(world: &World, uuid: &Uuid, device: &Device, ix: usize, frame: &Frame<'_>) -> GpuRow {
    let holder = match &device.state {
        DeviceState::Held { lease } | DeviceState::Draining { lease, .. } => world.lease(*lease),
        _ => None,
    };
    // What is no longer listed is still shown by its name.
    let listed = device.gpu.as_ref().or(device.was.as_ref());
    let reading = device.reading.as_ref();
    GpuRow {
        uuid: uuid.clone(),
        index: listed.map_or(ix as u32, |gpu| gpu.index),
        node: listed.map_or_else(String::new, |gpu| gpu.node.clone()),
        name: listed.map_or_else(String::new, |gpu| clean_line(&gpu.name)),
        state: device.state.clone(),
        jobs: holder.map(|lease| lease.job).into_iter().collect(),
        utilisation: reading.and_then(|reading| reading.utilisation),
        memory_used: reading.and_then(|reading| reading.memory_used),
        memory_total: listed.map_or_else(Default::default, |gpu| gpu.memory),
        temperature_c: reading.and_then(|reading| reading.temperature_c),
        power_w: reading.and_then(|reading| reading.power_w),
        processes: reading.and_then(|reading| reading.processes.clone()).unwrap_or_default(),
        detail: device_detail(world, (uuid, device), holder, frame),
        enforced: false,
        idle_since: device.idle_since().map(|since| since.wall_ms),
    }
}

fn device_detail(
    world: &World,
    (uuid, device): (&Uuid, &Device),
    holder: Option<&Lease>,
    frame: &Frame<'_>,
) -> Option<String> {
    let text = match &device.state {
        DeviceState::Free => String::new(),
        DeviceState::Held { .. } => {
            match device.reading.as_ref().and_then(|reading| reading.unreadable.as_ref()) {
                Some(Unreadable::Gone { detail } | Unreadable::Failed { detail }) => detail.clone(),
                None => String::new(),
            }
        }
        DeviceState::Draining { since, .. } => {
            let since = format!("draining since {}", (frame.clock)(since.wall_ms));
            match holder.map(|lease| world.pool.drained(uuid, lease)) {
                Some(Drained::NotYet(why) | Drained::Gone(why)) => format!("{since}: {why}"),
                Some(Drained::Clean) | None => since,
            }
        }
        DeviceState::Quarantined(quarantine) => {
            format!("{}, since {}", quarantine.why, (frame.clock)(quarantine.since.wall_ms))
        }
        DeviceState::Outside { who } => format!("used by {who}"),
        DeviceState::Closed { reason, by } => format!("closed by {by}{}", said(reason)),
        DeviceState::Gone { detail } | DeviceState::Unknown { detail } => detail.clone(),
    };
    let parts: Vec<String> =
        [Some(text), fault_detail(device), close_detail(device)].into_iter().flatten().collect();
    let text =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then(|| clean_line(&text))
}

/// What a fault means for what comes next.
fn fault_detail(device: &Device) -> Option<String> {
    let fault = device.fault.as_ref()?;
    match &device.state {
        DeviceState::Held { .. } | DeviceState::Draining { .. } => {
            Some(format!("{}: in quarantine after its job", fault.why))
        }
        DeviceState::Quarantined(_) if device.proofs() > 0 => {
            Some(format!("back after a reset, {} of {PROOFS} clean readings", device.proofs()))
        }
        DeviceState::Quarantined(quarantine) if quarantine.why == fault.why => {
            Some("a reset or `overnight clear` ends it".to_owned())
        }
        DeviceState::Quarantined(_) => Some(format!("{}: a reset or `overnight clear` ends it", fault.why)),
        DeviceState::Free
        | DeviceState::Outside { .. }
        | DeviceState::Closed { .. }
        | DeviceState::Gone { .. }
        | DeviceState::Unknown { .. } => None,
    }
}

fn close_detail(device: &Device) -> Option<String> {
    let close = device.close.as_ref()?;
    Some(format!("to be closed for {}{}", close.by, said(&close.reason)))
}

fn said(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}
