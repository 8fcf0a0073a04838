//! The supervisor's loop: wait for one of the few things that can happen, do what follows, tell.

use super::collection::{CollectOrder, Collection, Place, order_path};
use super::control::Control;
use super::devices::{self, DeviceLock};
use super::facts::{collected_now, ended_now, intent};
use super::message::{News, Order, Stopping};
use super::outlived::Outlived;
use super::record::{Heartbeat, Journal, Record, VERSION};
use super::run::Running;
use super::seat::{Seat, Seated};
use super::spec::LaunchSpec;
use super::start::{self, Refusal};
use super::tree::{self, Tree};
use crate::clock;
use crate::model::{AttemptNo, EndedBy, LeaseId, RunEnd, Span, TaskIx, Token};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::Read;
use std::os::unix::net::UnixStream;

/// Between two signs of life.
const HEARTBEAT: Span = Span::secs(5);
/// How long after a start or an end memory is given back.
const TRIM_AFTER: Span = Span::secs(1);
/// Orders to end a run that are written down.
const TOLD_BOUND: u32 = 3;

/// One lease's supervisor.
#[derive(Debug)]
pub(super) struct Supervisor {
    lease: LeaseId,
    token: Token,
    journal: Journal,
    control: Control,
    /// Readable when a child has ended.
    children: UnixStream,
    seat: Seat,
    locks: Vec<DeviceLock>,
    attempt: Option<Attempt>,
    /// Of an attempt whose run has ended.
    outlived: Option<Outlived>,
    next: Vec<LaunchSpec>,
    attempts: u32,
    dismissed: bool,
    beat_at: Span,
    /// When memory that is not needed is given back.
    trim_at: Option<Span>,
}

/// The attempt at hand.
#[derive(Debug)]
struct Attempt {
    task: TaskIx,
    number: AttemptNo,
    place: Place,
    order: CollectOrder,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Running(Box<Running>),
    Collecting(Box<Collection>),
    Home,
}

impl Supervisor {
    /// With a journal whose first record is the intent to run `spec`.
    pub(super) fn new(
        spec: &LaunchSpec,
        journal: Journal,
        control: Control,
        children: UnixStream,
        seat: Seat,
    ) -> Self {
        Self {
            lease: spec.lease,
            token: spec.token.clone(),
            journal,
            control,
            children,
            seat,
            locks: Vec::new(),
            attempt: None,
            outlived: None,
            next: Vec::new(),
            attempts: 0,
            dismissed: false,
            beat_at: Span(clock::monotonic().0 + HEARTBEAT.0),
            trim_at: None,
        }
    }

    /// Takes the devices. `false`, and told, if somebody else has one.
    pub(super) fn take_devices(&mut self, spec: &LaunchSpec) -> bool {
        match devices::lock_all(&spec.devices, &self.token, clock::wall_ms()) {
            Ok(locks) => {
                self.locks = locks;
                true
            }
            Err(why) => {
                self.record(Record::NotLaunched { why, at: clock::now() }, true);
                false
            }
        }
    }

    /// Runs one attempt whose intent is in the journal.
    pub(super) fn begin(&mut self, spec: &LaunchSpec, seated: Seated) {
        self.attempts += 1;
        let place = Place::of(spec);
        let mut attempt = Attempt {
            task: spec.task,
            number: spec.attempt,
            order: CollectOrder { collect: spec.collect.clone(), collector: spec.collector.clone() },
            place,
            phase: Phase::Home,
        };
        let tree = Tree::new(self.token.0.clone(), seated.groups.clone());
        match start::start(spec, seated) {
            Ok(started) => {
                let (main, at, enforcement) = (started.main, started.at, Some(started.enforcement.clone()));
                attempt.phase = Phase::Running(Box::new(Running::new(started, tree, spec.stop, spec.limit)));
                let (task, number) = (attempt.task, attempt.number);
                self.attempt = Some(attempt);
                self.record(Record::Started { task, attempt: number, main, enforcement, at }, false);
                self.keep_order();
            }
            Err(Refusal::Work(why)) => self.never_started(attempt, RunEnd::NotStarted { why }),
            Err(Refusal::Pool(why)) => self.never_started(attempt, RunEnd::Lost { why }),
        }
        self.seat.move_out();
    }

