//! The first lines: how many jobs are where, today's results, the meter, the screens, and how we stand with the scheduler.

use crate::protocol::Connection;
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::layout::Kind;
use crate::tui::look::canvas::{Canvas, Piece};
use crate::tui::look::text::{cut, duration, hours, width};
use crate::tui::look::theme::Role;
use crate::tui::rows;
use crate::tui::ui::{Screen, Ui};
use ratatui::layout::Rect;

/// The states that are counted, in the order of a job's life.
const COUNTED: [(&str, Role); 7] = [
    ("RUN", Role::Run),
    ("RENT", Role::Rent),
    ("STOP", Role::Stop),
    ("OUT", Role::Out),
    ("FREE", Role::Rel),
    ("WAIT", Role::Wait),
    ("PAUS", Role::Paused),
];

/// How many jobs are in a state.
pub(in crate::tui) fn count(v: &View<'_>, word: &str) -> usize {
    v.counted().iter().find(|(counted, _)| *counted == word).map_or(0, |(_, count)| *count)
}

pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, kind: Kind) {
    if area.height == 0 {
        return;
    }
    let (mut words, role) = connection(v.ui, kind);
    if kind == Kind::One && v.ui.known {
        words.insert_str(0, "| ");
    }
    let right = c.pieces_right(area, 0, &[(&words, role)]);
    let mut left = Rect { width: right.saturating_sub(area.x + 1), ..area };
    if kind == Kind::Three && v.ui.known {
        let theme = format!("theme {}", v.ui.theme);
        let end =
            c.pieces_right(Rect { width: left.width.saturating_sub(2), ..left }, 0, &[(&theme, Role::Dim)]);
        left.width = end.saturating_sub(left.x + 2);
    }
    if matches!(kind, Kind::Two | Kind::Three) {
        let tabs = screens(v, false);
        let tabs: Vec<Piece<'_>> = tabs.iter().map(|(text, role)| (text.as_str(), *role)).collect();
        let end = c.pieces_right(Rect { width: left.width.saturating_sub(1), ..left }, 0, &tabs);
        spots(c, Rect { x: end, ..left }, &tabs);
        left.width = end.saturating_sub(left.x + 1);
    }
    let host = cut(&v.snap.scheduler.host, 14);
    let first = [("overnight ", Role::Title), (host, Role::Text)];
    if !v.ui.known {
        c.pieces(left, 0, &first);
        return;
    }
    // The fullest words that fit; at last the counts alone, as many as there is room for.
    let room = usize::from(left.width)
        - first.iter().map(|(text, _)| width(text)).sum::<usize>().min(left.width.into());
    let forms = [("  ", true), (" ", true), ("  ", false), (" ", false)];
    let lines = forms.map(|(gap, with_today)| counts(v, kind, gap, with_today));
    let fits = |line: &&Vec<(String, Role)>| line.iter().map(|(text, _)| width(text)).sum::<usize>() <= room;
    let line = lines.iter().find(fits).unwrap_or(&lines[3]);
    let pieces = line.iter().map(|(text, role)| (text.as_str(), *role));
    let pieces: Vec<Piece<'_>> = first.into_iter().chain(pieces).collect();
    c.pieces(left, 0, &pieces);
}

/// How many jobs are in which state, and what became of those of today.
fn counts(v: &View<'_>, kind: Kind, gap: &str, with_today: bool) -> Vec<(String, Role)> {
    let mut out = Vec::new();
    for (word, role) in COUNTED {
        let n = count(v, word);
        if n > 0 || matches!(word, "RUN" | "WAIT") {
            out.push((format!("{gap}{word} {n}"), if n == 0 { Role::Dim } else { role }));
        }
    }
    if !with_today {
        return out;
    }
    let meter = &v.snap.meter;
    let bar = if kind == Kind::One && gap.len() > 1 { " | " } else { "  " };
    let wide = kind == Kind::Three;
    let (before, colon, apart) = if wide { ("   ", ":", "  ") } else { (bar, "", " ") };
    out.push((format!("{before}today{colon} {} ok", meter.today_ok), Role::Text));
    if wide || meter.today_failed + meter.today_lost > 0 {
        let role = if meter.today_failed > 0 { Role::Fail } else { Role::Dim };
        out.push((format!("{apart}{} fail", meter.today_failed), role));
    }
    if wide || meter.today_lost > 0 {
        let role = if meter.today_lost > 0 { Role::Lost } else { Role::Dim };
        out.push((format!("{apart}{} lost", meter.today_lost), role));
    }
    if wide {
        let held = format!("   held {}/{}", meter.gpus_held, meter.gpus_total);
        let today = format!("   {} GPU-h today", hours(today_gpu_ms(v)));
        let rate = format!("  +{}.0 GPU-h per hour", crate::tui::panels::meter::rate(v));
        out.extend([(held, Role::Text), (today, Role::Text), (rate, Role::Dim)]);
    }
    out
}

