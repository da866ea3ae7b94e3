//! Exports the store at one revision, as a signed PAM bundle or in another program's format, and lists the exports made
//! so far.

mod base;
mod bundle;
mod delta;
mod downloads;
mod identifiers;
mod job;
mod keys;
pub mod markdown;
pub mod memu;
mod memu_files;
mod partial;
mod private_texts;
mod record_id;
mod redaction;
mod scheduled;
mod selection;
mod target;

use std::{
    cell::{Cell, OnceCell},
    fs::File,
    io::{self, Seek},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use satchel_store::{Cursor, Page, Store, StoreError};
use uuid::Uuid;

use self::{
    base::{ExportKind, choose},
    delta::Delta,
    keys::SigningIdentity,
};
pub use self::{
    downloads::DOWNLOADS,
    keys::{SigningKeyInfo, SigningKeys},
    selection::Selection,
};
pub use crate::export_ledger::{ExportFormat, ExportRecord, FULL, INCREMENTAL};
use crate::{
    clock::{self, Clock, ClockError},
    data_dir::{self, DataDirError},
    export_ledger::{self, ExportLedgerError},
    provenance::{ProvenanceError, SourceDigests},
    schedule::RenewalPolicy,
};
use satchel_source::envelope::{EnvelopeError, ExportEncryption};

/// The parameters of an export.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// A path that ends in `.zip`, or a folder that does not exist or is empty.
    pub output: PathBuf,
    /// The output format.
    pub format: ExportFormat,
    /// Whether to include conversations.
    pub conversations: bool,
    /// Whether to include the bytes of attachments. Applies to PAM only.
    pub attachments: bool,
    /// Everything, or only the changes since a base.
    pub extent: Extent,
    /// Which part of the store to export.
    pub selection: Selection,
    /// Whom to encrypt for. `None` leaves the export unencrypted.
    pub lock: Option<ExportEncryption>,
}

/// How much of the store is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The whole store.
    #[default]
    Full,
    /// The changes since a full export: the named one, or the latest.
    Incremental {
        /// The `export_id` of the base. If absent, a full export is made when one is due.
        base: Option<String>,
    },
}

/// The progress of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Memories written so far.
    pub memories: u64,
    /// Total number of memories, as far as it is known in advance.
    pub memories_total: u64,
    /// Conversations written so far. Conversations are written before memories.
    pub conversations: u64,
    /// Total number of conversations.
    pub conversations_total: u64,
}

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger of exports failed.
    #[error(transparent)]
    Ledger(#[from] ExportLedgerError),
    /// The output lies inside the data directory.
    #[error(transparent)]
    InsideDataDir(#[from] DataDirError),
    /// The system clock is not usable.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The output path is already in use.
    #[error("{path:?} already exists; choose a new path or an empty folder")]
    Occupied { path: PathBuf },
    /// The output path has no file name.
    #[error("{path:?} has no file or folder name")]
    BadOutput { path: PathBuf },
    /// The file system refused the write.
    #[error("cannot write the export to {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// The signing key file cannot be used.
    #[error("the signing key {path:?} cannot be used: {problem}")]
    Key { path: PathBuf, problem: String },
    /// The current signing key works, so there is no need for a new identity.
    #[error(
        "the signing key can be used, so a new identity is not begun; `satchel keys rotate` lets another key follow it"
    )]
    KeyWorks,
    /// The bundle is no longer at the path that the ledger recorded.
    #[error("the export is no longer at {path:?}")]
    Gone { path: PathBuf, source: io::Error },
    /// Another machine made the export, or it was applied here.
    #[error("the export {id:?} was made elsewhere; only what was made here can be fetched")]
    NotOurs { id: String },
    /// The named base is unknown.
    #[error("no export {id:?} is known here; `satchel exports list` shows those that are")]
    UnknownBase { id: String },
    /// The named base is known, but cannot be built on.
    #[error("nothing can be built on the export {id:?}: it {problem}")]
    UnfitBase { id: String, problem: &'static str },
    /// Incremental exports exist only in the PAM format.
    #[error("only PAM knows incremental exports; leave --incremental out, or the other format")]
    NoIncrement,
    /// An encrypted export was requested, but the file name does not end in `.zip.age`.
    #[error(
        "{path:?} names no encrypted export; an encrypted export is one file with a name that ends in .zip.age"
    )]
    NotEncryptedName { path: PathBuf },
    /// The file name is that of an encrypted export, but no recipient or passphrase was given.
    #[error(
        "{path:?} names an encrypted export; add --encrypt-to RECIPIENT or --passphrase, or name another file"
    )]
    NoRecipients { path: PathBuf },
    /// The encryption parameters were rejected.
    #[error("the export cannot be encrypted: {0}")]
    Lock(#[from] EnvelopeError),
    /// A selection cannot be exported incrementally.
    #[error(
        "an incremental export is of the whole store; leave --incremental out, or the filters and --strip-identifiers"
    )]
    PartialIncrement,
    /// MemU's format is built around users and their lists, so it can be neither filtered nor stripped of identifiers.
    #[error(
        "MemU's shapes can be neither filtered nor stripped, as they are made of users and their lists; use --format pam or markdown"
    )]
    WholeOnly,
    /// The temporary file failed.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] io::Error),
    /// The caller cancelled the export.
    #[error("the export was cancelled")]
    Cancelled,
    /// A bug in this program.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
}

