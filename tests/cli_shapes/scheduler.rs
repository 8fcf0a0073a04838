//! A scheduler of a test: it says hello on a real socket and answers as the test says.

use super::TIMEOUT;
use super::fixtures::{NOW, gpus, row};
use overnight::config::Paths;
use overnight::model::{Cursor, JobId, Revision};
use overnight::protocol::{
    ClientMessage, Hello, JobRow, MeterSummary, PROTOCOL, Query, Reply, Request, SchedulerInfo,
    ServerMessage, Snapshot, Update,
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
                        answer(&request).into_iter().for_each(|message| send(&message));
                        requests.push(request);
                    }
                }
                // `watch` has no end of its own.
                if matches!(requests.last(), Some(Request::Query(Query::Snapshot { .. }))) {
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

pub(crate) fn snapshot(rows: Vec<JobRow>) -> Snapshot {
    Snapshot {
        revision: Revision(1),
        at: NOW,
        scheduler: SchedulerInfo::default(),
        jobs: rows.into_iter().map(Arc::new).collect(),
        history: Vec::new(),
        gpus: gpus(),
        meter: MeterSummary::default(),
        inbox: Vec::new(),
        notices: Vec::new(),
    }
}

/// An update with these rows, all of them active.
pub(crate) fn update_with(rows: Vec<JobRow>) -> ServerMessage {
    let order = rows.iter().map(|row| row.id).collect();
    let snapshot = snapshot(rows);
    ServerMessage::Update(Box::new(Update {
        revision: Revision(2),
        snapshot,
        order,
        history_order: Vec::new(),
    }))
}

/// An update in which these jobs are active and nothing is new of them.
pub(crate) fn update(active: &[u64]) -> ServerMessage {
    let ServerMessage::Update(mut update) = update_with(vec![row(1, Cursor::Running)]) else {
        unreachable!("made above")
    };
    update.snapshot.jobs.clear();
    update.order = active.iter().copied().map(JobId).collect();
    ServerMessage::Update(update)
}
