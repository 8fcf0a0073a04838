//! How the tables of jobs are ordered, grouped and scrolled sideways, and which columns they have. Pure.
//!
//! An order by a column that changes by itself stands still while the cursor is being moved: what is about to be pressed
//! must not slip away. So the order is kept as a list of ids, made anew by [`keep`] when it may be.

use crate::model::{Cursor, JobId, Now};
use crate::protocol::{JobRow, Snapshot};
use crate::tui::layout::Pane;
use crate::tui::look::text::{between, hours, state};
use crate::tui::panels::columns::{self, Column};
use crate::tui::rows;
use crate::tui::ui::Ui;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Deref;

/// After a move of the cursor an order that changes by itself stands still for so long.
pub(in crate::tui) const STILL_MS: u64 = 3_000;

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the column of its name")]
pub enum Key {
    /// As the scheduler gives them: the line's order, or the newest first.
    #[default]
    Line,
    Id,
    State,
    User,
    Name,
    Gpus,
    Priority,
    Held,
    Time,
    Result,
    End,
    Wait,
    Ran,
    /// The most memory it had.
    Memory,
    /// How busy its devices were.
    Load,
}

/// The orders of the queue: the letter of the sort menu, and the word.
pub(in crate::tui) const QUEUE: &[(char, Key, &str)] = &[
    ('o', Key::Line, "order"),
    ('i', Key::Id, "id"),
    ('s', Key::State, "state"),
    ('u', Key::User, "user"),
    ('n', Key::Name, "name"),
    ('g', Key::Gpus, "gpus"),
    ('p', Key::Priority, "prio"),
    ('h', Key::Held, "held"),
    ('t', Key::Time, "time"),
];
/// The orders of the history.
pub(in crate::tui) const HISTORY: &[(char, Key, &str)] = &[
    ('o', Key::Line, "newest"),
    ('i', Key::Id, "id"),
    ('u', Key::User, "user"),
    ('r', Key::Result, "result"),
    ('h', Key::Held, "GPU-h"),
    ('e', Key::End, "end"),
    ('w', Key::Wait, "wait"),
    ('t', Key::Ran, "run"),
    ('g', Key::Gpus, "gpus"),
    ('n', Key::Name, "name"),
    ('m', Key::Memory, "memory"),
    ('l', Key::Load, "load"),
];

impl Key {
    /// Whether rows change places by it without anybody doing anything.
    const fn moves(self) -> bool {
        matches!(self, Self::State | Self::Held | Self::Time)
    }

    /// The largest is what people look for first.
    const fn begins_down(self) -> bool {
        matches!(
            self,
            Self::Held
                | Self::Time
                | Self::Gpus
                | Self::Priority
                | Self::End
                | Self::Wait
                | Self::Ran
                | Self::Memory
                | Self::Load
        )
    }
}

/// What rows stand together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// Nothing.
    #[default]
    None,
    /// Their owner.
    User,
    /// Where they are.
    State,
    /// The device they hold.
    Gpu,
    /// The day they ended.
    Day,
    /// The week they ended.
    Week,
}

impl Group {
    const QUEUE: [Self; 4] = [Self::None, Self::User, Self::State, Self::Gpu];
    const HISTORY: [Self; 4] = [Self::None, Self::User, Self::Day, Self::Week];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::User => "user",
            Self::State => "state",
            Self::Gpu => "GPU",
            Self::Day => "day",
            Self::Week => "week",
        }
    }
}

/// How one table is arranged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arranged {
    /// What the rows are ordered by.
    pub key: Key,
    /// The largest first.
    pub down: bool,
    /// What they stand together by.
    pub group: Group,
    /// Columns that are scrolled away.
    pub sideways: usize,
    /// The columns in their order, and whether each is shown.
    pub columns: Vec<(Column, bool)>,
    /// The order as it was last made.
    kept: Vec<JobId>,
}

impl Arranged {
    /// Orders by a key; by the same one again: the other way round.
    pub(in crate::tui) fn sort(&mut self, key: Key) {
        self.down = if self.key == key { !self.down } else { key.begins_down() };
        self.key = key;
        self.kept.clear();
    }

    const fn is_plain(&self) -> bool {
        matches!(self.key, Key::Line) && !self.down
    }
}

/// How the tables are arranged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// The queue.
    pub queue: Arranged,
    /// The history.
    pub history: Arranged,
    /// When the cursor was last moved, on the boot clock.
    pub moved_at: u64,
}

impl Default for Tables {
    fn default() -> Self {
        let of = |pane| Arranged { columns: columns::defaults(pane), ..Arranged::default() };
        Self { queue: of(Pane::Queue), history: of(Pane::History), moved_at: 0 }
    }
}

