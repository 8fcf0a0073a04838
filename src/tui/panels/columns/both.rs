//! The columns that both tables have; a table says how each stands in it.

use super::{Column as C, Spec, spec};
use crate::tui::View;
use crate::tui::arrange::Key;
use crate::tui::look::text::{cut_middle, moment};
use crate::tui::look::theme::Role;

pub(super) const USER: Spec = spec(
    (C::User, "user"),
    ("USER", "its owner"),
    (1, 5, 2, false),
    (true, 0),
    Some(Key::User),
    |_, row, _| plain(row.user.clone()),
);

pub(super) const NAME: Spec = spec(
    (C::Name, "name"),
    ("NAME", "its name; always there"),
    (1, 0, 0, false),
    (true, 0),
    Some(Key::Name),
    |_, row, columns| plain(cut_middle(&row.name, columns)),
);

pub(super) const GPUS: Spec = spec(
    (C::Gpus, "gpus"),
    ("GPU", "GPUs it asks for"),
    (1, 3, 0, true),
    (true, 0),
    Some(Key::Gpus),
    |_, row, _| plain(row.gpus.to_string()),
);

pub(super) const PRIORITY: Spec = spec(
    (C::Priority, "priority"),
    ("PRIO", "its priority"),
    (1, 4, 0, true),
    (true, 1),
    Some(Key::Priority),
    |_, row, _| plain(row.priority.to_string()),
);

pub(super) const PROJECT: Spec = spec(
    (C::Project, "project"),
    ("PROJECT", "its project"),
    (1, 10, 0, false),
    (false, 6),
    None,
    |_, row, columns| plain(cut_middle(row.project.as_deref().unwrap_or("-"), columns)),
);

pub(super) const SUBMITTED: Spec = spec(
    (C::Submitted, "submitted"),
    ("SUBMITTED", "when it was submitted"),
    (1, 12, 0, true),
    (false, 5),
    Some(Key::Id),
    |v, row, _| at(v, Some(row.submitted_at)),
);

/// A cell that looks like its row.
pub(super) const fn plain(text: String) -> (String, Role) {
    (text, Role::Text)
}

/// A moment, or that there is none.
pub(super) fn at(v: &View<'_>, moment_ms: Option<i64>) -> (String, Role) {
    plain(moment_ms.map_or_else(|| "-".to_owned(), |at| moment(at, v.now.wall_ms, &v.ui.tz)))
}
