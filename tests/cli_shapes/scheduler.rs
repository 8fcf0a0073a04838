//! A scheduler of a test: it says hello on a real socket and answers as the test says.

use super::TIMEOUT;
use super::fixtures::{NOW, gpus, row};
use overnight::config::Paths;
use overnight::model::{Cursor, Revision};
use overnight::protocol::{
    ClientMessage, Hello, JobRow, Move, PROTOCOL, Query, Reply, Request, ServerMessage, Update,
};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Serves so many connections, and returns all requests.
pub(crate) fn answer<I: IntoIterator<Item = ServerMessage>>(
    paths: &Paths,
    connections: usize,
    mut answer: impl FnMut(&Request) -> I + Send + 'static,
) -> JoinHandle<Vec<Request>> {
    let listener = UnixListener::bind(paths.socket()).unwrap();
    std::thread::spawn(move || {
        let mut requests = Vec::new();
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut gone = false;
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let mut send = |message: &ServerMessage| {
                    let mut text = serde_json::to_vec(message).unwrap();
                    text.push(b'\n');
                    stream.write_all(&text).unwrap();
                };
                match serde_json::from_str(&line.unwrap()).unwrap() {
                    ClientMessage::Hello(_) => {
                        let hello = Hello { protocol: PROTOCOL, version: "test".into(), pid: 1 };
                        send(&ServerMessage::Hello(hello));
                    }
                    ClientMessage::Request(Request::Query(Query::Notices)) => {
                        send(&ServerMessage::Reply(Reply::Notices(Vec::new())));
                    }
                    ClientMessage::Request(request) => {
                        // One by one: a message may be one that the test holds back for a while.
                        let sent = answer(&request).into_iter().map(|message| send(&message)).count();
                        // `watch` has no end of its own: a subscriber that is told all there is is left.
                        gone = matches!(request, Request::Subscribe { .. }) && sent > 2;
                        requests.push(request);
                    }
                }
                if gone {
                    break;
                }
            }
        }
        requests
    })
}

pub(crate) fn reply(reply: Reply) -> Vec<ServerMessage> {
    vec![ServerMessage::Reply(reply)]
}

/// An update with these rows, all of them active.
pub(crate) fn update_with(rows: Vec<JobRow>) -> ServerMessage {
    let jobs = rows.iter().map(|row| row.id).collect();
    ServerMessage::Update(Box::new(Update {
        revision: Revision(2),
        at: NOW,
        jobs: vec![Move::All { jobs }],
        rows: rows.into_iter().map(Arc::new).collect(),
        gpus: gpus(),
        gpu_order: Some(gpus().into_iter().map(|row| row.uuid).collect()),
        ..Update::default()
    }))
}

/// An update in which these jobs are active.
pub(crate) fn update(active: &[u64]) -> ServerMessage {
    update_with(active.iter().map(|id| row(*id, Cursor::Running)).collect())
}
