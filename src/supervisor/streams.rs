//! What the work prints: its standard output and its standard error, told apart, in the order in which they were written.
//!
//! Two pipes that are read when they are ready lose the order between them. So each write is a packet of its own
//! (`O_DIRECT` in pipe(2)), and a queued signal says which pipe it went into (`F_SETSIG` in fcntl(2)); signals of one
//! number come in the order in which they were sent (signal(7)).
//!
//! Two things a signal does not say. A write of more than a page is several packets: full ones are read together with
//! what follows them. And a writer that finds its pipe full makes one signal more. Those are known by their place: the
//! signals are taken, then all that is in a pipe is moved aside at once, and only then does the writer go on. So what
//! was signalled is there, and a signal for which nothing is left was of a full pipe. One that is sent between the two
//! steps is taken for a write: after 64 writes that nobody has read, a line may come before an earlier one of the other
//! stream. What was written to one stream keeps its order always, and is known to be of it.
//!
//! Whoever opens `/dev/stderr` anew writes no packets: while nobody reads, such writes join those after them in the same
//! pipe. Where the kernel has no such signals, or the user's pipes have all the memory that they may have, both streams
//! share one pipe, and nothing is said of where a line came from.

use super::marks::Stream;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Commands of fcntl(2) that the C library's crate does not have for every machine.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;
/// signalfd(2): the size of what it tells of one signal, and where the number and the descriptor are in it.
const TOLD: usize = 128;
const SIGNAL_AT: usize = 0;
const DESCRIPTOR_AT: usize = 20;
/// Signals taken at a time, and how many times: a writer that is told to come again, and does at once, sends them without
/// an end until its pipe is cleared.
const SIGNALS: usize = 32;
const TAKEN: usize = 64;
/// Sizes for what is moved aside, the first that is allowed: all pipes of a user without privileges have a bound. The
/// pipe that is written into has half of it, and holds as many writes as that has pages.
const SIZES: [usize; 2] = [512 << 10, 256 << 10];
/// What is read, and handed on, at a time.
const BUFFER: usize = 16 << 10;

/// The ends that are read.
#[derive(Debug)]
pub(super) struct Streams {
    source: Source,
    printed: Printed,
    buffer: Buffer,
}

/// What one reading reads into.
#[derive(Debug)]
struct Buffer(Vec<u8>);

impl Buffer {
    /// For so many bytes that are there: a reading goes on over what is no packet into the next one, and what has no room
    /// of that is lost.
    fn of(&mut self, bytes: usize) -> &mut [u8] {
        if self.0.len() < bytes {
            self.0.resize(bytes, 0);
        }
        &mut self.0
    }

    /// Gives back what only a flood needs.
    fn shrink(&mut self) {
        if self.0.len() > BUFFER {
            self.0 = vec![0; BUFFER];
        }
    }
}

/// The ends that are written into.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
}

#[derive(Debug)]
enum Source {
    /// A pipe each, and the descriptor on which their signals are read.
    Apart { pipes: [Pipe; 2], signals: OwnedFd },
    /// One for both, until nobody can write any more.
    Together(Option<OwnedFd>),
}

/// A pipe whose writes are told by signals.
#[derive(Debug)]
struct Pipe {
    stream: Stream,
    fd: OwnedFd,
    /// What was moved aside: where it is read, and where it is put.
    aside: OwnedFd,
    put: OwnedFd,
    /// Bytes of each move that are still aside.
    moves: VecDeque<usize>,
    /// Nobody can write any more.
    is_over: bool,
    /// Writes that were read before their signals came.
    ahead: usize,
}

/// What was read, and where it came from.
#[derive(Debug, Default)]
pub(super) struct Printed {
    bytes: Vec<u8>,
    /// Where in the bytes another stream begins, in order; the first one at 0.
    runs: Vec<(usize, Option<Stream>)>,
}

/// Signals that were taken.
#[derive(Debug, Default)]
struct Told {
    /// The pipes they name, in order.
    pipes: Vec<RawFd>,
    /// There were more than can be queued, or than are taken.
    is_overrun: bool,
}

