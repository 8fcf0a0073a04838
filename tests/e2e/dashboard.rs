//! The dashboard in a pseudoterminal: what it shows, what its keys do, and how it leaves the terminal.

use super::support::pty::Pty;
use super::support::sandbox::{Sandbox, eventually};
use super::{kill, nothing_is_left_behind, one_gpu, wait_for_gate};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// A terminal as it must be left: the old screen, the cursor, no open update.
#[track_caller]
fn is_restored(terminal: &Pty) {
    let raw = terminal.raw();
    let last = |sequence: &str| raw.windows(sequence.len()).rposition(|bytes| bytes == sequence.as_bytes());
    for (undo, act) in
        [("\x1b[?1049l", "\x1b[?1049h"), ("\x1b[?25h", "\x1b[?25l"), ("\x1b[?2026l", "\x1b[?2026h")]
    {
        let undone = last(undo).unwrap_or_else(|| panic!("{undo:?} was never sent"));
        assert!(last(act).is_none_or(|at| at < undone), "{act:?} is the last word");
    }
    assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
}

#[test]
fn the_dashboard_shows_a_dropped_job_cancels_it_and_gives_the_terminal_back() {
    let sandbox = Sandbox::serving("simulated:2");
    let mut terminal = sandbox.in_terminal(&[], 80, 24);
    terminal.wait_for_text("No jobs yet");
    let gate = wait_for_gate(&sandbox.gate("never"));
    // A warning that comes between two of its sleeps ends it too.
    let work = format!("trap 'exit 3' TERM\necho at work\n{gate}");
    sandbox.drop_file("night-shift.yaml", &one_gpu(&work, ""));
    terminal.resize(120, 40);
    terminal.wait_for_text("at work");
    terminal.resize(80, 24);
    // The event library may lose a key that comes together with a change of size.
    terminal.wait_for_text("log| at work");
    // A cancel is refused for a job that has moved on since it was drawn: the row itself says that it runs.
    terminal.wait_until("a row that runs", |screen| {
        screen.contents().lines().any(|line| line.contains("night-shift") && line.contains(" RUN "))
    });

    // Enter keeps it: that is the safe button.
    terminal.send("x");
    terminal.wait_for_text("Keep it");
    terminal.send("\r");
    terminal.wait_for_no_text("Keep it");
    assert_eq!(sandbox.wait_for_state("night-shift", "running")["cancel_at"], Value::Null);

    terminal.send("x");
    terminal.wait_for_text("Keep it");
    terminal.send("!");
    assert_eq!(sandbox.wait_for_end("night-shift"), "cancelled");
    terminal.send("q");
    let status = terminal.wait_for_exit();
    assert_eq!(status.code(), Some(0));
    is_restored(&terminal);
    assert_eq!(sandbox.jobs().len(), 1, "the scheduler goes on");
    nothing_is_left_behind(&sandbox);
}

#[test]
fn the_dashboard_is_silent_when_nothing_happens_and_ends_on_a_signal() {
    let sandbox = Sandbox::serving("simulated:2");
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = sandbox.in_terminal(&[], 80, 24);
        terminal.wait_for_text("No jobs yet");
        eventually("half a second without a byte", || {
            terminal.is_quiet_for(Duration::from_millis(500)).then_some(())
        });
        assert!(terminal.is_quiet_for(Duration::from_secs(2)), "it paints although nothing happens");
        kill(terminal.pid(), signal);
        terminal.wait_for_exit();
        is_restored(&terminal);
    }
    assert_eq!(sandbox.jobs().len(), 0, "the scheduler goes on");
}

#[test]
fn the_dashboard_starts_a_scheduler_that_outlives_it() {
    let sandbox = Sandbox::new("none");
    let config = sandbox.dir().join("config.toml");
    fs::write(&config, "gpus = \"none\"\n").unwrap();
    let mut terminal = sandbox.in_terminal(&["--config", config.to_str().unwrap()], 80, 24);
    terminal.wait_for_text("No jobs yet");
    terminal.send("q");
    // Ends only if the scheduler did not inherit the terminal.
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
    is_restored(&terminal);
    sandbox.drop_file("later.yaml", &one_gpu("true", "").replace("gpus: 1", "gpus: 0"));
    assert_eq!(sandbox.wait_for_end("later"), "succeeded");
    sandbox.run(&["stop"]).ok();
    eventually("a stopped scheduler", || (sandbox.run(&["ls", "--json"]).code == 5).then_some(()));
}

