//! A root of its own for each test: starts the real binary over it, drops files, reads its JSON, and ends all of it again.

use super::pty::{Pty, patience};
use overnight::clock;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Between two looks at something that has no event to wait for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks until `look` finds something; fails after the one timeout.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(patience(), look).unwrap_or_else(|| panic!("there was never {what}"))
}

/// Looks until `look` finds something, for so long at most.
pub(crate) fn within<T>(span: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let started = clock::monotonic();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if u128::from(clock::monotonic().0 - started.0) > span.as_millis() {
            return None;
        }
        std::thread::park_timeout(BETWEEN_LOOKS);
    }
}

/// What a run of the binary came to.
pub(crate) struct Run {
    /// Its exit code; -1 after a signal.
    pub(crate) code: i32,
    /// Both streams, as text.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The same, if it ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Its output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let run = self.ok();
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error} in:\n{}", run.stdout))
    }
}

/// A folder with a root in it, and a scheduler over it.
pub(crate) struct Sandbox {
    dir: TempDir,
    gpus: String,
    /// More words for `serve`.
    serve_with: Vec<String>,
    environment: Vec<(String, PathBuf)>,
    /// What the scheduler is started by: namespaces, for instance.
    wrapper: Vec<String>,
    /// Nothing of it is left to be ended.
    left: bool,
    scheduler: Option<Child>,
}

impl Sandbox {
    /// An empty one, without a scheduler; `gpus` is what `serve --gpus` will be given.
    pub(crate) fn new(gpus: &str) -> Self {
        Self::with_environment(gpus, Vec::new())
    }

    /// Likewise; all that is started here finds these variables too.
    pub(crate) fn with_environment(gpus: &str, environment: Vec<(String, PathBuf)>) -> Self {
        let dir = tempfile::Builder::new().prefix("overnight-").tempdir().unwrap();
        for folder in ["home", "gates", "staging"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self {
            dir,
            gpus: gpus.to_owned(),
            serve_with: Vec::new(),
            environment,
            wrapper: Vec::new(),
            left: false,
            scheduler: None,
        }
    }

    /// Gives `serve` more words from now on.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn serve_with(&mut self, words: &[&str]) {
        self.serve_with = words.iter().map(|word| (*word).to_owned()).collect();
    }

    /// One with a scheduler that answers.
    pub(crate) fn serving(gpus: &str) -> Self {
        let mut sandbox = Self::new(gpus);
        sandbox.serve();
        sandbox
    }

