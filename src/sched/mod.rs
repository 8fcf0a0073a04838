//! What to do: the functional core. Layer 1; no I/O, no clock, no randomness.
//!
//! The shell hands [`Input`]s to `step`; it returns [`Event`](crate::model::Event)s to make durable, then
//! [`Effect`]s to carry out and replies to send.

mod effect;
mod input;

pub use effect::{Effect, Launch, LaunchDevice, Prepare, StopKind};
pub use input::{EngineReport, Input, Submission};
