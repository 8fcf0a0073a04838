//! Values over time as rows of characters: eighth blocks, or a ramp under ASCII. Pure; a value that is not known is a gap.

use crate::tui::look::canvas::Glyphs;

/// From almost nothing to full.
const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const HALVES: [&str; 8] = [".", ".", "▄", "▄", "▄", "▄", "█", "█"];
const RAMP: [&str; 8] = [".", ":", "-", "=", "+", "*", "#", "%"];

/// Means over as many stretches as there are columns; `None` where nothing of a stretch is known.
pub(in crate::tui) fn resampled(values: &[Option<f64>], columns: usize) -> Vec<Option<f64>> {
    let count = values.len();
    let mean = |from: usize, to: usize| {
        let known: Vec<f64> = values.get(from..to)?.iter().copied().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    (0..columns)
        .map(|column| {
            let from = column * count / columns.max(1);
            mean(from, ((column + 1) * count / columns.max(1)).max(from + 1).min(count))
        })
        .collect()
}

/// Rows of a chart, the highest first. What is known to be nothing still has a mark: only what is not known is blank.
pub(in crate::tui) fn rows(values: &[Option<f64>], full: f64, height: usize, glyphs: Glyphs) -> Vec<String> {
    let signs = match glyphs {
        Glyphs::Unicode => BLOCKS,
        Glyphs::Blocks => HALVES,
        Glyphs::Ascii => RAMP,
    };
    let eighths = height * 8;
    let level = |value: f64| {
        let part = if full > 0.0 { (value / full).clamp(0.0, 1.0) } else { 0.0 };
        ((part * eighths as f64).round() as usize).clamp(1, eighths)
    };
    let levels: Vec<Option<usize>> = values.iter().map(|value| value.map(level)).collect();
    (0..height)
        .rev()
        .map(|row| {
            let sign = |level: &Option<usize>| match level {
                Some(level) if *level > row * 8 => signs[(level - row * 8).min(8) - 1],
                _ => " ",
            };
            levels.iter().map(sign).collect()
        })
        .collect()
}

/// One row, as wide as it is asked for.
pub(in crate::tui) fn spark(values: &[Option<f64>], columns: usize, full: f64, glyphs: Glyphs) -> String {
    rows(&resampled(values, columns), full, 1, glyphs).pop().unwrap_or_default()
}

/// The last known value, the mean and the highest.
pub(in crate::tui) fn figures(values: &[Option<f64>]) -> Option<(Option<f64>, f64, f64)> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let most = known.iter().copied().reduce(f64::max)?;
    Some((values.last().copied().flatten(), mean, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_gap_and_what_is_zero_is_not() {
        let values = [Some(0.0), None, Some(50.0), Some(100.0)];
        assert_eq!(rows(&values, 100.0, 1, Glyphs::Ascii), [". =%"]);
        assert_eq!(rows(&values, 100.0, 1, Glyphs::Unicode), ["▁ ▄█"]);
        assert_eq!(rows(&values, 100.0, 2, Glyphs::Unicode), ["   █", "▁ ██"]);
    }

    #[test]
    fn any_number_of_values_fills_any_number_of_columns() {
        let values: Vec<Option<f64>> = (0..10).map(|n| Some(f64::from(n))).collect();
        for columns in [1, 3, 10, 25] {
            let found = resampled(&values, columns);
            assert_eq!(found.len(), columns);
            assert!(found.iter().all(Option::is_some), "{columns}: {found:?}");
        }
        assert_eq!(resampled(&values, 5)[0], Some(0.5));
        assert_eq!(resampled(&[], 3), [None, None, None]);
        assert_eq!(resampled(&[Some(1.0), None], 2), [Some(1.0), None]);
        assert!(resampled(&values, 0).is_empty());
    }

    #[test]
    fn figures_leave_out_what_is_not_known() {
        assert_eq!(figures(&[Some(2.0), None, Some(4.0)]), Some((Some(4.0), 3.0, 4.0)));
        assert_eq!(figures(&[Some(2.0), None]), Some((None, 2.0, 2.0)));
        assert_eq!(figures(&[None]), None);
    }
}
