//! The dashboard: a pure view over the scheduler's snapshot, and the small shell that keeps a terminal.
//!
//! ```text
//!  terminal ─► keys ──► keymap ─► Action ─► update ─► UiCommand ─► scheduler
//!  scheduler ─► Update ─► fold ─► Snapshot ─┐
//!  log file ─► LogWindow ───────────► Ui ───┴─► draw ─► buffer ─► one write, if a cell changed
//! ```
//!
//! [`draw`] and [`update`] are functions of what they are handed: no I/O, no clock. `shell` is the only module that
//! touches the world. The dashboard asks the scheduler by [`Connector`] and knows
//! no socket; job logs it reads itself. A new key is a row in `keys::table`, a new role one in `theme`, a new column one
//! in `panels::columns`, a new order one in `arrange`.

mod arrange;
mod deadline;
mod effect;
mod errand;
mod field;
mod figures;
mod filter;
mod fold;
mod keys;
mod layout;
mod look;
mod looks;
mod news;
mod overlay;
mod panels;
mod rows;
mod shell;
mod ui;
mod update;
mod views;

use crate::model::{JobId, Now};
use crate::protocol::{JobRow, Snapshot};
use layout::{Kind, Layout};
use look::canvas::Canvas;
use look::theme::Role as R;
use panels::{
    detail, frames, gpugrid, gpus, gpuscreen, header, history, inbox, life, log, meter, meterscreen, queue,
    statusline,
};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rows::QueueRow;
use std::cell::{Cell, OnceCell};

pub use arrange::{Arranged, Group, Key, Tables};
pub use deadline::next_deadline;
pub use effect::Effect;
pub use errand::{Brought, Browsed, Errand, Measured};
pub use field::Field;
pub use filter::{Device, Filter, FilterError, Filtered, Filters, Subject};
pub use fold::{Incomplete, fold};
pub use keys::page as keys_page;
pub use keys::{Action, Binding, Chord, KeyError, Keymap, Mode, Modes, Row, TABLE};
pub use layout::Pane;
pub use look::canvas::Glyphs;
pub use look::colour::{Depth, colour_name, contrast, modifier_names};
pub use look::sample;
pub use look::theme::check::{Contrast, Distance, Rank, Report, check as check_theme};
pub use look::theme::{
    At, BUNDLED, Listed, Origin, Role, Theme, ThemeError, Variant, Wishes, choose as choose_theme, is_path,
    list as list_themes, load,
};
pub use look::vision::{Need, Sight};
pub use looks::{Fetched, Look, Slot, Taken, due};
pub use news::{receive, tick};
pub use overlay::{
    Bulk, Button, Chooser, Clear, Columns, Confirm, CopyMenu, Diff, Editor, Find, Fix, Mended, Menu, Overlay,
    Picker, Quick, Retry, Review, Settings, Sought, UndoList, Wrong,
};
pub use panels::columns::Column;
pub use panels::empty::SMALLEST;
pub use panels::logmarks::Times;
pub use panels::logmatch::Pattern;
pub use rows::settle;
pub use shell::feed::{Asked, Connector, FeedEvent, Session, SessionReader, SessionWriter, UiCommand};
pub use shell::log::{LogFind, LogFound, LogFrom, LogLine, LogState, LogWant, LogWindow, read_window};
pub use shell::options::{Options, Outside, refusal};
pub use shell::screen::{Output, Screenful, as_lines};
pub use shell::{Exit, TuiError, ask_background, run};
pub use ui::{Level, LogView, Message, Opened, Screen, Tab, Ui};
pub use update::flows::{Desk, FileFor, Flow};
pub use update::{mode, update};
pub use views::{Choice, GpuTab, GpusView, MeterView, Period, Range};

/// What a panel is a function of.
struct View<'a> {
    ui: &'a Ui,
    snap: &'a Snapshot,
    /// The moment that is shown: the present one, or the one at which the display was frozen.
    now: Now,
    /// The same to the millisecond, for countdowns: under low bandwidth `now` goes in minutes.
    exact: Now,
    /// The last whole minute: GPU-hours are those of it, so that sums do not change with every frame.
    minute: Now,
    /// What several panels look for, once found.
    queue: OnceCell<Vec<QueueRow<'a>>>,
    found: Cell<Option<(JobId, Option<&'a JobRow>)>>,
    counted: OnceCell<Vec<(&'static str, usize)>>,
}

impl<'a> View<'a> {
    /// The rows of the queue.
    fn queue(&self) -> &[QueueRow<'a>] {
        self.queue.get_or_init(|| rows::queue(self.ui, self.snap))
    }

    /// How many jobs that are not done are in each state that any is in.
    fn counted(&self) -> &[(&'static str, usize)] {
        self.counted.get_or_init(|| {
            let mut counted: Vec<(&str, usize)> = Vec::new();
            for row in &self.snap.jobs {
                let (word, _) = look::text::state(row);
                match counted.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, count)) => *count += 1,
                    None => counted.push((word, 1)),
                }
            }
            counted
        })
    }

    /// A job, wherever it is.
    fn find(&self, job: JobId) -> Option<&'a JobRow> {
        if let Some((known, row)) = self.found.get()
            && known == job
        {
            return row;
        }
        let row = rows::find(self.ui, self.snap, job);
        self.found.set(Some((job, row)));
        row
    }

    /// The rows of a list, the heads of groups among them.
    fn count(&self, pane: Pane) -> usize {
        if pane == Pane::Queue && !arrange::is_grouped(self.ui, pane) {
            return self.queue().len();
        }
        arrange::extent(self.ui, self.snap, pane).0
    }

    /// The first row of a list, so that the cursor's row is among those shown, whatever the size.
    fn top(&self, pane: Pane, height: usize, count: usize) -> usize {
        let at = if pane == Pane::Queue && !arrange::is_grouped(self.ui, pane) {
            self.ui.queue_job.and_then(|job| self.queue().iter().position(|row| row.id == job))
        } else {
            arrange::extent(self.ui, self.snap, pane).1
        };
        let top = self.ui.top(pane).min(count.saturating_sub(height.max(1)));
        at.map_or(top, |at| rows::scrolled(top, at, height, count))
    }
}

