//! Files that are uploaded in chunks, staged in the data directory until they are imported.
//!
//! **Invariant:** a chunk is durable before it is acknowledged, and no text of a client becomes part of a path.

mod staged_file;

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ring::digest::{Context, SHA256};
use satchel_pam::hash::Sha256Digest;
use satchel_seal::Seal;
use satchel_source::{ReadAt, chain};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::staged_file::MAX_CHUNK_BYTES;
use self::staged_file::{MAX_CHUNKS, StagedFile};
use crate::sync_folder;

/// The folder of uploads in a data directory.
pub const UPLOADS: &str = "uploads";
/// Uploads that one device may have at the same time.
pub const MAX_PENDING: usize = 3;
/// How long an upload is kept, in microseconds: a day.
pub const LIFETIME_MICROS: i64 = 24 * 3_600 * 1_000_000;
/// Bytes that all uploads together may announce, unless the configuration says otherwise.
pub const DEFAULT_TOTAL_BYTES: u64 = 20 << 30;
/// Bytes of the disk that uploads leave free for the store.
const FREE_BYTES: u64 = 256 << 20;
/// Longest file name, in bytes, as on most file systems.
const MAX_NAME_BYTES: usize = 255;
/// Bytes that are hashed at once.
const HASHED_BYTES: usize = 256 << 10;

/// All uploads of a data directory. Clones share them.
#[derive(Clone)]
pub struct Uploads(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    seal: Option<Seal>,
    total_bytes: u64,
    /// Guards which uploads exist.
    all: Mutex<BTreeMap<String, Arc<Entry>>>,
}

struct Entry {
    id: String,
    header: Header,
    path: PathBuf,
    /// Guards the bytes, so that writers take turns.
    state: Mutex<State>,
}

struct State {
    file: StagedFile,
    /// The hash of the first `hashed` bytes.
    hasher: Context,
    hashed: u64,
    /// Whether all bytes arrived and have the announced hash.
    verified: bool,
    /// Whether the disk refused to make a chunk durable; nothing is written any more.
    failed: bool,
}

/// What is known of an upload from its beginning. It is stored at the start of its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    owner: String,
    name: String,
    size: u64,
    /// 64 lower-case hex digits.
    sha256: Option<String>,
    created_at: i64,
    expires_at: i64,
    /// Whether the upload ends with its call, and cannot be resumed.
    streamed: bool,
}

/// The request for an upload.
#[derive(Clone, Debug)]
pub struct NewUpload {
    /// The device that uploads; empty for the owner of the data directory.
    pub owner: String,
    /// The name of the file, which is shown and never used as a path.
    pub name: String,
    pub size: u64,
    /// 64 lower-case hex digits. `None` if the client does not know the hash.
    pub sha256: Option<String>,
    /// Whether the upload ends with its call, and cannot be resumed.
    pub streamed: bool,
}

/// An upload as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    pub id: String,
    pub name: String,
    pub size: u64,
    pub sha256: Option<String>,
    /// The number of bytes that are durable.
    pub committed: u64,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
    /// Microseconds since the Unix epoch.
    pub expires_at: i64,
}

/// The bytes of a complete upload.
#[derive(Clone, Debug)]
pub struct UploadedFile {
    /// A path for receipts and messages. There is no such file: its last component is the name that the client gave.
    pub path: PathBuf,
    pub bytes: Arc<dyn ReadAt>,
    pub length: u64,
}

/// The reason why an upload is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error("there is no upload {id:?}")]
    NotFound { id: String },
    /// A field of the request is not valid.
    #[error("{field} {problem}")]
    Field { field: &'static str, problem: String },
    #[error(
        "this device has {MAX_PENDING} uploads already; import or cancel one of them, or wait until one expires"
    )]
    TooMany,
    #[error(
        "all uploads together may have {limit} bytes, and {used} are in use; wait until others are imported, or raise [server] max-upload-mib"
    )]
    Quota { limit: u64, used: u64 },
    #[error("an upload may have at most {MAX_CHUNKS} chunks; cancel it, and send larger chunks")]
    TooManyChunks,
    #[error("no space left on the disk for {bytes} bytes; free some and try again")]
    DiskFull { bytes: u64 },
    #[error("the chunk begins at {offset}, but {committed} bytes are stored; continue at {committed}")]
    Offset { offset: u64, committed: u64 },
    #[error(
        "the SHA-256 of the bytes that arrived is not that of the request; the upload was removed: send the file again"
    )]
    Sha256,
    #[error("{committed} of {size} bytes have arrived; send the rest first")]
    Incomplete { id: String, committed: u64, size: u64 },
    #[error("the file of the upload cannot be used")]
    Io(#[from] io::Error),
}

