//! GPUs: identity, readings and the state the pool gives them.

use super::{Accepted, Bytes, Fault, Health, LeaseId, Now, Token, Uuid};
use serde::{Deserialize, Serialize};

/// A device of the pool: what does not change while it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Identity. Leases, locks and records use this, never the index.
    pub uuid: Uuid,
    /// Place in PCI order today; may change at the next boot.
    pub index: u32,
    /// The host it sits in.
    pub node: String,
    /// The driver's name for the model, such as `NVIDIA A100 80GB PCIe`.
    pub name: String,
    /// Total memory as the driver reports it.
    pub memory: Bytes,
    /// A real device: the supervisor takes its cross-scheduler lock and resolves its index. Simulated ones are not.
    pub real: bool,
}

/// One reading of one device. What could not be read is `None`, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuReading {
    /// Which device.
    pub uuid: Uuid,
    /// When what it says was true at the earliest: before the first question about memory and processes.
    pub at: Now,
    /// Why the device as a whole could not be read.
    pub unreadable: Option<Unreadable>,
    /// Memory in use by anybody.
    pub memory_used: Option<Bytes>,
    /// Percent.
    pub utilisation: Option<u8>,
    /// Degrees Celsius.
    pub temperature_c: Option<i32>,
    /// Watts.
    pub power_w: Option<u32>,
    /// The health of its memory.
    pub health: Health,
    /// Processes on the device, compute and graphics; `None` if the list could not be read.
    pub processes: Option<Vec<GpuProcess>>,
    /// Who holds the device's cross-scheduler lock, if somebody does.
    pub lock: Option<LockHolder>,
}

/// Why a device could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreadable {
    /// It fell off the bus or is no longer listed.
    Gone {
        /// The driver's words.
        detail: String,
    },
    /// The driver did not answer in time, or answered with an error.
    Failed {
        /// The driver's words.
        detail: String,
    },
}

/// A process that uses a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// In the driver's pid namespace.
    pub pid: u32,
    /// The command's name; empty if unknown.
    pub name: String,
    /// Its owner, if known.
    pub uid: Option<u32>,
    /// Its owner's name, if there is one.
    pub user: Option<String>,
    /// Compute or graphics.
    pub kind: ProcessKind,
    /// Device memory it holds, if the driver tells.
    pub memory: Option<Bytes>,
    /// The `OVERNIGHT_TOKEN` in its environment, if it could be read and is there.
    pub token: Option<Token>,
    /// On the configured ignore list (display servers and the like): belongs to the baseline.
    pub ignored: bool,
}

/// What a process does on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// CUDA and the like.
    Compute,
    /// Displays only; part of the baseline.
    Graphics,
}

/// Who holds a device's cross-scheduler lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The holder's account.
    pub uid: u32,
    /// The job, as the holder names it.
    pub job: String,
    /// The holder's token, to tell our own leases from others.
    pub token: Option<Token>,
    /// Since when, wall milliseconds.
    pub since_ms: Option<i64>,
}

/// Cores and memory of the host, and what of it is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReading {
    /// CPU cores this scheduler may hand out.
    pub cores: u32,
    /// Memory this scheduler may hand out.
    pub memory: Bytes,
}

/// What the pool thinks of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// Proven clean at the last reading; may be granted on a fresh one.
    Free,
    /// Given to a lease.
    Held {
        /// Which.
        lease: LeaseId,
    },
    /// The lease ended; not yet proven clean.
    Draining {
        /// Which lease.
        lease: LeaseId,
        /// Since when.
        since: Now,
    },
    /// Not proven clean in time; never handed out until it is, or an operator clears it.
    Quarantined(Quarantine),
    /// Used by somebody else.
    Outside {
        /// Who, in words.
        who: String,
    },
    /// Closed by the operator.
    Closed {
        /// Why, in the operator's words.
        reason: String,
        /// Who.
        by: String,
    },
    /// No longer there.
    Gone {
        /// The driver's words.
        detail: String,
    },
    /// No complete reading: not free.
    Unknown {
        /// Why.
        detail: String,
    },
}

/// Why a device is in quarantine. Durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// In words, with the culprit.
    pub why: String,
    /// Since when.
    pub since: Now,
    /// The lease that left it so.
    pub lease: Option<LeaseId>,
}

/// An operator's wish that a device is closed as soon as it is given back. Durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// Why, in the operator's words.
    pub reason: String,
    /// Who.
    pub by: String,
}

/// All that is remembered of a device: its state, and what stands between it and the next grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its state.
    pub state: DeviceState,
    /// It is closed when it is given back.
    pub close: Option<Close>,
    /// It is not handed out until this is over.
    pub fault: Option<Fault>,
    /// What an operator has seen of its health and lives with.
    pub accepted: Option<Accepted>,
}

impl From<DeviceState> for Standing {
    fn from(state: DeviceState) -> Self {
        Self { state, close: None, fault: None, accepted: None }
    }
}

impl GpuProcess {
    /// `pid 4711 python of ana`.
    pub fn words(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        let owner = match (&self.user, self.uid) {
            (Some(user), _) => format!(" of {user}"),
            (None, Some(uid)) => format!(" of uid {uid}"),
            (None, None) => String::new(),
        };
        format!("pid {}{name}{owner}", self.pid)
    }
}

impl DeviceState {
    /// The word of `gpus --json`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held { .. } => "held",
            Self::Draining { .. } => "draining",
            Self::Quarantined(_) => "quarantined",
            Self::Outside { .. } => "outside",
            Self::Closed { .. } => "closed",
            Self::Gone { .. } => "gone",
            Self::Unknown { .. } => "unknown",
        }
    }
}
