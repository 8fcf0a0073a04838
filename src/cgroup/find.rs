//! What this machine has, found once when a scheduler starts; and its end.

use super::mounts::{self, Hierarchy, Kind};
use super::{Controller, Layout, Version1};
use rustix::fs::Access;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// The group of all supervisors.
const SUPERVISORS: &str = "supervisors";
/// The group of a scheduler that has to leave its own to hand controllers down.
const SCHEDULER: &str = "scheduler";
/// A longer path is not used: it would not fit into the journal.
const PATH_BOUND: usize = 512;

impl Layout {
    /// Makes the directories of the scheduler that has this state directory, as far as it may.
    pub fn find(state: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let texts = read("/proc/self/mountinfo").and_then(|mounts| Ok((mounts, read("/proc/self/cgroup")?)));
        match texts {
            Ok((mountinfo, cgroup)) => Self::below(&mounts::hierarchies(&mountinfo, &cgroup), &name(state)),
            Err(why) => Self::none(why),
        }
    }

    fn below(hierarchies: &[Hierarchy], name: &str) -> Self {
        let mut layout = Self::default();
        let mut whys = Vec::new();
        for hierarchy in hierarchies {
            let made = match &hierarchy.kind {
                Kind::Version2 => layout.make_version2(hierarchy, name),
                Kind::Services => {
                    layout.make_supervisors(hierarchy, name);
                    Ok(())
                }
                Kind::Version1(controllers) => layout.make_version1(controllers, &hierarchy.own, name),
            };
            whys.extend(made.err());
        }
        if layout.controllers.is_empty() && !layout.version1.is_empty() {
            // Version 1 has all there is, and its groups can be entered before a lease is there.
            if let Some(top) = layout.version2.take()
                && fs::remove_dir(&top).is_ok()
            {
                layout.tops.retain(|other| *other != top);
            }
        }
        let missing: Vec<&str> =
            Controller::ALL.into_iter().filter(|one| !layout.limits(*one)).map(Controller::name).collect();
        if !missing.is_empty() {
            let why = whys.into_iter().next().unwrap_or_else(|| "the kernel hands none down".to_owned());
            layout.why = Some(format!("no cgroup for {}: {why}", missing.join(", ")));
        }
        layout
    }

    fn limits(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
            || self.version1.iter().any(|tree| tree.controllers.contains(&controller))
    }

    /// Beside the scheduler's own group, so that the end of that group is not the end of ours; inside it only where it
    /// may not be beside.
    fn make_version2(&mut self, hierarchy: &Hierarchy, name: &str) -> Result<(), String> {
        let Hierarchy { own, root, .. } = hierarchy;
        let beside = own.parent().filter(|_| own != root);
        let mut refused = String::new();
        for base in beside.into_iter().chain([own.as_path()]) {
            let top = base.join(name);
            if let Err(why) = ours(&top).and_then(|()| may_move_within(base)) {
                let _ = fs::remove_dir(&top);
                refused = if refused.is_empty() { why } else { refused };
                continue;
            }
            let moved = hand_down(base, own, &top);
            for one in words(&top.join("cgroup.controllers")) {
                // One at a time: the kernel takes all or none.
                if fs::write(top.join("cgroup.subtree_control"), format!("+{}", one.name())).is_ok() {
                    self.controllers.push(one);
                }
            }
            if own != root || moved {
                let supervisors = top.join(SUPERVISORS);
                ours(&supervisors)?;
                self.supervisors.push(supervisors);
            }
            self.tops.push(top.clone());
            self.version2 = Some(top);
            return Ok(());
        }
        Err(refused)
    }

    /// A service manager that counts by a hierarchy of version 1 without controllers.
    fn make_supervisors(&mut self, hierarchy: &Hierarchy, name: &str) {
        let Some(beside) = hierarchy.own.parent().filter(|_| hierarchy.own != hierarchy.root) else {
            return;
        };
        let top = beside.join(name);
        let supervisors = top.join(SUPERVISORS);
        let made = ours(&top).and_then(|()| ours(&supervisors));
        self.tops.push(top);
        if made.is_ok() {
            self.supervisors.push(supervisors);
        }
    }

    /// Below the scheduler's own group: what limits that one limits its jobs too.
    fn make_version1(&mut self, all: &[Controller], own: &Path, name: &str) -> Result<(), String> {
        let controllers: Vec<Controller> = all.iter().copied().filter(|one| !self.limits(*one)).collect();
        if controllers.is_empty() {
            return Ok(());
        }
        let top = own.join(name);
        ours(&top)?;
        self.tops.push(top.clone());
        self.version1.push(Version1 { controllers, top });
        Ok(())
    }

