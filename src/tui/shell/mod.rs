//! The loop of the dashboard: what arrives is taken in, then at most one frame is drawn. The only place that reads the clock.

mod asking;
mod background;
mod browse;
mod errands;
mod external;
pub(in crate::tui) mod feed;
mod input;
pub(in crate::tui) mod log;
mod manner;
mod measure;
mod mend;
mod newfile;
mod obey;
pub(in crate::tui) mod options;
mod pace;
pub(in crate::tui) mod screen;
mod split;
mod terminal;
mod themewatch;
mod writer;

use crate::clock;
use crate::config::Notify;
use crate::model::{Cursor, JobId, Now, Revision, Span};
use crate::protocol::{Connection, Snapshot};
use crate::tui::deadline::next_deadline;
use crate::tui::keys::{Action, Keymap};
use crate::tui::look::colour::Depth;
use crate::tui::look::theme::Theme;
use crate::tui::looks;
use crate::tui::shell::feed::{Connector, FeedEvent, Link, UiCommand};
use crate::tui::shell::log::{LogMessage, LogReader, LogWant};
use crate::tui::shell::options::{Options, Outside};
use crate::tui::shell::pace::{ALONE_MS, Pace, Purse};
use crate::tui::shell::screen::Screenful;
use crate::tui::ui::{Level, Ui};
use crate::tui::update;
use crate::tui::update::flows::Desk;
use crate::tui::{figures, news};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use external::Absence;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use terminal::Guard;
use themewatch::Wanted;
use thiserror::Error;
use writer::Writer;

pub use background::ask_background;

/// How the dashboard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The person left.
    Quit,
    /// The terminal went away.
    Hangup,
}

/// Why there is no dashboard, or no more.
#[derive(Debug, Error)]
pub enum TuiError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be {doing}")]
    Terminal {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("the thread that {doing} cannot be started")]
    Thread {
        /// What it does.
        doing: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Another thread of the dashboard has failed and said why.
    #[error("a part of the dashboard has failed; jobs go on")]
    Failed,
}

/// Silence while jobs run is asked about after this.
const QUIET_MS: u64 = 5_000;
/// Without an answer the picture is old after this.
const PATIENCE_MS: u64 = 3_000;
/// With a frame that cannot be drawn nothing has to be looked at sooner, unless something arrives.
const STUCK_MS: u64 = 1_000;
/// Events taken in before a frame is drawn.
const BATCH: usize = 1_000;

/// Runs the dashboard until the person leaves or the terminal goes.
pub fn run(options: Options, connector: impl Connector + 'static) -> Result<Exit, TuiError> {
    let (events, arrives) = channel();
    let (commands, asked) = channel();
    let (wants, wanted) = channel();
    let pace = Pace {
        remote: usize::from(options.remote),
        thrift: options.low_bandwidth,
        focus: None,
        pressed_ms: (options.clock)().boottime_ms,
    };
    terminal::restore_on_panic(&events);
    let guard = Guard::take().map_err(|source| TuiError::Terminal { doing: "taken", source })?;
    terminal::start(&events).map_err(|source| TuiError::Thread { doing: "watches the terminal", source })?;
    let reader = LogReader {
        wants: wanted,
        wake: wants.clone(),
        events: events.clone(),
        pause: Duration::from_millis(pace.log_ms()),
    };
    std::thread::Builder::new()
        .name("log".into())
        .spawn(|| reader.run())
        .map_err(|source| TuiError::Thread { doing: "reads logs", source })?;
    let look = Wanted {
        name: options.theme.clone(),
        dir: options.theme_dir.clone(),
        depth: manner::few_colours(options.depth, options.low_bandwidth),
        glyphs: options.glyphs,
        broken: false,
    };
    look.watch(&events).map_err(|source| TuiError::Thread { doing: "watches themes", source })?;
    let writer =
        Writer::start(&events).map_err(|source| TuiError::Thread { doing: "writes frames", source })?;
    let can_start = connector.can_start();
    let every = Span(pace.frame_ms());
    let link = Link { connector: Box::new(connector), events: events.clone(), commands: asked, every };
    link.start().map_err(|source| TuiError::Thread { doing: "talks to the scheduler", source })?;
    let mut shell = Shell::new(options, look, (commands, wants, events), (writer, pace));
    shell.ui.can_start = can_start;
    let ended = shell.run(&arrives);
    drop(guard);
    ended
}

/// Over a slow link an Esc and the key after it arrive as one: they are two again. No key is bound to Alt.
fn unalted(mut key: KeyEvent) -> [Option<KeyEvent>; 2] {
    if !key.modifiers.contains(KeyModifiers::ALT) {
        return [None, Some(key)];
    }
    key.modifiers.remove(KeyModifiers::ALT);
    [Some(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), Some(key)]
}

