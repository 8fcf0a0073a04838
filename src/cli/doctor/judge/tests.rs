//! A machine on which all is well, and what is said when one thing is not.

use super::*;
use crate::cli::doctor::facts::*;
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;

fn disk() -> Disk {
    Disk {
        kind: "ext4".to_owned(),
        read_only: false,
        no_exec: false,
        free: 200 * GIB,
        size: 500 * GIB,
        files_free: 1_000_000,
        files: 2_000_000,
    }
}

fn fine() -> Facts {
    let folder = |what, path: &str| Folder {
        what,
        path: path.into(),
        there: There::Folder { uid: 1000, mode: 0o700 },
        disk: Some(disk()),
        loose: None,
    };
    Facts {
        program: Program {
            version: "0.1.0",
            path: "/usr/bin/overnight".into(),
            config: None,
            keys: Vec::new(),
            theme: None,
        },
        refused: Vec::new(),
        account: Account {
            user: "ana".to_owned(),
            uid: 1000,
            files: (Some(1024), Some(524_288)),
            processes: (Some(60_000), 40),
            umask: Some(0o022),
        },
        scheduler: Scheduler::Answers(Answers {
            pid: 4100,
            version: "0.1.0".to_owned(),
            since: "2026-11-30 09:12:00".to_owned(),
            root: "/home/ana/overnight".into(),
            replaced: false,
            notices: Vec::new(),
        }),
        store: Store::InUse,
        folders: vec![
            folder(Part::Root, "/home/ana/overnight"),
            folder(Part::Inbox, "/home/ana/overnight/inbox"),
            folder(Part::Jobs, "/home/ana/overnight/jobs"),
            folder(Part::State, "/home/ana/.local/state/overnight/lab1"),
        ],
        work: Work {
            variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            known: true,
            tools: vec![("bash", Some("/bin/bash".into())), ("python3", Some("/usr/bin/python3".into()))],
            loose: Vec::new(),
        },
        inotify: Inotify {
            watches: Some(200_000),
            instances: Some(128),
            queue: Some(16_384),
            watches_used: 20,
            instances_used: 3,
        },
        cgroup: Cgroup::Two {
            own: "/sys/fs/cgroup/user.slice".into(),
            controllers: vec!["memory".to_owned(), "pids".to_owned()],
            ours: true,
        },
        landlock: Ok(5),
        gpus: Gpus::Listed(vec!["NVIDIA H200".to_owned(); 8]),
        clock: Clock {
            zone: Some("Europe/Berlin".to_owned()),
            year: 2026,
            synchronised: Some(true),
            suspended_ms: 0,
        },
        boot: Boot {
            systemd: true,
            lingers: true,
            user_unit: Some("/home/ana/.config/systemd/user/overnight.service".into()),
            ..Boot::default()
        },
    }
}

/// What is said beyond what is said when all is well.
fn said(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = fine();
    change(&mut facts);
    judge(&facts).into_iter().filter(|finding| finding.level > Level::Ok).collect()
}

/// The one thing that is said: of this level and subject, with these words, and with something to do.
#[track_caller]
fn one(level: Level, what: &str, words: &str, todo: &str, change: impl FnOnce(&mut Facts)) -> Finding {
    let said = said(change);
    let [finding] = said.as_slice() else { panic!("not one finding: {said:#?}") };
    assert_eq!((finding.level, finding.what), (level, what), "{finding:#?}");
    assert!(finding.found.contains(words), "{finding:#?}");
    assert!(finding.todo.as_deref().is_some_and(|to| to.contains(todo)), "{finding:#?}");
    finding.clone()
}

#[test]
fn refused_files_and_an_odd_theme_are_named() {
    let mut facts = fine();
    facts.refused = vec!["a.yaml".to_owned(), "b.yaml".to_owned()];
    facts.program.theme = Some("theme in config.toml: `3` is no theme".to_owned());
    let found = judge(&facts);
    let of = |what: &str| found.iter().find(|one| one.what == what && one.level == Level::Warn).unwrap();
    assert_eq!(of("inbox").found, "refused: a.yaml b.yaml");
    assert!(of("theme").found.contains("`3` is no theme"));
}

