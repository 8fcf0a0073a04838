//! Supervisors as they run: the real binary, real processes, real journals, through the local engine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "supervisor/rig.rs"]
mod rig;

use overnight::cgroup::{Groups, Layout, Limits};
use overnight::engine::Engine;
use overnight::model::{
    AttemptNo, Bytes, Code, Collected, EndedBy, JobId, LeaseId, Run, RunEnd, Setup, Span, Stop, StopSignal,
    TaskIx, Token, Uuid,
};
use overnight::sched::{EngineReport, LaunchDevice, StopKind};
use overnight::supervisor::marks::{self, Marks, Stream};
use overnight::supervisor::message::{self, News, Order};
use overnight::supervisor::process;
use overnight::supervisor::record;
use overnight::supervisor::spec::{Devices, Environment, LaunchSpec, WorkDir};
use rig::{COLLECTOR, Frozen, PATIENCE, Scheduler, cancel, is_gone, job, launch, shell, wait_for};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

#[test]
fn a_run_reports_its_start_its_own_exit_code_and_its_collection() {
    let mut it = Scheduler::new();
    it.launch(&shell("echo out; echo err >&2; exit 7"));
    let started = it.until_started();
    let end = it.until_ended();
    assert_eq!((end.how, end.by), (RunEnd::Exited { code: 7 }, EndedBy::Proven));
    assert!(end.at.since(&started).is_some());
    assert!(end.peak_memory.is_some_and(|peak| peak > Bytes::mib(1)));
    assert_eq!(it.until_collected().unwrap().notes, ["collected"]);
    assert_eq!(it.log(), "out\nerr\n");
    let order = std::fs::read_to_string(it.run_dir(1).join("collected-0-1.json.order")).unwrap();
    assert!(order.contains(r#""partial":true"#), "{order}");
}

#[test]
fn a_supervisor_leaves_when_it_is_dismissed_and_not_before() {
    let mut it = Scheduler::new();
    it.run("true");
    it.until_collected().unwrap();
    let supervisor = it.supervisor(1);
    assert!(process::is_running(supervisor));
    it.engine().dismiss(LeaseId(1)).unwrap();
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
    let state = record::read(&it.run_dir(1).join(record::NAME)).unwrap();
    assert!(matches!(state.records.last(), Some(record::Record::Returned { .. })));
}

#[test]
fn a_signal_that_is_not_ours_is_told_apart() {
    let mut it = Scheduler::new();
    assert_eq!(it.run("kill -SEGV $$").how, RunEnd::Signalled { signal: 11 });
}

#[test]
fn a_program_that_is_not_there_was_not_started() {
    let mut it = Scheduler::new();
    it.launch(&launch(job(Run::Argv(vec!["no-such-program".to_owned()]))));
    let end = it.until_ended();
    assert!(matches!(&end.how, RunEnd::NotStarted { why } if why.contains("no-such-program")), "{end:?}");
    assert_eq!(it.until_collected().unwrap(), Collected::default());
}

#[test]
fn a_command_that_is_not_found_is_explained() {
    let mut it = Scheduler::new();
    let end = it.run("no-such-program --x");
    assert_eq!(end.how, RunEnd::Exited { code: 127 });
    assert!(end.notes.iter().any(|note| note.contains("not found")), "{:?}", end.notes);
}

#[test]
fn at_the_limit_the_work_is_warned_and_may_finish() {
    let mut it = Scheduler::new();
    let mut launch = shell("trap 'echo saving; exit 75' TERM; echo ready; while :; do sleep 0.05; done");
    launch.limit = Some(Span(300));
    it.launch(&launch);
    let started = it.until_started();
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::LimitReached);
    assert!(end.notes.iter().any(|note| note.contains("75")), "{:?}", end.notes);
    let took = end.at.since(&started).unwrap().0;
    assert!((300..1500).contains(&took), "{took} ms");
    // The shell also says that its sleep was terminated.
    assert!(it.log().starts_with("ready\n") && it.log().ends_with("saving\n"));
}

#[test]
fn work_that_ignores_the_warning_is_killed_after_the_grace() {
    let mut it = Scheduler::new();
    let mut spec = job(Run::Shell("trap '' TERM; while :; do sleep 0.05; done".to_owned()));
    spec.work.stop.grace = Span(400);
    let mut launch = launch(spec);
    launch.limit = Some(Span(200));
    it.launch(&launch);
    let started = it.until_started();
    let end = it.until_ended();
    assert_eq!((&end.how, end.by), (&RunEnd::LimitReached, EndedBy::Proven));
    assert!(end.at.since(&started).unwrap().0 >= 600);
    assert!(end.notes.iter().any(|note| note.contains("killed")), "{:?}", end.notes);
}

#[test]
fn a_warning_reaches_the_program_behind_the_shell_and_its_exit_code_survives() {
    let mut it = Scheduler::new();
    // Two commands: bash stays the parent, and must not die of the warning before its child has saved.
    let mut spec = job(Run::Shell(
        "bash -c 'trap \"sleep 0.3; echo saved; exit 75\" USR1; echo ready; while :; do sleep 0.05; done'\necho after"
            .to_owned(),
    ));
    spec.work.stop = Stop { signal: StopSignal::Usr1, grace: Span(5000) };
    it.launch(&launch(spec));
    it.until_started();
    wait_for(|| it.log().contains("ready").then_some(()));
    it.stop(1, &cancel());
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::Cancelled { by: "ana".to_owned() });
    assert!(end.notes.iter().any(|note| note.contains("75")), "{:?}", end.notes);
    // Bash may also name the signal that ended its sleep.
    let log = it.log();
    assert!(log.starts_with("ready\n") && log.contains("saved\n") && !log.contains("after"), "{log}");
}

