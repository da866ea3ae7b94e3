//! Exports of what the store holds at one revision, as signed PAM bundles or in another program's shapes, and their ledger.

mod base;
mod bundle;
mod delta;
mod id;
mod identifiers;
mod job;
mod keys;
mod leave;
mod markdown;
pub mod memu;
mod partial;
mod regular;
mod select;
mod target;
mod view;
mod withheld;

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
    base::{Choice, choose},
    delta::Delta,
    keys::Signer,
};
pub use self::{
    keys::{SigningKeyInfo, SigningKeys},
    select::Selection,
};
pub use crate::exported::{ExportRecord, FULL, Format, INCREMENTAL};
use crate::{
    clock::{self, Clock, ClockError},
    data_dir::{self, DataDirError},
    exported::{self, ExportedError},
    lineage::{Digests, LineageError},
    schedule::Renewal,
};
use satchel_source::envelope::{EnvelopeError, Lock};

/// What to export.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// A path that ends in `.zip`, or a folder that is absent or empty.
    pub output: PathBuf,
    /// In whose shapes.
    pub format: Format,
    /// With conversations.
    pub conversations: bool,
    /// With the bytes of attachments; of PAM only.
    pub attachments: bool,
    /// All or what changed.
    pub extent: Extent,
    /// What of the store.
    pub selection: Selection,
    /// To whom; none: to whoever has the file.
    pub lock: Option<Lock>,
}

/// How much is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All.
    #[default]
    Full,
    /// What changed since a full export: the one named, or the latest.
    Incremental {
        /// Its `export_id`. Without one, a full export is made where one is due.
        base: Option<String>,
    },
}

/// How far an export is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Memories that are written.
    pub memories: u64,
    /// Of how many, as far as that is known beforehand.
    pub memories_total: u64,
    /// Conversations that are written; they come first.
    pub conversations: u64,
    /// Of how many.
    pub conversations_total: u64,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] ExportedError),
    /// Among the data.
    #[error(transparent)]
    Place(#[from] DataDirError),
    /// The clock of the machine.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Something is there.
    #[error("{path:?} exists already; name a file or folder that does not, or an empty folder")]
    Occupied { path: PathBuf },
    /// No file name.
    #[error("{path:?} names no file or folder to write")]
    BadOutput { path: PathBuf },
    /// The file system refused.
    #[error("cannot write the export to {path:?}")]
    Write { path: PathBuf, source: io::Error },
    /// The key file.
    #[error("the signing key {path:?} cannot be used: {problem}")]
    Key { path: PathBuf, problem: String },
    /// There is no need for another.
    #[error(
        "the signing key can be used, so a new identity is not begun; `satchel keys rotate` lets another key follow it"
    )]
    KeyWorks,
    /// The bundle of the ledger is no longer where it was written.
    #[error("the export is no longer at {path:?}")]
    Gone { path: PathBuf, source: io::Error },
    /// It was read here, not written.
    #[error("the export {id:?} was made elsewhere and applied here; only what was made here can be fetched")]
    NotOurs { id: String },
    /// The base that was named.
    #[error("no export {id:?} is known here; `satchel exports list` shows those that are")]
    UnknownBase { id: String },
    /// The base that was named.
    #[error("nothing can be built on the export {id:?}: it {problem}")]
    UnfitBase { id: String, problem: &'static str },
    /// Another format.
    #[error("only PAM knows incremental exports; leave --incremental out, or the other format")]
    NoIncrement,
    /// A name that says otherwise than what was asked for.
    #[error(
        "{path:?} names no encrypted export; an encrypted export is one file with a name that ends in .zip.age"
    )]
    NotSealed { path: PathBuf },
    /// Likewise.
    #[error(
        "{path:?} names an encrypted export; add --encrypt-to RECIPIENT or --passphrase, or name another file"
    )]
    NoLock { path: PathBuf },
    /// Nobody could open it.
    #[error("the export cannot be encrypted: {0}")]
    Lock(#[from] EnvelopeError),
    /// A part of a part.
    #[error(
        "an incremental export is of the whole store; leave --incremental out, or the filters and --strip-identifiers"
    )]
    PartialIncrement,
    /// Shapes that are made of who somebody is.
    #[error(
        "MemU's shapes can be neither filtered nor stripped, as they are made of users and their lists; use --format pam or markdown"
    )]
    WholeOnly,
    /// The disk.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] io::Error),
    /// Whoever asked for it stopped it.
    #[error("the export was cancelled")]
    Cancelled,
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
}

impl From<LineageError> for ExportError {
    fn from(error: LineageError) -> Self {
        match error {
            LineageError::Store(error) => Self::Store(error),
            LineageError::Unreadable { what } => Self::Unencodable { what },
            LineageError::Temporary(error) => Self::Temporary(error),
        }
    }
}

