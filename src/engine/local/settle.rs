//! Leases whose supervisor is gone, or may be: what is left of their trees is ended, their output is collected, and all
//! that their journals say is reported. Never on the engine's thread.

use super::channel::{Channel, Channels};
use super::leftover::{self, Left, Target};
use super::{Report, connect, translate};
use crate::clock;
use crate::model::{AttemptNo, Collected, LeaseId, RunEnd, TaskIx, Token};
use crate::sched::EngineReport;
use crate::supervisor::collection::{self, CollectOrder, DISK_FULL};
use crate::supervisor::process;
use crate::supervisor::record::{self, JournalError, JournalState, Record};
use rustix::event::poll;
use rustix::process::Signal;
use rustix::time::Timespec;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A supervisor that lives but is not to be reached is given this many tries of 20 ms.
const CONNECT_TRIES: u32 = 50;
const CONNECT_AGAIN_MS: u32 = 20;
/// Between two looks at what outlived its kill.
const LOOK_EVERY_MS: u32 = 1000;
/// A full disk is tried again after this many seconds, one at a time.
const AGAIN_S: u32 = 5;
/// A journal that the disk does not give back is read again after this long.
const READ_AGAIN_MS: u32 = 1000;

/// A lease without a channel.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) lease: LeaseId,
    pub(super) token: Token,
    pub(super) run_dir: PathBuf,
    /// Its supervisor went just now, before our eyes.
    pub(super) witnessed: bool,
}

/// Settles leases: one pass over all of them.
pub(super) fn settle(lost: Vec<Lost>, report: &Report, channels: &Channels) {
    let mut trees = Vec::new();
    let mut outputs = Vec::new();
    let mut later = Vec::new();
    let mut outlived = Vec::new();
    for lease in lost {
        match look(&lease, channels) {
            Found::Lives => {}
            Found::Later => later.push(lease),
            Found::NeverRan(why) => {
                report(EngineReport::NotLaunched { lease: lease.lease, at: clock::now(), why });
            }
            Found::Unreadable(why) => trees.push((lease, None, why)),
            Found::Journal(state) => {
                say_all(&lease, &state, report);
                if state.is_outlived() {
                    outlived.push((lease.lease, target(&lease, Some(&state), channels)));
                }
                if state.is_home() {
                    continue;
                }
                if state.ended().is_some() {
                    // Its collector may still be at it, and two at once would spoil each other's work.
                    leftover::end_collector(&lease.token);
                    outputs.push((lease, *state));
                } else {
                    let why = "its supervisor is gone without having said how the run ended".to_owned();
                    trees.push((lease, Some(*state), why));
                }
            }
        }
    }
    let targets: Vec<Target> =
        trees.iter().map(|(lease, state, _)| target(lease, state.as_ref(), channels)).collect();
    leftover::end_all(&targets, |index, left| {
        let (lease, state, why) = &trees[index];
        let (at, gone, why) = match left {
            Left::Nobody => (lease.witnessed.then(clock::now), true, why.clone()),
            Left::Gone(at) => (Some(at), true, why.clone()),
            Left::Culprits(at, who) => {
                report(EngineReport::Outlived { lease: lease.lease, who: who.clone() });
                outlived.push((lease.lease, targets[index].clone()));
                (Some(at), false, format!("{why}; not gone after a kill: {who}"))
            }
        };
        targets[index].remove_groups();
        let heartbeat = state.as_ref().and_then(JournalState::last_sign);
        let collecting = state.as_ref().is_some_and(|state| state.intent().is_some());
        report(EngineReport::Missing { lease: lease.lease, heartbeat, at, gone, collecting, why });
    });
    watch(outlived, report, channels);
    outputs.extend(trees.into_iter().filter_map(|(lease, state, _)| Some((lease, state?))));
    for (lease, state) in outputs {
        collect(&lease, &state, report, channels);
    }
    if !later.is_empty() && !channels.is_closing() {
        pause_ms(READ_AGAIN_MS);
        settle(later, report, channels);
    }
}

fn target(lost: &Lost, state: Option<&JournalState>, channels: &Channels) -> Target {
    Target::of(&lost.token, state, channels.layout())
}

/// Waits beside until what outlived its kill is gone, and says so.
fn watch(mut outlived: Vec<(LeaseId, Target)>, report: &Report, channels: &Channels) {
    if outlived.is_empty() {
        return;
    }
    let (report, channels) = (report.clone(), channels.clone());
    let look = move || {
        while !outlived.is_empty() && !channels.is_closing() {
            outlived.retain(|(lease, target)| {
                let gone = target.is_gone();
                if gone {
                    target.remove_groups();
                    report(EngineReport::Gone { lease: *lease });
                }
                !gone
            });
            pause_ms(LOOK_EVERY_MS);
        }
    };
    // Without a thread it is the next survey's.
    let _ = std::thread::Builder::new().name("engine-watch".to_owned()).spawn(look);
}

enum Found {
    /// It has a channel again.
    Lives,
    /// Nothing ran and nothing will.
    NeverRan(String),
    /// The disk does not give its journal back now, and its processes live: nothing is done to them.
    Later,
    /// Nobody knows.
    Unreadable(String),
    Journal(Box<JournalState>),
}

