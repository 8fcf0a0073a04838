//! The panels: one file each, a function of the [`View`](super::View) and a rectangle.

pub(in crate::tui) mod charts;
pub(in crate::tui) mod columns;
pub(in crate::tui) mod detail;
pub(in crate::tui) mod empty;
pub(in crate::tui) mod forecast;
pub(in crate::tui) mod frames;
pub(in crate::tui) mod gpugrid;
pub(in crate::tui) mod gpus;
pub(in crate::tui) mod gpuscreen;
pub(in crate::tui) mod header;
pub(in crate::tui) mod history;
pub(in crate::tui) mod inbox;
pub(in crate::tui) mod life;
pub(in crate::tui) mod log;
pub(in crate::tui) mod logmarks;
pub(in crate::tui) mod logmatch;
pub(in crate::tui) mod logtext;
pub(in crate::tui) mod meter;
pub(in crate::tui) mod meterscreen;
pub(in crate::tui) mod queue;
pub(in crate::tui) mod statusline;
pub(in crate::tui) mod timeline;
