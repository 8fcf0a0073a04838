//! The run of one attempt, from its first process to the proof that the last one is gone.
//!
//! Nothing here waits: the loop says what happened and what time it is, and asks when to come back.

use super::log::Log;
use super::message::Stopping;
use super::process::{self, ProcessId};
use super::start::Started;
use super::streams::Streams;
use super::tree::{self, Reaped, Tree};
use super::{hints, record::Ended};
use crate::clock;
use crate::model::{AttemptNo, Bytes, EndedBy, Now, RunEnd, Span, Stop, StopSignal, TaskIx};
use rustix::event::PollFd;
use rustix::process::{Signal, WaitStatus};

/// A process that has not gone this long after a kill is reported as not proven gone.
const KILL_PATIENCE: Span = Span::secs(10);
/// First wait for what is left after a kill; doubles.
const ROUND_FIRST_MS: u64 = 10;
const ROUND_LONGEST_MS: u64 = 200;
/// How much of what is printed is read before other things get their turn.
const BYTES_A_TURN: usize = 1 << 20;
const READS_A_TURN: usize = 64;
/// More than the pipes hold.
const DRAIN_BYTES: usize = 4 << 20;
const DRAIN_READS: usize = 1024;
/// Less than this between the clocks is their rounding, not a suspend.
const SUSPEND_NOISE_MS: u64 = 20;

/// An attempt that runs.
#[derive(Debug)]
pub(super) struct Running {
    tree: Tree,
    main: ProcessId,
    started: Now,
    /// Boottime minus monotonic at the start: grows by suspend only.
    offset_ms: u64,
    streams: Streams,
    log: Log,
    stop: Stop,
    limit_at: Option<Span>,
    exit: Option<WaitStatus>,
    reason: Option<Reason>,
    told: u32,
    cancels: u32,
    kill_at: Option<Span>,
    kill: Option<Kill>,
    outlived: Option<Vec<ProcessId>>,
    peak: u64,
    oom_kills: Option<u64>,
    notes: Vec<String>,
}

/// Why we end it. The first reason counts.
#[derive(Debug)]
enum Reason {
    Limit,
    Cancel { by: String },
    Lost { why: String },
}

#[derive(Debug)]
struct Kill {
    since: Span,
    again_at: Span,
    wait_ms: u64,
}

impl Running {
    pub(super) fn new(started: Started, tree: Tree, stop: Stop, limit: Option<Span>) -> Self {
        let monotonic = clock::monotonic();
        Self {
            tree,
            main: started.main,
            started: started.at,
            offset_ms: suspend_offset_ms(),
            streams: started.streams,
            log: started.log,
            stop,
            limit_at: limit.map(|limit| Span(monotonic.0.saturating_add(limit.0))),
            exit: None,
            reason: None,
            told: 0,
            cancels: 0,
            kill_at: None,
            kill: None,
            outlived: None,
            peak: 0,
            oom_kills: tree::oom_kills(),
            notes: started.notes,
        }
    }

