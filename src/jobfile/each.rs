//! `for_each`: one task for each combination of values. Expanded and checked; more than one task is refused for now.

use super::findings::error;
use super::paths::Place;
use super::reader::{Field, Reader, alias, visible};
use super::tree::{Kind, Node};
use super::unknown;
use crate::beneath;
use crate::model::ForEach;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Lines of a file that are read at most, bytes.
const FILE_BYTES: u64 = 16 << 20;
/// Keys of one job.
const KEYS: usize = 64;

/// The declared keys and, if it could be expanded and is one, the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    names: Vec<String>,
    /// Could not be read: nothing is said about its keys.
    lost: bool,
    task: Option<BTreeMap<String, String>>,
}

impl Keys {
    /// The values, if there is exactly one task.
    pub(super) const fn only_task(&self) -> Option<&BTreeMap<String, String>> {
        self.task.as_ref()
    }

    pub(super) fn for_each(&self) -> Option<ForEach> {
        self.task.clone().map(|task| ForEach { tasks: vec![task] })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.lost || self.names.iter().any(|known| known == name)
    }

    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        unknown::nearest(name, self.names.iter().map(String::as_str))
            .or_else(|| self.names.first().map(String::as_str))
    }

    /// The text with `{key}` replaced for declared keys; other braces stay.
    pub(super) fn replace(&self, text: &str) -> String {
        let Some(task) = &self.task else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            let inner = &rest[at + 1..];
            let value = inner.find('}').and_then(|end| Some((task.get(&inner[..end])?, end)));
            if let Some((value, end)) = value {
                out.push_str(value);
                rest = &inner[end + 1..];
            } else {
                out.push('{');
                rest = inner;
            }
        }
        out + rest
    }
}

/// A `for_each` that has its error.
const LOST: Keys = Keys { names: Vec::new(), lost: true, task: None };

/// The values of one key, as far as they are known.
enum Values {
    Some(Vec<String>),
    /// So many, not spelt out.
    Many(u64),
}

impl Values {
    fn count(&self) -> u64 {
        match self {
            Self::Some(list) => list.len() as u64,
            Self::Many(n) => *n,
        }
    }
}

/// Reads the field.
pub(super) fn read(r: &mut Reader<'_, '_>, field: Field<'_>, dir: Option<&Place>) -> Keys {
    let Kind::Map { entries, .. } = &field.value.kind else {
        if matches!(field.value.kind, Kind::Nothing) {
            r.nothing(field);
        } else {
            r.shape(field.value, "for_each", "a mapping of key to values");
        }
        return LOST;
    };
    if let [(key, value)] = entries.as_slice()
        && key.text() == Some("rows")
    {
        return rows(r, field, value, dir).unwrap_or(LOST);
    }
    let mut keys: Vec<(String, Values)> = Vec::new();
    let mut whole = !entries.is_empty();
    if entries.len() > KEYS {
        r.add(
            error(99, visible(field.value.mark), format!("for_each: at most {KEYS} keys"))
                .hint("`rows:` with the ones you want"),
        );
        return LOST;
    }
    for (key, value) in entries {
        let Some(name) = r.key(key) else {
            whole = false;
            continue;
        };
        if keys.iter().any(|(other, _)| other == name) {
            r.add(error(48, key.mark, format!("`{name}` twice")).hint("keep one of them"));
            continue;
        }
        whole &= key_name(r, name, key);
        let values = values(r, name, value, dir);
        whole &= values.is_some();
        keys.push((name.to_owned(), values.unwrap_or(Values::Many(1))));
    }
    if entries.is_empty() {
        r.add(error(36, visible(field.value.mark), "for_each has no keys").hint("`for_each: {seed: 1..5}`"));
    }
    let total = keys.iter().try_fold(1_u64, |product, (_, values)| product.checked_mul(values.count()));
    let counts: Vec<String> = keys.iter().map(|(_, values)| values.count().to_string()).collect();
    tasks(r, field, total, &counts.join(" x "), whole);
    let names = keys.iter().map(|(name, _)| name.clone()).collect();
    let task = (whole && total == Some(1)).then(|| {
        keys.into_iter()
            .filter_map(|(name, values)| match values {
                Values::Some(list) => Some((name, list.into_iter().next()?)),
                Values::Many(_) => None,
            })
            .collect()
    });
    Keys { names, lost: false, task }
}

