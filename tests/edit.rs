//! `edit` and `undo` through the real binary, with real editors: programs that change the file they are given.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use overnight::client::Client;
use overnight::config::Paths;
use overnight::model::{Generation, JobId, Priority};
use overnight::protocol::{Change, Command, Place, Query, Reply, Request};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;
use support::sandbox::{Run, Sandbox, eventually};

/// A scheduler whose two GPUs are held until the gate `end`, and jobs that wait: `first` runs.
fn busy(waiting: &[&str]) -> Sandbox {
    let sandbox = Sandbox::serving("simulated:2");
    let run = format!("until [ -e '{}' ]; do sleep 0.02; done", sandbox.gate("end").display());
    submit(&sandbox, "first", &text(&run, "gpus: 2"));
    sandbox.wait_for_state("first", "running");
    for name in waiting {
        submit(&sandbox, name, &text("echo the old one", "gpus: 1"));
    }
    sandbox
}

fn text(run: &str, request: &str) -> String {
    format!(
        "# as its owner wrote it\nwork:\n  run: |\n    {run}\ndata: []\nrequest:\n  {request}\n  cpus: 1\n  memory: 1GiB\n  for: 5m\noutput: []\n"
    )
}

fn submit(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.dir().join(format!("{name}.yaml"));
    fs::write(&path, text).unwrap();
    sandbox.run(&["submit", path.to_str().unwrap()]).ok();
}

/// An editor that does this to the file `$1`.
fn editor(sandbox: &mut Sandbox, does: &str) {
    let path = sandbox.dir().join("editor.sh");
    fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
    sandbox.set("VISUAL", &format!("sh '{}'", path.display()));
}

/// The names of those that wait, in the order of the line.
fn line(sandbox: &Sandbox) -> Vec<String> {
    let mut waiting: Vec<(u64, String)> = sandbox
        .jobs()
        .iter()
        .filter_map(|job| Some((job["place"].as_u64()?, job["name"].as_str()?.to_owned())))
        .collect();
    waiting.sort();
    waiting.into_iter().map(|(_, name)| name).collect()
}

fn field<'v>(job: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(job, |value, name| &value[*name])
}

fn job_yaml(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.job_folder(&sandbox.show(name)).join("job.yaml")).unwrap_or_default()
}

fn connect(sandbox: &Sandbox) -> Client {
    Client::connect(&Paths::below(&sandbox.root()), Duration::from_secs(10)).unwrap()
}

fn ask(client: &mut Client, command: Command) -> Reply {
    client.request(Request::Command(command)).unwrap()
}

