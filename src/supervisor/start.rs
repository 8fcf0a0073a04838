//! The start of an attempt: its directories, its environment, its main process.

use super::child::{Begun, NotBegun, Work};
use super::log::Log;
use super::process::{self, ProcessId};
use super::seat::Seated;
use super::spec::{DataLink, LaunchSpec, WorkDir};
use super::streams::Streams;
use super::{blank, devices, environment, script};
use crate::clock;
use crate::model::{Enforcement, Now, Run, shortened};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What is told of a program's name.
const SHOWN: usize = 200;

/// An attempt that runs.
#[derive(Debug)]
pub(super) struct Started {
    /// The main process; it leads a session of its own.
    pub(super) main: ProcessId,
    /// When.
    pub(super) at: Now,
    /// What the work prints comes out here.
    pub(super) streams: Streams,
    /// Where it goes.
    pub(super) log: Log,
    /// What the work is held to.
    pub(super) enforcement: Enforcement,
    /// For the receipt.
    pub(super) notes: Vec<String>,
}

/// Why an attempt was not started, in words.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Its directory, program or environment is at fault.
    Work(String),
    /// The pool is at fault.
    Pool(String),
}

/// Has the child that waits become the main process of an attempt.
pub(super) fn start(spec: &LaunchSpec, seated: Seated) -> Result<Started, Refusal> {
    let mut notes = Vec::new();
    let scratch = Scratch::of(spec);
    make_dirs(spec, &scratch)?;
    link_data(spec, &scratch.data, &mut notes)?;
    let log = Log::open(&spec.log, spec.log_bound)
        .map_err(|error| Refusal::Pool(format!("the log {}: {error}", spec.log.display())))?;
    let visible = devices::visible(&spec.devices, Path::new(devices::DRIVER)).map_err(Refusal::Pool)?;
    let now = clock::now();
    let mut variables = environment::merge(&spec.environment).map_err(Refusal::Work)?;
    variables.extend(own_variables(spec, &scratch, visible, now));
    let (work, what) = work(spec, &scratch, variables)?;
    let no_child =
        |error: io::Error| Refusal::Pool(format!("a process for the work could not be started: {error}"));
    let child = seated.child.map_err(no_child)?;
    let at = clock::now();
    let Begun { pid, streams, entered } = child.start(&work).map_err(|why| match why {
        NotBegun::Child(error) => no_child(error),
        NotBegun::Work(error) => not_started(&what, &work.directory, &error),
    })?;
    let main = process::look(pid).map_or(ProcessId { pid, starttime: 0 }, |seen| seen.id);
    let mut enforcement = seated.enforcement;
    if !entered {
        let why = "the work could not be moved into all of its cgroups";
        let before = enforcement.why.take().map(|before| format!("; {before}")).unwrap_or_default();
        enforcement = Enforcement::advisory(format!("{why}{before}"));
    }
    notes.extend(not_enforced(spec, &enforcement));
    Ok(Started { main, at, streams, log, enforcement, notes })
}

/// What was asked for and is not enforced, for the receipt.
fn not_enforced(spec: &LaunchSpec, enforcement: &Enforcement) -> Vec<String> {
    let why = enforcement.why.as_deref().unwrap_or("no cgroup has it");
    let asked = [
        ("memory", spec.limits.memory.is_some(), enforcement.memory),
        ("cpus", spec.limits.cpus.is_some(), enforcement.cpus),
    ];
    let missed = asked.into_iter().filter(|(_, asked, enforced)| *asked && !enforced);
    missed.map(|(what, ..)| format!("request.{what} is advisory here, not enforced: {why}")).collect()
}

/// The attempt's private directories below the run directory.
struct Scratch {
    data: PathBuf,
    tmp: PathBuf,
    script: PathBuf,
}

impl Scratch {
    fn of(spec: &LaunchSpec) -> Self {
        let below = |what: &str| spec.run_dir.join(format!("{what}-{}-{}", spec.task, spec.attempt));
        Self { data: below("data"), tmp: below("tmp"), script: below("script") }
    }
}

fn make_dirs(spec: &LaunchSpec, scratch: &Scratch) -> Result<(), Refusal> {
    let mut own = vec![&scratch.data, &scratch.tmp, &spec.output_dir];
    match &spec.work {
        WorkDir::Fresh(path) => own.push(path),
        WorkDir::Prepared(path) if !path.is_dir() => {
            return Err(Refusal::Pool(format!("the prepared directory {} is not there", path.display())));
        }
        WorkDir::Live(path) if !path.is_dir() => {
            return Err(Refusal::Work(format!("the directory {} is not there", path.display())));
        }
        WorkDir::Prepared(_) | WorkDir::Live(_) => {}
    }
    if let Some(attempt) = spec.log.parent() {
        blank::place_folder(&spec.run_dir, attempt);
        make_dir(attempt)?;
    }
    own.into_iter().try_for_each(|path| make_dir(path))
}

fn make_dir(path: &Path) -> Result<(), Refusal> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Refusal::Pool(format!("the directory {}: {error}", path.display())))
}

