//! Files that travel as a stream of chunks, between tasks and threads that block.

use std::{
    future::Future,
    io::{self, Read, Write},
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

/// Passes what is written to it to `send` in chunks, each with the number of bytes before it. `send` returns false if there is nobody to
/// send to, and may take `stall` for each chunk; then all further writing fails. Blocks; must be used on a thread of the runtime that may
/// block. What is left goes out when it is flushed.
pub(crate) struct ChunkWriter<F> {
    send: F,
    stall: Duration,
    chunk: Vec<u8>,
    sent: u64,
    refused: bool,
}

impl<S: Future<Output = bool>, F: FnMut(u64, Vec<u8>) -> S> ChunkWriter<F> {
    pub(crate) fn new(stall: Duration, send: F) -> Self {
        Self { send, stall, chunk: Vec::new(), sent: 0, refused: false }
    }

    /// Returns whether there is nobody to send to.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns how many bytes were written.
    pub(crate) fn written(&self) -> u64 {
        self.sent + self.chunk.len() as u64
    }
}

impl<S: Future<Output = bool>, F: FnMut(u64, Vec<u8>) -> S> Write for ChunkWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK_BYTES - self.chunk.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.chunk.extend_from_slice(taken);
        if self.chunk.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.refused {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        let (offset, length) = (self.sent, chunk.len() as u64);
        let sending = (self.send)(offset, chunk);
        let sending = async { tokio::time::timeout(self.stall, sending).await.unwrap_or(false) };
        if !Handle::current().block_on(sending) {
            self.refused = true;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.sent += length;
        Ok(())
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
    async fn what_is_written_arrives_in_order() {
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 2 + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let (sender, mut reader) = ChunkReader::new();
        let written = bytes.clone();
        let writing = tokio::task::spawn_blocking(move || {
            let mut offsets = Vec::new();
            let mut writer = ChunkWriter::new(Duration::from_mins(1), |offset, chunk| {
                offsets.push(offset);
                let sender = sender.clone();
                async move { sender.send(chunk).await.is_ok() }
            });
            written.chunks(100_003).for_each(|part| writer.write_all(part).unwrap());
            writer.flush().unwrap();
            (writer.written(), offsets)
        });
        let received = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        let chunk = CHUNK_BYTES as u64;
        assert_eq!(writing.await.unwrap(), (bytes.len() as u64, vec![0, chunk, 2 * chunk]));
        assert_eq!(received.await.unwrap().unwrap(), bytes);
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
