//! Power cuts at random moments, on a real file system: what was acknowledged is there afterwards, once.
//!
//! A round starts the scheduler on a file system of its own, drops files, submits and cancels, and takes the power away at
//! a random instant, often while the scheduler still recovers from the cut before. `OVERNIGHT_POWER_CUTS` is the number of
//! rounds of each test, `OVERNIGHT_POWER_SEED` replays one.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/loop_disk.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod loop_disk;
#[path = "support/small_disk.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod small_disk;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use loop_disk::{Cut, LoopDisk};
use overnight::model::{Event, JobId, Origin, Outcome};
use overnight::store::{Identity, Store, StoreOptions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::pty::patience;
use support::sandbox::{Sandbox, eventually, within};

/// Rounds of each test in a plain `cargo test`.
const ROUNDS: u64 = 4;
/// The power goes at most this long after the scheduler has begun to answer, or to recover.
const LONGEST_MS: u64 = 500;

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    std::env::vars().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok())
}

/// Numbers that a seed makes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Whether it comes to be.
fn eventually_ok(mut is_so: impl FnMut() -> bool) -> bool {
    within(patience(), || is_so().then_some(())).is_some()
}

/// How somebody hands in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Written under another name, then renamed.
    Renamed,
    /// Written in place.
    Written,
    /// A folder.
    Folder,
    /// `overnight submit`.
    Submitted,
    /// `overnight submit --paused`, then cancelled.
    Cancelled,
}

const WAYS: [Way; 5] = [Way::Renamed, Way::Written, Way::Folder, Way::Submitted, Way::Cancelled];

/// What became of what was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handed {
    way: Way,
    /// The scheduler has said that it has it.
    acknowledged: bool,
    /// It has also said that it is cancelled.
    cancelled: bool,
}

/// Whether the scheduler takes it out of the inbox before the power is gone.
fn is_taken(place: &Path, off: &AtomicBool) -> bool {
    loop {
        match fs::symlink_metadata(place) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Err(_) => return false,
            Ok(_) if off.load(Ordering::SeqCst) => return false,
            Ok(_) => std::thread::park_timeout(Duration::from_millis(2)),
        }
    }
}

struct Rounds {
    sandbox: Sandbox,
    root: PathBuf,
    signed: PathBuf,
    /// By name.
    handed: BTreeMap<String, Handed>,
    dice: Dice,
}

impl Rounds {
    fn new(root: &Path, state: Option<&Path>, seed: u64) -> Self {
        let sandbox = Sandbox::on(root, "simulated:2");
        if let Some(state) = state {
            std::os::unix::fs::symlink(state, root.join(".state")).unwrap();
        }
        let signed = sandbox.dir().join("signed");
        // Small seeds are not that different at first.
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self { sandbox, root: root.to_owned(), signed, handed: BTreeMap::new(), dice }
    }

    fn job(&self, long: bool) -> String {
        let sign = format!("echo \"$OVERNIGHT_JOB $OVERNIGHT_ATTEMPT\" >> '{}'", self.signed.display());
        let work = if long { "sleep 0.3; " } else { "" };
        format!(
            "work: {{run: [sh, -c, {:?}]}}\ndata: []\nrequest: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m, \
             retry: {{times: 20, when: [lost]}}}}\noutput: []\n",
            format!("{work}{sign}")
        )
    }

    /// Hands in one job after the other until the power is gone. Whatever fails then is no acknowledgement.
    fn hand_in(&mut self, round: u64, off: &AtomicBool) {
        let mut n = 0;
        while !off.load(Ordering::SeqCst) {
            let way = WAYS[self.dice.below(WAYS.len() as u64) as usize];
            if matches!(way, Way::Submitted | Way::Cancelled) && !self.sandbox.answers() {
                std::thread::park_timeout(Duration::from_millis(2));
                continue;
            }
            n += 1;
            let name = format!("r{round}-n{n}");
            let long = self.dice.below(4) == 0;
            let text = self.job(long);
            let mut handed = Handed { way, acknowledged: false, cancelled: false };
            // Noted before: what is handed in and never acknowledged may be there or not.
            self.handed.insert(name.clone(), handed);
            match way {
                Way::Renamed | Way::Written | Way::Folder => {
                    handed.acknowledged =
                        self.drop(way, &name, &text).is_ok_and(|place| is_taken(&place, off));
                }
                Way::Submitted => handed.acknowledged = self.submit(&name, &text, &[]),
                Way::Cancelled => {
                    handed.acknowledged = self.submit(&name, &text, &["--paused"]);
                    handed.cancelled = handed.acknowledged && self.sandbox.run(&["cancel", &name]).code == 0;
                }
            }
            self.handed.insert(name, handed);
        }
    }

