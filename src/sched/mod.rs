//! What to do: the functional core. Layer 1; no I/O, no clock, no randomness.
//!
//! The shell hands [`Input`]s to `step`; it returns [`Event`](crate::model::Event)s to make durable, then
//! [`Effect`]s to carry out and replies to send.

mod commands;
mod devices;
mod effect;
mod faults;
mod forecast;
mod input;
mod lifecycle;
pub mod meter;
mod plan;
mod reports;
mod step;
pub mod view;
pub mod world;
mod xid;

pub use effect::{Effect, Launch, LaunchDevice, Prepare, StopKind};
pub use forecast::{Forecast, Forecasts, forecast};
pub use input::{EngineReport, Input, Submission};
pub use plan::{Ask, Plan, Reason, Start, ask, explain, plan};
pub use step::{Decision, Moment, Wake, resume, step};
pub use world::{ApplyError, Counters, Remembered, Touched, World};
