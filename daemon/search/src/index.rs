//! The index: which words are in which memories and messages.
//!
//! It is derived from the store. Each commit names the revision of the store up to which it has everything, so that what comes
//! after it can be added when the daemon starts. An index that cannot be read, or was made by a version with other words, is
//! removed, to be built anew.

mod compile;
mod document;
mod highlight;
mod relax;
mod schema;
mod sealed_directory;
mod similar;
mod snapshot;
mod suggest;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use satchel_seal::Seal;
use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, TantivyError, Term,
    directory::{Directory, MmapDirectory, RamDirectory, error::OpenDirectoryError},
};

pub use self::{
    document::{Document, DocumentKind, OwnerId, PUBLIC_READER, shared_reader},
    highlight::{Snippet, snippet},
    relax::RelaxedPage,
    snapshot::{Facet, FacetField, Hit, MatchingMemories, Page, Restriction, SearchOptions, Snapshot},
    suggest::Suggestion,
};
use self::{schema::Fields, sealed_directory::SealedDirectory};

/// Raised when texts are split or stored in another way.
const SCHEMA_VERSION: u32 = 3;
/// Memory of the writer while documents are added, in bytes.
const WRITER_BYTES: usize = 96 << 20;
/// Threads that write segments.
const WRITER_THREADS: usize = 1;

/// Where an index is kept.
#[derive(Clone, Debug)]
pub enum IndexLocation {
    /// In a folder, which is created.
    Folder(PathBuf),
    /// In a folder, which is created, in encrypted files. Visible are their names, which are random, their sizes and their times.
    SealedFolder {
        /// The folder.
        path: PathBuf,
        /// The key of the store. An index of another key counts as unreadable.
        seal: Seal,
    },
    /// In memory, for stores whose texts must not be on the disk.
    Memory,
}

