//! The files of attachments that conversations of other stores refer to. They are not part of changes: a store asks for those that it
//! lacks, by their digest.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
};

use satchel_merge::body::attachment_hashes;
use satchel_pam::hash::Sha256Digest;
use satchel_store::{ChangeKind, ChangePosition, Revision, Store};
use satchel_sync::OriginId;
use sha2::{Digest as _, Sha256};

use super::{RecordFilter, Sync, SyncError, filter::includes_conversation};
use crate::{
    provenance::{self, Contribution, PurgeRecord},
    series::entries::{self, MissingFiles},
};

/// Changes per page.
const PAGE: usize = 1_000;
/// Largest file that is taken, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 4 << 30;

/// Why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No conversation refers to it, or it is here already.
    #[error("no conversation of this store needs the file {0}")]
    NotWanted(Sha256Digest),
    /// Its bytes are not those of the digest, or the stream broke.
    #[error("the file {0} did not arrive whole, or has other bytes")]
    Damaged(Sha256Digest),
    /// The store failed.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

impl Sync {
    /// Returns the digests of the files that conversations refer to and the store lacks. The conversations that have changed since the last
    /// call are read.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn missing_files(&self) -> Result<BTreeSet<Sha256Digest>, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let known = entries::missing_files(store)?.unwrap_or_default();
        let read_to = store.revision();
        let mut missing = known.digests.clone();
        let changed = changed_conversations(store, ChangePosition::after(known.read_to))?;
        for conversation in &changed {
            missing.extend(files_of(store, conversation)?);
        }
        for record in PurgeRecord::list(store)? {
            for digest in record.attachment_digests() {
                missing.remove(&digest);
            }
        }
        let mut lacking = BTreeSet::new();
        for digest in missing {
            if store.blob_open(digest.as_bytes())?.is_none() {
                lacking.insert(digest);
            }
        }
        let behind = read_to.get() - known.read_to.get() > PAGE as u64;
        if lacking != known.digests || !changed.is_empty() || behind {
            let entry = MissingFiles { read_to, digests: lacking.clone() };
            self.0.commit_entries(vec![entries::put_missing_files(&entry)])?;
        }
        Ok(lacking)
    }

    /// Returns whether this is a file that conversations refer to and that the store lacks, as far as that was looked for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lacks_file(&self, digest: &Sha256Digest) -> Result<bool, SyncError> {
        let known = entries::missing_files(self.0.store())?.unwrap_or_default();
        Ok(known.digests.contains(digest) && self.0.store().blob_open(digest.as_bytes())?.is_none())
    }

    /// Stores a file that the store lacks; returns its size in bytes. Durable when this returns.
    ///
    /// # Errors
    /// [`FileError::NotWanted`]; [`FileError::Damaged`] if `source` fails or has other bytes; an error of the store.
    pub fn put_file(&self, digest: Sha256Digest, source: &mut dyn Read) -> Result<u64, FileError> {
        let known = entries::missing_files(self.0.store()).map_err(SyncError::from)?.unwrap_or_default();
        if !known.digests.contains(&digest) {
            return Err(FileError::NotWanted(digest));
        }
        let mut checked = Checked { source, hasher: Sha256::new(), expected: digest, read: 0, wrong: false };
        match self.0.store().blob_put(&mut checked) {
            Ok(blob) => {
                self.note_file(digest)?;
                Ok(blob.len)
            }
            Err(_) if checked.wrong => Err(FileError::Damaged(digest)),
            Err(error) => Err(SyncError::from(error).into()),
        }
    }
}

/// Which conversations refer to the files of attachments, as far as they were read.
#[derive(Debug, Default)]
pub struct FileReferences {
    read_to: Revision,
    conversations: BTreeMap<Sha256Digest, BTreeSet<String>>,
}

impl Sync {
    /// Reads the conversations that have changed since the last call; all of them the first time.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read_file_references(&self, references: &mut FileReferences) -> Result<(), SyncError> {
        let store = self.0.store();
        let read_to = store.revision();
        for conversation in changed_conversations(store, ChangePosition::after(references.read_to))? {
            for digest in files_of(store, &conversation)? {
                references.conversations.entry(digest).or_default().insert(conversation.clone());
            }
        }
        references.read_to = read_to;
        Ok(())
    }

    /// Returns whether a conversation refers to a file that `filter` includes, or to which the store with the series `origin` has contributed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn includes_file(
        &self,
        references: &FileReferences,
        digest: &Sha256Digest,
        filter: &dyn RecordFilter,
        origin: Option<OriginId>,
    ) -> Result<bool, SyncError> {
        for conversation in references.conversations.get(digest).into_iter().flatten() {
            let record = self.0.store().conversation(conversation, None)?;
            let Some(record) = record.filter(|record| !record.withdrawn) else { continue };
            if includes_conversation(filter, &record.header) || self.is_from(conversation, origin)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether something that is shown of a conversation came with a change of this series.
    fn is_from(&self, conversation: &str, origin: Option<OriginId>) -> Result<bool, SyncError> {
        let Some(origin) = origin else { return Ok(false) };
        let (_, provenance) = provenance::resolve(self.0.store(), conversation.to_owned())?;
        for key in provenance.contributions.iter().filter_map(Contribution::key) {
            if entries::item(self.0.store(), key)?.is_some_and(|(from, _)| from == origin) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Commits that a file is not lacking any more, and with that the file itself.
    fn note_file(&self, digest: Sha256Digest) -> Result<(), SyncError> {
        let _alone = self.0.lock_exchange();
        let mut known = entries::missing_files(self.0.store())?.unwrap_or_default();
        known.digests.remove(&digest);
        Ok(self.0.commit_entries(vec![entries::put_missing_files(&known)])?)
    }
}

/// Returns the conversations that have changed since a position.
fn changed_conversations(store: &Store, mut position: ChangePosition) -> Result<BTreeSet<String>, SyncError> {
    let mut changed = BTreeSet::new();
    loop {
        let changes = store.changes_since(position, PAGE)?;
        let Some(last) = changes.last() else { return Ok(changed) };
        position = last.position;
        let conversations = changes.into_iter().filter(|change| change.kind == ChangeKind::Conversation);
        changed.extend(conversations.map(|change| change.id));
    }
}

/// Returns the digests of the files that a conversation refers to.
fn files_of(store: &Store, conversation: &str) -> Result<BTreeSet<Sha256Digest>, SyncError> {
    let mut found = BTreeSet::new();
    let Some(record) = store.conversation(conversation, None)?.filter(|record| !record.withdrawn) else {
        return Ok(found);
    };
    for body in store.all_bodies(&record) {
        found.extend(attachment_hashes(&body?.1));
    }
    Ok(found)
}

/// Fails at the end of a source whose bytes are not the expected ones, so that they are not kept.
struct Checked<'a> {
    source: &'a mut dyn Read,
    hasher: Sha256,
    expected: Sha256Digest,
    read: u64,
    wrong: bool,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer).inspect_err(|_| self.wrong = true)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        self.read += read as u64;
        let ended = read == 0 && !buffer.is_empty();
        let differs = || self.hasher.clone().finalize().as_slice() != self.expected.as_bytes();
        if self.read > MAX_FILE_BYTES || (ended && differs()) {
            self.wrong = true;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes than expected"));
        }
        Ok(read)
    }
}
