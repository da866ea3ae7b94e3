//! Reads and decrypts the blocks of a file.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use satchel_seal::{Cipher, NONCE, Seal};
use tantivy::directory::OwnedBytes;

use super::layout::{self, BlockLayout, DamagedFile, HEADER};

/// A sealed file, of which blocks can be read in any order. Whether the file is complete is known once its last block was read.
pub(super) struct BlockReader {
    file: File,
    name: PathBuf,
    cipher: Cipher,
    layout: BlockLayout,
}

impl BlockReader {
    /// Reads the header of the file, which must have the name under which it was written.
    pub(super) fn open(file: File, name: &Path, seal: &Seal) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let layout =
            BlockLayout::of_file(bytes).ok_or_else(|| DamagedFile::Length { file: name.to_owned() })?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)?;
        let salt = layout::salt(&header).ok_or_else(|| DamagedFile::Header { file: name.to_owned() })?;
        Ok(Self { file, name: name.to_owned(), cipher: seal.index_file(&salt), layout })
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn layout(&self) -> BlockLayout {
        self.layout
    }

    /// Returns the contents of a block.
    pub(super) fn read(&self, block: usize) -> io::Result<OwnedBytes> {
        let damaged = || io::Error::from(DamagedFile::Block { file: self.name.clone(), block });
        if block >= self.layout.blocks {
            return Err(damaged());
        }
        let mut sealed = vec![0; self.layout.sealed_length(block)];
        self.file.read_exact_at(&mut sealed, BlockLayout::offset(block)).map_err(|error| {
            match error.kind() {
                // The file was cut off after it was opened.
                io::ErrorKind::UnexpectedEof => damaged(),
                _ => error,
            }
        })?;
        let place = layout::place(&self.name, block, self.layout.last(block));
        let length = self.cipher.open_in_place(&place, &mut sealed).ok_or_else(damaged)?.len();
        Ok(OwnedBytes::new(sealed).slice(NONCE..NONCE + length))
    }

    /// Returns the contents of the file.
    pub(super) fn read_all(&self) -> io::Result<Vec<u8>> {
        let mut contents = Vec::with_capacity(self.layout.length);
        for block in 0..self.layout.blocks {
            contents.extend_from_slice(&self.read(block)?);
        }
        Ok(contents)
    }
}
