//! Things that happen at the same time: cancel against grant, start, end and collection, undo against the end of its window,
//! and several clients on one job. One of them wins, and the log has one event of it.
//!
//! Timings are seeded; `OVERNIGHT_RACES=200` makes so many of each.
#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use overnight::client::{Client, ClientError};
use overnight::config::Paths;
use overnight::model::{Event, EventRecord, Generation, JobId, Priority, Span, Uuid};
use overnight::protocol::{Command, Overrides, Place, Query, Reply, Request, SubmitFile};
use overnight::store::{Identity, Store, StoreOptions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::auditor::Auditor;
use support::sandbox::{Sandbox, eventually};

/// A small seeded generator (splitmix).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// How many timings of each race are tried.
fn races(default: u64) -> u64 {
    let given = std::env::vars().find(|(name, _)| name == "OVERNIGHT_RACES");
    given.and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
}

/// Lets so much time pass: this is what a race is made of, and nothing waits for its end.
fn jitter(dice: &mut Dice, below_ms: u64) {
    let micros = dice.below(below_ms * 1_000);
    std::thread::park_timeout(Duration::from_micros(micros));
}

fn connect(sandbox: &Sandbox) -> Client {
    Client::connect(&Paths::below(&sandbox.root()), Duration::from_secs(10)).unwrap()
}

/// The answer; on a slow disk it is asked for again, as a person would.
fn request(client: &mut Client, request: &Request) -> Reply {
    eventually("an answer that is not `later`", || match client.request(request.clone()).unwrap() {
        Reply::Unavailable { .. } => None,
        reply => Some(reply),
    })
}

fn ask(client: &mut Client, command: Command) -> Reply {
    request(client, &Request::Command(command))
}

/// A job as a dashboard knows it.
fn resolve(client: &mut Client, name: &str) -> (JobId, Generation) {
    match request(client, &Request::Query(Query::Resolve { name: name.to_owned() })) {
        Reply::Resolved { job, generation } => (job, generation),
        other => panic!("{name}: {other:?}"),
    }
}

fn file(name: &str, text: String) -> SubmitFile {
    SubmitFile {
        text: text.into_bytes(),
        shown: format!("{name}.yaml"),
        stem: name.to_owned(),
        file: None,
        base: None,
        overrides: Overrides::default(),
        environment: BTreeMap::new(),
        paused: false,
    }
}

fn submit(client: &mut Client, name: &str, run: &str, request: &str) -> JobId {
    let text = format!(
        "work: {{run: \"{run}\", stop: {{grace: 1s}}}}\ndata: []\n\
         request: {{cpus: 1, memory: 1MiB, for: 5m, {request}}}\noutput: []\n"
    );
    match ask(client, Command::Submit(file(name, text))) {
        Reply::Submitted { jobs, .. } => jobs[0].id.unwrap(),
        other => panic!("{name}: {other:?}"),
    }
}

const fn cancel((job, generation): (JobId, Generation), undo: u64) -> Command {
    Command::Cancel { job, generation, undo: Span(undo), now: false }
}

const fn is_ok(reply: &Reply) -> bool {
    matches!(reply, Reply::Ok { .. })
}

/// Whether a cancel went straight to the supervisor because the disk was slow: it is in its journal and not in the log.
fn went_straight(reply: &Reply) -> bool {
    matches!(reply, Reply::Ok { message } if message.contains("recorded when the state can be written"))
}

/// A refusal that a person understands: what, and what it is now.
#[track_caller]
fn is_polite(reply: &Reply) {
    let Reply::Refused { message } = reply else { panic!("{reply:?}") };
    assert!(message.contains('#') && message.len() > 15 && !message.contains("generation"), "{message}");
}

/// Waits until a job is done, and says what it came to.
fn outcome(client: &mut Client, job: JobId) -> String {
    eventually(&format!("the end of #{job}"), || match request(client, &Request::Query(Query::Job { job })) {
        Reply::Job(detail) => detail.row.outcome.as_ref().map(|outcome| outcome.word().to_owned()),
        other => panic!("{other:?}"),
    })
}

/// The log of a scheduler that has been ended.
fn log(sandbox: &Sandbox) -> Vec<EventRecord> {
    let paths = Paths::below(&sandbox.root());
    let options = StoreOptions::new(paths.root.join(".first-start"));
    let (store, _) = Store::open(&paths.store(), &Identity::read(), &options).unwrap();
    let log = store.reader().events_after(0, usize::MAX).unwrap();
    for (seq, record) in (1..).zip(&log) {
        assert_eq!(record.seq, seq, "gap-free");
    }
    log
}

/// What of a job's life must be in the log once, and how often it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    accepted: u32,
    granted: u32,
    started: u32,
    ended: u32,
    asked: u32,
    due: u32,
    withdrawn: u32,
    dropped: u32,
    done: u32,
}

