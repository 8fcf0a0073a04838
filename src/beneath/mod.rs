//! Opens what lies below a directory and nothing else: no name leads out of it, whatever is swapped meanwhile.
//!
//! The kernel resolves a path in one step (`openat2`); where it has no such call, names are walked one by one from open
//! directories. What is there is looked at before it is opened: a pipe, a socket or a device is never opened, so nothing
//! waits and nothing is woken. Every adapter and the shell may use it; it knows nothing of jobs and decides nothing.

mod named;
mod walk;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

pub use named::{look_named, make_named, named, named_file};
use named::{place, readable};

/// An open directory.
pub type Dir = OwnedFd;

/// What happens to symbolic links on the way, the last name included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// None is followed.
    Refused,
    /// Those that stay below the directory are followed.
    Inside,
}

/// A name that leads out of the directory.
pub const LEADS_OUT: Errno = Errno::XDEV;
/// A link that is not followed.
pub const IS_LINK: Errno = Errno::LOOP;
/// A folder, a pipe, a socket or a device in the place of a file.
pub const NOT_A_FILE: Errno = Errno::NXIO;
/// Something else is mounted there.
pub const IS_MOUNT: Errno = Errno::XDEV;

/// A file's name is no longer than this.
pub const NAME_BYTES: usize = 255;
/// How often a path that is renamed under the kernel's hands is resolved again.
const TRIES: usize = 32;
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What is there: a descriptor that can only be looked at, and its kind, owner and size. Opens nothing.
pub fn look(root: impl AsFd, path: &Path, links: Links) -> Result<(OwnedFd, Stat), Errno> {
    let seen = resolve(root.as_fd(), path, links)?;
    let stat = rustix::fs::fstat(&seen)?;
    Ok((seen, stat))
}

/// Opens what was looked at for reading: the very same file.
pub fn reopen(seen: &OwnedFd) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", seen.as_raw_fd()), flags, Mode::empty()).map(File::from)
}

/// Opens a regular file for reading. Anything else is refused, and never opened.
pub fn file(root: impl AsFd, path: &Path, links: Links) -> Result<(File, Stat), Errno> {
    let (seen, stat) = look(root, path, links)?;
    if kind(&stat) != FileType::RegularFile {
        return Err(NOT_A_FILE);
    }
    Ok((reopen(&seen)?, stat))
}

/// Opens a directory.
pub fn dir(root: impl AsFd, path: &Path, links: Links) -> Result<Dir, Errno> {
    readable(&resolve(root.as_fd(), path, links)?)
}

/// Opens a directory right below another one if it lies on the same mount; [`IS_MOUNT`] if something is mounted there.
pub fn unmounted(parent: impl AsFd, name: &OsStr, flags: OFlags) -> Result<Dir, Errno> {
    let parent = parent.as_fd();
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if has_openat2() {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        return rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve);
    }
    let dir = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let device = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
    if device(parent)? == device(dir.as_fd())? { Ok(dir) } else { Err(IS_MOUNT) }
}

/// Opens a directory of the scheduler's. `own` are trees in which only the scheduler, and work that it runs, makes names:
/// below the innermost one that `path` lies in no link is followed. Outside of them it is as in [`named`].
pub fn own_dir(path: &Path, own: &[PathBuf]) -> Result<Dir, Errno> {
    readable(&own_place(path, own)?)
}

/// [`own_dir`] as a place to make and remove names in.
pub fn own_place(path: &Path, own: &[PathBuf]) -> Result<Dir, Errno> {
    let Some((base, rest)) = base(path, own) else { return place(path) };
    let (dir, stat) = look(place(base)?, rest, Links::Refused)?;
    if kind(&stat) == FileType::Directory { Ok(dir) } else { Err(Errno::NOTDIR) }
}

/// [`look`] by a path of the scheduler's.
pub fn own_look(path: &Path, own: &[PathBuf]) -> Result<(OwnedFd, Stat), Errno> {
    let (dir, name) = split(path)?;
    look(own_place(dir, own)?, Path::new(name), Links::Refused)
}

/// Reads a file of the scheduler's, if it is no longer than `most`.
pub fn own_read(path: &Path, own: &[PathBuf], most: u64) -> std::io::Result<Vec<u8>> {
    let (dir, name) = split(path)?;
    let (file, stat) = file(own_place(dir, own)?, Path::new(name), Links::Refused)?;
    if u64::try_from(stat.st_size).is_ok_and(|size| size > most) {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The innermost of these trees that a path lies in, and the path below it.
pub fn base<'p>(path: &'p Path, own: &'p [PathBuf]) -> Option<(&'p Path, &'p Path)> {
    let inside = own.iter().filter_map(|base| Some((base.as_path(), path.strip_prefix(base).ok()?)));
    inside.max_by_key(|(base, _)| base.as_os_str().len())
}

/// The directory that a path ends in, and its last name.
pub fn split(path: &Path) -> Result<(&Path, &OsStr), Errno> {
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((dir, name))
}

/// Puts a file into a directory: whole, under its name, in place of what had that name, of which nothing is followed or
/// written to. A reader sees the old text or the new one.
pub fn replace(dir: impl AsFd, name: &OsStr, bytes: &[u8], mode: Mode) -> std::io::Result<()> {
    let dir = dir.as_fd();
    let fresh = fresh_name(name);
    match rustix::fs::unlinkat(dir, &fresh, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(dir, &fresh, flags, mode)?);
    let placed = file.write_all(bytes).and_then(|()| Ok(rustix::fs::renameat(dir, &fresh, dir, name)?));
    if placed.is_err() {
        // The reason is in the first failure.
        let _ = rustix::fs::unlinkat(dir, &fresh, rustix::fs::AtFlags::empty());
    }
    placed
}

/// The name of a file that is not whole yet: hidden, and no longer than a name may be.
fn fresh_name(name: &OsStr) -> OsString {
    let begin = &name.as_bytes()[..name.len().min(NAME_BYTES - 5)];
    OsString::from_vec([b".", begin, b".new"].concat())
}

/// What an entry is.
pub const fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// What a strange entry is called.
pub const fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "symbolic link",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Unknown => "thing that this system does not know",
    }
}

fn resolve(root: BorrowedFd<'_>, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
    let names = names(path)?;
    if names.as_os_str().is_empty() {
        return rustix::fs::openat(root, ".", LOOK, Mode::empty());
    }
    if has_openat2() {
        for _ in 0..TRIES {
            match by_kernel(root, &names, links) {
                // Something on the way was renamed meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }
    walk::walk(root, &names, links)
}

fn by_kernel(root: BorrowedFd<'_>, names: &Path, links: Links) -> Result<OwnedFd, Errno> {
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let resolve = match links {
        Links::Refused => inside | ResolveFlags::NO_SYMLINKS,
        Links::Inside => inside,
    };
    rustix::fs::openat2(root, names, LOOK, Mode::empty(), resolve)
}

/// A path of plain names.
fn names(path: &Path) -> Result<PathBuf, Errno> {
    let mut names = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(LEADS_OUT),
        }
    }
    Ok(names)
}

/// Old kernels do not have the call, and the filters of some containers refuse it.
fn has_openat2() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let tried = rustix::fs::openat2(CWD, "/", LOOK, Mode::empty(), ResolveFlags::empty());
        !matches!(tried, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
    })
}

#[cfg(test)]
mod tests;
