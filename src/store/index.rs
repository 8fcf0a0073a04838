//! Keys of the index: one table of byte strings that sort as they are asked for.

use crate::model::DropIdent;

/// Sorts after every real time: what is not over yet.
pub(super) const OPEN: i64 = i64::MAX;

/// Jobs by when they were done; [`OPEN`] for those that are not.
pub(super) fn job(done_ms: i64, job: u64) -> [u8; 17] {
    timed(b'j', done_ms, job)
}

/// Leases by when they ended; [`OPEN`] for those that have not been returned.
pub(super) fn lease(ended_ms: i64, lease: u64) -> [u8; 17] {
    timed(b'l', ended_ms, lease)
}

/// Events by job.
pub(super) fn event(job: u64, seq: u64) -> [u8; 17] {
    key(b'e', job, seq)
}

/// Submissions by drop.
pub(super) fn dropped(ident: &DropIdent) -> Vec<u8> {
    format!("d{:x}:{:x}:{:x}:{}", ident.dev, ident.ino, ident.ctime_ns, ident.hash).into_bytes()
}

/// The two numbers of a key.
pub(super) fn parts(key: &[u8]) -> Option<(u64, u64)> {
    let key: &[u8; 17] = key.try_into().ok()?;
    let (first, second) = key[1..].split_at(8);
    Some((u64::from_be_bytes(first.try_into().ok()?), u64::from_be_bytes(second.try_into().ok()?)))
}

fn timed(tag: u8, ms: i64, id: u64) -> [u8; 17] {
    // Flipping the sign makes negative times sort before positive ones.
    key(tag, (ms as u64) ^ (1 << 63), id)
}

fn key(tag: u8, first: u64, second: u64) -> [u8; 17] {
    let mut key = [tag; 17];
    key[1..9].copy_from_slice(&first.to_be_bytes());
    key[9..].copy_from_slice(&second.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_time_and_then_by_number() {
        let keys = [job(-5, 9), job(0, 1), job(7, 1), job(7, 2), job(OPEN, 0), lease(i64::MIN, 0)];
        assert!(keys.is_sorted());
        assert_eq!(parts(&event(3, 4)), Some((3, 4)));
        assert_eq!(parts(b"short"), None);
    }
}
