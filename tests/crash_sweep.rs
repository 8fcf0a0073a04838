//! The crash sweep: real processes, killed at every durable write in turn.
//!
//! A script of five jobs is run once unbroken, with `strace` noting each call of each of the scheduler's threads that
//! changes what is on disk. Then it is run once for each of them: `strace` kills the scheduler as it enters that call, a
//! new one is started and killed at its first such call, the next at its second, and so on until one gets through. Every
//! end must be that of the unbroken run. The same for supervisors, by the journal of each lease.
//!
//! `CRASH_SWEEP=full` takes every point; without it so many, spread evenly, as a test suite has time for; a number takes
//! that many. `CRASH_SWEEP_AT='rename 2 of clerk'` takes those points whose name holds this. Needs `strace` and the right to trace.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::auditor::{Auditor, JobReport, Report};
use support::pty::patience;
use support::sandbox::{Sandbox, eventually, within};

/// Calls that change what is on disk, start a process, or tell one something.
const CALLS: &str = "fdatasync,fsync,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,\
    pwrite64,ftruncate,fallocate,clone,clone3,vfork,write,sendto";
/// Threads that tell supervisors something, or clients; what others write by these calls is no fact.
const TELLERS: [&str; 2] = ["main", "engine"];
/// Of them, those that a start makes and that a start under `strace` is killed at.
const RECOVERY_CALLS: [&str; 4] = ["fdatasync", "pwrite64", "rename", "fsync"];
/// Points of each sweep without `CRASH_SWEEP`.
const FEW: usize = 5;

/// Runs at the same time.
const SIDE_BY_SIDE: usize = 4;

const JOBS: [&str; 5] = ["makes", "fails", "follows", "retries", "cancelled"];

/// Said past the capture of output.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Whether processes can be traced here.
fn can_trace(test: &str) -> bool {
    let traced = Command::new("strace")
        .args([
            "-f",
            "-b",
            "execve",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=fsync:signal=SIGKILL:when=9",
            "true",
        ])
        .status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        say(&format!("SKIPPED {test}: strace is not installed, or may not trace"));
    }
    can
}

/// How many points to take.
fn budget() -> Option<usize> {
    match std::env::var_os("CRASH_SWEEP") {
        None => Some(FEW),
        Some(all) if all == "full" => None,
        Some(number) => number.to_str().and_then(|text| text.parse().ok()).or(Some(FEW)),
    }
}

/// Those that were asked for by name, or all.
fn chosen_by_name<P: std::fmt::Display>(all: Vec<P>) -> Vec<P> {
    let Some(name) = std::env::var_os("CRASH_SWEEP_AT") else { return all };
    let name = name.to_string_lossy().into_owned();
    all.into_iter().filter(|point| point.to_string().contains(&name)).collect()
}

/// So many of them, spread evenly, the first and the last among them.
fn some<T: Clone>(all: &[T], budget: Option<usize>) -> Vec<T> {
    match budget {
        Some(few) if few < all.len() && few > 1 => {
            (0..few).map(|n| all[n * (all.len() - 1) / (few - 1)].clone()).collect()
        }
        Some(few) => all.iter().take(few).cloned().collect(),
        None => all.to_vec(),
    }
}

/// Names the point at which a run has failed, however it did.
struct At<'a, P: std::fmt::Display>(&'a P);

impl<P: std::fmt::Display> Drop for At<'_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!("failed: CRASH_SWEEP_AT='{}'", self.0));
        }
    }
}

