//! The times that programs print at the beginning of their lines: a log has no others. Pure.

use crate::tui::look::text::{left, width};

/// What of the times in a log is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// As they were printed.
    #[default]
    Clock,
    /// How long after the line before.
    Relative,
    /// None.
    Off,
}

impl Times {
    /// The next one, and what it is.
    pub(in crate::tui) const fn next(self) -> (Self, &'static str) {
        match self {
            Self::Clock => (Self::Relative, "times: since the line before"),
            Self::Relative => (Self::Off, "times are not shown"),
            Self::Off => (Self::Clock, "times as they were printed"),
        }
    }
}

/// A time at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) struct Stamp {
    /// The columns it takes, with what parts it from the text.
    pub(in crate::tui) columns: usize,
    /// Seconds of the day.
    seconds: i64,
}

/// Takes what the pattern has from the front: `0` is any digit, the rest itself.
fn take<'a>(text: &'a str, pattern: &str) -> Option<&'a str> {
    let head = text.as_bytes().get(..pattern.len())?;
    let fits =
        |(byte, wanted): (&u8, u8)| if wanted == b'0' { byte.is_ascii_digit() } else { *byte == wanted };
    head.iter().zip(pattern.bytes()).all(fits).then(|| &text[pattern.len()..])
}

/// The time that a line without colours begins with: `09:26:01`, `[2026-11-30 09:26:01,123]`, `2026-11-30T09:26:01Z`.
pub(in crate::tui) fn stamp(line: &str) -> Option<Stamp> {
    let inner = line.strip_prefix('[').unwrap_or(line);
    let dated = take(inner, "0000-00-00 ").or_else(|| take(inner, "0000-00-00T"));
    let clock = dated.or_else(|| take(inner, "0000/00/00 ")).unwrap_or(inner);
    let rest = take(clock, "00:00:00")?;
    let part = |at: usize| clock.get(at..at + 2).and_then(|digits| digits.parse::<i64>().ok());
    let seconds = part(0)? * 3600 + part(3)? * 60 + part(6)?;
    let rest = match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            fraction.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    };
    let zone = rest.strip_prefix('Z').or_else(|| take(rest, "+00:00")).or_else(|| take(rest, "-00:00"));
    let rest = zone.unwrap_or(rest);
    let rest = rest.strip_prefix(']').unwrap_or(rest);
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some(Stamp { columns: width(&line[..line.len() - rest.len()]), seconds })
}

impl Stamp {
    /// `+6 s`, in a column of its own: since the time before.
    pub(in crate::tui) fn since(self, before: Option<Self>) -> String {
        let Some(before) = before else { return left("", SINCE) };
        let seconds = (self.seconds - before.seconds).rem_euclid(86_400);
        let text = match seconds {
            0..60 => format!("+{seconds}s"),
            60..3600 => format!("+{}m{:02}", seconds / 60, seconds % 60),
            _ => format!("+{}h{:02}", seconds / 3600, seconds / 60 % 60),
        };
        left(&text, SINCE)
    }
}

/// Columns of the time since the line before.
const SINCE: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_programs_print_them() {
        for (line, columns) in [
            ("09:26:01 step", 9),
            ("[09:26:01] step", 11),
            ("2026-11-30 09:26:01,123 INFO", 24),
            ("[2026-11-30T09:26:01.5Z] x", 25),
            ("2026/11/30 09:26:01 x", 20),
            ("2026-11-30T09:26:01+02:00 x", 26),
            ("09:26:01", 8),
        ] {
            assert_eq!(stamp(line), Some(Stamp { columns, seconds: 9 * 3600 + 26 * 60 + 1 }), "{line}");
        }
        for line in ["step 1", "9:26", "", "2026-11-30", "日本 09:26:01"] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }

    #[test]
    fn the_time_since_the_line_before_goes_over_midnight() {
        let at = |line| stamp(line).unwrap();
        assert_eq!(at("09:26:07 x").since(stamp("09:26:01 x")), "+6s    ");
        assert_eq!(at("00:00:05 x").since(stamp("23:58:05 x")), "+2m00  ");
        assert_eq!(at("11:30:00 x").since(stamp("09:26:00 x")), "+2h04  ");
        assert_eq!(at("09:26:07 x").since(None), "       ");
    }
}
