//! The marker that says which state directory an inbox belongs to.

use super::InboxError;
use super::names::OWNER;
use crate::beneath;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A path is not longer than this.
const OWNER_MAX_BYTES: u64 = 8192;

/// An inbox is owned as long as this lives.
#[derive(Debug)]
pub struct OwnerMark {
    /// Holds the lock.
    _file: File,
}

/// Marks an inbox as this state directory's. Refused while another scheduler that runs has it; the mark of one that
/// no longer runs is replaced.
pub fn mark_owner(dir: &Path, state: &Path) -> Result<OwnerMark, InboxError> {
    let path = dir.join(OWNER);
    let io = |doing| {
        let path = path.clone();
        move |source| InboxError::Io { doing, path, source }
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(CWD, &path, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| io("open")(std::io::Error::from(error)))?;
    let mut file = File::from(fd);
    let stat = fstat(&file).map_err(|error| io("look at")(error.into()))?;
    // A name that somebody else made may stand for a file that is not to be written to.
    let ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_nlink == 1;
    if beneath::kind(&stat) != FileType::RegularFile || !ours {
        let why = "it is not this account's own file: remove it";
        return Err(io("use")(std::io::Error::new(std::io::ErrorKind::InvalidData, why)));
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut owner = String::new();
        file.take(OWNER_MAX_BYTES).read_to_string(&mut owner).map_err(io("read"))?;
        let owner = crate::model::clean_line(owner.lines().next().unwrap_or("unknown"));
        return Err(InboxError::Owned { dir: dir.to_owned(), owner });
    }
    let ours = format!("{}\n", state.display());
    let mut theirs = String::new();
    (&file).take(OWNER_MAX_BYTES).read_to_string(&mut theirs).map_err(io("read"))?;
    // A full disk takes nothing, and most often nothing is to be written. The lock is what counts.
    if theirs != ours {
        file.set_len(0).map_err(io("write"))?;
        file.seek(SeekFrom::Start(0)).map_err(io("write"))?;
        file.write_all(ours.as_bytes()).map_err(io("write"))?;
    }
    Ok(OwnerMark { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_has_one_living_owner_and_is_free_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mark = mark_owner(dir.path(), Path::new("/state/a")).unwrap();
        let refused = mark_owner(dir.path(), Path::new("/state/b")).unwrap_err();
        assert!(matches!(&refused, InboxError::Owned { owner, .. } if owner == "/state/a"), "{refused:?}");
        drop(mark);
        let _mark = mark_owner(dir.path(), Path::new("/state/b")).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(OWNER)).unwrap(), "/state/b\n");
    }

    #[test]
    fn a_mark_that_is_another_name_of_a_file_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "data").unwrap();
        std::fs::hard_link(&precious, dir.path().join(OWNER)).unwrap();
        let refused = mark_owner(dir.path(), Path::new("/state/a")).unwrap_err();
        assert!(matches!(&refused, InboxError::Io { doing: "use", .. }), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "data");
    }
}