/// Runs a few points at a time: most of a run is waiting, for a retry above all.
fn side_by_side<P: Sync + std::fmt::Display, R: Send>(points: &[P], run: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = At(point);
                    let result = run(point);
                    drop(at);
                    let mut results = results.lock().unwrap();
                    results.push(result);
                    if results.len().is_multiple_of(50) {
                        say(&format!("crash sweep: {} of {} points", results.len(), points.len()));
                    }
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// The script: five jobs, and one cancel once its job runs.
struct Script {
    sandbox: Sandbox,
    audit: Option<Auditor>,
    cancelled: bool,
}

impl Script {
    fn new() -> Self {
        let sandbox = Sandbox::new("simulated:2");
        let audit = Some(Auditor::watch(&sandbox));
        Self { sandbox, audit, cancelled: false }
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.sandbox.gate(name)
    }

    fn drop_jobs(&self) {
        let job = |run: &str, data: &str, more: &str, output: &str| {
            let run = run.replace('\n', "\n    ");
            format!(
                "work:\n  run: |\n    {run}\ndata: {data}\n\
                 request: {{gpus: 1, cpus: 1, memory: 1GiB, for: 5m{more}}}\noutput: {output}\n"
            )
        };
        let once = self.mark("once").display().to_string();
        let runs = self.mark("runs").display().to_string();
        let files = [
            ("makes", job("seq 1 2000 > made.txt", "[]", "", "[made.txt]")),
            ("fails", job("echo half > half.txt\nexit 7", "[]", "", "[half.txt]")),
            (
                "follows",
                job(
                    "wc -l < made.txt > lines.txt",
                    "[{from: \"job:makes/made.txt\", as: made.txt}]",
                    "",
                    "[lines.txt]",
                ),
            ),
            (
                "retries",
                job(
                    &format!(
                        "[ -e '{once}' ] || {{ touch '{once}'; exit 75; }}\necho second > \"$OVERNIGHT_OUTPUT/try\""
                    ),
                    "[]",
                    ", retry: {times: 3, when: [75, lost]}",
                    "[]",
                ),
            ),
            ("cancelled", job(&format!("touch '{runs}'\nsleep 600"), "[]", "", "[]")),
        ];
        for (name, text) in files {
            self.sandbox.drop_file(&format!("{name}.yaml"), &text);
        }
    }

    /// Starts the scheduler so that it has its folders, and waits for its answer.
    fn serve(&mut self) {
        self.sandbox.serve();
    }

    /// One look: cancels what is to be cancelled; whether all five jobs have their receipts.
    fn look(&mut self) -> bool {
        if !self.cancelled && self.mark("runs").exists() {
            // Refused only by a scheduler that is just being killed, or because it is done.
            let run = self.sandbox.run(&["cancel", "cancelled"]);
            self.cancelled = run.code == 0 || run.stderr.contains("is done");
        }
        let folders = fs::read_dir(self.sandbox.root().join("jobs")).into_iter().flatten().flatten();
        folders.filter(|folder| folder.path().join("receipt.json").exists()).count() >= JOBS.len()
    }

    /// Waits until the script is over or the scheduler is gone; whether it is gone.
    fn wait(&mut self) -> bool {
        let over = within(patience(), || {
            if self.sandbox.scheduler_ended().is_some() {
                return Some(true);
            }
            self.look().then_some(false)
        });
        over.unwrap_or_else(|| {
            let listed = self.sandbox.run(&["ls", "--all"]);
            let said = self.sandbox.scheduler_said();
            panic!("there was never the end of the script:\n{}{}{said}", listed.stdout, listed.stderr)
        })
    }

    /// Runs what is left of the script under a scheduler that nobody disturbs, and audits it.
    fn end(mut self) -> End {
        if self.sandbox.scheduler_ended().is_some() || !self.serving() {
            self.serve();
        }
        assert!(!self.wait(), "a scheduler that nobody killed has ended:\n{}", self.sandbox.scheduler_said());
        End::of(&self.audit.take().unwrap().finish())
    }

    fn serving(&self) -> bool {
        !Auditor::place(&self.sandbox).schedulers().is_empty()
    }
}

/// What a script came to, by job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    jobs: BTreeMap<String, JobEnd>,
    submissions: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct JobEnd {
    outcome: String,
    outputs: Vec<(String, String)>,
    /// Attempts that came to something.
    attempts: Vec<String>,
    /// Attempts that the fault has ended: whether they had started.
    lost: Vec<bool>,
}

impl End {
    fn of(report: &Report) -> Self {
        let submissions: BTreeSet<u64> = report.jobs.values().map(|job| job.submission).collect();
        let jobs = report.jobs.values().map(|job| (job.name.clone(), JobEnd::of(job))).collect();
        Self { jobs, submissions: submissions.len() }
    }
}

impl JobEnd {
    fn of(job: &JobReport) -> Self {
        let (lost, rest): (Vec<_>, Vec<_>) =
            job.attempts.iter().cloned().partition(|(outcome, _)| outcome == "lost");
        let mut outputs = job.outputs.clone();
        outputs.sort();
        Self {
            outcome: job.outcome.as_ref().map(|(_, outcome)| outcome.to_string()).unwrap_or_default(),
            outputs,
            attempts: rest.into_iter().map(|(outcome, _)| outcome).collect(),
            lost: lost.into_iter().map(|(_, started)| started).collect(),
        }
    }
}

/// The unbroken run, and what it must be for the comparison to mean something.
fn unbroken() -> End {
    let mut script = Script::new();
    script.serve();
    script.drop_jobs();
    let end = script.end();
    let outcome = |name: &str| end.jobs[name].outcome.clone();
    let told = JOBS.map(outcome);
    assert!(told[0].contains("succeeded") && told[2].contains("succeeded"), "{end:#?}");
    assert!(told[1].contains('7') && told[4].contains("cancelled"), "{end:#?}");
    assert_eq!(end.jobs["retries"].attempts, ["failed", "succeeded"], "{end:#?}");
    assert!(end.jobs.values().all(|job| job.lost.is_empty()), "{end:#?}");
    assert_eq!((end.jobs["makes"].outputs.len(), end.jobs["follows"].outputs.len()), (1, 1), "{end:#?}");
    end
}

/// A call of one thread: which, and the how manieth of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    thread: String,
    call: String,
    nth: usize,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} of {}", self.call, self.nth, self.thread)
    }
}