/// Says how many tasks are too many.
fn tasks(r: &mut Reader<'_, '_>, field: Field<'_>, total: Option<u64>, product: &str, whole: bool) {
    let most = u64::from(r.cx.limits.tasks);
    let at = visible(field.value.mark);
    match total {
        Some(0) => r.add(error(99, at, "for_each has no task").hint("at least one value for each key")),
        Some(n) if n <= most => {
            if n > 1 && whole {
                let hint = "one value for each key works; or one file for each task";
                r.not_yet(field.value.mark, &format!("for_each with {n} tasks"), hint);
            }
        }
        Some(_) | None => {
            let total = total.map_or_else(|| "too many".to_owned(), thousands);
            let most = thousands(most);
            let sum = if product.contains('x') { format!("{product} = {total}") } else { total };
            r.add(
                error(51, at, format!("{sum} tasks; the limit is {most}"))
                    .hint("`rows:` with the ones you want"),
            );
        }
    }
}

/// `150000` as `150,000`.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Whether a key may become a variable.
fn key_name(r: &mut Reader<'_, '_>, name: &str, key: &Node) -> bool {
    let upper = name.to_uppercase();
    let taken = matches!(
        upper.as_str(),
        "PATH" | "HOME" | "USER" | "SHELL" | "LOGNAME" | "LANG" | "PWD" | "TERM" | "IFS" | "TMPDIR" | "UID"
    ) || upper.starts_with("LD_")
        || upper.starts_with("OVERNIGHT_")
        || upper.starts_with("CUDA_");
    let form = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if taken {
        r.add(
            error(52, key.mark, format!("for_each: `{name}` is the shell's own"))
                .hint("another name: lower-case letters, digits, `_`"),
        );
    } else if !form {
        r.add(
            error(52, key.mark, format!("for_each: `{name}` is not a variable name"))
                .hint("lower-case letters, digits, `_`"),
        );
    }
    !taken && form
}

fn values(r: &mut Reader<'_, '_>, name: &str, value: &Node, dir: Option<&Place>) -> Option<Values> {
    match &value.kind {
        Kind::List { items, .. } => {
            let list: Vec<String> = items.iter().filter_map(|item| one(r, name, item)).collect();
            (list.len() == items.len()).then_some(Values::Some(list))
        }
        Kind::Text { value: text, .. } => range_or_value(r, name, text, value),
        Kind::Map { entries, .. } => from_file(r, name, value, entries, dir),
        Kind::Nothing => {
            r.add(
                error(36, visible(value.mark), format!("for_each: {name} has no values"))
                    .hint(format!("`{name}: [1, 2]` or `{name}: 1..5`")),
            );
            None
        }
        Kind::Alias(_) => {
            r.add(alias(value.mark));
            None
        }
    }
}

fn one(r: &mut Reader<'_, '_>, name: &str, item: &Node) -> Option<String> {
    if let Some(text) = item.text() {
        return Some(text.to_owned());
    }
    match item.kind {
        Kind::Nothing => r.add(
            error(76, visible(item.mark), format!("{name} has an empty value")).hint("empty text: `\"\"`"),
        ),
        Kind::Text { .. } | Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => {
            r.shape(item, name, "a list of text");
        }
    }
    None
}

/// `1..10`, `0..240..10`, or one value.
fn range_or_value(r: &mut Reader<'_, '_>, name: &str, text: &str, node: &Node) -> Option<Values> {
    let number = |text: &str| -> Option<i64> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let not_a_range = |better: &str| {
        error(50, node.mark, format!("{name}: `{text}` is not a range"))
            .hint(format!("`{better}`, with a step `0..240..10`"))
            .fix(better)
    };
    if let Some((a, b)) = text.split_once("...").and_then(|(a, b)| Some((number(a)?, number(b)?))) {
        r.add(not_a_range(&format!("{}..{}", a.min(b), a.max(b))));
        return None;
    }
    let parts: Vec<&str> = text.split("..").collect();
    if let [a, b, rest @ ..] = parts.as_slice()
        && let (Some(a), Some(b)) = (number(a), number(b))
        && rest.len() <= 1
    {
        let step = match rest.first() {
            None => Some(1),
            Some(step) => number(step).filter(|step| *step > 0),
        };
        let Some(step) = step else {
            r.add(
                error(50, node.mark, format!("{name}: `{text}` has no step"))
                    .hint("a step is 1 or more: `0..240..10`"),
            );
            return None;
        };
        if a > b {
            r.add(not_a_range(&format!("{b}..{a}")));
            return None;
        }
        let count = (b.abs_diff(a)) / step.unsigned_abs() + 1;
        if count > u64::from(r.cx.limits.tasks) {
            return Some(Values::Many(count));
        }
        let list = (0..count).map(|n| (a + n as i64 * step).to_string()).collect();
        return Some(Values::Some(list));
    }
    let dashed = text.split_once('-').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    if let Some((a, b)) = dashed.filter(|_| !text.starts_with('-')) {
        r.add(not_a_range(&format!("{}..{}", a.min(b), a.max(b))));
        return None;
    }
    Some(Values::Some(vec![text.to_owned()]))
}

