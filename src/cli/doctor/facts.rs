//! What was found on the machine: plain data, gathered by `probe`, judged by `judge`.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) program: Program,
    pub(super) account: Account,
    pub(super) scheduler: Scheduler,
    pub(super) store: Store,
    pub(super) folders: Vec<Folder>,
    /// Files in the inbox that were refused.
    pub(super) refused: Vec<String>,
    pub(super) work: Work,
    pub(super) inotify: Inotify,
    pub(super) cgroup: Cgroup,
    /// The version of Landlock, or the kernel's word.
    pub(super) landlock: Result<u32, String>,
    pub(super) gpus: Gpus,
    pub(super) clock: Clock,
    pub(super) boot: Boot,
}

/// This program and its settings.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) version: &'static str,
    pub(super) path: PathBuf,
    /// The config file, if there is one.
    pub(super) config: Option<PathBuf>,
    /// What is wrong with the dashboard's keys in it.
    pub(super) keys: Vec<String>,
    /// What is wrong with the dashboard's theme in it.
    pub(super) theme: Option<String>,
}

/// Who runs it, and what the system allows them.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    pub(super) user: String,
    pub(super) uid: u32,
    /// Open files of a process: soft and hard limit; `None` is no limit.
    pub(super) files: (Option<u64>, Option<u64>),
    /// Processes of the account: the limit, and how many there are.
    pub(super) processes: (Option<u64>, u64),
    /// `None` where it cannot be told.
    pub(super) umask: Option<u32>,
}

/// The scheduler of this state directory.
#[derive(Debug, Clone)]
pub(super) enum Scheduler {
    /// None runs.
    None,
    /// It answers.
    Answers(Answers),
    /// Something holds the lock and does not answer.
    Silent { holder: Option<Holder> },
    /// Of another version, which cannot be spoken to.
    Other { protocol: u32, ours: u32, holder: Option<Holder> },
    /// The socket is another account's.
    NotOurs { uid: u32 },
    /// In words.
    Failed(String),
}

/// What a scheduler says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    pub(super) pid: u32,
    pub(super) version: String,
    pub(super) since: String,
    pub(super) root: PathBuf,
    /// Its program's file was replaced or removed since.
    pub(super) replaced: bool,
    /// What it wants an operator to know; `true` if it is an error.
    pub(super) notices: Vec<(bool, String)>,
}

/// A process that holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) since: Option<String>,
}

/// The state's store.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// A scheduler has it.
    InUse,
    /// There is none yet.
    None,
    /// It could be opened.
    Fine,
    /// It would be refused: why, and what to do.
    Refused(String),
}

/// A folder of the scheduler's.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) what: Part,
    pub(super) path: PathBuf,
    pub(super) there: There,
    /// Of the folder, or of what it would be made in.
    pub(super) disk: Option<Disk>,
    /// A directory above it in which strangers may make names, and so replace it.
    pub(super) loose: Option<PathBuf>,
}

/// Which folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Root,
    Inbox,
    Jobs,
    State,
}

impl Part {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Inbox => "inbox",
            Self::Jobs => "jobs",
            Self::State => "state",
        }
    }
}

/// What is in a folder's place.
#[derive(Debug, Clone)]
pub(super) enum There {
    /// Nothing: it is made at the first start.
    Nothing,
    /// A folder.
    Folder { uid: u32, mode: u32 },
    /// Anything else, in words.
    Other(String),
}

/// The file system that something lies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disk {
    /// As the kernel calls it.
    pub(super) kind: String,
    pub(super) read_only: bool,
    pub(super) no_exec: bool,
    /// Bytes that this account may still write, and all.
    pub(super) free: u64,
    pub(super) size: u64,
    /// Files likewise; 0 of 0 where they are not counted.
    pub(super) files_free: u64,
    pub(super) files: u64,
}

/// What jobs find in their environment.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) variables: BTreeMap<String, String>,
    /// Captured from the login shell, or set in the config. Otherwise it is captured at the first start.
    pub(super) known: bool,
    /// Programs, and where in that `PATH` they are.
    pub(super) tools: Vec<(&'static str, Option<PathBuf>)>,
    /// Directories of that `PATH` in which strangers may put programs.
    pub(super) loose: Vec<PathBuf>,
}

/// The kernel's limits on watching folders, and what this account uses of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Inotify {
    pub(super) watches: Option<u64>,
    pub(super) instances: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) watches_used: u64,
    pub(super) instances_used: u64,
}

/// Control groups.
#[derive(Debug, Clone)]
pub(super) enum Cgroup {
    /// Version 2: ours, what may be limited in it, whether this account may make groups in it.
    Two {
        own: PathBuf,
        controllers: Vec<String>,
        ours: bool,
    },
    /// Version 1, with version 2 beside it or not.
    One {
        controllers: Vec<String>,
        unified: bool,
    },
    None,
}

/// The driver's library.
#[derive(Debug, Clone)]
pub(super) enum Gpus {
    /// The devices' names.
    Listed(Vec<String>),
    /// The driver's words, and what to do.
    Refused { why: String, hint: Option<&'static str>, absent: bool },
    /// Nothing came within the seconds.
    Silent,
    /// The config asks for others.
    NotAsked(String),
}

/// The clocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    pub(super) zone: Option<String>,
    pub(super) year: i16,
    /// Whether something keeps it right, as the kernel sees it.
    pub(super) synchronised: Option<bool>,
    /// How long this boot was suspended.
    pub(super) suspended_ms: u64,
}

/// What starts the scheduler with the machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Boot {
    pub(super) systemd: bool,
    pub(super) lingers: bool,
    /// Units that start it for this account: files.
    pub(super) user_unit: Option<PathBuf>,
    pub(super) system_unit: Option<PathBuf>,
    pub(super) cron: bool,
}
