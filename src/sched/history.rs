//! What the readings of the devices have shown, in steps of equal length. Nothing of it is an event, and nothing is read
//! for it: it takes what the scheduler reads anyway, while something runs or somebody looks. Pure.

use super::world::World;
use crate::model::{Bytes, DeviceState, GpuReading, Now, Span, Uuid};
use crate::protocol::{GpuHistory, GpuRing, GpuTrace};
use std::collections::{BTreeMap, VecDeque};

/// Steps of a ring.
const STEPS: usize = 240;
/// 20 minutes, 1 hour, 24 hours.
const PERIODS_MS: [u64; 3] = [5_000, 15_000, 360_000];
/// A reading stands for what follows for as long, if another one follows: it is taken every five seconds.
const STANDS: Span = Span::secs(12);

/// What was read in one step. What was not is `None`.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    percent: Mean,
    watts: Mean,
    memory: Option<Bytes>,
    degrees: Option<i32>,
    held: Option<bool>,
}

/// A sum and how many numbers it is of.
#[derive(Debug, Clone, Copy, Default)]
struct Mean(u32, u16);

impl Mean {
    fn add(&mut self, value: Option<u32>) {
        if let Some(value) = value
            && let Some(count) = self.1.checked_add(1)
        {
            *self = Self(self.0.saturating_add(value), count);
        }
    }

    fn get(self) -> Option<u32> {
        self.0.checked_div(u32::from(self.1))
    }
}

impl Step {
    fn add(&mut self, reading: &GpuReading, held: bool) {
        self.percent.add(reading.utilisation.map(u32::from));
        self.watts.add(reading.power_w);
        self.memory = self.memory.max(reading.memory_used);
        self.degrees = self.degrees.max(reading.temperature_c);
        self.held = Some(held || self.held == Some(true));
    }
}

#[derive(Debug, Clone)]
struct Ring {
    period: u64,
    /// The number of the newest step, counted from the boot.
    newest: u64,
    /// The oldest first.
    steps: VecDeque<Step>,
}

impl Ring {
    const fn new(period: u64) -> Self {
        Self { period, newest: 0, steps: VecDeque::new() }
    }

    /// A reading, and for how long before it the one before it stands.
    fn add(&mut self, at: u64, reading: (&GpuReading, bool), last: Option<(&GpuReading, bool)>) {
        let number = at / self.period;
        if self.steps.is_empty() {
            self.newest = number;
            self.steps.push_back(Step::default());
        }
        if number < self.newest {
            return;
        }
        let skipped = number - self.newest;
        if skipped > STEPS as u64 {
            self.steps.clear();
        }
        for left in (0..skipped.min(STEPS as u64)).rev() {
            let mut step = Step::default();
            if let Some((last, held)) = last.filter(|_| left > 0) {
                step.add(last, held);
            }
            self.steps.push_back(step);
        }
        let excess = self.steps.len().saturating_sub(STEPS);
        drop(self.steps.drain(..excess));
        self.newest = number;
        if let Some(step) = self.steps.back_mut() {
            step.add(reading.0, reading.1);
        }
    }

    /// All steps up to now: what was not read since the last one is empty.
    fn show(&self, now: &Now) -> GpuRing {
        let number = now.boottime_ms / self.period;
        let since = number.saturating_sub(self.newest).min(STEPS as u64) as usize;
        let known = self.steps.iter().copied().chain(std::iter::repeat_n(Step::default(), since));
        let steps: Vec<Step> = known.skip((self.steps.len() + since).saturating_sub(STEPS)).collect();
        let ends = (number + 1) * self.period;
        GpuRing {
            period_ms: self.period,
            until: now.wall_ms.saturating_add_unsigned(ends - now.boottime_ms),
            utilisation: steps
                .iter()
                .map(|step| step.percent.get().map(|mean| mean.min(100) as u8))
                .collect(),
            memory_used: steps.iter().map(|step| step.memory).collect(),
            power_w: steps.iter().map(|step| step.watts.get()).collect(),
            temperature_c: steps.iter().map(|step| step.degrees).collect(),
            held: steps.iter().map(|step| step.held).collect(),
        }
    }
}

/// The telemetry of one device.
#[derive(Debug, Clone)]
struct Trace {
    last: (GpuReading, bool),
    rings: [Ring; 3],
}

/// The telemetry of all devices, of this process and this boot.
#[derive(Debug, Clone, Default)]
pub struct History {
    traces: BTreeMap<Uuid, Trace>,
}

impl History {
    /// Takes what was read since the last time.
    pub fn take(&mut self, world: &World) {
        for (uuid, device) in world.pool.devices() {
            let Some(reading) = &device.reading else { continue };
            let held = matches!(device.state, DeviceState::Held { .. });
            let trace = match self.traces.get_mut(uuid) {
                Some(trace) if trace.last.0.at == reading.at => continue,
                Some(trace) => trace,
                None => {
                    let rings = PERIODS_MS.map(Ring::new);
                    self.traces.entry(uuid.clone()).or_insert(Trace { last: (reading.clone(), held), rings })
                }
            };
            let last = (&trace.last.0, trace.last.1);
            let stands = reading.at.since(&last.0.at).is_some_and(|span| span <= STANDS);
            for ring in &mut trace.rings {
                ring.add(reading.at.boottime_ms, (reading, held), Some(last).filter(|_| stands));
            }
            trace.last = (reading.clone(), held);
        }
    }