/// `{lines: FILE}` and `{files: GLOB}`; `{1..10}` is braces where none are wanted.
fn from_file(
    r: &mut Reader<'_, '_>,
    name: &str,
    node: &Node,
    entries: &[(Node, Node)],
    dir: Option<&Place>,
) -> Option<Values> {
    if let [(key, value)] = entries
        && let Some(text) = key.text()
    {
        if text.contains("..") && matches!(value.kind, Kind::Nothing) {
            let text = text.to_owned();
            r.add(error(49, node.mark, "braces are YAML here").hint(format!("`{name}: {text}`")).fix(text));
            return None;
        }
        if text == "lines" {
            let place = r.path("lines", value, dir)?;
            let lines = read_lines(r, value, &place)?;
            return Some(Values::Some(lines));
        }
        if text == "files" {
            let place = r.path("files", value, dir)?;
            if !r.cx.check_host {
                return Some(Values::Many(2));
            }
            return Some(Values::Some(super::host::glob(&place.at)));
        }
    }
    r.add(
        error(98, visible(node.mark), format!("for_each: {name} is a list, a range, or a file"))
            .hint("`[1, 2]`, `1..5`, `{lines: FILE}`, `{files: \"*.mp4\"}`"),
    );
    None
}

/// The lines of a file, without empty and `#` lines. Without a look at the host there are always several.
fn read_lines(r: &mut Reader<'_, '_>, node: &Node, place: &Place) -> Option<Vec<String>> {
    if !r.cx.check_host {
        return Some(vec![String::new(), String::new()]);
    }
    let Some(text) = read_text(&place.at) else {
        r.missing("for_each", node.mark, &place.at);
        return None;
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Some(lines.map(ToOwned::to_owned).collect())
}

/// A regular file of bounded length; what else has its name is not opened.
fn read_text(path: &Path) -> Option<String> {
    let (file, _) = beneath::named_file(path).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > FILE_BYTES { None } else { String::from_utf8(bytes).ok() }
}

/// `rows: FILE.csv` or `rows: [{…}, …]`.
fn rows(r: &mut Reader<'_, '_>, field: Field<'_>, node: &Node, dir: Option<&Place>) -> Option<Keys> {
    let tasks_of: Vec<BTreeMap<String, String>> = match &node.kind {
        Kind::Text { .. } => {
            let place = r.path("rows", node, dir)?;
            let lines = read_lines(r, node, &place)?;
            let mut lines = lines.iter().map(|line| line.split(',').map(str::trim));
            let names: Vec<&str> = lines.next().map(Iterator::collect).unwrap_or_default();
            lines
                .map(|row| names.iter().map(ToString::to_string).zip(row.map(ToOwned::to_owned)).collect())
                .collect()
        }
        Kind::List { items, .. } => {
            let mut list = Vec::new();
            for item in items {
                let Kind::Map { entries, .. } = &item.kind else {
                    r.shape(item, "a row", "a mapping of key to value");
                    return None;
                };
                let mut row = BTreeMap::new();
                for (key, value) in entries {
                    let name = r.key(key)?.to_owned();
                    if !key_name(r, &name, key) {
                        return None;
                    }
                    let value = one(r, &name, value)?;
                    row.insert(name, value);
                }
                list.push(row);
            }
            list
        }
        Kind::Nothing | Kind::Map { .. } | Kind::Alias(_) => {
            r.shape(node, "rows", "a list of mappings, or a file");
            return None;
        }
    };
    let names = tasks_of.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
    let total = tasks_of.len() as u64;
    tasks(r, field, Some(total), "", true);
    let task = (total == 1).then(|| tasks_of.into_iter().next()).flatten();
    Some(Keys { names, lost: false, task })
}