impl Printed {
    #[cfg(test)]
    pub(super) fn of(stream: Option<Stream>, bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), runs: vec![(0, stream)] }
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Pieces of one stream each: where each begins, whose it is, what it has.
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, Option<Stream>, &[u8])> {
        let ends = self.runs.iter().skip(1).map(|(from, _)| *from).chain([self.bytes.len()]);
        self.runs.iter().zip(ends).map(|((from, stream), end)| (*from, *stream, &self.bytes[*from..end]))
    }

    fn add(&mut self, stream: Option<Stream>, bytes: &[u8]) {
        if self.runs.last().is_none_or(|(_, last)| *last != stream) {
            self.runs.push((self.bytes.len(), stream));
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn hand_on(&mut self, take: &mut impl FnMut(&Self)) {
        if !self.bytes.is_empty() {
            take(self);
            self.bytes.clear();
            self.runs.clear();
        }
    }
}

impl Streams {
    /// Makes them. The thread that makes them is the one that reads.
    pub(super) fn make() -> io::Result<(Self, Ends)> {
        Self::apart().or_else(|_| Self::together())
    }

    fn apart() -> io::Result<(Self, Ends)> {
        let signal = libc::SIGRTMIN();
        let signals = signals(signal)?;
        let (first, out) = Pipe::make(Stream::Out, signal)?;
        let (second, err) = Pipe::make(Stream::Err, signal)?;
        // Of pipes that had these numbers before.
        told(&signals);
        Ok((Self::of(Source::Apart { pipes: [first, second], signals }), Ends { out, err }))
    }

    fn together() -> io::Result<(Self, Ends)> {
        let (pipe, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let err = out.try_clone()?;
        // The read end does not block the supervisor; the write end blocks the work, as a pipe should.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok((Self::of(Source::Together(Some(pipe))), Ends { out, err }))
    }

    fn of(source: Source) -> Self {
        Self { source, printed: Printed::default(), buffer: Buffer(vec![0; BUFFER]) }
    }

    /// What to wait for: one is readable when there is something to read.
    pub(super) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let fds: Vec<BorrowedFd<'_>> = match &self.source {
            Source::Together(pipe) => pipe.iter().map(AsFd::as_fd).collect(),
            Source::Apart { pipes, signals } => {
                let open: Vec<_> =
                    pipes.iter().filter(|pipe| !pipe.is_over).map(|pipe| pipe.fd.as_fd()).collect();
                let signals = Some(signals.as_fd()).filter(|_| !open.is_empty());
                open.into_iter().chain(signals).collect()
            }
        };
        fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect()
    }

    /// Hands on some of what was printed. How many bytes; `None` when there is no more for now.
    pub(super) fn read(&mut self, mut take: impl FnMut(&Printed)) -> Option<usize> {
        let Self { source, printed, buffer } = self;
        let mut reader = Reader { printed, buffer, take: &mut take };
        let read = match source {
            Source::Apart { pipes, signals } => reader.told(pipes, &told(signals)),
            Source::Together(pipe) => reader.any(pipe),
        };
        self.printed.hand_on(&mut take);
        if read.is_none() {
            self.buffer.shrink();
        }
        read
    }
}

impl Pipe {
    fn make(stream: Stream, signal: i32) -> io::Result<(Self, OwnedFd)> {
        let (aside, put) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let size = SIZES.into_iter().find(|size| fcntl_setpipe_size(&put, *size).is_ok());
        let size = size.ok_or(io::ErrorKind::QuotaExceeded)?;
        let (fd, end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
        fcntl_setpipe_size(&fd, size / 2)?;
        tell_by(fd.as_fd(), signal)?;
        // Where nothing may be moved nothing would ever be read.
        match splice(&fd, None, &put, None, 1, SpliceFlags::NONBLOCK) {
            Err(Errno::AGAIN) => {}
            result => return Err(result.err().unwrap_or(Errno::INVAL).into()),
        }
        Ok((Self { stream, fd, aside, put, moves: VecDeque::new(), is_over: false, ahead: 0 }, end))
    }

    /// So much of what is aside was read. Whether that is all of a move.
    fn was_read(&mut self, mut bytes: usize) -> bool {
        while let Some(first) = self.moves.front_mut() {
            if *first > bytes {
                *first -= bytes;
                return false;
            }
            bytes -= *first;
            self.moves.pop_front();
            if bytes == 0 {
                return true;
            }
        }
        true
    }

    /// Moves all that is in it aside. How many bytes.
    fn clear(&mut self) -> usize {
        if self.is_over {
            return 0;
        }
        loop {
            match splice(&self.fd, None, &self.put, None, SIZES[0], SpliceFlags::NONBLOCK) {
                Ok(moved) => {
                    self.is_over = moved == 0;
                    self.moves.extend(Some(moved).filter(|moved| *moved > 0));
                    return moved;
                }
                Err(Errno::INTR) => {}
                Err(_) => return 0,
            }
        }
    }
}

/// Reads into what is handed on.
struct Reader<'a, T> {
    printed: &'a mut Printed,
    buffer: &'a mut Buffer,
    take: &'a mut T,
}

