//! Moments as people write them, resolved once.

use super::findings::{Finding, error};
use super::reader::{Field, Reader};
use super::tree::Mark;
use super::unknown;
use crate::model::parse_span;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Timestamp, ToSpan, ZonedDateTime};

const FORMS: &str = "`tomorrow 08:00`, `fri 09:00`, `in 10h`, `2026-12-01 08:00`";
const DAYS: &[(&str, Option<Weekday>)] = &[
    ("today", None),
    ("tomorrow", None),
    ("monday", Some(Weekday::Monday)),
    ("tuesday", Some(Weekday::Tuesday)),
    ("wednesday", Some(Weekday::Wednesday)),
    ("thursday", Some(Weekday::Thursday)),
    ("friday", Some(Weekday::Friday)),
    ("saturday", Some(Weekday::Saturday)),
    ("sunday", Some(Weekday::Sunday)),
];

impl Reader<'_, '_> {
    /// A moment, in wall milliseconds.
    pub(super) fn moment(&mut self, field: Field<'_>) -> Option<i64> {
        let text = self.text(field)?.trim();
        let now =
            Timestamp::from_millisecond(self.cx.now_wall_ms).ok()?.to_zoned_datetime(self.cx.zone.clone());
        match resolve(text, &now) {
            Ok(zoned) => Some(zoned.timestamp().as_millisecond()),
            Err(reason) => {
                let finding = reason.finding(field.name, text, field.value.mark);
                self.add(finding);
                None
            }
        }
    }

    /// A wall moment as the owner reads it: the time, with the day if it is another one.
    pub(super) fn shown_moment(&self, wall_ms: i64) -> String {
        let at =
            |ms: i64| Timestamp::from_millisecond(ms).map(|at| at.to_zoned_datetime(self.cx.zone.clone()));
        match (at(wall_ms), at(self.cx.now_wall_ms)) {
            (Ok(then), Ok(now)) if then.date() == now.date() => then.strftime("%H:%M").to_string(),
            (Ok(then), Ok(_)) => then.strftime("%a %Y-%m-%d %H:%M").to_string(),
            (Err(_), _) | (_, Err(_)) => "out of range".to_owned(),
        }
    }
}

enum Reason {
    Day(String),
    Clock(String),
    NoTime,
    Span,
    Form,
    Range,
}

impl Reason {
    fn finding(self, name: &str, text: &str, mark: Mark) -> Finding {
        match self {
            Self::Day(word) => {
                let width = word.chars().count() as u32;
                let finding = error(
                    23,
                    Mark { width: width.min(mark.width), ..mark },
                    format!("{name}: `{word}` is not a day"),
                );
                match unknown::nearest(&word.to_lowercase(), DAYS.iter().map(|(day, _)| *day)) {
                    Some(day) => finding.hint(format!("did you mean `{day}`? Such as {FORMS}")),
                    None => finding.hint(FORMS),
                }
            }
            Self::Clock(better) => {
                error(24, mark, format!("{name}: `{text}`: the clock has 24 hours, HH:MM"))
                    .hint(format!("write `{better}`"))
            }
            Self::NoTime => error(24, mark, format!("{name}: `{text}` has no time of day"))
                .hint(format!("write `{text} 08:00`")),
            Self::Span => error(23, mark, format!("{name}: `{text}`: in how long?"))
                .hint("`in 10h`, `in 1h30m`, `in 2d`"),
            Self::Form => error(23, mark, format!("{name}: `{text}` is not a moment")).hint(FORMS),
            Self::Range => error(23, mark, format!("{name}: `{text}` is out of range")).hint(FORMS),
        }
    }
}

fn resolve(text: &str, now: &ZonedDateTime) -> Result<ZonedDateTime, Reason> {
    let lower = text.to_lowercase();
    if let Some(rest) = lower.strip_prefix("in ") {
        let span = parse_span(rest).map_err(|_| Reason::Span)?;
        return now.checked_add((span.0 as i64).milliseconds()).map_err(|_| Reason::Range);
    }
    if lower.starts_with(|c: char| c.is_ascii_digit()) {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(at.to_zoned_datetime(now.time_zone().clone()));
        }
        if let Some(time) = clock(&lower) {
            let today = at(now, now.date(), time)?;
            return if today > *now { Ok(today) } else { at(now, day_after(now.date(), 1)?, time) };
        }
        if lower.contains('-') {
            let (date, rest) = lower.split_once([' ', 't']).unwrap_or((lower.as_str(), ""));
            let date: Date = date.parse().map_err(|_| Reason::Form)?;
            return match (rest.trim(), clock(rest.trim())) {
                ("", _) => Err(Reason::NoTime),
                (_, Some(time)) => at(now, date, time),
                (rest, None) => {
                    Err(twelve_hours(rest)
                        .map_or(Reason::Form, |clock| Reason::Clock(format!("{date} {clock}"))))
                }
            };
        }
        return Err(twelve_hours(&lower).map_or(Reason::Form, Reason::Clock));
    }
    let (word, rest) = lower.split_once(' ').unwrap_or((lower.as_str(), ""));
    let day = DAYS.iter().find(|(name, weekday)| {
        *name == word || (weekday.is_some() && word.len() >= 3 && name.starts_with(word))
    });
    let Some((name, weekday)) = day else {
        let written = text.split(' ').next().unwrap_or(text);
        let looks_like_a_day = written.chars().all(char::is_alphabetic) && !written.is_empty();
        return Err(if looks_like_a_day { Reason::Day(written.to_owned()) } else { Reason::Form });
    };
    let rest = rest.trim();
    if rest.is_empty() {
        return Err(Reason::NoTime);
    }
    let Some(time) = clock(rest) else {
        return Err(twelve_hours(rest).map_or(Reason::Form, |clock| Reason::Clock(format!("{word} {clock}"))));
    };
    match weekday {
        None => at(now, day_after(now.date(), i64::from(*name == "tomorrow"))?, time),
        Some(weekday) => {
            let days = (i64::from(weekday.to_monday_zero_offset())
                - i64::from(now.date().weekday().to_monday_zero_offset()))
            .rem_euclid(7);
            let then = at(now, day_after(now.date(), days)?, time)?;
            if then > *now { Ok(then) } else { at(now, day_after(now.date(), days + 7)?, time) }
        }
    }
}

fn at(now: &ZonedDateTime, date: Date, time: Time) -> Result<ZonedDateTime, Reason> {
    DateTime::from_parts(date, time).to_zoned_datetime(now.time_zone().clone()).map_err(|_| Reason::Range)
}

fn day_after(date: Date, days: i64) -> Result<Date, Reason> {
    date.checked_add(days.days()).map_err(|_| Reason::Range)
}

/// `08:00`, `8:00`, `08:00:30`.
fn clock(text: &str) -> Option<Time> {
    let mut parts = text.split(':').map(|part| {
        (!part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit()))
            .then(|| part.parse::<i8>().ok())
            .flatten()
    });
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

/// `8am`, `8:30 pm`, `8` in the notation wanted here.
fn twelve_hours(text: &str) -> Option<String> {
    let text = text.trim();
    let (number, later) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(rest), _) => (rest, Some(false)),
        (None, Some(rest)) => (rest, Some(true)),
        (None, None) => (text, None),
    };
    let (hour, minute) = number.trim().split_once(':').unwrap_or((number.trim(), "0"));
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match later {
        Some(true) if hour < 12 => hour + 12,
        Some(false) if hour == 12 => 0,
        _ => hour,
    };
    (hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}
