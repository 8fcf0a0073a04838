//! What the kernel offers: control groups, Landlock, a clock that is kept.

use crate::cli::doctor::facts::Cgroup;
use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

pub(super) fn cgroup() -> Cgroup {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // Version 2 has the number 0 and no controllers in its line.
    let below = own.lines().find_map(|line| line.strip_prefix("0::"));
    let two = Path::new(MOUNT).join("cgroup.controllers").exists();
    if let (Some(below), true) = (below, two) {
        let group = PathBuf::from(format!("{MOUNT}{below}"));
        let controllers = std::fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
        let ours = may_write(&group) && may_write(&group.join("cgroup.procs"));
        return Cgroup::Two { controllers: words(&controllers), ours, own: group };
    }
    let controllers: Vec<String> = own
        .lines()
        .filter_map(|line| line.split(':').nth(1))
        .filter(|names| !names.is_empty() && !names.starts_with("name="))
        .flat_map(|names| names.split(','))
        .map(str::to_owned)
        .collect();
    let unified = Path::new(MOUNT).join("unified").is_dir();
    if controllers.is_empty() && !unified { Cgroup::None } else { Cgroup::One { controllers, unified } }
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The version of Landlock.
#[expect(unsafe_code, reason = "no crate of ours has the call")]
pub(super) fn landlock() -> Result<u32, String> {
    /// Asks for the version; no rule set is made.
    const VERSION: libc::c_uint = 1;
    let none: *const libc::c_void = std::ptr::null();
    let nothing: libc::size_t = 0;
    // SAFETY: with this flag the kernel reads no memory of ours; a kernel without the call returns an error.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, nothing, VERSION) };
    if version > 0 {
        return Ok(version as u32);
    }
    let error = std::io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has none".to_owned(),
        Some(libc::EOPNOTSUPP) => "switched off at boot".to_owned(),
        _ => error.to_string(),
    })
}

/// Whether something keeps the clock right, as far as the kernel knows.
#[expect(unsafe_code, reason = "no crate of ours has the call")]
pub(super) fn synchronised() -> Option<bool> {
    let mut timex = std::mem::MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the pointer is to writable memory of the right size; all zero asks without setting anything.
    let state = unsafe { libc::adjtimex(timex.as_mut_ptr()) };
    if state == -1 {
        return None;
    }
    // SAFETY: a structure of integers, zeroed before and filled by the call.
    let status = unsafe { timex.assume_init() }.status;
    Some(state != libc::TIME_ERROR && status & libc::STA_UNSYNC == 0)
}
