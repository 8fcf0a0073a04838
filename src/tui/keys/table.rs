//! The table: every action, its keys, where they mean it, and its words.

use super::Action;
use crate::tui::ui::Screen;
use std::ops::BitOr;

/// What keys mean depends on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Mode {
    /// The queue has the keys.
    Queue,
    /// The history has the keys.
    History,
    /// The devices have the keys, and the screen.
    Gpus,
    /// The devices have the keys, beside the queue.
    GpusPane,
    /// The meter has the keys, and the screen.
    Meter,
    /// The meter has the keys, beside the queue.
    MeterPane,
    /// The inbox has the keys.
    Inbox,
    /// The pane of one job has the keys.
    Job,
    /// The log of an opened job has the keys.
    Log,
    /// The log has the keys, beside the queue.
    LogPane,
    /// A job is opened, on another tab than its log.
    Detail,
    /// A line of text is being typed.
    Input,
    /// A question is asked.
    Dialog,
    /// A list to choose from; typing narrows it.
    Choose,
    /// A menu, or a card with letters of its own: a letter is a choice.
    Menu,
    /// A list of things that can be switched, or of lines to read.
    Picker,
    /// Fields.
    Form,
    /// A text of several lines is being written.
    Lines,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Queue,
        Self::History,
        Self::Gpus,
        Self::GpusPane,
        Self::Meter,
        Self::MeterPane,
        Self::Inbox,
        Self::Job,
        Self::Detail,
        Self::Log,
        Self::LogPane,
        Self::Input,
        Self::Dialog,
        Self::Choose,
        Self::Menu,
        Self::Picker,
        Self::Form,
        Self::Lines,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::History => "history",
            Self::Gpus => "GPUs",
            Self::GpusPane => "GPUs pane",
            Self::Meter => "meter",
            Self::MeterPane => "meter pane",
            Self::Inbox => "inbox",
            Self::Job | Self::Detail => "job",
            Self::Log | Self::LogPane => "log",
            Self::Input => "text field",
            Self::Dialog => "question",
            Self::Choose => "list to choose from",
            Self::Menu => "menu",
            Self::Picker => "list of settings",
            Self::Form => "form",
            Self::Lines => "text",
        }
    }

    /// Keys that are characters are text here.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Input | Self::Choose | Self::Menu | Self::Form | Self::Lines)
    }
}

/// A set of modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes(u32);

impl Modes {
    /// Whether a mode is among them.
    pub const fn has(self, mode: Mode) -> bool {
        self.0 & (1 << mode as u32) != 0
    }