/// `strace` on processes or threads that run; ended when they end, or with it.
struct Strace(Child);

impl Strace {
    fn attach(pids: &[i32], words: &[&str]) -> Self {
        let mut command = Command::new("strace");
        command.args(["-qq"]);
        for pid in pids {
            command.args(["-p", &pid.to_string()]);
        }
        let child =
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let strace = Self(child.unwrap());
        eventually("a tracer", || pids.iter().all(|pid| is_traced(*pid)).then_some(()));
        strace
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Traced, or gone.
fn is_traced(tid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    !status.contains("TracerPid:\t0")
}

/// The threads of the scheduler by name, once the last one has its own.
fn threads(pid: u32) -> Vec<(String, i32)> {
    let all = || all_threads(pid);
    eventually("all threads", || all().iter().any(|(name, _)| name == "clerk").then(all))
}

fn all_threads(pid: u32) -> Vec<(String, i32)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let tid: i32 = task.file_name().to_str()?.parse().ok()?;
            // The first one has the program's name.
            let name = if tid == pid as i32 { "main" } else { name.trim() };
            Some((name.to_owned(), tid))
        })
        .collect()
}

/// Every point of an unbroken run after the scheduler has started: by thread and call.
fn points() -> Vec<Point> {
    let mut script = Script::new();
    script.serve();
    let pid = script.sandbox.scheduler_pid();
    let notes = script.sandbox.dir().join("calls");
    let names: BTreeMap<i32, String> = threads(pid).into_iter().map(|(name, tid)| (tid, name)).collect();
    let strace = Strace::attach(
        &[pid as i32],
        &["-f", "-b", "execve", "-o", notes.to_str().unwrap(), "-e", &format!("trace={CALLS}")],
    );
    script.drop_jobs();
    assert!(!script.wait());
    drop(strace);
    let text = fs::read_to_string(&notes).unwrap();
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in text.lines() {
        // `1234  fdatasync(5)   = 0`, or the second half of a call that took its time.
        let Some((tid, rest)) = line.split_once(char::is_whitespace) else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        let name = tid.parse().ok().and_then(|tid: i32| names.get(&tid));
        let told = matches!(call, "write" | "sendto");
        if let (Some(name), true) = (name, CALLS.split(',').any(|known| known == call))
            && (!told || TELLERS.contains(&name.as_str()))
        {
            *counts.entry((name.clone(), call.to_owned())).or_default() += 1;
        }
    }
    script.end();
    let mut points = Vec::new();
    for ((thread, call), count) in counts {
        points.extend((1..=count).map(|nth| Point { thread: thread.clone(), call: call.clone(), nth }));
    }
    points
}

