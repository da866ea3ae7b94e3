//! Reads the directory of a ZIP and refuses archives that are damaged or made to mislead.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use age::stream::StreamReader;
use zip::{CompressionMethod, ZipArchive, result::ZipError};

use super::{IntakeError, Limits, tree::litter};

/// An opened file that many readers share, each with its own position.
#[derive(Clone)]
pub(super) struct SharedFile {
    bytes: Bytes,
    position: u64,
    length: u64,
}

/// Where the bytes come from.
#[derive(Clone)]
enum Bytes {
    Plain(Arc<File>),
    /// Decrypted as they are read; the lock guards the one position that the stream has.
    Sealed(Arc<Mutex<StreamReader<File>>>),
}

impl SharedFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { bytes: Bytes::Plain(Arc::new(file)), position: 0, length })
    }

    /// What an encrypted file holds.
    pub(super) fn sealed(mut stream: StreamReader<File>) -> io::Result<Self> {
        let length = stream.seek(SeekFrom::End(0))?;
        Ok(Self { bytes: Bytes::Sealed(Arc::new(Mutex::new(stream))), position: 0, length })
    }

    pub(super) fn at(&self, position: u64) -> Self {
        Self { position, ..self.clone() }
    }
}

impl Read for SharedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &self.bytes {
            Bytes::Plain(file) => file.read_at(buffer, self.position)?,
            Bytes::Sealed(stream) => {
                // A thread that broke off while it held this left a stream that can be set to any place.
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                stream.seek(SeekFrom::Start(self.position))?;
                stream.read(buffer)?
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for SharedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(delta) => self.position.checked_add_signed(delta),
            SeekFrom::End(delta) => self.length.checked_add_signed(delta),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Where the bytes of one entry are.
#[derive(Clone)]
pub(super) struct Packed {
    pub(super) file: SharedFile,
    pub(super) header: u64,
    pub(super) packed: u64,
    pub(super) unpacked: u64,
    pub(super) crc32: u32,
    pub(super) deflated: bool,
}

/// One line of the archive's directory.
pub(super) enum Listed {
    /// A file that can be read.
    File { name: String, packed: Packed },
    /// One that cannot, and why.
    Unread { name: String, reason: &'static str },
}

/// Lists the archive in `file`; `path` names it in errors.
pub(super) fn list(file: SharedFile, path: &Path, limits: &Limits) -> Result<Vec<Listed>, IntakeError> {
    let damaged =
        |error: ZipError| IntakeError::DamagedArchive { path: path.to_owned(), problem: error.to_string() };
    let hostile =
        |problem: &str| IntakeError::HostileArchive { path: path.to_owned(), problem: problem.to_owned() };
    let mut archive = ZipArchive::new(file.clone()).map_err(damaged)?;
    if archive.len() > limits.entries {
        return Err(IntakeError::TooManyFiles { path: path.to_owned(), limit: limits.entries });
    }
    if archive.offset() != 0 {
        return Err(hostile("other data stands before the archive"));
    }
    if archive.has_duplicate_names() {
        return Err(hostile("two entries have the same name"));
    }
    if archive.has_overlapping_entries().map_err(damaged)? {
        return Err(hostile("its entries overlap, as those of a ZIP bomb do"));
    }
    archive.validate_header_consistency().map_err(|error| hostile(&error.to_string()))?;
    let mut listed = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(damaged)?;
        if let Some(line) = line(&entry, &file)? {
            listed.push(line);
        }
    }
    refuse_twins(&listed)
        .map_err(|name| hostile(&format!("two entries differ only in how {name:?} is written")))?;
    Ok(listed)
}

fn line(
    entry: &zip::read::ZipFile<'_, SharedFile>,
    file: &SharedFile,
) -> Result<Option<Listed>, IntakeError> {
    let name = match entry.name() {
        Ok(name) => name.into_owned(),
        Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
    };
    if entry.is_dir() || name.split('/').any(litter) {
        return Ok(None);
    }
    let unread = |reason| Ok(Some(Listed::Unread { name: name.clone(), reason }));
    if !harmless(&name) {
        return unread("its name points outside of the archive");
    }
    if entry.encrypted() {
        return unread("it is encrypted; unpack the archive with its password and import the folder");
    }
    if entry.is_symlink() {
        return unread("symbolic links are not followed");
    }
    let deflated = match entry.compression() {
        CompressionMethod::Stored => false,
        CompressionMethod::Deflated => true,
        _ => {
            return unread(
                "it is packed by a method that exports do not use; unpack the archive and import the folder",
            );
        }
    };
    let packed = Packed {
        file: file.clone(),
        header: entry.header_start(),
        packed: entry.compressed_size(),
        unpacked: entry.size(),
        crc32: entry.crc32(),
        deflated,
    };
    Ok(Some(Listed::File { name, packed }))
}

/// A name that could serve as a relative path. It never does; one that could not has no honest reason to be there.
fn harmless(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\0', '\\'])
        && name.as_bytes().get(1) != Some(&b':')
        && name.split('/').all(|part| part != ".." && part != ".")
}

/// Two names that a file system may take for one would let an archive show different files to different readers.
fn refuse_twins(listed: &[Listed]) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for line in listed {
        if let Listed::File { name, .. } = line
            && !seen.insert(satchel_pam::text::normalise(name))
        {
            return Err(name.clone());
        }
    }
    Ok(())
}