    /// Whether any mode is in both.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn of(modes: &[Mode]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < modes.len() {
            bits |= 1 << modes[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Modes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.and(other)
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Binding {
    /// Its name in `[keys]` of the configuration; empty: its keys are the same for everybody.
    pub id: &'static str,
    /// What it does.
    pub action: Action,
    /// Its keys, with blanks between; the first one is shown in the key line.
    pub keys: &'static str,
    /// Where they mean it.
    pub modes: Modes,
    /// What it does, in words.
    pub about: &'static str,
    /// Its short words in the key line; empty: not there.
    pub hint: &'static str,
    /// The same, where the key line has room left when all that have a `hint` stand in it.
    pub spare: &'static str,
}

impl Binding {
    const fn spare(mut self, words: &'static str) -> Self {
        self.spare = words;
        self
    }
}

const fn row(
    id: &'static str,
    action: Action,
    keys: &'static str,
    modes: Modes,
    about: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { id, action, keys, modes, about, hint, spare: "" }
}

use Action as A;

/// Where nothing lies over the screen and nothing is typed.
pub(in crate::tui) const BASE: Modes = Modes::of(&[
    Mode::Queue,
    Mode::History,
    Mode::Gpus,
    Mode::GpusPane,
    Mode::Meter,
    Mode::MeterPane,
    Mode::Inbox,
    Mode::Job,
    Mode::Log,
    Mode::LogPane,
    Mode::Detail,
]);
const GPUS: Modes = Modes::of(&[Mode::Gpus]);
/// The devices, on their own screen or beside the queue.
const DEVICES: Modes = Modes::of(&[Mode::Gpus, Mode::GpusPane]);
const INBOX: Modes = Modes::of(&[Mode::Inbox]);
const LOG: Modes = Modes::of(&[Mode::Log, Mode::LogPane]);
/// Screens with views of their own; beside the queue these panes have none.
const VIEWS: Modes = Modes::of(&[Mode::Gpus, Mode::Meter]);
/// Lists with a cursor that can be opened.
const LISTS: Modes = DEVICES.and(Modes::of(&[
    Mode::Queue,
    Mode::History,
    Mode::Meter,
    Mode::MeterPane,
    Mode::Inbox,
    Mode::Job,
]));
/// Lists of jobs.
const TABLES: Modes = Modes::of(&[Mode::Queue, Mode::History]);
/// Lists that can be filtered: the jobs, and where they have the screen the devices and the files.
const FILTERED: Modes = TABLES.and(Modes::of(&[Mode::Gpus, Mode::Inbox]));
/// A job that is opened.
const OPENED: Modes = Modes::of(&[Mode::Detail, Mode::Log]);
/// Where there are tabs, or views.
const TABBED: Modes = OPENED.and(VIEWS).and(Modes::of(&[Mode::Job]));
/// Where text can be searched.
const FOUND: Modes = LOG.and(Modes::of(&[Mode::Detail]));
/// Where keys are about one job, or the marked ones: what cannot be done to it is answered with the reason.
const ACTED: Modes = LOG.and(Modes::of(&[Mode::Queue, Mode::History, Mode::Job, Mode::Detail]));
const INPUT: Modes = Modes::of(&[Mode::Input]);
const DIALOG: Modes = Modes::of(&[Mode::Dialog]);
const CHOOSE: Modes = Modes::of(&[Mode::Choose]);
const MENU: Modes = Modes::of(&[Mode::Menu]);
const PICKER: Modes = Modes::of(&[Mode::Picker]);
const FORM: Modes = Modes::of(&[Mode::Form]);
const LINES: Modes = Modes::of(&[Mode::Lines]);
/// Where Enter takes what is typed, or chosen.
const TAKEN: Modes = INPUT.and(CHOOSE).and(FORM);
const TEXT: Modes = TAKEN.and(LINES);
/// A job that a key can be about.
const JOBS: Modes = LISTS.and(OPENED).and(LOG);
const ALWAYS: Modes = BASE.and(TEXT).and(DIALOG).and(MENU).and(PICKER);

/// Every action and its keys. Rows that are hints come in the order in which the key line has them.
pub static TABLE: &[Binding] = &[
    // Jobs.
    row("open", A::Open, "Enter", LISTS, "open; first what the message row offers", "open"),
    row(
        "log",
        A::Log,
        "l",
        LISTS.and(Modes::of(&[Mode::Detail, Mode::LogPane])),
        "log of the job, whole screen",
        "log",
    ),
    row("cancel", A::Cancel, "x F9", ACTED, "cancel: asks, and can be undone", "cancel"),
    row("raise", A::Raise, "+ = F7", ACTED, "priority + 10", "prio up"),
    row("lower", A::Lower, "- F8", ACTED, "priority - 10", "down"),
    row("top", A::Top, "t", ACTED, "before your other jobs of its priority", "top"),
    row("bottom", A::Bottom, "b", ACTED, "behind your other jobs of its priority", "bottom"),
    row("place-up", A::PlaceUp, "K", ACTED, "one place up among your jobs of its priority", ""),
    row("place-down", A::PlaceDown, "J", ACTED, "one place down among your jobs of its priority", ""),
    row("pause", A::Pause, "H", ACTED, "pause or resume a waiting job", "pause"),
    row("retry", A::Retry, "r", ACTED, "submit a finished job again", "retry"),
    row("new", A::New, "n", LISTS, "new job: from a file, a template or an earlier one", "new"),
    row("edit", A::Edit, "e", ACTED, "edit the request of a waiting job in the editor", "edit"),
    row("quick-edit", A::QuickEdit, "E", ACTED, "change GPUs, priority, time limit or name", ""),
    row("duplicate", A::Duplicate, "D", ACTED, "submit the same once more, with changes", ""),
    row("copy", A::Copy, "y", JOBS, "copy id, paths, command, YAML or error", "copy"),
    row("shell", A::Shell, "o", JOBS, "a shell in the output folder; `exit` comes back", "").spare("shell"),
    row("leave", A::Leave, "O", JOBS, "quit, and go to the output folder (--cwd-file)", ""),
    row("pager", A::Pager, "|", JOBS, "open the log in the pager", ""),
    row("clear", A::Clear, "c", DEVICES, "lift the quarantine of a GPU: asks", "clear"),
    row("range", A::Range, "T", VIEWS, "how far back: the next stretch of time", "time range"),
    row("zoom-in", A::ZoomIn, "+ =", GPUS, "less time on the timeline", "zoom"),
    row("zoom-out", A::ZoomOut, "-", GPUS, "more time on the timeline", ""),
    row("to-now", A::ToNow, "0", GPUS, "back to now on the timeline", ""),
    row("fix", A::Fix, "f", INBOX, "mend a refused file where that is certain: asks", "fix"),
    row("edit-file", A::EditFile, "e", INBOX, "a refused file in the editor, where it lies", "edit"),
    // Tables.
    row("filter", A::Filter, "/ F4", FILTERED, "filter: words u:ana s:run g:>2 n:/re/ !not", "filter"),
    row("mine", A::Mine, "m", TABLES, "own jobs, or all", "").spare("mine"),
    row("sort", A::Sort, "s F6", TABLES, "order by: a letter; the same again reverses", "sort"),
    row("group", A::Group, "v F5", TABLES, "group by user, state, GPU; user, day, week", ""),
    row("columns", A::Columns, "C F2", TABLES, "choose and move the columns", ""),
    row("mark", A::Mark, "Space", TABLES, "mark and go down; keys then act on the marked", "").spare("mark"),
    row("mark-all", A::MarkAll, "a", TABLES, "mark all that are shown, or none", ""),
    // The log.
    row("follow", A::Follow, "f", LOG, "follow the end, or stop", "follow"),
    row("hold", A::Hold, "Space", LOG, "stop here, or go on", "hold"),
    row("wrap", A::Wrap, "w", LOG, "wrap long lines", "wrap"),
    row("search", A::Search, "/ F3", FOUND, "search: text, or re:EXPRESSION", "search"),
    row("next-match", A::NextMatch, "n", FOUND, "next match", ""),
    row("previous-match", A::PreviousMatch, "N", FOUND, "match before", ""),
    row("only", A::Only, "&", LOG, "only lines with a text", ""),
    row("times", A::Times, "T", LOG, "times of lines: since the line before, clock, off", ""),
    row("left", A::Left, "< Left", LOG.and(TABLES).and(GPUS), "scroll to the left; back in time", ""),
    row("right", A::Right, "> Right", LOG.and(TABLES).and(GPUS), "scroll to the right; ahead in time", ""),
    // A job.
    row("next-tab", A::NextTab, "]", TABBED, "next tab or view", "tabs"),
    row("previous-tab", A::PreviousTab, "[", TABBED, "tab or view before", ""),
    // Moving.
    row("down", A::Down, "j Down", BASE, "down", ""),
    row("up", A::Up, "k Up", BASE, "up", ""),
    row("first", A::First, "gg Home", BASE, "first", ""),
    row("last", A::Last, "G End", BASE, "last", ""),
    row("half-down", A::HalfDown, "Ctrl-D", BASE, "half a page down", ""),
    row("half-up", A::HalfUp, "Ctrl-U", BASE, "half a page up", ""),
    row("page-down", A::PageDown, "PgDn Ctrl-F", BASE, "a page down", ""),
    row("page-up", A::PageUp, "PgUp", BASE, "a page up", ""),
    // Everywhere.
    row("queue", A::Show(Screen::Queue), "1", BASE, "Queue", ""),
    row("gpus", A::Show(Screen::Gpus), "2", BASE, "GPUs", ""),
    row("meter", A::Show(Screen::Meter), "3", BASE, "Meter", ""),
    row("history", A::Show(Screen::History), "4", BASE, "History", ""),
    row("inbox", A::Show(Screen::Inbox), "5", BASE, "Inbox", ""),
    row("next-pane", A::NextPane, "Tab", BASE, "next pane, tab or screen", "next"),
    row("previous-pane", A::PreviousPane, "Shift-Tab", BASE, "the one before", ""),
    row("undo", A::UndoList, "U", BASE, "everything that can still be undone", ""),
    row("undo-newest", A::Undo, "u", BASE, "undo the newest action", "").spare("undo"),
    row("freeze", A::Freeze, "p Z", BASE, "freeze the display, and let it go on", ""),
    row("refresh", A::Refresh, "R", BASE, "look at the inbox again", ""),
    row("palette", A::Palette, ":", BASE, "find an action by its name", "").spare("cmd"),
    row("start-scheduler", A::Start, "S", BASE, "start the scheduler, if none runs", ""),
    row("low-bandwidth", A::Thrift, "B", BASE, "low bandwidth: fewer bytes, for slow links", ""),
    row("help", A::Help, "? h F1", BASE, "keys of this screen", "help"),
    row("back", A::Back, "q F10", BASE, "back; quit at the root. Jobs go on", "quit"),
    row("repaint", A::Repaint, "Ctrl-L", ALWAYS, "repaint everything", ""),
    row("zoom", A::Zoom, "z", BASE, "this pane alone, and back", "").spare("alone"),
    row("mouse", A::Mouse, "M", BASE, "mouse on or off; Shift-drag selects text", ""),
    row("settings", A::Settings, ",", BASE, "theme, characters, refresh", ""),
    row("messages", A::Messages, "", BASE, "what was said on the message row", ""),
    row("export-csv", A::Export, "", BASE, "the history shown, as CSV, to a file here", ""),
    #[cfg(debug_assertions)]
    row("panic", A::Panic, "", BASE, "fail on purpose", ""),
    row("suspend", A::Suspend, "Ctrl-Z", ALWAYS, "suspend; `fg` comes back", ""),
    // The same for everybody.
    row("", A::Interrupt, "Ctrl-C", ALWAYS, "close a popup or input; else quit", ""),
    row("", A::Escape, "Esc", BASE, "close, clear message, filter, marks; never quits", ""),
    row("", A::No, "n Esc q", DIALOG, "keep it", "keep"),
    row("", A::Yes, "y", DIALOG, "yes", "yes"),
    row("", A::Now, "!", DIALOG, "yes, at once", "now"),
    row("", A::NextButton, "Tab Right", DIALOG, "next button", ""),
    row("", A::PreviousButton, "Shift-Tab Left", DIALOG, "the button before", ""),
    row("", A::Press, "Enter Space", DIALOG, "press the button", ""),
    row("", A::Accept, "Enter", TAKEN.and(MENU).and(PICKER), "take it", "take it"),
    row("", A::Accept, "Ctrl-X", LINES, "done: the text is taken", "done"),
    row("", A::Insert('\n'), "Enter", LINES, "a new line", ""),
    row("", A::NextButton, "Tab", LINES, "two blanks", ""),
    row("", A::Down, "Down", LINES, "down", ""),
    row("", A::Up, "Up", LINES, "up", ""),
    row("", A::PageDown, "PgDn", LINES, "a page down", ""),
    row("", A::PageUp, "PgUp", LINES, "a page up", ""),
    row("", A::Escape, "Esc", TEXT, "close; a filter is cleared", "close"),
    row("", A::Escape, "Esc q", MENU, "close", "close"),
    row("", A::Escape, "Esc q", PICKER, "close; what was tried is as before", "close"),
    row("", A::Mark, "Space", PICKER, "on, off or the next one", "change"),
    row("", A::PlaceDown, "J", PICKER, "move it down", ""),
    row("", A::PlaceUp, "K", PICKER, "move it up", ""),
    row("", A::Left, "Left <", PICKER, "the one before", ""),
    row("", A::Right, "Right >", PICKER, "the next one", ""),
    row("", A::Down, "j Down", PICKER, "down", ""),
    row("", A::Up, "k Up", PICKER, "up", ""),
    row("", A::First, "gg Home", PICKER, "first", ""),
    row("", A::Last, "G End", PICKER, "last", ""),
    row("", A::HalfDown, "Ctrl-D", PICKER, "half a page down", ""),
    row("", A::HalfUp, "Ctrl-U", PICKER, "half a page up", ""),
    row("", A::PageDown, "PgDn Ctrl-F", PICKER, "a page down", ""),
    row("", A::PageUp, "PgUp", PICKER, "a page up", ""),
    row("", A::Down, "Down Tab", MENU, "down", ""),
    row("", A::Up, "Up Shift-Tab", MENU, "up", ""),
    row("", A::Edit, "e", DIALOG, "edit again, where something was edited", ""),
    row("", A::Down, "Down", DIALOG, "down", ""),
    row("", A::Up, "Up", DIALOG, "up", ""),
    row("", A::NextButton, "Tab", FORM, "next field or source", ""),
    row("", A::PreviousButton, "Shift-Tab", FORM, "the one before", ""),
    row("", A::Down, "Down", FORM, "down", ""),
    row("", A::Up, "Up", FORM, "up", ""),
    row("", A::PageDown, "PgDn", FORM, "a page down", ""),
    row("", A::PageUp, "PgUp", FORM, "a page up", ""),
    row("", A::Down, "Down Tab", CHOOSE, "down", ""),
    row("", A::Up, "Up Shift-Tab", CHOOSE, "up", ""),
    row("", A::PageDown, "PgDn", CHOOSE, "a page down", ""),
    row("", A::PageUp, "PgUp", CHOOSE, "a page up", ""),
    row("", A::Left, "Left", TEXT, "to the left", ""),
    row("", A::Right, "Right", TEXT, "to the right", ""),
    row("", A::First, "Home", TEXT, "to the beginning", ""),
    row("", A::Last, "End", TEXT, "to the end", ""),
    row("", A::Erase, "Backspace", TEXT, "erase", ""),
    row("", A::EraseWord, "Ctrl-W", TEXT, "erase a word", ""),
    row("", A::EraseAll, "Ctrl-U", TEXT, "erase everything", ""),
];
