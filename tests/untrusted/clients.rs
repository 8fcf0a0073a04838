//! Clients that say nothing, too much, or what is no message; that never read; that are somebody else. The scheduler lives,
//! stays small, and serves those who mean it.

use super::support::sandbox::{Sandbox, eventually};
use super::{TIMEOUT, is_root, job, skipped};
use overnight::client::Client;
use overnight::config::Paths;
use overnight::protocol::{Query, Reply, Request};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// What a thousand idle connections may cost.
const GROWTH_KIB: u64 = 32 << 10;

fn socket(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join(".state/overnight.sock")
}

fn connect(sandbox: &Sandbox) -> UnixStream {
    let stream = UnixStream::connect(socket(sandbox)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn paths(sandbox: &Sandbox) -> Paths {
    Paths::below(&sandbox.root())
}

/// Resident memory of the scheduler.
fn resident_kib(sandbox: &Sandbox) -> u64 {
    let pid = Client::connect(&paths(sandbox), TIMEOUT).unwrap().server().pid;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// As many descriptors as this process may have.
fn raise_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum }).unwrap();
    limits.maximum.unwrap_or(1 << 20)
}

#[test]
fn a_thousand_connections_that_say_nothing_keep_nobody_out_and_cost_little() {
    let sandbox = Sandbox::serving("none");
    if raise_files() < 3_000 {
        return skipped(
            "a_thousand_connections_that_say_nothing_keep_nobody_out_and_cost_little",
            "too few descriptors",
        );
    }
    let before = resident_kib(&sandbox);
    let idle: Vec<UnixStream> = (0..1_000).map(|_| connect(&sandbox)).collect();
    sandbox.run(&["ls"]).ok();
    sandbox.drop_file("works.yaml", &job("true", "[]", "[]"));
    assert_eq!(sandbox.wait_for_end("works"), "succeeded");
    let grown = resident_kib(&sandbox).saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
    drop(idle);
    sandbox.run(&["ls"]).ok();
}

#[test]
fn with_all_places_taken_a_look_and_a_cancel_still_go_through() {
    let sandbox = Sandbox::serving("none");
    if raise_files() < 3_000 {
        return skipped("with_all_places_taken_a_look_and_a_cancel_still_go_through", "too few descriptors");
    }
    let before = resident_kib(&sandbox);
    sandbox.drop_file("long.yaml", &job("sleep 300", "[]", "[]"));
    sandbox.wait_for_state("long", "running");
    // Each has said hello and stays, as a `wait` in a script does.
    let paths = paths(&sandbox);
    let mut staying: Vec<Client> = (0..512).map(|_| Client::connect(&paths, TIMEOUT).unwrap()).collect();
    sandbox.run(&["ls"]).ok();
    sandbox.run(&["gpus", "--json"]).ok();
    let wait = sandbox.run(&["wait", "long"]);
    assert!(wait.code != 0, "{}", wait.stdout);
    let watch = sandbox.run(&["watch"]);
    assert!(watch.code == 1 && watch.stderr.contains("connections already"), "{}", watch.stderr);
    assert!(
        matches!(staying[0].request(Request::Query(Query::Ping)), Ok(Reply::Pong)),
        "those who are in are served"
    );
    sandbox.run(&["cancel", "long"]).ok();
    assert_eq!(sandbox.wait_for_end("long"), "cancelled");
    let grown = resident_kib(&sandbox).saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
    staying.truncate(500);
    eventually("a place for a watch", || {
        let mut client = Client::connect(&paths, TIMEOUT).ok()?;
        matches!(client.request(Request::Subscribe { every_ms: 1_000 }), Ok(Reply::Pong)).then_some(())
    });
}

