//! Processes that will not behave, and the groups that hold them: the real binary and real processes, here with whatever
//! this machine has of control groups. What it does not have is skipped, and said.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "cgroups/outlived.rs"]
mod outlived;
#[path = "supervisor/rig.rs"]
mod rig;
#[path = "cgroups/scheduler.rs"]
mod scheduler;
#[path = "cgroups/stranger.rs"]
mod stranger;
#[allow(dead_code, reason = "no terminal is needed here")]
#[path = "support/mod.rs"]
mod support;

use overnight::cgroup::{Controller, Groups, Layout};
use overnight::engine::Engine;
use overnight::model::{Amount, Bytes, EndedBy, EnforcedBy, Enforcement, LeaseId, Run, RunEnd};
use overnight::sched::{EngineReport, Launch, StopKind};
use overnight::supervisor::{process, record};
use rig::{Scheduler, cancel, is_gone, job, launch, shell, wait_for};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Processes that all groups of the fork bomb's test may have together.
const MOST: usize = 120;

/// Says why a test does nothing here.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// A scheduler whose attempts get groups, if this machine has any for them.
fn with_groups() -> Option<Scheduler> {
    let it = Scheduler::new();
    if it.layout().has_groups() {
        return Some(it);
    }
    skipped(&format!("no cgroups for jobs here: {}", it.layout()));
    None
}

/// The same, with a limit on this.
fn limited_in(controller: Controller) -> Option<Scheduler> {
    let it = with_groups()?;
    let layout = it.layout();
    let mut all = layout.version1.iter().flat_map(|tree| &tree.controllers).chain(&layout.controllers);
    if all.any(|one| *one == controller) {
        return Some(it);
    }
    skipped(&format!("{} cannot be limited here: {layout}", controller.name()));
    None
}

/// Every kind of groups that this machine has: what a scheduler would use, and version 2 alone, without limits, where it
/// would use version 1.
fn every_kind() -> Vec<Scheduler> {
    let mut all: Vec<Scheduler> = with_groups().into_iter().collect();
    let unified = Path::new("/sys/fs/cgroup/unified");
    if all.first().is_some_and(|it| it.layout().version2.is_none()) && unified.is_dir() {
        let name = format!("overnight-{}-test-{:x}", std::process::id(), overnight::clock::wall_ms());
        let top = unified.join(name);
        if std::fs::create_dir(&top).is_ok() {
            let layout = Layout {
                version2: Some(top.clone()),
                tops: vec![top],
                why: Some("a test".to_owned()),
                ..Layout::default()
            };
            all.push(Scheduler::with(|it| it.cgroups = Some(layout)));
        }
    }
    all
}

fn asking(memory: Option<Bytes>, cpus: Option<u32>, text: &str) -> Launch {
    let mut spec = job(Run::Shell(text.to_owned()));
    spec.request.memory = memory.map(Amount::Some);
    spec.request.cpus = cpus.map(Amount::Some);
    let mut launch = launch(spec);
    launch.memory = memory.unwrap_or(Bytes::gib(1));
    launch.cores = cpus.unwrap_or(2);
    launch
}

/// Work that would harm the machine begins only once it is known to be held to what this picks.
fn begin_once(it: &mut Scheduler, mut launch: Launch, held: impl Fn(&Enforcement) -> bool) {
    let mut spec = (*launch.spec).clone();
    let Run::Shell(text) = &spec.work.run else { panic!("shell text") };
    spec.work.run = Run::Shell(format!("until [ -e $OVERNIGHT_OUTPUT/begin ]; do sleep 0.01; done\n{text}"));
    launch.spec = Arc::new(spec);
    it.launch(&launch);
    let found = it.until_held();
    assert!(held(&found), "{found}");
    std::fs::write(it.output("begin"), "").unwrap();
}

/// The groups of the first attempt of a lease, as its journal has them.
fn groups(it: &Scheduler) -> Groups {
    let journal = it.run_dir(1).join(record::NAME);
    wait_for(|| record::read(&journal).ok()?.intent().map(|intent| intent.groups.clone()))
}