#[test]
fn keys_that_are_left_out_are_all_named() {
    let mut facts = fine();
    facts.program.config = Some("/home/ana/.config/overnight/config.toml".into());
    facts.program.keys =
        vec!["[keys] cancle: no such action".to_owned(), "[keys] j is both mark and down".to_owned()];
    let found = judge(&facts);
    let keys = found.iter().find(|finding| finding.what == "keys").unwrap();
    assert_eq!(keys.level, Level::Warn);
    assert!(keys.found.contains("cancle") && keys.found.contains("both mark and down"), "{}", keys.found);
    assert!(judge(&fine()).iter().all(|finding| finding.what != "keys"));
}

#[test]
fn where_all_is_well_nothing_is_to_be_done() {
    let all = judge(&fine());
    assert!(all.iter().all(|finding| finding.level == Level::Ok && finding.todo.is_none()), "{all:#?}");
    let of = |what: &str| all.iter().find(|finding| finding.what == what).unwrap().found.clone();
    assert_eq!(of("nvml"), "8 GPUs: 8 x NVIDIA H200");
    assert_eq!(of("disk"), "root, inbox, jobs, state: 200 GiB of 500 GiB free on ext4");
    assert!(of("scheduler").contains("process 4100") && of("scheduler").contains("since 2026-11-30"));
    let mut none = fine();
    (none.scheduler, none.store) = (Scheduler::None, Store::None);
    none.folders.iter_mut().for_each(|folder| folder.there = There::Nothing);
    assert!(judge(&none).iter().all(|finding| finding.level == Level::Ok), "a first start is no mistake");
}

#[test]
fn a_scheduler_that_is_not_as_it_should_be_is_named_with_the_way_out() {
    let holder = || Some(Holder { pid: 77, since: Some("2026-11-30 08:00:00".to_owned()) });
    one(Level::Fail, "scheduler", "process 77, since 2026", "kill -CONT", |facts| {
        facts.scheduler = Scheduler::Silent { holder: holder() };
    });
    one(Level::Fail, "scheduler", "protocol 2, this program 1", "overnight stop", |facts| {
        facts.scheduler = Scheduler::Other { protocol: 2, ours: 1, holder: holder() };
    });
    let squatted = one(Level::Fail, "scheduler", "uid 1001", "--state DIR", |facts| {
        facts.scheduler = Scheduler::NotOurs { uid: 1001 };
    });
    assert!(squatted.unusable);
    let answers = |facts: &mut Facts, change: fn(&mut Answers)| {
        let Scheduler::Answers(answers) = &mut facts.scheduler else { unreachable!() };
        change(answers);
    };
    one(Level::Warn, "version", "the scheduler is 0.0.9", "overnight stop", |facts| {
        answers(facts, |answers| answers.version = "0.0.9".to_owned());
    });
    one(Level::Warn, "version", "was replaced", "overnight stop", |facts| {
        answers(facts, |answers| answers.replaced = true);
    });
    one(Level::Fail, "scheduler", "you ask about /home/ana/overnight", "--root", |facts| {
        answers(facts, |answers| answers.root = "/data/overnight".into());
    });
    let notices = said(|facts| {
        answers(facts, |answers| {
            answers.notices =
                vec![(true, "the disk is full".to_owned()), (false, "GPU 3 is slow".to_owned())];
        });
    });
    assert_eq!(notices.iter().map(|finding| finding.level).collect::<Vec<_>>(), [Level::Fail, Level::Warn]);
}

