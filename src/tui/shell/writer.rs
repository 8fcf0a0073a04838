//! The frame that is on its way to the terminal: one at a time, written by a thread of its own.
//!
//! A terminal that takes nothing, or a link that is full, holds up that thread and nothing else: keys are read, the
//! scheduler is heard, and the next frame is made when the last one is gone, of what is true by then. Nothing queues.

use crate::clock;
use crate::tui::shell::feed::FeedEvent;
use crate::tui::shell::terminal::{self, Tty};
use rustix::event::poll;
use rustix::fs::Timespec;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

/// A frame is on its way. For the whole process: whoever gives the terminal back waits for it.
static BUSY: AtomicBool = AtomicBool::new(false);
/// A frame was left out meanwhile: the loop is woken when the terminal has room again.
static SKIPPED: AtomicBool = AtomicBool::new(false);

/// A write that takes longer is told of.
pub(in crate::tui) const SLOW_MS: u64 = 200;

/// Where frames are handed in.
#[derive(Debug)]
pub(in crate::tui) struct Writer {
    frames: Sender<Vec<u8>>,
}

impl Writer {
    /// Starts the thread; it ends with the dashboard.
    pub(in crate::tui) fn start(events: &Sender<FeedEvent>) -> io::Result<Self> {
        let (frames, handed_in) = channel::<Vec<u8>>();
        let events = events.clone();
        std::thread::Builder::new().name("writer".into()).spawn(move || {
            for frame in handed_in {
                let begun = clock::monotonic().0;
                // The terminal may have been given back since the frame was made.
                let written = if terminal::taken() { Tty.write_all(&frame) } else { Ok(()) };
                BUSY.store(false, Ordering::SeqCst);
                let took_ms = clock::monotonic().0 - begun;
                let was_skipped = SKIPPED.swap(false, Ordering::SeqCst);
                if took_ms < SLOW_MS && written.is_ok() && !was_skipped {
                    continue;
                }
                if events.send(FeedEvent::Written { took_ms, failed: written.err() }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { frames })
    }
}

impl Write for Writer {
    fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        BUSY.store(true, Ordering::SeqCst);
        self.frames.send(frame.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(frame.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a frame can be handed in; if not, the loop hears of it when one can.
pub(in crate::tui) fn has_room() -> bool {
    if !BUSY.load(Ordering::SeqCst) {
        return true;
    }
    SKIPPED.store(true, Ordering::SeqCst);
    // It may have become free between the two.
    !BUSY.load(Ordering::SeqCst)
}

/// Waits until the frame is gone, but not for ever; whether it is.
pub(in crate::tui) fn finish() -> bool {
    let brief = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    for _ in 0..300 {
        if !BUSY.load(Ordering::SeqCst) {
            return true;
        }
        let _interrupted = poll(&mut [], Some(&brief));
    }
    false
}