#[test]
fn every_attempt_has_groups_with_its_token_in_their_name_and_they_go_with_it() {
    for mut it in every_kind() {
        let launch = shell("cat /proc/self/cgroup; sleep 600");
        it.launch(&launch);
        it.until_started();
        wait_for(|| it.log().contains("0::/").then_some(()));
        let groups = groups(&it);
        let name = format!("{}-0-1", launch.token);
        let (log, layout) = (it.log(), it.layout());
        assert_eq!(groups.all().count(), layout.version1.len() + usize::from(layout.version2.is_some()));
        for group in groups.all() {
            assert_eq!(group.file_name().unwrap().to_str(), Some(name.as_str()));
            assert!(!groups.is_empty() && group.is_dir());
        }
        assert_eq!(log.matches(&format!("/{name}\n")).count(), groups.all().count(), "{log}");
        // The supervisor is not in them: it is to see their end.
        assert!(!groups.holds(it.supervisor(1).pid));
        it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
        assert_eq!(it.until_ended().by, EndedBy::Proven);
        assert!(groups.is_empty());
        it.until_collected().unwrap();
        it.engine().dismiss(LeaseId(1)).unwrap();
        wait_for(|| groups.all().all(|group| !group.exists()).then_some(()));
        let supervisor = it.supervisor(1);
        wait_for(|| (!process::is_running(supervisor)).then_some(()));
        it.drop_engine();
        let left: Vec<&PathBuf> = layout.tops.iter().filter(|top| top.exists()).collect();
        assert!(left.is_empty(), "a scheduler that ends leaves nothing: {left:?}");
    }
}

#[test]
fn what_is_not_asked_for_is_counted_and_not_enforced() {
    let Some(mut it) = limited_in(Controller::Pids) else { return };
    it.launch(&asking(None, None, "sleep 600"));
    let held = it.until_held();
    assert!(!held.memory && !held.cpus && held.processes, "{held}");
    assert_ne!(held.by, EnforcedBy::Nothing);
    let groups = groups(&it);
    let files = ["memory.limit_in_bytes", "memory.max"].map(|file| read_of(&groups, file));
    let free = |text: &String| text == "max" || text.parse::<u64>().is_ok_and(|bytes| bytes > 1 << 60);
    assert!(files.iter().flatten().all(free), "{files:?}");
}

/// What a file in one of the groups says.
fn read_of(groups: &Groups, file: &str) -> Option<String> {
    let text = groups.all().find_map(|group| std::fs::read_to_string(group.join(file)).ok())?;
    Some(text.trim().to_owned())
}

#[test]
fn without_groups_the_work_runs_all_the_same_and_it_is_said_that_its_limits_are_advisory() {
    let mut it = Scheduler::with(|it| it.cgroups = Some(Layout::none("not in this test")));
    it.launch(&asking(Some(Bytes::mib(64)), Some(1), "exit 3"));
    let held = it.until_held();
    assert_eq!(held.to_string(), "advisory: not in this test");
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::Exited { code: 3 });
    for what in ["request.memory is advisory", "request.cpus is advisory"] {
        assert!(end.notes.iter().any(|note| note.starts_with(what)), "{:?}", end.notes);
    }
}

#[test]
fn groups_that_cannot_be_made_are_no_failure_of_the_work() {
    let Some(mut it) = with_groups() else { return };
    let mut layout = it.layout();
    // A directory that cannot be, for every kind.
    let nowhere = |top: &mut PathBuf| *top = PathBuf::from("/proc/self/overnight-nowhere");
    layout.version2.iter_mut().for_each(nowhere);
    layout.version1.iter_mut().for_each(|tree| nowhere(&mut tree.top));
    it.drop_engine();
    it.cgroups = Some(layout);
    it.start_engine();
    it.launch(&asking(Some(Bytes::mib(64)), None, "exit 3"));
    let held = it.until_held();
    assert!(held.by == EnforcedBy::Nothing && held.why.is_some_and(|why| why.contains("overnight-nowhere")));
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 3 });
}

#[test]
fn work_that_takes_more_memory_than_it_asked_for_is_killed_and_that_is_certain() {
    let Some(mut it) = limited_in(Controller::Memory) else { return };
    begin_once(&mut it, asking(Some(Bytes::mib(48)), None, "exec tail /dev/zero"), |held| held.memory);
    let end = it.until_ended();
    assert_eq!((&end.how, end.by), (&RunEnd::OutOfMemory { certain: true }, EndedBy::Proven));
    assert!(end.notes.iter().any(|note| note.contains("request.memory")), "{:?}", end.notes);
}

