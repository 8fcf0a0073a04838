//! The sections `data` and `output`: what the work reads and what comes back.

use super::each::Keys;
use super::fields::{DataEntry, OutputEntry};
use super::findings::error;
use super::paths::{Place, tilde, variable, windows};
use super::reader::{Field, Reader, alias, visible};
use super::tree::{Kind, Mark, Node};
use crate::model::{DataFrom, DataItem, OutputItem, OutputKind, Stage};
use std::collections::BTreeSet;
use std::path::Path;

/// Entries of `data` and of `output`.
const ENTRIES: usize = 1000;

/// Reads `data`.
pub(super) fn read_data(
    r: &mut Reader<'_, '_>,
    field: Field<'_>,
    dir: Option<&Place>,
) -> Option<Vec<DataItem>> {
    if let Kind::Map { entries, .. } = &field.value.kind {
        mapping(r, field, entries);
        return None;
    }
    let items = few(r, field)?;
    let mut list: Vec<DataItem> = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut whole = true;
    for node in items {
        let Some((item, mark)) = data_item(r, node, dir) else {
            whole = false;
            continue;
        };
        if !names.insert(item.name.clone()) {
            r.add(
                error(97, mark, format!("two data items are called `{}`", item.name))
                    .hint("name one of them: `{from: /d, as: other}`"),
            );
        }
        list.push(item);
    }
    whole.then_some(list)
}

/// The entries of a list that is no longer than anybody writes.
fn few<'t>(r: &mut Reader<'_, '_>, field: Field<'t>) -> Option<&'t [Node]> {
    let items = r.list(field, 38)?;
    if items.len() > ENTRIES {
        r.add(
            error(99, visible(field.value.mark), format!("{}: at most {ENTRIES} entries", field.name))
                .hint("name the directory they are in, or a pattern"),
        );
        return None;
    }
    Some(items)
}

/// `data: {coco: /d}` as a list.
fn mapping(r: &mut Reader<'_, '_>, field: Field<'_>, entries: &[(Node, Node)]) {
    let pairs: Option<Vec<String>> = entries
        .iter()
        .map(|(key, value)| {
            let (key, value) = (key.text()?, value.text()?);
            Some(match key {
                "from" => format!("{{from: {value}}}"),
                _ => format!("{{from: {value}, as: {key}}}"),
            })
        })
        .collect();
    let finding = error(39, visible(field.value.mark), "data is a list");
    let one_line = matches!(field.value.kind, Kind::Map { flow: true, .. }) && field.value.mark.width > 1;
    r.add(match pairs {
        Some(pairs) if !pairs.is_empty() => {
            let is_entry = entries.iter().any(|(key, _)| key.text() == Some("from"));
            let finding = finding.hint(format!("- {}", pairs.join("\n- ")));
            if one_line && !is_entry { finding.fix(format!("[{}]", pairs.join(", "))) } else { finding }
        }
        Some(_) | None => finding.hint("`data: [/datasets/coco]`, `data: []`"),
    });
}

fn data_item(r: &mut Reader<'_, '_>, node: &Node, dir: Option<&Place>) -> Option<(DataItem, Mark)> {
    match &node.kind {
        Kind::Text { .. } => {
            let (from, name) = source(r, node, None, dir)?;
            let name = name.or_else(|| unnamed(r, node.mark))?;
            Some((DataItem { from, name, stage: Stage::Link, sha256: None }, node.mark))
        }
        Kind::Nothing => {
            if r.written(node.mark).is_some_and(|text| text == "~") {
                r.add(tilde(node.mark));
            } else {
                r.add(
                    error(36, visible(node.mark), "data has an empty entry")
                        .hint("write a path behind the dash"),
                );
            }
            None
        }
        Kind::Map { .. } => data_entry(r, node, dir),
        Kind::Alias(_) => {
            r.add(alias(node.mark));
            None
        }
        Kind::List { .. } => {
            r.shape(node, "a data entry", "a path or a mapping");
            None
        }
    }
}

fn data_entry(r: &mut Reader<'_, '_>, node: &Node, dir: Option<&Place>) -> Option<(DataItem, Mark)> {
    let fields = r.open(node, DataEntry::SECTION)?;
    let path = fields.get("path");
    let from = fields.get("from");
    if from.is_none() && !r.partial {
        r.add(
            error(96, visible(node.mark), "a data entry needs `from`")
                .hint("`{from: /archive/night7, as: footage}`"),
        );
    }
    let given = fields.get("as").and_then(|field| file_name(r, field));
    let stage = fields
        .get("stage")
        .and_then(|field| {
            let words = [("link", Stage::Link), ("copy", Stage::Copy), ("unpack", Stage::Unpack)];
            let stage = r.word(field, &words)?;
            if stage != Stage::Link {
                let text = field.value.text().unwrap_or("");
                r.not_yet(field.value.mark, &format!("stage: {text}"), "`stage: link` reads it where it is");
            }
            Some(stage)
        })
        .unwrap_or_default();
    let sha256 = fields.get("sha256").and_then(|field| {
        let text = r.text(field)?.to_lowercase();
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            r.add(error(93, field.value.mark, "sha256: 64 hex digits").hint("`sha256sum FILE` prints them"));
            return None;
        }
        r.not_yet(field.value.mark, "sha256", "take it out; `sha256sum -c` at the start of `run` checks it");
        Some(text)
    });
    fields.close();
    let from = from?;
    let (source, name) = source(r, from.value, path, dir)?;
    let name = given.or(name).or_else(|| unnamed(r, from.value.mark))?;
    Some((DataItem { from: source, name, stage, sha256 }, from.value.mark))
}

