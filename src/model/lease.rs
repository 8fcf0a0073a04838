//! Leases: the records that the meter is made of.

use super::{AttemptNo, Bytes, JobId, LeaseId, Now, Owner, Span, TaskIx, Token, Uuid};
use serde::{Deserialize, Serialize};

/// Devices, cores and memory given to one job. It runs one or more attempts of that job in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// Its number.
    pub id: LeaseId,
    /// The job it was given to.
    pub job: JobId,
    /// The job's name, so that the ledger reads without the job.
    pub job_name: String,
    /// The job's owner, likewise.
    pub owner: Owner,
    /// The job's project, likewise.
    pub project: Option<String>,
    /// The attempts it ran, in turn.
    pub attempts: Vec<(TaskIx, AttemptNo)>,
    /// What it holds.
    pub held: Held,
    /// Identifies its processes.
    pub token: Token,
    /// When it was granted: the meter starts.
    pub granted: Now,
    /// The last durable sign of life of its supervisor.
    pub heartbeat: Now,
    /// When it ended: the meter stops.
    pub ended: Option<(Now, EndedBy)>,
    /// When the processes that had not answered their kill were seen to be gone, if there were any.
    pub gone: Option<Now>,
    /// Lost to the pool's own fault: not billed.
    pub waived: bool,
    /// Milliseconds of machine suspend within it: held and not billed.
    pub suspended_ms: u64,
    /// The devices are back, and how that was proven.
    pub returned: Option<Returned>,
}

/// What a lease holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Held {
    /// GPUs, with the memory found on each before the grant.
    pub devices: Vec<LeaseDevice>,
    /// CPU cores.
    pub cores: u32,
    /// Host memory.
    pub memory: Bytes,
}

/// A GPU of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseDevice {
    /// Which.
    pub uuid: Uuid,
    /// Memory in use at the proof before the grant.
    pub baseline: Bytes,
}

/// Who says when a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Every process was seen to be gone.
    Proven,
    /// Ten seconds after a kill that some process did not answer.
    AfterKill,
    /// Nobody saw it: the last durable heartbeat.
    Estimated,
}

impl EndedBy {
    /// The word of `show --json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::AfterKill => "after_kill",
            Self::Estimated => "estimated",
        }
    }
}

/// The release of the devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// When.
    pub at: Now,
    /// With what verdict.
    pub verdict: Verdict,
}

/// Whether the devices of a lease came back clean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No process of the lease, memory back at the baseline.
    Clean,
    /// At least one device was not proven clean in time.
    Quarantined {
        /// Which, and the culprit.
        detail: String,
    },
}

impl Lease {
    /// Whether one of its processes may still live: a kill was not answered in this boot, and nobody has seen the process
    /// go since.
    pub fn is_unproven(&self, now: &Now) -> bool {
        let unanswered = |(ended, by): (Now, EndedBy)| by == EndedBy::AfterKill && ended.boot == now.boot;
        self.ended.is_some_and(unanswered) && self.gone.is_none()
    }

    /// How long it held, up to `now` if it still does. `None` for a still open lease of an earlier boot.
    pub fn held_for(&self, now: &Now) -> Option<Span> {
        match &self.ended {
            Some((ended, _)) => ended.since(&self.granted),
            None => now.since(&self.granted),
        }
    }

    /// GPU-milliseconds, gross.
    pub fn gpu_ms(&self, now: &Now) -> u64 {
        self.held_for(now).map_or(0, |span| span.0 * self.held.devices.len() as u64)
    }

    /// Core-milliseconds, gross.
    pub fn core_ms(&self, now: &Now) -> u64 {
        self.held_for(now).map_or(0, |span| span.0 * u64::from(self.held.cores))
    }

    /// GPU-milliseconds that are not billed.
    pub fn waived_gpu_ms(&self, now: &Now) -> u64 {
        if self.waived {
            self.gpu_ms(now)
        } else {
            (self.suspended_ms * self.held.devices.len() as u64).min(self.gpu_ms(now))
        }
    }
}
