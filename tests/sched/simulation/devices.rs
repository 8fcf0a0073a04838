//! What a driver says of the devices, and what goes wrong with them.

use super::faults::Fault;
use super::life::Life;
use super::machine::{Ill, Machine};
use crate::build::{reading, stranger};
use overnight::model::{
    Bytes, Gpu, GpuProcess, GpuReading, LeaseId, LockHolder, ProcessKind, Token, Unreadable, Uuid,
};
use overnight::protocol::{Command, GpuSelect};
use overnight::sched::Input;

impl Life {
    /// Asks for a reading. Where readings cost nothing the next turn has one anyway.
    pub(super) fn probe(&mut self) {
        if self.instant {
            return self.tell_again();
        }
        if self.faults.strikes(&mut self.dice, Fault::ReadingLost) {
            return;
        }
        // A slow driver's reading is older by the time it arrives.
        let slow = self.faults.strikes(&mut self.dice, Fault::ReadingSlow);
        let ms = if slow { self.dice.below(3_000) } else { 1 };
        let readings = self.readings();
        self.tell(ms, readings);
    }

    /// A turn for its own sake.
    fn tell_again(&mut self) {
        self.tell(1, Input::Readings(Vec::new()));
    }

    pub(super) fn readings(&self) -> Input {
        let listed = self.machine.gpus.iter().filter(|gpu| self.is_listed(&gpu.uuid));
        Input::Readings(listed.map(|gpu| look(&self.machine, &gpu.uuid)).collect())
    }

    fn is_listed(&self, uuid: &Uuid) -> bool {
        self.machine.is_ill(uuid) != Some(Ill::Unlisted)
    }

    /// The driver tells which devices there are.
    pub(super) fn list(&mut self, ms: u64) {
        let listed: Vec<Gpu> =
            self.machine.gpus.iter().filter(|gpu| self.is_listed(&gpu.uuid)).cloned().collect();
        self.tell(ms, Input::Devices(listed));
    }

    /// Something befalls a device.
    pub(super) fn devices_ail(&mut self) {
        let uuids: Vec<Uuid> = self.machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        let Some(uuid) = self.dice.pick(&uuids).cloned() else { return };
        let locked = self.dice.percent(50);
        let kinds = [
            (Fault::GpuGone, Ill::Gone),
            (Fault::GpuHangs, Ill::Hangs),
            (Fault::GpuOutsider, Ill::Outsider { locked }),
            (Fault::GpuUnlisted, Ill::Unlisted),
        ];
        for (fault, ill) in kinds {
            // Simulated devices are listed once.
            let possible = ill != Ill::Unlisted || !self.instant;
            if possible && self.faults.strikes(&mut self.dice, fault) {
                self.befall(uuid.clone(), ill);
                if ill == Ill::Unlisted {
                    self.list(1);
                }
            }
        }
        if self.faults.strikes(&mut self.dice, Fault::GpuClosed) {
            let gpus = GpuSelect::Uuid(uuid);
            let command = match self.dice.below(3) {
                0 => Command::Clear { gpu: gpus },
                1 => Command::Open { gpus },
                _ => Command::Close { gpus, reason: "fan".to_owned() },
            };
            self.ask("root", command);
        }
    }

    fn befall(&mut self, uuid: Uuid, ill: Ill) {
        let until = self.machine.t + 1 + self.dice.below(60_000);
        self.machine.ills.insert(uuid, (until, ill));
    }

    /// A run is over: it may leave its devices dirty.
    pub(super) fn after_run(&mut self, lease: LeaseId) {
        if self.faults.strikes(&mut self.dice, Fault::GpuDirty) {
            let devices = self.machine.work.get(&lease).map(|work| work.launch.devices.clone());
            for device in devices.into_iter().flatten() {
                // Also less than what would be taken for an outsider's.
                let gib = [1, 5][self.dice.below(2) as usize];
                self.befall(device.uuid, Ill::Dirty { gib });
            }
        }
    }
}

/// What the driver would say of a device now.
fn look(machine: &Machine, uuid: &Uuid) -> GpuReading {
    let mut reading = reading(uuid, machine.now());
    let mut processes: Vec<GpuProcess> =
        machine.on(uuid).map(|work| process(Some(work.launch.token.clone()))).collect();
    let holder = machine.work.values().find(|work| {
        work.locks && work.launch.devices.iter().any(|device| device.real && device.uuid == *uuid)
    });
    reading.lock = holder.map(|work| lock(work.launch.token.clone()));
    match machine.is_ill(uuid) {
        Some(Ill::Dirty { gib }) => reading.memory_used = Some(Bytes::gib(gib)),
        Some(Ill::Gone) => reading.unreadable = Some(Unreadable::Gone { detail: "Xid 79".to_owned() }),
        Some(Ill::Hangs) => {
            reading.unreadable = Some(Unreadable::Failed { detail: "timeout".to_owned() });
            (reading.memory_used, reading.processes) = (None, None);
            return reading;
        }
        Some(Ill::Outsider { locked }) => {
            processes.push(process(None));
            if locked && reading.lock.is_none() {
                reading.lock = Some(lock(stranger()));
            }
        }
        Some(Ill::Unlisted) | None => {}
    }
    reading.processes = Some(processes);
    reading
}

fn process(token: Option<Token>) -> GpuProcess {
    let (name, kind) = ("python".to_owned(), ProcessKind::Compute);
    GpuProcess { pid: 9, name, uid: None, kind, memory: Some(Bytes::gib(1)), token, ignored: false }
}

fn lock(token: Token) -> LockHolder {
    LockHolder { uid: 7, job: "x".to_owned(), token: Some(token), since_ms: None }
}
