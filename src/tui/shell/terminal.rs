//! The terminal: taken, given back once whatever happens, watched for its end.
//!
//! Given back on return, on error, in the panic hook, by the signal thread and before a stop. The signal thread and the
//! hang-up watch end the process by themselves: crossterm's reader may never return once the terminal is gone.

use crate::tui::shell::feed::FeedEvent;
use crate::tui::shell::{external, input, writer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, Once, PoisonError};

/// The terminal is ours; whoever clears it gives it back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Alternate screen, no cursor, pastes in brackets, focus told. No mouse: selecting text stays the terminal's.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h";
/// The order matters: what is drawn ends first, the screen is left last.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?1004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal's descriptor, written without the lock of `std`, which another thread may hold for ever.
#[derive(Debug)]
pub(in crate::tui) struct Tty;

impl Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = rustix::stdio::stdout();
        loop {
            match rustix::io::retry_on_intr(|| rustix::io::write(stdout, bytes)) {
                // Somebody who shares the terminal has made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives the terminal back when dropped.
#[derive(Debug)]
pub(in crate::tui) struct Guard;

impl Guard {
    pub(in crate::tui) fn take() -> io::Result<Self> {
        enter()?;
        Ok(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal is still ours.
pub(in crate::tui) fn taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

fn enter() -> io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    Tty.write_all(ENTER)
}

/// Gives the terminal back, once.
pub(in crate::tui) fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // A terminal that takes nothing any more must not keep the process: what cannot be written is left.
    let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    let stdout = rustix::stdio::stdout();
    let mut ready = [PollFd::new(&stdout, PollFlags::OUT)];
    if writer::finish() && poll(&mut ready, Some(&wait)).is_ok_and(|n| n > 0) {
        let _hung_up = Tty.write_all(LEAVE);
    }
    let _hung_up = crossterm::terminal::disable_raw_mode();
}

/// Stops the process as `Ctrl-Z` does, and comes back when it is continued.
pub(in crate::tui) fn suspend() -> io::Result<()> {
    let mut continued = Signals::new([SIGCONT])?;
    restore();
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    // The signal may reach another thread first, and this one would take the terminal back before the stop. Where
    // nothing stops it (nobody could continue it) the wait ends by itself.
    let brief = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    for _ in 0..30 {
        if continued.pending().next().is_some() {
            break;
        }
        let _interrupted = poll(&mut [], Some(&brief));
    }
    enter()
}

/// Takes the terminal again after another program has had it. What was typed for that program is not for the dashboard.
pub(in crate::tui) fn again() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    in_front(|| {
        // Fails where there are no process groups to choose from; then reading tells.
        let _ours = rustix::termios::tcsetpgrp(stdin, rustix::process::getpgrp());
    });
    let _flushed = rustix::termios::tcflush(stdin, rustix::termios::QueueSelector::IFlush);
    enter()
}

/// Without being stopped: an interactive shell that was killed has left the terminal to a group that is gone.
fn in_front(act: impl FnOnce()) {
    #[expect(unsafe_code, reason = "there is no safe call for a thread's signal mask")]
    // SAFETY: both sets are initialised by the calls that fill them, and live on this stack.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
        act();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

/// The size; what terminals had for ever where it cannot be asked.
pub(in crate::tui) fn size() -> (u16, u16) {
    crossterm::terminal::size().ok().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or((80, 24))
}

/// Wakes the loop of the dashboard after a panic in another thread.
static WAKE: Mutex<Option<Sender<FeedEvent>>> = Mutex::new(None);

/// A panic's message is read on the normal screen, and the dashboard ends.
pub(in crate::tui) fn restore_on_panic(events: &Sender<FeedEvent>) {
    static HOOK: Once = Once::new();
    *WAKE.lock().unwrap_or_else(PoisonError::into_inner) = Some(events.clone());
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
            if let Ok(wake) = WAKE.try_lock()
                && let Some(wake) = &*wake
            {
                // The loop has ended already: then nothing has to be woken.
                let _ended = wake.send(FeedEvent::Hangup);
            }
        }));
    });
}

/// Starts the threads that read the terminal and watch for its end.
pub(in crate::tui) fn start(events: &Sender<FeedEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGWINCH])?;
    let resized = events.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGWINCH => {
                    input::resized();
                    let (columns, rows) = size();
                    // The dashboard ends by itself, or not at all.
                    let _gone =
                        resized.send(FeedEvent::Input(crossterm::event::Event::Resize(columns, rows)));
                }
                // Typed for the program that has the terminal.
                SIGINT | SIGQUIT if external::is_away() => {}
                signal => {
                    external::abandon();
                    restore();
                    end(128 + signal);
                }
            }
        }
    })?;
    input::start(events)?;
    let hangup = events.clone();
    std::thread::Builder::new().name("hangup".into()).spawn(move || {
        // No flags asked for: only an error or a hang-up wakes it.
        let stdin = rustix::stdio::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        while rustix::io::retry_on_intr(|| poll(&mut watched, None)).is_ok() {
            if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                let _gone = hangup.send(FeedEvent::Hangup);
                // The loop ends the dashboard; if it is stuck in the dead terminal, this does.
                let _slept = poll(&mut [], Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
                external::abandon();
                end(128 + SIGHUP);
            }
        }
    })?;
    Ok(())
}

/// Ends the process without running anything else: other threads may be stuck in the terminal.
fn end(code: i32) -> ! {
    #[expect(unsafe_code, reason = "std::process::exit runs handlers that may wait for a stuck thread")]
    // SAFETY: _exit has no preconditions and does not return; the dashboard owns nothing that must be flushed.
    unsafe {
        libc::_exit(code)
    }
}
