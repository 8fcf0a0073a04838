//! Looks for job files. Bounded in depth, number and time: a home directory may be large, and slow.

use crate::clock;
use crate::tui::errand::{Brought, Browsed};
use crate::tui::shell::feed::FeedEvent;
use rustix::fs::{Mode, OFlags};
use std::fs::{DirEntry, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// Folders below folders.
const DEPTH: usize = 5;
/// Entries that are looked at.
const ENTRIES: usize = 20_000;
/// Files that are listed.
const FILES: usize = 500;
/// All of it takes no longer.
const SPENT_MS: u64 = 1_500;
/// Folders without job files of anybody's own.
const SKIPPED: [&str; 5] = ["target", "node_modules", "__pycache__", "site-packages", "venv"];
/// A larger file is no job file; one byte more is read, so that the scheduler says so in its own words.
pub(in crate::tui) const LARGEST: u64 = 4 << 20;

/// Does something on a thread of its own, so that a slow disk holds up no frame.
pub(super) fn on_a_thread(
    events: &Sender<FeedEvent>,
    errand: impl FnOnce() -> Brought + Send + 'static,
) -> std::io::Result<()> {
    let events = events.clone();
    std::thread::Builder::new().name("files".into()).spawn(move || {
        // The dashboard has ended meanwhile: then nobody waits for it.
        let _ended = events.send(FeedEvent::Brought(errand()));
    })?;
    Ok(())
}

/// Job files below a folder, the newest first, and the templates of a folder by name.
pub(super) fn browse(start: &Path, templates: Option<&Path>) -> Browsed {
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    let mut seen = 0;
    let mut cut = false;
    let begun = clock::monotonic().0;
    // In breadth: what is near is found before a large tree has used up the bounds.
    let mut folders = vec![(start.to_owned(), 0)];
    while !folders.is_empty() {
        let mut deeper = Vec::new();
        for (folder, depth) in folders {
            if is_schedulers(&folder) {
                continue;
            }
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                if seen > ENTRIES || found.len() >= FILES || clock::monotonic().0 - begun > SPENT_MS {
                    cut = true;
                    break;
                }
                look(&entry, depth, &mut found, &mut deeper);
            }
        }
        folders = if cut { Vec::new() } else { deeper };
    }
    found.sort_by(|one, other| other.cmp(one));
    let mut own: Vec<PathBuf> = templates
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_job_file(path))
        .take(FILES)
        .collect();
    own.sort();
    Browsed { files: found.into_iter().map(|(_, path)| path).collect(), cut, templates: own }
}

/// A folder in which a scheduler keeps the job files it has taken.
fn is_schedulers(folder: &Path) -> bool {
    let own = ["jobs", "run", "work", "snapshots"].iter().any(|name| folder.ends_with(name));
    own && folder.parent().is_some_and(|root| root.join(".state").is_dir())
}

fn look(
    entry: &DirEntry,
    depth: usize,
    found: &mut Vec<(std::time::SystemTime, PathBuf)>,
    deeper: &mut Vec<(PathBuf, usize)>,
) {
    // Links are not followed: a loop would not end.
    let Ok(kind) = entry.file_type() else { return };
    let name = entry.file_name();
    let hidden = name.as_encoded_bytes().starts_with(b".");
    if hidden {
        return;
    }
    if kind.is_dir() {
        if depth < DEPTH && !SKIPPED.iter().any(|skipped| name == *skipped) {
            deeper.push((entry.path(), depth + 1));
        }
    } else if kind.is_file() && is_job_file(&entry.path()) {
        let changed = entry.metadata().and_then(|meta| meta.modified());
        found.push((changed.unwrap_or(std::time::UNIX_EPOCH), entry.path()));
    }
}

fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml")
}

/// The text of a file that is one: a pipe or a device would never end.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let said = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| said(error.into()))?;
    let file = File::from(file);
    if !file.metadata().map_err(said)?.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text).map_err(said)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_files_are_found_the_newest_first_and_links_and_hidden_folders_are_left() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, age: u64| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, name).unwrap();
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000 - age);
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        };
        for (name, age) in [("a/b/old.yaml", 90), ("new.yml", 1), ("x.txt", 1), (".git/c.yaml", 1)] {
            put(name, age);
        }
        put("node_modules/d.yaml", 1);
        put("1/2/3/4/5/6/deep.yaml", 1);
        std::os::unix::fs::symlink(dir.path(), dir.path().join("loop")).unwrap();
        let found = browse(dir.path(), Some(&dir.path().join("a/b")));
        let names: Vec<_> = found.files.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("new.yml"), Path::new("a/b/old.yaml")]);
        assert!(!found.cut);
        assert_eq!(found.templates, [dir.path().join("a/b/old.yaml")]);
    }

    #[test]
    fn a_tree_that_is_too_large_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..FILES + 5 {
            std::fs::write(dir.path().join(format!("{n}.yaml")), "").unwrap();
        }
        let found = browse(dir.path(), None);
        assert!(found.cut && found.files.len() == FILES);
    }

    #[test]
    fn only_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().ends_with("is no file"));
        assert!(read(&dir.path().join("none.yaml")).unwrap_err().contains("cannot be read"));
    }
}
