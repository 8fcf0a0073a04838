//! Lines to and from a connection, each with an end in sight: bounded in length, in time once begun, and in number while
//! they are long.

use crate::protocol::ServerMessage;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// A request may be this long: a job file is at most 1 MiB, and JSON may write a byte in four.
const LINE_BYTES: usize = 8 << 20;
/// A line that has begun is whole within this.
const LINE_DEADLINE: Duration = Duration::from_secs(30);
/// What is no longer than this costs nothing to speak of.
const SHORT_BYTES: usize = 64 << 10;
/// Longer lines that may be on their way at the same time.
pub(super) const LONG: usize = 8;
/// A peer that takes nothing of a large answer for so long gets no more of it.
const STALL: Duration = Duration::from_secs(30);
/// What is kept for each connection that says nothing.
const BUFFER_BYTES: usize = 2048;

/// The lines that a peer sends.
#[derive(Debug)]
pub(super) struct Lines {
    read: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
    begun: Option<Instant>,
    rights: Arc<Semaphore>,
    /// The right to a long line.
    right: Option<OwnedSemaphorePermit>,
}

impl Lines {
    pub(super) fn new(read: OwnedReadHalf, rights: Arc<Semaphore>) -> Self {
        let read = BufReader::with_capacity(BUFFER_BYTES, read);
        Self { read, line: Vec::new(), begun: None, rights, right: None }
    }

    /// The next one; `None` at the end, and where there is no end to it. Safe to cancel: what was read is kept.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            if self.line.len() > SHORT_BYTES && self.right.is_none() {
                let right = Arc::clone(&self.rights).acquire_owned();
                self.right = in_time(self.begun, right).await?.ok();
            }
            let bytes = in_time(self.begun, self.read.fill_buf()).await??;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |at| at + 1);
            if self.line.len() + taken > LINE_BYTES {
                return Ok(None);
            }
            self.line.extend_from_slice(&bytes[..taken]);
            self.read.consume(taken);
            self.begun.get_or_insert_with(Instant::now);
            if end.is_some() {
                (self.begun, self.right) = (None, None);
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// What is waited for comes before a line that has begun is too old.
async fn in_time<T>(begun: Option<Instant>, wait: impl Future<Output = T>) -> std::io::Result<T> {
    match begun {
        Some(begun) => {
            timeout_at(begun + LINE_DEADLINE, wait).await.map_err(|_| Error::from(ErrorKind::TimedOut))
        }
        None => Ok(wait.await),
    }
}

/// Sends a message. A short one may wait for its reader as long as that likes: a stopped dashboard, a full pager. A large
/// one keeps its right until it is taken, and must be taken.
pub(super) async fn send(
    write: &mut OwnedWriteHalf,
    message: &ServerMessage,
    right: Option<OwnedSemaphorePermit>,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() <= SHORT_BYTES {
        drop(right);
        return write.write_all(&line).await;
    }
    push(write, &line).await?;
    drop(right);
    Ok(())
}

/// Sends a message that another one of the same large answer follows: it must be taken.
pub(super) async fn send_part(write: &mut OwnedWriteHalf, message: &ServerMessage) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    push(write, &line).await
}

async fn push(write: &mut OwnedWriteHalf, mut left: &[u8]) -> std::io::Result<()> {
    while !left.is_empty() {
        match timeout(STALL, write.write(left)).await {
            Ok(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
            Ok(taken) => left = &left[taken?..],
            Err(_) => return Err(ErrorKind::TimedOut.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Reply;
    use tokio::net::UnixStream;

    fn run<T>(test: impl Future<Output = T>) -> T {
        // Time stands still until everybody waits for it.
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(test)
    }

    fn pair(rights: usize) -> (UnixStream, Lines, OwnedWriteHalf) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (read, write) = ours.into_split();
        (theirs, Lines::new(read, Arc::new(Semaphore::new(rights))), write)
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        run(async {
            let (mut peer, mut lines, _write) = pair(1);
            peer.write_all(b"one\ntw").await.unwrap();
            assert_eq!(lines.next().await.unwrap().unwrap(), b"one\n");
            // Cancelled in the middle, it goes on where it was.
            assert!(timeout(Duration::from_millis(5), lines.next()).await.is_err());
            peer.write_all(b"o\n").await.unwrap();
            assert_eq!(lines.next().await.unwrap().unwrap(), b"two\n");
            drop(peer);
            assert_eq!(lines.next().await.unwrap(), None);
        });
    }

    #[test]
    fn a_line_that_has_begun_ends_in_time_and_one_that_has_not_may_be_waited_for() {
        run(async {
            let (mut peer, mut lines, _write) = pair(1);
            assert!(timeout(LINE_DEADLINE * 10, lines.next()).await.is_err(), "nothing was said yet");
            peer.write_all(b"{\"requ").await.unwrap();
            let error = lines.next().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        run(async {
            let (mut peer, mut lines, write) = pair(1);
            let writer = tokio::spawn(async move {
                let chunk = vec![b'x'; 1 << 16];
                while peer.write_all(&chunk).await.is_ok() {}
            });
            assert_eq!(lines.next().await.unwrap(), None);
            assert!(lines.line.len() <= LINE_BYTES);
            drop((lines, write));
            writer.await.unwrap();
        });
    }

    #[test]
    fn without_a_right_a_long_line_waits_with_what_it_has_and_not_for_ever() {
        run(async {
            let (mut peer, mut lines, write) = pair(0);
            let writer = tokio::spawn(async move { peer.write_all(&vec![b'x'; 1 << 20]).await });
            assert_eq!(lines.next().await.unwrap_err().kind(), ErrorKind::TimedOut);
            assert!(lines.line.len() <= SHORT_BYTES + BUFFER_BYTES);
            drop((lines, write));
            assert!(writer.await.unwrap().is_err());
        });
    }

    #[test]
    fn a_large_answer_must_be_taken_and_a_short_one_may_wait() {
        run(async {
            let (_peer, _lines, mut write) = pair(1);
            let rights = Arc::new(Semaphore::new(1));
            let say = |length: usize| ServerMessage::Reply(Reply::Ok { message: "x".repeat(length) });
            let right = Arc::clone(&rights).acquire_owned().await.unwrap();
            let error = send(&mut write, &say(4 << 20), Some(right)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(rights.available_permits(), 1);
            // The peer's buffer is full: a short message waits, and holds no right meanwhile.
            let right = Arc::clone(&rights).acquire_owned().await.unwrap();
            assert!(timeout(STALL * 10, send(&mut write, &say(10), Some(right))).await.is_err());
            assert_eq!(rights.available_permits(), 1);
        });
    }
}
