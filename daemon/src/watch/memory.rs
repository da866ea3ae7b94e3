//! What was made of each path, kept in the store, so that what did not change is not even read again.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use satchel_store::{Durability, Ledger, LedgerWrite, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::settle::Stamp;

/// Longest reason that is kept, in characters.
const REASON_CHARACTERS: usize = 500;
/// Where the folders that were added at run time are kept.
const ADDED: &str = "watched-folders";

/// What was made of a file, or of an unpacked export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Its bytes are in the store.
    Imported,
    /// No importer of those that there were knew it.
    Unrecognised { importers: String },
    /// It failed, so many times.
    Failed { reason: String, tries: u32, importers: String },
    /// A person stopped it.
    Cancelled,
}

/// What is known of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub stamp: Stamp,
    pub verdict: Verdict,
    /// Microseconds since the Unix epoch.
    pub at: i64,
}

/// Where that is kept; the real one is [`Kept`].
pub(super) trait Memory: Send {
    /// What is known of a name in the folder.
    fn recall(&self, name: &OsStr) -> Option<Known>;
    /// Keeps it. What cannot be kept is looked at again after a restart, which costs time and nothing else.
    fn keep(&self, name: &OsStr, known: &Known);
}

/// In the store's ledger of sources.
pub(super) struct Kept {
    store: Store,
    root: PathBuf,
}

impl Kept {
    /// For the folder `root`.
    pub(super) fn new(store: Store, root: &Path) -> Self {
        Self { store, root: root.to_owned() }
    }

    fn id(&self, name: &OsStr) -> String {
        format!("path:{}", Sha256Digest::of(self.root.join(name).as_os_str().as_bytes()).to_hex())
    }
}

impl Memory for Kept {
    fn recall(&self, name: &OsStr) -> Option<Known> {
        match self.store.ledger_get(Ledger::Source, &self.id(name)) {
            Ok(entry) => serde_json::from_slice(&entry?.value).ok(),
            Err(error) => {
                tracing::warn!(error = crate::chain(&error), "what is known of a file cannot be read");
                None
            }
        }
    }

    fn keep(&self, name: &OsStr, known: &Known) {
        let mut known = known.clone();
        if let Verdict::Failed { reason, .. } = &mut known.verdict {
            *reason = reason.chars().take(REASON_CHARACTERS).collect();
        }
        let Ok(value) = serde_json::to_vec(&known) else { return };
        let (id, at_micros) = (self.id(name), known.at);
        let write = LedgerWrite::Entry { ledger: Ledger::Source, id, at_micros, value };
        if let Err(error) = self.store.put_ledger(write, Durability::WithNextCommit) {
            tracing::warn!(error = crate::chain(&error), "what is known of a file cannot be kept");
        }
    }
}

/// The folders that were added at run time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Added {
    folders: Vec<String>,
}

/// Reads the folders that were added at run time.
pub(super) fn added(store: &Store) -> Result<Vec<PathBuf>, StoreError> {
    let Some(entry) = store.ledger_get(Ledger::Setting, ADDED)? else { return Ok(Vec::new()) };
    let added: Added = serde_json::from_slice(&entry.value).unwrap_or_default();
    Ok(added.folders.into_iter().map(PathBuf::from).collect())
}

/// Keeps the folders that were added at run time; durable when this returns.
pub(super) fn keep_added(store: &Store, folders: &[&str], at_micros: i64) -> Result<(), StoreError> {
    let added = Added { folders: folders.iter().map(|&folder| folder.to_owned()).collect() };
    let value = serde_json::to_vec(&added).unwrap_or_default();
    let write = LedgerWrite::Entry { ledger: Ledger::Setting, id: ADDED.to_owned(), at_micros, value };
    store.put_ledger(write, Durability::Now)
}
