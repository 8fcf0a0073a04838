//! What may reach a terminal. [`Shown`] is the only text that verbs can print, and there is no way to make one but to
//! clean it.
//!
//! [`Escapes`] is for a job's log: colours stay, everything else that could act on the terminal goes. It works on a stream,
//! so that a sequence or a character that is cut in two by a read is still one.

use super::output::Tone;
use crate::model::{clean, clean_line};
use std::borrow::Cow;

/// Text that was cleaned, and colours of ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown(String);

impl Shown {
    /// Lines.
    pub fn text(text: &str) -> Self {
        Self(clean(text))
    }

    /// Lines that end as those of other systems do.
    pub(super) fn crlf(text: &str) -> Self {
        Self(text.split("\r\n").map(clean).collect::<Vec<_>>().join("\r\n"))
    }

    /// Lines with colours, which stay if they are wanted.
    pub(super) fn coloured(text: &str, colours: bool) -> Self {
        let mut escapes = Escapes::new(colours);
        let mut shown = escapes.feed(text.replace('\r', " ").as_bytes());
        shown.0.push_str(escapes.end().as_str());
        shown
    }

    /// JSON: the same for whoever reads it.
    pub(super) fn json(text: &str) -> Self {
        Self(crate::protocol::json::escape(text).into_owned())
    }

    /// Goes on in the same line.
    pub(super) fn push(&mut self, text: &str) {
        self.0.push_str(&cleaned(text));
    }

    /// Goes on in a colour; [`Tone::Plain`] ends it.
    pub(super) fn tone(&mut self, tone: Tone) {
        self.0.push_str(match tone {
            Tone::Plain => "\x1b[0m",
            Tone::Good => "\x1b[32m",
            Tone::Busy => "\x1b[36m",
            Tone::Bad => "\x1b[31m",
            Tone::Dim => "\x1b[2m",
        });
    }

    pub(super) fn blanks(&mut self, count: usize) {
        self.0.extend(std::iter::repeat_n(' ', count));
    }

    /// Ends the line, without blanks before its end.
    pub(super) fn end_line(&mut self) {
        let end = self.0.trim_end_matches(' ').len();
        self.0.truncate(end);
        self.0.push('\n');
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// [`clean_line`], without a copy where nothing has to be cleaned.
pub(super) fn cleaned(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(clean_line(text))
    }
}

/// No honest colour sequence is longer.
const LONGEST_COLOUR: usize = 64;
/// Where a title or the like that never ends is given up.
const LONGEST_STRING: usize = 4096;

/// What a byte stream is in the middle of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC [ and so much.
    Control(String),
    /// A title, a clipboard, a device's string: nothing of it is shown. How long it is, and whether ESC came last.
    Hidden(usize, bool),
}

/// The filter.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    state: State,
    /// The beginning of a character.
    begun: Vec<u8>,
    colours: bool,
    /// A colour may be on.
    coloured: bool,
}

impl Escapes {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours, ..Self::default() }
    }

    /// What may be shown of the next piece.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Shown {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        // An unfinished character at the very end waits for its rest.
        let whole = match std::str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => all.len() - unfinished(&all),
        };
        self.begun = all.split_off(whole);
        let mut shown = String::with_capacity(all.len());
        let mut text = String::new();
        for c in String::from_utf8_lossy(&all).chars() {
            self.next(c, &mut text, &mut shown);
        }
        flush(&mut text, &mut shown);
        Shown(shown)
    }

    /// Leaves the terminal as it was.
    pub(super) fn end(&mut self) -> Shown {
        let mut end = Shown::default();
        if std::mem::take(&mut self.coloured) {
            end.tone(Tone::Plain);
        }
        end
    }

    fn next(&mut self, c: char, text: &mut String, shown: &mut String) {
        match &mut self.state {
            State::Text => match c {
                '\x1b' => self.state = State::Escape,
                // Progress bars write over their own line.
                '\r' => {
                    flush(text, shown);
                    shown.push('\r');
                }
                c => text.push(c),
            },
            State::Escape => match c {
                '[' => self.state = State::Control(String::new()),
                ']' | 'P' | 'X' | '^' | '_' => self.state = State::Hidden(0, false),
                '\x1b' | ' '..='/' => {}
                '\n' => self.again(c, text, shown),
                _ => self.state = State::Text,
            },
            State::Control(parameters) => match c {
                ' '..='?' if parameters.len() < LONGEST_COLOUR => parameters.push(c),
                'm' if self.colours && parameters.chars().all(|c| matches!(c, '0'..='9' | ';' | ':')) => {
                    flush(text, shown);
                    shown.push_str("\x1b[");
                    shown.push_str(parameters);
                    shown.push('m');
                    self.coloured = true;
                    self.state = State::Text;
                }
                '@'..='~' => self.state = State::Text,
                _ => self.again(c, text, shown),
            },
            State::Hidden(length, escape) => match c {
                '\x07' => self.state = State::Text,
                '\\' if *escape => self.state = State::Text,
                '\n' => self.again(c, text, shown),
                _ if *length >= LONGEST_STRING => self.state = State::Text,
                c => {
                    *length += 1;
                    *escape = c == '\x1b';
                }
            },
        }
    }

    /// The sequence was none: the character is text.
    fn again(&mut self, c: char, text: &mut String, shown: &mut String) {
        self.state = State::Text;
        self.next(c, text, shown);
    }
}