#[test]
fn a_second_cancel_shortens_the_grace_to_a_kill() {
    let mut it = Scheduler::new();
    let mut spec = job(Run::Shell("trap '' TERM; echo ready; while :; do sleep 0.05; done".to_owned()));
    spec.work.stop.grace = Span::secs(600);
    it.launch(&launch(spec));
    it.until_started();
    wait_for(|| it.log().contains("ready").then_some(()));
    it.stop(1, &cancel());
    it.stop(1, &cancel());
    assert_eq!(it.until_ended().how, RunEnd::Cancelled { by: "ana".to_owned() });
}

#[test]
fn a_run_that_is_lost_is_killed_at_once() {
    let mut it = Scheduler::new();
    it.launch(&shell("sleep 600"));
    it.until_started();
    it.stop(1, &StopKind::Lost { why: "GPU 0 fell off the bus".to_owned() });
    assert_eq!(it.until_ended().how, RunEnd::Lost { why: "GPU 0 fell off the bus".to_owned() });
}

#[test]
fn whoever_leaves_the_session_is_ended_with_the_run() {
    let mut it = Scheduler::new();
    let end = it.run(
        "setsid sleep 600 & echo $! >$OVERNIGHT_OUTPUT/setsid
         (setsid bash -c 'trap \"\" TERM HUP; sleep 600 & echo $! >$OVERNIGHT_OUTPUT/double; wait' &)
         while [ ! -s $OVERNIGHT_OUTPUT/double ]; do sleep 0.01; done
         exit 3",
    );
    assert_eq!((end.how, end.by), (RunEnd::Exited { code: 3 }, EndedBy::Proven));
    assert!(is_gone(it.number("setsid")));
    assert!(is_gone(it.number("double")));
}

#[test]
fn a_cancel_ends_the_whole_tree_also_where_the_warning_is_ignored() {
    let mut it = Scheduler::new();
    let mut spec = job(Run::Shell(
        "(trap '' TERM; setsid sleep 600 & echo $! >$OVERNIGHT_OUTPUT/pid; wait) & sleep 600".to_owned(),
    ));
    spec.work.stop.grace = Span(300);
    it.launch(&launch(spec));
    let pid = it.number("pid");
    it.stop(1, &cancel());
    let end = it.until_ended();
    assert_eq!((end.how, end.by), (RunEnd::Cancelled { by: "ana".to_owned() }, EndedBy::Proven));
    assert!(is_gone(pid));
}

#[test]
fn thousands_of_orphans_are_reaped_and_do_not_confuse_the_exit_code() {
    let mut it = Scheduler::new();
    let end = it.run("for i in $(seq 2000); do (true &) ; done; exit 5");
    assert_eq!(end.how, RunEnd::Exited { code: 5 });
}

#[test]
fn a_killed_supervisor_leaves_nobody_behind_and_the_lease_is_missing() {
    let mut it = Scheduler::new();
    it.launch(&shell("setsid sleep 600 & echo $! >$OVERNIGHT_OUTPUT/away; sleep 601 & echo $! >$OVERNIGHT_OUTPUT/near; wait"));
    let (away, near) = (it.number("away"), it.number("near"));
    it.until_started();
    assert!(process::signal(it.supervisor(1), rustix::process::Signal::KILL));
    let (heartbeat, at) = it.until(|news| match news {
        EngineReport::Missing { heartbeat, at, .. } => Some((*heartbeat, *at)),
        EngineReport::Ended { .. } => panic!("nobody saw an end"),
        _ => None,
    });
    assert!(at.unwrap().since(&heartbeat.unwrap()).is_some());
    assert!(is_gone(away) && is_gone(near));
    // What it had written by then comes back all the same.
    assert_eq!(it.until_collected().unwrap().notes, ["collected"]);
}

