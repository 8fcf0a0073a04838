//! The dashboard in a real terminal: it is always given back, whatever ends it, and costs nothing when nothing moves.
//!
//! Each test runs this very program again inside a PTY, as one of the ignored tests at the end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/double.rs"]
#[expect(dead_code, reason = "others tell news")]
mod double;
#[path = "support/fixtures.rs"]
#[expect(dead_code, reason = "shared with the tests of the screens")]
mod fixtures;
#[path = "support/terminal.rs"]
#[expect(dead_code, reason = "shared with the tests of the line")]
mod terminal;

use double::Double;
use overnight::protocol::{Reply, Request, Snapshot};
use overnight::tui::{Connector, Depth, Exit, Glyphs, Options, Outside, Session, run};
use rustix::process::Signal;
use std::io::Write as _;
use std::process::Command;
use terminal::{PATIENCE_MS, Terminal};

fn dashboard(child: &str) -> Terminal {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color");
    Terminal::run(command, (80, 24))
}

/// Frame ended, mouse off, pastes and focus as before, plain, the cursor shown, the screen left: in this order.
const LEFT: &str = "\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?1004l\x1b[0m\x1b[?25h\x1b[?1049l";

fn given_back(terminal: &Terminal) {
    let text = String::from_utf8_lossy(&terminal.bytes).into_owned();
    assert_eq!(text.matches(LEFT).count(), 1, "given back in order: {:?}", text.rsplit('\n').next());
    assert_eq!(text.matches("\x1b[?1049l").count(), 1, "given back once");
    assert!(text.rfind("\x1b[?1049h").unwrap() < text.find(LEFT).unwrap());
    let after = &text[text.find(LEFT).unwrap() + LEFT.len()..];
    assert!(!after.contains("\x1b[?"), "nothing is drawn any more: {after:?}");
    assert!(terminal.is_sane(), "the modes of the terminal");
}

#[test]
fn leaving_gives_the_terminal_back() {
    for keys in ["q", "\x03"] {
        let mut terminal = dashboard("child_busy");
        terminal.wait_for("LIVE");
        assert!(!terminal.is_sane(), "the dashboard reads single keys");
        terminal.press("jjk");
        terminal.press(keys);
        assert_eq!(terminal.end(), 0);
        given_back(&terminal);
    }
}

#[test]
fn signals_give_the_terminal_back_and_end_it() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut terminal = dashboard("child_busy");
        terminal.wait_for("LIVE");
        terminal.signal(signal);
        assert_eq!(terminal.end(), code);
        given_back(&terminal);
    }
}

#[test]
fn a_panic_is_read_on_the_normal_screen() {
    let mut terminal = dashboard("child_panics");
    assert_ne!(terminal.end(), 0);
    given_back(&terminal);
    let text = String::from_utf8_lossy(&terminal.bytes).into_owned();
    let after = text.rsplit("\x1b[?1049l").next().unwrap();
    assert_eq!(after.matches("the double has had enough").count(), 1, "{after:?}");
}

#[test]
fn a_window_that_closes_ends_the_dashboard_at_once() {
    let mut terminal = dashboard("child_busy");
    terminal.wait_for("LIVE");
    let begun = overnight::clock::monotonic().0;
    assert_ne!(terminal.close(), 0);
    assert!(overnight::clock::monotonic().0 - begun < 10_000);
}

#[test]
fn a_window_that_closes_ends_it_even_where_hangups_are_ignored() {
    let mut shell = Command::new("bash");
    let exe = std::env::current_exe().unwrap();
    shell.args(["-c", "trap '' HUP; exec \"$0\" --exact child_deaf --ignored --nocapture --test-threads=1"]);
    shell.arg(exe);
    let mut terminal = Terminal::run(shell, (80, 24));
    terminal.wait_for("LIVE");
    let begun = overnight::clock::monotonic().0;
    assert_ne!(terminal.close(), 0);
    assert!(overnight::clock::monotonic().0 - begun < 2_000);
}

