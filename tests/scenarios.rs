//! Worlds written down, and what the plan must make of them: `tests/scenarios/*.yaml`. Unknown fields are refused.

#![expect(unreachable_pub, dead_code, reason = "the builders are shared with other test programs")]
#![expect(clippy::expect_used, reason = "an expectation is how a test helper fails")]

#[path = "sched/build.rs"]
mod build;

use build::{Ask, BEGIN, Rig, gpu, job, owner, why};
use overnight::model::{
    Amount, Cursor, GpuProcess, JobId, Priority, ProcessKind, RunEnd, Span, Unreadable, parse_bytes,
    parse_span,
};
use overnight::protocol::{Command, GpuSelect, Place};
use overnight::sched::{Input, forecast};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// What it shows.
    about: String,
    pool: Pool,
    /// Submitted and started, one after another.
    #[serde(default)]
    running: Vec<JobLine>,
    /// Submitted in this order while nothing can be granted; decided about all at once.
    #[serde(default)]
    waiting: Vec<JobLine>,
    /// Names of those that start, in the order of their grants.
    #[serde(default)]
    starts: Vec<String>,
    /// Why others wait.
    #[serde(default)]
    waits: BTreeMap<String, String>,
    /// Seconds from now: when one is expected to start, and when at the latest; `never` if nobody knows.
    #[serde(default)]
    forecast: BTreeMap<String, Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    /// Model and memory of each GPU: `A100 80GiB`.
    gpus: Vec<String>,
    cores: u32,
    memory: String,
    /// GPUs that are not free: index to `outside`, `unknown`, `gone`, `closed`, `stale`.
    #[serde(default)]
    not_free: BTreeMap<u32, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobLine {
    name: String,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default = "one")]
    gpus: u32,
    #[serde(default)]
    gpu_model: Vec<String>,
    #[serde(default)]
    gpu_memory: Option<String>,
    #[serde(default)]
    cpus: Option<u32>,
    #[serde(default)]
    memory: Option<String>,
    /// `until_done`, or a length.
    #[serde(default, rename = "for")]
    limit: Option<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    after_any: Vec<String>,
    /// Seconds from the beginning.
    #[serde(default)]
    start_after: Option<i64>,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    top: bool,
    /// It holds what it got for so long already.
    #[serde(default)]
    since: Option<String>,
    /// It has ended with this exit code.
    #[serde(default)]
    ended: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    about: String,
    no_later_than: String,
}

const fn one() -> u32 {
    1
}

fn spec(line: &JobLine) -> overnight::model::JobSpec {
    let span = |text: &str| parse_span(text).expect("a length");
    let bytes = |text: &str| parse_bytes(text).expect("a size");
    job(&line.name).gpus(line.gpus).with(|spec| {
        let request = &mut spec.request;
        request.gpu_model.clone_from(&line.gpu_model);
        request.gpu_memory = line.gpu_memory.as_deref().map(bytes);
        if let Some(cores) = line.cpus {
            request.cpus = Some(Amount::Some(cores));
        }
        if let Some(memory) = &line.memory {
            request.memory = Some(Amount::Some(bytes(memory)));
        }
        match line.limit.as_deref() {
            Some("until_done") => request.limit = overnight::model::Limit::UntilDone,
            Some(limit) => request.limit = overnight::model::Limit::For(span(limit)),
            None => {}
        }
        request.priority = Priority::clamped(line.priority);
        request.after.clone_from(&line.after);
        request.after_any.clone_from(&line.after_any);
        request.start_after_ms = line.start_after.map(|s| BEGIN.wall_ms + s * 1000);
    })
}

fn pool(pool: &Pool) -> Rig {
    let gpus = pool.gpus.iter().enumerate().map(|(index, text)| {
        let (name, memory) = text.rsplit_once(' ').expect("a model and a size");
        gpu(index as u32, name, parse_bytes(memory).expect("a size"))
    });
    let mut rig = Rig::with(gpus.collect());
    let memory = parse_bytes(&pool.memory).expect("a size");
    rig.step(vec![Input::Host(overnight::model::HostReading { cores: pool.cores, memory })]);
    for (index, _) in pool.not_free.iter().filter(|(_, state)| *state == "closed") {
        rig.command(Command::Close { gpus: GpuSelect::Index(*index), reason: String::new() });
    }
    rig
}

