//! Text that came from outside, made fit for a terminal, and names made fit for a path.

use unicode_width::UnicodeWidthChar;

/// Marks over one letter. No script stacks more; what does is drawn over its neighbours.
const MARKS: usize = 8;

/// Replaces control, escape, bidirectional and invisible characters, so that nothing untrusted reaches a terminal.
/// Line feeds and tabs stay. One character for each, so that columns stay what they are.
pub fn clean(text: &str) -> String {
    replace(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Like [`clean`], for one line: line feeds and tabs become blanks.
pub fn clean_line(text: &str) -> String {
    replace(text, |c| matches!(c, '\n' | '\t' | '\r').then_some(' '))
}

fn replace(text: &str, blank: impl Fn(char) -> Option<char>) -> String {
    let mut marks = 0;
    let shown = |c: char| {
        if let Some(blank) = blank(c) {
            marks = 0;
            return blank;
        }
        if is_unsafe(c) {
            return char::REPLACEMENT_CHARACTER;
        }
        marks = if c.is_ascii() || c.width() != Some(0) { 0 } else { marks + 1 };
        if marks > MARKS { char::REPLACEMENT_CHARACTER } else { c }
    };
    text.chars().map(shown).collect()
}

/// What acts on a terminal or hides in a text: C0, C1, DEL, bidirectional controls, characters without width or shape, line
/// separators, tags. The two selectors that ask for a sign or its picture are none: logs are full of them.
pub const fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}'
        | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0D}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// No more than so many characters of a text; where it is cut it says so.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}\u{2026}", &text[..at]),
        None => text.to_owned(),
    }
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

/// Edits between two words: characters put in, taken out or changed.
pub fn edits(a: &str, b: &str) -> usize {
    // Nobody means a name of ten when typing a hundred characters.
    if a.len().abs_diff(b.len()) > 32 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_or_hides_is_replaced_and_what_people_write_stays() {
        for hostile in [
            "\u{1b}]52;c;aGk=\u{7}",
            "\u{9b}31m",
            "a\u{202e}b",
            "a\u{200b}b",
            "\u{e0041}",
            "\u{3164}",
            "\r",
            "\0",
        ] {
            let cleaned = clean(hostile);
            assert!(
                cleaned.contains('\u{FFFD}') && !cleaned.chars().any(is_unsafe),
                "{hostile:?}: {cleaned:?}"
            );
            assert_eq!(cleaned.chars().count(), hostile.chars().count());
            assert!(!clean_line(hostile).chars().any(is_unsafe), "{hostile:?}");
        }
        for honest in [
            "l\u{f6}ss 0.3 \u{26a0}\u{fe0f} caf\u{65}\u{301} \u{65e5}\u{672c}\u{8a9e}",
            "a\nb\tc",
            "\u{e01}\u{e35}\u{e48}",
        ] {
            assert_eq!(clean(honest), honest);
        }
        assert_eq!(clean_line("a\r\nb\tc"), "a  b c");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("l\u{f6}ss", 9), "l\u{f6}ss");
        assert_eq!(shortened("l\u{f6}ss", 2), "l\u{f6}\u{2026}");
    }

    #[test]
    fn a_tower_of_marks_ends_where_no_script_goes_on() {
        let tower = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(clean_line(&tower).matches('\u{301}').count(), MARKS);
        assert!(clean_line(&tower).ends_with('b'));
    }
}