#[test]
fn a_scheduler_that_comes_back_adopts_what_lives_also_below_a_long_path() {
    let mut it = Scheduler::with(|it| it.root = "a/long/way/down".repeat(12));
    it.launch(&shell("while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done; exit 9"));
    let started = it.until_started();
    let token =
        wait_for(|| record::read(&it.run_dir(1).join(record::NAME)).ok()?.intent().map(|i| i.token.clone()));
    it.drop_engine();
    it.start_engine();
    it.engine().survey(&[(LeaseId(1), token)]).unwrap();
    assert_eq!(it.until_started(), started);
    std::fs::write(it.output("go"), "").unwrap();
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 9 });
    it.until_collected().unwrap();
    let supervisor = it.supervisor(1);
    it.engine().dismiss(LeaseId(1)).unwrap();
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
}

#[test]
fn what_ended_while_no_scheduler_was_there_has_its_true_code_and_time() {
    let mut it = Scheduler::new();
    it.launch(&shell("while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done; exit 7"));
    it.until_started();
    let supervisor = it.supervisor(1);
    let token = record::read(&it.run_dir(1).join(record::NAME)).unwrap().intent().unwrap().token.clone();
    it.drop_engine();
    let before = overnight::clock::now();
    std::fs::write(it.output("go"), "").unwrap();
    // With nobody to dismiss it, it leaves once the output is home.
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
    let after = overnight::clock::now();
    it.start_engine();
    it.engine().survey(&[(LeaseId(1), token)]).unwrap();
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::Exited { code: 7 });
    assert!(before.boottime_ms <= end.at.boottime_ms && end.at.boottime_ms <= after.boottime_ms);
    it.until_collected().unwrap();
}

#[test]
fn a_lease_that_was_never_launched_is_closed_for_good() {
    let mut it = Scheduler::new();
    let late = shell("echo ran >$OVERNIGHT_OUTPUT/ran");
    it.engine().survey(&[(LeaseId(1), late.token.clone())]).unwrap();
    let not_launched = |news: &EngineReport| matches!(news, EngineReport::NotLaunched { .. }).then_some(());
    it.until(not_launched);
    // A launch that comes after that starts nothing.
    it.launch(&late);
    it.until(not_launched);
    assert!(!it.output("ran").exists());
}

#[test]
fn launching_twice_runs_once() {
    let mut it = Scheduler::new();
    let launch =
        shell("echo x >>$OVERNIGHT_OUTPUT/count; while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done");
    it.launch(&launch);
    it.until_started();
    wait_for(|| it.output("count").exists().then_some(()));
    it.drop_engine();
    it.start_engine();
    it.launch(&launch);
    it.until_started();
    std::fs::write(it.output("go"), "").unwrap();
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 0 });
    assert_eq!(std::fs::read_to_string(it.output("count")).unwrap(), "x\n");
}

#[test]
fn another_boot_is_believed_and_nobody_is_signalled() {
    let mut it = Scheduler::new();
    let mut bystander = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let id = process::look(bystander.id() as i32).unwrap().id;
    let token = Token("0123456789abcdef0123456789abcdef".to_owned());
    let at = overnight::model::Now { boot: overnight::model::BootId(1), boottime_ms: 5000, wall_ms: 1 };
    std::fs::create_dir_all(it.run_dir(1)).unwrap();
    let intent = record::Intent {
        lease: LeaseId(1),
        token: token.clone(),
        job: JobId(1),
        task: TaskIx(0),
        attempt: AttemptNo(1),
        supervisor: id,
        groups: Groups::default(),
        at,
    };
    let mut journal =
        record::Journal::create(&it.run_dir(1), &record::Record::Intent(intent)).unwrap().unwrap();
    journal
        .append(record::Record::Started {
            task: TaskIx(0),
            attempt: AttemptNo(1),
            main: id,
            enforcement: None,
            at,
        })
        .unwrap();
    it.engine().survey(&[(LeaseId(1), token)]).unwrap();
    let (heartbeat, gone) = it.until(|news| match news {
        EngineReport::Missing { heartbeat, at, .. } => Some((*heartbeat, *at)),
        _ => None,
    });
    assert_eq!((heartbeat, gone), (Some(at), None));
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn the_work_sees_its_own_environment_and_nothing_of_the_schedulers() {
    let mut it = Scheduler::new();
    let mut spec = job(Run::Argv(vec!["env".to_owned()]));
    spec.work.env.insert("MINE".to_owned(), "1".to_owned());
    let mut launch = launch(spec);
    launch.limit = Some(Span::secs(3600));
    launch.devices = vec![
        LaunchDevice { uuid: Uuid("GPU-sim-b".to_owned()), index: 3, real: false },
        LaunchDevice { uuid: Uuid("GPU-sim-a".to_owned()), index: 1, real: false },
    ];
    it.launch(&launch);
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 0 });
    let log = it.log();
    let seen: BTreeMap<&str, &str> = log.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!(seen["CUDA_VISIBLE_DEVICES"], "3,1");
    assert_eq!(seen["OVERNIGHT_GPU_UUIDS"], "GPU-sim-b,GPU-sim-a");
    assert_eq!(seen["OVERNIGHT_GPU_COUNT"], "2");
    assert_eq!(seen["OVERNIGHT_LIMIT_S"], "3600");
    assert_eq!(seen["OVERNIGHT_TOKEN"], launch.token.0);
    assert_eq!(seen["MINE"], "1");
    let known = [
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
        "HOME",
        "LANG",
        "LOGNAME",
        "MASTER_ADDR",
        "MASTER_PORT",
        "MINE",
        "NVIDIA_VISIBLE_DEVICES",
        "OVERNIGHT_ATTEMPT",
        "OVERNIGHT_CODE",
        "OVERNIGHT_CPUS",
        "OVERNIGHT_DATA",
        "OVERNIGHT_DOCKER_GPUS",
        "OVERNIGHT_GPU_COUNT",
        "OVERNIGHT_GPU_UUIDS",
        "OVERNIGHT_JOB",
        "OVERNIGHT_LIMIT_AT",
        "OVERNIGHT_LIMIT_S",
        "OVERNIGHT_OUTPUT",
        "OVERNIGHT_PORT",
        "OVERNIGHT_TASK",
        "OVERNIGHT_TOKEN",
        "PATH",
        "PYTHONUNBUFFERED",
        "SHELL",
        "TMPDIR",
        "USER",
    ];
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), known);
}

