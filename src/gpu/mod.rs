//! Devices: who is there, what they read, who is on them. Layer 2.
//!
//! A reading that could not be taken is `None` with a reason, never zero. Devices are named by UUID.

use crate::model::{Gpu, GpuReading, LeaseId, Token, Uuid};

/// Where devices come from.
pub trait GpuBackend: Send {
    /// The devices that are there now, in PCI order.
    fn list(&mut self) -> Result<Vec<Gpu>, GpuError>;

    /// One reading of every device ever listed. May block on a driver: the shell calls it off the loop, with a
    /// deadline, unless [`GpuBackend::instant`].
    ///
    /// `running` says which devices run which lease's work; a real driver does not need it.
    fn sample(&mut self, running: &[Running]) -> Vec<GpuReading>;

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
}