/// Readings as the scenario wants them, of everything but what is stale.
fn readings(rig: &Rig, not_free: &BTreeMap<u32, String>) -> Input {
    let readings = rig.gpus.iter().filter_map(|gpu| {
        let mut reading = build::reading(&gpu.uuid, rig.now);
        match not_free.get(&gpu.index).map(String::as_str) {
            Some("stale") => return None,
            Some("outside") => {
                let (name, kind) = ("python".to_owned(), ProcessKind::Compute);
                let ours = GpuProcess {
                    pid: 7,
                    name,
                    uid: None,
                    user: None,
                    kind,
                    memory: None,
                    token: None,
                    ignored: false,
                };
                reading.processes = Some(vec![ours]);
            }
            Some("unknown") => {
                reading.unreadable = Some(Unreadable::Failed { detail: "timeout".to_owned() });
            }
            Some("gone") => reading.unreadable = Some(Unreadable::Gone { detail: "Xid 79".to_owned() }),
            Some("closed") | None => {}
            Some(other) => panic!("no such state: {other}"),
        }
        Some(reading)
    });
    Input::Readings(readings.collect())
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).expect("readable");
    let scenario: Scenario =
        serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let context = format!("{}: {}", path.display(), scenario.about);
    let mut rig = pool(&scenario.pool);
    let mut ids: BTreeMap<String, JobId> = BTreeMap::new();
    let age =
        |line: &JobLine| line.since.as_deref().map_or(Span(0), |since| parse_span(since).expect("a length"));
    let mut running: Vec<&JobLine> = scenario.running.iter().collect();
    running.sort_by_key(|line| std::cmp::Reverse(age(line)));
    for (ix, line) in running.iter().enumerate() {
        let id = rig.submit(spec(line));
        assert_eq!(rig.state(id), Cursor::Renting, "{context}: {} cannot run", line.name);
        rig.started(id);
        if let Some(code) = line.ended {
            rig.finish(id, RunEnd::Exited { code });
        }
        ids.insert(line.name.clone(), id);
        let next = running.get(ix + 1).map_or(Span(0), |next| age(next));
        rig.pass(Span(age(line).0 - next.0));
    }
    // Accepted while every reading is too old to grant on, and nothing that needs no GPU fits.
    rig.pass(Span(300));
    let host = rig.world.pool.host.expect("read");
    rig.step(vec![Input::Host(overnight::model::HostReading { cores: 0, ..host })]);
    for line in &scenario.waiting {
        let mut one = build::submission(vec![spec(line)]);
        one.paused = line.paused;
        one.owner = owner(line.owner.as_deref().unwrap_or("ana"));
        rig.step(vec![Input::Submission(Box::new(one))]);
        let job = rig.world.counters.job;
        ids.insert(line.name.clone(), job);
        if line.top {
            let generation = rig.generation(job);
            rig.command(Command::Move { job, generation, to: Place::Top });
        }
    }
    let readings = readings(&rig, &scenario.pool.not_free);
    rig.step(vec![Input::Host(host), readings]);
    let name_of = |id: JobId| rig.job(id).spec.name.clone();
    let starts: Vec<String> = rig
        .last
        .events
        .iter()
        .filter_map(|record| match &record.event {
            overnight::model::Event::LeaseGranted { job, .. } => Some(name_of(*job)),
            _ => None,
        })
        .collect();
    assert_eq!(starts, scenario.starts, "{context}: starts");
    for (name, expected) in &scenario.waits {
        assert_eq!(why(&rig.world, &rig.now, ids[name]), *expected, "{context}: {name}");
    }
    let told = forecast(&rig.world, &rig.now);
    for (name, expected) in &scenario.forecast {
        let told = told.get(&ids[name]).cloned().unwrap_or_default();
        let seconds = |at: Option<i64>| {
            at.map_or_else(
                || "never".to_owned(),
                |at| Span((at - rig.now.wall_ms).unsigned_abs()).to_string(),
            )
        };
        let said = (seconds(told.starts_at), seconds(told.starts_by));
        let expected = (expected.about.clone(), expected.no_later_than.clone());
        assert_eq!(said, expected, "{context}: forecast of {name}");
    }
}

#[test]
fn every_scenario_comes_out_as_it_is_written_down() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<_> =
        std::fs::read_dir(dir).expect("there").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert!(paths.len() >= 15);
    let failed: Vec<_> =
        paths.iter().filter(|path| std::panic::catch_unwind(|| check(path)).is_err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn an_unknown_field_is_refused() {
    let text = "about: x\npool: {gpus: [], cores: 1, memory: 1GiB, disks: 3}\n";
    let error = serde_yaml::from_str::<Scenario>(text).expect_err("refused").to_string();
    assert!(error.contains("disks"), "{error}");
}
