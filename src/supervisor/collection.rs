//! The collection of an attempt's output: a process of its own, niced, started when the run has ended.

use super::spec::LaunchSpec;
use super::tree::Reaped;
use crate::model::{Collect, Collected, Now, RunEnd, Span, Token};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// The collector's exit code for a full disk: it is tried again until there is room.
pub const DISK_FULL: i32 = 75;

/// A manifest of a hundred thousand files is a fifth of this; work may have put anything in its place.
pub const MOST_BYTES: u64 = 256 << 20;

/// The first wait before it is tried again; doubled up to [`AGAIN_MAX`].
const AGAIN: Span = Span::secs(1);
/// The longest such wait.
const AGAIN_MAX: Span = Span::secs(10);
const NICE: i32 = 10;
/// Its supervisor's own score is not for others.
const OOM_SCORE: &str = "0";
/// The variable by which a collector is known.
pub const COLLECTOR_TOKEN: &str = "OVERNIGHT_COLLECTOR";

/// What is to be collected and by whom: kept beside the journal, so that it can be done when the supervisor is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectOrder {
    /// What.
    pub collect: Collect,
    /// The program and its arguments; the manifest's path is added as the last one.
    pub collector: Vec<String>,
}

/// Where the order of an attempt is kept.
pub fn order_path(run_dir: &Path, task: crate::model::TaskIx, attempt: crate::model::AttemptNo) -> PathBuf {
    run_dir.join(format!("collect-{task}-{attempt}.json"))
}

/// Where the collector writes what it found.
pub fn manifest_path(
    run_dir: &Path,
    task: crate::model::TaskIx,
    attempt: crate::model::AttemptNo,
) -> PathBuf {
    run_dir.join(format!("collected-{task}-{attempt}.json"))
}

impl CollectOrder {
    /// With what is known once the run has ended.
    pub fn complete(&mut self, started: Now, end: &RunEnd) {
        self.collect.partial = *end != RunEnd::Exited { code: 0 };
        self.collect.newer_than_ns = i128::from(started.wall_ms) * 1_000_000;
    }

    /// Starts the collector. It carries its lease's token under a name of its own: it is not of the work.
    /// Its standard output, where it says how far it is, goes to `told`.
    pub fn spawn(
        &self,
        (manifest, words): (&Path, &Path),
        token: &Token,
        told: Stdio,
    ) -> io::Result<std::process::Child> {
        let (program, arguments) = self
            .collector
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no collector is named"))?;
        let order = serde_json::to_vec(&self.collect)?;
        let mut input =
            std::fs::File::from(rustix::fs::memfd_create("collect", rustix::fs::MemfdFlags::CLOEXEC)?);
        input.write_all(&order)?;
        input.rewind()?;
        let stderr = std::fs::File::create(words).map_or_else(|_| Stdio::null(), Stdio::from);
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(manifest)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env(COLLECTOR_TOKEN, &token.0)
            .current_dir("/")
            .stdin(Stdio::from(input))
            .stdout(told)
            .stderr(stderr)
            .process_group(0);
        let child = command.spawn()?;
        if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
            // Work that others pay for goes first.
            let _ = rustix::process::setpriority_process(Some(pid), NICE);
        }
        let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), OOM_SCORE);
        Ok(child)
    }
}

/// A collection under way.
#[derive(Debug)]
pub(super) struct Collection {
    order: CollectOrder,
    manifest: PathBuf,
    words: PathBuf,
    token: Token,
    pid: Option<i32>,
    /// What it says of how far it is.
    told: Option<ChildStdout>,
    again_at: Option<Span>,
    wait: Span,
}

impl Collection {
    /// Starts it. `Err` in words if it cannot be.
    pub(super) fn start(order: CollectOrder, spec: &Place) -> Result<Self, String> {
        let mut collection = Self {
            order,
            manifest: manifest_path(&spec.run_dir, spec.task, spec.attempt),
            words: spec.run_dir.join("collect.err"),
            token: spec.token.clone(),
            pid: None,
            told: None,
            again_at: None,
            wait: AGAIN,
        };
        collection.spawn()?;
        Ok(collection)
    }

