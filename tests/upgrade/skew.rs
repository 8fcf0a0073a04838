//! Programs of different versions that meet: one line, with the remedy.

use super::fixture::job;
use super::support::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};

/// A scheduler of another version: it says its hello and hangs up. Ends with so many visitors.
fn another_scheduler(sandbox: &Sandbox, visitors: usize) -> std::thread::JoinHandle<Vec<String>> {
    let state = sandbox.root().join(".state");
    fs::create_dir_all(&state).unwrap();
    let listener = UnixListener::bind(state.join("overnight.sock")).unwrap();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        for _ in 0..visitors {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            said.push(line);
            let hello = json!({"hello": {"protocol": 4000, "version": "9.9.9", "pid": 1}});
            writeln!(stream, "{hello}").unwrap();
        }
        said
    })
}

#[test]
fn a_client_of_another_version_gets_one_line_with_the_remedy_and_starts_nothing() {
    let sandbox = Sandbox::new("simulated:1");
    let file = sandbox.dir().join("one.yaml");
    fs::write(&file, job("true", "")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let verbs: [&[&str]; 5] = [&["ls"], &["show", "1"], &["submit", &file], &["cancel", "1"], &["meter"]];
    let other = another_scheduler(&sandbox, verbs.len() + 1);
    for verb in verbs {
        let run = sandbox.run(verb);
        assert_eq!(run.code, 1, "{verb:?}: {}{}", run.stdout, run.stderr);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{verb:?}: {}", run.stderr);
        assert!(lines[0].contains("4000") && lines[0].contains("overnight stop"), "{verb:?}: {}", run.stderr);
    }
    let mut terminal = sandbox.in_terminal(&[], 100, 24);
    terminal.wait_until("the remedy", |screen| screen.contents().contains("overnight stop"));
    assert_eq!(terminal.wait_for_exit().code(), Some(1));
    for hello in other.join().unwrap() {
        // The one message that no version may change: everybody must be able to read it.
        let hello: Value = serde_json::from_str(&hello).unwrap();
        assert!(hello["hello"]["protocol"].is_u64() && hello["hello"]["version"].is_string(), "{hello}");
        assert!(hello["hello"]["pid"].is_u64(), "{hello}");
    }
    assert!(!sandbox.inbox().exists(), "nothing was left for a scheduler that does not understand it");
    sandbox.leave();
}

#[test]
fn a_scheduler_tells_a_client_of_another_version_who_it_is_and_goes_on() {
    let sandbox = Sandbox::serving("simulated:1");
    for protocol in [1, 4000] {
        let mut stream = UnixStream::connect(sandbox.root().join(".state/overnight.sock")).unwrap();
        let hello = json!({"hello": {"protocol": protocol, "version": "0.0.1", "pid": 1}});
        writeln!(stream, "{hello}").unwrap();
        let mut lines = BufReader::new(stream).lines();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(answer["hello"]["protocol"].is_u64() && answer["hello"]["pid"].is_u64(), "{answer}");
        assert_eq!(answer["hello"]["version"], env!("CARGO_PKG_VERSION"));
        if answer["hello"]["protocol"] != protocol {
            assert!(lines.next().is_none(), "it hangs up");
        }
    }
    sandbox.run(&["ls"]).ok();
}