impl Tables {
    /// Has the columns of these names, queue and history; what is wrong with the names.
    pub fn choose(&mut self, queue: &[String], history: &[String]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (pane, key, names) in
            [(Pane::Queue, "columns", queue), (Pane::History, "history_columns", history)]
        {
            if !names.is_empty() {
                let (chosen, unknown) = columns::named(pane, names);
                self.of_mut(pane).columns = chosen;
                wrong.extend(unknown.into_iter().map(|why| format!("ui.{key}: {why}")));
            }
        }
        wrong
    }

    /// The table of a pane; the queue's where a pane has none.
    pub(in crate::tui) const fn of(&self, pane: Pane) -> &Arranged {
        if matches!(pane, Pane::History) { &self.history } else { &self.queue }
    }

    pub(in crate::tui) const fn of_mut(&mut self, pane: Pane) -> &mut Arranged {
        if matches!(pane, Pane::History) { &mut self.history } else { &mut self.queue }
    }

    /// The next way of grouping.
    pub(in crate::tui) fn regroup(&mut self, pane: Pane) -> Group {
        let all = if pane == Pane::History { Group::HISTORY } else { Group::QUEUE };
        let table = self.of_mut(pane);
        let at = all.iter().position(|group| *group == table.group).unwrap_or(0);
        table.group = all[(at + 1) % all.len()];
        table.group
    }
}

/// The orders that a pane's table can have.
pub(in crate::tui) const fn keys(pane: Pane) -> &'static [(char, Key, &'static str)] {
    if matches!(pane, Pane::History) { HISTORY } else { QUEUE }
}

/// `order ^`, and by what rows are grouped.
pub(in crate::tui) fn words(ui: &Ui, pane: Pane) -> String {
    let table = ui.tables.of(pane);
    let name = keys(pane).iter().find(|(_, key, _)| *key == table.key).map_or("order", |(_, _, name)| name);
    let by = if table.group == Group::None { String::new() } else { format!("  by {}", table.group.name()) };
    format!("{name} {}{by}", if table.down { "v" } else { "^" })
}

/// When an order that stands still moves again.
pub(in crate::tui) fn deadline(ui: &Ui) -> Option<u64> {
    let until = ui.tables.moved_at + STILL_MS;
    let moves = ui.tables.queue.key.moves() && ui.frozen.is_none();
    (moves && ui.now.boottime_ms < until).then_some(until)
}

/// Makes the orders anew, except one that must stand still.
pub(in crate::tui) fn keep(ui: &mut Ui, snap: &Snapshot) {
    let still = deadline(ui).is_some() || ui.frozen.is_some();
    for pane in [Pane::Queue, Pane::History] {
        let table = ui.tables.of(pane);
        if table.is_plain() {
            continue;
        }
        let mut jobs: Vec<&JobRow> = match pane {
            Pane::History => rows::done(ui, snap).collect(),
            _ => snap.jobs.iter().map(|row| &**row).collect(),
        };
        jobs.sort_by(|a, b| {
            let order = compare(a, b, table.key, &ui.now);
            if table.down { order.reverse() } else { order }
        });
        if table.key == Key::Line && table.down {
            jobs.reverse();
        }
        let mut kept: Vec<JobId> = jobs.iter().map(|row| row.id).collect();
        if still && table.key.moves() && !table.kept.is_empty() {
            let place = places(&table.kept);
            kept.sort_by_key(|job| place.get(job).copied().unwrap_or(usize::MAX));
        }
        ui.tables.of_mut(pane).kept = kept;
    }
}

fn places(jobs: &[JobId]) -> HashMap<JobId, usize> {
    jobs.iter().enumerate().map(|(at, job)| (*job, at)).collect()
}

/// Puts rows into their order and into groups.
pub(in crate::tui) fn arrange<T: Deref<Target = JobRow>>(ui: &Ui, pane: Pane, rows: &mut [T]) {
    let table = ui.tables.of(pane);
    if !table.is_plain() {
        let place = places(&table.kept);
        rows.sort_by_cached_key(|row| place.get(&row.id).copied().unwrap_or(usize::MAX));
    }
    if table.group != Group::None {
        rows.sort_by_cached_key(|row| group(row, table.group, &ui.tz).0);
    }
}

/// How long a job has waited, or run.
fn spent(row: &JobRow, now: &Now) -> u64 {
    let end = row.ended_at.unwrap_or(now.wall_ms);
    let from = match row.state {
        Cursor::Queued => row.submitted_at,
        _ => row.started_at.or(row.rented_at).unwrap_or(end),
    };
    between(from, end).0
}

