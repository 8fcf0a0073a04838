//! The devices of a lease: their cross-scheduler locks, and how the work is told which they are.
//!
//! A lock is an flock on a file named by the device's UUID in a directory that every account may use; its content is
//! one line of [`LockHolder`] JSON, for people and other schedulers. The files are never removed: a name that comes and
//! goes could be locked twice.

use super::spec::{Devices, NOT_LISTED};
use crate::model::{GpuIds, LockHolder, Token};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the NVIDIA driver lists its devices.
pub(super) const DRIVER: &str = "/proc/driver/nvidia/gpus";

/// A reader may try a lock for a moment; only one that stays taken is taken.
const TRIES: u32 = 10;
const TRY_AGAIN_MS: i64 = 5;
const VERB_DEADLINE_MS: i64 = 10_000;

/// A held lock; dropping it returns it.
#[derive(Debug)]
pub(super) struct DeviceLock {
    file: File,
}

/// Takes the locks of all real devices, or says in words who has one.
pub(super) fn lock_all(devices: &Devices, token: &Token, wall_ms: i64) -> Result<Vec<DeviceLock>, String> {
    let real = || devices.held.iter().filter(|device| device.real);
    if real().next().is_none() {
        return Ok(Vec::new());
    }
    let told = |error: &io::Error| format!("the lock directory {}: {error}", devices.lock_dir.display());
    make_lock_dir(&devices.lock_dir).map_err(|error| told(&error))?;
    let holder = LockHolder {
        uid: rustix::process::geteuid().as_raw(),
        job: devices.holder.clone(),
        token: Some(token.clone()),
        since_ms: Some(wall_ms),
    };
    real()
        .map(|device| {
            let name = device.uuid.0.replace('/', "_");
            lock(&devices.lock_dir.join(format!("{name}.lock")), &holder)
                .map_err(|error| told(&error))?
                .map_err(|who| format!("GPU {} is held by {who}", device.uuid))
        })
        .collect()
}

/// What `CUDA_VISIBLE_DEVICES` holds, looked up now: an index may have moved since the device was listed.
pub(super) fn visible(devices: &Devices, driver: &Path) -> Result<String, String> {
    // A UUID names the right device whatever its index is.
    let uuids = || devices.held.iter().map(|device| device.uuid.0.as_str()).collect::<Vec<_>>().join(",");
    let given = || devices.held.iter().map(|device| device.index.to_string()).collect::<Vec<_>>().join(",");
    if devices.ids == GpuIds::Uuid || devices.held.iter().any(|device| device.uuid.0.starts_with("MIG-")) {
        return Ok(uuids());
    }
    if !devices.held.iter().any(|device| device.real) {
        return Ok(given());
    }
    let listed = listed(driver);
    let found: Option<Vec<String>> = devices
        .held
        .iter()
        .map(|device| listed.iter().position(|uuid| *uuid == device.uuid.0).map(|index| index.to_string()))
        .collect();
    if let Some(found) = found {
        return Ok(found.join(","));
    }
    match ask(devices) {
        Answer::Indices(indices) => Ok(indices.join(",")),
        Answer::Missing(why) => Err(why),
        Answer::None => Ok(uuids()),
    }
}

impl Drop for DeviceLock {
    fn drop(&mut self) {
        // The content is for people; the lock itself goes with the descriptor.
        let _ = self.file.set_len(0);
    }
}

/// Every account must be able to make a lock, and none may remove another's. One that is there is left as it is.
fn make_lock_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).create(dir)?;
    rustix::fs::chmod(dir, Mode::from_raw_mode(0o1777))?;
    Ok(())
}

fn lock(path: &Path, holder: &LockHolder) -> io::Result<Result<DeviceLock, String>> {
    let file = open(path)?;
    for attempt in 0.. {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) if attempt < TRIES => pause(TRY_AGAIN_MS),
            Err(Errno::WOULDBLOCK) => return Ok(Err(who(&file))),
            Err(error) => return Err(error.into()),
        }
    }
    let mut line = serde_json::to_vec(holder).unwrap_or_default();
    line.push(b'\n');
    // The lock holds without its content; a full disk only leaves others without a name.
    let _ = file.set_len(0);
    let _ = file.write_all_at(&line, 0);
    Ok(Ok(DeviceLock { file }))
}

/// Opens or makes a lock file. In a sticky directory a file of somebody else may not be opened for creation, so one
/// that is there is opened without.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    loop {
        match options.clone().open(path) {
            Ok(file) if file.metadata()?.is_file() => return Ok(file),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "a lock is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match options.clone().create_new(true).mode(0o666).open(path) {
            Ok(file) => {
                let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(0o666));
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn who(file: &File) -> String {
    let mut buffer = [0; 1024];
    let read = file.read_at(&mut buffer, 0).unwrap_or(0);
    let line = buffer[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<LockHolder>(line).map_or_else(
        |_| "somebody else".to_owned(),
        |holder| crate::model::clean_line(&format!("{} of uid {}", holder.job, holder.uid)),
    )
}

fn pause(ms: i64) {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }));
}

