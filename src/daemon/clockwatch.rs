//! Notices that the wall clock was set: a thread that sleeps in a timer which a step cancels. Costs no wakeup.

use super::message::{Mailbox, Message};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Starts the thread. Without it a `start_after` may be late by as much as the clock was set.
pub(super) fn spawn(mailbox: Mailbox) -> std::io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
    let never = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: i64::from(u32::MAX) * 2, tv_nsec: 0 },
    };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&timer, flags, &never)?;
    std::thread::Builder::new().name("clockwatch".to_owned()).stack_size(64 << 10).spawn(move || {
        let mut count = [0_u8; 8];
        loop {
            match rustix::io::read(&timer, &mut count) {
                Err(rustix::io::Errno::CANCELED) => {
                    mailbox.post(Message::ClockStep);
                    if timerfd_settime(&timer, flags, &never).is_err() {
                        return;
                    }
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(())
}
