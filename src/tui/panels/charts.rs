//! What a device did: utilisation, memory, power and temperature over time, with numbers beside them.

use crate::model::Bytes;
use crate::protocol::{GpuHistory, GpuRing, GpuRow, GpuTrace};
use crate::tui::View;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::chart;
use crate::tui::look::text::{left, right};
use crate::tui::look::theme::Role;
use ratatui::layout::Rect;

/// Columns before a chart, and those of the numbers behind it.
const LABEL: u16 = 6;
const NUMBERS: u16 = 24;
const NUMBERS_IN_A_ROW: u16 = 29;

/// The ring of a device that covers a stretch of time: the finest that does, or else the longest.
fn ring(trace: &GpuTrace, span_ms: u64) -> Option<&GpuRing> {
    let covers = |ring: &&GpuRing| ring.period_ms * (ring.utilisation.len() as u64) >= span_ms;
    trace.rings.iter().find(covers).or(trace.rings.last())
}

/// The newest part of a list of steps that ends at `until`, in steps up to now: what is missing before and since is a gap.
fn stretch<T: Copy>(
    ring: &GpuRing,
    list: &[Option<T>],
    (span_ms, now_ms): (u64, i64),
    of: impl Fn(T) -> f64,
) -> Vec<Option<f64>> {
    let steps = (span_ms / ring.period_ms.max(1)).max(1) as usize;
    // A step is told when it is over: one that is under way is no gap yet.
    let old = now_ms.saturating_sub(ring.until).max(0) as u64 / ring.period_ms.max(1);
    let since = usize::try_from(old).unwrap_or(usize::MAX).saturating_sub(2).min(steps);
    let shown = steps - since;
    let from = list.len().saturating_sub(shown);
    let mut out = vec![None; shown.saturating_sub(list.len())];
    out.extend(list[from..].iter().map(|value| value.map(&of)));
    out.resize(steps, None);
    out
}

/// The utilisation of a device, for a line of few columns; empty if nothing has been read.
pub(in crate::tui) fn utilisation(v: &View<'_>, gpu: &GpuRow) -> Option<Vec<Option<f64>>> {
    let span = v.ui.gpus_view.range.span_ms();
    let history = v.ui.fetched.gpus.of(&v.ui.gpus_view.history())?;
    let trace = history.gpus.iter().find(|trace| trace.uuid == gpu.uuid)?;
    let ring = ring(trace, span)?;
    Some(stretch(ring, &ring.utilisation, (span, v.now.wall_ms), f64::from))
}

/// One of the four charts.
struct Chart {
    label: &'static str,
    values: Vec<Option<f64>>,
    full: f64,
    unit: &'static str,
    digits: usize,
}

fn charts(v: &View<'_>, gpu: &GpuRow, history: &GpuHistory) -> Option<[Chart; 4]> {
    let trace = history.gpus.iter().find(|trace| trace.uuid == gpu.uuid)?;
    let span = v.ui.gpus_view.range.span_ms();
    let ring = ring(trace, span)?;
    let time = (span, v.now.wall_ms);
    let gib = |bytes: Bytes| bytes.0 as f64 / Bytes::GIB as f64;
    let power = stretch(ring, &ring.power_w, time, f64::from);
    let most = power.iter().copied().flatten().fold(0.0, f64::max);
    let chart = |label, values, full, unit, digits| Chart { label, values, full, unit, digits };
    Some([
        chart("load", stretch(ring, &ring.utilisation, time, f64::from), 100.0, "%", 0),
        chart("mem", stretch(ring, &ring.memory_used, time, gib), gib(gpu.memory_total), "G", 1),
        // Nobody tells the limit: the scale is the next hundred watts.
        chart("power", power, ((most / 100.0).ceil() * 100.0).max(100.0), "W", 0),
        chart("temp", stretch(ring, &ring.temperature_c, time, f64::from), 100.0, "C", 0),
    ])
}

