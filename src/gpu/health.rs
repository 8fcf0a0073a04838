//! The health of a device's memory, as the driver tells it.

use crate::model::Health;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::{Device, Nvml as Library};

/// What a device tells. Cards without ECC, older drivers and MIG instances do not: that is no illness.
pub(super) fn of_device(library: &Library, device: &Device<'_>) -> Health {
    let uncorrected = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok();
    let (remap_pending, remap_failed) = remapped_rows(library, device).unzip();
    Health { uncorrected, remap_pending, remap_failed }
}

/// Whether a bad row waits to be replaced, and whether one could not be.
#[expect(unsafe_code, reason = "the wrapper does not have this call")]
fn remapped_rows(library: &Library, device: &Device<'_>) -> Option<(bool, bool)> {
    const SUCCESS: u32 = 0;
    let ask = library.lib().nvmlDeviceGetRemappedRows.as_ref().ok()?;
    let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle is a live device's of this library; all pointers are to live numbers of the right type.
    let code = unsafe {
        ask(device.handle(), &raw mut corrected, &raw mut uncorrected, &raw mut pending, &raw mut failed)
    };
    (code == SUCCESS).then_some((pending != 0, failed != 0))
}
