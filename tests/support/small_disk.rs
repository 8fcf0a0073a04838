//! A small file system of its own, for full disks.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Said past the capture of output, which would hide it.
pub(crate) fn skipped(test: &str, why: &str) {
    std::io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes()).unwrap();
}

/// Unmounted at the end.
pub(crate) struct SmallDisk(pub(crate) PathBuf, #[expect(dead_code, reason = "removed at the end")] TempDir);

impl SmallDisk {
    /// `None`, said so, where mounting is not allowed.
    pub(crate) fn new(test: &str, kib: u64) -> Option<Self> {
        Self::with(test, &format!("size={kib}k"))
    }

    /// The same with other options of tmpfs.
    pub(crate) fn with(test: &str, options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&path)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            skipped(test, "a small disk can only be mounted by root");
            return None;
        }
        Some(Self(path, dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
