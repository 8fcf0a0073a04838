//! A terminal for tests: runs a program in a pseudoterminal and keeps the screen that it paints.
//!
//! A reader thread feeds an emulator and answers the questions that a terminal answers. Tests wait for text, never for time.

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long anything may take before a test gives up: `OVERNIGHT_TEST_TIMEOUT_S`, else 30 s.
pub(crate) fn patience() -> Duration {
    let seconds = std::env::vars()
        .find(|(name, _)| name == "OVERNIGHT_TEST_TIMEOUT_S")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(30);
    Duration::from_secs(seconds)
}

/// A program in a terminal of its own.
pub(crate) struct Pty {
    child: Child,
    keyboard: File,
    shared: Arc<Shared>,
}

/// What the reader thread writes and the test reads.
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

struct Seen {
    parser: vt100::Parser,
    raw: Vec<u8>,
    closed: bool,
}

impl Pty {
    /// Starts `command` on a terminal of `cols` x `rows`, as the leader of a session that the terminal controls.
    pub(crate) fn spawn(mut command: Command, cols: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave =
            ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
                .unwrap();
        tcsetwinsize(&master, size(cols, rows)).unwrap();
        command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(Stdio::from(slave));
        own_session(&mut command);
        let child = command.spawn().unwrap();
        drop(command); // and with it our ends of the slave: the reader sees the end when the program's are closed
        let shared = Arc::new(Shared {
            seen: Mutex::new(Seen {
                parser: vt100::Parser::new(nonzero(rows), nonzero(cols), 0),
                raw: Vec::new(),
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let screen = File::from(master.try_clone().unwrap());
        let reader = Arc::clone(&shared);
        // Ends by itself when the other side of the terminal is closed.
        std::thread::spawn(move || read_all(screen, &reader));
        Self { child, keyboard: File::from(master), shared }
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Presses keys.
    pub(crate) fn send(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the window's size, as dragging its corner does.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.seen().parser.screen_mut().set_size(nonzero(rows), nonzero(cols));
        tcsetwinsize(&self.keyboard, size(cols, rows)).unwrap();
    }

    /// Waits until the screen shows `text`; fails with the screen if it never does.
    pub(crate) fn wait_for_text(&self, text: &str) {
        self.wait_until(&format!("`{text}` on the screen"), |screen| screen.contents().contains(text));
    }

    /// Waits until the screen no longer shows `text`.
    pub(crate) fn wait_for_no_text(&self, text: &str) {
        self.wait_until(&format!("no `{text}` on the screen"), |screen| !screen.contents().contains(text));
    }

    /// Waits until the screen satisfies `wanted`; fails with the screen if it never does.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let (seen, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.seen(), patience(), |seen| !seen.closed && !wanted(seen.parser.screen()))
            .unwrap_or_else(PoisonError::into_inner);
        let screen = seen.parser.screen();
        let why = if timeout.timed_out() { "in time" } else { "before the program ended" };
        assert!(wanted(screen), "there was never {what} {why}. The screen:\n{}", screen.contents());
    }

    /// Whether nothing at all was written for `span`.
    pub(crate) fn is_quiet_for(&self, span: Duration) -> bool {
        let seen = self.seen();
        let before = seen.raw.len();
        let (seen, _) = self
            .shared
            .changed
            .wait_timeout_while(seen, span, |seen| !seen.closed && seen.raw.len() == before)
            .unwrap_or_else(PoisonError::into_inner);
        seen.raw.len() == before
    }

    /// The screen as it is now.
    pub(crate) fn screen(&self) -> vt100::Screen {
        self.seen().parser.screen().clone()
    }

    /// Every byte so far.
    pub(crate) fn raw(&self) -> Vec<u8> {
        self.seen().raw.clone()
    }

    /// Waits for the end of the program and of all that it wrote.
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let (seen, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.seen(), patience(), |seen| !seen.closed)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "the program did not end. The screen:\n{}",
            seen.parser.screen().contents()
        );
        drop(seen);
        self.child.wait().unwrap()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until every end of the terminal's other side is closed.
fn read_all(mut screen: File, shared: &Shared) {
    let mut buffer = [0; 16 * 1024];
    loop {
        // EIO is how a terminal says that nobody is left on its other side.
        let read = screen.read(&mut buffer).unwrap_or(0);
        let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if read == 0 {
            seen.closed = true;
            shared.changed.notify_all();
            return;
        }
        let from = seen.raw.len();
        seen.raw.extend_from_slice(&buffer[..read]);
        seen.parser.process(&buffer[..read]);
        // A question may have been cut in two by the read.
        let asked = seen.raw[from.saturating_sub(CURSOR_QUESTION.len() - 1)..]
            .windows(CURSOR_QUESTION.len())
            .any(|bytes| bytes == CURSOR_QUESTION);
        let (row, col) = seen.parser.screen().cursor_position();
        drop(seen);
        if asked {
            let _ = write!(screen, "\x1b[{};{}R", row + 1, col + 1);
        }
        shared.changed.notify_all();
    }
}

/// "Where is the cursor?": a bare pseudoterminal has nobody to answer.
const CURSOR_QUESTION: &[u8] = b"\x1b[6n";

#[expect(unsafe_code, reason = "there is no safe way to run code between fork and exec")]
fn own_session(command: &mut Command) {
    // SAFETY: setsid and ioctl are async-signal-safe system calls, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        });
    }
}

fn size(cols: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 }
}

fn nonzero(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}
