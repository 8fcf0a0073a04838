//! Overnight: drop a job file into a folder; it waits without costing anything, holds GPUs only when they are really
//! free, runs with nobody watching, hands its results back, and proves that the GPUs are free again.
//!
//! Functional core, imperative shell. Layers, from the inside out (`tests/tidy.rs` checks them):
//!
//! | layer | modules | may use |
//! |---|---|---|
//! | 0 | [`model`] | nothing of ours |
//! | 1 | [`protocol`], [`sched`] | layer 0; `sched` also `protocol` |
//! | 2 | adapters, blind to each other: [`jobfile`], `inbox`, `store`, [`engine`], [`gpu`], `supervisor`, `files`, `client`; and [`beneath`], [`cgroup`], [`clock`], `config` for all of them | layers 0 and 1 |
//! | 3 | the shell: `daemon`, `tui`, `cli`, `app` | everything below |

pub mod app;
pub mod beneath;
pub mod cgroup;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod files;
pub mod gpu;
pub mod inbox;
pub mod jobfile;
pub mod model;
pub mod protocol;
pub mod sched;
pub mod store;
pub mod supervisor;
pub mod tui;
