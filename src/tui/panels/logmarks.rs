//! What is shown before a line of a log: when it came, and `!` if it came from standard error. Pure.

use crate::supervisor::marks::{Mark, Stream};
use crate::tui::look::text::{clock, left};
use crate::tui::look::theme::{Role, Theme};
use jiff::tz::TimeZone;
use ratatui::text::Span;

/// How the times of lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// They are not.
    #[default]
    Off,
    /// How long after the line before.
    Relative,
    /// The time of day.
    Clock,
}

impl Times {
    /// The next one, and what it is.
    pub(in crate::tui) const fn next(self) -> (Self, &'static str) {
        match self {
            Self::Off => (Self::Relative, "times: since the line before"),
            Self::Relative => (Self::Clock, "times: when each line came"),
            Self::Clock => (Self::Off, "times are not shown"),
        }
    }

    const fn columns(self) -> usize {
        match self {
            Self::Off => 0,
            Self::Relative => "+59m59 ".len(),
            Self::Clock => "09:26:01 ".len(),
        }
    }
}

const OF_STDERR: &str = "! ";

fn is_stderr(mark: &Mark) -> bool {
    mark.stream == Some(Stream::Err)
}

/// Columns of what is before a line.
pub(in crate::tui) fn columns(mark: &Mark, times: Times) -> usize {
    times.columns() + if is_stderr(mark) { OF_STDERR.len() } else { 0 }
}

/// What is before a line, after the line with the mark `before`.
pub(in crate::tui) fn pieces(
    mark: &Mark,
    before: Option<&Mark>,
    times: Times,
    tz: &TimeZone,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let time = match times {
        Times::Off => None,
        Times::Relative => Some(since(mark.second, before.and_then(|before| before.second))),
        Times::Clock => {
            Some(mark.second.map_or_else(String::new, |second| clock(second.saturating_mul(1000), tz)))
        }
    };
    let time = time.map(|time| Span::styled(left(&time, times.columns()), theme.style(Role::Timestamp)));
    let stderr = is_stderr(mark).then(|| Span::styled(OF_STDERR, theme.style(Role::Stderr)));
    time.into_iter().chain(stderr).collect()
}

/// `+6s`
fn since(own: Option<i64>, before: Option<i64>) -> String {
    let (Some(own), Some(before)) = (own, before) else { return String::new() };
    // A clock that was set back.
    let seconds = (own - before).max(0);
    match seconds {
        0..60 => format!("+{seconds}s"),
        60..3600 => format!("+{}m{:02}", seconds / 60, seconds % 60),
        3600..360_000 => format!("+{}h{:02}", seconds / 3600, seconds / 60 % 60),
        _ => format!("+{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::look::colour::Depth;

    fn mark(second: i64, stream: Stream) -> Mark {
        Mark { at: 0, second: Some(second), stream: Some(stream) }
    }

    fn shown(mark: &Mark, before: Option<&Mark>, times: Times) -> String {
        let pieces = pieces(mark, before, times, &TimeZone::UTC, &Theme::auto(Depth::Mono));
        let text: String = pieces.iter().map(|piece| piece.content.as_ref()).collect();
        assert_eq!(text.len(), columns(mark, times));
        text
    }

    #[test]
    fn a_line_is_after_its_time_and_that_of_stderr_after_its_mark() {
        let out = mark(33_961, Stream::Out);
        let err = mark(33_967, Stream::Err);
        assert_eq!(shown(&out, None, Times::Off), "");
        assert_eq!(shown(&err, Some(&out), Times::Off), "! ");
        assert_eq!(shown(&err, Some(&out), Times::Relative), "+6s    ! ");
        assert_eq!(shown(&out, None, Times::Relative), "       ");
        assert_eq!(shown(&err, None, Times::Clock), "09:26:07 ! ");
        assert_eq!(shown(&Mark::default(), Some(&out), Times::Clock), "         ");
        assert_eq!(shown(&Mark::default(), Some(&out), Times::Relative), "       ");
    }

    #[test]
    fn times_between_lines_are_as_short_as_they_are_long() {
        for (seconds, text) in [
            (0, "+0s"),
            (59, "+59s"),
            (125, "+2m05"),
            (7_470, "+2h04"),
            (359_999, "+99h59"),
            (400_000, "+4d"),
            (-9, "+0s"),
        ] {
            assert_eq!(since(Some(seconds), Some(0)), text);
        }
    }
}
