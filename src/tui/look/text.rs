//! Words and numbers as the screen shows them. Pure; no styles.

use crate::model::{Bytes, Outcome, Span};
use crate::protocol::JobRow;
use crate::tui::look::theme::Role;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthChar;

/// Columns a text takes: the sum over its characters, so that cutting and measuring agree.
pub(in crate::tui) fn width(text: &str) -> usize {
    text.chars().map(|c| UnicodeWidthChar::width(c).unwrap_or(0)).sum()
}

/// The longest beginning that fits.
pub(in crate::tui) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += UnicodeWidthChar::width(c).unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// The longest end that fits.
pub(in crate::tui) fn cut_front(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += UnicodeWidthChar::width(c).unwrap_or(0);
        if used > columns {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Cuts the end off with `..`.
pub(in crate::tui) fn cut_end(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < 5 {
        return cut(text, columns).to_owned();
    }
    format!("{}..", cut(text, columns - 2).trim_end())
}

/// Cuts in the middle with `..`, so that names that differ at the end stay apart.
pub(in crate::tui) fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns < 5 {
        return cut(text, columns).to_owned();
    }
    let tail = (columns - 2) / 2;
    format!("{}..{}", cut(text, columns - 2 - tail), cut_front(text, tail))
}

/// A text in lines of at most `columns`, between words where that can be; lines after the first are indented.
pub(in crate::tui) fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let columns = columns.max(2);
    let pad = " ".repeat(if indent + 8 <= columns { indent } else { 0 });
    let mut out = Vec::new();
    let mut rest = text.to_owned();
    while width(&rest) > columns {
        let fits = cut(&rest, columns).len();
        let lead = rest.len() - rest.trim_start().len();
        // A line is broken at its last blank, if more than its indentation stands before it.
        let blank =
            rest.get(..fits + 1).unwrap_or(&rest[..fits]).rfind(' ').filter(|at| *at > lead.max(pad.len()));
        let at = blank.unwrap_or(fits).max(1);
        out.push(rest[..at].trim_end().to_owned());
        rest = format!("{pad}{}", rest[at..].trim_start());
    }
    out.push(rest);
    out
}

/// Cut and filled to exactly `columns`, left-aligned.
pub(in crate::tui) fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Cut and filled to exactly `columns`, right-aligned.
pub(in crate::tui) fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A text from a column on; half of a wide character is a blank.
pub(in crate::tui) fn from_column(text: &str, columns: usize) -> String {
    let gone = cut(text, columns);
    let rest = &text[gone.len()..];
    if width(gone) == columns || rest.is_empty() {
        return rest.to_owned();
    }
    let mut rest = rest.chars();
    let halved = rest.next().is_some();
    if halved { format!(" {}", rest.as_str()) } else { String::new() }
}

/// GPU-hours with two decimals; fewer where the number is long.
pub(in crate::tui) fn hours(gpu_ms: u64) -> String {
    let hours = gpu_ms as f64 / 3_600_000.0;
    if hours < 1000.0 { format!("{hours:.2}") } else { format!("{hours:.0}") }
}

/// A running time: `4m05s` below ten minutes, then `0h12m`, then `3d04h`.
pub(in crate::tui) fn duration(span: Span) -> String {
    let s = span.as_secs();
    match s {
        0..600 => format!("{}m{:02}s", s / 60, s % 60),
        600..360_000 => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d{:02}h", s / 86_400, s % 86_400 / 3600),
    }
}

/// A waiting time, to the minute: waiting must not make the screen move every second.
pub(in crate::tui) fn minutes(span: Span) -> String {
    let s = span.as_secs();
    if s < 360_000 { format!("{}h{:02}m", s / 3600, s % 3600 / 60) } else { duration(span) }
}

/// From one wall time to another, never negative.
pub(in crate::tui) fn between(from_ms: i64, to_ms: i64) -> Span {
    Span(u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(0))
}

/// Local time of day with seconds.
pub(in crate::tui) fn clock(wall_ms: i64, tz: &TimeZone) -> String {
    format(wall_ms, tz, "%H:%M:%S")
}

/// Local time to the minute; with the date when it is not the day of `now_ms`.
pub(in crate::tui) fn moment(wall_ms: i64, now_ms: i64, tz: &TimeZone) -> String {
    let day = |ms| format(ms, tz, "%Y-%m-%d");
    if day(wall_ms) == day(now_ms) {
        format(wall_ms, tz, "%H:%M")
    } else {
        format(wall_ms, tz, "%b %d %H:%M")
    }
}

