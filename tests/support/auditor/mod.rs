//! The external auditor: looks at a scheduler from outside, while it runs and when all is over, and says what must never
//! have been.
//!
//! A code path of its own. It takes processes, their environment and their end from `/proc`, locks from `/proc/locks`,
//! supervisors' journals from their bytes, the truth about devices from whoever made it up, and the event log and the
//! tables from a copy of the store's file. It uses no code of the program; the rules it checks are written down again
//! in it, under the names `docs/reliability.md` gives them.
//!
//! ```text
//! let audit = Auditor::watch(&sandbox);     // ten looks a second from now on
//! …                                          // whatever the test does to the scheduler
//! audit.finish();                            // waits for quiet, audits the store, fails the test with the evidence
//! ```

#![allow(dead_code, reason = "each suite uses a part of it")]

pub(crate) mod claims;
pub(crate) mod devices;
pub(crate) mod evidence;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod lives;
pub(crate) mod procfs;
pub(crate) mod watch;

use super::sandbox::Sandbox;
use devices::Truth;
use evidence::{Evidence, word};
use ledger::Sums;
use lives::Lives;
use procfs::Pidt;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use watch::{Seen, Watch};

/// How long all may take to become quiet at the end.
const QUIET_S: u64 = 60;
/// Between two looks at whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(150);

/// What must never have been, with the evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings(pub(crate) Vec<(&'static str, String)>);

impl Findings {
    /// One more, unless it is known.
    pub(crate) fn add(&mut self, invariant: &'static str, evidence: String) {
        let finding = (invariant, evidence);
        if !self.0.contains(&finding) && self.0.len() < 1_000 {
            self.0.push(finding);
        }
    }

    /// Whether an invariant was found broken.
    pub(crate) fn has(&self, invariant: &str) -> bool {
        self.0.iter().any(|(found, _)| *found == invariant)
    }
}

/// Where to look.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
    /// The truth about the devices, where it is known.
    pub(crate) truth: Option<Truth>,
    /// The program and its environment, to ask what it tells people.
    pub(crate) program: Option<(PathBuf, Vec<(OsString, OsString)>)>,
}

impl Place {
    /// Of a scheduler with this root and its state below it.
    pub(crate) fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), state: root.join(".state"), truth: None, program: None }
    }

    fn run(&self) -> PathBuf {
        self.state.join("run")
    }

    fn is_supervisor(&self, arguments: &[String]) -> bool {
        matches!(arguments, [_, verb, run, ..] if verb == "supervise" && Path::new(run) == self.run())
    }

    fn is_scheduler(&self, arguments: &[String]) -> bool {
        let root = arguments.windows(2).any(|pair| pair[0] == "--root" && Path::new(&pair[1]) == self.root);
        // Not whatever it was started under.
        let itself = match (&self.program, arguments.first()) {
            (Some((program, _)), Some(first)) => program == Path::new(first),
            (None, Some(first)) => !first.ends_with("strace"),
            (_, None) => false,
        };
        root && itself && arguments.iter().any(|word| word == "serve")
    }

    /// Whether a process is below a supervisor and has not become anything else yet: it waits to be the work.
    fn waits_for_work(&self, stat: &procfs::Stat) -> bool {
        self.is_supervisor(&procfs::arguments(stat.id.pid))
            && self.is_supervisor(&procfs::arguments(stat.parent))
    }

    /// What the program answers, as JSON; `None` where no scheduler answers.
    fn ask(&self, arguments: &[&str]) -> Option<Value> {
        let (program, environment) = self.program.as_ref()?;
        let output = Command::new(program)
            .arg("--root")
            .arg(&self.root)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then(|| serde_json::from_slice(&output.stdout).ok()).flatten()
    }

    fn processes(of: impl Fn(&procfs::Stat) -> bool) -> Vec<Pidt> {
        let stats = procfs::pids().into_iter().filter_map(procfs::stat);
        stats.filter(procfs::Stat::lives).filter(|stat| of(stat)).map(|stat| stat.id).collect()
    }

    /// The schedulers that run now.
    pub(crate) fn schedulers(&self) -> Vec<Pidt> {
        Self::processes(|stat| self.is_scheduler(&procfs::arguments(stat.id.pid)))
    }

    /// The supervisors that run now, with the one that waits for a lease.
    pub(crate) fn supervisors(&self) -> Vec<Pidt> {
        Self::processes(|stat| {
            self.is_supervisor(&procfs::arguments(stat.id.pid)) && !self.waits_for_work(stat)
        })
    }

    /// Processes that wait to be the work of a lease.
    pub(crate) fn waiting(&self) -> Vec<Pidt> {
        Self::processes(|stat| self.waits_for_work(stat))
    }
}

