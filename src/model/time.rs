//! Time as a value. The shell reads the clocks once a turn; nothing here does.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which boot of the machine a [`Now`] belongs to: the kernel's `boot_id`.
///
/// Boottime differences mean something within one boot only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootId(pub u128);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl BootId {
    /// Reads the kernel's notation (hex digits and dashes); `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let hex: String = text.trim().chars().filter(|c| *c != '-').collect();
        (hex.len() == 32).then(|| u128::from_str_radix(&hex, 16).ok()).flatten().map(Self)
    }
}

impl Serialize for BootId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BootId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a boot id"))
    }
}

/// One moment on both clocks.
///
/// `boottime_ms` (`CLOCK_BOOTTIME`) is what durations and the meter are made of; `wall_ms` is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Now {
    /// The boot in which this moment was.
    pub boot: BootId,
    /// Milliseconds of `CLOCK_BOOTTIME`.
    pub boottime_ms: u64,
    /// Milliseconds since the Unix epoch, as the wall clock had it.
    pub wall_ms: i64,
}

impl Now {
    /// Milliseconds from `earlier` to this moment; `None` across boots. Never negative.
    pub fn since(&self, earlier: &Self) -> Option<Span> {
        (self.boot == earlier.boot).then(|| Span(self.boottime_ms.saturating_sub(earlier.boottime_ms)))
    }

    /// How long it is from this moment to `due`, which may be of an earlier boot: then the wall clock tells. 0 once it is over.
    pub fn left_to(&self, due: &Self) -> Span {
        Span(if due.boot == self.boot {
            due.boottime_ms.saturating_sub(self.boottime_ms)
        } else {
            due.wall_ms.saturating_sub(self.wall_ms).max(0).unsigned_abs()
        })
    }

    /// This moment moved by `span` on both clocks.
    #[must_use]
    pub const fn plus(&self, span: Span) -> Self {
        Self {
            boot: self.boot,
            boottime_ms: self.boottime_ms + span.0,
            wall_ms: self.wall_ms + span.0 as i64,
        }
    }
}

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Span {
    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1000)
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }
}

impl fmt::Display for Span {
    /// Two units: `45s`, `12m40s`, `1h02m`, `3d04h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.as_secs();
        match s {
            0..60 => write!(f, "{s}s"),
            60..3600 => write!(f, "{}m{:02}s", s / 60, s % 60),
            3600..86400 => write!(f, "{}h{:02}m", s / 3600, s % 3600 / 60),
            _ => write!(f, "{}d{:02}h", s / 86400, s % 86400 / 3600),
        }
    }
}
