//! The process that becomes the work: forked ahead, in its groups and in a session of its own, and told what to be when
//! that is known. So nothing of a launch waits for a fork, nor for a move between groups.
//!
//! It never becomes anything else: without a word it ends with its supervisor.

use super::streams::{Ends, Streams};
use crate::cgroup::Door;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// How likely the kernel takes a process of the work first when memory runs out, of 1000.
const OOM_SCORE: &[u8] = b"500";
/// The child is in all the groups it was to enter.
const ENTERED: u8 = b'+';
/// It is not in all of them.
const NOT_ENTERED: u8 = b'-';
/// The child's end of the channel, once all else is closed.
const CHANNEL: i32 = 3;
/// The C library's has another type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// How a child ends that became nothing.
const NOTHING: i32 = 127;

/// What to become.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Work {
    /// Looked for along the `PATH` of `environment`, if it is a bare name.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: PathBuf,
}

/// Where a child is to be before it is anything.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// It is started in this group.
    pub(super) born_in: Option<BorrowedFd<'a>>,
    /// It enters these groups by itself; they may be renamed meanwhile.
    pub(super) enters: Vec<io::Result<Door>>,
}

/// A child that waits for its work. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Waiting {
    pid: i32,
    /// The channel, and what the work prints; `None` once it is told what to be.
    held: Option<(UnixStream, Streams)>,
}

/// A child that became its work.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) pid: i32,
    /// What the work prints comes out here.
    pub(super) streams: Streams,
    /// It is in all the groups that it was to enter.
    pub(super) entered: bool,
}

/// Why a child did not become its work.
#[derive(Debug)]
pub(super) enum NotBegun {
    /// The child itself is gone or cannot be told: the work is not at fault.
    Child(io::Error),
    /// There is no such program, or it cannot be executed there.
    Work(io::Error),
}

impl Waiting {
    /// Forks it. This process has one thread.
    pub(super) fn fork(places: &Places<'_>) -> io::Result<Self> {
        let (streams, ends) = Streams::make()?;
        let (channel, theirs) = UnixStream::pair()?;
        let pid = fork_into(places.born_in)?;
        if pid == 0 {
            // Nothing of the supervisor may go on in the child, whatever happens in it.
            let life = || become_work(&theirs, &ends, &places.enters);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
            end_here();
        }
        Ok(Self { pid, held: Some((channel, streams)) })
    }

