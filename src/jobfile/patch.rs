//! Writes changes into a job file's text, and leaves the rest of it as its owner wrote it.

use super::intake::split;
use super::lines::single;
use super::show;
use super::tree::{Document, Kind, Mark, Node, build};
use crate::protocol::Overrides;
use std::borrow::Cow;

/// The documents of a file, each with its comments.
pub fn documents(text: &str) -> Vec<String> {
    split(text).into_iter().map(|(_, document)| document).collect()
}

/// One document with the changes in it; `None` where they cannot be written into it without harm.
pub fn with_overrides(document: &str, overrides: &Overrides) -> Option<String> {
    let Overrides { name, env, gpus, limit, priority } = overrides;
    let mut text = Cow::Borrowed(document);
    let mut set = |path: &[&str], value: String| -> Option<()> {
        text = Cow::Owned(with(&text, path, &value)?);
        Some(())
    };
    if let Some(name) = name {
        set(&["name"], scalar(name))?;
    }
    if let Some(gpus) = gpus {
        set(&["request", "gpus"], gpus.to_string())?;
    }
    if let Some(limit) = limit {
        set(&["request", "for"], show::span(*limit))?;
    }
    if let Some(priority) = priority {
        set(&["request", "priority"], priority.to_string())?;
    }
    for (key, value) in env {
        set(&["work", "env", key], single(value))?;
    }
    Some(text.into_owned())
}

/// Plain where that is no question.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if plain { text.to_owned() } else { single(text) }
}

/// The text with one field set; proven by reading it back.
fn with(text: &str, path: &[&str], value: &str) -> Option<String> {
    let written = set(text, path, value)?;
    let found = |text: &str| found(text, path);
    let wanted = build(&format!("x: {value}"), 1).0;
    let wanted = field(wanted.root.as_ref()?, "x")?.1.text().map(ToOwned::to_owned);
    (wanted.is_some() && found(&written) == wanted).then_some(written)
}

/// What stands at a path, if it is a text.
fn found(text: &str, path: &[&str]) -> Option<String> {
    let document = read(text)?;
    let mut node = document.root.as_ref()?;
    for name in path {
        node = field(node, name)?.1;
    }
    node.text().map(ToOwned::to_owned)
}

fn read(text: &str) -> Option<Document> {
    let (document, trouble) = build(text, 1);
    trouble.is_none().then_some(document)
}

fn field<'n>(map: &'n Node, name: &str) -> Option<(&'n Node, &'n Node)> {
    let Kind::Map { entries, .. } = &map.kind else { return None };
    entries.iter().find(|(key, _)| key.text() == Some(name)).map(|(key, value)| (key, value))
}

fn set(text: &str, path: &[&str], value: &str) -> Option<String> {
    let document = read(text)?;
    let mut map = document.root.as_ref()?;
    for (depth, name) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        match field(map, name) {
            None => return add(text, map, &format!("{name}: {}", nested(rest, value))),
            Some((_, found)) if matches!(found.kind, Kind::Map { .. }) && !rest.is_empty() => map = found,
            Some((key, found)) => return replace(text, (key, found), &nested(rest, value)),
        }
    }
    None
}

/// A value below further fields.
fn nested(path: &[&str], value: &str) -> String {
    path.iter().rev().fold(value.to_owned(), |value, name| format!("{{{name}: {value}}}"))
}

/// A value in place of another.
fn replace(text: &str, (key, old): (&Node, &Node), value: &str) -> Option<String> {
    let range = match &old.kind {
        Kind::Text { raw, .. } => raw.clone(),
        Kind::Nothing => {
            let Kind::Text { raw, .. } = &key.kind else { return None };
            let colon = raw.end + text.get(raw.end..)?.find(':')? + 1;
            let rest = text.get(colon..)?;
            let line = rest.split('\n').next().unwrap_or("");
            let lead = line.len() - line.trim_start().len();
            let null = ["null", "Null", "NULL", "~"].into_iter().find(|null| line[lead..].starts_with(null));
            match null {
                Some(null) => colon + lead..colon + lead + null.len(),
                None => return Some(format!("{} {value}{rest}", text.get(..colon)?)),
            }
        }
        Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => return None,
    };
    Some(format!("{}{value}{}", text.get(..range.start)?, text.get(range.end..)?))
}