#[test]
fn a_state_that_no_scheduler_could_use_has_an_exit_code_of_its_own() {
    let refused = one(Level::Fail, "store", "is damaged", "restore a copy", |facts| {
        facts.scheduler = Scheduler::None;
        facts.store = Store::Refused("/s/state.redb is damaged (bad); restore a copy of it".to_owned());
    });
    let theirs = one(Level::Fail, "state", "uid 1001", "chown -R 1000", |facts| {
        facts.folders[3].there = There::Folder { uid: 1001, mode: 0o700 };
    });
    let file = one(Level::Fail, "state", "is not a folder", "move it away", |facts| {
        facts.folders[3].there = There::Other("is not a folder".to_owned());
    });
    for finding in [refused, theirs, file] {
        assert!(finding.unusable, "{finding:#?}");
        assert_eq!(crate::cli::doctor::exit(&[finding]) as u8, 4);
    }
    let failed = fail("disk", "full", "make room");
    assert_eq!(crate::cli::doctor::exit(&[failed]) as u8, 1);
    assert_eq!(crate::cli::doctor::exit(&[warn("disk", "few", "make room")]) as u8, 0);
}

#[test]
fn folders_that_others_may_change_are_told() {
    let mode = |at: usize, mode| {
        move |facts: &mut Facts| facts.folders[at].there = There::Folder { uid: 1000, mode }
    };
    one(Level::Warn, "state", "others may enter", "chmod 700", mode(3, 0o755));
    one(Level::Warn, "inbox", "others may put files", "chmod go-w", mode(1, 0o770));
    one(Level::Warn, "jobs", "others may read", "chmod 700", mode(2, 0o755));
    assert!(said(mode(0, 0o755)).is_empty(), "who shares a root shares it");
    one(
        Level::Warn,
        "state",
        "others may rename what lies in /srv/my data",
        "chmod go-w '/srv/my data'",
        |facts| {
            facts.folders[3].loose = Some("/srv/my data".into());
        },
    );
}

#[test]
fn disks_are_judged_by_what_lies_on_them() {
    let on = |at: usize, change: fn(&mut Disk)| {
        move |facts: &mut Facts| change(facts.folders[at].disk.as_mut().unwrap())
    };
    one(Level::Warn, "inbox", "is on nfs4", "every 30 s", on(1, |disk| disk.kind = "nfs4".to_owned()));
    one(
        Level::Warn,
        "state",
        "is on fuse.sshfs",
        "--state",
        on(3, |disk| disk.kind = "fuse.sshfs".to_owned()),
    );
    assert!(said(on(2, |disk| disk.kind = "nfs4".to_owned())).is_empty(), "output may lie anywhere");
    one(Level::Warn, "state", "in memory", "--state", on(3, |disk| disk.kind = "tmpfs".to_owned()));
    one(Level::Warn, "state", "noexec", "interpreters", on(3, |disk| disk.no_exec = true));
    assert!(one(Level::Fail, "state", "read-only", "mount it", on(3, |disk| disk.read_only = true)).unusable);
    one(Level::Fail, "disk", "jobs: 100 MiB", "make room", on(2, |disk| disk.free = 100 << 20));
    one(Level::Warn, "disk", "jobs: 1 GiB", "make room", on(2, |disk| disk.free = GIB));
    one(Level::Fail, "disk", "12 of 2000000 files", "make room", on(3, |disk| disk.files_free = 12));
    // btrfs counts no files.
    assert!(said(on(3, |disk| (disk.files, disk.files_free) = (0, 0))).is_empty());
}

#[test]
fn what_jobs_lack_is_told() {
    let tools = said(|facts| facts.work.tools[0].1 = None);
    assert!(tools[0].found.contains("no bash") && tools[0].level == Level::Fail, "{tools:#?}");
    assert!(said(|facts| facts.work.tools[1].1 = None).is_empty(), "not everybody needs python");
    one(Level::Warn, "environment", "does not tell", "environment.path", |facts| facts.work.known = false);
    one(Level::Warn, "environment", "others may put programs into /opt/x", "chmod go-w /opt/x", |facts| {
        facts.work.loose = vec!["/opt/x".into()];
    });
}

