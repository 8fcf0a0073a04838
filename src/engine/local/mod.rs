//! The local engine: a supervisor process per lease, on this machine.
//!
//! It starts supervisors, passes orders on, turns their news into [`EngineReport`]s, and takes over what is left when a
//! supervisor is gone. It decides nothing. Of its neighbours it knows the supervisor's messages, processes and journal
//! only.

mod account;
mod channel;
mod compose;
mod leftover;
mod park;
mod ports;
mod settle;
mod translate;

use super::{Engine, EngineError};
use crate::cgroup::Layout;
use crate::clock;
use crate::config::Paths;
use crate::model::{Bytes, LeaseId, Token};
use crate::sched::{EngineReport, Launch, StopKind};
use crate::supervisor::message::{self, Order, Stopping};
use crate::supervisor::record::JournalError;
use crate::supervisor::{SOCKET, process, record};
use channel::{Channel, Channels};
use park::{Idle, Park};
use ports::Ports;
use settle::Lost;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;

use std::path::{Path, PathBuf};

use std::sync::Arc;

/// Where the engine's news goes; called from the engine's threads.
pub type Report = Arc<dyn Fn(EngineReport) + Send + Sync>;

/// What the engine has to know.
#[derive(Debug)]
pub struct LocalConfig {
    /// The scheduler's folders.
    pub paths: Paths,
    /// `PATH`, `LANG`, `LC_*` of the work.
    pub environment: BTreeMap<String, String>,
    /// For `overnight gpu-indices`, which the supervisor asks for the indices of real devices: what it needs to find the
    /// driver's library. The work does not see it.
    pub driver_environment: BTreeMap<String, String>,
    /// How much of an attempt's log is kept.
    pub log_bound: Bytes,
    /// Where the cross-scheduler locks of real devices are.
    pub lock_dir: PathBuf,
    /// This program, kept open: an upgraded file on disk changes nothing for a running scheduler.
    pub executable: OwnedFd,
    /// The program that collects and its arguments; `None` is `overnight collect`.
    pub collector: Option<Vec<String>>,
    /// Where groups are made.
    pub cgroups: Layout,
}

/// The local engine. Dropping it ends no supervisor: a later one finds them by [`survey`](Engine::survey).
pub struct LocalEngine {
    config: LocalConfig,
    report: Report,
    channels: Channels,
    thread: Option<std::thread::JoinHandle<()>>,
    account: BTreeMap<String, String>,
    uid: u32,
    ports: Ports,
    /// `None` once the engine closes.
    park: Option<Park>,
}

impl std::fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalEngine").field("config", &self.config).finish_non_exhaustive()
    }
}

impl LocalEngine {
    /// Starts the engine's thread.
    pub fn new(config: LocalConfig, report: Report) -> Result<Self, EngineError> {
        let run = config.paths.state.join("run");
        make_dir(&run)?;
        config.cgroups.sweep();
        let layout = Arc::new(config.cgroups.clone());
        let (channels, thread) = Channels::open(report.clone(), layout).map_err(io_error("watch", &run))?;
        let uid = rustix::process::geteuid().as_raw();
        let account = account::variables(uid);
        let kept = config.executable.try_clone().map_err(io_error("keep the program open for", &run))?;
        let park = Park::open(kept, &run, &config.cgroups);
        let park = Some(park.map_err(io_error("start a supervisor for", &run))?);
        let ports = Ports::default();
        Ok(Self { config, report, channels, thread: Some(thread), account, uid, ports, park })
    }

