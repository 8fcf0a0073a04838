//! Where the lines of a log came from, and when: a file beside the log. The supervisor writes it, the dashboard reads it.
//!
//! There is a mark where a line, or a progress bar's next state, comes from another stream or in another second than what
//! is before it: twelve bytes, little-endian. The lowest 56 bits are the byte of the log, two more the stream, the rest
//! the wall clock's second. The bytes of the log only grow, so that a reader finds its place in a file of any length.
//!
//! A mark is written before the bytes it is about: who reads the log first and then the marks has those of all its lines.
//! A line belongs to the stream that began it.
//!
//! Nothing depends on marks. The log is whole without them, and where they are missing nothing is said of a line.

mod reader;
mod writer;

pub use reader::Marks;
pub(super) use writer::MarkWriter;

/// The file's name, beside `log.txt`.
pub const NAME: &str = "log.marks";

/// Bytes of a mark in the file.
const RECORD: usize = 12;

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
    /// When it was printed: seconds of the wall clock.
    pub second: Option<i64>,
    /// Where it came from.
    pub stream: Option<Stream>,
}

/// Bits of the byte, and of the byte with the stream.
const AT_BITS: u32 = 56;
const STREAM_BITS: u32 = 58;

impl Mark {
    fn encode(self) -> [u8; RECORD] {
        let stream = match (self.second, self.stream) {
            (None, _) => 0,
            (Some(_), Some(Stream::Out)) => 1,
            (Some(_), Some(Stream::Err)) => 2,
            (Some(_), None) => 3,
        };
        // Clocks before 1970 are not told apart from 1970.
        let second = u128::try_from(self.second.unwrap_or(0)).unwrap_or(0);
        let word = u128::from(self.at) & ((1 << AT_BITS) - 1) | stream << AT_BITS | second << STREAM_BITS;
        let mut record = [0; RECORD];
        record.copy_from_slice(&word.to_le_bytes()[..RECORD]);
        record
    }

    fn decode(record: [u8; RECORD]) -> Self {
        let mut word = [0; 16];
        word[..RECORD].copy_from_slice(&record);
        let word = u128::from_le_bytes(word);
        let at = (word & ((1 << AT_BITS) - 1)) as u64;
        let second = i64::try_from(word >> STREAM_BITS).ok();
        let (second, stream) = match word >> AT_BITS & 3 {
            1 => (second, Some(Stream::Out)),
            2 => (second, Some(Stream::Err)),
            3 => (second, None),
            _ => (None, None),
        };
        Self { at, second, stream }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for stream in [None, Some(Stream::Out), Some(Stream::Err)] {
            for second in [0, 1, 1_796_080_345, (1 << 38) - 1] {
                let mark = Mark { at: (7 << 40) + 1, second: Some(second), stream };
                assert_eq!(Mark::decode(mark.encode()), mark);
            }
        }
        let nothing = Mark { at: 9, ..Mark::default() };
        assert_eq!(Mark::decode(nothing.encode()), nothing);
    }
}
