//! What those who look cost, and what they are told: subscribers, the devices' history, the timeline, `watch`.

use super::support::sandbox::{Sandbox, eventually};
use super::{nothing_is_left_behind, one_gpu, wait_for_gate};
use overnight::client::Client;
use overnight::config::Paths;
use overnight::model::JobId;
use overnight::protocol::{GpuHistory, Query, Reply, Request, Snapshot, SpanKind, Timeline};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn connect(sandbox: &Sandbox) -> Client {
    Client::connect(&Paths::below(&sandbox.root()), PATIENCE).unwrap()
}

fn subscribed(sandbox: &Sandbox) -> Client {
    let mut client = connect(sandbox);
    assert_eq!(client.request(Request::Subscribe { every_ms: 100 }).unwrap(), Reply::Pong);
    client
}

fn history(client: &mut Client) -> GpuHistory {
    match client.request(Request::Query(Query::GpuHistory { gpu: None, span_ms: Some(600_000) })).unwrap() {
        Reply::GpuHistory(history) => *history,
        other => panic!("{other:?}"),
    }
}

fn timeline(client: &mut Client) -> Timeline {
    match client.request(Request::Query(Query::Timeline { from_ms: None, until_ms: None })).unwrap() {
        Reply::Timeline(timeline) => *timeline,
        other => panic!("{other:?}"),
    }
}

/// Switches and processor time of all of a process's threads so far.
fn spent(pid: u32) -> (u64, u64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map_while(Result::ok);
    let switches = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let of = |status: String| {
        let line =
            status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:").map(str::to_owned));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    (switches.map(of).sum(), ticks)
}

#[test]
fn the_scheduler_remembers_what_devices_did_and_who_had_them() {
    let sandbox = Sandbox::serving("simulated:2");
    let gate = sandbox.gate("train");
    let run = wait_for_gate(&gate);
    sandbox.drop_file("train.yaml", &one_gpu(&run, ""));
    sandbox.wait_for_state("train", "running");
    sandbox.drop_file("wide.yaml", &one_gpu("true", "").replace("gpus: 1", "gpus: 2"));
    sandbox.wait_for_state("wide", "queued");
    let mut client = connect(&sandbox);
    let shown = timeline(&mut client);
    let of = |name: &str| shown.spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let (train, wide) = (of("train"), of("wide"));
    assert_eq!(
        train.iter().map(|span| (span.kind, span.index)).collect::<Vec<_>>(),
        [(SpanKind::Held, Some(0))]
    );
    let planned: Vec<_> = wide.iter().map(|span| (span.kind, span.index)).collect();
    assert_eq!(planned, [(SpanKind::Planned, Some(0)), (SpanKind::Planned, Some(1))]);
    assert!(wide[0].from >= train[0].until.unwrap() && wide[0].from_by >= Some(wide[0].from), "{shown:#?}");
    // Nobody is attached: the scheduler reads for itself while something runs.
    eventually("a reading of the device that works", || {
        let history = history(&mut client);
        assert_eq!(history.gpus.len(), 2);
        let ring = &history.gpus[0].rings[0];
        assert_eq!(ring.period_ms, 5_000);
        let works = ring
            .utilisation
            .iter()
            .zip(&ring.held)
            .any(|(percent, held)| *percent > Some(0) && *held == Some(true));
        works.then_some(())
    });
    sandbox.open_gate("train");
    assert_eq!(sandbox.wait_for_end("train"), "succeeded");
    assert_eq!(sandbox.wait_for_end("wide"), "succeeded");
    let shown = timeline(&mut client);
    let past: Vec<_> = shown.spans.iter().map(|span| (span.name.as_str(), span.kind, span.index)).collect();
    let expected =
        [("train", 0), ("wide", 0), ("wide", 1)].map(|(name, index)| (name, SpanKind::Past, Some(index)));
    assert_eq!(past, expected);
    let Reply::Job(detail) = client.request(Request::Query(Query::Job { job: JobId(1) })).unwrap() else {
        panic!("a job")
    };
    let row = detail.row;
    assert!(row.mean_utilisation > Some(0) && row.peak_gpu_memory.is_some(), "{row:?}");
    // What a lease came to is durable with its end.
    drop(client);
    let mut sandbox = sandbox;
    sandbox.kill_scheduler();
    sandbox.serve();
    let mut client = connect(&sandbox);
    let Reply::Job(detail) = client.request(Request::Query(Query::Job { job: JobId(1) })).unwrap() else {
        panic!("a job")
    };
    assert_eq!(
        (detail.row.mean_utilisation, detail.row.peak_gpu_memory),
        (row.mean_utilisation, row.peak_gpu_memory)
    );
    assert_eq!(timeline(&mut client).spans.len(), 3, "the ledger outlives the scheduler");
    nothing_is_left_behind(&sandbox);
}

/// A `watch` whose lines are read as they come.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    told: Vec<String>,
}

