//! The first lines: how many jobs are where, today's results, the meter, the screens, and how we stand with the scheduler.

use crate::protocol::{Connection, JobRow};
use crate::tui::View;
use crate::tui::keys::{Action, Mode};
use crate::tui::layout::{Kind, Layout, Pane};
use crate::tui::look::canvas::{Canvas, Piece};
use crate::tui::look::text::{cut, duration, hours, width};
use crate::tui::look::theme::Role;
use crate::tui::rows;
use crate::tui::ui::{Screen, Ui};
use ratatui::layout::Rect;

/// The length of a day in milliseconds.
pub(in crate::tui) const DAY_MS: i64 = 86_400_000;

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

/// How many jobs are in a state; a job that is edited still waits.
pub(in crate::tui) fn count(v: &View<'_>, word: &str) -> usize {
    let is = |shown: &str| shown == word || word == "WAIT" && shown == "EDIT";
    v.counted().iter().filter(|(counted, _)| is(counted)).map(|(_, count)| count).sum()
}

/// One line in some of the ways it can be said.
#[derive(Clone, Copy)]
struct Form {
    /// Between the states.
    gap: &'static str,
    /// What became of the jobs of today.
    today: bool,
    /// How the numbers of the meter are said where they are said here: the fewer the shorter.
    numbers: usize,
}

const fn form(gap: &'static str, today: bool, numbers: usize) -> Form {
    Form { gap, today, numbers }
}

/// From the fullest on.
const FORMS: [Form; 9] = [
    form("  ", true, 4),
    form(" ", true, 4),
    form("  ", true, 3),
    form(" ", true, 3),
    form(" ", true, 2),
    form("  ", false, 3),
    form(" ", false, 3),
    form(" ", false, 2),
    form(" ", false, 1),
];

pub(in crate::tui) fn paint(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout) {
    let (area, kind) = (layout.header, layout.kind);
    if area.height == 0 {
        return;
    }
    let mut words = connection(v.ui, kind);
    if kind == Kind::One && v.ui.known {
        words.insert(0, ("| ".to_owned(), Role::Dim));
    }
    let words: Vec<Piece<'_>> = words.iter().map(|(text, role)| (text.as_str(), *role)).collect();
    let right = c.pieces_right(area, 0, &words);
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
    // Where the meter has a line or a pane, the numbers are there.
    let told = layout.meter.height > 0
        || kind != Kind::Three && layout.order().contains(&Pane::Meter) && layout.panes.len() > 1;
    // What all jobs have to be looked at for is looked for once.
    let sums = (hours(today_gpu_ms(v)), crate::tui::panels::meter::rate(v));
    let of = |form: &Form| {
        let mut line = counts(v, kind, *form);
        if !told {
            line.push((numbers(v, &sums, form.numbers), Role::Text));
        }
        line
    };
    let columns = |line: &[(String, Role)]| line.iter().map(|(text, _)| width(text)).sum::<usize>();
    let room = usize::from(left.width).saturating_sub(width(host));
    let brand = width(first[0].0);
    let full = FORMS.iter().map(of).find(|line| columns(line) + brand <= room);
    let (brand, line) = match full {
        Some(line) => (true, line),
        None => (false, shortened(of(&FORMS[FORMS.len() - 1]), room)),
    };
    let pieces = line.iter().map(|(text, role)| (text.as_str(), *role));
    let pieces: Vec<Piece<'_>> = first.into_iter().skip(usize::from(!brand)).chain(pieces).collect();
    c.pieces(left, 0, &pieces);
}

/// What fits of a line: the number of jobs that run and the numbers at its end go last.
fn shortened(mut line: Vec<(String, Role)>, room: usize) -> Vec<(String, Role)> {
    while line.len() > 2 && line.iter().map(|(text, _)| width(text)).sum::<usize>() > room {
        // The states in the middle are short-lived or few; how many wait stands before what is last.
        let waits = line.iter().position(|(text, _)| text.trim_start().starts_with("WAIT "));
        let at = (1..line.len() - 1).rev().find(|at| Some(*at) != waits).or(waits);
        line.remove(at.unwrap_or(1));
    }
    line
}

