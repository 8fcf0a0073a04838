use super::*;
use crate::protocol::{Command, Query};
use std::os::unix::net::UnixListener;
use std::process::{Command as Process, Stdio};
use std::thread::JoinHandle;

/// Long enough for a loaded machine, and only waited for where something is wrong.
const TIMEOUT: Duration = Duration::from_secs(20);
/// For tests in which nothing comes.
const SHORT: Duration = Duration::from_millis(50);

fn folders() -> (tempfile::TempDir, Paths) {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths { root: folder.path().join("root"), state: folder.path().to_owned() };
    (folder, paths)
}

fn hello(protocol: u32) -> Vec<u8> {
    line(&ServerMessage::Hello(Hello { protocol, version: "9.9.9".into(), pid: 7 }))
}

fn line(message: &ServerMessage) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap();
    line.push(b'\n');
    line
}

/// Serves one connection by `serve`, which gets the stream after the client's hello was read.
fn server(
    listener: UnixListener,
    serve: impl FnOnce(&mut BufReader<UnixStream>) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut greeting = String::new();
        stream.read_line(&mut greeting).unwrap();
        let ClientMessage::Hello(hello) = serde_json::from_str(&greeting).unwrap() else {
            panic!("{greeting}")
        };
        assert_eq!((hello.protocol, hello.pid), (PROTOCOL, std::process::id()));
        serve(&mut stream);
    })
}

fn next(stream: &mut BufReader<UnixStream>) -> Request {
    let mut text = String::new();
    stream.read_line(&mut text).unwrap();
    match serde_json::from_str(&text).unwrap() {
        ClientMessage::Request(request) => request,
        ClientMessage::Hello(_) => panic!("a second hello"),
    }
}

fn update(revision: u64) -> ServerMessage {
    let revision = crate::model::Revision(revision);
    ServerMessage::Update(Box::new(Update { revision, ..Update::default() }))
}

#[test]
fn requests_are_answered_in_order_and_updates_in_between_are_kept() {
    let (_folder, paths) = folders();
    let server = server(UnixListener::bind(paths.socket()).unwrap(), |stream| {
        stream.get_mut().write_all(&hello(PROTOCOL)).unwrap();
        assert_eq!(next(stream), Request::Query(Query::Ping));
        stream.get_mut().write_all(&line(&update(3))).unwrap();
        stream.get_mut().write_all(&line(&ServerMessage::Reply(Reply::Pong))).unwrap();
        assert_eq!(next(stream), Request::Command(Command::Stop));
        let reply = Reply::Ok { message: "stopping".into() };
        stream.get_mut().write_all(&line(&ServerMessage::Reply(reply))).unwrap();
    });
    let mut client = Client::connect(&paths, TIMEOUT).unwrap();
    assert_eq!(client.server().version, "9.9.9");
    assert_eq!(client.request(Request::Query(Query::Ping)).unwrap(), Reply::Pong);
    assert!(matches!(client.request(Request::Command(Command::Stop)).unwrap(), Reply::Ok { .. }));
    assert!(client.has_update());
    assert_eq!(client.next_update().unwrap().revision.0, 3);
    server.join().unwrap();
    assert!(matches!(client.request(Request::Query(Query::Ping)), Err(ClientError::Closed)));
}

#[test]
fn nobody_there_is_not_the_same_as_somebody_who_does_not_answer() {
    let (_folder, paths) = folders();
    assert!(matches!(Client::connect(&paths, SHORT), Err(ClientError::NoScheduler { .. })));
    // A socket that a dead scheduler left behind.
    drop(UnixListener::bind(paths.socket()).unwrap());
    assert!(matches!(Client::connect(&paths, SHORT), Err(ClientError::NoScheduler { .. })));
    // A store that somebody holds.
    let store = std::fs::File::create(paths.store()).unwrap();
    store.try_lock().unwrap();
    let error = Client::connect(&paths, SHORT).unwrap_err();
    let holder = Some(std::process::id());
    assert!(matches!(&error, ClientError::NotAnswering { holder: found, .. } if *found == holder), "{error}");
    // One that listens and never says hello.
    std::fs::remove_file(paths.socket()).unwrap();
    let _listener = UnixListener::bind(paths.socket()).unwrap();
    assert!(matches!(Client::connect(&paths, SHORT), Err(ClientError::NotAnswering { .. })));
}

#[test]
fn a_full_backlog_does_not_hang_the_client() {
    use rustix::net::{bind, listen, socket};
    let (_folder, paths) = folders();
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(paths.socket()).unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    let _first = UnixStream::connect(paths.socket()).unwrap();
    assert!(matches!(Client::connect(&paths, SHORT), Err(ClientError::NotAnswering { .. })));
}