#[test]
fn a_job_without_gpus_sees_none() {
    let mut it = Scheduler::new();
    it.run("echo \"[${CUDA_VISIBLE_DEVICES-unset}]\"");
    assert_eq!(it.log(), "[]\n");
}

#[test]
fn the_work_starts_clean() {
    let mut it = Scheduler::new();
    it.run(
        "echo umask $(umask) core $(ulimit -c) stdin $(readlink /proc/self/fd/0)
         [ $(ulimit -Sn) = $(ulimit -Hn) ] && echo nofile
         [ $(ps -o sid= -p $$) = $$ ] && echo leads
         grep -E 'Sig(Blk|Ign)' /proc/self/status
         cat /proc/self/oom_score_adj
         ls /proc/self/fd | wc -l",
    );
    let log = it.log();
    assert!(log.contains("umask 0077 core 0 stdin /dev/null\nnofile\nleads\n"), "{log}");
    let mask = |key: &str| {
        let line = log.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        // 32 and 33 belong to the C library, which lets nobody set them.
        u64::from_str_radix(line.trim(), 16).unwrap() & !(0b11 << 31)
    };
    assert_eq!((mask("SigBlk:"), mask("SigIgn:")), (0, 0), "{log}");
    assert!(log.ends_with("\n500\n4\n"), "{log}");
}

#[test]
fn data_is_linked_and_never_over_what_is_there() {
    let mut it = Scheduler::new();
    let (coco, live) = (it.dir.path().join("coco"), it.dir.path().join("live"));
    std::fs::create_dir_all(&coco).unwrap();
    std::fs::write(coco.join("file"), "data").unwrap();
    std::fs::create_dir_all(&live).unwrap();
    std::fs::write(live.join("taken"), "mine").unwrap();
    let mut spec = job(Run::Shell(
        "cat coco/file $OVERNIGHT_DATA/coco/file $OVERNIGHT_DATA/taken/file taken; pwd".to_owned(),
    ));
    spec.work.dir = Some(live.clone());
    spec.work.code = Code::Live;
    spec.data = ["coco", "taken"]
        .map(|name| overnight::model::DataItem {
            from: overnight::model::DataFrom::Path(coco.clone()),
            name: name.to_owned(),
            stage: overnight::model::Stage::Link,
            sha256: None,
        })
        .to_vec();
    it.launch(&launch(spec));
    let end = it.until_ended();
    assert_eq!(end.how, RunEnd::Exited { code: 0 });
    assert_eq!(it.log(), format!("datadatadatamine{}\n", live.display()));
    assert!(end.notes.iter().any(|note| note.contains("`taken`")), "{:?}", end.notes);
    assert_eq!(std::fs::read_to_string(live.join("taken")).unwrap(), "mine");
}

