//! Escape sequences, control, bidirectional and invisible characters in everything that comes from outside, on every
//! surface: no surface lets one through, and JSON loses none.

use super::fixtures::{detail, gpus, meter, row, zone};
use super::scheduler::{answer, reply};
use super::support::pty::Pty;
use super::support::sandbox::{Sandbox, eventually};
use super::{TIMEOUT, job, screens};
use overnight::cli::{self, Invocation, Io, Setup};
use overnight::config::{Config, Environment, Paths};
use overnight::model::{Cursor, DeviceState, Outcome, is_unsafe};
use overnight::protocol::{
    EditMark, InboxRow, InboxState, JobDetail, JobRow, Notice, NoticeLevel, Query, Reply, Request, Snapshot,
};
use overnight::tui::{Chooser, Depth, Glyphs, Opened, Overlay, Screen, Screenful, Tab, load};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, mpsc};

/// Clipboard, link, device string, old screen, C1, reversal, nothing, DEL; with words that are seen.
const HOSTILE: &str = "seen\u{1b}]52;c;RVZJTA==\u{7}\u{1b}]8;;x:y\u{1b}\\link\u{1b}P1;2|dcs\u{1b}\\\u{1b}[?1049l\u{1b}[2J\u{9b}31m\u{202e}rev\u{200b}\u{2066}x\u{e0041}\u{7f}end";
/// What it is in YAML between double quotes, without the tag: YAML has no way to write that but itself.
const IN_YAML: &str = "seen\\e]52;c;RVZJTA==\\a\\e]8;;x:y\\e\\\\link\\eP1;2|dcs\\e\\\\\\e[?1049l\\e[2J\\x9b31m\\u202erev\\u200b\\u2066x\\U000e0041\\x7fend";

fn hostile() -> String {
    HOSTILE.into()
}

/// Nothing in it acts on a terminal or hides.
#[track_caller]
fn harmless(surface: &str, text: &str) {
    let bad: Vec<char> = text.chars().filter(|c| !matches!(c, '\n' | '\t') && is_unsafe(*c)).collect();
    assert!(bad.is_empty(), "{surface}: {bad:?} in {text:?}");
}

/// What a terminal was sent: colours, cursor moves and the screen's own modes are the dashboard's; nothing else is.
#[track_caller]
fn harmless_screen(surface: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\u{1b}') {
        let before = &rest[..at];
        harmless(surface, &before.replace(['\r', '\u{8}'], ""));
        rest = &rest[at + 1..];
        let sequence = rest
            .strip_prefix('[')
            .unwrap_or_else(|| panic!("{surface}: ESC before {:?}", &rest[..rest.len().min(20)]));
        let end = sequence.find(|c: char| ('@'..='~').contains(&c)).unwrap_or(sequence.len() - 1);
        let (parameters, last) = (&sequence[..end], sequence.as_bytes()[end]);
        let known = match last {
            b'm' | b'H' | b'C' | b'J' | b'K' | b'n' => {
                parameters.bytes().all(|b| b.is_ascii_digit() || b == b';' || b == b':')
            }
            b'h' | b'l' => {
                ["?1049", "?25", "?2004", "?2026", "?1006", "?1000", "?1004"].contains(&parameters)
            }
            _ => false,
        };
        assert!(known, "{surface}: ESC [ {parameters} {}", char::from(last));
        rest = &sequence[end + 1..];
    }
    harmless(surface, &rest.replace('\r', ""));
}

/// A sandbox with a job that says hostile things in all the ways it has, done.
fn with_hostile_job() -> Sandbox {
    let sandbox = Sandbox::serving("simulated:1");
    let run = "printf 'log \\033]52;c;RVZJTA==\\007one\\033[?1049l\\302\\233two\\342\\200\\256\\033[31mred\\r\\n'\n\
               printf x > \"$OVERNIGHT_OUTPUT/$(printf 'na\\033]0;t\\007me\\n\\342\\200\\256.txt')\"\n\
               printf x > \"$OVERNIGHT_OUTPUT/$(printf 'x%.0s' $(seq 200)).bin\"\n\
               exit 3";
    let text = job(run, "[]", "[]").replace("work:\n", &format!("work:\n  env: {{NOTE: \"{IN_YAML}\"}}\n"));
    sandbox.drop_file("hostile.yaml", &text);
    assert_eq!(sandbox.wait_for_end("hostile"), "failed");
    sandbox
}

