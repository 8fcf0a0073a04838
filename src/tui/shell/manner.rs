//! How the dashboard behaves towards the terminal: few bytes if that is wanted, an offer where a line is slow, a sign to
//! whoever does not look.

use super::{Shell, TuiError, writer};
use crate::config::Notify;
use crate::tui::keys::Action;
use crate::tui::look::colour::Depth;
use crate::tui::look::theme::{self, Theme, ThemeError};
use crate::tui::shell::log::LogMessage;
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
        if let Err(error) = self.wear() {
            self.ui.say(Level::Error, error.to_string(), None);
        }
    }

    /// Another theme is chosen. One that cannot be used is no wish: the one before stays that. The one that was on when the
    /// settings were opened comes back whatever has become of its file.
    pub(super) fn choose(&mut self, name: String) {
        let back = self.before.clone().filter(|(_, on)| on.name == name);
        if let Some((look, _)) = &back {
            (self.look.glyphs, self.ui.glyphs) = (look.glyphs, look.glyphs);
        }
        let wish = back.as_ref().map_or(name, |(look, _)| look.name.clone());
        let was = (std::mem::replace(&mut self.look.name, wish), self.look.broken);
        self.dress();
        match back {
            Some((_, on)) if self.look.broken && on.depth == self.look.depth => self.put_on(on),
            None if self.look.broken => (self.look.name, self.look.broken) = was,
            Some(_) | None => {}
        }
    }

    /// Reads the wished theme and puts it on, or leaves the one that is on: with as many colours as there are now.
    fn wear(&mut self) -> Result<(), ThemeError> {
        let loaded = self.look.load();
        self.look.broken = loaded.is_err();
        let failed = match loaded {
            Ok(theme) => {
                let fault = self.ui.message.as_ref().is_some_and(|message| message.level == Level::Error);
                if let Some(warning) = theme.warnings.first().filter(|_| !fault) {
                    self.ui.say(Level::Warning, warning.clone(), None);
                }
                self.put_on(theme);
                return Ok(());
            }
            Err(error) => error,
        };
        let on = if self.theme.depth == self.look.depth {
            self.theme.clone()
        } else {
            theme::load(&self.theme.name, self.look.dir.as_deref(), self.look.depth)
                .unwrap_or_else(|_| Theme::auto(self.look.depth))
        };
        self.put_on(on);
        Err(failed)
    }

    fn put_on(&mut self, theme: Theme) {
        self.theme = theme;
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
        self.purse.limit(self.pace.is_limited());
        self.look.depth = few_colours(self.depth, self.ui.thrift);
        if self.look.broken {
            // Why has been said.
            let _known = self.wear();
        } else {
            self.dress();
        }
        // The thread is gone only if the dashboard ends.
        let _ended = self.wants.send(LogMessage::Pace(Duration::from_millis(self.pace.log_ms())));
    }

    /// When the next frame may be drawn: a key's at once, others some time after the last one, and over a network none
    /// while its bytes are spent, but that of a key pressed alone.
    pub(super) fn due_ms(&self) -> u64 {
        let paced = if self.pressed { 0 } else { self.drawn_ms + self.pace.frame_ms() };
        if self.alone { 0 } else { paced.max(self.purse.free_ms()) }
    }

    /// Whether a frame has to wait. Where those of keys do for long, the link is slow, or treated as if it were.
    pub(super) fn held_back(&mut self, now_ms: u64) -> bool {
        if now_ms >= self.due_ms() {
            return false;
        }
        if self.pressed && self.purse.is_short(now_ms) {
            self.offer("keys ask for more than a slow link carries");
        }
        true
    }

    /// Took the terminal too long for a frame?
    pub(super) fn written(&mut self, took_ms: u64) {
        if took_ms >= writer::SLOW_MS {
            self.offer(&format!("the terminal took {took_ms} ms for a frame"));
        }
    }

    /// Once, low bandwidth is offered.
    fn offer(&mut self, why: &str) {
        if self.is_offered || self.ui.thrift {
            return;
        }
        self.is_offered = true;
        let key = self.ui.keys.way(&Action::Thrift);
        self.ui.say(Level::Warning, format!("{why}: {key} sends fewer bytes"), None);
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