impl From<ProvenanceError> for ExportError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Unreadable { what } => Self::Unencodable { what },
            ProvenanceError::Temporary(error) => Self::Temporary(error),
        }
    }
}

impl ExportError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }
}

/// Returns the current and former public signing keys of the data directory (multibase), without opening its store. The
/// list is empty before the first export.
#[must_use]
pub fn public_keys_of(data_dir: &Path) -> Vec<String> {
    keys::public_keys_in(&data_dir.join("keys"))
}

/// Returns whether a key signs for `store`, whose data directory is `data_dir`. Checks the key file against the key
/// that the store has recorded.
///
/// # Errors
/// The key file is damaged, missing, or holds a different key.
pub fn check_signer(store: &Store, data_dir: &Path) -> Result<bool, ExportError> {
    let keys = data_dir.join("keys");
    let known = export_ledger::signer(store)?;
    Ok(keys::check_recorded(&keys, keys::load(&keys)?, known.as_deref())?.is_some())
}

/// The exports of a store. Clones share the same state.
#[derive(Clone)]
pub struct Exports(Arc<ExportsInner>);

struct ExportsInner {
    store: Store,
    clock: Arc<dyn Clock>,
    keys: PathBuf,
    settings: ExportSettings,
    /// Held while a key is created or rotated, so that each key has exactly one successor.
    rotating: Mutex<()>,
}

/// The user's settings for exports.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    /// When a full export is due.
    pub renewal: RenewalPolicy,
    /// PAM `owner.did`. `None` means the DID of the signing key.
    pub did: Option<String>,
    /// PAM `type_registry`: where the user's own types are documented.
    pub type_registry: Option<String>,
}

impl Exports {
    /// Creates the exports of `store`. The signing key is in the folder `keys`.
    pub fn new(store: Store, clock: Arc<dyn Clock>, keys: PathBuf) -> Self {
        Self::with_renewal(store, clock, keys, RenewalPolicy::default())
    }

    /// Creates the exports of `store` with a custom rule for when a full export is due.
    pub fn with_renewal(store: Store, clock: Arc<dyn Clock>, keys: PathBuf, renewal: RenewalPolicy) -> Self {
        Self::with_settings(store, clock, keys, ExportSettings { renewal, ..ExportSettings::default() })
    }

    /// Creates the exports of `store` with the user's settings.
    pub fn with_settings(
        store: Store,
        clock: Arc<dyn Clock>,
        keys: PathBuf,
        settings: ExportSettings,
    ) -> Self {
        Self(Arc::new(ExportsInner { store, clock, keys, settings, rotating: Mutex::new(()) }))
    }

    /// Writes an export of the current state of the store. When this returns, the export is complete and durable. An
    /// incomplete export is never left at the output path.
    ///
    /// # Errors
    /// The output path is in use, the file system refuses, the store cannot be read, or the base does not fit.
    pub fn create(&self, request: &ExportRequest) -> Result<ExportRecord, ExportError> {
        self.create_with_progress(request, &|_| true)
    }

    /// Writes an export like [`Exports::create`] and reports progress to `report` after every record. If `report` returns
    /// false, the export is cancelled and nothing of it is left.
    ///
    /// # Errors
    /// As [`Exports::create`], and [`ExportError::Cancelled`].
    pub fn create_with_progress(
        &self,
        request: &ExportRequest,
        report: &dyn Fn(ExportProgress) -> bool,
    ) -> Result<ExportRecord, ExportError> {
        data_dir::refuse_inside(self.0.store.dir(), &request.output)?;
        self.write(request, false, report)
    }