#[test]
fn a_prepared_directory_and_an_earlier_jobs_output_are_where_they_are_said_to_be() {
    let mut it = Scheduler::new();
    let prepared = it.paths().prepared(JobId(1), 0, 1);
    std::fs::create_dir_all(&prepared).unwrap();
    std::fs::write(prepared.join("train.py"), "code\n").unwrap();
    let earlier = it.paths().jobs().join("9-prepare");
    std::fs::create_dir_all(earlier.join("attempts/2/output/corpus")).unwrap();
    std::fs::write(earlier.join("attempts/2/output/corpus/a"), "text\n").unwrap();
    std::os::unix::fs::symlink("attempts/2/output", earlier.join("output")).unwrap();
    let mut spec = job(Run::Shell("cat train.py corpus/a; echo $OVERNIGHT_CODE".to_owned()));
    spec.work.dir = Some("/src/detector".into());
    spec.data = vec![overnight::model::DataItem {
        from: overnight::model::DataFrom::Job { job: "prepare".to_owned(), path: "corpus".to_owned() },
        name: "corpus".to_owned(),
        stage: overnight::model::Stage::Link,
        sha256: None,
    }];
    let mut launch = launch(spec);
    launch.prepared = true;
    launch.sources = vec![Some("9-prepare/output".into())];
    it.launch(&launch);
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 0 });
    assert_eq!(it.log(), format!("code\ntext\n{}\n", prepared.display()));
}

#[test]
fn data_that_is_gone_by_the_start_is_the_works_own_failure_and_is_named() {
    let mut it = Scheduler::new();
    let mut spec = job(Run::Shell("true".to_owned()));
    spec.data = vec![overnight::model::DataItem {
        from: overnight::model::DataFrom::Path("/nowhere/coco".into()),
        name: "coco".to_owned(),
        stage: overnight::model::Stage::Link,
        sha256: None,
    }];
    it.launch(&launch(spec));
    let end = it.until_ended();
    assert!(matches!(&end.how, RunEnd::NotStarted { why } if why.contains("/nowhere/coco")), "{end:?}");
}

#[test]
fn a_device_that_somebody_else_holds_is_not_run_on() {
    let mut it = Scheduler::new();
    let mut launch = shell("echo ran >$OVERNIGHT_OUTPUT/ran; sleep 600");
    launch.devices = vec![LaunchDevice { uuid: Uuid("GPU-real".to_owned()), index: 0, real: true }];
    it.launch(&launch);
    it.until_started();
    let mut second = launch.clone();
    second.lease = LeaseId(2);
    second.token = Token("f".repeat(32));
    it.launch(&second);
    let why = it.until(|news| match news {
        EngineReport::NotLaunched { lease: LeaseId(2), why, .. } => Some(why.clone()),
        EngineReport::Started { lease: LeaseId(2), .. } => panic!("ran on a device that is held"),
        _ => None,
    });
    assert!(why.contains("GPU-real") && why.contains("1 test"), "{why}");
    it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    it.until_ended();
    it.until_collected().unwrap();
    // Held until the devices are proven clean, not only until the run has ended.
    let mut third = second.clone();
    third.lease = LeaseId(3);
    it.launch(&third);
    it.until(|news| matches!(news, EngineReport::NotLaunched { lease: LeaseId(3), .. }).then_some(()));
    let supervisor = it.supervisor(1);
    it.engine().dismiss(LeaseId(1)).unwrap();
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
    third.lease = LeaseId(4);
    it.launch(&third);
    it.until(|news| matches!(news, EngineReport::Started { lease: LeaseId(4), .. }).then_some(()));
}

#[test]
fn a_log_is_bounded_and_keeps_both_ends() {
    let mut it = Scheduler::with(|it| it.log_bound = Bytes::mib(1));
    let end = it.run("echo first; seq 1000000; echo last");
    assert_eq!(end.how, RunEnd::Exited { code: 0 });
    it.until_collected().unwrap();
    let log = it.log();
    assert!(log.starts_with("first\n1\n2\n") && log.ends_with("\n1000000\nlast\n"));
    assert!(log.len() < 1_100_000 && log.contains("--- overnight:"), "{}", log.len());
}

#[test]
fn a_log_has_both_streams_in_order_and_knows_whose_each_line_is_and_when_it_came() {
    let mut it = Scheduler::new();
    let end = it.run(
        "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; sh -c 'echo err >&2; echo out'; done
         printf 'err 10%%\\r' >&2; printf 'err 100%%\\n' >&2; echo out of it",
    );
    assert_eq!(end.how, RunEnd::Exited { code: 0 });
    it.until_collected().unwrap();
    let log = it.log();
    let turn = |n| format!("out {n}\nerr {n}\nerr\nout\n");
    assert_eq!(log, (1..=9).map(turn).collect::<Vec<_>>().concat() + "err 10%\rerr 100%\nout of it\n");
    let marks = it.paths().attempt("1-test", 1).join(marks::NAME);
    let mut marks = Marks::new(std::fs::File::open(marks).unwrap()).unwrap();
    let mut at = 0;
    for line in log.split_inclusive('\n') {
        let mark = marks.at(at).unwrap().unwrap();
        let stream = if line.starts_with("err") { Stream::Err } else { Stream::Out };
        assert_eq!(mark.stream, Some(stream), "{line}");
        let (second, ended) = (mark.second.unwrap(), end.at.wall_ms / 1000);
        assert!((ended - 60..=ended).contains(&second), "{line}: {second}, ended {ended}");
        at += line.len() as u64;
    }
}

