//! How the dashboard behaves towards the terminal: few bytes if that is wanted, an offer where a line is slow, a sign to
//! whoever does not look.

use super::{Shell, TuiError, writer};
use crate::config::Notify;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::colour::Depth;
use crate::tui::look::theme;
use crate::tui::shell::logfeed::LogMessage;
use crate::tui::ui::Level;
use std::time::Duration;

/// Under low bandwidth 16 are enough.
pub(super) fn few_colours(depth: Depth, thrift: bool) -> Depth {
    if thrift { depth.min(Depth::C16) } else { depth }
}

impl Shell {
    /// Low bandwidth was switched on or off: colours and pace follow.
    pub(super) fn follow_thrift(&mut self) {
        if self.ui.thrift == self.pace.thrift {
            return;
        }
        self.pace.thrift = self.ui.thrift;
        let (themes, depth) = &self.colours;
        let depth = few_colours(*depth, self.ui.thrift);
        // What cannot be read now was read before, at another depth: it stays.
        if let Ok(theme) = theme::load(&self.ui.theme, themes.as_deref(), depth) {
            self.theme = theme;
        }
        // The thread is gone only if the dashboard ends.
        let _ended = self.wants.send(LogMessage::Pace(Duration::from_millis(self.pace.log_ms())));
    }

    /// A terminal that is slow: once, low bandwidth is offered.
    pub(super) fn offer(&mut self, took_ms: u64) {
        if took_ms < writer::SLOW_MS || self.is_offered || self.ui.thrift {
            return;
        }
        self.is_offered = true;
        let key = self.ui.keys.key(Mode::Queue, &Action::Thrift);
        let text = format!("the terminal took {took_ms} ms for a frame: {key} sends fewer bytes");
        self.ui.say(Level::Warning, text, None);
        self.dirty = true;
    }

    /// Tells somebody who does not look, if that is wanted.
    pub(super) fn notify(&mut self, text: &str) -> Result<(), TuiError> {
        let text = crate::model::clean_line(text);
        let bytes = match self.notify {
            Notify::Bell => "\x07".to_owned(),
            Notify::Osc9 => format!("\x1b]9;{text}\x07"),
            Notify::Off => return Ok(()),
        };
        if !self.pace.is_unseen(self.ui.now.boottime_ms) {
            return Ok(());
        }
        self.screen.say(&bytes).map_err(|source| TuiError::Terminal { doing: "written to", source })
    }
}
