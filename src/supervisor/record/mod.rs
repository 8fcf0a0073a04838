//! The journal of a lease: what its supervisor did and saw, so that everything is known when everything else is gone.
//!
//! ```text
//! 0        header: magic, version, where records start
//! 512      heartbeat slot A   two slots, overwritten in turn: a torn one leaves the other
//! 1024     heartbeat slot B
//! 4096     records, one after the other, up to the end of the file: length, checksum, JSON, padded to 8 bytes
//! ```
//!
//! The file is written whole (zeros) before it gets its name, so that no record ever needs space from a full disk.
//! A torn or zeroed tail ends the reading, not the reader. [`crate::engine`] reads journals of supervisors that are
//! gone; nothing but the supervisor writes one, except [`claim`], which makes sure that none will.

mod frame;
mod state;

pub use state::JournalState;

use super::message::Stopping;
use super::process::ProcessId;
use crate::cgroup::Groups;
use crate::model::{AttemptNo, Bytes, EndedBy, Enforcement, JobId, LeaseId, Now, RunEnd, TaskIx, Token};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The journal's name in the run directory.
pub const NAME: &str = "journal";
/// The beginning of the name of a run directory without a lease.
pub const BLANK: &str = ".blank-";
/// What it is taken away as.
const GONE: &str = ".gone";
/// The version written today.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"OVNJRNL\n";
const SLOTS: [u64; 2] = [512, 1024];
const SLOT_LEN: usize = 512;
const RECORDS: u64 = 4096;
/// Room for the records of several attempts; grown before an attempt starts, never while it runs.
const CHUNK: u64 = 32 << 10;
/// What one attempt may write at most.
const ATTEMPT_ROOM: u64 = 16 << 10;
/// A record is cut to this.
const RECORD_BOUND: usize = 6 << 10;

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// Durable before anything of the attempt runs.
    Intent(Intent),
    /// The main process was started.
    Started {
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// The main process; its session has the same number.
        main: ProcessId,
        /// What its groups hold it to; not known from an earlier version.
        #[serde(default)]
        enforcement: Option<Enforcement>,
        /// When.
        at: Now,
    },
    /// The supervisor was told to end the run.
    Told {
        /// How.
        stop: Stopping,
        /// When.
        at: Now,
    },
    /// Some processes did not answer their kill; the run ends without them.
    Outlived {
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// Who, for people.
        who: String,
        /// When.
        at: Now,
    },
    /// They are gone after all.
    Gone {
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// When.
        at: Now,
    },
    /// The last process is gone.
    Ended(Ended),
    /// The collector is done; what it found is in the manifest beside the journal.
    Collected {
        /// Task.
        task: TaskIx,
        /// Attempt.
        attempt: AttemptNo,
        /// Why nothing could be collected.
        failure: Option<String>,
        /// When.
        at: Now,
    },
    /// A device was taken by somebody else; nothing ran.
    NotLaunched {
        /// Why, in words.
        why: String,
        /// When.
        at: Now,
    },
    /// The devices are back.
    Returned {
        /// When.
        at: Now,
    },
    /// Written in place of a supervisor's journal by a scheduler that found none: nothing ran and nothing will.
    Void {
        /// When.
        at: Now,
    },
    /// Of a later version.
    Unknown,
}

/// Who is about to run what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Lease.
    pub lease: LeaseId,
    /// Its token.
    pub token: Token,
    /// Job.
    pub job: JobId,
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// The supervisor itself.
    pub supervisor: ProcessId,
    /// The attempt's groups, as they are about to be made.
    #[serde(default, skip_serializing_if = "Groups::is_none")]
    pub groups: Groups,
    /// When, and in which boot.
    pub at: Now,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Task.
    pub task: TaskIx,
    /// Attempt.
    pub attempt: AttemptNo,
    /// When.
    pub at: Now,
    /// How.
    pub end: RunEnd,
    /// Who says so.
    pub by: EndedBy,
    /// Highest resident memory that was seen.
    pub peak_memory: Option<Bytes>,
    /// Suspend within the run.
    pub suspended_ms: u64,
    /// Hints for the receipt.
    pub notes: Vec<String>,
}

/// The last sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// When.
    pub at: Now,
    /// Highest resident memory of the tree so far.
    pub peak_memory: Option<Bytes>,
    /// Suspend within the run so far.
    pub suspended_ms: u64,
}

/// Why a journal cannot be read or written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The system refused.
    #[error("cannot {doing} the journal {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The journal.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// Not a journal.
    #[error("{path} is not a journal")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error("the journal {path} has version {version}; this program reads up to {VERSION}")]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A record does not fit any more.
    #[error("the journal {path} is full")]
    Full {
        /// The journal.
        path: PathBuf,
    },
}

/// The supervisor's own journal, open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    next: u64,
    len: u64,
    beats: u64,
    records: Vec<Record>,
}