/// What an audit came to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) findings: Findings,
    pub(crate) sums: Sums,
    /// Looks at the running system.
    pub(crate) looks: u64,
    pub(crate) events: usize,
    pub(crate) leases: usize,
    pub(crate) jobs: BTreeMap<u64, JobReport>,
    /// All that the log comes to.
    pub(crate) lives: Lives,
    /// What the devices were made to say, and their indices by UUID.
    pub(crate) truths: Vec<devices::TruthSeen>,
    pub(crate) indices: std::collections::HashMap<String, String>,
    /// By token.
    pub(crate) journals: BTreeMap<String, journal::Journal>,
    /// Processes of work that were seen.
    pub(crate) processes: usize,
    /// The meter's tables were compared.
    pub(crate) meter_asked: bool,
}

/// What a job came to.
#[derive(Debug, Clone)]
pub(crate) struct JobReport {
    pub(crate) name: String,
    pub(crate) submission: u64,
    /// The outcome's word, and the outcome as it is stored.
    pub(crate) outcome: Option<(String, Value)>,
    /// Outcomes of its attempts in turn, and whether each was started.
    pub(crate) attempts: Vec<(String, bool)>,
    /// What came back: path and hash.
    pub(crate) outputs: Vec<(String, String)>,
}

/// The external auditor of one state directory.
pub(crate) struct Auditor {
    place: Place,
    watch: Watch,
    /// Events that were durable at an earlier look into the store.
    durable: Vec<Vec<u8>>,
}

impl Auditor {
    /// Begins to watch a sandbox's scheduler, or the one that will be started there.
    pub(crate) fn watch(sandbox: &Sandbox) -> Self {
        Self::over(Self::place(sandbox))
    }

    /// As [`Auditor::watch`]; simulated devices are made sick by this control file.
    pub(crate) fn watch_with_control(sandbox: &Sandbox, control: &Path) -> Self {
        Self::over(Place { truth: Some(Truth::control(control)), ..Self::place(sandbox) })
    }

    /// As [`Auditor::watch`]; the fake driver's answers are in this file.
    pub(crate) fn watch_with_driver(sandbox: &Sandbox, state: &Path) -> Self {
        Self::over(Place { truth: Some(Truth::driver(state)), ..Self::place(sandbox) })
    }

    /// Watches any place.
    pub(crate) fn over(place: Place) -> Self {
        Self { watch: Watch::start(place.clone()), place, durable: Vec::new() }
    }

    /// Where a sandbox keeps everything.
    pub(crate) fn place(sandbox: &Sandbox) -> Place {
        let command = sandbox.command(&[]);
        let environment = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let program = Some((PathBuf::from(command.get_program()), environment));
        Place { program, ..Place::below(&sandbox.root()) }
    }

    /// Where it looks.
    pub(crate) const fn at(&self) -> &Place {
        &self.place
    }

    /// Looks into the store now, whatever is under way: what was durable before still is, and fits. A scheduler that runs
    /// is stopped for the moment of the copy.
    pub(crate) fn snapshot(&mut self) {
        let mut findings = Findings::default();
        let evidence = self.evidence(&mut findings);
        let mut seen = self.watch.seen();
        check(&evidence, &seen, &mut findings);
        for (invariant, text) in findings.0 {
            seen.findings.add(invariant, text);
        }
    }