#[test]
fn another_version_is_told_with_the_remedy() {
    let (_folder, paths) = folders();
    let server = server(UnixListener::bind(paths.socket()).unwrap(), |stream| {
        stream.get_mut().write_all(&hello(PROTOCOL + 1)).unwrap();
    });
    let error = Client::connect(&paths, TIMEOUT).unwrap_err();
    assert!(matches!(error, ClientError::Version { ours: PROTOCOL, theirs, .. } if theirs == PROTOCOL + 1));
    assert!(error.to_string().contains("jobs go on"));
    server.join().unwrap();
}

#[test]
fn what_is_no_message_is_an_error_not_a_panic() {
    let (_folder, paths) = folders();
    let server = server(UnixListener::bind(paths.socket()).unwrap(), |stream| {
        stream.get_mut().write_all(b"{\"hullo\":1}\n").unwrap();
    });
    assert!(matches!(Client::connect(&paths, TIMEOUT), Err(ClientError::Unreadable { .. })));
    server.join().unwrap();
}

#[test]
fn a_path_too_long_for_an_address_is_reached_through_its_directory() {
    let (folder, _) = folders();
    let state = folder.path().join("s".repeat(90)).join("t".repeat(90));
    std::fs::create_dir_all(&state).unwrap();
    let paths = Paths { root: folder.path().to_owned(), state };
    assert!(paths.socket().as_os_str().len() > LONGEST_PATH);
    assert!(matches!(Client::connect(&paths, SHORT), Err(ClientError::NoScheduler { .. })));
    let directory = std::fs::File::open(&paths.state).unwrap();
    let short = format!("/proc/self/fd/{}/overnight.sock", directory.as_raw_fd());
    let server = server(UnixListener::bind(short).unwrap(), |stream| {
        stream.get_mut().write_all(&hello(PROTOCOL)).unwrap();
    });
    Client::connect(&paths, TIMEOUT).unwrap();
    server.join().unwrap();
}

#[test]
fn a_message_that_comes_in_pieces_survives_a_wait_that_times_out() {
    let (_folder, paths) = folders();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let server = server(UnixListener::bind(paths.socket()).unwrap(), move |stream| {
        stream.get_mut().write_all(&hello(PROTOCOL)).unwrap();
        let whole = line(&update(5));
        let (head, rest) = whole.split_at(whole.len() / 2);
        stream.get_mut().write_all(head).unwrap();
        wait.recv().unwrap();
        stream.get_mut().write_all(rest).unwrap();
    });
    let (mut reader, writer) = Client::connect(&paths, TIMEOUT).unwrap().split().unwrap();
    reader.set_timeout(Some(SHORT)).unwrap();
    assert!(reader.next_message().unwrap().is_none());
    go.send(()).unwrap();
    reader.set_timeout(Some(TIMEOUT)).unwrap();
    let message = reader.next_message().unwrap();
    assert!(matches!(message, Some(ServerMessage::Update(update)) if update.revision.0 == 5));
    writer.close();
    server.join().unwrap();
}

/// Where the process below listens.
const STATE: &str = "OVERNIGHT_TEST_STATE";

/// Not a test: the process that the test below starts, a scheduler of another version.
#[test]
#[ignore = "the other process of the test below"]
fn a_scheduler_of_another_version() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let listener = UnixListener::bind(Path::new(&state).join("overnight.sock")).unwrap();
    println!("\nlistening");
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let mut text = String::new();
        if stream.read_line(&mut text).unwrap() > 0 {
            stream.get_mut().write_all(&hello(PROTOCOL + 1)).unwrap();
        }
    }
}

#[test]
fn a_scheduler_of_another_version_can_be_ended() {
    let (_folder, paths) = folders();
    let mut other = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "client::tests::a_scheduler_of_another_version", "--ignored", "--nocapture"])
        .env(STATE, &paths.state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "listening"));
    assert!(matches!(Client::connect(&paths, TIMEOUT), Err(ClientError::Version { .. })));
    let ended = end_scheduler(&paths, TIMEOUT);
    // Whatever came of it, the process does not outlive the test.
    let _ = other.kill();
    let status = other.wait().unwrap();
    ended.unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(libc::SIGTERM), "{status}");
    assert!(matches!(end_scheduler(&paths, SHORT), Err(ClientError::NoScheduler { .. })));
}

#[test]
fn a_connection_that_nobody_heard_is_made_again() {
    let (_folder, paths) = folders();
    let listener = UnixListener::bind(paths.socket()).unwrap();
    let server = std::thread::spawn(move || {
        // What is left of a killed scheduler, and then its successor.
        drop(listener.accept().unwrap());
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut said = String::new();
        stream.read_line(&mut said).unwrap();
        stream.get_mut().write_all(&hello(PROTOCOL)).unwrap();
        drop(listener);
        drop(stream);
    });
    Client::connect(&paths, TIMEOUT).unwrap();
    server.join().unwrap();
    // Nobody listens any more: it is not tried for ever.
    assert!(matches!(Client::connect(&paths, TIMEOUT), Err(ClientError::NoScheduler { .. })));
}
