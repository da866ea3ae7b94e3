//! Attachments, stored by content: one file per SHA-256, durable before the commit that refers to it. The attachments of one
//! commit are made durable together, because an fsync for each of a thousand pictures would take longer than everything else.

pub(crate) mod sealed;

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use satchel_seal::Seal;
use sealed::{SealedReader, SealedWriter};

use crate::{
    codec::hex,
    disk::{Disk, DiskFile},
    error::{FSYNC, StoreError},
    sha256::Sha256,
};

/// Bytes copied at once.
const COPY_BYTES: usize = 256 << 10;

/// The name of a blob and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobRef {
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// Length in bytes.
    pub len: u64,
}

/// Formats the digest in hex.
impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.sha256))
    }
}

/// A completely written blob that no commit refers to yet.
pub(crate) struct PendingBlob {
    pub(crate) temporary: PathBuf,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) name: [u8; 32],
}

/// Blobs that wait for the next commit.
#[derive(Default)]
pub(crate) struct PendingBlobs(Mutex<Vec<PendingBlob>>);

impl PendingBlobs {
    fn lock(&self) -> MutexGuard<'_, Vec<PendingBlob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a blob and returns how many are waiting.
    pub(crate) fn add(&self, blob: PendingBlob) -> usize {
        let mut waiting = self.lock();
        waiting.push(blob);
        waiting.len()
    }

    /// Makes all waiting blobs durable under their final names. After an error all of them keep waiting, because the next commit,
    /// possibly of another caller, may refer to some of them.
    pub(crate) fn publish(&self, disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        // The first fsync usually flushes the bytes of all files, so the others hardly wait.
        for PendingBlob { temporary, file, .. } in &*waiting {
            file.sync().map_err(StoreError::io(FSYNC, temporary))?;
        }
        if !waiting.is_empty() {
            satchel_failpoints::reached("blobs synced");
        }
        let mut folders = BTreeSet::new();
        for PendingBlob { temporary, name, .. } in &*waiting {
            let path = blob_path(dir, name);
            let folder = path.parent().unwrap_or(&path).to_owned();
            disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
            match disk.rename(temporary, &path) {
                // An earlier attempt already renamed this one.
                Err(error) if error.kind() == io::ErrorKind::NotFound && disk.open(&path, false).is_ok() => {}
                renamed => renamed.map_err(StoreError::io("rename a blob to", &path))?,
            }
            satchel_failpoints::reached("blob renamed");
            folders.insert(folder);
        }
        if !folders.is_empty() {
            folders.insert(dir.join("blobs"));
        }
        for folder in &folders {
            disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
        }
        if !waiting.is_empty() {
            satchel_failpoints::reached("blob folders synced");
        }
        waiting.clear();
        Ok(())
    }
}

/// A reader of the bytes of a blob, or of the part of a segment that belongs to a backup, from the first byte on.
pub struct BlobReader(Bytes);

enum Bytes {
    /// The bytes as they are on disk. No byte at or after `end` is read.
    Plain {
        file: Arc<dyn DiskFile>,
        offset: u64,
        end: u64,
    },
    Sealed(Box<SealedReader>),
}

impl BlobReader {
    pub(crate) fn plain(file: Arc<dyn DiskFile>, end: u64) -> Self {
        Self(Bytes::Plain { file, offset: 0, end })
    }

    /// Reads the blob in the file named `name`.
    pub(crate) fn open(file: Arc<dyn DiskFile>, name: &[u8; 32], seal: Option<&Seal>) -> io::Result<Self> {
        let Some(seal) = seal else { return Ok(Self::plain(file, u64::MAX)) };
        Ok(Self(Bytes::Sealed(Box::new(SealedReader::open(file, seal.clone(), name)?))))
    }

    /// Returns the hash that the writer of a sealed blob recorded.
    pub(crate) fn recorded_sha256(&self) -> Option<[u8; 32]> {
        match &self.0 {
            Bytes::Plain { .. } => None,
            Bytes::Sealed(reader) => Some(reader.sha256()),
        }
    }

    /// Continues at this byte.
    pub fn seek(&mut self, to: u64) {
        match &mut self.0 {
            Bytes::Plain { offset, .. } => *offset = to,
            Bytes::Sealed(reader) => reader.seek(to),
        }
    }

    /// Returns the number of bytes.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn length(&self) -> io::Result<u64> {
        match &self.0 {
            Bytes::Plain { file, end, .. } => Ok(file.length()?.min(*end)),
            Bytes::Sealed(reader) => Ok(reader.length()),
        }
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Bytes::Plain { file, offset, end } => {
                let room = usize::try_from(end.saturating_sub(*offset)).unwrap_or(usize::MAX);
                let most = buffer.len().min(room);
                let read = file.read_at(*offset, &mut buffer[..most])?;
                *offset += read as u64;
                Ok(read)
            }
            Bytes::Sealed(reader) => reader.read(buffer),
        }
    }
}

/// Copies a source into a new file, plain or sealed. A sealed file is bound to the given hash or, if none is given, to the hash
/// of the bytes.
pub(crate) fn copy(
    disk: &dyn Disk,
    source: &mut dyn Read,
    path: &Path,
    seal: Option<(&Seal, Option<[u8; 32]>)>,
) -> Result<(BlobRef, Arc<dyn DiskFile>), StoreError> {
    let file = disk.create(path).map_err(StoreError::io("create", path))?;
    let sealing = seal.map(|(seal, _)| SealedWriter::new(seal.clone())).transpose();
    let mut sealing = sealing.map_err(StoreError::io("seal", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut len = 0_u64;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => {
                return Err(StoreError::Io { action: "read the source of", path: path.to_owned(), source });
            }
        };
        hasher.update(&buffer[..read]);
        let written = match &mut sealing {
            Some(sealing) => sealing.write(file.as_ref(), &buffer[..read]),
            None => file.write_at(len, &buffer[..read]),
        };
        written.map_err(StoreError::io("write", path))?;
        len += read as u64;
    }
    let sha256 = seal.and_then(|(_, sha256)| sha256).unwrap_or_else(|| hasher.finish());
    if let Some(sealing) = sealing {
        sealing.finish(file.as_ref(), &sha256, len).map_err(StoreError::io("write", path))?;
    }
    Ok((BlobRef { sha256, len }, file))
}

/// Returns the name of a blob's file: its hash, or in an encrypted store a keyed hash that does not reveal it.
pub(crate) fn file_name(sha256: &[u8; 32], seal: Option<&Seal>) -> [u8; 32] {
    seal.map_or(*sha256, |seal| seal.blob_name(sha256))
}

/// Returns the path `blobs/ab/cdef…`.
pub(crate) fn blob_path(dir: &Path, name: &[u8; 32]) -> PathBuf {
    let name = hex(name);
    dir.join("blobs").join(&name[..2]).join(&name[2..])
}
