//! What to do: the functional core. Layer 1; no I/O, no clock, no randomness.
//!
//! The shell hands [`Input`]s to `step`; it returns [`Event`](crate::model::Event)s to make durable, then
//! [`Effect`]s to carry out and replies to send.

mod check;
mod commands;
mod devices;
mod effect;
mod faults;
mod forecast;
pub mod history;
mod input;
mod lifecycle;
pub mod meter;
pub mod picture;
mod plan;
mod recovery;
mod reports;
mod step;
pub mod view;
pub mod world;
mod xid;

pub use check::check_transition;
pub use commands::{undoable, would_edit};
pub use effect::{Effect, Launch, LaunchDevice, Prepare, StopKind};
pub use forecast::{Forecast, Forecasts, forecast};
pub use input::{Edit, EngineReport, Input, Submission};
pub use plan::{Ask, Plan, Reason, Start, ask, explain, may_live, plan, promise};
pub use recovery::{in_time, leases_to_find, resume};
pub use step::{Decision, Moment, Wake, step};
pub use world::{ApplyError, Counters, Remembered, Touched, World};
