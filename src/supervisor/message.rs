//! What scheduler and supervisor say to each other: one JSON value a line, either way.
//!
//! A line that the other side does not understand (it may be of another version) is skipped, never fatal.

use super::record::{Heartbeat, Record};
use super::spec::LaunchSpec;
use crate::model::{LeaseId, Token};
use crate::sched::StopKind;
use serde::{Deserialize, Serialize};

/// Longest line either side takes.
pub const LINE_BOUND: usize = 8 << 20;

/// The scheduler's words.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Run this: the first message of a lease.
    Launch(Box<LaunchSpec>),
    /// Run this once the attempt before it is home: one lease runs one or more attempts in turn.
    NextAttempt(Box<LaunchSpec>),
    /// End the run.
    Stop(Stopping),
    /// The devices are back: let go of their locks, and leave once the output is collected.
    Dismiss,
    /// Answer with [`News::Pong`].
    Ping,
}

/// How a run is ended: [`StopKind`] as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// Warning signal, grace, kill; a second one kills at once.
    Cancel {
        /// Who.
        by: String,
    },
    /// Kill at once.
    CancelNow {
        /// Who.
        by: String,
    },
    /// Kill at once; the pool's fault.
    Lost {
        /// Why.
        why: String,
    },
}

/// The supervisor's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// First thing on every connection; all records so far follow.
    Hello {
        /// Of the journal.
        version: u32,
        /// Which lease.
        lease: LeaseId,
        /// Its token.
        token: Token,
    },
    /// A fact, after it is in the journal.
    Record(Record),
    /// A sign of life.
    Heartbeat(Heartbeat),
    /// The output cannot be brought home now: the disk it goes to is full or broken. It is tried again.
    CollectionWaits {
        /// Why, in words.
        why: String,
    },
    /// The output is being brought home.
    Collecting {
        /// How far, in percent.
        percent: u8,
    },
    /// To a ping.
    Pong,
}

impl From<&StopKind> for Stopping {
    fn from(kind: &StopKind) -> Self {
        match kind {
            StopKind::Cancel { by } => Self::Cancel { by: by.clone() },
            StopKind::CancelNow { by } => Self::CancelNow { by: by.clone() },
            StopKind::Lost { why } => Self::Lost { why: why.clone() },
        }
    }
}

/// A message as its line.
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    // Serialising our own plain enums into memory cannot fail; an empty line is skipped by the reader.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Takes the first whole line out of a buffer and reads it; `None` without a whole line.
///
/// `Some(None)` is a line of something else.
pub fn take<T: for<'de> Deserialize<'de>>(buffer: &mut Vec<u8>) -> Option<Option<T>> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    let message = serde_json::from_slice(&buffer[..end]).ok();
    buffer.drain(..=end);
    Some(message)
}