    fn submit(&self, name: &str, text: &str, more: &[&str]) -> bool {
        let file = self.sandbox.dir().join("staging").join(format!("{name}.yaml"));
        fs::write(&file, text).unwrap();
        let run = self.sandbox.run(&[&["submit", file.to_str().unwrap()], more].concat());
        // Without a scheduler the file would be left in the inbox, which is another way.
        run.code == 0 && !run.stdout.contains("no scheduler runs")
    }

    fn drop(&self, way: Way, name: &str, text: &str) -> std::io::Result<PathBuf> {
        let inbox = self.root.join("inbox");
        let place = inbox.join(if way == Way::Folder { name.to_owned() } else { format!("{name}.yaml") });
        if way == Way::Written {
            fs::File::create(&place)?.write_all(text.as_bytes())?;
            return Ok(place);
        }
        let hidden = inbox.join(format!(".{name}"));
        if way == Way::Folder {
            fs::create_dir(&hidden)?;
            fs::write(hidden.join("job.yaml"), text.replace("work: {", "work: {in: ., "))?;
            fs::write(hidden.join("code.txt"), name)?;
        } else {
            fs::write(&hidden, text)?;
        }
        fs::rename(&hidden, &place)?;
        Ok(place)
    }

    /// One round; the disks lose their power together.
    fn round(&mut self, round: u64, disks: &[&LoopDisk]) {
        let cut = if self.dice.below(3) == 0 { Cut::KeepsJournal } else { Cut::KeepsNothing };
        let after = Duration::from_millis(self.dice.below(LONGEST_MS));
        let recovering = self.dice.below(4) == 0;
        let off = AtomicBool::new(false);
        self.sandbox.spawn_scheduler();
        let socket = self.sandbox.root().join(".state/overnight.sock");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !recovering && UnixStream::connect(&socket).is_err() {
                    std::thread::park_timeout(Duration::from_millis(2));
                }
                std::thread::park_timeout(after);
                for disk in disks {
                    disk.cut(cut);
                }
                off.store(true, Ordering::SeqCst);
            });
            self.hand_in(round, &off);
        });
        self.sandbox.kill_scheduler();
        for disk in disks {
            disk.restart();
        }
    }

    /// What was acknowledged is there, once, and in one place.
    fn check_presence(&self) {
        let jobs = self.sandbox.jobs();
        let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for job in &jobs {
            by_name.entry(job["name"].as_str().unwrap()).or_default().push(job);
        }
        for (name, handed) in &self.handed {
            let found = by_name.remove(name.as_str()).unwrap_or_default();
            assert!(found.len() <= 1, "{name} is there {} times: {handed:?}\n{found:#?}", found.len());
            if handed.acknowledged {
                assert_eq!(found.len(), 1, "{name} was acknowledged and is gone: {handed:?}");
            }
            if handed.cancelled {
                let word = found[0]["outcome"]["kind"].as_str().unwrap_or("none");
                assert_eq!(word, "cancelled", "{name}: the cancel was acknowledged\n{:#}", found[0]);
            }
        }
        assert!(by_name.is_empty(), "nobody handed these in: {by_name:?}");
    }

    /// Nothing that was taken is in the inbox too, or refused.
    fn check_inbox(&self) {
        let known: BTreeSet<String> =
            self.sandbox.jobs().iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect();
        let mut last = Vec::new();
        let clean = eventually_ok(|| {
            let names =
                fs::read_dir(self.root.join("inbox")).unwrap().map(|entry| entry.unwrap().file_name());
            last = names.filter_map(|name| name.into_string().ok()).collect();
            let mut stems =
                last.iter().filter(|name| !name.starts_with('.')).filter_map(|name| name.split('.').next());
            stems.all(|stem| !known.contains(stem))
        });
        assert!(clean, "what was accepted is in the inbox too: {last:?}\n{}", self.said_of(&last, &known));
    }

    fn said_of(&self, names: &[String], known: &BTreeSet<String>) -> String {
        let mut said = String::new();
        for name in names.iter().filter(|name| known.contains(name.split('.').next().unwrap())) {
            let place = self.root.join("inbox").join(name);
            let text = fs::read_to_string(&place).unwrap_or_else(|error| error.to_string());
            let _ = writeln!(said, "=== {name} {:?}\n{text}", place.metadata());
        }
        said
    }

    /// All is done in the end, each once.
    fn finish(&mut self) {
        self.sandbox.serve();
        self.check_presence();
        self.check_inbox();
        // What nobody got to cancel waits for ever.
        let settled =
            |job: &Value| job["state"] == "done" || job["paused"] == true || !job["retry_at"].is_null();
        let mut last = Vec::new();
        let ended = eventually_ok(|| {
            last = self.sandbox.jobs();
            last.retain(|job| !settled(job));
            last.is_empty()
        });
        assert!(ended, "these have no end: {last:#?}");
        for job in self.sandbox.jobs().iter().filter(|job| job["state"] != "done") {
            self.sandbox.run(&["cancel", &job["id"].to_string()]);
        }
        eventually("an end of all jobs", || {
            self.sandbox.jobs().iter().all(|job| job["state"] == "done").then_some(())
        });
        for job in self.sandbox.jobs() {
            let folder =
                self.root.join("jobs").join(format!("{}-{}", job["id"], job["name"].as_str().unwrap()));
            for file in ["job.yaml", "answer.txt", "receipt.json", "receipt.md"] {
                let file = folder.join(file);
                let written = eventually_ok(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
                assert!(written, "{} is not there: {job:#}", file.display());
            }
        }
        self.sandbox.run(&["meter", "--check"]).ok();
        self.sandbox.run(&["stop"]).ok();
        self.sandbox.wait_for_scheduler();
        self.check_log();
    }

    /// From the event log alone: one submission for each name, and one end for each job.
    fn check_log(&self) {
        let state = self.root.join(".state/state.redb");
        let options = StoreOptions::new(self.root.join(".first-start"));
        let (store, _) = Store::open(&state, &Identity::read(), &options).unwrap();
        let events = store.reader().events_after(0, usize::MAX).unwrap();
        let mut dropped: BTreeSet<String> = BTreeSet::new();
        let mut ended: BTreeMap<JobId, Outcome> = BTreeMap::new();
        let mut jobs: BTreeMap<JobId, String> = BTreeMap::new();
        for record in events {
            match record.event {
                Event::SubmissionAccepted { origin: Origin::Inbox { name, .. }, .. } => {
                    assert!(dropped.insert(name.clone()), "{name} was accepted twice");
                }
                Event::JobAccepted { job, spec, .. } => drop(jobs.insert(job, spec.name.clone())),
                Event::JobDone { job, outcome } => {
                    let before = ended.insert(job, outcome.clone());
                    assert!(before.is_none(), "job {job} ended as {before:?}, and then as {outcome:?}");
                }
                _ => {}
            }
        }
        assert!(ended.keys().eq(jobs.keys()), "not every job has an end: {jobs:?} {ended:?}");
        let signed = fs::read_to_string(&self.signed).unwrap_or_default();
        let mut runs: Vec<&str> = signed.lines().collect();
        runs.sort_unstable();
        for (job, outcome) in &ended {
            let ran = runs.iter().filter(|line| line.split(' ').next() == Some(&job.to_string())).count();
            if *outcome == Outcome::Succeeded {
                assert!(ran >= 1, "{job} succeeded and never ran");
            } else {
                assert!(matches!(outcome, Outcome::Cancelled { .. }), "job {job} ended as {outcome:?}");
            }
        }
        let mut once: Vec<&str> = runs.clone();
        once.dedup();
        assert_eq!(once, runs, "an attempt ran twice");
    }

    #[expect(clippy::print_stderr, reason = "how much was tried is part of the result")]
    fn report(&self, rounds: u64) {
        let acknowledged = self.handed.values().filter(|handed| handed.acknowledged).count();
        let cancelled = self.handed.values().filter(|handed| handed.cancelled).count();
        eprintln!(
            "{rounds} power cuts: {} jobs handed in, {acknowledged} acknowledged, {cancelled} of them cancelled",
            self.handed.len()
        );
        assert!(acknowledged as u64 >= rounds / 2, "too little was tried: {:?}", self.handed);
    }
}

