//! A real terminal around a program: a PTY, the screen it would show, and the program's end.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

/// Whatever is waited for comes within this, or the test fails.
pub(crate) const PATIENCE_MS: u64 = 30_000;

pub(crate) struct Terminal {
    master: OwnedFd,
    slave: Option<OwnedFd>,
    child: Child,
    /// Everything that was written.
    pub(crate) bytes: Vec<u8>,
    size: (u16, u16),
}

impl Terminal {
    /// Runs a program in a session of its own whose terminal this is.
    pub(crate) fn run(mut command: Command, size: (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let winsize = Winsize { ws_row: size.1, ws_col: size.0, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, winsize).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        #[expect(unsafe_code, reason = "a session needs its terminal before exec")]
        // SAFETY: both calls are async-signal-safe and touch nothing of the parent.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Self { master, slave: Some(slave), child, bytes: Vec::new(), size }
    }

    /// Reads what comes within this time; `false` if nothing did.
    pub(crate) fn read(&mut self, ms: u64) -> bool {
        let wait = Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000) as i64 * 1_000_000 };
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut ready, Some(&wait)).unwrap() == 0 {
            return false;
        }
        let mut chunk = [0; 8192];
        match rustix::io::read(&self.master, &mut chunk) {
            Ok(n) if n > 0 => {
                self.bytes.extend_from_slice(&chunk[..n]);
                true
            }
            _ => false,
        }
    }

    /// What a person would see.
    pub(crate) fn screen(&self) -> String {
        let (width, height) = (self.size.0.try_into().unwrap(), self.size.1.try_into().unwrap());
        let mut parser = vt100::Parser::new(height, width, 0);
        parser.process(&self.bytes);
        parser.screen().contents()
    }

    /// Waits until the screen shows this.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let begun = overnight::clock::monotonic().0;
        while !self.screen().contains(text) {
            let spent = overnight::clock::monotonic().0 - begun;
            assert!(spent < PATIENCE_MS, "{text:?} did not come:\n{}", self.screen());
            self.read(200);
        }
    }

    /// The window gets another size.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.bytes.clear();
        let winsize = Winsize { ws_row: size.1, ws_col: size.0, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, winsize).unwrap();
    }

    pub(crate) fn press(&mut self, keys: &str) {
        rustix::io::write(&self.master, keys.as_bytes()).unwrap();
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// The terminal reads lines and echoes, as a shell left it.
    pub(crate) fn is_sane(&self) -> bool {
        let modes = tcgetattr(self.slave.as_ref().unwrap()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// The window is closed.
    pub(crate) fn close(self) -> i32 {
        let Self { master, slave, mut child, .. } = self;
        drop((master, slave));
        wait(&mut child, &mut || {})
    }

    /// Waits for the end; the exit code, or 128 and the signal.
    pub(crate) fn end(&mut self) -> i32 {
        let begun = overnight::clock::monotonic().0;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.read(50) {}
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
            }
            self.read(20);
            let spent = overnight::clock::monotonic().0 - begun;
            assert!(spent < PATIENCE_MS, "it did not end:\n{}", self.screen());
        }
    }
}

fn wait(child: &mut Child, between: &mut dyn FnMut()) -> i32 {
    let begun = overnight::clock::monotonic().0;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
        }
        between();
        if overnight::clock::monotonic().0 - begun > PATIENCE_MS {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end");
        }
        // A short wait on nothing: there is no descriptor that tells of a child's end here.
        let pause = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        poll(&mut [], Some(&pause)).unwrap();
    }
}
