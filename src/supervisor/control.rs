//! The supervisor's control channels: the one it was started with, and its socket in the run directory, so that a
//! scheduler that comes later finds it. The end of a channel changes nothing.

use super::message::{self, LINE_BOUND, News, Order};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

/// The socket's name in the run directory.
pub const SOCKET: &str = "ctl.sock";

/// Unread news beyond this ends a channel: its scheduler hangs, and another one may come.
const OUTPUT_BOUND: usize = 1 << 20;

/// All channels.
#[derive(Debug, Default)]
pub(super) struct Control {
    listener: Option<UnixListener>,
    peers: Vec<Peer>,
}

#[derive(Debug)]
struct Peer {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    open: bool,
}

impl Control {
    /// Listens in the current directory: the name is short there, however long the path is.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let listener = UnixListener::bind(SOCKET)?;
        rustix::fs::chmod(SOCKET, rustix::fs::Mode::from_raw_mode(0o600))?;
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Takes on a channel, with what was already read from it.
    pub(super) fn add(&mut self, stream: UnixStream, input: Vec<u8>) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.peers.push(Peer { stream, input, output: Vec::new(), open: true });
        Ok(())
    }

    /// Whether a scheduler is there.
    pub(super) fn is_connected(&self) -> bool {
        !self.peers.is_empty()
    }

    /// What to wait for.
    pub(super) fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listener =
            self.listener.iter().map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        let peers = self.peers.iter().map(|peer| {
            let flags = if peer.output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            PollFd::from_borrowed_fd(peer.stream.as_fd(), flags)
        });
        listener.chain(peers)
    }

    /// Takes on whoever connected; each is told `greeting` first.
    pub(super) fn accept(&mut self, greeting: impl Fn() -> Vec<News>) {
        loop {
            let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept) else { return };
            let own = rustix::process::geteuid();
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            if !peer.is_ok_and(|peer| peer.uid == own || peer.uid.is_root()) {
                continue;
            }
            if self.add(stream, Vec::new()).is_ok()
                && let Some(peer) = self.peers.last_mut()
            {
                for news in greeting() {
                    peer.tell(&news);
                }
            }
        }
    }

    /// All whole orders that have arrived, in order; channels that ended are let go.
    pub(super) fn orders(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        for peer in &mut self.peers {
            peer.flush();
            peer.read();
            while let Some(message) = message::take::<Order>(&mut peer.input) {
                orders.extend(message);
            }
            peer.input.shrink_to_fit();
        }
        self.peers.retain(|peer| peer.open);
        orders
    }

    /// Tells every scheduler that is there.
    pub(super) fn tell(&mut self, news: &News) {
        self.peers.iter_mut().for_each(|peer| peer.tell(news));
    }
}

impl Peer {
    fn tell(&mut self, news: &News) {
        self.output.extend(message::line(news));
        self.flush();
        self.open &= self.output.len() <= OUTPUT_BOUND;
    }

    fn flush(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(written @ 1..) => {
                    self.output.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    // What it still has to say to us is read first; then the end of the channel shows.
                    self.output.clear();
                    return;
                }
            }
        }
        self.output.shrink_to_fit();
    }

    fn read(&mut self) {
        let mut buffer = [0; 4096];
        while self.input.len() <= LINE_BOUND {
            match self.stream.read(&mut buffer) {
                Ok(read @ 1..) => self.input.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        self.open = false;
    }
}