fn counts(log: &[EventRecord]) -> BTreeMap<JobId, Counts> {
    let mut jobs: BTreeMap<JobId, Counts> = BTreeMap::new();
    for record in log {
        let (job, count): (JobId, fn(&mut Counts) -> &mut u32) = match &record.event {
            Event::JobAccepted { job, .. } => (*job, |counts| &mut counts.accepted),
            Event::LeaseGranted { job, .. } => (*job, |counts| &mut counts.granted),
            Event::AttemptStarted { job, .. } => (*job, |counts| &mut counts.started),
            Event::AttemptEnded { job, .. } => (*job, |counts| &mut counts.ended),
            Event::CancelRequested { job, .. } => (*job, |counts| &mut counts.asked),
            Event::CancelDue { job } => (*job, |counts| &mut counts.due),
            Event::CancelWithdrawn { job } => (*job, |counts| &mut counts.withdrawn),
            Event::AttemptDropped { job, .. } => (*job, |counts| &mut counts.dropped),
            Event::JobDone { job, .. } => (*job, |counts| &mut counts.done),
            _ => continue,
        };
        *count(jobs.entry(job).or_default()) += 1;
    }
    jobs
}

/// No GPU is granted while another lease has it, by the log alone; each lease that was granted has ended and come back.
fn no_gpu_was_granted_twice(log: &[EventRecord]) {
    let mut holders: BTreeMap<Uuid, u64> = BTreeMap::new();
    let mut devices: BTreeMap<u64, Vec<Uuid>> = BTreeMap::new();
    let mut ended: BTreeSet<u64> = BTreeSet::new();
    for record in log {
        match &record.event {
            Event::LeaseGranted { lease, held, .. } => {
                for device in &held.devices {
                    let other = holders.insert(device.uuid.clone(), lease.0);
                    assert_eq!(other, None, "{} is granted to {lease} at {}", device.uuid, record.seq);
                }
                devices.insert(lease.0, held.devices.iter().map(|device| device.uuid.clone()).collect());
            }
            Event::LeaseEnded { lease, .. } => assert!(ended.insert(lease.0), "{lease} ends twice"),
            Event::LeaseReturned { lease, .. } => {
                assert!(ended.contains(&lease.0), "{lease} is back before its end");
                for uuid in devices.remove(&lease.0).unwrap() {
                    assert_eq!(holders.remove(&uuid), Some(lease.0));
                }
            }
            _ => {}
        }
    }
    assert!(devices.is_empty(), "leases that never came back: {devices:?}");
}

/// Ends the scheduler and looks at its log: one end of each job, and what a client was told of its cancel is what happened.
fn one_winner_each(sandbox: &mut Sandbox, told: &[(JobId, bool, String)]) -> Vec<EventRecord> {
    eventually("a pool whose GPUs are all free", || {
        let list = sandbox.run(&["gpus", "--json"]).json();
        list["gpus"].as_array().unwrap().iter().all(|gpu| gpu["state"] == "free").then_some(())
    });
    sandbox.run(&["meter", "--check"]).ok();
    sandbox.kill_scheduler();
    let log = log(sandbox);
    no_gpu_was_granted_twice(&log);
    let jobs = counts(&log);
    for (job, acknowledged, outcome) in told {
        let counts = jobs[job];
        assert_eq!((counts.accepted, counts.done), (1, 1), "#{job}: {counts:?}");
        assert_eq!(counts.asked, u32::from(*acknowledged), "#{job} {outcome}: {counts:?}");
        assert!(counts.granted <= 1 && counts.started <= 1, "#{job}: {counts:?}");
        assert_eq!(counts.granted, counts.ended, "#{job}: {counts:?}");
        assert_eq!(counts.granted + counts.dropped, 1, "#{job} runs or is dropped: {counts:?}");
        if outcome == "cancelled" {
            assert!(*acknowledged, "#{job} was cancelled by nobody");
            assert_eq!(counts.due, 1, "#{job}: {counts:?}");
        }
    }
    log
}