fn unnamed(r: &mut Reader<'_, '_>, mark: Mark) -> Option<String> {
    r.add(error(96, visible(mark), "this data item has no name").hint("say it: `{from: /, as: host}`"));
    None
}

/// Where an item comes from, and the name it has by itself.
fn source(
    r: &mut Reader<'_, '_>,
    node: &Node,
    path: Option<Field<'_>>,
    dir: Option<&Place>,
) -> Option<(DataFrom, Option<String>)> {
    if let Some(rest) = node.text().and_then(|text| text.strip_prefix("job:")) {
        let (job, below) = rest.split_once('/').unwrap_or((rest, ""));
        let below = match path {
            Some(field) if below.is_empty() => r.text(field)?.to_owned(),
            Some(field) => format!("{below}/{}", r.text(field)?),
            None => below.to_owned(),
        };
        let below = below.trim_matches('/').to_owned();
        if job.is_empty() || variable(&below) || outside(&below) {
            r.add(
                error(94, node.mark, format!("data: `job:{rest}` names no job's output"))
                    .hint("`job:NAME/PATH`, such as `job:prepare/corpus`"),
            );
            return None;
        }
        super::lint::job_name(r, job, node.mark);
        let name = below.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(job).to_owned();
        return Some((DataFrom::Job { job: job.to_owned(), path: below }, Some(name)));
    }
    let place = r.path("data", node, dir)?;
    if let Some(field) = path {
        r.add(
            error(98, field.key.mark, "path goes with `from: job:NAME`")
                .hint("write one path behind `from:`"),
        );
    }
    if r.cx.check_host {
        on_host(r, node, &place);
    }
    let name = place.will_be.file_name().map(|name| name.to_string_lossy().into_owned());
    Some((DataFrom::Path(place.will_be), name))
}

/// It is there, and a file or a directory: a pipe or a device is no data, and who reads one may wait for ever.
fn on_host(r: &mut Reader<'_, '_>, node: &Node, place: &Place) {
    match std::fs::metadata(&place.at) {
        Ok(meta) if meta.is_file() || meta.is_dir() => {}
        Ok(_) => {
            let shown = r.homely(&place.at);
            r.add(
                error(94, node.mark, format!("data: `{shown}` is neither a file nor a directory"))
                    .hint("a pipe, a socket or a device cannot be data; the work can open it itself"),
            );
        }
        Err(_) => r.missing("data", node.mark, &place.at),
    }
}

