//! A scheduler within the process, for the real dashboard: a snapshot, what it answers, and what it tells by itself.

use overnight::protocol::{Query, Reply, Request, ServerMessage, Snapshot};
use overnight::tui::{Connector, Session, SessionReader, SessionWriter};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Such a scheduler.
#[derive(Clone)]
pub(crate) struct Double {
    snap: Snapshot,
    answers: fn(&Snapshot, &Request) -> Option<Reply>,
    tells: Option<fn(Snapshot, &Sender<ServerMessage>)>,
    is_silent: bool,
}

impl Double {
    /// One that shows the snapshot and has nothing to say to anything else.
    pub(crate) fn new(snap: Snapshot) -> Self {
        Self { snap, answers: |_, _| None, tells: None, is_silent: false }
    }

    /// With these answers; what has none is asked for the snapshot, or a ping.
    pub(crate) fn answering(self, answers: fn(&Snapshot, &Request) -> Option<Reply>) -> Self {
        Self { answers, ..self }
    }

    /// With news from a thread of its own.
    pub(crate) fn telling(self, tells: fn(Snapshot, &Sender<ServerMessage>)) -> Self {
        Self { tells: Some(tells), ..self }
    }

    /// After its snapshot it never says a word.
    pub(crate) fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }
}

impl Connector for Double {
    fn connect(&mut self) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(self.clone()))
    }
}

struct Says(Receiver<ServerMessage>);
struct Hears(Double, Sender<ServerMessage>);

impl Session for Double {
    fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>) {
        let (say, says) = channel();
        if self.is_silent {
            // The replies to the subscription and to the question for everything.
            say.send(ServerMessage::Reply(Reply::Pong)).unwrap();
            say.send(ServerMessage::Reply(Reply::Snapshot(Box::new(self.snap.clone())))).unwrap();
        }
        if let Some(tells) = self.tells {
            let (say, snap) = (say.clone(), self.snap.clone());
            std::thread::spawn(move || tells(snap, &say));
        }
        (Box::new(Says(says)), Box::new(Hears(*self, say)))
    }
}

impl SessionReader for Says {
    fn read(&mut self) -> Result<Option<ServerMessage>, String> {
        Ok(self.0.recv().ok())
    }
}

impl SessionWriter for Hears {
    fn send(&mut self, request: &Request) -> Result<(), String> {
        let Self(double, say) = self;
        if double.is_silent {
            return Ok(());
        }
        let reply = (double.answers)(&double.snap, request).unwrap_or_else(|| match request {
            Request::Query(Query::Snapshot { .. }) => Reply::Snapshot(Box::new(double.snap.clone())),
            _ => Reply::Pong,
        });
        say.send(ServerMessage::Reply(reply)).map_err(|_| "closed".to_owned())
    }
}
