//! What is wanted of the world outside the screen, and what comes back: files, an editor, a pager, a shell, the clipboard.
//!
//! Plain data. Errands are returned by `update` and run by `shell`; what they bring is taken in by `news`.

use std::path::PathBuf;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// The job files below the folder the dashboard was started in, and the templates.
    Browse,
    /// One job file's text.
    Read(PathBuf),
    /// How much lies in a folder.
    Measure(PathBuf),
    /// A text in the editor, in a private copy.
    EditText {
        /// What the copy is called.
        name: String,
        /// The text.
        text: Vec<u8>,
    },
    /// A file in the editor, where it lies.
    EditFile(PathBuf),
    /// A text into a file that was edited in the dashboard itself.
    Write {
        /// Which.
        path: PathBuf,
        /// What it says.
        was: Vec<u8>,
        /// What it is to say.
        text: Vec<u8>,
    },
    /// A shell in a folder.
    Shell(PathBuf),
    /// A file in the pager.
    Pager(PathBuf),
    /// A text to the clipboard, as far as the terminal allows it.
    Copy(String),
    /// The end of the dashboard; the shell around it goes to this folder.
    Leave(PathBuf),
}

/// How much lies in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Bytes of all files.
    pub bytes: u64,
    /// How many there are.
    pub files: u64,
}

/// What an errand brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Brought {
    /// Job files and templates.
    Browsed(Browsed),
    /// The text of a file, or why it cannot be read.
    Text {
        /// Which.
        path: PathBuf,
        /// Its text: one byte more than is allowed, if it is too large.
        text: Result<Vec<u8>, String>,
    },
    /// How much lies in a folder.
    Measured {
        /// Which.
        path: PathBuf,
        /// What lies in it; `None`: it is not there, or too large to say.
        found: Option<Measured>,
    },
    /// The editor has ended: the new text, `None` if it is the old one, or why there is none.
    Edited(Result<Option<Vec<u8>>, String>),
    /// There is no editor: the text is edited in the dashboard itself.
    EditHere {
        /// The text as it was.
        was: Vec<u8>,
        /// What has been written instead, where it could not be put into its file.
        text: Option<Vec<u8>>,
        /// The file that it is, if it is one.
        file: Option<PathBuf>,
    },
    /// A pager or a shell has ended.
    Back,
    /// It cannot be done, and why.
    Failed(String),
}

/// Files to start a job from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browsed {
    /// The newest first.
    pub files: Vec<PathBuf>,
    /// There are more than were looked at.
    pub cut: bool,
    /// The user's own templates.
    pub templates: Vec<PathBuf>,
}
