//! Declared output paths, and what they match in a directory.

use super::error::FilesError;
use super::tree::{self, Dir, Kind};
use crate::model::{OutputItem, OutputKind, clean_line};
use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::Stat;
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// A declared path, ready for matching: a file, a directory that is taken with all that is in it, or a glob of these.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    pub(super) item: &'a OutputItem,
    /// Without `./` and without a slash at its end.
    path: PathBuf,
    glob: Option<GlobMatcher>,
    /// The leading directories without a wildcard: nothing else is looked at.
    prefix: PathBuf,
    /// How deep a match can be; `None` with `**`.
    depth: Option<usize>,
}

impl<'a> Pattern<'a> {
    /// Or why it cannot match anything.
    pub(super) fn new(item: &'a OutputItem) -> Result<Self, &'static str> {
        let mut path = PathBuf::new();
        for component in Path::new(&item.path).components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err("leads out of the work directory"),
                Component::RootDir | Component::Prefix(_) => return Err("is absolute"),
            }
        }
        if path.as_os_str().is_empty() {
            return Err("names no file");
        }
        let wild = |name: &str| name.contains(['*', '?', '[']);
        let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
        let literal = names.iter().take_while(|name| !wild(name)).count();
        let is_glob = literal < names.len();
        // A path that only looks like a glob still matches the file of that very name.
        let glob = is_glob.then(|| compile(&names.join("/"))).flatten();
        let prefix = names.iter().take(if is_glob { literal } else { names.len() - 1 }).collect();
        let depth = (!names.contains(&"**")).then_some(names.len());
        Ok(Self { item, path, glob, prefix, depth })
    }

    /// It matches this path, or a directory on the way to it.
    pub(super) fn covers(&self, path: &Path) -> bool {
        path.ancestors().filter(|path| !path.as_os_str().is_empty()).any(|path| self.matches(path))
    }

    fn matches(&self, path: &Path) -> bool {
        path == self.path || self.glob.as_ref().is_some_and(|glob| glob.is_match(path))
    }
}

/// `None` for what is no glob.
fn compile(text: &str) -> Option<GlobMatcher> {
    // Braces are ordinary characters of a path.
    let text = text.replace('{', "[{]").replace('}', "[}]");
    let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// The kind that a file was declared with.
pub(super) fn kind_of(patterns: &[Pattern<'_>], path: &Path) -> OutputKind {
    patterns
        .iter()
        .find(|pattern| pattern.covers(path))
        .map_or(OutputKind::Files, |pattern| pattern.item.kind)
}

/// What was found, by path below the directory that was searched.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Regular files.
    pub(super) files: Vec<(PathBuf, Stat)>,
    /// Links that a pattern itself matches.
    pub(super) links: Vec<PathBuf>,
    /// For the receipt.
    pub(super) notes: Vec<String>,
}

/// A directory that is searched.
pub(super) struct Search<'a> {
    /// The directory.
    pub(super) root: &'a Dir,
    /// Its path, for messages.
    pub(super) path: &'a Path,
    /// Device and inode of a directory below it that is passed over: the output directory.
    pub(super) except: Option<(u64, u64)>,
    /// Whose it is, where others may be able to put names into it. The scheduler's own trees they cannot reach; what
    /// belongs to another account there is what the work has made, in a container for example.
    pub(super) owner: Option<u32>,
}

