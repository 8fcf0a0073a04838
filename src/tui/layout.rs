//! Which panes are where, from the size alone. Pure; panels are handed their rectangles.
//!
//! ```text
//!  one column            two columns                 three columns
//!  header                header                      header
//!  meter line            ┌ GPUs ───┐┌ Meter ─┐       ┌ GPUs ─┐┌ job ─┐┌ Meter ──┐
//!  GPU grid              └─────────┘└────────┘       └───────┘│      │└─────────┘
//!  screens               ┌ Queue ──┐┌ job ───┐       ┌ Queue ┐└──────┘┌ History ┐
//!  queue                 │         │└────────┘       │       │┌ Log ─┐└─────────┘
//!  job: life, log line   │         │┌ Log ───┐       │       ││      │┌ Inbox ──┐
//!  message               └─────────┘└────────┘       └───────┘└──────┘└─────────┘
//!  keys                  message, keys               message, keys
//! ```

use crate::protocol::{Connection, Snapshot};
use crate::tui::ui::{Screen, Tab, Ui};
use ratatui::layout::Rect;

/// A part of the screen that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pane {
    /// Jobs that are not done.
    Queue,
    /// The devices.
    Gpus,
    /// The ledger.
    Meter,
    /// One job.
    Job,
    /// Its log.
    Log,
    /// Done jobs.
    History,
    /// Job files.
    Inbox,
}

/// The breakpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Kind {
    /// Too small for anything but one line.
    Line,
    /// The queue only.
    Bare,
    /// Header, a line of GPUs, the queue, keys.
    Compact,
    /// One column.
    One,
    /// Two.
    Two,
    /// Three.
    Three,
}

/// Where everything is. A rectangle without height is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tui) struct Layout {
    /// Which breakpoint.
    pub kind: Kind,
    /// The first line.
    pub header: Rect,
    /// The meter line.
    pub meter: Rect,
    /// The GPUs of the one-column layouts.
    pub gpus: Rect,
    /// The line with the screens, or the title of what is opened.
    pub tabs: Rect,
    /// The panes, and whether they are boxes.
    pub panes: Vec<(Pane, Rect, bool)>,
    /// The life line of the one-column layout.
    pub life: Rect,
    /// The message row.
    pub message: Rect,
    /// The key line.
    pub keys: Rect,
}

/// Columns stop growing here.
const WIDEST: u16 = 240;

impl Layout {
    /// The rectangle of a pane without its box.
    pub(in crate::tui) fn inner(&self, pane: Pane) -> Option<Rect> {
        let (_, rect, framed) = self.panes.iter().find(|(p, _, _)| *p == pane)?;
        let rect = *rect;
        Some(if *framed && rect.width >= 2 && rect.height >= 2 {
            Rect { x: rect.x + 1, y: rect.y + 1, width: rect.width - 2, height: rect.height - 2 }
        } else {
            rect
        })
    }

    /// Rows a pane has for its list, its head taken off.
    pub(in crate::tui) fn rows(&self, pane: Pane) -> usize {
        let inner = self.inner(pane).map_or(0, |rect| rect.height);
        usize::from(match pane {
            Pane::Queue | Pane::History | Pane::Meter => inner.saturating_sub(1),
            Pane::Gpus if self.panes.len() == 1 => {
                let area = self.inner(pane).unwrap_or_default();
                crate::tui::panels::gpuscreen::list_rows(area, usize::MAX)
            }
            Pane::Inbox if self.panes.len() == 1 => crate::tui::panels::inbox::list_rows(inner),
            Pane::Gpus | Pane::Inbox | Pane::Job | Pane::Log => inner,
        })
    }

    /// The panes in the order of Tab.
    pub(in crate::tui) fn order(&self) -> Vec<Pane> {
        self.panes.iter().map(|(pane, _, _)| *pane).collect()
    }
}

const fn kind(width: u16, height: u16) -> Kind {
    match (width, height) {
        (180.., 45..) => Kind::Three,
        (110.., 28..) => Kind::Two,
        (80.., 20..) => Kind::One,
        (60.., 12..) => Kind::Compact,
        (30.., 6..) => Kind::Bare,
        _ => Kind::Line,
    }
}

/// Whether the screen has no room for anything but the words that say so.
pub(in crate::tui) const fn is_too_small(ui: &Ui) -> bool {
    matches!(kind(ui.size.0, ui.size.1), Kind::Line)
}

/// The pane that a screen is, or that what is opened is.
pub(in crate::tui) fn main_pane(ui: &Ui) -> Pane {
    match (&ui.opened, ui.screen) {
        (Some(opened), _) if opened.tab == Tab::Log => Pane::Log,
        (Some(_), _) => Pane::Job,
        (None, Screen::Queue) => Pane::Queue,
        (None, Screen::Gpus) => Pane::Gpus,
        (None, Screen::Meter) => Pane::Meter,
        (None, Screen::History) => Pane::History,
        (None, Screen::Inbox) => Pane::Inbox,
    }
}

