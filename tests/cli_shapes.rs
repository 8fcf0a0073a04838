//! The command line from outside: the JSON documents against fixtures, the exit codes, and the verbs against a small
//! scheduler of the test's own that speaks the protocol on a real socket.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its own set-up fails")]

#[path = "cli_shapes/fixtures.rs"]
mod fixtures;
#[path = "cli_shapes/scheduler.rs"]
mod scheduler;

use fixtures::{GENERATION, NOW, detail, gpus, meter, row, zone};
use overnight::cli::{self, CliError, Exit, Invocation, Io, Setup};
use overnight::config::{Config, Environment, Paths};
use overnight::model::{Cursor, Failure, JobId, Outcome, Span};
use overnight::protocol::{
    Command, Diagnostic, MeterBy, Query, Reply, Request, ServerMessage, Severity, SubmittedJob, json,
};
use scheduler::{answer, reply, update};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Long enough for a loaded machine; only reached when something is wrong.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a run of the program said.
struct Said {
    exit: Exit,
    out: String,
    err: String,
}

fn setup(folder: &Path) -> Setup {
    let paths = Paths::below(folder);
    std::fs::create_dir_all(&paths.state).unwrap();
    Setup {
        paths,
        config: Config::default(),
        environment: Environment { home: Some(folder.to_owned()), ..Environment::default() },
        zone: zone(),
    }
}

/// Runs a command line as the program would, apart from its own streams.
fn run(setup: &Setup, arguments: &[&str]) -> Said {
    let all = std::iter::once("overnight").chain(arguments.iter().copied()).map(Into::into);
    let (_, Invocation::Verb(verb)) = cli::parse(all).expect("a command line") else { panic!("not a verb") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = cli::run_on(&verb, setup, &mut Io::new(&mut out, &mut err, None, false));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (exit, failure) = match done {
        Ok(exit) => (exit, String::new()),
        Err(error) => (cli::exit::of(&error), cli::exit::message(&error).unwrap_or_default()),
    };
    Said { exit, out: text(out), err: text(err) + &failure }
}

fn pretty(document: impl serde::Serialize) -> String {
    serde_json::to_string_pretty(&document).unwrap()
}

/// Where each key stands in the text, to compare with the order of the documentation.
fn assert_keys_in_order(text: &str, keys: &str) {
    let mut at = 0;
    for key in keys.split_whitespace() {
        let found = text[at..].find(&format!("\"{key}\":"));
        at += found.unwrap_or_else(|| panic!("{key} is missing, or not in its place, in {text}"));
    }
}

const JOB_KEYS: &str = "id name user project kind state paused outcome tasks total queued active succeeded failed \
    cancelled lost gpus cpus priority rank submitted_at rented_at started_at ended_at done_at limit_at gpu_ms core_ms \
    waived_gpu_ms place why starts_at starts_by finishes_at finish_by late cancel_at retry_at retry_of staging progress \
    peak_memory mean_utilisation devices generation";

#[test]
fn ls_has_the_documented_shape() {
    let rows = [row(17, Cursor::Running), row(18, Cursor::Queued), row(19, Cursor::Done)];
    let zone = zone();
    let document = json::ls(&rows, &NOW, &zone);
    let compact = serde_json::to_string(&document).unwrap();
    assert!(compact.starts_with("{\"schema\":1,\"jobs\":[{\"id\":17,"));
    assert_keys_in_order(&compact, JOB_KEYS);
    insta::assert_snapshot!("ls", pretty(document));
}

#[test]
fn show_and_the_receipt_have_the_documented_shape() {
    let zone = zone();
    let detail = detail(19, Cursor::Done);
    let document = json::show(&detail, &zone);
    let compact = serde_json::to_string(&document).unwrap();
    let keys = format!(
        "schema {JOB_KEYS} steps step at attempts task attempt lease devices boot granted_at started_at ended_at \
         returned_at held_ms gpu_ms waived ended_by outcome kind code signal reason release verdict detail outputs task \
         path kind bytes blake3 partial warnings spec directory log"
    );
    assert_keys_in_order(&compact, &keys);
    insta::assert_snapshot!("show", pretty(document));
    insta::assert_snapshot!("receipt", json::receipt_markdown(&detail, &zone));
}

#[test]
fn gpus_and_the_meter_have_the_documented_shape() {
    let zone = zone();
    let rows = gpus();
    insta::assert_snapshot!("gpus", pretty(json::gpus(&rows)));
    let table = meter();
    let document = json::meter(&table, &zone);
    assert_keys_in_order(
        &serde_json::to_string(&document).unwrap(),
        "schema since until by rows key jobs gpu_ms core_ms waived_gpu_ms cost held_now gpus",
    );
    insta::assert_snapshot!("meter", pretty(document));
}

#[test]
fn every_outcome_is_told_with_what_is_known_of_it() {
    let zone = zone();
    let outcomes = [
        Outcome::Succeeded,
        Outcome::Failed(Failure::Code(3)),
        Outcome::Failed(Failure::Signal(11)),
        Outcome::Failed(Failure::OutOfMemory { certain: true }),
        Outcome::Failed(Failure::OutputMissing { paths: vec!["best.pt".into()] }),
        Outcome::LimitReached,
        Outcome::Cancelled { by: "ana".into() },
        Outcome::NeverStarted { why: "after #12 failed".into() },
        Outcome::Lost { why: "the machine went down".into() },
    ];
    let lines: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| {
            let mut row = row(1, Cursor::Done);
            row.outcome = Some(outcome);
            serde_json::to_value(json::ls(&[row], &NOW, &zone)).unwrap()["jobs"][0]["outcome"].to_string()
        })
        .collect();
    insta::assert_snapshot!("outcomes", lines.join("\n"));
}

