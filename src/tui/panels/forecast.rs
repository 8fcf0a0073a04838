//! What is expected of a job, in words: when it starts, whether it misses its deadline and why, what a change does to it.

use crate::model::{Cursor, Span};
use crate::protocol::{Expectation, JobRow};
use crate::tui::View;
use crate::tui::look::text::{between, moment, width};

/// `1h20m`, `35m`, `2d04h`.
pub(in crate::tui) fn distance(span: Span) -> String {
    let minutes = span.0.div_ceil(60_000);
    match minutes {
        0..60 => format!("{minutes}m"),
        60..2_880 => format!("{}h{:02}m", minutes / 60, minutes % 60),
        _ => format!("{}d{:02}h", minutes / 1_440, minutes % 1_440 / 60),
    }
}

fn at(v: &View<'_>, ms: i64) -> String {
    moment(ms, v.now.wall_ms, &v.ui.tz)
}

/// `about 10:26, no later than 11:56`; `None`: nobody knows.
pub(in crate::tui) fn starts(v: &View<'_>, row: &JobRow) -> Option<String> {
    match (row.starts_at, row.starts_by) {
        (Some(about), Some(latest)) => {
            Some(format!("about {}, no later than {}", at(v, about), at(v, latest)))
        }
        (Some(about), None) => Some(format!("about {}", at(v, about))),
        (None, Some(latest)) => Some(format!("no later than {}", at(v, latest))),
        (None, None) => None,
    }
}

/// `will miss 08:00 by 1h20m: #142 holds 2 GPUs until about 07:10`; `None`: it has no deadline or keeps it.
pub(in crate::tui) fn late(v: &View<'_>, row: &JobRow) -> Option<String> {
    let deadline = row.finish_by.filter(|_| row.late)?;
    let by = |end: i64| {
        let over = between(deadline, end);
        if over.0 == 0 { String::new() } else { format!(" by {}", distance(over)) }
    };
    let word = at(v, deadline);
    if let Some(done) = row.done_at {
        return Some(format!("missed {word}{}", by(done)));
    }
    if v.now.wall_ms > deadline {
        let end = row.finishes_at.map(|end| format!("; ends about {}", at(v, end))).unwrap_or_default();
        return Some(format!("missed {word}{}{end}", by(v.now.wall_ms)));
    }
    let Some(end) = row.finishes_at else {
        return Some(format!("will miss {word} if it needs all its time"));
    };
    let why = culprit(v, row).map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("will miss {word}{}{why}", by(end)))
}

/// Who keeps a job from ending in time: the last of those that must end before it starts.
fn culprit(v: &View<'_>, row: &JobRow) -> Option<String> {
    if row.state != Cursor::Queued {
        return row.finishes_at.map(|end| format!("it runs until about {}", at(v, end)));
    }
    let starts = row.starts_at?;
    if starts <= v.now.wall_ms + 60_000 {
        return Some("it needs longer than that".to_owned());
    }
    let holders = v.snap.jobs.iter().filter(|other| other.id != row.id && !other.open.is_empty());
    let ends = |other: &JobRow| other.finishes_at.or(other.limit_at);
    // A minute of slack: both are forecasts of one plan, and a start follows an end.
    let before =
        holders.filter_map(|other| Some((ends(other)?, other))).filter(|(end, _)| *end <= starts + 60_000);
    let (end, other) = before.max_by_key(|(end, other)| (*end, other.gpus))?;
    let what = match other.gpus {
        0 => format!("{} cores", other.cpus),
        1 => "1 GPU".to_owned(),
        gpus => format!("{gpus} GPUs"),
    };
    Some(format!("#{} holds {what} until about {}", other.id, at(v, end)))
}

/// `about 10:20 -> 11:40`: what the newest change does to a job, as fully as there is room for, and whether it is late by
/// it; `None`: nothing.
pub(in crate::tui) fn effect(v: &View<'_>, row: &JobRow, columns: usize) -> Option<(String, bool)> {
    let found = v.ui.fetched.effect.on(row.id)?;
    let word = |it: &Expectation| it.starts_at.map_or_else(|| "?".to_owned(), |start| at(v, start));
    let place = |it: &Expectation| it.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    let (about, old, new) = if word(&found.old) == word(&found.new) {
        ("place ", place(&found.old), place(&found.new))
    } else {
        ("about ", word(&found.old), word(&found.new))
    };
    let change = format!("{old} -> {new}");
    let late = match (found.old.late, found.new.late) {
        (false, true) => ", will be late",
        (true, false) => ", in time again",
        _ => "",
    };
    let forms = [
        format!("~{about}{change}{late}"),
        format!("~{about}{change}"),
        format!("~{change}"),
        format!("~{new}"),
    ];
    let fits = forms.iter().find(|form| width(form) <= columns).unwrap_or(&forms[3]);
    Some((fits.clone(), found.new.late))
}