/// The charts of one device and the axis under them.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, gpu: &GpuRow) {
    let look = v.ui.gpus_view.history();
    let Some(history) = v.ui.fetched.gpus.of(&look) else {
        let refused = v.ui.fetched.gpus.refused.as_deref();
        c.text(area, 0, refused.unwrap_or("Asking the scheduler for what it has read."), Role::Dim);
        return;
    };
    let Some(charts) = charts(v, gpu, history) else {
        c.text(area, 0, "The scheduler has not read this GPU yet.", Role::Dim);
        return;
    };
    if v.ui.thrift {
        // Every step moves all of a chart: under low bandwidth the figures alone.
        for (row, chart) in (0..area.height).zip(&charts) {
            one(c, area, (row, 1, 0), chart);
        }
        return;
    }
    let rows = (area.height.saturating_sub(1) / 4).clamp(1, 6);
    let numbers = if rows > 1 { NUMBERS } else { NUMBERS_IN_A_ROW };
    let columns = area.width.saturating_sub(LABEL + numbers);
    let mut y = 0;
    for chart in &charts {
        if y + rows > area.height {
            break;
        }
        one(c, area, (y, rows, columns), chart);
        y += rows;
    }
    if y < area.height && columns > 0 {
        let axis = axis(usize::from(columns), v.ui.gpus_view.range.span_ms());
        c.text(Rect { x: area.x + LABEL, width: columns, ..area }, y, &axis, Role::Dim);
    }
}

fn one(c: &mut Canvas<'_>, area: Rect, (y, rows, columns): (u16, u16, u16), chart: &Chart) {
    c.text(area, y, chart.label, Role::Title);
    let full = format!("{:.0}{}", chart.full, chart.unit);
    if rows > 1 {
        c.text(area, y + 1, &left(&full, usize::from(LABEL) - 1), Role::Dim);
    }
    let values = chart::resampled(&chart.values, usize::from(columns));
    let plot = Rect { x: area.x + LABEL, width: columns, ..area };
    for (row, line) in chart::rows(&values, chart.full, usize::from(rows), c.glyphs).iter().enumerate() {
        c.text(plot, y + row as u16, line, Role::Spark);
    }
    let beside = Rect { x: plot.right(), width: area.right().saturating_sub(plot.right()), ..area };
    let figure = |value: f64| format!("{value:.*}{}", chart.digits, chart.unit);
    let Some((now, mean, most)) = chart::figures(&chart.values) else {
        c.text(beside, y, "  n/a", Role::Dim);
        return;
    };
    let now = now.map_or_else(|| "n/a".to_owned(), figure);
    let (mean, most) = (figure(mean), figure(most));
    if rows > 1 {
        c.pieces(beside, y, &[("  now", Role::Dim), (&right(&now, 7), Role::Text)]);
        let rest = format!("  mean{} max{}", right(&mean, 6), right(&most, 6));
        c.text(beside, y + 1, &rest, Role::Dim);
    } else {
        let rest = format!("  avg{} max{}", right(&mean, 6), right(&most, 6));
        c.pieces(beside, y, &[(&right(&now, 7), Role::Text), (&rest, Role::Dim)]);
    }
}

/// Where the time axis begins, its middle and its end.
fn axis(columns: usize, span_ms: u64) -> String {
    let ago = |ms: u64| {
        if ms >= 7_200_000 { format!("-{}h", ms / 3_600_000) } else { format!("-{}m", ms / 60_000) }
    };
    let (begin, middle) = (ago(span_ms), ago(span_ms / 2));
    if columns < 24 {
        return format!("{begin}{}", right("now", columns.saturating_sub(begin.len())));
    }
    let head = left(&begin, columns / 2);
    format!("{head}{}{}", left(&middle, columns - columns / 2 - 3), "now")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring_of(values: &[Option<u8>], until: i64) -> GpuRing {
        GpuRing { period_ms: 1000, until, utilisation: values.to_vec(), ..GpuRing::default() }
    }

    #[test]
    fn time_without_readings_is_a_gap_at_its_place() {
        let ring = ring_of(&[Some(1), None, Some(3)], 10_000);
        let shown = |span, now| stretch(&ring, &ring.utilisation, (span, now), f64::from);
        assert_eq!(shown(3_000, 10_500), [Some(1.0), None, Some(3.0)]);
        assert_eq!(shown(5_000, 10_500), [None, None, Some(1.0), None, Some(3.0)]);
        assert_eq!(shown(2_000, 10_500), [None, Some(3.0)]);
        // Nothing has been read for six seconds: of which two may still be under way.
        assert_eq!(shown(6_000, 16_000), [None, Some(3.0), None, None, None, None][..].to_vec());
        assert_eq!(shown(3_000, 1_000_000), [None, None, None]);
    }

    #[test]
    fn an_axis_is_as_wide_as_the_chart() {
        for columns in [10, 24, 57, 100] {
            assert_eq!(axis(columns, 1_200_000).len(), columns);
        }
        assert!(axis(40, 86_400_000).starts_with("-24h") && axis(40, 86_400_000).ends_with("now"));
    }
}
