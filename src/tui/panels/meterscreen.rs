//! The screen of the meter: the ledger by user, project, job, day or GPU over a stretch of time, the rate, and who holds what.

use crate::model::Uuid;
use crate::protocol::{MeterBy, MeterRow, MeterTable};
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::look::canvas::{Canvas, Glyphs, Piece};
use crate::tui::look::text::{cut_middle, hours, left, moment, right, width};
use crate::tui::look::theme::Role;
use crate::tui::panels::meter::{self, Line};
use crate::tui::views::{Choice, MeterView, Period};
use ratatui::layout::Rect;

/// The choices in the first row, then what fits of the table, the rate and the jobs.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, scroll: usize) {
    let view = v.ui.meter_view;
    let mut pieces: Vec<Piece<'_>> = vec![("by", Role::Dim)];
    for by in MeterView::BY {
        choice(&mut pieces, MeterView::name(by), by == view.by);
    }
    pieces.push(("    ", Role::Dim));
    for period in Period::ALL {
        choice(&mut pieces, period.name(), period == view.period);
    }
    c.pieces(area, 0, &pieces);
    let by = MeterView::BY.into_iter().map(|by| (MeterView::name(by), Action::View(Choice::By(by))));
    let since = Period::ALL.into_iter().map(|period| (period.name(), Action::View(Choice::Period(period))));
    c.words(area, by.chain(since));
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    meter::lines_at(c, below, &lines(v, usize::from(area.width), c.glyphs), scroll);
}

fn choice<'a>(pieces: &mut Vec<Piece<'a>>, name: &'a str, is_chosen: bool) {
    let (open, close, role) = if is_chosen { (" [", "]", Role::Title) } else { ("  ", " ", Role::Dim) };
    pieces.extend([(open, role), (name, role), (close, role)]);
}

/// The number of lines, for scrolling.
pub(in crate::tui) fn count(v: &View<'_>, area: Rect) -> usize {
    lines(v, usize::from(area.width), v.ui.glyphs).len() + 1
}

fn lines(v: &View<'_>, columns: usize, glyphs: Glyphs) -> Vec<Line> {
    let view = v.ui.meter_view;
    let mut out = Vec::new();
    if let Some(table) = v.ui.fetched.meter.of(&view.look(v.now.wall_ms, &v.ui.tz)) {
        out.extend(table_lines(v, table, columns, glyphs));
    } else {
        let refused = v.ui.fetched.meter.refused.as_deref();
        let text = refused.unwrap_or("Asking the scheduler for the ledger.");
        out.push(Line::Text(text.to_owned(), Role::Dim));
    }
    out.push(Line::Rule);
    out.extend(meter::rates(v, columns, glyphs));
    out.push(Line::Text(String::new(), Role::Text));
    out.extend(meter::jobs(v, columns));
    out
}

/// How wide the columns are; the bar has the rest.
struct Columns {
    key: usize,
    cores: bool,
    waived: bool,
    cost: bool,
    bar: usize,
}

fn columns_of(table: &MeterTable, total: usize) -> Columns {
    let key = if total < 70 { 12 } else { 24 };
    let waived = table.rows.iter().any(|row| row.waived_gpu_ms > 0);
    let cost = table.rows.iter().any(|row| row.cost.is_some());
    let mut it = Columns { key, cores: total >= 70, waived, cost, bar: 0 };
    let used = width(&head(table, &it));
    it.bar = total.saturating_sub(used + 2).min(60);
    it
}

fn head(table: &MeterTable, it: &Columns) -> String {
    let mut text = left(&MeterView::name(table.by).to_uppercase(), it.key);
    text += &[right("JOBS", 6), right("GPU-h", 10), right("SHARE", 7)].concat();
    for (shown, title, columns) in
        [(it.cores, "CORE-h", 10), (it.waived, "NOT BILLED", 12), (it.cost, "COST", 10)]
    {
        if shown {
            text.push_str(&right(title, columns));
        }
    }
    text
}