/// UUIDs in PCI order, as the driver lists them: one directory a device, named by its PCI address.
fn listed(driver: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(driver) else { return Vec::new() };
    let mut devices: Vec<(String, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("information")).ok()?;
            let uuid = text.lines().find_map(|line| line.strip_prefix("GPU UUID:"))?.trim().to_owned();
            Some((entry.file_name().to_string_lossy().to_ascii_lowercase(), uuid))
        })
        .collect();
    devices.sort();
    devices.into_iter().map(|(_, uuid)| uuid).collect()
}

enum Answer {
    Indices(Vec<String>),
    Missing(String),
    None,
}

/// Asks the program's own hidden verb `gpu-indices` (0: one index a line; [`NOT_LISTED`]: one is missing; else: it could
/// not tell), which asks the driver's library; a process of its own, because that library may hang or die.
fn ask(devices: &Devices) -> Answer {
    let held = &devices.held;
    let spawned = Command::new("/proc/self/exe")
        .arg("gpu-indices")
        .args(held.iter().map(|device| &device.uuid.0))
        .env_clear()
        .envs(&devices.driver_environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else { return Answer::None };
    let mut text = String::new();
    if let Some(stdout) = &mut child.stdout {
        let mut fds = [PollFd::new(&*stdout, PollFlags::IN)];
        let deadline = Timespec { tv_sec: VERB_DEADLINE_MS / 1000, tv_nsec: 0 };
        if matches!(poll(&mut fds, Some(&deadline)), Ok(1..)) {
            let _ = stdout.take(1 << 16).read_to_string(&mut text);
        } else {
            let _ = child.kill();
        }
    }
    let indices: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    match child.wait() {
        Ok(status) if status.success() => {
            let numbers =
                indices.len() == held.len() && indices.iter().all(|text| text.parse::<u32>().is_ok());
            if numbers { Answer::Indices(indices) } else { Answer::None }
        }
        Ok(status) if status.code() == Some(i32::from(NOT_LISTED)) => {
            Answer::Missing("a GPU of the lease is no longer listed by the driver".to_owned())
        }
        Ok(_) | Err(_) => Answer::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Uuid;
    use crate::supervisor::spec::Device;
    use std::os::unix::fs::PermissionsExt;

    fn devices(dir: &Path, held: &[(&str, u32)]) -> Devices {
        Devices {
            held: held
                .iter()
                .map(|(uuid, index)| Device { uuid: Uuid((*uuid).to_owned()), index: *index, real: true })
                .collect(),
            ids: GpuIds::Index,
            lock_dir: dir.to_owned(),
            holder: "17 retrain".to_owned(),
            driver_environment: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_taken_lock_names_its_holder_and_is_free_once_that_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let locks = dir.path().join("locks");
        let devices = devices(&locks, &[("GPU-1", 0), ("GPU-2", 1)]);
        let token = Token("t".to_owned());
        let held = lock_all(&devices, &token, 5).unwrap();
        assert_eq!(held.len(), 2);
        let refused = lock_all(&devices, &token, 6).unwrap_err();
        assert!(refused.contains("GPU-1") && refused.contains("17 retrain"), "{refused}");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&locks), mode(&locks.join("GPU-1.lock"))), (0o1777, 0o666));
        let line = std::fs::read_to_string(locks.join("GPU-1.lock")).unwrap();
        assert_eq!(serde_json::from_str::<LockHolder>(&line).unwrap().since_ms, Some(5));
        drop(held);
        assert_eq!(lock_all(&devices, &token, 7).unwrap().len(), 2);
    }

    #[test]
    fn a_symbolic_link_in_the_place_of_a_lock_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("precious");
        std::fs::write(&target, "data").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("GPU-1.lock")).unwrap();
        let devices = devices(dir.path(), &[("GPU-1", 0)]);
        assert!(lock_all(&devices, &Token("t".to_owned()), 5).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "data");
    }

    #[test]
    fn indices_follow_the_pci_order_of_the_driver_not_the_order_of_the_grant() {
        let dir = tempfile::tempdir().unwrap();
        for (address, uuid) in [("0000:af:00.0", "GPU-b"), ("0000:3b:00.0", "GPU-a")] {
            std::fs::create_dir(dir.path().join(address)).unwrap();
            let text =
                format!("Model: \t\t X\nIRQ:   \t\t 5\nGPU UUID: \t {uuid}\nBus Location: \t {address}\n");
            std::fs::write(dir.path().join(address).join("information"), text).unwrap();
        }
        assert_eq!(visible(&devices(dir.path(), &[("GPU-b", 7), ("GPU-a", 9)]), dir.path()).unwrap(), "1,0");
        let mut by_uuid = devices(dir.path(), &[("GPU-b", 7)]);
        by_uuid.ids = GpuIds::Uuid;
        assert_eq!(visible(&by_uuid, dir.path()).unwrap(), "GPU-b");
        assert_eq!(visible(&devices(dir.path(), &[("MIG-x", 7)]), dir.path()).unwrap(), "MIG-x");
        assert_eq!(visible(&devices(dir.path(), &[]), dir.path()).unwrap(), "");
    }
}
