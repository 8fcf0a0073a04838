//! Where the lines of a log came from, and when: a file beside the log. The supervisor writes it, the dashboard reads it.
//!
//! There is a mark where a line, or a progress bar's next state, comes from another stream or in another second than what
//! is before it: two little-endian words, the byte of the log, and the wall clock's milliseconds with the stream in the
//! two lowest bits. The bytes only grow, so that a reader finds its place in a file of any length.
//!
//! Nothing depends on marks. The log is whole without them, and where they are missing nothing is said of a line.

mod reader;
mod writer;

pub use reader::Marks;
pub(super) use writer::MarkWriter;

/// The file's name, beside `log.txt`.
pub const NAME: &str = "log.marks";

/// Bytes of a mark in the file.
const RECORD: usize = 16;

/// One of the two streams that a program prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What is known of a log from a byte on, up to the next mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The byte at which a line begins.
    pub at: u64,
    /// When it was printed: wall milliseconds.
    pub wall_ms: Option<i64>,
    /// Where it came from.
    pub stream: Option<Stream>,
}

impl Mark {
    fn encode(self) -> [u8; RECORD] {
        let stream = match (self.wall_ms, self.stream) {
            (None, _) => 0,
            (Some(_), Some(Stream::Out)) => 1,
            (Some(_), Some(Stream::Err)) => 2,
            (Some(_), None) => 3,
        };
        // Clocks before 1970 are not told apart from 1970.
        let wall_ms = u64::try_from(self.wall_ms.unwrap_or(0)).unwrap_or(0);
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&self.at.to_le_bytes());
        record[8..].copy_from_slice(&(wall_ms << 2 | stream).to_le_bytes());
        record
    }

    fn decode(record: [u8; RECORD]) -> Self {
        let [at, what] = [0, 8].map(|from| {
            let mut word = [0; 8];
            word.copy_from_slice(&record[from..from + 8]);
            u64::from_le_bytes(word)
        });
        let wall_ms = i64::try_from(what >> 2).ok();
        let (wall_ms, stream) = match what & 3 {
            1 => (wall_ms, Some(Stream::Out)),
            2 => (wall_ms, Some(Stream::Err)),
            3 => (wall_ms, None),
            _ => (None, None),
        };
        Self { at, wall_ms, stream }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for stream in [None, Some(Stream::Out), Some(Stream::Err)] {
            for wall_ms in [0, 1, 1_796_080_345_678] {
                let mark = Mark { at: 7 << 32, wall_ms: Some(wall_ms), stream };
                assert_eq!(Mark::decode(mark.encode()), mark);
            }
        }
        let nothing = Mark { at: 9, ..Mark::default() };
        assert_eq!(Mark::decode(nothing.encode()), nothing);
    }
}
