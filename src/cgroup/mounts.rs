//! Which hierarchies are mounted, and where in them this process is: two texts of `/proc`, read. Pure.

use super::Controller;
use std::path::{Path, PathBuf};

/// A hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) kind: Kind,
    /// Where it is mounted.
    pub(super) root: PathBuf,
    /// The group this process is in.
    pub(super) own: PathBuf,
}

/// What is in a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Version2,
    Version1(Vec<Controller>),
    /// Of version 1, without controllers: systemd's, in which it knows its services.
    Services,
}

/// Every hierarchy in which this process can be found, once each.
pub(super) fn hierarchies(mountinfo: &str, cgroup: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for mount in mountinfo.lines().filter_map(Mount::parse) {
        let Some(kind) = mount.kind() else { continue };
        if found.iter().any(|known| known.kind == kind) {
            continue;
        }
        let own = cgroup.lines().find_map(|line| mount.own(line));
        if let Some(own) = own {
            found.push(Hierarchy { kind, root: mount.at, own });
        }
    }
    found
}

/// A line of `/proc/self/mountinfo` that is about control groups.
struct Mount<'a> {
    /// The part of the hierarchy that is mounted.
    root: PathBuf,
    at: PathBuf,
    version2: bool,
    options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, at) = (unescape(before.next()?), unescape(before.next()?));
        let mut after = after.split(' ');
        let version2 = match after.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options = after.nth(1)?.split(',').collect();
        Some(Self { root, at, version2, options })
    }

    fn kind(&self) -> Option<Kind> {
        if self.version2 {
            return Some(Kind::Version2);
        }
        if self.options.contains(&"name=systemd") {
            return Some(Kind::Services);
        }
        let controllers: Vec<Controller> =
            Controller::ALL.into_iter().filter(|one| self.options.contains(&one.name())).collect();
        (!controllers.is_empty()).then_some(Kind::Version1(controllers))
    }

    /// The group of this process, if the line of `/proc/self/cgroup` is about this hierarchy and it is mounted that far.
    fn own(&self, line: &str) -> Option<PathBuf> {
        let mut parts = line.splitn(3, ':');
        let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let same = if self.version2 {
            number == "0" && names.is_empty()
        } else {
            names
                .split(',')
                .any(|name| self.options.contains(&name) && (name == "name=systemd" || !name.contains('=')))
                && !names.is_empty()
        };
        let below = same.then(|| Path::new(path).strip_prefix(&self.root).ok()).flatten()?;
        // Outside of what this process may see.
        (!path.starts_with("/..")).then(|| self.at.join(below))
    }
}

/// The kernel writes blanks and the like as three octal digits.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    std::ffi::OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mountinfo: &str, cgroup: &str) -> Vec<(Kind, String, String)> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        hierarchies(mountinfo, cgroup).into_iter().map(|it| (it.kind, text(it.root), text(it.own))).collect()
    }

    #[test]
    fn a_machine_with_version_2_only() {
        let mountinfo = "24 1 0:22 / /proc rw - proc proc rw\n\
            35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let cgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/overnight.service\n";
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/overnight.service";
        assert_eq!(found(mountinfo, cgroup), [(Kind::Version2, "/sys/fs/cgroup".to_owned(), own.to_owned())]);
    }

    #[test]
    fn a_machine_with_both() {
        let mountinfo = "\
            36 32 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct\n\
            37 32 0:32 / /sys/fs/cgroup/memory rw shared:16 - cgroup cgroup rw,memory\n\
            38 32 0:33 / /sys/fs/cgroup/blkio rw shared:17 - cgroup cgroup rw,blkio\n\
            39 32 0:34 / /sys/fs/cgroup/systemd rw shared:18 - cgroup cgroup rw,xattr,name=systemd\n\
            40 32 0:35 / /sys/fs/cgroup/unified rw shared:19 - cgroup2 cgroup2 rw\n";
        let cgroup = "5:cpu,cpuacct:/a\n4:memory:/b/c\n3:blkio:/\n1:name=systemd:/svc\n0::/svc\n";
        let one = |kind, root: &str, own: &str| (kind, root.to_owned(), own.to_owned());
        let expected = [
            one(
                Kind::Version1(vec![Controller::Cpu]),
                "/sys/fs/cgroup/cpu,cpuacct",
                "/sys/fs/cgroup/cpu,cpuacct/a",
            ),
            one(
                Kind::Version1(vec![Controller::Memory]),
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/memory/b/c",
            ),
            one(Kind::Services, "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/systemd/svc"),
            one(Kind::Version2, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/svc"),
        ];
        assert_eq!(found(mountinfo, cgroup), expected);
    }

    #[test]
    fn a_part_of_a_hierarchy_is_followed_and_what_is_outside_of_it_is_left_alone() {
        let mountinfo = "9 1 0:30 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n\
             8 1 0:31 / /my\\040groups rw - cgroup cgroup rw,pids\n";
        let cgroup = "2:pids:/../other\n0::/docker/ab/x\n";
        assert_eq!(
            found(mountinfo, cgroup),
            [(Kind::Version2, "/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/x".to_owned())]
        );
        let own = |cgroup| found(mountinfo, cgroup).pop().map(|(_, _, own)| own);
        assert_eq!(own("0::/elsewhere\n"), None);
        assert_eq!(own("2:pids:/p\n").as_deref(), Some("/my groups/p"));
        assert!(found("garbage\n - \n1 2 3 - cgroup", "::\nx").is_empty());
    }
}
