//! The queue's columns: one table. A new column is a variant of [`Column`] and a row of [`SPECS`].

use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::Key;
use crate::tui::layout::Kind;
use crate::tui::look::text::{cut_middle, hours, left, moment, right};
use crate::tui::panels::queue;

/// A column that can be switched and moved; place, number and state always come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has its words in the table")]
pub enum Column {
    User,
    Name,
    Gpus,
    Priority,
    Held,
    Time,
    Why,
    Project,
    Submitted,
    Start,
    Limit,
}

/// One column.
pub(in crate::tui) struct Spec {
    pub(in crate::tui) column: Column,
    /// Its head.
    pub(in crate::tui) head: &'static str,
    /// What it says, for the picker.
    pub(in crate::tui) about: &'static str,
    /// Blanks before it.
    gap: usize,
    /// Columns it takes; what NAME and WHY take depends on the room.
    width: usize,
    is_right: bool,
    /// It is there unless somebody switches it off.
    on: bool,
    /// Which go first where there is little room; 0: stays.
    goes: u8,
    /// What clicking its head orders by.
    pub(in crate::tui) key: Option<Key>,
    cell: fn(&View<'_>, &JobRow, usize) -> String,
}

const fn spec(
    column: Column,
    (head, about): (&'static str, &'static str),
    (gap, width, is_right): (usize, usize, bool),
    (on, goes): (bool, u8),
    key: Option<Key>,
    cell: fn(&View<'_>, &JobRow, usize) -> String,
) -> Spec {
    Spec { column, head, about, gap, width, is_right, on, goes, key, cell }
}

use Column as C;

/// Every column, in the order they have at first.
pub(in crate::tui) static SPECS: &[Spec] = &[
    spec(C::User, ("USER", "its owner"), (1, 5, false), (true, 0), Some(Key::User), |_, row, _| {
        row.user.clone()
    }),
    spec(
        C::Name,
        ("NAME", "its name; always there"),
        (1, 0, false),
        (true, 0),
        Some(Key::Name),
        |_, row, columns| cut_middle(&row.name, columns),
    ),
    spec(C::Gpus, ("GPU", "GPUs it asks for"), (1, 3, true), (true, 0), Some(Key::Gpus), |_, row, _| {
        row.gpus.to_string()
    }),
    spec(C::Priority, ("PRIO", "its priority"), (1, 4, true), (true, 5), Some(Key::Priority), |_, row, _| {
        row.priority.to_string()
    }),
    spec(
        C::Held,
        ("HELD", "GPU-hours it has held"),
        (1, 6, true),
        (true, 6),
        Some(Key::Held),
        |v, row, _| {
            if row.rented_at.is_none() { "-".to_owned() } else { hours(row.gpu_ms(&v.now)) }
        },
    ),
    spec(
        C::Time,
        ("TIME ", "how long it has waited or run"),
        (1, 6, true),
        (true, 8),
        Some(Key::Time),
        |v, row, _| queue::time(v, row),
    ),
    spec(C::Project, ("PROJECT", "its project"), (1, 10, false), (false, 1), None, |_, row, columns| {
        cut_middle(row.project.as_deref().unwrap_or("-"), columns)
    }),
    spec(
        C::Submitted,
        ("SUBMITTED", "when it was submitted"),
        (1, 12, true),
        (false, 2),
        Some(Key::Id),
        |v, row, _| moment(row.submitted_at, v.now.wall_ms, &v.ui.tz),
    ),
    spec(
        C::Start,
        ("START", "when it started, or is expected to"),
        (1, 12, true),
        (false, 3),
        None,
        |v, row, _| {
            let at = row.started_at.or(row.starts_at);
            at.map_or_else(|| "-".to_owned(), |at| moment(at, v.now.wall_ms, &v.ui.tz))
        },
    ),
    spec(C::Limit, ("END BY", "when its limit ends it"), (1, 12, true), (false, 4), None, |v, row, _| {
        row.limit_at.map_or_else(|| "-".to_owned(), |at| moment(at, v.now.wall_ms, &v.ui.tz))
    }),
    spec(
        C::Why,
        ("WHY / WHERE", "why it waits, or where it is"),
        (2, 0, false),
        (true, 0),
        None,
        |v, row, columns| queue::beside(v, row, columns).0,
    ),
];

impl Column {
    /// The columns in the order they have at first, and whether each is shown.
    pub(in crate::tui) fn defaults() -> Vec<(Self, bool)> {
        SPECS.iter().map(|spec| (spec.column, spec.on)).collect()
    }

    /// Its row of the table.
    pub(in crate::tui) fn spec(self) -> &'static Spec {
        SPECS.iter().find(|spec| spec.column == self).unwrap_or(&SPECS[0])
    }
}

/// A column as it is shown: how wide it is here.
#[derive(Clone, Copy)]
pub(in crate::tui) struct Shown {
    pub(in crate::tui) spec: &'static Spec,
    pub(in crate::tui) width: usize,
    is_last: bool,
}

impl Shown {
    pub(in crate::tui) fn head(&self) -> String {
        self.padded(self.spec.head)
    }