/// How often each end came, for the output of a test.
fn tally(told: &[(JobId, bool, String)]) -> BTreeMap<(bool, &str), usize> {
    let mut tally = BTreeMap::new();
    for (_, acknowledged, outcome) in told {
        *tally.entry((*acknowledged, outcome.as_str())).or_default() += 1;
    }
    tally
}

#[test]
fn a_cancel_that_meets_a_grant_or_a_start_ends_the_job_once() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    let mut client = connect(&sandbox);
    let mut told = Vec::new();
    for seed in 0..races(20) {
        let dice = &mut Dice(seed);
        let marker = sandbox.dir().join(format!("ran-{seed}"));
        let gate = sandbox.gate(&format!("gate{seed}"));
        let until = format!("until [ -e {} ]; do sleep 0.01; done", gate.display());
        let first = submit(&mut client, &format!("first{seed}"), &until, "gpus: 1");
        sandbox.wait_for_state(&format!("first{seed}"), "running");
        let run = format!("sleep 20; touch {}", marker.display());
        let job = submit(&mut client, &format!("job{seed}"), &run, "gpus: 1");
        let mut dashboard = connect(&sandbox);
        fs::File::create(&gate).unwrap();
        jitter(dice, 25);
        // A person presses a key on what they see; it may have changed by then.
        let (mut acknowledged, mut recorded) = (false, false);
        while !acknowledged {
            let seen = resolve(&mut dashboard, &job.to_string());
            jitter(dice, 3);
            let reply = ask(&mut dashboard, cancel(seen, 0));
            acknowledged = is_ok(&reply);
            recorded = !went_straight(&reply);
            if !acknowledged {
                is_polite(&reply);
            }
        }
        assert_eq!(outcome(&mut client, job), "cancelled", "seed {seed}");
        assert!(!marker.exists(), "seed {seed}: it ran to its end after a cancel");
        outcome(&mut client, first);
        if recorded {
            told.push((job, true, "cancelled".to_owned()));
        }
    }
    let log = one_winner_each(&mut sandbox, &told);
    let jobs = counts(&log);
    let granted = told.iter().filter(|(job, ..)| jobs[job].granted == 1).count();
    let started = told.iter().filter(|(job, ..)| jobs[job].started == 1).count();
    println!("of {} cancels {granted} met a lease and {started} a started run", told.len());
    audit.finish();
}

#[test]
fn a_cancel_that_meets_the_end_of_a_run_or_its_collection_has_one_outcome() {
    let mut sandbox = Sandbox::serving("simulated:2");
    let audit = Auditor::watch(&sandbox);
    let mut client = connect(&sandbox);
    let mut told = Vec::new();
    for seed in 0..races(25) {
        let dice = &mut Dice(1_000 + seed);
        // Much comes back: collecting takes a while, too.
        let run = format!(
            "sleep 0.0{}; for n in $(seq 60); do echo $n >$OVERNIGHT_OUTPUT/$n.txt; done",
            dice.below(9) + 1
        );
        let job = submit(&mut client, &format!("job{seed}"), &run, "gpus: 1");
        jitter(dice, 400);
        let seen = resolve(&mut client, &job.to_string());
        jitter(dice, 20);
        let reply = ask(&mut client, cancel(seen, 0));
        if !is_ok(&reply) {
            is_polite(&reply);
        }
        let outcome = outcome(&mut client, job);
        assert!(["cancelled", "succeeded"].contains(&outcome.as_str()), "seed {seed}: {outcome}");
        if !went_straight(&reply) {
            told.push((job, is_ok(&reply), outcome));
        }
    }
    println!("acknowledged and outcome: {:?}", tally(&told));
    one_winner_each(&mut sandbox, &told);
    audit.finish();
}

