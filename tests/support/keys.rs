//! Keys by their names, as tests press them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// `x`, `Enter`, `F9`, `C-d`.
pub(crate) fn pressed(key: &str) -> KeyEvent {
    let code = match key {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Shift-Tab" => KeyCode::BackTab,
        "Space" => KeyCode::Char(' '),
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "PgDn" => KeyCode::PageDown,
        "PgUp" => KeyCode::PageUp,
        "End" => KeyCode::End,
        "Home" => KeyCode::Home,
        "Backspace" => KeyCode::Backspace,
        _ if key.len() > 1 && key.starts_with('F') => KeyCode::F(key[1..].parse().unwrap()),
        // The last character, after `C-`.
        _ => KeyCode::Char(key.chars().last().unwrap()),
    };
    let control = if key.starts_with("C-") { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
    KeyEvent::new(code, control)
}
