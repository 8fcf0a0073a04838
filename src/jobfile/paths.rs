//! Paths of this host: absolute, below the home directory, or relative to a known place.

use super::findings::error;
use super::reader::Reader;
use super::tree::{Kind, Mark, Node, Style};
use super::unknown;
use std::path::{Component, Path, PathBuf};

/// Where a path leads: what is recorded, and where that is while the file is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) will_be: PathBuf,
    pub(super) at: PathBuf,
}

impl Reader<'_, '_> {
    /// Resolves a path. `dir` is where the job starts from, if it says so: relative paths start there.
    pub(super) fn path(&mut self, name: &str, node: &Node, dir: Option<&Place>) -> Option<Place> {
        let mark = node.mark;
        let (text, quoted) = match &node.kind {
            Kind::Text { value, style, .. } => (value.as_str(), *style == Style::Double),
            Kind::Nothing => {
                if self.written(mark).is_some_and(|text| text == "~") {
                    self.add(tilde(mark));
                } else {
                    self.add(error(36, super::reader::visible(mark), format!("{name} has an empty entry")));
                }
                return None;
            }
            Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => {
                self.shape(node, name, "a path");
                return None;
            }
        };
        if !self.plain_path(name, text, quoted, mark) {
            return None;
        }
        if text == "~" || text.starts_with("~/") {
            let rest = text.trim_start_matches('~').trim_start_matches('/');
            let path = tidy(&self.cx.home.join(rest));
            return Some(Place { will_be: path.clone(), at: path });
        }
        if text.starts_with('~') {
            self.add(
                error(77, mark, format!("{name}: `{text}`: only `~/` is replaced here"))
                    .hint("write the path out"),
            );
            return None;
        }
        if text.starts_with('/') {
            let path = tidy(Path::new(text));
            return Some(Place { will_be: path.clone(), at: path });
        }
        if let Some(dir) = dir {
            return Some(Place { will_be: tidy(&dir.will_be.join(text)), at: tidy(&dir.at.join(text)) });
        }
        if let Some(base) = self.cx.base.as_ref().filter(|_| !self.lost_dir) {
            return Some(Place { will_be: tidy(&base.will_be.join(text)), at: tidy(&base.at.join(text)) });
        }
        if self.lost_dir {
            return None;
        }
        self.add(
            error(79, mark, format!("{name}: relative to what?"))
                .hint("an absolute path, or one from `~/`, or relative to `in`"),
        );
        None
    }

    /// Variables, Windows paths and addresses are no paths here.
    fn plain_path(&mut self, name: &str, text: &str, quoted: bool, mark: Mark) -> bool {
        let raw = if quoted { self.written(mark).unwrap_or_default() } else { String::new() };
        let finding = if windows(text) || windows(raw.trim_start_matches('"')) {
            let written = if quoted { raw.trim_matches('"') } else { text };
            let last = written.rsplit(['\\', '/']).find(|part| !part.is_empty()).unwrap_or("x");
            let code = if quoted { 33 } else { 34 };
            error(code, mark, "Windows path").hint(format!("paths of this host: `/datasets/{last}`"))
        } else if variable(text) {
            error(77, mark, format!("{name}: variables are not replaced here"))
                .hint("write the path; `~` works")
        } else if address(text) {
            error(94, mark, format!("{name}: `{text}` is not on this host"))
                .hint("fetch it in a job with `gpus: 0`, then `from: job:fetch/…`")
        } else if text.trim().is_empty() {
            error(36, super::reader::visible(mark), format!("{name} is empty"))
        } else if text.contains('\0') {
            error(94, mark, format!("{name}: a path has no NUL"))
        } else {
            return true;
        };
        self.add(finding);
        false
    }

    /// Says that something is not there, naming what is.
    pub(super) fn missing(&mut self, name: &str, mark: Mark, path: &Path) {
        let finding = error(78, mark, format!("{name}: `{}` does not exist", self.homely(path)));
        self.add(match beside(path) {
            Some(there) => finding.hint(format!("there are: {there}")),
            None => finding,
        });
    }

    /// A path with the home directory as `~`.
    pub(super) fn homely(&self, path: &Path) -> String {
        match path.strip_prefix(self.cx.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

/// `~` alone.
pub(super) fn tilde(mark: Mark) -> super::findings::Finding {
    error(35, mark, "`~` alone is YAML's \"nothing\"").hint("your home: `- ~/` or `\"~\"`").fix("~/")
}

/// Whether text holds `$NAME` or `${NAME}`.
pub(super) fn variable(text: &str) -> bool {
    text.match_indices('$')
        .any(|(at, _)| text[at + 1..].starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic()))
}

/// Whether text is `C:\…` or `\\host\…`.
pub(super) fn windows(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = bytes.len() >= 3
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && (bytes[2] == b'\\' || bytes[2] == b'/');
    drive || text.starts_with("\\\\")
}

fn address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
        || text.starts_with("scp:")
}

/// Without `.` components and doubled slashes; `..` stays, since a link may stand before it.
pub(super) fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// What is in the nearest directory that exists: near names first.
fn beside(path: &Path) -> Option<String> {
    let parent = path.ancestors().skip(1).find(|dir| dir.is_dir())?;
    let wanted = path.strip_prefix(parent).ok()?.components().next()?;
    let wanted = wanted.as_os_str().to_string_lossy().to_lowercase();
    let mut names: Vec<String> = std::fs::read_dir(parent)
        .ok()?
        .take(2000)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_by_key(|name| {
        (unknown::nearest(&wanted, std::iter::once(name.as_str())).is_none(), name.clone())
    });
    let more = if names.len() > 5 { " …" } else { "" };
    let named: Vec<String> =
        names.iter().take(5).map(|name| parent.join(name).display().to_string()).collect();
    (!named.is_empty()).then(|| format!("{}{more}", named.join(" ")))
}