#[test]
fn json_keeps_what_a_terminal_must_not_see() {
    let mut hostile = row(1, Cursor::Queued);
    hostile.why = Some("\u{1b}[2J\u{202e}evil".into());
    let text = serde_json::to_string(&json::ls(&[hostile.clone()], &NOW, &zone())).unwrap();
    assert!(!text.contains('\u{1b}'));
    let back: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(back["jobs"][0]["why"], hostile.why.clone().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io::new(&mut out, &mut err, None, true);
    cli::job_table(&[hostile], &NOW, &zone(), &mut io).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("[2J\u{202e}") && !text.contains("\u{1b}[2J"), "{text:?}");
}

#[test]
fn the_list_for_people_fits_eighty_columns() {
    let mut long = row(21, Cursor::Queued);
    long.name = "llama-finetune-70b-with-a-long-name-lr1e-4".into();
    long.user = "somebody-with-a-long-account".into();
    long.why = Some("needs 8 free, and 3 more things that take a long line to say".into());
    let rows = [row(17, Cursor::Running), row(18, Cursor::Queued), row(19, Cursor::Done), long];
    let print = |width| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        cli::job_table(&rows, &NOW, &zone(), &mut Io::new(&mut out, &mut err, width, false)).unwrap();
        String::from_utf8(out).unwrap()
    };
    let narrow = print(Some(80));
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    insta::assert_snapshot!("ls_text", format!("{narrow}\n{}", print(None)));
}

/// 20 ms in a release build; the bound for others only shows what grows faster than the rows.
#[test]
fn ten_thousand_rows_are_printed_at_once() {
    let rows: Vec<_> = (0..10_000).map(|id| row(id, Cursor::Queued)).collect();
    let bound_ms = if cfg!(debug_assertions) { 2_000 } else { 20 };
    let best_of = |mut print: Box<dyn FnMut() + '_>| {
        (0..5)
            .map(|_| {
                let begun = overnight::clock::monotonic().0;
                print();
                overnight::clock::monotonic().0 - begun
            })
            .min()
    };
    let text = best_of(Box::new(|| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut io = Io::new(&mut out, &mut err, Some(80), true);
        cli::job_table(&rows, &NOW, &zone(), &mut io).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 10_001);
    }));
    let zone = zone();
    let document = best_of(Box::new(|| drop(serde_json::to_vec(&json::ls(&rows, &NOW, &zone)).unwrap())));
    println!("10,000 rows: as text {text:?} ms, as JSON {document:?} ms");
    assert!(text < Some(bound_ms), "{text:?} ms");
}

