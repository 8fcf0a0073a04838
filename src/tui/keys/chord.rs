//! Keys as people write them: `x`, `F9`, `Ctrl-D`, `Shift-Tab`, `Space`, and two after one another: `gg`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// One key, or one key after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chord {
    /// The key before it, of two.
    pub(super) first: Option<char>,
    code: KeyCode,
    control: bool,
}

/// Why something is no key that an action can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Not a key's name.
    #[error(
        "`{0}` is no key; write x, F9, Ctrl-D, Shift-Tab, Space, Enter, Left, PgDn, or two letters such as gg"
    )]
    Unknown(String),
    /// A key that terminals, tmux or screen need, or that cannot be told from another one.
    #[error("`{key}` cannot be bound: {why}")]
    Reserved {
        /// As written.
        key: String,
        /// Whose it is.
        why: &'static str,
    },
}

/// Names of keys that are no characters, as they are shown.
const NAMES: &[(&str, KeyCode)] = &[
    ("Esc", KeyCode::Esc),
    ("Enter", KeyCode::Enter),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("Space", KeyCode::Char(' ')),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Insert", KeyCode::Insert),
];

impl Chord {
    const fn plain(code: KeyCode) -> Self {
        Self { first: None, code, control: false }
    }

    /// Whether this is what was pressed after `prefix`.
    pub(super) fn is_pressed(&self, prefix: Option<char>, event: &KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let code = match event.code {
            KeyCode::Char(c) if control => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        self.first == prefix && self.control == control && self.code == code
    }

    /// Why no action of one's own choice may have it; the keys that the table gives an action are not asked.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        match (self.code, self.control) {
            (KeyCode::Char('a' | 'b'), true) => Some("screen and tmux take it"),
            (KeyCode::Char('g' | 'n' | 'o' | 'p' | 't'), true) => Some("zellij takes it"),
            (KeyCode::Char('s' | 'q'), true) => Some("the terminal's flow control takes it"),
            (KeyCode::Char('h' | 'i' | 'j' | 'm'), true) => {
                Some("it is Backspace, Tab or Enter to a terminal")
            }
            (KeyCode::Esc, _) => Some("it closes what is open, and does nothing else"),
            (KeyCode::Char('c'), true) => Some("it closes what is open or quits, and never touches a job"),
            (KeyCode::Char('z'), true) => Some("it suspends, as everywhere"),
            (KeyCode::Backspace | KeyCode::Delete, _) => Some("it erases text and does nothing else"),
            _ => None,
        }
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.first {
            write!(f, "{first} ")?;
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match (self.code, self.control) {
            (KeyCode::Char(c), true) => write!(f, "Ctrl-{}", c.to_ascii_uppercase()),
            (KeyCode::Char(c), false) => write!(f, "{c}"),
            (KeyCode::F(n), _) => write!(f, "F{n}"),
            (code, _) => write!(f, "{code}"),
        }
    }
}

impl FromStr for Chord {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let unknown = || KeyError::Unknown(text.to_owned());
        if let Some((_, code)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(Self::plain(*code));
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("alt-") || lower.starts_with("meta-") {
            let why = "over a slow link it cannot be told from Esc and a key";
            return Err(KeyError::Reserved { key: text.to_owned(), why });
        }
        if let Some(rest) = lower.strip_prefix("ctrl-") {
            let mut chars = rest.chars();
            let c = chars.next().filter(char::is_ascii_lowercase).ok_or_else(unknown)?;
            return match chars.next() {
                None => Ok(Self { control: true, ..Self::plain(KeyCode::Char(c)) }),
                Some(_) => Err(unknown()),
            };
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next(), chars.next()) {
            (Some(c), None, _) if !c.is_control() => Ok(Self::plain(KeyCode::Char(c))),
            (Some('f' | 'F'), Some('1'..='9'), _) => {
                let number = text[1..].parse().ok().filter(|n| (1..=12).contains(n)).ok_or_else(unknown)?;
                Ok(Self::plain(KeyCode::F(number)))
            }
            (Some(first), Some(c), None) if first.is_alphabetic() && c.is_alphabetic() => {
                Ok(Self { first: Some(first), ..Self::plain(KeyCode::Char(c)) })
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_can_be_written() {
        for text in ["x", "F9", "Ctrl-D", "Shift-Tab", "Space", "?", "G", "|", "PgDn", "+", "F12"] {
            assert_eq!(text.parse::<Chord>().unwrap().to_string(), text);
        }
        assert_eq!("gg".parse::<Chord>().unwrap().to_string(), "g g");
        assert_eq!("ctrl-d".parse::<Chord>(), "Ctrl-D".parse::<Chord>());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "F0", "F13", "Ctrl-", "Ctrl-dd", "xyz", "Hyper-x", "\n"] {
            assert!(matches!(text.parse::<Chord>(), Err(KeyError::Unknown(_))), "{text:?}");
        }
        assert!(matches!("Alt-x".parse::<Chord>(), Err(KeyError::Reserved { .. })));
    }
}
