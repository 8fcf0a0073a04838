//! Why a theme cannot be used, and where: file, line and column.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A place in a theme's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// The file; of a bundled theme its name in the source.
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl At {
    /// The place of a byte.
    pub(super) fn of(file: &Arc<str>, text: &str, byte: usize) -> Self {
        let before = text.get(..byte.min(text.len())).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file: file.clone(), line: before.matches('\n').count() + 1, column }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why a theme cannot be used.
#[derive(Debug, Error)]
pub enum ThemeError {
    /// No such theme.
    #[error("{}no theme `{name}`{}; `overnight theme list` says which there are", prefix(at.as_ref()), hint(near.as_deref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest one that there is.
        near: Option<String>,
        /// Which file asked for it.
        at: Option<At>,
    },
    /// The file cannot be read.
    #[error("theme {}: {why}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Not TOML, not of a theme's form, or a value that stands for nothing.
    #[error("{at}: {message}")]
    Invalid {
        /// Where.
        at: At,
        /// What is wrong, and how it is put right.
        message: String,
    },
    /// Several things are wrong.
    #[error("{}", several(faults))]
    Several {
        /// Each for itself, two or more.
        faults: Vec<ThemeError>,
    },
    /// `inherits` leads back to itself.
    #[error("{at}: the theme inherits itself: {chain}")]
    Cycle {
        /// The line that closes the circle.
        at: At,
        /// The names on the way.
        chain: String,
    },
}

impl ThemeError {
    /// One error out of what is wrong; `None` if nothing is.
    pub(super) fn of(mut faults: Vec<Self>) -> Option<Self> {
        if faults.len() < 2 { faults.pop() } else { Some(Self::Several { faults }) }
    }

    /// Everything that is wrong, each for itself.
    pub fn all(&self) -> &[Self] {
        if let Self::Several { faults } = self { faults } else { std::slice::from_ref(self) }
    }
}

/// One line has room for the first.
fn several(faults: &[ThemeError]) -> String {
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    format!("{first} (and {} more: `overnight theme check` has them all)", faults.len().saturating_sub(1))
}

fn prefix(at: Option<&At>) -> String {
    at.map_or_else(String::new, |at| format!("{at}: "))
}

fn hint(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
}

/// ": did you mean `x`?" if a known name is near.
pub(super) fn did_you_mean<'w>(typed: &str, words: impl Iterator<Item = &'w str>) -> String {
    hint(nearest(typed, words))
}

/// The known name that is nearest, if it is near.
pub(super) fn nearest<'w>(typed: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let steps = words.map(|word| (crate::model::edits(typed, word), word)).min();
    steps.filter(|(steps, word)| *steps <= 2.max(typed.len().min(word.len()) / 3)).map(|(_, word)| word)
}
