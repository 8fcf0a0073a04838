//! One scheduler's engine over a directory of its own, and jobs for it: the real binary, real processes, real journals.

#![allow(dead_code, reason = "each test program uses a part of it")]

use overnight::cgroup::Layout;
use overnight::config::Paths;
use overnight::engine::Engine;
use overnight::engine::local::{LocalConfig, LocalEngine};
use overnight::model::{
    Amount, AttemptNo, Bytes, Code, Collected, EndedBy, Enforcement, GpuIds, JobId, JobSpec, LeaseId, Limit,
    Owner, Priority, Request, Retry, Run, RunEnd, Setup, Span, Stop, StopSignal, TaskIx, Token, Work,
    WorkKind,
};
use overnight::sched::{EngineReport, Launch, StopKind};
use overnight::supervisor::process::{self, ProcessId};
use overnight::supervisor::record;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest any test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Stands for `overnight collect`: an empty manifest.
pub(crate) const COLLECTOR: [&str; 3] =
    ["/bin/sh", "-c", r#"cat >"$0.order"; printf '{"outputs":[],"missing":[],"notes":["collected"]}' >"$0""#];

/// One scheduler's engine over a directory of its own.
pub(crate) struct Scheduler {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) engine: Option<LocalEngine>,
    pub(crate) news: Receiver<EngineReport>,
    pub(crate) collector: Vec<String>,
    pub(crate) log_bound: Bytes,
    /// Where groups are made; `None`: where the scheduler would.
    pub(crate) cgroups: Option<Layout>,
    /// Below the temporary directory.
    pub(crate) root: String,
    pub(crate) leases: Vec<LeaseId>,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let (_, news) = channel();
        let mut this = Self {
            dir: tempfile::tempdir().unwrap(),
            engine: None,
            news,
            collector: COLLECTOR.map(str::to_owned).to_vec(),
            log_bound: Bytes::mib(256),
            cgroups: None,
            root: "root".to_owned(),
            leases: Vec::new(),
        };
        change(&mut this);
        this.start_engine();
        this
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::below(&self.dir.path().join(&self.root))
    }

    pub(crate) fn start_engine(&mut self) {
        let (tell, news) = channel();
        let tell = Mutex::new(tell);
        let config = LocalConfig {
            paths: self.paths(),
            environment: BTreeMap::from([
                ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ]),
            driver_environment: BTreeMap::new(),
            log_bound: self.log_bound,
            lock_dir: self.dir.path().join("locks"),
            executable: File::open(executable()).unwrap().into(),
            collector: Some(self.collector.clone()),
            cgroups: self.layout(),
        };
        let report = move |news| {
            let _ = tell.lock().unwrap().send(news);
        };
        self.engine = Some(LocalEngine::new(config, Arc::new(report)).unwrap());
        self.news = news;
    }

    /// Where this one's groups are made.
    pub(crate) fn layout(&self) -> Layout {
        self.cgroups.clone().unwrap_or_else(|| Layout::find(self.dir.path()))
    }

    /// The scheduler goes away without a word, as by a kill.
    pub(crate) fn drop_engine(&mut self) {
        self.engine = None;
    }

    pub(crate) fn engine(&mut self) -> &mut LocalEngine {
        self.engine.as_mut().unwrap()
    }

    pub(crate) fn launch(&mut self, launch: &Launch) {
        self.leases.push(launch.lease);
        self.engine().launch(launch).unwrap();
    }

    pub(crate) fn stop(&mut self, lease: u64, kind: &StopKind) {
        self.engine().stop(LeaseId(lease), kind).unwrap();
    }

    /// The first report that `pick` takes.
    pub(crate) fn until<T>(&self, mut pick: impl FnMut(&EngineReport) -> Option<T>) -> T {
        let mut heartbeats = 0;
        while heartbeats < PATIENCE.as_secs() / 5 {
            let news = self.news.recv_timeout(PATIENCE).unwrap();
            if let Some(found) = pick(&news) {
                return found;
            }
            heartbeats += u64::from(matches!(news, EngineReport::Heartbeat { .. }));
        }
        panic!("nothing but signs of life");
    }

    pub(crate) fn until_started(&self) -> overnight::model::Now {
        self.until(|news| match news {
            EngineReport::Started { at, .. } => Some(*at),
            EngineReport::Ended { end, .. } => panic!("ended before it started: {end:?}"),
            _ => None,
        })
    }

    /// What the work is held to, once it is started.
    pub(crate) fn until_held(&self) -> Enforcement {
        self.until(|news| match news {
            EngineReport::Started { enforcement, .. } => enforcement.clone(),
            EngineReport::Ended { end, .. } => panic!("ended before it started: {end:?}"),
            _ => None,
        })
    }

    pub(crate) fn until_ended(&self) -> End {
        self.until(|news| match news {
            EngineReport::Ended { at, end, by, notes, peak_memory, .. } => Some(End {
                at: *at,
                how: end.clone(),
                by: *by,
                notes: notes.clone(),
                peak_memory: *peak_memory,
            }),
            EngineReport::Missing { why, .. } => panic!("missing: {why}"),
            EngineReport::NotLaunched { why, .. } => panic!("not launched: {why}"),
            _ => None,
        })
    }

    pub(crate) fn until_collected(&self) -> Result<Collected, String> {
        self.until(|news| match news {
            EngineReport::Collected { result, .. } => Some(result.clone()),
            _ => None,
        })
    }

    /// Runs shell text to its end.
    pub(crate) fn run(&mut self, text: &str) -> End {
        self.launch(&shell(text));
        self.until_ended()
    }

    pub(crate) fn run_dir(&self, lease: u64) -> PathBuf {
        self.paths().run(LeaseId(lease))
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.paths().attempt("1-test", 1).join("log.txt")).unwrap()
    }

    pub(crate) fn output(&self, name: &str) -> PathBuf {
        self.paths().attempt("1-test", 1).join("output").join(name)
    }

    pub(crate) fn supervisor(&self, lease: u64) -> ProcessId {
        let journal = self.run_dir(lease).join(record::NAME);
        wait_for(|| record::read(&journal).ok()?.intent().map(|intent| intent.supervisor))
    }

    /// A number that the work wrote into its output.
    pub(crate) fn number(&self, name: &str) -> i32 {
        let path = self.output(name);
        wait_for(|| std::fs::read_to_string(&path).ok()?.trim().parse().ok())
    }
}