#[test]
fn the_command_line_is_sound() {
    cli::command().debug_assert();
    let usage = |arguments: &[&str]| {
        cli::parse(std::iter::once("overnight").chain(arguments.iter().copied()).map(Into::into)).unwrap_err()
    };
    assert_eq!(usage(&["nonsense"]), Exit::Usage);
    assert_eq!(usage(&["submit"]), Exit::Usage);
    assert_eq!(usage(&["priority", "17", "101"]), Exit::Usage);
    assert_eq!(usage(&["cancel", "17", "--undo", "5"]), Exit::Usage);
    assert_eq!(usage(&["serve", "--gpus", "simulated:x"]), Exit::Usage);
    assert_eq!(usage(&["--help"]), Exit::Ok);
    assert_eq!(usage(&["--version"]), Exit::Ok);
    let given = |arguments: &[&str]| {
        cli::parse(std::iter::once("overnight").chain(arguments.iter().copied()).map(Into::into)).unwrap()
    };
    assert!(matches!(given(&[]), (_, Invocation::Dashboard(_))));
    assert!(matches!(given(&["demo", "--gpus", "2"]), (_, Invocation::Demo(demo)) if demo.gpus == 2));
    let (globals, _) = given(&["gpus", "--root", "/r", "--state", "/s"]);
    assert_eq!(
        (globals.root.as_deref(), globals.state.as_deref()),
        (Some(Path::new("/r")), Some(Path::new("/s")))
    );
    let (globals, verb) = given(&["--state", "/s", "ls", "--state", "running"]);
    assert_eq!(globals.state.as_deref(), Some(Path::new("/s")));
    assert!(format!("{verb:?}").contains("Running"), "{verb:?}");
    assert!(matches!(given(&["priority", "a", "-5"]), (_, Invocation::Verb(_))));
}

#[test]
fn completions_and_manual_pages_are_made_for_every_shell_and_verb() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = run(&setup, &["completions", shell]);
        assert!(said.out.contains("submit") && said.exit == Exit::Ok, "{shell}");
    }
    let page = run(&setup, &["man"]).out;
    assert!(page.contains(".TH") && page.contains("submit") && !page.contains("supervise"));
    for verb in cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let page = run(&setup, &["man", verb.get_name()]).out;
        assert!(page.contains(".TH") && page.contains(verb.get_name()), "{}", verb.get_name());
    }
    assert_eq!(run(&setup, &["man", "supervise"]).exit, Exit::Usage);
}

#[test]
fn without_a_scheduler_every_verb_that_needs_one_exits_5_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let verbs: [&[&str]; 14] = [
        &["ls"],
        &["show", "1"],
        &["log", "1"],
        &["gpus"],
        &["receipt", "1"],
        &["cancel", "1"],
        &["undo"],
        &["priority", "1", "high"],
        &["top", "1"],
        &["pause", "1"],
        &["wait", "1"],
        &["meter"],
        &["close", "all"],
        &["stop"],
    ];
    for verb in verbs {
        let said = run(&setup, verb);
        assert_eq!(said.exit, Exit::NoScheduler, "{verb:?}");
        assert!(said.err.contains("overnight serve") && said.out.is_empty(), "{verb:?}: {}", said.err);
    }
}

