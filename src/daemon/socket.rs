//! Connections: newline-delimited JSON, one task each. Knows the protocol's frame and nothing of what is asked.

use super::message::{Mailbox, Message};
use crate::model::{Owner, Revision};
use crate::protocol::{ClientMessage, Hello, PROTOCOL, Reply, Request, ServerMessage};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};

/// Connections at the same time; further ones are closed at once.
const CONNECTIONS: usize = 256;
/// A request may be this long: a job file is at most 1 MiB, and JSON may write a byte in four.
const LINE_BYTES: u64 = 8 << 20;
/// A client that has said nothing by then is no client.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Subscribers are sent updates no faster than this.
const EVERY_MIN_MS: u64 = 50;

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
pub(super) fn bind(path: &Path) -> std::io::Result<UnixListener> {
    let missing = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let dir = path.parent().ok_or_else(missing)?;
    let name = path.file_name().ok_or_else(missing)?;
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let held = rustix::fs::open(
        dir,
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    let short =
        Path::new("/proc/self/fd").join(std::os::fd::AsRawFd::as_raw_fd(&held).to_string()).join(name);
    // The directory is 0700; the mask only makes sure of the socket itself.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(short);
    rustix::process::umask(before);
    listener
}

/// Takes connections until the loop ends.
pub(super) async fn listen(listener: UnixListener, desk: Desk) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: wait for one to come back instead of spinning.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = std::sync::Arc::clone(&places).try_acquire_owned() else { continue };
        let desk = desk.clone();
        tokio::spawn(async move {
            // A peer that vanishes mid-word is no event.
            drop(serve(stream, desk).await);
            drop(place);
        });
    }
}

async fn serve(stream: UnixStream, desk: Desk) -> std::io::Result<()> {
    let peer = stream.peer_cred()?;
    if peer.uid() != desk.owner.uid && peer.uid() != 0 {
        return Ok(());
    }
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let Ok(Some(ClientMessage::Hello(hello))) =
        tokio::time::timeout(HELLO_DEADLINE, receive(&mut read)).await.unwrap_or(Ok(None))
    else {
        return Ok(());
    };
    let ours =
        Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() };
    send(&mut write, &ServerMessage::Hello(ours)).await?;
    if hello.protocol != PROTOCOL {
        return Ok(());
    }
    while let Some(message) = receive(&mut read).await? {
        let ClientMessage::Request(request) = message else { continue };
        if let Request::Subscribe { every_ms } = request {
            send(&mut write, &ServerMessage::Reply(Reply::Pong)).await?;
            return subscribed(read, write, desk, every_ms).await;
        }
        ask(&desk, request, &mut write).await?;
    }
    Ok(())
}

/// A subscriber: its requests are still answered, and updates go out when something changed.
async fn subscribed(
    mut read: BufReader<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
    mut desk: Desk,
    every_ms: u64,
) -> std::io::Result<()> {
    let every = Duration::from_millis(every_ms.max(EVERY_MIN_MS));
    desk.mailbox.send(Message::Subscribers(1)).await;
    let mut since = None;
    let mut line = Vec::new();
    let result = loop {
        let due = desk.revision.has_changed().unwrap_or(true) || since.is_none();
        if due {
            desk.revision.mark_unchanged();
            let (answer, update) = oneshot::channel();
            desk.mailbox.send(Message::Update { since, answer }).await;
            let Ok(update) = update.await else { break Ok(()) };
            since = Some(update.revision);
            if let Err(error) = send(&mut write, &ServerMessage::Update(update)).await {
                break Err(error);
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
                read = read_line(&mut read, &mut line) => {
                    match read {
                        Ok(true) => {}
                        Ok(false) | Err(_) => break true,
                    }
                    if let Ok(ClientMessage::Request(request)) = serde_json::from_slice(&line)
                        && ask(&desk, request, &mut write).await.is_err()
                    {
                        break true;
                    }
                    line.clear();
                }
            }
        };
        if ended {
            break Ok(());
        }
    };
    desk.mailbox.send(Message::Subscribers(-1)).await;
    result
}

/// Has a request answered, part by part.
async fn ask(desk: &Desk, request: Request, write: &mut OwnedWriteHalf) -> std::io::Result<()> {
    let (answer, mut parts) = mpsc::unbounded_channel();
    desk.mailbox.send(Message::Client { by: desk.owner.clone(), request, answer }).await;
    loop {
        let part = parts
            .recv()
            .await
            .unwrap_or_else(|| Reply::Unavailable { message: "the scheduler is ending".to_owned() });
        let more = matches!(part, Reply::Jobs { left: 1.., .. });
        send(write, &ServerMessage::Reply(part)).await?;
        if !more {
            return Ok(());
        }
    }
}

/// The next message; `None` at the end, or where it is no message of this protocol.
async fn receive(read: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<ClientMessage>> {
    let mut line = Vec::new();
    if !read_line(read, &mut line).await? {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&line).ok())
}

/// Appends up to a line's end. Safe to cancel: what was read stays in `line`.
async fn read_line(read: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> std::io::Result<bool> {
    let room = LINE_BYTES.saturating_sub(line.len() as u64);
    read.take(room).read_until(b'\n', line).await?;
    Ok(line.last() == Some(&b'\n'))
}

async fn send(write: &mut OwnedWriteHalf, message: &ServerMessage) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    write.write_all(&line).await
}
