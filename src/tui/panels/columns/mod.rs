//! The columns of the tables of jobs: what each says, which there is room for, how wide each is.
//!
//! A table is a list of [`Spec`]: [`queue`] and [`history`]. A new column is a variant of [`Column`] and a row of one.

mod both;
mod history;
mod queue;

use crate::protocol::JobRow;
use crate::tui::View;
use crate::tui::arrange::Key;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{left, right};
use crate::tui::look::theme::Role;
use ratatui::layout::Rect;

/// A column that can be switched and moved; what a row is found by always comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has its words in the tables")]
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
    Result,
    End,
    Waited,
    Ran,
    Peak,
    Load,
    GpuPeak,
}

/// What a cell says: the text, and its role where that is its own.
type Cell = fn(&View<'_>, &JobRow, usize) -> (String, Role);

/// One column.
pub(in crate::tui) struct Spec {
    pub(in crate::tui) column: Column,
    /// Its name in the configuration.
    pub(in crate::tui) id: &'static str,
    /// Its head.
    pub(in crate::tui) head: &'static str,
    /// What it says, for the picker.
    pub(in crate::tui) about: &'static str,
    /// Blanks before it.
    gap: usize,
    /// Columns it takes; what NAME and WHY take depends on the room.
    width: usize,
    /// So many more on a wide screen.
    grows: usize,
    is_right: bool,
    /// It is there unless somebody switches it off.
    on: bool,
    /// Which go first where there is little room; 0: stays. What somebody has switched on outlives most of the others.
    goes: u8,
    /// What clicking its head orders by.
    key: Option<Key>,
    cell: Cell,
}

const fn spec(
    (column, id): (Column, &'static str),
    (head, about): (&'static str, &'static str),
    (gap, width, grows, is_right): (usize, usize, usize, bool),
    (on, goes): (bool, u8),
    key: Option<Key>,
    cell: Cell,
) -> Spec {
    Spec { column, id, head, about, gap, width, grows, is_right, on, goes, key, cell }
}

/// The columns that a pane's table can have.
pub(in crate::tui) const fn table(pane: Pane) -> &'static [Spec] {
    if matches!(pane, Pane::History) { history::TABLE } else { queue::TABLE }
}

/// The columns of a pane in the order they have at first, and whether each is shown.
pub(in crate::tui) fn defaults(pane: Pane) -> Vec<(Column, bool)> {
    table(pane).iter().map(|spec| (spec.column, spec.on)).collect()
}

/// The columns of these names, in this order, and behind them the others, which are not shown; and what is wrong.
pub(in crate::tui) fn named(pane: Pane, names: &[String]) -> (Vec<(Column, bool)>, Vec<String>) {
    let mut chosen: Vec<(Column, bool)> = Vec::new();
    let mut wrong = Vec::new();
    for name in names {
        match table(pane).iter().find(|spec| spec.id == name) {
            Some(spec) if chosen.iter().any(|(column, _)| *column == spec.column) => {
                wrong.push(format!("column `{name}` is there twice"));
            }
            Some(spec) => chosen.push((spec.column, true)),
            None => {
                let known: Vec<&str> = table(pane).iter().map(|spec| spec.id).collect();
                wrong.push(format!("there is no column `{name}`: {}", known.join(" ")));
            }
        }
    }
    let others = table(pane).iter().filter(|spec| chosen.iter().all(|(column, _)| *column != spec.column));
    let others: Vec<_> = others.map(|spec| (spec.column, false)).collect();
    chosen.extend(others);
    (chosen, wrong)
}

/// What the configuration says to have the columns as they are now.
pub(in crate::tui) fn written(pane: Pane, chosen: &[(Column, bool)]) -> String {
    let shown = chosen.iter().filter(|(column, on)| *on || *column == Column::Name);
    let names: Vec<String> =
        shown.filter_map(|(column, _)| find(pane, *column)).map(|spec| format!("\"{}\"", spec.id)).collect();
    let key = if pane == Pane::History { "history_columns" } else { "columns" };
    format!("{key} = [{}]", names.join(", "))
}

/// A column's row of the table, if the pane has such a column.
pub(in crate::tui) fn find(pane: Pane, column: Column) -> Option<&'static Spec> {
    table(pane).iter().find(|spec| spec.column == column)
}

/// A column as it is shown: how wide it is here.
#[derive(Clone, Copy)]
pub(in crate::tui) struct Shown {
    pub(in crate::tui) spec: &'static Spec,
    pub(in crate::tui) width: usize,
    is_last: bool,
}

impl Shown {
    fn head(&self) -> String {
        self.padded(self.spec.head)
    }

