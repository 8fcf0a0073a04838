//! What a piece of the screen can be. A new role is one line here and one in `themes/auto.toml`, which all others inherit.

macro_rules! roles {
    ($(#[doc = $doc:literal] $role:ident = $section:literal . $name:literal,)*) => {
        /// What a piece of the screen is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Role { $(#[doc = $doc] $role,)* }

        impl Role {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$role,)*];

            /// Its section and name in a theme file.
            pub const fn name(self) -> (&'static str, &'static str) {
                match self { $(Self::$role => ($section, $name),)* }
            }

            /// What it is for, in a few words.
            pub fn about(self) -> &'static str {
                match self { $(Self::$role => $doc,)* }.trim()
            }
        }
    };
}

roles! {
    /// The whole screen, before anything is drawn on it.
    Base = "ui"."base",
    /// Ordinary text.
    Text = "ui"."text",
    /// Text of second rank.
    Dim = "ui"."dim",
    /// Titles and column heads.
    Title = "ui"."title",
    /// Lines between panes.
    Border = "ui"."border",
    /// The lines of the pane that has the focus.
    BorderFocus = "ui"."border_focus",
    /// The row under the cursor.
    CursorRow = "ui"."cursor_row",
    /// A marked row.
    MarkedRow = "ui"."marked_row",
    /// A row whose change the scheduler has not confirmed yet.
    Pending = "ui"."pending",
    /// A key in the key line.
    KeyHint = "ui"."key_hint",
    /// What the key does.
    KeyText = "ui"."key_text",
    /// A text field, and an active filter.
    Input = "ui"."input",
    /// What a search found.
    Match = "ui"."match",
    /// News.
    ToastInfo = "ui"."toast_info",
    /// Look at this.
    ToastWarn = "ui"."toast_warn",
    /// Something failed.
    ToastError = "ui"."toast_error",
    /// A dialog's text.
    Dialog = "ui"."dialog",
    /// A button that destroys.
    DialogDanger = "ui"."dialog_danger",
    /// Where in a list.
    Scrollbar = "ui"."scrollbar",
    /// The display is frozen.
    Frozen = "ui"."paused",
    /// Numbers that may be old.
    Stale = "ui"."stale",
    /// A job that waits.
    Wait = "state"."wait",
    /// A waiting job that somebody paused.
    Paused = "state"."paused",
    /// A lease was granted, the work has not started.
    Rent = "state"."rent",
    /// The work runs.
    Run = "state"."run",
    /// Output is being collected.
    Out = "state"."out",
    /// The last clean-up.
    Rel = "state"."rel",
    /// Succeeded.
    Done = "state"."done",
    /// Failed, or reached its limit.
    Fail = "state"."fail",
    /// Being cancelled, or cancelled.
    Stop = "state"."stop",
    /// Lost to the pool's fault.
    Lost = "state"."lost",
    /// A bar below the first threshold.
    GaugeLow = "gauge"."low",
    /// A bar between the thresholds.
    GaugeMid = "gauge"."mid",
    /// A bar above the second threshold.
    GaugeHigh = "gauge"."high",
    /// The rest of a bar.
    GaugeEmpty = "gauge"."empty",
    /// A sparkline.
    Spark = "gauge"."spark",
    /// The `!` before log lines of standard error.
    Stderr = "log"."stderr",
    /// Time stamps in logs.
    Timestamp = "log"."timestamp",
    /// Found in a log.
    Search = "log"."search",
}

impl Role {
    /// The role with this name in this section of a theme file.
    pub fn named(section: &str, name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.name() == (section, name))
    }
}