    /// One device's, or all; of the rings only the finest that covers so many of the last milliseconds, or all.
    pub fn show(&self, world: &World, now: &Now, gpu: Option<&Uuid>, span_ms: Option<u64>) -> GpuHistory {
        let devices = world.pool.devices().filter(|(uuid, _)| gpu.is_none_or(|gpu| gpu == *uuid));
        let covers = |period: &u64| span_ms.is_none_or(|span| span <= period * STEPS as u64);
        let wanted: Vec<u64> = match span_ms {
            None => PERIODS_MS.to_vec(),
            Some(_) => vec![PERIODS_MS.into_iter().find(covers).unwrap_or(PERIODS_MS[2])],
        };
        let gpus = devices.filter_map(|(uuid, device)| {
            let index = device.gpu.as_ref().or(device.was.as_ref())?.index;
            let rings = self.traces.get(uuid).map_or(&[][..], |trace| &trace.rings);
            let rings = rings.iter().filter(|ring| wanted.contains(&ring.period)).map(|ring| ring.show(now));
            Some(GpuTrace { uuid: uuid.clone(), index, rings: rings.collect() })
        });
        GpuHistory { gpus: gpus.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gpu, Health, LeaseId, Standing};

    fn reading(at_ms: u64, percent: Option<u8>) -> GpuReading {
        GpuReading {
            uuid: Uuid("GPU-a".to_owned()),
            at: Now { boottime_ms: at_ms, wall_ms: at_ms as i64, ..Now::default() },
            unreadable: None,
            memory_used: percent.map(|percent| Bytes::gib(u64::from(percent))),
            utilisation: percent,
            temperature_c: percent.map(i32::from),
            power_w: percent.map(u32::from),
            health: Health::default(),
            processes: None,
            lock: None,
        }
    }

    fn world(state: DeviceState) -> World {
        let uuid = Uuid("GPU-a".to_owned());
        let mut world = World::restore(crate::sched::Remembered {
            devices: vec![(uuid.clone(), Standing::from(state))],
            ..crate::sched::Remembered::default()
        });
        let (node, name) = (String::new(), String::new());
        world.pool.list(&[Gpu { uuid, index: 3, node, name, memory: Bytes::gib(80), real: false }]);
        world
    }

    fn shown(readings: &[(u64, Option<u8>)], now_ms: u64, span_ms: Option<u64>) -> Vec<GpuRing> {
        let mut world = world(DeviceState::Held { lease: LeaseId(1) });
        let mut history = History::default();
        for (at, percent) in readings {
            world.pool.read(&reading(*at, *percent));
            history.take(&world);
            history.take(&world);
        }
        let now = Now { boottime_ms: now_ms, wall_ms: now_ms as i64, ..Now::default() };
        let shown = history.show(&world, &now, None, span_ms);
        assert_eq!(shown.gpus[0].index, 3);
        shown.gpus.into_iter().next().unwrap().rings
    }

    #[test]
    fn readings_of_one_step_are_one_number_and_what_was_not_read_is_none() {
        let rings =
            shown(&[(1_000, Some(10)), (3_000, Some(30)), (6_000, None), (21_000, Some(5))], 27_000, None);
        let fine = &rings[0];
        assert_eq!(fine.utilisation, [Some(20), None, None, None, Some(5), None]);
        assert_eq!(fine.memory_used[0], Some(Bytes::gib(30)), "the highest");
        assert_eq!(fine.held, [Some(true), Some(true), None, None, Some(true), None]);
        assert_eq!((fine.until, fine.period_ms), (30_000, 5_000));
        assert_eq!(rings[1].utilisation, [Some(20), Some(5)]);
        assert_eq!(rings[2].utilisation, [Some(15)], "15 is the mean of 10, 30 and 5");
    }

    #[test]
    fn a_reading_every_five_seconds_leaves_no_gap_however_late_it_is() {
        let every: Vec<(u64, Option<u8>)> = (0..100).map(|n| (n * 5_007, Some(50))).collect();
        let rings = shown(&every, 99 * 5_007, None);
        assert!(rings[0].utilisation.iter().all(|percent| *percent == Some(50)), "{rings:?}");
    }

    #[test]
    fn a_ring_is_bounded_and_only_what_covers_the_question_is_shown() {
        let every: Vec<(u64, Option<u8>)> = (0..2_000).map(|n| (n * 2_000, Some(1))).collect();
        for (span, period) in [(600_000, 5_000), (3_600_000, 15_000), (86_400_000, 360_000)] {
            let rings = shown(&every, 4_000_000, Some(span));
            assert_eq!(rings.iter().map(|ring| ring.period_ms).collect::<Vec<_>>(), [period]);
            assert!(rings[0].utilisation.len() <= STEPS);
        }
        let later = shown(&every, 50_000_000, Some(600_000));
        assert!(later[0].utilisation.iter().all(Option::is_none), "all of it is long ago");
        assert_eq!(later[0].utilisation.len(), STEPS);
    }
}
