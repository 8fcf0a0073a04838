//! The socket's file: bound privately in a directory that is ours alone, and bound again when its name is gone.

use crate::beneath;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, Mode, fchmod, fstat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

/// Connections that the kernel keeps for us until they are taken.
const BACKLOG: i32 = 1024;
/// Descriptors are for leases and connections; more than this nobody needs, and every one costs the kernel memory.
const FILES_MOST: u64 = 65_536;

/// The listening socket and its name.
#[derive(Debug)]
pub(in super::super) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the name when it was bound.
    id: (u64, u64),
    /// Something happened to the name; `None` where that cannot be watched.
    moved: Option<mpsc::Receiver<()>>,
}

impl Door {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let (listener, id) = bind(path)?;
        // A name that is lost then is only found by a restart.
        let moved = watch(path).ok();
        Ok(Self { listener, path: path.to_owned(), id, moved })
    }

    /// The next connection.
    pub(super) async fn next(&mut self) -> std::io::Result<UnixStream> {
        loop {
            let moved = async {
                match &mut self.moved {
                    Some(moved) => moved.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                taken = self.listener.accept() => return taken.map(|(stream, _)| stream),
                told = moved => match told {
                    Some(()) => self.bind_again(),
                    None => self.moved = None,
                },
            }
        }
    }

    /// Takes the name again if it is no longer ours: a cleaner of temporary files, a hand that slipped.
    fn bind_again(&mut self) {
        let now = rustix::fs::lstat(&self.path).map(|stat| (stat.st_dev, stat.st_ino));
        if now == Ok(self.id) {
            return;
        }
        match bind(&self.path) {
            Ok((listener, id)) => {
                tracing::warn!(path = %self.path.display(), "the socket's name was gone: it is bound again");
                (self.listener, self.id) = (listener, id);
            }
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "cannot bind the socket again");
            }
        }
    }
}

/// Private from its first moment: the file gets the mode that the socket has before it is bound. The mask of the whole
/// process, which other threads make files under, is left alone.
fn bind(path: &Path) -> std::io::Result<(UnixListener, (u64, u64))> {
    let (dir, name) = beneath::split(path)?;
    let dir = beneath::named(dir)?;
    match unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let private = Mode::RUSR | Mode::WUSR;
    fchmod(&socket, private)?;
    // A path may be longer than an address; this one is not.
    let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    rustix::net::bind(&socket, &SocketAddrUnix::new(&short)?)?;
    let mut stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if stat.st_mode & 0o077 != 0 {
        // A kernel that takes the mask instead. Nobody is listened to before it is private.
        rustix::fs::chmodat(&dir, name, private, AtFlags::empty())?;
        stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    rustix::net::listen(&socket, BACKLOG)?;
    let listener = UnixListener::from_std(std::os::unix::net::UnixListener::from(socket))?;
    Ok((listener, (stat.st_dev, stat.st_ino)))
}

/// Tells when the name is removed, moved or taken. One thread, which sleeps until then.
fn watch(path: &Path) -> std::io::Result<mpsc::Receiver<()>> {
    let (dir, name) = beneath::split(path)?;
    let watch = inotify::init(CreateFlags::CLOEXEC)?;
    let events = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO | WatchFlags::CREATE;
    inotify::add_watch(&watch, dir, events | WatchFlags::ONLYDIR)?;
    let (tell, moved) = mpsc::channel(1);
    let name = name.to_owned();
    std::thread::Builder::new()
        .name("socket".to_owned())
        .stack_size(64 << 10)
        .spawn(move || wait(&watch, &name, &tell))?;
    Ok(moved)
}

fn wait(watch: &OwnedFd, name: &OsStr, tell: &mpsc::Sender<()>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    loop {
        let about_it = match events.next() {
            Ok(event) => event.file_name().is_some_and(|of| of.to_bytes() == name.as_bytes()),
            Err(Errno::INTR) => false,
            Err(_) => return,
        };
        if about_it && tell.blocking_send(()).is_err() {
            return;
        }
    }
}

/// The state directory is ours alone: somebody else's is refused, one that others may enter is closed.
pub(in super::super) fn own_state(dir: &Path) -> std::io::Result<()> {
    let opened = beneath::named(dir)?;
    let stat = fstat(&opened)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let why = format!("it belongs to another account (uid {})", stat.st_uid);
        return Err(Error::new(ErrorKind::PermissionDenied, why));
    }
    if stat.st_mode & 0o077 != 0 {
        tracing::warn!(path = %dir.display(), mode = format!("{:04o}", stat.st_mode & 0o7777), "others could enter the state directory: closed to them");
        fchmod(&opened, Mode::RWXU)?;
    }
    Ok(())
}

/// As many descriptors as this account may have: one for each lease, connection and dropped folder.
pub(in super::super) fn raise_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(FILES_MOST).min(FILES_MOST);
    if current.is_some_and(|current| current < most) {
        // What it is now is enough for most.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn the_socket_is_private_and_bound_again_when_its_name_is_gone_or_taken() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s");
            std::fs::write(&path, "in the way").unwrap();
            let mut door = Door::open(&path).unwrap();
            let mode = || std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            assert!(door.moved.is_some());
            for squat in [false, true] {
                let first = door.id;
                std::fs::remove_file(&path).unwrap();
                if squat {
                    std::fs::write(&path, "taken").unwrap();
                }
                // It is bound again while somebody waits for a connection.
                let client = async {
                    loop {
                        if let Ok(stream) = UnixStream::connect(&path).await {
                            return stream;
                        }
                        tokio::task::yield_now().await;
                    }
                };
                let (taken, _client) = tokio::join!(door.next(), client);
                taken.unwrap();
                assert_ne!(door.id, first);
                assert_eq!(mode(), 0o600);
            }
        });
    }

    #[test]
    fn a_long_path_is_bound_too() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let deep = dir.path().join("x".repeat(120));
            std::fs::create_dir(&deep).unwrap();
            Door::open(&deep.join("s")).unwrap();
            assert!(deep.join("s").symlink_metadata().is_ok());
        });
    }

    #[test]
    fn a_state_directory_that_others_may_enter_is_closed_to_them() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        own_state(dir.path()).unwrap();
        assert_eq!(std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(dir.path(), Some(65_534), None).unwrap();
            assert_eq!(own_state(dir.path()).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
    }
}
