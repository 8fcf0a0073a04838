//! Keys. One table per mode gives the action, the help screen and the key line; nothing else knows a key.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a person can do. Every one is reachable by the tables below.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has its words in the tables below")]
pub enum Action {
    Back,
    Escape,
    Interrupt,
    Help,
    Show(super::Screen),
    NextPane,
    PreviousPane,
    Down,
    Up,
    First,
    Last,
    HalfDown,
    HalfUp,
    PageDown,
    PageUp,
    Left,
    Right,
    Open,
    NextTab,
    PreviousTab,
    Filter,
    Mine,
    Cancel,
    Undo,
    Raise,
    Lower,
    Top,
    Bottom,
    PlaceUp,
    PlaceDown,
    Pause,
    Retry,
    /// Lift a GPU's quarantine.
    Clear,
    Log,
    Follow,
    Hold,
    Wrap,
    Freeze,
    Refresh,
    Repaint,
    Suspend,
    /// The first key of two.
    Prefix(char),
    /// In a dialog: yes.
    Yes,
    /// In a dialog: no.
    No,
    /// In a dialog: yes, at once.
    Now,
    /// In a dialog: the next button.
    NextButton,
    /// In a dialog: press the button that has the focus.
    Press,
    /// In a text field: a character.
    Insert(char),
    /// In a text field: the last character goes.
    Erase,
    /// In a text field: the last word goes.
    EraseWord,
    /// In a text field: everything goes.
    EraseAll,
    /// In a text field: done.
    Accept,
    /// Pasted text.
    Paste(String),
    /// A key that means nothing here.
    Unknown(String),
}

/// What keys mean depends on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The filter is being typed.
    Input,
    /// A question is asked.
    Dialog,
    /// The help is shown.
    Help,
    /// The log has the keys.
    Log,
    /// A job is opened, on another tab than its log.
    Detail,
    /// The queue has the keys.
    Queue,
    /// The history has the keys.
    History,
    /// The devices have the keys.
    Gpus,
    /// Another list has the keys.
    List,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Char(char),
    Ctrl(char),
    Code(KeyCode),
    /// A key after [`Action::Prefix`].
    After(char, char),
}

/// One row of a table.
pub struct Binding {
    keys: &'static [Key],
    /// What it does; told by the row the binding is about, where it depends on one.
    pub action: Action,
    /// The keys as help shows them.
    pub shown: &'static str,
    /// What it does, in words.
    pub help: &'static str,
    /// Its short words in the key line; empty: not there.
    pub hint: &'static str,
}

const fn row(
    keys: &'static [Key],
    action: Action,
    shown: &'static str,
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { keys, action, shown, help, hint }
}

use Key::{After, Char, Code, Ctrl};
use KeyCode as K;

/// Everywhere but in a text field, a dialog and the help.
const ALL: &[Binding] = &[
    row(&[Char('?'), Char('h'), Code(K::F(1))], Action::Help, "? h F1", "keys of this screen", "help"),
    row(&[Char('q'), Code(K::F(10))], Action::Back, "q F10", "back; quit at the root. Jobs go on", "quit"),
    row(&[Code(K::Esc)], Action::Escape, "Esc", "close, then clear message and filter; never quits", ""),
    row(&[Ctrl('c')], Action::Interrupt, "Ctrl-C", "close a popup or input; else quit", ""),
    row(&[Char('1')], Action::Show(super::Screen::Queue), "1", "Queue", ""),
    row(&[Char('2')], Action::Show(super::Screen::Gpus), "2", "GPUs", ""),
    row(&[Char('3')], Action::Show(super::Screen::Meter), "3", "Meter", ""),
    row(&[Char('4')], Action::Show(super::Screen::History), "4", "History", ""),
    row(&[Char('5')], Action::Show(super::Screen::Inbox), "5", "Inbox", ""),
    row(&[Code(K::Tab)], Action::NextPane, "Tab", "next pane, tab or screen", "next"),
    row(&[Code(K::BackTab)], Action::PreviousPane, "Shift-Tab", "the one before", ""),
    row(&[Char('u')], Action::Undo, "u", "undo the newest cancel or move", ""),
    row(&[Char('p'), Char('Z')], Action::Freeze, "p Z", "freeze the display, and let it go on", ""),
    row(&[Char('R')], Action::Refresh, "R", "look at the inbox again", ""),
    row(&[Ctrl('l')], Action::Repaint, "Ctrl-L", "repaint everything", ""),
    row(&[Ctrl('z')], Action::Suspend, "Ctrl-Z", "suspend; `fg` comes back", ""),
];

