//! Real devices, through the driver's management library.
//!
//! Each device is asked on its own: what one refuses says nothing about another. A device that fell off the bus or is
//! no longer listed is gone; any other error leaves that figure unknown, and a device whose list of processes is
//! unknown is not provably clean. Devices are found by UUID each time, because indices may move. Calls may block: see
//! [`deadline`](super::deadline). Processes are read in `processes`.

use super::processes::{Ignore, of_device};
use super::{GpuBackend, GpuError, Running, health, host, locks, unreadable};
use crate::clock;
use crate::model::{Bytes, Gpu, GpuReading, Unreadable, Uuid, clean_line};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml as Library};
use std::path::{Path, PathBuf};

/// Processes that belong to a device's baseline: display servers and the driver's own helpers.
pub const DEFAULT_IGNORE: [&str; 5] = ["Xorg", "gnome-shell", "Xwayland", "nvidia-*", "dcgm*"];

const HINT_MISSING: &str = "install the NVIDIA driver, or use `--gpus none` or `--gpus simulated:4`";
const HINT_NOT_LOADED: &str = "load the driver: `sudo modprobe nvidia`; `nvidia-smi` must work first";
const HINT_MISMATCH: &str = "the driver was upgraded under the running kernel module: reboot";
const HINT_PERMISSION: &str = "this account may not open /dev/nvidia*: ask for the video or render group, or run where the devices are visible";
const HINT_OLD: &str = "the driver is too old: version 510 or newer is needed";
const HINT_OTHER: &str = "run `nvidia-smi`: it must work first";

/// How the driver is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmlConfig {
    /// The library, where it is not the installed one.
    pub library: Option<PathBuf>,
    /// Names of processes that belong to a device's baseline, as globs.
    pub ignore: Vec<String>,
    /// Where the cross-scheduler device locks are.
    pub lock_dir: PathBuf,
}

/// The driver's devices.
pub struct Nvml {
    config: NvmlConfig,
    ignore: Ignore,
    library: Option<Library>,
    /// Every device that was ever listed.
    known: Vec<Uuid>,
    /// The last list.
    last: Vec<Gpu>,
}

impl std::fmt::Debug for Nvml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nvml")
            .field("config", &self.config)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl Nvml {
    /// Nothing is opened yet.
    pub fn new(config: NvmlConfig) -> Self {
        let ignore = Ignore::new(&config.ignore);
        Self { config, ignore, library: None, known: Vec::new(), last: Vec::new() }
    }

    /// Reads these devices too, though the driver may not list them now.
    pub fn remember(&mut self, uuids: Vec<Uuid>) {
        self.known.extend(uuids);
    }

    /// Opens the library and the driver, if they are not open.
    pub fn connect(&mut self) -> Result<(), GpuError> {
        if self.library.is_none() {
            self.library = Some(load(self.config.library.as_deref())?);
        }
        Ok(())
    }

    fn read(&self, library: &Library, uuid: &Uuid) -> Result<GpuReading, NvmlError> {
        let device = library.device_by_uuid(uuid.0.as_str())?;
        let utilisation = known(device.utilization_rates())?.map(|rates| rates.gpu.min(100) as u8);
        let temperature_c = known(device.temperature(TemperatureSensor::Gpu))?.map(|t| t as i32);
        let power_w = known(device.power_usage())?.map(|milliwatts| milliwatts.div_ceil(1000));
        let health = health::of_device(library, &device);
        // What proves a device clean comes last, and is as old as its first question: the driver may take its time.
        let at = clock::now();
        let memory_used = known(device.memory_info())?.map(|memory| Bytes(memory.used));
        let processes = known(of_device(&device, &self.ignore))?;
        Ok(GpuReading {
            uuid: uuid.clone(),
            at,
            unreadable: None,
            memory_used,
            utilisation,
            temperature_c,
            power_w,
            health,
            processes,
            lock: locks::holder(&self.config.lock_dir, uuid),
        })
    }
}

