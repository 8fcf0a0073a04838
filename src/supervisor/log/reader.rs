//! Reads a log at any place, while its supervisor writes it and after.
//!
//! Bytes have the places that they have in the file. What was cut away is no part of it: a reader that comes to the hole
//! goes on behind it, in both directions, and so is nothing but zeros beside the hole, which a file system with larger
//! blocks than [`BLOCK`] leaves there.

use super::BLOCK;
use crate::beneath;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// Zeros this near to a hole are looked for: no file system has larger blocks.
const EDGE: u64 = 16 * BLOCK;
/// A log has one hole. What has many was not written by a supervisor, and is read as it is behind the last of these.
const MOST_PARTS: usize = 16;
/// The hole grows while the log is read; so often what lies in it by now is read anew.
const TRIES: usize = 8;

/// A log, open for reading.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    inode: u64,
    size: u64,
    /// Where it has bytes, in order; mostly one.
    parts: Vec<Range<u64>>,
}

/// Bytes of a log that follow each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The place of the first one.
    pub begin: u64,
    /// What is there.
    pub bytes: Vec<u8>,
    /// Nothing is before them: the log begins there, or goes on after what was cut.
    pub is_first: bool,
    /// Nothing is after them: the log ends there, or what follows was cut.
    pub is_last: bool,
}

impl Piece {
    /// The place after the last byte.
    pub const fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }
}

impl LogFile {
    /// Opens it. What is no file is not opened: a pipe in its place would be waited for without an end.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::over(beneath::named_file(path)?.0)
    }

    /// Over an open file.
    pub fn over(file: File) -> io::Result<Self> {
        let inode = file.metadata()?.ino();
        let mut log = Self { file, inode, size: 0, parts: Vec::new() };
        log.look()?;
        Ok(log)
    }

    /// The open file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Which file it is.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Its length in bytes when it was looked at last, what was cut included.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether there is something that was cut, and the parts were not put together yet.
    pub const fn has_hole(&self) -> bool {
        self.parts.len() > 1
    }

    /// Sees how long it is by now, and where it has bytes.
    pub fn look(&mut self) -> io::Result<()> {
        self.size = self.file.metadata()?.size();
        self.parts.clear();
        let mut at = 0;
        while at < self.size {
            let begin = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Err(Errno::NXIO) => break,
                // Where the file system does not tell, all of it is data.
                told => told.unwrap_or(at),
            };
            let is_capped = self.parts.len() + 1 >= MOST_PARTS;
            let end = self.hole_after(begin).filter(|_| !is_capped).unwrap_or(self.size).min(self.size);
            let part = self.without_zeros(begin, end)?;
            if !part.is_empty() {
                self.parts.push(part);
            }
            at = end.max(at + 1);
        }
        Ok(())
    }

    /// The next bytes at a place or behind it, at most so many. None are left where it begins at the log's size.
    pub fn after(&mut self, place: u64, most: usize) -> io::Result<Piece> {
        self.read(|log| {
            let Some(part) = log.parts.iter().find(|part| part.end > place) else {
                return log.size..log.size;
            };
            let begin = part.start.max(place);
            begin..part.end.min(begin.saturating_add(most as u64))
        })
    }

    /// The bytes just before a place, at most so many. None are left where it begins at 0.
    pub fn before(&mut self, place: u64, most: usize) -> io::Result<Piece> {
        self.read(|log| {
            let Some(part) = log.parts.iter().rfind(|part| part.start < place) else { return 0..0 };
            let end = part.end.min(place);
            part.start.max(end.saturating_sub(most as u64))..end
        })
    }

    fn read(&mut self, wanted: impl Fn(&Self) -> Range<u64>) -> io::Result<Piece> {
        for _ in 1..TRIES {
            let range = wanted(self);
            let piece = self.piece(range.clone())?;
            if self.hole_after(range.start).is_none_or(|hole| hole >= range.end) {
                return Ok(piece);
            }
            self.look()?;
        }
        self.piece(wanted(self))
    }

    fn piece(&self, range: Range<u64>) -> io::Result<Piece> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
        let got = read_whole(&self.file, &mut bytes, range.start)?;
        bytes.truncate(got);
        Ok(Piece {
            begin: range.start,
            bytes,
            is_first: range.start == 0 || self.parts.iter().any(|part| part.start == range.start),
            // Cut off while it was read: it is seen to be shorter at the next look.
            is_last: range.end >= self.size || self.parts.iter().any(|part| part.end == range.end),
        })
    }

    /// Where the next hole begins, the one after the end included; `None` where the file system does not tell.
    fn hole_after(&self, place: u64) -> Option<u64> {
        rustix::fs::seek(&self.file, SeekFrom::Hole(place)).ok()
    }

    /// A part without the zeros that were left of it beside a hole.
    fn without_zeros(&self, begin: u64, end: u64) -> io::Result<Range<u64>> {
        let mut edge = vec![0; (end - begin).min(EDGE) as usize];
        let zeros =
            |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| **byte == 0).count() as u64;
        let (mut from, mut to) = (begin, end);
        if begin > 0 {
            let got = read_whole(&self.file, &mut edge, begin)?;
            from += zeros(&mut edge[..got].iter());
        }
        if end < self.size && from < end {
            let beside = end - edge.len() as u64;
            let got = read_whole(&self.file, &mut edge, beside)?;
            to = from.max(end - zeros(&mut edge[..got].iter().rev()));
        }
        Ok(from..to)
    }
}