fn resolve(client: &mut Client, name: &str) -> (JobId, Generation) {
    match client.request(Request::Query(Query::Resolve { name: name.to_owned() })).unwrap() {
        Reply::Resolved { job, generation } => (job, generation),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn said(run: &Run, words: &[&str]) {
    for one in words {
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains(one), "{one} is not in:\n{all}");
    }
}

#[test]
fn an_edit_in_the_editor_keeps_number_and_place_and_runs_the_new_request() {
    let mut sandbox = busy(&["a", "b", "c"]);
    editor(&mut sandbox, "sed -i 's/the old one/the new one/; s/for: 5m/for: 4m # shorter/' \"$1\"");
    let before = sandbox.show("b");
    let run = sandbox.run(&["edit", "b", "--yes"]).ok();
    said(&run, &["work.run  echo the old one -> echo the new one", "request.for  5m -> 4m", "is changed"]);
    let after = sandbox.show("b");
    for kept in ["id", "submitted_at", "place", "priority"] {
        assert_eq!(before[kept], after[kept], "{kept}");
    }
    assert_eq!(line(&sandbox), ["a", "b", "c"]);
    assert_eq!(field(&after, &["spec", "request", "for"]), "4m");
    // What lies in its folder is what it asks, with what its owner wrote beside it.
    eventually("the new text", || job_yaml(&sandbox, "b").contains("4m # shorter").then_some(()));
    assert!(job_yaml(&sandbox, "b").starts_with("# as its owner wrote it"));
    // The copy that was edited is gone.
    assert_eq!(fs::read_dir(sandbox.root().join(".state/edit")).unwrap().count(), 0);
    sandbox.open_gate("end");
    assert_eq!(sandbox.wait_for_end("b"), "succeeded");
    assert!(sandbox.run(&["log", "b"]).ok().stdout.contains("the new one"));
}

#[test]
fn more_gpus_lose_the_place_which_is_said_before() {
    let sandbox = busy(&["a", "b", "c"]);
    let dry = sandbox.run(&["edit", "a", "--gpus", "2", "--dry-run"]).ok();
    said(&dry, &["request.gpus  1 -> 2", "it loses its place"]);
    assert_eq!(line(&sandbox), ["a", "b", "c"]);
    let document = sandbox.run(&["edit", "a", "--gpus", "2", "--yes", "--json"]).json();
    assert_eq!(document["loses_place"], true, "{document:#}");
    assert_eq!(document["changes"][0]["field"], "request.gpus", "{document:#}");
    assert_eq!(line(&sandbox), ["b", "c", "a"]);
    assert!(
        eventually("the text", || Some(job_yaml(&sandbox, "a")).filter(|text| text.contains("gpus: 2")))
            .contains("# as its owner")
    );
    said(&sandbox.run(&["undo", "a"]).ok(), &["asks for what it asked before: request.gpus"]);
    assert_eq!(line(&sandbox), ["a", "b", "c"]);
}

#[test]
fn a_few_options_change_name_limit_and_priority_and_the_file_says_so() {
    let sandbox = busy(&["a", "b"]);
    let id = sandbox.show("b")["id"].clone();
    sandbox.run(&["edit", "b", "--name", "other", "--for", "90m", "--priority", "7", "--yes"]).ok();
    let job = sandbox.show("other");
    assert_eq!((&job["id"], &job["priority"]), (&id, &Value::from(7)));
    assert_eq!(line(&sandbox), ["other", "a"]);
    let text =
        eventually("the text", || Some(job_yaml(&sandbox, "other")).filter(|text| text.contains("1h30m")));
    assert!(text.contains("name: other") && text.contains("priority: 7"), "{text}");
    assert!(!sandbox.root().join(format!("jobs/{id}-b")).exists(), "the old folder is this one");
    // An edit of the text that is there now changes nothing.
    let path = sandbox.dir().join("same.yaml");
    fs::write(&path, text).unwrap();
    said(&sandbox.run(&["edit", "other", "--file", path.to_str().unwrap(), "--yes"]).ok(), &["is as it was"]);
}

#[test]
fn a_bad_file_is_shown_with_carets_and_changes_nothing() {
    let mut sandbox = busy(&["a"]);
    let before = sandbox.show("a");
    editor(&mut sandbox, "sed -i 's/gpus: 1/gpus: many/; s/for: 5m/for: 5/' \"$1\"");
    let run = sandbox.run(&["edit", "a", "--yes"]);
    assert_eq!(run.code, 1);
    said(&run, &["gpus: many", "^^^^", "for: 5", "is as it was"]);
    let path = sandbox.dir().join("bad.yaml");
    for (text, why) in [
        (text("x", "gpus: 9"), "gpus"),
        (format!("{}---\n{}", text("x", "gpus: 1"), text("y", "gpus: 1")), "an edit is of one"),
    ] {
        fs::write(&path, text).unwrap();
        let run = sandbox.run(&["edit", "a", "--file", path.to_str().unwrap(), "--yes"]);
        assert_eq!(run.code, 1);
        said(&run, &[why]);
    }
    let after = sandbox.show("a");
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(after["edited_until"], Value::Null);
    sandbox.open_gate("end");
    assert_eq!(sandbox.wait_for_end("a"), "succeeded");
}

#[test]
fn an_editor_that_fails_or_is_killed_leaves_the_job_and_no_mark() {
    let mut sandbox = busy(&["a"]);
    for does in ["exit 7", "kill -9 $$", "exec sleep-is-no-such-program"] {
        editor(&mut sandbox, does);
        let run = sandbox.run(&["edit", "a", "--yes"]);
        assert_eq!(run.code, 1);
        said(&run, &["has failed", "VISUAL or EDITOR"]);
        assert_eq!(sandbox.show("a")["edited_until"], Value::Null);
    }
    editor(&mut sandbox, "exit 0");
    said(&sandbox.run(&["edit", "a", "--yes"]).ok(), &["is as it was"]);
    assert_eq!(sandbox.show("a")["edited_until"], Value::Null);
}

#[test]
fn nobody_is_asked_where_nobody_answers() {
    let sandbox = busy(&["a"]);
    let run = sandbox.run(&["edit", "a", "--gpus", "2"]);
    assert_eq!(run.code, 2);
    said(&run, &["--yes", "--dry-run"]);
    let done = sandbox.run(&["edit", "first", "--gpus", "1", "--yes"]);
    assert_eq!(done.code, 1);
    said(&done, &["only a waiting job can be edited"]);
    said(&sandbox.run(&["edit", "nobody", "--gpus", "1", "--yes"]), &["no job named nobody"]);
}

#[test]
fn a_person_is_asked_and_may_edit_again() {
    let mut sandbox = busy(&["a"]);
    // The first try is bad, the second one good.
    let mark = sandbox.dir().join("tried");
    let does = format!(
        "if [ -e '{0}' ]; then sed -i 's/gpus: many/gpus: 2/' \"$1\"; else touch '{0}'; sed -i 's/gpus: 1/gpus: many/' \"$1\"; fi",
        mark.display()
    );
    editor(&mut sandbox, &does);
    let mut pty = sandbox.in_terminal(&["edit", "a"], 100, 40);
    pty.wait_for_text("e edits it again");
    assert_ne!(sandbox.show("a")["edited_until"], Value::Null);
    pty.send("e\r");
    pty.wait_for_text("apply? [y/N]");
    pty.send("y\r");
    pty.wait_for_text("is changed");
    assert!(pty.wait_for_exit().success());
    assert_eq!(field(&sandbox.show("a"), &["spec", "request", "gpus"]), 2);
    // Enter is no.
    let mut pty = sandbox.in_terminal(&["edit", "a", "--gpus", "1"], 100, 40);
    pty.wait_for_text("apply? [y/N]");
    pty.send("\r");
    pty.wait_for_text("is as it was");
    assert!(pty.wait_for_exit().success());
    assert_eq!(field(&sandbox.show("a"), &["spec", "request", "gpus"]), 2);
}

/// An editor that waits for a gate, and then does its work.
fn slow_editor(sandbox: &mut Sandbox, then: &str) {
    let (there, go) = (sandbox.gate("editor"), sandbox.gate("go"));
    let wait = format!(
        "touch '{}'; until [ -e '{}' ]; do [ -e '{}' ] || exit 9; sleep 0.02; done",
        there.display(),
        go.display(),
        there.display()
    );
    editor(sandbox, &format!("{wait}\n{then}"));
}

/// Ended with its test, whatever that comes to.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until_there(gate: &Path) {
    eventually("an editor", || gate.exists().then_some(()));
}