impl ExportError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }
}

/// The public keys that the data directory signs and signed with, multibase, found without opening its store; none before its
/// first export.
#[must_use]
pub fn signers_of(data_dir: &Path) -> Vec<String> {
    keys::known(&data_dir.join("keys"))
}

/// Whether a key signs for `store`, whose folder is `data_dir`; its file is held against what the store knows of it.
///
/// # Errors
/// A file that is damaged or gone, or holds another key.
pub fn check_signer(store: &Store, data_dir: &Path) -> Result<bool, ExportError> {
    let keys = data_dir.join("keys");
    let known = exported::signer(store)?;
    Ok(keys::expect(&keys, keys::load(&keys)?, known.as_deref())?.is_some())
}

/// All exports of a store. Clones share one.
#[derive(Clone)]
pub struct Exports(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    keys: PathBuf,
    settings: Settings,
    /// Held while a key is made or replaced: each has one successor.
    rotating: Mutex<()>,
}

/// What a person may set.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// When a full export is due.
    pub renewal: Renewal,
    /// PAM `owner.did`; none: that of the signing key.
    pub did: Option<String>,
    /// PAM `type_registry`: where the types of the person's own are written down.
    pub type_registry: Option<String>,
}

impl Exports {
    /// Exports `store`; the signing key lies in the folder `keys`.
    pub fn new(store: Store, clock: Arc<dyn Clock>, keys: PathBuf) -> Self {
        Self::renewing(store, clock, keys, Renewal::default())
    }

    /// Exports `store`, with a rule of its own for when a full export is due.
    pub fn renewing(store: Store, clock: Arc<dyn Clock>, keys: PathBuf, renewal: Renewal) -> Self {
        Self::configured(store, clock, keys, Settings { renewal, ..Settings::default() })
    }

    /// Exports `store` as a person set it.
    pub fn configured(store: Store, clock: Arc<dyn Clock>, keys: PathBuf, settings: Settings) -> Self {
        Self(Arc::new(Inner { store, clock, keys, settings, rotating: Mutex::new(()) }))
    }

    /// Writes an export of the store as it is now. It is whole and durable when this returns, or not there.
    ///
    /// # Errors
    /// When the output is taken, the file system refuses, the store cannot be read, or the base does not fit.
    pub fn create(&self, request: &ExportRequest) -> Result<ExportRecord, ExportError> {
        self.create_telling(request, &|_| true)
    }

    /// As [`Exports::create`]; `tell` hears how far it is, record by record, and ends it by returning false. Nothing is left of it
    /// then.
    ///
    /// # Errors
    /// As [`Exports::create`]; [`ExportError::Cancelled`].
    pub fn create_telling(
        &self,
        request: &ExportRequest,
        tell: &dyn Fn(Progress) -> bool,
    ) -> Result<ExportRecord, ExportError> {
        self.write(request, false, tell)
    }

    fn write(
        &self,
        request: &ExportRequest,
        scheduled: bool,
        tell: &dyn Fn(Progress) -> bool,
    ) -> Result<ExportRecord, ExportError> {
        let now = clock::check(self.0.clock.now_micros())?;
        data_dir::refuse_inside(self.0.store.dir(), &request.output)?;
        let signer = {
            let _one = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
            self.signer(now)?
        };
        let id = Uuid::new_v4().to_string();
        let store = &self.0.store;
        let revision = store.revision();
        let (delta, reason) =
            match choose(store, request, self.0.settings.renewal, (revision, now), scheduled)? {
                Choice::Delta(delta) => (Some(*delta), None),
                Choice::Full(reason) => (None, reason),
            };
        let progress = Cell::new(total(store, request, delta.as_ref())?);
        let told = job::Told { progress, tell };
        let private = OnceCell::new();
        let did = self.0.settings.did.as_deref();
        let type_registry = self.0.settings.type_registry.as_deref();
        let job = job::Job {
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
            told,
            private,
            identifiers: OnceCell::new(),
            digests: Digests::default(),
            type_registry,
        };
        let mut record = match request.format {
            Format::Pam => bundle::write(&job)?,
            Format::Memu if request.selection.said().is_some() => return Err(ExportError::WholeOnly),
            Format::Memu => view::write(&job)?,
            Format::Markdown => markdown::write(&job)?,
        };
        match exported::put(&self.0.store, &record) {
            Ok(()) => {}
            // The disk of the export is another one, and all of it is there.
            Err(ExportedError::Store(error)) if error.unwritable() => record.warnings.push(format!(
                "this export is whole, but is not listed here, and nothing can be built on it: {error}"
            )),
            Err(error) => return Err(error.into()),
        }
        satchel_failpoints::reached("export recorded");
        Ok(record)
    }

