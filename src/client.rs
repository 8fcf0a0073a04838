//! The scheduler's socket, from the client's side: what the command line and the dashboard speak through.
//!
//! Blocking, one request at a time; a subscription is read through the halves of [`Client::split`]. It knows the
//! protocol and nothing of what is asked. The other side is the shell's.

use crate::config::Paths;
use crate::protocol::{ClientMessage, Hello, PROTOCOL, Reply, Request, ServerMessage, Update};
use rustix::event::{Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// How long a reply may take: the scheduler may be making something durable on a slow disk.
pub const REPLY_TIMEOUT: Duration = Duration::from_mins(1);
/// For how long a connection that ends before its hello is made again, and how soon.
const UNHEARD_MS: u64 = 500;
const UNHEARD_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// What a Unix socket's address holds.
const LONGEST_PATH: usize = 107;
/// No message is longer: a snapshot of 100,000 jobs is a tenth of it.
const LONGEST_MESSAGE: u64 = 1 << 30;

/// Why the scheduler cannot be asked.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no scheduler is running for {}", state.display())]
    NoScheduler {
        /// The state directory.
        state: PathBuf,
    },
    /// One holds the state but does not answer: never start a second.
    #[error(
        "the scheduler of {} does not answer{}",
        state.display(),
        holder.map(|pid| format!(" (process {pid} holds its lock)")).unwrap_or_default()
    )]
    NotAnswering {
        /// The state directory.
        state: PathBuf,
        /// The process that holds the store's lock, if the system tells.
        holder: Option<u32>,
    },
    /// The scheduler is of another version.
    #[error("the scheduler speaks protocol {theirs}, this program {ours}: {remedy}")]
    Version {
        /// [`PROTOCOL`] of this program.
        ours: u32,
        /// The scheduler's.
        theirs: u32,
        /// One line.
        remedy: &'static str,
    },
    /// The socket is served by another account.
    #[error("the socket {} is served by user {uid}, not by you", path.display())]
    NotYours {
        /// The socket.
        path: PathBuf,
        /// Who serves it.
        uid: u32,
    },
    /// The socket is not open to this account.
    #[error(
        "the socket {} is not open to you{}",
        path.display(),
        uid.map(|uid| format!(": it is user {uid}'s")).unwrap_or_default()
    )]
    Denied {
        /// The socket.
        path: PathBuf,
        /// Whose it is, or the folder on the way that cannot be looked into.
        uid: Option<u32>,
    },
    /// The scheduler ended, or closed the connection.
    #[error("the scheduler closed the connection")]
    Closed,
    /// It sent something that is no message of this protocol.
    #[error("the scheduler sent something unreadable")]
    Unreadable {
        /// What about it.
        #[source]
        source: serde_json::Error,
    },
    /// A message grew beyond all bounds.
    #[error("the scheduler sent a message of more than {LONGEST_MESSAGE} bytes")]
    TooLong,
    /// It sent a message where another kind was due.
    #[error("the scheduler sent {got} where {due} was due")]
    OutOfTurn {
        /// What came.
        got: &'static str,
        /// What should have come.
        due: &'static str,
    },
    /// A request cannot be written down.
    #[error("cannot encode a request")]
    Encode {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which socket.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
}

/// A connection to the scheduler.
#[derive(Debug)]
pub struct Client {
    reader: Reader,
    writer: Writer,
    server: Hello,
    /// Updates that came while a reply was awaited.
    updates: VecDeque<Update>,
}

/// The reading half.
#[derive(Debug)]
pub struct Reader {
    stream: BufReader<UnixStream>,
    /// What has come of a message so far: kept when a wait times out.
    partial: Vec<u8>,
    path: PathBuf,
}

/// The writing half.
#[derive(Debug)]
pub struct Writer {
    stream: UnixStream,
    path: PathBuf,
}

