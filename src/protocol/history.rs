//! What was and what is to come: the telemetry of the devices, and who has them when. Looked at when somebody asks;
//! nothing of it is an event.

use crate::model::{Bytes, JobId, LeaseId, Uuid};
use serde::{Deserialize, Serialize};

/// To `Query::GpuHistory`: what the scheduler's own readings of the devices have shown, in index order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GpuHistory {
    /// One for each device.
    pub gpus: Vec<GpuTrace>,
}

/// The telemetry of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTrace {
    /// Identity.
    pub uuid: Uuid,
    /// Index today.
    pub index: u32,
    /// The same time in coarser and coarser steps, the finest first: about 20 minutes, 1 hour, 24 hours.
    pub rings: Vec<GpuRing>,
}

/// A stretch of time in equal steps. All lists are of one length, the oldest step first, the last ends at `until`. What was
/// not read is `None`: also the whole step, where nothing ran and nobody looked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GpuRing {
    /// The length of a step, milliseconds.
    pub period_ms: u64,
    /// Where the newest step ends, wall milliseconds.
    pub until: i64,
    /// Mean, percent.
    pub utilisation: Vec<Option<u8>>,
    /// Highest.
    pub memory_used: Vec<Option<Bytes>>,
    /// Mean, watts.
    pub power_w: Vec<Option<u32>>,
    /// Highest, degrees.
    pub temperature_c: Vec<Option<i32>>,
    /// A job held it at some time of the step; `None`: it was not looked at.
    pub held: Vec<Option<bool>>,
}

/// To `Query::Timeline`: who had, has and is expected to get which device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// From, wall milliseconds.
    pub from_ms: i64,
    /// To, wall milliseconds.
    pub until_ms: i64,
    /// The moment between what was and what is to come.
    pub now_ms: i64,
    /// By device index, then by `from`. Spans of one device overlap only where a plan does not keep to a forecast.
    pub spans: Vec<TimelineSpan>,
    /// There were more leases than an answer has room for: the oldest are left out, and what is before this moment is not
    /// whole.
    pub cut_before: Option<i64>,
}

/// One job on one device for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineSpan {
    /// Device.
    pub gpu: Uuid,
    /// Its index today; `None`: it is not listed any more.
    pub index: Option<u32>,
    /// What the device is to it.
    pub kind: SpanKind,
    /// The lease, where there is one already.
    pub lease: Option<LeaseId>,
    /// The job; `None`: a quarantine that no job has left.
    pub job: Option<JobId>,
    /// The job's name.
    pub name: String,
    /// Its owner.
    pub user: String,
    /// Since when, or from about when: wall milliseconds.
    pub from: i64,
    /// For what is planned: the start at the latest, if everybody uses all of their limit.
    pub from_by: Option<i64>,
    /// Until when, or until about when; `None`: nobody knows.
    pub until: Option<i64>,
    /// For what is held or planned: the end at the latest, by its limit.
    pub until_by: Option<i64>,
}

/// What a device is to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A lease that has ended.
    Past,
    /// A lease that holds it now.
    Held,
    /// Its lease has ended, and it is not proven clean yet.
    Draining,
    /// It was not proven clean, or has a fault.
    Quarantined,
    /// What the forecast expects.
    Planned,
}
