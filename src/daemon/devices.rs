//! Readings: taken on the loop where they cost microseconds, through the sampler's thread where a driver may block.

use super::message::{Mailbox, Message};
use crate::gpu::{
    self, FaultWatch, GpuBackend, GpuChoice, GpuError, NoGpus, OpenOptions, Running, SamplerHandle,
    SamplerNews,
};
use crate::model::{DeviceState, Gpu, Span};
use crate::protocol::{Notice, NoticeLevel};
use crate::sched::{EngineReport, Input, World};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

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
    Sampler { sampler: SamplerHandle, faults: FaultWatch },
}

impl Devices {
    /// Opens the chosen source; also the devices that are there now, if that can be told in time.
    pub(super) fn open(
        choice: GpuChoice,
        options: OpenOptions,
        mailbox: &Mailbox,
    ) -> std::io::Result<(Self, Option<Vec<Gpu>>)> {
        let known = options.remembered.clone();
        let mut backend = gpu::open(choice, options);
        let name = backend.name();
        if backend.instant() {
            let gpus = backend.list();
            let trouble = gpus.as_ref().err().map(GpuError::words);
            let devices = Self { source: Source::Instant(backend), name, trouble, asked_at: None };
            return Ok((devices, gpus.ok()));
        }
        // The driver is asked on the sampler's thread and with its deadline: one that hangs must not hold up the start.
        let (first, listed) = sync_channel(1);
        let (first, mail) = (Mutex::new(Some(first)), mailbox.clone());
        let deliver = Arc::new(move |news| match news {
            SamplerNews::Readings(readings) => mail.post(Message::Input(Input::Readings(readings))),
            SamplerNews::Devices(gpus) => {
                let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                match (first, gpus) {
                    (Some(first), gpus) => drop(first.send(gpus)),
                    (None, Ok(gpus)) => mail.post(Message::Input(Input::Devices(gpus))),
                    (None, Err(error)) => mail.post(Message::NoDevices(error.words())),
                }
            }
        });
        let sampler = gpu::spawn(backend, &known, gpu::deadline::DEFAULT_DEADLINE, deliver)?;
        sampler.relist();
        let (gpus, trouble) = match listed.recv() {
            Ok(Ok(gpus)) => (Some(gpus), None),
            Ok(Err(error))
                if choice == GpuChoice::Auto && known.is_empty() && gpu::nvml::is_absent(&error) =>
            {
                // There is no driver on this machine at all, and there never was: no reason to ask again. Where there were
                // devices, a driver that cannot be loaded now is no proof that they are gone, and nobody's run is ended.
                let source = Source::Instant(Box::new(NoGpus));
                let name = NoGpus.name();
                return Ok((
                    Self { source, name, trouble: Some(error.words()), asked_at: None },
                    Some(Vec::new()),
                ));
            }
            Ok(Err(error)) => (None, Some(error.words())),
            Err(_) => (None, Some("the thread that asks the driver has ended".to_owned())),
        };
        let mail = mailbox.clone();
        let tell = Arc::new(move |news| mail.post(Message::Input(Input::Faults(news))));
        let faults = gpu::watch_faults(None, tell)?;
        let devices = Self { source: Source::Sampler { sampler, faults }, name, trouble, asked_at: None };
        if let Some(gpus) = &gpus {
            devices.watch(gpus);
        }
        Ok((devices, gpus))
    }

    /// The driver has listed these devices: their faults are waited for.
    fn watch(&self, gpus: &[Gpu]) {
        if let Source::Sampler { faults, .. } = &self.source {
            faults.devices(gpus.iter().map(|gpu| gpu.uuid.clone()).collect());
        }
    }

    /// `nvml`, `simulated` or `none`, and what is wrong with it.
    pub(super) fn told(&self) -> String {
        match &self.trouble {
            Some(why) => format!("{}: {why}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// What the devices told, and a reading for this turn, if that costs nothing. Leases whose end is among the inputs no
    /// longer run.
    pub(super) fn read(&mut self, world: &World, inputs: &mut Vec<Input>) {
        let Source::Instant(backend) = &mut self.source else { return };
        self.asked_at = Some(crate::clock::now().boottime_ms);
        // A device that was gone when the scheduler started has not been told of: once it is back, it is.
        if world.lacks_devices()
            && let Ok(gpus) = backend.list()
            && gpus.iter().any(|gpu| !is_listed(world, gpu))
        {
            inputs.push(Input::Devices(gpus));
        }
        if world.pool.gpus() == 0 {
            return;
        }
        let faults = backend.faults();
        if !faults.is_empty() {
            inputs.push(Input::Faults(faults));
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
        inputs.push(Input::Readings(backend.sample(&running)));
    }

    /// Asks for a fresh reading. Those that cost nothing are taken with the next turn, which the core has asked for.
    pub(super) fn probe(&mut self, world: &World) {
        self.asked_at = Some(crate::clock::now().boottime_ms);
        if let Source::Sampler { sampler, .. } = &self.source {
            sampler.request(running(world, |_| false));
        }
    }

    /// A reading for telemetry's sake. Where devices are missing, also which ones are there now: a driver that was
    /// loaded, or a device that is back, is found by itself.
    pub(super) fn telemetry(&mut self, world: &World) {
        if let Source::Sampler { sampler, .. } = &self.source
            && world.lacks_devices()
        {
            sampler.relist();
        }
        self.probe(world);
    }

    /// The driver has told which devices are there: whatever was wrong with it is over.
    pub(super) fn listed(&mut self, gpus: &[Gpu]) {
        self.trouble = None;
        self.watch(gpus);
    }

    /// What an operator must know of the devices: the driver's trouble, and those that are out of service by themselves.
    pub(super) fn notices(&self, world: &World) -> Vec<Notice> {
        let warning = |text| Notice { level: NoticeLevel::Warning, text, job: None };
        let trouble = self.trouble.iter().cloned().map(warning);
        let out = world.pool.devices().enumerate().filter_map(|(ix, (_, device))| {
            let index = device.gpu.as_ref().or(device.was.as_ref()).map_or(ix as u32, |gpu| gpu.index);
            match &device.state {
                DeviceState::Quarantined(quarantine) => Some(warning(format!(
                    "GPU {index} is in quarantine: {}; `overnight clear {index}` lifts it",
                    quarantine.why
                ))),
                DeviceState::Gone { detail } if device.gpu.is_some() || device.was.is_some() => {
                    Some(warning(format!("GPU {index} is gone: {detail}")))
                }
                _ => None,
            }
        });
        trouble.chain(out).collect()
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
            (_, true, true) | (Source::Sampler { .. }, false, true) => Some(WATCHED),
            (_, true, false) => Some(RUNNING),
            (Source::Sampler { .. }, false, false) => Some(IDLE),
            (Source::Instant(_), false, _) => None,
        }
    }
}

fn is_listed(world: &World, gpu: &Gpu) -> bool {
    world.pool.devices().any(|(uuid, device)| *uuid == gpu.uuid && device.gpu.is_some())
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