/// The pane that has the screen, or most of it: what one has zoomed, else what the screen is about.
pub(in crate::tui) fn foremost(ui: &Ui) -> Pane {
    if ui.zoom && ui.opened.is_none() { ui.focus } else { main_pane(ui) }
}

/// The pane whose filter is typed: the inbox where it has the keys, else what has the screen.
pub(in crate::tui) fn filtered(ui: &Ui) -> Pane {
    if ui.focus == Pane::Inbox { Pane::Inbox } else { foremost(ui) }
}

/// Cuts rows off the top and the bottom of an area.
struct Cutter(Rect);

impl Cutter {
    fn top(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.0.height);
        let cut = Rect { height: rows, ..self.0 };
        self.0 = Rect { y: self.0.y + rows, height: self.0.height - rows, ..self.0 };
        cut
    }

    fn bottom(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.0.height);
        self.0.height -= rows;
        Rect { y: self.0.bottom(), height: rows, ..self.0 }
    }
}

/// Where everything is at this size.
pub(in crate::tui) fn plan(area: Rect, ui: &Ui, snap: &Snapshot) -> Layout {
    let kind = kind(area.width, area.height);
    let area = Rect { width: area.width.min(WIDEST), ..area };
    let none = Rect { height: 0, ..area };
    let mut layout = Layout {
        kind,
        header: none,
        meter: none,
        gpus: none,
        tabs: none,
        panes: Vec::new(),
        life: none,
        message: none,
        keys: none,
    };
    let mut rest = Cutter(area);
    let alone = ui.zoom && ui.opened.is_none();
    let main = foremost(ui);
    // What has the screen to itself has neither devices above it nor a job's life below.
    let queue = main == Pane::Queue && !alone;
    match kind {
        Kind::Line => return layout,
        Kind::Bare => {
            let lost = matches!(ui.connection, Connection::Lost { .. }) && ui.known;
            if ui.message.is_some() || ui.typing || lost || crate::tui::panels::header::is_behind(ui) {
                layout.message = rest.bottom(1);
            }
        }
        Kind::Compact => {
            layout.header = rest.top(1);
            layout.keys = rest.bottom(1);
            layout.message = layout.keys;
            if queue {
                layout.gpus = rest.top(1);
            } else {
                layout.tabs = rest.top(1);
            }
        }
        Kind::One => {
            layout.header = rest.top(1);
            layout.meter = rest.top(1);
            if queue {
                layout.gpus = rest.top(crate::tui::panels::gpugrid::grid_rows(snap.gpus.len()));
            }
            layout.tabs = rest.top(1);
            layout.keys = rest.bottom(1);
            layout.message = rest.bottom(1);
            if queue {
                layout.life = rest.bottom(3);
            }
        }
        Kind::Two | Kind::Three => {
            layout.header = rest.top(1);
            layout.keys = rest.bottom(1);
            layout.message = rest.bottom(1);
            layout.panes = if queue { columns(kind, rest.0, snap) } else { vec![(main, rest.0, true)] };
            return layout;
        }
    }
    layout.panes.push((main, rest.0, false));
    layout
}

fn columns(kind: Kind, area: Rect, snap: &Snapshot) -> Vec<(Pane, Rect, bool)> {
    // Where there is none, there is room to say why.
    let gpus = if snap.gpus.is_empty() { 3 } else { snap.gpus.len().min(64) };
    let gpu_rows = u16::try_from(gpus).unwrap_or(1) + 2;
    let gpu_rows = gpu_rows.min((area.height / 3).max(4));
    let column = |x: u16, width: u16| Cutter(Rect { x: area.x + x, width, ..area });
    if kind == Kind::Two {
        let left_width = area.width * 3 / 5;
        let mut left = column(0, left_width);
        let mut right = column(left_width, area.width - left_width);
        let gpus = left.top(gpu_rows);
        let meter = right.top(gpu_rows.max(6));
        let job = right.top(9);
        return vec![
            (Pane::Queue, left.0, true),
            (Pane::Gpus, gpus, true),
            (Pane::Meter, meter, true),
            (Pane::Job, job, true),
            (Pane::Log, right.0, true),
        ];
    }
    let left_width = area.width * 43 / 100;
    let right_width = area.width * 24 / 100;
    let middle_width = area.width - left_width - right_width;
    let mut left = column(0, left_width);
    let mut middle = column(left_width, middle_width);
    let mut right = column(left_width + middle_width, right_width);
    let gpus = left.top(gpu_rows);
    let job = middle.top(12);
    let held = snap.jobs.iter().filter(|row| !row.open.is_empty()).count();
    let meter_rows = u16::try_from(snap.meter.users.len() + held + 8).unwrap_or(u16::MAX);
    let meter = right.top(meter_rows.clamp(10, area.height / 3));
    let inbox = right.bottom(area.height / 4);
    vec![
        (Pane::Queue, left.0, true),
        (Pane::Gpus, gpus, true),
        (Pane::Job, job, true),
        (Pane::Log, middle.0, true),
        (Pane::Meter, meter, true),
        (Pane::History, right.0, true),
        (Pane::Inbox, inbox, true),
    ]
}