    /// Until the lease is over.
    pub(super) fn run(mut self) {
        while !self.is_over() {
            let ready = self.wait();
            if ready.children {
                self.reap();
            }
            if let Some(Attempt { phase: Phase::Running(running), .. }) = &mut self.attempt {
                running.pump();
            }
            if ready.listener {
                let (lease, token, journal) = (self.lease, &self.token, &self.journal);
                self.control.accept(|| greeting(lease, token, journal));
            }
            for order in self.control.orders() {
                self.obey(order);
            }
            self.turn();
        }
        self.leave();
    }

    /// Nothing is left to do.
    pub(super) fn leave(mut self) {
        self.seat.clear();
    }

    /// Says hello and all that is known to the scheduler that started it.
    pub(super) fn greet(&mut self) {
        for news in greeting(self.lease, &self.token, &self.journal) {
            self.control.tell(&news);
        }
    }

    fn is_over(&self) -> bool {
        let home = matches!(&self.attempt, None | Some(Attempt { phase: Phase::Home, .. }));
        let quiet = home && self.next.is_empty() && self.outlived.is_none();
        quiet && (self.dismissed || !self.control.is_connected())
    }

    fn wait(&self) -> Ready {
        let running = match &self.attempt {
            Some(Attempt { phase: Phase::Running(running), .. }) => Some(running),
            _ => None,
        };
        let phase_at = match &self.attempt {
            Some(Attempt { phase: Phase::Running(running), .. }) => running.wake_at(),
            Some(Attempt { phase: Phase::Collecting(collection), .. }) => collection.wake_at(),
            Some(Attempt { phase: Phase::Home, .. }) | None => None,
        };
        let outlived_at = self.outlived.as_ref().map(Outlived::wake_at);
        let wake_at =
            [phase_at, outlived_at, self.trim_at].into_iter().flatten().fold(self.beat_at, Span::min);
        // A millisecond more than the clock shows: it shows whole ones, and waking early would spin.
        let left = wake_at.0.saturating_sub(clock::monotonic().0) + u64::from(wake_at > clock::monotonic());
        let timeout = Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as i64 };
        let mut fds = vec![PollFd::new(&self.children, PollFlags::IN)];
        let control_from = fds.len();
        fds.extend(self.control.poll_fds());
        let told = match &self.attempt {
            Some(Attempt { phase: Phase::Collecting(collection), .. }) => collection.pipe(),
            _ => None,
        };
        fds.extend(running.into_iter().flat_map(|running| running.printed()));
        fds.extend(told.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timeout));
        let is_ready = |index: usize| fds.get(index).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
        Ready { children: is_ready(0), listener: is_ready(control_from) }
    }

    fn reap(&mut self) {
        let mut notices = [0; 256];
        while matches!((&self.children).read(&mut notices), Ok(1..)) {}
        let now = clock::monotonic();
        while let Ok(Some(reaped)) = tree::reap() {
            match self.attempt.as_mut().map(|attempt| &mut attempt.phase) {
                Some(Phase::Running(running)) => running.reaped(reaped),
                Some(Phase::Collecting(collection)) => {
                    let result = collection.reaped(reaped, now);
                    let waits = collection.why_again();
                    if let Some(result) = result {
                        self.collected(result.err());
                    } else if let Some(why) = waits {
                        self.control.tell(&News::CollectionWaits { why });
                    }
                }
                Some(Phase::Home) | None => {}
            }
            if let Some(outlived) = &mut self.outlived {
                outlived.look_now(now);
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Stop(stop) => self.stop(&stop),
            Order::NextAttempt(spec) if !self.dismissed && spec.token == self.token => self.next.push(*spec),
            Order::Dismiss => {
                if !self.dismissed {
                    self.dismissed = true;
                    self.locks.clear();
                    self.record(Record::Returned { at: clock::now() }, false);
                }
            }
            Order::Ping => self.control.tell(&News::Pong),
            // The first launch was taken from the channel before the loop; a second one is the same one again.
            Order::Launch(_) | Order::NextAttempt(_) => {}
        }
    }

    fn stop(&mut self, stop: &Stopping) {
        let now = clock::monotonic();
        // What has not begun never will.
        for spec in std::mem::take(&mut self.next) {
            let end = match stop {
                Stopping::Cancel { by } | Stopping::CancelNow { by } => RunEnd::Cancelled { by: by.clone() },
                Stopping::Lost { why } => RunEnd::Lost { why: why.clone() },
            };
            self.record(ended_now(spec.task, spec.attempt, end), true);
            self.record(collected_now(spec.task, spec.attempt, Place::of(&spec).write_empty().err()), false);
        }
        let Some(Attempt { phase: Phase::Running(running), .. }) = &mut self.attempt else { return };
        // A record each for the first ones: the journal's room is bounded, a person's patience is not.
        if running.stop(stop, now) <= TOLD_BOUND {
            self.record(Record::Told { stop: stop.clone(), at: clock::now() }, false);
        }
    }

    fn turn(&mut self) {
        let now = clock::monotonic();
        let over = match self.attempt.as_mut().map(|attempt| &mut attempt.phase) {
            Some(Phase::Running(running)) => {
                let nobody_left = running.has_exited() && self.reap_all();
                self.turn_running(now, nobody_left)
            }
            Some(Phase::Collecting(collection)) => {
                if let Some(percent) = collection.percent() {
                    self.control.tell(&News::Collecting { percent });
                }
                if let Some(result) = collection.turn(now) {
                    self.collected(result.err());
                }
                None
            }
            Some(Phase::Home) | None => None,
        };
        if let Some(by) = over {
            self.end(by);
        }
        if let Some(gone) = self.outlived.take_if(|outlived| outlived.are_gone(now)) {
            let Outlived { task, attempt, .. } = gone;
            self.record(Record::Gone { task, attempt, at: clock::now() }, true);
        }
        let home = matches!(&self.attempt, None | Some(Attempt { phase: Phase::Home, .. }));
        // One attempt of a task at a time: the next one waits until the last one's processes are gone.
        if home && self.outlived.is_none() && !self.next.is_empty() {
            let spec = self.next.remove(0);
            self.begin_next(&spec);
            self.trim_soon();
        }
        if self.trim_at.is_some_and(|at| clock::monotonic() >= at) {
            self.trim_at = None;
            tree::trim();
        }
        if clock::monotonic() >= self.beat_at {
            self.beat();
        }
    }

    fn turn_running(&mut self, now: Span, nobody_left: bool) -> Option<EndedBy> {
        match self.attempt.as_mut().map(|attempt| &mut attempt.phase) {
            Some(Phase::Running(running)) => running.turn(now, nobody_left),
            _ => None,
        }
    }

    /// Whether there are no children left at all.
    fn reap_all(&mut self) -> bool {
        loop {
            match tree::reap() {
                Ok(Some(reaped)) => {
                    if let Some(Attempt { phase: Phase::Running(running), .. }) = &mut self.attempt {
                        running.reaped(reaped);
                    }
                }
                Ok(None) => return false,
                Err(tree::NoChildren) => return true,
            }
        }
    }

    /// The run is over: that is written and told first, then its output is collected.
    fn end(&mut self, by: EndedBy) {
        let Some(mut attempt) = self.attempt.take() else { return };
        let Phase::Running(mut running) = std::mem::replace(&mut attempt.phase, Phase::Home) else { return };
        // The kernel's figure is over all children ever: it is this attempt's for the first one only.
        let largest = (self.attempts == 1).then(tree::largest_child).flatten();
        let id = (attempt.task, attempt.number);
        let ended = running.ended(by, id, largest);
        if let Some((tree, ids)) = running.take_outlived() {
            let outlived = Outlived::new(id, tree, ids, clock::monotonic());
            let (who, at) = (outlived.names(), ended.at);
            self.outlived = Some(outlived);
            self.record(Record::Outlived { task: id.0, attempt: id.1, who, at }, false);
        }
        attempt.order.complete(running.started(), &ended.end);
        self.record(Record::Ended(ended), true);
        running.finish_log();
        drop(running);
        match Collection::start(attempt.order.clone(), &attempt.place) {
            Ok(collection) => {
                attempt.phase = Phase::Collecting(Box::new(collection));
                self.attempt = Some(attempt);
            }
            Err(why) => {
                self.attempt = Some(attempt);
                self.collected(Some(why));
            }
        }
        self.trim_soon();
    }

    /// What the start or the end needed is given back a little later: a short run needs it again at once.
    pub(super) fn trim_soon(&mut self) {
        self.trim_at = Some(Span(clock::monotonic().0 + TRIM_AFTER.0));
    }

    fn never_started(&mut self, attempt: Attempt, end: RunEnd) {
        let (task, number) = (attempt.task, attempt.number);
        let empty = attempt.place.write_empty();
        self.attempt = Some(attempt);
        self.record(ended_now(task, number, end), true);
        self.collected(empty.err());
    }

    fn collected(&mut self, failure: Option<String>) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.phase = Phase::Home;
        let (task, number) = (attempt.task, attempt.number);
        self.record(collected_now(task, number, failure), true);
    }

    fn begin_next(&mut self, spec: &LaunchSpec) {
        let intent = Record::Intent(intent(spec, self.seat.groups(spec)));
        let made = self
            .journal
            .reserve()
            .and_then(|()| self.journal.append(intent))
            .and_then(|()| self.journal.sync());
        match made {
            Ok(()) => {
                let seated = self.seat.take(spec);
                self.begin(spec, seated);
            }
            Err(error) => {
                let place = Place::of(spec);
                self.record(
                    ended_now(spec.task, spec.attempt, RunEnd::Lost { why: error.to_string() }),
                    true,
                );
                self.record(collected_now(spec.task, spec.attempt, place.write_empty().err()), false);
            }
        }
    }

    /// Writes a fact down and tells it; waits for the disk if the fact must survive the machine.
    ///
    /// A scheduler that hears of it makes it durable before anybody sees it, so it does not wait for our disk.
    fn record(&mut self, record: Record, durable: bool) {
        // What was seen is told even where it cannot be written: the scheduler writes it down too.
        let _ = self.journal.append(record.clone());
        self.control.tell(&News::Record(record));
        if durable {
            let _ = self.journal.sync();
        }
    }

    /// So that the output can be collected even when this process is gone.
    fn keep_order(&self) {
        let Some(attempt) = &self.attempt else { return };
        let path = order_path(&attempt.place.run_dir, attempt.task, attempt.number);
        if let Ok(bytes) = serde_json::to_vec(&attempt.order) {
            let _ = std::fs::write(path, bytes);
        }
    }

    fn beat(&mut self) {
        self.beat_at = Span(clock::monotonic().0 + HEARTBEAT.0);
        let at = clock::now();
        let (peak_memory, suspended_ms) = match &mut self.attempt {
            Some(Attempt { phase: Phase::Running(running), .. }) => running.measure(),
            _ => (None, 0),
        };
        let heartbeat = Heartbeat { at, peak_memory, suspended_ms };
        let _ = self.journal.beat(heartbeat);
        self.control.tell(&News::Heartbeat(heartbeat));
    }
}

struct Ready {
    children: bool,
    listener: bool,
}

fn greeting(lease: LeaseId, token: &Token, journal: &Journal) -> Vec<News> {
    let hello = News::Hello { version: VERSION, lease, token: token.clone() };
    std::iter::once(hello).chain(journal.records().iter().cloned().map(News::Record)).collect()
}
