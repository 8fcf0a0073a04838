//! Makes the events of a turn durable, and holds the turn while they cannot be.
//!
//! A failed commit is made again, on a reopened store, until it works. Meanwhile looks are served from the last durable
//! picture, a cancel goes straight to the supervisor, what the engine saw and what was dropped is put aside, and
//! everything else is refused.

use super::message::Message;
use super::turns::{Daemon, TURN_LEN, Waiting};
use crate::inbox::InboxEvent;
use crate::model::{EventRecord, Lease, LeaseId};
use crate::protocol::{Command, Reply, Request};
use crate::store::{Batch, StoreError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A commit that takes longer than this no longer holds up queries.
const COMMIT_SLOW: Duration = Duration::from_millis(100);
/// The first wait before a failed commit is tried again; doubled up to [`REOPEN_MAX`].
const REOPEN_FIRST: Duration = Duration::from_millis(250);
/// The longest such wait.
const REOPEN_MAX: Duration = Duration::from_secs(5);

impl Daemon {
    /// Makes events durable. Does not return before they are: a failed commit is made again, on a reopened store.
    /// `false` if the scheduler was told to end meanwhile: nobody has seen the turn, and it is as if it never was.
    pub(super) async fn append(&mut self, events: &[EventRecord], waiting: &mut Waiting) -> bool {
        let mut wait = REOPEN_FIRST;
        loop {
            let batch = self.batch(events);
            let (done, durable) = oneshot::channel();
            self.store.append(batch, Box::new(move |result| drop(done.send(result))));
            let result = self.attend(durable, waiting).await;
            let Err(error) = result else {
                self.world.touched = crate::sched::Touched::default();
                if self.trouble.take().is_some() {
                    tracing::info!("the store is back");
                }
                self.take_held();
                return true;
            };
            tracing::error!(error = %error, "cannot make events durable; nothing is accepted or started until it works");
            let reason = trouble(&error);
            waiting.put_off(&reason);
            self.trouble = Some(reason);
            self.attend_for(wait, waiting).await;
            if waiting.ended {
                return false;
            }
            wait = (wait * 2).min(REOPEN_MAX);
            let (done, reopened) = oneshot::channel();
            self.store.reopen(Box::new(move |result| drop(done.send(result.map(|_| ())))));
            if let Err(error) = self.attend(reopened, waiting).await {
                self.trouble = Some(trouble(&error));
            }
        }
    }

    /// Waits for the store. A slow one does not hold up queries: they get the last durable picture.
    async fn attend(
        &mut self,
        mut done: oneshot::Receiver<Result<(), StoreError>>,
        waiting: &mut Waiting,
    ) -> Result<(), StoreError> {
        let path = self.intake.paths.store();
        tokio::select! {
            biased;
            result = &mut done => return result.unwrap_or(Err(StoreError::Closed { path })),
            () = tokio::time::sleep(COMMIT_SLOW) => {}
        }
        loop {
            tokio::select! {
                biased;
                result = &mut done => return result.unwrap_or(Err(StoreError::Closed { path })),
                Some(message) = self.messages.recv(), if self.has_room() => {
                    self.while_frozen(message, waiting);
                }
            }
        }
    }

    /// Whether more may be put aside while events cannot be made durable.
    fn has_room(&self) -> bool {
        self.pending.len() + self.held.len() < TURN_LEN
    }

    /// Reads what was dropped meanwhile.
    fn take_held(&mut self) {
        let mut inputs = Vec::new();
        for dropped in std::mem::take(&mut self.held) {
            self.inbox_event(InboxEvent::Dropped(dropped), &mut inputs, &crate::clock::now());
        }
        self.pending.append(&mut inputs);
    }

    /// Waits a while for the disk to come back.
    async fn attend_for(&mut self, wait: Duration, waiting: &mut Waiting) {
        let until = tokio::time::Instant::now() + wait;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(message) = self.messages.recv(), if self.has_room() => {
                    self.while_frozen(message, waiting);
                }
            }
        }
    }

    /// A message that comes while events cannot be made durable: looks are served from the last picture, a cancel goes
    /// straight to the supervisor, what the engine saw is kept for the next turn, everything else is refused.
    fn while_frozen(&mut self, message: Message, waiting: &mut Waiting) {
        let reason = self.trouble.clone().unwrap_or_else(|| "the state disk is slow".to_owned());
        match message {
            Message::Input(input) => self.pending.push(input),
            Message::Inbox(InboxEvent::Dropped(dropped)) => {
                // Read once the state can be written: what became of the file meanwhile is seen when it is taken.
                self.held.push(dropped);
            }
            Message::Inbox(event) => self.inbox_event(event, &mut Vec::new(), &crate::clock::now()),
            Message::Client { request, answer, by } => {
                let reply = match request {
                    Request::Query(query) => self.answer_frozen(&query, &reason),
                    Request::Command(Command::Cancel { job, now, .. }) => {
                        self.cancel_frozen(job, now, &by.name)
                    }
                    Request::Command(Command::Stop) => {
                        waiting.ended = true;
                        Reply::Ok { message: "the scheduler ends once its last turn is durable".to_owned() }
                    }
                    Request::Command(_) => {
                        Reply::Unavailable { message: format!("{reason}; nothing is changed") }
                    }
                    Request::Subscribe { .. } => Reply::Pong,
                };
                drop(answer.send(reply));
            }
            Message::Update { since, answer } => {
                let snapshot = self.frozen_picture(&reason);
                drop(answer.send(Box::new(super::picture::update(&snapshot, since))));
            }
            Message::Subscribers(change) => {
                self.subscribers = self.subscribers.saturating_add_signed(change as isize);
            }
            Message::Terminate => waiting.ended = true,
            Message::ThrowAway => self.throwing_away = true,
            Message::NoDevices(_) | Message::ClockStep => {}
        }
    }

    fn batch(&self, events: &[EventRecord]) -> Batch {
        let touched = &self.world.touched;
        let lease = |id: &LeaseId| -> Option<Lease> { self.world.lease(*id).cloned() };
        Batch {
            events: events.to_vec(),
            jobs: touched.jobs.iter().filter_map(|job| self.world.queue.get(*job).cloned()).collect(),
            leases: touched.leases.iter().filter_map(lease).collect(),
            devices: touched
                .devices
                .iter()
                .filter_map(|uuid| Some((uuid.clone(), self.world.pool.get(uuid)?.standing())))
                .collect(),
            forget_devices: Vec::new(),
        }
    }
}

fn trouble(error: &StoreError) -> String {
    if error.is_no_space() {
        format!(
            "the state disk is full: nothing is accepted or started until there is room ({error}); running jobs go on"
        )
    } else {
        format!(
            "the state cannot be written: nothing is accepted or started until it can ({error}); running jobs go on"
        )
    }
}