#[test]
fn an_undo_that_meets_the_end_of_its_window_takes_all_of_the_cancel_back_or_nothing() {
    let mut sandbox = Sandbox::serving("simulated:2");
    let audit = Auditor::watch(&sandbox);
    let mut client = connect(&sandbox);
    let mut undone = Vec::new();
    for seed in 0..races(15) {
        let dice = &mut Dice(2_000 + seed);
        let waits = seed % 2 == 0;
        let gate = sandbox.gate(&format!("gate{seed}"));
        let run = format!("until [ -e {} ]; do sleep 0.02; done", gate.display());
        let request = if waits { "gpus: 1, start_after: in 2h" } else { "gpus: 1" };
        let job = submit(&mut client, &format!("job{seed}"), &run, request);
        if !waits {
            sandbox.wait_for_state(&format!("job{seed}"), "running");
        }
        let window = 40 + dice.below(60);
        let seen = resolve(&mut client, &job.to_string());
        let reply = ask(&mut client, cancel(seen, window));
        assert!(is_ok(&reply), "seed {seed}: {reply:?}");
        if went_straight(&reply) {
            fs::File::create(&gate).unwrap();
            continue;
        }
        std::thread::park_timeout(Duration::from_millis(window - 40));
        jitter(dice, 60);
        let reply = ask(&mut client, Command::Undo { job: Some(job) });
        let withdrawn = is_ok(&reply);
        if withdrawn {
            // It goes on as if nothing had been asked, and can be cancelled again.
            assert!(sandbox.show(&job.to_string())["cancel_at"].is_null(), "seed {seed}");
            fs::File::create(&gate).unwrap();
            if waits {
                let seen = resolve(&mut client, &job.to_string());
                assert!(is_ok(&ask(&mut client, cancel(seen, 0))));
            }
        }
        let ended = outcome(&mut client, job);
        assert_eq!(ended, if withdrawn && !waits { "succeeded" } else { "cancelled" }, "seed {seed}");
        undone.push((job, withdrawn, waits));
    }
    let won = undone.iter().filter(|(_, withdrawn, _)| *withdrawn).count();
    println!("{won} of {} were undone in time", undone.len());
    sandbox.kill_scheduler();
    let jobs = counts(&log(&sandbox));
    for (job, withdrawn, waits) in undone {
        let counts = jobs[&job];
        let cancels = 1 + u32::from(withdrawn && waits);
        assert_eq!((counts.asked, counts.withdrawn), (cancels, u32::from(withdrawn)), "#{job}: {counts:?}");
        assert_eq!(counts.due, cancels - u32::from(withdrawn), "#{job}: {counts:?}");
        assert_eq!(counts.done, 1, "#{job}: {counts:?}");
    }
    audit.finish();
}

/// What three clients do to one job.
#[derive(Debug, Clone, Copy)]
enum Act {
    Cancel,
    Pause,
    Raise,
    Move,
}

impl Act {
    fn command(self, (job, generation): (JobId, Generation)) -> Command {
        match self {
            Self::Cancel => cancel((job, generation), 0),
            Self::Pause => Command::Pause { job, generation },
            Self::Raise => Command::SetPriority { job, generation, priority: Priority::clamped(10) },
            Self::Move => Command::Move { job, generation, to: Place::Top },
        }
    }

    const fn verb(self) -> &'static [&'static str] {
        match self {
            Self::Cancel => &["cancel"],
            Self::Pause => &["pause"],
            Self::Raise => &["priority"],
            Self::Move => &["top"],
        }
    }
}

