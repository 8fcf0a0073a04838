//! What scheduler and clients say to each other: plain data, newline-delimited JSON on `STATE/overnight.sock`. Layer 1.
//!
//! A connection opens with a versioned [`Hello`] each way; then the client sends [`Request`]s and gets one
//! [`Reply`] for each, in order. After `Subscribe` the scheduler also sends [`ServerMessage::Update`]s of its own accord.

mod change;
mod command;
mod diagnostics;
mod history;
pub mod json;
mod json_news;
mod receipt;
mod reply;
mod snapshot;
mod update;

pub use change::{EditMark, Edited, Expectation, FieldChange, JobFile, UndoRow, WhatIf, WhatIfRow};
pub use command::{
    Change, ClientMessage, Command, GpuSelect, Hello, Overrides, PROTOCOL, Place, Query, Request, SubmitFile,
};
pub use diagnostics::{Diagnostic, Edit, Severity};
pub use history::{GpuHistory, GpuRing, GpuTrace, SpanKind, Timeline, TimelineSpan};
pub use reply::{MeterBy, MeterRow, MeterTable, Reply, ServerMessage, SubmittedJob};
pub use snapshot::{
    AttemptRow, Connection, GpuRow, InboxRow, InboxState, JobDetail, JobRow, MeterSummary, Notice,
    NoticeLevel, OpenLease, PoolFacts, SchedulerInfo, Snapshot, StepRow, TaskCounts, UserMeter,
};
pub use update::{Incomplete, JobTimes, Move, Update, Why};
