//! How a payload lies in a journal: length, checksum, bytes, padding to 8. Pure, but for the hint to the kernel.

use std::fs::File;

/// Length and checksum.
pub(super) const HEAD: usize = 12;

/// A payload with its length and checksum before it, padded.
pub(super) fn seal(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(sealed_len(payload.len()));
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&checksum(payload));
    frame.extend_from_slice(payload);
    frame.resize(sealed_len(payload.len()), 0);
    frame
}

/// How long that is.
pub(super) const fn sealed_len(payload: usize) -> usize {
    (HEAD + payload).next_multiple_of(8)
}

/// The payload at an offset, if it is whole.
pub(super) fn open(bytes: &[u8], offset: usize, bound: usize) -> Option<&[u8]> {
    let len = u32_at(bytes, offset)? as usize;
    if len == 0 || len > bound {
        return None;
    }
    let sum = bytes.get(offset + 4..offset + HEAD)?;
    let payload = bytes.get(offset + HEAD..offset + HEAD + len)?;
    (sum == checksum(payload)).then_some(payload)
}

/// Four bytes as a number.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..offset + 4)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn checksum(payload: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(payload);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hash.as_bytes()[..8]);
    sum
}

/// Starts writing dirty pages back. Only a hint that costs no wait; failure changes nothing.
#[expect(unsafe_code, reason = "rustix does not wrap sync_file_range")]
pub(super) fn start_writeback(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call takes no pointers.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 4096, libc::SYNC_FILE_RANGE_WRITE) };
}
