//! From bytes to documents to jobs: what is refused unread, where documents begin, who waits for whom.

use super::findings::{Findings, error};
use super::job;
use super::lines::{Part, key_of, parts};
use super::reader::Reader;
use super::syntax;
use super::tree::{Document, Kind, Mark, Oddity};
use super::{Context, Parsed};
use crate::model::{Bytes, DataFrom, JobSpec, slug};
use crate::protocol::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// Documents of one file.
const JOBS: usize = 5000;
const SMALLEST: &str =
    "the smallest job: work: {run: nvidia-smi}, data: [], request: {gpus: 1, for: 5m}, output: []";

/// Reads a job file: every document, every finding.
pub fn parse(bytes: &[u8], cx: &Context<'_>) -> Parsed {
    let text = match text(bytes, cx) {
        Ok(text) => text,
        Err(finding) => {
            let mut found = Findings::new(cx.shown, "");
            found.add(*finding);
            return Parsed { jobs: Vec::new(), diagnostics: found.finish() };
        }
    };
    let mut found = Findings::new(cx.shown, &text);
    let jobs = if whole_file(&mut found, &text) { documents(&mut found, &text, cx) } else { Vec::new() };
    let refused = found.has_errors_since(0);
    Parsed { jobs: if refused { Vec::new() } else { jobs }, diagnostics: found.finish() }
}

/// The text of a file: UTF-8, without byte order mark and carriage returns.
fn text(bytes: &[u8], cx: &Context<'_>) -> Result<String, Box<super::findings::Finding>> {
    let most = cx.limits.file_bytes;
    let none = Mark::default();
    if bytes.len() as u64 > most {
        let (size, most) = (Bytes(bytes.len() as u64), Bytes(most));
        let message = format!("{size} is more than a job file may have: {most}");
        return Err(Box::new(error(90, none, message).hint("data goes into files that `data` names")));
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        let message = "not UTF-8 but UTF-16: byte 0xFF or 0xFE in line 1";
        return Err(Box::new(error(30, none, message).hint("save as UTF-8")));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
            Ok(if text.contains('\r') {
                text.replace("\r\n", "\n").replace('\r', "\n")
            } else {
                text.to_owned()
            })
        }
        Err(reason) => {
            let at = reason.valid_up_to();
            let line = bytes.iter().take(at).filter(|b| **b == b'\n').count() + 1;
            let byte = bytes.get(at).copied().unwrap_or(0);
            let mark = Mark { line: line as u32, ..none };
            let message = format!("not UTF-8: byte 0x{byte:02X} in line {line}");
            Err(Box::new(error(30, mark, message).hint("save as UTF-8")))
        }
    }
}

/// What makes the whole file something else than a job file.
fn whole_file(found: &mut Findings<'_>, text: &str) -> bool {
    for (at, line) in text.split('\n').enumerate() {
        let number = at as u32 + 1;
        if let Some((column, c)) = line.chars().enumerate().find(|(_, c)| control(*c)) {
            let mark = Mark { line: number, column: column as u32 + 1, width: 1 };
            found.add(
                error(92, mark, format!("control character U+{:04X} in line {number}", c as u32))
                    .hint("save as plain text"),
            );
            return false;
        }
        if line.starts_with("#SBATCH") || (at == 0 && script(line)) {
            let mark = Mark { line: number, column: 1, width: line.chars().count().min(60) as u32 };
            found.add(
                error(83, mark, "this is a shell script, not a job file")
                    .hint("a job file names it: `run: bash script.sh`"),
            );
            return false;
        }
    }
    let empty = text.split('\n').all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
    });
    if empty {
        found.add(error(85, Mark::default(), "the file is empty").hint(SMALLEST));
    }
    !empty
}

const fn control(c: char) -> bool {
    (c < ' ' && c != '\t') || c == '\u{7F}'
}

fn script(line: &str) -> bool {
    line.starts_with("#!")
}