fn table_lines(v: &View<'_>, table: &MeterTable, columns: usize, glyphs: Glyphs) -> Vec<Line> {
    if table.rows.is_empty() {
        let since = table
            .since
            .map_or_else(String::new, |at| format!(" since {}", moment(at, v.now.wall_ms, &v.ui.tz)));
        return vec![Line::Text(format!("Nobody has held anything{since}."), Role::Dim)];
    }
    let it = columns_of(table, columns);
    let all = table.rows.iter().fold(MeterRow::default(), |mut all, row| {
        all.gpu_ms += row.gpu_ms;
        all.core_ms += row.core_ms;
        all.waived_gpu_ms += row.waived_gpu_ms;
        all.jobs += row.jobs;
        all.cost = row.cost.map(|cost| all.cost.unwrap_or(0.0) + cost).or(all.cost);
        all
    });
    let most = table.rows.iter().map(|row| row.gpu_ms).max().unwrap_or(0);
    let mut out = vec![Line::Text(head(table, &it), Role::Title)];
    let me = v.ui.me(v.snap);
    for row in &table.rows {
        let text = row_line(&key(v, table.by, row, it.key), row, all.gpu_ms, &it);
        let role = if table.by == MeterBy::User && row.key == me { Role::Title } else { Role::Text };
        out.push(Line::Text(format!("{text}  {}", bar(row.gpu_ms, most, it.bar, glyphs)), role));
    }
    if table.rows.len() > 1 {
        // A job on several days, or on several GPUs, is in several rows: their sum would count it more than once.
        let jobs = matches!(table.by, MeterBy::User | MeterBy::Project | MeterBy::Job);
        let mut text = row_line("all", &all, all.gpu_ms, &it);
        if !jobs {
            text.replace_range(it.key..it.key + 6, "      ");
        }
        out.push(Line::Text(text, Role::Dim));
    }
    out
}

fn row_line(key: &str, row: &MeterRow, all: u64, it: &Columns) -> String {
    let share = (row.gpu_ms * 100 + all / 2).checked_div(all);
    let share = share.map_or_else(|| "-".to_owned(), |share| format!("{share}%"));
    let mut text = left(key, it.key);
    text.push_str(&right(&row.jobs.to_string(), 6));
    text.push_str(&right(&hours(row.gpu_ms), 10));
    text.push_str(&right(&share, 7));
    if it.cores {
        text.push_str(&right(&hours(row.core_ms), 10));
    }
    if it.waived {
        let waived = if row.waived_gpu_ms == 0 { "-".to_owned() } else { hours(row.waived_gpu_ms) };
        text.push_str(&right(&waived, 12));
    }
    if it.cost {
        text.push_str(&right(&row.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.2}")), 10));
    }
    text
}

/// What a row is about, as people say it.
fn key(v: &View<'_>, by: MeterBy, row: &MeterRow, columns: usize) -> String {
    let key = match by {
        MeterBy::Gpu => {
            let gpu = v.snap.gpus.iter().find(|gpu| gpu.uuid == Uuid(row.key.clone()));
            gpu.map_or_else(|| row.key.clone(), |gpu| format!("{} {}", gpu.index, gpu.name))
        }
        _ if row.key.is_empty() => "-".to_owned(),
        MeterBy::User | MeterBy::Project | MeterBy::Job | MeterBy::Day => row.key.clone(),
    };
    cut_middle(&key, columns.saturating_sub(1))
}

fn bar(part: u64, most: u64, columns: usize, glyphs: Glyphs) -> String {
    if most == 0 || columns == 0 {
        return String::new();
    }
    let eighths = (u128::from(part) * columns as u128 * 8 / u128::from(most)) as usize;
    match glyphs {
        Glyphs::Ascii => "#".repeat(eighths.div_ceil(8)),
        Glyphs::Blocks => "█".repeat(eighths.div_ceil(8)),
        Glyphs::Unicode => {
            let rest = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"].get((eighths % 8).wrapping_sub(1));
            format!("{}{}", "█".repeat(eighths / 8), rest.unwrap_or(&""))
        }
    }
}
