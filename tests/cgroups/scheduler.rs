//! The whole product: whatever ends the scheduler's group, its jobs go on; what outlives its kill keeps its GPU and its
//! next attempt, and lets go of both by itself; a scheduler without descriptors loses nothing.

use super::skipped;
use crate::rig::Frozen;
use crate::support::sandbox::{Sandbox, eventually};
use overnight::cgroup::Controller;
use overnight::clock;
use overnight::supervisor::{process, record};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn job(run: &str, gpus: u32) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  run: |\n    {run}\n  stop: {{signal: TERM, grace: 1s}}\ndata: []\n\
         request: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: 5m}}\noutput: []\n"
    )
}

fn wait_for_gate(sandbox: &Sandbox, gate: &str) -> String {
    format!("until [ -e '{}' ]; do sleep 0.02; done", sandbox.gate(gate).display())
}

/// What a look shows; a disk that is slow refuses some for a while.
fn look(sandbox: &Sandbox, args: &[&str]) -> Option<Value> {
    let run = sandbox.run(args);
    (run.code == 0).then(|| serde_json::from_str(&run.stdout).unwrap())
}

fn gpu(sandbox: &Sandbox) -> Option<Value> {
    look(sandbox, &["gpus", "--json"]).map(|list| list["gpus"][0].clone())
}

fn show(sandbox: &Sandbox, name: &str) -> Value {
    eventually("a job that is shown", || look(sandbox, &["show", name, "--json"]))
}

fn wait_for_state(sandbox: &Sandbox, name: &str, state: &str) -> Value {
    eventually(&format!("{name} {state}"), || {
        let list = look(sandbox, &["ls", "--all", "--json"])?;
        list["jobs"].as_array()?.iter().find(|job| job["name"] == name && job["state"] == state).cloned()
    })
}

fn wait_for_end(sandbox: &Sandbox, name: &str) -> String {
    wait_for_state(sandbox, name, "done")["outcome"]["kind"].as_str().unwrap().to_owned()
}

/// A scheduler started by a shell that does something first.
fn serve_after(sandbox: &Sandbox, first: &str) -> Child {
    let mut command = Command::new("sh");
    let said = fs::File::create(sandbox.dir().join("scheduler.out")).unwrap();
    let root = sandbox.root();
    command
        .args(["-c", &format!("{first}\nexec \"$@\""), "sh", env!("CARGO_BIN_EXE_overnight"), "--root"])
        .arg(&root)
        .args(["serve", "--gpus", "simulated:2"])
        .env("HOME", sandbox.dir().join("home"))
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said);
    let child = command.spawn().unwrap();
    let socket = root.join(".state/overnight.sock");
    eventually("a scheduler that answers", || std::os::unix::net::UnixStream::connect(&socket).ok());
    child
}

/// A group of version 2 for a scheduler, as a service manager would make it.
struct Service(PathBuf);

impl Service {
    fn make() -> Option<Self> {
        for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
            let group =
                PathBuf::from(format!("{root}/test-service-{}-{:x}", std::process::id(), clock::wall_ms()));
            if PathBuf::from(root).join("cgroup.controllers").exists() && fs::create_dir(&group).is_ok() {
                if group.join("cgroup.kill").exists() {
                    return Some(Self(group));
                }
                let _ = fs::remove_dir(&group);
            }
        }
        skipped("no cgroup v2 in which a service could be");
        None
    }

    fn processes(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// The directory of the scheduler of this sandbox: beside this group, and its supervisors are in it.
    fn beside(&self, sandbox: &Sandbox) -> PathBuf {
        let root = sandbox.root().to_string_lossy().into_owned();
        let own = |seen: &process::Seen| {
            let command = fs::read(format!("/proc/{}/cmdline", seen.id.pid)).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).into_owned();
            command.contains("\0supervise\0") && command.contains(&root)
        };
        let groups = process::all().into_iter().filter(own).filter_map(|seen| {
            let text = fs::read_to_string(format!("/proc/{}/cgroup", seen.id.pid)).ok()?;
            let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
            path.strip_suffix("/supervisors").map(|top| self.0.parent().unwrap().join(top))
        });
        let tops: BTreeSet<PathBuf> = groups.collect();
        assert_eq!(tops.len(), 1, "{tops:?}");
        tops.into_iter().next().unwrap()
    }

    fn kill(&self) {
        fs::write(self.0.join("cgroup.kill"), "1").unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        crate::rig::wait_for(|| {
            let _ = fs::write(self.0.join("cgroup.kill"), "1");
            (fs::remove_dir(&self.0).is_ok() || !self.0.exists()).then_some(())
        });
    }
}

