//! Findings and texts as lines of an overlay: with carets, scrolled, and in their colours.

use crate::jobfile::{RenderStyle, render};
use crate::protocol::Diagnostic;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_end, width, wrap};
use crate::tui::look::theme::Role;
use ratatui::layout::Rect;

/// Findings as a person sees them everywhere, a role for each line.
pub(in crate::tui) fn lines(findings: &[Diagnostic]) -> Vec<(String, Role)> {
    let text = render(findings, RenderStyle::Plain);
    text.lines()
        .map(|line| {
            let role = if line.starts_with("error") {
                Role::ToastError
            } else if line.starts_with("warning") || is_carets(line) {
                Role::ToastWarn
            } else {
                Role::Text
            };
            (line.to_owned(), role)
        })
        .collect()
}

fn is_carets(line: &str) -> bool {
    line.split_once('|')
        .is_some_and(|(before, after)| before.trim().is_empty() && after.trim_start().starts_with('^'))
}

/// The same in lines that fit: sentences go on below, a source line is cut so that its caret stays under its token.
pub(in crate::tui) fn fitted(lines: &[(String, Role)], columns: usize) -> Vec<(String, Role)> {
    let mut out = Vec::new();
    for (line, role) in lines {
        let note = line.split_once("= ").filter(|(before, _)| before.trim().is_empty());
        let rows = match note {
            Some((before, _)) => wrap(line, columns, before.len() + 2),
            None if is_carets(line) => label_below(line, columns),
            None if is_source(line) => vec![cut_end(line, columns)],
            None => wrap(line, columns, 2),
        };
        out.extend(rows.into_iter().map(|row| (row, *role)));
    }
    out
}

fn is_source(line: &str) -> bool {
    line.split_once(" |").is_some_and(|(before, _)| before.trim().chars().all(|c| c.is_ascii_digit()))
}

/// Carets and what they say; below them where it does not fit beside them.
fn label_below(line: &str, columns: usize) -> Vec<String> {
    let end = line.rfind('^').map_or(0, |at| at + 1);
    let (carets, label) = line.split_at(end);
    let gutter = line.find('|').map_or(0, |at| at + 1);
    if width(line) <= columns || label.trim().is_empty() {
        return vec![cut_end(line, columns)];
    }
    let below = format!("{} {}", &line[..gutter], label.trim());
    let mut out = vec![cut_end(carets, columns)];
    out.extend(wrap(&below, columns, gutter + 1));
    out
}

/// Lines from one on; returns how many there is room for.
pub(super) fn paint(c: &mut Canvas<'_>, area: Rect, lines: &[(String, Role)], top: usize) -> usize {
    let height = usize::from(area.height);
    let lines = fitted(lines, usize::from(area.width));
    let top = top.min(lines.len().saturating_sub(height));
    for (row, (line, role)) in lines.iter().skip(top).take(height).enumerate() {
        c.text(area, u16::try_from(row).unwrap_or(u16::MAX), line, *role);
    }
    height
}