    /// One export.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<ExportRecord>, ExportError> {
        Ok(exported::find(&self.0.store, id)?)
    }

    /// Exports, newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list(&self, after: Option<&Cursor>, limit: usize) -> Result<Page<ExportRecord>, ExportError> {
        Ok(exported::list(&self.0.store, after, limit)?)
    }

    /// The bundle as one ZIP file: the file itself, or a temporary one made of the folder.
    ///
    /// # Errors
    /// When it was not made here, is gone or cannot be read.
    pub fn open(&self, record: &ExportRecord) -> Result<File, ExportError> {
        let path = PathBuf::from(&record.path);
        if record.applied {
            // What stands there is whatever was imported, which may be a folder with much else in it.
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

    /// Whose memories these are: the owner that exports name, or that of the first export that was applied here.
    ///
    /// # Errors
    /// When the ledger or the key file cannot be used: whose they are is not known then.
    pub fn owner(&self) -> Result<Option<String>, ExportError> {
        Ok(match keys::load(&self.0.keys)? {
            Some(signer) => Some(signer.owner),
            None => exported::owner(&self.0.store)?,
        })
    }

    /// The public keys of this data directory, multibase, that which signs first; none before the first export.
    pub fn signers(&self) -> Vec<String> {
        keys::known(&self.0.keys)
    }

    /// The keys that sign and signed; none before the first export.
    ///
    /// # Errors
    /// When the key file cannot be used.
    pub fn signing_keys(&self) -> Result<Option<SigningKeys>, ExportError> {
        let known = exported::signer(&self.0.store)?;
        let signer = keys::expect(&self.0.keys, keys::load(&self.0.keys)?, known.as_deref())?;
        Ok(signer.map(|signer| signer.shown(self.0.settings.did.as_deref())))
    }

    /// Lets a new key sign from now on; the old one says so. Durable when this returns.
    ///
    /// # Errors
    /// When the key file cannot be used or written.
    pub fn rotate_key(&self) -> Result<SigningKeys, ExportError> {
        // A thread that broke off while it held this left the file whole, old or new.
        let _one = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now_micros();
        let old = self.signer(now)?;
        let new = keys::rotate(&self.0.keys, &old, now)?;
        self.note_signer(&new, now)?;
        Ok(new.shown(self.0.settings.did.as_deref()))
    }

    /// Begins a new identity where the key that signed is damaged or gone: nothing ties it to the one before. What is left of that
    /// one's file is set aside. Durable when this returns.
    ///
    /// # Errors
    /// When the key that signs can be used, and what the file system refuses.
    pub fn begin_identity(&self) -> Result<SigningKeys, ExportError> {
        let _one = self.0.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now_micros();
        let known = exported::signer(&self.0.store)?;
        if keys::load(&self.0.keys)
            .and_then(|found| keys::expect(&self.0.keys, found, known.as_deref()))
            .is_ok()
        {
            return Err(ExportError::KeyWorks);
        }
        keys::set_aside(&self.0.keys)?;
        let new = keys::load_or_create(&self.0.keys, now, None, || exported::owner(&self.0.store))?;
        self.note_signer(&new, now)?;
        Ok(new.shown(self.0.settings.did.as_deref()))
    }

    /// The key that signs; made if there never was one. Whoever calls it holds `rotating`.
    fn signer(&self, now: i64) -> Result<Signer, ExportError> {
        let known = exported::signer(&self.0.store)?;
        let signer =
            keys::load_or_create(&self.0.keys, now, known.as_deref(), || exported::owner(&self.0.store))?;
        self.note_signer(&signer, now)?;
        Ok(signer)
    }

    /// Lets the store know which key signs for it, so that another in its place is not taken for it.
    fn note_signer(&self, signer: &Signer, now: i64) -> Result<(), ExportError> {
        let public = signer.current();
        if exported::signer(&self.0.store)?.as_deref() != Some(public.as_str()) {
            exported::put_signer(&self.0.store, &public, now)?;
        }
        Ok(())
    }
}

/// What is to be written.
fn total(store: &Store, request: &ExportRequest, delta: Option<&Delta>) -> Result<Progress, ExportError> {
    let (memories_total, conversations_total) = if let Some(delta) = delta {
        (delta.memories.len() as u64, delta.conversations.len() as u64)
    } else {
        let stats = store.stats()?;
        (stats.memories, stats.conversations)
    };
    let conversations_total = if request.conversations { conversations_total } else { 0 };
    Ok(Progress { memories_total, conversations_total, ..Progress::default() })
}

/// Rows that are read at once.
const PAGE: usize = 500;

/// Reads page after page and shows every row.
fn pages<T>(
    mut next: impl FnMut(Option<&Cursor>) -> Result<Page<T>, ExportError>,
    mut see: impl FnMut(T) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut after = None;
    loop {
        let page = next(after.as_ref())?;
        page.items.into_iter().try_for_each(&mut see)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
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