#[test]
fn a_scheduler_that_does_not_come_back_is_told() {
    one(Level::Warn, "boot", "nothing starts", "overnight service install", |facts| {
        facts.boot = Boot::default();
    });
    one(Level::Warn, "boot", "ends it, jobs too", "enable-linger ana", |facts| facts.boot.lingers = false);
    assert!(said(|facts| facts.boot = Boot { cron: true, ..Boot::default() }).is_empty());
    let unit = Some("/etc/systemd/system/overnight-ana.service".into());
    assert!(said(|facts| facts.boot = Boot { system_unit: unit, ..Boot::default() }).is_empty());
}

#[test]
fn the_driver_is_judged_by_its_own_words() {
    let refused = |absent| {
        move |facts: &mut Facts| {
            facts.gpus = Gpus::Refused { why: "no NVML: x".to_owned(), hint: Some("reboot"), absent };
        }
    };
    one(Level::Warn, "nvml", "no NVML", "reboot", refused(true));
    one(Level::Fail, "nvml", "no NVML", "reboot", refused(false));
    one(Level::Fail, "nvml", "does not answer", "dmesg", |facts| facts.gpus = Gpus::Silent);
    one(Level::Warn, "nvml", "no GPU", "nvidia-smi -L", |facts| facts.gpus = Gpus::Listed(Vec::new()));
    assert!(said(|facts| facts.gpus = Gpus::NotAsked("none".to_owned())).is_empty());
}

#[test]
fn limits_of_the_kernel_are_told_before_they_are_met() {
    one(Level::Warn, "inotify", "126 of 128 instances", "max_user_instances=512", |facts| {
        facts.inotify.instances_used = 126;
    });
    one(Level::Fail, "inotify", "128 of 128 instances", "max_user_instances", |facts| {
        facts.inotify.instances_used = 128;
    });
    one(Level::Warn, "inotify", "199900 of 200000 watches", "max_user_watches=400000", |facts| {
        facts.inotify.watches_used = 199_900;
    });
    one(Level::Warn, "inotify", "queue of 16", "max_queued_events", |facts| facts.inotify.queue = Some(16));
    one(Level::Warn, "inotify", "does not tell", "every 30 s", |facts| facts.inotify.queue = None);
    one(Level::Warn, "limits", "512 open files", "nofile", |facts| facts.account.files.1 = Some(512));
    one(Level::Warn, "limits", "900 of 1000 processes", "nproc", |facts| {
        facts.account.processes = (Some(1000), 900);
    });
    one(Level::Warn, "landlock", "not there", "5.13", |facts| facts.landlock = Err("none".to_owned()));
}

#[test]
fn control_groups_that_enforce_nothing_are_called_advisory() {
    let two = |controllers: &[&str], ours| Cgroup::Two {
        own: "/sys/fs/cgroup/x".into(),
        controllers: controllers.iter().map(ToString::to_string).collect(),
        ours,
    };
    one(Level::Warn, "cgroup", "advisory", "service install", |facts| {
        facts.cgroup = two(&["memory", "pids"], false);
    });
    one(Level::Warn, "cgroup", "without memory and pids", "Delegate", |facts| {
        facts.cgroup = two(&["cpu"], true);
    });
    one(Level::Warn, "cgroup", "version 1, with version 2", "systemd.unified", |facts| {
        facts.cgroup = Cgroup::One { controllers: vec!["cpu".to_owned()], unified: true };
    });
    one(Level::Warn, "cgroup", "none", "mount cgroup2", |facts| facts.cgroup = Cgroup::None);
}

#[test]
fn a_clock_that_nothing_keeps_is_told_and_suspend_is_no_mistake() {
    one(Level::Warn, "clock", "knows of nothing", "set-ntp", |facts| facts.clock.synchronised = Some(false));
    one(Level::Fail, "clock", "the year 1970", "set it", |facts| facts.clock.year = 1970);
    let mut facts = fine();
    (facts.clock.suspended_ms, facts.clock.synchronised) = (8 * 3_600_000, None);
    let all = judge(&facts);
    let clock = all.iter().find(|finding| finding.what == "clock").unwrap();
    assert!(clock.level == Level::Ok && clock.found.contains("suspended for 8h"), "{clock:#?}");
}