#[test]
fn the_exit_codes_are_those_of_the_documentation() {
    let codes = [Exit::Ok, Exit::Failed, Exit::Usage, Exit::OtherScheduler, Exit::State, Exit::NoScheduler];
    assert_eq!(codes.map(|exit| exit as u8), [0, 1, 2, 3, 4, 5]);
    let broken = CliError::Output { source: std::io::ErrorKind::BrokenPipe.into() };
    assert_eq!((cli::exit::of(&broken), cli::exit::message(&broken)), (Exit::Ok, None));
    let full = CliError::Output { source: std::io::ErrorKind::StorageFull.into() };
    assert_eq!(cli::exit::of(&full), Exit::Failed);
}

const JOB_FILE: &str = "work: {run: echo hello}\ndata: []\nrequest: {gpus: 0, for: 5m}\noutput: []\n";

#[test]
fn without_a_scheduler_a_file_reaches_the_inbox_whole_and_over_nothing() {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let inbox = setup.paths.inbox();
    std::fs::create_dir(&inbox).unwrap();
    std::fs::write(inbox.join("train.yaml"), "mine").unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, &inbox, WatchFlags::ALL_EVENTS).unwrap();
    let file = folder.path().join("Train.yaml");
    std::fs::write(&file, JOB_FILE).unwrap();

    let said = run(&setup, &["submit", file.to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Ok, "{}", said.err);
    assert!(said.out.contains("no scheduler runs") && said.out.contains("train-2.yaml"), "{}", said.out);

    // Nobody who watches ever sees a part of it: the visible name appears by a rename.
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut moved = 0;
    while let Ok(event) = events.next() {
        let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.starts_with('.') && !name.is_empty() {
            assert_eq!(event.events(), inotify::ReadFlags::MOVED_TO, "{name}");
            moved += 1;
        }
    }
    assert_eq!(moved, 1);
    assert_eq!(std::fs::read_to_string(inbox.join("train.yaml")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(inbox.join("train-2.yaml")).unwrap(), JOB_FILE);
    let names: Vec<_> = std::fs::read_dir(&inbox).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "something was left behind: {names:?}");
}

#[test]
fn without_a_scheduler_a_folder_goes_whole() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let job = folder.path().join("my job");
    std::fs::create_dir_all(job.join("src")).unwrap();
    std::fs::write(job.join("job.yaml"), JOB_FILE).unwrap();
    std::fs::write(job.join("src/main.py"), "print()").unwrap();
    std::os::unix::fs::symlink("src/main.py", job.join("link")).unwrap();
    let said = run(&setup, &["submit", job.to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Ok, "{}", said.err);
    let there = setup.paths.inbox().join("my-job");
    assert_eq!(std::fs::read_to_string(there.join("src/main.py")).unwrap(), "print()");
    assert_eq!(std::fs::read_link(there.join("link")).unwrap(), Path::new("src/main.py"));
}

#[test]
fn what_the_inbox_cannot_carry_is_refused_instead_of_lost() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let file = folder.path().join("job.yaml");
    std::fs::write(&file, JOB_FILE).unwrap();
    let file = file.to_str().unwrap();
    for change in [&["--gpus", "2"][..], &["--paused"], &["--env", "A=b"]] {
        let said = run(&setup, &[&["submit", file], change].concat());
        assert_eq!(said.exit, Exit::NoScheduler, "{change:?}");
        assert!(!setup.paths.inbox().exists(), "{change:?}");
    }
    let said = run(&setup, &["submit", "--wait", file]);
    assert_eq!(said.exit, Exit::NoScheduler);
    assert!(setup.paths.inbox().join("job.yaml").exists(), "it was dropped all the same");
    let said = run(&setup, &["submit", folder.path().join("none.yaml").to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Failed);
    assert!(said.err.contains("none.yaml"), "{}", said.err);
}

