//! What things look like: themes, colours, characters, and the canvas that everything is drawn on. Knows nothing of jobs.

pub(in crate::tui) mod canvas;
pub(in crate::tui) mod colour;
pub mod sample;
pub(in crate::tui) mod text;
pub(in crate::tui) mod theme;
pub(in crate::tui) mod vision;