/// One name of a file, no path.
fn file_name(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<String> {
    let text = r.text(field)?;
    if text.is_empty() || text.contains(['/', '\0']) || text == "." || text == ".." {
        r.add(
            error(94, visible(field.value.mark), format!("{}: `{text}` is not one name", field.name))
                .hint("a name without `/`"),
        );
        return None;
    }
    Some(text.to_owned())
}

/// Whether a relative path leaves the directory it starts in.
fn outside(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Reads `output`.
pub(super) fn read_output(
    r: &mut Reader<'_, '_>,
    field: Field<'_>,
    keys: Option<&Keys>,
) -> Option<Vec<OutputItem>> {
    let items = few(r, field)?;
    let list: Vec<OutputItem> = items.iter().filter_map(|node| output_item(r, node, keys)).collect();
    (list.len() == items.len()).then_some(list)
}

fn output_item(r: &mut Reader<'_, '_>, node: &Node, keys: Option<&Keys>) -> Option<OutputItem> {
    match &node.kind {
        Kind::Text { value, .. } => {
            let path = output_path(r, value, node.mark, keys)?;
            Some(OutputItem { path, kind: OutputKind::default(), optional: false })
        }
        Kind::Alias(name) => {
            let quoted = format!("\"*{name}\"");
            r.add(
                error(55, node.mark, "`*` at the start means something in YAML")
                    .hint(format!("quote it: `{quoted}`"))
                    .fix(quoted),
            );
            None
        }
        Kind::Map { entries, flow: true } if placeholder(entries) => {
            let text = r.written(node.mark).unwrap_or_default();
            r.add(
                error(54, node.mark, "a `{` at the start is a YAML mapping")
                    .hint(format!("`\"{text}\"`"))
                    .fix(format!("\"{text}\"")),
            );
            None
        }
        Kind::Map { .. } => output_entry(r, node, keys),
        Kind::List { flow: true, .. } => {
            let text = r.written(node.mark).unwrap_or_default();
            r.add(
                error(55, visible(node.mark), "`[` at the start means something in YAML")
                    .hint(format!("a pattern: `\"{text}\"`")),
            );
            None
        }
        Kind::List { .. } => {
            r.shape(node, "an output entry", "a path or a mapping");
            None
        }
        Kind::Nothing => {
            r.add(
                error(36, visible(node.mark), "output has an empty entry")
                    .hint("write a path behind the dash"),
            );
            None
        }
    }
}

/// `{seed}` alone reads as a mapping of `seed` to nothing.
fn placeholder(entries: &[(Node, Node)]) -> bool {
    let [(key, value)] = entries else { return false };
    matches!(value.kind, Kind::Nothing)
        && key.text().is_some_and(|text| !OutputEntry::SECTION.fields.contains(&text))
}

fn output_entry(r: &mut Reader<'_, '_>, node: &Node, keys: Option<&Keys>) -> Option<OutputItem> {
    let fields = r.open(node, OutputEntry::SECTION)?;
    let path = fields.get("path");
    if path.is_none() && !r.partial {
        r.add(
            error(96, visible(node.mark), "an output entry needs `path`")
                .hint("`{path: runs/best.pt, kind: model}`"),
        );
    }
    let kinds = [
        ("model", OutputKind::Model),
        ("results", OutputKind::Results),
        ("files", OutputKind::Files),
        ("report", OutputKind::Report),
    ];
    let kind = fields.get("kind").and_then(|field| r.word(field, &kinds)).unwrap_or_default();
    let optional = fields.get("optional").and_then(|field| r.flag(field)).unwrap_or_default();
    fields.close();
    let path = path?;
    if let Kind::Alias(name) = &path.value.kind {
        let quoted = format!("\"*{name}\"");
        r.add(
            error(55, path.value.mark, "`*` at the start means something in YAML")
                .hint(format!("quote it: `{quoted}`"))
                .fix(quoted),
        );
        return None;
    }
    let text = r.text(path)?;
    let path = output_path(r, text, path.value.mark, keys)?;
    Some(OutputItem { path, kind, optional })
}

fn output_path(r: &mut Reader<'_, '_>, text: &str, mark: Mark, keys: Option<&Keys>) -> Option<String> {
    let finding = if windows(text) {
        error(34, mark, "Windows path").hint("paths of this host: `runs/best.pt`")
    } else if variable(text) {
        error(77, mark, "output: variables are not replaced here")
            .hint("write the path, relative to the work directory")
    } else if text.starts_with(['/', '~']) || outside(text) {
        error(82, mark, "outputs are inside the work directory")
            .hint("write to `$OVERNIGHT_OUTPUT`; it comes back whole")
    } else if text.trim().is_empty() || text.contains('\0') {
        error(36, visible(mark), "output has an empty entry").hint("a file, a directory or a pattern")
    } else {
        return braces(r, text, mark, keys);
    };
    r.add(finding);
    None
}

/// Replaces `{key}`, checks that only declared keys stand in braces and that the pattern is one.
fn braces(r: &mut Reader<'_, '_>, text: &str, mark: Mark, keys: Option<&Keys>) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let inner = &rest[at + 1..];
        let end = inner.find('}').unwrap_or(inner.len());
        let name = &inner[..end];
        let known = keys.is_some_and(|keys| keys.has(name));
        if !known {
            let finding = if name.contains(',') {
                error(53, mark, format!("output: `{{{name}}}` is not a pattern here"))
                    .hint("write one line for each")
            } else {
                let finding = error(53, mark, format!("no `for_each` key `{name}`"));
                match keys.and_then(|keys| keys.nearest(name)) {
                    Some(near) => finding.hint(format!("did you mean `{{{near}}}`?")),
                    None => finding.hint("the job has no `for_each`; a glob has no braces"),
                }
            };
            r.add(finding);
            return None;
        }
        rest = inner.get(end + 1..).unwrap_or("");
    }
    let path = keys.map_or_else(|| text.to_owned(), |keys| keys.replace(text));
    let path = path.trim_start_matches("./").to_owned();
    if outside(&path) || Path::new(&path).is_absolute() {
        r.add(
            error(82, mark, "outputs are inside the work directory")
                .hint("the value of a key leads out of it"),
        );
        return None;
    }
    if let Err(reason) = globset::Glob::new(&path) {
        r.add(
            error(94, mark, format!("output: `{text}` is not a pattern: {}", reason.kind()))
                .hint("`*`, `?`, `**` and `[a-z]` mean something; `[*]` is a star itself"),
        );
        return None;
    }
    Some(path)
}
