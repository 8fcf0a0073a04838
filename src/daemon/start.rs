//! Opens everything, in the order in which it can be refused; then runs the loop.

use super::clerk::{Clerk, private_dir};
use super::clockwatch;
use super::devices::Devices;
use super::durable::Disk;
use super::held::Earlier;
use super::intake::{InboxBoard, Intake};
use super::message::{INBOX_LEN, Mailbox, Message, fill_random};
use super::showing::Showing;
use super::socket::{self, Desk};
use super::turns::Daemon;
use crate::cgroup::Layout;
use crate::config::{Config, Environment, Paths};
use crate::engine::local::{self, LocalConfig, LocalEngine};
use crate::engine::{Engine, EngineError};
use crate::gpu::{self, GpuChoice, OpenOptions};
use crate::inbox::{Inbox, InboxConfig, InboxError};
use crate::model::{Bytes, Owner, Revision};
use crate::sched::{Input, World, leases_to_find, resume};
use crate::store::{Identity, Store, StoreError, StoreOptions};
use jiff::tz::TimeZone;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

/// A scheduler that holds the lock is asked for this long whether it is there.
const PROBE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// A held lock is asked for again for this long. A scheduler that was just killed may leave its lock to a process that it
/// was starting, until that executes its program; one that is just starting does not answer yet.
const LOCK_PATIENCE_MS: u64 = 2_000;
/// Between two tries.
const LOCK_AGAIN: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What `overnight serve` was asked for.
#[derive(Debug, Clone)]
pub struct ServeSetup {
    /// The folders.
    pub paths: Paths,
    /// What the operator has set.
    pub config: Config,
    /// The environment, read once.
    pub environment: Environment,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// Where devices come from.
    pub gpus: GpuChoice,
    /// Seed of simulated devices.
    pub seed: u64,
    /// Control file of simulated devices.
    pub control: Option<PathBuf>,
    /// Ends its jobs and itself when standard input is closed.
    pub throw_away: bool,
}

/// Why the scheduler cannot start.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Another one runs and answers, or at least holds the lock.
    #[error("another scheduler{} has the state {}", pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), state.display())]
    Taken {
        /// The state directory.
        state: PathBuf,
        /// The other process, if it said who it is.
        pid: Option<u32>,
    },
    /// Another one holds the lock and does not answer.
    #[error(
        "a scheduler{} holds the state {} and does not answer; nothing is started beside it. If it is stopped \
         (kill -CONT) or hangs, end that process first",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), state.display()
    )]
    NotAnswering {
        /// The state directory.
        state: PathBuf,
        /// The other process, if it said who it is.
        pid: Option<u32>,
    },
    /// The state directory is somebody else's.
    #[error("cannot use the state {}; name another --state DIR", path.display())]
    NotYours {
        /// The state directory.
        path: PathBuf,
        /// Whose.
        #[source]
        source: std::io::Error,
    },
    /// The store refuses.
    #[error(transparent)]
    Store(StoreError),
    /// The inbox cannot be watched.
    #[error(transparent)]
    Inbox(InboxError),
    /// The engine cannot be started.
    #[error(transparent)]
    Engine(EngineError),
    /// The system refuses.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
}

/// Runs the scheduler until it is told to stop. Jobs go on after it. Calls `ready` once it answers.
pub fn serve(setup: ServeSetup, ready: impl FnOnce()) -> Result<(), DaemonError> {
    let paths = &setup.paths;
    for dir in [&paths.root, &paths.state, &paths.inbox(), &paths.jobs()] {
        private_dir(dir).map_err(io("make", dir))?;
    }
    socket::own_state(&paths.state).map_err(|source| match source.kind() {
        std::io::ErrorKind::PermissionDenied => DaemonError::NotYours { path: paths.state.clone(), source },
        _ => io("use", &paths.state)(source),
    })?;
    socket::raise_files();
    let _lock = lock(paths)?;
    open_all_it_may();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .thread_stack_size(512 << 10)
        .build()
        .map_err(io("start the loop for", &paths.state))?;
    runtime.block_on(async {
        let (mut daemon, first, clerk) = open(setup)?;
        ready();
        daemon.run(first).await;
        // What was ordered is still written; then the store closes.
        drop(daemon);
        drop(clerk.join());
        Ok(())
    })
}

