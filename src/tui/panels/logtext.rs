//! Job logs made fit for the screen: what programs print for terminals becomes lines of text with colours.
//!
//! Only colours pass. A carriage return starts the line again, so that a progress bar is one line in its last state;
//! tabs become blanks; links keep their text; everything else that would move the cursor, clear or switch screens is
//! taken out. Pure.

use crate::model::clean;
use crate::tui::look::colour::Depth;
use ansi_to_tui::IntoText as _;
use ratatui::text::{Line, Span};

/// One line as a program wrote it, without its line feed: what is left are printable characters and `ESC [ … m`.
pub(in crate::tui) fn tidy(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let kept = last_state(&text);
    let mut out = String::with_capacity(kept.len());
    let mut column = 0_usize;
    let mut chars = kept.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                if let Some(colour) = escape(&mut chars) {
                    out.push_str(&colour);
                }
            }
            '\t' => {
                let blanks = 8 - column % 8;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\u{8}' => {
                if out.ends_with(|c: char| !c.is_control()) && !out.ends_with('m') {
                    out.pop();
                    column = column.saturating_sub(1);
                }
            }
            c if c.is_control() => {}
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}

/// What a terminal shows of text with carriage returns: what was written after the last one that something followed.
fn last_state(text: &str) -> &str {
    let text = text.trim_end_matches('\r');
    text.rsplit('\r').find(|part| !part.is_empty()).unwrap_or(text)
}

/// Reads an escape sequence; returns it if it sets colours.
fn escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    match chars.peek() {
        Some('[') => {
            chars.next();
            let mut body = String::new();
            while let Some(c) = chars.peek().copied() {
                match c {
                    '\u{40}'..='\u{7e}' => {
                        chars.next();
                        let plain = body.chars().all(|c| c.is_ascii_digit() || c == ';' || c == ':');
                        return (c == 'm' && plain && body.len() <= 64).then(|| format!("\u{1b}[{body}m"));
                    }
                    '\u{20}'..='\u{3f}' => {
                        chars.next();
                        body.push(c);
                    }
                    // Broken off: what follows is text.
                    _ => return None,
                }
            }
            None
        }
        // Operating system commands, and strings of other kinds: up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    if chars.peek() == Some(&'\\') {
                        chars.next();
                    }
                    break;
                }
            }
            None
        }
        // Two characters; three where the second is an intermediate one.
        Some('\u{20}'..='\u{2f}') => {
            chars.next();
            chars.next();
            None
        }
        Some('\u{30}'..='\u{7e}') => {
            chars.next();
            None
        }
        _ => None,
    }
}

/// A tidied line as styled text.
pub(in crate::tui) fn styled(tidied: &str, depth: Depth, colours: bool) -> Line<'static> {
    let Some(mut line) = tidied.into_text().ok().and_then(|text| text.lines.into_iter().next()) else {
        return Line::raw(clean(tidied));
    };
    for span in &mut line.spans {
        if colours {
            span.style = depth.map_style(span.style);
        } else {
            span.style.fg = None;
            span.style.bg = None;
        }
        span.style.underline_color = None;
    }
    line
}

/// A line without its colours.
pub(in crate::tui) fn plain(tidied: &str) -> String {
    let mut out = String::with_capacity(tidied.len());
    let mut chars = tidied.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            escape(&mut chars);
        } else {
            out.push(c);
        }
    }
    out
}

/// The pieces that [`wrap`] cuts a text into.
pub(in crate::tui) fn wrapped(text: &str, columns: usize) -> usize {
    let columns = columns.max(1);
    let (mut rows, mut rest) = (1, text);
    loop {
        let part = crate::tui::look::text::cut(rest, columns);
        // One character wider than the pane has a row of its own.
        let taken = if part.is_empty() { rest.chars().next().map_or(0, char::len_utf8) } else { part.len() };
        rest = &rest[taken..];
        if rest.is_empty() {
            return rows;
        }
        rows += 1;
    }
}

