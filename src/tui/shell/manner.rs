//! How the dashboard behaves towards the terminal: few bytes if that is wanted, an offer where a line is slow, a sign to
//! whoever does not look.

use super::{Shell, TuiError, writer};
use crate::config::Notify;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::colour::Depth;
use crate::tui::shell::logfeed::LogMessage;
use crate::tui::ui::Level;
use std::time::Duration;

/// Under low bandwidth 16 are enough.
pub(super) fn few_colours(depth: Depth, thrift: bool) -> Depth {
    if thrift { depth.min(Depth::C16) } else { depth }
}

impl Shell {
    /// Puts the wished theme on; one that cannot be used leaves the one that is on, and says why and where.
    pub(super) fn dress(&mut self) {
        if self.theme.glyphs.is_none() {
            // What was chosen in the settings.
            self.look.glyphs = self.ui.glyphs;
        }
        let loaded = self.look.load();
        self.look.broken = loaded.is_err();
        match loaded {
            Ok(theme) => {
                let fault = self.ui.message.as_ref().is_some_and(|message| message.level == Level::Error);
                if let Some(warning) = theme.warnings.first().filter(|_| !fault) {
                    self.ui.say(Level::Warning, warning.clone(), None);
                }
                self.theme = theme;
            }
            Err(error) => self.ui.say(Level::Error, error.to_string(), None),
        }
        self.ui.theme.clone_from(&self.theme.name);
        self.ui.glyphs = self.theme.glyphs(self.look.glyphs);
    }

    /// A theme's file was saved: says that it is on, where that is news. What else went wrong stays on the screen.
    pub(super) fn redress(&mut self) {
        let (before, broken) = (self.theme.clone(), self.look.broken);
        let message = self.ui.message.take();
        self.dress();
        let fault = message.as_ref().is_some_and(|message| message.level == Level::Error && !broken);
        if self.ui.message.is_none() && (fault || (self.theme == before && !broken)) {
            self.ui.message = message;
        } else if self.ui.message.is_none() {
            self.ui.say(Level::Info, format!("theme {} was read again", self.theme.name), None);
        }
    }

    /// Low bandwidth was switched on or off: colours and pace follow.
    pub(super) fn follow_thrift(&mut self) {
        if self.ui.thrift == self.pace.thrift {
            return;
        }
        self.pace.thrift = self.ui.thrift;
        self.look.depth = few_colours(self.depth, self.ui.thrift);
        self.dress();
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