/// A descriptor for each lease and client: as many as the system lets this process have. Failure leaves what there is.
fn open_all_it_may() {
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

fn open(setup: ServeSetup) -> Result<(Daemon, Vec<Input>, std::thread::JoinHandle<()>), DaemonError> {
    let ServeSetup { paths, config, environment, zone, gpus, seed, control, throw_away } = setup;
    local::refuse_newer(&paths).map_err(DaemonError::Engine)?;
    let (store, mut world, earlier) = remember(&paths)?;
    let (sender, messages) = mpsc::channel(INBOX_LEN);
    let mailbox = Mailbox(sender);
    let owner = Owner { uid: environment.uid, name: environment.user.clone() };
    world.pool.drain_max = Some(config.limits.drain);
    let lock_dir = gpu::lock_dir(config.outside.lock_dir.as_deref());
    let options = OpenOptions {
        seed,
        control,
        ignore: config.outside.ignore.clone(),
        lock_dir: lock_dir.clone(),
        remembered: world.pool.devices().map(|(uuid, _)| uuid.clone()).collect(),
    };
    let (devices, listed) =
        Devices::open(gpus, options, &mailbox).map_err(io("start the sampler for", &paths.state))?;
    let mut engine = engine(&paths, &config, &environment, lock_dir, &mailbox)?;
    let simulated = match gpus {
        GpuChoice::Simulated(n) => Some(n),
        _ => None,
    };
    let mut first = vec![Input::Host(gpu::host_reading(simulated))];
    first.extend(listed.map(Input::Devices));
    engine.survey(&leases_to_find(&world, &crate::clock::now())).map_err(DaemonError::Engine)?;
    let unfinished = resume(&world);
    let inbox = watch_inbox(&paths, &config, &owner, &mailbox)?;
    let inbox = Arc::new(inbox);
    let (clerk, thread) = Clerk::spawn(mailbox.clone(), Arc::clone(&inbox), paths.own_trees())
        .map_err(io("start the clerk for", &paths.jobs()))?;
    let (revision, watcher) = watch::channel(Revision::default());
    listen(&paths, Desk { mailbox: mailbox.clone(), revision: watcher, owner: owner.clone() })?;
    clockwatch::spawn(mailbox.clone()).map_err(io("watch the clock for", &paths.state))?;
    watch_signals(mailbox.clone()).map_err(io("watch signals for", &paths.state))?;
    if throw_away {
        watch_starter(mailbox.clone()).map_err(io("watch the starter of", &paths.state))?;
    }
    let mut random = [0_u8; 16];
    fill_random(&mut random);
    let mut daemon = Daemon {
        world,
        seed: u128::from_le_bytes(random),
        store,
        engine,
        inbox,
        devices,
        intake: Intake { paths, config, environment, zone, owner, mailbox },
        clerk,
        board: InboxBoard::default(),
        showing: Showing::default(),
        started_ms: crate::clock::wall_ms(),
        disk: Disk::default(),
        throwing_away: false,
        earlier,
        stopped: None,
        pending: Vec::new(),
        told: std::collections::HashMap::new(),
        last_events: Vec::new(),
        subscribers: 0,
        revision,
        messages,
    };
    daemon.take_folders_again();
    daemon.carry_out(unfinished);
    first.append(&mut daemon.pending);
    Ok((daemon, first, thread))
}

/// Opens the store and rebuilds the world from it.
fn remember(paths: &Paths) -> Result<(Store, World, Vec<Earlier>), DaemonError> {
    let options =
        StoreOptions { jobs_dir: Some(paths.jobs()), ..StoreOptions::new(paths.root.join(".first-start")) };
    let (store, loaded) =
        Store::open(&paths.store(), &Identity::read(), &options).map_err(DaemonError::Store)?;
    let earlier = loaded.drops.iter().map(|(ident, submission)| Earlier::of(ident, *submission)).collect();
    Ok((store, World::restore(loaded.remembered(Some(crate::clock::boot_id()))), earlier))
}

fn engine(
    paths: &Paths,
    config: &Config,
    environment: &Environment,
    lock_dir: PathBuf,
    mailbox: &Mailbox,
) -> Result<LocalEngine, DaemonError> {
    let itself = Path::new("/proc/self/exe");
    let executable = File::open(itself).map_err(io("open", itself))?.into();
    let local = LocalConfig {
        paths: paths.clone(),
        environment: crate::config::work_environment(paths, config, environment),
        driver_environment: environment.for_driver(),
        log_bound: Bytes::mib(config.limits.log_mib),
        lock_dir,
        executable,
        collector: None,
        cgroups: Layout::find(&paths.state),
    };
    tracing::info!(cgroups = %local.cgroups, "what jobs are held to");
    let mailbox = mailbox.clone();
    let report = Arc::new(move |report| mailbox.post(Message::Input(Input::Engine(report))));
    LocalEngine::new(local, report).map_err(DaemonError::Engine)
}

fn watch_inbox(
    paths: &Paths,
    config: &Config,
    owner: &Owner,
    mailbox: &Mailbox,
) -> Result<Inbox, DaemonError> {
    let mut watched = InboxConfig::new(paths.inbox(), &paths.state, owner.uid);
    watched.max_bytes = config.limits.max_file.0;
    let mailbox = mailbox.clone();
    let deliver = Arc::new(move |event| mailbox.post(Message::Inbox(event)));
    Inbox::start(watched, deliver).map_err(DaemonError::Inbox)
}

fn listen(paths: &Paths, desk: Desk) -> Result<(), DaemonError> {
    let path = paths.socket();
    let listener = socket::bind(&path).map_err(io("bind", &path))?;
    tokio::spawn(socket::listen(listener, desk));
    Ok(())
}

fn watch_signals(mailbox: Mailbox) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int, mut hup) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = term.recv() => mailbox.send(Message::Terminate).await,
                _ = int.recv() => mailbox.send(Message::Terminate).await,
                // A terminal that goes away is no reason to end.
                _ = hup.recv() => {}
            }
        }
    });
    Ok(())
}

