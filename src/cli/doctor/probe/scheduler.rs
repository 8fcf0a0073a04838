//! Who has the state, and whether it could be opened.

use crate::cli::Setup;
use crate::cli::doctor::facts::{Answers, Holder, Scheduler, Store};
use crate::cli::when;
use crate::client::{Client, ClientError, Lock, lock};
use crate::config::Paths;
use crate::model::chain;
use crate::protocol::{NoticeLevel, Query, Reply, Request};
use crate::store::{Identity, StoreOptions, examine};
use jiff::tz::TimeZone;
use std::time::Duration;

/// How long the greeting may take.
const GREETING: Duration = Duration::from_secs(3);

pub(super) fn scheduler(setup: &Setup) -> Scheduler {
    let paths = &setup.paths;
    let holder = || holder(paths, &setup.zone);
    match Client::connect(paths, GREETING) {
        Ok(client) => answers(client, &setup.zone),
        // The store's lock says nothing of a scheduler that has only begun to start: its own does.
        Err(ClientError::NoScheduler { .. }) => match holder() {
            Some(holder) => Scheduler::Silent { holder: Some(holder) },
            None => Scheduler::None,
        },
        Err(ClientError::NotAnswering { .. }) => Scheduler::Silent { holder: holder() },
        Err(ClientError::Version { ours, theirs, .. }) => {
            Scheduler::Other { protocol: theirs, ours, holder: holder() }
        }
        Err(ClientError::NotYours { uid, .. }) => Scheduler::NotOurs { uid },
        Err(error) => Scheduler::Failed(chain(&error)),
    }
}

fn answers(mut client: Client, zone: &TimeZone) -> Scheduler {
    let (pid, version) = (client.server().pid, client.server().version.clone());
    let mut answers = Answers { pid, version, replaced: is_replaced(pid), ..Answers::default() };
    match client.request(Request::Query(Query::Snapshot { since: None })) {
        Ok(Reply::Snapshot(all)) => {
            answers.since = when::exact(all.scheduler.since, zone);
            answers.root = all.scheduler.root;
            answers.notices = all
                .notices
                .into_iter()
                .filter(|notice| notice.level != NoticeLevel::Info)
                .map(|notice| (notice.level == NoticeLevel::Error, notice.text))
                .collect();
            Scheduler::Answers(answers)
        }
        Ok(Reply::Unavailable { message }) => Scheduler::Failed(message),
        Ok(_) => Scheduler::Failed("it did not answer the question".to_owned()),
        Err(error) => Scheduler::Failed(chain(&error)),
    }
}

/// Whether the program that a process runs is no longer the file of that name.
fn is_replaced(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let link = format!("/proc/{pid}/exe");
    let Ok(named) = std::fs::read_link(&link) else { return false };
    let id = |path: &std::path::Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    // The link leads to the file that runs even when its name is gone.
    id(link.as_ref()) != id(&named)
}

/// Who holds the lock of the state directory.
fn holder(paths: &Paths, zone: &TimeZone) -> Option<Holder> {
    let pid = [paths.state.join("lock"), paths.store()].iter().find_map(|file| match lock(file) {
        Lock::Held(pid) => Some(pid),
        Lock::Free => None,
    })??;
    Some(Holder { pid, since: started(pid).map(|at| when::exact(at, zone)) })
}

/// When a process started, on the wall clock.
fn started(pid: u32) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in brackets, may hold anything.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let now = crate::clock::now();
    let age_ms = now.boottime_ms.checked_sub(ticks * 1000 / per_second)?;
    now.wall_ms.checked_sub_unsigned(age_ms)
}

pub(super) fn store(paths: &Paths, scheduler: &Scheduler) -> Store {
    if !matches!(scheduler, Scheduler::None) {
        return Store::InUse;
    }
    let options = StoreOptions::new(paths.root.join(".first-start"));
    match examine(&paths.store(), &Identity::read(), &options) {
        Ok(true) => Store::Fine,
        Ok(false) => Store::None,
        // One that has just started may be writing it.
        Err(_) if matches!(lock(&paths.store()), Lock::Held(_)) => Store::InUse,
        Err(error) => Store::Refused(chain(&error)),
    }
}
