//! The engine's thread: it holds the channels to all supervisors, writes orders, reads news and notices their end.
//!
//! It waits in one `poll` and never for a supervisor: what takes time (a tree to be ended, output to be collected) goes
//! to a thread of its own in [`settle`](super::settle).

use super::settle::{self, Lost};
use super::{Report, translate};
use crate::cgroup::Layout;
use crate::model::{LeaseId, Token};
use crate::sched::EngineReport;
use crate::supervisor::message::{self, News};
use crate::supervisor::record::Record;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// One supervisor's channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) lease: LeaseId,
    pub(super) token: Token,
    pub(super) run_dir: PathBuf,
    pub(super) stream: UnixStream,
    /// The process, if it is a child of ours.
    pub(super) child: Option<Child>,
    pub(super) output: Vec<u8>,
}

/// The way to the thread; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Channels {
    tell: Sender<Word>,
    wake: Arc<OwnedFd>,
    known: Arc<Mutex<HashSet<LeaseId>>>,
    quit: Arc<AtomicBool>,
    layout: Arc<Layout>,
}

#[derive(Debug)]
enum Word {
    Add(Box<Channel>),
    Send(LeaseId, Vec<u8>),
}

#[derive(Debug)]
struct Line {
    channel: Channel,
    input: Vec<u8>,
    /// Nothing more is expected of it: its output is home, or it never began.
    home: bool,
    /// Some of its processes have outlived their kill.
    outlived: bool,
    open: bool,
}

impl Channels {
    /// Starts the thread.
    pub(super) fn open(
        report: Report,
        layout: Arc<Layout>,
    ) -> io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (tell, words) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let channels = Self { tell, wake, known: Arc::default(), quit: Arc::default(), layout };
        let own = channels.clone();
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || Thread { channels: own, words, report, lines: HashMap::new() }.run())?;
        Ok((channels, thread))
    }

    /// Takes on a supervisor.
    pub(super) fn add(&self, channel: Channel) {
        self.known().insert(channel.lease);
        self.word(Word::Add(Box::new(channel)));
    }

    /// Sends an order. `false` if the lease has no supervisor.
    pub(super) fn send(&self, lease: LeaseId, line: Vec<u8>) -> bool {
        let known = self.known().contains(&lease);
        if known {
            self.word(Word::Send(lease, line));
        }
        known
    }

    /// Whether the lease has a supervisor that is listened to.
    pub(super) fn has(&self, lease: LeaseId) -> bool {
        self.known().contains(&lease)
    }

    /// Where groups are made.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the engine is closing.
    pub(super) fn is_closing(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    /// Ends the thread; the supervisors go on.
    pub(super) fn close(&self) {
        self.quit.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn word(&self, word: Word) {
        // The thread ends only when the engine is dropped; then nobody is listened to any more.
        let _ = self.tell.send(word);
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<LeaseId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Thread {
    channels: Channels,
    words: Receiver<Word>,
    report: Report,
    lines: HashMap<LeaseId, Line>,
}

impl Thread {
    fn run(mut self) {
        while !self.channels.is_closing() {
            self.wait();
            let _ = rustix::io::read(&*self.channels.wake, &mut [0; 8]);
            while let Ok(word) = self.words.try_recv() {
                self.obey(word);
            }
            let mut ended = Vec::new();
            for (lease, line) in &mut self.lines {
                line.flush();
                line.read();
                line.take(&self.report);
                if !line.open {
                    ended.push(*lease);
                }
            }
            for lease in ended {
                self.ended(lease);
            }
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&*self.channels.wake, PollFlags::IN)];
        fds.extend(self.lines.values().map(|line| {
            let flags =
                if line.channel.output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            PollFd::new(&line.channel.stream, flags)
        }));
        let _ = poll(&mut fds, None);
    }

    fn obey(&mut self, word: Word) {
        match word {
            Word::Add(channel) => {
                if channel.stream.set_nonblocking(true).is_ok() {
                    let (home, outlived) = (false, false);
                    let line = Line { input: Vec::new(), home, outlived, open: true, channel: *channel };
                    self.lines.insert(line.channel.lease, line);
                }
            }
            Word::Send(lease, bytes) => {
                if let Some(line) = self.lines.get_mut(&lease) {
                    line.channel.output.extend(bytes);
                }
            }
        }
    }

    /// A channel has ended: either all is said, or its supervisor is gone before its time.
    fn ended(&mut self, lease: LeaseId) {
        let Some(Line { channel, home, outlived, .. }) = self.lines.remove(&lease) else { return };
        self.channels.known().remove(&lease);
        let Channel { token, run_dir, mut child, .. } = channel;
        let lost = Lost { lease, token, run_dir, witnessed: true };
        let (channels, report) = (self.channels.clone(), self.report.clone());
        let work = move || {
            if let Some(child) = &mut child {
                let _ = child.wait();
            }
            if !home || outlived {
                settle::settle(vec![lost], &report, &channels);
            }
        };
        // Without a thread the lease is settled by the next survey.
        let _ = std::thread::Builder::new().name("engine-settle".to_owned()).spawn(work);
    }
}

impl Line {
    fn flush(&mut self) {
        let Channel { stream, output, .. } = &mut self.channel;
        while !output.is_empty() {
            match stream.write(output) {
                Ok(written @ 1..) => {
                    output.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What it still has to say is read first; then the end of the channel shows.
                Ok(_) | Err(_) => output.clear(),
            }
        }
    }

    fn read(&mut self) {
        let mut buffer = [0; 16384];
        while self.input.len() <= message::LINE_BOUND {
            match self.channel.stream.read(&mut buffer) {
                Ok(read @ 1..) => self.input.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => break,
            }
        }
        self.open = false;
    }

    fn take(&mut self, report: &Report) {
        let Channel { lease, token, run_dir, .. } = &self.channel;
        while let Some(message) = message::take::<News>(&mut self.input) {
            match message {
                Some(News::Record(record)) => {
                    self.outlived = match &record {
                        Record::Outlived { .. } => true,
                        Record::Gone { .. } => false,
                        _ => self.outlived,
                    };
                    self.home = match &record {
                        Record::Collected { .. } | Record::NotLaunched { .. } | Record::Void { .. } => true,
                        Record::Intent(_) => false,
                        _ => self.home,
                    };
                    if let Some(news) = translate::report(*lease, run_dir, &record) {
                        report(news);
                    }
                }
                Some(News::Heartbeat(heartbeat)) => {
                    report(EngineReport::Heartbeat { lease: *lease, at: heartbeat.at });
                }
                Some(News::CollectionWaits { why }) => {
                    report(EngineReport::CollectionWaits { lease: *lease, why });
                }
                Some(News::Collecting { percent }) => {
                    report(EngineReport::Collecting { lease: *lease, percent });
                }
                // A supervisor of something else: whoever put it there, it is not listened to.
                Some(News::Hello { token: other, .. }) if other != *token => self.open = false,
                Some(News::Hello { .. } | News::Pong) | None => {}
            }
        }
    }
}
