//! An arrow key that a slow link tore apart: its Esc was taken as a key, what is left of it means nothing. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The rest comes within this time; nobody means keys that follow an Esc so fast.
const REST_MS: u64 = 300;

/// How much of a torn sequence has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Split {
    /// Nothing.
    #[default]
    Whole,
    /// Its Esc, at this moment.
    Esc(u64),
    /// `[` or `O` too.
    Lead(u64),
}

impl Split {
    /// Whether a key is the rest of a sequence whose Esc came before it.
    pub(super) fn is_rest(&mut self, key: &KeyEvent, now_ms: u64) -> bool {
        let soon = |since: u64| now_ms.saturating_sub(since) <= REST_MS;
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let (next, is_rest) = match (*self, key.code) {
            (_, KeyCode::Esc) => (Self::Esc(now_ms), false),
            (Self::Esc(since), KeyCode::Char('[' | 'O')) if plain && soon(since) => (Self::Lead(since), true),
            (Self::Lead(since), KeyCode::Char('0'..='9' | ';')) if plain && soon(since) => (*self, true),
            (Self::Lead(since), KeyCode::Char('A'..='Z' | '~')) if plain && soon(since) => {
                (Self::Whole, true)
            }
            _ => (Self::Whole, false),
        };
        *self = next;
        is_rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(keys: &str, apart_ms: u64) -> String {
        let mut split = Split::default();
        let mut now_ms = 1_000;
        let mut left = String::new();
        for c in keys.chars() {
            let code = if c == '\x1b' { KeyCode::Esc } else { KeyCode::Char(c) };
            if !split.is_rest(&KeyEvent::new(code, KeyModifiers::NONE), now_ms) {
                left.push(c);
            }
            now_ms += apart_ms;
        }
        left
    }

    #[test]
    fn what_is_left_of_a_torn_arrow_is_no_key() {
        assert_eq!(rest("\x1b[Bj", 80), "\x1bj");
        assert_eq!(rest("\x1bOAx", 80), "\x1bx");
        assert_eq!(rest("\x1b[5~x", 40), "\x1bx");
        assert_eq!(rest("\x1b[1;5Ax", 40), "\x1bx");
    }

    #[test]
    fn keys_that_a_person_presses_are_keys() {
        assert_eq!(rest("\x1b[B", 400), "\x1b[B");
        assert_eq!(rest("[B", 10), "[B");
        assert_eq!(rest("\x1bB", 10), "\x1bB");
        assert_eq!(rest("\x1b[B[B", 80), "\x1b[B", "only the first was torn");
        assert_eq!(rest("\x1b[x", 10), "\x1bx", "no arrow ends like that");
    }
}