#[test]
fn of_three_clients_that_saw_the_same_job_one_wins_and_the_others_are_told_so() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let mut client = connect(&sandbox);
    // Holds the GPU, so that the others wait and nothing changes by itself.
    let blocker = submit(&mut client, "blocker", "sleep 600", "gpus: 1");
    sandbox.wait_for_state("blocker", "running");
    let mut won = Vec::new();
    for seed in 0..races(16) {
        let dice = &mut Dice(3_000 + seed);
        let act = [Act::Cancel, Act::Pause, Act::Raise, Act::Move][dice.below(4) as usize];
        // Two, so that there is somebody to be moved past.
        submit(&mut client, &format!("other{seed}"), "true", "gpus: 1");
        let job = submit(&mut client, &format!("job{seed}"), "true", "gpus: 1");
        let mut dashboards = [connect(&sandbox), connect(&sandbox)];
        let seen = resolve(&mut dashboards[0], &job.to_string());
        assert_eq!(seen, resolve(&mut dashboards[1], &job.to_string()));
        let start = Arc::new(Barrier::new(3));
        let delays = [dice.below(4_000), dice.below(4_000), dice.below(30_000)];
        let (replies, line) = std::thread::scope(|scope| {
            let threads: Vec<_> = dashboards
                .iter_mut()
                .zip(delays)
                .map(|(dashboard, delay)| {
                    let start = Arc::clone(&start);
                    scope.spawn(move || {
                        start.wait();
                        std::thread::park_timeout(Duration::from_micros(delay));
                        ask(dashboard, act.command(seen))
                    })
                })
                .collect();
            start.wait();
            std::thread::park_timeout(Duration::from_micros(delays[2]));
            let id = job.to_string();
            let mut words = act.verb().to_vec();
            words.push(&id);
            words.extend(matches!(act, Act::Raise).then_some("10"));
            let line = eventually("an answer that is not `later`", || {
                let line = sandbox.run(&words);
                (!line.stderr.contains("nothing is changed")).then_some(line)
            });
            (threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>(), line)
        });
        let dashboards_won = replies.iter().filter(|reply| is_ok(reply)).count();
        replies.iter().filter(|reply| !is_ok(reply)).for_each(is_polite);
        assert!(dashboards_won <= 1, "seed {seed}, {act:?}: {replies:?}");
        // The command line asks for the job as it is when it is called: it may come after the winner with a new decision.
        assert!(line.code <= 1, "{}", line.stderr);
        if line.code == 1 {
            assert!(line.stderr.contains(&format!("#{job}")), "{}", line.stderr);
        }
        assert!(dashboards_won == 1 || line.code == 0, "seed {seed}, {act:?}: nobody won");
        if matches!(act, Act::Cancel | Act::Pause) {
            // What is cancelled or paused cannot be so twice, whoever asks and whenever.
            assert_eq!(dashboards_won + usize::from(line.code == 0), 1, "seed {seed}, {act:?}: {replies:?}");
        }
        won.push((job, act, dashboards_won + usize::from(line.code == 0)));
    }
    for (job, ..) in &won {
        let (job, generation) = resolve(&mut client, &job.to_string());
        let _ = ask(&mut client, cancel((job, generation), 0));
    }
    let seen = resolve(&mut client, &blocker.to_string());
    assert!(is_ok(&ask(&mut client, cancel(seen, 0))));
    outcome(&mut client, blocker);
    sandbox.kill_scheduler();
    let log = log(&sandbox);
    for (job, act, winners) in won {
        let of_job = |record: &&EventRecord| match (&record.event, act) {
            (Event::CancelRequested { job: of, .. }, Act::Cancel)
            | (Event::JobPaused { job: of, .. }, Act::Pause)
            | (Event::PriorityChanged { job: of, .. }, Act::Raise)
            | (Event::PositionChanged { job: of, ranked: true, .. }, Act::Move) => *of == job,
            _ => false,
        };
        assert_eq!(log.iter().filter(of_job).count(), winners, "#{job}, {act:?}: one event a winner");
    }
}

#[test]
fn a_decision_on_an_old_generation_is_refused_in_words() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let mut client = connect(&sandbox);
    let job = submit(&mut client, "job", "true", "gpus: 1, start_after: in 2h");
    let old = resolve(&mut client, "job");
    assert!(is_ok(&ask(&mut client, Act::Raise.command(old))));
    let (job_id, generation) = old;
    let refused = [
        cancel(old, 0),
        cancel(old, 5_000),
        Act::Pause.command(old),
        Act::Raise.command(old),
        Act::Move.command(old),
        Command::Resume { job: job_id, generation },
        Command::Retry { job: job_id, generation },
    ];
    for command in refused {
        let reply = ask(&mut client, command.clone());
        is_polite(&reply);
        let Reply::Refused { message } = reply else { unreachable!() };
        assert_eq!(
            message,
            format!("#{job} has changed meanwhile: it is queued now; look again"),
            "{command:?}"
        );
    }
    // What it says is what it is: being cancelled, and then done.
    let seen = resolve(&mut client, "job");
    assert!(is_ok(&ask(&mut client, cancel(seen, 60_000))));
    let Reply::Refused { message } = ask(&mut client, Act::Pause.command(seen)) else { panic!("it is old") };
    assert!(message.contains("being cancelled"), "{message}");
    let shown: Value = sandbox.show("job");
    assert_eq!(shown["generation"].as_u64(), Some(resolve(&mut client, "job").1.0));
    let seen = resolve(&mut client, "job");
    assert!(is_ok(&ask(&mut client, Command::Cancel { job, generation: seen.1, undo: Span(0), now: true })));
    let Reply::Refused { message } = ask(&mut client, cancel(seen, 0)) else { panic!("it is old") };
    assert!(message.contains("cancelled"), "{message}");
    let line = sandbox.run(&["cancel", "job"]);
    assert_eq!((line.code, line.stderr.trim()), (1, format!("#{job} is done already").as_str()));
    sandbox.kill_scheduler();
    let counts = counts(&log(&sandbox))[&job];
    assert_eq!((counts.asked, counts.done, counts.granted), (2, 1, 0), "{counts:?}");
}

