//! Settings: seen at once, kept by Enter for this session, as before by Esc. `config.toml` keeps them for longer.

use super::{Overlay, middle};
use crate::tui::keys::Action;
use crate::tui::look::canvas::{Canvas, Glyphs};
use crate::tui::look::text::{left, wrap};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::step;
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// The settings as they were, and the row under the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The row under the cursor.
    pub at: usize,
    /// The theme that was tried last: the one that is on is another if that one cannot be used.
    tried: Option<String>,
    theme: String,
    glyphs: Glyphs,
    tick_ms: Option<u64>,
    mouse: bool,
    thrift: bool,
}

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Theme,
    Characters,
    Refresh,
    Bandwidth,
    Mouse,
}

const ITEMS: [Item; 5] = [Item::Theme, Item::Characters, Item::Refresh, Item::Bandwidth, Item::Mouse];
/// How often running times move; `None`: every second, every other one over SSH.
const TICKS: [Option<u64>; 5] = [None, Some(1_000), Some(2_000), Some(5_000), Some(10_000)];

impl Settings {
    /// As they are.
    pub(in crate::tui) fn of(ui: &Ui) -> Self {
        Self {
            at: 0,
            tried: None,
            theme: ui.theme.clone(),
            glyphs: ui.glyphs,
            tick_ms: ui.tick_ms,
            mouse: ui.mouse,
            thrift: ui.thrift,
        }
    }

    /// The theme under the cursor.
    fn shown<'a>(&'a self, ui: &'a Ui) -> &'a str {
        self.tried.as_deref().unwrap_or(&ui.theme)
    }
}

impl Item {
    const fn name(self) -> &'static str {
        match self {
            Self::Theme => "theme",
            Self::Characters => "characters",
            Self::Refresh => "refresh",
            Self::Bandwidth => "bandwidth",
            Self::Mouse => "mouse",
        }
    }

    fn value(self, ui: &Ui, it: &Settings) -> String {
        match self {
            Self::Theme => it.shown(ui).to_owned(),
            Self::Bandwidth => if ui.thrift { "low" } else { "full" }.to_owned(),
            Self::Characters => if ui.glyphs == Glyphs::Ascii { "ASCII" } else { "Unicode" }.to_owned(),
            Self::Refresh => ui.tick_ms.map_or_else(|| "auto".to_owned(), |ms| format!("{} s", ms / 1000)),
            Self::Mouse => if ui.mouse { "on" } else { "off" }.to_owned(),
        }
    }

    /// The next value, or the one before.
    fn change(self, ui: &mut Ui, it: &mut Settings, forward: bool) -> Vec<UiCommand> {
        let turn = |at: usize, len: usize| if forward { (at + 1) % len } else { (at + len - 1) % len };
        match self {
            Self::Theme => {
                let at = ui.themes.iter().position(|(name, _)| name == it.shown(ui)).unwrap_or(0);
                let next = ui.themes.get(turn(at, ui.themes.len().max(1))).map(|(name, _)| name.clone());
                it.tried = next.or(it.tried.take());
                return it.tried.clone().map_or_else(Vec::new, |name| theme(ui, &name));
            }
            Self::Characters => {
                ui.glyphs = if ui.glyphs == Glyphs::Ascii { Glyphs::Unicode } else { Glyphs::Ascii };
            }
            Self::Refresh => {
                let at = TICKS.iter().position(|tick| *tick == ui.tick_ms).unwrap_or(0);
                ui.tick_ms = TICKS[turn(at, TICKS.len())];
            }
            Self::Bandwidth => ui.thrift = !ui.thrift,
            Self::Mouse => ui.mouse = !ui.mouse,
        }
        Vec::new()
    }
}

fn theme(ui: &mut Ui, name: &str) -> Vec<UiCommand> {
    name.clone_into(&mut ui.theme);
    vec![UiCommand::Theme(name.to_owned())]
}

/// Everything as it was.
pub(super) fn revert(ui: &mut Ui, was: &Settings) -> Vec<UiCommand> {
    (ui.glyphs, ui.tick_ms, ui.mouse, ui.thrift) = (was.glyphs, was.tick_ms, was.mouse, was.thrift);
    if was.tried.is_some() { theme(ui, &was.theme) } else { Vec::new() }
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: &Settings) {
    let popup = middle(area, 62, ITEMS.len() as u16 + 8);
    c.clear(popup);
    let foot = [("Left Right change  Enter keep  Esc as before", Role::Dim)];
    let inner = c.frame(popup, &[("Settings", Role::Title)], &foot, true);
    for (row, item) in ITEMS.iter().enumerate() {
        let mark = if row == it.at { ">" } else { " " };
        let name = left(&format!("{mark}{}", item.name()), 14);
        let value = format!("< {} >", item.value(v.ui, it));
        c.pieces(inner, row as u16, &[(&name, Role::Dialog), (&value, Role::KeyHint)]);
        if row == it.at {
            c.cursor_row(inner, row as u16);
        }
    }
    let rows = ITEMS.len() as u16;
    let below = Rect { y: inner.y + rows, height: inner.height.saturating_sub(rows), ..inner };
    let about = v.ui.themes.iter().find(|(name, _)| name == it.shown(v.ui)).map_or("", |(_, about)| about);
    let about = wrap(about, usize::from(below.width.saturating_sub(2)), 0);
    for (at, line) in about.iter().take(3).enumerate() {
        c.text(below, at as u16, &format!(" {line}"), Role::Dim);
    }
    c.text(below, 4, " For this session. For good, in config.toml: theme, and of", Role::Dim);
    c.text(below, 5, " [ui] ascii, low_bandwidth and mouse. Refresh is not kept.", Role::Dim);
}

pub(super) fn update(ui: &mut Ui, mut it: Settings, action: &Action) -> Vec<UiCommand> {
    let item = ITEMS[it.at.min(ITEMS.len() - 1)];
    let out = match action {
        Action::Right | Action::Mark => item.change(ui, &mut it, true),
        Action::Left => item.change(ui, &mut it, false),
        Action::Accept => {
            let now = Settings { at: it.at, tried: it.tried.clone(), ..Settings::of(ui) };
            match &it.tried {
                Some(tried) if *tried != ui.theme => {
                    let text = format!("theme {tried} cannot be used: {} stays", ui.theme);
                    ui.say(Level::Warning, text, None);
                }
                _ if now != it => {
                    let text = "set for this session; `theme` and `ui` in config.toml set it for good";
                    ui.say(Level::Info, text, None);
                }
                _ => {}
            }
            return Vec::new();
        }
        action => {
            it.at = step(it.at, ITEMS.len(), ITEMS.len(), action);
            Vec::new()
        }
    };
    ui.overlay = Some(Overlay::Settings(it));
    out
}
