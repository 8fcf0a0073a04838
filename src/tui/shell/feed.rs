//! What reaches the dashboard and what it sends: one channel in, and the connection to the scheduler with its two threads.
//!
//! The connection itself is somebody else's: a [`Connector`] makes it. The thread `link` connects, reads and connects
//! again; the thread `send` writes, so that a key press never waits for a socket.

use crate::model::{JobId, Span};
use crate::protocol::{
    Command, Connection, JobDetail, Query, Reply, Request, ServerMessage, Snapshot, Update,
};
use crate::tui::errand::{Brought, Errand};
use crate::tui::looks::Look;
use crate::tui::overlay::Fix;
use crate::tui::shell::log::LogFound;
use crate::tui::shell::log::LogWindow;
use crate::tui::update::flows::Flow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Makes connections to the scheduler; starts it if that is wanted.
pub trait Connector: Send {
    /// One try, the hello exchanged. The text says why not, and what to do.
    fn connect(&mut self) -> Result<Box<dyn Session>, String>;

    /// Whether [`Connector::start`] can do anything.
    fn can_start(&self) -> bool {
        false
    }

    /// Starts the scheduler if none runs. The text says why it cannot.
    fn start(&mut self) -> Result<(), String> {
        Err("the scheduler cannot be started from here: overnight serve".to_owned())
    }
}

/// A connection that is ready for requests.
pub trait Session: Send {
    /// The two ends, for two threads.
    fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>);
}

/// The end that messages come from.
pub trait SessionReader: Send {
    /// The next message; `None` when the scheduler has closed the connection. Blocks.
    fn read(&mut self) -> Result<Option<ServerMessage>, String>;
}

/// The end that requests go to.
pub trait SessionWriter: Send {
    /// Sends one request.
    fn send(&mut self, request: &Request) -> Result<(), String>;
}

/// What reaches the dashboard.
#[derive(Debug)]
pub enum FeedEvent {
    /// Rows that changed.
    Update(Box<Update>),
    /// Everything.
    Snapshot(Box<Snapshot>),
    /// One job, whole.
    Detail(Box<JobDetail>),
    /// The answer to something else.
    Reply {
        /// What was asked.
        asked: Asked,
        /// What was answered.
        reply: Box<Reply>,
    },
    /// How we stand with the scheduler.
    Connection(Connection),
    /// Lines of the log on the screen.
    Log(Box<LogWindow>),
    /// How a search in a log stands, by its number.
    Found(u64, LogFound),
    /// A frame took long to write, or could not be; or one that was left out can be drawn now.
    Written {
        /// How long it took.
        took_ms: u64,
        /// Why it could not be written.
        failed: Option<std::io::Error>,
    },
    /// What an errand has brought.
    Brought(Brought),
    /// The program that had the terminal has ended.
    Returned(Result<std::process::ExitStatus, String>),
    /// A key, a paste, a new size.
    Input(crossterm::event::Event),
    /// A theme's file was saved.
    ThemeChanged,
    /// The terminal is gone.
    Hangup,
}

/// What a reply is the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// To be told of changes.
    Subscription,
    /// The whole snapshot.
    Snapshot,
    /// One job.
    Detail(JobId),
    /// A command, and the job it is about.
    Command(Option<JobId>),
    /// A step of a flow.
    Flow(Flow),
    /// Whether it is there.
    Ping,
    /// Something a screen shows besides the snapshot.
    Look(Look),
}

/// What the dashboard wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum UiCommand {
    /// Send a command.
    Send {
        /// The job it is about.
        job: Option<JobId>,
        /// The command.
        command: Command,
    },
    /// A step of a flow.
    Ask {
        /// Which.
        flow: Flow,
        /// The request.
        request: Request,
    },
    /// Fetch something, or run another program.
    Errand(Errand),
    /// Ask for a job, whole.
    Detail(JobId),
    /// Ask for everything; connect at once if there is no connection.
    Refresh,
    /// Ask whether the scheduler is there.
    Ping,
    /// Start the scheduler.
    Start,
    /// Tell somebody who does not look.
    Notify(String),
    /// Ask for something a screen shows besides the snapshot.
    Look {
        /// What.
        look: Look,
        /// The question.
        query: Query,
    },
    /// Read a file of the inbox, to ask how it is to be mended.
    ReadFile {
        /// Its name in the inbox.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Mend a file, as the person at the screen.
    Mend(Box<Fix>),
    /// Draw everything again.
    Repaint,
    /// Stop until `fg`.
    Suspend,
    /// Look which themes there are.
    Themes,
    /// Show another theme.
    Theme(String),
    /// Write a new file; one that is there stays as it is.
    Write {
        /// Its name, in the current directory.
        file: String,
        /// What goes into it.
        text: String,
        /// What it is, for the message.
        what: String,
    },
    /// Fail on purpose.
    Panic,
    /// End.
    Quit,
}