struct Shell {
    ui: Ui,
    snap: Snapshot,
    theme: Theme,
    /// The theme that was wished for: another than `theme` while that one cannot be used.
    look: Wanted,
    screen: Screenful<Writer>,
    commands: Sender<UiCommand>,
    wants: Sender<LogMessage>,
    clock: fn() -> Now,
    events: Sender<FeedEvent>,
    outside: Outside,
    /// Another program has the terminal.
    away: Option<Absence>,
    pace: Pace,
    /// A key that a slow link tore apart.
    split: split::Split,
    purse: Purse,
    /// The theme that was wished for when the settings were opened, and the one that was on.
    before: Option<(Wanted, Theme)>,
    /// How many colours the terminal has.
    depth: Depth,
    notify: Notify,
    /// Low bandwidth has been offered.
    is_offered: bool,
    want: Option<LogWant>,
    /// The number of the search that the reader knows of.
    finding: Option<u64>,
    /// The opened job and the revision of its row when it was last asked for.
    detail_asked: Option<(JobId, Option<Revision>)>,
    /// The job whose output was measured last, and when.
    measured: Option<(JobId, u64)>,
    dirty: bool,
    /// A key was pressed: its frame does not wait for others.
    pressed: bool,
    /// It was pressed alone: its frame waits for nothing.
    alone: bool,
    drawn_ms: u64,
    heard_ms: u64,
    /// Since when an answer is awaited.
    waiting_ms: Option<u64>,
}

/// What the loop does next.
enum Next {
    Go,
    End(Exit),
}

impl Shell {
    fn new(
        options: Options,
        look: Wanted,
        (commands, wants, events): (Sender<UiCommand>, Sender<LogMessage>, Sender<FeedEvent>),
        (writer, pace): (Writer, Pace),
    ) -> Self {
        let now = (options.clock)();
        let mut ui = Ui::new(now, options.tz, options.glyphs);
        ui.me = options.me;
        ui.flows.desk = Desk::of(&options.outside);
        let (keys, faults) = Keymap::with(&options.keys);
        ui.keys = Arc::new(keys);
        let unknown = ui.tables.choose(&options.columns, &options.history_columns);
        // All of them are in `:messages`; the first one is seen.
        for fault in unknown.iter().chain(faults.iter().rev()).chain(&options.complaint) {
            ui.say(Level::Error, fault.clone(), None);
        }
        ui.size = terminal::size();
        (ui.thrift, ui.mouse, ui.spinner) = (options.low_bandwidth, options.mouse, options.spinner);
        let mut shell = Self {
            screen: Screenful::new(writer, ui.size).marked(options.sync),
            ui,
            snap: Snapshot::default(),
            theme: Theme::auto(options.depth),
            look,
            commands,
            wants,
            clock: options.clock,
            events,
            outside: options.outside,
            away: None,
            purse: Purse::new(clock::monotonic().0, pace.is_limited()),
            pace,
            split: split::Split::default(),
            before: None,
            depth: options.depth,
            notify: options.notify,
            is_offered: false,
            want: None,
            finding: None,
            detail_asked: None,
            measured: None,
            dirty: true,
            pressed: true,
            alone: true,
            drawn_ms: 0,
            heard_ms: now.boottime_ms,
            waiting_ms: None,
        };
        shell.dress();
        shell
    }

