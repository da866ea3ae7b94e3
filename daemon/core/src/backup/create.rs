//! Makes a backup of a store that is in use.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use satchel_store::{CheckProgress, Store, StoreError, StoreSnapshot};
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    BackupProgress, BackupProgressFn, COPY_BYTES,
    manifest::{BackupEntry, BackupManifest, FORMAT, MANIFEST, MAX_FILES, is_plain_name},
    partial::{self, PartialBackup},
};
use crate::data_dir::{self, DataDirError};

/// Folders next to the store that a backup includes, without subfolders.
const EXTRA_FOLDERS: [&str; 2] = ["keys", "plugins"];

/// The reason why a backup failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read, or its journal is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output lies inside the data directory.
    #[error(transparent)]
    InsideDataDir(#[from] DataDirError),
    /// The output exists. Nothing is overwritten.
    #[error("{path:?} exists; choose another file")]
    OutputExists { path: PathBuf },
    /// The output path has no file name.
    #[error("{path:?} is no name of a file")]
    BadOutput { path: PathBuf },
    /// The file system refused the write.
    #[error("cannot write a backup to {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// There are more files than [`super::restore`] accepts, so no backup is written.
    #[error(
        "cannot write a backup to {path:?}: it holds {MAX_FILES} files, and there are more; copy the data directory while no daemon runs"
    )]
    TooManyFiles { path: PathBuf },
    /// The caller cancelled the backup.
    #[error("the backup was cancelled")]
    Cancelled,
}

impl BackupError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }
}

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The path of the file.
    pub path: PathBuf,
    /// The last revision in the backup.
    pub revision: u64,
    /// The digest of the store's state at that revision.
    pub digest: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of files in the backup.
    pub files: u64,
    /// Attachments that were left out because their bytes do not match their hash.
    pub left_out: Vec<String>,
}

/// Writes the contents of `store`, whose data directory is `data_dir`, up to its last commit to the new file `output`,
/// mode 0600. Commits continue meanwhile. When this returns, the file is durable. Nothing exists at `output` until the
/// backup is complete.
///
/// # Errors
/// The journal is damaged, the output exists, or the file system refuses.
pub fn create(
    store: &Store,
    data_dir: &Path,
    output: &Path,
    now_micros: i64,
    report: BackupProgressFn<'_>,
) -> Result<Backup, BackupError> {
    let failed = BackupError::write(output);
    if output.file_name().is_none() {
        return Err(BackupError::BadOutput { path: output.to_owned() });
    }
    data_dir::refuse_inside(data_dir, output)?;
    if output.symlink_metadata().is_ok() {
        return Err(BackupError::OutputExists { path: output.to_owned() });
    }
    let parent = crate::parent_of(output);
    crate::make_parents(output).map_err(&failed)?;
    partial::remove_abandoned(parent);
    // Mode 0600 from the start; the file is removed if this fails.
    let file = partial::create(parent).map_err(&failed)?;
    let stats = store.stats()?;
    // The journal is read twice: once to check it and once to copy it. So are the attachments.
    let total = 2 * (stats.journal_bytes + stats.blob_bytes);
    let mut writer = BackupWriter {
        zip: ZipWriter::new(BufWriter::new(file)),
        output,
        entries: Vec::new(),
        progress: BackupProgress { done: 0, total },
        report,
    };
    satchel_failpoints::reached("backup started");
    let pinned = writer.pin(store)?;
    satchel_failpoints::reached("backup pinned");
    for segment in &pinned.segments {
        let source = store.open_snapshot_segment(segment)?;
        writer.add_file(&format!("journal/{}", segment.name), source)?;
    }
    let left_out = writer.add_attachments(store)?;
    writer.add_extra_folders(data_dir)?;
    writer.finish(&pinned, now_micros, left_out)
}

struct BackupWriter<'a> {
    zip: ZipWriter<BufWriter<PartialBackup>>,
    output: &'a Path,
    entries: Vec<BackupEntry>,
    progress: BackupProgress,
    report: BackupProgressFn<'a>,
}

