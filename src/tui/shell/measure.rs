//! How much lies in a folder. Bounded in number and time, and links are not followed: what is not measured to its end is not told.

use crate::clock;
use crate::tui::errand::Measured;
use std::path::{Path, PathBuf};

/// Entries that are looked at.
const ENTRIES: usize = 50_000;
/// All of it takes no longer.
const SPENT_MS: u64 = 2_000;

/// All files below a folder, itself perhaps a link to it; `None`: there is none, or it is too large to say.
pub(super) fn measure(folder: &Path) -> Option<Measured> {
    let begun = clock::monotonic().0;
    let (mut all, mut seen) = (Measured::default(), 0);
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()? {
            let entry = entry.ok()?;
            seen += 1;
            if seen > ENTRIES || clock::monotonic().0 - begun > SPENT_MS {
                return None;
            }
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                // One that has just gone counts nothing.
                all.bytes += entry.metadata().map_or(0, |meta| meta.len());
                all.files += 1;
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_count_once_and_links_do_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/one"), [0; 700]).unwrap();
        std::fs::write(dir.path().join("two"), [0; 34]).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
        assert_eq!(measure(dir.path()), Some(Measured { bytes: 734, files: 2 }));
        std::os::unix::fs::symlink("a", dir.path().join("output")).unwrap();
        assert_eq!(
            measure(&dir.path().join("output")),
            Some(Measured { bytes: 700, files: 1 }),
            "the folder itself may be a link"
        );
        assert_eq!(measure(&dir.path().join("none")), None);
    }
}