/// A job whose program is not there: its name is in the words of the failure.
fn drop_no_program(sandbox: &Sandbox) {
    let argv = format!(
        "work: {{run: [\"/no/such/{IN_YAML}\", \"{IN_YAML}\"]}}\ndata: []\nrequest: {{gpus: 0, cpus: 1, memory: 1GiB, for: 5m}}\noutput: []\n"
    );
    sandbox.drop_file("no-program.yaml", &argv);
    sandbox.wait_for_end("no-program");
}

#[test]
fn verbs_and_files_show_words_from_outside_as_text_and_json_keeps_them() {
    let sandbox = with_hostile_job();
    drop_no_program(&sandbox);
    for args in [
        &["ls", "--all"][..],
        &["ls", "--all", "--json"],
        &["show", "hostile"],
        &["show", "hostile", "--json"],
        &["show", "no-program"],
        &["show", "no-program", "--json"],
        &["receipt", "hostile"],
        &["receipt", "hostile", "--json"],
        &["receipt", "no-program"],
        &["gpus"],
        &["gpus", "--json"],
        &["meter", "--by", "job"],
        &["meter", "--by", "job", "--csv"],
        &["meter", "--by", "job", "--json"],
        &["close", "0", "--reason", HOSTILE],
        &["gpus"],
        &["gpus", "--json"],
        &["show", HOSTILE],
        &["cancel", HOSTILE, "hostile"],
        &["log", HOSTILE],
        &["submit", HOSTILE],
        &["check", HOSTILE],
        &["priority", HOSTILE, "high"],
        &["ls", "--user", HOSTILE],
        &["ls", "--since", HOSTILE],
        &["close", HOSTILE],
        &["--config", HOSTILE, "ls"],
        &["--root", HOSTILE, "ls"],
        &["man", HOSTILE],
        &["completions", HOSTILE],
        &["doctor"],
        &["doctor", "--json"],
        &["service", "print", "--name", HOSTILE],
        &[HOSTILE],
        &[&format!("--{HOSTILE}")],
    ] {
        let run = sandbox.run(args);
        let surface = format!("overnight {args:?}");
        harmless(&surface, &run.stdout.replace("\r\n", "\n"));
        harmless(&surface, &run.stderr);
        assert!(!(run.stdout.is_empty() && run.stderr.is_empty()), "{surface} said nothing");
    }
    let shown = super::shown(&sandbox, "hostile");
    assert_eq!(shown["spec"]["work"]["env"]["NOTE"], HOSTILE);
    let outputs: Vec<&str> =
        shown["outputs"].as_array().unwrap().iter().map(|output| output["path"].as_str().unwrap()).collect();
    assert!(outputs.contains(&"na\u{1b}]0;t\u{7}me\n\u{202e}.txt"), "{outputs:?}");
    assert_eq!(outputs.len(), 2, "{outputs:?}");
    // As long as a job file may be; what is told of it is not.
    let endless = format!(
        "work: {{run: [/no/{}]}}\ndata: []\nrequest: {{gpus: 0, for: 5m}}\noutput: []\n",
        "x".repeat(300_000)
    );
    sandbox.drop_file("endless.yaml", &endless);
    sandbox.wait_for_end("endless");
    let list = sandbox.run(&["ls", "--all"]).ok().stdout;
    assert!(list.contains("/no/xxx") && list.lines().all(|line| line.len() < 1_000), "{}", list.len());
    let text = sandbox.run(&["show", "no-program"]).stdout;
    assert!(text.contains("/no/such/seen"), "{text}");

    let folder = sandbox.job_folder(&shown);
    for file in ["answer.txt", "receipt.md", "receipt.json"] {
        let text = eventually(file, || fs::read_to_string(folder.join(file)).ok());
        harmless(file, &text);
    }
    let receipt: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("receipt.json")).unwrap()).unwrap();
    assert_eq!(receipt["spec"]["work"]["env"]["NOTE"], HOSTILE);
    harmless("the scheduler's log", &sandbox.scheduler_said());
    // The job's own bytes, for whoever asked for them in a file.
    let log = sandbox.run(&["log", "hostile"]).ok().stdout;
    assert!(log.contains("\u{1b}]52;c;"), "{log:?}");
}

