//! When each waiting job is expected to start and to finish: the same walk as the plan's, in simulated time.
//!
//! Computed only when somebody asks, and for the first [`HORIZON`] jobs of the line.

use super::plan::{Ask, Frame, Placement, Reason, ask, gate, length, queued};
use super::world::World;
use crate::model::{Cursor, Job, JobId, Now, Span, Uuid};
use std::collections::HashMap;

/// Jobs of the line that a forecast reaches.
pub(super) const HORIZON: usize = 128;
/// Moments a forecast looks at.
const MOMENTS: usize = 1_024;

/// One job's forecast, wall milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// Expected start.
    pub starts_at: Option<i64>,
    /// Start at the latest, if everybody uses all of their limit.
    pub starts_by: Option<i64>,
    /// Expected end.
    pub finishes_at: Option<i64>,
    /// End at the latest.
    pub finishes_by: Option<i64>,
    /// The devices that a waiting job is expected to get.
    pub devices: Vec<Uuid>,
}

/// Forecasts by job.
pub type Forecasts = HashMap<JobId, Forecast>;

/// Forecasts the line, and the ends of what runs: once as it is expected, once as it is if everybody uses all of their
/// limit.
pub fn forecast(world: &World, now: &Now) -> Forecasts {
    forecast_line(world, &world.queue.line().take(HORIZON).collect::<Vec<_>>(), now)
}

/// The same for another line than the world's.
pub(super) fn forecast_line(world: &World, line: &[&Job], now: &Now) -> Forecasts {
    let limit = |job: &Job| job.spec.request.limit.span();
    let expected = |job: &Job| world.people.predicted(job).or_else(|| limit(job));
    let by_limit = simulate(world, line, now, &length);
    let by_prediction = simulate(world, line, now, &expected);
    let wall = |boottime: u64| now.wall_ms.saturating_add_unsigned(boottime.saturating_sub(now.boottime_ms));
    let mut out = Forecasts::new();
    for (job, Expected { start, end, devices }) in by_prediction {
        let limit = by_limit.get(&job);
        let latest = limit.and_then(|limit| limit.start);
        out.insert(
            job,
            Forecast {
                starts_at: start.map(wall),
                starts_by: latest.map(|latest| wall(latest.max(start.unwrap_or(latest)))),
                finishes_at: end.map(wall),
                finishes_by: limit.and_then(|limit| limit.end).map(wall),
                devices,
            },
        );
    }
    out
}

/// Boottime milliseconds.
#[derive(Debug, Clone, Default)]
struct Expected {
    start: Option<u64>,
    end: Option<u64>,
    devices: Vec<Uuid>,
}

type Times = HashMap<JobId, Expected>;

fn simulate(world: &World, line: &[&Job], now: &Now, expected: &dyn Fn(&Job) -> Option<Span>) -> Times {
    let mut times = Times::new();
    for lease in world.leases.held() {
        let end =
            world.queue.get(lease.job).and_then(expected).map(|length| match now.since(&lease.granted) {
                // One that has outlived what was expected of it is expected to need as long again.
                Some(held) if held >= length => now.boottime_ms.saturating_add(length.0.max(1_000)),
                Some(held) => now.boottime_ms.saturating_add(length.0 - held.0),
                None => now.boottime_ms,
            });
        times.insert(lease.job, Expected { end, ..Expected::default() });
    }
    let mut frame = Frame::new(world, now).hypothetical(&|job| times.get(&job).and_then(|held| held.end));
    let mut pending: Vec<(&Job, Ask)> =
        line.iter().take(HORIZON).map(|job| (*job, ask(world, job))).collect();
    for _ in 0..MOMENTS {
        let least_gpus = pending.iter().map(|(_, ask)| ask.gpus).min().unwrap_or_default();
        let mut next_ready: Option<u64> = None;
        pending.retain(|(job, ask)| {
            let Some(ready) = ready_at(world, job, now, &times) else { return true };
            if ready > frame.at() {
                next_ready = Some(next_ready.map_or(ready, |next| next.min(ready)));
                return true;
            }
            if frame.exhausted(least_gpus) {
                return true;
            }
            match frame.place(job, ask, expected(job)) {
                Placement::Fits(devices) => {
                    let length = expected(job);
                    let end = length.map(|length| frame.at().saturating_add(length.0));
                    frame.occupy(job.id, &devices, ask, length);
                    let devices = devices.into_iter().map(|device| device.uuid).collect();
                    times.insert(job.id, Expected { start: Some(frame.at()), end, devices });
                    false
                }
                Placement::Short(_) => {
                    frame.reserve(job, ask);
                    true
                }
                Placement::Stale { .. } | Placement::BehindHead { .. } => true,
            }
        });
        let next = [frame.next_return(), next_ready].into_iter().flatten().min();
        match next {
            Some(at) if !pending.is_empty() => frame.advance(at.max(frame.at() + 1)),
            _ => break,
        }
    }
    times
}

/// When nothing but room keeps a job from starting, boottime milliseconds; `None`: nobody knows.
fn ready_at(world: &World, job: &Job, now: &Now, times: &Times) -> Option<u64> {
    queued(job)?;
    let boottime = |wall: i64| now.boottime_ms.saturating_add_signed(wall - now.wall_ms);
    match gate(world, job, now) {
        None | Some(Reason::Preparing { .. }) => Some(now.boottime_ms),
        Some(
            Reason::StartAfter { at_ms }
            | Reason::RetryAt { at_ms }
            | Reason::Editing { until_ms: at_ms, .. },
        ) => Some(boottime(at_ms).max(now.boottime_ms)),
        Some(Reason::After { .. }) => {
            let mut ready =
                job.spec.request.start_after_ms.map_or(now.boottime_ms, boottime).max(now.boottime_ms);
            for dependency in &job.after {
                let Some(on) = world.queue.get(dependency.job?) else { continue };
                match on.state() {
                    Cursor::Queued | Cursor::Renting | Cursor::Running => {
                        ready = ready.max(times.get(&on.id)?.end?);
                    }
                    // Its run has ended: the rest takes a moment.
                    Cursor::Returning | Cursor::Releasing | Cursor::Done => {}
                }
            }
            Some(ready)
        }
        Some(_) => None,
    }
}