#[test]
fn check_says_everything_that_is_wrong_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let (good, bad) = (folder.path().join("good.yaml"), folder.path().join("bad.yaml"));
    std::fs::write(&good, JOB_FILE).unwrap();
    std::fs::write(&bad, JOB_FILE.replace("for: 5m", "for: 5, gpu_count: 2")).unwrap();
    let said = run(&setup, &["check", good.to_str().unwrap(), bad.to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Failed);
    assert!(said.out.contains("good.yaml: ok: good, not checked against a pool"), "{}", said.out);
    assert!(
        said.out.contains("gpu_count") && said.out.contains("5 what?") && said.out.contains('^'),
        "{}",
        said.out
    );
    // The same findings keep it out of the inbox.
    let submitted = run(&setup, &["submit", bad.to_str().unwrap()]);
    assert_eq!(submitted.exit, Exit::Failed);
    assert!(submitted.out.contains("gpu_count"));
    assert!(!setup.paths.inbox().exists());
    let dry = run(&setup, &["submit", "--dry-run", good.to_str().unwrap()]);
    assert_eq!((dry.exit, setup.paths.inbox().exists()), (Exit::Ok, false));
    let schema: serde_json::Value = serde_json::from_str(&run(&setup, &["check", "--schema"]).out).unwrap();
    assert!(schema["properties"]["request"].is_object(), "{schema}");
}

#[test]
fn every_template_is_a_job_file_without_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    for kind in ["training", "inference", "processing", "simulation", "other"] {
        let template = run(&setup, &["new", kind]).out;
        let file = folder.path().join(format!("{kind}.yaml"));
        std::fs::write(&file, template).unwrap();
        let said = run(&setup, &["check", file.to_str().unwrap()]);
        assert_eq!(said.exit, Exit::Ok, "{kind}: {}", said.out);
    }
}

#[test]
fn a_refused_submission_is_shown_with_its_findings() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let file = folder.path().join("big.yaml");
    std::fs::write(&file, JOB_FILE).unwrap();
    let server = answer(&setup.paths, 2, |request| match request {
        Request::Command(Command::Submit(file)) => {
            assert_eq!(file.overrides.gpus, Some(16));
            let finding = Diagnostic {
                severity: Severity::Error,
                code: 60,
                message: "this pool has 4 GPUs".into(),
                file: file.shown.clone(),
                line: 3,
                column: 17,
                width: 1,
                source: Some("request: {gpus: 16, for: 5m}".into()),
                label: None,
                hint: None,
                known: Vec::new(),
                fix: None,
            };
            reply(Reply::Invalid { diagnostics: vec![finding] })
        }
        Request::Command(Command::Check(_)) => {
            reply(Reply::Unavailable { message: "the disk is full".into() })
        }
        other => panic!("{other:?}"),
    });
    let said = run(&setup, &["submit", "--gpus", "16", file.to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Failed);
    assert!(said.out.contains("this pool has 4 GPUs") && said.out.contains(":3:17"), "{}", said.out);
    let said = run(&setup, &["check", file.to_str().unwrap()]);
    assert_eq!((said.exit, said.err.as_str()), (Exit::Failed, "the disk is full\n"));
    server.join().unwrap();
}

#[test]
fn a_command_carries_the_generation_it_was_decided_on() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let server = answer(&setup.paths, 1, |request| match request {
        Request::Query(Query::Resolve { name }) if name == "none" => {
            reply(Reply::NotFound { message: "no job is named none".into() })
        }
        Request::Query(Query::Resolve { .. }) => {
            reply(Reply::Resolved { job: JobId(17), generation: GENERATION })
        }
        Request::Command(_) => reply(Reply::Ok { message: "17 train: cancelled".into() }),
        other => panic!("{other:?}"),
    });
    let said = run(&setup, &["cancel", "none", "#17", "--undo", "5s"]);
    assert_eq!(said.exit, Exit::Failed, "one of them was not found");
    assert_eq!(said.out, "17 train: cancelled\n");
    assert_eq!(said.err, "no job is named none\n");
    let requests = server.join().unwrap();
    let expected =
        Command::Cancel { job: JobId(17), generation: GENERATION, undo: Span::secs(5), now: false };
    assert_eq!(requests[1], Request::Query(Query::Resolve { name: "17".into() }));
    assert_eq!(requests.last(), Some(&Request::Command(expected)));
}

