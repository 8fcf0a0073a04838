//! What the person at the screen has done: where they are, what is selected, what is typed. Plain data.
//!
//! Everything that is shown but not in the snapshot is here; `update` is the only writer.

use crate::model::{JobId, Now, Span, Uuid};
use crate::protocol::{Connection, GpuRow, JobDetail, Snapshot};
use crate::tui::arrange::Tables;
use crate::tui::filter::Filters;
use crate::tui::keys::Keymap;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Glyphs;
use crate::tui::look::theme::BUNDLED;
use crate::tui::looks::Fetched;
use crate::tui::overlay::Overlay;
use crate::tui::panels::logmarks::Times;
use crate::tui::panels::logmatch::Pattern;
use crate::tui::shell::log::LogFind;
use crate::tui::shell::log::LogWindow;
use crate::tui::update::bulk::Tally;
use crate::tui::update::flows::Flows;
use crate::tui::update::pending::Pending;
use crate::tui::update::undo::Deeds;
use crate::tui::views::{GpusView, MeterView};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// The five screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Screen {
    /// Jobs that are not done.
    #[default]
    Queue,
    /// The devices.
    Gpus,
    /// The ledger.
    Meter,
    /// Done jobs.
    History,
    /// Job files that were seen.
    Inbox,
}

impl Screen {
    /// In the order of their keys.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Gpus, Self::Meter, Self::History, Self::Inbox];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Gpus => "GPUs",
            Self::Meter => "Meter",
            Self::History => "History",
            Self::Inbox => "Inbox",
        }
    }
}

/// The views of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tab {
    /// Where it is and what it holds.
    #[default]
    Summary,
    /// What it prints.
    Log,
    /// What its file says.
    Spec,
    /// What came back.
    Files,
    /// Its steps and attempts.
    Events,
}

impl Tab {
    /// From left to right.
    pub const ALL: [Self; 5] = [Self::Summary, Self::Log, Self::Spec, Self::Files, Self::Events];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "Summary",
            Self::Log => "Log",
            Self::Spec => "Spec",
            Self::Files => "Files",
            Self::Events => "Events",
        }
    }
}

/// A job opened on the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Which.
    pub job: JobId,
    /// What of it.
    pub tab: Tab,
    /// Lines scrolled down in the tabs that are lists.
    pub scroll: usize,
}

/// How bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// News; goes by itself.
    Info,
    /// Look at this; goes by itself.
    Warning,
    /// Stays until Esc.
    Error,
}

/// A line on the message row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How bad.
    pub level: Level,
    /// The line.
    pub text: String,
    /// The job it is about: Enter opens it while `armed`.
    pub job: Option<JobId>,
    /// No key was pressed since the message came, so that an Enter may be meant for it.
    pub armed: bool,
    /// It goes with the next key.
    pub fleeting: bool,
    /// When it goes, on the boot clock; errors stay.
    pub until: Option<u64>,
    /// At the right, where there is room.
    pub note: &'static str,
}

/// A line that was on the message row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// When, wall milliseconds.
    pub at: i64,
    /// How bad.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// What is under the cursor of each list that can be filtered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursors {
    queue: Option<JobId>,
    history: Option<JobId>,
    gpu: Option<Uuid>,
    file: Option<String>,
}

/// What is seen of the log on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogView {
    /// The file.
    pub path: PathBuf,
    /// The lines that were read.
    pub window: LogWindow,
    /// Not at the end: the byte at which the top line begins.
    pub stopped_at: Option<u64>,
    /// The file's size when following stopped.
    pub seen: u64,
    /// Long lines go on in the next row.
    pub wrap: bool,
    /// Columns scrolled to the right.
    pub sideways: usize,
    /// How the times of its lines are shown.
    pub times: Times,
    /// What is searched for: shown wherever it is.
    pub search: Option<Pattern>,
    /// Only lines that match this are shown.
    pub only: Option<Pattern>,
    /// The search under way, and how far it is in percent.
    pub find: Option<LogFind>,
    /// Percent of the log that is searched.
    pub searched: u8,
    /// The line that the search is at.
    pub found: Option<u64>,
    /// Searches so far: each has a number.
    pub finds: u64,
}

