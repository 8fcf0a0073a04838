//! Flows of the dashboard through the real binary in a terminal, over a real scheduler: submitting, editing, copying, undoing,
//! and other programs that get the terminal and give it back.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "shared with the end-to-end tests")]
mod support;
#[path = "support/terminal.rs"]
#[expect(dead_code, reason = "shared with the tests of the dashboard's terminal")]
mod terminal;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::pty::Pty;
use support::sandbox::{Sandbox, eventually};

/// A job that ends when its gate opens, on so many GPUs.
fn waits(sandbox: &Sandbox, gate: &str, gpus: u32) -> String {
    let gate = sandbox.gate(gate);
    format!(
        "work:\n  run: |\n    trap 'exit 3' TERM\n    echo at work\n    until [ -e '{}' ]; do sleep 0.05; done\ndata: []\nrequest: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: 5m}}\noutput: []\n",
        gate.display()
    )
}

/// A program of the test's own.
fn script(sandbox: &Sandbox, name: &str, text: &str) -> PathBuf {
    let path = sandbox.dir().join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A sandbox whose temporary files are its own, with an editor.
fn with_editor(editor: &str) -> Sandbox {
    let mut sandbox = Sandbox::new("simulated:1");
    let (tmp, editor) = (sandbox.dir().join("tmp"), script(&sandbox, "editor", editor));
    fs::create_dir(&tmp).unwrap();
    sandbox.set("TMPDIR", tmp.to_str().unwrap());
    sandbox.set("EDITOR", editor.to_str().unwrap());
    sandbox.serve();
    sandbox
}

/// One job runs on the only GPU; another one waits, and has the cursor.
fn one_waits(sandbox: &Sandbox) -> Pty {
    sandbox.drop_file("first.yaml", &waits(sandbox, "never", 1));
    sandbox.wait_for_state("first", "running");
    sandbox.drop_file("second.yaml", &waits(sandbox, "never", 1));
    sandbox.wait_for_state("second", "queued");
    let mut terminal = sandbox.in_terminal(&[], 100, 30);
    terminal.wait_for_text("second");
    terminal.send("G");
    terminal.wait_until("the cursor on the second job", |screen| {
        screen.contents().lines().any(|line| line.starts_with('>') && line.contains("second"))
    });
    terminal
}

/// What the scheduler has said of the last change has arrived: a key is about the job as it is now.
fn is_settled(terminal: &Pty) {
    terminal.wait_for_no_text("EDIT");
    eventually("half a second in which nothing changes", || {
        terminal.is_quiet_for(Duration::from_millis(500)).then_some(())
    });
}

fn leave(terminal: &mut Pty) {
    terminal.send("q");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
}

/// No private copy is left, wherever they are made.
fn no_copy_is_left(sandbox: &Sandbox) {
    eventually("no private copy", || {
        fs::read_dir(sandbox.dir().join("tmp")).unwrap().next().is_none().then_some(())
    });
}

fn count(terminal: &Pty, sequence: &str) -> usize {
    terminal.raw().windows(sequence.len()).filter(|bytes| *bytes == sequence.as_bytes()).count()
}

fn gpus(sandbox: &Sandbox, job: &str) -> Value {
    sandbox.show(job)["spec"]["request"].clone()
}

#[test]
fn a_file_is_picked_previewed_and_submitted_and_u_removes_it() {
    let sandbox = Sandbox::serving("simulated:1");
    let work = sandbox.dir().join("home");
    fs::write(work.join("bad.yaml"), "work: {run: true}\nrequest:\n  gpu_count: 2\n").unwrap();
    fs::write(work.join("train.yaml"), waits(&sandbox, "never", 1)).unwrap();
    sandbox.drop_file("first.yaml", &waits(&sandbox, "never", 1));
    sandbox.wait_for_state("first", "running");
    let mut terminal = sandbox.in_terminal(&[], 120, 36);
    terminal.wait_for_text("first");
    terminal.send("n");
    terminal.wait_for_text("home/bad.yaml");
    terminal.send("bad");
    terminal.wait_for_text("^^^^^^^^^ not a field of request");
    terminal.send("\x15train");
    terminal.wait_for_text("ok: place 1");
    terminal.send("\r");
    terminal.wait_for_text("Submit ?");
    terminal.wait_for_text("place 1");
    terminal.send("\r");
    terminal.wait_for_text("queued, place 1   u removes it");
    sandbox.wait_for_state("train", "queued");
    terminal.wait_until("its row", |screen| {
        screen.contents().lines().any(|l| l.contains(" WAIT ") && l.contains("train"))
    });
    // A cancel that was asked for after it is taken back before it.
    terminal.send("x");
    terminal.wait_for_text("Cancel #1 first ?");
    terminal.send("y");
    terminal.wait_for_text("cancelling #1 in ");
    terminal.send("u");
    terminal.wait_for_text("#1 is not cancelled");
    terminal.send("u");
    assert_eq!(sandbox.wait_for_end("train"), "cancelled");
    assert_eq!(sandbox.show("first")["state"], "running");
    leave(&mut terminal);
}

#[test]
fn what_was_done_to_many_and_to_one_of_them_is_undone_in_its_order() {
    let sandbox = Sandbox::serving("simulated:1");
    let mut terminal = one_waits(&sandbox);
    sandbox.drop_file("third.yaml", &waits(&sandbox, "never", 1));
    terminal.wait_for_text("third");
    let priorities = |wanted: [i64; 2]| {
        eventually(&format!("the priorities {wanted:?}"), || {
            let has = ["second", "third"].map(|job| sandbox.show(job)["priority"].as_i64());
            (has == wanted.map(Some)).then_some(())
        });
    };
    terminal.send("  ");
    terminal.wait_for_text("2 marked");
    terminal.send("+");
    terminal.wait_for_text("2 raised");
    priorities([10, 10]);
    terminal.send("\x1b");
    terminal.wait_for_no_text("2 raised");
    terminal.send("\x1b");
    terminal.wait_for_no_text("2 marked");
    is_settled(&terminal);
    terminal.send("+");
    priorities([10, 20]);
    is_settled(&terminal);
    terminal.send("u");
    priorities([10, 10]);
    is_settled(&terminal);
    terminal.send("u");
    priorities([0, 0]);
    leave(&mut terminal);
}

#[test]
fn a_template_is_changed_in_a_private_copy_and_submitted_twice() {
    let sandbox = with_editor("printf '%s' \"$1\" > \"$HOME/edited\"; cat \"$HOME/new.yaml\" > \"$1\"");
    fs::write(sandbox.dir().join("home/new.yaml"), waits(&sandbox, "go", 1)).unwrap();
    let mut terminal = sandbox.in_terminal(&[], 120, 36);
    terminal.wait_for_text("No jobs yet");
    terminal.send("n\t");
    terminal.wait_for_text("[Templates]");
    terminal.wait_for_text("training");
    terminal.send("other");
    terminal.send("\r");
    terminal.wait_for_text("Submit ?");
    terminal.send("e");
    terminal.wait_for_text("trap 'exit 3' TERM");
    let copy = fs::read_to_string(sandbox.dir().join("home/edited")).unwrap();
    assert!(
        copy.starts_with(sandbox.dir().join("tmp").to_str().unwrap()) && copy.ends_with("/other.yaml"),
        "{copy}"
    );
    no_copy_is_left(&sandbox);
    terminal.wait_for_text("now on gpu 0");
    terminal.send("c\x152\r");
    terminal.wait_for_text("other-1 .. other-2");
    terminal.send("\r");
    sandbox.wait_for_state("other-1", "running");
    sandbox.wait_for_state("other-2", "queued");
    sandbox.open_gate("go");
    assert_eq!(sandbox.wait_for_end("other-2"), "succeeded");
    leave(&mut terminal);
}

#[test]
fn an_earlier_request_is_found_and_submitted_again() {
    let sandbox = Sandbox::serving("simulated:1");
    sandbox.drop_file("once.yaml", &waits(&sandbox, "open", 1));
    sandbox.open_gate("open");
    assert_eq!(sandbox.wait_for_end("once"), "succeeded");
    let mut terminal = sandbox.in_terminal(&[], 120, 36);
    terminal.wait_for_text("Nothing waits and nothing runs");
    terminal.send("n\t\t");
    terminal.wait_for_text("#1 once");
    terminal.wait_for_text("ok: would start now");
    terminal.send("\r");
    terminal.wait_for_text("Submit ?");
    terminal.wait_for_text("now on gpu 0");
    terminal.send("\r");
    eventually("a second job of that name", || (sandbox.jobs().len() == 2).then_some(()));
    // The retry of an ended job asks first, and Enter does it.
    terminal.send("4");
    terminal.wait_for_text(" ok ");
    terminal.send("r");
    terminal.wait_for_text("a folder of its own");
    terminal.send("\r");
    eventually("a third job", || (sandbox.jobs().len() == 3).then_some(()));
    leave(&mut terminal);
}

#[test]
fn an_edit_is_shown_applied_and_undone() {
    let sandbox = with_editor("sed -i 's/5m/7m/' \"$1\"");
    let mut terminal = one_waits(&sandbox);
    terminal.send("e");
    terminal.wait_for_text("Change #2 ?");
    terminal.wait_for_text("request.for");
    terminal.wait_for_text("7m");
    no_copy_is_left(&sandbox);
    assert_eq!(gpus(&sandbox, "second")["for"], "5m", "only shown");
    terminal.send("y");
    eventually("the new limit", || (gpus(&sandbox, "second")["for"] == "7m").then_some(()));
    terminal.wait_for_no_text("EDIT");
    terminal.send("u");
    eventually("the old limit", || (gpus(&sandbox, "second")["for"] == "5m").then_some(()));
    // The list says what can be undone, in the scheduler's words.
    let raised = |text: &str| {
        text.lines().any(|line| line.contains("second") && line.contains(" 10 ") && !line.contains('~'))
    };
    loop {
        terminal.send("+");
        // A key that is pressed before the dashboard has heard of the undo is refused, politely.
        terminal.wait_until("the priority, or why not", |screen| {
            raised(&screen.contents()) || screen.contents().contains("look again")
        });
        if raised(&terminal.screen().contents()) {
            break;
        }
        terminal.send("\x1b");
        terminal.wait_for_no_text("look again");
    }
    terminal.send("U");
    terminal.wait_for_text("priority 0 -> 10");
    terminal.send("\r");
    eventually("the old priority", || (sandbox.show("second")["priority"] == 0).then_some(()));
    leave(&mut terminal);
}

#[test]
fn a_mistake_is_shown_with_carets_and_an_editor_that_fails_changes_nothing() {
    let sandbox = with_editor(
        "if [ -e \"$HOME/kill\" ]; then kill -9 $$; fi; if [ -e \"$HOME/idle\" ]; then exit 0; fi; sed -i 's/gpus:/gpu_count:/' \"$1\"",
    );
    let mut terminal = one_waits(&sandbox);
    terminal.send("e");
    terminal.wait_for_text("^^^^^^^^^");
    terminal.wait_for_text("e edit again");
    terminal.send("\x1b");
    terminal.wait_for_no_text("edit again");
    is_settled(&terminal);
    fs::write(sandbox.dir().join("home/kill"), "").unwrap();
    terminal.send("e");
    terminal.wait_for_text("was ended by signal 9: #2 is as it was");
    is_settled(&terminal);
    fs::remove_file(sandbox.dir().join("home/kill")).unwrap();
    fs::write(sandbox.dir().join("home/idle"), "").unwrap();
    terminal.send("e");
    terminal.wait_for_text("#2: nothing was changed");
    terminal.wait_for_no_text("EDIT");
    assert_eq!(sandbox.wait_for_state("second", "queued")["gpus"], 1);
    no_copy_is_left(&sandbox);
    leave(&mut terminal);
}

#[test]
fn a_quick_edit_changes_fields_and_says_what() {
    let sandbox = Sandbox::serving("simulated:1");
    let mut terminal = one_waits(&sandbox);
    terminal.send("E");
    terminal.wait_for_text("time limit");
    terminal.send("\t\x1520\t\x151h\t-b\r");
    terminal.wait_for_text("Change #2 ?");
    terminal.send("y");
    eventually("all of it", || {
        let job = sandbox.show("2");
        let request = &job["spec"]["request"];
        (job["name"] == "second-b" && job["priority"] == 20 && request["for"] == "1h").then_some(())
    });
    leave(&mut terminal);
}

/// The editor waits for its gate: what happens to the dashboard meanwhile must leave nothing.
fn editing(sandbox: &Sandbox) -> Pty {
    let mut terminal = one_waits(sandbox);
    terminal.send("e");
    terminal.wait_for_text("in the editor");
    assert!(!terminal.screen().alternate_screen(), "the editor has the terminal as it was");
    terminal
}

const PATIENT: &str = "echo in the editor; until [ -e \"$HOME/go\" ]; do sleep 0.05; done";

#[test]
fn a_signal_while_the_editor_runs_leaves_nothing_behind() {
    for signal in [Signal::TERM, Signal::HUP] {
        let sandbox = with_editor(&format!("echo $$ > \"$HOME/pid\"; {PATIENT}"));
        let mut terminal = editing(&sandbox);
        let dashboard = Pid::from_raw(terminal.pid() as i32).unwrap();
        rustix::process::kill_process(dashboard, signal).unwrap();
        terminal.wait_for_exit();
        assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
        nothing_is_left(&sandbox);
    }
}

#[test]
fn a_window_that_is_closed_while_the_editor_runs_leaves_nothing_behind() {
    let sandbox = with_editor(&format!("echo $$ > \"$HOME/pid\"; {PATIENT}"));
    let mut before = one_waits(&sandbox);
    leave(&mut before);
    let mut terminal = terminal::Terminal::run(sandbox.command(&[]), (100, 30));
    terminal.wait_for("second");
    terminal.press("Ge");
    terminal.wait_for("in the editor");
    terminal.close();
    nothing_is_left(&sandbox);
}

/// Neither the editor nor its copy is; the job is as it was.
fn nothing_is_left(sandbox: &Sandbox) {
    no_copy_is_left(sandbox);
    let editor = fs::read_to_string(sandbox.dir().join("home/pid")).unwrap();
    let process = Path::new("/proc").join(editor.trim());
    eventually("the end of the editor", || (!process.exists()).then_some(()));
    assert_eq!(sandbox.wait_for_state("second", "queued")["gpus"], 1);
}

#[test]
fn keys_and_signals_of_the_keyboard_are_the_editors_while_it_runs() {
    let sandbox = with_editor(&format!(
        "trap 'echo interrupted' INT; echo ready; until [ -e \"$HOME/next\" ]; do sleep 0.05; done; read line; echo \"read $line\"; {PATIENT}"
    ));
    let mut terminal = one_waits(&sandbox);
    terminal.send("e");
    terminal.wait_for_text("ready");
    terminal.send("\x03");
    terminal.wait_for_text("interrupted");
    fs::write(sandbox.dir().join("home/next"), "").unwrap();
    terminal.send("qqx\n");
    terminal.wait_for_text("read qqx");
    terminal.resize(110, 34);
    // What is typed too late is not for the dashboard either.
    terminal.send("q");
    fs::write(sandbox.dir().join("home/go"), "").unwrap();
    terminal.wait_for_text("#2: nothing was changed");
    terminal.wait_until("the whole new size", |screen| screen.contents().lines().nth(33).is_some());
    leave(&mut terminal);
}

#[test]
fn without_an_editor_it_says_what_to_set() {
    let mut sandbox = Sandbox::new("simulated:1");
    sandbox.set("VISUAL", "/nowhere/editor");
    sandbox.serve();
    let mut terminal = one_waits(&sandbox);
    terminal.send("e");
    terminal.wait_for_text("cannot be run: set VISUAL or EDITOR");
    // The words go at once, the state with the editor.
    terminal.send("\x1b");
    terminal.wait_for_no_text("EDIT");
    leave(&mut terminal);
}

#[test]
fn on_a_machine_without_any_editor_the_dashboard_is_one() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let bare = sandbox.dir().join("bare");
    fs::create_dir(&bare).unwrap();
    sandbox.set("PATH", bare.to_str().unwrap());
    let mut terminal = one_waits(&sandbox);
    terminal.send("e");
    terminal.wait_for_text("Ctrl-X done");
    // To the end of the line with the request.
    terminal.send(&format!("{}\x1b[F", "\x1b[B".repeat(6)));
    terminal.wait_for_text("7:51");
    terminal.send("\x7f, priority: 7}\x18");
    terminal.wait_for_text("request.priority");
    terminal.send("y");
    terminal.wait_for_text("#2 is changed: request.priority");
    assert_eq!(gpus(&sandbox, "second")["priority"], 7);
    leave(&mut terminal);
}

