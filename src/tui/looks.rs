//! What screens show besides the snapshot: asked for only while it is on the screen, kept with the moment it is of. Pure.
//!
//! [`wanted`] is the one place that says what is asked for, [`took`] the one that takes answers in.

use crate::model::{JobId, Now};
use crate::protocol::{Change, GpuHistory, JobRow, MeterBy, MeterTable, Query, Reply, Snapshot, Timeline};
use crate::tui::effect::{self, Effect};
use crate::tui::layout::{Pane, foremost, plan};
use crate::tui::shell::feed::UiCommand;
use crate::tui::ui::{Screen, Ui};
use ratatui::layout::Rect;

/// Something that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What the scheduler has read of the devices, so far back.
    GpuHistory {
        /// Milliseconds.
        span_ms: u64,
    },
    /// Who had, has and will have which device, from and until so far from now.
    Timeline {
        /// Milliseconds from now.
        from: i64,
        /// Milliseconds from now.
        until: i64,
    },
    /// The ledger.
    Meter {
        /// Rows by what.
        by: MeterBy,
        /// From, wall milliseconds; `None`: from the beginning.
        since_ms: Option<i64>,
    },
    /// Done jobs that the snapshot has no room for.
    Older {
        /// How many done ones.
        done: u32,
    },
    /// What a change does to the others.
    WhatIf {
        /// Of this job.
        job: JobId,
        /// Which change.
        change: Change,
    },
}

impl Look {
    /// What goes over the wire at a moment.
    pub const fn query(self, now_ms: i64) -> Query {
        match self {
            Self::GpuHistory { span_ms } => Query::GpuHistory { gpu: None, span_ms: Some(span_ms) },
            Self::Timeline { from, until } => Query::Timeline {
                from_ms: Some(now_ms.saturating_add(from)),
                until_ms: Some(now_ms.saturating_add(until)),
            },
            Self::Meter { by, since_ms } => Query::Meter { by, since_ms, until_ms: None },
            Self::Older { done } => Query::Jobs { done },
            Self::WhatIf { job, change } => Query::WhatIf { job, change },
        }
    }

    /// The command that asks.
    pub const fn ask(self, now_ms: i64) -> UiCommand {
        UiCommand::Look { look: self, query: self.query(now_ms) }
    }
}

/// An answer, what it answers, and when it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken<T> {
    /// What was asked.
    pub look: Look,
    /// When.
    pub at: Now,
    /// The answer.
    pub it: T,
}

/// One thing that is shown: when it was last asked for, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot<T> {
    /// What was last asked, when on the boot clock, and the revision that was known then.
    asked: Option<(Look, u64, u64)>,
    /// The newest answer.
    pub have: Option<Taken<T>>,
    /// Why there is none, in the scheduler's words.
    pub refused: Option<String>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { asked: None, have: None, refused: None }
    }
}

impl<T> Slot<T> {
    /// The answer, if it is one to this.
    pub fn of(&self, look: &Look) -> Option<&T> {
        self.have.as_ref().filter(|taken| taken.look == *look).map(|taken| &taken.it)
    }

    fn take(&mut self, look: Look, at: Now, it: T) {
        self.have = Some(Taken { look, at, it });
        self.refused = None;
    }

    /// When to ask again, on the boot clock; `None`: not before something changes.
    fn again(&self, look: &Look, revision: u64, pace: Pace) -> Option<u64> {
        match &self.asked {
            Some((asked, at, known)) if asked == look => {
                let changed = pace.on_change && *known != revision;
                let every =
                    if changed { Some(pace.least_ms) } else { pace.every_ms.map(|ms| ms.max(pace.least_ms)) };
                every.map(|ms| at + ms)
            }
            _ => Some(0),
        }
    }
}

/// How often something is asked for.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Not more often than this.
    least_ms: u64,
    /// Also if nothing has changed.
    every_ms: Option<u64>,
    /// Also when the snapshot has changed.
    on_change: bool,
}

