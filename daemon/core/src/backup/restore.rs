//! Restores a backup. Every byte is checked before anything is touched. The store is built next to its final place and
//! compared with the manifest, and only then moved into place.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use satchel_seal::Seal;
use satchel_source::zip_directory::{self, BoundedReader};
use satchel_store::{CheckProgress, OpenEvent, Store, StoreError};
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, ZipArchive};

use super::{
    BackupProgress, BackupProgressFn, COPY_BYTES,
    manifest::{self, BackupEntry, BackupManifest, FORMAT, MANIFEST, MAX_FILES, MAX_MANIFEST_BYTES},
};
use crate::{
    plain_file,
    vault::{self, UnlockOptions, VaultError},
};

/// The reason why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup cannot be read.
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// The file is not a backup, or another program made it.
    #[error("{path:?} is not a backup of satchel: {problem}")]
    NotABackup { path: PathBuf, problem: String },
    /// A newer program wrote the backup.
    #[error("{path:?} has backup format {found}, this program knows up to {known}; use a newer satchel")]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// Bytes of the backup differ from what was written.
    #[error("the backup is damaged: {name:?} {problem}; nothing was restored")]
    Damaged { name: String, problem: String },
    /// The data directory is not empty.
    #[error("{dir:?} is not empty; name an empty data directory, or add --replace to set the old one aside")]
    DataDirNotEmpty { dir: PathBuf },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backup is encrypted and cannot be opened.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The file system refused the write.
    #[error("cannot write {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// There is not enough free space.
    #[error("{path:?} has {free} bytes free, and the backup needs {needed}")]
    NotEnoughSpace { path: PathBuf, free: u64, needed: u64 },
    /// The caller cancelled the restore.
    #[error("the restore was cancelled; nothing was changed")]
    Cancelled,
}

impl RestoreError {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// The last revision of the store.
    pub revision: u64,
    /// The new id of the store. A new id is needed because the history from here on differs from that of the store that
    /// was backed up.
    pub store_id: String,
    /// The digest of the store's state, equal to the one in the backup.
    pub digest: String,
    /// Number of files that were written.
    pub files: u64,
    /// Where the old data directory was moved, if there was one.
    pub set_aside: Option<PathBuf>,
}

/// Restores the backup `path` into `data_dir`, which must be empty or absent. If `replace` is set, an existing data
/// directory is set aside.
///
/// # Errors
/// The backup is not usable, the data directory is in use or not empty, or the file system refuses. Nothing is changed
/// then.
pub fn restore(
    path: &Path,
    data_dir: &Path,
    replace: bool,
    unlock: &UnlockOptions,
    report: BackupProgressFn<'_>,
) -> Result<RestoreOutcome, RestoreError> {
    // The folder may be a link to a larger disk.
    let data_dir = &fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let occupied = !is_absent_or_empty(data_dir).map_err(RestoreError::write(data_dir))?;
    if occupied && !replace {
        return Err(RestoreError::DataDirNotEmpty { dir: data_dir.to_owned() });
    }
    // Held until the end, so that no daemon starts on the directory that is about to be moved.
    let claim = if occupied { Some(satchel_store::lock_store(data_dir)?) } else { None };
    let mut reader = BackupReader::open(path, report)?;
    reader.check()?;
    let staging = Staging::create(data_dir, reader.manifest.files.iter().map(|entry| entry.bytes).sum())?;
    reader.unpack(&staging.dir)?;
    // The contents of an encrypted backup cannot be checked without its key.
    let seal = vault::unlock(&staging.dir, unlock)?;
    let store_id = reader.assign_new_id(&staging.dir, seal.as_ref())?;
    verify_state(&staging.dir, &reader.manifest, seal)?;
    let set_aside = staging.publish(data_dir, occupied)?;
    drop(claim);
    let BackupManifest { revision, digest, files, .. } = reader.manifest;
    Ok(RestoreOutcome { revision, store_id, digest, files: files.len() as u64, set_aside })
}

