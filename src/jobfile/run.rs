//! The command: text for bash, or a program and its arguments.

use super::each::Keys;
use super::findings::{error, warning};
use super::paths::variable;
use super::reader::{Field, Reader, alias, visible};
use super::tree::{Kind, Mark, Node, Style};
use crate::model::Run;

/// Reads `run`.
pub(super) fn read(r: &mut Reader<'_, '_>, field: Field<'_>, keys: Option<&Keys>) -> Option<Run> {
    match &field.value.kind {
        Kind::Text { value, style, raw } => shell(r, field, value, *style, raw.len()),
        Kind::List { items, .. } => argv(r, items, keys)
            .filter(|argv| {
                if argv.is_empty() {
                    r.add(
                        error(36, visible(field.value.mark), "run has no value")
                            .hint("a program and its arguments"),
                    );
                }
                !argv.is_empty()
            })
            .map(Run::Argv),
        Kind::Map { flow, .. } => {
            let finding = error(58, visible(field.value.mark), "run is text or a list, not a mapping");
            r.add(if *flow {
                finding.hint("a `{` at the start is a YAML mapping: use `run: |` and a new line")
            } else {
                finding.hint("the command stands behind `run:`")
            });
            None
        }
        Kind::Nothing => {
            r.add(error(36, field.key.mark, "run has no value").hint("the command: `run: python train.py`"));
            None
        }
        Kind::Alias(_) => {
            r.add(alias(field.value.mark).hint("a command that starts with `*`: quote it, or use `run: |`"));
            None
        }
    }
}

fn shell(r: &mut Reader<'_, '_>, field: Field<'_>, value: &str, style: Style, raw: usize) -> Option<Run> {
    let mark = field.value.mark;
    if value.contains('\0') {
        r.add(error(94, mark, "run has a NUL character"));
        return None;
    }
    if value.trim().is_empty() {
        r.add(error(36, field.key.mark, "run has no value").hint("the command: `run: python train.py`"));
        return None;
    }
    if style != Style::Literal && raw > value.len().min(mark.width as usize) {
        joined(r, field, value, style);
    }
    Some(Run::Shell(value.to_owned()))
}

/// Lines that YAML would join into one command.
fn joined(r: &mut Reader<'_, '_>, field: Field<'_>, value: &str, style: Style) {
    let mark = field.value.mark;
    let lines = written_lines(r, field.value);
    let certain = style == Style::Folded || style == Style::Plain;
    let joins = lines.iter().skip(1).any(|(_, line)| !line.starts_with('-'))
        || lines.iter().rev().skip(1).any(|(_, line)| line.ends_with('\\'));
    if lines.len() < 2 || !joins {
        return;
    }
    let (at, sign) = if style == Style::Folded {
        let header = r.found.line(field.key.mark.line);
        let column = header.chars().position(|c| c == '>').map_or(mark.column, |at| at as u32 + 1);
        (Mark { line: field.key.mark.line, column, width: 1 }, "`>` folds lines".to_owned())
    } else {
        (
            Mark { line: mark.line, column: mark.column, width: lines[0].1.chars().count() as u32 },
            "one line".to_owned(),
        )
    };
    let shown: String = value.trim().chars().take(60).collect();
    let finding =
        error(60, at, format!("these {} lines of run would be joined into one command", lines.len()))
            .label(format!("{sign}: \"{shown}\""));
    let indent = lines[1].0;
    r.add(match style {
        Style::Folded => finding.hint("write `run: |`").fix_at(at, "|"),
        Style::Plain if certain && mark.line == field.key.mark.line && indent > 0 => finding
            .hint("write `run: |` and the command on new lines")
            .fix_at(Mark { width: 0, ..mark }, format!("|\n{}", " ".repeat(indent))),
        Style::Plain | Style::Single | Style::Double | Style::Literal => {
            finding.hint("write `run: |` and the command on new lines")
        }
    });
}

/// The lines of a text as written: indent and content, empty ones left out.
fn written_lines<'a>(r: &Reader<'a, '_>, node: &Node) -> Vec<(usize, &'a str)> {
    let first = node.mark.line;
    let mut out = Vec::new();
    let count = match &node.kind {
        Kind::Text { raw, .. } => raw.len(),
        Kind::Nothing | Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => 0,
    };
    let mut left = count as isize;
    for at in first..=r.found.line_count() {
        let line = r.found.line(at);
        let used = if at == first {
            line.len() - line.chars().take(node.mark.column as usize - 1).map(char::len_utf8).sum::<usize>()
        } else {
            line.len()
        };
        if left <= 0 {
            break;
        }
        left -= used as isize + 1;
        let text = &line[line.len() - used..];
        let text = text.trim_end();
        let content = text.trim_start();
        if !content.is_empty() {
            out.push((line.len() - line.trim_start().len(), content));
        }
    }
    out
}

fn argv(r: &mut Reader<'_, '_>, items: &[Node], keys: Option<&Keys>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let n = at + 1;
        match &item.kind {
            Kind::Text { value, .. } => {
                if value.contains('\0') {
                    r.add(error(94, item.mark, format!("item {n} has a NUL character")));
                }
                words.push(keys.map_or_else(|| value.clone(), |keys| keys.replace(value)));
            }
            Kind::Map { .. } => {
                let written = match &item.kind {
                    Kind::Map { entries, flow: _ } => entries
                        .first()
                        .and_then(|(key, value)| Some(format!("\"{}: {}\"", key.text()?, value.text()?))),
                    Kind::Nothing | Kind::Text { .. } | Kind::List { .. } | Kind::Alias(_) => None,
                };
                r.add(
                    error(62, visible(item.mark), format!("item {n} is a mapping; arguments are text"))
                        .hint(written.unwrap_or_else(|| "quote it".to_owned())),
                );
            }
            Kind::List { .. } => r.add(
                error(62, visible(item.mark), format!("item {n} is a list; arguments are text"))
                    .hint("quote it, or take the inner brackets off"),
            ),
            Kind::Nothing => r.add(
                error(62, visible(item.mark), format!("item {n} is nothing; arguments are text"))
                    .hint("empty text: `\"\"`; your home: `\"~\"` stays as it is, no shell replaces it"),
            ),
            Kind::Alias(_) => r.add(
                error(56, item.mark, "aliases are not used here")
                    .hint("an argument that starts with `*`: quote it"),
            ),
        }
    }
    plain_words(r, items);
    (words.len() == items.len()).then_some(words)
}

/// Shell signs in a list stay text.
fn plain_words(r: &mut Reader<'_, '_>, items: &[Node]) {
    let shell = |item: &&Node| {
        let text = item.text().unwrap_or("");
        matches!(text, "&&" | "||" | "|" | ";" | ">" | ">>" | "<" | "&" | "2>&1") || variable(text)
    };
    // `bash -c TEXT` is a shell of its own.
    let first = items.first().and_then(Node::text).unwrap_or("");
    let own_shell = matches!(first.rsplit('/').next(), Some("bash" | "sh" | "zsh"))
        && items
            .iter()
            .any(|item| item.text().is_some_and(|text| text.starts_with('-') && text.ends_with('c')));
    if own_shell {
        return;
    }
    if let Some(item) = items.iter().find(shell) {
        let text = item.text().unwrap_or("");
        r.add(
            warning(63, item.mark, format!("a list has no shell: `{text}` stays text"))
                .hint("write the command as text: `run: python train.py && …`"),
        );
    }
}
