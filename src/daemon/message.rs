//! What reaches the loop.

use crate::inbox::InboxEvent;
use crate::model::Owner;
use crate::protocol::{Reply, Request, Update};
use crate::sched::Input;
use crate::sched::picture::Mark;
use tokio::sync::{mpsc, oneshot};

/// Messages that may wait for the loop; senders on threads block beyond that.
pub(super) const INBOX_LEN: usize = 4_096;

/// One message to the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// From the inbox's thread.
    Inbox(InboxEvent),
    /// Ready for the core: from the engine, the sampler, the clerk.
    Input(Input),
    /// Devices could not be listed.
    NoDevices(String),
    /// From a connection.
    Client {
        /// The peer.
        by: Owner,
        /// What it asks.
        request: Request,
        /// Where the answer goes, in one part or several. Closed by a client that has left.
        answer: mpsc::UnboundedSender<Reply>,
    },
    /// A subscriber wants what changed since the picture it has; a `None` subscriber has nothing.
    Update {
        /// What it has.
        since: Option<Mark>,
        /// Where the update goes.
        answer: oneshot::Sender<News>,
    },
    /// Whether the disks have room for a start.
    Room {
        /// Why nothing can be started.
        why: Option<String>,
        /// The lease whose reports have waited for it.
        asked_by: Option<crate::model::LeaseId>,
    },
    /// From the clerk: why what people read is not written; `None`: all of it is again.
    Behind(Option<String>),
    /// Subscribers came or went.
    Subscribers(i32),
    /// The wall clock was set.
    ClockStep,
    /// SIGTERM or SIGINT: end; jobs go on.
    Terminate,
    /// The starter of a throw-away scheduler is gone: end the jobs, then end.
    ThrowAway,
}

/// What a subscriber is told.
#[derive(Debug)]
pub(super) struct News {
    /// What changed; `None`: nothing.
    pub(super) update: Option<Box<Update>>,
    /// The picture it has then; `None`: one on which nothing can build.
    pub(super) mark: Option<Mark>,
}

/// Sends messages to the loop from anywhere.
#[derive(Debug, Clone)]
pub(super) struct Mailbox(pub(super) mpsc::Sender<Message>);

impl Mailbox {
    /// From a thread: waits for room. A loop that has ended takes nothing more, and nothing is lost by that: everything
    /// that matters is found again at the next start.
    pub(super) fn post(&self, message: Message) {
        drop(self.0.blocking_send(message));
    }

    /// From a task.
    pub(super) async fn send(&self, message: Message) {
        drop(self.0.send(message).await);
    }
}

/// Fills a buffer from the kernel's generator.
pub(super) fn fill_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        // Blocks only before the generator is seeded, early in boot; an interrupted call is made again.
        if let Ok(n) = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            filled += n;
        }
    }
}
