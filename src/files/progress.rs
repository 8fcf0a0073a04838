//! How far a collection is, for those who wait for it. What is done within a second is told to nobody.

use crate::clock;
use crate::model::Span;

/// Between two that are told.
const EVERY: Span = Span::secs(1);

/// Bytes that are handled, of those that are to be, as far as they are known.
pub(super) struct Progress<'a> {
    tell: &'a mut dyn FnMut(u8),
    done: u64,
    total: u64,
    next: Span,
}

impl<'a> Progress<'a> {
    /// Tells by `tell`, in whole percent.
    pub(super) fn new(tell: &'a mut dyn FnMut(u8)) -> Self {
        Self { tell, done: 0, total: 0, next: later(clock::monotonic()) }
    }

    /// So many bytes are still to be handled.
    pub(super) const fn left(&mut self, bytes: u64) {
        self.total = self.done.saturating_add(bytes);
    }

    /// So many more were handled.
    pub(super) fn did(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        let now = clock::monotonic();
        if now < self.next {
            return;
        }
        self.next = later(now);
        let percent = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        // The last one is said by the end itself.
        (self.tell)(percent.min(99) as u8);
    }
}

const fn later(now: Span) -> Span {
    Span(now.0 + EVERY.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_known_is_told_at_most_once_a_second() {
        let mut told = Vec::new();
        let mut tell = |percent| told.push(percent);
        let mut progress = Progress::new(&mut tell);
        progress.left(200);
        progress.did(50);
        progress.next = Span(0);
        progress.did(92);
        progress.did(10);
        progress.left(0);
        progress.next = Span(0);
        progress.did(10);
        assert_eq!(told, [71, 99]);
    }
}