impl UploadError {
    fn field(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Field { field, problem: problem.into() }
    }

    fn not_found(id: &str) -> Self {
        Self::NotFound { id: id.to_owned() }
    }
}

impl Uploads {
    /// Opens the uploads of a data directory. Those that have expired or cannot be continued are removed. `total_bytes`
    /// is what all uploads together may announce.
    #[must_use]
    pub fn open(data_dir: &Path, seal: Option<Seal>, total_bytes: u64, now: i64) -> Self {
        let folder = data_dir.join(UPLOADS);
        let mut all = BTreeMap::new();
        for (id, path) in staged_files(&folder) {
            match Entry::open(&id, &path, seal.clone()) {
                Ok(entry) if !entry.header.streamed && entry.header.expires_at > now => {
                    all.insert(id, Arc::new(entry));
                }
                Ok(_) => remove_file(&path),
                Err(error) => {
                    tracing::warn!(error = chain(&error), id, "an upload cannot be continued and is removed");
                    remove_file(&path);
                }
            }
        }
        Self(Arc::new(Inner { folder, seal, total_bytes, all: Mutex::new(all) }))
    }

    /// Creates an upload. If the device has an upload of the same file already, that one is returned.
    ///
    /// # Errors
    /// A field is not valid, a limit is reached, or the disk is full.
    pub fn create(&self, new: NewUpload, now: i64) -> Result<Upload, UploadError> {
        check(&new)?;
        self.remove_expired(now);
        let mut all = self.all();
        let own = || all.values().filter(|entry| entry.header.owner == new.owner);
        if let Some(same) = own().find(|entry| entry.header.continues(&new)) {
            return Ok(same.view(&same.state()));
        }
        if own().count() >= MAX_PENDING {
            return Err(UploadError::TooMany);
        }
        let used: u64 = all.values().map(|entry| entry.header.size).sum();
        let limit = self.0.total_bytes;
        if new.size > limit.saturating_sub(used) {
            return Err(UploadError::Quota { limit, used });
        }
        let entry = Arc::new(self.stage(new, now)?);
        all.insert(entry.id.clone(), Arc::clone(&entry));
        Ok(entry.view(&entry.state()))
    }

    fn stage(&self, new: NewUpload, now: i64) -> Result<Entry, UploadError> {
        let Inner { folder, seal, .. } = &*self.0;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let free = rustix::fs::statvfs(folder).map_err(io::Error::from)?;
        if new.size.saturating_add(FREE_BYTES) > free.f_bavail.saturating_mul(free.f_frsize) {
            return Err(UploadError::DiskFull { bytes: new.size });
        }
        let NewUpload { owner, name, size, sha256, streamed } = new;
        let expires_at = now.saturating_add(LIFETIME_MICROS);
        let header = Header { owner, name, size, sha256, created_at: now, expires_at, streamed };
        let id = Uuid::new_v4().to_string();
        let path = folder.join(&id);
        let stored = serde_json::to_vec(&header).map_err(io::Error::other)?;
        let created = StagedFile::create(&path, &id, seal.clone(), &stored)
            .and_then(|file| sync_folder(folder).map(|()| file));
        let file = created.map_err(|error| {
            remove_file(&path);
            write_error(error, 0)
        })?;
        Ok(Entry { id, header, path, state: Mutex::new(State::new(file)) })
    }