#[test]
fn keys_reach_the_scheduler_and_a_new_size_is_drawn() {
    let mut terminal = dashboard("child_busy");
    terminal.wait_for("LIVE");
    terminal.press("/diffusion\r");
    terminal.wait_for("/diffusion");
    // Somebody else's job: its number is asked for. At once: of a cancel with a window the row tells.
    terminal.press("x1!\r");
    terminal.wait_for("the double heard Cancel");
    terminal.resize((120, 40));
    terminal.wait_for("Meter  61.02 GPU-h today");
    // Esc clears the message, q leaves: one read of the terminal may bring both.
    terminal.press("\x1bq");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn clicks_are_asked_for_only_while_they_are_wanted() {
    let mut terminal = dashboard("child_busy");
    terminal.wait_for("LIVE");
    let seen = |terminal: &Terminal| String::from_utf8_lossy(&terminal.bytes).into_owned();
    assert!(!seen(&terminal).contains("\x1b[?1000h"), "off at first: text is selected as ever");
    terminal.press("M");
    terminal.wait_for("mouse on");
    assert!(seen(&terminal).contains("\x1b[?1000h\x1b[?1006h"));
    terminal.press("\x1b[<0;10;9M\x1b[<0;10;9m");
    terminal.wait_for("#142 llama-ft-8b");
    terminal.press("M");
    terminal.wait_for("mouse off");
    assert!(seen(&terminal).contains("\x1b[?1006l\x1b[?1000l"));
    terminal.press("M");
    terminal.wait_for("mouse on");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    let seen = seen(&terminal);
    assert!(seen.rfind("\x1b[?1000l") > seen.rfind("\x1b[?1000h") && !seen.contains("\x1b[?1003h"));
}

#[test]
fn a_stop_gives_the_terminal_back_and_fg_draws_everything_again() {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("TERM", "xterm-256color").env("HISTFILE", "/dev/null");
    shell.env("PS1", "what now? ");
    let mut terminal = Terminal::run(shell, (80, 24));
    let exe = std::env::current_exe().unwrap();
    terminal.press(&format!("{} --exact child_busy --ignored --nocapture\r", exe.display()));
    terminal.wait_for("LIVE");
    terminal.press("\x1a");
    terminal.wait_for("Stopped");
    assert!(String::from_utf8_lossy(&terminal.bytes).contains(LEFT));
    // The window has another size when the dashboard comes back.
    terminal.resize((120, 40));
    terminal.press("fg\r");
    terminal.wait_for("Meter  61.02 GPU-h today");
    assert!(String::from_utf8_lossy(&terminal.bytes).contains("\x1b[2J"), "drawn anew");
    terminal.resize((80, 24));
    terminal.wait_for("METER  held");
    terminal.press("q");
    terminal.wait_for("test result: ok");
    // What is typed before the shell has the terminal again may be lost.
    while !String::from_utf8_lossy(&terminal.bytes)
        .rsplit("test result: ok")
        .next()
        .unwrap()
        .contains("what now?")
    {
        assert!(terminal.read(PATIENCE_MS), "no shell came back:\n{}", terminal.screen());
    }
    terminal.press("exit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn an_error_gives_the_terminal_back_before_it_is_told() {
    let mut terminal = dashboard("child_fails");
    assert_ne!(terminal.end(), 0);
    given_back(&terminal);
    let text = String::from_utf8_lossy(&terminal.bytes).into_owned();
    assert!(text.rsplit(LEFT).next().unwrap().contains("Failed"), "{text:?}");
}

#[test]
fn a_log_is_followed_as_it_is_written_and_cannot_damage_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    let lines: Vec<String> = (0..=200_000).map(|n| format!("line {n}")).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_log", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color").current_dir(dir.path());
    let mut terminal = Terminal::run(command, (80, 24));
    terminal.wait_for("log| line 200000");
    terminal.press("l");
    terminal.wait_for("line 199990");
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"\x1b[2J\x1b[?1049l 10%|#  |\r100%|###| \x1b[31mred\x1b[0m\ta tab\n").unwrap();
    terminal.wait_for("100%|###| red");
    terminal.press("gg");
    terminal.wait_for("\nline 0\nline 1\n");
    terminal.wait_for("AT LINE 1");
    terminal.press("/line 123456\r");
    terminal.wait_for("AT LINE 123457");
    terminal.press("n");
    terminal.wait_for("the search went on at the beginning");
    terminal.press("/nowhere\r");
    terminal.wait_for("no line of this log has \"nowhere\"");
    // The message goes, then what is searched for; two at once would be one.
    for _ in 0..2 {
        terminal.press("\x1b");
        while terminal.read(300) {}
    }
    terminal.press("&re:99$\r");
    terminal.wait_for("\nline 123499");
    terminal.press("G");
    terminal.wait_for("\nline 199999");
    terminal.press("\x1b");
    terminal.wait_for("\nline 200000");
    terminal.press("f");
    terminal.wait_for("a tab");
    std::fs::remove_file(&path).unwrap();
    terminal.wait_for("file gone");
    terminal.press("qq");
    assert_eq!(terminal.end(), 0);
    given_back(&terminal);
}

/// Saved as editors do it: a new file over the old one.
fn save(path: &std::path::Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn a_theme_is_put_on_when_it_is_saved_and_a_broken_one_leaves_the_last() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("themes")).unwrap();
    let path = dir.path().join("themes/mine.toml");
    save(&path, "[ui\n");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_theme", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color").current_dir(dir.path());
    let mut terminal = Terminal::run(command, (80, 24));
    // It starts all the same, and says where the fault is.
    terminal.wait_for("themes/mine.toml:1:4");
    terminal.wait_for("[█");
    save(&path, "[glyphs]\nset = 'ascii'\n");
    terminal.wait_for("theme mine was read again");
    terminal.wait_for("[##");
    save(&path, "[glyphs]\nset = 'emoji'\n");
    terminal.wait_for("themes/mine.toml:2:7");
    terminal.wait_for("[##");
    save(&path, "[glyphs]\nset = 'unicode'\n");
    terminal.wait_for("[█");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    given_back(&terminal);
}

