//! A text in the dashboard itself, for machines without an editor: a screen of it, a cursor, and no more than that. Pure.

use super::{Overlay, tallest};
use crate::model::clean_line;
use crate::tui::UiCommand;
use crate::tui::errand::{Brought, Errand};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut, from_column, width};
use crate::tui::look::theme::Role;
use crate::tui::rows::scrolled;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::flows;
use ratatui::layout::Rect;
use std::path::PathBuf;

/// A text that is edited here.
#[derive(Debug, Clone, PartialEq)]
pub struct Editor {
    /// Never empty.
    lines: Vec<String>,
    row: usize,
    /// The byte of the line before which the next character goes.
    at: usize,
    /// The text as it was.
    before: String,
    /// It is a file, and is written back.
    file: Option<PathBuf>,
    /// What it lies over.
    back: Option<Box<Overlay>>,
    /// Esc was pressed, and would have lost something.
    is_warned: bool,
}

/// The keys, in the foot.
const KEYS: &str = "Ctrl-X done  Esc leave it";
/// A page, where the size is not known.
const PAGE: usize = 10;

impl Editor {
    fn new(before: String, text: &str, file: Option<PathBuf>, back: Option<Box<Overlay>>) -> Self {
        let lines = text.split('\n').map(str::to_owned).collect();
        Self { lines, row: 0, at: 0, before, file, back, is_warned: false }
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }

    fn line(&self) -> &str {
        self.lines.get(self.row).map_or("", String::as_str)
    }