/// Returns whether the backup `path` is of an encrypted data directory, according to its manifest. Nothing else of it
/// is read.
///
/// # Errors
/// The file cannot be read, or is not a backup.
pub fn encrypted(path: &Path) -> Result<bool, RestoreError> {
    let file = plain_file::open_argument(path);
    let file = file.map_err(|source| RestoreError::Read { path: path.to_owned(), source })?;
    Ok(read_manifest(&mut open_zip(file, path)?, path)?.is_encrypted())
}

type BackupZip = ZipArchive<BoundedReader<BufReader<File>>>;

fn open_zip(file: File, path: &Path) -> Result<BackupZip, RestoreError> {
    let zip = zip_directory::open(BufReader::new(file), MAX_FILES + 1);
    zip.map_err(|error| RestoreError::NotABackup { path: path.to_owned(), problem: error.to_string() })
}

/// Returns whether a folder is absent or empty.
fn is_absent_or_empty(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(mut children) => Ok(children.next().is_none()),
    }
}

/// A backup that is being read.
struct BackupReader<'a> {
    path: PathBuf,
    zip: BackupZip,
    manifest: BackupManifest,
    progress: BackupProgress,
    report: BackupProgressFn<'a>,
}

impl<'a> BackupReader<'a> {
    /// Opens a backup and compares its directory with its manifest: the same names, all of them known, plain files
    /// without compression, and no more bytes in total than the file has.
    fn open(path: &Path, report: BackupProgressFn<'a>) -> Result<Self, RestoreError> {
        let refused = |source| RestoreError::Read { path: path.to_owned(), source };
        let not_a_backup = |problem: String| RestoreError::NotABackup { path: path.to_owned(), problem };
        let file = plain_file::open_argument(path).map_err(refused)?;
        let length = file.metadata().map_err(refused)?.len();
        let mut zip = open_zip(file, path)?;
        let manifest = read_manifest(&mut zip, path)?;
        let mut listed: BTreeMap<&str, u64> =
            manifest.files.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
        if listed.len() != manifest.files.len() {
            return Err(not_a_backup("its manifest lists a file twice".to_owned()));
        }
        let mut total = 0_u64;
        for index in 0..zip.len() {
            let entry = zip.by_index_raw(index).map_err(|error| not_a_backup(error.to_string()))?;
            let name = entry.name().map_err(|error| not_a_backup(error.to_string()))?.into_owned();
            if let Some(problem) = entry_problem(&entry, &name) {
                return Err(not_a_backup(format!("{name:?} {problem}")));
            }
            total = total.saturating_add(entry.size());
            if name != MANIFEST && listed.remove(name.as_str()) != Some(entry.size()) {
                return Err(not_a_backup(format!(
                    "{name:?} is missing from the manifest, has another size, or occurs twice"
                )));
            }
        }
        if let Some((name, _)) = listed.pop_first() {
            return Err(not_a_backup(format!("{name:?}, which its manifest lists, is missing")));
        }
        if total > length {
            return Err(not_a_backup("its files share bytes".to_owned()));
        }
        let bytes: u64 = manifest.files.iter().map(|entry| entry.bytes).sum();
        // Each byte is checked, unpacked, and rewritten under the new id.
        let progress = BackupProgress { done: 0, total: 3 * bytes };
        Ok(Self { path: path.to_owned(), zip, manifest, progress, report })
    }

    /// Reads every byte and compares it with the manifest.
    fn check(&mut self) -> Result<(), RestoreError> {
        for entry in self.manifest.files.clone() {
            self.copy(&entry, &mut io::sink())?;
        }
        Ok(())
    }

