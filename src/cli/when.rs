//! Times as people write and read them here: local, 24 h, the date when it is not today.

use super::CliError;
use crate::model::parse_span;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A moment for people.
pub(super) fn text(ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let (at, now) = (local(ms, zone), local(now_ms, zone));
    if at.date() == now.date() {
        at.strftime("%H:%M").to_string()
    } else {
        at.strftime("%Y-%m-%d %H:%M").to_string()
    }
}

/// A moment with seconds, for lines that tell of changes.
pub(super) fn exact(ms: i64, zone: &TimeZone) -> String {
    local(ms, zone).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `--since` and `--until`: a length of time before now, `today`, `yesterday`, a date, a date and time, or RFC 3339.
pub(super) fn parse(what: &str, typed: &str, now_ms: i64, zone: &TimeZone) -> Result<i64, CliError> {
    let today = local(now_ms, zone).date();
    if let Ok(span) = parse_span(typed) {
        return Ok(now_ms - span.0 as i64);
    }
    let start_of = |date: Date| zone.to_timestamp(date.into());
    let read = match typed {
        "now" => Timestamp::from_millisecond(now_ms),
        "today" => start_of(today),
        "yesterday" => today.checked_sub(1.day()).and_then(start_of),
        _ => typed.parse::<Timestamp>().or_else(|_| {
            // A date alone is read as its first moment.
            let civil: DateTime =
                typed.parse::<DateTime>().or_else(|_| typed.parse::<Date>().map(DateTime::from))?;
            zone.to_timestamp(civil)
        }),
    };
    read.map(Timestamp::as_millisecond).map_err(|_| CliError::Usage {
        what: format!("{what} {typed}"),
        why: "write a length of time (7d), a date (2026-11-30), a date and time (2026-11-30 08:00), today or yesterday"
            .to_owned(),
    })
}

fn local(ms: i64, zone: &TimeZone) -> DateTime {
    zone.to_datetime(Timestamp::from_millisecond(ms).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2026-11-30 07:00 UTC, 09:00 here.
        let now = 1_796_022_000_000;
        let read = |typed: &str| text(parse("--since", typed, now, &zone).unwrap(), now, &zone);
        assert_eq!(read("now"), "09:00");
        assert_eq!(read("2h"), "07:00");
        assert_eq!(read("today"), "00:00");
        assert_eq!(read("yesterday"), "2026-11-29 00:00");
        assert_eq!(read("2026-11-01"), "2026-11-01 00:00");
        assert_eq!(read("2026-11-01 08:30"), "2026-11-01 08:30");
        assert_eq!(read("2026-11-30T06:00:00Z"), "08:00");
        assert!(parse("--since", "soon", now, &zone).is_err());
    }
}
