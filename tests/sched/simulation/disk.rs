//! The state's disk. Every life keeps rows and the log as a store would; some keep them in the real store too, and start
//! anew from that. It may refuse, or say that it refused and keep what it was given.

use super::faults::Fault;
use super::life::Life;
use crate::build::Disk;
use overnight::model::{EventRecord, Job, Lease, Now};
use overnight::sched::{Decision, World, check_transition};
use overnight::store::{Batch, Identity, Loaded, Store, StoreOptions};
use std::path::PathBuf;
use std::sync::mpsc;

/// Where a life keeps what is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// In rows of the test's own.
    InMemory,
    /// Also in the real store, in a file.
    InStore,
}

/// What is durable.
pub(super) struct Durable {
    pub(super) disk: Disk,
    /// The world that the events alone make. A turn of which nothing became durable is in it until the next start.
    folded: World,
    store: Option<Real>,
}

/// The real store in a directory of its own.
struct Real {
    dir: tempfile::TempDir,
    store: Option<Store>,
}

impl Durable {
    pub(super) fn new(kept: Kept) -> Self {
        let store = (kept == Kept::InStore).then(|| {
            // Memory, where there is one: a sync is not what is tested here.
            let shm = PathBuf::from("/dev/shm");
            let dir = tempfile::tempdir_in(shm).or_else(|_| tempfile::tempdir()).expect("a directory");
            let mut real = Real { dir, store: None };
            drop(real.open());
            real
        });
        Self { disk: Disk::default(), folded: World::default(), store }
    }

    /// Every invariant after a turn. The events take the shadow of the world from before the turn to after it.
    pub(super) fn check(&mut self, world: &World, decision: &Decision, now: &Now) {
        let checked = check_transition(&mut self.folded, world, decision, now);
        assert_eq!(checked, Ok(()), "an invariant is broken");
        // Debug builds check every world by themselves, at least what was touched.
        assert!(
            cfg!(debug_assertions) || world.check().is_ok(),
            "an invariant is broken: {:?}",
            world.check()
        );
    }

    /// Makes a turn durable. The same turn may come twice.
    fn append(&mut self, world: &mut World, events: &[EventRecord]) {
        if let Some(real) = &self.store {
            real.append(Batch::of_turn(world, events));
        }
        let known = self.disk.log.last().map_or(0, |record| record.seq);
        let new: Vec<EventRecord> = events.iter().filter(|record| record.seq > known).cloned().collect();
        let touched = world.touched.clone();
        self.disk.append(world, &new);
        world.touched = touched;
    }

    /// The world of a scheduler that starts on this disk.
    pub(super) fn restore(&mut self) -> World {
        if self.folded.counters.seq > self.disk.log.last().map_or(0, |record| record.seq) {
            self.folded = self.disk.fold();
        }
        let world = self.disk.restore();
        self.compare(&world);
        match &mut self.store {
            None => world,
            Some(real) => {
                let loaded = World::restore(real.open().remembered(None));
                assert_eq!(rows(&loaded), rows(&world), "the store says something else than was stored");
                assert_eq!(loaded.counters.seq, world.counters.seq);
                loaded
            }
        }
    }

    /// The events alone make the same rows.
    fn compare(&self, world: &World) {
        for job in world.queue.iter() {
            assert_eq!(self.folded.queue.get(job.id), Some(job));
        }
        for lease in self.disk.leases.values() {
            let same = self.folded.lease(lease.id).cloned().expect("in the events");
            assert_eq!(Lease { heartbeat: lease.heartbeat, ..same }, *lease);
        }
        for (uuid, standing) in &self.disk.devices {
            assert_eq!(
                self.folded.pool.get(uuid).map(overnight::sched::world::Device::standing).as_ref(),
                Some(standing)
            );
        }
    }
}

type Rows = (Vec<Job>, Vec<Lease>, Vec<Lease>);

/// What a world has of jobs, open leases and ended ones.
fn rows(world: &World) -> Rows {
    (
        world.queue.iter().cloned().collect(),
        world.leases.iter().cloned().collect(),
        world.ledger.iter().cloned().collect(),
    )
}

impl Real {
    /// Opens the store, after a death of the one who had it open.
    fn open(&mut self) -> Loaded {
        drop(self.store.take());
        let identity = Identity { machine_id: "m".to_owned(), hostname: "h".to_owned() };
        let options = StoreOptions::new(self.dir.path().join("first-start"));
        let (store, loaded) =
            Store::open(&self.dir.path().join("state.redb"), &identity, &options).expect("the store opens");
        self.store = Some(store);
        loaded
    }

    fn append(&self, batch: Batch) {
        let (done, durable) = mpsc::channel();
        let store = self.store.as_ref().expect("open");
        store.append(batch, Box::new(move |result| drop(done.send(result))));
        durable.recv().expect("an answer").expect("durable");
    }
}

impl Life {
    /// Makes a turn durable, however long that takes; whether a commit failed first. `None`: the scheduler was killed.
    pub(super) fn make_durable(&mut self, decision: &Decision) -> Option<bool> {
        let refuses = self.faults.strikes(&mut self.dice, Fault::DiskError);
        let lies = !refuses && self.faults.strikes(&mut self.dice, Fault::DiskErrorDurable);
        if lies {
            self.durable.append(&mut self.world, &decision.events);
            self.record(decision);
        }
        let failed = refuses || lies;
        if failed && !self.frozen() {
            return None;
        }
        self.durable.append(&mut self.world, &decision.events);
        self.world.touched = overnight::sched::Touched::default();
        if !lies {
            self.record(decision);
        }
        Some(failed)
    }

    /// The turn is frozen: the same events are tried again until the disk is back. What happens is heard and kept, a
    /// cancel goes straight to its supervisor. `false`: killed meanwhile.
    fn frozen(&mut self) -> bool {
        let long = self.faults.strikes(&mut self.dice, Fault::DiskFullForHours);
        let ms = 250 + if long { self.dice.below(7_200_000) } else { self.dice.below(5_000) };
        self.cancel_at_supervisor();
        let until = self.machine.t + ms;
        let mut heard = self.pass(until);
        self.pending.append(&mut heard);
        !self.faults.strikes(&mut self.dice, Fault::KilledWhileFrozen)
    }
}
