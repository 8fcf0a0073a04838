//! The environment of the work, put together at its start: nothing of the scheduler's is in it.

use super::spec::Environment;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const FILE_BOUND: u64 = 1 << 20;

/// All layers as one; in words why not.
pub(super) fn merge(layers: &Environment) -> Result<BTreeMap<String, String>, String> {
    let mut all = layers.base.clone();
    if let Some(path) = &layers.file {
        all.extend(read_file(path).map_err(|why| format!("env_file {}: {why}", path.display()))?);
    }
    all.extend(layers.job.clone());
    all.extend(layers.fixed.clone());
    Ok(all)
}

fn read_file(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|error| error.to_string())?;
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to somebody else".to_owned());
    }
    if meta.mode() & 0o077 != 0 {
        return Err(format!("mode {:04o} lets others read it: chmod 600", meta.mode() & 0o7777));
    }
    if meta.len() > FILE_BOUND {
        return Err("larger than 1 MiB".to_owned());
    }
    let mut text = String::new();
    file.take(FILE_BOUND).read_to_string(&mut text).map_err(|error| error.to_string())?;
    parse(&text)
}

/// `KEY=value` lines; `#` starts a comment line; `export` and one pair of quotes around a value are taken off.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        // The line itself is not shown: it may hold a secret.
        let (key, value) =
            line.split_once('=').ok_or_else(|| format!("line {} is not KEY=value", number + 1))?;
        let key = key.trim_end();
        let first = key.chars().next();
        if !first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            return Err(format!("line {} has no name before the `=`", number + 1));
        }
        if value.contains('\0') {
            return Err(format!("line {} has a NUL byte", number + 1));
        }
        all.insert(key.to_owned(), unquote(value.trim()).to_owned());
    }
    Ok(all)
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn later_layers_win_and_nothing_overrides_what_is_fixed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.env");
        std::fs::write(&path, "# a comment\nexport A=file\nB='file b'\nOVERNIGHT_JOB=99\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let layers = Environment {
            base: one("A", "base"),
            file: Some(path.clone()),
            job: one("B", "job"),
            fixed: one("OVERNIGHT_JOB", "7"),
        };
        let all = merge(&layers).unwrap();
        assert_eq!(all["A"], "file");
        assert_eq!(all["B"], "job");
        assert_eq!(all["OVERNIGHT_JOB"], "7");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(merge(&layers).unwrap_err().contains("chmod 600"));
    }

    #[test]
    fn a_line_without_a_value_is_named_by_its_number_and_not_shown() {
        let error = parse("A=1\nhunter2\n").unwrap_err();
        assert!(error.contains("line 2") && !error.contains("hunter2"));
    }
}
