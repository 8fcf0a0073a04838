//! The soak: random lives of jobs, a random fault every half second, the auditor beside them.
//!
//! `tests/soak.sh --minutes N` runs it for long; a test suite for some seconds. At the end all is healed, every job must
//! end, and what it came to must be its own doing or that of a fault that hit it.
//!
//! `SOAK_SECONDS`, `SOAK_SEED`; `OVERNIGHT_TEST_CLOCK_STEPS=1` also steps the machine's wall clock, where that harms nobody else.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "soak/faults.rs"]
mod faults;
#[path = "soak/jobs.rs"]
mod jobs;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use faults::{Fault, PutRight};
use jobs::{Asked, Kind};
use overnight::clock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::auditor::devices::Sick;
use support::auditor::evidence::word;
use support::auditor::{Auditor, Report};
use support::sandbox::{Sandbox, eventually};

/// Devices.
const GPUS: usize = 4;
/// A fault every so often.
const FAULT_MS: u64 = 500;
/// Between two turns of this driver.
const TURN: Duration = Duration::from_millis(50);
/// Jobs that are not done at the same time.
const OPEN: usize = 20;
/// A look into the store every so often, whatever is under way.
const LOOK_MS: u64 = 5_000;

/// A small seeded generator (splitmix).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.below(of.len() as u64) as usize])
    }
}

/// A verb that is under way.
struct Verb {
    child: Child,
    /// What was submitted by it.
    submits: Option<String>,
}