#[test]
fn what_a_job_is_held_to_is_shown_and_on_its_receipt() {
    let mut sandbox = Sandbox::new("simulated:2");
    sandbox.serve();
    sandbox.drop_file("held.yaml", &job("true", 0));
    assert_eq!(wait_for_end(&sandbox, "held"), "succeeded");
    let shown = show(&sandbox, "held");
    let layout = overnight::cgroup::Layout::find(&sandbox.root().join(".state"));
    let word = |controller| {
        let mut all = layout.version1.iter().flat_map(|tree| &tree.controllers).chain(&layout.controllers);
        if all.any(|one| *one == controller) { "enforced" } else { "advisory" }
    };
    let (memory, cpus) = (word(Controller::Memory), word(Controller::Cpu));
    let words =
        if layout.has_groups() { format!("memory {memory}, cpus {cpus}") } else { "advisory".to_owned() };
    let page =
        eventually("a receipt", || fs::read_to_string(sandbox.job_folder(&shown).join("receipt.md")).ok());
    assert!(page.contains(&format!("- limits: {words}")), "{page}");
    let text = sandbox.run(&["show", "held"]).ok().stdout;
    assert!(text.contains("limits") && text.contains(&words), "{text}");
    // Who asked for what is not enforced is told.
    let warned = shown["warnings"].to_string().contains("request.memory is advisory");
    assert_eq!(warned, memory == "advisory", "{shown:#}");
}

#[test]
fn a_restart_of_the_schedulers_service_ends_no_job() {
    let Some(service) = Service::make() else { return };
    let mut sandbox = Sandbox::new("simulated:2");
    let mut scheduler = serve_after(&sandbox, &format!("echo $$ >{}/cgroup.procs", service.0.display()));
    // One that a supervisor was ready for, and some at once that none was ready for.
    for name in ["a", "b", "c", "d"] {
        let gpus = u32::from(name < "c");
        sandbox.drop_file(&format!("{name}.yaml"), &job(&(wait_for_gate(&sandbox, "go") + "\nexit 6"), gpus));
    }
    for name in ["a", "b", "c", "d"] {
        wait_for_state(&sandbox, name, "running");
    }
    eventually("a service with nobody but the scheduler in it", || {
        (service.processes() == [scheduler.id() as i32]).then_some(())
    });
    service.kill();
    scheduler.wait().unwrap();
    sandbox.serve();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(wait_for_state(&sandbox, name, "running")["state"], "running", "adopted");
    }
    sandbox.open_gate("go");
    for name in ["a", "b", "c", "d"] {
        assert_eq!(wait_for_end(&sandbox, name), "failed");
        let shown = show(&sandbox, name);
        assert_eq!((&shown["outcome"]["code"], shown["attempts"].as_array().unwrap().len()), (&6.into(), 1));
    }
}