#[test]
fn a_grandchild_that_is_killed_for_memory_is_a_failure_though_the_main_process_exits_with_0() {
    let Some(mut it) = limited_in(Controller::Memory) else { return };
    let work = asking(Some(Bytes::mib(48)), None, "(tail /dev/zero || true) & wait; echo fine; exit 0");
    begin_once(&mut it, work, |held| held.memory);
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::OutOfMemory { certain: true });
    assert!(it.log().contains("fine"), "the main process was left alone");
    assert!(end.notes.iter().any(|note| note.contains("exited with 0")), "{:?}", end.notes);
}

#[test]
fn a_cancel_stays_a_cancel_also_when_memory_ran_out_before() {
    let Some(mut it) = limited_in(Controller::Memory) else { return };
    let work = asking(Some(Bytes::mib(48)), None, "(tail /dev/zero || true) & wait; echo went; sleep 600");
    begin_once(&mut it, work, |held| held.memory);
    wait_for(|| it.log().contains("went").then_some(()));
    it.stop(1, &cancel());
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::Cancelled { by: "ana".to_owned() });
    assert!(end.notes.iter().any(|note| note.contains("for memory")), "{:?}", end.notes);
}

#[test]
fn the_work_gets_no_more_processor_time_than_its_cores() {
    let Some(mut it) = limited_in(Controller::Cpu) else { return };
    it.launch(&asking(None, Some(3), "sleep 600"));
    let held = it.until_held();
    assert!(held.cpus && !held.memory, "{held}");
    let groups = groups(&it);
    let quota = read_of(&groups, "cpu.cfs_quota_us").or_else(|| read_of(&groups, "cpu.max")).unwrap();
    assert!(quota == "300000" || quota == "300000 100000", "{quota}");
    // Asked for or not, its share of the processors is that of its cores.
    let share = read_of(&groups, "cpu.shares").or_else(|| read_of(&groups, "cpu.weight")).unwrap();
    assert!(share == "3072" || share == "300", "{share}");
}