    pub(in crate::tui) fn cell(&self, v: &View<'_>, row: &JobRow) -> String {
        self.padded(&(self.spec.cell)(v, row, self.width))
    }

    /// The blanks before it, and exactly its width; the last one goes on to the edge.
    fn padded(&self, text: &str) -> String {
        let gap = " ".repeat(self.spec.gap);
        if self.is_last && !self.spec.is_right {
            format!("{gap}{text}")
        } else if self.spec.is_right {
            format!("{gap}{}", right(text, self.width))
        } else {
            format!("{gap}{}", left(text, self.width))
        }
    }
}

/// The widths of what always comes first: place, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) struct Lead {
    pub(in crate::tui) place: usize,
    pub(in crate::tui) id: usize,
}

impl Lead {
    pub(in crate::tui) fn new(place_digits: usize, id_digits: usize) -> Self {
        // The cursor, the place and the mark.
        Self { place: 1 + (place_digits + 1).max(2), id: id_digits.max(4) }
    }

    /// With the state behind them.
    pub(in crate::tui) const fn columns(self) -> usize {
        self.place + self.id + 1 + 5
    }
}

/// The least that NAME and WHY get before a column goes.
const LEAST: [usize; 2] = [12, 7];

/// With so many columns WHY says most of what there is to say.
const ENOUGH: usize = 15;

/// What NAME has of the room of NAME and WHY: their shares are even, but a blank that one does not need is the other's.
fn shared(room: usize, longest: usize) -> usize {
    let even = (room * 4 / 7).clamp(17.min(room), 26);
    if longest > even {
        return longest.min(room.saturating_sub(ENOUGH)).max(even);
    }
    longest.max(LEAST[0]).max(room.saturating_sub(ENOUGH)).min(even)
}

/// Which columns there is room for, and how wide each is, where the longest name is so long.
pub(in crate::tui) fn fit(
    total: usize,
    kind: Kind,
    lead: Lead,
    mine: bool,
    (chosen, sideways, longest): (&[(Column, bool)], usize, usize),
) -> Vec<Shown> {
    // A low screen can still be a wide one.
    let is_small = matches!(kind, Kind::Line | Kind::Bare | Kind::Compact);
    let allowed = |column: Column| match total {
        ..60 if is_small => column == Column::Name,
        60..80 if is_small => matches!(column, Column::Name | Column::Time | Column::Why),
        _ => true,
    };
    let on = chosen.iter().filter(|(column, on)| (*on || *column == Column::Name) && allowed(*column));
    let mut skipped = 0;
    let mut shown: Vec<Shown> = on
        .filter(|(column, _)| {
            let skip = *column != Column::Name && skipped < sideways;
            skipped += usize::from(skip);
            !skip
        })
        .map(|(column, _)| {
            let spec = column.spec();
            let wide = kind == Kind::Three && *column == Column::User;
            Shown { spec, width: spec.width + if wide { 2 } else { 0 }, is_last: false }
        })
        .collect();
    let room = |shown: &[Shown]| {
        let taken: usize = shown.iter().map(|one| one.spec.gap + one.width).sum();
        total.saturating_sub(lead.columns() + taken)
    };
    let has = |shown: &[Shown], column: Column| shown.iter().any(|one| one.spec.column == column);
    for step in 1..=8 {
        let least = LEAST[0] + if has(&shown, Column::Why) { LEAST[1] } else { 0 };
        if room(&shown) >= least {
            break;
        }
        if step == 7 && mine {
            shown.retain(|one| one.spec.column != Column::User);
        }
        shown.retain(|one| one.spec.goes != step);
    }
    let room = room(&shown);
    let name = if has(&shown, Column::Why) { shared(room, longest) } else { room };
    for one in &mut shown {
        match one.spec.column {
            Column::Name => one.width = name,
            Column::Why => one.width = room - name,
            _ => {}
        }
    }
    if let Some(last) = shown.last_mut() {
        last.is_last = true;
    }
    shown
}

