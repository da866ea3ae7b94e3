//! What stores of one person exchange, so that all of them come to show the same.
//!
//! A store shows what follows from its *inputs*: what imports brought, the undos of imports, and the edits of the person. None of it
//! depends on the order in which the inputs arrived. So stores exchange inputs, as changes of signed series (`satchel-sync`), and each
//! derives from them what it shows. What a change contains is in
//! [`crate::series`].
//!
//! A change passes through a store in two steps. [`Sync::receive`] checks it against its series and stores it; from then on it can be
//! passed on. [`Sync::apply`] lets it take effect: in the order of its series, and after everything that its author had seen. Both can
//! be repeated after an interruption.
//!
//! A store whose disk was set back, or that is a copy of another one, may have changes under numbers that others know with other changes. It
//! writes them again in a new series ([`Sync::mend_fork`]).
//!
//! A store may give another one only a part of what it has: all changes, but not the payloads of all ([`RecordFilter`]). Those that it
//! lacks can come later ([`Sync::missing_payloads`], [`Sync::payloads`]).
//!
//! The store's own changes are appended to its series in the commit in which they take effect (edits, undos, recordings), or afterwards by
//! [`Sync::record_history`] (imports, erasures, exports).
//!
//! **Invariant:** a store that has a series has no edit without a dot: [`Sync::begin`] numbers the earlier ones.
//! Stores that have applied the same changes show the same (`tests/tests/integration/sync`), within these limits:
//!
//! - Not exchanged: vectors, withdrawals of relations by documents, and single conversations of more than 256 MiB.
//! - Documents of strangers about one record are kept by the order of their arrival.
//! - The import metadata of a conversation names the import that changed it last in this store.
//! - If a conversation is erased, memories that only another store derived from it stay.
//!
//! The daemon exchanges changes with its peers through this module (`satchel-server`, `peers`).

mod apply;
mod change_file;
mod digest;
mod files;
mod filter;
mod fork;
mod inclusion;
mod missing;
mod outgoing;
mod receive;
mod record;
mod revocation;
mod series_key;

use std::{path::Path, sync::Arc};

use satchel_merge::evidence::FieldConflict;
use satchel_store::StoreError;
use satchel_sync::{
    Author, AuthorError, Frontier, FrontierError, OriginId, OriginKey, SigningKey,
    limits::{MAX_ORIGINS, RENEWAL_COUNTER},
};

use self::series_key::SeriesIdentity;
pub use self::{
    apply::{Applied, Blocked},
    change_file::{ChangeFileFailure, NewChangeFile, WrittenChangeFile, is_file_recipient},
    digest::StateDigest,
    files::{FileError, FileReferences},
    filter::{RecordFacts, RecordFilter},
    inclusion::PartMoves,
    missing::PayloadRange,
    receive::{Received, Refused},
    revocation::Revoked,
    series_key::SeriesKeyError,
};
use crate::{
    edits::{EditError, QuarantinedMemory, complete_interrupted},
    export_ledger::ExportLedgerError,
    ingest::{Imports, IngestError, Inner},
    provenance::{ActiveEvidence, ProvenanceError, undone_imports},
    recording::{RecordingError, each_recording},
    series::{
        LocalSeries, NewPlace, SeriesStoreError, applied_frontier,
        counters::{CounterSet, Marked},
        entries::{self, PayloadPlace},
        payload::{AgentMemoryPayload, Payload},
    },
};

/// The exchange of changes with other stores. Clones share the store.
#[derive(Clone)]
pub struct Sync(Arc<Inner>);

/// Why changes cannot be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The store has no series yet.
    #[error("this store has no series of changes yet")]
    NotBegun,
    /// The store has a series already.
    #[error("this store has a series of changes already: origin {0}")]
    Begun(OriginId),
    /// The key of the series cannot be read or written.
    #[error(transparent)]
    Key(#[from] SeriesKeyError),
    /// The exchange was cancelled. What is left can be done later.
    #[error("it was cancelled")]
    Cancelled,
    /// A series in the ledger cannot be read or continued.
    #[error(transparent)]
    Series(#[from] SeriesStoreError),
    /// What imports brought cannot be read.
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// An import of another store, or an undo, could not take effect.
    #[error(transparent)]
    Import(Box<IngestError>),
    /// Edits of another store could not take effect.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The ledger of exports cannot be read or written.
    #[error(transparent)]
    Exports(#[from] ExportLedgerError),
    /// What was recorded in another store could not be added.
    #[error(transparent)]
    Recording(Box<RecordingError>),
}

impl SyncError {
    /// Returns whether others have more of this store's own series than the store itself: it was restored from an earlier copy.
    #[must_use]
    pub fn rolled_back(&self) -> bool {
        matches!(self, Self::Series(SeriesStoreError::Author(error)) if matches!(**error, AuthorError::RolledBack { .. }))
    }

    /// Returns whether the contents of a change were refused. All other errors concern the store itself.
    fn concerns_content(&self) -> bool {
        let store = match self {
            Self::Series(SeriesStoreError::Store(error)) | Self::Edit(EditError::Store(error)) => error,
            Self::Import(error) => match &**error {
                IngestError::Store(error) => error,
                _ => return false,
            },
            Self::Recording(error) => match &**error {
                RecordingError::Store(error) => error,
                _ => return false,
            },
            _ => return false,
        };
        store.concerns_record()
    }
}

impl From<RecordingError> for SyncError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(Box::new(error))
    }
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        Self::Series(error.into())
    }
}

