//! Finding the file: the one that is there, or a new one at the first start. Whoever returns from here holds its lock.

use super::StoreOptions;
use super::backend::FileStorage;
use super::error::StoreError;
use super::identity::Identity;
use super::open::PRODUCT;
use super::records::RECORD_VERSION;
use super::tables::{self, DEVICES, DROPS, EVENTS, INDEX, JOBS, LEASES, META, SUBMISSIONS, database};
use redb::{Builder, Durability};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, Timespec};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a file may be replaced under us while we look for it.
const TRIES: usize = 8;

/// The store's file, locked for as long as the handle lives.
pub(super) struct Found {
    pub(super) file: Arc<File>,
    /// It was made just now.
    pub(super) first_start: bool,
    /// What the marker says.
    owner: Option<PathBuf>,
}

/// Opens the store's file and locks it, or makes it at the first start.
pub(super) fn locked_file(
    path: &Path,
    identity: &Identity,
    options: &StoreOptions,
) -> Result<Found, StoreError> {
    let marker = &options.first_start_marker;
    for _ in 0..TRIES {
        let owner = read_marker(marker)?;
        if let Some(owner) = owner.as_deref().filter(|owner| is_another(owner, path)) {
            return Err(StoreError::OtherState { marker: marker.clone(), owner: owner.to_owned() });
        }
        if let Some(file) = open_and_lock(path, OFlags::RDWR)? {
            return Ok(Found { file, first_start: false, owner });
        }
        if let Some(sign) = earlier_start(owner.as_deref(), options) {
            return Err(StoreError::Emptied { path: path.to_owned(), sign, marker: marker.clone() });
        }
        if let Some(file) = create(path, identity)? {
            return Ok(Found { file, first_start: true, owner: None });
        }
    }
    Err(StoreError::Owned { path: path.to_owned() })
}

/// What says that a store was here before: the marker, or the folder of a job.
pub(super) fn earlier_start(owner: Option<&Path>, options: &StoreOptions) -> Option<PathBuf> {
    let marker = owner.map(|_| options.first_start_marker.clone());
    marker.or_else(|| options.jobs_dir.as_deref().and_then(a_job))
}

impl Found {
    /// Makes the marker name this store, unless it does already.
    pub(super) fn mark(&self, path: &Path, marker: &Path) -> Result<(), StoreError> {
        write_marker(marker, self.owner.as_deref(), path)
    }
}

/// `None` if it is not there.
fn open_and_lock(path: &Path, flags: OFlags) -> Result<Option<Arc<File>>, StoreError> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    for _ in 0..TRIES {
        let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(io("open", path)(errno.into())),
        };
        let meta = file.metadata().map_err(io("look at", path))?;
        if !meta.is_file() {
            let detail = "it is not a regular file".to_owned();
            return Err(StoreError::NotOurs { path: path.to_owned(), detail });
        }
        lock(&file, path)?;
        // It may have been renamed or replaced between the open and the lock.
        if is_at(&file, path)? {
            return Ok(Some(Arc::new(file)));
        }
    }
    Err(StoreError::Owned { path: path.to_owned() })
}

/// Takes the lock, or says that another scheduler has it.
///
/// A scheduler that was just killed may leave its lock to a process that it was starting, for as long as that takes to
/// execute its program. So a held lock is asked for again for a tenth of a second.
fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    for _ in 0..10 {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(io("lock", path)(source)),
        }
        // Nothing tells when a lock is let go.
        let _ = rustix::event::poll(&mut [], Some(&moment));
    }
    Err(StoreError::Owned { path: path.to_owned() })
}