    fn run(&mut self, arrives: &Receiver<FeedEvent>) -> Result<Exit, TuiError> {
        loop {
            self.frame()?;
            let event = match self.pause() {
                None => arrives.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(ms) => arrives.recv_timeout(Duration::from_millis(ms)),
            };
            let now = (self.clock)();
            // An event that only tells of the terminal changes nothing on it.
            let mut is_news = event.is_err();
            match event {
                Ok(event) => {
                    let mut next = Some(event);
                    let mut taken = 0;
                    while let Some(event) = next {
                        is_news |= !matches!(event, FeedEvent::Written { .. });
                        if let Next::End(exit) = self.take(event, now)? {
                            return Ok(exit);
                        }
                        taken += 1;
                        next = if taken < BATCH { arrives.try_recv().ok() } else { None };
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(TuiError::Failed),
            }
            figures::catch_up(&mut self.ui, &mut self.snap, now);
            let settled = news::tick(&mut self.ui, &self.snap, now);
            self.dirty |= is_news;
            if let Next::End(exit) = self.obey(settled)? {
                return Ok(exit);
            }
            self.listen(now);
            self.follow_thrift();
            self.ask();
        }
    }

    /// Draws if something may have changed and the last frame is long enough ago.
    fn frame(&mut self) -> Result<(), TuiError> {
        if self.away.is_some() {
            self.dirty = false;
            return Ok(());
        }
        if !terminal::taken() {
            return Err(TuiError::Failed);
        }
        let now_ms = clock::monotonic().0;
        if !self.dirty || self.held_back(now_ms) || !writer::has_room() {
            return Ok(());
        }
        let before = self.screen.sent();
        let drawn = self.screen.draw(&self.ui, &self.snap, &self.theme);
        let drawn = drawn.map_err(|source| TuiError::Terminal { doing: "written to", source })?;
        if drawn {
            self.drawn_ms = now_ms;
            self.purse.spend(self.screen.sent() - before, now_ms);
        }
        (self.dirty, self.pressed, self.alone) = (false, false, false);
        Ok(())
    }

    /// How long nothing has to be done if nothing arrives.
    fn pause(&self) -> Option<u64> {
        let now = (self.clock)();
        if self.dirty {
            let left = self.due_ms().saturating_sub(clock::monotonic().0);
            // Without room the writer tells when there is some.
            return Some(if left == 0 { STUCK_MS } else { left });
        }
        let tick_ms = self.ui.tick_ms.unwrap_or(self.pace.tick_ms());
        let visible = next_deadline(&self.ui, &self.snap, &now, tick_ms);
        let asks = match (self.waiting_ms, self.runs()) {
            (Some(since), _) if !self.stale() => Some(since + PATIENCE_MS),
            (None, true) => Some(self.heard_ms + QUIET_MS),
            (Some(_) | None, _) => None,
        };
        let asks = asks.map(|at| at.saturating_sub(now.boottime_ms).max(1));
        [visible, asks].into_iter().flatten().min()
    }

    fn runs(&self) -> bool {
        self.snap.jobs.iter().any(|row| row.state != Cursor::Queued)
    }

    const fn stale(&self) -> bool {
        matches!(self.ui.connection, Connection::Stale { .. } | Connection::Lost { .. })
    }

    /// Takes in one event.
    fn take(&mut self, event: FeedEvent, now: Now) -> Result<Next, TuiError> {
        let out = match event {
            FeedEvent::Hangup if !terminal::taken() && self.away.is_none() => return Err(TuiError::Failed),
            FeedEvent::Hangup => return Ok(Next::End(Exit::Hangup)),
            FeedEvent::Written { failed: Some(source), .. } => {
                return Err(TuiError::Terminal { doing: "written to", source });
            }
            FeedEvent::Written { took_ms, failed: None } => {
                self.written(took_ms);
                Vec::new()
            }
            FeedEvent::Input(_) if self.away.is_some() => Vec::new(),
            FeedEvent::Input(event) => self.input(event, now),
            FeedEvent::Returned(ended) => self.returned(ended, now)?,
            FeedEvent::ThemeChanged => {
                self.redress();
                Vec::new()
            }
            event => {
                if !matches!(event, FeedEvent::Log(_) | FeedEvent::Found(..) | FeedEvent::Brought(_)) {
                    self.heard_ms = now.boottime_ms;
                    self.waiting_ms = None;
                }
                let lost = matches!(event, FeedEvent::Connection(_));
                let out = news::receive(&mut self.ui, &mut self.snap, event, now);
                if lost {
                    self.detail_asked = None;
                    looks::forget(&mut self.ui);
                }
                out
            }
        };
        self.obey(out)
    }

    /// Takes a size in; everything is drawn again if it is a new one.
    fn resized(&mut self, size: (u16, u16)) {
        if size != self.ui.size {
            self.ui.size = size;
            self.screen.resize(size);
            crate::tui::settle(&mut self.ui, &self.snap);
            self.pressed = true;
        }
    }

    fn input(&mut self, event: Event, now: Now) -> Vec<UiCommand> {
        // The library forgets a change of size that comes together with a key.
        self.resized(terminal::size());
        let action = match event {
            Event::Resize(..) => {
                // Terminals clear what they showed, even where the size comes back to what it was.
                self.screen.repaint();
                self.pressed = true;
                return Vec::new();
            }
            Event::Key(key) => {
                let actions = unalted(key).into_iter().flatten();
                return actions.flat_map(|key| self.key(key, now)).collect();
            }
            Event::Paste(text) => Some(Action::Paste(text)),
            Event::FocusGained | Event::FocusLost => {
                self.pace.focus = Some(event == Event::FocusGained);
                self.pressed |= event == Event::FocusGained;
                return Vec::new();
            }
            Event::Mouse(mouse) => update::mouse::pointed(mouse),
        };
        action.map_or_else(Vec::new, |action| self.act(action, now))
    }

    fn key(&mut self, key: KeyEvent, now: Now) -> Vec<UiCommand> {
        if self.split.is_rest(&key, now.boottime_ms) {
            return Vec::new();
        }
        let action = self.ui.keys.action(update::mode(&self.ui), self.ui.prefix, key);
        action.map_or_else(Vec::new, |action| self.act(action, now))
    }

    fn act(&mut self, action: Action, now: Now) -> Vec<UiCommand> {
        self.pressed = true;
        self.alone |= now.boottime_ms >= self.pace.pressed_ms + ALONE_MS;
        self.pace.pressed_ms = now.boottime_ms;
        self.pace.focus = self.pace.focus.and(Some(true));
        update::update(&mut self.ui, action, &self.snap, now)
    }
}
