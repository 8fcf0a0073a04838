//! The whole product through its binary: files dropped, jobs run, schedulers killed, screens read.
//!
//! Every test has a root of its own and ends what it started; they run side by side.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "e2e/dashboard.rs"]
mod dashboard;
#[path = "e2e/drops.rs"]
mod drops;
#[path = "e2e/full_disk.rs"]
mod full_disk;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/mod.rs"]
mod support;
#[path = "e2e/watching.rs"]
mod watching;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use support::auditor::Auditor;
use support::sandbox::{Sandbox, eventually};

/// A job on one GPU that runs `run`; `more` goes into its request.
fn one_gpu(run: &str, more: &str) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  run: |\n    {run}\ndata: []\nrequest: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m{more}}}\noutput: []\n"
    )
}

/// Shell that waits for a gate of the sandbox, and ends of a warning signal also between two of its programs.
fn wait_for_gate(gate: &Path) -> String {
    format!("trap - TERM; until [ -e '{}' ]; do sleep 0.02; done", gate.display())
}

/// The same; a warning that comes between two of its sleeps ends it too.
fn wait_until_told(gate: &Path) -> String {
    format!("trap 'exit 3' TERM\n{}", wait_for_gate(gate))
}

/// Exit code of a job's outcome.
fn code(job: &Value) -> i64 {
    job["outcome"]["code"].as_i64().unwrap_or_else(|| panic!("no exit code: {:#}", job["outcome"]))
}

