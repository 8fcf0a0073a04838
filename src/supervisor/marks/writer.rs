//! Writes marks, and keeps them where they belong when the log is cut. What the disk does not take is missing, no more.

use super::{Mark, NAME, RECORD, Stream};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// While marks are written anew.
const NEW: &str = ".log.marks.new";
/// Marks kept at the least, however short the log may be.
const LEAST: u64 = 64;

/// The marks of a log that is being written.
#[derive(Debug)]
pub(in crate::supervisor) struct MarkWriter {
    /// Where the log is.
    dir: OwnedFd,
    /// Made with the first mark.
    file: Option<File>,
    /// Marks in it.
    count: u64,
    /// Marks that it may have.
    most: u64,
    /// The second and the stream of the last mark.
    last: Option<(i64, Option<Stream>)>,
    /// From this byte on marks are missing.
    missed: Option<u64>,
}

impl MarkWriter {
    /// In the log's directory, for a log of at most so many bytes: half as much at the most.
    pub(in crate::supervisor) fn new(dir: OwnedFd, bound: u64) -> Self {
        let most = (bound / 2 / RECORD as u64).max(LEAST);
        Self { dir, file: None, count: 0, most, last: None, missed: None }
    }

    /// Notes that lines that begin at these bytes of the log came from there, now.
    pub(in crate::supervisor) fn note(
        &mut self,
        lines: impl IntoIterator<Item = (u64, Option<Stream>)>,
        second: i64,
    ) {
        let mut records = Vec::new();
        let mut last = self.last;
        let mut begins = None;
        for (at, stream) in lines {
            if last.replace((second, stream)) != Some((second, stream)) {
                begins.get_or_insert(at);
                records.extend(Mark { at, second: Some(second), stream }.encode());
            }
        }
        let Some(begins) = begins else { return };
        if let Some(at) = self.missed {
            records.splice(..0, Mark { at, ..Mark::default() }.encode());
        }
        if self.append(&records).is_ok() {
            (self.last, self.missed) = (last, None);
        } else {
            // The next line is told for certain, these are not.
            (self.last, self.missed) = (None, self.missed.or(Some(begins)));
        }
        if self.count > self.most {
            self.thin();
        }
    }

    /// Nothing is known of what is written from this byte on, up to the next line.
    pub(in crate::supervisor) fn unknown(&mut self, at: u64) {
        (self.last, self.missed) = (None, self.missed.or(Some(at)));
    }

    /// The log ends here: what was noted of bytes from here on is not so.
    pub(in crate::supervisor) fn end_at(&mut self, len: u64) {
        self.missed = self.missed.map(|at| at.min(len));
        let before = self.count;
        while let Some(last) = self.count.checked_sub(1) {
            if !matches!(self.mark(last), Ok(mark) if mark.at >= len) {
                break;
            }
            self.count = last;
        }
        if self.count < before {
            // What the next mark is compared with is gone.
            self.last = None;
            let kept = self.count * RECORD as u64;
            if self.file.as_ref().is_some_and(|file| file.set_len(kept).is_err()) {
                self.give_up(len);
            }
        }
    }

    /// What was between two bytes of the log is cut, and what began at the second one begins at `to`.
    pub(in crate::supervisor) fn cut(&mut self, from: u64, tail: u64, to: u64) {
        self.missed = self.missed.map(|at| if at < from { at } else { at.max(tail) - tail + to });
        if self.file.is_some() && self.write_anew(from, tail, to).is_err() {
            self.give_up(to);
        }
    }

    fn append(&mut self, records: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            // Whatever is there is none of this log's.
            let _ = unlinkat(&self.dir, NAME, AtFlags::empty());
            self.file = Some(self.create(NAME)?);
            self.count = 0;
        }
        let Some(file) = &self.file else { return Ok(()) };
        let end = self.count * RECORD as u64;
        let written = file.write_all_at(records, end);
        if written.is_err() {
            // Half of them: a reader counts by the length.
            file.set_len(end)?;
        } else {
            self.count += (records.len() / RECORD) as u64;
        }
        written
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Too many of them: as in the log, the first half is kept, and the newest.
    fn thin(&mut self) {
        match (self.mark(self.most / 2), self.mark(self.most / 4 * 3)) {
            (Ok(from), Ok(tail)) => self.cut(from.at, tail.at, tail.at),
            _ => self.give_up(0),
        }
    }