#[test]
fn of_two_editors_on_one_job_the_second_is_told_who_and_until_when() {
    let mut sandbox = busy(&["a"]);
    slow_editor(&mut sandbox, "sed -i 's/for: 5m/for: 6m/' \"$1\"");
    let mut first = Running(sandbox.command(&["edit", "a", "--yes"]).spawn().unwrap());
    until_there(&sandbox.gate("editor"));
    let job = sandbox.show("a");
    assert!(job["why"].as_str().unwrap().contains("being edited by"), "{job:#}");
    said(&sandbox.run(&["ls"]).ok(), &["editing"]);
    for words in [&["edit", "a", "--yes"][..], &["edit", "a", "--for", "1h", "--yes"]] {
        let second = sandbox.run(words);
        assert_eq!(second.code, 1);
        said(&second, &["is being edited by", "until"]);
    }
    // It does not start although there is room, and does as soon as the edit has ended.
    sandbox.open_gate("end");
    assert_eq!(sandbox.wait_for_end("first"), "succeeded");
    assert_eq!(sandbox.show("a")["state"], "queued");
    sandbox.open_gate("go");
    assert!(first.0.wait().unwrap().success());
    assert_eq!(sandbox.wait_for_end("a"), "succeeded");
    assert_eq!(field(&sandbox.show("a"), &["spec", "request", "for"]), "6m");
}