    fn unpack(&mut self, staging: &Path) -> Result<(), RestoreError> {
        for entry in self.manifest.files.clone() {
            let place = staging.join(&entry.name);
            if let Some(folder) = place.parent() {
                let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(RestoreError::write(folder))?;
            }
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place);
            let mut file = file.map_err(RestoreError::write(&place))?;
            self.copy(&entry, &mut file)?;
            file.sync_all().map_err(RestoreError::write(&place))?;
        }
        Ok(())
    }

    /// Copies a file of the backup. Its bytes must match the manifest.
    fn copy(&mut self, entry: &BackupEntry, to: &mut dyn Write) -> Result<(), RestoreError> {
        let BackupEntry { name, bytes, sha256 } = entry;
        let damaged = |problem: String| RestoreError::Damaged { name: name.clone(), problem };
        let mut source = self.zip.by_name(name).map_err(|error| damaged(error.to_string()))?;
        let (mut hasher, mut copied) = (Sha256::new(), 0);
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = source.read(&mut buffer).map_err(|error| damaged(error.to_string()))?;
            if read == 0 {
                break;
            }
            copied += read as u64;
            if copied > *bytes {
                return Err(damaged("is longer than the manifest says".to_owned()));
            }
            hasher.update(&buffer[..read]);
            to.write_all(&buffer[..read]).map_err(RestoreError::write(Path::new(name)))?;
            self.progress.done += read as u64;
            if !(self.report)(self.progress) {
                return Err(RestoreError::Cancelled);
            }
        }
        let found = Sha256Digest::from_bytes(hasher.finalize().into()).to_hex();
        if found != *sha256 || copied != *bytes {
            return Err(damaged("does not match its checksum".to_owned()));
        }
        // The names of encrypted attachments are not hashes; the store checks them when it opens them.
        let sealed = self.manifest.is_encrypted();
        if !sealed && manifest::blob_hash(name).is_some_and(|hash| hash != found) {
            return Err(damaged("is an attachment whose name does not match its content".to_owned()));
        }
        Ok(())
    }

    fn assign_new_id(&mut self, staging: &Path, seal: Option<&Seal>) -> Result<String, RestoreError> {
        let mut before = 0;
        let id = satchel_store::assign_new_store_id(staging, seal, &mut |CheckProgress { done, .. }| {
            self.progress.done += done - before;
            before = done;
            // The result is ignored: it is too late to cancel, and the staging folder is removed in any case.
            (self.report)(self.progress);
        });
        id.map(|id| id.to_string()).map_err(|error| match error {
            StoreError::DamagedJournal { first } => RestoreError::Damaged {
                name: self.path.display().to_string(),
                problem: format!("contains a damaged journal: {first}"),
            },
            error => error.into(),
        })
    }
}

