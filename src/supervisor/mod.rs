//! The supervisor: one small process per lease. It starts the work, watches it, ends all of it, and writes down what it
//! saw, so that the scheduler may be gone at any moment. Layer 2.
//!
//! Single-threaded: one `poll` over the control channels, what the work prints and the notice of ended children. No tokio, no
//! store. It knows [`LaunchSpec`]s and its [`record`]; queue, pool and meter are the scheduler's.
//! `main` starts it before anything else of the program is touched.
//!
//! ```text
//! launch spec ─► journal (intent, durable) ─► device locks ─► start ─► run ─► ended (told, durable)
//!                                                             ─► collect ─► collected ─► dismissed
//! ```
//!
//! While it waits for its launch it prepares all that does not need one: a journal, and the process that will be the work.

mod blank;
mod child;
pub mod collection;
mod control;
mod devices;
mod environment;
mod facts;
mod hints;
pub mod log;
pub mod marks;
pub mod message;
mod outlived;
pub mod process;
pub mod record;
mod run;
mod script;
mod seat;
pub mod spec;
mod start;
mod streams;
mod tree;
mod work;

pub use control::SOCKET;

use crate::cgroup::Layout;
use blank::{Blank, BlankError};
use control::Control;
use message::{LINE_BOUND, News, Order};
use record::{Journal, Record};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use seat::Seat;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use spec::LaunchSpec;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use work::Supervisor;

/// How likely the kernel takes a supervisor when memory runs out, of 1000; its work has 500.
const OOM_SCORE: &str = "-900";
/// A supervisor that was started for later waits this long before it prepares.
const SETTLE_MS: i64 = 2;

/// Runs the supervisor of one lease until that lease is over. The exit code of the process.
///
/// Standard input is the scheduler's end of the control channel; the first line on it is the launch.
pub fn main() -> u8 {
    match supervise() {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn supervise() -> io::Result<()> {
    let (mut channel, children) = detach()?;
    let mut control = Control::default();
    let run = std::env::args_os().nth(2).map(std::path::PathBuf::from);
    // While it waits for its launch.
    let blank = run.and_then(|run| Blank::make(&run, &mut control).ok());
    let mut seat = Seat::new(layout());
    if !is_due(&channel) {
        seat.prepare();
    }
    let Some((spec, rest)) = read_launch(&mut channel)? else {
        seat.clear();
        if let Some(blank) = blank {
            blank.remove();
        }
        return Ok(());
    };
    control.add(channel, rest)?;
    let intent = Record::Intent(facts::intent(&spec, seat.groups(&spec)));
    // Its start goes on beside the wait for the disk.
    let seated = seat.take(&spec);
    let journal = match begin(blank, &spec.run_dir, &intent, &mut control) {
        Ok(Some(journal)) => journal,
        not_begun => {
            drop(seated);
            seat.clear();
            // Without an error this lease has a supervisor, or its scheduler has written it off.
            if let Err(error) = not_begun {
                let why = crate::model::chain(&error);
                control.tell(&News::Record(Record::NotLaunched { why, at: crate::clock::now() }));
            }
            return Ok(());
        }
    };
    words_to(&spec.run_dir);
    let mut supervisor = Supervisor::new(&spec, journal, control, children, seat);
    supervisor.greet();
    if supervisor.take_devices(&spec) {
        supervisor.begin(&spec, seated);
        drop(spec);
        supervisor.trim_soon();
        supervisor.run();
    } else {
        drop(seated);
        supervisor.leave();
    }
    Ok(())
}

/// Where groups are made, as the scheduler found it.
fn layout() -> Layout {
    let said = std::env::args_os().nth(3);
    let layout = said.and_then(|text| serde_json::from_slice(text.as_encoded_bytes()).ok());
    layout.unwrap_or_else(|| Layout::none("the scheduler named no place for cgroups"))
}

/// Whether a launch waits already, or comes at once. The moment keeps the preparation away from a launch that has just
/// taken the supervisor before this one.
fn is_due(channel: &UnixStream) -> bool {
    let moment = Timespec { tv_sec: 0, tv_nsec: SETTLE_MS * 1_000_000 };
    let mut fds = [PollFd::new(channel, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&moment)), Ok(1..))
}

/// What a supervisor that panics still says goes into its run directory. Nothing depends on it.
fn words_to(run_dir: &Path) {
    let file = run_dir.join("supervisor.err");
    std::panic::set_hook(Box::new(move |panic| {
        let _ = std::fs::write(&file, format!("{panic}\n"));
    }));
}

/// Begins the lease with what was made ahead, or else with what is made now.
fn begin(
    blank: Option<Blank>,
    run_dir: &Path,
    intent: &Record,
    control: &mut Control,
) -> Result<Option<Journal>, BlankError> {
    let blank = match blank {
        Some(blank) => blank,
        None => Blank::make(run_dir.parent().unwrap_or(run_dir), control)?,
    };
    blank.begin(run_dir, intent)
}

/// Away from whoever started it: own session, parent of all that the work leaves behind, no descriptors but the
/// channel's. Returns the channel and the stream on which ended children are noticed.
fn detach() -> io::Result<(UnixStream, UnixStream)> {
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // Whoever sees the end of the work goes last when memory runs out. Only some may ask for that.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    close_inherited();
    // The work must not inherit the channel as its standard input, nor keep it open.
    let channel: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let (notice, children) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    notice.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, notice)?;
    // A shutdown tells everybody to end: the work ends of it, and somebody has to see that.
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok((UnixStream::from(channel), children))
}

#[expect(unsafe_code, reason = "rustix does not wrap close_range")]
fn close_inherited() {
    // SAFETY: nothing in this process has opened a descriptor yet; those above the standard ones are inherited.
    let _ = unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
}

/// Waits for the launch. `None` if the scheduler went away before it had said all of it: nothing is started.
fn read_launch(channel: &mut UnixStream) -> io::Result<Option<(LaunchSpec, Vec<u8>)>> {
    let mut input = Vec::new();
    let mut buffer = [0; 16384];
    loop {
        match channel.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => input.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        while let Some(order) = message::take::<Order>(&mut input) {
            if let Some(Order::Launch(spec)) = order {
                return Ok(Some((*spec, input)));
            }
        }
        if input.len() > LINE_BOUND {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the launch spec is too long"));
        }
    }
}
