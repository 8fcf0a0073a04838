//! Who had, has and is expected to get which device.

use crate::model::{DeviceState, Lease, LeaseId, Now, Uuid, clean_line};
use crate::protocol::{SpanKind, Timeline, TimelineSpan};
use crate::sched::forecast::{Forecast, forecast};
use crate::sched::world::{Device, World};
use std::collections::HashMap;

/// Spans of the past in one answer.
const PAST: usize = 4_000;
/// Without a `from`, so much of the past.
const DAY_MS: i64 = 86_400_000;

/// Who had, has and is expected to get which device, between two wall times.
pub fn timeline(world: &World, now: &Now, from_ms: Option<i64>, until_ms: Option<i64>) -> Timeline {
    let from = from_ms.unwrap_or_else(|| now.wall_ms.saturating_sub(DAY_MS));
    let forecasts = forecast(world, now);
    let last = forecasts.values().filter_map(|forecast| forecast.finishes_at.or(forecast.starts_at)).max();
    let until = until_ms.unwrap_or_else(|| last.unwrap_or(now.wall_ms).max(now.wall_ms));
    let mut line = Line { world, now, from, until, index: indices(world), spans: Vec::new(), cut: None };
    line.past();
    for (uuid, device) in world.pool.devices() {
        line.present(uuid, device, &forecasts);
    }
    for (job, forecast) in &forecasts {
        if let (Some(start), Some(job)) = (forecast.starts_at, world.queue.get(*job)) {
            let span = TimelineSpan {
                kind: SpanKind::Planned,
                job: Some(job.id),
                name: job.spec.name.clone(),
                user: job.owner.name.clone(),
                from: start,
                from_by: forecast.starts_by,
                until: forecast.finishes_at,
                until_by: forecast.finishes_by,
                ..blank()
            };
            forecast.devices.iter().for_each(|uuid| line.put(uuid, span.clone()));
        }
    }
    let Line { mut spans, cut, .. } = line;
    spans.sort_by_key(|span| (span.index.unwrap_or(u32::MAX), span.gpu.clone(), span.from, span.job));
    Timeline { from_ms: from, until_ms: until, now_ms: now.wall_ms, spans, cut_before: cut }
}

struct Line<'a> {
    world: &'a World,
    now: &'a Now,
    from: i64,
    until: i64,
    index: HashMap<Uuid, u32>,
    spans: Vec<TimelineSpan>,
    cut: Option<i64>,
}

fn indices(world: &World) -> HashMap<Uuid, u32> {
    world
        .pool
        .devices()
        .filter_map(|(uuid, device)| Some((uuid.clone(), device.gpu.as_ref()?.index)))
        .collect()
}

impl Line<'_> {
    /// A span, if any of it is asked for.
    fn put(&mut self, uuid: &Uuid, span: TimelineSpan) {
        if span.from <= self.until && span.until.is_none_or(|until| until > self.from) {
            let index = self.index.get(uuid).copied();
            self.spans.push(TimelineSpan { gpu: uuid.clone(), index, ..span });
        }
    }

    /// Leases that have ended, the newest first, as far as there is room.
    fn past(&mut self) {
        let world = self.world;
        if let Some(oldest) = world.ledger.oldest_if_full() {
            self.cut = Some(oldest.granted.wall_ms).filter(|at| *at > self.from);
        }
        for lease in world.ledger.iter().rev() {
            let Some(held) = lease.held_for(self.now) else { continue };
            let end = lease.granted.wall_ms.saturating_add_unsigned(held.0);
            if end <= self.from || lease.granted.wall_ms >= self.until {
                continue;
            }
            if self.spans.len() + lease.held.devices.len() > PAST {
                self.cut = Some(end.max(self.from));
                return;
            }
            let span = of_lease(lease, SpanKind::Past, lease.granted.wall_ms, Some(end));
            lease.held.devices.iter().for_each(|device| self.put(&device.uuid, span.clone()));
        }
    }

    /// What a device is now.
    fn present(&mut self, uuid: &Uuid, device: &Device, forecasts: &HashMap<crate::model::JobId, Forecast>) {
        let lease = |id: LeaseId| self.world.lease(id);
        let span = match &device.state {
            DeviceState::Held { lease: id } => lease(*id).map(|lease| {
                let forecast = forecasts.get(&lease.job);
                TimelineSpan {
                    until_by: forecast.and_then(|forecast| forecast.finishes_by),
                    ..of_lease(
                        lease,
                        SpanKind::Held,
                        lease.granted.wall_ms,
                        forecast.and_then(|forecast| forecast.finishes_at),
                    )
                }
            }),
            DeviceState::Draining { lease: id, since } => {
                lease(*id).map(|lease| of_lease(lease, SpanKind::Draining, since.wall_ms, None))
            }
            DeviceState::Quarantined(quarantine) => Some(quarantine.lease.and_then(lease).map_or_else(
                || TimelineSpan {
                    kind: SpanKind::Quarantined,
                    name: clean_line(&quarantine.why),
                    from: quarantine.since.wall_ms,
                    ..blank()
                },
                |lease| of_lease(lease, SpanKind::Quarantined, quarantine.since.wall_ms, None),
            )),
            _ => None,
        };
        if let Some(span) = span {
            self.put(uuid, span);
        }
    }
}

fn of_lease(lease: &Lease, kind: SpanKind, from: i64, until: Option<i64>) -> TimelineSpan {
    TimelineSpan {
        kind,
        lease: Some(lease.id),
        job: Some(lease.job),
        name: lease.job_name.clone(),
        user: lease.owner.name.clone(),
        from,
        until,
        ..blank()
    }
}

const fn blank() -> TimelineSpan {
    TimelineSpan {
        gpu: Uuid(String::new()),
        index: None,
        kind: SpanKind::Past,
        lease: None,
        job: None,
        name: String::new(),
        user: String::new(),
        from: 0,
        from_by: None,
        until: None,
        until_by: None,
    }
}