impl Watch {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut child = sandbox.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child, lines, told: Vec::new() }
    }

    /// Reads until a line says this.
    #[track_caller]
    fn until(&mut self, what: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("nothing of {what:?} in {:#?}", self.told));
            self.told.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_tells_of_every_change_and_outlives_the_scheduler() {
    let mut sandbox = Sandbox::serving("simulated:2");
    let mut watch = Watch::start(&sandbox, &["watch"]);
    let mut json = Watch::start(&sandbox, &["watch", "--json"]);
    watch.until("watching: 0 running, 0 waiting, 2 GPUs");
    json.until("watching");
    let gate = sandbox.gate("train");
    sandbox.drop_file("train.yaml", &one_gpu(&format!("{}\nexit 3", wait_for_gate(&gate)), ""));
    let line = watch.until("running: gpu 0");
    assert!(line.contains("1 train (") && line.starts_with("20"), "{line}");
    watch.until("gpu 0: held");
    sandbox.drop_file("wrong.yaml", "work: {runn: x}\n");
    watch.until("inbox wrong.yaml: refused: ");
    json.until("\"state\":\"refused\"");
    // Whoever asks for the job learns why there is none.
    eventually("the file beside it", || {
        sandbox.root().join("inbox/wrong.yaml.why.txt").exists().then_some(())
    });
    for verb in [&["ls"] as &[&str], &["log", "wrong"], &["wait", "wrong"], &["show", "wrong.yaml"]] {
        let said = sandbox.run(verb).stderr;
        assert!(said.contains("inbox/wrong.yaml was refused: wrong.yaml.why.txt"), "{verb:?}: {said}");
    }
    std::fs::remove_file(sandbox.root().join("inbox/wrong.yaml")).unwrap();
    watch.until("inbox wrong.yaml: removed");
    json.until("\"state\":\"removed\"");
    sandbox.run(&["close", "1", "--reason", "new fan"]).ok();
    watch.until("gpu 1: closed: closed by");
    // What a person does to a job that stays where it is, and to a device that a job holds.
    for name in ["first", "second"] {
        sandbox.drop_file(&format!("{name}.yaml"), &one_gpu("true", ", start_after: 2099-01-01 00:00"));
        watch.until(&format!("{name} ("));
    }
    sandbox.run(&["priority", "second", "20"]).ok();
    watch.until("priority 20, it was 0");
    sandbox.run(&["priority", "second", "0"]).ok();
    sandbox.run(&["top", "second"]).ok();
    watch.until("moved");
    sandbox.run(&["edit", "second", "--name", "third", "--for", "7m", "--yes"]).ok();
    watch.until("renamed, it was second, asks for GPUs 1");
    sandbox.run(&["close", "0", "--reason", "dust"]).ok();
    watch.until("gpu 0: held: to be closed for ");
    sandbox.run(&["open", "0"]).ok();
    watch.until("gpu 0: held");
    // A file that is mended is accepted.
    sandbox.drop_file("mended.yaml", "work: {runn: x}\n");
    watch.until("inbox mended.yaml: refused: ");
    sandbox.drop_file("mended.yaml", &one_gpu("true", ", start_after: 2099-01-01 00:00"));
    watch.until("inbox mended.yaml: accepted: ");
    // What happens while the scheduler is away is told when it is back.
    sandbox.kill_scheduler();
    watch.until("connection lost: ");
    json.until("\"state\":\"lost\"");
    sandbox.open_gate("train");
    sandbox.serve();
    watch.until("connected again: ");
    let line = watch.until("1 train (");
    let end = if line.contains("failed: exit 3") { line } else { watch.until("failed: exit 3") };
    assert!(end.contains("1 train ("), "{end}");
    json.until("\"outcome\":\"failed\"");
    for line in &json.told {
        let news: Value = serde_json::from_str(line).unwrap();
        assert_eq!(news["schema"], 1);
        assert!(news["at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(!news["text"].as_str().unwrap().is_empty());
    }
    let states: Vec<Value> =
        json.told.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let job = |state: &str| {
        states.iter().any(|news| news["about"] == "job" && news["job"] == 1 && news["state"] == state)
    };
    assert!(job("running") && job("done"), "{states:#?}");
    assert!(watch.told.iter().chain(&json.told).all(|line| !line.contains('\u{1b}')), "plain lines");
}

#[test]
fn watch_ends_quietly_with_its_reader_even_if_nothing_happens() {
    let sandbox = Sandbox::serving("none");
    let mut child =
        sandbox.command(&["watch"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.contains("watching"), "{first}");
    drop(out);
    let status = eventually("its end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(said, "");
}

/// What waits for long: `.ci/run` has them, and `cargo test --test NAME -- --ignored long::`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn an_attached_dashboard_where_nothing_changes_costs_the_scheduler_nothing() {
        let sandbox = Sandbox::serving("simulated:8");
        let gate = sandbox.gate("held-back");
        sandbox
            .drop_file("held-back.yaml", &one_gpu(&wait_for_gate(&gate), ", start_after: 2099-01-01 00:00"));
        sandbox.wait_for_state("held-back", "queued");
        let mut dashboards: Vec<Client> = (0..3).map(|_| subscribed(&sandbox)).collect();
        let mut pictures = vec![Snapshot::default(); 3];
        for (client, picture) in dashboards.iter_mut().zip(&mut pictures) {
            assert_eq!(picture.fold(client.next_update().unwrap()), Ok(()));
            assert_eq!((picture.jobs.len(), picture.gpus.len()), (1, 8));
        }
        let pid = dashboards[0].server().pid;
        // What the start and the drop left to do is done first.
        let quiet = |span: Duration| {
            let before = spent(pid);
            std::thread::park_timeout(span);
            let after = spent(pid);
            (after.0 - before.0, after.1 - before.1)
        };
        // Threads that were used at the start end by themselves some ten seconds later: that is not for the dashboards.
        eventually("four seconds without a wakeup or a tick of the scheduler, with three dashboards", || {
            (quiet(Duration::from_secs(4)) == (0, 0)).then_some(())
        });
        assert!(dashboards.iter().all(|client| !client.has_update()), "and nothing is said");
        // Somebody else only looks: nobody is woken for that.
        sandbox.run(&["ls"]).ok();
        let heard = |client: &Client| {
            use std::os::fd::AsFd;
            let mut ready =
                [rustix::event::PollFd::from_borrowed_fd(client.as_fd(), rustix::event::PollFlags::IN)];
            let timeout = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
            rustix::event::poll(&mut ready, Some(&timeout)).unwrap() > 0
        };
        assert!(!heard(&dashboards[0]), "a look changes nothing");
        // One job changes: that one travels, and all have the same picture after it.
        sandbox.run(&["pause", "held-back"]).ok();
        for (client, picture) in dashboards.iter_mut().zip(&mut pictures) {
            let update = client.next_update().unwrap();
            assert_eq!(update.since, Some(picture.revision));
            assert_eq!(update.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [JobId(1)]);
            assert!(update.gpus.is_empty() && update.notices.is_none() && update.inbox.is_none());
            assert_eq!(picture.fold(update), Ok(()));
            assert!(picture.jobs[0].paused_by.is_some());
        }
        // What is asked for whole is what the next change builds on.
        let Reply::Snapshot(whole) =
            dashboards[0].request(Request::Query(Query::Snapshot { since: None })).unwrap()
        else {
            panic!("a snapshot")
        };
        let mut whole = *whole;
        sandbox.run(&["resume", "held-back"]).ok();
        let update = dashboards[0].next_update().unwrap();
        assert_eq!(whole.fold(update), Ok(()));
        assert_eq!((whole.jobs[0].paused_by.clone(), whole.jobs[0].place), (None, Some(1)));
        sandbox.run(&["cancel", "--now", "held-back"]).ok();
        sandbox.wait_for_end("held-back");
    }
}