/// Everything that was fetched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fetched {
    /// The devices' telemetry.
    pub gpus: Slot<GpuHistory>,
    /// Who has which device when.
    pub timeline: Slot<Timeline>,
    /// The ledger.
    pub meter: Slot<MeterTable>,
    /// Done jobs, newest first, further back than the snapshot's.
    pub older: Slot<Vec<JobRow>>,
    /// How many done jobs the history is to show; 0: those of the snapshot.
    pub wanted_done: u32,
    /// Parts of an answer that is not whole yet.
    parts: Vec<JobRow>,
    /// What the newest action does to others.
    pub effect: Effect,
}

/// A ring's step is not known before the first answer.
const FIRST_STEP_MS: u64 = 5_000;
/// What is held grows the ledger: it is read again this often.
const LEDGER_MS: u64 = 15_000;
/// The future moves although nothing changes.
const FUTURE_MS: u64 = 60_000;

/// What the screen shows now and how often it is asked for.
fn wanted(ui: &Ui, snap: &Snapshot) -> Vec<(Look, Pace)> {
    // Nothing is asked for more often than this.
    let least_ms = if ui.thrift { 5_000 } else { 2_000 };
    let mut out = Vec::new();
    if ui.opened.is_some() {
        return out;
    }
    let sparks = ui.screen == Screen::Queue
        && !ui.thrift
        && plan(Rect::new(0, 0, ui.size.0, ui.size.1), ui, snap)
            .inner(Pane::Gpus)
            .is_some_and(crate::tui::panels::gpus::has_sparks);
    let charts = foremost(ui) == Pane::Gpus && !snap.gpus.is_empty();
    if charts || sparks {
        let look = ui.gpus_view.history();
        let steps = ui.fetched.gpus.of(&look).and_then(|history| history.gpus.first());
        let step = steps.and_then(|trace| trace.rings.first()).map_or(FIRST_STEP_MS, |ring| ring.period_ms);
        let every_ms = Some(if sparks { step.max(10_000) } else { step });
        out.push((look, Pace { least_ms, every_ms, on_change: false }));
    }
    if charts {
        out.push((ui.gpus_view.timeline(), Pace { least_ms, every_ms: Some(FUTURE_MS), on_change: true }));
    }
    if foremost(ui) == Pane::Meter {
        let held = snap.jobs.iter().any(|row| !row.open.is_empty());
        let pace = Pace { least_ms, every_ms: held.then_some(LEDGER_MS), on_change: true };
        out.push((ui.meter_view.look(ui.now.wall_ms, &ui.tz), pace));
    }
    if ui.screen == Screen::History && ui.fetched.wanted_done > 0 {
        let look = Look::Older { done: ui.fetched.wanted_done };
        out.push((look, Pace { least_ms: 30_000, every_ms: None, on_change: true }));
    }
    out
}

fn again(ui: &Ui, snap: &Snapshot, look: &Look, pace: Pace) -> Option<u64> {
    let revision = snap.revision.0;
    match look {
        Look::GpuHistory { .. } => ui.fetched.gpus.again(look, revision, pace),
        Look::Timeline { .. } => ui.fetched.timeline.again(look, revision, pace),
        Look::Meter { .. } => ui.fetched.meter.again(look, revision, pace),
        Look::Older { .. } => ui.fetched.older.again(look, revision, pace),
        Look::WhatIf { .. } => None,
    }
}

/// What is to be asked for now: what is on the screen, where it is not there or is old.
pub fn due(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if !ui.connected() || !ui.known || ui.frozen.is_some() {
        return Vec::new();
    }
    let (now, wall) = (ui.now.boottime_ms, ui.now.wall_ms);
    let mut out = Vec::new();
    for (look, pace) in wanted(ui, snap) {
        if again(ui, snap, &look, pace).is_some_and(|at| at <= now) {
            let asked = Some((look, now, snap.revision.0));
            match look {
                Look::GpuHistory { .. } => ui.fetched.gpus.asked = asked,
                Look::Timeline { .. } => ui.fetched.timeline.asked = asked,
                Look::Meter { .. } => ui.fetched.meter.asked = asked,
                Look::Older { .. } => ui.fetched.older.asked = asked,
                Look::WhatIf { .. } => {}
            }
            out.push(look.ask(wall));
        }
    }
    out
}

