//! What is chosen on the screens of the devices and of the meter: which view, how far back, how near. Pure.

use crate::protocol::MeterBy;
use crate::tui::keys::Action;
use crate::tui::layout::{Pane, foremost};
use crate::tui::looks::Look;
use crate::tui::ui::Ui;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// What the lower part of the devices' screen shows where there is no room for everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GpuTab {
    /// The telemetry of the device under the cursor.
    #[default]
    Charts,
    /// Who has which device when.
    Timeline,
    /// The device itself, and what runs on it.
    Device,
}

impl GpuTab {
    /// From left to right.
    pub const ALL: [Self; 3] = [Self::Charts, Self::Timeline, Self::Device];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Charts => "Charts",
            Self::Timeline => "Timeline",
            Self::Device => "Device",
        }
    }
}

/// How far back charts go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Range {
    /// Twenty minutes.
    #[default]
    Minutes,
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl Range {
    /// From near to far.
    pub const ALL: [Self; 3] = [Self::Minutes, Self::Hour, Self::Day];

    /// Milliseconds.
    pub const fn span_ms(self) -> u64 {
        match self {
            Self::Minutes => 1_200_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minutes => "20 min",
            Self::Hour => "1 h",
            Self::Day => "24 h",
        }
    }
}

/// The devices' screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpusView {
    /// What its lower part shows.
    pub tab: GpuTab,
    /// How far back the charts go.
    pub range: Range,
    /// How much time the timeline covers: an index into [`GpusView::SPANS`].
    pub zoom: usize,
    /// How far it is scrolled from now, milliseconds.
    pub offset_ms: i64,
}

impl Default for GpusView {
    fn default() -> Self {
        Self { tab: GpuTab::default(), range: Range::default(), zoom: 3, offset_ms: 0 }
    }
}

impl GpusView {
    /// The stretches of time the timeline can cover.
    pub const SPANS: [i64; 8] = [
        1_800_000,
        3_600_000,
        3 * 3_600_000,
        6 * 3_600_000,
        12 * 3_600_000,
        24 * 3_600_000,
        48 * 3_600_000,
        168 * 3_600_000,
    ];

    /// Milliseconds the timeline covers.
    pub fn span_ms(&self) -> i64 {
        Self::SPANS[self.zoom.min(Self::SPANS.len() - 1)]
    }

    /// From and until when, in milliseconds from now: a third is past.
    pub fn window(&self) -> (i64, i64) {
        let span = self.span_ms();
        (self.offset_ms - span / 3, self.offset_ms + span - span / 3)
    }

    /// The look behind the charts.
    pub const fn history(&self) -> Look {
        Look::GpuHistory { span_ms: self.range.span_ms() }
    }

    /// The look behind the timeline.
    pub fn timeline(&self) -> Look {
        let (from, until) = self.window();
        Look::Timeline { from, until }
    }
}

/// Since when the meter's table counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Period {
    /// Since midnight.
    #[default]
    Today,
    /// Seven days.
    Week,
    /// Thirty days.
    Month,
    /// From the beginning.
    All,
}

impl Period {
    /// From near to far.
    pub const ALL: [Self; 4] = [Self::Today, Self::Week, Self::Month, Self::All];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Week => "7 days",
            Self::Month => "30 days",
            Self::All => "all",
        }
    }

    /// Where it begins: a local midnight, so that it stays the same all day.
    fn since(self, now_ms: i64, tz: &TimeZone) -> Option<i64> {
        let days = match self {
            Self::Today => 0,
            Self::Week => 6,
            Self::Month => 29,
            Self::All => return None,
        };
        let today =
            Timestamp::from_millisecond(now_ms).ok()?.to_zoned_datetime(tz.clone()).start_of_day().ok()?;
        Some(today.checked_sub(days.days()).ok()?.timestamp().as_millisecond())
    }
}

/// The meter's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterView {
    /// Rows by what.
    pub by: MeterBy,
    /// Since when.
    pub period: Period,
}

impl MeterView {
    /// What rows can be by.
    pub const BY: [MeterBy; 5] = [MeterBy::User, MeterBy::Project, MeterBy::Job, MeterBy::Day, MeterBy::Gpu];

