//! What the end-to-end tests stand on: a scheduler in a folder of its own, and a terminal that a test can read.

pub(crate) mod pty;
pub(crate) mod sandbox;