/// A moment of a document, in milliseconds.
fn millis(value: &Value) -> i64 {
    let text = value.as_str().unwrap_or_else(|| panic!("not a time: {value}"));
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Sends a signal to one process that this test started.
fn kill(pid: u32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// What must hold when all is quiet again: every GPU free, nothing held, and the meter equal to the leases.
fn nothing_is_left_behind(sandbox: &Sandbox) {
    eventually("a pool whose GPUs are all free", || {
        let list = sandbox.run(&["gpus", "--json"]).json();
        list["gpus"].as_array().unwrap().iter().all(|gpu| gpu["state"] == "free").then_some(())
    });
    let meter = sandbox.run(&["meter", "--json"]).json();
    assert_eq!(meter["held_now"]["gpus"], 0, "{meter:#}");
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn every_sample_job_passes_the_check_without_a_warning() {
    let sandbox = Sandbox::new("none");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-jobs");
    for entry in fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        let file = if path.is_dir() { path.join("job.yaml") } else { path };
        if file.extension().is_some_and(|extension| extension == "yaml") {
            let run = sandbox.run(&["check", file.to_str().unwrap()]).ok();
            assert!(
                !run.stdout.contains("warning") && !run.stderr.contains("warning"),
                "{}{}",
                run.stdout,
                run.stderr
            );
        }
    }
}

#[test]
fn jobs_outlive_a_killed_scheduler_and_all_end_once_with_their_own_exit_codes() {
    let mut sandbox = Sandbox::serving("simulated:2");
    let audit = Auditor::watch(&sandbox);
    let ran = sandbox.dir().join("ran");
    for job in 0..12 {
        // The first job may end while nobody schedules; the others only afterwards.
        let gate = wait_for_gate(&sandbox.gate(if job == 0 { "first" } else { "rest" }));
        let run = format!("echo {job} >> '{}'\n{gate}\nexit {job}", ran.display());
        sandbox.drop_file(&format!("job-{job:02}.yaml"), &one_gpu(&run, ""));
        sandbox.wait_for_state(&format!("job-{job:02}"), if job < 2 { "running" } else { "queued" });
    }
    sandbox.kill_scheduler();
    sandbox.open_gate("first");
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("job-00"), "succeeded");
    sandbox.kill_scheduler();
    sandbox.open_gate("rest");
    sandbox.serve();
    for job in 0..12 {
        let name = format!("job-{job:02}");
        sandbox.wait_for_end(&name);
        let shown = sandbox.show(&name);
        let (kind, own) = (shown["outcome"]["kind"].as_str().unwrap(), if job == 0 { 0 } else { job });
        assert_eq!(kind, if job == 0 { "succeeded" } else { "failed" }, "{shown:#}");
        assert!(job == 0 || code(&shown) == own, "{shown:#}");
        assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "{shown:#}");
        assert_eq!(shown["attempts"][0]["ended_by"], "proven", "{shown:#}");
        assert_eq!(shown["waived_gpu_ms"], 0, "{shown:#}");
    }
    let ran = fs::read_to_string(ran).unwrap();
    let mut ran: Vec<u32> = ran.lines().map(|line| line.parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..12).collect::<Vec<_>>(), "each job ran exactly once");
    assert_eq!(sandbox.jobs().len(), 12);
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_waiting_a_paused_and_a_running_job_can_be_cancelled_and_a_done_one_cannot() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let gate = wait_until_told(&sandbox.gate("never"));
    sandbox
        .drop_file("running.yaml", &one_gpu(&format!("echo half > \"$OVERNIGHT_OUTPUT/half\"\n{gate}"), ""));
    sandbox.wait_for_state("running", "running");
    for name in ["waiting", "paused"] {
        sandbox.drop_file(&format!("{name}.yaml"), &one_gpu("echo never", ""));
        sandbox.wait_for_state(name, "queued");
    }
    sandbox.run(&["pause", "paused"]).ok();
    assert_eq!(sandbox.show("paused")["paused"], true);

    for name in ["waiting", "paused"] {
        sandbox.run(&["cancel", name]).ok();
        assert_eq!(sandbox.wait_for_end(name), "cancelled");
        let shown = sandbox.show(name);
        assert!(shown["rented_at"].is_null() && shown["gpu_ms"] == 0, "{shown:#}");
    }
    eventually("the running job's first output", || {
        let output = sandbox.job_folder(&sandbox.show("running")).join("output/half");
        output.exists().then_some(())
    });
    sandbox.run(&["cancel", "running"]).ok();
    assert_eq!(sandbox.wait_for_end("running"), "cancelled");
    let shown = sandbox.show("running");
    assert!(shown["gpu_ms"].as_u64().unwrap() > 0, "{shown:#}");
    assert_eq!(shown["outputs"][0]["path"], "half", "{shown:#}");
    assert_eq!(shown["outputs"][0]["partial"], true, "{shown:#}");

    let refused = sandbox.run(&["cancel", "running"]);
    assert_eq!(refused.code, 1, "stdout: {} stderr: {}", refused.stdout, refused.stderr);
    assert_eq!(sandbox.show("running")["outcome"], shown["outcome"], "nothing leaves done");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn what_came_back_stays_the_outputs_of_a_job_that_is_cancelled_before_its_next_attempt() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let run = "echo 1 > \"$OVERNIGHT_OUTPUT/made.txt\"\nexit 75";
    sandbox.drop_file("again.yaml", &one_gpu(run, ", retry: {times: 6, when: [75]}"));
    eventually("the wait for the second attempt", || {
        let shown = sandbox.show("again");
        (shown["state"] == "queued" && shown["attempts"].as_array()?.len() == 2).then_some(())
    });
    sandbox.run(&["cancel", "again"]).ok();
    assert_eq!(sandbox.wait_for_end("again"), "cancelled");
    let shown = sandbox.show("again");
    assert_eq!(shown["outputs"][0]["path"], "made.txt", "{shown:#}");
    let output = sandbox.job_folder(&shown).join("output/made.txt");
    assert_eq!(fs::read_to_string(output).unwrap(), "1\n", "where its folder leads");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_cancel_with_an_undo_window_is_kept_across_a_killed_scheduler() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let gate = wait_until_told(&sandbox.gate("never"));
    sandbox.drop_file("doomed.yaml", &one_gpu(&gate, ""));
    sandbox.wait_for_state("doomed", "running");
    sandbox.run(&["cancel", "doomed", "--undo", "3s"]).ok();
    let waits = sandbox.show("doomed");
    assert_eq!(waits["state"], "running", "nothing is signalled before the window closes");
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_eq!(sandbox.show("doomed")["cancel_at"], waits["cancel_at"]);
    assert_eq!(sandbox.wait_for_end("doomed"), "cancelled");
    let shown = sandbox.show("doomed");
    assert!(millis(&shown["ended_at"]) >= millis(&waits["cancel_at"]), "{shown:#}");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_cancel_while_output_is_collected_changes_nothing() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    // A sparse file costs nothing to write and a while to hash.
    sandbox.drop_file("big.yaml", &one_gpu("truncate -s 2G \"$OVERNIGHT_OUTPUT/big\"", ""));
    sandbox.wait_for_state("big", "returning");
    sandbox.run(&["cancel", "big"]);
    assert_eq!(sandbox.wait_for_end("big"), "succeeded");
    assert_eq!(sandbox.show("big")["outputs"][0]["bytes"], 2_u64 << 30);
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_job_at_its_limit_is_warned_then_killed_and_what_it_saved_comes_back() {
    let sandbox = Sandbox::serving("simulated:2");
    let audit = Auditor::watch(&sandbox);
    let saves =
        "trap 'echo saved > \"$OVERNIGHT_OUTPUT/state\"; exit 0' TERM\nwhile true; do sleep 0.05; done";
    let deaf = "trap '' TERM\nwhile true; do sleep 0.05; done";
    for (name, run) in [("saves", saves), ("deaf", deaf)] {
        let file = one_gpu(run, "").replace("for: 5m", "for: 2s");
        let file = file.replace("work:\n", "work:\n  stop: {signal: TERM, grace: 1s}\n");
        sandbox.drop_file(&format!("{name}.yaml"), &file);
    }
    for (name, least_ms) in [("saves", 1_000), ("deaf", 2_000)] {
        assert_eq!(sandbox.wait_for_end(name), "limit_reached", "{name}");
        let shown = sandbox.show(name);
        let held = shown["attempts"][0]["held_ms"].as_u64().unwrap();
        assert!((least_ms..least_ms + 5_000).contains(&held), "{name} was held for {held} ms");
        assert_eq!(shown["gpu_ms"], held, "one GPU: {shown:#}");
    }
    assert_eq!(sandbox.show("saves")["outputs"][0]["path"], "state");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_process_that_left_the_session_is_ended_with_its_job() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let pid = sandbox.dir().join("escapee");
    let run = format!(
        "setsid bash -c 'echo $$ > {0}; sleep 600' &\nuntil [ -s {0} ]; do sleep 0.02; done",
        pid.display()
    );
    sandbox.drop_file("escape.yaml", &one_gpu(&run, ""));
    assert_eq!(sandbox.wait_for_end("escape"), "succeeded");
    let pid = fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).join("exe").exists(), "{pid} lives on");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_killed_supervisor_makes_its_attempt_lost_and_waived_and_the_job_is_tried_again() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let first = sandbox.dir().join("first");
    let run = format!(
        "[ \"$OVERNIGHT_ATTEMPT\" = 1 ] || exit 0\necho $$ $PPID > {0}.new; mv {0}.new {0}\nsleep 600",
        first.display()
    );
    sandbox.drop_file("orphan.yaml", &one_gpu(&run, ""));
    let pids = eventually("the work's process", || fs::read_to_string(&first).ok());
    let (work, supervisor) = pids.trim().split_once(' ').unwrap();
    let argv = fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap();
    assert!(argv.contains("supervise"), "the work's parent is {argv:?}");
    kill(supervisor.parse().unwrap(), Signal::KILL);

    assert_eq!(sandbox.wait_for_end("orphan"), "succeeded");
    let shown = sandbox.show("orphan");
    let attempts = shown["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{shown:#}");
    assert_eq!(attempts[0]["outcome"]["kind"], "lost", "{shown:#}");
    assert_eq!(attempts[0]["waived"], true, "{shown:#}");
    assert_eq!(shown["waived_gpu_ms"], attempts[0]["gpu_ms"], "{shown:#}");
    assert!(
        !Path::new("/proc").join(work).join("exe").exists(),
        "the first attempt's work lives on as {work}"
    );
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_process_that_was_killed_while_it_waited_to_be_the_work_is_replaced() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    // The first lease begins all that waits for the next one.
    sandbox.drop_file("first.yaml", &one_gpu("true", ""));
    assert_eq!(sandbox.wait_for_end("first"), "succeeded");
    eventually("a supervisor that waits, and no other", || {
        (audit.at().supervisors().len() == 1).then_some(())
    });
    // There is one only where it can wait in groups that may be renamed.
    for waiting in audit.at().waiting() {
        kill(waiting.pid as u32, Signal::KILL);
    }
    sandbox.drop_file("second.yaml", &one_gpu("true", ""));
    assert_eq!(sandbox.wait_for_end("second"), "succeeded");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn the_work_sees_its_grant_and_nothing_of_the_schedulers() {
    let sandbox = Sandbox::serving("simulated:2");
    let run = "env > \"$OVERNIGHT_OUTPUT/env\"\nreadlink /proc/self/fd/0 > \"$OVERNIGHT_OUTPUT/stdin\"";
    let with_env = one_gpu(run, "").replace("work:\n", "work:\n  env: {OWN: as written}\n");
    sandbox.drop_file("one.yaml", &with_env);
    sandbox.drop_file("none.yaml", &one_gpu(run, "").replace("gpus: 1", "gpus: 0"));
    for name in ["one", "none"] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
        let shown = sandbox.show(name);
        let output = sandbox.job_folder(&shown).join("output");
        assert_eq!(fs::read_to_string(output.join("stdin")).unwrap().trim(), "/dev/null");
        let text = fs::read_to_string(output.join("env")).unwrap();
        let env: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let devices = shown["attempts"][0]["devices"].as_array().unwrap();
        let uuids: Vec<&str> = devices.iter().map(|device| device.as_str().unwrap()).collect();
        assert_eq!(env["OVERNIGHT_GPU_UUIDS"], uuids.join(","));
        assert_eq!(env["OVERNIGHT_GPU_COUNT"], uuids.len().to_string());
        let visible = env["CUDA_VISIBLE_DEVICES"];
        assert_eq!(visible.split(',').filter(|index| !index.is_empty()).count(), uuids.len(), "{visible}");
        assert!(["", "0", "1"].contains(&visible), "{visible}");
        for set in [
            "OVERNIGHT_JOB",
            "OVERNIGHT_TOKEN",
            "OVERNIGHT_LIMIT_S",
            "OVERNIGHT_PORT",
            "TMPDIR",
            "HOME",
            "PATH",
        ] {
            assert!(env.get(set).is_some_and(|value| !value.is_empty()), "{set} in {text}");
        }
        assert!(!env.contains_key("SCHEDULERS_OWN"), "{text}");
        assert_eq!(env.get("OWN").copied(), (name == "one").then_some("as written"));
    }
}