fn flush(text: &mut String, shown: &mut String) {
    if !text.is_empty() {
        shown.push_str(&clean(text));
        text.clear();
    }
}

/// How many bytes at the end are the beginning of a character, where something before it is not UTF-8.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    (1..=tail.len())
        .find(|n| {
            let end = &tail[tail.len() - n..];
            end[0] >= 0xC0 && std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &[u8]) -> String {
        Escapes::new(true).feed(text).0
    }

    #[test]
    fn colours_and_progress_bars_stay() {
        let text = "\x1b[1;31mloss\x1b[0m 0.3\r50 %\tdone\n";
        assert_eq!(shown(text.as_bytes()), text);
        assert_eq!(Escapes::new(false).feed(text.as_bytes()).as_str(), "loss 0.3\r50 %\tdone\n");
    }

    #[test]
    fn what_acts_on_the_terminal_goes() {
        assert_eq!(shown(b"a\x1b]0;title\x07b"), "ab");
        assert_eq!(shown(b"a\x1b]52;c;aGk=\x1b\\b"), "ab");
        assert_eq!(shown(b"a\x1b[2J\x1b[10;10Hb\x1b[?1049hc"), "abc");
        assert_eq!(shown(b"a\x1bcb\x1b(0c"), "abc");
        assert_eq!(shown("a\u{9b}31mb\u{202e}c\x08".as_bytes()), "a\u{FFFD}31mb\u{FFFD}c\u{FFFD}");
        assert_eq!(shown(b"a\x1b]never ends\nb"), "a\nb");
    }

    #[test]
    fn a_text_with_colours_keeps_those_and_no_more() {
        let text = "\x1b[1;31merror\x1b[0m: \x1b]8;;x\x07name\rover\n";
        assert_eq!(Shown::coloured(text, true).as_str(), "\x1b[1;31merror\x1b[0m: name over\n\x1b[0m");
        assert_eq!(Shown::coloured(text, false).as_str(), "error: name over\n");
        assert_eq!(Shown::crlf("a,b\r\n\rc\x1b\r\n").as_str(), "a,b\r\n\u{FFFD}c\u{FFFD}\r\n");
    }

    #[test]
    fn a_colour_that_is_left_on_is_ended() {
        let mut escapes = Escapes::new(true);
        escapes.feed(b"\x1b[31mred");
        assert_eq!(escapes.end().as_str(), "\x1b[0m");
        assert_eq!(escapes.end().as_str(), "");
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_is_shown(bytes in proptest::collection::vec(
            prop_oneof![Just(0x1b), Just(b'['), Just(b']'), Just(b'm'), Just(b'3'), Just(7), Just(b'\n'), any::<u8>()],
            0..200,
        ), at in 0_usize..200) {
            let at = at.min(bytes.len());
            let mut escapes = Escapes::new(true);
            let parts = escapes.feed(&bytes[..at]).0 + &escapes.feed(&bytes[at..]).0;
            prop_assert_eq!(&parts, &shown(&bytes));
            let rest = parts.replace("\x1b[", "");
            prop_assert!(!rest.contains('\x1b'));
        }
    }
}