#[test]
fn without_a_scheduler_files_of_a_jobs_folder_are_shown_no_less_carefully() {
    let mut sandbox = with_hostile_job();
    let folder = sandbox.job_folder(&super::shown(&sandbox, "hostile"));
    eventually("a receipt", || fs::metadata(folder.join("receipt.json")).ok());
    sandbox.run(&["stop"]).ok();
    sandbox.kill_scheduler();
    // The work may write there too.
    fs::write(folder.join("receipt.md"), format!("# {HOSTILE}\n")).unwrap();
    fs::write(folder.join("receipt.json"), format!("{{\"a\":\"{HOSTILE}\"}}\n")).unwrap();
    let text = sandbox.run(&["receipt", "hostile"]).ok().stdout;
    harmless("receipt", &text);
    assert!(text.starts_with("# seen"), "{text}");
    let json = sandbox.run(&["receipt", "hostile", "--json"]).ok().stdout;
    harmless("receipt --json", &json);
    assert!(json.contains("seen\\u001b]52;c;"), "{json}");
    // A pipe in the place of a file is no reason to wait for ever.
    for (file, args) in [
        ("receipt.md", &["receipt", "hostile"][..]),
        ("receipt.json", &["receipt", "hostile", "--json"]),
        ("log.txt", &["log", "hostile"]),
    ] {
        fs::remove_file(folder.join(file)).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, folder.join(file), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let run = sandbox.run(args);
        assert_ne!(run.code, 0, "{args:?}: {}", run.stdout);
    }
}