impl Drop for Scheduler {
    /// No supervisor and nothing of its work outlives its test: the supervisor first, so that it reports no end.
    fn drop(&mut self) {
        for lease in &self.leases {
            let Ok(state) = record::read(&self.paths().run(*lease).join(record::NAME)) else { continue };
            let Some(intent) = state.intent() else { continue };
            process::signal(intent.supervisor, rustix::process::Signal::KILL);
            for seen in process::all() {
                if process::has_token(seen.id.pid, &intent.token.0) {
                    process::signal(seen.id, rustix::process::Signal::KILL);
                }
            }
        }
    }
}

pub(crate) fn executable() -> PathBuf {
    std::env::var_os("OVERNIGHT_TEST_EXE").unwrap_or_else(|| env!("CARGO_BIN_EXE_overnight").into()).into()
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) at: overnight::model::Now,
    pub(crate) how: RunEnd,
    pub(crate) by: EndedBy,
    pub(crate) notes: Vec<String>,
    pub(crate) peak_memory: Option<Bytes>,
}

pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE.as_millis() / 5 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("it never came to be");
}

pub(crate) fn is_gone(pid: i32) -> bool {
    process::look(pid).is_none_or(|seen| seen.state == b'Z')
}

pub(crate) fn job(run: Run) -> JobSpec {
    JobSpec {
        name: "test".to_owned(),
        project: None,
        work: Work {
            kind: WorkKind::Other,
            dir: None,
            code: Code::default(),
            setup: Setup::default(),
            run,
            env: BTreeMap::new(),
            env_file: None,
            for_each: None,
            checkpoint: None,
            stop: Stop { signal: StopSignal::Term, grace: Span(2000) },
        },
        data: Vec::new(),
        request: Request {
            gpus: Amount::Some(0),
            gpu_model: Vec::new(),
            gpu_memory: None,
            gpu_ids: GpuIds::Index,
            share: false,
            cpus: None,
            memory: None,
            disk: None,
            limit: Limit::UntilDone,
            finish_by_ms: None,
            start_after_ms: None,
            after: Vec::new(),
            after_any: Vec::new(),
            priority: Priority::NORMAL,
            at_once: None,
            retry: Retry::default(),
        },
        output: Vec::new(),
        output_to: None,
        notify: Vec::new(),
    }
}

/// No two are the same, also of tests that run beside each other.
fn token() -> Token {
    static LAUNCHES: AtomicU32 = AtomicU32::new(0);
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    Token(format!("{:08x}{number:08x}{:016x}", std::process::id(), overnight::clock::wall_ms()))
}

pub(crate) fn launch(spec: JobSpec) -> Launch {
    Launch {
        lease: LeaseId(1),
        token: token(),
        job: JobId(1),
        folder: "1-test".to_owned(),
        task: TaskIx(0),
        attempt: AttemptNo(1),
        spec: Arc::new(spec),
        owner: Owner { uid: rustix::process::geteuid().as_raw(), name: "test".to_owned() },
        devices: Vec::new(),
        cores: 2,
        memory: Bytes::gib(1),
        sources: Vec::new(),
        granted: overnight::clock::now(),
        limit: None,
        finish_by_ms: None,
        prepared: false,
    }
}

pub(crate) fn shell(text: &str) -> Launch {
    launch(job(Run::Shell(text.to_owned())))
}

pub(crate) fn cancel() -> StopKind {
    StopKind::Cancel { by: "ana".to_owned() }
}

/// A file system whose writers hang.
pub(crate) struct Frozen {
    pub(crate) at: PathBuf,
}

impl Frozen {
    pub(crate) fn make(dir: &Path) -> Option<Self> {
        let (image, at) = (dir.join("image"), dir.join("frozen"));
        File::create(&image).ok()?.set_len(8 << 20).ok()?;
        std::fs::create_dir(&at).ok()?;
        let done = run_quietly("mkfs.ext4", &["-q".as_ref(), image.as_ref()])
            && run_quietly("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), at.as_ref()]);
        done.then_some(Self { at })
    }

    pub(crate) fn freeze(&self) {
        assert!(run_quietly("fsfreeze", &["-f".as_ref(), self.at.as_ref()]));
    }

    pub(crate) fn thaw(&self) {
        assert!(run_quietly("fsfreeze", &["-u".as_ref(), self.at.as_ref()]));
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        run_quietly("fsfreeze", &["-u".as_ref(), self.at.as_ref()]);
        run_quietly("umount", &["-l".as_ref(), self.at.as_ref()]);
    }
}

pub(crate) fn run_quietly(program: &str, arguments: &[&std::ffi::OsStr]) -> bool {
    let quiet = std::process::Stdio::null;
    let status = std::process::Command::new(program).args(arguments).stdout(quiet()).stderr(quiet()).status();
    status.is_ok_and(|status| status.success())
}