/// Everything the person has done, and the little that the screen knows of the world besides the snapshot.
#[derive(Debug, Clone)]
pub struct Ui {
    /// The moment this frame is for.
    pub now: Now,
    /// For local times.
    pub tz: TimeZone,
    /// The set of characters.
    pub glyphs: Glyphs,
    /// The size of the screen.
    pub size: (u16, u16),
    /// The account that looks; empty: the scheduler's.
    pub me: String,
    /// Which screen.
    pub screen: Screen,
    /// Which of its panes has the focus.
    pub focus: Pane,
    /// A job opened on the whole screen.
    pub opened: Option<Opened>,
    /// What lies over it.
    pub overlay: Option<Overlay>,
    /// The filter is being typed.
    pub typing: bool,
    /// What the tables are filtered by.
    pub filters: Filters,
    /// Own jobs only.
    pub mine: bool,
    /// The job under the cursor in the queue.
    pub queue_job: Option<JobId>,
    /// The job under the cursor in the history.
    pub history_job: Option<JobId>,
    /// The device under the cursor.
    pub gpu: Option<Uuid>,
    /// The file under the cursor.
    pub file: Option<String>,
    /// The first row shown of each pane.
    pub tops: BTreeMap<Pane, usize>,
    /// Lists whose cursor somebody has moved: until then it is on the newest row.
    pub moved: BTreeSet<Pane>,
    /// Where the cursor of each list was last: it stays there when its row goes.
    pub at: BTreeMap<Pane, usize>,
    /// Which keys do what.
    pub keys: Arc<Keymap>,
    /// The `g` of `g g` was pressed.
    pub prefix: Option<char>,
    /// The message row.
    pub message: Option<Message>,
    /// The error that was on it and has not been cleared: it comes back when the message goes.
    pub behind: Option<Message>,
    /// The log on the screen.
    pub log: LogView,
    /// The opened job, whole.
    pub detail: Option<Box<JobDetail>>,
    /// Changes the scheduler has not confirmed yet.
    pub pending: BTreeMap<JobId, Pending>,
    /// How we stand with the scheduler.
    pub connection: Connection,
    /// When the next try to connect is, on the boot clock.
    pub retry_at: u64,
    /// A snapshot has arrived at least once.
    pub known: bool,
    /// The display is frozen: since when, and what it shows.
    pub frozen: Option<(Now, Box<Snapshot>)>,
    /// The newest lines of a followed log that came while the display was frozen.
    pub log_behind: Option<Box<LogWindow>>,
    /// The theme's name.
    pub theme: String,
    /// The themes that can be chosen, and what each is for.
    pub themes: Vec<(String, String)>,
    /// How the tables are ordered and grouped.
    pub tables: Tables,
    /// What was under the cursors when the filter began to be typed: Esc goes back to it.
    pub before_filter: Cursors,
    /// The jobs that are marked.
    pub marks: BTreeSet<JobId>,
    /// One pane has the whole screen.
    pub zoom: bool,
    /// The terminal tells of clicks.
    pub mouse: bool,
    /// How often running times move, if somebody has chosen it.
    pub tick_ms: Option<u64>,
    /// What was said, oldest first.
    pub said: VecDeque<Said>,
    /// Answers to one action on several jobs that are still to come.
    pub tally: Option<Tally>,
    /// What `u` takes back, as far as the scheduler does not know it.
    pub deeds: Deeds,
    /// Devices whose new figures wait, and since when those on the screen are there, on the boot clock.
    pub gpus_behind: (u64, Vec<GpuRow>),
    /// The scheduler can be started from here.
    pub can_start: bool,
    /// Few bytes: no sparklines, timers in minutes, GPU figures every five seconds. Panels read it.
    pub thrift: bool,
    /// A sign turns while a log is searched.
    pub spinner: bool,
    /// What is chosen on the devices' screen.
    pub gpus_view: GpusView,
    /// What is chosen on the meter's screen.
    pub meter_view: MeterView,
    /// What was fetched for the screens besides the snapshot.
    pub fetched: Fetched,
    /// Flows of more than one step.
    pub flows: Flows,
}