impl Client {
    /// Connects and says hello. `timeout` bounds the whole greeting; replies have [`REPLY_TIMEOUT`].
    ///
    /// A connection that ends before the other side's hello is made again: nothing was asked on it yet. A scheduler
    /// that is killed while it starts a process leaves its listening socket to that process for a moment, and who
    /// connects then is heard by nobody.
    pub fn connect(paths: &Paths, timeout: Duration) -> Result<Self, ClientError> {
        let patience = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).min(UNHEARD_MS);
        let until = crate::clock::monotonic().0 + patience;
        loop {
            match Self::connect_once(paths, timeout) {
                Err(ClientError::Closed) if crate::clock::monotonic().0 < until => {
                    // Nothing tells of the end of whoever has the socket now.
                    let _interrupted = poll(&mut [], Some(&UNHEARD_PAUSE));
                }
                other => return other,
            }
        }
    }

    fn connect_once(paths: &Paths, timeout: Duration) -> Result<Self, ClientError> {
        let path = paths.socket();
        let stream = open(paths, &path, timeout)?;
        check_peer(&stream, &path)?;
        let reading = stream.try_clone().map_err(|source| ClientError::Io {
            doing: "use",
            path: path.clone(),
            source,
        })?;
        let mut client = Self {
            reader: Reader { stream: BufReader::new(reading), partial: Vec::new(), path: path.clone() },
            writer: Writer { stream, path },
            server: Hello { protocol: 0, version: String::new(), pid: 0 },
            updates: VecDeque::new(),
        };
        client.greet(paths, timeout)?;
        client.reader.set_timeout(Some(REPLY_TIMEOUT))?;
        Ok(client)
    }

    fn greet(&mut self, paths: &Paths, timeout: Duration) -> Result<(), ClientError> {
        self.reader.set_timeout(Some(timeout))?;
        let hello = Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        };
        self.writer.write(&ClientMessage::Hello(hello))?;
        match self.reader.next_message() {
            Ok(Some(ServerMessage::Hello(theirs))) if theirs.protocol == PROTOCOL => {
                self.server = theirs;
                Ok(())
            }
            Ok(Some(ServerMessage::Hello(theirs))) => Err(ClientError::Version {
                ours: PROTOCOL,
                theirs: theirs.protocol,
                remedy: "`overnight stop` ends it (jobs go on); then start it again",
            }),
            Ok(Some(other)) => Err(ClientError::OutOfTurn { got: word(&other), due: "its hello" }),
            Ok(None) => Err(not_answering(paths)),
            Err(error) => Err(error),
        }
    }

    /// What the scheduler said of itself.
    pub const fn server(&self) -> &Hello {
        &self.server
    }

    /// Asks, and waits for the answer. Updates that come first are kept for [`Client::next_update`].
    pub fn request(&mut self, request: Request) -> Result<Reply, ClientError> {
        self.writer.send(request)?;
        self.next_part()
    }

    /// The next part of an answer that said that more follows.
    pub fn next_part(&mut self) -> Result<Reply, ClientError> {
        loop {
            match self.reader.next_message()? {
                Some(ServerMessage::Reply(reply)) => return Ok(reply),
                Some(ServerMessage::Update(update)) => self.updates.push_back(*update),
                Some(other @ ServerMessage::Hello(_)) => {
                    return Err(ClientError::OutOfTurn { got: word(&other), due: "a reply" });
                }
                None => {
                    let path = self.reader.path.clone();
                    let source = ErrorKind::TimedOut.into();
                    return Err(ClientError::Io { doing: "get an answer on", path, source });
                }
            }
        }
    }

    /// After `Subscribe`: waits for the next update, however long that takes.
    pub fn next_update(&mut self) -> Result<Update, ClientError> {
        if let Some(update) = self.updates.pop_front() {
            return Ok(update);
        }
        self.reader.set_timeout(None)?;
        let update = loop {
            match self.reader.next_message()? {
                Some(ServerMessage::Update(update)) => break *update,
                Some(other) => return Err(ClientError::OutOfTurn { got: word(&other), due: "an update" }),
                None => {}
            }
        };
        self.reader.set_timeout(Some(REPLY_TIMEOUT))?;
        Ok(update)
    }

    /// Whether [`Client::next_update`] would return without waiting for the scheduler.
    pub fn has_update(&self) -> bool {
        !self.updates.is_empty() || !self.reader.stream.buffer().is_empty()
    }

    /// For a subscriber with threads of its own. The reading half waits without a limit.
    pub fn split(self) -> Result<(Reader, Writer), ClientError> {
        let mut reader = self.reader;
        reader.set_timeout(None)?;
        Ok((reader, self.writer))
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writer.stream.as_fd()
    }
}