#[test]
fn a_copy_is_sent_as_osc_52_and_shown() {
    let sandbox = Sandbox::serving("simulated:1");
    let mut terminal = one_waits(&sandbox);
    terminal.send("y");
    terminal.wait_for_text("Copy of #2");
    terminal.send("i");
    terminal.wait_for_text("[2]");
    terminal.wait_for_text("sent to clipboard (if your terminal allows it)");
    assert_eq!(count(&terminal, "\x1b]52;c;Mg==\x07"), 1);
    terminal.send("yy");
    terminal.wait_for_text("[work:]");
    let begun = "\x1b]52;c;d29yazo";
    assert_eq!(count(&terminal, begun), 1, "the job file, from `work:` on");
    leave(&mut terminal);
}

#[test]
fn a_shell_in_the_output_folder_and_the_log_in_a_pager_come_back() {
    let mut sandbox = Sandbox::new("simulated:1");
    let shell = script(&sandbox, "shell", "pwd; echo a shell; read line");
    let tells = "head -c 100 \"$1\"; echo a pager, $(wc -c <\"$1\") bytes, $(tr -dc '\\0' <\"$1\" | wc -c) zeros; read line";
    let pager = script(&sandbox, "pager", tells);
    sandbox.set("SHELL", shell.to_str().unwrap());
    sandbox.set("PAGER", pager.to_str().unwrap());
    sandbox.serve();
    sandbox.drop_file("done.yaml", "work: {run: 'echo hello log; echo x > \"$OVERNIGHT_OUTPUT/x\"'}\ndata: []\nrequest: {gpus: 1, cpus: 1, memory: 1GiB, for: 5m}\noutput: [x]\n");
    assert_eq!(sandbox.wait_for_end("done"), "succeeded");
    let cwd = sandbox.dir().join("cwd");
    let mut terminal = sandbox.in_terminal(&["--cwd-file", cwd.to_str().unwrap()], 100, 30);
    terminal.wait_for_text("today 1 ok");
    terminal.send("4");
    terminal.wait_for_text(" ok ");
    let output = sandbox.job_folder(&sandbox.show("done")).join("output");
    terminal.send("o");
    terminal.wait_for_text("a shell");
    terminal.wait_until("the folder", |screen| {
        screen.contents().replace('\n', "").contains(output.to_str().unwrap())
    });
    terminal.send("\n");
    terminal.wait_for_text(" ok ");
    terminal.send("|");
    terminal.wait_for_text("a pager");
    terminal.wait_for_text("hello log");
    terminal.send("\n");
    terminal.wait_for_text(" ok ");
    // Of a log over its bound the pager gets what is left, without the hole.
    let log = fs::OpenOptions::new().write(true).open(output.with_file_name("log.txt")).unwrap();
    log.set_len(0).unwrap();
    log.write_all_at(&b"a line\n".repeat(70_000), 0).unwrap();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if fallocate(&log, hole, 1 << 16, 1 << 18).is_ok() {
        terminal.send("|");
        terminal.wait_for_text(&format!("{} bytes, 0 zeros", 490_000 - (1 << 18)));
        terminal.send("\n");
        terminal.wait_for_text(" ok ");
    } else {
        println!("SKIPPED: the file system makes no holes");
        terminal.send("|\n");
    }
    terminal.send("O");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
    assert_eq!(fs::read_to_string(&cwd).unwrap(), output.to_str().unwrap());
    assert_eq!(count(&terminal, "\x1b[?1049h"), 4, "taken at first and after each");
    assert_eq!(count(&terminal, "\x1b[?1049l"), 4);
}

#[test]
fn where_there_is_no_folder_yet_it_is_said() {
    let sandbox = Sandbox::serving("simulated:1");
    let mut terminal = one_waits(&sandbox);
    terminal.send("o");
    terminal.wait_for_text("is not there yet");
    terminal.send("O");
    terminal.wait_for_text("start it with --cwd-file");
    leave(&mut terminal);
}