/// Reads a journal.
pub fn read(path: &Path) -> Result<JournalState, JournalError> {
    let bytes = std::fs::read(path).map_err(|source| JournalError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })?;
    let foreign = || JournalError::Foreign { path: path.to_owned() };
    if bytes.get(..8) != Some(MAGIC.as_slice()) {
        return Err(foreign());
    }
    let version = frame::u32_at(&bytes, 8).ok_or_else(foreign)?;
    if version > VERSION {
        return Err(JournalError::Newer { path: path.to_owned(), version });
    }
    let mut state = JournalState::default();
    let slots = SLOTS.map(|offset| frame::open(&bytes, offset as usize, SLOT_LEN - frame::HEAD));
    state.heartbeat = slots
        .into_iter()
        .flatten()
        .filter_map(|payload| serde_json::from_slice::<(u64, Heartbeat)>(payload).ok())
        .max_by_key(|(count, _)| *count)
        .map(|(_, heartbeat)| heartbeat);
    let mut offset = RECORDS as usize;
    while let Some(payload) = frame::open(&bytes, offset, RECORD_BOUND * 2) {
        state.records.push(serde_json::from_slice(payload).unwrap_or(Record::Unknown));
        offset += frame::sealed_len(payload.len());
    }
    state.torn = bytes.get(offset..).is_some_and(|tail| tail.iter().any(|byte| *byte != 0));
    Ok(state)
}

/// Makes sure that no supervisor of this lease will ever run: takes the journal's name. `false` if it is taken.
pub fn claim(run_dir: &Path, at: Now) -> Result<bool, JournalError> {
    Journal::create(run_dir, &Record::Void { at }).map(|journal| journal.is_some())
}

/// A journal without a lease: its space is taken and durable, so that beginning it writes data only. A supervisor makes
/// one while it waits for its launch.
#[derive(Debug)]
pub struct Blank {
    path: PathBuf,
    file: File,
}

