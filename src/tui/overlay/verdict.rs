//! Findings and texts as lines of an overlay: with carets, scrolled, and in their colours.

use crate::jobfile::{RenderStyle, render};
use crate::protocol::Diagnostic;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::cut;
use crate::tui::look::theme::Role;
use ratatui::layout::Rect;

/// Findings as a person sees them everywhere, a role for each line.
pub(super) fn lines(findings: &[Diagnostic]) -> Vec<(String, Role)> {
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

/// Lines from one on; returns how many there is room for.
pub(super) fn paint(c: &mut Canvas<'_>, area: Rect, lines: &[(String, Role)], top: usize) -> usize {
    let height = usize::from(area.height);
    let top = top.min(lines.len().saturating_sub(height));
    for (row, (line, role)) in lines.iter().skip(top).take(height).enumerate() {
        c.text(area, u16::try_from(row).unwrap_or(u16::MAX), cut(line, usize::from(area.width)), *role);
    }
    height
}
