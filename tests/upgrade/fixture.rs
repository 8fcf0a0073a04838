//! States of milestones: how one is made, and copies to try.

use crate::boots::{end_of_the_machine, lease_of};
use crate::support::sandbox::{Sandbox, eventually};
use overnight::store::Identity;
use overnight::supervisor::record;
use redb::{Database, ReadableDatabase, TableDefinition};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The control file of simulated devices: the last one is dirty after its next lease.
const DIRTY: &str = "[gpu.3.dirty]\nmemory = \"40GiB\"\n";
/// The same, for a scheduler that starts: what is in use there is of no lease that it knows.
pub(crate) const STILL_DIRTY: &str = "[gpu.3.outside]\npid = 777\nmemory = \"40GiB\"\n";

const META: TableDefinition<'_, &str, &str> = TableDefinition::new("meta");

/// A job on one GPU.
pub(crate) fn job(run: &str, more: &str) -> String {
    job_on(1, run, more)
}

fn job_on(gpus: u32, run: &str, more: &str) -> String {
    format!(
        "work: {{run: {run:?}}}\ndata: []\nrequest: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: 5m{more}}}\noutput: [{{path: made, optional: true}}]\n"
    )
}

fn states() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state")
}

/// Where a milestone's is.
pub(crate) fn dir(milestone: &str) -> PathBuf {
    states().join(milestone)
}

/// All milestones, oldest first.
pub(crate) fn milestones() -> Vec<String> {
    let entries = fs::read_dir(states()).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort_by_key(|name| name.split('-').next().unwrap().parse::<u32>().unwrap());
    names
}

/// A copy of a milestone's root that belongs to this machine.
pub(crate) struct Fixture {
    pub(crate) root: PathBuf,
    milestone: String,
    #[expect(dead_code, reason = "removed at the end")]
    dir: TempDir,
}

impl Fixture {
    pub(crate) fn copy(milestone: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        copy(&dir(milestone).join("root"), &root);
        fs::rename(root.join("state"), root.join(".state")).unwrap();
        fs::rename(root.join("first-start"), root.join(".first-start")).unwrap();
        let fixture = Self { root, milestone: milestone.to_owned(), dir: temp };
        fixture.set_meta("machine_id", &Identity::read().machine_id);
        fixture
    }

    /// What its scheduler said last.
    pub(crate) fn said(&self, what: &str) -> Value {
        serde_json::from_slice(&fs::read(dir(&self.milestone).join(format!("{what}.json"))).unwrap()).unwrap()
    }

    /// The journal of a job's only lease.
    pub(crate) fn journal_of(&self, name: &str) -> PathBuf {
        let said = self.said("ls");
        let job = said["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
        let runs = fs::read_dir(self.root.join(".state/run")).unwrap().map(|run| run.unwrap().path());
        let mut journals = runs.map(|run| run.join(record::NAME));
        journals.find(|path| record::read(path).unwrap().intent().unwrap().job.0 == job["id"]).unwrap()
    }

    pub(crate) fn meta(&self, key: &str) -> String {
        let db = Database::open(self.root.join(".state/state.redb")).unwrap();
        let txn = db.begin_read().unwrap();
        txn.open_table(META).unwrap().get(key).unwrap().unwrap().value().to_owned()
    }

    pub(crate) fn set_meta(&self, key: &str, value: &str) {
        set_meta(&self.root.join(".state/state.redb"), &[(key, value)]);
    }
}

fn set_meta(store: &Path, values: &[(&str, &str)]) {
    let mut db = Database::create(store).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut meta = txn.open_table(META).unwrap();
        for (key, value) in values {
            meta.insert(*key, *value).unwrap();
        }
    }
    txn.commit().unwrap();
    while db.compact().unwrap() {}
}

/// Files, folders and links; no sockets.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Run by hand when a milestone lands; see `tests/upgrade.rs`.
#[test]
#[ignore = "writes tests/fixtures/state"]
fn write_the_fixture() {
    let milestone = std::env::vars().find(|(name, _)| name == "OVERNIGHT_MILESTONE").unwrap().1;
    assert!(!dir(&milestone).exists(), "a milestone's fixture is never changed");
    let mut sandbox = Sandbox::new("simulated:4");
    let config = sandbox.dir().join("home/.config/overnight");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[limits]\ndrain = \"1s\"\n").unwrap();
    let control = sandbox.dir().join("control.toml");
    fs::write(&control, "").unwrap();
    sandbox.serve_with(&["--control", control.to_str().unwrap()]);
    sandbox.serve();
    busy_evening(&sandbox, &control);
    let listed = sandbox.run(&["ls", "--all", "--json"]).ok().stdout;
    let gpus = sandbox.run(&["gpus", "--json"]).ok().stdout;
    end_of_the_machine(&mut sandbox);

    let to = dir(&milestone);
    let root = to.join("root");
    copy(&sandbox.root().join("jobs"), &root.join("jobs"));
    copy(&sandbox.root().join("inbox"), &root.join("inbox"));
    fs::copy(sandbox.root().join(".first-start"), root.join("first-start")).unwrap();
    let state = sandbox.root().join(".state");
    fs::create_dir_all(root.join("state/run")).unwrap();
    fs::copy(state.join("state.redb"), root.join("state/state.redb")).unwrap();
    let lease = lease_of_stored(&state, "running", &listed);
    copy(&state.join("run").join(&lease), &root.join("state/run").join(&lease));
    let nobody = [("machine_id", "0".repeat(32)), ("hostname", "box".to_owned())];
    set_meta(&root.join("state/state.redb"), &nobody.each_ref().map(|(key, value)| (*key, value.as_str())));
    fs::write(to.join("ls.json"), listed).unwrap();
    let node = overnight::config::hostname();
    fs::write(to.join("gpus.json"), gpus.replace(&format!("\"{node}\""), "\"box\"")).unwrap();
    // Nothing is left to be ended.
    sandbox.leave();
}