/// Whether the open file is the one of that name.
pub(super) fn is_at(file: &File, path: &Path) -> Result<bool, StoreError> {
    let ours = file.metadata().map_err(io("look at", path))?;
    match std::fs::symlink_metadata(path) {
        Ok(now) => Ok((now.dev(), now.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(io("look at", path)(source)),
    }
}

/// Makes an empty store beside its place, and puts it there only once it is whole: a crash leaves none or all of it.
/// `None` if another one appeared meanwhile.
fn create(path: &Path, identity: &Identity) -> Result<Option<Arc<File>>, StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("make", dir))?;
    let new = path.with_extension("new");
    let Some(file) = open_and_lock(&new, OFlags::RDWR | OFlags::CREATE)? else { return Ok(None) };
    file.set_len(0).map_err(io("empty", &new))?;
    initialise(&new, &file, identity)?;
    file.sync_all().map_err(io("sync", &new))?;
    match rustix::fs::renameat_with(CWD, &new, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => {
            // Somebody was first. The new file is ours, for we hold its lock.
            std::fs::remove_file(&new).map_err(io("remove", &new))?;
            return Ok(None);
        }
        // A file system without the flag: nobody else gets here, for we hold the lock on the new file's name.
        Err(rustix::io::Errno::INVAL) => std::fs::rename(&new, path).map_err(io("rename", &new))?,
        Err(errno) => return Err(io("rename", &new)(errno.into())),
    }
    sync_dir(dir)?;
    // The directory may be new too. Where its parent cannot be opened it was there before us.
    drop(dir.parent().map(sync_dir));
    Ok(Some(file))
}

fn initialise(path: &Path, file: &Arc<File>, identity: &Identity) -> Result<(), StoreError> {
    let doing = "write to";
    let db = Builder::new()
        .set_cache_size(1 << 20)
        .create_with_backend(FileStorage::new(Arc::clone(file)))
        .map_err(database(path, doing))?;
    let mut txn = db.begin_write().map_err(database(path, doing))?;
    txn.set_durability(Durability::Immediate).map_err(database(path, doing))?;
    txn.set_quick_repair(true);
    let write = || -> Result<(), redb::Error> {
        for table in [EVENTS, JOBS, LEASES, SUBMISSIONS, DROPS] {
            txn.open_table(table)?;
        }
        txn.open_table(DEVICES)?;
        txn.open_table(INDEX)?;
        let mut meta = txn.open_table(META)?;
        meta.insert("product", PRODUCT)?;
        meta.insert("record_version", RECORD_VERSION.to_string().as_str())?;
        meta.insert("machine_id", identity.machine_id.as_str())?;
        meta.insert("hostname", identity.hostname.as_str())?;
        Ok(())
    };
    write().map_err(tables::database(path, doing))?;
    txn.commit().map_err(database(path, doing))
}

/// A job's folder, `17-name`, if there is one.
fn a_job(jobs_dir: &Path) -> Option<PathBuf> {
    let is_job = |name: &std::ffi::OsStr| {
        let name = name.as_bytes();
        let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && name.get(digits) == Some(&b'-')
    };
    let mut entries = std::fs::read_dir(jobs_dir).ok()?.flatten();
    entries.find(|entry| is_job(&entry.file_name())).map(|entry| entry.path())
}

/// The store that the marker names; `None` if there is no marker.
pub(super) fn read_marker(marker: &Path) -> Result<Option<PathBuf>, StoreError> {
    match std::fs::read(marker) {
        Ok(bytes) => {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(line))))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io("read", marker)(source)),
    }
}

/// Whether the marker's store is there and is not ours. A store that moved together with its folders is ours.
pub(super) fn is_another(owner: &Path, path: &Path) -> bool {
    let Ok(theirs) = std::fs::metadata(owner) else { return false };
    std::fs::metadata(path).map_or(true, |ours| (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()))
}

/// Writes the marker unless it says so already.
fn write_marker(marker: &Path, owner: Option<&Path>, path: &Path) -> Result<(), StoreError> {
    let path = std::fs::canonicalize(path).map_err(io("find", path))?;
    if owner == Some(path.as_path()) {
        return Ok(());
    }
    let dir = marker.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("make", dir))?;
    let new = marker.with_extension("new");
    let mut file = File::create(&new).map_err(io("write", &new))?;
    file.write_all(path.as_os_str().as_bytes())
        .and_then(|()| {
            file.write_all(
                b"\nThe store of the scheduler that owns these folders. Keep this file: it tells a lost \
                store from a first start.\n",
            )
        })
        .and_then(|()| file.sync_all())
        .map_err(io("write", &new))?;
    std::fs::rename(&new, marker).map_err(io("rename", &new))?;
    sync_dir(dir)
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync", dir))
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { doing, path, source }
}