    fn put(&mut self, text: &str) {
        for c in text.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()) {
            let (row, at) = (self.row, self.at);
            let Some(line) = self.lines.get_mut(row) else { return };
            match c {
                '\n' => {
                    let rest = line.split_off(at);
                    // The next line begins below this one's beginning, as YAML wants it.
                    let blanks: String = line.chars().take_while(|c| *c == ' ').collect();
                    (self.row, self.at) = (row + 1, blanks.len());
                    self.lines.insert(row + 1, blanks + &rest);
                }
                c => {
                    line.insert(at, c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// What was copied has its own blanks.
    fn paste(&mut self, text: &str) {
        for (n, part) in text.replace("\r\n", "\n").replace('\r', "\n").split('\n').enumerate() {
            if n > 0 {
                let rest =
                    self.lines.get_mut(self.row).map_or_else(String::new, |line| line.split_off(self.at));
                self.lines.insert(self.row + 1, rest);
                (self.row, self.at) = (self.row + 1, 0);
            }
            self.put(part);
        }
    }

    /// The byte of the character before the cursor.
    fn previous(&self) -> Option<usize> {
        self.line().get(..self.at)?.char_indices().next_back().map(|(at, _)| at)
    }

    fn erase(&mut self, from: usize) {
        let (row, at) = (self.row, self.at);
        if let Some(line) = self.lines.get_mut(row) {
            line.replace_range(from..at, "");
            self.at = from;
        }
    }

    /// Into the line before, if there is one.
    fn join(&mut self) {
        if self.row == 0 {
            return;
        }
        let line = self.lines.remove(self.row);
        self.row -= 1;
        if let Some(before) = self.lines.get_mut(self.row) {
            self.at = before.len();
            before.push_str(&line);
        }
    }

    /// Up or down, at the same column as far as there is one.
    fn go(&mut self, row: usize) {
        let columns = self.line().get(..self.at).map_or(0, |before| before.chars().count());
        self.row = row.min(self.lines.len() - 1);
        self.at = self.line().char_indices().nth(columns).map_or(self.line().len(), |(at, _)| at);
    }

    fn edit(&mut self, action: &Action) {
        match action {
            Action::Insert(c) => self.put(c.encode_utf8(&mut [0; 4])),
            Action::NextButton => self.put("  "),
            Action::Paste(text) => self.paste(text),
            Action::Erase => match self.previous() {
                Some(from) => self.erase(from),
                None => self.join(),
            },
            Action::EraseWord => {
                let before = self.line().get(..self.at).unwrap_or_default().trim_end();
                self.erase(before.rfind(' ').map_or(0, |at| at + 1));
            }
            Action::EraseAll => self.erase(0),
            Action::Left => match self.previous() {
                Some(at) => self.at = at,
                None if self.row > 0 => {
                    self.row -= 1;
                    self.at = self.line().len();
                }
                None => {}
            },
            Action::Right => match self.line().get(self.at..).and_then(|rest| rest.chars().next()) {
                Some(c) => self.at += c.len_utf8(),
                None if self.row + 1 < self.lines.len() => (self.row, self.at) = (self.row + 1, 0),
                None => {}
            },
            Action::First => self.at = 0,
            Action::Last => self.at = self.line().len(),
            Action::Up => self.go(self.row.saturating_sub(1)),
            Action::Down => self.go(self.row + 1),
            Action::PageUp => self.go(self.row.saturating_sub(PAGE)),
            Action::PageDown => self.go(self.row + PAGE),
            _ => {}
        }
    }
}

/// Opens a text over what is there; `text` is what has been made of it already.
pub(in crate::tui) fn open(
    ui: &mut Ui,
    was: Vec<u8>,
    text: Option<Vec<u8>>,
    file: Option<PathBuf>,
) -> Vec<UiCommand> {
    let Ok(was) = String::from_utf8(was) else {
        let why = "there is no editor here, and this is no text: set VISUAL or EDITOR".to_owned();
        return flows::brought(ui, Brought::Edited(Err(why)));
    };
    let text = text.map_or_else(|| was.clone(), |text| String::from_utf8_lossy(&text).into_owned());
    let back = ui.overlay.take().map(Box::new);
    ui.overlay = Some(Overlay::Editor(Box::new(Editor::new(was, &text, file, back))));
    Vec::new()
}

pub(super) fn update(ui: &mut Ui, mut it: Box<Editor>, action: &Action) -> Vec<UiCommand> {
    if *action != Action::Accept {
        it.is_warned = false;
        it.edit(action);
        ui.overlay = Some(Overlay::Editor(it));
        return Vec::new();
    }
    let text = it.text();
    ui.overlay = it.back.take().map(|back| *back);
    match it.file.take() {
        _ if text == it.before => flows::brought(ui, Brought::Edited(Ok(None))),
        Some(path) => {
            let was = it.before.into_bytes();
            vec![UiCommand::Errand(Errand::Write { path, was, text: text.into_bytes() })]
        }
        None => flows::brought(ui, Brought::Edited(Ok(Some(text.into_bytes())))),
    }
}

/// Closed: what was written is only lost on purpose.
pub(super) fn close(ui: &mut Ui, mut it: Box<Editor>) -> Vec<UiCommand> {
    if it.text() != it.before && !it.is_warned {
        it.is_warned = true;
        ui.overlay = Some(Overlay::Editor(it));
        ui.say(Level::Warning, "Esc again drops what was written; Ctrl-X takes it", None);
        return Vec::new();
    }
    ui.overlay = it.back.take().map(|back| *back);
    flows::brought(ui, Brought::Edited(Err("the text was left".to_owned())))
}

pub(super) fn paint(c: &mut Canvas<'_>, area: Rect, it: &Editor) {
    let popup = Rect { height: tallest(area), ..area };
    c.clear(popup);
    let title = it.file.as_ref().map_or_else(|| "Edit".to_owned(), |file| file.display().to_string());
    let place =
        format!("{}:{}  ", it.row + 1, it.line().get(..it.at).unwrap_or_default().chars().count() + 1);
    let title = cut(&clean_line(&title), usize::from(popup.width).saturating_sub(8)).trim_end().to_owned();
    let foot = [(place.as_str(), Role::Dim), (KEYS, Role::KeyHint)];
    let inner = c.frame(popup, &[(&title, Role::Title)], &foot, true);
    if inner.is_empty() {
        return;
    }
    let (columns, height) = (usize::from(inner.width), usize::from(inner.height));
    let x = width(&clean_line(it.line().get(..it.at).unwrap_or_default()));
    // As far to the right as the cursor needs, in steps, so that the text does not slide with each key.
    let left = if x < columns { 0 } else { (x - columns) / 16 * 16 + 16 };
    let top = scrolled(it.row.saturating_sub(height / 2), it.row, height, it.lines.len());
    for (at, line) in it.lines.iter().skip(top).take(height).enumerate() {
        c.text(inner, at as u16, &from_column(&clean_line(line), left), Role::Text);
    }
    let x = inner.x + (x.saturating_sub(left) as u16).min(inner.width - 1);
    c.cursor = Some((x, inner.y + (it.row - top) as u16, true));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, actions: &[Action]) -> (String, usize, usize) {
        let mut editor = Editor::new(text.to_owned(), text, None, None);
        for action in actions {
            editor.edit(action);
        }
        (editor.text(), editor.row, editor.at)
    }

    #[test]
    fn text_goes_in_where_the_cursor_is_and_a_new_line_keeps_the_blanks() {
        let typed = [Action::Down, Action::Last, Action::Insert('\n'), Action::Insert('é')];
        assert_eq!(edited("work:\n  run: a\nend", &typed).0, "work:\n  run: a\n  é\nend");
        assert_eq!(edited("", &[Action::NextButton, Action::Insert('x')]), ("  x".into(), 0, 3));
        let pasted = [Action::Right, Action::Paste("1\r\n  2\x1b[2J".into())];
        assert_eq!(edited("ab", &pasted).0, "a1\n  2[2Jb");
    }

    #[test]
    fn erasing_goes_back_over_the_beginning_of_a_line_and_never_beyond_the_text() {
        let at_second = |more: &[Action]| [&[Action::Down], more].concat();
        assert_eq!(edited("a\nb", &at_second(&[Action::Erase])), ("ab".into(), 0, 1));
        assert_eq!(edited("a", &[Action::Erase, Action::Up, Action::Left]), ("a".into(), 0, 0));
        assert_eq!(edited("one two", &[Action::Last, Action::EraseWord]).0, "one ");
        assert_eq!(edited("one\ntwo", &at_second(&[Action::Last, Action::EraseAll])).0, "one\n");
    }

    #[test]
    fn moving_keeps_the_column_and_walks_over_the_ends_of_lines() {
        assert_eq!(edited("日本語\na", &[Action::Last, Action::Down]), ("日本語\na".into(), 1, 1));
        assert_eq!(edited("a\nb", &[Action::Right, Action::Right]).1, 1);
        assert_eq!(edited("a\nb", &[Action::Down, Action::Left]), ("a\nb".into(), 0, 1));
        assert_eq!(
            edited("a\nb", &[Action::PageDown, Action::PageDown, Action::Last]),
            ("a\nb".into(), 1, 1)
        );
    }
}