    /// Takes the groups away that nobody is in: what killed supervisors have left.
    pub fn sweep(&self) {
        for top in &self.tops {
            for entry in fs::read_dir(top).into_iter().flatten().flatten() {
                let keep = entry.file_name() == SUPERVISORS || entry.file_name() == SCHEDULER;
                if !keep && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    super::groups::remove_tree(&entry.path());
                }
            }
        }
    }

    /// Takes the directories away, if nobody is in them.
    pub fn remove(&self) {
        self.sweep();
        for top in &self.tops {
            let _ = fs::remove_dir(top.join(SUPERVISORS));
            let _ = fs::remove_dir(top);
        }
    }
}

/// One name for each account and state directory: schedulers side by side do not share a directory.
fn name(state: &Path) -> String {
    let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
    let hash = blake3::hash(state.as_os_str().as_encoded_bytes()).to_hex();
    format!("overnight-{}-{}", rustix::process::geteuid().as_raw(), &hash[..16])
}

/// Makes a group, or takes one that is there and is ours.
fn ours(path: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    if path.as_os_str().len() > PATH_BOUND {
        return Err(format!("{}: the path is too long", path.display()));
    }
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let meta = fs::symlink_metadata(path).map_err(told)?;
            if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(format!("{} belongs to somebody else", path.display()));
            }
        }
        Err(error) => return Err(told(error)),
    }
    rustix::fs::access(path.join("cgroup.procs"), Access::WRITE_OK).map_err(|error| told(error.into()))
}

/// Whether processes may be moved from one group below `base` to another.
fn may_move_within(base: &Path) -> Result<(), String> {
    let path = base.join("cgroup.procs");
    rustix::fs::access(&path, Access::WRITE_OK)
        .map_err(|error| format!("{}: {}", path.display(), io::Error::from(error)))
}

/// Has `base` hand its controllers down to us. Whether the scheduler had to leave its own group for that: a group hands
/// nothing down while a process is in it.
fn hand_down(base: &Path, own: &Path, top: &Path) -> bool {
    let control = base.join("cgroup.subtree_control");
    let mut moved = false;
    let handed = words(&control);
    for one in words(&base.join("cgroup.controllers")) {
        if handed.contains(&one) {
            continue;
        }
        let order = format!("+{}", one.name());
        let refused = fs::write(&control, &order).err();
        let busy = refused.and_then(|error| error.raw_os_error()) == Some(libc::EBUSY);
        if busy && base == own && !moved && is_alone(own) && enter_scheduler(top) {
            moved = true;
            let _ = fs::write(&control, &order);
        }
    }
    moved
}

/// Whether nobody but this process is in a group.
fn is_alone(group: &Path) -> bool {
    let own = std::process::id().to_string();
    fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|pids| pids.lines().all(|pid| pid == own))
}

fn enter_scheduler(top: &Path) -> bool {
    let group = top.join(SCHEDULER);
    ours(&group).is_ok() && super::make::enter(&group).is_ok()
}

/// The controllers that a file names.
fn words(path: &Path) -> Vec<Controller> {
    let text = fs::read_to_string(path).unwrap_or_default();
    Controller::ALL
        .into_iter()
        .filter(|one| text.split_ascii_whitespace().any(|word| word == one.name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_has_one_name_and_another_one_has_another() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        std::os::unix::fs::symlink(&a, &b).unwrap();
        assert_eq!(name(&a), name(&b), "the same directory by another way");
        assert_ne!(name(&a), name(dir.path()));
        assert!(name(&a).starts_with("overnight-"));
    }

    /// Directories stand for groups: what is not allowed, what is missing, and what is somebody else's.
    #[test]
    fn without_a_place_for_groups_there_are_none_and_the_reason_is_told() {
        let layout = Layout::below(&[], "overnight-0-x");
        assert!(!layout.has_groups());
        assert_eq!(layout.to_string(), "none; no cgroup for memory, pids, cpu: the kernel hands none down");
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let own = root.join("gone/service");
        let layout = Layout::below(&[Hierarchy { kind: Kind::Version2, root, own }], "overnight-0-x");
        let why = layout.why.unwrap();
        assert!(!layout.tops.iter().any(|top| top.exists()));
        assert!(why.contains("gone/overnight-0-x: No such file"), "{why}");
    }
}
