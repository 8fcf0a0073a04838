//! Makes the events of a turn durable, and holds the turn while they cannot be.
//!
//! A failed commit is made again, on a reopened store, until it works. Meanwhile looks are served from what is durable, a
//! cancel goes straight to the supervisor, what the engine saw and what was dropped is put aside, and everything else is
//! refused. Nothing that comes meanwhile is without a bound: a full disk may last for a night.

use super::held::Held;
use super::message::Message;
use super::turns::{Daemon, Waiting};
use crate::inbox::InboxEvent;
use crate::model::{EventRecord, LeaseId, Revision, chain};
use crate::protocol::{Command, Reply, Request, Snapshot};
use crate::sched::{EngineReport, Input};
use crate::store::{Batch, StoreError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A commit that takes longer than this no longer holds up queries.
const COMMIT_SLOW: Duration = Duration::from_millis(100);
/// One that takes longer than this is trouble that everybody is told of.
const COMMIT_STUCK: Duration = Duration::from_secs(1);
/// The first wait before a failed commit is tried again; doubled up to [`REOPEN_MAX`].
const REOPEN_FIRST: Duration = Duration::from_millis(250);
/// The longest such wait.
const REOPEN_MAX: Duration = Duration::from_secs(5);
/// What is said of a commit that has not failed.
const SLOW: &str =
    "the state disk does not answer: nothing is accepted or started until it does; running jobs go on";

/// How a turn became durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Committed {
    /// The first commit did it.
    AtOnce,
    /// A commit failed before: everybody has waited for the disk.
    AfterFailure,
    /// The scheduler was told to end meanwhile: nobody has seen the turn, and it is as if it never was.
    Never,
}

/// What the disk is to the loop, beside the store.
#[derive(Default)]
pub(super) struct Disk {
    /// Why nothing is accepted.
    pub(super) trouble: Option<String>,
    /// Why nothing can be started.
    pub(super) held_up: Option<String>,
    /// Why the clerk is behind.
    pub(super) behind: Option<String>,
    /// The picture of what is durable, while that is not what is.
    pub(super) durable: Option<Snapshot>,
    /// The revision of the last turn that is durable.
    pub(super) settled: Revision,
    /// Files that were dropped while events could not be made durable.
    pub(super) held: Held,
    /// Requests that came while a commit was slow, for when it is done.
    later: Vec<Message>,
    /// Reports that wait for a look at the disks, by lease.
    pub(super) asking: Vec<(LeaseId, Vec<Input>)>,
}