#[test]
fn names_in_the_inbox_are_shown_as_text_wherever_they_are_told() {
    let sandbox = Sandbox::serving("none");
    let mut watch = sandbox.command(&["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let (tell, lines) = mpsc::channel();
    let out = BufReader::new(watch.stdout.take().unwrap());
    // Ends with the program.
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    assert!(lines.recv_timeout(TIMEOUT).unwrap().contains("watching"));
    let short: String = HOSTILE.chars().filter(|c| *c != '/').collect();
    let names = [
        format!("{short}.yaml"),
        "two\nlines.yaml".to_owned(),
        format!("{}.yaml", "\u{e9}".repeat(120)),
        format!("not-a-job{short}"),
    ];
    let broken = format!("work: {{runn: x}}\n\"key{IN_YAML}\": \"{IN_YAML}\"\ndata: [\"/no/{IN_YAML}\"]\n");
    for name in &names {
        fs::write(sandbox.inbox().join(name), &broken).unwrap();
    }
    // Bytes that are no text at all.
    fs::write(sandbox.inbox().join(std::ffi::OsStr::from_bytes(b"\xff\x1b]0;\x07.yaml")), "x").unwrap();
    let mut told = Vec::new();
    while told.iter().filter(|line: &&String| line.contains("refused")).count() < names.len() + 1 {
        let line = lines.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("not all were told: {told:#?}"));
        harmless("watch", &line);
        told.push(line);
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(
        told.iter().any(|line| line.contains("seen")) && told.iter().any(|line| line.contains("two lines"))
    );
    let reasons: Vec<_> = fs::read_dir(sandbox.inbox())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.as_os_str().as_bytes().ends_with(b".why.txt"))
        .collect();
    assert_eq!(reasons.len(), names.len() + 1, "each has its reason beside it: {reasons:?}");
    for reason in reasons {
        harmless("why.txt", &fs::read_to_string(&reason).unwrap());
    }
    // What is said of the same text when it is asked for.
    let file = sandbox.dir().join("staging").join(&names[0]);
    fs::write(&file, &broken).unwrap();
    for verb in ["check", "submit"] {
        let run = sandbox.run(&[verb, file.to_str().unwrap()]);
        harmless(verb, &run.stdout);
        harmless(verb, &run.stderr);
        assert!(run.stdout.contains("seen"), "{}", run.stdout);
        let terminal = sandbox.in_terminal(&[verb, file.to_str().unwrap()], 100, 40);
        ended(terminal, verb);
    }
    harmless("the scheduler's log", &sandbox.scheduler_said());

    let mut terminal = sandbox.in_terminal(&[], 120, 40);
    terminal.wait_for_text("Inbox(5!)");
    terminal.send("5");
    terminal.wait_for_text("seen");
    terminal.send("jjjjkk\r");
    terminal.send("q");
    terminal.send("q");
    ended(terminal, "the dashboard");
}

/// Waits for the end of a program in a terminal, of which nothing harmful may have come.
#[track_caller]
fn ended(mut terminal: Pty, surface: &str) {
    terminal.wait_for_exit();
    harmless_screen(surface, &terminal.raw());
}

#[test]
fn the_dashboard_and_a_terminals_log_show_what_a_job_prints_without_doing_it() {
    let sandbox = with_hostile_job();
    let terminal = sandbox.in_terminal(&["log", "hostile"], 80, 24);
    terminal.wait_for_text("one");
    ended(terminal, "log in a terminal");
    for args in [&["show", "hostile"][..], &["ls", "--all"], &["receipt", "hostile"], &["doctor"]] {
        ended(sandbox.in_terminal(args, 80, 24), &format!("{args:?} in a terminal"));
    }
    let mut terminal = sandbox.in_terminal(&[], 100, 30);
    terminal.wait_for_text("Nothing waits");
    // History, the job, each of its tabs, its log.
    terminal.send("4");
    terminal.wait_for_text("hostile");
    terminal.send("\r");
    for (tab, words) in
        [("Summary", "printf"), ("Log", "two"), ("Spec", "seen"), ("Files", "na"), ("Events", "exit 3")]
    {
        terminal.wait_for_text(&format!("[{tab}]"));
        terminal.wait_for_text(words);
        terminal.send("]");
    }
    for key in ["q", "q", "q"] {
        terminal.send(key);
    }
    ended(terminal, "the dashboard");
}

/// A scheduler whose every word is hostile: of another version, or taken over.
fn hostile_row(id: u64, state: Cursor) -> JobRow {
    let words = hostile;
    JobRow {
        name: words(),
        user: words(),
        project: Some(words()),
        why: Some(words()),
        staging: Some(words()),
        command: words(),
        directory: words().into(),
        log: words().into(),
        paused_by: Some(words()),
        editing: Some(EditMark { by: words(), until: 0 }),
        outcome: (state == Cursor::Done).then(|| Outcome::Cancelled { by: words() }),
        ..row(id, state)
    }
}

fn hostile_detail(state: Cursor) -> JobDetail {
    let mut detail = detail(19, state);
    detail.row = hostile_row(19, state);
    detail.steps[0].step = hostile();
    detail.warnings = vec![hostile()];
    detail.notes = vec![hostile()];
    detail.outputs[0].1.path = HOSTILE.into();
    detail.outputs[0].1.blake3 = hostile();
    detail.attempts[0].outcome = Some(Outcome::Lost { why: hostile() });
    detail.attempts[0].devices[0].0 = hostile();
    detail.spec = serde_json::json!({ HOSTILE: HOSTILE });
    detail
}

fn hostile_snapshot() -> Snapshot {
    let mut all = screens::empty();
    all.jobs = vec![Arc::new(hostile_row(17, Cursor::Running)), Arc::new(hostile_row(18, Cursor::Queued))];
    all.history = vec![Arc::new(hostile_row(19, Cursor::Done))];
    all.gpus = hostile_gpus();
    all.scheduler.host = hostile();
    all.scheduler.user = hostile();
    all.scheduler.gpus_by = hostile();
    all.scheduler.inbox = HOSTILE.into();
    all.notices = vec![Notice { level: NoticeLevel::Error, text: hostile(), job: None }];
    let mut finding = screens::unknown_field();
    for text in [&mut finding.message, &mut finding.file] {
        *text = hostile();
    }
    for text in [&mut finding.source, &mut finding.label, &mut finding.hint] {
        *text = Some(hostile());
    }
    finding.known = vec![hostile()];
    let row = |state| InboxRow { name: hostile(), at: 0, state };
    all.inbox = vec![
        row(InboxState::Refused { diagnostics: vec![finding] }),
        row(InboxState::Waiting { why: hostile() }),
    ];
    all
}

fn hostile_gpus() -> Vec<overnight::protocol::GpuRow> {
    let mut all = gpus();
    for row in &mut all {
        for text in [&mut row.name, &mut row.node, &mut row.uuid.0] {
            *text = hostile();
        }
        row.detail = Some(hostile());
        for process in &mut row.processes {
            process.name = hostile();
        }
    }
    all[1].state = DeviceState::Closed { reason: hostile(), by: hostile() };
    all
}

fn hostile_answer(request: &Request) -> Reply {
    match request {
        Request::Query(Query::Snapshot { .. }) => Reply::Snapshot(Box::new(hostile_snapshot())),
        Request::Query(Query::Jobs { .. }) => Reply::Jobs {
            rows: vec![hostile_row(17, Cursor::Running), hostile_row(19, Cursor::Done)],
            left: 0,
        },
        Request::Query(Query::Resolve { .. }) => {
            Reply::Resolved { job: overnight::model::JobId(19), generation: overnight::model::Generation(1) }
        }
        Request::Query(Query::Job { .. }) => Reply::Job(Box::new(hostile_detail(Cursor::Done))),
        Request::Query(Query::Gpus) => Reply::Gpus(hostile_gpus()),
        Request::Query(Query::GpuHistory { .. }) => Reply::GpuHistory(Box::default()),
        Request::Query(Query::Timeline { .. }) => Reply::Timeline(Box::default()),
        Request::Query(Query::Meter { .. }) => {
            let mut table = meter();
            table.rows.iter_mut().for_each(|row| row.key = hostile());
            Reply::Meter(table)
        }
        Request::Query(Query::MeterCheck) => Reply::MeterChecked { leases: 1, differences: vec![hostile()] },
        Request::Query(Query::Notices) => Reply::Notices(hostile_snapshot().notices),
        Request::Query(Query::JobFile { .. } | Query::WhatIf { .. }) => {
            Reply::NotFound { message: hostile() }
        }
        Request::Query(Query::Undoable) => Reply::Undoable(vec![overnight::protocol::UndoRow {
            job: overnight::model::JobId(17),
            name: hostile(),
            what: hostile(),
            by: hostile(),
            at: 0,
            until: 0,
        }]),
        Request::Query(Query::Ping) | Request::Subscribe { .. } => Reply::Pong,
        Request::Command(overnight::protocol::Command::Pause { .. }) => Reply::Ok { message: hostile() },
        Request::Command(overnight::protocol::Command::Resume { .. }) => {
            Reply::Unavailable { message: hostile() }
        }
        Request::Command(_) => Reply::Refused { message: hostile() },
    }
}

#[test]
fn whatever_a_scheduler_says_no_verb_passes_it_on_to_a_terminal() {
    for (arguments, connections) in [
        (&["ls", "--all"][..], 1),
        (&["ls", "--all", "--json"], 1),
        (&["show", "19"], 1),
        (&["show", "19", "--json"], 1),
        (&["receipt", "19"], 1),
        (&["receipt", "19", "--json"], 1),
        (&["gpus"], 1),
        (&["gpus", "--json"], 1),
        (&["meter"], 1),
        (&["meter", "--csv"], 1),
        (&["meter", "--json"], 1),
        (&["meter", "--check"], 1),
        (&["pause", "19"], 1),
        (&["resume", "19"], 1),
        (&["cancel", "19"], 1),
        (&["wait", "19"], 1),
        (&["doctor"], 1),
        (&["doctor", "--json"], 1),
    ] {
        for width in [None, Some(60)] {
            let folder = tempfile::tempdir().unwrap();
            let paths = Paths::below(folder.path());
            fs::create_dir_all(&paths.state).unwrap();
            let environment = Environment { home: Some(folder.path().to_owned()), ..Environment::default() };
            let setup = Setup { paths, config: Config::default(), environment, zone: zone() };
            let server = answer(&setup.paths, connections, |request| reply(hostile_answer(request)));
            let all = std::iter::once("overnight").chain(arguments.iter().copied()).map(Into::into);
            let Ok((_, Invocation::Verb(verb))) = cli::parse(all) else { panic!("not a verb") };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let done = cli::run_on(&verb, &setup, &mut Io::new(&mut out, &mut err, width, false));
            let failure = done.err().and_then(|error| cli::exit::message(&error)).unwrap_or_default();
            let said = [String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), failure].concat();
            let surface = format!("{arguments:?} on {width:?} columns");
            harmless(&surface, &said.replace("\r\n", "\n"));
            assert!(said.contains("seen"), "{surface} does not show it: {said}");
            server.join().unwrap();
        }
    }
}

