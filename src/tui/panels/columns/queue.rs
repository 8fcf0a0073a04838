//! The columns of the queue.

use super::{Column as C, Spec, spec};
use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::Key;
use crate::tui::look::text::{cut_middle, hours, moment};
use crate::tui::look::theme::Role;
use crate::tui::panels::queue;

/// Every column, in the order they have at first.
pub(super) static TABLE: &[Spec] = &[
    spec(
        (C::User, "user"),
        ("USER", "its owner"),
        (1, 5, 2, false),
        (true, 0),
        Some(Key::User),
        |_, row, _| plain(row.user.clone()),
    ),
    spec(
        (C::Name, "name"),
        ("NAME", "its name; always there"),
        (1, 0, 0, false),
        (true, 0),
        Some(Key::Name),
        |_, row, columns| plain(cut_middle(&row.name, columns)),
    ),
    spec(
        (C::Gpus, "gpus"),
        ("GPU", "GPUs it asks for"),
        (1, 3, 0, true),
        (true, 0),
        Some(Key::Gpus),
        |_, row, _| plain(row.gpus.to_string()),
    ),
    spec(
        (C::Priority, "priority"),
        ("PRIO", "its priority"),
        (1, 4, 0, true),
        (true, 1),
        Some(Key::Priority),
        |_, row, _| plain(row.priority.to_string()),
    ),
    spec(
        (C::Held, "held"),
        ("HELD", "GPU-hours it has held"),
        (1, 6, 0, true),
        (true, 2),
        Some(Key::Held),
        |v, row, _| plain(if row.rented_at.is_none() { "-".to_owned() } else { hours(row.gpu_ms(&v.now)) }),
    ),
    spec(
        (C::Time, "time"),
        ("TIME ", "how long it has waited or run"),
        (1, 6, 0, true),
        (true, 8),
        Some(Key::Time),
        |v, row, _| plain(queue::time(v, row)),
    ),
    spec(
        (C::Project, "project"),
        ("PROJECT", "its project"),
        (1, 10, 0, false),
        (false, 6),
        None,
        |_, row, columns| plain(cut_middle(row.project.as_deref().unwrap_or("-"), columns)),
    ),
    spec(
        (C::Submitted, "submitted"),
        ("SUBMITTED", "when it was submitted"),
        (1, 12, 0, true),
        (false, 5),
        Some(Key::Id),
        |v, row, _| at(v, Some(row.submitted_at)),
    ),
    spec(
        (C::Start, "start"),
        ("START", "when it started, or is expected to"),
        (1, 12, 0, true),
        (false, 4),
        None,
        |v, row, _| at(v, row.started_at.or(row.starts_at)),
    ),
    spec(
        (C::Limit, "limit"),
        ("END BY", "when its limit ends it"),
        (1, 12, 0, true),
        (false, 3),
        None,
        |v, row, _| at(v, row.limit_at),
    ),
    spec(
        (C::Why, "why"),
        ("WHY / WHERE", "why it waits, or where it is"),
        (2, 0, 0, false),
        (true, 0),
        None,
        |v, row: &JobRow, columns| queue::beside(v, row, columns),
    ),
];

/// A cell that looks like its row.
pub(super) const fn plain(text: String) -> (String, Role) {
    (text, Role::Text)
}

/// A moment, or that there is none.
pub(super) fn at(v: &View<'_>, moment_ms: Option<i64>) -> (String, Role) {
    plain(moment_ms.map_or_else(|| "-".to_owned(), |at| moment(at, v.now.wall_ms, &v.ui.tz)))
}
