//! Draws findings with carets, and applies mends. Pure text.

use super::RenderStyle;
use crate::model::clean_line;
use crate::protocol::{Diagnostic, Edit, Severity};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a source line that are shown at most.
const WIDE: usize = 160;

/// Draws findings as the user sees them, one after another with an empty line between.
pub fn render(diagnostics: &[Diagnostic], style: RenderStyle) -> String {
    let mut out = String::new();
    for (at, diagnostic) in diagnostics.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        // Writing into a string cannot fail.
        let _ = one(&mut out, diagnostic, style);
    }
    out
}

fn one(out: &mut String, d: &Diagnostic, style: RenderStyle) -> std::fmt::Result {
    let ansi = style == RenderStyle::Ansi;
    let (word, tone) = match d.severity {
        Severity::Error => ("error", "\u{1b}[1;31m"),
        Severity::Warning => ("warning", "\u{1b}[1;33m"),
    };
    let (tone, frame, bold, reset) =
        if ansi { (tone, "\u{1b}[34m", "\u{1b}[1m", "\u{1b}[0m") } else { ("", "", "", "") };
    writeln!(out, "{tone}{word}{reset}{bold}: {}{reset}", clean_line(&d.message))?;
    let digits = if d.line == 0 { 1 } else { d.line.ilog10() as usize + 1 };
    let gutter = " ".repeat(digits + 1);
    write!(out, "{gutter}{frame}-->{reset} {}", clean_line(&d.file))?;
    if d.line > 0 {
        write!(out, ":{}", d.line)?;
    }
    if d.column > 0 {
        write!(out, ":{}", d.column)?;
    }
    out.push('\n');
    if let Some(source) = d.source.as_deref().filter(|_| d.line > 0 && d.column > 0) {
        let shown = Shown::of(&clean_line(source), d.column as usize, d.width as usize);
        writeln!(out, "{gutter} {frame}|{reset}")?;
        writeln!(out, " {frame}{} |{reset} {}", d.line, shown.text)?;
        let carets = "^".repeat(shown.width.max(1));
        let label = d.label.as_deref().map(|label| format!(" {}", clean_line(label))).unwrap_or_default();
        let pad = " ".repeat(shown.before);
        writeln!(out, "{gutter} {frame}|{reset} {pad}{tone}{carets}{label}{reset}")?;
    }
    if let Some(hint) = &d.hint {
        writeln!(out, "{gutter} {frame}={reset} hint: {}", clean_line(hint))?;
    }
    if !d.known.is_empty() {
        writeln!(out, "{gutter} {frame}={reset} known fields: {}", clean_line(&d.known.join(" ")))?;
    }
    Ok(())
}

/// The part of a source line that is shown, in cells.
struct Shown {
    text: String,
    before: usize,
    width: usize,
}

impl Shown {
    fn of(source: &str, column: usize, width: usize) -> Self {
        let chars: Vec<char> = source.chars().collect();
        let start = (column - 1).min(chars.len());
        let width = width.min(chars.len() - start).min(WIDE);
        let from = if start + width > WIDE { start.saturating_sub(WIDE / 2) } else { 0 };
        let to = (from + WIDE).max(start + width).min(chars.len());
        let cells = |range: &[char]| range.iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
        let cut = if from > 0 { "…" } else { "" };
        let more = if to < chars.len() { "…" } else { "" };
        let middle: String = chars[from..to].iter().collect();
        Self {
            text: format!("{cut}{middle}{more}"),
            before: cut.width() + cells(&chars[from..start]),
            width: cells(&chars[start..start + width]),
        }
    }
}

/// The text with the mends applied. Widths may run over line ends, each of which counts as one character.
/// A mend that overlaps an earlier one is left out.
pub fn apply_fixes(text: &str, edits: &[Edit]) -> String {
    let mut spans: Vec<(std::ops::Range<usize>, &str)> =
        edits.iter().filter_map(|edit| Some((place(text, edit)?, edit.text.as_str()))).collect();
    spans.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (span, new) in spans {
        if span.start < at {
            continue;
        }
        out.push_str(text.get(at..span.start).unwrap_or(""));
        out.push_str(new);
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    out
}

/// The bytes that an edit replaces.
fn place(text: &str, edit: &Edit) -> Option<std::ops::Range<usize>> {
    let line = usize::try_from(edit.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(edit.column).ok()?.checked_sub(1)?;
    let mark = if line == 0 && text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>() + mark;
    let rest = text.get(start..)?;
    if line > text.matches('\n').count() {
        return None;
    }
    // A carriage return with its line feed counts as one.
    let bytes = rest.as_bytes();
    let starts = rest
        .char_indices()
        .filter(|(at, c)| !(*c == '\n' && *at > 0 && bytes.get(at - 1) == Some(&b'\r')))
        .map(|(at, _)| at)
        .chain(std::iter::once(rest.len()));
    let from = starts.clone().nth(column)?;
    let to = starts.clone().nth(column + edit.width as usize)?;
    Some(start + from..start + to)
}