/// Reads from a place until the buffer is full or the file ends; how much.
fn read_whole(file: &File, bytes: &mut [u8], from: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], from + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};

    fn forward(log: &mut LogFile, most: usize) -> Vec<u8> {
        let (mut all, mut place) = (Vec::new(), 0);
        loop {
            let piece = log.after(place, most).unwrap();
            if piece.bytes.is_empty() {
                return all;
            }
            assert!(piece.begin >= place && piece.bytes.len() <= most);
            place = piece.end();
            all.extend(piece.bytes);
        }
    }

    fn backward(log: &mut LogFile, most: usize) -> Vec<u8> {
        let (mut all, mut place) = (Vec::new(), log.size());
        loop {
            let piece = log.before(place, most).unwrap();
            if piece.bytes.is_empty() {
                return all;
            }
            assert!(piece.end() <= place && piece.bytes.len() <= most);
            place = piece.begin;
            all.splice(..0, piece.bytes);
        }
    }

    fn punch(file: &File, from: u64, to: u64) -> bool {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let is_punched = fallocate(file, hole, from, to - from).is_ok();
        if !is_punched {
            println!("SKIPPED: the file system makes no holes");
        }
        is_punched
    }

    #[test]
    fn what_was_cut_is_skipped_both_ways_and_zeros_that_were_printed_are_not() {
        let file = tempfile::tempfile().unwrap();
        let mark = b"\n--- overnight: 3.0 MiB of the log were cut here ---\n";
        let mut log = LogFile::over(file.try_clone().unwrap()).unwrap();
        for head in [4096, 65_536, 65_536 + 4096, 3 * 65_536] {
            let before = vec![b'a'; head as usize];
            let tail = b"b\0\0\0c".repeat(40_000);
            file.set_len(0).unwrap();
            file.write_all_at(&before, 0).unwrap();
            file.write_all_at(&vec![b'x'; 4 << 20], head).unwrap();
            file.write_all_at(&tail, head + (4 << 20)).unwrap();
            if !punch(&file, head, head + (4 << 20)) {
                return;
            }
            file.write_all_at(mark, head).unwrap();
            log.look().unwrap();
            assert!(log.has_hole());
            let all = [&before[..], mark, &tail].concat();
            for most in [1000, 1 << 16, 1 << 20] {
                assert!(forward(&mut log, most) == all, "{head} {most}");
                assert!(backward(&mut log, most) == all, "{head} {most}");
            }
        }
    }

    #[test]
    fn zeros_that_a_file_system_with_larger_blocks_leaves_beside_a_hole_are_no_part_of_it() {
        let file = tempfile::tempfile().unwrap();
        let (head, tail) = (b"head\n".repeat(1000), b"tail\n".repeat(1000));
        file.write_all_at(&head, 0).unwrap();
        file.write_all_at(&vec![0; 4 << 20], head.len() as u64).unwrap();
        file.write_all_at(&tail, 4 << 20).unwrap();
        // Blocks of 64 KiB: the hole is smaller than what was cut.
        if !punch(&file, 1 << 16, (4 << 20) - (1 << 15)) {
            return;
        }
        let mut log = LogFile::over(file).unwrap();
        assert!(forward(&mut log, 1 << 16) == [head, tail].concat());
        let last = log.before(4 << 20, 10).unwrap();
        assert_eq!((last.begin, &last.bytes[..], last.is_last), (4990, b"head\nhead\n" as &[u8], true));
        let first = log.after(5000, 5).unwrap();
        assert_eq!((first.begin, &first.bytes[..], first.is_first), (4 << 20, b"tail\n" as &[u8], true));
    }

    #[test]
    fn what_is_cut_while_it_is_read_is_not_read_as_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&b"0123456789abcde\n".repeat(1 << 16), 0).unwrap();
        let mut log = LogFile::over(file.try_clone().unwrap()).unwrap();
        for cut in [4096, 8192, 1 << 19] {
            if !punch(&file, 4096, 4096 + cut) {
                return;
            }
            let piece = log.after(4096, 16).unwrap();
            assert_eq!((piece.begin, piece.bytes.len(), piece.is_first), (4096 + cut, 16, true));
            assert_eq!(log.before(4096 + cut, 16).unwrap().end(), 4096);
        }
    }

    #[test]
    fn a_file_of_many_holes_is_read_to_its_end() {
        let file = tempfile::tempfile().unwrap();
        for n in 0..100_u64 {
            file.write_all_at(b"x", n << 20).unwrap();
        }
        file.set_len(200 << 20).unwrap();
        let mut log = LogFile::over(file).unwrap();
        let read = forward(&mut log, 1 << 20);
        assert_eq!(read.split(|byte| *byte == b'x').count(), 101);
        assert!(backward(&mut log, 1 << 20) == read);
        file_that_shrank_ends(log);
    }

    fn file_that_shrank_ends(mut log: LogFile) {
        log.file.set_len(3).unwrap();
        assert_eq!(log.after(3, 10).unwrap().bytes, b"");
        assert_eq!(log.before(3, 10).unwrap().begin, 0);
    }
}
