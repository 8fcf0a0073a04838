//! The dashboard's connection, over the same client as the command line's.

use crate::cli::Setup;
use crate::client::{Client, Reader, Writer};
use crate::protocol::{Request, ServerMessage};
use crate::tui::{Connector, Session, SessionReader, SessionWriter};
use std::time::Duration;

/// How long a scheduler may take to answer a connection.
const ANSWER: Duration = Duration::from_secs(3);

/// Connects to the scheduler of these folders.
pub(super) struct Scheduler {
    setup: Setup,
    may_start: bool,
}

impl Scheduler {
    /// A demo's scheduler is another one: it ends with its dashboard, and none takes its place.
    pub(super) const fn new(setup: Setup, may_start: bool) -> Self {
        Self { setup, may_start }
    }
}

impl Connector for Scheduler {
    fn connect(&mut self) -> Result<Box<dyn Session>, String> {
        let client = Client::connect(&self.setup.paths, ANSWER).map_err(|error| error.to_string())?;
        Ok(Box::new(Connected(client)))
    }

    fn can_start(&self) -> bool {
        self.may_start
    }

    fn start(&mut self) -> Result<(), String> {
        super::background::ensure(&self.setup).map_err(|error| super::chain(&error))
    }
}

struct Connected(Client);
struct ReadEnd(Option<Reader>);
struct WriteEnd(Option<Writer>);

impl Session for Connected {
    fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>) {
        match self.0.split() {
            Ok((reader, writer)) => (Box::new(ReadEnd(Some(reader))), Box::new(WriteEnd(Some(writer)))),
            // Cannot be used: both ends say so at once, and the dashboard connects again.
            Err(_) => (Box::new(ReadEnd(None)), Box::new(WriteEnd(None))),
        }
    }
}

impl SessionReader for ReadEnd {
    fn read(&mut self) -> Result<Option<ServerMessage>, String> {
        let Some(reader) = &mut self.0 else { return Ok(None) };
        match reader.next_message() {
            Ok(message) => Ok(message),
            Err(crate::client::ClientError::Closed) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl SessionWriter for WriteEnd {
    fn send(&mut self, request: &Request) -> Result<(), String> {
        let Some(writer) = &mut self.0 else { return Err("the connection cannot be used".to_owned()) };
        writer.send(request.clone()).map_err(|error| error.to_string())
    }
}
