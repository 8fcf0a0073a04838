//! Why a job waits, as data; in words for screens, with the job or the person in the way.

use crate::model::{Bytes, JobId};

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It starts with the next turn.
    Next,
    /// Many are before it.
    InLine,
    /// Somebody paused it.
    Paused {
        /// Who.
        by: String,
    },
    /// Somebody edits it.
    Editing {
        /// Who.
        by: String,
        /// When that ends at the latest, wall milliseconds.
        until_ms: i64,
    },
    /// It is being cancelled; the undo window is open.
    Cancelling,
    /// Its directory is being made ready.
    Preparing {
        /// What is being done.
        what: String,
    },
    /// Another job has to end first.
    After {
        /// Which.
        job: JobId,
    },
    /// It waits for a name that no accepted job has.
    NoSuchJob {
        /// The name.
        name: String,
    },
    /// It asked not to be started before.
    StartAfter {
        /// Wall milliseconds.
        at_ms: i64,
    },
    /// Its last attempt failed; the next is not made before.
    RetryAt {
        /// Wall milliseconds.
        at_ms: i64,
    },
    /// A process of its last attempt has not been proven gone.
    LastAttemptAlive,
    /// Nothing can be started, because of the disk.
    HeldUp {
        /// Why.
        why: String,
    },
    /// A free device is being read.
    Checking {
        /// Indices.
        gpus: Vec<u32>,
    },
    /// Too few fitting devices are free.
    Gpus {
        /// Asked for.
        asked: u32,
        /// Free and fitting.
        free: u32,
        /// Fitting, whatever their state.
        fitting: u32,
        /// The job that gives some back first.
        holder: Option<JobId>,
        /// Devices that fit but are not in service, in words.
        out: Option<String>,
    },
    /// Too few cores are free.
    Cores {
        /// Asked for.
        asked: u32,
        /// Free.
        free: u32,
    },
    /// Too little memory is free.
    Memory {
        /// Asked for.
        asked: Bytes,
        /// Free.
        free: Bytes,
    },
    /// It would fit, but would delay the job at the head of the line.
    BehindHead {
        /// Which.
        head: JobId,
    },
}

impl Reason {
    /// In words. `name` tells a job's owner; `clock` shows a wall time.
    pub fn words(&self, name: &dyn Fn(JobId) -> Option<String>, clock: &dyn Fn(i64) -> String) -> String {
        let job = |job: JobId| name(job).map_or_else(|| format!("#{job}"), |who| format!("#{job} {who}"));
        match self {
            Self::Next => "next".to_owned(),
            Self::InLine => "in line".to_owned(),
            Self::Paused { by } => format!("paused by {by}"),
            Self::Editing { by, until_ms } => format!("being edited by {by} until {}", clock(*until_ms)),
            Self::Cancelling => "being cancelled".to_owned(),
            Self::Preparing { what } => what.clone(),
            Self::After { job: on } => format!("after {}", job(*on)),
            Self::NoSuchJob { name } => format!("for a job named {name}; none yet"),
            Self::StartAfter { at_ms } => format!("not before {}", clock(*at_ms)),
            Self::RetryAt { at_ms } => format!("again at {}", clock(*at_ms)),
            Self::HeldUp { why } => why.clone(),
            Self::LastAttemptAlive => "its last attempt is not proven gone".to_owned(),
            Self::Checking { gpus } => {
                let list: Vec<String> = gpus.iter().map(u32::to_string).collect();
                format!("checking GPU {}", list.join(","))
            }
            Self::Gpus { asked, free, fitting, holder, out } => {
                let mut words = match (asked, free) {
                    (asked, _) if asked > fitting => {
                        format!("needs {}; {fitting} of the pool fit", counted(*asked, "GPU"))
                    }
                    (1, _) => "needs a free GPU".to_owned(),
                    (asked, 0) => format!("needs {asked} free, none is"),
                    (asked, 1) => format!("needs {asked} free, 1 is"),
                    (asked, free) => format!("needs {asked} free, {free} are"),
                };
                if let Some(holder) = holder {
                    words = format!("{words}; {} holds", job(*holder));
                }
                if let Some(out) = out {
                    words = format!("{words}; {out}");
                }
                words
            }
            Self::Cores { asked, free: 0 } => format!("needs {}, none free", counted(*asked, "core")),
            Self::Cores { asked, free } => format!("needs {}, {free} free", counted(*asked, "core")),
            Self::Memory { asked, free } => format!("needs {asked} memory, {free} free"),
            Self::BehindHead { head } => format!("would delay {}", job(*head)),
        }
    }
}

/// `1 core`, `2 cores`.
fn counted(count: u32, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