/// A further field of a mapping, before its first one.
fn add(text: &str, map: &Node, entry: &str) -> Option<String> {
    let Kind::Map { entries, flow } = &map.kind else { return None };
    let first = entries.first().map(|(key, _)| key.mark);
    let (at, new) = match (flow, first) {
        (true, None) => (offset(text, map.mark)? + 1, entry.to_owned()),
        (true, Some(_)) => (offset(text, map.mark)? + 1, format!("{entry}, ")),
        (false, Some(first)) => {
            let indent = " ".repeat(first.column.saturating_sub(1) as usize);
            (offset(text, first)?, format!("{entry}\n{indent}"))
        }
        (false, None) => return None,
    };
    Some(format!("{}{new}{}", text.get(..at)?, text.get(at..)?))
}

/// The byte at a place.
fn offset(text: &str, at: Mark) -> Option<usize> {
    let lines = text.split_inclusive('\n').take((at.line as usize).checked_sub(1)?);
    let start: usize = lines.map(str::len).sum();
    let column = (at.column as usize).checked_sub(1)?;
    text.get(start..)?.char_indices().map(|(at, _)| at).nth(column).map(|column| start + column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Priority, Span};

    fn all() -> Overrides {
        Overrides {
            name: Some("other".into()),
            env: [("A".to_owned(), "it's".to_owned())].into(),
            gpus: Some(3),
            limit: Some(Span::secs(5400)),
            priority: Some(Priority::clamped(-7)),
        }
    }

    #[test]
    fn a_block_file_keeps_its_comments() {
        let text = "# mine\nname: x # not y\nwork:\n  run: |\n    a: b\ndata: []\nrequest:\n  # how much\n  gpus: 1\n  for: 1h # long\noutput: []\n";
        assert_eq!(
            with_overrides(text, &all()).unwrap(),
            "# mine\nname: other # not y\nwork:\n  env: {A: 'it''s'}\n  run: |\n    a: b\ndata: []\nrequest:\n  # how much\n  priority: -7\n  gpus: 3\n  for: 1h30m # long\noutput: []\n"
        );
    }

    #[test]
    fn a_flow_file_stays_one() {
        let text =
            "work: {run: nvidia-smi, env: {}}\ndata: []\nrequest: {gpus: all, for: \"5m\"}\noutput: []\n";
        assert_eq!(
            with_overrides(text, &all()).unwrap(),
            "name: other\nwork: {run: nvidia-smi, env: {A: 'it''s'}}\ndata: []\nrequest: {priority: -7, gpus: 3, for: 1h30m}\noutput: []\n"
        );
    }

    #[test]
    fn what_cannot_be_written_is_not() {
        for text in ["", "- a\n", "work: [\n", "request: [1]\n", "request: {gpus: [1]}\n"] {
            assert_eq!(with_overrides(text, &all()), None, "{text}");
        }
    }

    #[test]
    fn an_empty_value_gets_one() {
        let gpus = Overrides { gpus: Some(2), ..Overrides::default() };
        for (text, wanted) in [
            ("request:\n  gpus:\n  for: 1h\n", "request:\n  gpus: 2\n  for: 1h\n"),
            ("request:\n  gpus: ~ # ?\n  for: 1h\n", "request:\n  gpus: 2 # ?\n  for: 1h\n"),
            ("request:\noutput: []\n", "request: {gpus: 2}\noutput: []\n"),
            ("output: []\n", "request: {gpus: 2}\noutput: []\n"),
        ] {
            assert_eq!(with_overrides(text, &gpus).as_deref(), Some(wanted));
        }
    }

    #[test]
    fn documents_are_told_apart() {
        assert_eq!(documents("# a\nname: a\n---\nname: b\n# b\n").len(), 2);
    }
}