/// What a broken run may differ in: attempts that the fault has ended.
#[track_caller]
fn is_as_unbroken(end: &End, unbroken: &End, at: &str, may_be_lost: usize) {
    assert_eq!(end.submissions, unbroken.submissions, "killed at {at}: {end:#?}");
    assert_eq!(end.jobs.len(), unbroken.jobs.len(), "killed at {at}: {end:#?}");
    let mut started_and_lost = 0;
    for (name, was) in &unbroken.jobs {
        let is = &end.jobs[name];
        started_and_lost += is.lost.iter().filter(|started| **started).count();
        let lost_while_cancelled = name == "cancelled" && may_be_lost > 0 && is.outcome.contains("lost");
        let same = is.outcome == was.outcome && is.outputs == was.outputs || lost_while_cancelled;
        assert!(same, "killed at {at}: {name} is {is:#?}, it was {was:#?}");
        // A supervisor may be killed between its work's first step and the note of it: the try that left its mark is lost.
        let hit = may_be_lost > 0 && !is.lost.is_empty();
        let tries = is.attempts == was.attempts
            || hit && (was.attempts.ends_with(&is.attempts) || lost_while_cancelled);
        assert!(tries, "killed at {at}: the attempts of {name} are {is:#?}, they were {was:#?}");
    }
    assert!(
        started_and_lost <= may_be_lost,
        "killed at {at}: {started_and_lost} attempts were lost: {end:#?}"
    );
}

/// Kills the scheduler at a point, then each that follows at a point further on in its recovery.
fn kill_scheduler_at(point: &Point, unbroken: &End) -> (bool, usize) {
    let mut script = Script::new();
    script.serve();
    let pid = script.sandbox.scheduler_pid();
    let Some((_, tid)) = threads(pid).into_iter().find(|(name, _)| *name == point.thread) else {
        panic!("there is no thread {}", point.thread)
    };
    let inject = format!("inject={}:signal=SIGKILL:when={}", point.call, point.nth);
    let trace = format!("trace={}", point.call);
    let strace = Strace::attach(&[tid], &["-o", "/dev/null", "-e", &trace, "-e", &inject]);
    script.drop_jobs();
    let killed = script.wait();
    drop(strace);
    let mut again = 0;
    if killed {
        again = kill_in_recovery(&mut script, point.nth);
    }
    is_as_unbroken(&script.end(), unbroken, &format!("{point}, and {again} times after it"), 0);
    (killed, again)
}

/// Starts the scheduler again and again, killed one such call further on each time, until one gets through. How often
/// it was killed.
fn kill_in_recovery(script: &mut Script, which: usize) -> usize {
    let call = RECOVERY_CALLS[which % RECOVERY_CALLS.len()];
    for nth in 1.. {
        let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
        let trace = format!("trace={call}");
        let words = [
            "strace",
            "-f",
            "-b",
            "execve",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            trace.as_str(),
            "-e",
            inject.as_str(),
        ];
        script.sandbox.spawn_under(&words);
        let ended = eventually("a recovery that is over or was killed", || {
            if script.sandbox.scheduler_ended().is_some() {
                return Some(true);
            }
            (script.look() || nth > 200).then_some(false)
        });
        if !ended {
            stop_traced(script);
            return nth - 1;
        }
    }
    0
}

/// The scheduler under `strace` gets through: it is stopped, so that one that is not traced can end the script.
fn stop_traced(script: &mut Script) {
    eventually("a scheduler that stops", || {
        script.sandbox.run(&["stop"]);
        script.sandbox.scheduler_ended().map(drop)
    });
}

