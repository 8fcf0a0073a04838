//! What is searched for in a log, and what only is shown of it. Pure.
//!
//! Plain text, or a regular expression after `re:`. Small letters find large ones too; a large letter means itself. What
//! is compared is what is shown: colours and earlier states of a progress bar do not count.

use crate::tui::panels::logtext::{plain, tidy};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::{ControlFlow, Range};

/// What is searched for.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// A compiled expression takes no more than this.
const REGEX_BYTES: usize = 1 << 20;

impl Pattern {
    /// From what was typed; the text says what is wrong with it.
    pub fn new(typed: &str) -> Result<Self, String> {
        let source = typed.strip_prefix("re:").map_or_else(|| regex::escape(typed), str::to_owned);
        let regex = RegexBuilder::new(&source)
            .case_insensitive(!has_capital(typed))
            .multi_line(true)
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| {
                let last = error.to_string();
                let last = last.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
                format!("{typed}: {last}")
            })?;
        Ok(Self { text: typed.to_owned(), regex })
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The lines of a piece of a log that match, each without its line feed, until one is enough.
    pub(in crate::tui) fn lines(
        &self,
        bytes: &[u8],
        mut each: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let line_end =
            |at: usize| bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
        let mut from = 0;
        if needs_tidying(bytes) {
            while from < bytes.len() {
                let end = line_end(from);
                if self.is_in(&bytes[from..end]) {
                    each(from..end)?;
                }
                from = end + 1;
            }
            return ControlFlow::Continue(());
        }
        // Whole pieces at once: most lines are never looked at by themselves.
        while from < bytes.len() {
            let Some(found) = self.regex.find_at(bytes, from) else { break };
            let begin = bytes[..found.start()].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let end = line_end(begin.max(found.start()));
            // An expression may have matched over the end of a line.
            if found.end() <= end || self.is_in(&bytes[begin..end]) {
                each(begin..end)?;
            }
            from = end + 1;
        }
        ControlFlow::Continue(())
    }

    /// Whether a line of text matches.
    pub(in crate::tui) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }

    /// Whether a line as its program wrote it matches.
    pub(in crate::tui) fn is_in(&self, raw: &[u8]) -> bool {
        if needs_tidying(raw) {
            self.regex.is_match(plain(&tidy(raw)).as_bytes())
        } else {
            self.regex.is_match(raw)
        }
    }

    /// Shows where a line matches.
    pub(in crate::tui) fn mark(&self, line: Line<'static>, style: Style) -> Line<'static> {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        let found: Vec<Range<usize>> = self
            .regex
            .find_iter(text.as_bytes())
            .map(|found| found.range())
            .filter(|r| !r.is_empty())
            .collect();
        if found.is_empty() {
            return line;
        }
        let mut spans = Vec::new();
        let mut at = 0;
        for span in &line.spans {
            let end = at + span.content.len();
            let mut from = at;
            while from < end {
                let inside = found.iter().find(|range| range.contains(&from));
                let next = match inside {
                    Some(range) => range.end.min(end),
                    None => found
                        .iter()
                        .map(|range| range.start)
                        .find(|start| *start > from)
                        .unwrap_or(end)
                        .min(end),
                };
                let style = if inside.is_some() { span.style.patch(style) } else { span.style };
                // Bytes that are no whole character: the expression has matched within one.
                let part = span.content.get(from - at..next - at).unwrap_or_default();
                spans.push(Span::styled(part.to_owned(), style));
                from = next;
            }
            at = end;
        }
        Line::from(spans).style(line.style)
    }
}

/// A large letter that is not part of an escape such as `\S`.
fn has_capital(typed: &str) -> bool {
    let is_regex = typed.starts_with("re:");
    let mut before = ' ';
    typed.chars().any(|c| {
        let capital = c.is_uppercase() && !(is_regex && before == '\\');
        before = c;
        capital
    })
}

/// Whether what is shown differs from what was written.
fn needs_tidying(bytes: &[u8]) -> bool {
    [0x1b, b'\r', b'\t', 0x8].iter().any(|control| bytes.contains(control))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Modifier;

    fn lines(typed: &str, log: &str) -> Vec<String> {
        let mut found = Vec::new();
        let pattern = Pattern::new(typed).unwrap();
        let _all = pattern.lines(log.as_bytes(), |range| {
            found.push(log[range].to_owned());
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn small_letters_find_large_ones_and_large_ones_mean_themselves() {
        let log = "An Error\nan error\nnothing\n";
        assert_eq!(lines("error", log), ["An Error", "an error"]);
        assert_eq!(lines("Error", log), ["An Error"]);
        assert_eq!(lines(r"re:\Serror", "xerror\n error\nxERROR"), ["xerror", "xERROR"]);
    }

    #[test]
    fn text_is_text_and_an_expression_is_one_line_long() {
        assert_eq!(lines("a.c", "abc\na.c\n"), ["a.c"]);
        assert_eq!(lines("re:^a.c$", "abc\nxabc\na.c\n"), ["abc", "a.c"]);
        assert_eq!(lines(r"re:b\s+c", "b\nc\nb c\n"), ["b c"]);
        assert_eq!(lines(r"re:b\s*", "b\nc\nb"), ["b", "b"]);
    }

    #[test]
    fn what_is_shown_is_what_matches() {
        assert_eq!(lines("loss: 3", "\x1b[1mloss\x1b[0m: 3\nloss 3\n").len(), 1);
        assert_eq!(lines("10%", " 10%\r 20%\r100%\nat 10%\n"), ["at 10%"]);
        assert_eq!(lines("a       b", "a\tb\n").len(), 1);
    }

    #[test]
    fn a_broken_expression_is_told_in_one_line() {
        let why = Pattern::new("re:(").unwrap_err();
        assert!(why.starts_with("re:(: ") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn every_match_is_marked_across_colours_and_nothing_else() {
        let line = Line::from(vec![Span::raw("one st"), Span::raw("ep two step 日本")]);
        let style = Style::new().add_modifier(Modifier::REVERSED);
        let marked = Pattern::new("step").unwrap().mark(line, style);
        let shown: String = marked
            .spans
            .iter()
            .map(|span| {
                let on = span.style.add_modifier.contains(Modifier::REVERSED);
                if on { format!("[{}]", span.content) } else { span.content.to_string() }
            })
            .collect();
        assert_eq!(shown, "one [st][ep] two [step] 日本");
    }
}
