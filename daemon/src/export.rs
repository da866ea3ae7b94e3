//! Exports of what the store holds at one revision, as signed PAM bundles or in another program's shapes, and their ledger.

mod bundle;
mod keys;
pub mod memu;
mod target;
mod view;

use std::{
    fs::File,
    io::{self, Seek},
    path::{Path, PathBuf},
    sync::Arc,
};

use satchel_store::{Cursor, Durability, Ledger, LedgerWrite, Page, Store, StoreError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{clock::Clock, lineage::LineageError};

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
}

/// In whose shapes an export is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A signed PAM 1.0 bundle.
    #[default]
    Pam,
    /// The lists and conversations of MemU.
    Memu,
}

/// What the ledger keeps of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// PAM `export_id`, UUID v4.
    pub export_id: String,
    /// `full`.
    pub export_type: String,
    /// Exports that were made before there was a choice are PAM.
    #[serde(default)]
    pub format: Format,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_export_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// PAM `export_date`.
    pub export_date: String,
    /// Microseconds since the Unix epoch.
    pub at_micros: i64,
    pub memories: u64,
    pub relations: u64,
    pub conversations: u64,
    /// Memories that may not leave, and so did not.
    pub withheld: u64,
    /// PAM `integrity.checksum`; empty in other formats, as the next two.
    pub checksum: String,
    /// The SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// The public key, multibase.
    pub signer: String,
    /// The revision that it shows.
    pub revision: u64,
    /// Where it was written.
    pub path: String,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// The bundle of the ledger is no longer where it was written.
    #[error("the export is no longer at {path:?}")]
    Gone { path: PathBuf, source: io::Error },
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable { what: &'static str },
}

impl From<LineageError> for ExportError {
    fn from(error: LineageError) -> Self {
        match error {
            LineageError::Store(error) => Self::Store(error),
            LineageError::Unreadable { what } => Self::Unencodable { what },
        }
    }
}

impl ExportError {
    fn write(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }
}

/// The public key that the data directory signs with, multibase, found without opening its store; none before its first
/// export.
#[must_use]
pub fn signer_of(data_dir: &Path) -> Option<String> {
    keys::known(&data_dir.join("keys"))
}

/// All exports of a store. Clones share one.
#[derive(Clone)]
pub struct Exports(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    keys: PathBuf,
}

impl Exports {
    /// Exports `store`; the signing key lies in the folder `keys`.
    pub fn new(store: Store, clock: Arc<dyn Clock>, keys: PathBuf) -> Self {
        Self(Arc::new(Inner { store, clock, keys }))
    }

    /// Writes a full export of the store as it is now. It is whole and durable when this returns, or not there.
    ///
    /// # Errors
    /// When the output is taken, the file system refuses, or the store cannot be read.
    pub fn create(&self, request: &ExportRequest) -> Result<ExportRecord, ExportError> {
        let now = self.0.clock.now_micros();
        let signer = keys::load_or_create(&self.0.keys, now)?;
        let id = Uuid::new_v4().to_string();
        let revision = self.0.store.revision();
        let job = bundle::Job { store: &self.0.store, request, id, revision, now, signer: &signer };
        let record = match request.format {
            Format::Pam => job.write()?,
            Format::Memu => view::write(&job)?,
        };
        self.remember(&record)?;
        Ok(record)
    }

    /// One export.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<ExportRecord>, ExportError> {
        self.0.store.ledger_get(Ledger::Export, id)?.map(|entry| parse(&entry.value)).transpose()
    }

    /// Exports, newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list(&self, after: Option<&Cursor>, limit: usize) -> Result<Page<ExportRecord>, ExportError> {
        let page = self.0.store.ledger_list(Ledger::Export, after, limit)?;
        let items = page.items.iter().map(|entry| parse(&entry.value)).collect::<Result<_, _>>()?;
        Ok(Page { items, next: page.next })
    }

    /// The bundle as one ZIP file: the file itself, or a temporary one made of the folder.
    ///
    /// # Errors
    /// When it is gone or cannot be read.
    pub fn open(&self, record: &ExportRecord) -> Result<File, ExportError> {
        let path = PathBuf::from(&record.path);
        let gone = |source| ExportError::Gone { path: path.clone(), source };
        if !path.is_dir() {
            return File::open(&path).map_err(gone);
        }
        let mut file = tempfile::tempfile().map_err(gone)?;
        zip_folder(&path, &file).map_err(gone)?;
        file.rewind().map_err(gone)?;
        Ok(file)
    }

    /// The public key of this data directory, multibase; none before the first export.
    pub fn signer(&self) -> Option<String> {
        keys::known(&self.0.keys)
    }

    fn remember(&self, record: &ExportRecord) -> Result<(), ExportError> {
        let value = serde_json::to_vec(record)
            .map_err(|_| ExportError::Unencodable { what: "an export's record" })?;
        let write = LedgerWrite::Entry {
            ledger: Ledger::Export,
            id: record.export_id.clone(),
            at_micros: record.at_micros,
            value,
        };
        Ok(self.0.store.put_ledger(write, Durability::Now)?)
    }
}

fn parse(bytes: &[u8]) -> Result<ExportRecord, ExportError> {
    serde_json::from_slice(bytes).map_err(|_| ExportError::Unencodable { what: "a stored export's record" })
}

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