    /// All that was seen so far; held while it is looked at.
    pub(crate) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.watch.seen()
    }

    /// What was found so far.
    pub(crate) fn findings(&self) -> Findings {
        self.watch.seen().findings.clone()
    }

    /// The work that lived at the last look.
    pub(crate) fn work(&self) -> Vec<(Pidt, watch::Work)> {
        let seen = self.watch.seen();
        let lately = seen.looked_ms;
        seen.work
            .iter()
            .filter(|(_, work)| work.alive_ms >= lately)
            .map(|(id, work)| (*id, work.clone()))
            .collect()
    }

    /// Waits for quiet, audits everything and fails with the evidence.
    #[track_caller]
    pub(crate) fn finish(self) -> Report {
        let report = self.report();
        let mut text = String::new();
        for (invariant, evidence) in &report.findings.0 {
            let _ = write!(text, "\n  {invariant}: {evidence}");
        }
        assert!(text.is_empty(), "the audit found:{text}");
        report
    }

    /// Waits for quiet and audits everything.
    pub(crate) fn report(mut self) -> Report {
        self.learn_indices();
        let mut findings = Findings::default();
        let evidence = self.wait_for_quiet(&mut findings);
        let meter_asked = claims::meter(&self.place, &evidence, &mut findings);
        self.leftovers(&mut findings);
        self.watch.stop();
        let seen = self.watch.seen();
        let (lives, sums) = check(&evidence, &seen, &mut findings);
        unfinished(&lives, &mut findings);
        claims::receipts(&self.place, &evidence, &lives, &mut findings);
        inbox(&self.place, &evidence, &mut findings);
        for (invariant, text) in &seen.findings.0 {
            findings.add(invariant, text.clone());
        }
        Report {
            findings,
            sums,
            looks: seen.looks,
            events: evidence.events.len(),
            leases: evidence.leases.len(),
            jobs: lives.jobs.iter().map(|(id, job)| (*id, JobReport::of(job))).collect(),
            lives,
            truths: seen.truths.clone(),
            indices: seen.indices.clone(),
            journals: seen.journals.clone(),
            processes: seen.work.len(),
            meter_asked,
        }
    }

    /// The store as it is now.
    pub(crate) fn evidence(&mut self, findings: &mut Findings) -> Evidence {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy.redb");
        let copied_ms = procfs::boottime_ms();
        if let Err(error) = self.copy_store(&copy) {
            findings.add("I1", format!("the store cannot be copied: {error}"));
            return Evidence::default();
        }
        let evidence = Evidence { copied_ms, ..Evidence::read(&copy, findings) };
        let kept = evidence.raw.iter().zip(&self.durable).take_while(|(now, then)| now == then).count();
        if kept < self.durable.len() {
            let text = format!("event {} was durable and is not there any more, or is another", kept + 1);
            self.watch.seen().findings.add("I22", text);
        }
        self.durable.clone_from(&evidence.raw);
        evidence
    }

    /// Copies the store while nobody writes to it: what is copied is what a kill at that moment would leave.
    fn copy_store(&self, copy: &Path) -> std::io::Result<u64> {
        let until = procfs::boottime_ms() + QUIET_S * 1000;
        loop {
            let schedulers = self.place.schedulers();
            for scheduler in &schedulers {
                procfs::signal(*scheduler, Signal::STOP);
            }
            // One that is just starting a process cannot stop before that has begun, and we may have stopped that too.
            let patience = procfs::boottime_ms() + 200;
            let stopped = || schedulers.iter().all(|id| !procfs::lives(*id) || procfs::is_stopped(id.pid));
            while !stopped() && procfs::boottime_ms() < patience {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            let copied = stopped().then(|| fs::copy(self.place.state.join("state.redb"), copy));
            for scheduler in &schedulers {
                procfs::signal(*scheduler, Signal::CONT);
            }
            match copied {
                Some(copied) => return copied,
                None if procfs::boottime_ms() >= until => {
                    return Err(std::io::Error::other("the scheduler cannot be stopped"));
                }
                None => {}
            }
        }
    }

    /// The store once every job is done and every lease returned, or after a while.
    fn wait_for_quiet(&mut self, findings: &mut Findings) -> Evidence {
        let until = procfs::boottime_ms() + QUIET_S * 1000;
        loop {
            let mut found = Findings::default();
            let evidence = self.evidence(&mut found);
            let mut quiet = Findings::default();
            let lives = Lives::walk(&evidence, &mut quiet);
            let unfinished = unfinished(&lives, &mut quiet);
            let receipts = lives.jobs.iter().all(|(id, job)| {
                let folder = self.place.root.join("jobs").join(format!("{id}-{}", job.name));
                folder.join("receipt.json").exists()
            });
            let late = procfs::boottime_ms() >= until;
            if late || self.place.schedulers().is_empty() || (!unfinished && receipts && found.0.is_empty()) {
                findings.0.extend(found.0);
                return evidence;
            }
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// No process of any work is left, nor a supervisor with a lease.
    fn leftovers(&self, findings: &mut Findings) {
        let until = procfs::boottime_ms() + QUIET_S * 1000;
        loop {
            // One may wait for the next lease while its scheduler runs.
            let idle = self.place.schedulers().len();
            let supervisors = self.place.supervisors();
            let work: Vec<(Pidt, String)> = self
                .watch
                .seen()
                .work
                .iter()
                .filter(|(id, _)| procfs::lives(**id))
                .map(|(id, work)| (*id, work.command.clone()))
                .collect();
            if supervisors.len() <= idle && work.is_empty() {
                return;
            }
            if procfs::boottime_ms() >= until {
                if supervisors.len() > idle {
                    findings.add("I7", format!("supervisors are left over: {supervisors:?}"));
                }
                for (id, command) in work {
                    findings.add("I7", format!("process {} is left over: {command}", id.pid));
                }
                return;
            }
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Which device has which index: the control file knows devices by index.
    fn learn_indices(&self) {
        if self.place.truth.is_none() {
            return;
        }
        let Some(list) = self.place.ask(&["gpus", "--json"]) else { return };
        let mut seen = self.watch.seen();
        for gpu in list["gpus"].as_array().into_iter().flatten() {
            if let Some(uuid) = gpu["uuid"].as_str() {
                seen.indices.insert(uuid.to_owned(), gpu["index"].to_string());
            }
        }
    }
}

/// All that can be said of a store at any moment, and of what was seen until then.
pub(crate) fn check(evidence: &Evidence, seen: &Seen, findings: &mut Findings) -> (Lives, Sums) {
    let lives = Lives::walk(evidence, findings);
    let sums = ledger::audit(evidence, &lives, seen, findings);
    (lives, sums)
}

/// I1: what was accepted is not in the inbox any more.
pub(crate) fn inbox(place: &Place, evidence: &Evidence, findings: &mut Findings) {
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(place.root.join("inbox")).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let ctime_ns = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        let same = |drop: &evidence::Ident| {
            (drop.dev, drop.ino, drop.ctime_ns) == (meta.dev(), meta.ino(), ctime_ns)
        };
        if evidence.drops.values().any(same) {
            let name = entry.file_name();
            findings.add("I1", format!("{} was accepted and still lies in the inbox", name.display()));
        }
    }
}

/// I3 and I7: every accepted job is done, every lease has ended and its devices are back. Whether any is not.
pub(crate) fn unfinished(lives: &Lives, findings: &mut Findings) -> bool {
    let mut any = false;
    for (id, job) in lives.jobs.iter().filter(|(_, job)| job.done.is_none()) {
        let steps: Vec<_> = job.attempts.iter().map(|(attempt, life)| (attempt.1, life.step)).collect();
        findings.add("I3", format!("job {id} ({}) has not ended: {steps:?}", job.name));
        any = true;
    }
    for (id, lease) in &lives.leases {
        if lease.ended.is_none() {
            findings.add("I7", format!("lease {id} of job {} was never closed", lease.job));
        } else if lease.returned.is_none() {
            findings.add("I7", format!("the devices of lease {id} of job {} never came back", lease.job));
        }
        any |= lease.returned.is_none();
    }
    any
}

impl JobReport {
    fn of(job: &lives::JobLife) -> Self {
        let outcome = job.done.as_ref().map(|(_, outcome)| (word(outcome).to_owned(), outcome.clone()));
        let attempts = job.attempts.values().map(|attempt| {
            let outcome = attempt.outcome.as_ref().map_or("?", word);
            (outcome.to_owned(), attempt.started.is_some())
        });
        let path = |path: &Value| path.as_str().map_or_else(|| path.to_string(), str::to_owned);
        Self {
            name: job.name.clone(),
            submission: job.submission,
            outcome,
            attempts: attempts.collect(),
            outputs: job.outputs.iter().map(|output| (path(&output.path), output.blake3.clone())).collect(),
        }
    }
}