    /// Whether it was ended while it waited. It is reaped then.
    pub(super) fn is_gone(&self) -> bool {
        let waited = Pid::from_raw(self.pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
        !matches!(waited, Some(Ok(None)))
    }

    /// Tells it what to be, and waits until it is that.
    pub(super) fn start(mut self, work: &Work) -> Result<Begun, NotBegun> {
        let text = serde_json::to_vec(work).map_err(|error| NotBegun::Child(error.into()))?;
        let Some((mut channel, streams)) = self.held.take() else {
            return Err(NotBegun::Child(io::ErrorKind::NotConnected.into()));
        };
        let mut entered = [0];
        channel
            .write_all(&(text.len() as u32).to_le_bytes())
            .and_then(|()| channel.write_all(&text))
            .and_then(|()| channel.read_exact(&mut entered))
            .map_err(NotBegun::Child)?;
        // Its end of the channel is closed by becoming the work, or says why that cannot be.
        let mut error = Vec::new();
        channel.read_to_end(&mut error).map_err(NotBegun::Child)?;
        if let Ok(code) = <[u8; 4]>::try_from(error.as_slice()) {
            return Err(NotBegun::Work(io::Error::from_raw_os_error(i32::from_le_bytes(code))));
        }
        Ok(Begun { pid: self.pid, streams, entered: entered[0] == ENTERED })
    }
}

impl Drop for Waiting {
    /// Its groups can be taken away once it is gone.
    fn drop(&mut self) {
        if self.held.take().is_some()
            && let Some(pid) = Pid::from_raw(self.pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// Forks this process, the child in a group if one is given. 0 in the child.
#[expect(unsafe_code, reason = "a process can be born in a group by this call only, which nothing wraps")]
fn fork_into(group: Option<BorrowedFd<'_>>) -> io::Result<i32> {
    let result = match group {
        None => {
            // SAFETY: this process has one thread, so that the child may do whatever it could.
            i64::from(unsafe { libc::fork() })
        }
        Some(group) => {
            let mut arguments = libc::clone_args {
                flags: CLONE_INTO_CGROUP,
                pidfd: 0,
                child_tid: 0,
                parent_tid: 0,
                exit_signal: libc::SIGCHLD as u64,
                stack: 0,
                stack_size: 0,
                tls: 0,
                set_tid: 0,
                set_tid_size: 0,
                cgroup: group.as_raw_fd() as u64,
            };
            // SAFETY: the arguments are whole and live; with these flags the call is a fork, see above.
            unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, std::mem::size_of_val(&arguments)) }
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// The child's life: what can be done beforehand, the wait, and the work. Returns only if it does not become that.
fn become_work(theirs: &UnixStream, ends: &Ends, enters: &[io::Result<Door>]) {
    reset_signals();
    let shut = |door: &&io::Result<Door>| door.as_ref().map_or(true, |door| door.enter().is_err());
    let entered = enters.iter().filter(shut).count() == 0;
    let Some(mut channel) = only_descriptors(theirs.as_fd(), ends) else { return };
    let _ = rustix::process::setsid();
    limit_itself();
    if channel.write_all(&[if entered { ENTERED } else { NOT_ENTERED }]).is_err() {
        return;
    }
    let mut len = [0; 4];
    if channel.read_exact(&mut len).is_err() {
        return;
    }
    let mut text = vec![0; u32::from_le_bytes(len) as usize];
    let work = channel.read_exact(&mut text).ok().and_then(|()| serde_json::from_slice::<Work>(&text).ok());
    let Some(work) = work else { return };
    let error = Command::new(&work.program)
        .args(&work.arguments)
        .env_clear()
        .envs(&work.environment)
        .current_dir(&work.directory)
        .exec();
    let code = error.raw_os_error().unwrap_or(libc::EINVAL);
    let _ = channel.write_all(&code.to_le_bytes());
}

/// Standard input from nowhere, what is printed into its pipes, the channel, and nothing else.
fn only_descriptors(theirs: BorrowedFd<'_>, ends: &Ends) -> Option<UnixStream> {
    let null = std::fs::File::open("/dev/null").ok()?;
    rustix::stdio::dup2_stdin(&null).ok()?;
    rustix::stdio::dup2_stdout(&ends.out).ok()?;
    rustix::stdio::dup2_stderr(&ends.err).ok()?;
    // It may have the number that the channel gets.
    drop(null);
    keep_channel(theirs)
}

#[expect(
    unsafe_code,
    reason = "descriptors are closed whoever has them: this process is about to be another one"
)]
fn keep_channel(theirs: BorrowedFd<'_>) -> Option<UnixStream> {
    // SAFETY: numbers only. What owns the descriptors that are closed here is never touched again in this process.
    unsafe {
        if theirs.as_raw_fd() != CHANNEL && libc::dup3(theirs.as_raw_fd(), CHANNEL, libc::O_CLOEXEC) < 0 {
            return None;
        }
        let _ = libc::close_range(CHANNEL as libc::c_uint + 1, libc::c_uint::MAX, 0);
        Some(UnixStream::from(OwnedFd::from_raw_fd(CHANNEL)))
    }
}

#[expect(unsafe_code, reason = "the standard library has no call for it")]
fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: sets a disposition to the default; the numbers that may not be set are refused by the kernel.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // Those that tell the supervisor what is printed are kept from it.
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is made by sigemptyset before it is read.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "the child must not unwind into what its parent was doing")]
fn end_here() -> ! {
    // SAFETY: ends the process without running anything.
    unsafe { libc::_exit(NOTHING) }
}

/// No core files, as many open files as may be, and first in line when memory runs out.
fn limit_itself() {
    let core = rustix::process::getrlimit(Resource::Core).maximum;
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: core });
    let files = rustix::process::getrlimit(Resource::Nofile).maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files });
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}
