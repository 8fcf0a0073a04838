//! Connections: newline-delimited JSON, one task each. Knows the protocol's frame and nothing of what is asked.
//!
//! Whoever connects costs little, and nobody can keep others out: who says nothing makes room for the next, who has
//! begun must go on, and what is large is held by few at a time. The peer's account is what the kernel says.

mod door;
mod lines;

use super::message::{Mailbox, Message, News};
use crate::model::{Owner, Revision};
use crate::protocol::{ClientMessage, Hello, PROTOCOL, Query, Reply, Request, ServerMessage, Snapshot};
use crate::sched::picture::Mark;
use door::Door;
use lines::{Lines, send, send_part};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

pub(super) use door::{own_state, raise_files};

/// Connections that have said hello, at the same time: dashboards, `watch`, `wait`.
const CONNECTIONS: usize = 512;
/// Further ones that do not stay, so that a look, a cancel and a stop always go through.
const BRIEF: usize = 32;
/// How long each of these is served.
const BRIEF_DEADLINE: Duration = Duration::from_secs(5);
/// Connections that have said nothing yet. One more, and the oldest of them goes.
const SILENT: usize = 64;
/// A client that has said nothing by then is no client.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Subscribers are sent updates no faster than this.
const EVERY_MIN_MS: u64 = 50;
/// Large answers that are under way at the same time.
const LARGE: usize = 32;

/// What every connection needs.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    /// The loop.
    pub(super) mailbox: Mailbox,
    /// Changes with each turn that changed something.
    pub(super) revision: watch::Receiver<Revision>,
    /// This account.
    pub(super) owner: Owner,
}

/// Binds the socket: private from its first moment, also where its path is longer than a socket address may be.
pub(super) fn bind(path: &Path) -> std::io::Result<Door> {
    Door::open(path)
}

/// Who is in.
#[derive(Debug)]
struct Hall {
    /// Those that have said nothing, the oldest first.
    silent: Mutex<VecDeque<(u64, AbortHandle)>>,
    places: Arc<Semaphore>,
    brief: Arc<Semaphore>,
    /// Rights to read a long line, and to have a large answer made.
    long_lines: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Takes connections until the loop ends.
pub(super) async fn listen(mut door: Door, desk: Desk) {
    let hall = Arc::new(Hall {
        silent: Mutex::default(),
        places: Arc::new(Semaphore::new(CONNECTIONS)),
        brief: Arc::new(Semaphore::new(BRIEF)),
        long_lines: Arc::new(Semaphore::new(lines::LONG)),
        large: Arc::new(Semaphore::new(LARGE)),
    });
    for number in 0.. {
        let Ok(stream) = door.next().await else {
            // Out of descriptors: wait for one to come back instead of spinning.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // The account that connected: also where the descriptor has been handed on since.
        let ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == desk.owner.uid || peer.uid() == 0);
        if !ours {
            continue;
        }
        let (own, desk) = (Arc::clone(&hall), desk.clone());
        let task = tokio::spawn(async move {
            // A peer that vanishes mid-word is no event.
            drop(serve(stream, desk, &own, number).await);
            own.spoke(number);
        });
        hall.entered(number, task.abort_handle());
    }
}

impl Hall {
    fn entered(&self, number: u64, task: AbortHandle) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.push_back((number, task));
        if silent.len() > SILENT
            && let Some((_, oldest)) = silent.pop_front()
        {
            oldest.abort();
        }
    }

    /// It is no longer one of the silent.
    fn spoke(&self, number: u64) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.retain(|(other, _)| *other != number);
    }

    /// A place to stay, or only for one request.
    async fn place(&self) -> Option<(OwnedSemaphorePermit, bool)> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some((place, true));
        }
        let brief = timeout(BRIEF_DEADLINE, Arc::clone(&self.brief).acquire_owned()).await;
        Some((brief.ok()?.ok()?, false))
    }

    /// The right to have an answer made that may be large; kept until it is sent.
    async fn large(&self) -> Option<OwnedSemaphorePermit> {
        // Closed never.
        Arc::clone(&self.large).acquire_owned().await.ok()
    }
}

async fn serve(stream: UnixStream, desk: Desk, hall: &Hall, number: u64) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, Arc::clone(&hall.long_lines));
    let hello = timeout(HELLO_DEADLINE, receive(&mut lines)).await;
    let Ok(Ok(Some(ClientMessage::Hello(hello)))) = hello else { return Ok(()) };
    hall.spoke(number);
    let Some((_place, stays)) = hall.place().await else { return Ok(()) };
    let ours =
        Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() };
    send(&mut write, &ServerMessage::Hello(ours), None).await?;
    if hello.protocol != PROTOCOL {
        return Ok(());
    }
    if !stays {
        return timeout(BRIEF_DEADLINE, briefly(lines, write, desk, hall)).await.unwrap_or(Ok(()));
    }
    while let Some(message) = receive(&mut lines).await? {
        let ClientMessage::Request(request) = message else { continue };
        if let Request::Subscribe { every_ms } = request {
            send(&mut write, &ServerMessage::Reply(Reply::Pong), None).await?;
            return subscribed(lines, write, desk, hall, every_ms).await;
        }
        answer(&desk, hall, request, &mut write).await?;
    }
    Ok(())
}

