//! What is wrong with a job file, where, and how to mend it.

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Accepted, but look.
    Warning,
    /// Refused.
    Error,
}

/// One finding in a job file. All texts are clean: no control or escape characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Which finding it is: the row of the table in `docs/job-file.md`.
    pub code: u16,
    /// One line, lower case, no full stop.
    pub message: String,
    /// The file as shown to the user.
    pub file: String,
    /// From 1; 0 if the finding has no place.
    pub line: u32,
    /// From 1, in characters; 0 if the finding has no place.
    pub column: u32,
    /// Characters the caret covers.
    pub width: u32,
    /// The source line, clean.
    pub source: Option<String>,
    /// Text beside the caret.
    pub label: Option<String>,
    /// How to mend it.
    pub hint: Option<String>,
    /// The fields that are known at this place.
    pub known: Vec<String>,
    /// A mend that is certain; offered after showing the difference, never done silently.
    pub fix: Option<Edit>,
}

/// A replacement within one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// Characters replaced.
    pub width: u32,
    /// What takes their place.
    pub text: String,
}
