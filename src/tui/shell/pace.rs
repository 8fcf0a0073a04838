//! How often something is drawn: less over a network, less under low bandwidth, hardly at all while nobody looks.

/// A frame is drawn no sooner after the last one, unless a key was pressed: here, and over a network.
const FRAME_MS: [u64; 2] = [100, 250];
/// Running times move this often.
const TICK_MS: [u64; 2] = [1_000, 2_000];
/// A growing log is read this often.
const LOG_MS: [u64; 2] = [250, 500];
/// Under low bandwidth.
const THRIFT_MS: u64 = 1_000;
/// While the window has no focus.
const UNSEEN_MS: u64 = 10_000;
/// Without a key for so long nobody looks, where the terminal does not tell of the focus.
const AWAY_MS: u64 = 60_000;

/// What the pace depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// 1 if the terminal is at the other end of a network.
    pub(super) remote: usize,
    /// Few bytes.
    pub(super) thrift: bool,
    /// Whether the window has the focus; `None` while the terminal has told nothing.
    pub(super) focus: Option<bool>,
    /// When a key was pressed last, on the boot clock.
    pub(super) pressed_ms: u64,
}

impl Pace {
    /// Whether bytes are counted: over a network, and where few of them are wanted.
    pub(super) const fn is_limited(&self) -> bool {
        self.remote > 0 || self.thrift
    }

    /// Between two frames.
    pub(super) fn frame_ms(&self) -> u64 {
        match (self.focus, self.thrift) {
            (Some(false), _) => UNSEEN_MS,
            (_, true) => FRAME_MS[1],
            (_, false) => FRAME_MS[self.remote],
        }
    }

    /// Between two steps of running times.
    pub(super) fn tick_ms(&self) -> u64 {
        match (self.focus, self.thrift) {
            (_, true) => 60_000,
            (Some(false), false) => UNSEEN_MS,
            (_, false) => TICK_MS[self.remote],
        }
    }

    /// Between two readings of a growing log.
    pub(super) fn log_ms(&self) -> u64 {
        if self.thrift { THRIFT_MS } else { LOG_MS[self.remote] }
    }

    /// Whether nobody looks.
    pub(super) fn is_unseen(&self, now_ms: u64) -> bool {
        self.focus.map_or(now_ms >= self.pressed_ms + AWAY_MS, |focus| !focus)
    }
}

/// A key this long after the one before it is pressed alone: nobody holds it.
pub(super) const ALONE_MS: u64 = 500;
/// What frames may take over a network: so much at once, ...
const PURSE_BYTES: i64 = 4_000;
/// ... so much a second: three quarters of the slowest link that it is made for, 64 kbit/s ...
const BYTES_PER_S: i64 = 6_000;
/// ... and so much too much: nobody waits longer than a second for a frame.
const DEBT_BYTES: i64 = -6_000;
/// Keys that had to wait for so long make a link a slow one.
const SHORT_MS: u64 = 3_000;

/// The bytes that frames may take over a network. What a link carries nobody tells: it takes everything at first and is
/// seconds late then, so that what is spent is kept below what a slow one carries.
#[derive(Debug, Clone)]
pub(super) struct Purse {
    is_limited: bool,
    /// What was left after the last frame, in thousandths of a byte: milliseconds times bytes a second.
    left: i64,
    at_ms: u64,
    /// Since when it was never full again, if a frame had to wait for it.
    short_since_ms: Option<u64>,
}

impl Purse {
    /// A full one; or, where nothing is limited, one that is never empty.
    pub(super) const fn new(now_ms: u64, is_limited: bool) -> Self {
        Self { is_limited, left: PURSE_BYTES * 1_000, at_ms: now_ms, short_since_ms: None }
    }

    /// Whether frames are limited from now on.
    pub(super) const fn limit(&mut self, is_limited: bool) {
        self.is_limited = is_limited;
    }

    fn left(&self, now_ms: u64) -> i64 {
        let since = i64::try_from(now_ms.saturating_sub(self.at_ms)).unwrap_or(i64::MAX);
        self.left.saturating_add(since.saturating_mul(BYTES_PER_S)).min(PURSE_BYTES * 1_000)
    }