#[test]
fn whatever_a_scheduler_says_no_screen_of_the_dashboard_passes_it_on() {
    let snapshot = hostile_snapshot();
    let theme = load("auto", None, Depth::C256).unwrap();
    for size in [(30, 6), (80, 24), (120, 40), (200, 50)] {
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
            let mut ui = screens::ui(&snapshot, size, glyphs);
            ui.log = screens::log();
            ui.log.window.lines[39].text = hostile();
            ui.detail = Some(Box::new(hostile_detail(Cursor::Done)));
            let mut seen = false;
            let mut draw = |ui: &overnight::tui::Ui, surface: &str| {
                let mut screen = Screenful::new(Vec::new(), size);
                screen.draw(ui, &snapshot, &theme).unwrap();
                harmless_screen(&format!("{surface} at {size:?}"), screen.out());
                // It stands there, with a sign in the place of what was in it.
                let sign = if glyphs == Glyphs::Ascii { "seen?" } else { "seen\u{FFFD}" };
                seen |= String::from_utf8_lossy(screen.out()).contains(sign);
            };
            for screen in [Screen::Queue, Screen::Gpus, Screen::Meter, Screen::History, Screen::Inbox] {
                ui.screen = screen;
                draw(&ui, &format!("{screen:?}"));
            }
            for tab in [Tab::Summary, Tab::Log, Tab::Spec, Tab::Files, Tab::Events] {
                ui.opened = Some(Opened { job: overnight::model::JobId(19), tab, scroll: 0 });
                draw(&ui, &format!("{tab:?}"));
            }
            ui.opened = None;
            ui.overlay = Some(Overlay::Help(Chooser::default()));
            draw(&ui, "help");
            ui.overlay = None;
            ui.filters.jobs = overnight::tui::Filter::from(hostile().as_str());
            draw(&ui, "filter");
            assert!(seen, "no screen of {size:?} shows any of it");
        }
    }
}