    /// An empty one whose root is on a disk that is mounted elsewhere.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn on(root: &Path, gpus: &str) -> Self {
        let sandbox = Self::new(gpus);
        std::os::unix::fs::symlink(root, sandbox.root()).unwrap();
        sandbox
    }

    /// From now on the scheduler is started by this command; the program and its arguments follow.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn wrap(&mut self, wrapper: Vec<String>) {
        self.wrapper = wrapper;
    }

    /// Nothing of it runs, and nothing is to be ended.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn leave(mut self) {
        self.left = true;
    }

    /// From now on all that is started here finds this variable.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.into()));
    }

    /// The folder of all of it.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What `--root` is given.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir().join("root")
    }

    /// Where files are dropped.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.root().join("inbox")
    }

    /// The folder of a job.
    pub(crate) fn job_folder(&self, job: &Value) -> PathBuf {
        self.root().join("jobs").join(format!("{}-{}", job["id"], job["name"].as_str().unwrap()))
    }

    /// A file that a job may wait for; [`Sandbox::open_gate`] makes it.
    pub(crate) fn gate(&self, name: &str) -> PathBuf {
        self.dir().join("gates").join(name)
    }

    /// Lets the jobs go that wait for this gate.
    pub(crate) fn open_gate(&self, name: &str) {
        File::create(self.gate(name)).unwrap();
    }

    /// The binary over this root, in an environment of its own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let built = || env!("CARGO_BIN_EXE_overnight").into();
        let mut command = Command::new(std::env::var_os("OVERNIGHT_TEST_BINARY").unwrap_or_else(built));
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command
            .arg("--root")
            .arg(self.root())
            .args(args)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.dir().join("home"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.dir())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The binary in a terminal.
    pub(crate) fn in_terminal(&self, args: &[&str], cols: u16, rows: u16) -> Pty {
        Pty::spawn(self.command(args), cols, rows)
    }

    /// Starts the scheduler and waits until it answers.
    pub(crate) fn serve(&mut self) {
        self.spawn_scheduler();
        eventually("a scheduler that answers", || {
            let child = self.scheduler.as_mut()?;
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the scheduler ended with {status}:\n{}", self.scheduler_said());
            }
            self.answers().then_some(())
        });
    }

    /// Starts the scheduler and does not wait for it.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn spawn_scheduler(&mut self) {
        let wrapper = self.wrapper.clone();
        self.spawn_under(&wrapper.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Starts the scheduler, under another program if one is named, and does not wait for its answer.
    pub(crate) fn spawn_under(&mut self, program: &[&str]) {
        let said = File::options().create(true).append(true).open(self.dir().join("scheduler.out")).unwrap();
        let mut words = vec!["serve", "--gpus", &self.gpus];
        words.extend(self.serve_with.iter().map(String::as_str));
        let plain = self.command(&words);
        let mut command = match program {
            [] => plain,
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(plain.get_program()).args(plain.get_args()).env_clear();
                command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
                command.current_dir(self.dir()).stdin(Stdio::null());
                command
            }
        };
        let child =
            command.env("SCHEDULERS_OWN", "secret").stdout(said.try_clone().unwrap()).stderr(said).spawn();
        self.scheduler = Some(child.unwrap());
    }

    /// The scheduler's process, or that of the program it was started under.
    #[allow(dead_code, reason = "some suites look at it")]
    pub(crate) fn scheduler_pid(&self) -> u32 {
        self.scheduler.as_ref().unwrap().id()
    }

    /// Whether the scheduler has ended by now, and how; it is waited for then.
    #[allow(dead_code, reason = "some suites end it in ways of their own")]
    pub(crate) fn scheduler_ended(&mut self) -> Option<std::process::ExitStatus> {
        let ended = self.scheduler.as_mut()?.try_wait().unwrap();
        if ended.is_some() {
            self.scheduler = None;
        }
        ended
    }

    /// Whether a scheduler listens.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn answers(&self) -> bool {
        UnixStream::connect(self.root().join(".state/overnight.sock")).is_ok()
    }

    /// Everything the scheduler printed and logged.
    pub(crate) fn scheduler_said(&self) -> String {
        let mut text = String::new();
        for file in ["scheduler.out", "root/.state/scheduler.log"] {
            if let Ok(said) = fs::read_to_string(self.dir().join(file)) {
                let _ = writeln!(text, "--- {file}\n{said}");
            }
        }
        text
    }

    /// Ends the scheduler as a power failure would: no handler runs.
    pub(crate) fn kill_scheduler(&mut self) {
        let mut child = self.scheduler.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits for the end of a scheduler that was told to stop.
    #[allow(dead_code, reason = "some suites do")]
    pub(crate) fn wait_for_scheduler(&mut self) {
        self.scheduler.take().unwrap().wait().unwrap();
    }

    /// Drops a job file by a rename, whole.
    pub(crate) fn drop_file(&self, name: &str, text: &str) {
        let staged = self.dir().join("staging").join(name);
        fs::write(&staged, text).unwrap();
        fs::rename(&staged, self.inbox().join(name)).unwrap();
    }

    /// Drops a sample job, file or folder, by a rename, whole.
    pub(crate) fn drop_sample(&self, name: &str) {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-jobs");
        let folder = samples.join(name);
        if !folder.is_dir() {
            let file = format!("{name}.yaml");
            return self.drop_file(&file, &fs::read_to_string(samples.join(&file)).unwrap());
        }
        let staged = self.dir().join("staging").join(name);
        fs::create_dir(&staged).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), staged.join(entry.file_name())).unwrap();
        }
        fs::rename(&staged, self.inbox().join(name)).unwrap();
    }

    /// Every job, done or not.
    pub(crate) fn jobs(&self) -> Vec<Value> {
        let list = self.run(&["ls", "--all", "--json"]).json();
        list["jobs"].as_array().unwrap().clone()
    }

    /// One job in full, by name or id.
    pub(crate) fn show(&self, job: &str) -> Value {
        let shown = self.run(&["show", job, "--json"]).json();
        // One job, with or without the envelope of the lists.
        shown.get("job").cloned().unwrap_or(shown)
    }

    /// Waits until a job of this name is in `state`.
    pub(crate) fn wait_for_state(&self, name: &str, state: &str) -> Value {
        let mut last = Value::Null;
        within(patience(), || {
            last = self.jobs().into_iter().find(|job| job["name"] == name).unwrap_or_default();
            (last["state"] == state).then(|| last.clone())
        })
        .unwrap_or_else(|| panic!("{name} was never {state}; it is {last:#}\n{}", self.scheduler_said()))
    }

    /// Waits until a job of this name is done, and says what it came to.
    pub(crate) fn wait_for_end(&self, name: &str) -> String {
        let job = self.wait_for_state(name, "done");
        job["outcome"]["kind"]
            .as_str()
            .unwrap_or_else(|| panic!("done without an outcome: {job:#}"))
            .to_owned()
    }

    /// The running and waiting jobs, cancelled; then the scheduler, stopped. By the verbs, then by its own handle.
    #[expect(clippy::print_stderr, reason = "a failed test shows what the scheduler said")]
    fn end_everything(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.scheduler_said());
        }
        if self.left || !self.root().join(".state").exists() {
            return;
        }
        if !self.answers() {
            self.spawn_scheduler();
            within(Duration::from_secs(5), || self.answers().then_some(()));
        }
        within(Duration::from_secs(10), || {
            let output = self.command(&["ls", "--json"]).output().ok()?;
            let list: Value = serde_json::from_slice(&output.stdout).ok()?;
            let open = list["jobs"].as_array()?;
            for job in open.iter().filter(|job| job["cancel_at"].is_null()) {
                let _ = self.command(&["cancel", &job["id"].to_string()]).output();
            }
            open.is_empty().then_some(())
        });
        let _ = self.command(&["stop"]).output();
        if let Some(mut child) = self.scheduler.take() {
            within(Duration::from_secs(5), || child.try_wait().ok().flatten());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.end_everything();
        // A supervisor that was dismissed may write its last meanwhile.
        within(Duration::from_secs(2), || match fs::remove_dir_all(self.dir.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => None,
            _ => Some(()),
        });
    }
}
