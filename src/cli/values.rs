//! Values of the command line: words to choose from, and texts that are read as soon as they are given.

use crate::model::{Priority, Span, WorkKind, parse_span};
use crate::protocol::{GpuSelect, MeterBy};
use crate::tui::Depth;
use clap::ValueEnum;

/// A state to filter by: of the life line, or an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum State {
    Queued,
    Paused,
    Renting,
    Running,
    Returning,
    Releasing,
    Done,
    Succeeded,
    Failed,
    LimitReached,
    Cancelled,
    NeverStarted,
    Lost,
}

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Training,
    Inference,
    Processing,
    Simulation,
    Other,
}

impl From<Kind> for WorkKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Training => Self::Training,
            Kind::Inference => Self::Inference,
            Kind::Processing => Self::Processing,
            Kind::Simulation => Self::Simulation,
            Kind::Other => Self::Other,
        }
    }
}

/// What `service` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceAction {
    /// To standard output.
    Print,
    /// Where it belongs.
    Install,
    /// Away from there again.
    Remove,
}

/// Rows of the meter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    #[default]
    User,
    Project,
    Job,
    Gpu,
    Day,
}

impl From<By> for MeterBy {
    fn from(by: By) -> Self {
        match by {
            By::User => Self::User,
            By::Project => Self::Project,
            By::Job => Self::Job,
            By::Gpu => Self::Gpu,
            By::Day => Self::Day,
        }
    }
}

pub(super) fn span(text: &str) -> Result<Span, String> {
    parse_span(text).map_err(|error| format!("{error}; write it like 90s, 45m, 6h or 2d"))
}

pub(super) fn priority(text: &str) -> Result<Priority, String> {
    Priority::read(text)
        .ok_or_else(|| "write low, normal, high, or a whole number from -100 to 100".to_owned())
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it like KEY=VALUE".to_owned()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
pub(super) fn gpu(text: &str) -> Result<GpuSelect, String> {
    match (text, text.parse::<u32>()) {
        ("all", _) => Ok(GpuSelect::All),
        (_, Ok(index)) => Ok(GpuSelect::Index(index)),
        (_, Err(_)) => Ok(GpuSelect::Uuid(crate::model::Uuid(text.to_owned()))),
    }
}
/// How many colours.
pub(super) fn depth(text: &str) -> Result<Depth, String> {
    Depth::parse(text).ok_or_else(|| "write none, 16, 256 or true".to_owned())
}