#[test]
fn the_scheduler_killed_at_every_durable_write_and_again_in_recovery_changes_no_end() {
    if !can_trace("the crash sweep of the scheduler") {
        return;
    }
    let unbroken = unbroken();
    let all = points();
    assert!(all.iter().any(|point| point.thread == "store" && point.call == "fdatasync"), "{all:?}");
    let all = chosen_by_name(all);
    let chosen = some(&all, budget());
    let results = side_by_side(&chosen, |point| kill_scheduler_at(point, &unbroken));
    let killed = results.iter().filter(|(killed, _)| *killed).count();
    let again: usize = results.iter().map(|(_, again)| again).sum();
    say(&format!(
        "crash sweep of the scheduler: {} of {} points, killed {killed} times there and {again} times in recovery",
        chosen.len(),
        all.len()
    ));
    assert!(killed > 0, "nothing was killed");
}

/// Kills the supervisor of one lease at one of the calls on its journal.
fn kill_supervisor_at(lease: usize, point: &Point, unbroken: &End) -> bool {
    let Point { call, nth, .. } = point;
    let mut script = Script::new();
    script.serve();
    let pid = script.sandbox.scheduler_pid() as i32;
    // The one that waits for the first lease is there already, and is no child to follow.
    let place = Auditor::place(&script.sandbox);
    let waits = eventually("the supervisor that waits", || place.supervisors().first().copied());
    let journal = script.sandbox.root().join(format!(".state/run/{lease}/journal"));
    let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
    let trace = format!("trace={call}");
    let notes = script.sandbox.dir().join("kills");
    let (dir, notes_at) = (journal.parent().unwrap().to_str().unwrap(), notes.to_str().unwrap());
    let journal = journal.to_str().unwrap();
    let words = ["-f", "-o", notes_at, "-P", journal, "-P", dir, "-e", &trace, "-e", &inject];
    let strace = Strace::attach(&[pid, waits.pid], &words);
    script.drop_jobs();
    // A scheduler that takes the journal's name in its supervisor's place is killed as it does.
    script.wait();
    drop(strace);
    let killed = fs::read_to_string(&notes).unwrap().contains("killed by SIGKILL");
    is_as_unbroken(&script.end(), unbroken, &point.to_string(), usize::from(killed));
    killed
}

#[test]
fn a_supervisor_killed_at_every_durable_write_ends_one_attempt_at_most() {
    if !can_trace("the crash sweep of supervisors") {
        return;
    }
    let unbroken = unbroken();
    let leases: usize = unbroken.jobs.values().map(|job| job.attempts.len()).sum();
    // The journal gets its name; then the main process, the order to stop, the end, the collection and the return are
    // written, and what has to survive the machine is waited for.
    let calls = [("renameat2", 1), ("pwrite64", 5), ("fdatasync", 3)];
    let all: Vec<Point> = (1..=leases)
        .flat_map(|lease| {
            let at =
                move |call: &str, nth| Point { thread: format!("lease {lease}"), call: call.to_owned(), nth };
            calls.iter().flat_map(move |(call, count)| (1..=*count).map(move |nth| at(call, nth)))
        })
        .collect();
    let all = chosen_by_name(all);
    let chosen = some(&all, budget());
    let results = side_by_side(&chosen, |point| {
        let lease = point.thread.split_once(' ').and_then(|(_, lease)| lease.parse().ok());
        kill_supervisor_at(lease.unwrap(), point, &unbroken)
    });
    let killed = results.iter().filter(|killed| **killed).count();
    say(&format!(
        "crash sweep of supervisors: {} of {} points, killed {killed} times",
        chosen.len(),
        all.len()
    ));
    assert!(killed > 0, "nothing was killed");
}

#[test]
fn the_points_of_a_sweep_are_spread_from_the_first_to_the_last() {
    let all: Vec<usize> = (0..100).collect();
    assert_eq!(some(&all, Some(5)), [0, 24, 49, 74, 99]);
    assert_eq!(some(&all, None), all);
    assert_eq!(some(&all[..3], Some(5)), [0, 1, 2]);
    assert!(Path::new(env!("CARGO_BIN_EXE_overnight")).exists());
}
