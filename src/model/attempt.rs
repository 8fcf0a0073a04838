//! The life of an attempt: one enum that carries what each state knows, and one transition function.

use super::{LeaseId, Now, Outcome};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where an attempt is.
///
/// ```text
///  Queued ──► Renting ──► Running ──► Returning ──► Releasing ──► Done
///    │            └── could not start ──►┘                          ▲
///    └── cancelled, or can never start ─────────────────────────────┘
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Waits; holds nothing; not metered.
    Queued {
        /// Since when.
        since: Now,
        /// Its directory is ready, or none has to be made ready.
        prepared: bool,
    },
    /// The grant is durable; the work has not started yet. Metered.
    Renting {
        /// The lease that runs it.
        lease: LeaseId,
    },
    /// The work runs. Metered.
    Running {
        /// The lease that runs it.
        lease: LeaseId,
        /// When its first process was started.
        started: Now,
    },
    /// The run has ended and its output is being collected. Not metered.
    Returning {
        /// The lease that ran it.
        lease: LeaseId,
        /// When its first process was started, if one was.
        started: Option<Now>,
        /// When its last process was gone.
        ended: Now,
        /// How.
        end: RunEnd,
    },
    /// Output is home; scratch is being removed and the receipt written.
    Releasing {
        /// The lease that ran it.
        lease: LeaseId,
        /// When its first process was started, if one was.
        started: Option<Now>,
        /// When its last process was gone.
        ended: Now,
        /// Final.
        outcome: Outcome,
    },
    /// The end. Nothing leaves it.
    Done {
        /// The lease that ran it; `None` if it never held anything.
        lease: Option<LeaseId>,
        /// When its first process was started, if one was.
        started: Option<Now>,
        /// When its last process was gone.
        ended: Option<Now>,
        /// Final.
        outcome: Outcome,
        /// When it was done.
        at: Now,
    },
}

/// How a run ended, as its supervisor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The main process exited by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// The main process was ended by a signal that was not ours.
    Signalled {
        /// Which.
        signal: i32,
    },
    /// The kernel killed it for memory.
    OutOfMemory {
        /// Told by a cgroup, not guessed from the kernel's counter.
        certain: bool,
    },
    /// We ended it at the limit.
    LimitReached,
    /// We ended it because somebody cancelled it.
    Cancelled {
        /// Who.
        by: String,
    },
    /// The work could not be started: its directory, program or environment is at fault.
    NotStarted {
        /// Why, in words.
        why: String,
    },
    /// The pool's fault.
    Lost {
        /// Why, in words.
        why: String,
    },
}

/// Something that happened to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptFact {
    /// Its directory is ready.
    Prepared,
    /// A lease was granted to it.
    Granted {
        /// Which.
        lease: LeaseId,
    },
    /// Its first process was started.
    Started {
        /// When.
        at: Now,
    },
    /// Its last process is gone.
    Ended {
        /// When.
        at: Now,
        /// How.
        end: RunEnd,
    },
    /// Its output is home.
    Collected {
        /// What it comes to.
        outcome: Outcome,
    },
    /// Scratch is gone and the receipt is written.
    Released {
        /// When.
        at: Now,
    },
    /// It will not run: cancelled, or it can never start.
    Dropped {
        /// What it comes to.
        outcome: Outcome,
        /// When.
        at: Now,
    },
}

/// A fact that does not fit the state: a bug in the core, or a damaged record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an attempt that is {state} cannot be {fact}")]
pub struct TransitionError {
    /// The state's word.
    pub state: &'static str,
    /// The fact's word.
    pub fact: &'static str,
}

/// The places of the life line, in order. A job's state is the furthest of its tasks' along
/// queued, releasing, returning, renting, running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of the life line")]
pub enum Cursor {
    Queued,
    Releasing,
    Returning,
    Renting,
    Running,
    Done,
}