#[test]
fn what_is_no_message_ends_its_connection_and_nothing_else() {
    let sandbox = Sandbox::serving("none");
    let hello = format!(
        "{{\"hello\":{{\"protocol\":{},\"version\":\"x\",\"pid\":1}}}}\n",
        overnight::protocol::PROTOCOL
    );
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let noise: Vec<u8> = (0..100_000).map(|_| random() as u8).collect();
    let deep = format!("{}\n", "[".repeat(1 << 20));
    let large = format!("{{\"request\":{{\"query\":\"{}\"}}}}\n", "x".repeat(4 << 20));
    let endless = vec![b'x'; 9 << 20];
    for greeted in [false, true] {
        for bytes in [
            &noise[..],
            deep.as_bytes(),
            large.as_bytes(),
            &endless,
            b"\n\n\n",
            b"{}\n",
            b"null\n",
            b"\0\0\0\n",
            b"{\"request\":\"half",
        ] {
            let mut stream = connect(&sandbox);
            stream.set_write_timeout(Some(TIMEOUT)).unwrap();
            if greeted {
                stream.write_all(hello.as_bytes()).unwrap();
                let mut byte = [0];
                while byte != [b'\n'] {
                    stream.read_exact(&mut byte).unwrap();
                }
            }
            // It may be closed before all of it is written.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut rest = Vec::new();
            match stream.read_to_end(&mut rest) {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it is left open");
                }
            }
        }
    }
    sandbox.run(&["ls"]).ok();
    assert!(!sandbox.scheduler_said().contains("panicked"), "{}", sandbox.scheduler_said());
}

/// Runs `act` on a thread that has this account's rights.
#[expect(unsafe_code, reason = "only the raw call changes one thread; the library's changes the process")]
fn as_account<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // SAFETY: plain numbers; only this thread's effective account changes, and it ends with the closure.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) }, 0);
            act()
        });
        thread.join().unwrap()
    })
}

#[test]
fn another_account_is_not_served_even_where_it_reaches_the_socket() {
    let test = "another_account_is_not_served_even_where_it_reaches_the_socket";
    if !is_root() {
        return skipped(test, "only root may be another account for a while");
    }
    let sandbox = Sandbox::serving("none");
    let path = socket(&sandbox);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let denied = as_account(65_534, || UnixStream::connect(&path).unwrap_err().kind());
    assert_eq!(denied, std::io::ErrorKind::PermissionDenied);
    // Somebody opens it to everybody.
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(sandbox.dir())) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let said = as_account(65_534, || {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let _ = stream.write_all(b"{\"hello\":{\"protocol\":1,\"version\":\"x\",\"pid\":1}}\n");
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        said
    });
    assert_eq!(said, b"", "{}", String::from_utf8_lossy(&said));
    sandbox.run(&["ls"]).ok();
}

#[test]
fn a_socket_that_somebody_else_serves_is_not_spoken_to() {
    let test = "a_socket_that_somebody_else_serves_is_not_spoken_to";
    if !is_root() {
        return skipped(test, "only root may be another account for a while");
    }
    let mut sandbox = Sandbox::new("none");
    let path = socket(&sandbox);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(sandbox.dir())) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let squatter = as_account(65_534, || UnixListener::bind(&path).unwrap());
    squatter.set_nonblocking(true).unwrap();
    for args in [&["ls"][..], &["submit", "x.yaml"], &["stop"]] {
        fs::write(sandbox.dir().join("x.yaml"), job("true", "[]", "[]")).unwrap();
        let run = sandbox.run(args);
        assert!(run.code == 4 && run.stderr.contains("user 65534"), "{args:?}: {} {}", run.code, run.stderr);
        let (mut taken, _) = squatter.accept().unwrap();
        taken.set_nonblocking(false).unwrap();
        let mut told = Vec::new();
        taken.read_to_end(&mut told).unwrap();
        assert_eq!(told, b"", "nothing is said to it");
    }
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.code == 4 && doctor.stdout.contains("uid 65534"), "{}", doctor.stdout);
    drop(squatter);
    // The scheduler takes its name back, in a directory that it closes first.
    sandbox.serve();
    assert_eq!(fs::symlink_metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    sandbox.run(&["ls"]).ok();
}