#[test]
fn where_no_signals_can_be_queued_nothing_is_lost_and_each_line_is_known() {
    let (dir, run_dir) = bare_dirs();
    let exec = "ulimit -i 0; exec \"$0\" supervise";
    let (mut child, ours) =
        bare(std::process::Command::new("sh").args(["-c", exec, env!("CARGO_BIN_EXE_overnight")]));
    let text = "for n in $(seq 2000); do echo out $n; echo err $n >&2; done; exec >&-; echo err last >&2";
    let spec = bare_spec(dir.path(), &run_dir, 1, text);
    let path = spec.log.clone();
    (&ours).write_all(&message::line(&Order::Launch(Box::new(spec)))).unwrap();
    for line in std::io::BufReader::new(&ours).lines() {
        if let News::Record(record::Record::Collected { .. }) = serde_json::from_str(&line.unwrap()).unwrap()
        {
            (&ours).write_all(&message::line(&Order::Dismiss)).unwrap();
        }
    }
    assert!(child.wait().unwrap().success());
    let log = std::fs::read_to_string(&path).unwrap();
    let wanted = |name: &str| (1..=2000).map(|n| format!("{name} {n}")).collect::<Vec<_>>();
    let own = |name: &str| log.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(own("out"), wanted("out"));
    assert_eq!(own("err"), [wanted("err"), vec!["err last".to_owned()]].concat());
    let mut marks = Marks::new(std::fs::File::open(path.with_file_name(marks::NAME)).unwrap()).unwrap();
    let mut at = 0;
    for line in log.split_inclusive('\n') {
        let stream = if line.starts_with("err") { Stream::Err } else { Stream::Out };
        assert_eq!(marks.at(at).unwrap().unwrap().stream, Some(stream), "{line}");
        at += line.len() as u64;
    }
}

#[test]
fn a_full_disk_stops_neither_the_work_nor_its_end() {
    let mut it = Scheduler::new();
    let jobs = it.paths().jobs();
    std::fs::create_dir_all(&jobs).unwrap();
    let Some(_mount) = Tmpfs::mount(&jobs, "256k") else {
        eprintln!("SKIPPED: mounting a small tmpfs needs root");
        return;
    };
    let end = it.run("seq 200000; exit 3");
    assert_eq!((end.how, end.by), (RunEnd::Exited { code: 3 }, EndedBy::Proven));
    it.until_collected().unwrap();
    let log = it.log();
    assert!(log.starts_with("1\n2\n3\n"));
    assert!(log.len() < 300_000);
}

#[test]
fn a_kill_for_memory_is_told_apart_as_probable() {
    // Without groups of its own: only the kernel's counter for the whole machine tells.
    let mut it = Scheduler::with(|it| it.cgroups = Some(Layout::none("a test")));
    let group = PathBuf::from(format!("/sys/fs/cgroup/memory/overnight-test-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err()
        || std::fs::write(group.join("memory.limit_in_bytes"), "32M").is_err()
    {
        eprintln!("SKIPPED: a memory limit needs a writable cgroup v1");
        return;
    }
    let end = it.run(&format!("(echo $BASHPID >{}/cgroup.procs; exec tail /dev/zero)", group.display()));
    assert_eq!(end.how, RunEnd::OutOfMemory { certain: false });
    std::fs::remove_dir(&group).unwrap();
}

#[test]
fn a_sign_of_life_comes_every_few_seconds_and_is_written_down() {
    let mut it = Scheduler::new();
    it.launch(&shell("sleep 600"));
    let started = it.until_started();
    let at = it.until(|news| match news {
        EngineReport::Heartbeat { at, .. } => Some(*at),
        _ => None,
    });
    assert!((4000..7000).contains(&at.since(&started).unwrap().0));
    let state = record::read(&it.run_dir(1).join(record::NAME)).unwrap();
    assert_eq!(state.heartbeat.unwrap().at, at);
    assert!(state.heartbeat.unwrap().peak_memory.is_some());
    it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    it.until_ended();
}

#[test]
fn a_shutdown_signal_to_the_supervisor_does_not_blind_it() {
    let mut it = Scheduler::new();
    it.launch(&shell("while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done; exit 4"));
    it.until_started();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP, rustix::process::Signal::INT]
    {
        assert!(process::signal(it.supervisor(1), signal));
    }
    std::fs::write(it.output("go"), "").unwrap();
    assert_eq!(it.until_ended().how, RunEnd::Exited { code: 4 });
}

#[test]
fn one_lease_runs_its_attempts_in_turn() {
    let (dir, run_dir) = bare_dirs();
    let (mut child, ours) =
        bare(std::process::Command::new(env!("CARGO_BIN_EXE_overnight")).arg("supervise"));
    let first = bare_spec(dir.path(), &run_dir, 1, "exit 75");
    let second = bare_spec(dir.path(), &run_dir, 2, "exit 3");
    for order in [Order::Launch(Box::new(first)), Order::NextAttempt(Box::new(second)), Order::Ping] {
        (&ours).write_all(&message::line(&order)).unwrap();
    }
    let mut seen = Vec::new();
    for line in std::io::BufReader::new(&ours).lines() {
        match serde_json::from_str::<News>(&line.unwrap()).unwrap() {
            News::Record(record::Record::Intent(intent)) => seen.push(format!("intent {}", intent.attempt)),
            News::Record(record::Record::Ended(ended)) => {
                seen.push(format!("{} {:?}", ended.attempt, ended.end));
            }
            News::Record(record::Record::Collected { attempt, .. }) => {
                seen.push(format!("collected {attempt}"));
                if attempt == AttemptNo(2) {
                    (&ours).write_all(&message::line(&Order::Dismiss)).unwrap();
                }
            }
            _ => {}
        }
    }
    assert!(child.wait().unwrap().success());
    let told = ["intent 1", "1 Exited { code: 75 }", "collected 1", "2 Exited { code: 3 }", "collected 2"];
    assert_eq!(seen.iter().filter(|line| *line != "intent 2").collect::<Vec<_>>(), told);
    let state = record::read(&run_dir.join(record::NAME)).unwrap();
    assert_eq!(state.ended().map(|ended| ended.attempt), Some(AttemptNo(2)));
}

/// A directory, and a run directory in it.
fn bare_dirs() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().join("run");
    std::fs::create_dir(&run_dir).unwrap();
    (dir, run_dir)
}