impl<T: FnMut(&Printed)> Reader<'_, T> {
    /// A write for each signal that was taken.
    fn told(&mut self, pipes: &mut [Pipe; 2], told: &Told) -> Option<usize> {
        let moved: usize = pipes.iter_mut().map(Pipe::clear).sum();
        let mut read = 0;
        for fd in &told.pipes {
            let Some(pipe) = pipes.iter_mut().find(|pipe| pipe.fd.as_raw_fd() == *fd) else { continue };
            if pipe.ahead > 0 {
                pipe.ahead -= 1;
            } else {
                read += self.write(pipe).0;
            }
        }
        let is_news = moved > 0 || !told.pipes.is_empty();
        if is_news && !told.is_overrun {
            return Some(read);
        }
        // Writes that are not over, or that are so new that their signals are still to come.
        for pipe in pipes {
            let mut ahead = 0;
            while let (more @ 1.., is_whole) = self.write(pipe) {
                read += more;
                ahead += usize::from(is_whole);
            }
            // A signal that was dropped, or did not come at once, is not waited for.
            pipe.ahead = if told.is_overrun || !is_news && ahead == 0 { 0 } else { pipe.ahead + ahead };
        }
        (is_news || read > 0).then_some(read)
    }

    /// What one write wrote: how many bytes, and whether that is known to be all. Of one that filled the pipe, what was
    /// in the pipe then: that much has a signal of its own.
    fn write(&mut self, pipe: &mut Pipe) -> (usize, bool) {
        let page = rustix::param::page_size();
        let mut all = 0;
        loop {
            let room = self.buffer.of(pipe.moves.iter().sum());
            match rustix::io::read(&pipe.aside, room) {
                Ok(read @ 1..) => {
                    self.add(Some(pipe.stream), read);
                    all += read;
                    let is_moved = pipe.was_read(read);
                    if read != page || is_moved {
                        return (all, read != page);
                    }
                }
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return (all, false),
            }
        }
    }

    /// What there is.
    fn any(&mut self, open: &mut Option<OwnedFd>) -> Option<usize> {
        let pipe = open.as_ref()?;
        match rustix::io::read(pipe, self.buffer.of(BUFFER)) {
            Ok(0) => {
                *open = None;
                None
            }
            Ok(read) => {
                self.add(None, read);
                Some(read)
            }
            Err(Errno::INTR) => Some(0),
            Err(_) => None,
        }
    }

    fn add(&mut self, stream: Option<Stream>, read: usize) {
        self.printed.add(stream, &self.buffer.0[..read]);
        if self.printed.bytes.len() >= BUFFER {
            self.printed.hand_on(self.take);
        }
    }
}

/// Takes all signals that are there.
fn told(signals: &OwnedFd) -> Told {
    let mut told = Told::default();
    let mut taken = [0; TOLD * SIGNALS];
    for _ in 0..TAKEN {
        let read = rustix::io::read(signals, &mut taken).unwrap_or(0);
        for signal in taken[..read].chunks_exact(TOLD) {
            let word = |at: usize| {
                let mut word = [0; 4];
                word.copy_from_slice(&signal[at..at + 4]);
                i32::from_ne_bytes(word)
            };
            if word(SIGNAL_AT) == libc::SIGIO {
                told.is_overrun = true;
            } else {
                told.pipes.push(word(DESCRIPTOR_AT));
            }
        }
        // Fewer than there is room for are all there were.
        if read < taken.len() {
            return told;
        }
    }
    told.is_overrun = true;
    told
}