/// Requests of somebody for whom there is no place to stay.
async fn briefly(
    mut lines: Lines,
    mut write: OwnedWriteHalf,
    desk: Desk,
    hall: &Hall,
) -> std::io::Result<()> {
    while let Some(message) = receive(&mut lines).await? {
        match message {
            ClientMessage::Request(Request::Subscribe { .. }) => {
                let message = format!(
                    "the scheduler has {CONNECTIONS} connections already: end a dashboard, a `watch` or a `wait` first"
                );
                send(&mut write, &ServerMessage::Reply(Reply::Unavailable { message }), None).await?;
            }
            ClientMessage::Request(request) => answer(&desk, hall, request, &mut write).await?,
            ClientMessage::Hello(_) => {}
        }
    }
    Ok(())
}

/// Asks the loop, and sends what it says, part by part.
async fn answer(
    desk: &Desk,
    hall: &Hall,
    request: Request,
    write: &mut OwnedWriteHalf,
) -> std::io::Result<()> {
    let may_be_large =
        matches!(request, Request::Query(Query::Snapshot { .. } | Query::Jobs { .. } | Query::Job { .. }));
    let right = if may_be_large { hall.large().await } else { None };
    let (answer, mut parts) = mpsc::unbounded_channel();
    desk.mailbox.send(Message::Client { by: desk.owner.clone(), request, answer }).await;
    loop {
        let ending = || Reply::Unavailable { message: "the scheduler is ending".to_owned() };
        let part = parts.recv().await.unwrap_or_else(ending);
        if !matches!(part, Reply::Jobs { left: 1.., .. }) {
            return send(write, &ServerMessage::Reply(part), right).await;
        }
        send_part(write, &ServerMessage::Reply(part)).await?;
    }
}

/// A subscriber: its requests are still answered, and updates go out when something changed.
async fn subscribed(
    mut lines: Lines,
    mut write: OwnedWriteHalf,
    mut desk: Desk,
    hall: &Hall,
    every_ms: u64,
) -> std::io::Result<()> {
    let every = Duration::from_millis(every_ms.max(EVERY_MIN_MS));
    desk.mailbox.send(Message::Subscribers(1)).await;
    // Also if this task is ended from outside.
    let _gone = Unsubscribe(desk.mailbox.clone());
    let mut since = None;
    desk.revision.mark_changed();
    loop {
        let due = desk.revision.has_changed().unwrap_or(true);
        if due {
            desk.revision.mark_unchanged();
            let right = hall.large().await;
            let Some(news) = news(&desk, since).await else { return Ok(()) };
            since = news.mark;
            if let Some(update) = news.update {
                send(&mut write, &ServerMessage::Update(update), right).await?;
            }
        }
        let rest = tokio::time::Instant::now() + every;
        // Wait for a change, but not less than `every`; requests are answered meanwhile.
        let ended = loop {
            tokio::select! {
                changed = desk.revision.changed(), if tokio::time::Instant::now() >= rest => {
                    desk.revision.mark_changed();
                    break changed.is_err();
                }
                () = tokio::time::sleep_until(rest), if tokio::time::Instant::now() < rest => {}
                line = lines.next() => {
                    let Some(line) = line? else { break true };
                    match serde_json::from_slice(&line) {
                        // What comes next builds on it.
                        Ok(ClientMessage::Request(Request::Query(Query::Snapshot { .. }))) => {
                            let right = hall.large().await;
                            let Some(news) = news(&desk, None).await else { return Ok(()) };
                            since = news.mark;
                            let mut all = Snapshot::default();
                            let _whole = news.update.map(|update| all.fold(*update));
                            send(&mut write, &ServerMessage::Reply(Reply::Snapshot(Box::new(all))), right).await?;
                        }
                        Ok(ClientMessage::Request(request)) => answer(&desk, hall, request, &mut write).await?,
                        Ok(ClientMessage::Hello(_)) | Err(_) => {}
                    }
                }
            }
        };
        if ended {
            return Ok(());
        }
    }
}

/// What changed since a picture; `None`: the scheduler ends.
async fn news(desk: &Desk, since: Option<Mark>) -> Option<News> {
    let (answer, news) = oneshot::channel();
    desk.mailbox.send(Message::Update { since, answer }).await;
    news.await.ok()
}

/// Tells the loop that a subscriber has left.
struct Unsubscribe(Mailbox);

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        let mailbox = self.0.clone();
        // Outside of the runtime everything is over anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move { mailbox.send(Message::Subscribers(-1)).await }));
        }
    }
}

/// The next message; `None` at the end, or where it is no message of this protocol.
async fn receive(lines: &mut Lines) -> std::io::Result<Option<ClientMessage>> {
    Ok(lines.next().await?.and_then(|line| serde_json::from_slice(&line).ok()))
}
