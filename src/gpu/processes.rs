//! Who is on a device: the driver's lists, merged by pid, and what `/proc` knows about each.
//!
//! Pids are those of the driver's namespace. Where this process lives in another one, `/proc` would tell of
//! somebody else: then nothing is attributed, and memory against the baseline has to decide.

use crate::model::{Bytes, GpuProcess, ProcessKind, Token, clean_line};
use globset::{Glob, GlobSet, GlobSetBuilder};
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// The initial pid namespace's inode number, fixed by the kernel's interface.
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
/// A burst of new processes between two calls makes the list too small; more bursts than this are an error.
const LIST_TRIES: u32 = 5;
/// An environment is at most this long here; the kernel's own limit is of that order.
const ENVIRON_MAX_BYTES: u64 = 4 << 20;
const TOKEN_KEY: &[u8] = b"OVERNIGHT_TOKEN=";

/// Names that belong to a device's baseline.
#[derive(Debug)]
pub(super) struct Ignore {
    names: GlobSet,
    attribute: bool,
    /// Names of accounts that were looked up.
    users: RefCell<BTreeMap<u32, Option<String>>>,
}

impl Ignore {
    /// Globs that cannot be read are left out; the config's reader has complained about them.
    pub(super) fn new(globs: &[String]) -> Self {
        let mut builder = GlobSetBuilder::new();
        for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
            builder.add(glob);
        }
        let attribute =
            std::fs::metadata("/proc/self/ns/pid").is_ok_and(|meta| meta.ino() == INITIAL_PID_NAMESPACE);
        Self { names: builder.build().unwrap_or_default(), attribute, users: RefCell::default() }
    }

    /// An account's name. Looked up once, and only in the local file: a directory on the network may hang.
    fn user(&self, uid: u32) -> Option<String> {
        self.users.borrow_mut().entry(uid).or_insert_with(|| user_name(uid)).clone()
    }
}

fn user_name(uid: u32) -> Option<String> {
    let accounts = std::fs::read("/etc/passwd").ok()?;
    String::from_utf8_lossy(&accounts).lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| clean_line(name))
    })
}

/// All processes on the device. An error if any of the lists that this device has could not be read.
pub(super) fn of_device(device: &Device<'_>, ignore: &Ignore) -> Result<Vec<GpuProcess>, NvmlError> {
    let mut merged: BTreeMap<u32, (ProcessKind, Option<Bytes>)> = BTreeMap::new();
    let compute = whole(|| device.running_compute_processes())?;
    let mps = optional(whole(|| device.mps_running_compute_processes()))?;
    let graphics = optional(whole(|| device.running_graphics_processes()))?;
    let kinds =
        [(compute, ProcessKind::Compute), (mps, ProcessKind::Compute), (graphics, ProcessKind::Graphics)];
    for (list, kind) in kinds {
        for process in list {
            let memory = match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
                UsedGpuMemory::Unavailable => None,
            };
            // One that computes and draws is in two lists with the same figure: it computes.
            let entry = merged.entry(process.pid).or_insert((kind, memory));
            entry.1 = entry.1.max(memory);
        }
    }
    Ok(merged.into_iter().map(|(pid, (kind, memory))| describe(pid, kind, memory, ignore)).collect())
}

/// Asks again while the list grows under the question.
fn whole(list: impl Fn() -> Result<Vec<ProcessInfo>, NvmlError>) -> Result<Vec<ProcessInfo>, NvmlError> {
    let mut result = list();
    for _ in 1..LIST_TRIES {
        if !matches!(result, Err(NvmlError::InsufficientSize(_))) {
            break;
        }
        result = list();
    }
    result
}

/// A list that this device or this driver does not have is empty.
fn optional(result: Result<Vec<ProcessInfo>, NvmlError>) -> Result<Vec<ProcessInfo>, NvmlError> {
    match result {
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => {
            Ok(Vec::new())
        }
        other => other,
    }
}

fn describe(pid: u32, kind: ProcessKind, memory: Option<Bytes>, ignore: &Ignore) -> GpuProcess {
    let (name, uid, token) = if ignore.attribute { from_proc(pid) } else { Default::default() };
    let ignored = kind == ProcessKind::Graphics || (!name.is_empty() && ignore.names.is_match(&name));
    let user = uid.and_then(|uid| ignore.user(uid));
    GpuProcess { pid, name, uid, user, kind, memory, token, ignored }
}

/// Name, owner and token. All are read below one directory handle, so that they are of one process.
fn from_proc(pid: u32) -> (String, Option<u32>, Option<Token>) {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let Ok(dir) = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty()) else {
        return Default::default();
    };
    let read = |name: &str| -> Option<Vec<u8>> {
        let file = openat(&dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(ENVIRON_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let name =
        read("comm").map(|comm| clean_line(String::from_utf8_lossy(&comm).trim_end())).unwrap_or_default();
    let uid = rustix::fs::fstat(&dir).ok().map(|stat| stat.st_uid);
    let token = read("environ").and_then(|environ| token(&environ));
    (name, uid, token)
}

/// The token in an environment.
fn token(environ: &[u8]) -> Option<Token> {
    let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(TOKEN_KEY))?;
    std::str::from_utf8(value).ok().map(|value| Token(clean_line(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_in_an_environment_and_only_as_a_whole_key() {
        assert_eq!(token(b"A=1\0OVERNIGHT_TOKEN=ab12\0B=2\0"), Some(Token("ab12".into())));
        assert_eq!(token(b"XOVERNIGHT_TOKEN=ab12\0OVERNIGHT_TOKENS=1\0"), None);
        assert_eq!(token(b""), None);
    }

    #[test]
    fn this_process_has_its_name_and_owner() {
        let (name, uid, token) = from_proc(std::process::id());
        assert!(!name.is_empty());
        assert_eq!(uid, Some(rustix::process::getuid().as_raw()));
        assert_eq!(token, None);
    }

    #[test]
    fn accounts_have_the_names_of_the_local_file() {
        let ignore = Ignore::new(&[]);
        assert_eq!(ignore.user(0), Some("root".to_owned()));
        assert_eq!(ignore.user(4_000_000_123), None);
    }

    #[test]
    fn the_default_ignore_list_knows_display_servers_and_the_drivers_helpers() {
        let ignore = Ignore::new(&super::super::nvml::DEFAULT_IGNORE.map(str::to_owned));
        for name in ["Xorg", "nvidia-persistenced", "dcgm-exporter"] {
            assert!(ignore.names.is_match(name), "{name}");
        }
        assert!(!ignore.names.is_match("python"));
    }
}