impl GpuBackend for Nvml {
    fn list(&mut self) -> Result<Vec<Gpu>, GpuError> {
        self.connect()?;
        let Some(library) = &self.library else { return Ok(Vec::new()) };
        let mut gpus = match list(library) {
            Ok(gpus) => gpus,
            Err(error) => {
                if is_stale(&error) {
                    self.library = None;
                }
                return Err(refusal(&error));
            }
        };
        // One that cannot be described now is not thereby gone.
        let silent = |gpu: &&Gpu| {
            !gpus.iter().any(|listed| listed.uuid == gpu.uuid)
                && library.device_by_uuid(gpu.uuid.0.as_str()).is_err_and(|error| !is_gone(&error))
        };
        let silent: Vec<Gpu> = self.last.iter().filter(silent).cloned().collect();
        gpus.extend(silent);
        gpus.sort_by_key(|gpu| gpu.index);
        self.last.clone_from(&gpus);
        for gpu in &gpus {
            if !self.known.contains(&gpu.uuid) {
                self.known.push(gpu.uuid.clone());
            }
        }
        Ok(gpus)
    }

    fn sample(&mut self, _running: &[Running]) -> Vec<GpuReading> {
        if let Err(error) = self.connect() {
            let detail = error.words();
            let failed = |uuid: &Uuid| {
                unreadable(uuid.clone(), clock::now(), Unreadable::Failed { detail: detail.clone() })
            };
            return self.known.iter().map(failed).collect();
        }
        let Some(library) = &self.library else { return Vec::new() };
        let mut stale = false;
        let readings = self
            .known
            .iter()
            .map(|uuid| {
                self.read(library, uuid).unwrap_or_else(|error| {
                    stale |= is_stale(&error);
                    unreadable(uuid.clone(), clock::now(), reason(&error))
                })
            })
            .collect();
        if stale {
            // Opened anew at the next question: a driver that was reloaded does not know the old session.
            self.library = None;
        }
        readings
    }

    fn instant(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "nvml"
    }
}

/// A figure that this device does not have or did not give is unknown. Errors that concern the device as a whole stay
/// errors.
fn known<T>(result: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_gone(&error) || is_stale(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

const fn is_gone(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::NotFound)
}

/// The session with the driver is over.
const fn is_stale(error: &NvmlError) -> bool {
    matches!(error, NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch)
}

fn reason(error: &NvmlError) -> Unreadable {
    let detail = match error {
        NvmlError::LibRmVersionMismatch => format!("{}: reboot", words(error)),
        _ => words(error),
    };
    if is_gone(error) { Unreadable::Gone { detail } } else { Unreadable::Failed { detail } }
}

fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::LibRmVersionMismatch => "driver and library have different versions".to_owned(),
        NvmlError::NotFound => "the driver no longer lists it".to_owned(),
        NvmlError::LibloadingError(_) => "libnvidia-ml.so.1 cannot be loaded".to_owned(),
        other => clean_line(&other.to_string()),
    }
}

/// Opens the library and a session with the driver.
pub(super) fn load(library: Option<&Path>) -> Result<Library, GpuError> {
    let opened = match library {
        Some(path) => Library::builder().lib_path(path.as_os_str()).init(),
        // Packages for development bring only the name without a version.
        None => Library::init().or_else(|error| match error {
            NvmlError::LibloadingError(_) => Library::builder()
                .lib_path("libnvidia-ml.so".as_ref())
                .init()
                .map_err(|second| match second {
                    NvmlError::LibloadingError(_) => error,
                    other => other,
                }),
            other => Err(other),
        }),
    };
    opened.map_err(|error| refusal(&error))
}

fn refusal(error: &NvmlError) -> GpuError {
    let hint = match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => HINT_MISSING,
        NvmlError::DriverNotLoaded | NvmlError::Uninitialized => HINT_NOT_LOADED,
        NvmlError::LibRmVersionMismatch => HINT_MISMATCH,
        NvmlError::NoPermission | NvmlError::OperatingSystem => HINT_PERMISSION,
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => HINT_OLD,
        _ => HINT_OTHER,
    };
    GpuError::Driver { detail: words(error), hint }
}

