//! The columns of the history.

use super::both::{GPUS, NAME, PRIORITY, PROJECT, SUBMITTED, USER, at, plain};
use super::{Column as C, Spec, spec};
use crate::model::Bytes;
use crate::tui::arrange::Key;
use crate::tui::look::text::hours;
use crate::tui::panels::history;

/// Every column, in the order they have at first.
pub(super) static TABLE: &[Spec] = &[
    Spec { grows: 5, ..USER },
    spec(
        (C::Result, "result"),
        ("RESULT", "how it ended; exit code or signal"),
        (1, 8, 0, false),
        (true, 0),
        Some(Key::Result),
        |_, row, _| history::result_of(row),
    ),
    spec(
        (C::Held, "held"),
        ("GPU-h", "GPU-hours it held"),
        (0, 6, 0, true),
        (true, 0),
        Some(Key::Held),
        |v, row, _| plain(hours(row.gpu_ms(&v.now))),
    ),
    spec(
        (C::End, "end"),
        ("END", "when it was done"),
        (0, 7, 6, true),
        (true, 0),
        Some(Key::End),
        |v, row, columns| plain(history::ended(v, row, columns)),
    ),
    spec(
        (C::Waited, "waited"),
        ("WAIT", "how long it waited"),
        (0, 7, 0, true),
        (true, 7),
        Some(Key::Wait),
        |_, row, _| plain(history::waited(row)),
    ),
    spec(
        (C::Ran, "ran"),
        ("RUN", "how long it ran"),
        (0, 7, 0, true),
        (true, 6),
        Some(Key::Ran),
        |_, row, _| plain(history::ran(row)),
    ),
    spec(
        (C::Peak, "peak"),
        ("PEAK", "the most memory it had"),
        (0, 10, 0, true),
        (true, 5),
        Some(Key::Memory),
        |_, row, _| plain(bytes(row.peak_memory)),
    ),
    spec(
        (C::Load, "load"),
        ("LOAD", "mean utilisation of its GPUs"),
        (0, 5, 0, true),
        (true, 4),
        Some(Key::Load),
        |_, row, _| plain(row.mean_utilisation.map_or_else(|| "n/a".to_owned(), |load| format!("{load}%"))),
    ),
    spec(
        (C::GpuPeak, "gpu-peak"),
        ("GPU PEAK", "the most memory of a GPU it had"),
        (1, 9, 0, true),
        (true, 1),
        None,
        |_, row, _| plain(bytes(row.peak_gpu_memory)),
    ),
    Spec { gap: 0, width: 4, goes: 3, about: "GPUs it asked for", ..GPUS },
    Spec { gap: 0, width: 5, goes: 2, key: None, ..PRIORITY },
    Spec { gap: 2, goes: 10, ..PROJECT },
    Spec { goes: 9, ..SUBMITTED },
    spec(
        (C::Start, "start"),
        ("START", "when it started"),
        (1, 12, 0, true),
        (false, 8),
        None,
        |v, row, _| at(v, row.started_at),
    ),
    Spec { gap: 2, ..NAME },
];

fn bytes(peak: Option<Bytes>) -> String {
    peak.map_or_else(|| "n/a".to_owned(), |peak| peak.to_string())
}