#[test]
fn ls_filters_and_prints_what_the_scheduler_has() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let server = answer(&setup.paths, 5, |request| match request {
        Request::Query(Query::Jobs { done }) => {
            let mut rows = vec![row(17, Cursor::Running), row(18, Cursor::Queued)];
            if *done > 0 {
                rows.push(row(19, Cursor::Done));
            }
            reply(Reply::Jobs { rows, left: 0 })
        }
        other => panic!("{other:?}"),
    });
    let all = run(&setup, &["ls", "--all", "--json"]);
    let ids = |text: &str| -> Vec<u64> {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        document["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(&all.out), [17, 18, 19]);
    assert_eq!(ids(&run(&setup, &["ls", "--json", "--state", "succeeded"]).out), [19]);
    assert_eq!(ids(&run(&setup, &["ls", "--json", "--user", "nobody"]).out), [0; 0]);
    assert_eq!(ids(&run(&setup, &["ls", "--json", "--filter", "-id:17 s:wait"]).out), [18]);
    let unread = run(&setup, &["ls", "--filter", "18 g:x"]);
    assert!(
        unread.exit == Exit::Usage && unread.err.contains("--filter g:x: g: takes a number"),
        "{}",
        unread.err
    );
    let text = run(&setup, &["ls"]).out;
    assert!(
        text.starts_with("#  ID  STATE") && text.contains("running") && !text.contains("train-19"),
        "{text}"
    );
    server.join().unwrap();
}

#[test]
fn submit_wait_tells_of_each_end_and_fails_if_one_failed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let file = folder.path().join("two.yaml");
    std::fs::write(&file, JOB_FILE).unwrap();
    let mut looked = 0;
    let server = answer(&setup.paths, 1, move |request| match request {
        Request::Command(Command::Submit(file)) => {
            assert_eq!((file.stem.as_str(), file.text.as_slice()), ("two", JOB_FILE.as_bytes()));
            let job = |id, place| SubmittedJob {
                id: Some(JobId(id)),
                name: "two".into(),
                place,
                why: place.map(|_| "needs 8 free".into()),
                starts_at: None,
                starts_by: None,
                late: false,
                gpus: Vec::new(),
            };
            reply(Reply::Submitted { jobs: vec![job(17, None), job(18, Some(1))], diagnostics: vec![] })
        }
        Request::Subscribe { .. } => vec![ServerMessage::Reply(Reply::Pong), update(&[17, 18])],
        Request::Query(Query::Job { job }) => {
            looked += 1;
            // Both run at first; then 17 ends, and then 18 fails.
            let mut detail = detail(job.0, if looked <= 2 { Cursor::Running } else { Cursor::Done });
            if job.0 == 18 && looked > 2 {
                detail.row.outcome = Some(Outcome::Failed(Failure::Code(3)));
            }
            let mut messages = reply(Reply::Job(Box::new(detail)));
            match looked {
                2 => messages.push(update(&[18])),
                3 => messages.push(update(&[])),
                _ => {}
            }
            messages
        }
        other => panic!("{other:?}"),
    });
    let said = run(&setup, &["submit", "--wait", file.to_str().unwrap()]);
    assert_eq!(said.exit, Exit::Failed);
    let expected = "17 two: starts at once\n18 two: place 1: needs 8 free\n\
                    2026-11-30 09:59:59 17 train-17: succeeded\n2026-11-30 09:59:59 18 train-18: failed: exit 3\n";
    assert_eq!(said.out, expected);
    server.join().unwrap();
}

/// Says what is printed as soon as it is.
struct Heard(mpsc::Sender<Vec<u8>>);

