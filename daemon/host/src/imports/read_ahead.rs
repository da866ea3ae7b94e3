//! Read-ahead on a separate thread, so that decompression and parsing run in parallel.

use std::{
    io::{self, Read},
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
};

use crate::limits::KIB;

/// Bytes of one read; the guest SDK asks for this much at a time.
const CHUNK_BYTES: usize = 256 * KIB;
/// Number of reads that may wait for the plugin.
const MAX_QUEUED_CHUNKS: usize = 3;

/// A file that is being read ahead. Its thread ends at the end of the file, at an error, or with its next chunk after
/// this value was dropped.
pub(super) struct ReadAhead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// Bytes of the chunk that were returned.
    returned: usize,
}

impl ReadAhead {
    pub(super) fn start(source: Box<dyn Read + Send>) -> io::Result<Self> {
        let (sender, chunks) = mpsc::sync_channel(MAX_QUEUED_CHUNKS);
        thread::Builder::new().name("reader".to_owned()).spawn(move || pump(source, &sender))?;
        Ok(Self { chunks, chunk: Vec::new(), returned: 0 })
    }

    /// Returns at most `wanted` bytes; empty at the end of the file.
    pub(super) fn next(&mut self, wanted: usize) -> io::Result<Vec<u8>> {
        if self.returned == self.chunk.len() {
            let chunk = match self.chunks.recv() {
                Ok(chunk) => chunk?,
                Err(mpsc::RecvError) => return Ok(Vec::new()),
            };
            if chunk.len() <= wanted {
                return Ok(chunk);
            }
            (self.chunk, self.returned) = (chunk, 0);
        }
        let rest = self.chunk.get(self.returned..).unwrap_or_default();
        let part = rest[..rest.len().min(wanted)].to_vec();
        self.returned += part.len();
        Ok(part)
    }
}

fn pump(mut source: Box<dyn Read + Send>, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let outcome = source.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        let ended = chunk.is_empty();
        // Bytes read before an error are valid.
        if !ended && sender.send(Ok(chunk)).is_err() {
            return;
        }
        match outcome {
            Ok(_) if ended => return,
            Ok(_) => {}
            Err(error) => {
                // The receiver may already be gone.
                sender.send(Err(error)).ok();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its bytes in pieces of `step`, then the end or an error.
    struct ChunkedReader {
        bytes: Vec<u8>,
        chunk_bytes: usize,
        fails: bool,
    }

    impl Read for ChunkedReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.chunk_bytes.min(buffer.len()).min(self.bytes.len());
            if length == 0 && self.fails {
                return Err(io::Error::other("the disk is gone"));
            }
            buffer[..length].copy_from_slice(&self.bytes[..length]);
            self.bytes.drain(..length);
            Ok(length)
        }
    }

    fn bytes() -> Vec<u8> {
        (0..1_000_000_usize).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect()
    }

    #[test]
    fn all_bytes_come_in_order_whatever_is_asked_for() -> io::Result<()> {
        for wanted in [1_000, CHUNK_BYTES, usize::MAX] {
            let mut ahead = ReadAhead::start(Box::new(ChunkedReader {
                bytes: bytes(),
                chunk_bytes: 70_000,
                fails: false,
            }))?;
            let mut all = Vec::new();
            loop {
                let chunk = ahead.next(wanted)?;
                if chunk.is_empty() {
                    break;
                }
                assert!(chunk.len() <= wanted);
                all.extend(chunk);
            }
            assert!(all == bytes());
        }
        Ok(())
    }

    #[test]
    fn an_error_comes_behind_the_bytes_before_it() -> io::Result<()> {
        let mut ahead =
            ReadAhead::start(Box::new(ChunkedReader { bytes: bytes(), chunk_bytes: 70_000, fails: true }))?;
        let mut read = 0;
        let error = loop {
            match ahead.next(usize::MAX) {
                Ok(chunk) => read += chunk.len(),
                Err(error) => break error,
            }
        };
        assert_eq!((read, error.to_string().as_str()), (1_000_000, "the disk is gone"));
        Ok(())
    }
}
