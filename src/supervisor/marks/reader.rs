//! Finds marks by place, in a file of any length.

use super::{Mark, RECORD};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Marks read at a time: lines that follow each other are mostly told by one reading.
const BLOCK: u64 = 256;

/// The marks of a log, as long as they were when it was opened.
#[derive(Debug)]
pub struct Marks {
    file: File,
    count: u64,
    /// The block read last: its number and its marks.
    block: (u64, Vec<Mark>),
}

impl Marks {
    /// Over an open file.
    pub fn new(file: File) -> io::Result<Self> {
        let count = file.metadata()?.len() / RECORD as u64;
        Ok(Self { file, count, block: (u64::MAX, Vec::new()) })
    }

    /// What holds at a byte of the log: the last mark that is not after it.
    pub fn at(&mut self, byte: u64) -> io::Result<Option<Mark>> {
        if self.count == 0 {
            return Ok(None);
        }
        if !self.is_in_block(byte) {
            // The last block that begins no later.
            let (mut low, mut high) = (0, self.count.div_ceil(BLOCK));
            while high - low > 1 {
                let middle = low.midpoint(high);
                if self.first(middle)?.at <= byte { low = middle } else { high = middle }
            }
            self.block = (low, self.read(low * BLOCK, BLOCK)?);
        }
        let marks = &self.block.1;
        Ok(marks.partition_point(|mark| mark.at <= byte).checked_sub(1).and_then(|at| marks.get(at).copied()))
    }

    /// Whether the answer is certainly in the block on hand.
    fn is_in_block(&self, byte: u64) -> bool {
        let (number, marks) = &self.block;
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else { return false };
        let is_last = (number + 1) * BLOCK >= self.count;
        first.at <= byte && (is_last || byte < last.at)
    }

    fn first(&self, block: u64) -> io::Result<Mark> {
        self.read(block * BLOCK, 1)?.first().copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn read(&self, from: u64, count: u64) -> io::Result<Vec<Mark>> {
        let count = count.min(self.count.saturating_sub(from)) as usize;
        let mut bytes = vec![0; count * RECORD];
        self.file.read_exact_at(&mut bytes, from * RECORD as u64)?;
        let (records, _) = bytes.as_chunks();
        Ok(records.iter().copied().map(Mark::decode).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stream;
    use super::*;
    use std::io::Write as _;

    fn file(marks: impl IntoIterator<Item = Mark>) -> Marks {
        let mut file = tempfile::tempfile().unwrap();
        for mark in marks {
            file.write_all(&mark.encode()).unwrap();
        }
        Marks::new(file).unwrap()
    }

    #[test]
    fn every_byte_has_the_last_mark_before_it() {
        for count in [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7] {
            let stream = Some(Stream::Err);
            let mut marks = file((0..count).map(|n| Mark { at: 5 + 10 * n, second: Some(n as i64), stream }));
            for byte in (0..10 * count + 20).chain((0..10 * count + 20).rev()) {
                let wanted = byte.checked_sub(5).map(|after| ((after / 10).min(count - 1)) as i64);
                let found = marks.at(byte).unwrap().and_then(|mark| mark.second);
                assert_eq!(found, wanted, "{byte} of {count}");
            }
        }
    }

    #[test]
    fn a_file_without_order_or_end_is_read_without_harm() {
        assert_eq!(file([]).at(7).unwrap(), None);
        let mut marks = file([9, 3, 9, 0, u64::MAX].map(|at| Mark { at, ..Mark::default() }));
        marks.file.write_all(b"half a rec").unwrap();
        for byte in [0, 3, 9, u64::MAX] {
            marks.at(byte).unwrap();
        }
        marks.file.set_len(3).unwrap();
        marks.block = (u64::MAX, Vec::new());
        marks.at(9).unwrap_err();
    }
}
