//! Text that came from outside, made fit for a terminal, and names made fit for a path.

/// Replaces control, escape and bidirectional characters, so that nothing untrusted reaches a terminal.
/// Line feeds and tabs stay.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' || !is_unsafe(c) { c } else { '\u{FFFD}' }).collect()
}

/// Like [`clean`], for one line: line feeds and tabs become blanks.
pub fn clean_line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if is_unsafe(c) => '\u{FFFD}',
            c => c,
        })
        .collect()
}

/// C0, C1, DEL, bidirectional controls, zero-width characters and line separators.
const fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{AD}' | '\u{61C}' | '\u{180E}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// A job name out of a file's stem: lower case, `[a-z0-9._-]{1,64}`; `job` if nothing is left.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if out.len() >= 64 {
            break;
        }
        match c {
            'a'..='z' | '0'..='9' | '.' | '_' | '-' => out.push(c),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    let out = out.trim_matches(['-', '.']).to_owned();
    if out.is_empty() { "job".to_owned() } else { out }
}