impl Ui {
    /// The state at the start.
    pub fn new(now: Now, tz: TimeZone, glyphs: Glyphs) -> Self {
        Self {
            now,
            tz,
            glyphs,
            size: (80, 24),
            me: String::new(),
            screen: Screen::Queue,
            focus: Pane::Queue,
            opened: None,
            overlay: None,
            typing: false,
            filters: Filters::default(),
            mine: false,
            queue_job: None,
            history_job: None,
            gpu: None,
            file: None,
            tops: BTreeMap::new(),
            moved: BTreeSet::new(),
            at: BTreeMap::new(),
            keys: Arc::default(),
            prefix: None,
            message: None,
            behind: None,
            log: LogView::default(),
            detail: None,
            pending: BTreeMap::new(),
            connection: Connection::Lost { why: "connecting".to_owned(), retry_in: Span(0) },
            retry_at: 0,
            known: false,
            frozen: None,
            log_behind: None,
            theme: "auto".to_owned(),
            themes: BUNDLED.iter().map(|(name, _)| ((*name).to_owned(), String::new())).collect(),
            tables: Tables::default(),
            before_filter: Cursors::default(),
            marks: BTreeSet::new(),
            zoom: false,
            mouse: false,
            tick_ms: None,
            said: VecDeque::new(),
            tally: None,
            deeds: Deeds::default(),
            gpus_behind: (0, Vec::new()),
            can_start: false,
            thrift: false,
            spinner: false,
            gpus_view: GpusView::default(),
            meter_view: MeterView::default(),
            fetched: Fetched::default(),
            flows: Flows::default(),
        }
    }

    /// What is under the cursors now.
    pub(in crate::tui) fn cursors(&self) -> Cursors {
        Cursors {
            queue: self.queue_job,
            history: self.history_job,
            gpu: self.gpu.clone(),
            file: self.file.clone(),
        }
    }

    /// Puts the cursors back.
    pub(in crate::tui) fn put_cursors(&mut self, to: Cursors) {
        (self.queue_job, self.history_job, self.gpu, self.file) = (to.queue, to.history, to.gpu, to.file);
    }

    /// The first row shown of a pane.
    pub fn top(&self, pane: Pane) -> usize {
        self.tops.get(&pane).copied().unwrap_or(0)
    }

    /// Whether commands can be sent.
    pub const fn connected(&self) -> bool {
        matches!(self.connection, Connection::Live)
    }

    /// Why nothing can be asked of the scheduler now; `None` if it can.
    pub(in crate::tui) fn unable(&self, verb: &str) -> Option<String> {
        match &self.connection {
            Connection::Live => None,
            Connection::Stale { .. } => {
                Some(format!("cannot {verb}: the scheduler has not answered for a while"))
            }
            Connection::Lost { .. } => Some(format!("cannot {verb}: no scheduler")),
        }
    }

    /// The account whose jobs are one's own.
    pub fn me<'a>(&'a self, snap: &'a Snapshot) -> &'a str {
        if self.me.is_empty() { &snap.scheduler.user } else { &self.me }
    }

    /// Puts a line on the message row. An error that was there comes back after anything less.
    pub fn say(&mut self, level: Level, text: impl Into<String>, job: Option<JobId>) {
        let until = (level < Level::Error).then_some(self.now.boottime_ms + MESSAGE_MS);
        let text = text.into();
        self.note(level, text.clone());
        let before = self.message.take().filter(|before| before.level == Level::Error);
        self.behind = match level {
            Level::Error => None,
            Level::Info | Level::Warning => {
                before.map(|before| Message { armed: false, ..before }).or(self.behind.take())
            }
        };
        self.message = Some(Message { level, text, job, armed: true, fleeting: false, until, note: "" });
    }

    /// Keeps a line for `:messages` only.
    pub(in crate::tui) fn note(&mut self, level: Level, text: String) {
        self.said.push_back(Said { at: self.now.wall_ms, level, text });
        if self.said.len() > SAID {
            self.said.pop_front();
        }
    }

    /// An error waits to be read.
    pub(in crate::tui) fn has_error(&self) -> bool {
        self.behind.is_some() || self.message.as_ref().is_some_and(|message| message.level == Level::Error)
    }

    /// Takes the line off the message row; `false` if there was none.
    pub(in crate::tui) fn hush(&mut self) -> bool {
        let was = self.message.take();
        self.message = self.behind.take();
        was.is_some()
    }
}

/// So many messages are kept for `:messages`.
pub(in crate::tui) const SAID: usize = 200;
/// No message goes sooner.
pub(in crate::tui) const MESSAGE_MS: u64 = 8_000;