/// How we stand with the scheduler, in words.
fn connection(ui: &Ui, kind: Kind) -> (String, Role) {
    // A display that stands still must not hide that nobody is there.
    if let (Some((since, _)), false) = (&ui.frozen, matches!(ui.connection, Connection::Lost { .. })) {
        let age = ui.now.since(since).unwrap_or_default();
        return (format!("FROZEN {}", duration(age)), Role::Frozen);
    }
    match &ui.connection {
        Connection::Live => ("LIVE".to_owned(), Role::Title),
        Connection::Stale { age } => (format!("STALE {} s", age.as_secs()), Role::ToastWarn),
        Connection::Lost { .. } if ui.retry_at == 0 => ("connecting".to_owned(), Role::Dim),
        Connection::Lost { retry_in, .. } if kind == Kind::Compact || retry_in.0 == 0 => {
            ("NO DAEMON".to_owned(), Role::ToastError)
        }
        Connection::Lost { retry_in, .. } => {
            (format!("NO DAEMON retry in {} s", retry_in.0.div_ceil(1000)), Role::ToastError)
        }
    }
}

/// The names of the screens, the present one in brackets, the inbox with the number of refused files.
pub(in crate::tui) fn screens(v: &View<'_>, wide: bool) -> Vec<(String, Role)> {
    let bad = rows::refused(v.snap);
    let mut out = Vec::new();
    for (at, screen) in Screen::ALL.iter().enumerate() {
        if at > 0 {
            out.push((if wide { "  " } else { " " }.to_owned(), Role::Dim));
        }
        let here = *screen == v.ui.screen;
        let open = if here {
            format!("[{}]{}", at + 1, screen.name())
        } else {
            format!("{} {}", at + 1, screen.name())
        };
        out.push((open, if here { Role::Title } else { Role::Dim }));
        if *screen == Screen::Inbox && bad > 0 {
            out.push((format!("({bad}!)"), Role::ToastError));
        }
    }
    out
}

/// A click on a screen's name shows it. The names are drawn from the left edge of `area` on.
pub(in crate::tui) fn spots(c: &mut Canvas<'_>, area: Rect, names: &[Piece<'_>]) {
    let mut x = area.x;
    for (text, _) in names {
        let width = text.chars().count() as u16;
        let screen = Screen::ALL.iter().find(|screen| text.ends_with(screen.name()));
        if let Some(screen) = screen {
            c.spot(Rect { x, y: area.y, width, height: 1 }, Action::Show(*screen));
        }
        x = x.saturating_add(width);
    }
}

/// GPU-milliseconds of today up to this moment.
pub(in crate::tui) fn today_gpu_ms(v: &View<'_>) -> u64 {
    v.snap.meter.today_gpu_ms + since_snapshot(v, |_| true)
}

/// What open leases have added since the snapshot was taken.
pub(in crate::tui) fn since_snapshot(v: &View<'_>, of: impl Fn(&crate::protocol::JobRow) -> bool) -> u64 {
    let open = v.snap.jobs.iter().filter(|row| of(row)).flat_map(|row| &row.open);
    open.map(|lease| lease.held_ms(&v.now).saturating_sub(lease.held_ms(&v.snap.at)) * u64::from(lease.gpus))
        .sum()
}

/// The second line of the one-column layout.
pub(in crate::tui) fn meter_line(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    if area.height == 0 || !v.ui.known {
        return;
    }
    let meter = &v.snap.meter;
    let me = v.ui.me(v.snap);
    let mine = meter.users.iter().find(|user| user.user == me);
    let mine_ms = mine.map_or(0, |user| user.today_gpu_ms) + since_snapshot(v, |row| row.user == me);
    let held = format!("  held {}/{} GPU", meter.gpus_held, meter.gpus_total);
    let today = format!("   {} GPU-h today", hours(today_gpu_ms(v)));
    let own = format!("   me: held {}, {} today", mine.map_or(0, |user| user.held), hours(mine_ms));
    let theme = format!("theme {}", v.ui.theme);
    let end = c.pieces(
        area,
        0,
        &[("METER", Role::Title), (&held, Role::Text), (&today, Role::Text), (&own, Role::Dim)],
    );
    if usize::from(area.right().saturating_sub(end)) > theme.len() + 2 {
        c.pieces_right(area, 0, &[(&theme, Role::Dim)]);
    }
}
