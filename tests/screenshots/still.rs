//! The dashboard of a picture: the real one in a terminal, over a scheduler that says what the fixtures say, at one moment.

use crate::{fixtures, looks};
use overnight::model::JobId;
use overnight::protocol::{Query, Reply, Request, ServerMessage, Snapshot};
use overnight::tui::{Connector, Depth, Exit, Glyphs, Options, Session, SessionReader, SessionWriter, run};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Shows it until `q`. The log is in the directory it was started in.
pub(crate) fn show(theme: &str) {
    let mut snap = fixtures::busy();
    let log = Path::new("log.txt");
    let mut file = std::fs::File::create(log).unwrap();
    for line in &fixtures::log().window.lines {
        writeln!(file, "{}", line.text).unwrap();
    }
    for row in snap.jobs.iter_mut().filter(|row| row.id == JobId(144)) {
        log.clone_into(&mut Arc::make_mut(row).log);
    }
    let options = Options {
        theme: theme.to_owned(),
        theme_dir: None,
        depth: if theme == "mono" { Depth::Mono } else { Depth::True },
        glyphs: Glyphs::Unicode,
        clock: fixtures::now,
        tz: jiff::tz::TimeZone::UTC,
        me: "me".to_owned(),
        ..Options::from_lookup(&|_| None)
    };
    assert_eq!(run(options, Still(snap)).unwrap(), Exit::Quit);
}

#[derive(Clone)]
struct Still(Snapshot);

impl Connector for Still {
    fn connect(&mut self) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(self.clone()))
    }
}

struct Says(Receiver<ServerMessage>);
struct Hears(Snapshot, Sender<ServerMessage>);

impl Session for Still {
    fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>) {
        let (say, says) = channel();
        (Box::new(Says(says)), Box::new(Hears(self.0, say)))
    }
}

impl SessionReader for Says {
    fn read(&mut self) -> Result<Option<ServerMessage>, String> {
        Ok(self.0.recv().ok())
    }
}

impl SessionWriter for Hears {
    fn send(&mut self, request: &Request) -> Result<(), String> {
        let reply = match request {
            Request::Query(Query::Snapshot { .. }) => Reply::Snapshot(Box::new(self.0.clone())),
            Request::Query(Query::GpuHistory { span_ms, .. }) => {
                Reply::GpuHistory(Box::new(looks::telemetry(&self.0, span_ms.unwrap_or(1_200_000))))
            }
            Request::Query(Query::Timeline { from_ms, until_ms }) => {
                let of = |at: &Option<i64>| at.map_or(0, |at| at - fixtures::WALL_MS);
                let (from, until) = (of(from_ms), of(until_ms));
                Reply::Timeline(Box::new(looks::timeline(from, until)))
            }
            Request::Query(Query::Meter { by, since_ms, .. }) => Reply::Meter(looks::ledger(*by, *since_ms)),
            _ => Reply::Pong,
        };
        self.1.send(ServerMessage::Reply(reply)).map_err(|_| "closed".to_owned())
    }
}
