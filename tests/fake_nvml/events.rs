//! Events of the fake driver: sets, and the waits on them.

use super::state::{INVALID_ARGUMENT, State, TIMEOUT};
use super::{Handle, code, device_of, handle, state, write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const XID: u64 = 8;
const DOUBLE_BIT: u64 = 2;
const SINGLE_BIT: u64 = 1;
/// Between two looks at the file.
const STEP_MS: u32 = 5;

#[repr(C)]
pub(crate) struct EventData {
    device: Handle,
    kind: u64,
    data: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// A registered device: its UUID, the kinds of events, and the number of the last event that was told.
struct Registered {
    uuid: String,
    kinds: u64,
    told: u64,
}

#[derive(Default)]
struct EventSet(Mutex<Vec<Registered>>);

impl EventSet {
    /// The next event that was not told, or what the wait answers instead.
    fn next(&self, state: &State) -> Result<Option<EventData>, u32> {
        if state.init != 0 {
            return Err(state.init);
        }
        let mut registered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for registered in registered.iter_mut() {
            let found = state.devices.iter().position(|device| device.uuid == registered.uuid);
            let Some(index) = found else { continue };
            let device = &state.devices[index];
            let mut events: Vec<_> =
                device.events.iter().filter(|(number, _)| *number > registered.told).collect();
            events.sort_unstable();
            for (number, xid) in events {
                registered.told = *number;
                let kind = if xid.is_some() { XID } else { DOUBLE_BIT };
                if registered.kinds & kind != 0 {
                    let (gpu_instance, compute_instance) = (u32::MAX, u32::MAX);
                    let (device, data) = (handle(index, None), xid.unwrap_or(0));
                    return Ok(Some(EventData { device, kind, data, gpu_instance, compute_instance }));
                }
            }
            device.check("events")?;
        }
        Ok(None)
    }
}

/// # Safety
/// Null, or a set that [`nvmlEventSetCreate`] made and nobody has freed.
unsafe fn set_of<'a>(set: Handle) -> Result<&'a EventSet, u32> {
    // SAFETY: as the caller promises.
    unsafe { set.cast::<EventSet>().as_ref() }.ok_or(INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlEventSetCreate(to: *mut Handle) -> u32 {
    code(write(to, Box::into_raw(Box::<EventSet>::default()).cast()))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlEventSetFree(set: Handle) -> u32 {
    if !set.is_null() {
        // SAFETY: the caller passes a set of `nvmlEventSetCreate` and uses it no more.
        drop(unsafe { Box::from_raw(set.cast::<EventSet>()) });
    }
    0
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetSupportedEventTypes(device: Handle, to: *mut u64) -> u32 {
    code(device_of(device).and_then(|(device, _)| {
        device.check("events")?;
        write(to, XID | DOUBLE_BIT | SINGLE_BIT)
    }))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceRegisterEvents(device: Handle, kinds: u64, set: Handle) -> u32 {
    let registered = device_of(device).and_then(|(device, _)| {
        device.check("events")?;
        // SAFETY: the caller passes a live set.
        let set = unsafe { set_of(set) }?;
        let told = device.last_event();
        set.0.lock().unwrap_or_else(PoisonError::into_inner).push(Registered {
            uuid: device.uuid,
            kinds,
            told,
        });
        Ok(())
    });
    code(registered)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlEventSetWait_v2(set: Handle, to: *mut EventData, timeout_ms: u32) -> u32 {
    // SAFETY: the caller passes a live set.
    let set = match unsafe { set_of(set) } {
        Ok(set) => set,
        Err(code) => return code,
    };
    let mut waited = 0;
    loop {
        match state().and_then(|state| set.next(&state)) {
            Ok(Some(event)) => return code(write(to, event)),
            Ok(None) if waited >= timeout_ms => return TIMEOUT,
            Ok(None) => {}
            Err(code) => return code,
        }
        #[expect(clippy::disallowed_methods, reason = "a driver that waits")]
        std::thread::sleep(Duration::from_millis(u64::from(STEP_MS)));
        waited += STEP_MS;
    }
}
