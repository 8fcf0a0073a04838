//! Takes what the work printed. Bytes that the disk does not take are counted, and the gap is marked as soon as the disk
//! takes bytes again.

use super::{BLOCK, MARK};
use crate::model::Bytes;
use crate::supervisor::marks::{MarkWriter, Stream};
use crate::supervisor::streams::Printed;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

const COPY: usize = 64 << 10;

/// The log, open for writing.
#[derive(Debug)]
pub(in crate::supervisor) struct Log {
    file: File,
    bound: u64,
    /// End of the first part.
    head: u64,
    /// Start of the newest part that is kept; `head` while nothing is cut.
    tail: u64,
    /// Length of the file.
    len: u64,
    /// Bytes that could not be written since the last one that could, and why.
    lost: u64,
    why: String,
    /// Bytes that could not be written in all.
    lost_in_all: u64,
    /// The file system makes no holes: what is beyond the bound is dropped.
    solid: bool,
    marks: MarkWriter,
    /// The next byte begins a line, or a progress bar's next state.
    begins: bool,
}

impl Log {
    /// Opens it; what is already there stays.
    pub(in crate::supervisor) fn open(path: &Path, bound: Bytes) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        let meta = file.metadata()?;
        // An earlier attempt may have put anything there; what has another name is not ours to write into.
        if !meta.is_file() || meta.nlink() > 1 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file of its own"));
        }
        let len = meta.len();
        let bound = bound.0.max(16 * BLOCK);
        let head = (bound / 2).next_multiple_of(BLOCK);
        let dir = File::open(path.parent().unwrap_or(path))?;
        Ok(Self {
            file,
            bound,
            head,
            tail: head,
            len,
            lost: 0,
            why: String::new(),
            lost_in_all: 0,
            solid: false,
            marks: MarkWriter::new(dir.into(), bound),
            begins: true,
        })
    }

    /// Takes what the work printed, now. Never fails: what does not reach the disk is counted.
    pub(in crate::supervisor) fn write(&mut self, printed: &Printed, wall_ms: i64) {
        let bytes = printed.bytes();
        if self.solid && self.len + bytes.len() as u64 > self.bound {
            self.lose(bytes.len(), "the log's bound");
            return;
        }
        if self.lost > 0 && !self.mark_gap() {
            self.lost += bytes.len() as u64;
            self.lost_in_all += bytes.len() as u64;
            return;
        }
        let end = self.len + bytes.len() as u64;
        self.marks.note(lines(printed, self.len, &mut self.begins), wall_ms.div_euclid(1000));
        self.put(bytes);
        if self.len < end {
            self.marks.end_at(self.len);
        }
        if self.head + self.len.saturating_sub(self.tail) > self.bound {
            self.cut();
        }
    }

    /// Closes the gap in the middle and marks it.
    pub(in crate::supervisor) fn finish(&mut self) {
        if self.lost > 0 {
            self.solid = false;
            if !self.mark_gap() {
                self.mark_over();
            }
        }
        if self.tail == self.head {
            return;
        }
        let mark = self.cut_mark();
        let Ok(()) = self.file.write_all_at(&mark, self.head) else { return };
        let mut to = self.head + mark.len() as u64;
        let mut from = self.tail;
        let mut buffer = vec![0; COPY];
        while from < self.len {
            let Ok(n @ 1..) = self.file.read_at(&mut buffer, from) else { break };
            let Ok(()) = self.file.write_all_at(&buffer[..n], to) else { return };
            from += n as u64;
            to += n as u64;
        }
        if self.file.set_len(to).is_ok() {
            self.marks.cut(self.head, self.tail, self.head + mark.len() as u64);
            self.len = to;
            self.tail = self.head;
        }
    }

    /// The last bytes of it, for hints.
    pub(in crate::supervisor) fn last(&self, count: usize) -> Vec<u8> {
        let from = self.len.saturating_sub(count as u64);
        let mut buffer = vec![0; (self.len - from) as usize];
        let read = self.file.read_at(&mut buffer, from).unwrap_or(0);
        buffer.truncate(read);
        buffer
    }

    /// For the receipt: that something is missing.
    pub(in crate::supervisor) fn note(&self) -> Option<String> {
        (self.lost_in_all > 0)
            .then(|| format!("{} of the log are lost: {}", Bytes(self.lost_in_all), self.why))
    }

    /// Marks the gap at the end over the last bytes that are there: a disk that takes no more bytes takes others in
    /// their place.
    fn mark_over(&mut self) {
        let room = self.gap_mark().len() as u64;
        if let Some(from) =
            self.len.checked_sub(room).filter(|from| self.tail == self.head || *from >= self.tail)
        {
            self.lost += room;
            let mark = self.gap_mark();
            // One digit more may not fit any more.
            let end = mark.len().min(room as usize);
            let _ = self.file.write_all_at(&mark[..end], from);
        }
    }

    fn gap_mark(&self) -> Vec<u8> {
        format!("\n{MARK}{} of the log are lost here: {} ---\n", Bytes(self.lost), self.why).into_bytes()
    }

    fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.file.write_at(bytes, self.len) {
                Ok(0) => return self.lose(bytes.len(), "the disk takes no bytes"),
                Ok(n) => {
                    self.len += n as u64;
                    bytes = &bytes[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.lose(bytes.len(), &error.to_string()),
            }
        }
    }

    fn lose(&mut self, count: usize, why: &str) {
        self.lost += count as u64;
        self.lost_in_all += count as u64;
        if self.why != why {
            why.clone_into(&mut self.why);
        }
    }

    fn mark_gap(&mut self) -> bool {
        let mark = self.gap_mark();
        let written = self.file.write_all_at(&mark, self.len).is_ok();
        if written {
            self.marks.unknown(self.len);
            self.begins = true;
            self.len += mark.len() as u64;
            self.lost = 0;
        }
        written
    }

    /// Drops the oldest part after the head, an eighth of the bound more than it must so that it is not at it all the
    /// time.
    fn cut(&mut self) {
        let keep = self.bound - self.head - self.bound / 8;
        let from = (self.len - keep) / BLOCK * BLOCK;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, hole, self.tail, from - self.tail) {
            Ok(()) => {}
            // At the next writing.
            Err(Errno::INTR | Errno::NOSPC) => return,
            Err(_) => {
                self.solid = true;
                return;
            }
        }
        self.tail = from;
        self.marks.cut(self.head, from, from);
        let mark = self.cut_mark();
        // For whoever reads the file while the run lasts.
        let _ = self.file.write_all_at(&mark, self.head);
    }

    fn cut_mark(&self) -> Vec<u8> {
        format!(
            "\n{MARK}{} of the log were cut here; it may have {} ---\n",
            Bytes(self.tail - self.head),
            Bytes(self.bound)
        )
        .into_bytes()
    }
}