    fn mark(&self, number: u64) -> io::Result<Mark> {
        let mut record = [0; RECORD];
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        file.read_exact_at(&mut record, number * RECORD as u64)?;
        Ok(Mark::decode(record))
    }

    fn write_anew(&mut self, from: u64, tail: u64, to: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let _ = unlinkat(&self.dir, NEW, AtFlags::empty());
        let new = self.create(NEW)?;
        let mut kept = 0;
        let mut writer = BufWriter::new(&new);
        let mut keep = |mark: Mark| {
            kept += 1;
            writer.write_all(&mark.encode())
        };
        let mut records = BufReader::new(AtFile { file, at: 0 });
        let mut record = [0; RECORD];
        // What held where the second part begins.
        let mut held = Mark::default();
        let mut is_over = false;
        for _ in 0..self.count {
            records.read_exact(&mut record)?;
            let mark = Mark::decode(record);
            if mark.at < from {
                keep(mark)?;
            }
            if mark.at >= from && !is_over {
                keep(Mark { at: from, ..Mark::default() })?;
                is_over = true;
            }
            if mark.at <= tail {
                held = mark;
            } else {
                if let Some(held) = held.take_known() {
                    keep(Mark { at: to, ..held })?;
                }
                keep(Mark { at: mark.at - tail + to, ..mark })?;
            }
        }
        if !is_over {
            keep(Mark { at: from, ..Mark::default() })?;
        }
        if let Some(held) = held.take_known() {
            keep(Mark { at: to, ..held })?;
        }
        writer.flush()?;
        drop(writer);
        renameat(&self.dir, NEW, &self.dir, NAME)?;
        (self.file, self.count) = (Some(new), kept);
        Ok(())
    }

    /// Without marks until the next line.
    fn give_up(&mut self, from: u64) {
        for name in [NAME, NEW] {
            let _ = unlinkat(&self.dir, name, AtFlags::empty());
        }
        (self.file, self.count, self.last, self.missed) = (None, 0, None, Some(from));
    }
}

impl Mark {
    /// Once, if it says anything.
    fn take_known(&mut self) -> Option<Self> {
        let known = std::mem::take(self);
        known.second.map(|_| known)
    }
}

/// Reads from the beginning, whatever else is done with the file.
struct AtFile<'a> {
    file: &'a File,
    at: u64,
}