pub(crate) struct Soak {
    dice: Dice,
    /// Before the sandbox, which asks the scheduler at its end.
    put_right: PutRight,
    sandbox: Sandbox,
    audit: Auditor,
    control: PathBuf,
    /// By name.
    asked: BTreeMap<String, Asked>,
    done: BTreeSet<String>,
    verbs: Vec<Verb>,
    faults: BTreeMap<&'static str, u64>,
    restarts: u64,
    verbs_run: u64,
    looks: u64,
    /// The scheduler is stopped or down until then.
    back_at: Option<(u64, Down)>,
    /// What each device was made to be.
    sick: BTreeMap<usize, String>,
    /// Leases whose supervisor was killed, jobs that lost a process, by our hand.
    hit_leases: BTreeSet<u64>,
    hit_jobs: BTreeSet<u64>,
    /// Processes that may have become a job's first in the moment in which they were killed.
    hit_processes: BTreeSet<(i32, u64)>,
    wrong: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Down {
    Killed,
    Stopped,
}

/// All is done so long after the last fault: a device with a fault is looked at once a minute by then, and has to be
/// clean three times.
const HEALED_MS: u64 = 300_000;

fn setting(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

fn now() -> u64 {
    clock::monotonic().0
}

#[test]
fn random_lives_and_random_faults_break_nothing() {
    let seconds = setting("SOAK_SECONDS").unwrap_or(8);
    let seed = setting("SOAK_SEED").unwrap_or_else(|| clock::wall_ms().unsigned_abs());
    say(&format!("soak: {seconds} s, SOAK_SEED={seed}"));
    let mut soak = Soak::new(seed);
    soak.live(seconds);
    soak.heal();
    let (wrong, text) = soak.end(seed, seconds);
    say(&text);
    assert!(wrong.is_empty(), "SOAK_SEED={seed}\n{}", wrong.join("\n"));
}

/// Past the capture of output: the figures are the result.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

impl Soak {
    fn new(seed: u64) -> Self {
        let mut sandbox = Sandbox::new(&format!("simulated:{GPUS}"));
        let control = sandbox.dir().join("control.toml");
        sandbox.serve_with(&["--control", control.to_str().unwrap()]);
        let config = sandbox.dir().join("home/.config/overnight");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "[limits]\ndrain = \"3s\"\n").unwrap();
        sandbox.serve();
        let audit = Auditor::watch_with_control(&sandbox, &control);
        let put_right = PutRight { place: Auditor::place(&sandbox), clock_off: false };
        Self {
            dice: Dice(seed),
            sandbox,
            audit,
            control,
            asked: BTreeMap::new(),
            done: BTreeSet::new(),
            verbs: Vec::new(),
            faults: BTreeMap::new(),
            restarts: 0,
            verbs_run: 0,
            looks: 0,
            back_at: None,
            sick: BTreeMap::new(),
            hit_leases: BTreeSet::new(),
            hit_jobs: BTreeSet::new(),
            hit_processes: BTreeSet::new(),
            put_right,
            wrong: Vec::new(),
        }
    }

    fn live(&mut self, seconds: u64) {
        let (began, mut fault_at, mut look_at) = (now(), now() + FAULT_MS, now() + LOOK_MS);
        while now() < began + seconds * 1000 && self.wrong.is_empty() {
            std::thread::park_timeout(TURN);
            self.tend();
            if self.open() < OPEN && self.dice.percent(40) {
                self.ask_for_a_job();
            }
            if self.dice.percent(10) {
                self.ask_for_a_change();
            }
            if now() >= fault_at {
                fault_at = now() + FAULT_MS;
                // What cannot be done now makes room for something else.
                for _ in 0..8 {
                    let fault = Fault::roll(&mut self.dice);
                    if self.inflict(fault) {
                        *self.faults.entry(fault.name()).or_default() += 1;
                        break;
                    }
                }
            }
            if now() >= look_at && self.back_at.is_none() {
                look_at = now() + LOOK_MS;
                self.look();
            }
        }
    }

    /// The store as it is, with whatever is under way.
    fn look(&mut self) {
        self.audit.snapshot();
        self.looks += 1;
        self.wrong.extend(self.audit.findings().0.iter().map(|(id, text)| format!("{id}: {text}")));
    }

    /// Brings back what is down when it is time, gathers verbs, and notices a scheduler that ended by itself.
    fn tend(&mut self) {
        if let Some((at, down)) = self.back_at
            && now() >= at
        {
            self.bring_back(down);
        }
        let mut gone = Vec::new();
        for (ix, verb) in self.verbs.iter_mut().enumerate() {
            if let Some(status) = verb.child.try_wait().unwrap() {
                if let (Some(name), true) = (&verb.submits, status.success())
                    && let Some(asked) = self.asked.get_mut(name)
                {
                    asked.accepted = true;
                }
                gone.push(ix);
            }
        }
        for ix in gone.into_iter().rev() {
            self.verbs.swap_remove(ix);
        }
        if self.back_at.is_none()
            && let Some(status) = self.sandbox.scheduler_ended()
        {
            self.wrong.push(format!("the scheduler ended by itself: {status}\n{}", self.said()));
        }
        for folder in fs::read_dir(self.sandbox.root().join("jobs")).into_iter().flatten().flatten() {
            let name = folder.file_name().to_string_lossy().into_owned();
            if let Some((_, name)) = name.split_once('-')
                && !self.done.contains(name)
                && folder.path().join("receipt.json").exists()
            {
                self.done.insert(name.to_owned());
            }
        }
    }

    /// The end of what the scheduler said.
    fn said(&self) -> String {
        let said = self.sandbox.scheduler_said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    fn open(&self) -> usize {
        self.asked.len().saturating_sub(self.done.len())
    }

    fn ask_for_a_job(&mut self) {
        let name = format!("job-{:05}", self.asked.len());
        let before: Vec<String> = self.asked.keys().rev().take(5).cloned().collect();
        let after = if self.dice.percent(15) { self.dice.pick(&before).cloned() } else { None };
        let kind = Kind::roll(&mut self.dice);
        let text = kind.file(&mut self.dice, after.as_deref(), self.sandbox.dir());
        let dropped = self.dice.percent(70);
        let asked = Asked { kind, after, dropped, accepted: dropped, cancelled: false };
        self.asked.insert(name.clone(), asked);
        if dropped && self.sandbox.inbox().is_dir() {
            self.sandbox.drop_file(&format!("{name}.yaml"), &text);
        } else {
            let file = self.sandbox.dir().join("staging").join(format!("{name}.yaml"));
            fs::write(&file, text).unwrap();
            if let Some(asked) = self.asked.get_mut(&name) {
                (asked.dropped, asked.accepted) = (false, false);
            }
            self.verb(&["submit", file.to_str().unwrap()], Some(name.clone()));
        }
    }

    fn ask_for_a_change(&mut self) {
        let open: Vec<String> =
            self.asked.keys().filter(|name| !self.done.contains(*name)).cloned().collect();
        let Some(name) = self.dice.pick(&open).cloned() else { return };
        match self.dice.below(8) {
            0 | 1 => {
                if let Some(asked) = self.asked.get_mut(&name) {
                    asked.cancelled = true;
                }
                let undo = ["0s", "1s"][self.dice.below(2) as usize];
                self.verb(&["cancel", &name, "--undo", undo], None);
            }
            2 => self.verb(&["undo"], None),
            3 => self.verb(&["top", &name], None),
            4 => self.verb(&["bottom", &name], None),
            5 => {
                let priority = ["70", "-70", "0"][self.dice.below(3) as usize];
                self.verb(&["priority", &name, priority], None);
            }
            6 => self.verb(&["pause", &name], None),
            _ => self.verb(&["resume", &name], None),
        }
    }

    /// Starts a verb; it is gathered when it is done, for the scheduler may be stopped.
    fn verb(&mut self, words: &[&str], submits: Option<String>) {
        if self.verbs.len() > 12 {
            return;
        }
        self.verbs_run += 1;
        let mut command: Command = self.sandbox.command(words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.verbs.push(Verb { child, submits });
    }

    /// Everything is well again, and all that waits may run.
    fn heal(&mut self) {
        if let Some((_, down)) = self.back_at {
            self.bring_back(down);
        }
        self.put_right.clock();
        self.sick.clear();
        self.write_control();
        // Removed by the last fault: a scheduler says so, and makes one only when it starts.
        let inbox = self.sandbox.inbox();
        if !inbox.is_dir() {
            fs::create_dir_all(&inbox).unwrap();
        }
        let began = now();
        let mut last: Vec<String> = Vec::new();
        while now() < began + HEALED_MS && self.wrong.is_empty() {
            std::thread::park_timeout(Duration::from_millis(200));
            self.tend();
            if !self.verbs.is_empty() {
                continue;
            }
            let list = self.sandbox.run(&["ls", "--json"]).json();
            let open = list["jobs"].as_array().unwrap();
            let line = |job: &Value| format!("{} is {}: {}", job["name"], job["state"], job["why"]);
            last = open.iter().map(line).collect();
            let waits = |job: &Value| {
                let asked = job["name"].as_str().and_then(|name| self.asked.get(name));
                job["state"] == "queued" && asked.is_some_and(|asked| asked.after.is_some())
            };
            let only_those_that_wait = open.iter().all(waits) && now() > began + 2_000;
            for job in open {
                let (id, name) = (job["id"].to_string(), job["name"].as_str().unwrap_or_default());
                if job["paused"] == true {
                    self.sandbox.run(&["resume", &id]);
                }
                // A name that was done before, or never was accepted, is waited for until it comes.
                if job["state"] == "queued" && only_those_that_wait {
                    self.asked.entry(name.to_owned()).and_modify(|asked| asked.cancelled = true);
                    self.sandbox.run(&["cancel", &id]);
                }
            }
            let Ok(left) = fs::read_dir(self.sandbox.inbox()) else { continue };
            let dropped = left
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with("job-"))
                .count();
            if open.is_empty() && dropped == 0 {
                return;
            }
        }
        if self.wrong.is_empty() {
            let said = self.said();
            self.wrong.push(format!(
                "not all is done {} s after all was healed:\n{}\n{said}",
                HEALED_MS / 1_000,
                last.join("\n")
            ));
        }
    }

    /// Audits everything; what is wrong, and the figures.
    fn end(self, seed: u64, seconds: u64) -> (Vec<String>, String) {
        let Self {
            sandbox, audit, asked, faults, mut wrong, hit_leases, mut hit_jobs, hit_processes, ..
        } = self;
        let place = Auditor::place(&sandbox);
        let report = audit.report();
        let stopped_early = !wrong.is_empty();
        let found = report.findings.0.iter().map(|(id, text)| format!("{id}: {text}"));
        wrong = wrong.into_iter().chain(found).collect::<BTreeSet<_>>().into_iter().collect();
        // What was cut short has jobs that have not ended.
        wrong.retain(|text| !stopped_early || !text.contains("has not ended"));
        for journal in report.journals.values() {
            let hit = |part: &support::auditor::journal::Part| {
                part.main.is_some_and(|main| hit_processes.contains(&main))
            };
            hit_jobs.extend(journal.job.filter(|_| journal.parts.iter().any(hit)));
        }
        let lost = accepted_once(&asked, &report, &mut wrong);
        for (id, job) in &report.lives.jobs {
            let hit = hit_jobs.contains(id);
            if let Some(asked) = asked.get(&job.name) {
                own_doing(*id, asked, hit, &report, &mut wrong);
            }
            lost_for_a_reason(*id, &hit_leases, &report, &mut wrong);
        }
        if sandbox.scheduler_said().contains("a bug in the scheduler") {
            wrong.push("the scheduler found a bug in itself".to_owned());
        }
        sandbox.run(&["stop"]);
        let gone = || (place.schedulers().is_empty() && place.supervisors().is_empty()).then_some(());
        if std::panic::catch_unwind(|| eventually("an end of all processes", gone)).is_err() {
            wrong.push(format!("left over: {:?} {:?}", place.schedulers(), place.supervisors()));
        }
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for job in report.jobs.values() {
            *outcomes.entry(job.outcome.as_ref().map_or("not done", |(word, _)| word)).or_default() += 1;
        }
        let all: u64 = faults.values().sum();
        let mut text = format!("soak: seed {seed}, {seconds} s\n");
        let _ = writeln!(text, "  jobs: {} accepted, {outcomes:?}, {lost} lost", report.jobs.len());
        let _ = writeln!(text, "  faults: {all}, {faults:?}");
        let _ = writeln!(text, "  restarts: {}, verbs: {}", self.restarts, self.verbs_run);
        let _ = writeln!(
            text,
            "  leases: {}, journals read: {}, events: {}, looks: {}, looks into the store: {}, processes seen: {}",
            report.leases, report.sums.journals, report.events, report.looks, self.looks, report.processes
        );
        let _ = writeln!(
            text,
            "  device time: {} ms watched, {} ms held, {} ms unaccounted; {} GPU-ms, {} of them waived",
            report.sums.watched_ms,
            report.sums.held_ms,
            report.sums.unaccounted_ms,
            report.sums.gpu_ms,
            report.sums.waived_gpu_ms
        );
        let _ = writeln!(text, "  violations: {}", wrong.len());
        (wrong, text)
    }
}

/// Each drop, and each submission that was told so, became one job. How many did not.
fn accepted_once(asked: &BTreeMap<String, Asked>, report: &Report, wrong: &mut Vec<String>) -> usize {
    let mut lost = 0;
    for (name, asked) in asked {
        let jobs =
            report.lives.jobs.values().filter(|job| job.name == *name && job.retry_of.is_none()).count();
        if jobs > 1 || (asked.accepted && jobs == 0) {
            lost += usize::from(jobs == 0);
            wrong.push(format!("I1: {name} ({asked:?}) became {jobs} jobs"));
        }
    }
    lost
}

/// A job comes to what it does, or to what was done to it.
fn own_doing(id: u64, asked: &Asked, hit: bool, report: &Report, wrong: &mut Vec<String>) {
    let Some((outcome, whole)) = report.jobs.get(&id).and_then(|job| job.outcome.clone()) else { return };
    let natural =
        asked.kind.outcomes().iter().any(|(word, part)| outcome == *word && whole.to_string().contains(part));
    let after = asked.after.is_some() && outcome == "never_started";
    let cancelled = asked.cancelled && outcome == "cancelled";
    // A lost one is looked at by itself.
    if !(natural || after || cancelled || hit || outcome == "lost") {
        wrong.push(format!("I3: job {id} ({asked:?}) came to {whole}"));
    }
}

/// An attempt is lost only where its supervisor was killed, its device was gone, or it never began.
fn lost_for_a_reason(id: u64, hit: &BTreeSet<u64>, report: &Report, wrong: &mut Vec<String>) {
    let Some(job) = report.lives.jobs.get(&id) else { return };
    for (attempt, life) in &job.attempts {
        let lost = life.outcome.as_ref().is_some_and(|outcome| word(outcome) == "lost");
        let (true, true, Some(lease)) = (lost, life.started.is_some(), life.lease) else { continue };
        if !hit.contains(&lease) && !was_gone(lease, report) {
            wrong.push(format!("I3: attempt {} of job {id} (lease {lease}) was lost: {life:?}", attempt.1));
        }
    }
}

/// Whether a device of a lease may have been gone while it was held.
fn was_gone(lease: u64, report: &Report) -> bool {
    let Some(lease) = report.lives.leases.get(&lease) else { return false };
    let from = lease.granted.boottime_ms;
    let until = lease.ended.as_ref().map_or(u64::MAX, |(_, _, logged)| logged.boottime_ms);
    let indices: Vec<&String> =
        lease.held.devices.iter().filter_map(|held| report.indices.get(&held.uuid)).collect();
    report.truths.iter().any(|version| {
        let then = version.from_ms <= until + 1_000 && version.until_ms + 1_000 >= from;
        let gone = |(device, sick): &(String, Sick)| {
            indices.contains(&device) && matches!(sick, Sick::Fault(kind) if kind == "gone")
        };
        then && version.sick.iter().any(gone)
    })
}