/// A descriptor on which a signal is read, and SIGIO, which comes instead of one that cannot be queued. Neither comes any
/// other way from now on.
#[expect(unsafe_code, reason = "rustix wraps neither signal masks nor signalfd")]
fn signals(signal: i32) -> io::Result<OwnedFd> {
    // SAFETY: the set is made by sigemptyset before it is read; the descriptor is new and ours.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGIO);
        let failed = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Has this thread told by a signal of every write into a pipe; reading it does not block.
#[expect(unsafe_code, reason = "rustix does not wrap these commands of fcntl")]
fn tell_by(pipe: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // `struct f_owner_ex`. A thread, not the process: in tests there are others, which do not block the signal.
    let owner = [F_OWNER_TID, rustix::thread::gettid().as_raw_nonzero().get()];
    let check = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let fd = pipe.as_raw_fd();
    // SAFETY: the commands take a number or read the two words that live until after the call.
    unsafe {
        check(libc::fcntl(fd, F_SETSIG, signal))?;
        check(libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr()))?;
        check(libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::poll;
    use std::fs::File;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// All that is printed until nobody can print any more.
    fn all(mut streams: Streams) -> Vec<(Option<Stream>, Vec<u8>)> {
        let mut pieces: Vec<(Option<Stream>, Vec<u8>)> = Vec::new();
        loop {
            while streams
                .read(|printed| {
                    for (_, stream, bytes) in printed.runs() {
                        match pieces.last_mut() {
                            Some((last, piece)) if *last == stream => piece.extend_from_slice(bytes),
                            _ => pieces.push((stream, bytes.to_vec())),
                        }
                    }
                })
                .is_some()
            {}
            let mut fds = streams.poll_fds();
            if fds.is_empty() {
                return pieces;
            }
            poll(&mut fds, None).unwrap();
        }
    }

    fn run(script: &str) -> Vec<(Option<Stream>, Vec<u8>)> {
        let (streams, ends) = Streams::make().unwrap();
        let mut child = Command::new("bash")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(File::from(ends.out))
            .stderr(File::from(ends.err))
            .spawn()
            .unwrap();
        let pieces = all(streams);
        child.wait().unwrap();
        pieces
    }

    #[test]
    fn a_program_that_prints_to_both_in_turn_is_read_in_that_order() {
        let (mut streams, ends) = Streams::make().unwrap();
        let mut to = [File::from(ends.out), File::from(ends.err)];
        let (go, may_go) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            let mut n = 0;
            while let Ok(()) = may_go.recv() {
                // As much as a pipe holds while nobody reads.
                for _ in 0..60 {
                    to[usize::from(n % 7 < 3)].write_all(format!("{n}\n").as_bytes()).unwrap();
                    n += 1;
                }
            }
        });
        let mut seen = Vec::new();
        for bursts in 1..=200 {
            go.send(()).unwrap();
            while seen.len() < bursts * 60 {
                poll(&mut streams.poll_fds(), None).unwrap();
                let mut take = |printed: &Printed| {
                    for (_, stream, bytes) in printed.runs() {
                        let lines = std::str::from_utf8(bytes).unwrap().lines();
                        seen.extend(lines.map(|line| (stream.unwrap(), line.parse::<usize>().unwrap())));
                    }
                };
                while streams.read(&mut take).is_some() {}
            }
        }
        drop(go);
        writer.join().unwrap();
        let stream = |n| if n % 7 < 3 { Stream::Err } else { Stream::Out };
        assert!(seen.iter().enumerate().all(|(at, (from, n))| (*n, *from) == (at, stream(at))), "{seen:?}");
    }

    /// What one stream printed.
    fn own(pieces: &[(Option<Stream>, Vec<u8>)], stream: Stream) -> String {
        let own = pieces.iter().filter(|(from, _)| *from == Some(stream));
        own.map(|(_, piece)| String::from_utf8_lossy(piece)).collect()
    }

    #[test]
    fn processes_that_share_a_stream_keep_their_places() {
        let pieces =
            run("for i in 1 2 3 4 5 6 7 8 9; do sh -c 'echo o; echo e >&2'; echo e >&2; echo o; done");
        let (out, err) = ((Some(Stream::Out), b"o\no\n".to_vec()), (Some(Stream::Err), b"e\ne\n".to_vec()));
        let mut wanted: Vec<_> = std::iter::repeat_n([out, err], 9).flatten().skip(1).collect();
        wanted.insert(0, (Some(Stream::Out), b"o\n".to_vec()));
        wanted.push((Some(Stream::Out), b"o\n".to_vec()));
        assert_eq!(pieces, wanted);
    }

    #[test]
    fn who_opens_a_stream_anew_is_known_by_it() {
        let pieces =
            run("for i in 1 2 3 4 5 6 7 8 9; do echo e$i >/dev/stderr; echo o$i >/proc/self/fd/1; done");
        for (stream, name) in [(Stream::Out, 'o'), (Stream::Err, 'e')] {
            let wanted: Vec<String> = (1..=9).map(|n| format!("{name}{n}\n")).collect();
            assert_eq!(own(&pieces, stream), wanted.concat());
        }
    }

    #[test]
    fn nothing_of_a_flood_is_lost_or_taken_for_the_other_stream() {
        let (streams, ends) = Streams::make().unwrap();
        let writer = std::thread::spawn(move || {
            let mut to = [File::from(ends.out), File::from(ends.err)];
            for n in 0..50_000 {
                to[usize::from(n % 7 < 3)].write_all(format!("{n}\n").as_bytes()).unwrap();
            }
        });
        let pieces = all(streams);
        writer.join().unwrap();
        for (stream, is_err) in [(Stream::Out, false), (Stream::Err, true)] {
            let lines = (0..50_000).filter(|n| (n % 7 < 3) == is_err).map(|n| format!("{n}\n"));
            let wanted: Vec<String> = lines.collect();
            assert_eq!(own(&pieces, stream), wanted.concat(), "{stream:?}");
        }
    }

    #[test]
    fn writes_of_more_than_a_pipe_holds_stay_whole_between_those_of_the_other_stream() {
        let (streams, ends) = Streams::make().unwrap();
        let long = vec![b'x'; (3 << 20) + 17];
        let length = long.len();
        let writer = std::thread::spawn(move || {
            let (mut out, mut err) = (File::from(ends.out), File::from(ends.err));
            for _ in 0..3 {
                err.write_all(b"before\n").unwrap();
                out.write_all(&long).unwrap();
                err.write_all(b"after\n").unwrap();
            }
        });
        let pieces = all(streams);
        writer.join().unwrap();
        let lengths: Vec<(Option<Stream>, usize)> =
            pieces.iter().map(|(from, piece)| (*from, piece.len())).collect();
        let (out, err) = (Some(Stream::Out), Some(Stream::Err));
        let wanted = [(err, 7), (out, length), (err, 13), (out, length), (err, 13), (out, length), (err, 6)];
        assert_eq!(lengths, wanted);
    }

    #[test]
    fn what_is_no_packet_takes_nothing_of_the_packet_after_it() {
        let (streams, ends) = Streams::make().unwrap();
        let anew =
            std::fs::OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", ends.out.as_raw_fd()));
        let (mut anew, mut out) = (anew.unwrap(), File::from(ends.out));
        anew.write_all(&[b'a'; 14_000]).unwrap();
        out.write_all(&[b'b'; 4096]).unwrap();
        anew.write_all(&vec![b'c'; 40_000]).unwrap();
        out.write_all(&[b'd'; 4096]).unwrap();
        drop((anew, out, ends.err));
        let all = own(&all(streams), Stream::Out);
        let count = |byte: char| all.chars().filter(|c| *c == byte).count();
        assert_eq!(['a', 'b', 'c', 'd'].map(count), [14_000, 4096, 40_000, 4096]);
    }

    #[test]
    fn a_writer_that_tries_again_and_again_does_not_hold_up_the_reader() {
        let (mut streams, ends) = Streams::make().unwrap();
        rustix::io::ioctl_fionbio(&ends.out, true).unwrap();
        let mut out = File::from(ends.out);
        // A signal each, also where nothing is written any more.
        let written = (0..5_000).filter(|_| out.write_all(b"line\n").is_ok()).count();
        assert!(written < 5_000, "the pipe was never full");
        let Source::Apart { signals, .. } = &streams.source else { panic!("no signals here") };
        let taken = told(signals);
        assert!(taken.is_overrun && taken.pipes.len() == TAKEN * SIGNALS, "{}", taken.pipes.len());
        let mut lines = 0;
        while streams.read(|printed| lines += printed.bytes().len() / 5).is_some() {}
        assert_eq!(lines, written);
    }

    #[test]
    fn on_one_pipe_both_are_in_order_and_nobody_is_named() {
        let (streams, ends) = Streams::together().unwrap();
        let (mut out, mut err) = (File::from(ends.out), File::from(ends.err));
        out.write_all(b"one\n").unwrap();
        err.write_all(b"two\n").unwrap();
        out.write_all(b"three\n").unwrap();
        drop((out, err));
        assert_eq!(all(streams), [(None, b"one\ntwo\nthree\n".to_vec())]);
    }
}
