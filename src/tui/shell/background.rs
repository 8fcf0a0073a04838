//! Asks the terminal for its background, where the config says so: a reply that comes late over a slow link arrives as if
//! it had been typed, so nobody is asked unasked.
//!
//! The question goes out with another one that every terminal answers, and whose answer comes second. When that is
//! there nothing is left on its way.

use crate::clock;
use crate::model::Span;
use crate::tui::look::theme::Variant;
use crate::tui::shell::terminal::Tty;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use std::io::Write;

/// The background, and what the terminal is.
const QUESTION: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";
/// More than two answers and a few keys.
const LONGEST: usize = 4096;

/// What the terminal says within `patience`; `None` if it says nothing, or there is no terminal.
pub fn ask_background(patience: Span) -> Option<Variant> {
    if !rustix::termios::isatty(rustix::stdio::stdin()) || !rustix::termios::isatty(rustix::stdio::stdout()) {
        return None;
    }
    crossterm::terminal::enable_raw_mode().ok()?;
    let said = Tty.write_all(QUESTION).ok().map(|()| listen(Span(clock::monotonic().0 + patience.0)));
    crossterm::terminal::disable_raw_mode().ok()?;
    told(&said?)
}

/// What comes until the second answer is whole, or it is time.
fn listen(until: Span) -> Vec<u8> {
    let stdin = rustix::stdio::stdin();
    let mut said = Vec::new();
    while !is_whole(&said) && said.len() < LONGEST {
        let left = until.0.saturating_sub(clock::monotonic().0);
        let left = Timespec {
            tv_sec: (left / 1000).cast_signed(),
            tv_nsec: (left % 1000).cast_signed() * 1_000_000,
        };
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match rustix::io::retry_on_intr(|| poll(&mut ready, Some(&left))) {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        let mut piece = [0; 256];
        match rustix::io::retry_on_intr(|| rustix::io::read(stdin, &mut piece)) {
            Ok(0) | Err(_) => break,
            Ok(count) => said.extend_from_slice(&piece[..count]),
        }
    }
    said
}

/// Whether the second answer is there: `ESC [ ? 62 ; 4 c`.
fn is_whole(said: &[u8]) -> bool {
    let begins = said.windows(3).position(|three| three == b"\x1b[?");
    begins.is_some_and(|at| said[at..].contains(&b'c'))
}

/// What `ESC ] 11 ; rgb:RRRR/GGGG/BBBB` says of how light it is.
fn told(said: &[u8]) -> Option<Variant> {
    let said = String::from_utf8_lossy(said);
    let colour = said.split("]11;rgb:").nth(1)?;
    let mut parts = colour.split(['/', '\x1b', '\x07']).map(|part| {
        // One to four digits, each a share of what so many digits can say.
        let most = 16_u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        Some(f64::from(u32::from_str_radix(part, 16).ok()?) / f64::from(most))
    });
    let mut part = || parts.next().flatten().filter(|share| share.is_finite());
    let (red, green, blue) = (part()?, part()?, part()?);
    let light = 0.2126f64.mul_add(red, 0.7152f64.mul_add(green, 0.0722 * blue));
    Some(if light > 0.5 { Variant::Light } else { Variant::Dark })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_terminals_are_understood() {
        for (said, variant) in [
            ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;4c", Some(Variant::Light)),
            ("\x1b]11;rgb:fd/f6/e3\x07\x1b[?1;2c", Some(Variant::Light)),
            ("\x1b]11;rgb:0000/2b2b/3636\x1b\\\x1b[?62c", Some(Variant::Dark)),
            ("j\x1b]11;rgb:f/f/f\x1b\\\x1b[?62c", Some(Variant::Light)),
            ("\x1b[?62;4c", None),
            ("\x1b]11;rgb:zz/ff/ff\x1b\\\x1b[?62c", None),
            ("\x1b]11;rgb://\x1b\\\x1b[?62c", None),
            ("\x1b]11;rgb:fffffffff/0/0\x1b\\", None),
            ("", None),
        ] {
            assert_eq!(told(said.as_bytes()), variant, "{said:?}");
            assert_eq!(is_whole(said.as_bytes()), said.ends_with('c'), "{said:?}");
        }
    }
}