#[test]
fn a_second_scheduler_on_one_state_exits_with_3_and_leaves_the_first_alone() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let second = sandbox.run(&["serve", "--gpus", "simulated:1"]);
    assert_eq!(second.code, 3, "stdout: {} stderr: {}", second.stdout, second.stderr);
    sandbox.drop_file("after.yaml", &one_gpu("true", ""));
    assert_eq!(sandbox.wait_for_end("after"), "succeeded");
    audit.finish();
}

#[test]
fn the_end_of_one_job_starts_the_next_on_the_same_gpu() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let gate = wait_for_gate(&sandbox.gate("go"));
    sandbox.drop_file("first.yaml", &one_gpu(&gate, ""));
    sandbox.wait_for_state("first", "running");
    sandbox.drop_file("second.yaml", &one_gpu("true", ""));
    sandbox.wait_for_state("second", "queued");
    sandbox.open_gate("go");
    for name in ["first", "second"] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    let (first, second) = (&sandbox.show("first")["attempts"][0], &sandbox.show("second")["attempts"][0]);
    assert_eq!(first["devices"], second["devices"]);
    let gap = millis(&second["granted_at"]) - millis(&first["ended_at"]);
    assert!((0..1_000).contains(&gap), "{gap} ms between the end and the next grant");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn the_owners_order_and_priorities_hold_across_a_killed_scheduler() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let (gate, order) = (wait_for_gate(&sandbox.gate("go")), sandbox.dir().join("order"));
    sandbox.drop_file("first.yaml", &one_gpu(&gate, ""));
    sandbox.wait_for_state("first", "running");
    for name in ["a", "b", "c"] {
        sandbox.drop_file(
            &format!("{name}.yaml"),
            &one_gpu(&format!("echo {name} >> '{}'", order.display()), ""),
        );
        sandbox.wait_for_state(name, "queued");
    }
    sandbox.run(&["top", "b"]).ok();
    sandbox.run(&["priority", "c", "70"]).ok();
    sandbox.kill_scheduler();
    sandbox.serve();
    assert_eq!(sandbox.show("c")["priority"], 70);
    sandbox.open_gate("go");
    for name in ["a", "b", "c"] {
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
    }
    assert_eq!(fs::read_to_string(order).unwrap(), "c\nb\na\n");
    audit.finish();
}