/// How far the queue can be scrolled sideways.
pub(in crate::tui) fn most_sideways(chosen: &[(Column, bool)]) -> usize {
    let on = chosen.iter().filter(|(column, on)| *on && *column != Column::Name).count();
    on.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(total: usize, kind: Kind, chosen: &[(Column, bool)], sideways: usize) -> Vec<Shown> {
        fit(total, kind, Lead::new(1, 3), false, (chosen, sideways, 20))
    }

    fn width(shown: &[Shown], column: Column) -> Option<usize> {
        shown.iter().find(|one| one.spec.column == column).map(|one| one.width)
    }

    #[test]
    fn columns_fit_and_go_in_order() {
        let usual = Column::defaults();
        let wide = at(80, Kind::One, &usual, 0);
        assert_eq!((width(&wide, Column::Name), width(&wide, Column::Why)), (Some(20), Some(15)));
        for total in 60..200 {
            let shown = at(total, Kind::Two, &usual, 0);
            let head: String = shown.iter().map(Shown::head).collect();
            assert!(Lead::new(1, 3).columns() + head.len() <= total + 11, "{total}: {head}");
        }
        let there = |total, column| width(&at(total, Kind::One, &usual, 0), column).is_some();
        assert!(!there(62, Column::Priority) && there(62, Column::Held));
        assert!(!there(56, Column::Held) && there(56, Column::Time));
        assert_eq!(width(&at(30, Kind::Bare, &usual, 0), Column::Name), Some(16));
    }

    #[test]
    fn names_and_reasons_have_each_others_blanks() {
        let usual = Column::defaults();
        let name = |total, longest| {
            let shown = fit(total, Kind::Two, Lead::new(1, 3), false, (&usual, 0, longest));
            (width(&shown, Column::Name).unwrap(), width(&shown, Column::Why).unwrap())
        };
        assert_eq!(name(70, 30), (17, 8), "long names, little room: even shares");
        assert_eq!(name(70, 14), (14, 11), "short names leave the reasons more");
        assert_eq!(name(140, 20).0, 26, "nobody lacks anything");
        assert_eq!(name(140, 44).0, 44, "room for the whole of a long name");
        assert_eq!(name(100, 44), (40, 15), "and no more than leaves the reasons enough");
    }

    #[test]
    fn a_low_screen_that_is_wide_has_all_columns() {
        let usual = Column::defaults();
        assert!(at(200, Kind::Bare, &usual, 0).len() == at(200, Kind::Three, &usual, 0).len());
        assert_eq!(at(59, Kind::Bare, &usual, 0).len(), 1);
    }

    #[test]
    fn what_does_not_fit_is_reached_sideways() {
        let all: Vec<_> = Column::defaults().into_iter().map(|(column, _)| (column, true)).collect();
        assert_eq!(width(&at(80, Kind::One, &all, 0), Column::Submitted), None);
        let far = at(80, Kind::One, &all, 6);
        assert!(width(&far, Column::Submitted).is_some() && width(&far, Column::Name).is_some());
        let last = at(80, Kind::One, &all, most_sideways(&all));
        assert_eq!(last.len(), 2, "the name and the last one");
    }
}