fn cut_again_and_again(mut rounds: Rounds, disks: &[&LoopDisk]) {
    let count = setting("OVERNIGHT_POWER_CUTS").unwrap_or(ROUNDS);
    for round in 0..count {
        rounds.round(round, disks);
        if round % 4 == 3 {
            rounds.sandbox.serve();
            rounds.check_presence();
            rounds.sandbox.kill_scheduler();
        }
    }
    rounds.finish();
    rounds.report(count);
}

#[expect(clippy::print_stderr, reason = "shown where the test fails")]
fn seed(test: u64) -> u64 {
    let seed = setting("OVERNIGHT_POWER_SEED").unwrap_or(test);
    eprintln!("OVERNIGHT_POWER_SEED={seed}");
    seed
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_cut() {
    let Some(disk) = LoopDisk::new("what_was_acknowledged", 64, &[], "") else { return };
    cut_again_and_again(Rounds::new(disk.path(), None, seed(1)), &[&disk]);
}

#[test]
fn what_was_acknowledged_is_there_where_the_state_has_a_disk_of_its_own() {
    // The root's disk writes back as late as it can, the state's as it likes.
    let test = "what_was_acknowledged_two_disks";
    let Some(root) = LoopDisk::new(test, 64, &[], "commit=600") else { return };
    let Some(state) = LoopDisk::new(test, 64, &[], "") else { return };
    cut_again_and_again(Rounds::new(root.path(), Some(state.path()), seed(2)), &[&root, &state]);
}