impl AttemptState {
    /// The only way from one state to the next. Exhaustive in both arguments.
    pub fn next(&self, fact: AttemptFact) -> Result<Self, TransitionError> {
        use AttemptFact as F;
        match (self, fact) {
            (Self::Queued { since, .. }, F::Prepared) => Ok(Self::Queued { since: *since, prepared: true }),
            (Self::Queued { .. }, F::Granted { lease }) => Ok(Self::Renting { lease }),
            (Self::Queued { .. }, F::Dropped { outcome, at }) => {
                Ok(Self::Done { lease: None, started: None, ended: None, outcome, at })
            }
            (Self::Renting { lease }, F::Started { at }) => Ok(Self::Running { lease: *lease, started: at }),
            (Self::Renting { lease }, F::Ended { at, end }) => {
                Ok(Self::Returning { lease: *lease, started: None, ended: at, end })
            }
            (Self::Running { lease, started }, F::Ended { at, end }) => {
                Ok(Self::Returning { lease: *lease, started: Some(*started), ended: at, end })
            }
            (Self::Returning { lease, started, ended, .. }, F::Collected { outcome }) => {
                Ok(Self::Releasing { lease: *lease, started: *started, ended: *ended, outcome })
            }
            (Self::Releasing { lease, started, ended, outcome }, F::Released { at }) => Ok(Self::Done {
                lease: Some(*lease),
                started: *started,
                ended: Some(*ended),
                outcome: outcome.clone(),
                at,
            }),
            (
                Self::Queued { .. },
                fact @ (F::Started { .. } | F::Ended { .. } | F::Collected { .. } | F::Released { .. }),
            )
            | (
                Self::Renting { .. },
                fact @ (F::Prepared
                | F::Granted { .. }
                | F::Collected { .. }
                | F::Released { .. }
                | F::Dropped { .. }),
            )
            | (
                Self::Running { .. },
                fact @ (F::Prepared
                | F::Granted { .. }
                | F::Started { .. }
                | F::Collected { .. }
                | F::Released { .. }
                | F::Dropped { .. }),
            )
            | (
                Self::Returning { .. },
                fact @ (F::Prepared
                | F::Granted { .. }
                | F::Started { .. }
                | F::Ended { .. }
                | F::Released { .. }
                | F::Dropped { .. }),
            )
            | (
                Self::Releasing { .. },
                fact @ (F::Prepared
                | F::Granted { .. }
                | F::Started { .. }
                | F::Ended { .. }
                | F::Collected { .. }
                | F::Dropped { .. }),
            )
            | (
                Self::Done { .. },
                fact @ (F::Prepared
                | F::Granted { .. }
                | F::Started { .. }
                | F::Ended { .. }
                | F::Collected { .. }
                | F::Released { .. }
                | F::Dropped { .. }),
            ) => Err(TransitionError { state: self.cursor().word(), fact: fact.word() }),
        }
    }

    /// The state without what it carries.
    pub const fn cursor(&self) -> Cursor {
        match self {
            Self::Queued { .. } => Cursor::Queued,
            Self::Renting { .. } => Cursor::Renting,
            Self::Running { .. } => Cursor::Running,
            Self::Returning { .. } => Cursor::Returning,
            Self::Releasing { .. } => Cursor::Releasing,
            Self::Done { .. } => Cursor::Done,
        }
    }

    /// The lease that runs or ran it.
    pub const fn lease(&self) -> Option<LeaseId> {
        match self {
            Self::Queued { .. } => None,
            Self::Renting { lease }
            | Self::Running { lease, .. }
            | Self::Returning { lease, .. }
            | Self::Releasing { lease, .. } => Some(*lease),
            Self::Done { lease, .. } => *lease,
        }
    }

    /// When its first process was started.
    pub const fn started(&self) -> Option<Now> {
        match self {
            Self::Queued { .. } | Self::Renting { .. } => None,
            Self::Running { started, .. } => Some(*started),
            Self::Returning { started, .. }
            | Self::Releasing { started, .. }
            | Self::Done { started, .. } => *started,
        }
    }