impl Read for AtFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Marks;
    use super::*;
    use std::path::Path;

    fn writer(dir: &Path, bound: u64) -> MarkWriter {
        MarkWriter::new(File::open(dir).unwrap().into(), bound)
    }

    /// Second and stream that hold at each byte.
    fn seen<const N: usize>(dir: &Path, bytes: [u64; N]) -> [Option<(i64, Option<Stream>)>; N] {
        let mut marks = Marks::new(File::open(dir.join(NAME)).unwrap()).unwrap();
        bytes.map(|byte| {
            let mark = marks.at(byte).unwrap()?;
            Some((mark.second?, mark.stream))
        })
    }

    const OUT: Option<Stream> = Some(Stream::Out);
    const ERR: Option<Stream> = Some(Stream::Err);

    #[test]
    fn a_mark_is_made_where_the_stream_or_the_second_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        marks.note([(0, OUT), (10, OUT), (20, ERR), (30, ERR)], 1);
        marks.note([(40, ERR)], 1);
        marks.note([(50, ERR)], 2);
        assert_eq!(marks.count, 3);
        let all = seen(dir.path(), [0, 15, 20, 45, 50, 999]);
        assert_eq!(all, [(1, OUT), (1, OUT), (1, ERR), (1, ERR), (2, ERR), (2, ERR)].map(Some));
    }

    #[test]
    fn marks_move_with_the_lines_of_a_log_that_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        let lines = |range: std::ops::Range<u64>| range.map(|n| (n * 10, if n % 2 == 0 { OUT } else { ERR }));
        marks.note(lines(0..100), 1);
        // A line of stderr, 650, goes on over the place where the second part begins.
        marks.cut(200, 655, 655);
        let hole = seen(dir.path(), [199, 200, 640, 655, 660, 990]);
        assert_eq!(hole, [Some((1, ERR)), None, None, Some((1, ERR)), Some((1, OUT)), Some((1, ERR))]);
        marks.note([(1000, OUT)], 2);
        marks.cut(200, 655, 255);
        let closed = seen(dir.path(), [199, 200, 254, 255, 260, 590, 600]);
        let wanted =
            [Some((1, ERR)), None, None, Some((1, ERR)), Some((1, OUT)), Some((1, ERR)), Some((2, OUT))];
        assert_eq!(closed, wanted);
    }

    #[test]
    fn nothing_is_said_of_a_gap_in_a_log_of_one_stream() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        marks.note([(0, ERR)], 1);
        marks.cut(200, 655, 655);
        marks.cut(200, 655, 255);
        assert_eq!(seen(dir.path(), [199, 200, 255]), [Some((1, ERR)), None, Some((1, ERR))]);
    }

    #[test]
    fn the_first_and_the_newest_of_too_many_marks_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 0);
        let mut most = 0;
        for n in 0..10_000 {
            marks.note([(n * 2, OUT)], n as i64);
            most = most.max(std::fs::metadata(dir.path().join(NAME)).unwrap().len());
        }
        assert!(most <= (LEAST + 1) * RECORD as u64, "{most}");
        assert_eq!(
            seen(dir.path(), [0, 2, 9_000, 19_998]),
            [Some((0, OUT)), Some((1, OUT)), None, Some((9_999, OUT))]
        );
        let newest = seen(dir.path(), [19_990]);
        assert_eq!(newest, [Some((9_995, OUT))]);
    }

    #[test]
    fn nothing_is_said_of_lines_whose_marks_the_disk_did_not_take() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        marks.note([(0, OUT)], 1);
        // A descriptor that takes nothing stands for a full disk.
        let good = marks.file.replace(File::open(dir.path().join(NAME)).unwrap());
        marks.note([(10, ERR)], 1);
        marks.note([(20, ERR)], 1);
        marks.file = good;
        marks.note([(30, ERR)], 1);
        let all = seen(dir.path(), [5, 10, 25, 30]);
        assert_eq!(all, [Some((1, OUT)), None, None, Some((1, ERR))]);
        // The log itself ends before what was missed, and a gap is marked there.
        let good = marks.file.replace(File::open(dir.path().join(NAME)).unwrap());
        marks.note([(60, OUT)], 1);
        marks.file = good;
        marks.end_at(40);
        marks.unknown(40);
        marks.note([(50, OUT)], 1);
        let all = seen(dir.path(), [35, 40, 49, 50, 99]);
        assert_eq!(all, [Some((1, ERR)), None, None, Some((1, OUT)), Some((1, OUT))]);
    }

    #[test]
    fn marks_of_bytes_that_did_not_reach_the_log_are_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        marks.note([(0, OUT), (10, ERR), (20, OUT)], 1);
        marks.end_at(30);
        assert_eq!(seen(dir.path(), [25]), [Some((1, OUT))]);
        marks.end_at(15);
        marks.note([(15, ERR)], 1);
        assert_eq!(seen(dir.path(), [0, 12, 15, 99]), [OUT, ERR, ERR, ERR].map(|stream| Some((1, stream))));
        marks.end_at(0);
        assert_eq!(seen(dir.path(), [0]), [None]);
    }

    #[test]
    fn what_lies_under_their_name_is_not_written_into() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "data").unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join(NAME)).unwrap();
        std::fs::hard_link(&precious, dir.path().join(NEW)).unwrap();
        let mut marks = writer(dir.path(), 1 << 20);
        marks.note([(0, OUT), (10, ERR)], 1);
        marks.cut(5, 7, 6);
        assert_eq!(seen(dir.path(), [0, 9]), [Some((1, OUT)), Some((1, ERR))]);
        assert_eq!(std::fs::read(&precious).unwrap(), b"data");
    }
}
