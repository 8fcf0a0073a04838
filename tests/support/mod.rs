//! What the end-to-end tests stand on: a scheduler in a folder of its own, a terminal that a test can read, and an auditor
//! beside both.

pub(crate) mod auditor;
pub(crate) mod pty;
pub(crate) mod sandbox;
