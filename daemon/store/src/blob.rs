//! Attachments by content: one file per SHA-256, durable before the commit that refers to it. Those of one commit are made
//! durable together: a wait for the disk for each of a thousand pictures would take longer than all else.

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

use sha2::{Digest, Sha256};

use crate::{
    disk::{Disk, DiskFile},
    error::{FSYNC, StoreError},
    points,
    store::Store,
};

/// Bytes copied at once.
const COPY: usize = 256 << 10;

/// Blobs that wait for a commit; each is an open file.
const MOST_WAITING: usize = 128;

/// Names unfinished blobs of this process.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// The name of a blob and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobRef {
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// Bytes.
    pub len: u64,
}

/// The digest in hex.
impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.sha256))
    }
}

impl Store {
    /// Copies all bytes of `source` into the store. Durable, and found by [`Store::blob_open`], once the next commit has
    /// returned; putting the same bytes again changes nothing.
    ///
    /// # Errors
    /// What `source` or the file system refuse.
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
        match copy(disk, source, &temporary) {
            Ok((blob, file)) => {
                points::reached("blob copied");
                let new_blobs = self.new_blobs();
                if new_blobs.add(Copied { temporary, file, blob }) >= MOST_WAITING {
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

    /// Opens a blob, `None` if it is not there.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn blob_open(&self, sha256: &[u8; 32]) -> Result<Option<BlobReader>, StoreError> {
        let path = blob_path(self.dir(), sha256);
        match self.reader().disk().open(&path, false) {
            Ok(file) => Ok(Some(BlobReader { file, offset: 0, end: u64::MAX })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { action: "open", path, source }),
        }
    }
}

/// A blob with all its bytes, of which nobody knows yet.
struct Copied {
    temporary: PathBuf,
    file: Arc<dyn DiskFile>,
    blob: BlobRef,
}

/// Blobs that wait for the next commit.
#[derive(Default)]
pub(crate) struct NewBlobs(Mutex<Vec<Copied>>);

impl NewBlobs {
    fn lock(&self) -> MutexGuard<'_, Vec<Copied>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers how many wait.
    fn add(&self, copied: Copied) -> usize {
        let mut waiting = self.lock();
        waiting.push(copied);
        waiting.len()
    }

    /// Makes all of them durable under their names. After an error all wait on: the next commit may be another's, which
    /// refers to some of them.
    pub(crate) fn settle(&self, disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        // The first wait takes the bytes of all along, so the others hardly wait.
        for Copied { temporary, file, .. } in &*waiting {
            file.sync().map_err(StoreError::io(FSYNC, temporary))?;
        }
        if !waiting.is_empty() {
            points::reached("blobs synced");
        }
        let mut folders = BTreeSet::new();
        for Copied { temporary, blob, .. } in &*waiting {
            let path = blob_path(dir, &blob.sha256);
            let folder = path.parent().unwrap_or(&path).to_owned();
            disk.create_folders(&folder).map_err(StoreError::io("create", &folder))?;
            match disk.rename(temporary, &path) {
                // An earlier try got so far.
                Err(error) if error.kind() == io::ErrorKind::NotFound && disk.open(&path, false).is_ok() => {}
                renamed => renamed.map_err(StoreError::io("rename a blob to", &path))?,
            }
            points::reached("blob renamed");
            folders.insert(folder);
        }
        if !folders.is_empty() {
            folders.insert(dir.join("blobs"));
        }
        for folder in &folders {
            disk.sync_folder(folder).map_err(StoreError::io(FSYNC, folder))?;
        }
        if !waiting.is_empty() {
            points::reached("blob folders synced");
        }
        waiting.clear();
        Ok(())
    }
}

/// The bytes of a blob or of the part of a segment that a backup holds, from the first on.
pub struct BlobReader {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) offset: u64,
    /// No byte from here on is read.
    pub(crate) end: u64,
}

impl BlobReader {
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.length()?.min(self.end))
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let most = buffer.len().min(room);
        let read = self.file.read_at(self.offset, &mut buffer[..most])?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn copy(
    disk: &dyn Disk,
    source: &mut dyn Read,
    path: &Path,
) -> Result<(BlobRef, Arc<dyn DiskFile>), StoreError> {
    let file = disk.create(path).map_err(StoreError::io("create", path))?;
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
        file.write_at(len, &buffer[..read]).map_err(StoreError::io("write", path))?;
        len += read as u64;
    }
    Ok((BlobRef { sha256: hasher.finalize().into(), len }, file))
}

/// `blobs/ab/cdef…`
pub(crate) fn blob_path(dir: &Path, sha256: &[u8; 32]) -> PathBuf {
    let name = hex(sha256);
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
