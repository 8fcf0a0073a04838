//! The read side of the cross-scheduler device locks.
//!
//! The supervisor holds an exclusive `flock` on `LOCKDIR/<uuid>.lock` from grant to return and writes one JSON line
//! into it: a [`LockHolder`]. Here it is only asked whether somebody does. The question takes a shared lock for some
//! microseconds, so whoever takes the exclusive one tries more than once.

use crate::model::{LockHolder, Uuid};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where all schedulers of the machine look.
const SHARED_DIR: &str = "/run/lock/overnight";
/// Where they look if nobody may make that one.
const FALLBACK_DIR: &str = "/tmp/overnight-locks";
/// A holder's line is short; a file that is longer was not written by a supervisor.
const LINE_MAX_BYTES: u64 = 4096;

/// The directory of the locks: the given one, else `/run/lock/overnight`, else `/tmp/overnight-locks`; made with mode
/// 1777 where it is missing.
pub fn lock_dir(given: Option<&Path>) -> PathBuf {
    if let Some(dir) = given {
        usable(dir);
        return dir.to_owned();
    }
    let shared = Path::new(SHARED_DIR);
    let fallback = Path::new(FALLBACK_DIR);
    if usable(shared) || !usable(fallback) { shared.to_owned() } else { fallback.to_owned() }
}

/// Makes the directory if it is missing. Usable is a real directory in which everybody may make files.
fn usable(dir: &Path) -> bool {
    if std::fs::create_dir(dir).is_ok() {
        // The umask has its say at creation, and other accounts need the sticky, world-writable bit.
        return std::fs::set_permissions(dir, PermissionsExt::from_mode(0o1777)).is_ok();
    }
    std::fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.mode() & 0o002 != 0)
}

/// The lock file of a device.
pub fn lock_path(dir: &Path, uuid: &Uuid) -> PathBuf {
    // A driver's UUID has no slash; one that had would still stay a single name.
    dir.join(format!("{}.lock", uuid.0.replace('/', "_")))
}

/// Who holds the lock of this device; `None` if nobody does. A lock that cannot be opened, for instance because a link is
/// in its place, cannot be taken either, and is held by somebody unknown.
pub fn holder(dir: &Path, uuid: &Uuid) -> Option<LockHolder> {
    let path = lock_path(dir, uuid);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match open(&path, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(Errno::NOENT) => return None,
        Err(_) => {
            let owner = std::fs::symlink_metadata(&path).ok().map(|meta| meta.uid());
            return Some(unknown(owner, "something unknown: its lock cannot be opened"));
        }
    };
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        // Closing the file gives the shared lock back.
        return None;
    }
    let owner = file.metadata().ok().map(|meta| meta.uid());
    let mut line = String::new();
    let parsed = file
        .by_ref()
        .take(LINE_MAX_BYTES)
        .read_to_string(&mut line)
        .ok()
        .and_then(|_| serde_json::from_str::<LockHolder>(line.lines().next().unwrap_or_default()).ok());
    Some(parsed.unwrap_or_else(|| unknown(owner, "an unnamed job")))
}

fn unknown(owner: Option<u32>, job: &str) -> LockHolder {
    LockHolder { uid: owner.unwrap_or_default(), job: job.to_owned(), token: None, since_ms: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Token;

    fn holder_line() -> LockHolder {
        LockHolder {
            uid: 1001,
            job: "17 train".into(),
            token: Some(Token("ab".into())),
            since_ms: Some(1_700_000_000_000),
        }
    }

    #[test]
    fn a_held_lock_names_its_holder_and_a_returned_one_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let uuid = Uuid("GPU-1".into());
        assert_eq!(holder(dir.path(), &uuid), None, "no file");
        let path = lock_path(dir.path(), &uuid);
        std::fs::write(&path, serde_json::to_string(&holder_line()).unwrap() + "\n").unwrap();
        assert_eq!(holder(dir.path(), &uuid), None, "a file that nobody holds");
        let file = std::fs::File::open(&path).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(holder(dir.path(), &uuid), Some(holder_line()));
        drop(file);
        assert_eq!(holder(dir.path(), &uuid), None);
    }

    #[test]
    fn a_held_lock_without_a_readable_line_is_still_held() {
        let dir = tempfile::tempdir().unwrap();
        let uuid = Uuid("GPU-1".into());
        std::fs::write(lock_path(dir.path(), &uuid), "{half").unwrap();
        let file = std::fs::File::open(lock_path(dir.path(), &uuid)).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(holder(dir.path(), &uuid).map(|h| h.job), Some("an unnamed job".into()));
    }

    #[test]
    fn a_symlink_in_place_of_a_lock_is_held_by_somebody_unknown_and_a_fifo_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let uuid = Uuid("GPU-1".into());
        std::os::unix::fs::symlink("/dev/zero", lock_path(dir.path(), &uuid)).unwrap();
        let found = holder(dir.path(), &uuid).unwrap();
        assert_eq!((found.uid, found.token), (rustix::process::geteuid().as_raw(), None));
        assert!(found.job.contains("unknown"), "{}", found.job);
        let fifo = Uuid("GPU-2".into());
        rustix::fs::mknodat(
            rustix::fs::CWD,
            lock_path(dir.path(), &fifo),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(holder(dir.path(), &fifo), None);
    }

    #[test]
    fn the_given_directory_is_made_for_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let made = lock_dir(Some(&dir.path().join("locks")));
        assert_eq!(std::fs::metadata(&made).unwrap().mode() & 0o7777, 0o1777);
    }
}