    /// What to wait for: one is readable when the work has printed something.
    pub(super) fn printed(&self) -> Vec<PollFd<'_>> {
        self.streams.poll_fds()
    }

    /// When it was started.
    pub(super) const fn started(&self) -> Now {
        self.started
    }

    /// Whether the main process has ended.
    pub(super) const fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    /// Moves what was printed into the log, some of it at a time.
    pub(super) fn pump(&mut self) {
        self.pump_some(READS_A_TURN, BYTES_A_TURN);
    }

    /// A child of the supervisor has ended.
    pub(super) fn reaped(&mut self, reaped: Reaped) {
        if reaped.pid == self.main.pid && self.exit.is_none() {
            self.exit = Some(reaped.status);
        }
    }

    /// All that is due now. `Some` when it is over.
    pub(super) fn turn(&mut self, now: Span, nobody_left: bool) -> Option<EndedBy> {
        if self.exit.is_some() && nobody_left && self.tree.groups_are_empty() && self.is_alone() {
            return Some(EndedBy::Proven);
        }
        if self.limit_at.is_some_and(|at| now >= at) && self.exit.is_none() && self.reason.is_none() {
            self.reason = Some(Reason::Limit);
            self.warn(now);
        }
        // Whoever outlives the main process without having been asked to end is not waited for.
        let orphaned = self.exit.is_some() && self.reason.is_none();
        if self.kill.is_none() && (orphaned || self.kill_at.is_some_and(|at| now >= at)) {
            self.start_kill(now);
        }
        let Some(kill) = &mut self.kill else { return None };
        if now.0 >= kill.since.0 + KILL_PATIENCE.0 {
            let left = self.tree.left();
            self.notes.push(format!("not gone ten seconds after the kill: {}", process::names(&left)));
            self.outlived = Some(left);
            return Some(EndedBy::AfterKill);
        }
        if now >= kill.again_at {
            kill.wait_ms = (kill.wait_ms * 2).min(ROUND_LONGEST_MS);
            kill.again_at = Span(now.0 + kill.wait_ms);
            self.tree.kill();
        }
        None
    }

    /// When [`turn`](Self::turn) wants to be called again at the latest.
    pub(super) fn wake_at(&self) -> Option<Span> {
        let limit = self.limit_at.filter(|_| self.exit.is_none() && self.reason.is_none());
        let grace = self.kill_at.filter(|_| self.kill.is_none());
        let kill = self.kill.as_ref().map(|kill| kill.again_at);
        [limit, grace, kill].into_iter().flatten().min()
    }

    /// Told to end it; how often it was told now. Nothing happens if it is already ending by itself.
    pub(super) fn stop(&mut self, stop: &Stopping, now: Span) -> u32 {
        self.told += 1;
        if self.exit.is_some() && self.reason.is_none() {
            return self.told;
        }
        let (reason, at_once) = match stop {
            Stopping::Cancel { by } => {
                self.cancels += 1;
                (Reason::Cancel { by: by.clone() }, self.cancels > 1)
            }
            Stopping::CancelNow { by } => (Reason::Cancel { by: by.clone() }, true),
            Stopping::Lost { why } => (Reason::Lost { why: why.clone() }, true),
        };
        if self.reason.is_none() {
            self.reason = Some(reason);
        }
        if at_once {
            self.kill_at = Some(now);
            // At once: the record of it may wait for a disk.
            if self.kill.is_none() {
                self.start_kill(now);
            }
        } else if self.kill_at.is_none() {
            self.warn(now);
        }
        self.told
    }

    /// For the heartbeat: the highest resident memory so far, and the suspend so far.
    pub(super) fn measure(&mut self) -> (Option<Bytes>, u64) {
        self.peak = self.peak.max(tree::resident());
        (self.peak_memory(), self.suspended_ms())
    }

    /// The whole story, once [`turn`](Self::turn) says that it is over. `largest` is the largest resident memory of a
    /// reaped process, if it is known to be of this attempt.
    pub(super) fn ended(&mut self, by: EndedBy, id: (TaskIx, AttemptNo), largest: Option<u64>) -> Ended {
        let at = clock::now();
        self.peak = self.peak.max(largest.unwrap_or(0));
        // Everybody who could write is gone, so this ends; a process that a kill did not end may still write.
        self.pump_some(DRAIN_READS, DRAIN_BYTES);
        let end = self.end();
        self.notes.extend(hints::hints(&end, &self.log_end(&end)));
        self.notes.extend(self.log.note());
        Ended {
            task: id.0,
            attempt: id.1,
            at,
            end,
            by,
            peak_memory: self.peak_memory(),
            suspended_ms: self.suspended_ms(),
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Those that the kill did not end, and how to find them; once [`turn`](Self::turn) says that it is over.
    pub(super) fn take_outlived(&mut self) -> Option<(Tree, Vec<ProcessId>)> {
        self.outlived.take().map(|ids| (self.tree.clone(), ids))
    }

    /// Puts the log in order; may take a while for a log that was cut.
    pub(super) fn finish_log(&mut self) {
        self.log.finish();
    }

    /// After a kill somebody outside the tree may still carry the token; without one nobody was looked for, and
    /// nobody can be: having no children is the proof.
    fn is_alone(&self) -> bool {
        (self.kill.is_none() && self.kill_at.is_none()) || self.tree.is_empty()
    }

    fn warn(&mut self, now: Span) {
        let signal = match self.stop.signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Hup => Signal::HUP,
            StopSignal::Usr1 => Signal::USR1,
            StopSignal::Usr2 => Signal::USR2,
        };
        self.tree.signal_all(signal);
        // A stopped process sees its warning only when it goes on.
        self.tree.signal_all(Signal::CONT);
        self.kill_at = Some(Span(now.0.saturating_add(self.stop.grace.0)));
    }

    fn start_kill(&mut self, now: Span) {
        self.kill =
            Some(Kill { since: now, again_at: Span(now.0 + ROUND_FIRST_MS), wait_ms: ROUND_FIRST_MS });
        self.tree.kill();
    }

    fn end(&mut self) -> RunEnd {
        let code = self.exit.and_then(WaitStatus::exit_status);
        let signal = self.exit.and_then(WaitStatus::terminating_signal);
        let came = match (code, signal) {
            (Some(code), _) => RunEnd::Exited { code },
            (None, Some(signal)) => RunEnd::Signalled { signal },
            (None, None) => RunEnd::Lost { why: "the main process did not go".to_owned() },
        };
        let in_groups = self.tree.oom_kills();
        let counted = in_groups.is_some_and(|kills| kills > 0);
        if let Some(reason) = self.reason.take() {
            match came {
                RunEnd::Exited { code } => {
                    self.notes.push(format!("the work exited with {code} when it was told to end"));
                }
                RunEnd::Signalled { signal } if signal == Signal::KILL.as_raw() => {
                    self.notes.push("the work had to be killed".to_owned());
                }
                _ => {}
            }
            if counted {
                self.notes.push("the kernel killed a process of the work for memory before that".to_owned());
            }
            return match reason {
                Reason::Limit => RunEnd::LimitReached,
                Reason::Cancel { by } => RunEnd::Cancelled { by },
                Reason::Lost { why } => RunEnd::Lost { why },
            };
        }
        if counted {
            if let RunEnd::Exited { code } = came {
                self.notes.push(format!("the main process exited with {code} after that"));
            }
            return RunEnd::OutOfMemory { certain: true };
        }
        self.guess(came, in_groups.is_some())
    }

    /// What an end may have been that was not seen as a kill for memory in the work's own groups.
    fn guess(&mut self, came: RunEnd, counted: bool) -> RunEnd {
        let elsewhere = match (self.oom_kills, tree::oom_kills()) {
            (Some(before), Some(after)) => after > before,
            _ => false,
        };
        if !elsewhere || matches!(came, RunEnd::Exited { code: 0 }) {
            return came;
        }
        // A shell passes on the kill of its child as 137.
        let kill = Signal::KILL.as_raw();
        let killed =
            came == RunEnd::Signalled { signal: kill } || came == RunEnd::Exited { code: 128 + kill };
        if killed && !counted {
            return RunEnd::OutOfMemory { certain: false };
        }
        self.notes.push("the kernel killed a process of this machine for memory during the run".to_owned());
        came
    }

    fn log_end(&self, end: &RunEnd) -> Vec<u8> {
        if *end == (RunEnd::Exited { code: 0 }) { Vec::new() } else { self.log.last(hints::LOOK_BACK) }
    }

    fn peak_memory(&self) -> Option<Bytes> {
        (self.peak > 0).then_some(Bytes(self.peak))
    }

    fn suspended_ms(&self) -> u64 {
        let suspended = suspend_offset_ms().saturating_sub(self.offset_ms);
        if suspended < SUSPEND_NOISE_MS { 0 } else { suspended }
    }

    fn pump_some(&mut self, reads: usize, most: usize) {
        let Self { streams, log, .. } = self;
        let mut bytes = 0;
        for _ in 0..reads {
            let Some(read) = streams.read(|printed| log.write(printed, clock::wall_ms())) else { return };
            bytes += read;
            if bytes >= most {
                return;
            }
        }
    }
}

/// How far boottime is ahead of monotonic: all suspend since the boot. Boottime is read first, so a pause between the
/// two readings only makes it smaller; the largest of a few is the right one.
fn suspend_offset_ms() -> u64 {
    let read = || clock::now().boottime_ms.saturating_sub(clock::monotonic().0);
    read().max(read()).max(read())
}