    fn write(
        &self,
        request: &ExportRequest,
        scheduled: bool,
        report: &dyn Fn(ExportProgress) -> bool,
    ) -> Result<ExportRecord, ExportError> {
        let now = clock::check(self.0.clock.now_micros())?;
        let signer = {
            let _guard = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
            self.signer(now)?
        };
        let id = Uuid::new_v4().to_string();
        let store = &self.0.store;
        let revision = store.revision();
        let (delta, reason) =
            match choose(store, request, self.0.settings.renewal, (revision, now), scheduled)? {
                ExportKind::Delta(delta) => (Some(*delta), None),
                ExportKind::Full(reason) => (None, reason),
            };
        let current = Cell::new(initial_progress(store, request, delta.as_ref())?);
        let progress = job::ProgressReporter { current, report };
        let private_texts = OnceCell::new();
        let did = self.0.settings.did.as_deref();
        let type_registry = self.0.settings.type_registry.as_deref();
        let job = job::ExportJob {
            store,
            request,
            did,
            id,
            revision,
            now,
            signer: &signer,
            delta,
            reason,
            scheduled,
            progress,
            private_texts,
            identifiers: OnceCell::new(),
            digests: SourceDigests::default(),
            type_registry,
        };
        let mut record = match request.format {
            ExportFormat::Pam => bundle::write(&job)?,
            ExportFormat::Memu if request.selection.description().is_some() => {
                return Err(ExportError::WholeOnly);
            }
            ExportFormat::Memu => memu_files::write(&job)?,
            ExportFormat::Markdown => markdown::write(&job)?,
        };
        match export_ledger::record(&self.0.store, &record) {
            Ok(()) => {}
            // The export may be on another disk than the store, and it is complete.
            Err(ExportLedgerError::Store(error)) if error.unwritable() => record.warnings.push(format!(
                "this export is complete, but could not be recorded, so no incremental export can build on it: {error}"
            )),
            Err(error) => return Err(error.into()),
        }
        satchel_failpoints::reached("export recorded");
        Ok(record)
    }