/// A supervisor without an engine, and the engine's end of its channel.
fn bare(command: &mut std::process::Command) -> (std::process::Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let theirs = std::process::Stdio::from(std::os::fd::OwnedFd::from(theirs));
    (command.stdin(theirs).spawn().unwrap(), ours)
}

fn bare_spec(dir: &Path, run_dir: &Path, attempt: u32, text: &str) -> LaunchSpec {
    let output_dir = dir.join(attempt.to_string()).join("output");
    LaunchSpec {
        lease: LeaseId(1),
        token: Token("a".repeat(32)),
        job: JobId(1),
        task: TaskIx(0),
        attempt: AttemptNo(attempt),
        run_dir: run_dir.to_owned(),
        run: Run::Shell(text.to_owned()),
        setup: Setup::default(),
        environment: Environment {
            base: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            ..Environment::default()
        },
        work: WorkDir::Fresh(run_dir.join(format!("work-{attempt}"))),
        data: Vec::new(),
        log: dir.join(format!("{attempt}/log.txt")),
        log_bound: Bytes::mib(1),
        limit: None,
        stop: Stop::default(),
        devices: Devices::default(),
        limits: Limits::default(),
        collect: overnight::model::Collect {
            items: Vec::new(),
            work_dir: run_dir.join(format!("work-{attempt}")),
            output_dir: output_dir.clone(),
            live: false,
            newer_than_ns: 0,
            output_to: None,
            job: "1".to_owned(),
            partial: false,
            own: Vec::new(),
        },
        output_dir,
        collector: COLLECTOR.map(str::to_owned).to_vec(),
    }
}

/// Prints medians; run by hand with a release build: `OVERNIGHT_TEST_EXE=target/release/overnight cargo test --test
/// supervisor -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure_launch_and_end() {
    for (how, pause_ms) in [("one at a time", 100), ("one after the other", 0)] {
        let mut it = Scheduler::new();
        let (mut launches, mut ends) = (Vec::new(), Vec::new());
        for n in 1..=41 {
            // The next supervisor gets ready.
            std::thread::park_timeout(std::time::Duration::from_millis(pause_ms));
            let mut launch = launch(job(Run::Argv(vec!["date".to_owned(), "+%s%N".to_owned()])));
            launch.lease = LeaseId(n);
            launch.folder = format!("{n}-test");
            let before = wall_ns();
            it.launch(&launch);
            it.until_ended();
            let told = wall_ns();
            let log = it.paths().attempt(&launch.folder, 1).join("log.txt");
            let first: i128 = std::fs::read_to_string(log).unwrap().trim().parse().unwrap();
            launches.push((first - before) / 1000);
            ends.push((told - first) / 1000);
            it.until_collected().unwrap();
            it.engine().dismiss(LeaseId(n)).unwrap();
        }
        launches.sort_unstable();
        ends.sort_unstable();
        for (what, times) in
            [("launch to first instruction of date", launches), ("from there to its end told", ends)]
        {
            println!("{how}: {what}: median {} us, best {} us", times[20], times[0]);
        }
    }
}

