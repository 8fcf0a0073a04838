//! The columns of the queue.

use super::both::{GPUS, NAME, PRIORITY, PROJECT, SUBMITTED, USER, at, plain};
use super::{Column as C, Spec, spec};
use crate::protocol::JobRow;
use crate::tui::arrange::Key;
use crate::tui::look::text::hours;
use crate::tui::panels::queue;

/// Every column, in the order they have at first.
pub(super) static TABLE: &[Spec] = &[
    USER,
    NAME,
    GPUS,
    PRIORITY,
    spec(
        (C::Held, "held"),
        ("HELD", "GPU-hours it has held"),
        (1, 6, 0, true),
        (true, 2),
        Some(Key::Held),
        |v, row, _| {
            plain(if row.rented_at.is_none() { "-".to_owned() } else { hours(row.gpu_ms(&v.minute)) })
        },
    ),
    spec(
        (C::Time, "time"),
        ("TIME ", "how long it has waited or run"),
        (1, 6, 0, true),
        (true, 8),
        Some(Key::Time),
        |v, row, _| plain(queue::time(v, row)),
    ),
    PROJECT,
    SUBMITTED,
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
