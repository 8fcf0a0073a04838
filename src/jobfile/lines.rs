//! Raw lines of a document: which of them hold fields, and what stands on one. Knows no tree and no findings.

use super::fields::{JobFile, RequestSection, WorkSection};

/// What a line is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Fields.
    Free,
    /// The text below a `|` or `>`.
    Block,
    /// The first lines of such a text, indented by a tab where its blanks should be.
    Tabbed(usize),
    /// Inside brackets or quotes that began on a line above.
    Inside,
}

/// What each line is part of.
pub(super) fn parts(lines: &[String]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(lines.len());
    let mut block: Option<(usize, bool)> = None;
    let mut open = Opened::default();
    for line in lines {
        let blank = line.trim().is_empty();
        let indent = indent(line);
        if let Some((parent, seen)) = block {
            if blank || indent > parent {
                block = Some((parent, seen || !blank));
                parts.push(Part::Block);
                continue;
            }
            if line[indent..].starts_with('\t') {
                parts.push(Part::Tabbed(parent));
                continue;
            }
            block = None;
        }
        parts.push(if open.depth > 0 || open.quote.is_some() { Part::Inside } else { Part::Free });
        open.read(line);
        if open.depth == 0 && open.quote.is_none() && header(line) {
            block = Some((parent_indent(line), false));
        }
    }
    parts
}

/// Brackets and quotes that are open at the end of a line.
#[derive(Debug, Default)]
struct Opened {
    depth: usize,
    quote: Option<char>,
}

impl Opened {
    fn read(&mut self, line: &str) {
        let mut start = self.depth == 0 && self.quote.is_none();
        let mut chars = line.char_indices().peekable();
        if start {
            // Only a value that begins with a bracket or quote opens one.
            let value =
                key_of(line).map_or_else(|| line.trim_start().trim_start_matches("- "), |key| key.value);
            let value = value.trim_start();
            if !value.starts_with(['[', '{', '"', '\'']) {
                return;
            }
            let skip = line.len() - value.len();
            while chars.peek().is_some_and(|(at, _)| *at < skip) {
                chars.next();
            }
        }
        let mut before = ' ';
        while let Some((_, c)) = chars.next() {
            match (self.quote, c) {
                (Some('"'), '\\') => {
                    chars.next();
                }
                (Some(quote), c) if c == quote => self.quote = None,
                (None, '#') if before.is_whitespace() => return,
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, '"' | '\'') if start || matches!(before, ' ' | '[' | '{' | ',' | ':') => {
                    self.quote = Some(c);
                }
                (Some(_) | None, _) => {}
            }
            start = false;
            before = c;
        }
    }
}

/// A field on its line.
pub(super) struct Key<'l> {
    /// Characters before it.
    pub(super) column: usize,
    pub(super) text: &'l str,
    /// Behind the colon.
    pub(super) value: &'l str,
}

/// The field that a line begins with.
pub(super) fn key_of(line: &str) -> Option<Key<'_>> {
    let mut start = line.len() - line.trim_start().len();
    while let Some(rest) = line[start..].strip_prefix("- ") {
        start = line.len() - rest.trim_start().len();
    }
    let rest = &line[start..];
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))?;
    let after = rest[end..].strip_prefix(':')?;
    if end == 0 || !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    Some(Key { column: line[..start].chars().count(), text: &rest[..end], value: after.trim_start() })
}

/// `gpus:1`, `gpus=1`: where the name starts, the name and the sign.
pub(super) fn glued(line: &str) -> Option<(usize, &str, char)> {
    // Not behind a dash: `- data=coco` is an argument.
    let start = line.len() - line.trim_start().len();
    let rest = &line[start..];
    let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
    let name = &rest[..end];
    let sign = rest[end..].chars().next()?;
    let value = &rest[end + sign.len_utf8()..];
    let is = matches!(sign, ':' | '=')
        && known(name)
        && value.starts_with(|c: char| !c.is_whitespace() && c != '=' && c != ':')
        && !value.contains(": ");
    is.then_some((start, name, sign))
}

pub(super) fn known(name: &str) -> bool {
    [JobFile::SECTION, WorkSection::SECTION, RequestSection::SECTION]
        .iter()
        .any(|section| section.fields.contains(&name))
}

/// Whether a line ends in `|` or `>` as the start of a block of text.
pub(super) fn header(line: &str) -> bool {
    let value = match key_of(line) {
        Some(key) => key.value,
        None => match line.trim_start().strip_prefix("- ") {
            Some(rest) => rest.trim_start(),
            None => return false,
        },
    };
    let value = value[..comment(value)].trim_end();
    value.starts_with(['|', '>']) && value[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9'))
}

/// The indentation that the lines of a block must exceed.
pub(super) fn parent_indent(line: &str) -> usize {
    key_of(line).map_or_else(|| indent(line), |key| key.column)
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Spaces that are not blanks.
pub(super) const fn odd_blank(c: char) -> bool {
    matches!(c, '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200B}' | '\u{202F}' | '\u{205F}' | '\u{3000}')
}

/// Where the comment of a plain value starts, or its end.
pub(super) fn comment(value: &str) -> usize {
    if value.starts_with('#') {
        return 0;
    }
    value.find(" #").or_else(|| value.find("\t#")).unwrap_or(value.len())
}

/// In single quotes.
pub(super) fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A line before and from a column.
pub(super) fn split(line: &str, column: u32) -> Option<(&str, &str)> {
    let at = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column.checked_sub(1)? as usize)?;
    Some(line.split_at(at))
}