fn wall_ns() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// A small file system; unmounted at the end.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(at: &Path, size: &str) -> Option<Self> {
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .stderr(std::process::Stdio::null())
            .status();
        status.ok()?.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A scheduler whose collector does this first.
fn collecting_after(first: &str) -> Scheduler {
    let text = format!("{first}\n{}", COLLECTOR[2]);
    Scheduler::with(|it| it.collector = ["/bin/sh", "-c", &text].map(str::to_owned).to_vec())
}

#[test]
fn a_collector_that_fails_says_why() {
    let mut it = collecting_after("echo 'no such luck' >&2; exit 1");
    it.run("true");
    assert_eq!(it.until_collected(), Err("no such luck".to_owned()));
}

#[test]
fn a_collector_without_room_is_tried_again() {
    let mut it = collecting_after(r#"if [ ! -e "$0.first" ]; then touch "$0.first"; exit 75; fi"#);
    it.run("true");
    assert_eq!(it.until_collected().unwrap().notes, ["collected"]);
}

#[test]
fn how_far_a_collection_is_is_told_and_what_is_no_number_is_not() {
    let mut it = collecting_after(r#"echo 71; until [ -e "$0.go" ]; do sleep 0.02; done; echo soon"#);
    it.run("true");
    let percent = it.until(|news| match news {
        EngineReport::Collecting { percent, .. } => Some(*percent),
        EngineReport::Collected { .. } => panic!("it was not told"),
        _ => None,
    });
    assert_eq!(percent, 71);
    std::fs::write(it.run_dir(1).join("collected-0-1.json.go"), "").unwrap();
    let result = it.until(|news| match news {
        EngineReport::Collecting { percent, .. } => panic!("{percent} was not said"),
        EngineReport::Collected { result, .. } => Some(result.clone()),
        _ => None,
    });
    assert_eq!(result.unwrap().notes, ["collected"]);
}

#[test]
fn output_comes_home_also_when_the_supervisor_dies_while_it_is_collected() {
    let mut it = collecting_after(r#"if [ ! -e "$0.first" ]; then touch "$0.first"; sleep 600; fi"#);
    let end = it.run("exit 6");
    assert_eq!(end.how, RunEnd::Exited { code: 6 });
    let first = it.run_dir(1).join("collected-0-1.json.first");
    wait_for(|| first.exists().then_some(()));
    let supervisor = it.supervisor(1);
    process::signal(supervisor, rustix::process::Signal::KILL);
    assert_eq!(it.until_collected().unwrap().notes, ["collected"]);
    assert!(!process::all().iter().any(|seen| seen.session == supervisor.pid && seen.state != b'Z'));
}

#[test]
fn a_supervisor_is_small() {
    let mut it = Scheduler::new();
    it.launch(&shell("sleep 600"));
    it.until_started();
    let pid = it.supervisor(1).pid;
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let kib = |key: &str| -> u64 {
        let line = rollup.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let anon: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok())
        .unwrap();
    println!("RssAnon {anon} KiB, PSS {} KiB", kib("Pss:"));
    // The aim is 1 MiB in a release build; a debug build has larger tables to relocate.
    assert!(anon <= 2048, "RssAnon is {anon} KiB");
    it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    it.until_ended();
}

/// What waits for long: `.ci/run` has them, and `cargo test --test NAME -- --ignored long::`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn a_process_that_a_kill_does_not_end_is_named_and_the_run_ends_after_ten_seconds() {
        let mut it = Scheduler::new();
        let Some(disk) = Frozen::make(it.dir.path()) else {
            eprintln!("SKIPPED: freezing a loop mount needs root, mkfs.ext4 and fsfreeze");
            return;
        };
        let at = disk.at.display();
        it.launch(&shell(&format!(
            "(while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done; exec dd if=/dev/zero of={at}/file bs=4k count=1) &
             echo ready; sleep 600"
        )));
        it.until_started();
        disk.freeze();
        std::fs::write(it.output("go"), "").unwrap();
        let main = record::read(&it.run_dir(1).join(record::NAME)).unwrap().main().unwrap();
        let stuck = |seen: &process::Seen| seen.session == main.pid && seen.state == b'D';
        wait_for(|| process::all().iter().any(stuck).then_some(()));
        let before = overnight::clock::now();
        it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
        let end = it.until_ended();
        assert_eq!((end.how, end.by), (RunEnd::Cancelled { by: "ana".to_owned() }, EndedBy::AfterKill));
        assert!((10_000..13_000).contains(&end.at.since(&before).unwrap().0));
        assert!(end.notes.iter().any(|note| note.contains("(dd)")), "{:?}", end.notes);
        it.until_collected().unwrap();
    }
}