    /// When its last process was gone.
    pub const fn ended(&self) -> Option<Now> {
        match self {
            Self::Queued { .. } | Self::Renting { .. } | Self::Running { .. } => None,
            Self::Returning { ended, .. } | Self::Releasing { ended, .. } => Some(*ended),
            Self::Done { ended, .. } => *ended,
        }
    }

    /// What it came to, once that is known.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Queued { .. } | Self::Renting { .. } | Self::Running { .. } | Self::Returning { .. } => {
                None
            }
            Self::Releasing { outcome, .. } | Self::Done { outcome, .. } => Some(outcome),
        }
    }
}

impl AttemptFact {
    const fn word(&self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Granted { .. } => "granted",
            Self::Started { .. } => "started",
            Self::Ended { .. } => "ended",
            Self::Collected { .. } => "collected",
            Self::Released { .. } => "released",
            Self::Dropped { .. } => "dropped",
        }
    }
}

impl Cursor {
    /// The word of `ls --json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Releasing => "releasing",
            Self::Returning => "returning",
            Self::Renting => "renting",
            Self::Running => "running",
            Self::Done => "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> Vec<AttemptState> {
        let now = Now::default();
        let lease = LeaseId(1);
        let outcome = Outcome::Succeeded;
        vec![
            AttemptState::Queued { since: now, prepared: false },
            AttemptState::Queued { since: now, prepared: true },
            AttemptState::Renting { lease },
            AttemptState::Running { lease, started: now },
            AttemptState::Returning { lease, started: Some(now), ended: now, end: RunEnd::LimitReached },
            AttemptState::Releasing { lease, started: None, ended: now, outcome: outcome.clone() },
            AttemptState::Done { lease: None, started: None, ended: None, outcome, at: now },
        ]
    }

    fn facts() -> Vec<AttemptFact> {
        let at = Now::default();
        vec![
            AttemptFact::Prepared,
            AttemptFact::Granted { lease: LeaseId(2) },
            AttemptFact::Started { at },
            AttemptFact::Ended { at, end: RunEnd::Exited { code: 0 } },
            AttemptFact::Collected { outcome: Outcome::Succeeded },
            AttemptFact::Released { at },
            AttemptFact::Dropped { outcome: Outcome::Succeeded, at },
        ]
    }

    #[test]
    fn the_life_line_is_walked_one_step_at_a_time_and_never_back() {
        use Cursor as C;
        let allowed = [
            (C::Queued, "prepared", C::Queued),
            (C::Queued, "granted", C::Renting),
            (C::Queued, "dropped", C::Done),
            (C::Renting, "started", C::Running),
            (C::Renting, "ended", C::Returning),
            (C::Running, "ended", C::Returning),
            (C::Returning, "collected", C::Releasing),
            (C::Releasing, "released", C::Done),
        ];
        for state in states() {
            for fact in facts() {
                let word = fact.word();
                let expected = allowed
                    .iter()
                    .find(|(from, fact, _)| *from == state.cursor() && *fact == word)
                    .map(|(_, _, to)| *to);
                let found = state.next(fact).map(|next| next.cursor());
                assert_eq!(found.as_ref().ok().copied(), expected, "{} and {word}", state.cursor().word());
                if let Err(error) = found {
                    let said = format!("an attempt that is {} cannot be {word}", state.cursor().word());
                    assert_eq!(error.to_string(), said);
                }
            }
        }
    }

    #[test]
    fn an_end_before_the_start_keeps_that_nothing_was_started() {
        let state = AttemptState::Renting { lease: LeaseId(4) };
        let at = Now { boottime_ms: 9, ..Now::default() };
        let ended = state.next(AttemptFact::Ended { at, end: RunEnd::LimitReached }).unwrap();
        assert_eq!((ended.started(), ended.ended(), ended.lease()), (None, Some(at), Some(LeaseId(4))));
    }
}