/// There is no driver on this machine at all, and no reason to ask again.
pub fn is_absent(error: &GpuError) -> bool {
    matches!(error, GpuError::Driver { hint, .. } if *hint == HINT_MISSING)
}

/// All devices that can be read, in PCI order. One that cannot keeps its place in the numbering.
fn list(library: &Library) -> Result<Vec<Gpu>, NvmlError> {
    let node = host::node_name();
    let mut gpus = Vec::new();
    for (index, device) in in_order(library)? {
        let Some(device) = device else { continue };
        let instances = mig_instances(&device);
        let listed = instances.as_deref().unwrap_or(std::slice::from_ref(&device));
        gpus.extend(listed.iter().filter_map(|device| describe(device, index, &node).ok()));
    }
    Ok(gpus)
}

/// The driver's own devices, each with what it is to the pool: itself, or its MIG instances.
pub(super) fn physical(library: &Library) -> Result<Vec<(Device<'_>, Vec<Uuid>)>, NvmlError> {
    let mut devices = Vec::new();
    for device in in_order(library)?.into_iter().filter_map(|(_, device)| device) {
        let instances = mig_instances(&device);
        let used = instances.as_deref().unwrap_or(std::slice::from_ref(&device));
        let uuids = used.iter().filter_map(|device| device.uuid().ok());
        let uuids = uuids.map(|uuid| Uuid(clean_line(&uuid))).collect();
        devices.push((device, uuids));
    }
    Ok(devices)
}

/// The driver's devices by index in PCI order; `None` for one that cannot be spoken to.
fn in_order(library: &Library) -> Result<Vec<(u32, Option<Device<'_>>)>, NvmlError> {
    let mut devices = Vec::new();
    for index in 0..library.device_count()? {
        let device = match library.device_by_index(index) {
            Ok(device) => Some(device),
            Err(error) if is_stale(&error) => return Err(error),
            Err(_) => None,
        };
        let place = device.as_ref().and_then(|device| device.pci_info().ok());
        devices.push((place.map(|pci| (pci.domain, pci.bus, pci.device)), device));
    }
    if devices.iter().all(|(place, _)| place.is_some()) {
        devices.sort_by_key(|(place, _)| *place);
    }
    Ok((0..).zip(devices.into_iter().map(|(_, device)| device)).collect())
}

/// The instances of a device in MIG mode; `None` where the mode is off or the device does not know it. A device in
/// MIG mode cannot be used as a whole, even without instances.
fn mig_instances<'a>(device: &Device<'a>) -> Option<Vec<Device<'a>>> {
    const ENABLED: u32 = 1;
    device.mig_mode().ok().filter(|mode| mode.current == ENABLED)?;
    let count = device.mig_device_count().unwrap_or(0);
    Some((0..count).filter_map(|index| device.mig_device_by_index(index).ok()).collect())
}

fn describe(device: &Device<'_>, index: u32, node: &str) -> Result<Gpu, NvmlError> {
    Ok(Gpu {
        uuid: Uuid(clean_line(&device.uuid()?)),
        index,
        node: node.to_owned(),
        name: clean_line(&device.name()?),
        memory: Bytes(device.memory_info()?.total),
        real: true,
    })
}

/// The indices of these devices now, in the given order; `library` where it is not the installed one.
pub fn indices(library: Option<&Path>, uuids: &[Uuid]) -> Result<Vec<u32>, GpuError> {
    let library = load(library)?;
    let gpus = list(&library).map_err(|error| refusal(&error))?;
    let index = |uuid: &Uuid| {
        if uuid.0.starts_with("MIG-") {
            return Err(GpuError::NoIndex(uuid.clone()));
        }
        let found = gpus.iter().find(|gpu| gpu.uuid == *uuid);
        found.map(|gpu| gpu.index).ok_or_else(|| GpuError::NotListed(uuid.clone()))
    };
    uuids.iter().map(index).collect()
}
