//! Keys: read on a thread of its own, and left alone while another program has the terminal.

use crate::tui::shell::feed::FeedEvent;
use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while keys are read, and by whoever wants that nobody reads them.
static READING: Mutex<()> = Mutex::new(());

/// From now on no key is taken from the terminal, until this is dropped.
pub(super) fn still() -> MutexGuard<'static, ()> {
    READING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread.
pub(super) fn start(events: &Sender<FeedEvent>) -> std::io::Result<()> {
    let events = events.clone();
    std::thread::Builder::new().name("input".into()).spawn(move || while read(&events) {})?;
    Ok(())
}

fn is_readable(wait: Option<&Timespec>) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut ready, wait)).is_ok_and(|n| n > 0)
}

/// Waits for keys and hands them on; `false` once there is nobody for them, or no terminal.
fn read(events: &Sender<FeedEvent>) -> bool {
    // Waiting is done here and not in the library: its read cannot be called off for another program.
    is_readable(None);
    let reading = still();
    let mut got = false;
    while is_readable(Some(&Timespec::default())) || got {
        let event = match crossterm::event::poll(std::time::Duration::ZERO) {
            Ok(true) => crossterm::event::read(),
            Ok(false) => break,
            Err(error) => Err(error),
        };
        got = true;
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
