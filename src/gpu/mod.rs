//! Devices: who is there, what they read, who is on them. Layer 2.
//!
//! A reading that could not be taken is `None` with a reason, never zero. Devices are named by UUID.
//!
//! [`nvml`] is the real thing, [`simulated`] a seeded stand-in, [`none`] a machine without devices. [`deadline`] keeps
//! a blocking backend off the loop, `watch` waits for Xids, [`locks`] reads who holds a device across schedulers, [`host`]
//! counts cores and memory. Nothing here decides whether a device is free: the core does, from readings.

pub mod control;
pub mod deadline;
mod health;
pub mod host;
pub mod locks;
pub mod none;
pub mod nvml;
mod processes;
pub mod simulated;
mod watch;

use crate::model::{FaultNews, Gpu, GpuReading, Health, LeaseId, Now, Token, Unreadable, Uuid};
use std::path::PathBuf;
use std::str::FromStr;

pub use deadline::{SamplerHandle, SamplerNews, spawn};
pub use host::host_reading;
pub use locks::lock_dir;
pub use none::NoGpus;
pub use nvml::{Nvml, NvmlConfig};
pub use simulated::{Simulated, SimulatedConfig};
pub use watch::{FaultWatch, TellFaults, watch_faults};

/// Where devices come from.
pub trait GpuBackend: Send {
    /// The devices that are there now, in PCI order.
    fn list(&mut self) -> Result<Vec<Gpu>, GpuError>;

    /// One reading of every device ever listed. May block on a driver: the shell calls it off the loop, with a
    /// deadline, unless [`GpuBackend::instant`].
    ///
    /// `running` says which devices run which lease's work; a real driver does not need it.
    fn sample(&mut self, running: &[Running]) -> Vec<GpuReading>;

    /// What the devices told since the last question. A driver that has to be waited for tells it to
    /// [`watch_faults`] instead.
    fn faults(&mut self) -> Vec<FaultNews> {
        Vec::new()
    }

    /// Whether readings cost microseconds and never block, so that the loop takes a fresh one every turn.
    fn instant(&self) -> bool;

    /// `nvml`, `simulated` or `none`.
    fn name(&self) -> &'static str;
}

/// A device whose lease runs work now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Which device.
    pub uuid: Uuid,
    /// For which lease.
    pub lease: LeaseId,
    /// Its token.
    pub token: Token,
}

/// Why there are no devices.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// The driver's library or the driver refuses.
    #[error("no NVML: {detail}")]
    Driver {
        /// The driver's words.
        detail: String,
        /// What to do.
        hint: &'static str,
    },
    /// The machine was asked to use none.
    #[error("no GPUs: none were asked for")]
    NotAsked,
    /// A word that names no source of devices.
    #[error("`{0}` is not one of auto, none, nvml, simulated:N (N from 1 to {MAX_SIMULATED})")]
    Choice(String),
    /// A device that the driver does not list.
    #[error("{0} is not listed by the driver")]
    NotListed(Uuid),
    /// A device without an index of its own: a MIG instance is named by its UUID.
    #[error("{0} has no index")]
    NoIndex(Uuid),
}

impl GpuError {
    /// What to do about it, if anything can be done.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Driver { hint, .. } => Some(hint),
            Self::NotAsked | Self::Choice(_) | Self::NotListed(_) | Self::NoIndex(_) => None,
        }
    }

    /// What is wrong, and what to do about it.
    pub fn words(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}: {hint}"),
            None => self.to_string(),
        }
    }
}

/// More simulated devices than any node has are a typing mistake.
pub const MAX_SIMULATED: u32 = 1024;

/// Where `--gpus` and the config's `gpus` say that devices come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GpuChoice {
    /// The driver's, if there is one.
    #[default]
    Auto,
    /// None: CPU-only jobs.
    None,
    /// The driver's.
    Nvml,
    /// That many simulated ones.
    Simulated(u32),
}

impl FromStr for GpuChoice {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<Self, GpuError> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "nvml" => Ok(Self::Nvml),
            _ => text
                .strip_prefix("simulated:")
                .and_then(|n| n.parse().ok())
                .filter(|n| (1..=MAX_SIMULATED).contains(n))
                .map(Self::Simulated)
                .ok_or_else(|| GpuError::Choice(crate::model::clean_line(text))),
        }
    }
}

/// What the config says about devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Seed of simulated devices.
    pub seed: u64,
    /// Control file of simulated devices; see [`control`].
    pub control: Option<PathBuf>,
    /// Names of processes that belong to a device's baseline, as globs.
    pub ignore: Vec<String>,
    /// Where the cross-scheduler device locks are.
    pub lock_dir: PathBuf,
    /// Real devices that are remembered from before: they are read too, though the driver may not list them now.
    pub remembered: Vec<Uuid>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            control: None,
            ignore: nvml::DEFAULT_IGNORE.map(str::to_owned).to_vec(),
            lock_dir: lock_dir(None),
            remembered: Vec::new(),
        }
    }
}

/// Opens the chosen source of devices. Nothing is asked yet: a driver may hang.
pub fn open(choice: GpuChoice, options: OpenOptions) -> Box<dyn GpuBackend> {
    match choice {
        GpuChoice::None => Box::new(NoGpus),
        GpuChoice::Simulated(gpus) => {
            let config = SimulatedConfig {
                gpus,
                seed: options.seed,
                control: options.control,
                ..SimulatedConfig::default()
            };
            Box::new(Simulated::new(config))
        }
        GpuChoice::Auto | GpuChoice::Nvml => {
            let config = NvmlConfig { library: None, ignore: options.ignore, lock_dir: options.lock_dir };
            let mut backend = Nvml::new(config);
            backend.remember(options.remembered);
            Box::new(backend)
        }
    }
}

/// The indices in PCI order of these devices now, as `CUDA_VISIBLE_DEVICES` wants them, in the given order.
pub fn indices(uuids: &[Uuid]) -> Result<Vec<u32>, GpuError> {
    nvml::indices(None, uuids)
}

/// The reading of a device that could not be read.
fn unreadable(uuid: Uuid, at: Now, why: Unreadable) -> GpuReading {
    GpuReading {
        uuid,
        at,
        unreadable: Some(why),
        memory_used: None,
        utilisation: None,
        temperature_c: None,
        power_w: None,
        health: Health::default(),
        processes: None,
        lock: None,
    }
}