impl UiCommand {
    /// What goes over the wire.
    fn request(self) -> Option<(Asked, Request)> {
        Some(match self {
            Self::Send { job, command } => (Asked::Command(job), Request::Command(command)),
            Self::Ask { flow, request } => (Asked::Flow(flow), request),
            Self::Detail(job) => (Asked::Detail(job), Request::Query(Query::Job { job })),
            Self::Refresh => (Asked::Snapshot, Request::Query(Query::Snapshot { since: None })),
            Self::Ping => (Asked::Ping, Request::Query(Query::Ping)),
            Self::Look { look, query } => (Asked::Look(look), Request::Query(query)),
            Self::Errand(_)
            | Self::ReadFile { .. }
            | Self::Mend(_)
            | Self::Start
            | Self::Notify(_)
            | Self::Repaint
            | Self::Suspend
            | Self::Themes
            | Self::Theme(_)
            | Self::Write { .. }
            | Self::Panic
            | Self::Quit => return None,
        })
    }
}

/// The writing end of the present connection, and what it has asked, in order.
#[derive(Default)]
struct Line {
    writer: Option<Box<dyn SessionWriter>>,
    asked: VecDeque<Asked>,
}

type Shared = Arc<Mutex<Line>>;

fn locked(line: &Shared) -> std::sync::MutexGuard<'_, Line> {
    // A thread that panicked has left at worst one request half recorded; the connection is made anew then.
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Writes a request; `false` if there is no connection, or it broke.
    fn send(&mut self, asked: Asked, request: &Request) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        self.asked.push_back(asked);
        if writer.send(request).is_ok() {
            return true;
        }
        // The reader finds out as well, and says so.
        self.writer = None;
        false
    }
}

/// The two threads of the connection.
pub(in crate::tui) struct Link {
    pub(in crate::tui) connector: Box<dyn Connector>,
    pub(in crate::tui) events: Sender<FeedEvent>,
    /// Commands of the dashboard.
    pub(in crate::tui) commands: Receiver<UiCommand>,
    /// Between two updates at least.
    pub(in crate::tui) every: Span,
}

/// What ends the pause between two tries.
#[derive(Clone, Copy)]
enum Hurry {
    /// Try again.
    Again,
    /// Start the scheduler, and try again.
    Start,
}

/// The first pause between two tries; doubled up to the last.
const RETRY_FIRST_MS: u64 = 500;
const RETRY_LAST_MS: u64 = 8_000;

