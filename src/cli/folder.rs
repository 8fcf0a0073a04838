//! A job's folder below the root, for the verbs that can do without a scheduler.

use crate::config::Paths;
use std::path::PathBuf;

/// The folder of the job that a person means by a number or a name; of several of one name the newest.
pub(super) fn of(typed: &str, paths: &Paths) -> Option<PathBuf> {
    let typed = typed.strip_prefix('#').unwrap_or(typed);
    std::fs::read_dir(paths.jobs())
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let (id, name) = name.split_once('-')?;
            let number: u64 = id.parse().ok()?;
            (id == typed || name == typed).then(|| (number, entry.path()))
        })
        .max()
        .map(|(_, path)| path)
}