/// Where each document is: its first line and its text. `---` at the start of a line always ends a document.
pub(super) fn split(text: &str) -> Vec<(u32, String)> {
    let marker = |line: &str, sign: &str| {
        line.strip_prefix(sign).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let mut out: Vec<(u32, String)> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut first = 1;
    let mut replaced;
    for (at, line) in text.split('\n').enumerate() {
        let starts = marker(line, "---");
        if starts || marker(line, "...") {
            out.push((first, lines.join("\n")));
            lines.clear();
            first = at as u32 + 1;
            replaced = if starts { line.get(3..).unwrap_or("") } else { "" };
            // The text behind the marker keeps its column.
            if replaced.trim().is_empty() || replaced.trim_start().starts_with('#') {
                lines.push("");
            } else {
                out.push((first, format!("   {replaced}")));
                first += 1;
            }
        } else {
            lines.push(line);
        }
    }
    out.push((first, lines.join("\n")));
    out.retain(|(_, text)| {
        text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    out
}

fn documents(found: &mut Findings<'_>, text: &str, cx: &Context<'_>) -> Vec<(JobSpec, Vec<Diagnostic>)> {
    let mut trees: Vec<Document> = Vec::new();
    let documents = split(text);
    if documents.len() > JOBS {
        let first = documents.get(JOBS).map_or(0, |(first, _)| *first);
        let mark = Mark { line: first, ..Mark::default() };
        found.add(
            error(91, mark, format!("more than {JOBS} jobs in one file"))
                .hint("several files, or `for_each`"),
        );
        return Vec::new();
    }
    for (first, text) in documents {
        let tree = syntax::read(found, &text, first);
        oddities(found, &tree);
        templates(found, &text, first);
        trees.push(tree);
        if found.full() {
            break;
        }
    }
    let names: BTreeSet<String> = trees.iter().map(|tree| name_of(tree, cx)).collect();
    let mut jobs = Vec::new();
    for tree in &trees {
        if found.full() {
            break;
        }
        let before = found.len();
        let Some(root) = &tree.root else { continue };
        let mut reader = Reader {
            cx,
            found,
            partial: tree.partial,
            comments: &tree.comments,
            names: &names,
            lost_dir: false,
        };
        if let Some(spec) = job::read(&mut reader, root) {
            let warnings = found.since(before);
            jobs.push((spec, warnings));
        }
    }
    circles(found, &jobs);
    jobs
}

/// Anchors and tags.
fn oddities(found: &mut Findings<'_>, tree: &Document) {
    for (oddity, mark) in &tree.oddities {
        let written: String =
            found.line(mark.line).chars().skip(mark.column as usize - 1).take(mark.width as usize).collect();
        let what = match oddity {
            Oddity::Anchor => "anchors",
            Oddity::Tag => "tags",
        };
        let sign = written.chars().next().unwrap_or('&');
        found.add(
            error(56, *mark, format!("{what} are not used here: `{written}` would be lost"))
                .hint(format!("a command that starts with `{sign}`: quote it or use `run: |`")),
        );
    }
}

/// `{{ … }}` and `XXX…XXX` in fields; in commands both may be meant.
fn templates(found: &mut Findings<'_>, text: &str, first: u32) {
    if !text.contains("{{") && !text.contains("XXX") {
        return;
    }
    let lines: Vec<String> = text.split('\n').map(ToOwned::to_owned).collect();
    for ((line, part), number) in lines.iter().zip(parts(&lines)).zip(first..) {
        let command = key_of(line)
            .is_some_and(|key| matches!(key.text, "run" | "shell") && !key.value.starts_with("{{"));
        if part != Part::Free || command || line.trim_start().starts_with('#') {
            continue;
        }
        let Some((start, width)) = unfilled(line) else { continue };
        let mark =
            Mark { line: number, column: line[..start].chars().count() as u32 + 1, width: width as u32 };
        found.add(error(84, mark, "template not filled in").hint("write the value itself"));
        found.mended(mark.line);
    }
}

fn unfilled(line: &str) -> Option<(usize, usize)> {
    if let Some(start) = line.find("{{") {
        let inner = &line[start + 2..];
        if let Some(end) = inner.find("}}") {
            let name = inner[..end].trim();
            let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if plain {
                return Some((start, inner[..end].chars().count() + 4));
            }
        }
    }
    let start = line.find("XXX")?;
    let inner = line[start..].trim_start_matches('X');
    let skipped = line[start..].len() - inner.len();
    let end = inner.find("XXX")?;
    let name = &inner[..end];
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .then_some((start, skipped + end + 3))
}

/// The name that a document's job will have, as far as others may wait for it.
fn name_of(tree: &Document, cx: &Context<'_>) -> String {
    let given = match tree.root.as_ref().map(|root| &root.kind) {
        Some(Kind::Map { entries, .. }) => {
            entries.iter().find(|(key, _)| key.text() == Some("name")).and_then(|(_, value)| value.text())
        }
        Some(Kind::Nothing | Kind::Text { .. } | Kind::List { .. } | Kind::Alias(_)) | None => None,
    };
    given.map_or_else(|| slug(cx.stem), ToOwned::to_owned)
}

/// Jobs of one submission that wait for each other would wait for ever.
fn circles(found: &mut Findings<'_>, jobs: &[(JobSpec, Vec<Diagnostic>)]) {
    let mut waits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (spec, _) in jobs {
        waits.entry(spec.name.as_str()).or_default();
    }
    let known: BTreeSet<&str> = waits.keys().copied().collect();
    let mut behind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (spec, _) in jobs {
        let sources = spec.data.iter().filter_map(|item| match &item.from {
            DataFrom::Job { job, .. } => Some(job.as_str()),
            DataFrom::Path(_) => None,
        });
        let names =
            spec.request.after.iter().chain(&spec.request.after_any).map(String::as_str).chain(sources);
        for name in names.filter(|name| *name != spec.name && known.contains(name)) {
            if waits.entry(spec.name.as_str()).or_default().insert(name) {
                behind.entry(name).or_default().push(spec.name.as_str());
            }
        }
    }
    // What waits for nobody in the file can start; what is left in the end waits in a circle.
    let mut free: Vec<&str> = waits.iter().filter(|(_, on)| on.is_empty()).map(|(name, _)| *name).collect();
    while let Some(name) = free.pop() {
        waits.remove(name);
        for next in behind.remove(name).unwrap_or_default() {
            if let Some(on) = waits.get_mut(next) {
                on.remove(name);
                if on.is_empty() {
                    free.push(next);
                }
            }
        }
    }
    if !waits.is_empty() {
        let names: Vec<&str> = waits.keys().copied().take(8).collect();
        found.add(
            error(101, Mark::default(), format!("these jobs wait for each other: {}", names.join(", ")))
                .hint("take one `after` or `job:` out"),
        );
    }
}