    /// When to come back.
    pub(super) const fn wake_at(&self) -> Option<Span> {
        self.again_at
    }

    /// Why it is to be tried again, if it is.
    pub(super) fn why_again(&self) -> Option<String> {
        self.again_at.map(|_| again_words(&self.words))
    }

    /// A child has ended. `Some` when the collection is over.
    pub(super) fn reaped(&mut self, reaped: Reaped, now: Span) -> Option<Result<(), String>> {
        if self.pid != Some(reaped.pid) {
            return None;
        }
        self.pid = None;
        match reaped.status.exit_status() {
            Some(0) => Some(Ok(())),
            Some(DISK_FULL) => {
                self.again_at = Some(Span(now.0 + self.wait.0));
                self.wait = Span((self.wait.0 * 2).min(AGAIN_MAX.0));
                None
            }
            code => Some(Err(failure(code, &self.words))),
        }
    }

    /// Tries again if that is due. `Some` when that cannot be.
    pub(super) fn turn(&mut self, now: Span) -> Option<Result<(), String>> {
        if self.again_at.is_some_and(|at| now >= at) {
            self.again_at = None;
            return self.spawn().err().map(Err);
        }
        None
    }

    fn spawn(&mut self) -> Result<(), String> {
        let mut child = self
            .order
            .spawn((&self.manifest, &self.words), &self.token, Stdio::piped())
            .map_err(|error| format!("the collector could not be started: {error}"))?;
        self.pid = Some(child.id() as i32);
        // Nobody waits for a word that may never come; without its words a collection goes on all the same.
        let is_set = |told: &ChildStdout| rustix::io::ioctl_fionbio(told, true).is_ok();
        self.told = child.stdout.take().filter(is_set);
        Ok(())
    }

    /// Where its words come from.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.told.as_ref().map(AsFd::as_fd)
    }

    /// How far it is in percent, if it has said so since this was asked last.
    pub(super) fn percent(&mut self) -> Option<u8> {
        let told = self.told.as_mut()?;
        let mut bytes = [0; 256];
        match told.read(&mut bytes) {
            Ok(0) => {
                self.told = None;
                None
            }
            Ok(n) => std::str::from_utf8(&bytes[..n]).ok()?.lines().next_back()?.parse().ok(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => {
                self.told = None;
                None
            }
        }
    }
}

/// Which attempt's collection, and where.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) run_dir: PathBuf,
    pub(super) token: Token,
    pub(super) task: crate::model::TaskIx,
    pub(super) attempt: crate::model::AttemptNo,
}

impl Place {
    pub(super) fn of(spec: &LaunchSpec) -> Self {
        Self {
            run_dir: spec.run_dir.clone(),
            token: spec.token.clone(),
            task: spec.task,
            attempt: spec.attempt,
        }
    }

    /// For a run that never started: nothing came back.
    pub(super) fn write_empty(&self) -> Result<(), String> {
        let bytes = serde_json::to_vec(&Collected::default()).unwrap_or_default();
        std::fs::write(manifest_path(&self.run_dir, self.task, self.attempt), bytes)
            .map_err(|error| format!("the manifest could not be written: {error}"))
    }
}

/// Why a collector wants to be tried again, in words. A full disk may not even have taken those.
pub fn again_words(words: &Path) -> String {
    let text = std::fs::read_to_string(words).unwrap_or_default();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).map(crate::model::clean_line);
    let last = last.map(|line| line.trim_start_matches("overnight collect: ").to_owned());
    last.unwrap_or_else(|| "the disk takes nothing".to_owned())
}

/// Why a collector failed, in words: the last of its own, if it had any.
pub fn failure(code: Option<i32>, words: &Path) -> String {
    let text = std::fs::read_to_string(words).unwrap_or_default();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).map(crate::model::clean_line);
    match (last, code) {
        (Some(words), _) => words,
        (None, Some(code)) => format!("the collector exited with {code}"),
        (None, None) => "the collector was killed".to_owned(),
    }
}