/// How many jobs are in which state, and what became of those of today.
fn counts(v: &View<'_>, kind: Kind, form: Form) -> Vec<(String, Role)> {
    let gap = form.gap;
    let mut out = Vec::new();
    for (word, role) in COUNTED {
        let n = count(v, word);
        if n > 0 || matches!(word, "RUN" | "WAIT") {
            out.push((format!("{gap}{word} {n}"), if n == 0 { Role::Dim } else { role }));
        }
    }
    let meter = &v.snap.meter;
    // Since a picture of the day before nothing has stirred: nothing has ended.
    let of_today = |count| if midnight_since(v).is_some() { 0 } else { count };
    let (ok, failed, lost) =
        (of_today(meter.today_ok), of_today(meter.today_failed), of_today(meter.today_lost));
    let wide = kind == Kind::Three;
    if form.today {
        let bar = if kind == Kind::One && gap.len() > 1 { " | " } else { "  " };
        let (before, colon, apart) = if wide { ("   ", ":", "  ") } else { (bar, "", " ") };
        out.push((format!("{before}today{colon} {ok} ok"), Role::Text));
        if wide || failed + lost > 0 {
            let role = if failed > 0 { Role::Fail } else { Role::Dim };
            out.push((format!("{apart}{failed} fail"), role));
        }
        if wide || lost > 0 {
            let role = if lost > 0 { Role::Lost } else { Role::Dim };
            out.push((format!("{apart}{lost} lost"), role));
        }
    }
    out
}

/// The three numbers that are always on the screen: GPUs held, GPU-hours today, GPU-hours an hour.
fn numbers(v: &View<'_>, (today, rate): &(String, u32), form: usize) -> String {
    let (held, all) = (v.snap.meter.gpus_held, v.snap.meter.gpus_total);
    match form {
        4 => format!("   held {held}/{all}   {today} GPU-h today  +{rate}.0 GPU-h per hour"),
        3 => format!("  held {held}/{all}  {today} GPU-h today  +{rate}/h"),
        2 => format!("  {held}/{all} GPU {today}h +{rate}/h"),
        _ => format!(" {held}/{all} {today}h +{rate}/h"),
    }
}

/// How we stand with the scheduler, in words: a display that stands still must not hide that nobody is there, nor why
/// nothing can be done.
fn connection(ui: &Ui, kind: Kind) -> Vec<(String, Role)> {
    let mut out = Vec::new();
    if let Some((since, _)) = &ui.frozen {
        let age = ui.now.since(since).unwrap_or_default();
        out.push((format!("FROZEN {}", duration(age)), Role::Frozen));
    }
    let short = matches!(kind, Kind::Compact | Kind::Bare) || ui.frozen.is_some();
    let (words, role) = match &ui.connection {
        Connection::Live if ui.frozen.is_some() => return out,
        Connection::Live => ("LIVE".to_owned(), Role::Title),
        Connection::Stale { age } => (format!("STALE {} s", age.as_secs()), Role::ToastWarn),
        Connection::Lost { .. } if ui.retry_at == 0 => ("connecting".to_owned(), Role::Dim),
        Connection::Lost { retry_in, .. } if short || retry_in.0 == 0 => {
            ("NO DAEMON".to_owned(), Role::ToastError)
        }
        Connection::Lost { retry_in, .. } => {
            (format!("NO DAEMON retry in {} s", retry_in.0.div_ceil(1000)), Role::ToastError)
        }
    };
    if !out.is_empty() {
        out.push((" ".to_owned(), Role::Text));
    }
    out.push((words, role));
    out
}

/// Whether what is shown is not what is: then it is said even where there is no header.
pub(in crate::tui) const fn is_behind(ui: &Ui) -> bool {
    ui.frozen.is_some() || matches!(ui.connection, Connection::Stale { .. })
}

/// The same words at the end of the message row, where there is no header.
pub(in crate::tui) fn sign(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout) {
    if layout.header.height > 0 || layout.message.height == 0 || !is_behind(v.ui) {
        return;
    }
    let words = connection(v.ui, layout.kind);
    let gap = [("  ".to_owned(), Role::Text)];
    let words: Vec<Piece<'_>> = gap.iter().chain(&words).map(|(text, role)| (text.as_str(), *role)).collect();
    c.pieces_right(layout.message, 0, &words);
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
        let key = v.ui.keys.key(Mode::Queue, &Action::Show(*screen));
        let open = match (here, key.is_empty()) {
            (true, true) => format!("[{}]", screen.name()),
            (true, false) => format!("[{key}]{}", screen.name()),
            (false, true) => screen.name().to_owned(),
            (false, false) => format!("{key} {}", screen.name()),
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
        let screen = Screen::ALL.iter().find(|screen| text.trim_end_matches(']').ends_with(screen.name()));
        if let Some(screen) = screen {
            c.spot(Rect { x, y: area.y, width, height: 1 }, Action::Show(*screen));
        }
        x = x.saturating_add(width);
    }
}

