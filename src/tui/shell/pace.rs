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

#[cfg(test)]
mod tests {
    use super::*;

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
