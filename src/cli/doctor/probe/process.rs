//! This account's processes, and what it may have of them.

use crate::cli::Setup;
use crate::cli::doctor::facts::{Account, Inotify};
use rustix::process::{Resource, getrlimit};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) fn account(setup: &Setup) -> Account {
    let files = getrlimit(Resource::Nofile);
    let uid = setup.environment.uid;
    Account {
        user: setup.environment.user.clone(),
        uid,
        files: (files.current, files.maximum),
        processes: (getrlimit(Resource::Nproc).current, threads(uid)),
        umask: umask(),
    }
}

/// Read, not set and set back: other threads make files meanwhile.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

/// The processes of an account that can be seen.
fn processes(uid: u32) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .map(|entry| entry.path())
        .filter(move |path| std::fs::metadata(path).is_ok_and(|meta| meta.uid() == uid))
}

/// What counts against the limit of processes: threads do.
fn threads(uid: u32) -> u64 {
    // A directory has two links more than directories in it.
    processes(uid)
        .filter_map(|path| Some(std::fs::metadata(path.join("task")).ok()?.nlink().saturating_sub(2)))
        .sum()
}

pub(super) fn inotify(uid: u32) -> Inotify {
    let limit = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name)).ok()?;
        text.trim().parse().ok()
    };
    let mut used = Inotify {
        watches: limit("max_user_watches"),
        instances: limit("max_user_instances"),
        queue: limit("max_queued_events"),
        ..Inotify::default()
    };
    for process in processes(uid) {
        for file in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            if std::fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:inotify") {
                used.instances_used += 1;
                let about = std::fs::read_to_string(process.join("fdinfo").join(file.file_name()));
                let watches =
                    about.unwrap_or_default().lines().filter(|line| line.starts_with("inotify ")).count();
                used.watches_used += watches as u64;
            }
        }
    }
    used
}