impl Search<'_> {
    /// Adds what a pattern matches. No link is followed on the way.
    pub(super) fn pattern(&self, pattern: &Pattern<'_>, found: &mut Found) -> Result<(), FilesError> {
        let Some(dir) = self.descend(&pattern.prefix, found)? else { return Ok(()) };
        if pattern.glob.is_some() {
            return self.below((&dir, &pattern.prefix), Some(pattern), found, tree::DEPTH);
        }
        let Some(name) = pattern.path.file_name() else { return Ok(()) };
        let Some(stat) = tree::optional(tree::stat(&dir, name), &self.path.join(&pattern.path))? else {
            return Ok(());
        };
        let entry = tree::Entry { name: name.to_owned(), kind: Kind::of_stat(&stat) };
        self.entry((&dir, &pattern.prefix), &entry, Some(pattern), (found, tree::DEPTH))
    }

    /// Adds everything.
    pub(super) fn all(&self, found: &mut Found) -> Result<(), FilesError> {
        self.below((self.root, Path::new("")), None, found, tree::DEPTH)
    }

    fn descend(&self, prefix: &Path, found: &mut Found) -> Result<Option<Dir>, FilesError> {
        let mut dir = self.root.try_clone().map_err(FilesError::new("open", self.path))?;
        let mut at = PathBuf::new();
        for name in prefix {
            at.push(name);
            dir = match tree::open_dir(&dir, name) {
                Ok(dir) => dir,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    found.notes.push(format!("{} is not a directory; links are not followed", shown(&at)));
                    return Ok(None);
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(FilesError::errno("open", self.path.join(&at))(errno)),
            };
        }
        Ok(Some(dir))
    }

    /// Looks at all that is in a directory: at what the pattern matches, or without one at everything.
    fn below(
        &self,
        (dir, at): (&Dir, &Path),
        pattern: Option<&Pattern<'_>>,
        found: &mut Found,
        depth: usize,
    ) -> Result<(), FilesError> {
        if depth == 0 {
            found.notes.push(format!("{} is deeper than 128 levels: not looked at", shown(at)));
            return Ok(());
        }
        for entry in tree::entries(dir, &self.path.join(at))? {
            self.entry((dir, at), &entry, pattern, (found, depth))?;
        }
        Ok(())
    }

    fn entry(
        &self,
        (dir, at): (&Dir, &Path),
        entry: &tree::Entry,
        pattern: Option<&Pattern<'_>>,
        (found, depth): (&mut Found, usize),
    ) -> Result<(), FilesError> {
        let below = at.join(&entry.name);
        let path = self.path.join(&below);
        let matched = pattern.is_none_or(|pattern| pattern.matches(&below));
        match entry.kind {
            Kind::Dir => {
                // All of a directory that matches; of another one only what can match deeper down.
                let pattern = pattern.filter(|_| !matched);
                let levels = below.components().count();
                if pattern.is_some_and(|pattern| pattern.depth.is_some_and(|depth| levels >= depth)) {
                    return Ok(());
                }
                let Some(child) = tree::optional(tree::open_dir(dir, &entry.name), &path)? else {
                    return Ok(());
                };
                let stat = rustix::fs::fstat(&child).map_err(FilesError::errno("look at", &path))?;
                if self.except == Some((stat.st_dev, stat.st_ino)) {
                    return Ok(());
                }
                self.below((&child, &below), pattern, found, depth - 1)
            }
            Kind::File if matched => {
                let Some(stat) = tree::optional(tree::stat(dir, &entry.name), &path)? else { return Ok(()) };
                if self.owner.is_some_and(|owner| tree::is_strangers_link(&stat, owner)) {
                    found.notes.push(format!(
                        "{} is a hard link to a file of another account (uid {}): left out",
                        shown(&below),
                        stat.st_uid
                    ));
                } else {
                    found.files.push((below, stat));
                }
                Ok(())
            }
            Kind::Link if matched && pattern.is_some() => {
                found.links.push(below);
                Ok(())
            }
            Kind::Link if matched => {
                found.notes.push(format!("{} is a link: not followed", shown(&below)));
                Ok(())
            }
            Kind::Special if matched => {
                found.notes.push(format!("{} is no regular file: left out", shown(&below)));
                Ok(())
            }
            Kind::File | Kind::Link | Kind::Special => Ok(()),
        }
    }
}

/// A path fit for a note.
pub(super) fn shown(path: &Path) -> String {
    clean_line(&path.to_string_lossy())
}
