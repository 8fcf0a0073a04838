//! A stand-in for `libnvidia-ml.so.1`: the C functions that the scheduler calls, answered from a text file.
//!
//! The file is `$FAKE_NVML_STATE`, else `state` beside the library (its form: `state.rs`). It is read anew at each
//! call, so that a test changes what the driver says while the program under test runs; copies of the library in
//! several folders are several drivers within one process.
#![expect(unsafe_code, reason = "exports C functions that write through the caller's pointers")]
#![expect(clippy::missing_safety_doc, reason = "the contract is the driver's: pointers as nvml.h says")]

#[path = "events.rs"]
mod events;
#[path = "state.rs"]
mod state;

use state::{Device, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, State, UNKNOWN};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A place in the file: device, and instance if it is one. Coded into the handle; never dereferenced.
type Handle = *mut c_void;

const INSTANCES: usize = 16;
/// The size of the second version of the memory structure and its version, as the real library wants it.
const MEMORY_VERSION: u32 = 0x0200_0028;

#[repr(C)]
pub struct Memory {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

#[repr(C)]
pub struct ProcessInfo {
    pid: u32,
    memory: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

#[repr(C)]
pub struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
    bus_id: [c_char; 32],
}

fn code(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(SUCCESS)
}

/// The state now. An unreadable file is an unknown error at each call.
fn read_state() -> Result<State, u32> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let given = std::env::var_os("FAKE_NVML_STATE").map(PathBuf::from);
        given.or_else(|| Some(own_path()?.with_file_name("state")))
    });
    let text = std::fs::read_to_string(path.as_ref().ok_or(UNKNOWN)?).map_err(|_| UNKNOWN)?;
    State::parse(&text).ok_or(UNKNOWN)
}

/// Where this library was loaded from.
fn own_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let own: extern "C" fn() -> u32 = nvmlShutdown;
    // SAFETY: the address is one of this library's functions; all zeroes are a valid `Dl_info`.
    let info =
        unsafe { (libc::dladdr(own as *const c_void, info.as_mut_ptr()) != 0).then(|| info.assume_init()) }?;
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not null, and the loader's text ends in NUL and lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(name.to_str().ok()?))
}

/// The state now, after a hang if one is ordered. The wait ends when the order is withdrawn.
fn state() -> Result<State, u32> {
    const STEP_MS: u64 = 2;
    let mut waited = 0;
    loop {
        let state = read_state()?;
        if waited >= state.hang_ms {
            return Ok(state);
        }
        #[expect(clippy::disallowed_methods, reason = "a driver that hangs")]
        std::thread::sleep(Duration::from_millis(STEP_MS));
        waited += STEP_MS;
    }
}

fn handle(device: usize, instance: Option<usize>) -> Handle {
    std::ptr::without_provenance_mut(
        (device + 1) * INSTANCES * 2 + instance.map_or(0, |instance| instance + 1),
    )
}

/// The device of a handle, and its instance.
fn device_of(handle: Handle) -> Result<(Device, Option<usize>), u32> {
    let number = handle.addr();
    let device = (number / (INSTANCES * 2)).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    let device = state()?.devices.get(device).cloned().ok_or(INVALID_ARGUMENT)?;
    Ok((device, (number % (INSTANCES * 2)).checked_sub(1)))
}

fn write<T>(to: *mut T, value: T) -> Result<(), u32> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller passes a pointer to a `T` of its own.
    unsafe { to.write(value) };
    Ok(())
}