fn format(wall_ms: i64, tz: &TimeZone, form: &str) -> String {
    Timestamp::from_millisecond(wall_ms)
        .map_or_else(|_| "?".to_owned(), |at| at.to_zoned_datetime(tz.clone()).strftime(form).to_string())
}

/// Whole gibibytes, as a GPU's row has room for: `71`.
pub(in crate::tui) fn gib(bytes: Bytes) -> u64 {
    (bytes.0 + Bytes::GIB / 2) / Bytes::GIB
}

/// A job's state in one word, and the role of its colour.
pub(in crate::tui) fn state(row: &JobRow) -> (&'static str, Role) {
    use crate::model::Cursor as C;
    match row.state {
        C::Done => row.outcome.as_ref().map_or(("DONE", Role::Done), result),
        _ if row.cancel_at.is_some() => ("STOP", Role::Stop),
        C::Queued if row.editing.is_some() => ("EDIT", Role::Paused),
        C::Queued if row.paused_by.is_some() => ("PAUS", Role::Paused),
        C::Queued => ("WAIT", Role::Wait),
        C::Renting => ("RENT", Role::Rent),
        C::Running => ("RUN", Role::Run),
        C::Returning => ("OUT", Role::Out),
        C::Releasing => ("FREE", Role::Rel),
    }
}

/// The word of an outcome.
pub(in crate::tui) fn result(outcome: &Outcome) -> (&'static str, Role) {
    match outcome {
        Outcome::Succeeded => ("DONE", Role::Done),
        Outcome::Failed(_) | Outcome::NeverStarted { .. } => ("FAIL", Role::Fail),
        Outcome::LimitReached => ("LIMIT", Role::Fail),
        Outcome::Cancelled { .. } => ("CANC", Role::Stop),
        Outcome::Lost { .. } => ("LOST", Role::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(cut_middle("llama-ft-70b-lr1e-4", 12), "llama..r1e-4");
        assert_eq!(cut_middle("short", 12), "short");
        assert_eq!(cut_middle("abcdef", 3), "abc");
        assert_eq!(cut_middle("日本語日本語日本語", 10), "日本..本語");
        assert_eq!(cut_middle("anything", 0), "");
    }

    #[test]
    fn long_lines_go_on_below_and_lose_nothing() {
        assert_eq!(wrap("short", 9, 2), ["short"]);
        assert_eq!(wrap("  a: one two three", 12, 4), ["  a: one two", "    three"]);
        assert_eq!(wrap("one two", 4, 9), ["one", "two"]);
        assert_eq!(wrap("/a/path/without/blanks", 10, 1), ["/a/path/wi", " thout/bla", " nks"]);
        assert_eq!(wrap("日本語日本語", 5, 0), ["日本", "語日", "本語"]);
        for text in ["   ", "", "a b c d e f g", "      deep deep deep deep", "日本語 x 日本語日本語"]
        {
            for columns in 0..20 {
                for line in wrap(text, columns, 4) {
                    assert!(width(&line) <= columns.max(2), "{text:?} {columns} {line:?}");
                }
                let all = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
                assert_eq!(all(&wrap(text, columns, 4).concat()), all(text), "{columns}");
            }
        }
    }

    #[test]
    fn columns_are_exact_whatever_the_text() {
        for text in ["", "a", "日本語", "a-long-name", "e\u{301}e\u{301}"] {
            for columns in 0..12 {
                assert_eq!(width(&left(text, columns)), columns, "{text:?} {columns}");
                assert_eq!(width(&right(text, columns)), columns, "{text:?} {columns}");
            }
        }
    }

    #[test]
    fn durations_show_seconds_only_while_young() {
        for (seconds, shown) in [
            (0, "0m00s"),
            (245, "4m05s"),
            (599, "9m59s"),
            (600, "0h10m"),
            (3720, "1h02m"),
            (360_000, "4d04h"),
        ] {
            assert_eq!(duration(Span::secs(seconds)), shown);
        }
    }

    #[test]
    fn a_text_from_a_column_on_never_begins_within_a_character() {
        assert_eq!(from_column("abcdef", 2), "cdef");
        assert_eq!(from_column("日本語", 2), "本語");
        assert_eq!(from_column("日本語", 3), " 語");
        assert_eq!(from_column("日本語", 5), " ");
        assert_eq!(from_column("ab", 7), "");
    }

    #[test]
    fn hours_keep_two_decimals() {
        assert_eq!(hours(7_452_000), "2.07");
        assert_eq!(hours(0), "0.00");
        assert_eq!(hours(3_600_000 * 12_345), "12345");
    }
}