#[test]
fn nothing_but_the_one_writer_writes_what_verbs_say() {
    // Whoever prints by another way prints what is not cleaned: there are few such places, and each has its reason.
    const PRINTERS: &[(&str, &str)] = &[
        (
            "app/mod.rs",
            "one line on standard error, cleaned; the scheduler's log, cleaned; indices to a parent",
        ),
        ("app/demo.rs", "one line on standard output, cleaned"),
        ("cli/mod.rs", "what the parser of the command line says, cleaned; and the streams are opened here"),
        ("cli/output.rs", "the one writer"),
        ("cli/watch.rs", "looks whether its reader is gone, and writes nothing there"),
        ("files/order.rs", "the collector's words to the supervisor, cleaned"),
        ("tui/shell/background.rs", "one question to the terminal, and looks whether there is one"),
        ("tui/shell/terminal.rs", "the dashboard's frames and the terminal's own modes"),
    ];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            if entry.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            let name = entry.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
            let code = text.split("#[cfg(test)]").next().unwrap();
            if ["stdout()", "stderr()", "print!", "println!"].iter().any(|word| code.contains(word)) {
                found.push(name);
            }
        }
    }
    found.sort();
    let mut known: Vec<&str> = PRINTERS.iter().map(|(file, _)| *file).collect();
    known.sort_unstable();
    found.retain(|file| !known.contains(&file.as_str()));
    assert!(found.is_empty(), "these print: {found:?}");
}
