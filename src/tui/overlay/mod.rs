//! What lies over the screen; one at a time.

pub(in crate::tui) mod confirm;
pub(in crate::tui) mod help;
