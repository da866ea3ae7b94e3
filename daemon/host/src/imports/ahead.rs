//! Reads a file ahead of the plugin on a thread of its own, so that unpacking and parsing go on side by side.

use std::{
    io::{self, Read},
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
};

use crate::limits::KIB;

/// Bytes of one read; what the guest SDK asks for at a time.
const CHUNK: usize = 256 * KIB;
/// Reads that wait for the plugin.
const WAITING: usize = 3;

/// A file that is being read. Its thread ends with the file, at an error, or at its next chunk once this is dropped.
pub(super) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
}

impl Ahead {
    pub(super) fn start(source: Box<dyn Read + Send>) -> io::Result<Self> {
        let (sender, chunks) = mpsc::sync_channel(WAITING);
        thread::Builder::new().name("reader".to_owned()).spawn(move || pump(source, &sender))?;
        Ok(Self { chunks, rest: Vec::new() })
    }

    /// At most `wanted` bytes; empty at the end.
    pub(super) fn next(&mut self, wanted: usize) -> io::Result<Vec<u8>> {
        let mut chunk = match std::mem::take(&mut self.rest) {
            rest if rest.is_empty() => match self.chunks.recv() {
                Ok(chunk) => chunk?,
                Err(mpsc::RecvError) => return Ok(Vec::new()),
            },
            rest => rest,
        };
        if chunk.len() > wanted {
            self.rest = chunk.split_off(wanted);
        }
        Ok(chunk)
    }
}

fn pump(mut source: Box<dyn Read + Send>, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        let outcome = source.by_ref().take(CHUNK as u64).read_to_end(&mut chunk);
        let ended = chunk.is_empty();
        // What came before an error is good.
        if !ended && sender.send(Ok(chunk)).is_err() {
            return;
        }
        match outcome {
            Ok(_) if ended => return,
            Ok(_) => {}
            Err(error) => {
                // Nobody may be listening any more.
                sender.send(Err(error)).ok();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of `step`, then the end or an error.
    struct Pieces {
        bytes: Vec<u8>,
        step: usize,
        fails: bool,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.step.min(buffer.len()).min(self.bytes.len());
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
        for wanted in [1_000, CHUNK, usize::MAX] {
            let mut ahead = Ahead::start(Box::new(Pieces { bytes: bytes(), step: 70_000, fails: false }))?;
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
        let mut ahead = Ahead::start(Box::new(Pieces { bytes: bytes(), step: 70_000, fails: true }))?;
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