#[test]
fn a_fork_bomb_is_held_and_ended_and_others_run_beside_it() {
    let Some(mut it) = limited_in(Controller::Pids) else { return };
    // All of this test's groups together: the machine is safe whatever the bomb does.
    for top in &it.layout().tops {
        let _ = std::fs::write(top.join("pids.max"), MOST.to_string());
    }
    let bomb = shell("sh -c 'f() { f | f & }; f; sleep 600'");
    begin_once(&mut it, bomb.clone(), |held| held.processes);
    let groups = groups(&it);
    // It has met its limit.
    wait_for(|| {
        let text = read_of(&groups, "pids.events")?;
        text.strip_prefix("max ").is_some_and(|count| count.trim() != "0").then_some(())
    });
    assert!(groups.processes().len() <= MOST);
    // The scheduler and its other jobs can still start processes.
    let mut other = shell("true | true | true; exit 7");
    (other.lease, other.folder) = (LeaseId(2), "2-test".to_owned());
    other.token.0.replace_range(..4, "ffff");
    assert!(groups.all().any(|group| std::fs::write(group.join("pids.max"), MOST.to_string()).is_ok()));
    for top in &it.layout().tops {
        let _ = std::fs::write(top.join("pids.max"), (MOST + 40).to_string());
    }
    it.launch(&other);
    let code = it.until(|news| match news {
        EngineReport::Ended { lease: LeaseId(2), end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(code, RunEnd::Exited { code: 7 });
    it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    let end = it.until_ended();
    assert_eq!((end.how, end.by), (RunEnd::Cancelled { by: "ana".to_owned() }, EndedBy::Proven));
    assert!(groups.is_empty());
    let left = process::all().into_iter().filter(|seen| process::has_token(seen.id.pid, &bomb.token.0));
    assert_eq!(left.count(), 0);
}

#[test]
fn work_that_uses_up_its_descriptors_ends_with_its_own_code() {
    let mut it = Scheduler::new();
    let end = it.run(
        "ulimit -n 40; n=3; while eval \"exec $n</dev/null\"; do n=$((n + 1)); done 2>/dev/null
         [ $n -ge 39 ] || exit 1
         exit 9",
    );
    assert_eq!((end.how, end.by), (RunEnd::Exited { code: 9 }, EndedBy::Proven));
    it.until_collected().unwrap();
}

#[test]
fn thousands_of_zombies_are_reaped_and_the_exit_code_is_the_main_process_s() {
    let mut it = Scheduler::new();
    if !Path::new("/usr/bin/perl").exists() {
        return skipped("perl makes the zombies");
    }
    // A parent that never waits; then it is an orphan itself.
    let end = it.run(
        r#"perl -e 'for (1..5000) { my $p = fork; die "fork: $!" unless defined $p; exit 0 unless $p }
             open F, ">", "$ENV{OVERNIGHT_OUTPUT}/made"; close F; sleep 600' &
           until [ -e $OVERNIGHT_OUTPUT/made ]; do sleep 0.05; done
           ls /proc | grep -c '^[0-9]' >$OVERNIGHT_OUTPUT/count
           exit 5"#,
    );
    assert_eq!((end.how, end.by), (RunEnd::Exited { code: 5 }, EndedBy::Proven));
    assert!(it.number("count") >= 5000, "they were there");
    it.until_collected().unwrap();
}

#[test]
fn a_cancel_ends_a_parent_of_thousands_of_zombies() {
    let mut it = Scheduler::new();
    if !Path::new("/usr/bin/perl").exists() {
        return skipped("perl makes the zombies");
    }
    it.launch(&shell(
        r#"exec perl -e 'for (1..5000) { my $p = fork; die "fork: $!" unless defined $p; exit 0 unless $p }
             $SIG{TERM} = "IGNORE"; open F, ">", "$ENV{OVERNIGHT_OUTPUT}/made"; close F; sleep 1 while 1'"#,
    ));
    wait_for(|| it.output("made").exists().then_some(()));
    it.until_started();
    it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    let end = it.until_ended();
    assert_eq!((end.how, end.by), (RunEnd::Cancelled { by: "ana".to_owned() }, EndedBy::Proven));
}

#[test]
fn what_has_left_everything_but_its_group_is_found_when_the_supervisor_is_killed() {
    for mut it in every_kind() {
        // No parent, no session and no environment tells whose it is.
        it.launch(&shell(
            "(env -i setsid sh -c 'echo $$ >'$OVERNIGHT_OUTPUT'/away; exec sleep 600' &)
             echo $$ >$OVERNIGHT_OUTPUT/main; exec sleep 600",
        ));
        let (away, main) = (it.number("away"), it.number("main"));
        it.until_started();
        let groups = groups(&it);
        // The main process first, so that not even its session is there to go by.
        let supervisor = it.supervisor(1);
        assert!(process::signal(supervisor, Signal::STOP));
        assert!(process::signal(process::look(main).unwrap().id, Signal::KILL));
        assert!(process::signal(supervisor, Signal::KILL));
        let gone = it.until(|news| match news {
            EngineReport::Missing { gone, .. } => Some(*gone),
            EngineReport::Ended { .. } => panic!("nobody saw an end"),
            _ => None,
        });
        assert!(gone && is_gone(away) && is_gone(main));
        it.until_collected().unwrap();
        assert!(groups.all().all(|group| !group.exists()), "nobody needs them any more");
    }
}

#[test]
fn groups_that_killed_supervisors_have_left_are_swept_at_the_next_start() {
    let Some(mut it) = with_groups() else { return };
    let groups = it.layout().groups("0123abcd", 0, 1);
    groups.all().for_each(|group| std::fs::create_dir(group).unwrap());
    it.drop_engine();
    it.start_engine();
    assert!(groups.all().all(|group| !group.exists()));
}

#[test]
fn the_work_goes_first_when_memory_runs_out() {
    let mut it = Scheduler::new();
    it.launch(&shell("cat /proc/self/oom_score_adj; sleep 600"));
    it.until_started();
    wait_for(|| (it.log() == "500\n").then_some(()));
    let score = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", it.supervisor(1).pid)).unwrap();
    assert!(score.trim().parse::<i32>().unwrap() <= 0, "{score}");
}
