//! Newtypes for every number and name that crosses a border.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }
    };
}

id!(
    /// A job's number: short, sequential, what a person types. Never reused.
    JobId(u64)
);
id!(
    /// One drop or one `submit`: all of its jobs are accepted or none.
    SubmissionId(u64)
);
id!(
    /// A lease's number. Never reused.
    LeaseId(u64)
);
id!(
    /// A task's place in its job, from 0.
    TaskIx(u32)
);
id!(
    /// An attempt's number within its task, from 1.
    AttemptNo(u32)
);
id!(
    /// Counts a job's state changes; a command carries the one it was decided on.
    Generation(u64)
);
id!(
    /// Counts the scheduler's turns; rows carry the one in which they last changed.
    Revision(u64)
);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// One mebibyte.
    pub const MIB: u64 = 1 << 20;
    /// One gibibyte.
    pub const GIB: u64 = 1 << 30;

    /// `n` gibibytes.
    pub const fn gib(n: u64) -> Self {
        Self(n * Self::GIB)
    }

    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * Self::MIB)
    }
}

impl fmt::Display for Bytes {
    /// Three significant figures in binary units: `512 MiB`, `1.5 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 || value >= 100.0 || (value - value.round()).abs() < 0.05 {
            write!(f, "{value:.0} {}", UNITS[unit])
        } else {
            write!(f, "{value:.1} {}", UNITS[unit])
        }
    }
}

/// −100 to 100; higher goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(i16);

impl Priority {
    /// `low` in a job file.
    pub const LOW: Self = Self(-50);
    /// `normal`, the default.
    pub const NORMAL: Self = Self(0);
    /// `high` in a job file.
    pub const HIGH: Self = Self(50);

    /// Clamps to the allowed range.
    pub const fn clamped(n: i64) -> Self {
        if n > 100 {
            Self(100)
        } else if n < -100 {
            Self(-100)
        } else {
            Self(n as i16)
        }
    }

    /// As people write it: `low`, `normal`, `high`, or a number in the allowed range.
    pub fn read(text: &str) -> Option<Self> {
        match (text, text.parse::<i64>()) {
            ("low", _) => Some(Self::LOW),
            ("normal", _) => Some(Self::NORMAL),
            ("high", _) => Some(Self::HIGH),
            (_, Ok(n @ -100..=100)) => Some(Self::clamped(n)),
            _ => None,
        }
    }

    /// The number.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The account a job belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The user id: from `fstat` of the dropped file, or the peer of the socket.
    pub uid: u32,
    /// The account's name, for people.
    pub name: String,
}

/// A device's identity: `GPU-…` or `MIG-…`, never an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uuid(pub String);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies one lease's processes: in their environment, in the supervisor's journal, in a cgroup's name.
///
/// 128 random bits as 32 hex digits, made by the shell and handed to the core.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