/// Everything that scrolls.
const MOVE: &[Binding] = &[
    row(&[Char('j'), Code(K::Down)], Action::Down, "j Down", "down", ""),
    row(&[Char('k'), Code(K::Up)], Action::Up, "k Up", "up", ""),
    row(&[Char('g')], Action::Prefix('g'), "", "", ""),
    row(&[After('g', 'g'), Code(K::Home)], Action::First, "g g Home", "first", ""),
    row(&[Char('G'), Code(K::End)], Action::Last, "G End", "last", ""),
    row(&[Ctrl('d')], Action::HalfDown, "Ctrl-D", "half a page down", ""),
    row(&[Ctrl('u')], Action::HalfUp, "Ctrl-U", "half a page up", ""),
    row(&[Code(K::PageDown), Ctrl('f')], Action::PageDown, "PgDn Ctrl-F", "a page down", ""),
    row(&[Code(K::PageUp)], Action::PageUp, "PgUp", "a page up", ""),
];

const LISTS: &[Binding] = &[
    row(&[Code(K::Enter)], Action::Open, "Enter", "open", "open"),
    row(&[Char('l')], Action::Log, "l", "log of the job, whole screen", "log"),
];

const QUEUE: &[Binding] = &[
    row(&[Char('x'), Code(K::F(9))], Action::Cancel, "x F9", "cancel: asks, and can be undone", "cancel"),
    row(&[Char('+'), Char('='), Code(K::F(7))], Action::Raise, "+ = F7", "priority + 10", "prio up"),
    row(&[Char('-'), Code(K::F(8))], Action::Lower, "- F8", "priority - 10", "down"),
    row(&[Char('t')], Action::Top, "t", "to the top of the line", "top"),
    row(&[Char('b')], Action::Bottom, "b", "to the bottom of the line", "bottom"),
    row(&[Char('K')], Action::PlaceUp, "K", "one place up in the line", ""),
    row(&[Char('J')], Action::PlaceDown, "J", "one place down in the line", ""),
    row(&[Char('H')], Action::Pause, "H", "pause or resume a waiting job", "pause"),
];

const GPUS: &[Binding] =
    &[row(&[Char('c')], Action::Clear, "c", "lift the quarantine of a GPU: asks", "clear")];

const TABLES: &[Binding] = &[
    row(&[Char('r')], Action::Retry, "r", "submit a finished job again", "retry"),
    row(
        &[Char('/'), Code(K::F(4))],
        Action::Filter,
        "/ F4",
        "filter: words, u:USER s:STATE n:NAME, ! inverts",
        "filter",
    ),
    row(&[Char('m')], Action::Mine, "m", "own jobs, or all", ""),
];

const DETAIL: &[Binding] = &[
    row(&[Char(']'), Code(K::Right)], Action::NextTab, "] Right", "next tab", "tabs"),
    row(&[Char('['), Code(K::Left)], Action::PreviousTab, "[ Left", "tab before", ""),
    row(&[Char('l')], Action::Log, "l", "log", "log"),
    row(&[Char('x'), Code(K::F(9))], Action::Cancel, "x F9", "cancel: asks, and can be undone", "cancel"),
    row(&[Char('H')], Action::Pause, "H", "pause or resume a waiting job", ""),
    row(&[Char('r')], Action::Retry, "r", "submit a finished job again", "retry"),
];

const LOG: &[Binding] = &[
    row(&[Char('f')], Action::Follow, "f", "follow the end, or stop", "follow"),
    row(&[Char(' ')], Action::Hold, "Space", "stop here, or go on", "hold"),
    row(&[Char('w')], Action::Wrap, "w", "wrap long lines", "wrap"),
    row(&[Char('<'), Code(K::Left)], Action::Left, "< Left", "scroll to the left", ""),
    row(&[Char('>'), Code(K::Right)], Action::Right, "> Right", "scroll to the right", ""),
    row(&[Char(']')], Action::NextTab, "]", "next tab", "tabs"),
    row(&[Char('[')], Action::PreviousTab, "[", "tab before", ""),
    row(&[Char('x'), Code(K::F(9))], Action::Cancel, "x F9", "cancel: asks, and can be undone", "cancel"),
];

