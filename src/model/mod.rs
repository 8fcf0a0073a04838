//! What things are: jobs, attempts, GPUs, leases, events and time. Layer 0.
//!
//! No I/O and no clock: time is a [`Now`] that the shell read and handed in. Every word here is the word of
//! `ARCHITECTURE.md`, and the same word is used in job files, on screens and in error messages.

mod attempt;
mod change;
mod collect;
mod enforcement;
mod event;
mod fault;
mod fit;
mod gpu;
mod job;
mod lease;
mod outcome;
mod parse;
mod scalars;
mod spec;
mod text;
mod time;

pub use attempt::{AttemptFact, AttemptState, Cursor, RunEnd, TransitionError};
pub use change::{Change, Changed, EditMark, JobText, Passed, Position, Requested};
pub use collect::{Collect, Collected};
pub use enforcement::{EnforcedBy, Enforcement};
pub use event::{CancelRequest, DropIdent, Event, EventRecord, Origin};
pub use fault::{Accepted, Fault, FaultKind, FaultNews, Health};
pub use fit::{memory_fits, model_matches};
pub use gpu::{
    Close, DeviceState, Gpu, GpuProcess, GpuReading, HostReading, LockHolder, ProcessKind, Quarantine,
    Standing, Unreadable,
};
pub use job::{Attempt, Dependency, Job, JobState, ReturnedFile, Task};
pub use lease::{EndedBy, Held, Lease, LeaseDevice, Returned, Verdict};
pub use outcome::{Failure, Outcome};
pub use parse::{ParseValueError, parse_bytes, parse_span};
pub use scalars::{
    AttemptNo, Bytes, Generation, JobId, LeaseId, Owner, Priority, Revision, SubmissionId, TaskIx, Token,
    Uuid,
};
pub use spec::{
    Amount, Code, DataFrom, DataItem, ForEach, GpuIds, JobSpec, Limit, NotifyOn, OutputItem, OutputKind,
    Request, Retry, RetryOn, Run, Setup, Stage, Stop, StopSignal, Work, WorkKind,
};
pub use text::{chain, clean, clean_line, edits, is_unsafe, shortened, slug};
pub use time::{BootId, Now, Span};
