//! What the machine and its kernel offer.

use crate::cli::doctor::facts::{Account, Cgroup, Clock, Gpus, Inotify};
use crate::cli::doctor::finding::{Finding, fail, ok, warn};
use crate::model::Span;

/// A scheduler and a dashboard or two.
const INSTANCES_NEEDED: u64 = 6;
/// The inbox, and the folders that are dropped into it.
const WATCHES_NEEDED: u64 = 1_000;
/// A burst of drops.
const QUEUE_NEEDED: u64 = 1_000;
/// One for each lease and connection.
const FILES_NEEDED: u64 = 1_024;
/// A supervisor, a collector and what jobs start.
const PROCESSES_NEEDED: u64 = 500;
/// This program was not there before.
const YEAR_LEAST: i16 = 2025;

pub(super) fn gpus(gpus: &Gpus, all: &mut Vec<Finding>) {
    all.push(match gpus {
        Gpus::Listed(names) if names.is_empty() => {
            warn("nvml", "the driver lists no GPU", "`nvidia-smi -L` must list them; CPU-only jobs run")
        }
        Gpus::Listed(names) => ok("nvml", listed(names)),
        Gpus::Refused { why, hint, absent: true } => warn(
            "nvml",
            why,
            hint.unwrap_or("CPU-only jobs run; `--gpus simulated:4` is for trying things out"),
        ),
        Gpus::Refused { why, hint, absent: false } => {
            fail("nvml", why, hint.unwrap_or("`nvidia-smi` must work first; jobs that run go on"))
        }
        Gpus::Silent => fail(
            "nvml",
            "the driver does not answer: nothing is granted while it does not",
            "`nvidia-smi` hangs too? look at `dmesg`; mostly only a reboot helps",
        ),
        Gpus::NotAsked(how) => ok("nvml", format!("not asked: the config says gpus = \"{how}\"")),
    });
}

/// `8 GPUs: 8 x NVIDIA H200`
fn listed(names: &[String]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match kinds.iter_mut().find(|(kind, _)| kind == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    let word = if names.len() == 1 { "GPU" } else { "GPUs" };
    format!("{} {word}: {}", names.len(), kinds.join(", "))
}

pub(super) fn inotify(facts: &Inotify, all: &mut Vec<Finding>) {
    let Inotify { watches, instances, queue, watches_used, instances_used } = facts;
    let (Some(watches), Some(instances), Some(queue)) = (*watches, *instances, *queue) else {
        all.push(warn(
            "inotify",
            "the kernel does not tell its limits",
            "the inbox is looked through every 30 s where it cannot be watched",
        ));
        return;
    };
    let found = format!(
        "{instances_used} of {instances} instances and {watches_used} of {watches} watches used, queue of {queue}"
    );
    let set = |name: &str, value: u64| format!("as root: sysctl fs.inotify.{name}={value}");
    if instances.saturating_sub(*instances_used) < INSTANCES_NEEDED {
        let todo = set("max_user_instances", (instances * 2).max(512));
        let none_left = instances_used >= &instances;
        let found = format!("{found}: logs and the inbox cannot be watched without one");
        all.push(if none_left { fail("inotify", found, todo) } else { warn("inotify", found, todo) });
    } else if watches.saturating_sub(*watches_used) < WATCHES_NEEDED {
        all.push(warn("inotify", found, set("max_user_watches", (watches * 2).max(65_536))));
    } else if queue < QUEUE_NEEDED {
        let todo = set("max_queued_events", 16_384);
        all.push(warn("inotify", format!("{found}: many drops at once are found by a look instead"), todo));
    } else {
        all.push(ok("inotify", found));
    }
}

pub(super) fn cgroup(cgroup: &Cgroup) -> Finding {
    const ADVISORY: &str = "limits of memory and processes are advisory";
    match cgroup {
        Cgroup::Two { own, controllers, ours } => {
            let have = |name: &str| controllers.iter().any(|controller| controller == name);
            let found = format!("version 2, {} at {}", list(controllers), own.display());
            match (*ours, have("memory") && have("pids")) {
                (true, true) => ok("cgroup", found),
                (true, false) => warn(
                    "cgroup",
                    format!("{found}: without memory and pids {ADVISORY}"),
                    "have systemd delegate them: Delegate=yes in the unit, as `overnight service install` writes it",
                ),
                (false, _) => warn(
                    "cgroup",
                    format!("{found}, not this account's to divide: {ADVISORY}"),
                    "start the scheduler by a unit that delegates its group: `overnight service install`",
                ),
            }
        }
        Cgroup::One { controllers, unified } => {
            let beside = if *unified { ", with version 2 beside it" } else { "" };
            warn(
                "cgroup",
                format!("version 1{beside} ({}): {ADVISORY}", list(controllers)),
                "boot with systemd.unified_cgroup_hierarchy=1, or run outside of an old container",
            )
        }
        Cgroup::None => warn(
            "cgroup",
            format!("none: {ADVISORY}"),
            "mount cgroup2 at /sys/fs/cgroup; in a container, give it one of its own",
        ),
    }
}

fn list(controllers: &[String]) -> String {
    if controllers.is_empty() { "no controllers".to_owned() } else { controllers.join(" ") }
}

pub(super) fn landlock(landlock: &Result<u32, String>) -> Finding {
    match landlock {
        Ok(version) => ok("landlock", format!("version {version}: what jobs may write can be enforced")),
        Err(why) => warn(
            "landlock",
            format!("not there ({why}): that data is read-only is advisory"),
            "a kernel from 5.13 with landlock in its `lsm=` list",
        ),
    }
}

pub(super) fn clock(clock: &Clock, all: &mut Vec<Finding>) {
    let zone = clock.zone.as_deref().unwrap_or("an unnamed zone");
    let suspended = match clock.suspended_ms {
        0..1000 => String::new(),
        ms => format!("; suspended for {} since the boot, which is never billed", Span(ms)),
    };
    let found = format!("times are shown in {zone}{suspended}");
    if clock.year < YEAR_LEAST {
        all.push(fail(
            "clock",
            format!("it is the year {}: deadlines and dates are wrong", clock.year),
            "set it, and have something keep it: timedatectl set-ntp true",
        ));
        return;
    }
    all.push(match clock.synchronised {
        Some(true) => ok("clock", format!("kept right; {found}")),
        Some(false) => warn(
            "clock",
            format!(
                "the kernel knows of nothing that keeps it right: finish_by and start_after go by it; {found}"
            ),
            "timedatectl set-ntp true, or chrony; in a virtual machine the host may keep it",
        ),
        None => ok("clock", found),
    });
}

pub(super) fn limits(account: &Account, all: &mut Vec<Finding>) {
    let shown = |limit: Option<u64>| limit.map_or("any number".to_owned(), |limit| limit.to_string());
    let (_, hard) = account.files;
    let (most, now) = account.processes;
    let umask = account.umask.map(|mask| format!(", umask {mask:04o}")).unwrap_or_default();
    let found = format!("{} open files, {} of {} processes{umask}", shown(hard), now, shown(most));
    if hard.is_some_and(|hard| hard < FILES_NEEDED) {
        all.push(warn(
            "limits",
            found,
            "raise the hard limit of open files (nofile) in /etc/security/limits.conf",
        ));
    } else if most.is_some_and(|most| most.saturating_sub(now) < PROCESSES_NEEDED) {
        let todo = "raise the limit of processes (nproc) in /etc/security/limits.conf: jobs count too";
        all.push(warn("limits", found, todo));
    } else {
        all.push(ok("limits", found));
    }
}
