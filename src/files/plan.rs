//! What a snapshot will hold: the directory measured, with its ignore files applied, before anything is copied.

use super::error::{FilesError, SnapshotError};
use super::snapshot::SnapshotRequest;
use super::tree::{self, Dir, Kind};
use crate::model::{Bytes, clean_line};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Read in each directory, the later one wins.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".overnightignore"];
/// Bytes of an ignore file that are read.
const IGNORE_BYTES: u64 = 1 << 20;
/// Entries that are looked at to say how large a directory is that is too large anyway.
const LOOKED_AT: u64 = 1_000_000;
/// Directories below the top that sums are kept for.
const NAMED_DEPTH: usize = 4;
/// Special files that are named.
const SPECIAL: usize = 20;

/// [`SnapshotLimits`](super::SnapshotLimits) as plain numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// What is copied of a directory.
#[derive(Debug)]
pub(super) enum Node {
    Dir { name: OsString, children: Vec<Node> },
    File { name: OsString },
    Link { name: OsString },
}

impl Node {
    pub(super) fn name(&self) -> &OsStr {
        match self {
            Self::Dir { name, .. } | Self::File { name } | Self::Link { name } => name,
        }
    }
}

/// A measured directory.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) special: Vec<PathBuf>,
    total: Sum,
    by_dir: BTreeMap<PathBuf, Sum>,
    /// There is more than was looked at.
    more: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    files: u64,
}

impl Plan {
    /// Walks the directory. Over the limit is an error that says how large it is, and where.
    pub(super) fn measure(
        root: &Dir,
        request: &SnapshotRequest,
        limits: Limits,
    ) -> Result<Self, SnapshotError> {
        let plan = Self {
            nodes: Vec::new(),
            special: Vec::new(),
            total: Sum::default(),
            by_dir: BTreeMap::new(),
            more: false,
        };
        let mut walk = Walk {
            root: &request.dir,
            skip: patterns(&request.skip)?,
            keep: patterns(&request.keep)?,
            limits,
            looked_at: 0,
            ignores: above(&request.dir),
            owner: rustix::fs::fstat(root).map_err(FilesError::errno("look at", &request.dir))?.st_uid,
            plan,
        };
        let nodes = walk.dir(root, Path::new(""), State { ignored: false, kept: false }, tree::DEPTH)?;
        let mut plan = walk.plan;
        plan.nodes = nodes;
        if plan.over(limits) { Err(plan.too_large(request, limits)) } else { Ok(plan) }
    }

    const fn over(&self, limits: Limits) -> bool {
        self.total.bytes > limits.bytes || self.total.files > limits.files
    }

    /// The refusal, with the directories to leave out.
    pub(super) fn too_large(&self, request: &SnapshotRequest, limits: Limits) -> SnapshotError {
        let in_bytes = self.total.bytes > limits.bytes;
        let size = |sum: Sum| if in_bytes { sum.bytes } else { sum.files };
        let word = |n: u64| if in_bytes { Bytes(n).to_string() } else { format!("{n} files") };
        let limit = if in_bytes { Bytes(limits.bytes).to_string() } else { limits.files.to_string() };
        let largest = self.largest(size);
        let named = largest.iter().map(|(dir, sum)| format!("{} {}", shown(dir), word(*sum)));
        let mut named: Vec<String> = named.collect();
        if named.is_empty() {
            named.push("all of it in the directory itself".to_owned());
        }
        SnapshotError::TooLarge {
            dir: request.dir.clone(),
            what: format!(
                "{}{}, limit {limit}",
                if self.more { "more than " } else { "" },
                word(size(self.total))
            ),
            largest: named.join(", "),
            bytes: Bytes(self.total.bytes),
            files: self.total.files,
        }
    }

    /// The five largest directories at the top; where nearly all of one is in one below it, that one.
    fn largest(&self, size: impl Fn(Sum) -> u64) -> Vec<(&Path, u64)> {
        let children = |parent: &Path| {
            let parent = parent.to_owned();
            self.by_dir.iter().filter(move |(dir, _)| dir.parent() == Some(&parent))
        };
        let mut largest: Vec<(&Path, u64)> =
            children(Path::new("")).map(|(dir, sum)| (dir.as_path(), size(*sum))).collect();
        for place in &mut largest {
            while let Some((dir, sum)) = children(place.0)
                .map(|(dir, sum)| (dir.as_path(), size(*sum)))
                .max_by_key(|(_, sum)| *sum)
                .filter(|(_, sum)| *sum * 10 >= place.1 * 9)
            {
                *place = (dir, sum);
            }
        }
        largest.retain(|(_, sum)| *sum > 0);
        largest.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        largest.truncate(5);
        largest
    }
}

fn shown(dir: &Path) -> String {
    format!("{}/", clean_line(&dir.to_string_lossy()))
}

/// What a directory is, because of those above it.
#[derive(Debug, Clone, Copy)]
struct State {
    ignored: bool,
    kept: bool,
}

struct Walk<'a> {
    root: &'a Path,
    skip: Gitignore,
    keep: Gitignore,
    limits: Limits,
    looked_at: u64,
    /// Of this directory and those above it; the last one counts most.
    ignores: Vec<Gitignore>,
    /// Whose directory it is.
    owner: u32,
    plan: Plan,
}

