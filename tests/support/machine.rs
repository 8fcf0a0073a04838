//! A machine with a driver of its own, and schedulers on it: the fake `libnvidia-ml.so.1` under the shipped binary.

use super::fake_nvml::{FakeDevice, FakeNvml, FakeState};
use super::support::sandbox::{Sandbox, eventually};
use overnight::clock;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// A machine with a driver: its devices, and the directory where all its schedulers keep their locks.
pub(crate) struct Machine {
    pub(crate) driver: FakeNvml,
    pub(crate) says: FakeState,
    pub(crate) locks: TempDir,
}

impl Machine {
    /// One with idle devices of these UUIDs, in PCI order.
    pub(crate) fn with(uuids: &[&str]) -> Self {
        let devices =
            uuids.iter().zip(1..).map(|(uuid, place)| FakeDevice::idle(uuid, place * 0x10)).collect();
        let says = FakeState { devices, ..FakeState::default() };
        Self { driver: FakeNvml::new(&says), says, locks: tempfile::tempdir().unwrap() }
    }

    /// Changes what the driver says.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut FakeState)) {
        change(&mut self.says);
        self.driver.set(&self.says);
    }

    /// Changes what the driver says of one device.
    pub(crate) fn device(&mut self, uuid: &str, change: impl FnOnce(&mut FakeDevice)) {
        self.change(|says| change(says.devices.iter_mut().find(|device| device.uuid == uuid).unwrap()));
    }

    /// A scheduler on this machine, not started; `limits` go into its config.
    pub(crate) fn sandbox(&self, limits: &str) -> Sandbox {
        let library = ("LD_LIBRARY_PATH".to_owned(), self.driver.library_dir().to_owned());
        let sandbox = Sandbox::with_environment("auto", vec![library]);
        let config = sandbox.dir().join("home/.config/overnight");
        fs::create_dir_all(&config).unwrap();
        let locks = self.locks.path().display();
        let text = format!("[limits]\n{limits}\n[outside]\nlock_dir = \"{locks}\"\n");
        fs::write(config.join("config.toml"), text).unwrap();
        sandbox
    }

    /// A scheduler on this machine that answers.
    pub(crate) fn serving(&self) -> Sandbox {
        let mut sandbox = self.sandbox("");
        sandbox.serve();
        sandbox
    }
}

/// A process of this test, ended with it.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn sleep() -> Self {
        Self::of(Command::new("sleep").arg("600"))
    }

    /// A program that was just copied is busy while a process that another test forks has its descriptors.
    pub(crate) fn of(command: &mut Command) -> Self {
        let start = || match command.stdin(Stdio::piped()).spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
            started => Some(started.unwrap()),
        };
        Self(eventually("a program that nobody writes", start))
    }

    /// A line of the driver's list of processes.
    pub(crate) fn on_gpu(&self, kind: &str, bytes: u64) -> String {
        format!("process = {kind} {} {bytes}", self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job that runs `run` on what `request` asks for.
pub(crate) fn job(run: &str, request: &str) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  stop: {{grace: 2s}}\n  run: |\n    {run}\ndata: []\nrequest: {{cpus: 1, memory: 1MiB, for: 5m, {request}}}\noutput: []\n"
    )
}

/// Shell that hands back its environment and the moment of its first instruction, then waits for a gate.
pub(crate) fn until(gate: &Path) -> String {
    format!(
        "echo $EPOCHREALTIME >$OVERNIGHT_OUTPUT/began\nenv >$OVERNIGHT_OUTPUT/env\n\
         until [ -e '{}' ]; do sleep 0.02; done",
        gate.display()
    )
}

/// Drops a job on one GPU that waits for the gate of its name.
pub(crate) fn hold(sandbox: &Sandbox, name: &str, request: &str) {
    let text = job(&until(&sandbox.gate(name)), &format!("gpus: 1, {request}"));
    sandbox.drop_file(&format!("{name}.yaml"), &text);
}

/// A device as `gpus --json` shows it.
pub(crate) fn gpu(sandbox: &Sandbox, uuid: &str) -> Value {
    let list = sandbox.run(&["gpus", "--json"]).json();
    let found = list["gpus"].as_array().unwrap().iter().find(|gpu| gpu["uuid"] == uuid).cloned();
    found.unwrap_or_default()
}

/// Waits until a device is in this state.
pub(crate) fn gpu_in(sandbox: &Sandbox, uuid: &str, state: &str) -> Value {
    let mut last = Value::Null;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("the state", || {
            last = gpu(sandbox, uuid);
            (last["state"] == state).then(|| last.clone())
        })
    }));
    found.unwrap_or_else(|_| panic!("{uuid} was never {state}: {last:#}"))
}

/// Waits until a waiting job says this of why it waits.
pub(crate) fn waits_because(sandbox: &Sandbox, name: &str, word: &str) {
    eventually(&format!("{name} that waits because of {word}"), || {
        let job = sandbox.jobs().into_iter().find(|job| job["name"] == name)?;
        assert_eq!(job["state"], "queued", "{job:#}");
        job["why"].as_str()?.contains(word).then_some(())
    });
}

/// Waits until the last reading is too old for a grant.
pub(crate) fn let_readings_age() {
    let began = clock::monotonic();
    eventually("a later time", || (clock::monotonic().0 > began.0 + 300).then_some(()));
}

/// Runs on, and is the only attempt.
pub(crate) fn still_runs(sandbox: &Sandbox, name: &str) {
    let job = sandbox.show(name);
    assert_eq!(job["state"], "running", "{job:#}");
    assert_eq!(job["attempts"].as_array().unwrap().len(), 1, "{job:#}");
}

pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key}: {value:#}"))
}

/// What the work found in its environment.
pub(crate) fn environment(sandbox: &Sandbox, name: &str) -> HashMap<String, String> {
    let path = sandbox.job_folder(&sandbox.wait_for_state(name, "running")).join("output/env");
    let env = eventually("an environment", || fs::read_to_string(&path).ok().filter(|env| !env.is_empty()));
    env.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// When the work began, by its own clock, milliseconds since the epoch.
pub(crate) fn began_ms(sandbox: &Sandbox, name: &str) -> f64 {
    let began = eventually("the start of a job", || {
        let job = sandbox.jobs().into_iter().find(|job| job["name"] == name)?;
        let text = fs::read_to_string(sandbox.job_folder(&job).join("output/began")).ok()?;
        text.trim().parse::<f64>().ok()
    });
    began * 1000.0
}
