//! A finding: what was looked at, what it is like, what to do.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// It works, and less well or less safely than it could.
    Warn,
    /// Something does not work.
    Fail,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The subject, in one word.
    pub(super) what: &'static str,
    pub(super) found: String,
    #[serde(rename = "do")]
    pub(super) todo: Option<String>,
    /// The state cannot be used: the exit code says so.
    #[serde(skip)]
    pub(super) unusable: bool,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        what: &'static str,
        found: impl Into<String>,
        todo: Option<String>,
    ) -> Self {
        Self { level, what, found: found.into(), todo, unusable: false }
    }

    /// No scheduler could use the state.
    pub(super) fn unusable(self) -> Self {
        Self { unusable: true, ..self }
    }
}

pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Finding {
    Finding::new(Level::Ok, what, found, None)
}

pub(super) fn warn(what: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
    Finding::new(Level::Warn, what, found, Some(todo.into()))
}

pub(super) fn fail(what: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
    Finding::new(Level::Fail, what, found, Some(todo.into()))
}