impl Link {
    /// Starts both; they end when the dashboard drops its ends of the channels, or with the process.
    pub(in crate::tui) fn start(self) -> std::io::Result<()> {
        let line: Shared = Arc::default();
        let (hurry, hurried) = std::sync::mpsc::channel();
        let Self { connector, events, commands, every } = self;
        let (their_line, their_events) = (Arc::clone(&line), events.clone());
        std::thread::Builder::new().name("link".into()).spawn(move || {
            link(connector, &their_events, &their_line, (&hurried, every));
        })?;
        std::thread::Builder::new().name("send".into()).spawn(move || {
            for command in commands {
                if command == UiCommand::Start {
                    // The link's thread has ended only if the dashboard has.
                    let _ended = hurry.send(Hurry::Start);
                    continue;
                }
                let refresh = command == UiCommand::Refresh;
                let Some((asked, request)) = command.request() else { continue };
                let sent = locked(&line).send(asked, &request);
                if refresh && !sent {
                    // The link's thread has ended only if the dashboard has.
                    let _ended = hurry.send(Hurry::Again);
                } else if let (false, Asked::Command(_) | Asked::Flow(_)) = (sent, asked) {
                    let message = "no scheduler: nothing was changed".to_owned();
                    let reply = Box::new(Reply::Unavailable { message });
                    if events.send(FeedEvent::Reply { asked, reply }).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(())
    }
}

fn link(
    mut connector: Box<dyn Connector>,
    events: &Sender<FeedEvent>,
    line: &Shared,
    (hurried, every): (&Receiver<Hurry>, Span),
) {
    let mut pause = RETRY_FIRST_MS;
    loop {
        let why = match connector.connect() {
            Ok(session) => {
                let (mut reader, writer) = session.split();
                let started = {
                    let mut line = locked(line);
                    *line = Line { writer: Some(writer), asked: VecDeque::new() };
                    let subscribe = Request::Subscribe { every_ms: every.0 };
                    let all = Request::Query(Query::Snapshot { since: None });
                    line.send(Asked::Subscription, &subscribe) && line.send(Asked::Snapshot, &all)
                };
                let why = if started {
                    read_all(&mut *reader, events, line)
                } else {
                    Ok("the connection broke".into())
                };
                locked(line).writer = None;
                match why {
                    // It was there: the first try again is soon.
                    Ok(why) => {
                        pause = RETRY_FIRST_MS;
                        why
                    }
                    Err(Gone) => return,
                }
            }
            Err(why) => why,
        };
        let retry_in = Span(pause);
        if events.send(FeedEvent::Connection(Connection::Lost { why, retry_in })).is_err() {
            return;
        }
        match hurried.recv_timeout(Duration::from_millis(pause)) {
            Ok(Hurry::Start) => match connector.start() {
                Ok(()) => pause = RETRY_FIRST_MS,
                Err(why) => {
                    let retry_in = Span(RETRY_FIRST_MS);
                    if events.send(FeedEvent::Connection(Connection::Lost { why, retry_in })).is_err() {
                        return;
                    }
                }
            },
            Ok(Hurry::Again) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pause = (pause * 2).min(RETRY_LAST_MS);
    }
}

/// The dashboard is gone.
struct Gone;

/// What a reply is the answer to; one in parts has its question until the last part.
fn answered(line: &mut Line, reply: &Reply) -> Option<Asked> {
    match reply {
        Reply::Jobs { left: 1.., .. } => line.asked.front().copied(),
        _ => line.asked.pop_front(),
    }
}

/// Reads until the connection ends; says why it did.
fn read_all(
    reader: &mut dyn SessionReader,
    events: &Sender<FeedEvent>,
    line: &Shared,
) -> Result<String, Gone> {
    loop {
        let message = match reader.read() {
            Ok(Some(message)) => message,
            Ok(None) => {
                return Ok("the scheduler has ended; jobs go on. `overnight` starts it again".to_owned());
            }
            Err(why) => return Ok(why),
        };
        let event = match message {
            ServerMessage::Hello(_) => continue,
            ServerMessage::Update(update) => FeedEvent::Update(update),
            ServerMessage::Reply(reply) => {
                let Some(asked) = answered(&mut locked(line), &reply) else { continue };
                match reply {
                    Reply::Snapshot(snapshot) => FeedEvent::Snapshot(snapshot),
                    Reply::Job(detail) => FeedEvent::Detail(detail),
                    reply => FeedEvent::Reply { asked, reply: Box::new(reply) },
                }
            }
        };
        events.send(event).map_err(|_| Gone)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::model::Revision;
    use std::sync::mpsc::channel;

    /// Whatever is waited for comes within this, or the test fails.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A scheduler within the process: what it is asked can be seen, what it says is handed in.
    struct Double {
        says: Receiver<Result<ServerMessage, String>>,
        asked: Sender<Request>,
    }

    /// Hands out the doubles one after another, then refuses.
    struct Doubles(VecDeque<Double>);

    impl Connector for Doubles {
        fn connect(&mut self) -> Result<Box<dyn Session>, String> {
            let next = self.0.pop_front().ok_or("no scheduler is running")?;
            Ok(Box::new(next))
        }
    }

    struct Says(Receiver<Result<ServerMessage, String>>);
    struct Asks(Sender<Request>);

    impl Session for Double {
        fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>) {
            (Box::new(Says(self.says)), Box::new(Asks(self.asked)))
        }
    }

    impl SessionReader for Says {
        fn read(&mut self) -> Result<Option<ServerMessage>, String> {
            self.0.recv().ok().transpose()
        }
    }

    impl SessionWriter for Asks {
        fn send(&mut self, request: &Request) -> Result<(), String> {
            self.0.send(request.clone()).map_err(|_| "closed".to_owned())
        }
    }

    fn snapshot(revision: u64) -> Box<Snapshot> {
        Box::new(Snapshot { revision: Revision(revision), ..Snapshot::default() })
    }

    type Ends = (Sender<Result<ServerMessage, String>>, Receiver<Request>);

    fn double() -> (Double, Ends) {
        let (say, says) = channel();
        let (asked, hear) = channel();
        (Double { says, asked }, (say, hear))
    }

    fn start(doubles: Vec<Double>) -> (Sender<UiCommand>, Receiver<FeedEvent>) {
        let (events, arrives) = channel();
        let (send, commands) = channel();
        let connector = Box::new(Doubles(doubles.into()));
        Link { connector, events, commands, every: Span(100) }.start().unwrap();
        (send, arrives)
    }

    #[test]
    fn a_connection_subscribes_asks_for_everything_and_matches_replies_in_order() {
        let (double, (say, hear)) = double();
        let (send, arrives) = start(vec![double]);
        assert_eq!(hear.recv_timeout(PATIENCE).unwrap(), Request::Subscribe { every_ms: 100 });
        assert_eq!(hear.recv_timeout(PATIENCE).unwrap(), Request::Query(Query::Snapshot { since: None }));
        say.send(Ok(ServerMessage::Reply(Reply::Pong))).unwrap();
        say.send(Ok(ServerMessage::Reply(Reply::Snapshot(snapshot(3))))).unwrap();
        let FeedEvent::Reply { asked: Asked::Subscription, .. } = arrives.recv_timeout(PATIENCE).unwrap()
        else {
            panic!("the subscription's reply was expected");
        };
        let FeedEvent::Snapshot(snap) = arrives.recv_timeout(PATIENCE).unwrap() else { panic!("a snapshot") };
        assert_eq!(snap.revision, Revision(3));
        let job = JobId(17);
        let command = Command::Undo { job: Some(job) };
        send.send(UiCommand::Send { job: Some(job), command: command.clone() }).unwrap();
        assert_eq!(hear.recv_timeout(PATIENCE).unwrap(), Request::Command(command));
        say.send(Ok(ServerMessage::Reply(Reply::Ok { message: "undone".into() }))).unwrap();
        let FeedEvent::Reply { asked, reply } = arrives.recv_timeout(PATIENCE).unwrap() else {
            panic!("a reply")
        };
        assert_eq!((asked, *reply), (Asked::Command(Some(job)), Reply::Ok { message: "undone".into() }));
    }

    #[test]
    fn a_lost_connection_is_told_and_made_anew() {
        let (first, (say, hear)) = double();
        let (second, (say_again, hear_again)) = double();
        let (_send, arrives) = start(vec![first, second]);
        hear.recv_timeout(PATIENCE).unwrap();
        drop(say);
        let FeedEvent::Connection(Connection::Lost { why, retry_in }) =
            arrives.recv_timeout(PATIENCE).unwrap()
        else {
            panic!("the loss was expected");
        };
        assert!(why.contains("ended") && retry_in == Span(RETRY_FIRST_MS), "{why} {retry_in:?}");
        assert_eq!(hear_again.recv_timeout(PATIENCE).unwrap(), Request::Subscribe { every_ms: 100 });
        say_again.send(Err("a message that cannot be read".into())).unwrap();
        let FeedEvent::Connection(Connection::Lost { why, .. }) = arrives.recv_timeout(PATIENCE).unwrap()
        else {
            panic!("the loss was expected");
        };
        assert_eq!(why, "a message that cannot be read");
    }

    #[test]
    fn commands_without_a_connection_are_refused_and_a_refresh_tries_at_once() {
        let (send, arrives) = start(Vec::new());
        let lost = |event| matches!(event, FeedEvent::Connection(Connection::Lost { .. }));
        assert!(lost(arrives.recv_timeout(PATIENCE).unwrap()));
        send.send(UiCommand::Send { job: None, command: Command::Rescan }).unwrap();
        let refused = std::iter::from_fn(|| arrives.recv_timeout(PATIENCE).ok())
            .find(|event| matches!(event, FeedEvent::Reply { .. }));
        assert!(matches!(refused, Some(FeedEvent::Reply { asked: Asked::Command(None), .. })), "{refused:?}");
        // The pause doubles: without the refresh the third try would be more than a second away.
        let before = clock::monotonic().0;
        for _ in 0..6 {
            send.send(UiCommand::Refresh).unwrap();
            while !lost(arrives.recv_timeout(PATIENCE).unwrap()) {}
        }
        assert!(clock::monotonic().0 - before < RETRY_LAST_MS, "refreshing did not hurry");
    }
}
