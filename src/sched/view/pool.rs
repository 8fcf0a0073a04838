//! The devices, and the running meter.

use super::Frame;
use crate::model::{DeviceState, Lease, Outcome, Unreadable, Uuid, clean_line};
use crate::protocol::{GpuRow, MeterSummary, UserMeter};
use crate::sched::world::{Device, Drained, PROOFS, World};
use std::collections::BTreeMap;

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
        idle_since: None,
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

/// The running meter.
pub fn meter(world: &World, frame: &Frame<'_>) -> MeterSummary {
    let now = &frame.now;
    let week_began = frame.today_began - 6 * 86_400_000;
    let mut users: BTreeMap<&str, UserMeter> = BTreeMap::new();
    let mut summary = MeterSummary {
        gpus_total: world.pool.gpus(),
        today_began: frame.today_began,
        ..MeterSummary::default()
    };
    for lease in world.ledger.iter().chain(world.leases.held()) {
        let user = users.entry(&lease.owner.name).or_default();
        let gpus = lease.held.devices.len() as u64;
        let from = lease.granted.wall_ms;
        let to = from + lease.held_for(now).map_or(0, |held| held.0 as i64);
        let overlap = |since: i64| (to - from.max(since)).max(0).unsigned_abs() * gpus;
        user.today_gpu_ms += overlap(frame.today_began);
        user.week_gpu_ms += overlap(week_began);
        summary.today_gpu_ms += overlap(frame.today_began);
        if lease.ended.is_none() {
            user.held += gpus as u32;
            user.running += 1;
            summary.gpus_held += gpus as u32;
        }
    }
    for job in world.queue.line() {
        users.entry(&job.owner.name).or_default().waiting += 1;
    }
    for job in world
        .queue
        .history()
        .take_while(|job| job.done.as_ref().is_some_and(|(at, _)| at.wall_ms >= frame.today_began))
    {
        match job.done.as_ref().map(|(_, outcome)| outcome) {
            Some(Outcome::Succeeded) => summary.today_ok += 1,
            Some(Outcome::Failed(_) | Outcome::LimitReached) => summary.today_failed += 1,
            Some(Outcome::Lost { .. }) => summary.today_lost += 1,
            Some(Outcome::Cancelled { .. } | Outcome::NeverStarted { .. }) | None => {}
        }
    }
    summary.users =
        users.into_iter().map(|(user, meter)| UserMeter { user: user.to_owned(), ..meter }).collect();
    summary
}