/// Cuts a line into pieces of at most `columns` columns each: at least one piece.
pub(in crate::tui) fn wrap(line: &Line<'static>, columns: usize) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let mut out = vec![Line::default().style(line.style)];
    let mut used = 0;
    for span in &line.spans {
        let mut rest: &str = &span.content;
        while !rest.is_empty() {
            let mut part = crate::tui::look::text::cut(rest, columns - used);
            if part.is_empty() {
                if used == 0 {
                    // One character wider than the pane.
                    let first = rest.chars().next().map_or(rest.len(), char::len_utf8);
                    part = &rest[..first];
                } else {
                    out.push(Line::default().style(line.style));
                    used = 0;
                    continue;
                }
            }
            if let Some(last) = out.last_mut() {
                last.spans.push(Span::styled(part.to_owned(), span.style));
            }
            used = (used + crate::tui::look::text::width(part)).min(columns);
            rest = &rest[part.len()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Color;

    #[test]
    fn as_many_rows_are_counted_as_a_line_is_wrapped_into() {
        for text in ["", "a", "abcdefghij", "日本語日本語日本語", "a日b本c語", "日"] {
            for columns in 0..12 {
                let line = Line::from(text.to_owned());
                assert_eq!(wrapped(text, columns), wrap(&line, columns).len(), "{text:?} in {columns}");
            }
        }
    }

    #[test]
    fn a_carriage_return_starts_the_line_again() {
        assert_eq!(tidy(b" 10%|#   |\r 50%|##  |\r100%|####|"), "100%|####|");
        assert_eq!(tidy(b"done\r"), "done");
        assert_eq!(tidy(b"50%\r"), "50%");
        assert_eq!(tidy(b"\r\r"), "");
    }

    #[test]
    fn tabs_become_blanks_up_to_the_next_stop() {
        assert_eq!(tidy(b"a\tb\tc"), "a       b       c");
        assert_eq!(tidy(b"\x1b[31mab\x1b[0m\tc"), "\x1b[31mab\x1b[0m      c");
    }

    #[test]
    fn only_colours_are_left_of_escape_sequences() {
        for (raw, left) in [
            (&b"\x1b[2J\x1b[?1049hkept"[..], "kept"),
            (b"\x1b]8;;https://x.y/z\x1b\\link\x1b]8;;\x1b\\ end", "link end"),
            (b"\x1b]8;;https://x.y/z\x07link\x1b]8;;\x07 end", "link end"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1bPsixel\x1b\\text", "text"),
            (b"\x1b(Btext", "text"),
            (b"\x1bctext", "text"),
            (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            (b"\x1b[>4;2mtext", "text"),
            (b"\x1b[31", ""),
            (b"\x1b", ""),
            (b"a\x00b\x07c", "abc"),
            (b"abc\x08\x08d", "ad"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(tidy(raw), left, "{raw:?}");
        }
    }

    #[test]
    fn nothing_that_moves_the_cursor_survives_any_bytes() {
        let mut seed = 7_u32;
        let alphabet = b"\x1b[]?;0189mHhJ\\\x07\x08\r\t P_^X(c ab";
        for _ in 0..2000 {
            let raw: Vec<u8> = (0..24)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    alphabet[(seed >> 16) as usize % alphabet.len()]
                })
                .collect();
            let text = tidy(&raw);
            assert!(plain(&text).chars().all(|c| !c.is_control()), "{raw:?} -> {text:?}");
            let line = styled(&text, Depth::C256, true);
            assert!(line.spans.iter().all(|s| !s.content.contains(char::is_control)), "{raw:?} -> {line:?}");
        }
    }

    #[test]
    fn colours_follow_the_depth_and_can_be_taken_off() {
        let fg = |depth, colours| styled("\x1b[38;2;255;0;0mred\x1b[0m", depth, colours).spans[0].style.fg;
        assert_eq!(fg(Depth::True, true), Some(Color::Rgb(255, 0, 0)));
        assert_eq!(fg(Depth::C256, true), Some(Color::Indexed(196)));
        assert_eq!(fg(Depth::Mono, true), None);
        assert_eq!(fg(Depth::True, false), None);
    }

    #[test]
    fn wrapped_lines_lose_nothing() {
        let line = styled("\x1b[31mabc\x1b[0mdefg日本語", Depth::True, true);
        for columns in 1..12 {
            let wrapped = wrap(&line, columns);
            let joined: String = wrapped.iter().map(Line::to_string).collect();
            assert_eq!(joined, "abcdefg日本語");
            assert!(columns == 1 || wrapped.iter().all(|l| l.width() <= columns), "{columns}");
        }
        assert_eq!(wrap(&Line::raw(""), 10).len(), 1);
    }
}
