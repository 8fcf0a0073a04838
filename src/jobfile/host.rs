//! Looks at the host: environments, secret files, scripts. Reads only.

use super::findings::error;
use super::paths::Place;
use super::reader::Reader;
use super::tree::Mark;
use crate::beneath::{self, Links};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that a glob may look at.
const ENTRIES: usize = 200_000;
/// What is read of a script.
const SCRIPT_BYTES: u64 = 1 << 20;
/// Where conda keeps environments below the home directory.
const CONDA: &[&str] = &["miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"];

/// The file must be there, the owner's and readable by nobody else.
pub(super) fn env_file(r: &mut Reader<'_, '_>, mark: Mark, place: &Place) {
    let shown = r.homely(&place.at);
    let finding = match std::fs::metadata(&place.at) {
        Err(_) => return r.missing("env_file", mark, &place.at),
        Ok(meta) if !meta.is_file() => error(100, mark, format!("env_file: `{shown}` is not a file")),
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
            error(100, mark, format!("env_file: `{shown}` is somebody else's"))
                .hint("copy it; it must be your own")
        }
        Ok(meta) if meta.mode() & 0o077 != 0 => error(
            100,
            mark,
            format!("env_file: others may read `{shown}` (mode {:04o})", meta.mode() & 0o7777),
        )
        .hint(format!("chmod 600 {shown}")),
        Ok(_) => return,
    };
    r.add(finding);
}

/// Looks a conda environment up by name.
pub(super) fn conda(r: &mut Reader<'_, '_>, mark: Mark, name: &str) {
    let home = r.cx.home;
    let mut roots: Vec<PathBuf> = CONDA.iter().map(|dir| home.join(dir)).collect();
    roots.push(PathBuf::from("/opt/conda"));
    let mut folders: Vec<PathBuf> = roots.iter().map(|root| root.join("envs")).collect();
    folders.push(home.join(".conda/envs"));
    let listed = std::fs::read_to_string(home.join(".conda/environments.txt")).unwrap_or_default();
    let listed: Vec<PathBuf> = listed.lines().map(|line| PathBuf::from(line.trim())).collect();
    let found = folders.iter().any(|folder| folder.join(name).is_dir())
        || listed.iter().any(|path| path.file_name().is_some_and(|file| file == name) && path.is_dir())
        || (name == "base" && roots.iter().chain(&listed).any(|root| root.join("conda-meta").is_dir()));
    if found {
        return;
    }
    let there: BTreeSet<String> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().take(200))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .chain(listed.iter().filter(|path| path.is_dir()).filter_map(|path| {
            let parent = path.parent()?.file_name()?;
            (parent == "envs").then(|| path.file_name().map(|name| name.to_string_lossy().into_owned()))?
        }))
        .collect();
    let finding = error(78, mark, format!("no conda environment `{name}`"));
    r.add(if there.is_empty() {
        finding.hint("no conda found below your home; a prefix works too: `conda: /path/to/env`")
    } else {
        let list: Vec<String> = there.into_iter().take(12).collect();
        finding.hint(format!("there are: {}", list.join(", ")))
    });
}

/// The files that a pattern matches, sorted.
pub(super) fn glob(pattern: &Path) -> Vec<String> {
    let text = pattern.to_string_lossy();
    let wild = |part: &std::path::Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let base: PathBuf = pattern.components().take_while(|part| !wild(part)).collect();
    let Ok(glob) = globset::GlobBuilder::new(&text).literal_separator(true).build() else {
        return Vec::new();
    };
    let matcher = glob.compile_matcher();
    let mut left = ENTRIES;
    let mut stack = vec![base];
    let mut out = Vec::new();
    while let Some(dir) = stack.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            if left == 0 {
                return out;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => stack.push(path),
                Ok(_) if matcher.is_match(&path) => out.push(path.to_string_lossy().into_owned()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    out.sort();
    out
}

/// The beginning of a script below a directory, if it is a file there.
pub(super) fn script(dir: &Path, name: &str) -> Option<String> {
    let (file, _) = beneath::file(beneath::named(dir).ok()?, Path::new(name), Links::Inside).ok()?;
    let mut bytes = Vec::new();
    file.take(SCRIPT_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.contains('\0')).then_some(text)
}
