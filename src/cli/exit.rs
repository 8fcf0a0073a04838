//! What verbs can fail with, and the process's exit code: one exhaustive match.

use crate::client::ClientError;
use crate::config::ConfigError;
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well; for `wait`: every job succeeded.
    Ok = 0,
    /// It was refused, or it failed.
    Failed = 1,
    /// The command line or a setting is not right.
    Usage = 2,
    /// Another scheduler owns the state.
    OtherScheduler = 3,
    /// The state cannot be read, or is another machine's or account's.
    State = 4,
    /// No scheduler runs.
    NoScheduler = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a verb could not do its work.
#[derive(Debug, Error)]
pub enum CliError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The scheduler.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The scheduler, or the files, say no: what, why, what next.
    #[error("{message}")]
    Refused {
        /// In words.
        message: String,
    },
    /// A value that only the zone or the file system can judge.
    #[error("{what}: {why}")]
    Usage {
        /// Which argument.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing may be written any more where the output goes.
    #[error("cannot write the output")]
    Output {
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// A file.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// A document that cannot be written as JSON.
    #[error("cannot write this as JSON")]
    Json {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The scheduler answered a question with something else.
    #[error("the scheduler did not answer the question")]
    Answer,
}

/// The exit code of a failure.
pub fn of(error: &CliError) -> Exit {
    match error {
        CliError::Config(error) => match error {
            ConfigError::Read { .. }
            | ConfigError::Invalid { .. }
            | ConfigError::NoHome
            | ConfigError::Relative { .. } => Exit::Usage,
        },
        CliError::Client(error) => match error {
            ClientError::NoScheduler { .. } | ClientError::Closed => Exit::NoScheduler,
            ClientError::NotYours { .. } | ClientError::Denied { .. } => Exit::State,
            ClientError::NotAnswering { .. }
            | ClientError::Version { .. }
            | ClientError::Unreadable { .. }
            | ClientError::TooLong
            | ClientError::OutOfTurn { .. }
            | ClientError::Encode { .. }
            | ClientError::Io { .. } => Exit::Failed,
        },
        CliError::Usage { .. } => Exit::Usage,
        // The reader has seen enough: `overnight ls | head` is no failure.
        CliError::Output { source } if source.kind() == std::io::ErrorKind::BrokenPipe => Exit::Ok,
        CliError::Refused { .. }
        | CliError::Output { .. }
        | CliError::File { .. }
        | CliError::Json { .. }
        | CliError::Answer => Exit::Failed,
    }
}

/// What to do about it, where something can be done.
const fn remedy(error: &CliError) -> Option<&'static str> {
    match error {
        CliError::Client(ClientError::NoScheduler { .. }) => {
            Some("start one with `overnight` (dashboard) or `overnight serve`")
        }
        CliError::Client(ClientError::NotAnswering { .. }) => Some(
            "do not start a second one; look at scheduler.log in the state directory, or end that process (jobs go on)",
        ),
        CliError::Client(ClientError::NotYours { .. } | ClientError::Denied { .. }) => {
            Some("a scheduler serves its own account only: become that one, or have your own with --root DIR")
        }
        CliError::Client(ClientError::Closed) => Some("jobs go on without it; start one and ask again"),
        _ => None,
    }
}

/// The failure in one line: what, why, what next. `None` if there is nothing to say.
pub fn message(error: &CliError) -> Option<String> {
    if of(error) == Exit::Ok {
        return None;
    }
    let mut text = crate::model::chain(error);
    if let Some(remedy) = remedy(error) {
        text = format!("{text}; {remedy}");
    }
    Some(crate::model::clean_line(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_somebody_else_is_told_with_whose_it_is_and_what_next() {
        let denied = ClientError::Denied { path: "/srv/night/overnight.sock".into(), uid: Some(1004) };
        let error = CliError::Client(denied);
        assert_eq!(of(&error), Exit::State);
        let said = message(&error).unwrap();
        assert!(
            said.starts_with("the socket /srv/night/overnight.sock is not open to you: it is user 1004's; ")
        );
        assert!(said.contains("--root DIR"), "{said}");
    }
}
