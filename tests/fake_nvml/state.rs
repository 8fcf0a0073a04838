//! The text file that says what the fake driver answers, read anew at each call.
//!
//! ```text
//! init = 18                 # code that nvmlInit answers; default 0
//! hang_ms = 60000           # every later call waits that long, or until this line is gone
//! burst = 2                 # that many process lists are answered with "too small"
//!
//! [device]                  # one section per device, in the driver's order
//! uuid = GPU-…
//! name = NVIDIA A100 80GB PCIe
//! pci = 00000000:17:00.0
//! memory_total = 85899345920
//! memory_used = 4194304
//! utilisation = 0
//! temperature_c = 33
//! power_mw = 52000
//! process = compute 4242 1048576     # kind (compute, graphics, mps), pid, bytes or -; may be repeated
//! error = 15                # every call for this device
//! error.memory = 999        # one call: memory, utilisation, temperature, power, compute, graphics, mps, name, pci, ecc, remap, events
//! ecc = 2                   # errors that ECC could not correct, since the last reset; default 0
//! remap = pending           # a bad row is replaced at the next reset; or failed: it could not be; may be repeated
//! xid = 1 79                # the device's first event is Xid 79; numbers rise, each is told once to whoever registered before it
//! dbe = 2                   # its second event is a double-bit error
//! mig = MIG-… 10737418240   # MIG mode with this instance, and its memory; may be repeated
//! mig_mode = 1              # MIG mode, even without instances
//! ```

use std::collections::HashMap;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const TIMEOUT: u32 = 10;
pub(crate) const UNKNOWN: u32 = 999;

#[derive(Debug, Default, Clone)]
pub(crate) struct State {
    pub(crate) init: u32,
    pub(crate) hang_ms: u64,
    pub(crate) burst: u32,
    pub(crate) devices: Vec<Device>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Device {
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// Domain, bus, device.
    pub(crate) pci: (u32, u32, u32),
    pub(crate) memory_total: u64,
    pub(crate) memory_used: u64,
    pub(crate) utilisation: u32,
    pub(crate) temperature_c: u32,
    pub(crate) power_mw: u32,
    /// Kind, pid, bytes.
    pub(crate) processes: Vec<(String, u32, Option<u64>)>,
    /// By call; under the empty name for all calls.
    pub(crate) errors: HashMap<String, u32>,
    /// UUID and memory.
    pub(crate) instances: Vec<(String, u64)>,
    pub(crate) mig: bool,
    /// Errors that ECC could not correct.
    pub(crate) ecc: u64,
    pub(crate) remap_pending: bool,
    pub(crate) remap_failed: bool,
    /// Number, and the Xid; `None` for a double-bit error.
    pub(crate) events: Vec<(u64, Option<u64>)>,
}

impl State {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut state = Self::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == "[device]" {
                state.devices.push(Device::default());
                continue;
            }
            let (key, value) = line.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            match state.devices.last_mut() {
                Some(device) => device.set(key, value)?,
                None => match key {
                    "init" => state.init = value.parse().ok()?,
                    "hang_ms" => state.hang_ms = value.parse().ok()?,
                    "burst" => state.burst = value.parse().ok()?,
                    _ => return None,
                },
            }
        }
        Some(state)
    }
}

impl Device {
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "uuid" => value.clone_into(&mut self.uuid),
            "name" => value.clone_into(&mut self.name),
            "pci" => {
                let mut parts = value.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
                self.pci = (parts.next()??, parts.next()??, parts.next()??);
            }
            "memory_total" => self.memory_total = value.parse().ok()?,
            "memory_used" => self.memory_used = value.parse().ok()?,
            "utilisation" => self.utilisation = value.parse().ok()?,
            "temperature_c" => self.temperature_c = value.parse().ok()?,
            "power_mw" => self.power_mw = value.parse().ok()?,
            "process" => {
                let mut words = value.split_whitespace();
                let (kind, pid, bytes) = (words.next()?, words.next()?, words.next()?);
                let bytes = if bytes == "-" { None } else { Some(bytes.parse().ok()?) };
                self.processes.push((kind.to_owned(), pid.parse().ok()?, bytes));
            }
            "mig" => {
                let (uuid, bytes) = value.split_once(' ')?;
                self.instances.push((uuid.to_owned(), bytes.trim().parse().ok()?));
                self.mig = true;
            }
            "mig_mode" => self.mig = value == "1",
            "ecc" => self.ecc = value.parse().ok()?,
            "remap" if value == "pending" => self.remap_pending = true,
            "remap" if value == "failed" => self.remap_failed = true,
            "xid" => {
                let (number, xid) = value.split_once(' ')?;
                self.events.push((number.parse().ok()?, Some(xid.trim().parse().ok()?)));
            }
            "dbe" => self.events.push((value.parse().ok()?, None)),
            "error" => drop(self.errors.insert(String::new(), value.parse().ok()?)),
            _ => drop(self.errors.insert(key.strip_prefix("error.")?.to_owned(), value.parse().ok()?)),
        }
        Some(())
    }

    /// The number of its last event; 0 if there was none.
    pub(crate) fn last_event(&self) -> u64 {
        self.events.iter().map(|(number, _)| *number).max().unwrap_or(0)
    }

    /// What a call for this device answers before it does anything.
    pub(crate) fn check(&self, call: &str) -> Result<(), u32> {
        match self.errors.get("").or_else(|| self.errors.get(call)) {
            Some(0) | None => Ok(()),
            Some(code) => Err(*code),
        }
    }
}
