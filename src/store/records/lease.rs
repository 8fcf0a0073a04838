//! Records of leases and devices.

use super::scalars::{NowRecord, OwnerRecord};
use super::{Record, RecordError, record};
use crate::model::{
    Accepted, AttemptNo, Close, DeviceState, EndedBy, Fault, Health, Held, Lease, LeaseDevice, Now,
    Quarantine, Returned, Standing, TaskIx, Verdict,
};

record! {
    /// A lease as it is now.
    struct LeaseRecord for Lease {
        id: u64,
        job: u64,
        job_name: String,
        owner: OwnerRecord,
        project: Option<String>,
        attempts: Vec<AttemptRefRecord>,
        held: HeldRecord,
        token: String,
        granted: NowRecord,
        heartbeat: NowRecord,
        ended: Option<EndedRecord>,
        gone: Option<NowRecord>,
        waived: bool,
        suspended_ms: u64,
        returned: Option<ReturnedRecord>,
    }
}

/// An attempt of the lease's job.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AttemptRefRecord {
    task: u32,
    attempt: u32,
}

impl Record<(TaskIx, AttemptNo)> for AttemptRefRecord {
    fn of((task, attempt): &(TaskIx, AttemptNo)) -> Self {
        Self { task: task.0, attempt: attempt.0 }
    }
    fn restore(self) -> Result<(TaskIx, AttemptNo), RecordError> {
        Ok((TaskIx(self.task), AttemptNo(self.attempt)))
    }
}

/// When a lease ended, and who says so.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EndedRecord {
    at: NowRecord,
    by: EndedByRecord,
}

impl Record<(Now, EndedBy)> for EndedRecord {
    fn of((at, by): &(Now, EndedBy)) -> Self {
        Self { at: Record::of(at), by: Record::of(by) }
    }
    fn restore(self) -> Result<(Now, EndedBy), RecordError> {
        Ok((self.at.restore()?, self.by.restore()?))
    }
}

record! {
    /// What a lease holds.
    struct HeldRecord for Held { devices: Vec<LeaseDeviceRecord>, cores: u32, memory: u64 }
}

record! {
    /// A GPU of a lease.
    struct LeaseDeviceRecord for LeaseDevice { uuid: String, baseline: u64 }
}

record! {
    /// Who says when a lease ended.
    enum EndedByRecord for EndedBy { Proven, AfterKill, Estimated }
}

record! {
    /// The release of the devices.
    struct ReturnedRecord for Returned { at: NowRecord, verdict: VerdictRecord }
}

record! {
    /// Whether the devices came back clean.
    enum VerdictRecord for Verdict { Clean, Quarantined { detail: String } }
}

record! {
    /// What the pool thinks of a device.
    enum DeviceStateRecord for DeviceState {
        Free,
        Held { lease: u64 },
        Draining { lease: u64, since: NowRecord },
        Quarantined(quarantine: QuarantineRecord),
        Outside { who: String },
        Closed { reason: String, by: String },
        Gone { detail: String },
        Unknown { detail: String },
    }
}

record! {
    /// Why a device is in quarantine.
    struct QuarantineRecord for Quarantine { why: String, since: NowRecord, lease: Option<u64> }
}

record! {
    /// All that is remembered of a device.
    struct StandingRecord for Standing {
        state: DeviceStateRecord,
        close: Option<CloseRecord>,
        fault: Option<FaultRecord>,
        accepted: Option<AcceptedRecord>,
    }
}

record! {
    /// That a device is closed when it is given back.
    struct CloseRecord for Close { reason: String, by: String }
}

record! {
    /// What is wrong with a device.
    struct FaultRecord for Fault { why: String, at: NowRecord, lost: bool, health: HealthRecord }
}

record! {
    /// What an operator lives with.
    struct AcceptedRecord for Accepted { boot: String, health: HealthRecord }
}

record! {
    /// The health of a device's memory.
    struct HealthRecord for Health {
        uncorrected: Option<u64>,
        remap_pending: Option<bool>,
        remap_failed: Option<bool>,
    }
}
