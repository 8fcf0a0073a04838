//! Code snapshots: a private copy of a directory, without what its ignore files leave out.

use super::copy::{Copier, finish_dir};
use super::error::{FilesError, SnapshotError};
use super::plan::{Limits, Node, Plan};
use super::remove::remove_tree;
use super::tree;
use crate::model::{Bytes, clean_line};
use std::path::{Path, PathBuf};

/// How large a snapshot may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Bytes in all.
    pub bytes: Bytes,
    /// Files and links in all.
    pub files: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { bytes: Bytes::mib(200), files: 20_000 }
    }
}

/// What to copy, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// The directory.
    pub dir: PathBuf,
    /// Patterns of `.gitignore` style that are also left out.
    pub skip: Vec<String>,
    /// Patterns that are taken although an ignore file leaves them out.
    pub keep: Vec<String>,
    /// How large it may be.
    pub limits: SnapshotLimits,
    /// The copy. Replaced if it is there.
    pub dest: PathBuf,
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotReport {
    /// Bytes in all.
    pub bytes: Bytes,
    /// Files and links in all.
    pub files: u64,
    /// FIFOs, sockets, devices and hard links to strangers' files that were left out, relative to the directory; the
    /// first few.
    pub skipped_special: Vec<String>,
}

/// Copies a directory. Measures first: over the limit nothing is copied. The copy appears whole or not at all.
pub fn snapshot(request: &SnapshotRequest) -> Result<SnapshotReport, SnapshotError> {
    let root = tree::open_root(&request.dir).map_err(|errno| match errno {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::NOENT => {
            SnapshotError::NotADirectory { dir: request.dir.clone() }
        }
        errno => FilesError::errno("open", &request.dir)(errno).into(),
    })?;
    let limits = Limits { bytes: request.limits.bytes.0, files: request.limits.files };
    let plan = Plan::measure(&root, request, limits)?;
    let partial = partial_name(&request.dest);
    remove_tree(&partial)?;
    let dest = tree::make_root(&partial)?;
    let mut copier = Copier::new(limits.bytes);
    let result = copy_nodes(&mut copier, (&root, &request.dir), (&dest, &partial), &plan.nodes);
    result.map_err(|error| if copier.over() { plan.too_large(request, limits) } else { error.into() })?;
    // A crash of the machine must not leave the name with empty files under it.
    tree::sync(&dest, &partial)?;
    remove_tree(&request.dest)?;
    tree::rename_durably(&partial, &request.dest)?;
    Ok(SnapshotReport {
        bytes: Bytes(copier.bytes()),
        files: copier.files(),
        skipped_special: plan.special.iter().map(|path| clean_line(&path.to_string_lossy())).collect(),
    })
}

/// The name under which a tree is built: hidden, beside its place.
pub(super) fn partial_name(dest: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(dest.file_name().unwrap_or_default());
    name.push(".partial");
    dest.with_file_name(name)
}

fn copy_nodes(
    copier: &mut Copier<'_>,
    (from, from_path): (&tree::Dir, &Path),
    (to, to_path): (&tree::Dir, &Path),
    nodes: &[Node],
) -> Result<(), FilesError> {
    for node in nodes {
        let (from_path, to_path) = (from_path.join(node.name()), to_path.join(node.name()));
        match node {
            Node::Dir { name, children } => {
                let Some(source) = tree::optional(tree::open_dir(from, name), &from_path)? else { continue };
                let target = tree::make_dir(to, name, &to_path)?;
                copy_nodes(copier, (&source, &from_path), (&target, &to_path), children)?;
                finish_dir(&source, &target, &to_path)?;
            }
            Node::File { name } | Node::Link { name } => {
                copier.entry((from, name, &from_path), (to, name, &to_path))?;
            }
        }
    }
    Ok(())
}
