//! File systems: what kind, what room, how mounted.

use crate::cli::doctor::facts::Disk;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A line of the kernel's list of mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    at: PathBuf,
    kind: String,
}

/// All mounts, in the kernel's order.
pub(super) fn mounts() -> Vec<Mount> {
    let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let at = PathBuf::from(OsString::from_vec(unescape(fields.by_ref().nth(4)?)));
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount { at, kind: String::from_utf8_lossy(kind).into_owned() })
}

/// Blanks and the like are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    out
}

/// The file system that a path without links lies on.
pub(super) fn disk(real: &Path, mounts: &[Mount]) -> Option<Disk> {
    let found = statvfs(real).ok()?;
    // Of two at one place the later one is on top.
    let mount = mounts
        .iter()
        .filter(|mount| real.starts_with(&mount.at))
        .max_by_key(|mount| mount.at.as_os_str().len());
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Disk {
        kind: mount.map_or_else(|| "an unknown file system".to_owned(), |mount| mount.kind.clone()),
        read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        no_exec: found.f_flag.contains(StatVfsMountFlags::NOEXEC),
        free: bytes(found.f_bavail),
        size: bytes(found.f_blocks),
        files_free: found.f_favail,
        files: found.f_files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_list_is_read_and_blanks_in_it_too() {
        let line = br"36 35 98:0 / /mnt/my\040data rw,noatime shared:1 master:2 - nfs4 host:/x rw";
        let mount = mount(line).unwrap();
        assert_eq!((mount.at.to_str(), mount.kind.as_str()), (Some("/mnt/my data"), "nfs4"));
        assert_eq!(super::mount(b""), None);
    }

    #[test]
    fn the_innermost_mount_counts_and_of_two_at_one_place_the_later_one() {
        let mount = |at: &str, kind: &str| Mount { at: at.into(), kind: kind.to_owned() };
        let mounts =
            [mount("/", "ext4"), mount("/proc", "first"), mount("/proc", "second"), mount("/p", "no")];
        assert_eq!(disk(Path::new("/proc/self"), &mounts).unwrap().kind, "second");
        assert_eq!(disk(Path::new("/"), &mounts).unwrap().kind, "ext4");
    }
}