const HELP: &[Binding] = &[
    row(
        &[Code(K::Esc), Char('q'), Char('?'), Char('h'), Code(K::F(1)), Code(K::Enter), Ctrl('c')],
        Action::Escape,
        "Esc q ?",
        "close",
        "close",
    ),
    row(&[Ctrl('l')], Action::Repaint, "Ctrl-L", "repaint everything", ""),
    row(&[Ctrl('z')], Action::Suspend, "Ctrl-Z", "suspend; `fg` comes back", ""),
];

const DIALOG: &[Binding] = &[
    row(&[Char('n'), Code(K::Esc), Char('q'), Ctrl('c')], Action::No, "n Esc", "keep it", "keep"),
    row(&[Char('y')], Action::Yes, "y", "yes", "yes"),
    row(&[Char('!')], Action::Now, "!", "yes, at once", "now"),
    row(
        &[Code(K::Tab), Code(K::Right), Code(K::Left), Code(K::BackTab)],
        Action::NextButton,
        "Tab",
        "next button",
        "",
    ),
    row(&[Code(K::Enter), Char(' ')], Action::Press, "Enter", "press the button", ""),
    row(&[Ctrl('l')], Action::Repaint, "Ctrl-L", "repaint everything", ""),
    row(&[Ctrl('z')], Action::Suspend, "Ctrl-Z", "suspend; `fg` comes back", ""),
];

const INPUT: &[Binding] = &[
    row(&[Code(K::Enter), Code(K::Down), Code(K::Tab)], Action::Accept, "Enter", "keep the filter", "keep"),
    row(&[Code(K::Esc), Ctrl('c')], Action::Escape, "Esc", "clear the filter", "clear"),
    row(&[Code(K::Backspace)], Action::Erase, "Backspace", "erase", ""),
    row(&[Ctrl('w')], Action::EraseWord, "Ctrl-W", "erase a word", ""),
    row(&[Ctrl('u')], Action::EraseAll, "Ctrl-U", "erase everything", ""),
    row(&[Ctrl('l')], Action::Repaint, "Ctrl-L", "repaint everything", ""),
    row(&[Ctrl('z')], Action::Suspend, "Ctrl-Z", "suspend; `fg` comes back", ""),
];

/// The rows of a mode, the most particular ones first.
pub fn bindings(mode: Mode) -> impl Iterator<Item = &'static Binding> {
    let tables: &[&'static [Binding]] = match mode {
        Mode::Input => &[INPUT],
        Mode::Dialog => &[DIALOG],
        Mode::Help => &[HELP, MOVE],
        Mode::Log => &[LOG, MOVE, ALL],
        Mode::Detail => &[DETAIL, MOVE, ALL],
        Mode::Queue => &[LISTS, QUEUE, TABLES, MOVE, ALL],
        Mode::History => &[LISTS, TABLES, MOVE, ALL],
        Mode::Gpus => &[LISTS, GPUS, MOVE, ALL],
        Mode::List => &[LISTS, MOVE, ALL],
    };
    tables.iter().copied().flatten()
}

/// What a key means. Releases and repeats of modifiers mean nothing.
pub fn action(mode: Mode, prefix: Option<char>, event: KeyEvent) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let pressed = |key: &Key| match (*key, event.code) {
        (Key::Char(want), K::Char(c)) => !control && want == c,
        (Key::Ctrl(want), K::Char(c)) => control && want == c.to_ascii_lowercase(),
        (Key::Code(want), code) => want == code,
        (Key::After(first, want), K::Char(c)) => !control && prefix == Some(first) && want == c,
        _ => false,
    };
    let after = |key: &Key| matches!(key, Key::After(..)) && pressed(key);
    if let Some(binding) = bindings(mode).find(|binding| binding.keys.iter().any(after)) {
        return Some(binding.action.clone());
    }
    if let Some(binding) = bindings(mode).find(|binding| binding.keys.iter().any(pressed)) {
        return Some(binding.action.clone());
    }
    match event.code {
        K::Char(c) if mode == Mode::Input && !control && !c.is_control() => Some(Action::Insert(c)),
        K::Char(c) if mode != Mode::Input => {
            Some(Action::Unknown(if control { format!("Ctrl-{}", c.to_uppercase()) } else { c.to_string() }))
        }
        _ => None,
    }
}