#[test]
fn a_scheduler_that_dies_during_an_edit_costs_no_text_and_keeps_the_mark() {
    let mut sandbox = busy(&["a"]);
    slow_editor(&mut sandbox, "sed -i 's/for: 5m/for: 6m/' \"$1\"");
    let editing =
        sandbox.command(&["edit", "a", "--yes"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    until_there(&sandbox.gate("editor"));
    let until = sandbox.show("a")["edited_until"].clone();
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_eq!(sandbox.show("a")["edited_until"], until, "the mark is durable");
    sandbox.open_gate("go");
    let output = editing.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{words}");
    let kept =
        words.lines().find_map(|line| line.split("--file ").nth(1)).unwrap_or_else(|| panic!("{words}"));
    assert!(fs::read_to_string(kept).unwrap().contains("for: 6m"));
    // The mark is still there for its ten minutes: the job is somebody's.
    said(&sandbox.run(&["edit", "a", "--file", kept, "--yes"]), &["is being edited by"]);
    assert_eq!(field(&sandbox.show("a"), &["spec", "request", "for"]), "5m");
}

#[test]
fn everything_is_undone_from_the_command_line_also_by_the_next_scheduler() {
    let mut sandbox = busy(&["a", "b", "c"]);
    sandbox.run(&["top", "c"]).ok();
    sandbox.run(&["priority", "a", "--", "-5"]).ok();
    sandbox.run(&["pause", "b"]).ok();
    sandbox.run(&["edit", "b", "--for", "1h", "--yes"]).ok();
    sandbox.run(&["cancel", "c", "--undo", "10m"]).ok();
    let list = sandbox.run(&["undo", "--list", "--json"]).json();
    let what: Vec<&str> =
        list["undo"].as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["cancel", "edit: request.for", "pause", "priority 0 -> -5", "move"]);
    said(&sandbox.run(&["undo", "--list"]).ok(), &["WHAT", "priority 0 -> -5", "UNTIL"]);
    sandbox.kill_scheduler();
    sandbox.serve();
    for words in [
        "is not cancelled",
        "asks for what it asked before: request.for",
        "waits for its turn again",
        "has priority 0 again",
        "is back in its old place",
    ] {
        said(&sandbox.run(&["undo"]).ok(), &[words]);
    }
    assert_eq!(line(&sandbox), ["a", "b", "c"]);
    assert_eq!(field(&sandbox.show("b"), &["spec", "request", "for"]), "5m");
    let nothing = sandbox.run(&["undo"]);
    assert_eq!(nothing.code, 1);
    said(&nothing, &["nothing can be undone"]);
}

#[test]
fn what_a_job_was_submitted_with_is_in_the_text_that_is_edited() {
    let sandbox = busy(&[]);
    let path = sandbox.dir().join("two.yaml");
    let two =
        format!("name: one\n{}---\nname: two\n{}", text("echo 1", "gpus: 1"), text("echo 2", "gpus: 1"));
    fs::write(&path, two).unwrap();
    sandbox.run(&["submit", path.to_str().unwrap(), "--gpus", "2", "--env", "A=b c"]).ok();
    let mut client = connect(&sandbox);
    let (job, _) = resolve(&mut client, "two");
    let Reply::JobFile(file) = client.request(Request::Query(Query::JobFile { job })).unwrap() else {
        panic!()
    };
    assert!(file.text.contains("echo 2") && !file.text.contains("echo 1"), "{}", file.text);
    assert!(file.text.contains("gpus: 2") && file.text.contains("A: 'b c'"), "{}", file.text);
    assert_eq!(file.base.as_deref(), path.parent());
    // A retry has the text of what it tries again.
    sandbox.run(&["cancel", "two"]).ok();
    sandbox.run(&["retry", &job.to_string()]).ok();
    let (again, _) = resolve(&mut client, "two");
    assert_ne!(again, job);
    let Reply::JobFile(other) = client.request(Request::Query(Query::JobFile { job: again })).unwrap() else {
        panic!()
    };
    assert_eq!(file.text, other.text);
}

#[test]
fn what_if_tells_what_a_move_does_to_others_and_does_nothing() {
    let sandbox = busy(&["a", "b", "c"]);
    let before = line(&sandbox);
    let mut client = connect(&sandbox);
    let (job, generation) = resolve(&mut client, "c");
    let change = Change::Move(Place::Top);
    let query = Request::Query(Query::WhatIf { job, change });
    let Reply::WhatIf(answer) = client.request(query).unwrap() else { panic!() };
    let rows: Vec<(&str, Option<u32>, Option<u32>)> =
        answer.rows.iter().map(|row| (row.name.as_str(), row.old.place, row.new.place)).collect();
    assert_eq!(rows, [("c", Some(3), Some(1)), ("a", Some(1), Some(2)), ("b", Some(2), Some(3))]);
    assert!(answer.rows[0].new.starts_at < answer.rows[0].old.starts_at, "{answer:?}");
    assert_eq!(line(&sandbox), before);
    let query = Request::Query(Query::WhatIf { job, change: Change::Priority(Priority::clamped(1)) });
    assert!(matches!(client.request(query).unwrap(), Reply::WhatIf(_)));
    assert!(matches!(ask(&mut client, Command::Move { job, generation, to: Place::Top }), Reply::Ok { .. }));
    assert_eq!(line(&sandbox), ["c", "a", "b"]);
}
