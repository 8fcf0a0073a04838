//! The supervisor: one small process per lease. It starts the work, watches it, ends all of it, and writes down what it
//! saw, so that the scheduler may be gone at any moment. Layer 2.
//!
//! Single-threaded: one `poll` over the control channels, the log pipe and the notice of ended children. No tokio, no
//! store. It knows [`LaunchSpec`]s and its [`record`]; queue, pool and meter are the scheduler's.
//! `main` starts it before anything else of the program is touched.
//!
//! ```text
//! launch spec ─► journal (intent, durable) ─► device locks ─► start ─► run ─► ended (told, durable)
//!                                                             ─► collect ─► collected ─► dismissed
//! ```

mod blank;
pub mod collection;
mod control;
mod devices;
mod environment;
mod hints;
mod log;
pub mod message;
pub mod process;
pub mod record;
mod run;
mod script;
pub mod spec;
mod start;
mod tree;
mod work;

pub use control::SOCKET;

use blank::{Blank, BlankError};
use control::Control;
use message::{LINE_BOUND, News, Order};
use record::{Journal, Record};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use spec::LaunchSpec;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use work::Supervisor;

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
    let Some((spec, rest)) = read_launch(&mut channel)? else {
        if let Some(blank) = blank {
            blank.remove();
        }
        return Ok(());
    };
    control.add(channel, rest)?;
    let intent = Record::Intent(work::intent(&spec));
    let journal = match begin(blank, &spec.run_dir, &intent, &mut control) {
        Ok(Some(journal)) => journal,
        // This lease has a supervisor, or its scheduler has written it off.
        Ok(None) => return Ok(()),
        Err(error) => {
            let why = crate::model::chain(&error);
            control.tell(&News::Record(Record::NotLaunched { why, at: crate::clock::now() }));
            return Ok(());
        }
    };
    words_to(&spec.run_dir);
    let mut supervisor = Supervisor::new(&spec, journal, control, children);
    supervisor.greet();
    if supervisor.take_devices(&spec) {
        supervisor.begin(&spec);
        drop(spec);
        supervisor.trim_soon();
        supervisor.run();
    }
    Ok(())
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
