//! The supervisor of the first milestone, as its journal and its channel were then: nothing of the program is used here, so
//! that whoever changes either breaks these tests.
//!
//! It stands for one that still runs when the scheduler is upgraded. A later milestone whose journal or channel differs
//! adds one beside it.

use super::boots::lease_of;
use super::fixture::job;
use super::small_disk::skipped;
use super::support::sandbox::{Sandbox, eventually};
use overnight::supervisor::process::{self, ProcessId};
use overnight::supervisor::record;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MAGIC: &[u8] = b"OVNJRNL\n";
const VERSION: u32 = 1;
const SLOT: u64 = 512;
const RECORDS: u64 = 4096;
const LEN: u64 = 32_768;

/// Length, checksum, bytes, padding to 8.
fn sealed(payload: &str) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&blake3::hash(payload.as_bytes()).as_bytes()[..8]);
    frame.extend_from_slice(payload.as_bytes());
    frame.resize(frame.len().next_multiple_of(8), 0);
    frame
}

/// A journal of version 1.
struct Journal {
    file: File,
    next: u64,
}

impl Journal {
    fn create(path: &Path) -> Self {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(LEN).unwrap();
        file.write_all_at(MAGIC, 0).unwrap();
        file.write_all_at(&VERSION.to_le_bytes(), 8).unwrap();
        file.write_all_at(&(RECORDS as u32).to_le_bytes(), 12).unwrap();
        Self { file, next: RECORDS }
    }

    fn append(&mut self, record: &str) {
        let frame = sealed(record);
        self.file.write_all_at(&frame, self.next).unwrap();
        self.file.sync_data().unwrap();
        self.next += frame.len() as u64;
    }

    fn beat(&self, heartbeat: &str) {
        self.file.write_all_at(&sealed(&format!("[1,{heartbeat}]")), SLOT).unwrap();
    }
}

/// What it is told by its test, in its environment, one value a line.
struct Part {
    run_dir: PathBuf,
    lease: u64,
    token: String,
    job: u64,
    /// When its run begins, as both clocks have it.
    began: Moment,
    boot: String,
    suspended_ms: u64,
    /// Where it writes the orders that it hears.
    heard: PathBuf,
}

#[derive(Clone, Copy)]
struct Moment {
    boottime_ms: u64,
    wall_ms: i64,
}

impl Moment {
    fn now() -> Self {
        let now = overnight::clock::now();
        Self { boottime_ms: now.boottime_ms, wall_ms: now.wall_ms }
    }

    fn json(self, boot: &str) -> String {
        format!(r#"{{"boot":"{boot}","boottime_ms":{},"wall_ms":{}}}"#, self.boottime_ms, self.wall_ms)
    }
}

impl Part {
    fn read() -> Option<Self> {
        let text = std::env::vars().find(|(name, _)| name == "OLD_SUPERVISOR")?.1;
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap();
        Some(Self {
            run_dir: next().into(),
            lease: next().parse().unwrap(),
            token: next(),
            job: next().parse().unwrap(),
            began: Moment { boottime_ms: next().parse().unwrap(), wall_ms: next().parse().unwrap() },
            boot: next(),
            suspended_ms: next().parse().unwrap(),
            heard: next().into(),
        })
    }