impl BackupWriter<'_> {
    fn pin(&mut self, store: &Store) -> Result<StoreSnapshot, BackupError> {
        let mut before = 0;
        let mut continues = true;
        let pinned = store.snapshot(&mut |CheckProgress { done, .. }| {
            if done - before >= COPY_BYTES as u64 {
                self.progress.done += done - before;
                before = done;
                continues &= (self.report)(self.progress);
            }
        })?;
        if continues { Ok(pinned) } else { Err(BackupError::Cancelled) }
    }

    fn advance(&mut self, bytes: usize) -> Result<(), BackupError> {
        self.progress.done += bytes as u64;
        self.progress.total = self.progress.total.max(self.progress.done);
        if (self.report)(self.progress) { Ok(()) } else { Err(BackupError::Cancelled) }
    }

    /// Copies all of `source` and records its hash in the manifest.
    fn add_file(&mut self, name: &str, mut source: impl Read) -> Result<(), BackupError> {
        let failed = BackupError::write(self.output);
        self.begin(name)?;
        if self.entries.len() == MAX_FILES {
            return Err(BackupError::TooManyFiles { path: self.output.to_owned() });
        }
        let (mut hasher, mut bytes) = (Sha256::new(), 0_u64);
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = source.read(&mut buffer).map_err(&failed)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            self.zip.write_all(&buffer[..read]).map_err(&failed)?;
            bytes += read as u64;
            self.advance(read)?;
        }
        let sha256 = Sha256Digest::from_bytes(hasher.finalize().into()).to_hex();
        satchel_failpoints::reached("backup file copied");
        self.entries.push(BackupEntry { name: name.to_owned(), bytes, sha256 });
        Ok(())
    }

    fn begin(&mut self, name: &str) -> Result<(), BackupError> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .unix_permissions(0o600)
            .large_file(true)
            .last_modified_time(zip::DateTime::default());
        self.zip.start_file(name, options).map_err(|error| BackupError::write(self.output)(error.into()))
    }

    /// Hashes all of `source`. Returns `None` if it cannot be decrypted with the data key.
    fn hash(&mut self, source: &mut dyn Read) -> Result<Option<[u8; 32]>, BackupError> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = match source.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
                read => read.map_err(BackupError::write(self.output))?,
            };
            match read {
                0 => return Ok(Some(hasher.finalize().into())),
                read => {
                    hasher.update(&buffer[..read]);
                    self.advance(read)?;
                }
            }
        }
    }

    /// Copies the attachments whose bytes match their hash. Returns the hashes of the others.
    fn add_attachments(&mut self, store: &Store) -> Result<Vec<String>, BackupError> {
        let mut left_out = Vec::new();
        for sha256 in store.blobs()? {
            let hash = Sha256Digest::from_bytes(sha256);
            let opened = match store.blob_open(&sha256) {
                Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidData => None,
                opened => opened?,
            };
            let Some(mut blob) = opened else {
                left_out.push(hash.to_hex());
                continue;
            };
            if self.hash(&mut blob)? != Some(sha256) {
                left_out.push(hash.to_hex());
                continue;
            }
            let Some((name, file)) = store.blob_file(&sha256)? else { continue };
            self.add_file(&format!("blobs/{}/{}", &name[..2], &name[2..]), file)?;
        }
        Ok(left_out)
    }

    fn add_extra_folders(&mut self, data_dir: &Path) -> Result<(), BackupError> {
        for folder in EXTRA_FOLDERS {
            let children = match fs::read_dir(data_dir.join(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                children => children.map_err(BackupError::write(self.output))?,
            };
            let mut names: Vec<String> = Vec::new();
            for child in children {
                let child = child.map_err(BackupError::write(self.output))?;
                // Unfinished files begin with a dot; links and folders do not belong to Satchel.
                let ours = child.file_type().is_ok_and(|kind| kind.is_file());
                names.extend(
                    child.file_name().to_str().filter(|name| ours && is_plain_name(name)).map(str::to_owned),
                );
            }
            names.sort();
            for name in names {
                let path = data_dir.join(folder).join(&name);
                let file = File::open(&path).map_err(BackupError::write(&path))?;
                self.add_file(&format!("{folder}/{name}"), file)?;
            }
        }
        Ok(())
    }

    /// Finishes the backup. This is the commit point: everything is fsynced, and then the file gets its name.
    fn finish(
        mut self,
        pinned: &StoreSnapshot,
        now: i64,
        left_out: Vec<String>,
    ) -> Result<Backup, BackupError> {
        let failed = BackupError::write(self.output);
        let manifest = BackupManifest {
            format: FORMAT,
            program: concat!("satchel ", env!("CARGO_PKG_VERSION")).to_owned(),
            store_id: pinned.store_id.to_string(),
            revision: pinned.revision.get(),
            digest: pinned.digest.to_string(),
            made_at_micros: now,
            files: std::mem::take(&mut self.entries),
        };
        let bytes = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
        self.begin(MANIFEST)?;
        self.zip.write_all(&bytes).map_err(&failed)?;
        let file = self.zip.finish().map_err(|error| failed(error.into()))?;
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.as_file().sync_all().map_err(&failed)?;
        satchel_failpoints::reached("backup synced");
        let length = file.as_file().metadata().map_err(&failed)?.len();
        file.publish(self.output).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::OutputExists { path: self.output.to_owned() },
            _ => failed(error),
        })?;
        satchel_failpoints::reached("backup placed");
        crate::sync_folder(crate::parent_of(self.output)).map_err(&failed)?;
        satchel_failpoints::reached("backup folder synced");
        Ok(Backup {
            path: self.output.to_owned(),
            revision: manifest.revision,
            digest: manifest.digest,
            bytes: length,
            files: manifest.files.len() as u64,
            left_out,
        })
    }
}