/// The midnight that has passed since the picture's day began, wall milliseconds, if one has.
fn midnight_since(v: &View<'_>) -> Option<i64> {
    let began = v.snap.meter.today_began;
    let days = (v.exact.wall_ms - began) / DAY_MS;
    (began > 0 && days > 0).then(|| began + days * DAY_MS)
}

/// GPU-milliseconds of today up to the last whole minute.
pub(in crate::tui) fn today_gpu_ms(v: &View<'_>) -> u64 {
    todays(v, v.snap.meter.today_gpu_ms, |_| true)
}

/// The same of some jobs, from what the picture has of them.
pub(in crate::tui) fn todays(v: &View<'_>, told: u64, of: impl Fn(&JobRow) -> bool) -> u64 {
    let Some(midnight) = midnight_since(v) else { return told.saturating_add_signed(since_snapshot(v, of)) };
    let today = v.minute.wall_ms.saturating_sub(midnight).max(0).cast_unsigned();
    let open = v.snap.jobs.iter().filter(|row| of(row)).flat_map(|row| &row.open);
    open.map(|lease| lease.held_ms(&v.minute).min(today) * u64::from(lease.gpus)).sum()
}

/// What open leases have added from the snapshot to the last whole minute, which may have been before it.
pub(in crate::tui) fn since_snapshot(v: &View<'_>, of: impl Fn(&JobRow) -> bool) -> i64 {
    if v.minute.boot != v.snap.at.boot {
        return 0;
    }
    let open = v.snap.jobs.iter().filter(|row| of(row)).flat_map(|row| &row.open);
    open.map(|lease| {
        let added = lease.held_ms(&v.minute).cast_signed() - lease.held_ms(&v.snap.at).cast_signed();
        added * i64::from(lease.gpus)
    })
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
    let mine_ms = todays(v, mine.map_or(0, |user| user.today_gpu_ms), |row| row.user == me);
    let held = format!("  held {}/{} GPU", meter.gpus_held, meter.gpus_total);
    let today = format!("  {} GPU-h today", hours(today_gpu_ms(v)));
    let rate = format!("  +{}/h", crate::tui::panels::meter::rate(v));
    let own = format!("  me: held {}, {} today", mine.map_or(0, |user| user.held), hours(mine_ms));
    let theme = format!("theme {}", v.ui.theme);
    let numbers = [
        ("METER", Role::Title),
        (held.as_str(), Role::Text),
        (&today, Role::Text),
        (&rate, Role::Text),
        (&own, Role::Dim),
    ];
    let end = c.pieces(area, 0, &numbers);
    if usize::from(area.right().saturating_sub(end)) >= theme.len() + 2 {
        c.pieces_right(area, 0, &[(&theme, Role::Dim)]);
    }
}

/// The one line of a screen that is too small for anything else; the size that is needed is never cut off it.
pub(in crate::tui) fn too_small(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let jobs = format!("overnight: {} run {} wait", count(v, "RUN"), count(v, "WAIT"));
    let (needed, have) = ("30x6 needed", format!("have {}x{}", area.width, area.height));
    let fits = |text: &String| width(text) <= usize::from(area.width);
    let needs = [format!("({needed}, {have})"), format!("({needed})"), needed.to_owned(), "30x6".to_owned()];
    let whole = format!("{jobs} {}", needs[0]);
    let need = needs.into_iter().find(fits).unwrap_or_default();
    let lines = match () {
        () if fits(&whole) => vec![whole],
        () if area.height > 1 => vec![jobs, need],
        () => vec![need],
    };
    let top = area.y + (area.height - lines.len() as u16) / 2;
    for (row, line) in lines.iter().enumerate() {
        let columns = (width(line) as u16).min(area.width);
        let x = area.x + (area.width - columns) / 2;
        let middle = Rect { x, y: top + row as u16, width: columns, height: 1 };
        c.text(middle, 0, line, Role::Text);
    }
}