impl Reader {
    /// The next message; `None` if the timeout passed first. A message that came in part is not lost.
    pub fn next_message(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        loop {
            let left = (LONGEST_MESSAGE + 1).saturating_sub(self.partial.len() as u64);
            match self.stream.by_ref().take(left).read_until(b'\n', &mut self.partial) {
                Ok(0) if left > 0 => return Err(ClientError::Closed),
                Ok(_) if self.partial.ends_with(b"\n") => break,
                Ok(_) if self.partial.len() as u64 > LONGEST_MESSAGE => return Err(ClientError::TooLong),
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return Err(ClientError::Closed),
                    _ => {
                        return Err(ClientError::Io {
                            doing: "read",
                            path: self.path.clone(),
                            source: error,
                        });
                    }
                },
            }
        }
        let message = serde_json::from_slice(&self.partial);
        self.partial.clear();
        message.map(Some).map_err(|source| ClientError::Unreadable { source })
    }

    /// How long [`Reader::next_message`] waits; `None`: until something comes.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        self.stream.get_ref().set_read_timeout(timeout).map_err(|source| ClientError::Io {
            doing: "use",
            path: self.path.clone(),
            source,
        })
    }
}

impl Writer {
    /// Sends one request; its reply comes through the reading half.
    pub fn send(&mut self, request: Request) -> Result<(), ClientError> {
        self.write(&ClientMessage::Request(request))
    }

    /// Ends the connection, also for a thread that waits in the reading half.
    pub fn close(&self) {
        // Already closed by the other side: that is what was wanted.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn write(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        let mut line = serde_json::to_vec(message).map_err(|source| ClientError::Encode { source })?;
        line.push(b'\n');
        self.stream.write_all(&line).map_err(|source| match source.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ClientError::Closed,
            _ => ClientError::Io { doing: "write to", path: self.path.clone(), source },
        })
    }
}

const fn word(message: &ServerMessage) -> &'static str {
    match message {
        ServerMessage::Hello(_) => "a hello",
        ServerMessage::Reply(_) => "a reply",
        ServerMessage::Update(_) => "an update",
    }
}

/// Ends a scheduler of whatever version: a hello is not needed for that, and jobs go on. Returns when it is gone.
pub fn end_scheduler(paths: &Paths, timeout: Duration) -> Result<(), ClientError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let path = paths.socket();
    let stream = open(paths, &path, timeout)?;
    let peer = check_peer(&stream, &path)?;
    let io = |doing: &'static str, errno: rustix::io::Errno| ClientError::Io {
        doing,
        path: path.clone(),
        source: errno.into(),
    };
    let process = match pidfd_open(peer, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(errno) => return Err(io("end the server of", errno)),
    };
    // The number was still the server's when the descriptor was made, if its end of the connection is open after that.
    let mut ends = [PollFd::new(&stream, PollFlags::HUP)];
    poll(&mut ends, Some(&Timespec::default())).map_err(|errno| io("look at", errno))?;
    if ends[0].revents().contains(PollFlags::HUP) {
        return Ok(());
    }
    pidfd_send_signal(&process, Signal::TERM).map_err(|errno| io("end the server of", errno))?;
    let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)) {
        Ok(0) => Err(not_answering(paths)),
        Ok(_) => Ok(()),
        Err(errno) => Err(io("wait for the server of", errno)),
    }
}