/// Where lines begin in what was printed, the first one of each piece of a stream: the others are like it. Written from
/// a byte of the log on.
fn lines(printed: &Printed, from: u64, begins: &mut bool) -> Vec<(u64, Option<Stream>)> {
    let mut found = Vec::new();
    for (at, stream, piece) in printed.runs() {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let first = if *begins { Some(0) } else { piece.iter().position(is_end).map(|end| end + 1) };
        *begins = piece.last().map_or(*begins, is_end);
        found.extend(
            first.filter(|first| *first < piece.len()).map(|first| (from + (at + first) as u64, stream)),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::marks::{Marks, NAME};

    #[test]
    fn what_is_no_file_of_its_own_is_not_written_into() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "data").unwrap();
        let path = dir.path().join("log.txt");
        std::fs::hard_link(&precious, &path).unwrap();
        Log::open(&path, Bytes::mib(1)).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        Log::open(&path, Bytes::mib(1)).unwrap_err();
        assert_eq!(std::fs::read(&precious).unwrap(), b"data");
    }

    #[test]
    fn a_short_log_is_kept_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.txt");
        let mut log = Log::open(&path, Bytes::mib(1)).unwrap();
        log.write(&Printed::of(Some(Stream::Out), b"one\n"), 1_000);
        log.write(&Printed::of(Some(Stream::Err), b"two\n"), 1_000);
        assert_eq!(log.last(4), b"two\n");
        log.finish();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_long_log_keeps_its_head_and_its_newest_lines_and_says_what_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.txt");
        let bound = Bytes::mib(1);
        let mut log = Log::open(&path, bound).unwrap();
        let lines = 400_000;
        let mut most_blocks = 0;
        for n in 0..lines {
            let stream = if n % 40 < 20 { Stream::Err } else { Stream::Out };
            log.write(&Printed::of(Some(stream), format!("line {n}\n").as_bytes()), n * 10);
            if n % 10_000 == 0 {
                most_blocks = most_blocks.max(std::fs::metadata(&path).unwrap().blocks() * 512);
            }
        }
        log.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("line 0\nline 1\n"));
        assert!(text.ends_with(&format!("line {}\n", lines - 1)));
        assert_eq!(text.matches("--- overnight:").count(), 1);
        assert!(!text.contains('\0'));
        assert!(text.len() as u64 <= bound.0 + 200, "{}", text.len());
        assert!(most_blocks <= bound.0 * 5 / 4, "{most_blocks} bytes on disk while it was written");
        // Marks went with their lines.
        let mut marks = Marks::new(File::open(dir.path().join(NAME)).unwrap()).unwrap();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let mark = marks.at(at + line.len() as u64 - 2).unwrap().unwrap();
            if let Some(n) = line.strip_prefix("line ").and_then(|n| n.trim().parse::<i64>().ok()) {
                let stream = if n % 40 < 20 { Stream::Err } else { Stream::Out };
                // Half of one on either side of the gap.
                let end = at as usize + line.len();
                let is_cut = text[..at as usize].ends_with(" ---\n") || text[end..].starts_with("---");
                assert!(
                    is_cut || mark.stream == Some(stream) && mark.second.unwrap() == n / 100,
                    "{n} {mark:?}"
                );
            } else if line.starts_with("--- overnight:") {
                assert_eq!(mark.stream, None);
            }
            at += line.len() as u64;
        }
        // Nothing but the marked gap is missing: both sides are consecutive.
        let (head, tail) = text.split_once("\n--- overnight:").unwrap();
        for part in [head, tail.split_once(" ---\n").unwrap().1] {
            let numbers: Vec<u32> =
                part.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok()).collect();
            let inner = &numbers[1..numbers.len() - 1];
            assert!(inner.len() > 1000);
            assert!(inner.windows(2).all(|pair| pair[1] == pair[0] + 1));
        }
    }
}
