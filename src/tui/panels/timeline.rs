//! Who had, has and is expected to get which device: one row a device on one time axis, past, now and future.

use crate::model::JobId;
use crate::protocol::{GpuRow, SpanKind, Timeline, TimelineSpan};
use crate::tui::View;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::{Canvas, Glyphs};
use crate::tui::look::text::{cut, left, moment, width};
use crate::tui::look::theme::Role;
use crate::tui::rows;
use ratatui::layout::Rect;

/// Columns of a device's index.
const LABEL: u16 = 4;

/// How a span is filled, and its colour.
const fn fill(kind: SpanKind, glyphs: Glyphs) -> (&'static str, Role) {
    match (kind, glyphs) {
        (SpanKind::Past, Glyphs::Unicode | Glyphs::Blocks) => ("▄", Role::Dim),
        (SpanKind::Past, Glyphs::Ascii) => ("=", Role::Dim),
        (SpanKind::Held, Glyphs::Unicode | Glyphs::Blocks) => ("█", Role::Run),
        (SpanKind::Held, Glyphs::Ascii) => ("#", Role::Run),
        (SpanKind::Draining, _) => ("~", Role::Rel),
        (SpanKind::Quarantined, _) => ("!", Role::Fail),
        (SpanKind::Planned, Glyphs::Unicode | Glyphs::Blocks) => ("░", Role::Wait),
        (SpanKind::Planned, Glyphs::Ascii) => ("/", Role::Wait),
    }
}

/// The time axis on the screen.
#[derive(Clone, Copy)]
struct Axis {
    from: i64,
    until: i64,
    x: u16,
    columns: u16,
}

impl Axis {
    /// The column of a moment, from 0 to the number of columns.
    fn column(&self, at: i64) -> u16 {
        let span = (self.until - self.from).max(1);
        let part = (at.clamp(self.from, self.until) - self.from).saturating_mul(i64::from(self.columns));
        u16::try_from(part / span).unwrap_or(u16::MAX).min(self.columns)
    }

    const fn has(&self, at: i64) -> bool {
        at >= self.from && at < self.until
    }
}

/// The job that is looked at: the one that holds the device under the cursor, or gets it next.
fn looked_at(v: &View<'_>, timeline: &Timeline) -> Option<JobId> {
    if v.ui.screen == crate::tui::Screen::Queue {
        return v.ui.queue_job;
    }
    let gpu = v.ui.gpu.as_ref()?;
    let holds = v.snap.gpus.iter().find(|row| row.uuid == *gpu).and_then(|row| row.jobs.first().copied());
    let planned = || timeline.spans.iter().find(|span| span.gpu == *gpu && span.kind == SpanKind::Planned);
    holds.or_else(|| planned()?.job)
}

/// One row a device, from the first one shown, and the axis under them.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>) {
    let Some(timeline) = v.ui.fetched.timeline.of(&v.ui.gpus_view.timeline()) else {
        let refused = v.ui.fetched.timeline.refused.as_deref();
        c.text(area, 0, refused.unwrap_or("Asking the scheduler who has which GPU when."), Role::Dim);
        return;
    };
    if area.height < 2 || area.width < 20 {
        return;
    }
    let (from, until) = v.ui.gpus_view.window();
    let now = v.now.wall_ms;
    let axis = Axis { from: now + from, until: now + until, x: area.x + LABEL, columns: area.width - LABEL };
    let looked_at = looked_at(v, timeline);
    let height = usize::from(area.height - 1);
    let gpus = rows::gpus(v.ui, v.snap);
    let count = gpus.len();
    let top = v.top(Pane::Gpus, height, count);
    for (at, gpu) in gpus.into_iter().skip(top).take(height).enumerate() {
        let y = area.y + at as u16;
        let here = v.ui.gpu.as_ref() == Some(&gpu.uuid);
        let label = format!("{}{}", if here { ">" } else { " " }, gpu.index);
        c.pieces(Rect { y, height: 1, ..area }, 0, &[(&left(&label, LABEL.into()), Role::Title)]);
        row(c, v, y, &axis, (gpu, timeline, looked_at));
    }
    let y = area.y + height.min(count - top) as u16;
    ticks(c, v, y, &axis, timeline);
}

fn row(c: &mut Canvas<'_>, v: &View<'_>, y: u16, axis: &Axis, of: (&GpuRow, &Timeline, Option<JobId>)) {
    let (gpu, timeline, looked_at) = of;
    let now = axis.column(v.now.wall_ms);
    let shows_now = axis.has(v.now.wall_ms);
    if shows_now {
        now_line(c, y, axis, now);
    }
    // What is planned is under what is known.
    let spans = timeline.spans.iter().filter(|span| span.gpu == gpu.uuid);
    let (planned, known): (Vec<_>, Vec<_>) = spans.partition(|span| span.kind == SpanKind::Planned);
    for span in planned.into_iter().chain(known) {
        paint_span(c, v, y, axis, (span, looked_at));
    }
    if shows_now {
        now_line(c, y, axis, now);
    }
    let jobs = timeline.spans.iter().filter(|span| span.gpu == gpu.uuid && span.kind >= SpanKind::Held);
    for job in jobs.filter_map(|span| v.find(span.job?)) {
        let Some(deadline) = job.finish_by.filter(|at| axis.has(*at)) else { continue };
        let role = if job.late { Role::ToastError } else { Role::ToastWarn };
        let style = c.theme.style(role);
        c.put(axis.x + axis.column(deadline), y, 1, "D", style);
    }
}

fn now_line(c: &mut Canvas<'_>, y: u16, axis: &Axis, column: u16) {
    let sign = match c.glyphs {
        Glyphs::Unicode | Glyphs::Blocks => "│",
        Glyphs::Ascii => "|",
    };
    let style = c.theme.style(Role::Title);
    c.put(axis.x + column, y, 1, sign, style);
}

