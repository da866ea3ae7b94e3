//! Attachments, stored by content: one file per SHA-256, durable before the commit that refers to it. The attachments of one
//! commit are made durable together, because an fsync for each of a thousand pictures would take longer than everything else.

mod orphan;
pub(crate) mod sealed;

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use satchel_seal::Seal;
use sealed::{SealedReader, SealedWriter};

use crate::{
    disk::{Disk, DiskFile},
    error::{FSYNC, StoreError},
    sha256::Sha256,
    store::Store,
};

/// Bytes copied at once.
const COPY: usize = 256 << 10;

/// Maximum number of blobs that wait for a commit; each one is an open file.
const MOST_WAITING: usize = 64;

/// A counter for the names of this process's unfinished blobs.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

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

impl Store {
    /// Copies all bytes of `source` into the store. The blob is durable, and [`Store::blob_open`] finds it, once the next commit
    /// has returned. Putting the same bytes again changes nothing.
    ///
    /// # Errors
    /// Any error of `source` or the file system.
    pub fn blob_put(&self, source: &mut dyn Read) -> Result<BlobRef, StoreError> {
        let disk = self.reader().disk().as_ref();
        let folder = self.dir().join("blobs").join("tmp");
        disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{}-{number}", std::process::id()));
        if let Err(error) = disk.remove(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(StoreError::Io { action: "remove", path: temporary, source: error });
        }
        let seal = self.seal();
        match copy(disk, source, &temporary, seal.map(|seal| (seal, None))) {
            Ok((blob, file)) => {
                satchel_failpoints::reached("blob copied");
                let new_blobs = self.new_blobs();
                let name = file_name(&blob.sha256, seal);
                if new_blobs.add(Copied { temporary, file, name }) >= MOST_WAITING {
                    new_blobs.settle(disk, self.dir()).inspect_err(|error| self.note(error))?;
                }
                Ok(blob)
            }
            Err(error) => {
                if let Err(error) = disk.remove(&temporary) {
                    tracing::debug!(path = %temporary.display(), %error, "an unfinished blob stays until the next start");
                }
                Err(error)
            }
        }
    }

    /// Opens a blob. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blob_open(&self, sha256: &[u8; 32]) -> Result<Option<BlobReader>, StoreError> {
        let name = file_name(sha256, self.seal());
        let path = blob_path(self.dir(), &name);
        let failed = |source| StoreError::Io { action: "open", path: path.clone(), source };
        let file = match self.reader().disk().open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        BlobReader::of(file, &name, self.seal()).map(Some).map_err(failed)
    }

    /// Opens the file of a blob as it is on disk, sealed or not, and returns its name below `blobs`. Returns `None` if it does
    /// not exist.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn blob_file(&self, sha256: &[u8; 32]) -> Result<Option<(String, BlobReader)>, StoreError> {
        let name = file_name(sha256, self.seal());
        let path = blob_path(self.dir(), &name);
        match self.reader().disk().open(&path, false) {
            Ok(file) => Ok(Some((hex(&name), BlobReader::plain(file, u64::MAX)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { action: "open", path, source }),
        }
    }

    /// Returns the seal of the store, if it is encrypted.
    pub(crate) fn seal(&self) -> Option<&Seal> {
        self.reader().home().seal.as_ref()
    }
}

/// A completely written blob that no commit refers to yet.
struct Copied {
    temporary: PathBuf,
    file: Arc<dyn DiskFile>,
    name: [u8; 32],
}

/// Blobs that wait for the next commit.
#[derive(Default)]
pub(crate) struct NewBlobs(Mutex<Vec<Copied>>);

impl NewBlobs {
    fn lock(&self) -> MutexGuard<'_, Vec<Copied>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a blob and returns how many are waiting.
    fn add(&self, copied: Copied) -> usize {
        let mut waiting = self.lock();
        waiting.push(copied);
        waiting.len()
    }

    /// Makes all waiting blobs durable under their final names. After an error all of them keep waiting, because the next commit,
    /// possibly of another caller, may refer to some of them.
    pub(crate) fn settle(&self, disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        // The first fsync usually flushes the bytes of all files, so the others hardly wait.
        for Copied { temporary, file, .. } in &*waiting {
            file.sync().map_err(StoreError::io(FSYNC, temporary))?;
        }
        if !waiting.is_empty() {
            satchel_failpoints::reached("blobs synced");
        }
        let mut folders = BTreeSet::new();
        for Copied { temporary, name, .. } in &*waiting {
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
    pub(crate) fn of(file: Arc<dyn DiskFile>, name: &[u8; 32], seal: Option<&Seal>) -> io::Result<Self> {
        let Some(seal) = seal else { return Ok(Self::plain(file, u64::MAX)) };
        Ok(Self(Bytes::Sealed(Box::new(SealedReader::open(file, seal.clone(), name)?))))
    }

    /// Returns the hash that the writer of a sealed blob recorded.
    pub(crate) fn noted(&self) -> Option<[u8; 32]> {
        match &self.0 {
            Bytes::Plain { .. } => None,
            Bytes::Sealed(reader) => Some(reader.sha256()),
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
    let mut buffer = vec![0; COPY];
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}
