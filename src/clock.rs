//! The one place that reads clocks. The shell and the adapters call it; the core is handed a [`Now`].

use crate::model::{BootId, Now, Span};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// Reads both clocks.
pub fn now() -> Now {
    Now { boot: boot_id(), boottime_ms: millis(ClockId::Boottime), wall_ms: wall_ms() }
}

/// Milliseconds since the Unix epoch.
pub fn wall_ms() -> i64 {
    let t = clock_gettime(ClockId::Realtime);
    t.tv_sec * 1000 + t.tv_nsec / 1_000_000
}

/// Milliseconds of `CLOCK_MONOTONIC`: does not count suspend.
pub fn monotonic() -> Span {
    Span(millis(ClockId::Monotonic))
}

fn millis(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec.unsigned_abs() * 1000 + t.tv_nsec.unsigned_abs() / 1_000_000
}

/// The kernel's boot id, read once: it cannot change while a process lives.
///
/// Where `/proc` has none (it always has on Linux ≥ 2.4) every process gets the nil id, and durations still work.
pub fn boot_id() -> BootId {
    static BOOT: OnceLock<BootId> = OnceLock::new();
    *BOOT.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .and_then(|text| BootId::parse(&text))
            .unwrap_or_default()
    })
}