    /// Its text, as wide as it is here, and its role.
    pub(in crate::tui) fn cell(&self, v: &View<'_>, row: &JobRow) -> (String, Role) {
        let (text, role) = (self.spec.cell)(v, row, self.width);
        (self.padded(&text), role)
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

/// Writes a piece of a table's head that orders by a key when it is clicked; the column after it.
pub(in crate::tui) fn click(
    c: &mut Canvas<'_>,
    (area, x): (Rect, u16),
    pane: Pane,
    text: &str,
    key: Option<Key>,
) -> u16 {
    let rest = Rect { x, width: area.right().saturating_sub(x), height: 1, ..area };
    let end = c.pieces(rest, 0, &[(text, Role::Title)]);
    if let Some(key) = key {
        c.spot(Rect { width: end.saturating_sub(x), ..rest }, Action::SortBy(pane, key));
    }
    end
}

/// Writes the heads of columns from `x` on.
pub(in crate::tui) fn heads(c: &mut Canvas<'_>, (area, mut x): (Rect, u16), pane: Pane, shown: &[Shown]) {
    for one in shown {
        x = click(c, (area, x), pane, &one.head(), one.spec.key);
    }
}

/// The least that NAME and WHY get before a column goes.
const LEAST: [usize; 2] = [12, 7];

/// Where there is no WHY, a name of so many columns is whole before another column is there.
const LONG: usize = 20;

/// With so many columns WHY says most of what there is to say, and with so many all of it, mostly.
const ENOUGH: [usize; 2] = [15, 32];

/// What NAME has of the room of NAME and WHY: a blank that one does not need is the other's; where both lack, they share.
fn shared(room: usize, longest: usize) -> usize {
    let even = (room * 4 / 7).clamp(17.min(room), 26);
    if longest > even {
        return longest.min(room.saturating_sub(ENOUGH[0])).max(even);
    }
    longest.max(LEAST[0]).max(room.saturating_sub(ENOUGH[1])).min(even)
}

/// What a table has to fit into.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct Room {
    /// The columns of the pane.
    pub(in crate::tui) total: usize,
    /// What comes before the columns that can be chosen.
    pub(in crate::tui) lead: usize,
    /// A small screen: where it is narrow too, only what is needed most.
    pub(in crate::tui) is_small: bool,
    /// Columns that can grow do.
    pub(in crate::tui) is_wide: bool,
    /// All rows are one user's.
    pub(in crate::tui) mine: bool,
    /// Columns scrolled away.
    pub(in crate::tui) sideways: usize,
    /// The longest name.
    pub(in crate::tui) longest: usize,
}

/// Which columns there is room for, and how wide each is.
pub(in crate::tui) fn fit(pane: Pane, chosen: &[(Column, bool)], room: &Room) -> Vec<Shown> {
    // A low screen can still be a wide one.
    let allowed = |column: Column| match room.total {
        ..60 if room.is_small => column == Column::Name,
        60..80 if room.is_small => matches!(column, Column::Name | Column::Time | Column::Why),
        _ => true,
    };
    let on = chosen.iter().filter(|(column, on)| (*on || *column == Column::Name) && allowed(*column));
    let mut skipped = 0;
    let mut shown: Vec<Shown> = on
        .filter(|(column, _)| {
            let skip = *column != Column::Name && skipped < room.sideways;
            skipped += usize::from(skip);
            !skip
        })
        .filter_map(|(column, _)| find(pane, *column))
        .map(|spec| {
            let grown = if room.is_wide { spec.grows } else { 0 };
            Shown { spec, width: spec.width + grown, is_last: false }
        })
        .collect();
    let left = |shown: &[Shown]| {
        let taken: usize = shown.iter().map(|one| one.spec.gap + one.width).sum();
        room.total.saturating_sub(room.lead + taken)
    };
    let has_why = |shown: &[Shown]| shown.iter().any(|one| one.spec.column == Column::Why);
    let last = table(pane).iter().map(|spec| spec.goes).max().unwrap_or(0);
    for step in 1..=last {
        let least = if has_why(&shown) { LEAST[0] + LEAST[1] } else { room.longest.clamp(LEAST[0], LONG) };
        if left(&shown) >= least {
            break;
        }
        // Who has it need not be said where all are one's own: that goes before the last.
        if step + 1 == last && room.mine {
            shown.retain(|one| one.spec.column != Column::User);
        }
        shown.retain(|one| one.spec.goes != step);
    }
    let left = left(&shown);
    let name = if has_why(&shown) { shared(left, room.longest) } else { left };
    for one in &mut shown {
        match one.spec.column {
            Column::Name => one.width = name,
            Column::Why => one.width = left - name,
            _ => {}
        }
    }
    if let Some(last) = shown.last_mut() {
        last.is_last = true;
    }
    shown
}

/// How far a table can be scrolled sideways.
pub(in crate::tui) fn most_sideways(chosen: &[(Column, bool)]) -> usize {
    let on = chosen.iter().filter(|(column, on)| *on && *column != Column::Name).count();
    on.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a queue with places of one digit and numbers of three.
    const LEAD: usize = 13;

    fn at(total: usize, change: impl FnOnce(&mut Room), chosen: &[(Column, bool)]) -> Vec<Shown> {
        let mut room = Room {
            total,
            lead: LEAD,
            is_small: false,
            is_wide: false,
            mine: false,
            sideways: 0,
            longest: 20,
        };
        change(&mut room);
        fit(Pane::Queue, chosen, &room)
    }

    fn width(shown: &[Shown], column: Column) -> Option<usize> {
        shown.iter().find(|one| one.spec.column == column).map(|one| one.width)
    }

    #[test]
    fn columns_fit_and_go_in_order() {
        let usual = defaults(Pane::Queue);
        let wide = at(80, |_| {}, &usual);
        assert_eq!((width(&wide, Column::Name), width(&wide, Column::Why)), (Some(20), Some(15)));
        for total in 60..200 {
            let shown = at(total, |_| {}, &usual);
            let head: String = shown.iter().map(Shown::head).collect();
            assert!(LEAD + head.len() <= total + 11, "{total}: {head}");
        }
        let there = |total, column| width(&at(total, |_| {}, &usual), column).is_some();
        assert!(!there(62, Column::Priority) && there(62, Column::Held));
        assert!(!there(56, Column::Held) && there(56, Column::Time));
        assert_eq!(width(&at(30, |room| room.is_small = true, &usual), Column::Name), Some(16));
    }

    #[test]
    fn names_and_reasons_have_each_others_blanks() {
        let usual = defaults(Pane::Queue);
        let name = |total, longest| {
            let shown = at(total, |room| room.longest = longest, &usual);
            (width(&shown, Column::Name).unwrap(), width(&shown, Column::Why).unwrap())
        };
        assert_eq!(name(70, 30), (17, 8), "long names, little room: even shares");
        assert_eq!(name(70, 14), (14, 11), "short names leave the reasons more");
        assert_eq!(name(80, 14), (14, 21), "and all that they do not need themselves");
        assert_eq!(name(140, 20).0, 26, "nobody lacks anything");
        assert_eq!(name(140, 44).0, 44, "room for the whole of a long name");
        assert_eq!(name(100, 44), (40, 15), "and no more than leaves the reasons enough");
    }

    #[test]
    fn a_low_screen_that_is_wide_has_all_columns() {
        let usual = defaults(Pane::Queue);
        let small = |total| at(total, |room| room.is_small = true, &usual).len();
        assert_eq!(small(200), at(200, |_| {}, &usual).len());
        assert_eq!(small(59), 1);
    }

    #[test]
    fn what_somebody_has_switched_on_stays_and_what_does_not_fit_is_reached_sideways() {
        let mut one = defaults(Pane::Queue);
        one.iter_mut().filter(|(column, _)| *column == Column::Submitted).for_each(|(_, on)| *on = true);
        let shown = at(72, |_| {}, &one);
        assert!(width(&shown, Column::Submitted).is_some() && width(&shown, Column::Priority).is_none());
        let all: Vec<_> = one.iter().map(|(column, _)| (*column, true)).collect();
        assert_eq!(width(&at(80, |_| {}, &all), Column::Limit), None);
        let far = at(80, |room| room.sideways = 7, &all);
        assert!(width(&far, Column::Limit).is_some() && width(&far, Column::Name).is_some());
        let last = at(80, |room| room.sideways = most_sideways(&all), &all);
        assert_eq!(last.len(), 2, "the name and the last one");
    }

    #[test]
    fn a_history_has_as_many_figures_as_leave_its_names_whole() {
        let usual = defaults(Pane::History);
        let shown = |longest| {
            let room = Room {
                total: 80,
                lead: 5,
                is_small: false,
                is_wide: false,
                mine: false,
                sideways: 0,
                longest,
            };
            fit(Pane::History, &usual, &room)
        };
        assert!(width(&shown(8), Column::Gpus).is_some() && width(&shown(8), Column::GpuPeak).is_none());
        assert_eq!(width(&shown(20), Column::Load), None);
        assert!(width(&shown(50), Column::Name) >= Some(20) && width(&shown(50), Column::Ran).is_some());
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        for pane in [Pane::Queue, Pane::History] {
            let names: Vec<String> = table(pane).iter().map(|spec| spec.id.to_owned()).collect();
            let (chosen, wrong) = named(pane, &names);
            assert_eq!((chosen.len(), wrong), (names.len(), Vec::new()));
            assert!(written(pane, &chosen).contains(&format!("\"{}\"", names[0])));
        }
    }
}
