//! Seals the contents of a file block by block while they are written.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use satchel_seal::{Cipher, NONCE, OVERHEAD, Seal};
use tantivy::directory::{AntiCallToken, TerminatingWrite};

use super::layout::{self, BLOCK};

/// Writes a sealed file. The last block is sealed when the writer is terminated; without it the file does not open.
pub(super) struct BlockWriter<W> {
    output: W,
    name: PathBuf,
    cipher: Cipher,
    /// The number of the block that is being filled.
    block: usize,
    /// Room for a nonce, and the contents of that block. `None` after the last block, or after an error: what follows would be
    /// at the wrong place.
    buffer: Option<Vec<u8>>,
}

impl<W: Write> BlockWriter<W> {
    /// Begins a file of this name.
    pub(super) fn new(mut output: W, name: &Path, seal: &Seal) -> io::Result<Self> {
        let (salt, cipher) = seal.new_index_file()?;
        output.write_all(&layout::header(&salt))?;
        let mut buffer = Vec::with_capacity(BLOCK + OVERHEAD);
        buffer.resize(NONCE, 0);
        Ok(Self { output, name: name.to_owned(), cipher, block: 0, buffer: Some(buffer) })
    }

    fn seal_block(&mut self, last: bool) -> io::Result<()> {
        let mut buffer = self.buffer.take().ok_or_else(closed)?;
        self.cipher.seal_tail(&layout::place(&self.name, self.block, last), &mut buffer, 0)?;
        self.output.write_all(&buffer)?;
        if !last {
            buffer.truncate(NONCE);
            self.buffer = Some(buffer);
            self.block += 1;
        }
        Ok(())
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = self.buffer.as_ref().is_some_and(|buffer| buffer.len() == NONCE + BLOCK);
        // A full block waits for the next byte, because it may be the last one.
        if full && !bytes.is_empty() {
            self.seal_block(false)?;
        }
        let buffer = self.buffer.as_mut().ok_or_else(closed)?;
        let taken = bytes.len().min(NONCE + BLOCK - buffer.len());
        buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Does nothing: a block is sealed once, when it is full or the last one.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for BlockWriter<File> {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.seal_block(true)?;
        self.output.sync_data()
    }
}

/// Returns the bytes of a sealed file with these contents.
pub(super) fn seal_all(contents: &[u8], name: &Path, seal: &Seal) -> io::Result<Vec<u8>> {
    let mut writer = BlockWriter::new(Vec::new(), name, seal)?;
    writer.write_all(contents)?;
    writer.seal_block(true)?;
    Ok(writer.output)
}

fn closed() -> io::Error {
    io::Error::other("the file was closed, or could not be written earlier")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_seal::DataKey;

    use super::*;

    /// A disk that is full after so many bytes, and has room again later.
    struct FullOnce {
        room: usize,
    }

    impl Write for FullOnce {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                self.room = usize::MAX;
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_could_not_be_written_once_is_never_completed() {
        let seal = Seal::new(&DataKey::from_bytes(&[1; 32]));
        let mut writer = BlockWriter::new(FullOnce { room: 1000 }, Path::new("a.idx"), &seal).unwrap();
        let error = writer.write_all(&vec![7; 2 * BLOCK]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(writer.write(b"more").is_err() && writer.seal_block(true).is_err());
    }

    #[test]
    fn nothing_is_written_after_the_last_block() {
        let seal = Seal::new(&DataKey::from_bytes(&[1; 32]));
        let mut writer = BlockWriter::new(Vec::new(), Path::new("a.idx"), &seal).unwrap();
        writer.write_all(b"tea").unwrap();
        writer.seal_block(true).unwrap();
        assert!(writer.write(b"more").is_err() && writer.seal_block(true).is_err());
    }
}