fn view<'a>(ui: &'a Ui, snap: &'a Snapshot) -> View<'a> {
    let exact = ui.frozen.as_ref().map_or(ui.now, |(since, _)| *since);
    // Timers that go in minutes are timers of the last whole minute: no panel has to know.
    let now = if ui.thrift { whole_minute(exact) } else { exact };
    View {
        ui,
        snap: ui.shown(snap),
        now,
        exact,
        minute: whole_minute(exact),
        queue: OnceCell::new(),
        found: Cell::new(None),
        counted: OnceCell::new(),
    }
}

const fn whole_minute(now: Now) -> Now {
    let over = now.wall_ms.rem_euclid(60_000);
    Now {
        wall_ms: now.wall_ms - over,
        boottime_ms: now.boottime_ms.saturating_sub(over.unsigned_abs()),
        ..now
    }
}

/// Draws the dashboard. A function of its arguments; right at any size.
pub fn draw(frame: &mut Frame<'_>, ui: &Ui, snap: &Snapshot, theme: &Theme) {
    if let Some((x, y, true)) = paint(frame.buffer_mut(), ui, snap, theme) {
        frame.set_cursor_position((x, y));
    }
}

/// [`draw`] on a buffer; returns where the terminal's cursor goes and whether it shows.
pub fn paint(buf: &mut Buffer, ui: &Ui, snap: &Snapshot, theme: &Theme) -> Option<(u16, u16, bool)> {
    let mut canvas = Canvas::new(buf, theme, ui.glyphs);
    everything(&mut canvas, ui, snap);
    canvas.finish()
}

/// What a click at a place does.
fn hit(ui: &Ui, snap: &Snapshot, at: (u16, u16)) -> Option<Action> {
    let mut buf = Buffer::empty(Rect::new(0, 0, ui.size.0, ui.size.1));
    let theme = Theme::auto(Depth::Mono);
    let mut canvas = Canvas::new(&mut buf, &theme, ui.glyphs);
    everything(&mut canvas, ui, snap);
    canvas.hit(at)
}

fn everything(c: &mut Canvas<'_>, ui: &Ui, snap: &Snapshot) {
    let area = c.area();
    if area.is_empty() {
        return;
    }
    c.over(area, R::Base);
    let v = &view(ui, snap);
    let layout = layout::plan(area, ui, v.snap);
    if layout.kind == Kind::Line {
        header::too_small(c, area, v);
        return;
    }
    header::paint(c, v, &layout);
    header::meter_line(c, layout.meter, v);
    match layout.kind {
        Kind::Compact => gpugrid::one_line(c, layout.gpus, v),
        _ => gpugrid::grid(c, layout.gpus, v),
    }
    frames::tabs(c, v, &layout);
    for (pane, rect, framed) in &layout.panes {
        panel(c, v, &layout, (*pane, *rect, *framed));
    }
    if layout.life.height > 0 {
        life::bottom(c, layout.life, v);
    }
    statusline::paint(c, v, &layout);
    header::sign(c, v, &layout);
    if ui.known && !ui.connected() && ui.frozen.is_none() {
        let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        c.over(body, R::Stale);
    }
    if let Some(overlay) = &ui.overlay {
        c.cover();
        overlay::paint(c, v, area, overlay);
    }
}

/// One pane: its box, if it has one, and what is in it.
fn panel(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout, of: (Pane, Rect, bool)) {
    let (pane, rect, framed) = of;
    let alone = layout.panes.len() == 1;
    let focus = alone || v.ui.focus == pane;
    let area = if framed { frames::boxed(c, v, pane, rect, focus && !alone) } else { rect };
    if framed && v.ui.opened.is_none() && matches!(pane, Pane::Queue | Pane::History) {
        let count = v.count(pane);
        // Below the heads of the columns.
        let rows = Rect { y: rect.y + 2, height: rect.height.saturating_sub(3), ..rect };
        c.scrollbar(rows, v.top(pane, rows.height.into(), count), count);
    }
    let companion = rows::companion(v.ui).and_then(|job| v.find(job));
    match pane {
        _ if v.ui.opened.is_some() => {
            if let Some(opened) = &v.ui.opened {
                detail::paint(c, area, v, opened);
            }
        }
        Pane::Queue => queue::paint(c, area, v, layout.kind, focus),
        Pane::Gpus if alone => gpuscreen::paint(c, area, v),
        Pane::Gpus => gpus::list(c, area, v, focus),
        Pane::Meter if alone => meterscreen::paint(c, area, v, v.ui.top(Pane::Meter)),
        Pane::Meter => meter::paint(c, area, v, v.ui.top(Pane::Meter)),
        Pane::History => history::paint(c, area, v, focus),
        Pane::Inbox => inbox::paint(c, area, v, (alone, focus)),
        Pane::Job => match companion {
            Some(row) => life::summary(c, area, v, row, v.ui.top(Pane::Job)),
            None => c.text(area, 0, "No job is selected.", R::Dim),
        },
        Pane::Log => match companion {
            Some(row) => log::paint(c, area, v, row),
            None => c.text(area, 0, "No job is selected.", R::Dim),
        },
    }
}
