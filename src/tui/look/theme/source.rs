//! Where themes are found: the user's directory first, then those that are part of the binary. The only file of the look
//! that reads the disk; the shell and the command line call it.

use super::place::{At, ThemeError, nearest};
use super::{Listed, file};
use crate::beneath;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The themes that are part of the binary, the default first.
pub const BUNDLED: [(&str, &str); 16] = [
    ("auto", include_str!("../../../../themes/auto.toml")),
    ("harbor-dark", include_str!("../../../../themes/harbor-dark.toml")),
    ("harbor-light", include_str!("../../../../themes/harbor-light.toml")),
    ("okabe-dark", include_str!("../../../../themes/okabe-dark.toml")),
    ("okabe-light", include_str!("../../../../themes/okabe-light.toml")),
    ("tritan-dark", include_str!("../../../../themes/tritan-dark.toml")),
    ("tritan-light", include_str!("../../../../themes/tritan-light.toml")),
    ("high-contrast", include_str!("../../../../themes/high-contrast.toml")),
    ("ansi16", include_str!("../../../../themes/ansi16.toml")),
    ("ansi16-light", include_str!("../../../../themes/ansi16-light.toml")),
    ("mono", include_str!("../../../../themes/mono.toml")),
    ("mono-ascii", include_str!("../../../../themes/mono-ascii.toml")),
    ("gruvbox-dark", include_str!("../../../../themes/gruvbox-dark.toml")),
    ("solarized-light", include_str!("../../../../themes/solarized-light.toml")),
    ("catppuccin-mocha", include_str!("../../../../themes/catppuccin-mocha.toml")),
    ("nord", include_str!("../../../../themes/nord.toml")),
];

/// A theme is a page of text; more is something else.
const LARGEST: u64 = 256 * 1024;

/// Where a theme comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Part of the binary.
    Bundled,
    /// A file.
    File(PathBuf),
}

/// A theme's text and where it is from.
pub(super) struct Text {
    /// For messages.
    pub(super) file: Arc<str>,
    pub(super) body: String,
    pub(super) origin: Origin,
}

/// Whether a theme is named by its path and not by its name.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|ext| ext == "toml")
}

/// The name that a theme goes by.
pub(super) fn stem(name: &str) -> &str {
    let stem = is_path(name).then(|| Path::new(name).file_stem()?.to_str()).flatten();
    stem.unwrap_or(name)
}

/// The text of a theme; `bundled_only` skips the user's directory.
pub(super) fn find(
    name: &str,
    user_dir: Option<&Path>,
    bundled_only: bool,
    at: Option<&At>,
) -> Result<Text, ThemeError> {
    if at.is_none() && is_path(name) {
        return read(Path::new(name));
    }
    // A name is a file's stem, never a path out of the directory.
    let plain = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
    if let Some(path) =
        user_dir.filter(|_| plain && !bundled_only).map(|dir| dir.join(format!("{name}.toml")))
    {
        match read(&path) {
            Err(ThemeError::Read { why, .. }) if why == MISSING => {}
            result => return result,
        }
    }
    if let Some(text) = bundled(name) {
        return Ok(text);
    }
    let own = user_dir.map(own_names).unwrap_or_default();
    let known = BUNDLED.iter().map(|(name, _)| *name).chain(own.iter().map(String::as_str));
    // A theme that inherits its own name means the one below it, and there is none.
    let near = nearest(name, known.filter(|known| *known != name)).map(str::to_owned);
    Err(ThemeError::Unknown { name: crate::model::clean_line(name), near, at: at.cloned() })
}

/// A theme that is part of the binary.
pub(super) fn bundled(name: &str) -> Option<Text> {
    let (name, text) = BUNDLED.iter().find(|(bundled, _)| *bundled == name)?;
    let file = format!("themes/{name}.toml").into();
    Some(Text { file, body: (*text).to_owned(), origin: Origin::Bundled })
}

const MISSING: &str = "there is no such file";

fn read(path: &Path) -> Result<Text, ThemeError> {
    let fault = |why: String| ThemeError::Read { path: path.to_owned(), why };
    let (file, stat) = beneath::named_file(path).map_err(|errno| {
        fault(match errno {
            rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => MISSING.to_owned(),
            beneath::NOT_A_FILE => "this is not a file".to_owned(),
            errno => std::io::Error::from(errno).to_string(),
        })
    })?;
    if u64::try_from(stat.st_size).is_ok_and(|size| size > LARGEST) {
        return Err(fault("too large for a theme: more than 256 KiB".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|error| fault(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| fault("this is not UTF-8 text".to_owned()))?;
    let file = crate::model::clean_line(&path.display().to_string()).into();
    Ok(Text { file, body: text, origin: Origin::File(path.to_owned()) })
}

/// The names of the user's own themes, sorted; none if there is no such directory.
fn own_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| !name.is_empty() && !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Every theme that can be chosen: the user's own, then the bundled ones that none of them replaces. A theme that cannot
/// be used is listed with what is wrong with it.
pub fn list(user_dir: Option<&Path>) -> Vec<Listed> {
    let own = user_dir.map(own_names).unwrap_or_default();
    let others = BUNDLED.iter().map(|(name, _)| (*name).to_owned()).filter(|name| !own.contains(name));
    let names: Vec<String> = own.iter().cloned().chain(others).collect();
    names.into_iter().map(|name| listed(name, user_dir)).collect()
}

fn listed(name: String, user_dir: Option<&Path>) -> Listed {
    let origin = match user_dir.map(|dir| dir.join(format!("{name}.toml"))) {
        Some(path) if path.exists() => Origin::File(path),
        Some(_) | None => Origin::Bundled,
    };
    match super::load(&name, user_dir, crate::tui::look::colour::Depth::True) {
        Ok(theme) => Listed {
            name,
            about: theme.about,
            variant: theme.variant,
            safe_for: theme.safe_for,
            origin: theme.origin,
            problem: None,
        },
        Err(error) => Listed {
            name,
            about: String::new(),
            variant: file::Variant::Any,
            safe_for: Vec::new(),
            origin,
            problem: Some(error.to_string()),
        },
    }
}