impl IndexLocation {
    /// Returns the folder; `None` in memory.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) | Self::SealedFolder { path, .. } => Some(path),
            Self::Memory => None,
        }
    }

    /// Returns the bytes on disk; 0 in memory, or if the folder cannot be read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let Some(path) = self.folder() else { return 0 };
        let files = fs::read_dir(path).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Removes the index; it can be built anew.
    ///
    /// # Errors
    /// If the folder cannot be removed.
    pub fn remove(&self) -> Result<(), IndexError> {
        let Some(path) = self.folder() else { return Ok(()) };
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(IndexError::Folder { path: path.to_owned(), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Opens the folder, which must exist.
    fn directory(&self) -> Result<Box<dyn Directory>, OpenDirectoryError> {
        Ok(match self {
            Self::Folder(path) => Box::new(MmapDirectory::open(path)?),
            Self::SealedFolder { path, seal } => Box::new(SealedDirectory::open(path, seal)?),
            Self::Memory => Box::new(RamDirectory::create()),
        })
    }
}

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file system refused.
    #[error("the search index in {path:?} cannot be written or removed")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The index refused.
    #[error("the search index failed")]
    Index(#[from] TantivyError),
}

impl IndexError {
    /// Returns whether files of the index are damaged or missing, so that it has to be built anew. A full disk is no damage.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let damages = |kind| matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
        match self {
            Self::Index(TantivyError::IoError(error)) => damages(error.kind()),
            Self::Index(TantivyError::DataCorruption(_) | TantivyError::OpenReadError(_)) => true,
            Self::Index(_) | Self::Folder { .. } => false,
        }
    }
}

/// The index of a store.
pub struct SearchIndex {
    index: Index,
    /// The store that it is of.
    store: String,
    fields: Fields,
    reader: IndexReader,
    /// Exists while documents are added.
    writer: Mutex<Option<IndexWriter>>,
    current: Mutex<Snapshot>,
}

impl SearchIndex {
    /// Opens the index of a store, or creates an empty one. What cannot be read, or is the index of another store, is removed
    /// first. `store` is any text that names the store.
    ///
    /// # Errors
    /// If the folder cannot be created, written or removed.
    pub fn open(location: &IndexLocation, store: &str) -> Result<Self, IndexError> {
        if let Some(path) = location.folder() {
            match Self::open_existing(location, path, store) {
                Ok(Some(opened)) => return Ok(opened),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, ?path, "the search index cannot be read and is built anew");
                }
            }
            location.remove()?;
            let failed = |source| IndexError::Folder { path: path.to_owned(), source };
            fs::create_dir_all(path).map_err(failed)?;
        }
        let (schema, fields) = Fields::new();
        let directory = location.directory().map_err(TantivyError::from)?;
        Self::with(Index::builder().schema(schema).open_or_create(directory)?, fields, store)
    }

    /// Opens the index in a folder; `None` if there is none, or one of another version or store.
    fn open_existing(location: &IndexLocation, path: &Path, store: &str) -> Result<Option<Self>, IndexError> {
        if !path.is_dir() {
            return Ok(None);
        }
        let directory = location.directory().map_err(TantivyError::from)?;
        if !Index::exists(&*directory).map_err(TantivyError::from)? {
            return Ok(None);
        }
        let index = Index::open(directory)?;
        let (schema, fields) = Fields::new();
        if index.schema() != schema || revision_of(&index, store)?.is_none() {
            return Ok(None);
        }
        Self::with(index, fields, store).map(Some)
    }

    fn with(mut index: Index, fields: Fields, store: &str) -> Result<Self, IndexError> {
        index.set_tokenizers(schema::tokenizers());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let revision = revision_of(&index, store)?.unwrap_or(0);
        let current = Mutex::new(Snapshot::new(reader.searcher(), fields.clone(), revision));
        Ok(Self { index, store: store.to_owned(), fields, reader, writer: Mutex::new(None), current })
    }

    /// Returns what can be searched now. It does not change while it is used.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the revision up to which everything can be found.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).revision()
    }

    /// Replaces everything of an owner by `documents`, with the next commit.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn replace<'a>(
        &self,
        owner: &OwnerId<'_>,
        documents: impl IntoIterator<Item = Document<'a>>,
    ) -> Result<(), IndexError> {
        self.remove(owner)?;
        documents.into_iter().try_for_each(|document| self.add(owner, &document))
    }

    /// Removes everything of an owner, with the next commit. Documents that are added afterwards stay.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn remove(&self, owner: &OwnerId<'_>) -> Result<(), IndexError> {
        let mut guard = self.lock_writer();
        let writer = self.started(&mut guard)?;
        writer.delete_term(Term::from_field_text(self.fields.owner, &owner.to_string()));
        Ok(())
    }

    /// Removes one version of a document, with the next commit.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn remove_key(&self, key: u64) -> Result<(), IndexError> {
        let mut guard = self.lock_writer();
        let writer = self.started(&mut guard)?;
        writer.delete_term(Term::from_field_u64(self.fields.key, key));
        Ok(())
    }

    /// Adds a document of an owner, with the next commit.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn add(&self, owner: &OwnerId<'_>, document: &Document<'_>) -> Result<(), IndexError> {
        let mut guard = self.lock_writer();
        let writer = self.started(&mut guard)?;
        writer.add_document(self.fields.document(owner, document))?;
        Ok(())
    }

    /// Makes what was replaced durable and visible. The index then has everything up to `revision`.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn commit(&self, revision: u64) -> Result<(), IndexError> {
        let mut guard = self.lock_writer();
        let writer = self.started(&mut guard)?;
        let mut prepared = writer.prepare_commit()?;
        prepared.set_payload(&format!("rev={revision}{}", payload_suffix(&self.store)));
        prepared.commit()?;
        self.show(revision)
    }

    /// Says that nothing up to `revision` changes what the index has. This is not written: after a restart, the changes since
    /// the last commit are looked at again.
    pub fn advance(&self, revision: u64) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Snapshot::new(current.searcher.clone(), self.fields.clone(), revision);
    }

    /// Makes the last commit visible.
    fn show(&self, revision: u64) -> Result<(), IndexError> {
        self.reader.reload()?;
        let snapshot = Snapshot::new(self.reader.searcher(), self.fields.clone(), revision);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
        Ok(())
    }

    /// Forgets what was replaced since the last commit, for example after an error.
    pub fn roll_back(&self) {
        drop(self.lock_writer().take());
    }

    /// Frees the memory of the writer until something is replaced again. Waits for merges that are running.
    ///
    /// # Errors
    /// If a merge failed.
    pub fn rest(&self) -> Result<(), IndexError> {
        match self.lock_writer().take() {
            Some(writer) => Ok(writer.wait_merging_threads()?),
            None => Ok(()),
        }
    }

    /// Merges all segments into one, so that no file has anything of what was removed.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn compact(&self) -> Result<(), IndexError> {
        let mut guard = self.lock_writer();
        let segments = self.index.searchable_segment_ids()?;
        let writer = self.started(&mut guard)?;
        if !segments.is_empty() {
            writer.merge(&segments).wait()?;
        }
        self.show(self.snapshot().revision())?;
        writer.garbage_collect_files().wait()?;
        Ok(())
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<IndexWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started<'a>(&self, writer: &'a mut Option<IndexWriter>) -> Result<&'a mut IndexWriter, IndexError> {
        if writer.is_none() {
            *writer = Some(self.index.writer_with_num_threads(WRITER_THREADS, WRITER_BYTES)?);
        }
        writer.as_mut().ok_or_else(|| TantivyError::SystemError("there is no writer".to_owned()).into())
    }
}

/// What a commit carries after its revision.
fn payload_suffix(store: &str) -> String {
    format!(";schema={SCHEMA_VERSION};store={store}")
}

/// Returns the revision of the last commit; `None` if there is none of this version and store.
fn revision_of(index: &Index, store: &str) -> Result<Option<u64>, IndexError> {
    let payload = index.load_metas()?.payload.unwrap_or_default();
    let revision = payload.strip_suffix(&payload_suffix(store)).and_then(|rest| rest.strip_prefix("rev="));
    Ok(revision.and_then(|revision| revision.parse().ok()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