    /// In words.
    pub const fn name(by: MeterBy) -> &'static str {
        match by {
            MeterBy::User => "user",
            MeterBy::Project => "project",
            MeterBy::Job => "job",
            MeterBy::Gpu => "GPU",
            MeterBy::Day => "day",
        }
    }

    /// The look behind the table.
    pub fn look(&self, now_ms: i64, tz: &TimeZone) -> Look {
        Look::Meter { by: self.by, since_ms: self.period.since(now_ms, tz) }
    }
}

/// The one after, or before, around the end.
fn turned<T: Copy + PartialEq>(all: &[T], at: T, back: bool) -> T {
    let own = all.iter().position(|one| *one == at).unwrap_or(0);
    let step = if back { all.len() - 1 } else { 1 };
    all.get((own + step) % all.len()).copied().unwrap_or(at)
}

/// Why an action on a view cannot be done: there is none on the screen.
pub(in crate::tui) fn refusal(ui: &Ui, action: &Action) -> Option<String> {
    let pane = if ui.opened.is_some() { Pane::Job } else { foremost(ui) };
    let screens = match action {
        Action::Range if !matches!(pane, Pane::Gpus | Pane::Meter) => "GPUs and Meter",
        Action::ZoomIn | Action::ZoomOut | Action::ToNow if pane != Pane::Gpus => "GPUs",
        _ => return None,
    };
    Some(format!("there is no stretch of time here: see {screens}"))
}

/// One of the things that a view can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A view of the devices.
    Gpus(GpuTab),
    /// How far back the charts go.
    Range(Range),
    /// What the rows of the meter are by.
    By(MeterBy),
    /// Since when the meter counts.
    Period(Period),
}

/// Does what an action means to the view of a screen; `false`: it means something else here.
pub(in crate::tui) fn act(ui: &mut Ui, action: &Action) -> bool {
    // Beside the queue there is no view that could be seen to change.
    let pane = foremost(ui);
    if !matches!(pane, Pane::Gpus | Pane::Meter) {
        return false;
    }
    match action {
        Action::Left | Action::Right if pane == Pane::Gpus => scroll(ui, *action == Action::Left),
        Action::NextTab | Action::PreviousTab => turn(ui, *action == Action::PreviousTab),
        Action::Range => range(ui),
        Action::View(choice) => match *choice {
            Choice::Gpus(tab) => ui.gpus_view.tab = tab,
            Choice::Range(range) => ui.gpus_view.range = range,
            Choice::By(by) => ui.meter_view.by = by,
            Choice::Period(period) => ui.meter_view.period = period,
        },
        Action::ZoomIn | Action::ZoomOut if pane == Pane::Gpus => zoom(ui, *action == Action::ZoomOut),
        Action::ToNow if pane == Pane::Gpus => ui.gpus_view.offset_ms = 0,
        _ => return false,
    }
    true
}

/// The next view of a screen, or the one before.
fn turn(ui: &mut Ui, back: bool) {
    if foremost(ui) == Pane::Meter {
        ui.meter_view.by = turned(&MeterView::BY, ui.meter_view.by, back);
    } else {
        ui.gpus_view.tab = turned(&GpuTab::ALL, ui.gpus_view.tab, back);
    }
}

/// The next stretch of time.
fn range(ui: &mut Ui) {
    if foremost(ui) == Pane::Meter {
        ui.meter_view.period = turned(&Period::ALL, ui.meter_view.period, false);
    } else {
        ui.gpus_view.range = turned(&Range::ALL, ui.gpus_view.range, false);
    }
}

/// The timeline covers less time, or more.
fn zoom(ui: &mut Ui, out: bool) {
    let zoom = ui.gpus_view.zoom;
    ui.gpus_view.zoom = if out { (zoom + 1).min(GpusView::SPANS.len() - 1) } else { zoom.saturating_sub(1) };
}

/// The timeline goes back or ahead by a quarter.
fn scroll(ui: &mut Ui, back: bool) {
    let quarter = ui.gpus_view.span_ms() / 4;
    let by = if back { -quarter } else { quarter };
    let far = 366 * 86_400_000;
    ui.gpus_view.offset_ms = (ui.gpus_view.offset_ms + by).clamp(-far, far);
}
