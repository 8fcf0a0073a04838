//! A file system in a file: ext4 over a loop device, that can lose its power, run out of inodes, break or stand still.

use crate::small_disk::skipped;
use overnight::supervisor::process::{self, ProcessId, Seen};
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// What a power cut takes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Cut {
    /// The journal of the file system reaches the disk, data that was not synced does not.
    KeepsJournal = 1,
    /// Nothing reaches the disk any more.
    KeepsNothing = 2,
}

/// Unmounted at the end.
pub(crate) struct LoopDisk {
    mount: PathBuf,
    image: PathBuf,
    options: String,
    #[expect(dead_code, reason = "removed at the end")]
    dir: TempDir,
}

impl LoopDisk {
    /// `None`, said so, where that is not allowed here. `make` goes to mkfs, `options` to mount.
    pub(crate) fn new(test: &str, mib: u64, make: &[&str], options: &str) -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("overnight-disk-").tempdir().unwrap();
        let (mount, image) = (dir.path().join("disk"), dir.path().join("image"));
        fs::create_dir(&mount).unwrap();
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .args(make)
            .arg(&image)
            .stdout(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            skipped(test, "there is no mkfs.ext4");
            return None;
        }
        let disk = Self { mount, image, options: format!("loop,{options}"), dir };
        if !disk.mount() {
            skipped(test, "a file system in a file can only be mounted by root, and needs a loop device");
            return None;
        }
        Some(disk)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    fn mount(&self) -> bool {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "ext4", "-o", self.options.trim_end_matches(',')])
            .arg(&self.image)
            .arg(&self.mount);
        mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// The power is gone: from now on nothing reaches the disk, and every call fails.
    #[expect(unsafe_code, reason = "no crate wraps this call")]
    pub(crate) fn cut(&self, cut: Cut) {
        const EXT4_IOC_SHUTDOWN: libc::c_ulong = 0x8004_587D;
        let root = File::open(&self.mount).unwrap();
        let flags = cut as u32;
        // SAFETY: the descriptor is open, and the call reads one number through the pointer.
        let done = unsafe { libc::ioctl(root.as_raw_fd(), EXT4_IOC_SHUTDOWN, &raw const flags) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// The machine is off and on again: whoever used the disk is gone, and it is read from what reached it.
    pub(crate) fn restart(&self) {
        self.unmount();
        assert!(self.mount(), "the disk cannot be mounted again");
    }

    /// Nothing is written any more until it thaws; whoever tries waits.
    pub(crate) fn freeze(&self) -> Frozen {
        let status = Command::new("fsfreeze").arg("-f").arg(&self.mount).status().unwrap();
        assert!(status.success());
        Frozen(self.mount.clone())
    }

    /// The kernel's name of the device: `loop3`.
    pub(crate) fn device(&self) -> String {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mount = self.mount.to_str().unwrap();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(mount)).unwrap();
        line.split(' ').next().unwrap().trim_start_matches("/dev/").to_owned()
    }

    fn unmount(&self) {
        for _ in 0..2000 {
            for id in self.users() {
                process::signal(id, Signal::KILL);
            }
            let status = Command::new("umount").arg(&self.mount).stderr(Stdio::null()).status().unwrap();
            if status.success() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        panic!("{} is still in use", self.mount.display());
    }

    /// Processes that have something of it open. Only a test's own processes know of it.
    fn users(&self) -> Vec<ProcessId> {
        let Ok(device) = fs::metadata(&self.mount).map(|meta| meta.dev()) else { return Vec::new() };
        let on_it = |path: PathBuf| fs::metadata(path).is_ok_and(|meta| meta.dev() == device);
        let own = std::process::id() as i32;
        let uses = |seen: &Seen| {
            let proc = PathBuf::from(format!("/proc/{}", seen.id.pid));
            let open = fs::read_dir(proc.join("fd")).into_iter().flatten().flatten();
            on_it(proc.join("cwd")) || on_it(proc.join("exe")) || open.map(|fd| fd.path()).any(on_it)
        };
        let all = process::all().into_iter();
        all.filter(|seen| seen.id.pid != own && uses(seen)).map(|seen| seen.id).collect()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.unmount();
        }
        for id in self.users() {
            process::signal(id, Signal::KILL);
        }
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

/// Thaws at the end.
pub(crate) struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).status();
    }
}