/// Data under its own name, in `$OVERNIGHT_DATA` and in the work directory; what is already there stays.
fn link_data(spec: &LaunchSpec, data: &Path, notes: &mut Vec<String>) -> Result<(), Refusal> {
    for DataLink { target, name } in &spec.data {
        match std::fs::metadata(target) {
            Ok(meta) if meta.is_file() || meta.is_dir() => {}
            Ok(_) => {
                let shown = target.display();
                return Err(Refusal::Work(format!(
                    "data `{name}` is neither a file nor a directory: {shown}"
                )));
            }
            Err(_) => return Err(Refusal::Work(format!("data `{name}` is not there: {}", target.display()))),
        }
        let linked = std::os::unix::fs::symlink(target, data.join(name));
        linked.map_err(|error| Refusal::Pool(format!("data `{name}`: {error}")))?;
        let place = spec.work.path().join(name);
        match std::os::unix::fs::symlink(target, &place) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if std::fs::read_link(&place).ok().as_ref() != Some(target) {
                    notes.push(format!(
                        "`{name}` is already in the work directory and was left alone; the data is at $OVERNIGHT_DATA/{name}"
                    ));
                }
            }
            Err(error) => notes.push(format!(
                "data `{name}` could not be linked into the work directory: {error}; it is at $OVERNIGHT_DATA/{name}"
            )),
        }
    }
    Ok(())
}

/// What only this moment knows; nothing of the job's overrides it.
fn own_variables(
    spec: &LaunchSpec,
    scratch: &Scratch,
    visible: String,
    now: Now,
) -> BTreeMap<String, String> {
    let held = &spec.devices.held;
    let uuids = held.iter().map(|device| device.uuid.0.as_str()).collect::<Vec<_>>().join(",");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut all = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        all.insert(key.to_owned(), value);
    };
    set("CUDA_VISIBLE_DEVICES", visible);
    set("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned());
    set("NVIDIA_VISIBLE_DEVICES", if held.is_empty() { "void".to_owned() } else { uuids.clone() });
    set("OVERNIGHT_GPU_COUNT", held.len().to_string());
    if !held.is_empty() {
        // docker wants the quotes around a list.
        set("OVERNIGHT_DOCKER_GPUS", format!("\"device={uuids}\""));
    }
    set("OVERNIGHT_GPU_UUIDS", uuids);
    set("OVERNIGHT_TOKEN", spec.token.0.clone());
    set("OVERNIGHT_DATA", text(&scratch.data));
    set("OVERNIGHT_OUTPUT", text(&spec.output_dir));
    set("TMPDIR", text(&scratch.tmp));
    if let Some(limit) = spec.limit {
        set("OVERNIGHT_LIMIT_S", limit.as_secs().to_string());
        set("OVERNIGHT_LIMIT_AT", (now.plus(limit).wall_ms / 1000).to_string());
    }
    all
}

/// What the child is to become, and its name for people.
fn work(
    spec: &LaunchSpec,
    scratch: &Scratch,
    environment: BTreeMap<String, String>,
) -> Result<(Work, String), Refusal> {
    let write = |text: String| {
        std::fs::write(&scratch.script, text)
            .map_err(|error| Refusal::Pool(format!("the script {}: {error}", scratch.script.display())))
    };
    let bash = || {
        let script = scratch.script.to_string_lossy().into_owned();
        vec!["bash".to_owned(), "-eo".to_owned(), "pipefail".to_owned(), script]
    };
    let (mut argv, what) = match &spec.run {
        Run::Shell(text) => {
            write(script::script(&spec.setup, text))?;
            (bash(), "bash".to_owned())
        }
        Run::Argv(argv) => {
            let Some(program) = argv.first() else {
                return Err(Refusal::Work("run is an empty list: no program to start".to_owned()));
            };
            let before = if spec.setup.is_empty() {
                Vec::new()
            } else {
                write(script::exec_script(&spec.setup))?;
                bash()
            };
            (before.into_iter().chain(argv.iter().cloned()).collect(), program.clone())
        }
    };
    let program = argv.remove(0);
    let directory = spec.work.path().clone();
    Ok((Work { program, arguments: argv, environment, directory }, what))
}

fn not_started(what: &str, work: &Path, error: &io::Error) -> Refusal {
    // A word of a job file: it may be as long as one, and goes into every list.
    let what = shortened(what, SHOWN);
    let words = match error.kind() {
        io::ErrorKind::NotFound => format!(
            "`{what}` was not found (exit 127 in a shell); PATH is the one of the scheduler's config, and a relative \
             name starts in {}",
            work.display()
        ),
        io::ErrorKind::PermissionDenied => {
            format!("`{what}` cannot be executed (exit 126 in a shell): chmod +x, or name its interpreter")
        }
        _ => {
            let words = format!("`{what}`: {error}");
            // Not the work's fault: the machine is out of processes or memory.
            if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM | libc::ENFILE | libc::EMFILE))
            {
                return Refusal::Pool(words);
            }
            words
        }
    };
    Refusal::Work(words)
}
