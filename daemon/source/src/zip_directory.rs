//! Opens a ZIP while limiting how much of its directory is read, because each entry takes memory. The limit leaves room
//! for the directory of any real export.

use std::{
    io::{self, Read, Seek, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use zip::{ZipArchive, read::Config, result::ZipError, unstable::read::ZipIterable};

/// Bytes per file: 46 for the header, the name, and what programs add.
const BYTES_PER_ENTRY: u64 = 256;
/// Bytes that are read to find the directory.
const SEARCH_BYTES: u64 = 1 << 20;

/// A reader with a limit on the number of bytes, which applies until the directory was read.
pub struct BoundedReader<R> {
    inner: R,
    remaining: Arc<AtomicU64>,
}

/// Opens an archive with at most `files` files.
///
/// # Errors
/// An error for which [`too_long`] is true if the directory is longer than that of so many files; otherwise what is
/// wrong with it.
pub fn open<R: Read + Seek>(reader: R, files: usize) -> Result<ZipArchive<BoundedReader<R>>, ZipError> {
    let left =
        Arc::new(AtomicU64::new((files as u64).saturating_mul(BYTES_PER_ENTRY).saturating_add(SEARCH_BYTES)));
    let mut reader = BoundedReader { inner: reader, remaining: Arc::clone(&left) };
    // The library allocates memory for the stated number of entries before it reads any.
    if ZipIterable::try_new(&mut reader, Config::default())?.len() > files {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
    }
    let archive = ZipArchive::new(reader)?;
    left.store(u64::MAX, Ordering::Relaxed);
    Ok(archive)
}

/// Returns whether the error means that the directory is longer than allowed.
pub fn too_long(error: &ZipError) -> bool {
    matches!(error, ZipError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge)
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.remaining.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        if left != u64::MAX {
            self.remaining.store(left - read as u64, Ordering::Relaxed);
        }
        Ok(read)
    }
}

impl<R: Seek> Seek for BoundedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Cursor;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn packed(files: usize) -> Cursor<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for n in 0..files {
            zip.start_file(n.to_string(), SimpleFileOptions::default()).unwrap();
        }
        zip.finish().unwrap()
    }

    #[test]
    fn a_directory_that_is_longer_than_allowed_is_not_read() {
        assert_eq!(open(packed(1_000), 1_000).unwrap().len(), 1_000);
        let error = open(packed(1_000), 999).err().unwrap();
        assert!(too_long(&error), "{error}");
        // Names may be long.
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for n in 0..30 {
            zip.start_file(format!("{n}{}", "x".repeat(60_000)), SimpleFileOptions::default()).unwrap();
        }
        let error = open(zip.finish().unwrap(), 30).err().unwrap();
        assert!(too_long(&error), "{error}");
        assert!(!too_long(&open(Cursor::new(b"no archive".to_vec()), 10).err().unwrap()));
    }

    #[test]
    fn entries_are_read_without_a_limit_after_the_directory() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file("long", stored).unwrap();
        let long = vec![7; 3 << 20];
        io::Write::write_all(&mut zip, &long).unwrap();
        let mut archive = open(zip.finish().unwrap(), 1).unwrap();
        let mut read = Vec::new();
        archive.by_index(0).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, long);
    }
}
