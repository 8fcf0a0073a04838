//! A scheduler's life in virtual time, from one seed: the real step, World and (for some lives) Store; a machine, an engine,
//! devices and people of the test's own; and faults. After each step every invariant is checked, and an independent ledger
//! is compared; then everything heals, and every job must be done in time.
//!
//! ```text
//! cargo test --test sched simulation                    the usual seeds, and how often each fault was injected
//! SIM_SEED=17 cargo test --test sched simulation        one seed again; with SIM_TRACE=1 all that happens
//! SIM_SEEDS=20000 cargo test --test sched simulation    that many seeds; SIM_FIRST=… begins elsewhere
//! ```
//!
//! | module | is |
//! |---|---|
//! | `life` | the loop: what happens when, and the scheduler's shell around the core |
//! | `machine` | the truth: clocks, GPUs, processes, journals |
//! | `engine` | supervisors and the engine's reports of them |
//! | `devices` | readings, and what ails devices |
//! | `disk` | rows, log, the real store; commits that fail |
//! | `clients` | drops, submissions, commands on old pictures |
//! | `weather` | clocks, sleep, reboots, deaths, recovery |
//! | `ledger`, `bill` | the auditor |
//! | `faults` | the kinds, their rates, the report |

mod bill;
mod clients;
mod devices;
mod dice;
mod disk;
mod engine;
mod faults;
mod ledger;
mod life;
mod machine;
mod weather;

use crate::build::{Ask, job, submission};
use disk::Kept;
use faults::{COUNT, Counts};
use life::Life;
use overnight::sched::Input;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that are run without being told otherwise.
const SEEDS: u64 = 500;
/// One life in so many keeps its state in the real store.
const STORE_EVERY: u64 = 100;
/// Turns with faults; then so many in which all must be done.
const FAULTY_TURNS: usize = 120;
const HEALING_TURNS: usize = 4_000;
/// All must be done so long after the last fault.
const HEALED_WITHIN_MS: u64 = 12 * 3_600_000;

impl Life {
    /// No more faults: every job must come to its end.
    fn heal(&mut self) {
        self.faults.on = false;
        self.machine.heal();
        self.thaw_all();
        self.crash();
        for name in (0..clients::NAMES).map(|n| format!("job{n}")) {
            // Whatever name is waited for comes.
            if !self.world.queue.waiting_for_name(&name).is_empty() {
                let one = job(&name).gpus(0).secs(5);
                self.tell(0, Input::Submission(Box::new(submission(vec![one]))));
            }
        }
        let began = self.machine.t;
        for turn in 0..HEALING_TURNS {
            self.turn();
            if turn < 10 || turn.is_multiple_of(50) {
                self.people_help();
            }
            if (turn == 500 || self.is_quiet()) && self.some_wait_for_a_boot() {
                self.restart_machine();
            }
            if self.world.queue.live().next().is_none() && self.world.leases.iter().next().is_none() {
                return;
            }
            assert!(self.machine.t - began < HEALED_WITHIN_MS, "not done: {:#?}", self.waiting());
        }
        panic!("not done: {:#?}", self.waiting());
    }
}

/// One life from its beginning to its audit; how often each fault was injected.
fn live(seed: u64, traced: bool) -> Counts {
    let kept = if seed.is_multiple_of(STORE_EVERY) { Kept::InStore } else { Kept::InMemory };
    let mut life = Life::new(seed, kept);
    life.traced = traced;
    for _ in 0..FAULTY_TURNS {
        life.turn();
    }
    life.trace(|| {
        format!(
            "heals: {} jobs, {} done, {} leases",
            life.world.queue.len(),
            life.world.queue.history().count(),
            life.world.counters.lease
        )
    });
    life.heal();
    let (drops, left) = life.people.drops();
    assert!(!left, "a drop was accepted and is still in the inbox");
    life.ledger.audit(&life.world, &life.machine, &drops);
    life.trace(|| {
        format!(
            "over: {} turns, {} jobs, {} leases",
            life.turns,
            life.world.queue.len(),
            life.world.counters.lease
        )
    });
    life.faults.counts
}

#[expect(clippy::disallowed_methods, reason = "seeds to replay are handed over in the environment")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn every_job_ends_once_whatever_breaks() {
    let (first, count) = match number("SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (number("SIM_FIRST").unwrap_or(1), number("SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let traced = number("SIM_TRACE").is_some();
    let next = AtomicU64::new(first);
    let counts: Mutex<Counts> = Mutex::new([0; COUNT]);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let lived = std::panic::catch_unwind(|| live(seed, traced));
                    let Ok(lived) = lived else {
                        panic!("SIM_SEED={seed} cargo test --test sched simulation")
                    };
                    let mut counts = counts.lock().unwrap();
                    counts.iter_mut().zip(lived).for_each(|(sum, count)| *sum += count);
                }
            });
        }
    });
    let (report, never) = faults::report(&counts.into_inner().unwrap(), count as usize);
    println!("{report}");
    assert!(count < SEEDS || never.is_empty(), "never injected: {never:?}");
}

#[test]
fn the_same_seed_lives_the_same_life() {
    let log = |seed| {
        let mut life = Life::new(seed, Kept::InMemory);
        (0..60).for_each(|_| life.turn());
        life.durable.disk.log
    };
    assert_eq!(log(11), log(11));
    assert_ne!(log(11), log(12));
}
