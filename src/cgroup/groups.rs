//! The groups of one attempt: who is in them, whether anybody is, their end.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Deeper than this nobody is looked for: the work may make groups of its own in its group.
const DEPTH: usize = 8;

/// The groups of one attempt, by path. Empty where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Groups {
    /// In version 2.
    pub version2: Option<PathBuf>,
    /// In version 1, one for each hierarchy.
    pub version1: Vec<PathBuf>,
}

impl Groups {
    /// Whether there is any.
    pub const fn is_none(&self) -> bool {
        self.version2.is_none() && self.version1.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.version2.iter().chain(&self.version1)
    }

    /// Those that bear a lease's token, in a directory of ours: what a file says that may have been tampered with is
    /// believed no further.
    #[must_use]
    pub fn of_token(mut self, token: &str) -> Self {
        let ours = |path: &PathBuf| {
            let plain = path.components().all(|part| !matches!(part, Component::ParentDir));
            let named = name(path)
                .is_some_and(|name| name.strip_prefix(token).is_some_and(|rest| rest.starts_with('-')));
            let within = path.parent().and_then(name).is_some_and(|name| name.starts_with("overnight-"));
            !token.is_empty() && plain && named && within
        };
        self.version2 = self.version2.filter(ours);
        self.version1.retain(ours);
        self
    }

    /// The numbers of all processes in them. Numbers only: who is meant has to be looked up, and asked [`holds`](Self::holds).
    pub fn processes(&self) -> Vec<i32> {
        let mut all = Vec::new();
        for group in self.all() {
            collect(group, DEPTH, &mut all);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a process is in one of them now.
    pub fn holds(&self, pid: i32) -> bool {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let names: Vec<&str> = self.all().filter_map(|path| name(path)).collect();
        // The name holds the lease's token: no other group has it.
        text.lines()
            .filter_map(|line| line.splitn(3, ':').nth(2))
            .any(|path| path.split('/').any(|part| names.contains(&part)))
    }

    /// Whether nobody is in them, by the kernel's word. `false` where it does not say.
    pub fn is_empty(&self) -> bool {
        self.all().all(|group| match fs::read_to_string(group.join("cgroup.events")) {
            Ok(text) => text.lines().any(|line| line == "populated 0"),
            // Version 1 has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut left = Vec::new();
                collect(group, DEPTH, &mut left);
                left.is_empty()
            }
            Err(_) => false,
        })
    }

    /// Ends everybody in them at once, where the kernel can; elsewhere nobody in them can start a process any more, so
    /// that signals to all of them come to an end.
    pub fn kill(&self) {
        for group in self.all() {
            if write(&group.join("cgroup.kill"), "1").is_err() {
                // Version 2 before Linux 5.14: what is frozen can still be killed. Version 1 has the other one.
                let _ = write(&group.join("cgroup.freeze"), "1");
                let _ = write(&group.join("pids.max"), "0");
            }
        }
    }

    /// How many processes in them the kernel has killed for memory; `None` where it does not count that.
    pub fn oom_kills(&self) -> Option<u64> {
        let version2 = self.version2.iter().map(|group| group.join("memory.events"));
        let version1 = self.version1.iter().map(|group| group.join("memory.oom_control"));
        version2.chain(version1).find_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
        })
    }

    /// Takes them away. `false` if somebody is in one, or it cannot be.
    pub fn remove(&self) -> bool {
        self.all().filter(|group| !remove_tree(group)).count() == 0
    }
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Takes a group and all below it away, as far as nobody is in them.
pub(super) fn remove_tree(group: &Path) -> bool {
    remove_below(group, DEPTH);
    match fs::remove_dir(group) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn remove_below(group: &Path, depth: usize) {
    for below in below(group, depth) {
        remove_below(&below, depth - 1);
        let _ = fs::remove_dir(below);
    }
}

fn collect(group: &Path, depth: usize, all: &mut Vec<i32>) {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    all.extend(text.lines().filter_map(|pid| pid.parse::<i32>().ok()));
    for below in below(group, depth) {
        collect(&below, depth - 1, all);
    }
}

fn below(group: &Path, depth: usize) -> Vec<PathBuf> {
    // A directory without directories in it has two links: its own name, and the one inside.
    if depth == 0 || fs::symlink_metadata(group).is_ok_and(|meta| meta.nlink() == 2) {
        return Vec::new();
    }
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_with_the_token_in_a_directory_of_ours_are_believed() {
        let groups =
            |paths: &[&str]| Groups { version2: None, version1: paths.iter().map(PathBuf::from).collect() };
        let good = groups(&["/sys/fs/cgroup/pids/overnight-0-ab/abcd-0-1"]);
        assert_eq!(good.clone().of_token("abcd"), good);
        for path in [
            "/sys/fs/cgroup/pids/overnight-0-ab/abce-0-1",
            "/sys/fs/cgroup/pids/overnight-0-ab/abcd",
            "/sys/fs/cgroup/pids/system.slice/abcd-0-1",
            "/sys/fs/cgroup/pids/overnight-0-ab/../abcd-0-1",
            "/",
        ] {
            assert!(groups(&[path]).of_token("abcd").is_none(), "{path}");
        }
        assert!(good.of_token("").is_none());
    }

    #[test]
    fn what_the_files_say_is_understood_also_in_groups_of_the_works_own() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("g");
        fs::create_dir_all(group.join("inner/most")).unwrap();
        fs::write(group.join("cgroup.procs"), "12\n5\n").unwrap();
        fs::write(group.join("inner/most/cgroup.procs"), "7\n").unwrap();
        fs::write(group.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
        let groups = Groups { version2: Some(group.clone()), version1: Vec::new() };
        assert_eq!(groups.processes(), [5, 7, 12]);
        assert_eq!(groups.oom_kills(), Some(2));
        assert!(!groups.is_empty());
        fs::write(group.join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
        assert!(groups.is_empty());
        assert!(Groups::default().is_empty() && Groups::default().oom_kills().is_none());
        fs::remove_dir_all(&group).unwrap();
        assert!(groups.is_empty() && groups.remove(), "what is gone is empty");
    }
}