fn paint_span(c: &mut Canvas<'_>, v: &View<'_>, y: u16, axis: &Axis, of: (&TimelineSpan, Option<JobId>)) {
    let (span, looked_at) = of;
    let now = v.now.wall_ms;
    // Nobody knows when a held one ends: it is drawn as far as it is known to be held.
    let open = match span.kind {
        SpanKind::Planned => span.until_by.unwrap_or(axis.until),
        SpanKind::Quarantined => axis.until,
        SpanKind::Past | SpanKind::Held | SpanKind::Draining => span.until_by.unwrap_or(now).max(now),
    };
    let until = span.until.unwrap_or(open);
    if until < axis.from || span.from >= axis.until {
        return;
    }
    let (from, to) = (axis.column(span.from), axis.column(until));
    let columns = to.max(from + 1).min(axis.columns).saturating_sub(from);
    let (sign, role) = fill(span.kind, c.glyphs);
    let style = c.theme.style(role);
    c.put(axis.x + from, y, columns, &sign.repeat(columns.into()), style);
    // Nobody knows its end.
    if span.until.is_none() && span.until_by.is_none() && span.kind == SpanKind::Held && to < axis.columns {
        c.put(axis.x + to + 1, y, 1, ">", style);
    }
    label(c, y, (axis.x + from, axis.x + from + columns), axis.x + axis.column(now), span);
    if span.job.is_some() && span.job == looked_at {
        c.over(Rect { x: axis.x + from, y, width: columns, height: 1 }, Role::CursorRow);
    }
}

/// Whose span it is, on one side of now, with something of the span around it: a short span has no label.
fn label(c: &mut Canvas<'_>, y: u16, (from, to): (u16, u16), now: u16, span: &TimelineSpan) {
    let (least, name) = match (span.kind, span.job) {
        (SpanKind::Quarantined, None) => ("quarantine".to_owned(), String::new()),
        (SpanKind::Quarantined, Some(job)) => (format!("#{job}"), " in quarantine".to_owned()),
        (_, Some(job)) => (format!("#{job}"), format!(" {}", span.name)),
        (_, None) => (span.name.clone(), String::new()),
    };
    let sides = if from < now && now < to { [(from, now), (now + 1, to)] } else { [(from, to), (to, to)] };
    let room = |(from, to): (u16, u16)| usize::from(to.saturating_sub(from)).saturating_sub(2);
    let whole = width(&least) + width(&name);
    let side = sides.into_iter().find(|side| room(*side) >= whole);
    let side = side.or_else(|| sides.into_iter().max_by_key(|side| room(*side)));
    let Some(side) = side.filter(|side| room(*side) >= width(&least)) else { return };
    let style = c.theme.style(if span.kind == SpanKind::Past { Role::Dim } else { Role::Text });
    let text = format!("{least}{name}");
    let text = cut(&text, room(side));
    c.put(side.0 + 1, y, width(text) as u16, text.trim_end(), style);
}

/// Round distances between two times on the axis.
const STEPS_MIN: [i64; 11] = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880];

fn ticks(c: &mut Canvas<'_>, v: &View<'_>, y: u16, axis: &Axis, timeline: &Timeline) {
    let line = Rect { x: axis.x, y, width: axis.columns, height: 1 };
    let span = axis.until - axis.from;
    let step = STEPS_MIN.iter().map(|minutes| minutes * 60_000);
    let step = step.into_iter().find(|step| span / step * 14 <= i64::from(axis.columns)).unwrap_or(span);
    let now = v.now.wall_ms;
    let mut taken = Vec::new();
    if axis.has(now) {
        let x = axis.column(now).min(axis.columns.saturating_sub(3));
        let style = c.theme.style(Role::Title);
        c.put(line.x + x, y, 3, "now", style);
        taken.push((x, x + 3));
    }
    // On the full hour of the place, not of Greenwich: half and quarter hours of zones are rare and still right.
    let offset = jiff::Timestamp::from_millisecond(now)
        .map_or(0, |at| i64::from(v.ui.tz.to_offset(at).seconds()) * 1000);
    let mut at = (axis.from + offset).div_euclid(step) * step + step - offset;
    let style = c.theme.style(Role::Dim);
    while at < axis.until {
        let text = moment(at, now, &v.ui.tz);
        let columns = width(&text) as u16;
        let x = axis.column(at);
        let free = taken.iter().all(|(from, to)| x + columns < *from || x > *to);
        if free && x + columns <= axis.columns {
            c.put(line.x + x, y, columns, &text, style);
            taken.push((x, x + columns));
        }
        at += step;
    }
    if timeline.cut_before.is_some_and(|at| at > axis.from) {
        c.put(line.x, y, axis.columns, "<not whole", style);
    }
}

/// What the signs mean, as many of them as there is room for.
pub(in crate::tui) fn legend(glyphs: Glyphs, columns: usize) -> String {
    let [past, held, planned] = match glyphs {
        Glyphs::Unicode | Glyphs::Blocks => ["▄", "█", "░"],
        Glyphs::Ascii => ["=", "#", "/"],
    };
    let signs = [
        (past, "past"),
        (held, "held"),
        (planned, "planned"),
        ("~", "drains"),
        ("!", "quarantine"),
        ("D", "deadline"),
    ];
    let mut out = String::new();
    for (sign, means) in signs {
        let gap = if out.is_empty() { "" } else { "  " };
        let more = format!("{gap}{sign} {means}");
        if width(&out) + width(&more) > columns {
            break;
        }
        out.push_str(&more);
    }
    out
}