#[test]
fn the_end_of_all_supervisors_at_once_ends_each_attempt_once_and_the_jobs_run_again() {
    let Some(service) = Service::make() else { return };
    let sandbox = Sandbox::new("simulated:2");
    let mut scheduler = serve_after(&sandbox, &format!("echo $$ >{}/cgroup.procs", service.0.display()));
    for name in ["a", "b"] {
        sandbox.drop_file(&format!("{name}.yaml"), &job(&wait_for_gate(&sandbox, "go"), 1));
        wait_for_state(&sandbox, name, "running");
    }
    // As an out-of-memory daemon ends a whole slice: supervisors and work, all that is not the scheduler.
    let top = service.beside(&sandbox);
    fs::write(top.join("cgroup.kill"), "1").unwrap();
    for name in ["a", "b"] {
        eventually("a second attempt", || {
            let shown = show(&sandbox, name);
            (shown["attempts"].as_array()?.len() == 2 && shown["state"] == "running").then_some(())
        });
    }
    sandbox.open_gate("go");
    for name in ["a", "b"] {
        assert_eq!(wait_for_end(&sandbox, name), "succeeded");
        let shown = show(&sandbox, name);
        assert_eq!(shown["attempts"][0]["outcome"]["kind"], "lost", "{shown:#}");
        assert_eq!(shown["attempts"][0]["waived"], true);
    }
    sandbox.run(&["meter", "--check"]).ok();
    sandbox.run(&["stop"]).ok();
    scheduler.wait().unwrap();
}

/// A sandbox whose devices may drain for so long only, and a disk in it whose writers hang.
fn with_frozen_disk() -> Option<(Sandbox, Frozen)> {
    let mut sandbox = Sandbox::new("simulated:1");
    let Some(disk) = Frozen::make(sandbox.dir()) else {
        skipped("freezing a loop mount needs root, mkfs.ext4 and fsfreeze");
        return None;
    };
    let config = sandbox.dir().join("home/.config/overnight");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[limits]\ndrain = \"2s\"\n").unwrap();
    sandbox.serve();
    Some((sandbox, disk))
}

/// Work with a process that hangs in its first attempt, once the gate is open.
fn hangs(sandbox: &Sandbox, disk: &Frozen) -> String {
    format!(
        "if [ $OVERNIGHT_ATTEMPT = 1 ]; then\n  echo up\n  {}\n  \
         dd if=/dev/zero of={}/file bs=4k count=1 &\n  sleep 600\nfi",
        wait_for_gate(sandbox, "go"),
        disk.at.display()
    )
}

fn freeze_with_a_writer(sandbox: &Sandbox, disk: &Frozen, name: &str) {
    let job = wait_for_state(sandbox, name, "running");
    eventually("work that runs", || {
        let log = fs::read_to_string(sandbox.job_folder(&job).join("log.txt")).ok()?;
        log.contains("up").then_some(())
    });
    disk.freeze();
    sandbox.open_gate("go");
    eventually("a writer that hangs", || {
        let hangs = |seen: &process::Seen| {
            let command = fs::read(format!("/proc/{}/cmdline", seen.id.pid)).unwrap_or_default();
            let at = disk.at.to_string_lossy().into_owned();
            seen.state == b'D' && String::from_utf8_lossy(&command).contains(&at)
        };
        process::all().iter().any(hangs).then_some(())
    });
}

#[test]
fn a_gpu_whose_process_no_kill_ends_is_quarantined_with_its_name_and_free_by_itself_once_it_is_gone() {
    let Some((sandbox, disk)) = with_frozen_disk() else { return };
    sandbox.drop_file("stuck.yaml", &job(&hangs(&sandbox, &disk), 1));
    freeze_with_a_writer(&sandbox, &disk, "stuck");
    sandbox.run(&["cancel", "stuck"]).ok();
    let detail = eventually("a GPU in quarantine", || {
        let gpu = gpu(&sandbox)?;
        (gpu["state"] == "quarantined").then(|| gpu["detail"].as_str().unwrap().to_owned())
    });
    assert!(detail.contains("(dd) did not answer the kill"), "{detail}");
    assert_eq!(wait_for_end(&sandbox, "stuck"), "cancelled");
    let shown = show(&sandbox, "stuck");
    assert_eq!(shown["attempts"][0]["ended_by"], "after_kill", "{shown:#}");
    assert_eq!(shown["attempts"][0]["release"]["verdict"], "quarantined", "{shown:#}");
    // The meter has stopped long ago, and nobody gets the GPU.
    sandbox.drop_file("next.yaml", &job("true", 1));
    wait_for_state(&sandbox, "next", "queued");
    assert_eq!(eventually("a GPU", || gpu(&sandbox))["state"], "quarantined");
    disk.thaw();
    assert_eq!(wait_for_end(&sandbox, "next"), "succeeded");
    sandbox.run(&["meter", "--check"]).ok();
}