#[test]
fn a_refused_file_stays_says_why_and_is_taken_once_it_is_put_right() {
    let sandbox = Sandbox::serving("simulated:1");
    let good = one_gpu("true", "");
    sandbox.drop_file("typo.yaml", &good.replace("gpus: 1", "gpu_count: 1"));
    let why = sandbox.inbox().join("typo.yaml.why.txt");
    let said = eventually("a why.txt", || fs::read_to_string(&why).ok().filter(|text| !text.is_empty()));
    assert!(said.contains("gpu_count") && said.contains("gpus"), "{said}");
    assert!(sandbox.inbox().join("typo.yaml").exists());
    assert_eq!(sandbox.jobs().len(), 0);
    fs::write(sandbox.inbox().join("typo.yaml"), good).unwrap();
    assert_eq!(sandbox.wait_for_end("typo"), "succeeded");
    assert!(!why.exists(), "why.txt outlived its reason");
    assert!(!sandbox.inbox().join("typo.yaml").exists(), "an accepted file stays in the inbox");
}

#[test]
fn submit_waits_for_the_end_and_its_exit_code_says_how_it_was() {
    let mut sandbox = Sandbox::new("simulated:1");
    let file = |name: &str, run: &str| {
        let path = sandbox.dir().join(name);
        fs::write(&path, one_gpu(run, "")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (good, bad, wrong) =
        (file("good.yaml", "true"), file("bad.yaml", "exit 9"), sandbox.dir().join("wrong.yaml"));
    fs::write(&wrong, "work: {}\n").unwrap();
    // Without a scheduler the file goes to the inbox; only waiting for it cannot work.
    assert_eq!(sandbox.run(&["submit", "--wait", &good]).code, 5);
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("good"), "succeeded");

    sandbox.run(&["submit", "--wait", "--name", "again", &good]).ok();
    assert_eq!(sandbox.run(&["submit", "--wait", &bad]).code, 1);
    assert_eq!(code(&sandbox.show("bad")), 9);
    assert_eq!(sandbox.run(&["wait", "again", "bad"]).code, 1);
    sandbox.run(&["wait", "again"]).ok();
    sandbox.run(&["check", &good]).ok();
    let refused = sandbox.run(&["check", wrong.to_str().unwrap()]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert_eq!(sandbox.run(&["no-such-verb"]).code, 2);
    assert_eq!(sandbox.run(&["show", "nobody"]).code, 1);
}

#[test]
fn the_json_documents_have_exactly_the_documented_fields() {
    let sandbox = Sandbox::serving("simulated:2");
    sandbox.drop_file("one.yaml", &one_gpu("echo data > \"$OVERNIGHT_OUTPUT/data\"", ""));
    sandbox.wait_for_end("one");
    let list = sandbox.run(&["ls", "--all", "--json"]).json();
    assert_eq!(list["schema"], 1);
    has_fields(&list["jobs"][0], JOB_FIELDS, &[]);
    has_fields(&list["jobs"][0]["tasks"], "total queued active succeeded failed cancelled lost", &[]);
    has_fields(&list["jobs"][0]["outcome"], "kind code signal reason", &[]);

    let shown = sandbox.show("one");
    has_fields(&shown, &format!("{JOB_FIELDS} {SHOW_FIELDS}"), &["schema"]);
    let attempt = &shown["attempts"][0];
    has_fields(attempt, ATTEMPT_FIELDS, &[]);
    has_fields(&attempt["release"], "verdict detail", &[]);
    has_fields(&shown["outputs"][0], "task path kind bytes blake3 partial", &[]);
    let steps: Vec<&str> =
        shown["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["submit", "rent", "run", "output", "release"]);
    for moment in ["submitted_at", "rented_at", "started_at", "ended_at", "done_at"] {
        assert!(millis(&shown[moment]) > 0, "{moment}");
    }

    let gpus = sandbox.run(&["gpus", "--json"]).json();
    assert_eq!((gpus["schema"].as_i64(), gpus["gpus"].as_array().unwrap().len()), (Some(1), 2));
    has_fields(&gpus["gpus"][0], GPU_FIELDS, &[]);

    let meter = sandbox.run(&["meter", "--by", "job", "--json"]).json();
    has_fields(&meter, "schema since until by rows held_now", &[]);
    has_fields(&meter["rows"][0], "key jobs gpu_ms core_ms waived_gpu_ms cost", &[]);
    assert_eq!(meter["rows"][0]["gpu_ms"], shown["gpu_ms"]);
}

const JOB_FIELDS: &str = "id name user project kind state paused outcome tasks gpus cpus priority rank submitted_at \
    rented_at started_at ended_at done_at limit_at gpu_ms core_ms waived_gpu_ms place why starts_at starts_by \
    finishes_at finish_by late cancel_at retry_at retry_of staging progress peak_memory mean_utilisation devices generation";
const SHOW_FIELDS: &str = "steps attempts outputs warnings spec directory log";
const ATTEMPT_FIELDS: &str = "task attempt lease devices boot granted_at started_at ended_at returned_at held_ms gpu_ms \
    waived ended_by outcome release";
const GPU_FIELDS: &str = "uuid index node name state jobs utilisation memory_used memory_total temperature_c power_w \
    processes detail enforced";

/// Exactly these fields, and perhaps some of `also`.
#[track_caller]
fn has_fields(value: &Value, fields: &str, also: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value:#}"));
    let have: BTreeSet<&str> = object.keys().map(String::as_str).filter(|key| !also.contains(key)).collect();
    let want: BTreeSet<&str> = fields.split_whitespace().collect();
    let (missing, extra): (Vec<_>, Vec<_>) =
        (want.difference(&have).collect(), have.difference(&want).collect());
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?} in {value:#}");
}

/// What waits for long: `.ci/run` has them, and `cargo test --test NAME -- --ignored long::`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn every_sample_job_ends_as_expected_with_its_outputs_and_receipt() {
        const COMES_BACK: &[(&str, &[&str])] = &[
            ("train-classifier", &["model.txt", "metrics.csv"]),
            ("denoise-footage", &["frames/01.pgm", "frames/16.pgm", "quality.csv"]),
            ("render-fractal", &["fractal.pgm"]),
            ("classify-night", &["batches.csv", "summary.txt"]),
            ("price-option", &["price.txt"]),
            ("verify-archive", &["verified.csv"]),
            ("plan-tour", &["tour.txt"]),
            ("estimate-pi", &["pi.txt"]),
            ("forecast-demand", &["forecast.csv"]),
            ("morning-report", &["report.md"]),
        ];
        let sandbox = Sandbox::serving("simulated:4");
        let audit = Auditor::watch(&sandbox);
        let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-jobs/expected.txt");
        let expected = fs::read_to_string(expected).unwrap();
        let expected: Vec<(&str, &str)> = expected
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(' '))
            .collect();
        assert_eq!(expected.len(), COMES_BACK.len());
        for (name, _) in &expected {
            sandbox.drop_sample(name);
        }
        for (name, outcome) in &expected {
            assert_eq!(sandbox.wait_for_end(name), *outcome, "{name}");
            let shown = sandbox.show(name);
            let folder = sandbox.job_folder(&shown);
            let receipt = eventually("a receipt", || fs::read_to_string(folder.join("receipt.json")).ok());
            let receipt: Value = serde_json::from_str(&receipt).unwrap();
            assert_eq!(receipt["outcome"]["kind"], *outcome, "{name}: {receipt:#}");
            assert_eq!(receipt["attempts"][0]["release"]["verdict"], "clean", "{name}: {receipt:#}");
            assert_eq!(receipt["attempts"][0]["ended_by"], "proven", "{name}: {receipt:#}");
            assert!(fs::metadata(folder.join("log.txt")).unwrap().len() > 0, "{name} logged nothing");
            let (_, files) = COMES_BACK.iter().find(|(job, _)| job == name).unwrap();
            for file in *files {
                let output =
                    receipt["outputs"].as_array().unwrap().iter().find(|output| output["path"] == *file);
                let output = output.unwrap_or_else(|| panic!("{name}: {file} is not in {receipt:#}"));
                let bytes = fs::read(folder.join("output").join(file)).unwrap();
                assert!(!bytes.is_empty(), "{name}: {file} is empty");
                assert_eq!(output["bytes"], bytes.len() as u64, "{name}: {file}");
                assert_eq!(output["blake3"], blake3::hash(&bytes).to_hex().as_str(), "{name}: {file}");
                assert_eq!(output["partial"], *outcome != "succeeded", "{name}: {file}");
            }
        }
        assert_eq!(code(&sandbox.show("verify-archive")), 3);
        // Waited for what they read.
        let (trained, classified) = (sandbox.show("train-classifier"), sandbox.show("classify-night"));
        assert!(millis(&classified["rented_at"]) >= millis(&trained["done_at"]), "{classified:#}");
        assert_eq!(sandbox.show("morning-report")["gpu_ms"], 0);
        nothing_is_left_behind(&sandbox);
        audit.finish();
    }
}