impl Blank {
    /// Makes one under this name.
    pub fn make(path: &Path) -> Result<Self, JournalError> {
        let io = |doing| move |source| JournalError::Io { doing, path: path.to_owned(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(io("create"))?;
        // Space first: a disk that is full says so here, with nothing started.
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, CHUNK);
        file.write_all_at(&vec![0; CHUNK as usize], 0).map_err(io("write"))?;
        file.sync_data().map_err(io("sync"))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Begins a lease's journal with its first record, durable. It counts once it has its name in a run directory.
    pub fn begin(self, first: &Record) -> Result<Journal, JournalError> {
        let Self { path, file } = self;
        let frame = framed(first);
        let mut image = vec![0; RECORDS as usize];
        image[..8].copy_from_slice(MAGIC);
        image[8..12].copy_from_slice(&VERSION.to_le_bytes());
        image[12..16].copy_from_slice(&(RECORDS as u32).to_le_bytes());
        image.extend_from_slice(&frame);
        let next = RECORDS + frame.len() as u64;
        let journal = Journal { path, file, next, len: CHUNK, beats: 0, records: vec![first.clone()] };
        journal.file.write_all_at(&image, 0).map_err(|source| journal.io("write", source))?;
        journal.sync()?;
        Ok(journal)
    }
}

/// Removes what supervisors that were killed before their launch have left.
///
/// One that lives may just be giving its directory the name of a lease's, and what is removed file by file would go on
/// being removed under that name. So it is taken away whole first: of the two renames only one succeeds.
pub fn remove_blanks(run: &Path) {
    let named = |prefix: &'static str| {
        let entries = std::fs::read_dir(run).into_iter().flatten().flatten();
        entries.filter(move |entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
    };
    for entry in named(BLANK) {
        let mut gone = std::ffi::OsString::from(GONE);
        gone.push(entry.file_name());
        // Where this fails it is a lease's by now, or one that was taken away before is in the way until it is removed.
        let _ = std::fs::rename(entry.path(), run.join(gone));
    }
    for entry in named(GONE) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

impl Journal {
    /// Makes the journal with its first record, durable before it has its name: what has the name is whole.
    /// `None` if the name is taken: the lease has, or had, a supervisor.
    pub fn create(run_dir: &Path, first: &Record) -> Result<Option<Self>, JournalError> {
        let made = run_dir.join(format!(".{NAME}-{}", std::process::id()));
        // Left by a process of the same number that died here.
        let _ = std::fs::remove_file(&made);
        let mut journal = Blank::make(&made)?.begin(first)?;
        let named = journal.move_to(run_dir);
        if !matches!(named, Ok(true)) {
            let _ = std::fs::remove_file(&made);
        }
        Ok(named?.then_some(journal))
    }

    /// Gives it its name in a run directory; `false` if the name is taken.
    pub fn move_to(&mut self, run_dir: &Path) -> Result<bool, JournalError> {
        let named = name(&self.path, &run_dir.join(NAME)).map_err(|source| self.io("name", source))?;
        if named {
            self.is_at(run_dir);
        }
        Ok(named)
    }

    /// Its directory has this name now.
    pub fn is_at(&mut self, run_dir: &Path) {
        self.path = run_dir.join(NAME);
    }

    /// What it says so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Makes room for one more attempt, or says that there is none: before it starts, not when it has ended.
    pub fn reserve(&mut self) -> Result<(), JournalError> {
        if self.len - self.next >= ATTEMPT_ROOM {
            return Ok(());
        }
        let zeros = vec![0; CHUNK as usize];
        self.file.write_all_at(&zeros, self.len).map_err(|source| self.io("grow", source))?;
        self.file.sync_all().map_err(|source| self.io("sync", source))?;
        self.len += CHUNK;
        Ok(())
    }

    /// Adds a record. It survives the end of this process; with [`sync`](Self::sync) also that of the machine.
    pub fn append(&mut self, record: Record) -> Result<(), JournalError> {
        let frame = framed(&record);
        // The record counts from here on, on disk or not: what was seen is told.
        self.records.push(record);
        if self.next + frame.len() as u64 > self.len {
            return Err(JournalError::Full { path: self.path.clone() });
        }
        self.file.write_all_at(&frame, self.next).map_err(|source| self.io("write", source))?;
        self.next += frame.len() as u64;
        Ok(())
    }

    /// Waits until all records are durable.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|source| self.io("sync", source))
    }

    /// Overwrites the older heartbeat slot and sends it on its way to the disk without waiting: a slow disk must not
    /// hold up the work's log or its end.
    pub fn beat(&mut self, heartbeat: Heartbeat) -> Result<(), JournalError> {
        self.beats += 1;
        let offset = SLOTS[(self.beats % 2) as usize];
        let payload = serde_json::to_vec(&(self.beats, heartbeat)).unwrap_or_default();
        let mut slot = frame::seal(&payload);
        slot.resize(SLOT_LEN, 0);
        self.file.write_all_at(&slot, offset).map_err(|source| self.io("write", source))?;
        frame::start_writeback(&self.file);
        Ok(())
    }

    fn io(&self, doing: &'static str, source: io::Error) -> JournalError {
        JournalError::Io { doing, path: self.path.clone(), source }
    }
}

/// Gives a file its name unless that is taken; `false` if it is.
fn name(made: &Path, path: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let named = match renameat_with(CWD, made, CWD, path, RenameFlags::NOREPLACE) {
        // Not every file system can; then a second name does the same.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::hard_link(made, path),
        other => other.map_err(io::Error::from),
    };
    match named {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn framed(record: &Record) -> Vec<u8> {
    let mut payload = serde_json::to_vec(record).unwrap_or_default();
    if payload.len() > RECORD_BOUND {
        payload = serde_json::to_vec(&record.cut()).unwrap_or_default();
    }
    frame::seal(&payload)
}

impl Record {
    /// With its texts cut so that it fits: an end is never left out for being long.
    fn cut(&self) -> Self {
        const TEXT: usize = 256;
        let short = |text: &String| text.chars().take(TEXT).collect::<String>();
        match self.clone() {
            Self::Ended(mut ended) => {
                ended.notes = ended.notes.iter().take(4).map(short).collect();
                match &mut ended.end {
                    RunEnd::Cancelled { by: text }
                    | RunEnd::NotStarted { why: text }
                    | RunEnd::Lost { why: text } => *text = short(text),
                    RunEnd::Exited { .. }
                    | RunEnd::Signalled { .. }
                    | RunEnd::OutOfMemory { .. }
                    | RunEnd::LimitReached => {}
                }
                Self::Ended(ended)
            }
            Self::Collected { task, attempt, failure, at } => {
                Self::Collected { task, attempt, failure: failure.as_ref().map(short), at }
            }
            Self::NotLaunched { why, at } => Self::NotLaunched { why: short(&why), at },
            Self::Outlived { task, attempt, who, at } => {
                Self::Outlived { task, attempt, who: short(&who), at }
            }
            Self::Started { task, attempt, main, mut enforcement, at } => {
                if let Some(enforcement) = &mut enforcement {
                    enforcement.why = enforcement.why.as_ref().map(short);
                }
                Self::Started { task, attempt, main, enforcement, at }
            }
            Self::Told { stop, at } => Self::Told {
                stop: match stop {
                    Stopping::Cancel { by } => Stopping::Cancel { by: short(&by) },
                    Stopping::CancelNow { by } => Stopping::CancelNow { by: short(&by) },
                    Stopping::Lost { why } => Stopping::Lost { why: short(&why) },
                },
                at,
            },
            other @ (Self::Intent(_)
            | Self::Gone { .. }
            | Self::Returned { .. }
            | Self::Void { .. }
            | Self::Unknown) => other,
        }
    }
}

#[cfg(test)]
mod tests;