impl From<AuthorError> for SyncError {
    fn from(error: AuthorError) -> Self {
        Self::Series(error.into())
    }
}

impl From<FrontierError> for SyncError {
    fn from(error: FrontierError) -> Self {
        Self::Series(error.into())
    }
}

impl From<IngestError> for SyncError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Cancelled => Self::Cancelled,
            error => Self::Import(Box::new(error)),
        }
    }
}

/// Makes the key of a new series, and writes it to the data directory. If the series does not begin after all, the next start finds that
/// the key is of no series that the store has.
fn new_identity(data_dir: &Path) -> Result<SeriesIdentity, SeriesKeyError> {
    let identity = SeriesIdentity::generate()?;
    identity.save(data_dir)?;
    Ok(identity)
}

/// The error for entries that this program wrote and cannot read.
const UNREADABLE: SyncError = SyncError::Series(SeriesStoreError::Unreadable);

impl Sync {
    /// Returns the exchange of changes for the store of `imports`.
    #[must_use]
    pub fn new(imports: &Imports) -> Self {
        Self(Arc::clone(imports.shared()))
    }

    /// Begins the store's own series, signed with `key`, and appends everything to it that has happened so far. The salt must be
    /// random.
    ///
    /// # Errors
    /// [`SyncError::Begun`], or an error of the store.
    pub fn begin(&self, key: SigningKey, salt: [u8; OriginKey::SALT_BYTES]) -> Result<OriginId, SyncError> {
        let store = self.0.store();
        let guard = self.0.lock_writes();
        if let Some(own) = entries::own(store)? {
            return Err(SyncError::Begun(own));
        }
        let seen = Frontier::new();
        let (author, genesis) = Author::begin(key.clone(), salt, &seen)?;
        let origin = author.series().origin();
        let mut first = vec![
            entries::put_own(origin),
            entries::put_origins(&[origin]),
            entries::put_change(&genesis, &PayloadPlace::Inline),
        ];
        let mut series = LocalSeries::begun(author, seen);
        first.extend(record::earlier_edits(store, &mut series)?);
        record::earlier_undos(store, &mut series)?;
        for (id, entry) in QuarantinedMemory::all(store)? {
            series.append(&AgentMemoryPayload { id, entry }.into(), NewPlace::Inline)?;
        }
        each_recording(store, |part| {
            series.append(&Payload::Recording(Box::new(part)), NewPlace::Inline)?;
            Ok::<_, SyncError>(())
        })?;
        let (changes, applied) = series.into_changes(store)?;
        first.extend(changes);
        first.extend(applied);
        self.0.commit_entries(first)?;
        self.0.series_key().set(key);
        drop(guard);
        self.record_history()?;
        Ok(origin)
    }

    /// Reads the key of the store's own series from the data directory, once for each start. If it is missing, or that of another series,
    /// the store was restored or copied, and goes on with a new series, as it does when the series has become very long. Does nothing for a
    /// store without a series.
    ///
    /// # Errors
    /// When the key cannot be read or written, or an error of the store.
    pub fn resume(&self, data_dir: &Path) -> Result<Option<OriginId>, SyncError> {
        series_key::remove_unfinished(data_dir)?;
        let Some(own) = entries::own(self.0.store())? else { return Ok(None) };
        match SeriesIdentity::load(data_dir)? {
            Some(identity) if identity.origin() == own && !self.is_long(own)? => {
                self.0.series_key().set(identity.key);
                Ok(Some(own))
            }
            _ => self.renew_origin(data_dir).map(Some),
        }
    }

    /// Returns whether a series comes near to the greatest counter.
    fn is_long(&self, origin: OriginId) -> Result<bool, SyncError> {
        let series = entries::series(self.0.store(), origin)?.ok_or(UNREADABLE)?;
        Ok(series.head().counter.get() > RENEWAL_COUNTER)
    }