    /// Connects to those that live; the others are settled beside.
    fn find(&self, leases: impl IntoIterator<Item = (LeaseId, Token)>) -> Result<(), EngineError> {
        let mut lost = Vec::new();
        for (lease, token) in leases {
            let run_dir = self.config.paths.run(lease);
            if self.channels.has(lease) {
                continue;
            }
            match living(&run_dir, &token) {
                Some(stream) => {
                    let (child, output) = (None, Vec::new());
                    self.channels.add(Channel { lease, token, run_dir, stream, child, output });
                }
                None => lost.push(Lost { lease, token, run_dir, witnessed: false }),
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let (report, channels) = (self.report.clone(), self.channels.clone());
        std::thread::Builder::new()
            .name("engine-settle".to_owned())
            .spawn(move || settle::settle(lost, &report, &channels))
            .map(drop)
            .map_err(io_error("survey", &self.config.paths.state))
    }
}

impl Engine for LocalEngine {
    fn launch(&mut self, launch: &Launch) -> Result<(), EngineError> {
        let lease = launch.lease;
        let run_dir = self.config.paths.run(lease);
        if run_dir.join(record::NAME).exists() {
            // Launched before: adopted, not started twice.
            return self.find([(lease, launch.token.clone())]);
        }
        let port = self.ports.take(lease, self.uid);
        let spec = compose::compose(launch, &self.config, &self.account, port);
        let mut output = message::line(&Order::Launch(Box::new(spec)));
        let Some(park) = &self.park else { return Err(EngineError::Unknown(lease)) };
        let start = || park.take().map_err(io_error("start the supervisor of", &run_dir));
        let Idle { mut child, mut stream } = start()?;
        let mut sent = send_some(&mut stream, &mut output);
        if sent.is_err() {
            // The one that waited is gone: somebody killed it. Nothing of the launch was read.
            let _ = child.wait();
            Idle { child, stream } = start()?;
            sent = send_some(&mut stream, &mut output);
        }
        sent.map_err(io_error("launch by the channel of", &run_dir))?;
        park.refill();
        let token = launch.token.clone();
        self.channels.add(Channel { lease, token, run_dir, stream, child: Some(child), output });
        self.ports.look_ahead(lease, self.uid);
        Ok(())
    }

    fn stop(&mut self, lease: LeaseId, kind: &StopKind) -> Result<(), EngineError> {
        let order = Order::Stop(Stopping::from(kind));
        if self.channels.send(lease, message::line(&order)) {
            Ok(())
        } else {
            Err(EngineError::Unknown(lease))
        }
    }

    fn dismiss(&mut self, lease: LeaseId) -> Result<(), EngineError> {
        self.ports.give_back(lease);
        // One that is gone needs no dismissal.
        self.channels.send(lease, message::line(&Order::Dismiss));
        Ok(())
    }

    fn survey(&mut self, leases: &[(LeaseId, Token)]) -> Result<(), EngineError> {
        for (lease, _) in leases {
            self.ports.take(*lease, self.uid);
        }
        self.find(leases.iter().cloned())
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        self.channels.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Once the supervisor that waits is gone nobody may be left in our directories.
        self.park = None;
        self.config.cgroups.remove();
    }
}

/// Sends what fits at once; the rest is the thread's.
fn send_some(stream: &mut UnixStream, output: &mut Vec<u8>) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    match stream.write(output) {
        Ok(written) => {
            output.drain(..written);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a state with journals of a later version: before anything of it is touched.
pub fn refuse_newer(paths: &Paths) -> Result<(), EngineError> {
    let Ok(runs) = std::fs::read_dir(paths.state.join("run")) else { return Ok(()) };
    for run in runs.flatten() {
        if let Err(JournalError::Newer { path, version }) = record::read(&run.path().join(record::NAME)) {
            return Err(EngineError::Newer { path, version });
        }
    }
    Ok(())
}

/// The channel to a supervisor that its journal says to live.
fn living(run_dir: &Path, token: &Token) -> Option<UnixStream> {
    let state = record::read(&run_dir.join(record::NAME)).ok()?;
    let intent = state.intent()?;
    let lives = intent.token == *token
        && intent.at.boot == clock::boot_id()
        && process::is_running(intent.supervisor);
    if lives { connect(run_dir).ok() } else { None }
}

/// Connects to the socket in a run directory. Through a descriptor of the directory: its path may be too long.
fn connect(run_dir: &Path) -> io::Result<UnixStream> {
    let dir = std::fs::File::open(run_dir)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))
}

fn make_dir(path: &Path) -> Result<(), EngineError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("make", path))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EngineError {
    let path = path.to_owned();
    move |source| EngineError::Io { doing, path, source }
}
