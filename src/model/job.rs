//! A job as the scheduler knows it: the spec, and where its tasks and attempts are.

use super::{
    AttemptNo, AttemptState, Bytes, CancelRequest, Change, Cursor, EditMark, Enforcement, Generation, JobId,
    JobSpec, JobText, Now, Origin, Outcome, OutputKind, Owner, Priority, SubmissionId, TaskIx,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// A job's state is its tasks' furthest cursor; `done` when all are.
pub type JobState = Cursor;

/// The unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// The drop or `submit` it came with.
    pub submission: SubmissionId,
    /// What its file says.
    pub spec: Arc<JobSpec>,
    /// Its text, where an edit has replaced its submission's.
    pub file: Option<Arc<JobText>>,
    /// Whose it is.
    pub owner: Owner,
    /// Where it came from.
    pub origin: Origin,
    /// When it was accepted.
    pub submitted: Now,
    /// Counts its changes.
    pub generation: Generation,
    /// Starts as the spec's; may be changed.
    pub priority: Priority,
    /// Place in line within its priority: lower goes first. Starts as the submit order.
    pub position: i64,
    /// The owner placed it with top, bottom, up or down.
    pub ranked: bool,
    /// Not started while set: who paused it.
    pub paused: Option<String>,
    /// Not started while set: somebody edits it.
    pub edit: Option<Box<EditMark>>,
    /// What has been changed about it while it waits and can be taken back, the newest last.
    pub changes: Vec<Change>,
    /// A cancel that is under way, or waits for its undo window to close.
    pub cancel: Option<CancelRequest>,
    /// The job this one retries.
    pub retry_of: Option<JobId>,
    /// Said when it was accepted.
    pub warnings: Vec<String>,
    /// Jobs it waits for.
    pub after: Vec<Dependency>,
    /// Its tasks; a plain job has one.
    pub tasks: Vec<Task>,
    /// When all tasks were done, and what it came to.
    pub done: Option<(Now, Outcome)>,
}

/// Another job that this one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The name in the job file.
    pub name: String,
    /// The job it means; `None` while no job of that name has been accepted.
    pub job: Option<JobId>,
    /// Must have succeeded, not only ended.
    pub must_succeed: bool,
}

/// One element of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its place, from 0.
    pub ix: TaskIx,
    /// Its attempts; the last one is current.
    pub attempts: Vec<Attempt>,
}

/// One try at running a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: AttemptNo,
    /// Where it is.
    pub state: AttemptState,
    /// What came back.
    pub outputs: Vec<ReturnedFile>,
    /// Highest resident memory of the tree that was seen.
    pub peak_memory: Option<Bytes>,
    /// Mean utilisation of its devices over its run, percent.
    pub mean_utilisation: Option<u8>,
    /// Highest memory in use on one of its devices over its run.
    pub peak_gpu_memory: Option<Bytes>,
    /// What the kernel held it to, if it was started and its supervisor said.
    pub enforcement: Option<Enforcement>,
    /// What went wrong on the way, and hints: for the receipt.
    pub notes: Vec<String>,
}

/// A file that came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedFile {
    /// Relative to the attempt's output directory.
    pub path: PathBuf,
    /// As declared.
    pub kind: OutputKind,
    /// Size.
    pub bytes: Bytes,
    /// 64 hex digits.
    pub blake3: String,
    /// The attempt did not succeed: whatever existed came back.
    pub partial: bool,
}

impl Job {
    /// The furthest of its tasks' cursors; done when all are.
    pub fn state(&self) -> JobState {
        if self.done.is_some() {
            return Cursor::Done;
        }
        self.tasks
            .iter()
            .map(|task| task.current().state.cursor())
            .filter(|cursor| *cursor != Cursor::Done)
            .max()
            .unwrap_or(Cursor::Done)
    }

    /// The first task; every job has one.
    pub fn task(&self, ix: TaskIx) -> Option<&Task> {
        self.tasks.get(ix.0 as usize)
    }

    /// All attempts of all tasks, in order.
    pub fn attempts(&self) -> impl Iterator<Item = (TaskIx, &Attempt)> {
        self.tasks.iter().flat_map(|task| task.attempts.iter().map(move |attempt| (task.ix, attempt)))
    }

    /// The folder's name below `jobs/`.
    pub fn folder(&self) -> String {
        Self::folder_of(self.id, &self.spec.name)
    }

    /// The folder's name of a job that is known by number and name only.
    pub fn folder_of(id: JobId, name: &str) -> String {
        format!("{id}-{name}")
    }
}

impl Task {
    /// The attempt that counts now.
    ///
    /// A task is created with its first attempt and attempts are only ever added.
    #[expect(clippy::expect_used, reason = "a task has at least one attempt by construction")]
    pub fn current(&self) -> &Attempt {
        self.attempts.last().expect("a task has at least one attempt")
    }
}

impl Task {
    /// The newest attempt that was given anything: whose log and output there are. One that was dropped while it waited has
    /// none.
    pub fn last_leased(&self) -> AttemptNo {
        let leased = self.attempts.iter().rev().find(|attempt| attempt.state.lease().is_some());
        leased.or(self.attempts.first()).map_or(AttemptNo(1), |attempt| attempt.number)
    }
}

impl Attempt {
    /// A new one that waits.
    pub const fn queued(number: AttemptNo, since: Now, prepared: bool) -> Self {
        Self {
            number,
            state: AttemptState::Queued { since, prepared },
            outputs: Vec::new(),
            peak_memory: None,
            mean_utilisation: None,
            peak_gpu_memory: None,
            enforcement: None,
            notes: Vec::new(),
        }
    }

    /// Whether the pool lost it before any of its work ran: another scheduler was faster, or no supervisor could start.
    pub const fn never_ran(&self) -> bool {
        matches!(self.state.outcome(), Some(Outcome::Lost { .. })) && self.state.started().is_none()
    }
}
