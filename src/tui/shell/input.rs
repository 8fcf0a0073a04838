//! Keys: read on a thread of its own, and left alone while another program has the terminal.

use crate::tui::shell::feed::FeedEvent;
use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::pipe::PipeFlags;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Held while keys are read, and by whoever wants that nobody reads them.
static READING: Mutex<()> = Mutex::new(());
/// Wakes the thread for what is no key.
static WAKE: OnceLock<OwnedFd> = OnceLock::new();
/// The library hears of a new size at the same moment as we do, but not before.
const SOON: Duration = Duration::from_millis(50);

/// From now on no key is taken from the terminal, until this is dropped.
pub(super) fn still() -> MutexGuard<'static, ()> {
    READING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// There is a new size: the library is to take its own note of it now. One that lies there when the next key comes hides
/// that key until the one after it.
pub(super) fn resized() {
    if let Some(wake) = WAKE.get() {
        // A pipe that is full wakes as well.
        let _full = rustix::io::write(wake, &[1]);
    }
}

/// Starts the thread.
pub(super) fn start(events: &Sender<FeedEvent>) -> std::io::Result<()> {
    let (woken, wake) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // A second dashboard in one process, as tests have it, is woken by the first one's: its own is not needed then.
    let _first = WAKE.set(wake);
    let events = events.clone();
    std::thread::Builder::new().name("input".into()).spawn(move || while read(&events, &woken) {})?;
    Ok(())
}

/// Whether there are keys, and whether it was woken for something else.
fn ready(woken: &OwnedFd, wait: Option<&Timespec>) -> (bool, bool) {
    let stdin = rustix::stdio::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
    let any = rustix::io::retry_on_intr(|| poll(&mut ready, wait)).is_ok_and(|n| n > 0);
    let is = |at: usize| any && !ready[at].revents().is_empty();
    (is(0), is(1))
}

/// Waits for keys and hands them on; `false` once there is nobody for them, or no terminal.
fn read(events: &Sender<FeedEvent>, woken: &OwnedFd) -> bool {
    // Waiting is done here and not in the library: its read cannot be called off for another program.
    let (_, told) = ready(woken, None);
    if told {
        let _drained = rustix::io::read(woken, &mut [0_u8; 64]);
    }
    let reading = still();
    let mut wait = if told { SOON } else { Duration::ZERO };
    let mut got = told;
    while got || ready(woken, Some(&Timespec::default())).0 {
        let event = match crossterm::event::poll(wait) {
            Ok(true) => crossterm::event::read(),
            Ok(false) => break,
            Err(error) => Err(error),
        };
        (got, wait) = (true, Duration::ZERO);
        let handed = match event {
            // Told by the signal, which comes also where the library forgets it.
            Ok(Event::Resize(..)) => continue,
            Ok(event) => events.send(FeedEvent::Input(event)),
            Err(_) => {
                // Either the dashboard is gone too, or it hears that the terminal is.
                let _gone = events.send(FeedEvent::Hangup);
                return false;
            }
        };
        if handed.is_err() {
            return false;
        }
    }
    drop(reading);
    if !got {
        // Readable and without a key: half of one, or a hang-up that its own watch tells of.
        let _slept = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }));
    }
    true
}