/// When something is to be asked for, or an effect is no longer shown: on the boot clock.
pub(in crate::tui) fn deadline(ui: &Ui, snap: &Snapshot) -> Option<u64> {
    let asks = ui.connected() && ui.known && ui.frozen.is_none();
    let next = asks
        .then(|| wanted(ui, snap).into_iter().filter_map(|(look, pace)| again(ui, snap, &look, pace)).min());
    [next.flatten(), ui.fetched.effect.until()].into_iter().flatten().min()
}

/// The connection is a new one: nothing that was asked is answered any more.
pub(in crate::tui) fn forget(ui: &mut Ui) {
    ui.fetched.gpus.asked = None;
    ui.fetched.timeline.asked = None;
    ui.fetched.meter.asked = None;
    ui.fetched.older.asked = None;
    ui.fetched.parts.clear();
}

/// Takes an answer in.
pub(in crate::tui) fn took(ui: &mut Ui, look: Look, reply: Reply) {
    let now = ui.now;
    let fetched = &mut ui.fetched;
    match (look, reply) {
        (_, Reply::GpuHistory(it)) => fetched.gpus.take(look, now, *it),
        (_, Reply::Timeline(it)) => fetched.timeline.take(look, now, *it),
        (_, Reply::Meter(it)) => fetched.meter.take(look, now, it),
        (_, Reply::Jobs { rows, left }) => {
            fetched.parts.extend(rows.into_iter().filter(|row| row.outcome.is_some()));
            if left == 0 {
                let rows = std::mem::take(&mut fetched.parts);
                fetched.older.take(look, now, rows);
            }
        }
        (Look::WhatIf { job, .. }, Reply::WhatIf(it)) => {
            effect::took(ui, job, it);
        }
        (_, Reply::Refused { message } | Reply::Unavailable { message } | Reply::NotFound { message }) => {
            let slot = match look {
                Look::GpuHistory { .. } => &mut fetched.gpus.refused,
                Look::Timeline { .. } => &mut fetched.timeline.refused,
                Look::Meter { .. } => &mut fetched.meter.refused,
                Look::Older { .. } => &mut fetched.older.refused,
                // A change whose effect nobody knows is no fault of the change.
                Look::WhatIf { .. } => return,
            };
            *slot = Some(message);
        }
        _ => {}
    }
}

/// Done jobs that the snapshot has no room for, newest first.
pub(in crate::tui) fn older<'a>(ui: &'a Ui, snap: &'a Snapshot) -> impl Iterator<Item = &'a JobRow> {
    let known = snap.history.last().map(|row| (row.done_at, row.id));
    let taken = ui.fetched.older.have.iter().flat_map(|taken| &taken.it);
    // What has left the snapshot since it was asked is not asked for again: the list begins where the snapshot ends.
    taken.filter(move |row| known.is_some_and(|known| (row.done_at, row.id) < known))
}

/// The end of the history was reached: jobs further back are asked for. Whether that is news.
pub(in crate::tui) fn further(ui: &mut Ui, snap: &Snapshot) -> bool {
    let first = ui.fetched.wanted_done == 0;
    if !first || snap.history.len() < FULL {
        return false;
    }
    ui.fetched.wanted_done = FURTHEST;
    true
}

/// Whether there may be more done jobs than are shown.
pub(in crate::tui) fn has_further(ui: &Ui, snap: &Snapshot) -> bool {
    snap.history.len() >= FULL && ui.fetched.older.have.is_none()
}

/// A history of so many jobs is as long as a snapshot's gets: the rest is asked for.
const FULL: usize = 200;
/// As far back as a screen goes; the ledger and `overnight ls --all` have the rest.
const FURTHEST: u32 = 5_000;
