//! Files that travel as a stream of chunks, between tasks and threads that block.

use std::{
    future::Future,
    io::{self, Read},
    time::Duration,
};

use tokio::{runtime::Handle, sync::mpsc};

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads chunks that a task sends. The end of the channel is the end of the file, so the reader has to know the digest of the whole.
pub(crate) struct ChunkReader {
    chunks: mpsc::Receiver<Vec<u8>>,
    current: io::Cursor<Vec<u8>>,
}

impl ChunkReader {
    /// Returns a reader, and where its chunks are sent to.
    pub(crate) fn new() -> (mpsc::Sender<Vec<u8>>, Self) {
        let (sender, chunks) = mpsc::channel(1);
        (sender, Self { chunks, current: io::Cursor::default() })
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.chunks.blocking_recv() {
                None => return Ok(0),
                Some(chunk) => self.current = io::Cursor::new(chunk),
            }
        }
    }
}

/// Passes a file to `send` in chunks. `send` returns false if there is nobody to send to, and may take `stall` for each chunk; then this
/// returns false. Blocks; must be called on a thread of the runtime that may block.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn send_chunks<S: Future<Output = bool>>(
    file: &mut dyn Read,
    stall: Duration,
    mut send: impl FnMut(Vec<u8>) -> S,
) -> io::Result<bool> {
    let runtime = Handle::current();
    loop {
        let mut chunk = Vec::new();
        file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(true);
        }
        let sending = async { tokio::time::timeout(stall, send(chunk)).await.unwrap_or(false) };
        if !runtime.block_on(sending) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_passes_through_chunks_unchanged() {
        for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES * 2 + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let (sender, mut reader) = ChunkReader::new();
            let sent = bytes.clone();
            let sending = tokio::task::spawn_blocking(move || {
                send_chunks(&mut sent.as_slice(), Duration::from_mins(1), |chunk| {
                    let sender = sender.clone();
                    async move { sender.send(chunk).await.is_ok() }
                })
            });
            let received = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).map(|_| bytes)
            });
            assert!(sending.await.unwrap().unwrap());
            assert_eq!(received.await.unwrap().unwrap(), bytes);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reader_that_takes_nothing_ends_the_sending() {
        let (sender, _reader) = ChunkReader::new();
        let sending = tokio::task::spawn_blocking(move || {
            send_chunks(&mut io::repeat(1), Duration::from_millis(20), |chunk| {
                let sender = sender.clone();
                async move { sender.send(chunk).await.is_ok() }
            })
        });
        assert!(!sending.await.unwrap().unwrap());
    }
}