fn look(lost: &Lost, channels: &Channels) -> Found {
    let path = lost.run_dir.join(record::NAME);
    for _ in 0..2 {
        match record::read(&path) {
            Ok(state) => return living(lost, state, channels),
            Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let made = std::fs::DirBuilder::new().recursive(true).create(&lost.run_dir);
                // Taking the journal's name proves that no supervisor will come any more.
                match made.map(|()| record::claim(&lost.run_dir, clock::now())) {
                    Ok(Ok(true)) => return Found::NeverRan("its supervisor was never started".to_owned()),
                    Ok(Ok(false)) => {}
                    Ok(Err(error)) => return Found::Unreadable(error.to_string()),
                    Err(error) => return Found::Unreadable(format!("{}: {error}", lost.run_dir.display())),
                }
            }
            Err(JournalError::Io { .. }) if leftover::lives(&target(lost, None, channels)) => {
                return Found::Later;
            }
            Err(error) => return Found::Unreadable(error.to_string()),
        }
    }
    Found::Unreadable(format!("{} comes and goes", path.display()))
}

/// A supervisor that lives is connected to; one that lives and cannot be reached is ended, by its own identity.
fn living(lost: &Lost, state: JournalState, channels: &Channels) -> Found {
    let Some(intent) = state.intent() else { return Found::Journal(Box::new(state)) };
    if intent.token != lost.token {
        return Found::Unreadable("the journal is another lease's".to_owned());
    }
    let supervisor = intent.supervisor;
    let lives = || intent.at.boot == clock::boot_id() && process::is_running(supervisor);
    for _ in 0..CONNECT_TRIES {
        if !lives() {
            break;
        }
        if let Ok(stream) = connect(&lost.run_dir) {
            channels.add(Channel {
                lease: lost.lease,
                token: lost.token.clone(),
                run_dir: lost.run_dir.clone(),
                stream,
                child: None,
                output: Vec::new(),
            });
            return Found::Lives;
        }
        pause_ms(CONNECT_AGAIN_MS);
    }
    if lives() {
        process::signal(supervisor, Signal::KILL);
    }
    // It may have written more before it went.
    let state = record::read(&lost.run_dir.join(record::NAME)).unwrap_or(state);
    Found::Journal(Box::new(state))
}

fn say_all(lost: &Lost, state: &JournalState, report: &Report) {
    for record in &state.records {
        if let Some(news) = translate::report(lost.lease, &lost.run_dir, record) {
            report(news);
        }
    }
}

/// Does what the supervisor would have done after the end of the run.
fn collect(lost: &Lost, state: &JournalState, report: &Report, channels: &Channels) {
    let Some(intent) = state.intent() else { return };
    let (task, attempt) = (intent.task, intent.attempt);
    let started = state.current().iter().find_map(|record| match record {
        Record::Started { at, .. } => Some(*at),
        _ => None,
    });
    let result = match (started, read_order(&lost.run_dir, task, attempt)) {
        (None, _) => Ok(Collected::default()),
        (Some(_), Err(why)) => {
            // A full disk did not take the order; the scheduler knows what was declared.
            return report(translate::not_read(lost.lease, why));
        }
        (Some(started), Ok(mut order)) => {
            let gone = RunEnd::Lost { why: String::new() };
            order.complete(started, state.ended().map_or(&gone, |ended| &ended.end));
            let waits = |why| report(EngineReport::CollectionWaits { lease: lost.lease, why });
            match run_collector(&order, lost, (task, attempt), (channels, &waits)) {
                Some(result) => result,
                None => return,
            }
        }
    };
    report(EngineReport::Collected { lease: lost.lease, task, attempt, result });
}

fn read_order(run_dir: &Path, task: TaskIx, attempt: AttemptNo) -> Result<CollectOrder, String> {
    let path = collection::order_path(run_dir, task, attempt);
    let own = [run_dir.to_owned()];
    let bytes = crate::beneath::own_read(&path, &own, collection::MOST_BYTES)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Until it is done; `None` if the engine closes first, and the next one does it.
fn run_collector(
    order: &CollectOrder,
    lost: &Lost,
    (task, attempt): (TaskIx, AttemptNo),
    (channels, waits): (&Channels, &dyn Fn(String)),
) -> Option<Result<Collected, String>> {
    let run_dir = &lost.run_dir;
    let words = run_dir.join("collect.err");
    let manifest = collection::manifest_path(run_dir, task, attempt);
    loop {
        let ended =
            order.spawn((&manifest, &words), &lost.token, Stdio::null()).and_then(|mut child| child.wait());
        let status = match ended {
            Ok(status) => status,
            Err(error) => return Some(Err(format!("the collector could not be started: {error}"))),
        };
        match status.code() {
            Some(0) => return Some(translate::manifest(run_dir, task, attempt)),
            Some(DISK_FULL) => waits(collection::again_words(&words)),
            code => return Some(Err(collection::failure(code, &words))),
        }
        for _ in 0..AGAIN_S {
            if channels.is_closing() {
                return None;
            }
            pause_ms(1000);
        }
    }
}

/// Waits without a descriptor to wait for: something outside this program has to change.
pub(super) fn pause_ms(ms: u32) {
    let timeout = Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 };
    let _ = poll(&mut [], Some(&timeout));
}
