//! The supervisor: one small process per lease. It starts the work, watches it, ends all of it, and writes down what it
//! saw, so that the scheduler may be gone at any moment. Layer 2.
//!
//! Single-threaded: one `poll` over the control channels, the log pipe and the notice of ended children. No tokio, no
//! store. It knows [`LaunchSpec`](spec::LaunchSpec)s and its [`record`]; queue, pool and meter are the scheduler's.
//! `main` starts it before anything else of the program is touched.

pub mod message;
pub mod process;
pub mod record;
pub mod spec;

/// Runs the supervisor of one lease until that lease is over. The exit code of the process.
pub fn main() -> u8 {
    1
}