impl std::io::Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_followed_log_is_printed_as_it_grows_and_to_its_end() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let job = folder.path().join("jobs/17-train");
    let (log, mut looked) = (job.join("log.txt"), 0);
    let (done, is_done) = mpsc::channel::<()>();
    let is_done = std::sync::Arc::new(std::sync::Mutex::new(is_done));
    let server = answer(&setup.paths, 1, move |request| -> Box<dyn Iterator<Item = ServerMessage>> {
        Box::new(match request {
            Request::Query(Query::Resolve { .. }) => {
                reply(Reply::Resolved { job: JobId(17), generation: GENERATION }).into_iter()
            }
            Request::Subscribe { .. } => reply(Reply::Pong).into_iter(),
            Request::Query(Query::Job { .. }) => {
                looked += 1;
                let mut detail = detail(17, if looked <= 2 { Cursor::Running } else { Cursor::Done });
                detail.row.log.clone_from(&log);
                let messages = reply(Reply::Job(Box::new(detail))).into_iter();
                if looked == 2 {
                    // Nothing is said until the log has been seen to grow by itself.
                    let is_done = is_done.clone();
                    let last = std::iter::once_with(move || {
                        is_done.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
                        update(&[])
                    });
                    return Box::new(messages.chain(last));
                }
                messages
            }
            other => panic!("{other:?}"),
        })
    });
    let all = ["overnight", "log", "-f", "train"].map(Into::into);
    let Ok((_, Invocation::Verb(verb))) = cli::parse(all) else { panic!("not a verb") };
    let (sender, heard) = mpsc::channel();
    let follower = std::thread::spawn(move || {
        let (mut out, mut err) = (Heard(sender), Vec::new());
        let mut io = Io::new(&mut out, &mut err, None, false);
        let exit = cli::run_on(&verb, &setup, &mut io).unwrap();
        (exit, String::from_utf8(err).unwrap())
    });
    let expect = |wanted: &[u8]| {
        let mut got = Vec::new();
        while got.len() < wanted.len() {
            got.extend(heard.recv_timeout(TIMEOUT).unwrap());
        }
        assert_eq!(got, wanted);
    };
    // The folder, the file, and the link to it appear while the follower waits; then the file grows.
    let attempt = |n: u8| job.join(format!("attempts/{n}"));
    std::fs::create_dir_all(attempt(1)).unwrap();
    std::os::unix::fs::symlink("attempts/1/log.txt", job.join("log.txt")).unwrap();
    let mut file = std::fs::File::create(attempt(1).join("log.txt")).unwrap();
    // Not a terminal: the job's own bytes.
    file.write_all(b"one\n\xff\x1b]0;title\x07\n").unwrap();
    expect(b"one\n\xff\x1b]0;title\x07\n");
    file.write_all(b"two\n").unwrap();
    expect(b"two\n");
    // The next attempt has a log of its own.
    std::fs::create_dir(attempt(2)).unwrap();
    std::fs::write(attempt(2).join("log.txt"), "three\n").unwrap();
    std::os::unix::fs::symlink("attempts/2/log.txt", job.join("new")).unwrap();
    std::fs::rename(job.join("new"), job.join("log.txt")).unwrap();
    expect(b"three\n");
    done.send(()).unwrap();
    let (exit, said) = follower.join().unwrap();
    assert_eq!(exit, Exit::Ok);
    assert!(said.contains("succeeded"), "{said}");
    server.join().unwrap();
}

#[test]
fn on_a_terminal_a_log_cannot_act_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let job = setup.paths.jobs().join("17-train");
    std::fs::create_dir_all(&job).unwrap();
    std::fs::write(job.join("log.txt"), "\x1b[31mred\x1b]52;c;aGk=\x07\x1b[2J\n").unwrap();
    let all = ["overnight", "log", "train"].map(Into::into);
    let Ok((_, Invocation::Verb(verb))) = cli::parse(all) else { panic!("not a verb") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io::new(&mut out, &mut err, Some(80), true);
    assert_eq!(cli::run_on(&verb, &setup, &mut io).unwrap(), Exit::Ok);
    assert_eq!(String::from_utf8(out).unwrap(), "\x1b[31mred\n\x1b[0m");
}

