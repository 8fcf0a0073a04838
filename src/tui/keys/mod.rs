//! Keys. One table gives what a key does, the help, the key line, the palette and `docs/keys.md`; nothing else knows a key.
//!
//! A new key or a new action is a row in [`table`]; what it does is an arm in [`update`](super::update).

mod chord;
mod keymap;
mod page;
mod table;

use crate::tui::arrange::Key;
use crate::tui::layout::Pane;
use crate::tui::ui::{Screen, Tab};
use crate::tui::views::Choice;

pub use chord::{Chord, KeyError};
pub use keymap::{Keymap, Row};
pub use page::page;
pub(in crate::tui) use table::BASE;
pub use table::{Binding, Mode, Modes, TABLE};

/// What a person can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has its words in the table")]
pub enum Action {
    Back,
    Escape,
    Interrupt,
    Help,
    Palette,
    Show(Screen),
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
    /// Submit a new job.
    New,
    /// The request of a job, to be submitted once more with changes.
    Duplicate,
    /// The request of a waiting job in the editor.
    Edit,
    /// Four fields of it.
    QuickEdit,
    UndoList,
    /// The menu of what can be copied.
    Copy,
    /// A shell in the output folder.
    Shell,
    /// The end of the dashboard; the shell around it goes to the output folder.
    Leave,
    /// The log in the pager.
    Pager,
    /// Lift a GPU's quarantine.
    Clear,
    Log,
    Follow,
    Hold,
    Wrap,
    /// Search in the log.
    Search,
    /// Only lines of the log that match.
    Only,
    NextMatch,
    /// Other times of the lines of the log.
    Times,
    PreviousMatch,
    Freeze,
    /// On a screen with a time axis: how far back.
    Range,
    ZoomIn,
    ZoomOut,
    /// Back to the present on the time axis.
    ToNow,
    /// Mend a job file where that is certain.
    Fix,
    /// A refused job file in the editor.
    EditFile,
    Refresh,
    Repaint,
    Suspend,
    /// One pane has the whole screen, or no more.
    Zoom,
    /// The menu of orders.
    Sort,
    /// Order a table by this; again: the other way round.
    SortBy(Pane, Key),
    Group,
    Columns,
    /// Mark the row, or take its mark.
    Mark,
    MarkAll,
    Mouse,
    Settings,
    Messages,
    Export,
    /// Fail on purpose, to see what becomes of the terminal.
    Panic,
    /// The pointer was pressed there.
    Click(u16, u16),
    /// The wheel was turned there; towards the end, or not.
    Wheel(u16, u16, bool),
    /// Put a list's cursor on a row.
    Select(Pane, usize),
    /// A tab of the job that is opened, or selected.
    ShowTab(Tab),
    /// What a view shows.
    View(Choice),
    /// The scheduler.
    Start,
    /// Few bytes, or all of them.
    Thrift,
    /// The first key of two.
    Prefix(char),
    /// In a dialog: yes.
    Yes,
    /// In a dialog: no.
    No,
    /// In a dialog: yes, at once.
    Now,
    /// In a dialog or a form: the next button or field.
    NextButton,
    /// The one before.
    PreviousButton,
    /// In a dialog: press the button that has the focus.
    Press,
    /// In a text field: a character. In a menu: its letter.
    Insert(char),
    /// In a text field: the character before the cursor goes.
    Erase,
    /// In a text field: the word before the cursor goes.
    EraseWord,
    /// In a text field: everything goes.
    EraseAll,
    /// In a text field or a list: done.
    Accept,
    /// Pasted text.
    Paste(String),
    /// A key that means nothing here.
    Unknown(String),
}