fn lease_of_stored(state: &Path, name: &str, listed: &str) -> String {
    let listed: Value = serde_json::from_str(listed).unwrap();
    let job = listed["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap().clone();
    let runs = fs::read_dir(state.join("run")).unwrap().map(|run| run.unwrap());
    let mut leases = runs.filter(|run| {
        let read = record::read(&run.path().join(record::NAME));
        read.is_ok_and(|state| state.intent().is_some_and(|intent| intent.job.0 == job["id"]))
    });
    leases.next().unwrap().file_name().into_string().unwrap()
}

/// Some of everything: jobs that are done in every way, one that runs, several that wait, a device in quarantine.
fn busy_evening(sandbox: &Sandbox, control: &Path) {
    sandbox.drop_file("done.yaml", &job("echo out; echo made > made", ""));
    assert_eq!(sandbox.wait_for_end("done"), "succeeded");
    sandbox.drop_file("failed.yaml", &job("echo oh no >&2; exit 3", ", retry: {times: 1, when: [3]}"));
    assert_eq!(sandbox.wait_for_end("failed"), "failed");
    let pair =
        format!("name: breaks\n{}---\nname: never\n{}", job("exit 1", ""), job("true", ", after: [breaks]"));
    sandbox.drop_file("pair.yaml", &pair);
    assert_eq!(sandbox.wait_for_end("never"), "never_started");
    let folder = sandbox.dir().join("staging/in-a-folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("job.yaml"), job("cat code.txt > made", "").replace("work: {", "work: {in: ., "))
        .unwrap();
    fs::write(folder.join("code.txt"), "the code\n").unwrap();
    fs::rename(&folder, sandbox.inbox().join("in-a-folder")).unwrap();
    assert_eq!(sandbox.wait_for_end("in-a-folder"), "succeeded");
    // Its last device stays dirty.
    fs::write(control, DIRTY).unwrap();
    sandbox.drop_file("dirty.yaml", &job_on(4, "true", ""));
    assert_eq!(sandbox.wait_for_end("dirty"), "succeeded");
    eventually("a device in quarantine", || {
        let list = sandbox.run(&["gpus", "--json"]).json();
        list["gpus"].as_array().unwrap().iter().any(|gpu| gpu["state"] == "quarantined").then_some(())
    });

    // The second attempt ends at once: its journal says that it is not the first.
    let run = "echo half > made; [ $OVERNIGHT_ATTEMPT -gt 1 ] || sleep 300";
    sandbox.drop_file("running.yaml", &job(run, ""));
    sandbox.wait_for_state("running", "running");
    sandbox.drop_file("after-it.yaml", &job("true", ", after: [running]"));
    sandbox.drop_file("wide.yaml", &job_on(4, "true", ", priority: low"));
    sandbox.drop_file("cancelled.yaml", &job("true", ", start_after: \"2099-01-01 00:00\""));
    sandbox.wait_for_state("cancelled", "queued");
    sandbox.run(&["cancel", "cancelled"]).ok();
    let paused = sandbox.dir().join("paused.yaml");
    fs::write(&paused, job("true", "")).unwrap();
    sandbox.run(&["submit", "--paused", paused.to_str().unwrap()]).ok();
    // What has been changed about a job is remembered with it.
    let edited = sandbox.dir().join("edited.yaml");
    fs::write(&edited, job("true", "")).unwrap();
    sandbox.run(&["submit", "--paused", edited.to_str().unwrap()]).ok();
    sandbox.run(&["edit", "edited", "--for", "7m", "--yes"]).ok();
    sandbox.run(&["priority", "edited", "-3"]).ok();
    fs::write(sandbox.inbox().join("refused.yaml"), "work: {run: x}\n").unwrap();
    eventually("a refusal", || sandbox.inbox().join("refused.yaml.why.txt").exists().then_some(()));
    for name in ["after-it", "wide"] {
        eventually("a job", || sandbox.jobs().iter().any(|job| job["name"] == name).then_some(()));
    }
    let lease = lease_of(sandbox, "running", 0);
    let journal = sandbox.root().join(format!(".state/run/{lease}")).join(record::NAME);
    eventually("a heartbeat", || record::read(&journal).ok()?.heartbeat);
    eventually("receipts", || {
        let done = sandbox.jobs().into_iter().filter(|job| job["state"] == "done");
        done.into_iter().all(|job| sandbox.job_folder(&job).join("receipt.json").exists()).then_some(())
    });
}