/// Notices that whoever started a throw-away scheduler is gone, however that came: standard input ends.
fn watch_starter(mailbox: Mailbox) -> std::io::Result<()> {
    std::thread::Builder::new().name("starter".to_owned()).stack_size(64 << 10).spawn(move || {
        // Nothing is said on it; its end is the message, and an error is an end too.
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        mailbox.post(Message::ThrowAway);
    })?;
    Ok(())
}

/// Takes the lock of the state directory, held until the process ends. Whoever does not get it touches nothing.
fn lock(paths: &Paths) -> Result<File, DaemonError> {
    let path = paths.state.join("lock");
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(io("open", &path))?;
    let began = crate::clock::monotonic();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(source)) => {
                return Err(DaemonError::Io { doing: "lock", path, source });
            }
        }
        let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        let state = paths.state.clone();
        match crate::client::Client::connect(paths, PROBE_TIMEOUT) {
            Ok(_) | Err(crate::client::ClientError::Version { .. }) => {
                return Err(DaemonError::Taken { state, pid });
            }
            Err(_) if crate::clock::monotonic().0 - began.0 >= LOCK_PATIENCE_MS => {
                return Err(DaemonError::NotAnswering { state, pid });
            }
            // Nothing tells when a lock is let go.
            Err(_) => drop(rustix::event::poll(&mut [], Some(&LOCK_AGAIN))),
        }
    }
    // The number is for people only: a full disk that does not take it is no reason not to start.
    if let Err(error) = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())) {
        tracing::warn!(path = %path.display(), %error, "cannot write the number of this process");
    }
    Ok(file)
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DaemonError {
    let path = path.to_owned();
    move |source| DaemonError::Io { doing, path, source }
}