#[test]
fn the_next_attempt_waits_until_the_last_one_s_processes_are_gone_also_across_a_restart() {
    let Some((mut sandbox, disk)) = with_frozen_disk() else { return };
    sandbox.drop_file("stuck.yaml", &job(&hangs(&sandbox, &disk), 0));
    freeze_with_a_writer(&sandbox, &disk, "stuck");
    // What is lost is tried again: here by the end of its supervisor.
    let journal =
        overnight::config::Paths::below(&sandbox.root()).run(overnight::model::LeaseId(1)).join(record::NAME);
    let intent = record::read(&journal).unwrap().intent().cloned().unwrap();
    assert!(process::signal(intent.supervisor, rustix::process::Signal::KILL));
    let waits = |sandbox: &Sandbox| {
        eventually("an attempt that waits for the proof", || {
            let list = look(sandbox, &["ls", "--json"])?;
            let job = list["jobs"].as_array()?.iter().find(|job| job["name"] == "stuck")?;
            job["why"].as_str()?.contains("not proven gone").then_some(())
        });
    };
    waits(&sandbox);
    sandbox.kill_scheduler();
    sandbox.serve();
    waits(&sandbox);
    disk.thaw();
    assert_eq!(wait_for_end(&sandbox, "stuck"), "succeeded");
    let shown = show(&sandbox, "stuck");
    assert_eq!(shown["attempts"][0]["outcome"]["kind"], "lost", "{shown:#}");
    assert_eq!(shown["attempts"][0]["ended_by"], "after_kill", "{shown:#}");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
}

#[test]
fn a_scheduler_takes_all_descriptors_it_may_have() {
    let sandbox = Sandbox::new("simulated:2");
    let mut scheduler = serve_after(&sandbox, "ulimit -Sn 48");
    let names: Vec<String> = (0..30).map(|n| format!("job-{n}")).collect();
    for name in &names {
        sandbox.drop_file(&format!("{name}.yaml"), &job(&wait_for_gate(&sandbox, "go"), 0));
    }
    for name in &names {
        wait_for_state(&sandbox, name, "running");
    }
    sandbox.open_gate("go");
    for name in &names {
        assert_eq!(wait_for_end(&sandbox, name), "succeeded");
        assert_eq!(show(&sandbox, name)["attempts"].as_array().unwrap().len(), 1);
    }
    sandbox.run(&["stop"]).ok();
    scheduler.wait().unwrap();
}

#[test]
fn a_scheduler_that_has_no_descriptors_left_says_so_and_loses_no_job() {
    let sandbox = Sandbox::new("simulated:2");
    let mut scheduler = serve_after(&sandbox, "ulimit -n 48");
    let count = 30;
    for n in 0..count {
        sandbox.drop_file(&format!("job-{n}.yaml"), &job(&wait_for_gate(&sandbox, "go"), 0));
    }
    eventually("jobs that run as far as there are descriptors", || {
        let list = look(&sandbox, &["ls", "--all", "--json"])?;
        let jobs = list["jobs"].as_array()?;
        let running = jobs.iter().filter(|job| job["state"] == "running").count();
        (jobs.len() == count && running >= 8).then_some(())
    });
    sandbox.open_gate("go");
    let mut refused = 0;
    for n in 0..count {
        let name = format!("job-{n}");
        let end = wait_for_end(&sandbox, &name);
        let shown = show(&sandbox, &name);
        assert_eq!(end, "succeeded", "{shown:#}");
        let lost =
            shown["attempts"].as_array().unwrap().iter().filter(|row| row["outcome"]["kind"] == "lost");
        for attempt in lost {
            refused += 1;
            let why = attempt["outcome"]["reason"].as_str().unwrap();
            assert!(why.contains("Too many open files"), "{why}");
        }
    }
    assert!(refused > 0, "descriptors were to run out");
    sandbox.run(&["stop"]).ok();
    scheduler.wait().unwrap();
}