/// The process that serves the socket, if it is ours.
fn check_peer(stream: &UnixStream, path: &Path) -> Result<rustix::process::Pid, ClientError> {
    let peer = socket_peercred(stream).map_err(|errno| ClientError::Io {
        doing: "look who serves",
        path: path.to_owned(),
        source: errno.into(),
    })?;
    if peer.uid != rustix::process::geteuid() {
        return Err(ClientError::NotYours { path: path.to_owned(), uid: peer.uid.as_raw() });
    }
    Ok(peer.pid)
}

/// Connects; a full backlog counts as no answer, not as a reason to hang.
fn open(paths: &Paths, path: &Path, timeout: Duration) -> Result<UnixStream, ClientError> {
    use rustix::io::Errno;
    let io = |doing: &'static str, errno: Errno| ClientError::Io {
        doing,
        path: path.to_owned(),
        source: errno.into(),
    };
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|errno| io("make a socket for", errno))?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout)).map_err(|errno| io("use", errno))?;
    match address(paths, path).and_then(|(address, _held)| rustix::net::connect(&socket, &address)) {
        Ok(()) => Ok(UnixStream::from(socket)),
        Err(Errno::AGAIN | Errno::TIMEDOUT) => Err(not_answering(paths)),
        Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => Err(nobody(paths)),
        Err(Errno::ACCESS | Errno::PERM) => {
            // The nearest that can be looked at: beyond it nobody else sees anything.
            let uid = path.ancestors().find_map(|place| std::fs::symlink_metadata(place).ok());
            Err(ClientError::Denied { path: path.to_owned(), uid: uid.map(|found| found.uid()) })
        }
        Err(errno) => Err(io("connect to", errno)),
    }
}

/// The socket's address; a path that is too long for one goes through a descriptor of its directory.
fn address(paths: &Paths, path: &Path) -> rustix::io::Result<(SocketAddrUnix, Option<OwnedFd>)> {
    use rustix::fs::{Mode, OFlags};
    if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
        return Ok((SocketAddrUnix::new(path)?, None));
    }
    let directory =
        rustix::fs::open(&paths.state, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = format!("/proc/self/fd/{}/overnight.sock", directory.as_raw_fd());
    Ok((SocketAddrUnix::new(short)?, Some(directory)))
}

/// Nobody listens: either there is no scheduler, or one holds the lock and has no socket.
fn nobody(paths: &Paths) -> ClientError {
    let state = paths.state.clone();
    match lock(&paths.store()) {
        Lock::Held(holder) => ClientError::NotAnswering { state, holder },
        Lock::Free => ClientError::NoScheduler { state },
    }
}

fn not_answering(paths: &Paths) -> ClientError {
    let holder = match lock(&paths.store()) {
        Lock::Held(holder) => holder,
        Lock::Free => None,
    };
    ClientError::NotAnswering { state: paths.state.clone(), holder }
}

/// Whether somebody holds a lock on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Nobody does, as far as this process can see.
    Free,
    /// Somebody does; the process, if the system tells.
    Held(Option<u32>),
}

/// Who holds a lock on this file, as the kernel lists it. Looking takes no lock, so it never disturbs a start.
pub fn lock(file: &Path) -> Lock {
    let Ok(inode) = std::fs::metadata(file) else { return Lock::Free };
    let device = inode.dev();
    let wanted = format!("{:02x}:{:02x}:{}", libc::major(device), libc::minor(device), inode.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields.as_slice() {
            // A waiter's line has an arrow in second place.
            [_, _, _, _, pid, id, ..] if *id == wanted => Some(pid.parse().ok()),
            _ => None,
        }
    });
    holder.map_or(Lock::Free, Lock::Held)
}

#[cfg(test)]
mod tests;