    /// Returns one export.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<ExportRecord>, ExportError> {
        Ok(export_ledger::find_anywhere(&self.0.store, id)?)
    }

    /// Returns a page of exports, newest first.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn list(&self, after: Option<&Cursor>, limit: usize) -> Result<Page<ExportRecord>, ExportError> {
        Ok(export_ledger::list(&self.0.store, after, limit)?)
    }

    /// Opens the bundle as one ZIP file: the file itself, or a temporary ZIP made from the folder.
    ///
    /// # Errors
    /// The export was not made here, is missing, or cannot be read.
    pub fn open(&self, record: &ExportRecord) -> Result<File, ExportError> {
        let path = PathBuf::from(&record.path);
        if record.applied || record.machine.is_some() {
            // The path is that of the imported source, which may be a folder that contains unrelated files, or that of another machine.
            return Err(ExportError::NotOurs { id: record.export_id.clone() });
        }
        let gone = |source| ExportError::Gone { path: path.clone(), source };
        if !path.is_dir() {
            return File::open(&path).map_err(gone);
        }
        let mut file = tempfile::tempfile().map_err(gone)?;
        zip_folder(&path, &file).map_err(gone)?;
        file.rewind().map_err(gone)?;
        Ok(file)
    }

    /// Returns the owner of the memories: the owner that exports name, or the owner named by the first export that was
    /// applied here.
    ///
    /// # Errors
    /// The ledger or the key file cannot be used, so the owner is unknown.
    pub fn owner(&self) -> Result<Option<String>, ExportError> {
        Ok(match keys::load(&self.0.keys)? {
            Some(signer) => Some(signer.owner),
            None => export_ledger::applied_owner(&self.0.store)?,
        })
    }

    /// Returns the public keys of this data directory (multibase), the current one first. The list is empty before the
    /// first export.
    pub fn public_keys(&self) -> Vec<String> {
        keys::public_keys_in(&self.0.keys)
    }

    /// Returns the current and former signing keys, or `None` before the first export.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn signing_keys(&self) -> Result<Option<SigningKeys>, ExportError> {
        let known = export_ledger::signer(&self.0.store)?;
        let signer = keys::check_recorded(&self.0.keys, keys::load(&self.0.keys)?, known.as_deref())?;
        Ok(signer.map(|signer| signer.to_signing_keys(self.0.settings.did.as_deref())))
    }

    /// Replaces the signing key with a new one; the old key signs the rotation. Durable when this returns.
    ///
    /// # Errors
    /// The key file cannot be used or written.
    pub fn rotate_key(&self) -> Result<SigningKeys, ExportError> {
        // A poisoned lock is safe to ignore: a thread that panicked while holding it left a complete key file, old or
        // new.
        let _guard = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now_micros();
        let old = self.signer(now)?;
        let new = keys::rotate(&self.0.keys, &old, now)?;
        self.record_signer(&new, now)?;
        Ok(new.to_signing_keys(self.0.settings.did.as_deref()))
    }

    /// Starts a new identity if the signing key is damaged or missing. Nothing links it to the previous identity. The
    /// remains of the old key file are set aside. Durable when this returns.
    ///
    /// # Errors
    /// The current signing key works, or the file system refuses.
    pub fn start_new_identity(&self) -> Result<SigningKeys, ExportError> {
        let _guard = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now_micros();
        let known = export_ledger::signer(&self.0.store)?;
        if keys::load(&self.0.keys)
            .and_then(|found| keys::check_recorded(&self.0.keys, found, known.as_deref()))
            .is_ok()
        {
            return Err(ExportError::KeyWorks);
        }
        keys::set_aside(&self.0.keys)?;
        let new =
            keys::load_or_create(&self.0.keys, now, None, || export_ledger::applied_owner(&self.0.store))?;
        self.record_signer(&new, now)?;
        Ok(new.to_signing_keys(self.0.settings.did.as_deref()))
    }

    /// Returns the signing key, creating it if the store never had one. The caller must hold `rotating`.
    fn signer(&self, now: i64) -> Result<SigningIdentity, ExportError> {
        let known = export_ledger::signer(&self.0.store)?;
        let signer = keys::load_or_create(&self.0.keys, now, known.as_deref(), || {
            export_ledger::applied_owner(&self.0.store)
        })?;
        self.record_signer(&signer, now)?;
        Ok(signer)
    }

    /// Records in the store which key signs for it, so that a different key in its place is detected.
    fn record_signer(&self, signer: &SigningIdentity, now: i64) -> Result<(), ExportError> {
        let public = signer.current_public_key();
        if export_ledger::signer(&self.0.store)?.as_deref() != Some(public.as_str()) {
            export_ledger::record_signer(&self.0.store, &public, now)?;
        }
        Ok(())
    }
}

/// Returns the totals of an export that is about to start.
fn initial_progress(
    store: &Store,
    request: &ExportRequest,
    delta: Option<&Delta>,
) -> Result<ExportProgress, ExportError> {
    let (memories_total, conversations_total) = if let Some(delta) = delta {
        (delta.memories.len() as u64, delta.conversations.len() as u64)
    } else {
        let stats = store.stats()?;
        (stats.memories, stats.conversations)
    };
    let conversations_total = if request.conversations { conversations_total } else { 0 };
    Ok(ExportProgress { memories_total, conversations_total, ..ExportProgress::default() })
}

/// Rows per page.
const PAGE: usize = 500;

/// Reads page after page and passes each row to `visit`.
fn pages<T>(
    next: impl FnMut(Option<&Cursor>) -> Result<Page<T>, ExportError>,
    visit: impl FnMut(T) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    crate::each_row(next, visit)
}

fn zip_folder(root: &Path, file: &File) -> io::Result<()> {
    let mut zip = zip::ZipWriter::new(io::BufWriter::new(file));
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o600).large_file(true);
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let mut children = std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        children.sort_by_key(std::fs::DirEntry::file_name);
        for child in children {
            let name = format!("{prefix}{}", child.file_name().to_string_lossy());
            let kind = child.file_type()?;
            if kind.is_dir() {
                folders.push((child.path(), format!("{name}/")));
            } else if kind.is_file() {
                zip.start_file(name, options)?;
                io::copy(&mut File::open(child.path())?, &mut zip)?;
            }
        }
    }
    io::Write::flush(&mut zip.finish()?)
}