#[test]
fn a_theme_that_cannot_be_used_is_passed_in_the_settings_and_esc_brings_back_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("themes")).unwrap();
    let path = dir.path().join("themes/mine.toml");
    save(&path, "[glyphs]\nset = 'ascii'\n");
    // The user's own come first, then the bundled ones, of which `auto` is the first.
    save(&dir.path().join("themes/never.toml"), "[ui\n");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_theme", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color").current_dir(dir.path());
    let mut terminal = Terminal::run(command, (80, 24));
    terminal.wait_for("[##");
    terminal.press(",\x1b[C");
    terminal.wait_for("< never >");
    terminal.wait_for("themes/never.toml:1:4");
    terminal.wait_for("[##");
    terminal.press("\x1b[C");
    terminal.wait_for("< auto >");
    terminal.wait_for("[█");
    terminal.press("\x1b[D");
    terminal.wait_for("< never >");
    terminal.press("q");
    terminal.wait_for("[##");
    // It is what is wished for again: a save of it is seen.
    save(&path, "[glyphs]\nset = 'unicode'\n");
    terminal.wait_for("[█");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

// ---- what runs inside the terminal ----

fn double(mut snap: Snapshot) -> Double {
    // What is said of today is of this day.
    snap.meter.today_began = overnight::clock::now().wall_ms - 3_600_000;
    Double::new(snap).answering(|_, request| {
        let Request::Command(command) = request else { return None };
        let name: String = format!("{command:?}").chars().take_while(char::is_ascii_alphabetic).collect();
        Some(Reply::Ok { message: format!("the double heard {name}") })
    })
}

fn options() -> Options {
    Options {
        theme: "auto".into(),
        complaint: None,
        theme_dir: None,
        depth: Depth::C256,
        glyphs: Glyphs::Unicode,
        remote: false,
        clock: overnight::clock::now,
        tz: jiff::tz::TimeZone::UTC,
        me: String::new(),
        keys: std::collections::BTreeMap::new(),
        columns: Vec::new(),
        history_columns: Vec::new(),
        low_bandwidth: false,
        mouse: false,
        spinner: false,
        sync: true,
        notify: overnight::config::Notify::Off,
        outside: Outside::default(),
    }
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_busy() {
    assert_eq!(run(options(), double(fixtures::busy())).unwrap(), Exit::Quit);
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_idle() {
    assert_eq!(run(options(), double(fixtures::empty())).unwrap(), Exit::Quit);
}

/// Like `child_busy`, and hang-up signals do not reach it.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_deaf() {
    assert_eq!(run(options(), double(fixtures::busy())).unwrap(), Exit::Quit);
}

/// The job under the cursor logs into the current directory.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_log() {
    let mut snap = fixtures::busy();
    std::sync::Arc::make_mut(&mut snap.jobs[0]).log = "log.txt".into();
    assert_eq!(run(options(), double(snap)).unwrap(), Exit::Quit);
}

/// Its theme is a file below the current directory.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_theme() {
    let options = Options { theme: "mine".into(), theme_dir: Some("themes".into()), ..options() };
    assert_eq!(run(options, double(fixtures::busy())).unwrap(), Exit::Quit);
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_silent() {
    assert_eq!(run(options(), Double::new(fixtures::busy()).silent()).unwrap(), Exit::Quit);
}

/// Its connection goes and cannot be made again: the thread that makes it fails.
struct Fails(bool);

impl Connector for Fails {
    fn connect(&mut self) -> Result<Box<dyn Session>, String> {
        assert!(!std::mem::replace(&mut self.0, true), "there is no second time");
        Err("not yet".to_owned())
    }
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_fails() {
    run(options(), Fails(false)).unwrap();
}

struct Panics;

impl Connector for Panics {
    fn connect(&mut self) -> Result<Box<dyn Session>, String> {
        panic!("the double has had enough")
    }
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_panics() {
    run(options(), Panics).unwrap();
}

/// What waits for long: `.ci/run` has them, and `cargo test --test NAME -- --ignored long::`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn an_idle_dashboard_writes_nothing() {
        let mut terminal = dashboard("child_idle");
        terminal.wait_for("No jobs yet.");
        while terminal.read(500) {}
        let before = terminal.bytes.len();
        assert!(!terminal.read(10_000), "{:?}", String::from_utf8_lossy(&terminal.bytes[before..]));
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }

    #[test]
    #[ignore = "long"]
    fn a_scheduler_that_does_not_answer_is_told_of_and_nothing_is_asked_of_it() {
        let mut terminal = dashboard("child_silent");
        terminal.wait_for("LIVE");
        terminal.wait_for("STALE");
        terminal.press("H");
        terminal.wait_for("has not answered for a while");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}