    /// Its whole life.
    #[expect(clippy::zombie_processes, reason = "one that is killed leaves its work behind")]
    fn play(&self) {
        let own = process::look(std::process::id() as i32).unwrap().id;
        let mut work = Command::new("sleep").arg("600").env("OVERNIGHT_TOKEN", &self.token).spawn().unwrap();
        let main = process::look(work.id() as i32).unwrap().id;
        let listener = UnixListener::bind(self.run_dir.join("ctl.sock")).unwrap();
        let began = self.began.json(&self.boot);
        let intent = format!(
            r#"{{"intent":{{"lease":{},"token":"{}","job":{},"task":0,"attempt":1,"supervisor":{},"at":{began}}}}}"#,
            self.lease,
            self.token,
            self.job,
            id(own)
        );
        let started = format!(r#"{{"started":{{"task":0,"attempt":1,"main":{},"at":{began}}}}}"#, id(main));
        let mut records = vec![intent, started];
        let mut journal = Journal::create(&self.run_dir.join("journal.new"));
        for record in &records {
            journal.append(record);
        }
        let beat =
            format!(r#"{{"at":{},"peak_memory":4096,"suspended_ms":0}}"#, Moment::now().json(&self.boot));
        journal.beat(&beat);
        fs::rename(self.run_dir.join("journal.new"), self.run_dir.join("journal")).unwrap();

        for scheduler in listener.incoming() {
            let mut scheduler = scheduler.unwrap();
            say(
                &mut scheduler,
                &format!(r#"{{"hello":{{"version":1,"lease":{},"token":"{}"}}}}"#, self.lease, self.token),
            );
            for record in &records {
                say(&mut scheduler, &format!(r#"{{"record":{record}}}"#));
            }
            say(&mut scheduler, &format!(r#"{{"heartbeat":{beat}}}"#));
            for order in BufReader::new(scheduler.try_clone().unwrap()).lines() {
                let Ok(order) = order else { break };
                let mut all = File::options().create(true).append(true).open(&self.heard).unwrap();
                writeln!(all, "{order}").unwrap();
                if order.starts_with(r#"{"stop""#) {
                    work.kill().unwrap();
                    work.wait().unwrap();
                    for record in self.end() {
                        journal.append(&record);
                        say(&mut scheduler, &format!(r#"{{"record":{record}}}"#));
                        records.push(record);
                    }
                }
                if order == r#""dismiss""# {
                    let returned = format!(r#"{{"returned":{{"at":{}}}}}"#, Moment::now().json(&self.boot));
                    journal.append(&returned);
                    return;
                }
            }
        }
    }

    fn end(&self) -> [String; 2] {
        let at = Moment::now().json(&self.boot);
        fs::write(
            self.run_dir.join("collected-0-1.json"),
            r#"{"outputs":[],"missing":[],"notes":["of old"]}"#,
        )
        .unwrap();
        [
            format!(
                r#"{{"ended":{{"task":0,"attempt":1,"at":{at},"end":{{"cancelled":{{"by":"somebody"}}}},"by":"proven","peak_memory":8192,"suspended_ms":{},"notes":["a note of old"]}}}}"#,
                self.suspended_ms
            ),
            format!(r#"{{"collected":{{"task":0,"attempt":1,"failure":null,"at":{at}}}}}"#),
        ]
    }
}

fn id(id: ProcessId) -> String {
    format!(r#"{{"pid":{},"starttime":{}}}"#, id.pid, id.starttime)
}

fn say(scheduler: &mut UnixStream, line: &str) {
    // A scheduler that is gone hears nothing.
    let _ = writeln!(scheduler, "{line}");
}

/// The process of it: started by the test below, and nothing where that has not asked for it.
#[test]
#[ignore = "a process of another test"]
fn plays_the_old_supervisor() {
    if let Some(part) = Part::read() {
        part.play();
    }
}

/// Ended with its test.
struct Old(Child);

impl Drop for Old {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job whose supervisor is one of the first milestone, and the scheduler gone. Its sleep within the run is told too.
fn with_an_old_supervisor(sandbox: &mut Sandbox, suspended_ms: u64) -> (Old, PathBuf) {
    sandbox.drop_file("old.yaml", &job("sleep 600", ", retry: {times: 0}"));
    sandbox.wait_for_state("old", "running");
    let lease = lease_of(sandbox, "old", 0);
    let run_dir = sandbox.root().join(format!(".state/run/{lease}"));
    let journal = run_dir.join(record::NAME);
    let state = record::read(&journal).unwrap();
    let (intent, main) = (state.intent().unwrap().clone(), state.main().unwrap());
    sandbox.kill_scheduler();
    for id in [intent.supervisor, main] {
        process::signal(id, Signal::KILL);
        eventually("the end of today's", || (!process::is_running(id)).then_some(()));
    }
    fs::remove_file(&journal).unwrap();
    fs::remove_file(run_dir.join("ctl.sock")).unwrap();
    let began = state.current().iter().find_map(|record| match record {
        record::Record::Started { at, .. } => Some(*at),
        _ => None,
    });
    let began = began.unwrap();
    let heard = sandbox.dir().join("heard");
    let part = format!(
        "{}\n{lease}\n{}\n{}\n{}\n{}\n{}\n{suspended_ms}\n{}",
        run_dir.display(),
        intent.token,
        intent.job,
        began.boottime_ms,
        began.wall_ms,
        began.boot,
        heard.display()
    );
    let old = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervisor_v1::plays_the_old_supervisor", "--ignored", "--nocapture"])
        .env("OLD_SUPERVISOR", part)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let old = Old(old);
    eventually("an old supervisor's journal", || journal.exists().then_some(()));
    (old, run_dir)
}

#[test]
fn a_supervisor_of_the_first_milestone_goes_on_under_this_scheduler() {
    let mut sandbox = Sandbox::serving("simulated:1");
    // It slept for a while in the middle of the run: held, not billed, and shown.
    let (mut old, run_dir) = with_an_old_supervisor(&mut sandbox, 5);
    let kept = sandbox.dir().join("journal");
    fs::hard_link(run_dir.join("journal"), &kept).unwrap();
    sandbox.serve();
    // Through one more scheduler, as an upgrade is.
    sandbox.kill_scheduler();
    sandbox.serve();
    let shown = sandbox.show("old");
    assert_eq!(
        (shown["state"].as_str(), shown["attempts"].as_array().unwrap().len()),
        (Some("running"), 1),
        "{shown:#}"
    );
    assert!(old.0.try_wait().unwrap().is_none(), "it was not left alone");
    sandbox.run(&["cancel", "old"]).ok();
    assert_eq!(sandbox.wait_for_end("old"), "cancelled");
    assert!(old.0.wait().unwrap().success());
    // Orders, byte for byte.
    let user = shown["user"].as_str().unwrap();
    let orders = fs::read_to_string(sandbox.dir().join("heard")).unwrap();
    assert_eq!(orders, format!("{{\"stop\":{{\"cancel\":{{\"by\":\"{user}\"}}}}}}\n\"dismiss\"\n"));
    let shown = sandbox.show("old");
    let state = record::read(&kept).unwrap();
    let ended = state.ended().unwrap().at;
    let first = &shown["attempts"][0];
    let at: jiff::Timestamp = first["ended_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(at.as_millisecond(), ended.wall_ms, "{first:#}");
    assert_eq!(first["ended_by"], "proven");
    assert_eq!(shown["waived_gpu_ms"], 5, "suspend is held and waived: {shown:#}");
    let table = sandbox.run(&["meter", "--json"]).json();
    assert_eq!(table["rows"][0]["waived_gpu_ms"], 5, "{table:#}");
    assert_eq!(shown["peak_memory"], 8192);
    let warnings = shown["warnings"].to_string();
    assert!(warnings.contains("a note of old") && warnings.contains("of old"), "{warnings}");
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn a_supervisor_of_the_first_milestone_that_is_gone_is_settled_from_its_journal() {
    let mut sandbox = Sandbox::serving("simulated:1");
    let (old, run_dir) = with_an_old_supervisor(&mut sandbox, 0);
    let state = record::read(&run_dir.join("journal")).unwrap();
    let (sign, main) = (state.last_sign().unwrap(), state.main().unwrap());
    drop(old);
    if !process::is_running(main) {
        return skipped("a_supervisor_of_the_first_milestone_that_is_gone", "its work went with it");
    }
    sandbox.serve();
    assert_eq!(sandbox.wait_for_end("old"), "lost");
    assert!(!process::is_running(main), "what it left behind is found by its token and ended");
    let shown = sandbox.show("old");
    assert_eq!(shown["attempts"][0]["waived"], true, "{shown:#}");
    let at: jiff::Timestamp = shown["attempts"][0]["ended_at"].as_str().unwrap().parse().unwrap();
    assert!(at.as_millisecond() >= sign.wall_ms, "{shown:#}");
}
