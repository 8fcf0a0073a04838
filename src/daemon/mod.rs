//! The scheduler: one loop that owns the world. Layer 3.
//!
//! ```text
//! inputs → step → append → effects → replies → publish
//! ```
//!
//! Nothing is seen or done before it is durable: the events of a turn become one commit, however many inputs it had, and
//! only then are its effects carried out, its replies sent and its rows published. A commit that fails freezes the turn:
//! the same events are appended again on a reopened store until the disk is back; the last picture stays served with a
//! banner, and a cancel goes straight to the supervisor.
//!
//! | module | does |
//! |---|---|
//! | `start` | opens everything, in the order in which it can be refused |
//! | `turns` | the loop |
//! | `durable` | the commit of a turn, and what happens while it fails |
//! | `frozen` | answers meanwhile |
//! | `held` | drops that come meanwhile, and what a power cut left in the inbox |
//! | `intake` | job files to submissions |
//! | `effects` | what the core asks for |
//! | `prepare` | work directories, before a grant |
//! | `collect` | outputs of runs whose supervisor is gone |
//! | `room` | whether a start failed for want of room |
//! | `clerk` | the thread that writes job folders, answers and receipts, off the path |
//! | `devices` | readings: at once for simulated devices, through the sampler for real ones |
//! | `answers` | queries |
//! | `listing` | the list of all jobs, in parts |
//! | `showing` | whether what screens show may have changed, and what is sent of it |
//! | `socket` | connections |

mod answers;
mod clerk;
mod clockwatch;
mod collect;
mod devices;
mod durable;
mod editing;
mod effects;
mod frozen;
mod held;
mod intake;
mod listing;
mod message;
mod prepare;
mod room;
mod showing;
mod socket;
mod start;
mod turns;

pub use start::{DaemonError, ServeSetup, serve};
