//! Names in the inbox: which are drops, which are bookkeeping or an editor's, which say that somebody is editing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Where accepted drops go on their way out.
pub(super) const TAKEN: &str = ".taken";
/// Names the state directory that owns the folder.
pub(super) const OWNER: &str = ".overnight-owner";
/// The job file of a folder.
pub(super) const FOLDER_JOB: &str = "job.yaml";
/// What the scheduler writes beside a refused drop.
const WHY: &[u8] = b".why.txt";

/// What an editor leaves beside a file while it is open: before and after the file's name.
const EDITING: [(&[u8], &[u8]); 5] =
    [(b".", b".swp"), (b".", b".swo"), (b".", b".swx"), (b".#", b""), (b".~lock.", b"#")];

/// Endings of files that are still on their way or were put aside.
const PASSING: [&[u8]; 12] = [
    b"~",
    b".swp",
    b".swo",
    b".swx",
    b".tmp",
    b".temp",
    b".part",
    b".partial",
    b".filepart",
    b".crdownload",
    b".download",
    b"___jb_tmp___",
];

/// What a name in the inbox stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind<'a> {
    /// Not looked at.
    Ignored,
    /// A job file by its name; what it is called without the ending.
    Job(&'a str),
    /// Anything else: a folder, or a file that is none of ours.
    Other(&'a str),
    /// Not text.
    NotText,
}

/// Classifies a name.
pub(super) fn kind(name: &OsStr) -> NameKind<'_> {
    if is_ignored(name.as_bytes()) {
        return NameKind::Ignored;
    }
    let Some(text) = name.to_str() else { return NameKind::NotText };
    for ending in [".yaml", ".yml"] {
        if let Some(stem) = text.strip_suffix(ending) {
            return NameKind::Job(stem);
        }
    }
    NameKind::Other(text)
}

fn is_ignored(name: &[u8]) -> bool {
    name.starts_with(b".")
        || (name.starts_with(b"#") && name.ends_with(b"#"))
        || name.ends_with(WHY)
        || PASSING.iter().any(|ending| name.ends_with(ending))
        || is_write_probe(name)
        || is_sed_temporary(name)
}

/// vim tries whether it may write here with a file called 4913, then 5036 and so on.
fn is_write_probe(name: &[u8]) -> bool {
    let number = std::str::from_utf8(name).ok().and_then(|text| text.parse::<u32>().ok());
    number.is_some_and(|n| (4913..10_000).contains(&n) && (n - 4913).is_multiple_of(123))
}

/// `sed -i` writes `sed` and six random letters, then renames.
fn is_sed_temporary(name: &[u8]) -> bool {
    name.len() == 9 && name.starts_with(b"sed") && name.iter().all(u8::is_ascii_alphanumeric)
}

/// The names that say that `name` is being edited.
pub(super) fn editing(name: &OsStr) -> impl Iterator<Item = OsString> {
    let name = name.as_bytes();
    EDITING.iter().map(move |(before, after)| OsString::from_vec([before, name, after].concat()))
}

/// The file that this name says is being edited.
pub(super) fn edited(name: &OsStr) -> Option<&OsStr> {
    let bytes = name.as_bytes();
    EDITING
        .iter()
        .filter_map(|(before, after)| bytes.strip_prefix(*before)?.strip_suffix(*after))
        .find(|inner| !inner.is_empty() && !inner.starts_with(b"."))
        .map(OsStr::from_bytes)
}

/// A copying program's own temporary name inside a folder: what it writes is not there yet.
pub(super) fn is_in_transit(name: &OsStr) -> bool {
    let name = name.as_bytes();
    // rsync: a dot, the name, a dot and six letters.
    let rsync = name.len() > 8
        && name[0] == b'.'
        && name[name.len() - 7] == b'.'
        && name[name.len() - 6..].iter().all(u8::is_ascii_alphanumeric);
    rsync || [&b".part"[..], b".partial", b".filepart"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_and_our_own_names_are_ignored() {
        for name in [
            ".taken",
            ".j.yaml.swp",
            "j.yaml~",
            "#j.yaml#",
            "4913",
            "5036",
            "sedL6pgX3",
            ".j.yaml.KXSu3i",
            "j.yaml.why.txt",
            "j.yaml.part",
            ".overnight-owner",
            "j.yaml.tmp",
        ] {
            assert_eq!(kind(OsStr::new(name)), NameKind::Ignored, "{name}");
        }
    }

    #[test]
    fn job_files_and_other_names_are_told_apart() {
        assert_eq!(kind(OsStr::new("train.v2.yaml")), NameKind::Job("train.v2"));
        assert_eq!(kind(OsStr::new("a.yml")), NameKind::Job("a"));
        for name in ["train.sh", "2026", "sedan", "4914", "README.md"] {
            assert_eq!(kind(OsStr::new(name)), NameKind::Other(name), "{name}");
        }
        assert_eq!(kind(OsStr::from_bytes(b"\xff.yaml")), NameKind::NotText);
    }

    #[test]
    fn a_swap_or_lock_file_names_what_is_edited() {
        for name in [".j.yaml.swp", ".j.yaml.swx", ".#j.yaml", ".~lock.j.yaml#"] {
            assert_eq!(edited(OsStr::new(name)), Some(OsStr::new("j.yaml")), "{name}");
            assert!(editing(OsStr::new("j.yaml")).any(|other| other == name), "{name}");
        }
        assert_eq!(edited(OsStr::new("j.yaml")), None);
        assert_eq!(edited(OsStr::new(".taken")), None);
    }

    #[test]
    fn a_copying_programs_temporary_names_are_known() {
        assert!(is_in_transit(OsStr::new(".train.py.Ab12Cd")));
        assert!(!is_in_transit(OsStr::new(".gitignore")));
        assert!(!is_in_transit(OsStr::new("train.py")));
    }
}
