//! A line of text that is being typed, with its cursor. Pure.

use crate::model::clean_line;
use crate::tui::keys::Action;

/// The longest text.
const CHARS: usize = 500;

/// A line of text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    text: String,
    /// The byte before which the next character goes.
    at: usize,
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        let mut field = Self::default();
        field.put(text);
        field
    }
}

impl Field {
    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is before the cursor.
    pub fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    /// Whether there is nothing but blanks.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn put(&mut self, text: &str) {
        let room = CHARS.saturating_sub(self.text.chars().count());
        let text: String = text.chars().take(room).collect();
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    fn back(&self) -> usize {
        self.before().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    /// Does what an action means to a text; `false` if it means nothing to one.
    pub fn edit(&mut self, action: &Action) -> bool {
        match action {
            Action::Insert(c) => self.put(c.encode_utf8(&mut [0; 4])),
            Action::Paste(text) => self.put(clean_line(text).trim()),
            Action::Erase => {
                let from = self.back();
                self.text.replace_range(from..self.at, "");
                self.at = from;
            }
            Action::EraseWord => {
                let from = self.before().trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.replace_range(from..self.at, "");
                self.at = from;
            }
            Action::EraseAll => self.clear(),
            Action::Left => self.at = self.back(),
            Action::Right => {
                let next = self.text.get(self.at..).and_then(|rest| rest.chars().next());
                self.at += next.map_or(0, char::len_utf8);
            }
            Action::First => self.at = 0,
            Action::Last => self.at = self.text.len(),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, actions: &[Action]) -> (String, String) {
        let mut field = Field::from(text);
        for action in actions {
            assert!(field.edit(action), "{action:?}");
        }
        (field.text().to_owned(), field.before().to_owned())
    }

    #[test]
    fn a_cursor_moves_by_characters_and_text_goes_in_where_it_is() {
        let moved = edited("aé日", &[Action::Left, Action::Left, Action::Insert('x')]);
        assert_eq!(moved, ("axé日".into(), "ax".into()));
        assert_eq!(edited("ab", &[Action::First, Action::Left, Action::Erase]), ("ab".into(), String::new()));
        assert_eq!(edited("ab", &[Action::Last, Action::Right]), ("ab".into(), "ab".into()));
    }

    #[test]
    fn words_and_everything_can_go() {
        assert_eq!(edited("u:ana s:run ", &[Action::EraseWord]).0, "u:ana ");
        assert_eq!(edited("one two", &[Action::Left, Action::EraseWord]).0, "one o");
        assert_eq!(edited("one two", &[Action::EraseAll]), (String::new(), String::new()));
    }

    #[test]
    fn what_is_pasted_is_cleaned_and_bounded() {
        assert!(!edited("", &[Action::Paste("a\x1b[2Jb\n".into())]).0.contains('\x1b'));
        assert_eq!(edited("", &[Action::Paste("x".repeat(9_000))]).0.len(), CHARS);
    }
}
