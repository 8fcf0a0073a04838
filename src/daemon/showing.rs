//! What subscribers are shown: whether a turn may have changed it, and what came since they looked last.
//!
//! A turn that answers a query, or takes a reading that is like the last, stirs nothing: nobody is woken.

use super::message::News;
use super::turns::Daemon;
use crate::model::{Bytes, GpuProcess, Unreadable};
use crate::sched::history::History;
use crate::sched::picture::{Mark, Picture};
use crate::sched::{Decision, EngineReport, Input, World};

/// What is shown of a device's reading.
type Telemetry = (
    Option<u8>,
    Option<Bytes>,
    Option<i32>,
    Option<u32>,
    Option<Vec<GpuProcess>>,
    Option<Unreadable>,
    Option<crate::model::Now>,
);

/// The picture, and whether it may have changed since subscribers were woken.
#[derive(Debug, Default)]
pub(super) struct Showing {
    pub(super) picture: Picture,
    /// What the readings have shown.
    pub(super) history: History,
    stirred: bool,
    telemetry: Vec<Telemetry>,
}

impl Showing {
    /// Something may have changed.
    pub(super) const fn stir(&mut self) {
        self.stirred = true;
    }

    /// What a turn takes in.
    pub(super) fn heard(&mut self, inputs: &[Input]) {
        let silent = |input: &Input| {
            matches!(input, Input::Readings(_) | Input::Command { .. })
                || matches!(input, Input::Engine(EngineReport::Heartbeat { .. }))
        };
        self.stirred |= !inputs.iter().all(silent);
    }

    /// What came of it.
    pub(super) fn decided(&mut self, world: &World, decision: &Decision) {
        self.stirred |= !decision.events.is_empty() || decision.bug.is_some();
        let now = world.pool.devices().map(|(_, device)| {
            let reading = device.reading.as_ref();
            (
                reading.and_then(|reading| reading.utilisation),
                reading.and_then(|reading| reading.memory_used),
                reading.and_then(|reading| reading.temperature_c),
                reading.and_then(|reading| reading.power_w),
                reading.and_then(|reading| reading.processes.clone()),
                reading.and_then(|reading| reading.unreadable.clone()),
                device.idle_since(),
            )
        });
        let now: Vec<Telemetry> = now.collect();
        self.history.take(world);
        if now != self.telemetry {
            self.telemetry = now;
            self.stirred = true;
        }
    }

    /// Whether it may have changed since this was asked last.
    pub(super) const fn take_stirred(&mut self) -> bool {
        std::mem::replace(&mut self.stirred, false)
    }

    /// What somebody who has that picture is told.
    pub(super) fn since(&self, mark: Option<Mark>) -> News {
        News { update: self.picture.since(mark).map(Box::new), mark: Some(self.picture.mark()) }
    }
}

impl Daemon {
    /// Subscribers came or went. For nobody nothing is kept.
    pub(super) fn subscribed(&mut self, change: i32) {
        self.subscribers = self.subscribers.saturating_add_signed(change as isize);
        if self.subscribers == 0 {
            self.showing.picture.forget();
        }
    }
}