fn compare(a: &JobRow, b: &JobRow, key: Key, now: &Now) -> Ordering {
    let waited = |row: &JobRow| between(row.submitted_at, row.rented_at.or(row.done_at).unwrap_or(0)).0;
    let ran = |row: &JobRow| row.started_at.map_or(0, |from| between(from, row.ended_at.unwrap_or(from)).0);
    match key {
        Key::Line => Ordering::Equal,
        Key::Id => a.id.cmp(&b.id),
        Key::State => rank(a).cmp(&rank(b)),
        Key::User => a.user.cmp(&b.user),
        Key::Name => a.name.cmp(&b.name),
        Key::Gpus => a.gpus.cmp(&b.gpus),
        Key::Priority => a.priority.cmp(&b.priority),
        Key::Held => a.gpu_ms(now).cmp(&b.gpu_ms(now)),
        Key::Time => spent(a, now).cmp(&spent(b, now)),
        Key::Result => state(a).0.cmp(state(b).0),
        Key::End => a.done_at.cmp(&b.done_at),
        Key::Wait => waited(a).cmp(&waited(b)),
        Key::Ran => ran(a).cmp(&ran(b)),
        Key::Memory => a.peak_memory.cmp(&b.peak_memory),
        Key::Load => a.mean_utilisation.cmp(&b.mean_utilisation),
    }
}

/// A state's place in a job's life; what needs looking at is in between.
fn rank(row: &JobRow) -> u8 {
    match state(row).0 {
        "STOP" => 0,
        "RUN" => 1,
        "RENT" => 2,
        "OUT" => 3,
        "FREE" => 4,
        "WAIT" => 5,
        "EDIT" => 6,
        _ => 7,
    }
}

/// What a row's group is ordered by, and its name.
fn group(row: &JobRow, by: Group, tz: &TimeZone) -> ((i64, String), String) {
    let day = || {
        let at = Timestamp::from_millisecond(row.done_at.unwrap_or(0)).unwrap_or_default();
        at.to_zoned_datetime(tz.clone()).date()
    };
    let days = |date: jiff::civil::Date| {
        let since = date.since(jiff::civil::date(1970, 1, 1));
        since.map_or(0, |span| -i64::from(span.get_days()))
    };
    match by {
        Group::None => ((0, String::new()), String::new()),
        Group::User => ((0, row.user.clone()), row.user.clone()),
        Group::State => ((rank(row).into(), String::new()), state(row).0.to_owned()),
        Group::Gpu => match row.gpu_indices.first() {
            Some(first) => ((i64::from(*first), String::new()), format!("gpu {first}")),
            None => ((i64::MAX, String::new()), "no GPU".to_owned()),
        },
        Group::Day => ((days(day()), String::new()), day().strftime("%a %Y-%m-%d").to_string()),
        Group::Week => {
            let back = i64::from(day().weekday().to_monday_zero_offset());
            let monday = day().checked_sub(jiff::Span::new().days(back)).unwrap_or_default();
            ((days(monday), String::new()), format!("week of {}", monday.strftime("%Y-%m-%d")))
        }
    }
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tui) enum Entry {
    /// A group begins: its name and its sums.
    Head(String),
    /// The row of this place.
    Row(usize),
}

/// The lines of a table: its rows, and where a group begins its name with sums.
pub(in crate::tui) fn entries<T: Deref<Target = JobRow>>(
    ui: &Ui,
    pane: Pane,
    rows: &[T],
    now: &Now,
) -> Vec<Entry> {
    let by = ui.tables.of(pane).group;
    if by == Group::None {
        return (0..rows.len()).map(Entry::Row).collect();
    }
    let mut out = Vec::with_capacity(rows.len() + 8);
    let mut at = 0;
    while let Some(first) = rows.get(at) {
        let (key, name) = group(first, by, &ui.tz);
        let count = rows[at..].iter().take_while(|row| group(row, by, &ui.tz).0 == key).count().max(1);
        let members = &rows[at..at + count];
        let gpu_ms: u64 = members.iter().map(|row| row.gpu_ms(now)).sum();
        let jobs = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
        out.push(Entry::Head(format!("{name}  {jobs}  {} GPU-h", hours(gpu_ms))));
        out.extend((at..at + count).map(Entry::Row));
        at += count;
    }
    out
}

/// Whether a pane's list has lines that are no rows.
pub(in crate::tui) fn is_grouped(ui: &Ui, pane: Pane) -> bool {
    matches!(pane, Pane::Queue | Pane::History) && ui.tables.of(pane).group != Group::None
}

/// The number of lines of a pane's list and the line of the row under the cursor.
pub(in crate::tui) fn extent(ui: &Ui, snap: &Snapshot, pane: Pane) -> (usize, Option<usize>) {
    let (count, at) = rows::cursor(ui, snap, pane);
    if !is_grouped(ui, pane) {
        return (count, at);
    }
    let lines = match pane {
        Pane::History => entries(ui, pane, &rows::history(ui, snap), &ui.now),
        _ => entries(ui, pane, &rows::queue(ui, snap), &ui.now),
    };
    (lines.len(), at.and_then(|at| lines.iter().position(|line| *line == Entry::Row(at))))
}