#[test]
fn a_terminal_that_is_asked_for_its_background_decides_the_theme() {
    let sandbox = Sandbox::serving("simulated:1");
    let config = sandbox.dir().join("config.toml");
    fs::write(&config, "theme = {dark = \"nord\", light = \"okabe-light\", detect = \"osc11\"}\n").unwrap();
    let mut terminal = sandbox.in_terminal(&["--config", config.to_str().unwrap()], 120, 40);
    eventually("the question", || terminal.raw().windows(5).any(|bytes| bytes == b"\x1b]11;").then_some(()));
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;4c");
    terminal.wait_for_text("No jobs yet");
    terminal.send(",");
    terminal.wait_for_text("okabe-light");
    terminal.send("\x1bq");
    assert_eq!(terminal.wait_for_exit().code(), Some(0), "nothing of the answer was taken for a key");
    is_restored(&terminal);
}

#[test]
fn without_a_terminal_the_dashboard_points_to_the_verbs() {
    let sandbox = Sandbox::serving("simulated:1");
    let run = sandbox.run(&[]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("not a terminal") && run.stderr.contains("overnight ls"), "{}", run.stderr);
}

#[test]
fn the_test_terminal_has_a_size_a_controlling_session_and_an_answer_to_the_cursor_question() {
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "printf 'abc\\e[6n'; read -rsd R at; echo; echo \"cursor ${at#*[}\"; stty size </dev/tty; read -r key; stty size; echo \"$key\""]);
    let mut terminal = Pty::spawn(shell, 40, 10);
    terminal.wait_for_text("cursor 1;4");
    terminal.wait_for_text("10 40");
    terminal.resize(70, 20);
    terminal.send("pressed\r");
    terminal.wait_for_text("20 70");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
    assert!(String::from_utf8_lossy(&terminal.raw()).ends_with("pressed\r\n"));
}

#[test]
fn a_refusal_whose_cause_is_mended_elsewhere_goes_by_looking_again() {
    let sandbox = Sandbox::serving("simulated:1");
    let mut terminal = sandbox.in_terminal(&[], 80, 24);
    terminal.wait_for_text("No jobs yet");
    let code = sandbox.dir().join("code");
    let work = format!("work: {{in: {}, run: \"test -e there\"}}", code.display());
    let request = "request: {gpus: 1, cpus: 1, memory: 1GiB, for: 5m}";
    sandbox.drop_file("later.yaml", &format!("{work}\ndata: []\n{request}\noutput: []\n"));
    terminal.wait_for_text("Inbox(1!)");
    fs::create_dir(&code).unwrap();
    fs::write(code.join("there"), "").unwrap();
    terminal.send("5");
    terminal.wait_for_text("does not exist");
    terminal.send("R");
    assert_eq!(sandbox.wait_for_end("later"), "succeeded");
    terminal.wait_for_no_text("Inbox(1!)");
    terminal.send("q");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
}

#[test]
fn a_refused_file_is_mended_with_two_keys_and_its_job_runs() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::serving("simulated:2");
    let mut terminal = sandbox.in_terminal(&[], 80, 24);
    terminal.wait_for_text("No jobs yet");
    let text = one_gpu("echo mended", "").replace("gpus: 1", "gpu_count: 2");
    assert!(text.contains("gpu_count"), "{text}");
    sandbox.drop_file("sweep.yaml", &text);
    let file = sandbox.inbox().join("sweep.yaml");
    terminal.wait_for_text("Inbox(1!)");
    terminal.send("5");
    terminal.wait_for_text("f mends it in place");
    terminal.send("f");
    terminal.wait_for_text("+ ");
    terminal.wait_for_text("Keep it");
    // Nothing is written before the answer, and Enter is no.
    terminal.send("\r");
    terminal.wait_for_no_text("Keep it");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    terminal.wait_for_text("f mends it in place");
    terminal.send("f");
    terminal.wait_for_text("Keep it");
    terminal.send("y");
    assert_eq!(sandbox.wait_for_end("sweep"), "succeeded");
    terminal.wait_for_no_text("Inbox(1!)");
    terminal.send("q");
    assert_eq!(terminal.wait_for_exit().code(), Some(0));
    nothing_is_left_behind(&sandbox);
}