/// Eight threads submit and cancel while the scheduler is killed and started again and again. Each job locks a file named by
/// its GPU for as long as any of its processes lives: whoever finds it locked was given a GPU that somebody has.
#[test]
fn no_gpu_is_given_twice_whatever_is_submitted_cancelled_and_killed_at_the_same_time() {
    let mut sandbox = Sandbox::serving("simulated:3");
    let audit = Auditor::watch(&sandbox);
    let locks = sandbox.dir().join("locks");
    fs::create_dir(&locks).unwrap();
    let violations = sandbox.dir().join("violations");
    let run = format!(
        "exec 9>{0}/$OVERNIGHT_GPU_UUIDS; flock -n 9 || echo $OVERNIGHT_JOB >>{1}; sleep 0.0$((RANDOM % 5))",
        locks.display(),
        violations.display()
    );
    let over = AtomicBool::new(false);
    let (submitted, cancelled, refused) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let budget = races(8) * 20;
    let paths = Paths::below(&sandbox.root());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let (paths, run, over) = (&paths, &run, &over);
                let (submitted, cancelled, refused) = (&submitted, &cancelled, &refused);
                scope.spawn(move || {
                    let mut dice = Dice(4_000 + thread);
                    let mut client = None;
                    while !over.load(Ordering::Relaxed)
                        && submitted.load(Ordering::Relaxed) + cancelled.load(Ordering::Relaxed) < budget
                    {
                        let Some(connected) = client.as_mut() else {
                            client = Client::connect(paths, Duration::from_secs(10)).ok();
                            jitter(&mut dice, 20);
                            continue;
                        };
                        match random_act(connected, &mut dice, run) {
                            Ok(Some(Reply::Submitted { .. })) => submitted.fetch_add(1, Ordering::Relaxed),
                            Ok(Some(Reply::Ok { .. })) => cancelled.fetch_add(1, Ordering::Relaxed),
                            Ok(_) => refused.fetch_add(1, Ordering::Relaxed),
                            // The scheduler was killed.
                            Err(_) => {
                                client = None;
                                0
                            }
                        };
                        jitter(&mut dice, 15);
                    }
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(400));
            sandbox.kill_scheduler();
            sandbox.serve();
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut client = connect(&sandbox);
    eventually("the end of all jobs", || {
        match request(&mut client, &Request::Query(Query::Jobs { done: 0 })) {
            Reply::Jobs { rows, .. } => rows.is_empty().then_some(()),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(fs::read_to_string(&violations).unwrap_or_default(), "", "jobs on a GPU that somebody had");
    let log = one_winner_each(&mut sandbox, &[]);
    let jobs = counts(&log);
    assert!(jobs.values().all(|counts| counts.done == 1), "{jobs:?}");
    let granted: u32 = jobs.values().map(|counts| counts.granted).sum();
    println!(
        "{} jobs submitted, {} cancelled, {} refused, {granted} leases granted",
        submitted.into_inner(),
        cancelled.into_inner(),
        refused.into_inner()
    );
    audit.finish();
}

/// Submits a job, or cancels one of those that are not done.
fn random_act(client: &mut Client, dice: &mut Dice, run: &str) -> Result<Option<Reply>, ClientError> {
    if dice.below(10) < 6 {
        let text = format!(
            "work: {{run: \"{run}\", stop: {{grace: 1s}}}}\ndata: []\n\
             request: {{gpus: 1, cpus: 1, memory: 1MiB, for: 5m}}\noutput: []\n"
        );
        return client.request(Request::Command(Command::Submit(file("job", text)))).map(Some);
    }
    let Reply::Jobs { rows, .. } = client.request(Request::Query(Query::Jobs { done: 0 }))? else {
        return Ok(None);
    };
    let Some(row) = rows.get(dice.below(rows.len().max(1) as u64) as usize) else { return Ok(None) };
    let undo = dice.below(3) * 30;
    client.request(Request::Command(cancel((row.id, row.generation), undo))).map(Some)
}
