//! Readings: taken on the loop where they cost microseconds, through the sampler's thread where a driver may block.

use super::message::{Mailbox, Message};
use crate::gpu::{self, GpuBackend, GpuChoice, OpenOptions, Running, SamplerHandle, SamplerNews};
use crate::model::{DeviceState, Gpu, Span};
use crate::sched::{EngineReport, Input, World};
use std::sync::Arc;

/// Telemetry while somebody watches.
const WATCHED: Span = Span::secs(2);
/// Telemetry while jobs run and nobody watches.
const RUNNING: Span = Span::secs(5);
/// Telemetry while a job waits and the driver has not told of all devices: it may any moment. Those that it lists and that
/// are out of service are watched by the core.
const WANTED: Span = Span::secs(1);
/// Telemetry of real devices when nothing runs and nobody watches.
const IDLE: Span = Span::secs(60);

/// Where readings come from.
pub(super) struct Devices {
    source: Source,
    name: &'static str,
    /// Why there are no devices.
    pub(super) trouble: Option<String>,
    /// When a reading was last asked for, boottime milliseconds.
    asked_at: Option<u64>,
}

enum Source {
    Instant(Box<dyn GpuBackend>),
    Sampler(SamplerHandle),
}

impl Devices {
    /// Opens the chosen source; also the devices that are there now, if that can be told.
    pub(super) fn open(
        choice: GpuChoice,
        options: OpenOptions,
        mailbox: &Mailbox,
    ) -> std::io::Result<(Self, Option<Vec<Gpu>>)> {
        let mut known = options.remembered.clone();
        let (mut backend, error) = gpu::open(choice, options);
        let name = backend.name();
        let mut trouble = error.map(|error| match error.hint() {
            Some(hint) => format!("{error}: {hint}"),
            None => error.to_string(),
        });
        let gpus = match backend.list() {
            Ok(gpus) => Some(gpus),
            Err(error) => {
                trouble.get_or_insert(error.to_string());
                None
            }
        };
        for gpu in gpus.iter().flatten() {
            if !known.contains(&gpu.uuid) {
                known.push(gpu.uuid.clone());
            }
        }
        let source = if backend.instant() {
            Source::Instant(backend)
        } else {
            let mailbox = mailbox.clone();
            let deliver = Arc::new(move |news| match news {
                SamplerNews::Readings(readings) => mailbox.post(Message::Input(Input::Readings(readings))),
                SamplerNews::Devices(Ok(gpus)) => mailbox.post(Message::Input(Input::Devices(gpus))),
                SamplerNews::Devices(Err(error)) => mailbox.post(Message::NoDevices(error.to_string())),
            });
            Source::Sampler(gpu::spawn(backend, &known, gpu::deadline::DEFAULT_DEADLINE, deliver)?)
        };
        Ok((Self { source, name, trouble, asked_at: None }, gpus))
    }

    /// `nvml`, `simulated` or `none`.
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// A reading for this turn, if one costs nothing. Leases whose end is among the inputs no longer run.
    pub(super) fn read(&mut self, world: &World, inputs: &[Input]) -> Option<Input> {
        let Source::Instant(backend) = &mut self.source else { return None };
        self.asked_at = Some(crate::clock::now().boottime_ms);
        if world.pool.gpus() == 0 {
            return None;
        }
        let running = running(world, |lease| {
            inputs.iter().any(|input| {
                matches!(input, Input::Engine(
                    EngineReport::Ended { lease: ended, .. }
                    | EngineReport::Missing { lease: ended, .. }
                    | EngineReport::NotLaunched { lease: ended, .. }
                ) if *ended == lease)
            })
        });
        Some(Input::Readings(backend.sample(&running)))
    }

    /// Asks for a fresh reading. Those that cost nothing are taken with the next turn, which the core has asked for.
    pub(super) fn probe(&mut self, world: &World) {
        self.asked_at = Some(crate::clock::now().boottime_ms);
        if let Source::Sampler(sampler) = &self.source {
            sampler.request(running(world, |_| false));
        }
    }

    /// A reading for telemetry's sake. Where devices are missing, also which ones are there now: a driver that was
    /// loaded, or a device that is back, is found by itself.
    pub(super) fn telemetry(&mut self, world: &World) {
        if let Source::Sampler(sampler) = &self.source
            && world.lacks_devices()
        {
            sampler.relist();
        }
        self.probe(world);
    }

    /// The driver has told which devices are there: whatever was wrong with it is over.
    pub(super) fn listed(&mut self) {
        self.trouble = None;
    }

    /// When the next reading for telemetry's sake is due, boottime milliseconds; `None`: none is needed.
    pub(super) fn due(&self, world: &World, subscribers: usize) -> Option<u64> {
        let period = self.period(world, subscribers)?;
        Some(self.asked_at.map_or(0, |asked| asked + period.0))
    }

    fn period(&self, world: &World, subscribers: usize) -> Option<Span> {
        let busy = world.leases.held().next().is_some();
        match (&self.source, busy, subscribers > 0) {
            (Source::Instant(_), _, _) if world.pool.gpus() == 0 => None,
            _ if world.queue.waiting() > 0 && is_unlisted(world) => Some(WANTED),
            (_, true, true) | (Source::Sampler(_), false, true) => Some(WATCHED),
            (_, true, false) => Some(RUNNING),
            (Source::Sampler(_), false, false) => Some(IDLE),
            (Source::Instant(_), false, _) => None,
        }
    }
}

/// Whether a device may be there that the driver has not listed. One that has gone is not back within seconds.
fn is_unlisted(world: &World) -> bool {
    let gone = |state: &DeviceState| matches!(state, DeviceState::Gone { .. });
    world.pool.gpus() == 0
        || world.pool.devices().any(|(_, device)| device.gpu.is_none() && !gone(&device.state))
}

fn running(world: &World, ended: impl Fn(crate::model::LeaseId) -> bool) -> Vec<Running> {
    world
        .leases
        .held()
        .filter(|lease| !ended(lease.id))
        .flat_map(|lease| {
            lease.held.devices.iter().map(|held| Running {
                uuid: held.uuid.clone(),
                lease: lease.id,
                token: lease.token.clone(),
            })
        })
        .collect()
}
