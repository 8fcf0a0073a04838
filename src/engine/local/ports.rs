//! Ports for the work: a block of its own for every lease, so that our jobs do not clash with each other.

use crate::model::LeaseId;
use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};

/// Below the range from which the kernel hands out ports by itself.
const FIRST: u16 = 20_000;
const BLOCKS: u64 = 768;
/// Ten for the work, one for `MASTER_PORT`, rounded up.
const BLOCK: u16 = 16;
/// `MASTER_PORT` within a block.
pub(super) const MASTER: u16 = 10;

/// Which lease has which block.
#[derive(Debug, Default)]
pub(super) struct Ports {
    blocks: HashMap<LeaseId, u64>,
    /// Looked for off the path of a launch, and free when it was.
    ahead: Option<u64>,
}

impl Ports {
    /// The first port of a lease's block; the same every time it is asked.
    pub(super) fn take(&mut self, lease: LeaseId, uid: u32) -> u16 {
        if let Some(block) = self.blocks.get(&lease) {
            return port(*block);
        }
        let block = self.ahead.take().unwrap_or_else(|| self.look(lease, uid));
        self.blocks.insert(lease, block);
        port(block)
    }

    /// Looks for the block of the lease after this one.
    pub(super) fn look_ahead(&mut self, lease: LeaseId, uid: u32) {
        self.ahead = Some(self.look(lease.next(), uid));
    }

    fn look(&self, lease: LeaseId, uid: u32) -> u64 {
        // Schedulers of several accounts start at different places.
        let from = lease.0.wrapping_add(u64::from(uid).wrapping_mul(97));
        let candidates = (0..BLOCKS).map(|step| from.wrapping_add(step) % BLOCKS);
        candidates
            .filter(|block| !self.blocks.values().any(|taken| taken == block))
            .take(16)
            .find(|block| is_free(port(*block)))
            .unwrap_or(from % BLOCKS)
    }

    /// The lease is over.
    pub(super) fn give_back(&mut self, lease: LeaseId) {
        self.blocks.remove(&lease);
    }
}

const fn port(block: u64) -> u16 {
    FIRST + block as u16 * BLOCK
}

/// Whether all of the block can be had now.
fn is_free(first: u16) -> bool {
    (first..=first + MASTER).all(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lease_has_its_own_block_and_keeps_it() {
        let mut ports = Ports::default();
        let first = ports.take(LeaseId(1), 0);
        let second = ports.take(LeaseId(1 + BLOCKS), 0);
        assert!(first.abs_diff(second) >= BLOCK);
        assert_eq!(ports.take(LeaseId(1), 0), first);
        assert!(first >= FIRST && u32::from(first) + u32::from(BLOCK) <= 32_768);
    }

    #[test]
    fn a_block_with_a_port_in_use_is_passed_over() {
        let mut ports = Ports::default();
        let first = ports.take(LeaseId(300), 0);
        ports.give_back(LeaseId(300));
        let _taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, first + 3)).unwrap();
        assert_ne!(ports.take(LeaseId(300), 0), first);
    }
}
