//! No devices: CPU-only jobs run, GPU jobs are refused with what the pool has.

use super::{GpuBackend, GpuError, Running};
use crate::model::{Gpu, GpuReading};

/// A machine without devices.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGpus;

impl GpuBackend for NoGpus {
    fn list(&mut self) -> Result<Vec<Gpu>, GpuError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, _running: &[Running]) -> Vec<GpuReading> {
        Vec::new()
    }

    fn instant(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "none"
    }
}