    /// Begins the store's own series if it has none. The key is written to the data directory before.
    ///
    /// # Errors
    /// When the key cannot be written, or an error of the store.
    pub fn ensure_begun(&self, data_dir: &Path) -> Result<OriginId, SyncError> {
        // Without waiting for an exchange that is under way.
        if let Some(own) = entries::own(self.0.store())? {
            return Ok(own);
        }
        let _alone = self.0.lock_exchange();
        if let Some(own) = entries::own(self.0.store())? {
            return Ok(own);
        }
        let SeriesIdentity { key, salt } = new_identity(data_dir)?;
        self.begin(key, salt)
    }

    /// Lets the store go on with a new series, signed with a new key. The earlier one stays as it is, like that of another store: a store
    /// that was restored from a backup must not continue it, because others may have more of it.
    ///
    /// # Errors
    /// [`SyncError::NotBegun`], when the key cannot be written, or an error of the store.
    pub fn renew_origin(&self, data_dir: &Path) -> Result<OriginId, SyncError> {
        let _alone = self.0.lock_exchange();
        let store = self.0.store();
        let _guard = self.0.lock_writes();
        let earlier = entries::own(store)?.ok_or(SyncError::NotBegun)?;
        let mut origins = entries::origins(store)?;
        if origins.len() >= MAX_ORIGINS {
            return Err(FrontierError::TooManyOrigins { found: origins.len() + 1 }.into());
        }
        let SeriesIdentity { key, salt } = new_identity(data_dir)?;
        let seen = applied_frontier(store)?;
        let (author, genesis) = Author::begin(key.clone(), salt, &seen)?;
        let origin = author.series().origin();
        origins.push(origin);
        let mut changes = entries::replace_own(store, origin)?;
        changes.push(entries::put_origins(&origins));
        changes.push(entries::put_change(&genesis, &PayloadPlace::Inline));
        let (series, applied) = LocalSeries::begun(author, seen).into_changes(store)?;
        changes.extend(series.into_iter().chain(applied));
        self.0.commit_entries(changes)?;
        self.0.series_key().set(key);
        tracing::info!(%earlier, %origin, "the store goes on with a new series of changes");
        Ok(origin)
    }

    /// Sets the key of the store's own series, so that it can be continued.
    ///
    /// # Errors
    /// [`SyncError::NotBegun`], or [`AuthorError::WrongKey`] if it is another key.
    pub fn unlock(&self, key: SigningKey) -> Result<(), SyncError> {
        let own = entries::own(self.0.store())?.ok_or(SyncError::NotBegun)?;
        let series = entries::series(self.0.store(), own)?.ok_or(UNREADABLE)?;
        Author::resume(key.clone(), series)?;
        self.0.series_key().set(key);
        Ok(())
    }

    /// Returns the fields of memories to which edits of several stores gave different values, when none of them had seen the others. All
    /// evidence is read: this takes about as long as an export of the memories.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn conflicts(&self) -> Result<Vec<FieldConflict>, SyncError> {
        let store = self.0.store();
        Ok(ActiveEvidence::load(store, &undone_imports(store)?)?.user_edits.conflicts())
    }

    /// Returns the store's own origin; `None` if it has no series.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn origin(&self) -> Result<Option<OriginId>, SyncError> {
        Ok(entries::own(self.0.store())?)
    }

    /// Completes a merge of edits that an error interrupted, such as a full disk: until then, the store may show a value that another one
    /// replaces. Does nothing if there is none.
    ///
    /// # Errors
    /// An error of the store.
    pub fn complete_merge(&self) -> Result<(), SyncError> {
        let _guard = self.0.lock_writes();
        Ok(complete_interrupted(self.0.store())?)
    }

    /// Returns whether the store holds changes that have not taken effect, for example because the program was stopped after it had received
    /// them.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn has_unapplied(&self) -> Result<bool, SyncError> {
        let store = self.0.store();
        for origin in entries::origins(store)? {
            // Payloads that came late.
            if !CounterSet::load(store, Marked::Late, origin)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(applied_frontier(store)? != self.frontier()?)
    }

    /// Returns which changes have taken effect.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn applied_frontier(&self) -> Result<Frontier, SyncError> {
        Ok(applied_frontier(self.0.store())?)
    }

    /// Returns which changes the store holds.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn frontier(&self) -> Result<Frontier, SyncError> {
        let mut frontier = Frontier::new();
        for origin in entries::origins(self.0.store())? {
            if let Some(series) = entries::series(self.0.store(), origin)? {
                frontier.advance(origin, series.head())?;
            }
        }
        Ok(frontier)
    }
}
