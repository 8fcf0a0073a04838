//! The invariants, as code: what must hold of every world, and of every turn.
//!
//! | | invariant | here |
//! |---|---|---|
//! | I1 | accepted, never lost | every job is live or done, and no turn forgets a live one |
//! | I2 | accepted once | no drop is accepted a second time |
//! | I3 | one terminal state | done is what the tasks came to, and a done job never changes again |
//! | I4 | one attempt alive | one live attempt a task; no grant while the last one is not proven gone |
//! | I5 | exclusive | a device, a core and a byte are given once; devices and leases say the same |
//! | I6 | granted only if proven free | each granted device has a complete, clean, fresh reading |
//! | I7 | released after every end | an attempt that does not run holds nothing; every end and return is followed up |
//! | I8 | a release is safe | a device is free only by a clean reading after the end, with nobody left of the run |
//! | I9 | meter = leases | the records agree with each other and with their attempts |
//! | I10 | every second once | leases of a device do not overlap |
//! | I11 | waiting is not metered | a lease begins with its grant; who never ran has no start |
//! | I12 | bounded by real time | moments of one boot are in order; suspend is within what is held |
//! | I13 | proven-held | an estimate is not later than the last sign of life |
//! | I14 | intent before act | a launch has its grant in the same turn, and a token of its own |
//! | I16 | a wish is decisive | what is being cancelled, paused or edited is never granted anything; a cancel is told |
//! | I21 | recovery | the events alone make the same rows |
//! | I22 | event log | gap-free, of one moment, and each event fits the state it meets |
//! | I23 | progress | nothing is left that could start; whatever only waits for time or a reading has a wake; no promise moves later |
//!
//! I15, I17 to I20 and I24 are about processes, people, files and disks: the shell's, and its tests'.
//!
//! Debug builds check every turn: all of it while a world is small; of a larger one what the turn touched, and the whole
//! now and then, for the cost of a turn must not grow with the line there either. [`check_transition`] is for one who has
//! the world before the turn too: tests and the simulation.

mod state;
mod turn;

pub use turn::check_transition;

use super::plan;
use super::step::Decision;
use super::world::World;
use crate::model::{JobId, Now};

/// Up to so many jobs and ended leases a world is checked whole after every turn.
const SMALL: usize = 8;
/// Up to so many it is worth working out in each turn what else could start.
const MIDDLING: usize = 512;
/// A world of middling size is checked whole once in so many turns.
const WHOLE_EVERY: u64 = 8;
/// Likewise a large one.
const LARGE_WHOLE_EVERY: u64 = 512;

/// What one world must be like.
pub(super) fn world(world: &World) -> Result<(), String> {
    state::whole(world)
}

fn size(world: &World) -> usize {
    world.queue.len() + world.ledger.len()
}

/// What a turn must have left, seen from its end. A bug that the turn has met itself is told by the turn.
pub(super) fn turn(world: &World, decision: &Decision, now: &Now) -> Result<(), String> {
    if world.broken {
        return Ok(());
    }
    if is_time_for_whole(world) {
        state::whole(world)?;
        turn::progress(world, decision, now)?;
    } else {
        state::touched(world)?;
    }
    turn::decided(world, decision, now)
}

fn is_time_for_whole(world: &World) -> bool {
    let every = match size(world) {
        0..=SMALL => 1,
        size if size <= MIDDLING => WHOLE_EVERY,
        _ => LARGE_WHOLE_EVERY,
    };
    world.counters.revision.0.is_multiple_of(every)
}

/// The start that is promised to the head of the line, where it is affordable to know.
pub(super) fn promise(world: &World, now: &Now) -> Option<(JobId, u64)> {
    if cfg!(debug_assertions) && size(world) <= MIDDLING { plan::promise(world, now) } else { None }
}

/// No grant may make a promise later.
pub(super) fn promise_is_kept(promised: Option<(JobId, u64)>, world: &World, now: &Now) {
    if let Some((head, at)) = promised
        && !world.broken
    {
        let kept = plan::promise(world, now);
        assert!(
            kept.is_some_and(|(still, then)| still == head && then <= at),
            "an invariant is broken: I23: #{head} was promised its start by {at}, and after the grants the promise is \
             {kept:?}"
        );
    }
}
