//! How one order became another: which went, which came, which moved.

use crate::model::JobId;
use crate::protocol::Move;
use std::collections::HashMap;

/// The moves that make `new` out of `old`. What both begin and end with is not looked at closely.
pub(super) fn moves(old: &[JobId], new: &[JobId]) -> Vec<Move> {
    let same = |pair: &(&JobId, &JobId)| pair.0 == pair.1;
    let front = old.iter().zip(new).take_while(same).count();
    let (old, middle) = (&old[front..], &new[front..]);
    let back = old.iter().rev().zip(middle.iter().rev()).take_while(same).count();
    let (old, middle) = (&old[..old.len() - back], &middle[..middle.len() - back]);
    let mut script = Script { moves: Vec::new(), named: 0 };
    script.walk(old, middle, front);
    if script.named > new.len() / 2 && !script.moves.is_empty() {
        return vec![Move::All { jobs: new.to_vec() }];
    }
    script.moves
}

struct Script {
    moves: Vec<Move>,
    /// How many jobs it names.
    named: usize,
}

impl Script {
    fn walk(&mut self, old: &[JobId], new: &[JobId], front: usize) {
        let places = |list: &[JobId]| -> HashMap<JobId, usize> {
            list.iter().enumerate().map(|(place, job)| (*job, place)).collect()
        };
        let (was, is) = (places(old), places(new));
        // Those that were taken forward already, and go when the walk comes to where they were.
        let mut taken = vec![false; old.len()];
        let (mut at_old, mut at_new) = (0, 0);
        loop {
            let (from, to) = (old.get(at_old), new.get(at_new));
            let at = front + at_new;
            match (from, to) {
                (None, None) => return,
                (Some(_), _) if taken[at_old] => {
                    self.out(at);
                    at_old += 1;
                }
                (Some(from), Some(to)) if from == to => {
                    at_old += 1;
                    at_new += 1;
                }
                (Some(from), to) => {
                    // Of two that have changed sides, the one that went further is the one that moved.
                    let stays = is.get(from).filter(|place| **place >= at_new);
                    let comes = to.and_then(|to| was.get(to)).filter(|place| **place >= at_old);
                    let forward = match (stays, comes) {
                        (None, _) => false,
                        (Some(_), None) => true,
                        (Some(stays), Some(comes)) => comes - at_old > stays - at_new,
                    };
                    if let (true, Some(to)) = (forward, to) {
                        if let Some(place) = was.get(to) {
                            taken[*place] = true;
                        }
                        self.put(at, *to);
                        at_new += 1;
                    } else {
                        self.out(at);
                        at_old += 1;
                    }
                }
                (None, Some(to)) => {
                    self.put(at, *to);
                    at_new += 1;
                }
            }
        }
    }

    fn out(&mut self, place: usize) {
        let place = place as u32;
        match self.moves.last_mut() {
            Some(Move::Out { at, count }) if *at == place => *count += 1,
            _ => self.moves.push(Move::Out { at: place, count: 1 }),
        }
    }

    fn put(&mut self, place: usize, job: JobId) {
        let place = place as u32;
        self.named += 1;
        match self.moves.last_mut() {
            Some(Move::In { at, jobs }) if *at + jobs.len() as u32 == place => jobs.push(job),
            _ => self.moves.push(Move::In { at: place, jobs: vec![job] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn carried_out(old: &[JobId], moves: &[Move]) -> Vec<JobId> {
        let mut list = old.to_vec();
        for one in moves {
            match one {
                Move::Out { at, count } => drop(list.drain(*at as usize..(at + count) as usize)),
                Move::In { at, jobs } => {
                    drop(list.splice(*at as usize..*at as usize, jobs.iter().copied()));
                }
                Move::All { jobs } => list.clone_from(jobs),
            }
        }
        list
    }

    fn ids(numbers: impl IntoIterator<Item = u64>) -> Vec<JobId> {
        numbers.into_iter().map(JobId).collect()
    }

    #[test]
    fn what_moved_is_named_and_nothing_else() {
        let old = ids(1..=10_000);
        let one = |new: &[JobId]| {
            let moves = moves(&old, new);
            assert_eq!(carried_out(&old, &moves), new);
            let named = |one: &Move| match one {
                Move::Out { .. } => 0,
                Move::In { jobs, .. } | Move::All { jobs } => jobs.len(),
            };
            (moves.len(), moves.iter().map(named).sum::<usize>())
        };
        assert_eq!(one(&old), (0, 0));
        assert_eq!(one(&old[1..]), (1, 0), "the first has started");
        assert_eq!(one(&ids(1..=10_001)), (1, 1), "one came");
        assert_eq!(
            one(&ids([9_000].into_iter().chain(1..9_000).chain(9_001..=10_000))),
            (2, 1),
            "to the top"
        );
        assert_eq!(one(&ids((2..=10_000).chain([1]))), (2, 1), "to the bottom");
        assert_eq!(one(&ids((1..=10_000).rev())), (1, 10_000), "all anew is shorter");
    }

    proptest! {
        #[test]
        fn carried_out_the_moves_lead_to_the_new_order(
            old in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(),
            new in Just((20..60_u64).collect::<Vec<_>>()).prop_shuffle(),
            (left, right) in (0..40_usize, 0..40_usize),
        ) {
            let (old, new) = (ids(old[..left].to_vec()), ids(new[..right].to_vec()));
            let moves = moves(&old, &new);
            prop_assert_eq!(carried_out(&old, &moves), new);
        }
    }
}
