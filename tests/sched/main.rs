//! The functional core, driven as the shell drives it: inputs in, events and effects out, time as a parameter.

#![expect(unreachable_pub, reason = "the builders are shared with other test programs")]
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

mod build;
mod clocks;
mod commands;
mod dependencies;
mod devices;
mod edits;
mod faults;
mod invariants;
mod lifecycle;
mod pictures;
mod planning;
mod properties;
mod races;
mod recovery;
mod simulation;
