//! A supervisor that is started before there is a lease for it: the start of a process is off the path of a launch.
//!
//! It waits for its launch on its channel and ends when that is closed. One is enough: leases that are granted in the
//! same turn start their own.

use crate::cgroup::Layout;
use crate::supervisor::record;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A supervisor without a lease, and our end of its channel.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) child: Child,
    pub(super) stream: UnixStream,
}

/// What is started, and where it makes its run directory while it waits.
#[derive(Debug)]
struct Program {
    file: OwnedFd,
    run: PathBuf,
    /// Where groups are made, as the supervisor is told it.
    layout: String,
}

/// Starts supervisors, and keeps one ready.
#[derive(Debug)]
pub(super) struct Park {
    executable: Arc<Program>,
    ready: Arc<Mutex<Option<Idle>>>,
    refill: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Park {
    /// Starts the thread that starts the one that waits.
    pub(super) fn open(executable: OwnedFd, run: &Path, layout: &Layout) -> io::Result<Self> {
        record::remove_blanks(run);
        let layout = serde_json::to_string(layout)?;
        let executable = Arc::new(Program { file: executable, run: run.to_owned(), layout });
        let ready = Arc::new(Mutex::new(None));
        let (refill, orders) = mpsc::channel();
        let (its_executable, slot) = (Arc::clone(&executable), Arc::clone(&ready));
        let thread = std::thread::Builder::new().name("engine-park".to_owned()).stack_size(128 << 10).spawn(
            move || {
                for () in orders {
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    if slot.is_none() {
                        // Where none can be started now, the launch tries again and says why.
                        *slot = start(&its_executable).ok();
                    }
                }
            },
        )?;
        let park = Self { executable, ready, refill: Some(refill), thread: Some(thread) };
        park.refill();
        Ok(park)
    }

    /// The one that waits, or else a new one.
    pub(super) fn take(&self) -> io::Result<Idle> {
        // Never waits for one that is just being started: starting another takes as long.
        let ready = self.ready.try_lock().ok().and_then(|mut slot| slot.take());
        ready.map_or_else(|| start(&self.executable), Ok)
    }

    /// Has the next one started, off the path.
    pub(super) fn refill(&self) {
        if let Some(refill) = &self.refill {
            // The thread lives as long as the park.
            let _ = refill.send(());
        }
    }
}

impl Drop for Park {
    fn drop(&mut self) {
        drop(self.refill.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(Idle { mut child, stream }) =
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            drop(stream);
            let _ = child.wait();
        }
    }
}

/// Starts a supervisor that waits for its launch, from the kept descriptor of this program.
fn start(program: &Program) -> io::Result<Idle> {
    let (stream, theirs) = UnixStream::pair()?;
    let child = Command::new(format!("/proc/self/fd/{}", program.file.as_raw_fd()))
        .arg0("overnight")
        .arg("supervise")
        .arg(&program.run)
        .arg(&program.layout)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Idle { child, stream })
}