impl Walk<'_> {
    fn dir(&mut self, dir: &Dir, below: &Path, state: State, depth: usize) -> Result<Vec<Node>, FilesError> {
        let path = self.root.join(below);
        if depth == 0 {
            let too_deep = rustix::io::Errno::NAMETOOLONG;
            return Err(FilesError::errno("go deeper than 128 levels into", path)(too_deep));
        }
        let above = self.ignores.len();
        for name in IGNORE_FILES {
            self.ignores.extend(ignore_file(dir, OsStr::new(name), &path));
        }
        let mut nodes = Vec::new();
        for entry in tree::entries(dir, &path)? {
            if self.looked_at >= LOOKED_AT {
                self.plan.more = true;
                break;
            }
            self.looked_at += 1;
            if entry.name != ".git" {
                nodes.extend(self.entry(dir, entry, below, (state, depth))?);
            }
        }
        self.ignores.truncate(above);
        if self.plan.over(self.limits) {
            // It will not be copied: only the sums are needed any more.
            nodes = Vec::new();
        }
        Ok(nodes)
    }

    fn entry(
        &mut self,
        parent: &Dir,
        entry: tree::Entry,
        below: &Path,
        (state, depth): (State, usize),
    ) -> Result<Option<Node>, FilesError> {
        let tree::Entry { name, kind } = entry;
        let below = below.join(&name);
        let is_dir = kind == Kind::Dir;
        if self.skip.matched(&below, is_dir).is_ignore() {
            return Ok(None);
        }
        let kept = state.kept || self.keep.matched(&below, is_dir).is_ignore();
        let ignored = state.ignored || self.is_ignored(&self.root.join(&below), is_dir);
        let out = ignored && !kept;
        match kind {
            Kind::Dir if out && self.keep.is_empty() => Ok(None),
            Kind::Dir => {
                let opened = tree::open_dir(parent, &name);
                let Some(dir) = tree::optional(opened, &self.root.join(&below))? else { return Ok(None) };
                let children = self.dir(&dir, &below, State { ignored, kept }, depth - 1)?;
                // Of an ignored directory only what leads to something kept.
                Ok((!out || !children.is_empty()).then_some(Node::Dir { name, children }))
            }
            Kind::File | Kind::Link | Kind::Special if out => Ok(None),
            Kind::File | Kind::Link => {
                let stat = tree::stat(parent, &name);
                let Some(stat) = tree::optional(stat, &self.root.join(&below))? else { return Ok(None) };
                if kind == Kind::File && tree::is_strangers_link(&stat, self.owner) {
                    self.leave_out(below);
                    return Ok(None);
                }
                let bytes = if kind == Kind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
                self.count(&below, bytes);
                Ok(Some(if kind == Kind::File { Node::File { name } } else { Node::Link { name } }))
            }
            Kind::Special => {
                self.leave_out(below);
                Ok(None)
            }
        }
    }

    fn leave_out(&mut self, below: PathBuf) {
        if self.plan.special.len() < SPECIAL {
            self.plan.special.push(below);
        }
    }

    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let matched = self.ignores.iter().rev().map(|ignore| ignore.matched(path, is_dir));
        matched.into_iter().find(|found| !found.is_none()).is_some_and(|found| found.is_ignore())
    }

    fn count(&mut self, below: &Path, bytes: u64) {
        let plan = &mut self.plan;
        let dirs = below.ancestors().skip(1).filter(|dir| {
            let depth = dir.components().count();
            (1..=NAMED_DEPTH).contains(&depth)
        });
        for dir in dirs {
            let sum = plan.by_dir.entry(dir.to_owned()).or_default();
            sum.bytes += bytes;
            sum.files += 1;
        }
        plan.total.bytes += bytes;
        plan.total.files += 1;
    }
}

/// The ignore files above a directory, as far up as its repository goes; none outside of one.
fn above(dir: &Path) -> Vec<Gitignore> {
    let Some(top) = dir.ancestors().position(|dir| dir.join(".git").symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    let mut ignores = Vec::new();
    let above: Vec<&Path> = dir.ancestors().skip(1).take(top).collect();
    for dir in above.into_iter().rev() {
        let Ok(opened) = tree::open_root(dir) else { continue };
        ignores.extend(IGNORE_FILES.iter().filter_map(|name| ignore_file(&opened, OsStr::new(name), dir)));
    }
    ignores
}

/// The rules of one ignore file. Lines that are no pattern are passed over, as git does.
fn ignore_file(dir: &Dir, name: &OsStr, path: &Path) -> Option<Gitignore> {
    let (file, _) = tree::open_file(dir, name).ok()?;
    let mut bytes = Vec::new();
    file.take(IGNORE_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&bytes).lines() {
        drop(builder.add_line(None, line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// `skip` and `keep`: patterns as in an ignore file at the top.
fn patterns(patterns: &[String]) -> Result<Gitignore, SnapshotError> {
    let refused = |pattern: &str, error: &ignore::Error| SnapshotError::Pattern {
        pattern: pattern.to_owned(),
        detail: error.to_string(),
    };
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(|error| refused(pattern, &error))?;
    }
    builder.build().map_err(|error| refused(&patterns.join(" "), &error))
}