    /// A frame of so many bytes was drawn.
    pub(super) fn spend(&mut self, bytes: u64, now_ms: u64) {
        let left = self.left(now_ms);
        if left > PURSE_BYTES * 500 {
            self.short_since_ms = None;
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(1_000);
        (self.left, self.at_ms) = (left.saturating_sub(bytes).max(DEBT_BYTES * 1_000), now_ms);
    }

    /// From when on there is something in it.
    pub(super) fn free_ms(&self) -> u64 {
        if !self.is_limited || self.left > 0 {
            return 0;
        }
        self.at_ms + (-self.left / BYTES_PER_S).unsigned_abs() + 1
    }

    /// A key's frame has to wait: whether that goes on for long.
    pub(super) fn is_short(&mut self, now_ms: u64) -> bool {
        now_ms >= *self.short_since_ms.get_or_insert(now_ms) + SHORT_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds a key, 30 times a second, each frame so large: the bytes by then and the longest wait.
    fn hold(purse: &mut Purse, from_ms: u64, ms: u64, frame: u64) -> (u64, u64) {
        let (mut sent, mut drawn_ms, mut longest) = (0, from_ms, 0);
        for now in (from_ms..from_ms + ms).step_by(33) {
            if now >= purse.free_ms() {
                longest = longest.max(now - drawn_ms);
                (sent, drawn_ms) = (sent + frame, now);
                purse.spend(frame, now);
            } else {
                purse.is_short(now);
            }
        }
        (sent, longest)
    }

    #[test]
    fn a_key_held_over_a_network_sends_no_more_than_a_slow_link_carries() {
        for frame in [300, 600, 3_000, 6_000] {
            let mut purse = Purse::new(1_000, true);
            let (sent, longest) = hold(&mut purse, 1_000, 5_000, frame);
            assert!(sent <= 8 * 5_000, "{frame}: {sent} bytes in 5 s");
            assert!(sent >= 5 * 5_000 && longest <= 1_100, "{frame}: {sent} bytes, {longest} ms");
        }
    }

    #[test]
    fn a_frame_however_large_holds_the_next_one_up_for_a_second_at_most_and_is_forgotten() {
        let mut purse = Purse::new(0, true);
        assert_eq!(purse.free_ms(), 0);
        purse.spend(1_000_000, 10);
        assert!((1_000..1_100).contains(&purse.free_ms()), "{}", purse.free_ms());
        assert!(purse.left(60_000) == PURSE_BYTES * 1_000, "no more than full");
        purse.spend(100, 60_000);
        assert_eq!(purse.free_ms(), 0);
    }

    #[test]
    fn a_clock_that_does_not_move_or_jumps_breaks_nothing() {
        let mut purse = Purse::new(u64::MAX - 1, true);
        purse.spend(u64::MAX, 0);
        assert!(purse.free_ms() <= 1_100);
        assert!(purse.left(u64::MAX) == PURSE_BYTES * 1_000);
    }

    #[test]
    fn keys_that_wait_for_seconds_make_a_link_slow_and_a_rest_makes_it_fast_again() {
        let mut purse = Purse::new(0, true);
        hold(&mut purse, 0, 2_000, 600);
        assert!(!purse.is_short(2_000));
        hold(&mut purse, 2_000, 3_000, 600);
        assert!(purse.is_short(5_000));
        purse.spend(600, 15_000);
        assert!(!purse.is_short(15_000), "it was full again");
    }

    #[test]
    fn here_nothing_is_limited_unless_that_is_wanted() {
        let mut purse = Purse::new(0, false);
        purse.spend(1_000_000, 0);
        assert_eq!(purse.free_ms(), 0);
        purse.limit(true);
        assert!(purse.free_ms() > 0, "low bandwidth was asked for");
    }

    #[test]
    fn over_a_network_under_low_bandwidth_and_unseen_less_is_drawn() {
        let here = Pace { remote: 0, thrift: false, focus: None, pressed_ms: 0 };
        let there = Pace { remote: 1, ..here };
        let thrifty = Pace { thrift: true, ..there };
        let unseen = Pace { focus: Some(false), ..here };
        assert_eq!((here.frame_ms(), here.tick_ms(), here.log_ms()), (100, 1_000, 250));
        assert_eq!((there.frame_ms(), there.tick_ms(), there.log_ms()), (250, 2_000, 500));
        assert_eq!((thrifty.frame_ms(), thrifty.tick_ms(), thrifty.log_ms()), (250, 60_000, 1_000));
        assert_eq!((unseen.frame_ms(), unseen.tick_ms()), (10_000, 10_000));
    }

    #[test]
    fn without_word_of_the_focus_a_minute_without_a_key_is_away() {
        let pace = Pace { remote: 0, thrift: false, focus: None, pressed_ms: 5_000 };
        assert!(!pace.is_unseen(64_999) && pace.is_unseen(65_000));
        assert!(!Pace { focus: Some(true), ..pace }.is_unseen(99_000));
    }
}