    /// Returns an upload of `owner`.
    ///
    /// # Errors
    /// `owner` has no such upload.
    pub fn get(&self, owner: &str, id: &str, now: i64) -> Result<Upload, UploadError> {
        let entry = self.find(owner, id, now)?;
        let state = entry.state();
        Ok(entry.view(&state))
    }

    /// Appends a chunk, and returns the number of bytes that are durable. A chunk that is already stored is accepted
    /// again. When the last byte arrives, the hash is checked.
    ///
    /// # Errors
    /// The chunk does not fit, or the disk refuses.
    pub fn write(
        &self,
        (owner, id): (&str, &str),
        offset: u64,
        chunk: &[u8],
        now: i64,
    ) -> Result<u64, UploadError> {
        let entry = self.find(owner, id, now)?;
        let mut state = entry.state();
        state.write(&entry, offset, chunk)?;
        if state.file.length() == entry.header.size {
            self.verify(&entry, &mut state)?;
        }
        Ok(state.file.length())
    }

    /// Removes an upload. An import that is reading it continues.
    ///
    /// # Errors
    /// `owner` has no such upload.
    pub fn cancel(&self, owner: &str, id: &str, now: i64) -> Result<(), UploadError> {
        let entry = self.find(owner, id, now)?;
        self.remove(&entry);
        Ok(())
    }

    /// Returns the bytes of a complete upload.
    ///
    /// # Errors
    /// `owner` has no such upload, bytes are missing, or their hash is wrong.
    pub fn content(&self, owner: &str, id: &str, now: i64) -> Result<UploadedFile, UploadError> {
        let entry = self.find(owner, id, now)?;
        let mut state = entry.state();
        let (committed, size) = (state.file.length(), entry.header.size);
        if committed < size {
            return Err(UploadError::Incomplete { id: id.to_owned(), committed, size });
        }
        self.verify(&entry, &mut state)?;
        let path = entry.path.join(&entry.header.name);
        Ok(UploadedFile { path, bytes: Arc::new(state.file.bytes()), length: size })
    }

    /// Removes the uploads that have expired.
    pub fn remove_expired(&self, now: i64) {
        let expired: Vec<_> =
            self.all().values().filter(|entry| entry.header.expires_at <= now).cloned().collect();
        expired.iter().for_each(|entry| self.remove(entry));
    }

    /// Checks the hash of a complete upload, and removes the upload if it is wrong.
    fn verify(&self, entry: &Entry, state: &mut State) -> Result<(), UploadError> {
        if state.verified {
            return Ok(());
        }
        let digest = state.digest()?;
        if entry.header.sha256.as_ref().is_some_and(|announced| *announced != digest.to_hex()) {
            self.remove(entry);
            return Err(UploadError::Sha256);
        }
        state.verified = true;
        Ok(())
    }

    fn remove(&self, entry: &Entry) {
        self.all().remove(&entry.id);
        remove_file(&entry.path);
    }