fn read_manifest(zip: &mut BackupZip, path: &Path) -> Result<BackupManifest, RestoreError> {
    let not_a_backup = |problem: String| RestoreError::NotABackup { path: path.to_owned(), problem };
    let mut bytes = Vec::new();
    {
        let entry =
            zip.by_name(MANIFEST).map_err(|_| not_a_backup(format!("there is no {MANIFEST} in it")))?;
        if entry.size() > MAX_MANIFEST_BYTES {
            return Err(not_a_backup(format!("its {MANIFEST} is over {MAX_MANIFEST_BYTES} bytes")));
        }
        let read = entry.take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| not_a_backup(format!("its {MANIFEST} cannot be read: {error}")))?;
    }
    let unreadable =
        |error: serde_json::Error| not_a_backup(format!("its {MANIFEST} cannot be read: {error}"));
    // Check the format first: nothing else is known about a newer format.
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(unreadable)?;
    let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(FORMAT) {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        return Err(RestoreError::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    serde_json::from_value(value).map_err(unreadable)
}

/// Returns what is wrong with an entry of the archive, if anything.
fn entry_problem<R: Read + ?Sized>(entry: &zip::read::ZipFile<'_, R>, name: &str) -> Option<&'static str> {
    /// The file type bits of a Unix mode, and their value for a regular file.
    const KIND: u32 = 0o170_000;
    const PLAIN: u32 = 0o100_000;
    if name != MANIFEST && !manifest::is_backup_name(name) {
        return Some("is not a name that backups contain");
    }
    if entry.encrypted() || entry.compression() != CompressionMethod::Stored {
        return Some("is compressed or encrypted, which backups are not");
    }
    if entry.size() != entry.compressed_size() {
        return Some("claims two sizes");
    }
    let kind = entry.unix_mode().map_or(PLAIN, |mode| mode & KIND);
    (entry.is_dir() || (kind != PLAIN && kind != 0)).then_some("is no plain file")
}

/// The folder next to the data directory in which the store is built. It is removed if the restore fails.
struct Staging {
    dir: PathBuf,
    published: bool,
}

impl Staging {
    fn create(data_dir: &Path, bytes: u64) -> Result<Self, RestoreError> {
        let parent = crate::parent_of(data_dir);
        fs::create_dir_all(parent).map_err(RestoreError::write(parent))?;
        // The journal exists twice for a moment, and the database is built from it.
        let needed = bytes.saturating_mul(3);
        if let Ok(found) = rustix::fs::statvfs(parent) {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            if found.f_blocks > 0 && free < needed {
                return Err(RestoreError::NotEnoughSpace { path: parent.to_owned(), free, needed });
            }
        }
        let name = data_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dir = parent.join(format!(".{name}.restoring-{}", uuid::Uuid::new_v4()));
        fs::DirBuilder::new().mode(0o700).create(&dir).map_err(RestoreError::write(&dir))?;
        Ok(Self { dir, published: false })
    }

    /// Moves the old data directory aside and the new one into place. Durable when this returns.
    fn publish(mut self, data_dir: &Path, occupied: bool) -> Result<Option<PathBuf>, RestoreError> {
        let set_aside = if occupied { Some(move_aside(data_dir)?) } else { None };
        // A rename replaces an empty folder.
        fs::rename(&self.dir, data_dir).map_err(|source| {
            if let Some(old) = &set_aside
                && let Err(error) = fs::rename(old, data_dir)
            {
                tracing::error!(%error, old = %old.display(), "the old data directory stays set aside");
            }
            RestoreError::Write { path: data_dir.to_owned(), source }
        })?;
        self.published = true;
        crate::sync_folder(crate::parent_of(data_dir)).map_err(RestoreError::write(data_dir))?;
        Ok(set_aside)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = fs::remove_dir_all(&self.dir)
        {
            tracing::warn!(%error, path = ?self.dir, "an unfinished restore stays behind");
        }
    }
}

/// Moves the data directory to the first free name.
fn move_aside(data_dir: &Path) -> Result<PathBuf, RestoreError> {
    let mut number = 1_u32;
    loop {
        let mut name = data_dir.as_os_str().to_owned();
        name.push(format!(".replaced-{number}"));
        let place = PathBuf::from(name);
        if place.symlink_metadata().is_err() {
            fs::rename(data_dir, &place).map_err(RestoreError::write(&place))?;
            return Ok(place);
        }
        number = number.saturating_add(1);
    }
}

/// Opens the restored store and compares its state with the manifest.
fn verify_state(staging: &Path, manifest: &BackupManifest, seal: Option<Seal>) -> Result<(), RestoreError> {
    let mut damages = Vec::new();
    let options = satchel_store::OpenOptions { seal, ..Default::default() };
    let store = Store::open(staging, options, &mut |event| {
        if let OpenEvent::Damaged(damage) = event {
            damages.push(damage.to_string());
        }
    })?;
    let found = (store.revision().get(), store.state_digest().to_string());
    store.close()?;
    if let Some(problem) = damages.into_iter().next() {
        return Err(RestoreError::Damaged { name: "journal".to_owned(), problem });
    }
    if found != (manifest.revision, manifest.digest.clone()) {
        let problem = format!(
            "makes a store at revision {} that differs from the one at revision {} that was backed up",
            found.0, manifest.revision
        );
        return Err(RestoreError::Damaged { name: "journal".to_owned(), problem });
    }
    Ok(())
}
