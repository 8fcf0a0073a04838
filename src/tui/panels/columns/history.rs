//! The columns of the history.

use super::queue::{at, plain};
use super::{Column as C, Spec, spec};
use crate::model::Bytes;
use crate::tui::arrange::Key;
use crate::tui::look::text::{cut_middle, hours};
use crate::tui::panels::history;

/// Every column, in the order they have at first.
pub(super) static TABLE: &[Spec] = &[
    spec(
        (C::User, "user"),
        ("USER", "its owner"),
        (1, 5, 5, false),
        (true, 0),
        Some(Key::User),
        |_, row, _| plain(row.user.clone()),
    ),
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
        None,
        |_, row, _| plain(bytes(row.peak_memory)),
    ),
    spec(
        (C::Load, "load"),
        ("LOAD", "mean utilisation of its GPUs"),
        (0, 5, 0, true),
        (true, 4),
        None,
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
    spec(
        (C::Gpus, "gpus"),
        ("GPU", "GPUs it asked for"),
        (0, 4, 0, true),
        (true, 3),
        Some(Key::Gpus),
        |_, row, _| plain(row.gpus.to_string()),
    ),
    spec(
        (C::Priority, "priority"),
        ("PRIO", "its priority"),
        (0, 5, 0, true),
        (true, 2),
        None,
        |_, row, _| plain(row.priority.to_string()),
    ),
    spec(
        (C::Project, "project"),
        ("PROJECT", "its project"),
        (2, 10, 0, false),
        (false, 10),
        None,
        |_, row, columns| plain(cut_middle(row.project.as_deref().unwrap_or("-"), columns)),
    ),
    spec(
        (C::Submitted, "submitted"),
        ("SUBMITTED", "when it was submitted"),
        (1, 12, 0, true),
        (false, 9),
        Some(Key::Id),
        |v, row, _| at(v, Some(row.submitted_at)),
    ),
    spec(
        (C::Start, "start"),
        ("START", "when it started"),
        (1, 12, 0, true),
        (false, 8),
        None,
        |v, row, _| at(v, row.started_at),
    ),
    spec(
        (C::Name, "name"),
        ("NAME", "its name; always there"),
        (2, 0, 0, false),
        (true, 0),
        Some(Key::Name),
        |_, row, columns| plain(cut_middle(&row.name, columns)),
    ),
];

fn bytes(peak: Option<Bytes>) -> String {
    peak.map_or_else(|| "n/a".to_owned(), |peak| peak.to_string())
}
