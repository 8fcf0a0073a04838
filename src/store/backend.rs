//! What redb reads and writes: the locked file, or the file under an overlay that keeps every write in memory.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file itself. The lock on it is held by whoever opened it, and outlives redb's handle.
#[derive(Debug, Clone)]
pub(super) struct FileStorage {
    pub(super) file: Arc<File>,
    #[cfg(test)]
    pub(super) faults: Arc<Faults>,
}

/// What a test breaks on purpose.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The next sync fails with an I/O error, once.
    pub(super) sync: std::sync::atomic::AtomicBool,
}

impl FileStorage {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self {
            file,
            #[cfg(test)]
            faults: Arc::default(),
        }
    }
}

impl StorageBackend for FileStorage {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        #[cfg(test)]
        if self.faults.sync.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.file.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}

const BLOCK: usize = 4096;

/// The file, with every write kept in memory: redb repairs and verifies through it, and the file stays as it is.
#[derive(Debug)]
pub(super) struct Overlay {
    file: Arc<File>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// Where the file's own bytes end to count: it may have been shortened and grown again.
    file_len: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Overlay {
    pub(super) fn new(file: Arc<File>) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, written: Mutex::new(Written { len, file_len: len, blocks: BTreeMap::new() }) })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    /// A block's bytes as they are now.
    fn block(&self, file: &File, ix: u64) -> io::Result<[u8; BLOCK]> {
        if let Some(block) = self.blocks.get(&ix) {
            return Ok(**block);
        }
        let mut bytes = [0; BLOCK];
        let start = ix * BLOCK as u64;
        let there = self.file_len.saturating_sub(start).min(BLOCK as u64) as usize;
        file.read_exact_at(&mut bytes[..there], start)?;
        Ok(bytes)
    }
}

/// The pieces of a range, block by block: which block, where in it, how much.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let within = (at % BLOCK as u64) as usize;
        let count = (BLOCK - within).min((end - at) as usize);
        let ix = at / BLOCK as u64;
        at += count as u64;
        Some((ix, within, count))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset + out.len() as u64 > written.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (ix, within, count) in pieces(offset, out.len()) {
            let block = written.block(&self.file, ix)?;
            out[done..done + count].copy_from_slice(&block[within..within + count]);
            done += count;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        if len < written.len {
            written.file_len = written.file_len.min(len);
            let first_gone = len.div_ceil(BLOCK as u64);
            drop(written.blocks.split_off(&first_gone));
            let within = (len % BLOCK as u64) as usize;
            if let Some(block) = written.blocks.get_mut(&(len / BLOCK as u64)) {
                block[within..].fill(0);
            }
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let mut done = 0;
        for (ix, within, count) in pieces(offset, data.len()) {
            let mut block = written.block(&self.file, ix)?;
            block[within..within + count].copy_from_slice(&data[done..done + count]);
            written.blocks.insert(ix, Box::new(block));
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overlay_reads_what_was_written_and_the_file_stays_as_it_is() {
        let file = tempfile::tempfile().unwrap();
        let before: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        file.write_all_at(&before, 0).unwrap();
        let file = Arc::new(file);
        let overlay = Overlay::new(Arc::clone(&file)).unwrap();

        overlay.write(4090, &[0xAA; 5000]).unwrap();
        overlay.set_len(20_000).unwrap();
        overlay.write(15_000, b"end").unwrap();
        let mut want = before.clone();
        want[4090..9090].fill(0xAA);
        want.resize(20_000, 0);
        want[15_000..15_003].copy_from_slice(b"end");
        let mut got = vec![1; 20_000];
        overlay.read(0, &mut got).unwrap();
        assert!(got == want);

        // Shortened and grown again: what was cut off is zero, not the file's old bytes.
        overlay.set_len(5000).unwrap();
        overlay.set_len(9000).unwrap();
        let mut got = vec![1; 9000];
        overlay.read(0, &mut got).unwrap();
        want.truncate(5000);
        want.resize(9000, 0);
        assert!(got == want);
        assert!(overlay.read(8999, &mut [0; 2]).is_err());

        let mut after = vec![0; 10_000];
        file.read_exact_at(&mut after, 0).unwrap();
        assert!(after == before);
        assert_eq!(file.metadata().unwrap().len(), 10_000);
    }
}