    /// Returns an upload of `owner`. Those of others do not exist for it.
    fn find(&self, owner: &str, id: &str, now: i64) -> Result<Arc<Entry>, UploadError> {
        let entry = self.all().get(id).cloned();
        let entry = entry.filter(|entry| entry.header.owner == owner && entry.header.expires_at > now);
        entry.ok_or_else(|| UploadError::not_found(id))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Entry>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Header {
    /// Returns whether `new` asks for this upload again.
    fn continues(&self, new: &NewUpload) -> bool {
        let resumable = !self.streamed && !new.streamed && new.sha256.is_some();
        resumable && self.sha256 == new.sha256 && self.name == new.name && self.size == new.size
    }
}

impl Entry {
    fn open(id: &str, path: &Path, seal: Option<Seal>) -> io::Result<Self> {
        let (file, header) = StagedFile::open(path, id, seal)?;
        let header = serde_json::from_slice(&header).map_err(io::Error::other)?;
        Ok(Self { id: id.to_owned(), header, path: path.to_owned(), state: Mutex::new(State::new(file)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self, state: &State) -> Upload {
        let Header { name, size, sha256, created_at, expires_at, .. } = self.header.clone();
        let (id, committed) = (self.id.clone(), state.file.length());
        Upload { id, name, size, sha256, committed, created_at, expires_at }
    }
}

impl State {
    fn new(file: StagedFile) -> Self {
        Self { file, hasher: Context::new(&SHA256), hashed: 0, verified: false, failed: false }
    }

    fn write(&mut self, entry: &Entry, offset: u64, chunk: &[u8]) -> Result<(), UploadError> {
        let (committed, size) = (self.file.length(), entry.header.size);
        if !(1..=MAX_CHUNK_BYTES).contains(&chunk.len()) {
            return Err(UploadError::field("data", "must hold 1 byte to 1 MiB"));
        }
        let end = offset.saturating_add(chunk.len() as u64);
        if end > size {
            return Err(UploadError::field("data", format!("ends past the {size} bytes of the upload")));
        }
        if end <= committed {
            let same = self.file.holds(offset, chunk)?;
            let problem = "differs from the bytes that are stored at this offset; cancel the upload if the file has changed";
            return if same { Ok(()) } else { Err(UploadError::field("data", problem)) };
        }
        if offset != committed {
            return Err(UploadError::Offset { offset, committed });
        }
        if self.file.full() {
            return Err(UploadError::TooManyChunks);
        }
        self.append(entry, chunk)
    }

    /// Appends a chunk. Durable when this returns, unless the upload ends with its call.
    fn append(&mut self, entry: &Entry, chunk: &[u8]) -> Result<(), UploadError> {
        if self.failed {
            let problem = "the disk failed earlier; cancel this upload and send the file again";
            return Err(UploadError::Io(io::Error::other(problem)));
        }
        let before = self.file.length();
        self.file.append(chunk).map_err(|error| write_error(error, chunk.len() as u64))?;
        if !entry.header.streamed {
            self.file.sync().inspect_err(|_| self.failed = true)?;
            satchel_failpoints::reached("upload chunk synced");
        }
        if self.hashed == before {
            self.hasher.update(chunk);
            self.hashed = self.file.length();
        }
        Ok(())
    }

    /// Returns the hash of all bytes. Those that arrived before a restart of the daemon are read again.
    fn digest(&mut self) -> io::Result<Sha256Digest> {
        let (bytes, mut buffer) = (self.file.bytes(), vec![0; HASHED_BYTES]);
        while self.hashed < self.file.length() {
            match bytes.read_at(self.hashed, &mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    self.hasher.update(&buffer[..read]);
                    self.hashed += read as u64;
                }
            }
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(self.hasher.clone().finish().as_ref());
        Ok(Sha256Digest::from_bytes(digest))
    }
}

/// Checks the fields of a request.
fn check(new: &NewUpload) -> Result<(), UploadError> {
    let NewUpload { name, size, sha256, .. } = new;
    if name.len() > MAX_NAME_BYTES {
        return Err(UploadError::field("name", format!("is longer than {MAX_NAME_BYTES} bytes")));
    }
    let hidden = |character: char| character.is_control() || matches!(character, '/' | '\\');
    if name.is_empty() || name == "." || name == ".." || name.contains(hidden) {
        let problem = "must be the name of a file, without folders and control characters";
        return Err(UploadError::field("name", problem));
    }
    if *size == 0 {
        return Err(UploadError::field("size_bytes", "must be the size of the file, at least 1"));
    }
    let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if sha256.as_ref().is_some_and(|digest| digest.len() != 64 || !digest.bytes().all(digit)) {
        return Err(UploadError::field("sha256", "must be 64 lower-case hex digits"));
    }
    Ok(())
}

/// Returns the ids and the paths of the uploads in a folder.
fn staged_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "the uploads cannot be listed");
            return Vec::new();
        }
    };
    let id = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Uuid::parse_str(&name).ok().map(|_| (name, entry.path()))
    };
    entries.filter_map(|entry| id(entry.ok()?)).collect()
}

fn remove_file(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, ?path, "the file of an upload cannot be removed");
        }
        _ => {}
    }
}

fn write_error(error: io::Error, bytes: u64) -> UploadError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => UploadError::DiskFull { bytes },
        _ => UploadError::Io(error),
    }
}