fn write_text(to: *mut c_char, length: u32, text: &str) -> Result<(), u32> {
    if to.is_null() || text.len() + 1 > length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: the caller's buffer has `length` bytes, and the text with its end fits.
        unsafe { to.add(at).write(byte as c_char) };
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> u32 {
    read_state().map_or_else(|code| code, |state| state.init)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: u32) -> u32 {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: u32) -> u32 {
    code(write_text(to, length, "550.90.07"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut u32) -> u32 {
    code(state().and_then(|state| write(to, state.devices.len() as u32)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, to: *mut Handle) -> u32 {
    let found = state().and_then(|state| {
        state.devices.get(index as usize).ok_or(INVALID_ARGUMENT)?.check("handle")?;
        write(to, handle(index as usize, None))
    });
    code(found)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut Handle) -> u32 {
    if uuid.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller passes text that ends in NUL.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let found = state().and_then(|state| {
        for (index, device) in state.devices.iter().enumerate() {
            let instance = device.instances.iter().position(|(instance, _)| *instance == uuid);
            if device.uuid == uuid || instance.is_some() {
                device.check("handle")?;
                return write(to, handle(index, instance));
            }
        }
        Err(NOT_FOUND)
    });
    code(found)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: Handle, to: *mut c_char, length: u32) -> u32 {
    code(device_of(device).and_then(|(device, instance)| {
        device.check("uuid")?;
        let uuid = instance.map_or(&device.uuid, |instance| &device.instances[instance].0);
        write_text(to, length, uuid)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: Handle, to: *mut c_char, length: u32) -> u32 {
    code(device_of(device).and_then(|(device, instance)| {
        device.check("name")?;
        let suffix = if instance.is_some() { " MIG 1g.10gb" } else { "" };
        write_text(to, length, &format!("{}{suffix}", device.name))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: Handle, to: *mut PciInfo) -> u32 {
    code(device_of(device).and_then(|(found, _)| {
        found.check("pci")?;
        let (domain, bus, device) = found.pci;
        let mut bus_id = [0; 32];
        for (to, byte) in bus_id.iter_mut().zip(format!("{domain:08X}:{bus:02X}:{device:02X}.0").bytes()) {
            *to = byte as c_char;
        }
        let (device_id, subsystem_id) = (0x20B5_10DE, 0x1533_10DE);
        write(to, PciInfo { bus_id_legacy: [0; 16], domain, bus, device, device_id, subsystem_id, bus_id })
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Handle, to: *mut Memory) -> u32 {
    code(device_of(device).and_then(|(device, instance)| {
        device.check("memory")?;
        // SAFETY: the caller passes a pointer to the structure whose version it filled in.
        if to.is_null() || unsafe { (*to).version } != MEMORY_VERSION {
            return Err(INVALID_ARGUMENT);
        }
        let total = instance.map_or(device.memory_total, |instance| device.instances[instance].1);
        let used = device.memory_used.min(total);
        write(to, Memory { version: MEMORY_VERSION, total, reserved: 0, free: total - used, used })
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: Handle, to: *mut Utilization) -> u32 {
    code(device_of(device).and_then(|(device, instance)| {
        device.check("utilisation")?;
        if instance.is_some() {
            return Err(NOT_SUPPORTED);
        }
        write(to, Utilization { gpu: device.utilisation, memory: device.utilisation / 2 })
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: Handle, _sensor: u32, to: *mut u32) -> u32 {
    code(device_of(device).and_then(|(device, _)| {
        device.check("temperature")?;
        write(to, device.temperature_c)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: Handle, to: *mut u32) -> u32 {
    code(device_of(device).and_then(|(device, _)| {
        device.check("power")?;
        write(to, device.power_mw)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: Handle,
    kind: u32,
    _counter: u32,
    to: *mut u64,
) -> u32 {
    const UNCORRECTED: u32 = 1;
    code(device_of(device).and_then(|(device, instance)| {
        device.check("ecc")?;
        if instance.is_some() {
            return Err(NOT_SUPPORTED);
        }
        write(to, if kind == UNCORRECTED { device.ecc } else { 0 })
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    device: Handle,
    corrected: *mut u32,
    uncorrected: *mut u32,
    pending: *mut u32,
    failed: *mut u32,
) -> u32 {
    code(device_of(device).and_then(|(device, instance)| {
        device.check("remap")?;
        if instance.is_some() {
            return Err(NOT_SUPPORTED);
        }
        write(corrected, 0)?;
        write(uncorrected, 0)?;
        write(pending, u32::from(device.remap_pending))?;
        write(failed, u32::from(device.remap_failed))
    }))
}

/// Answers a process list as the driver does: a buffer that is too small gets the size that is needed.
fn processes(kind: &str, device: Handle, count: *mut u32, to: *mut ProcessInfo) -> Result<(), u32> {
    static ANSWERED: AtomicU32 = AtomicU32::new(0);
    let burst = state()?.burst;
    let (device, _) = device_of(device)?;
    device.check(kind)?;
    let list: Vec<_> = device.processes.iter().filter(|process| process.0 == kind).collect();
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null; the caller says how many entries its buffer has.
    let room = unsafe { *count } as usize;
    write(count, list.len() as u32)?;
    if list.is_empty() {
        return Ok(());
    }
    if to.is_null() || list.len() > room {
        return Err(INSUFFICIENT_SIZE);
    }
    if ANSWERED.load(Ordering::Relaxed) < burst {
        ANSWERED.fetch_add(1, Ordering::Relaxed);
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, (_, pid, bytes)) in list.into_iter().enumerate() {
        let info = ProcessInfo {
            pid: *pid,
            memory: bytes.unwrap_or(u64::MAX),
            gpu_instance: u32::MAX,
            compute_instance: u32::MAX,
        };
        // SAFETY: the list fits the caller's buffer.
        unsafe { to.add(at).write(info) };
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: Handle,
    count: *mut u32,
    to: *mut ProcessInfo,
) -> u32 {
    code(processes("compute", device, count, to))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: Handle,
    count: *mut u32,
    to: *mut ProcessInfo,
) -> u32 {
    code(processes("graphics", device, count, to))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    device: Handle,
    count: *mut u32,
    to: *mut ProcessInfo,
) -> u32 {
    code(processes("mps", device, count, to))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(device: Handle, current: *mut u32, pending: *mut u32) -> u32 {
    code(device_of(device).and_then(|(device, _)| {
        device.check("mig")?;
        write(current, u32::from(device.mig))?;
        write(pending, u32::from(device.mig))
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, to: *mut u32) -> u32 {
    code(device_of(device).and_then(|(device, _)| write(to, if device.mig { 7 } else { 0 })))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: Handle,
    index: u32,
    to: *mut Handle,
) -> u32 {
    let parent = device.addr() / (INSTANCES * 2);
    code(device_of(device).and_then(|(device, _)| {
        let index = index as usize;
        if index >= device.instances.len() {
            return Err(NOT_FOUND);
        }
        write(to, handle(parent.checked_sub(1).ok_or(UNKNOWN)?, Some(index)))
    }))
}