impl Daemon {
    /// Requests that a slow commit has kept waiting.
    pub(super) fn take_later(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.disk.later)
    }

    /// Makes events durable. Does not return before they are: a failed commit is made again, on a reopened store.
    pub(super) async fn append(&mut self, events: &[EventRecord], waiting: &mut Waiting) -> Committed {
        let (mut wait, mut committed) = (REOPEN_FIRST, Committed::AtOnce);
        loop {
            let batch = Batch::of_turn(&self.world, events);
            let (done, durable) = oneshot::channel();
            self.store.append(batch, Box::new(move |result| drop(done.send(result))));
            let Err(error) = self.attend(durable, waiting).await else {
                self.showing.picture.touch(&self.world);
                self.world.touched = crate::sched::Touched::default();
                if self.disk.trouble.take().is_some() {
                    tracing::info!("the store is back");
                    self.refresh();
                }
                self.take_held();
                return committed;
            };
            committed = Committed::AfterFailure;
            tracing::error!(
                error = chain(&error),
                "cannot make events durable; nothing is accepted or started until it works"
            );
            let reason = trouble(&error);
            waiting.put_off(&reason);
            self.be_in_trouble(reason);
            self.look_for(waiting);
            self.attend_for(wait, waiting).await;
            if waiting.ended {
                return Committed::Never;
            }
            wait = (wait * 2).min(REOPEN_MAX);
            let (done, reopened) = oneshot::channel();
            self.store.reopen(Box::new(move |result| drop(done.send(result.map(|_| ())))));
            if let Err(error) = self.attend(reopened, waiting).await {
                self.be_in_trouble(trouble(&error));
            }
        }
    }

    /// Everybody is told; whoever wants something changed is refused.
    fn be_in_trouble(&mut self, reason: String) {
        for message in std::mem::take(&mut self.disk.later) {
            if let Message::Client { answer, .. } = message {
                drop(answer.send(nothing_is_changed(&reason)));
            }
        }
        if self.disk.trouble.as_ref() != Some(&reason) {
            self.disk.trouble = Some(reason);
            self.refresh();
        }
    }

    /// Waits for the store. A slow one does not hold up queries: they are answered from what is durable.
    async fn attend(
        &mut self,
        mut done: oneshot::Receiver<Result<(), StoreError>>,
        waiting: &mut Waiting,
    ) -> Result<(), StoreError> {
        let path = self.intake.paths.store();
        let began = tokio::time::Instant::now();
        let (mut slow, mut due) = (false, Some(began + COMMIT_SLOW));
        loop {
            tokio::select! {
                biased;
                result = &mut done => return result.unwrap_or(Err(StoreError::Closed { path })),
                () = until(due) => {
                    if slow && self.disk.trouble.is_none() {
                        self.be_in_trouble(SLOW.to_owned());
                    }
                    due = (!slow).then_some(began + COMMIT_STUCK);
                    slow = true;
                    self.look_for(waiting);
                }
                Some(message) = self.messages.recv(), if slow => self.while_frozen(message, waiting),
            }
        }
    }

    /// Answers the looks of the turn: they do not wait for a commit that does not come.
    fn look_for(&mut self, waiting: &mut Waiting) {
        let reason = self.reason();
        for (query, answer) in std::mem::take(&mut waiting.queries) {
            drop(answer.send(self.answer_frozen(&query, &reason)));
        }
        for (_, answer) in std::mem::take(&mut waiting.updates) {
            drop(answer.send(self.frozen_news(&reason)));
        }
    }

    fn reason(&self) -> String {
        self.disk.trouble.clone().unwrap_or_else(|| "the state disk is slow".to_owned())
    }

    /// Waits a while for the disk to come back.
    async fn attend_for(&mut self, wait: Duration, waiting: &mut Waiting) {
        let until = tokio::time::Instant::now() + wait;
        while !waiting.ended {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(message) = self.messages.recv() => self.while_frozen(message, waiting),
            }
        }
    }

    /// A message that comes while events cannot be made durable: looks are served from what is durable, a cancel goes
    /// straight to the supervisor, what the engine saw is kept for the next turn, everything else is refused.
    fn while_frozen(&mut self, message: Message, waiting: &mut Waiting) {
        let reason = self.reason();
        match message {
            Message::Input(input) => {
                if let Some(input) = self.admit(input) {
                    self.put_aside(input);
                }
            }
            Message::Room { why, asked_by } => {
                for input in self.room(why, asked_by) {
                    self.put_aside(input);
                }
            }
            Message::Inbox(InboxEvent::Dropped(dropped)) => self.disk.held.hold(dropped),
            Message::Inbox(event) => {
                // What was held is not what is there now.
                if let InboxEvent::Gone { name } | InboxEvent::Refused { name, .. } = &event {
                    self.disk.held.gone(name);
                }
                self.inbox_event(event, &mut Vec::new(), &crate::clock::now());
            }
            Message::Client { request, answer, by } => {
                let reply = match request {
                    Request::Query(query) => self.answer_frozen(&query, &reason),
                    Request::Command(Command::Cancel { job, now, .. }) if self.running(job).is_some() => {
                        self.cancel_frozen(job, now, &by.name)
                    }
                    Request::Command(Command::Stop) => {
                        waiting.ended = true;
                        Reply::Ok { message: "the scheduler ends once its last turn is durable".to_owned() }
                    }
                    Request::Command(_) if self.disk.trouble.is_none() => {
                        // Most likely the disk is only busy.
                        return self.disk.later.push(Message::Client { request, answer, by });
                    }
                    Request::Command(_) => nothing_is_changed(&reason),
                    Request::Subscribe { .. } => Reply::Pong,
                };
                drop(answer.send(reply));
            }
            Message::Update { answer, .. } => {
                drop(answer.send(self.frozen_news(&reason)));
            }
            Message::Subscribers(change) => {
                self.subscribed(change);
            }
            Message::Behind(why) => self.disk.behind = why,
            Message::Terminate => waiting.ended = true,
            Message::ThrowAway => self.throwing_away = true,
            Message::NoDevices(_) | Message::ClockStep => {}
        }
    }

    /// Keeps an input for the next turn. Signs of life and readings come for as long as the disk is away: of each only
    /// the newest counts.
    fn put_aside(&mut self, input: Input) {
        let replaces = |old: &Input| match (old, &input) {
            (
                Input::Engine(EngineReport::Heartbeat { lease: old, .. }),
                Input::Engine(EngineReport::Heartbeat { lease, .. }),
            )
            | (
                Input::Engine(EngineReport::CollectionWaits { lease: old, .. }),
                Input::Engine(EngineReport::CollectionWaits { lease, .. }),
            ) => old == lease,
            (Input::Readings(_), Input::Readings(_))
            | (Input::Devices(_), Input::Devices(_))
            | (Input::HeldUp(_), Input::HeldUp(_)) => true,
            _ => false,
        };
        self.pending.retain(|old| !replaces(old));
        self.pending.push(input);
    }
}

fn nothing_is_changed(reason: &str) -> Reply {
    Reply::Unavailable { message: format!("{reason}; nothing is changed") }
}

async fn until(due: Option<tokio::time::Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn trouble(error: &StoreError) -> String {
    let why = chain(error);
    if error.is_no_space() {
        format!(
            "the state disk is full: nothing is accepted or started until there is room ({why}); running jobs go on"
        )
    } else {
        format!(
            "the state cannot be written: nothing is accepted or started until it can ({why}); running jobs go on"
        )
    }
}
