//! The making of an attempt's groups.

use super::{Controller, Groups, Layout, Limits};
use crate::model::{EnforcedBy, Enforcement};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Groups that were made, as far as they could be.
#[derive(Debug)]
pub struct Made {
    /// Those that are there.
    pub groups: Groups,
    /// That of version 2, open: a process can be started in it.
    pub dir: Option<OwnedFd>,
    /// What they enforce.
    pub enforcement: Enforcement,
}

impl Layout {
    /// The groups of an attempt, by name. None for a token that is not plain letters and digits.
    pub fn groups(&self, token: &str, task: u32, attempt: u32) -> Groups {
        if token.is_empty() || token.len() > 64 || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Groups::default();
        }
        self.named(&format!("{token}-{task}-{attempt}"))
    }

    /// The groups that bear a token, whatever else is known of it.
    pub fn groups_of(&self, token: &str) -> Groups {
        let mut found = Groups::default();
        let with_token = |top: &Path| -> Vec<PathBuf> {
            fs::read_dir(top).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        found.version1 = self.tops.iter().flat_map(|top| with_token(top)).collect();
        found.of_token(token)
    }

    /// The groups of version 1 in which a process of this process waits for an attempt; made.
    pub fn waiting(&self) -> Groups {
        let mut groups = self.named(&format!("waiting-{}", std::process::id()));
        groups.version2 = None;
        groups.version1.retain(|path| directory(path).is_ok());
        groups
    }

    /// Makes an attempt's groups, or renames those in which its process waits, and sets their limits.
    pub fn make(&self, groups: &Groups, waiting: Option<&Groups>, limits: &Limits) -> Made {
        let mut made = Made { groups: Groups::default(), dir: None, enforcement: Enforcement::default() };
        let mut whys: Vec<String> = self.why.iter().cloned().collect();
        let mut told = |path: &Path, error: &io::Error| whys.push(format!("{}: {error}", path.display()));
        if let Some(path) = &groups.version2 {
            match directory(path).and_then(|()| File::open(path)) {
                Ok(dir) => {
                    made.dir = Some(dir.into());
                    made.groups.version2 = Some(path.clone());
                }
                Err(error) => told(path, &error),
            }
        }
        for path in &groups.version1 {
            let before = waiting
                .iter()
                .flat_map(|groups| &groups.version1)
                .find(|waits| waits.parent() == path.parent());
            match before.map_or_else(|| directory(path), |before| fs::rename(before, path)) {
                Ok(()) => made.groups.version1.push(path.clone()),
                Err(error) => told(path, &error),
            }
        }
        self.set(limits, &mut made, &mut whys);
        made.enforcement.why = (!whys.is_empty()).then(|| whys.join("; "));
        made
    }

    /// Sets the limits of what was made.
    fn set(&self, limits: &Limits, made: &mut Made, whys: &mut Vec<String>) {
        let enforcement = &mut made.enforcement;
        let mut note = |by, controller, set: Result<bool, String>| match set {
            Ok(set) => {
                let one = match controller {
                    Controller::Memory => &mut enforcement.memory,
                    Controller::Pids => &mut enforcement.processes,
                    Controller::Cpu => &mut enforcement.cpus,
                };
                *one = set;
                if set {
                    enforcement.by = by;
                }
            }
            Err(why) => whys.push(why),
        };
        if let Some(group) = &made.groups.version2 {
            for one in &self.controllers {
                note(EnforcedBy::CgroupV2, *one, limits.set_version2(*one, group));
            }
        }
        for tree in &self.version1 {
            let Some(group) = made.groups.version1.iter().find(|path| path.parent() == Some(&tree.top))
            else {
                continue;
            };
            for one in &tree.controllers {
                note(EnforcedBy::CgroupV1, *one, limits.set_version1(*one, group));
            }
        }
    }

    fn named(&self, name: &str) -> Groups {
        Groups {
            version2: self.version2.as_ref().map(|top| top.join(name)),
            version1: self.version1.iter().map(|tree| tree.top.join(name)).collect(),
        }
    }
}

/// Moves this process into a group.
pub fn enter(group: &Path) -> io::Result<()> {
    Door::open(group)?.enter()
}

/// The way into a group. It stays the way into that group when the group is renamed.
#[derive(Debug)]
pub struct Door(File);

impl Door {
    /// Opens it.
    pub fn open(group: &Path) -> io::Result<Self> {
        fs::OpenOptions::new().write(true).open(group.join("cgroup.procs")).map(Self)
    }

    /// Moves this process through it.
    pub fn enter(&self) -> io::Result<()> {
        io::Write::write_all(&mut &self.0, b"0")
    }
}

/// Makes a group, with the directory above it if somebody took that away.
fn directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(0o755).recursive(true).create(path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