#[test]
fn the_meter_is_printed_for_people_and_for_spreadsheets() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let server = answer(&setup.paths, 3, |request| match request {
        Request::Query(Query::Meter { by, .. }) => {
            assert_eq!(*by, MeterBy::Project);
            reply(Reply::Meter(meter()))
        }
        Request::Query(Query::MeterCheck) => {
            reply(Reply::MeterChecked { leases: 3, differences: vec!["ana: 5 ms too many".into()] })
        }
        other => panic!("{other:?}"),
    });
    let text = run(&setup, &["meter", "--by", "project"]).out;
    let csv = run(&setup, &["meter", "--by", "project", "--csv"]).out;
    insta::assert_snapshot!("meter_text", format!("{text}\n{}", csv.replace("\r\n", "\n")));
    let check = run(&setup, &["meter", "--check"]);
    assert_eq!(
        (check.exit, check.out.as_str()),
        (Exit::Failed, "ana: 5 ms too many\n3 leases, 1 differences\n")
    );
    server.join().unwrap();
}

#[test]
fn show_and_gpus_are_readable() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let server = answer(&setup.paths, 2, |request| match request {
        Request::Query(Query::Resolve { .. }) => {
            reply(Reply::Resolved { job: JobId(19), generation: GENERATION })
        }
        Request::Query(Query::Job { .. }) => reply(Reply::Job(Box::new(detail(19, Cursor::Done)))),
        Request::Query(Query::Gpus) => reply(Reply::Gpus(gpus())),
        other => panic!("{other:?}"),
    });
    let show = run(&setup, &["show", "19"]).out;
    let gpus = run(&setup, &["gpus"]).out;
    insta::assert_snapshot!("show_text", show);
    insta::assert_snapshot!("gpus_text", gpus);
    server.join().unwrap();
}

#[test]
fn watch_prints_one_line_for_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path());
    let server = answer(&setup.paths, 1, |request| match request {
        Request::Subscribe { .. } => {
            let mut messages = reply(Reply::Pong);
            messages.push(scheduler::update_with(vec![row(17, Cursor::Queued)]));
            messages.push(scheduler::update_with(vec![row(17, Cursor::Queued)]));
            messages.push(scheduler::update_with(vec![row(17, Cursor::Running)]));
            messages
        }
        other => panic!("{other:?}"),
    });
    // The scheduler goes away after its last message, and the reader after that.
    let (mut out, mut err) = (UntilLost(Vec::new()), Vec::new());
    let all = ["overnight", "watch"].map(Into::into);
    let Ok((_, Invocation::Verb(verb))) = cli::parse(all) else { panic!("not a verb") };
    let error = cli::run_on(&verb, &setup, &mut Io::new(&mut out, &mut err, None, false)).unwrap_err();
    assert_eq!((cli::exit::of(&error), cli::exit::message(&error)), (Exit::Ok, None), "quietly");
    let text = String::from_utf8(out.0).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "2026-11-30 10:00:00 watching: 0 running, 1 waiting, 2 GPUs",
        "2026-11-30 10:00:00 17 train-17 (ana): running: gpu 0,1",
    ];
    assert_eq!(lines, expected);
    server.join().unwrap();
}

/// A pipe whose reader goes when the connection is lost.
struct UntilLost(Vec<u8>);

impl std::io::Write for UntilLost {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let text = String::from_utf8_lossy(&self.0);
        let Some(at) = text.lines().position(|line| line.contains("connection lost: ")) else {
            return Ok(());
        };
        self.0 = text.lines().take(at).flat_map(|line| [line, "\n"]).collect::<String>().into_bytes();
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}
