//! The thread that follows the journal.

use std::{
    collections::{BTreeSet, HashSet},
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::{Duration, Instant},
};

use satchel_core::priority::{INDEX_NICE, lower_priority};
use satchel_pam::{
    memory::{Memory, Status},
    relation::{Relation, RelationType},
};
use satchel_search::index::{OwnerId, SearchIndex};
use satchel_store::{ChangeKind, ChangeLogEntry, ChangePosition, Revision, Store, StoreError};

use super::{
    IndexerError, Shared,
    deferral::{Deferral, LOOK_INTERVAL},
    documents::{self, ConversationDocuments},
};

/// Changes that are read at once.
const CHANGES: usize = 1_000;
/// Time between two commits while there is more to index. Each commit makes a segment, and costs some 10 ms.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// The same while the index is far behind, so that a new index is built in few segments.
const BUILD_COMMIT_INTERVAL: Duration = Duration::from_secs(20);
/// After so long without a change, the memory of the writer is freed.
const REST_AFTER: Duration = Duration::from_secs(5);
/// Time after a failure before the next attempt.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// Returns the memory that superseded this one, if there is one and `read` finds it.
pub(crate) fn successor(
    memory: &Memory,
    read: impl FnOnce(&str) -> Result<Option<Memory>, StoreError>,
) -> Result<Option<Memory>, StoreError> {
    let named = memory.temporal.superseded_by.as_deref().filter(|_| memory.status == Status::Superseded);
    named.map_or(Ok(None), read)
}

/// Returns a memory as it is now, unless it is withdrawn.
fn memory_now(store: &Store, id: &str) -> Result<Option<Memory>, StoreError> {
    let record = store.memory(id, None)?.filter(|record| !record.withdrawn);
    Ok(record.map(|record| record.memory))
}

pub(super) struct Follower {
    shared: Arc<Shared>,
    index: Arc<SearchIndex>,
    /// The last change that was indexed.
    position: ChangePosition,
    /// Whether the index has changes that are not committed.
    dirty: bool,
    /// The conversations that were indexed since the last commit.
    uncommitted: HashSet<String>,
    committed: Instant,
    /// Whether changes wait for imports.
    deferral: Deferral,
    /// When memory that is not needed was last freed.
    tidied: Instant,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, index: Arc<SearchIndex>) -> Self {
        let position = ChangePosition::after(Revision::new(index.revision()));
        let (dirty, uncommitted) = (false, HashSet::new());
        let now = Instant::now();
        let deferral = Deferral::default();
        Self { shared, index, position, dirty, uncommitted, committed: now, deferral, tidied: now }
    }

    /// Follows the journal until a stop. After a failure, such as a full disk, it begins again at the last commit.
    pub(super) fn run(mut self) {
        lower_priority(INDEX_NICE);
        loop {
            let followed = panic::catch_unwind(AssertUnwindSafe(|| self.follow()));
            let error = match followed {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => IndexerError::Panicked,
            };
            tracing::error!(%error, "the search index is not kept up to date; it is tried again in a minute");
            self.shared.set_error(Some(error));
            self.index.roll_back();
            self.position = ChangePosition::after(Revision::new(self.index.revision()));
            self.dirty = false;
            self.uncommitted.clear();
            if self.shared.stops_within(RETRY_AFTER) {
                return;
            }
            self.shared.set_error(None);
        }
    }

    fn follow(&mut self) -> Result<(), IndexerError> {
        while !self.shared.is_stopping() {
            let tip = self.shared.store.revision();
            // The changes that were read last may have ended within the last revision.
            if tip > self.position.revision || self.position.n != u32::MAX {
                let (busy, awaited) = (self.shared.imports_run(), self.shared.is_awaited());
                if self.deferral.defers(busy, awaited, Instant::now()) {
                    if self.dirty && self.is_due(COMMIT_INTERVAL) {
                        self.commit_read()?;
                    }
                    self.shared.wait_unless(LOOK_INTERVAL, || self.shared.is_awaited());
                } else {
                    self.catch_up(tip)?;
                }
            } else {
                self.wait(tip)?;
            }
        }
        if self.dirty {
            self.commit_read()?;
        }
        Ok(self.index.rest()?)
    }

    /// Commits what was read. A revision of which only a part was indexed is indexed again.
    fn commit_read(&mut self) -> Result<(), IndexerError> {
        let whole = self.position.n == u32::MAX;
        self.commit(self.position.revision.get() - u64::from(!whole))
    }

    /// Indexes the next changes up to `tip`.
    fn catch_up(&mut self, tip: Revision) -> Result<(), IndexerError> {
        let changes = self.shared.store.changes_since(self.position, CHANGES)?;
        let caught_up = changes.len() < CHANGES;
        let last = changes.last().map(|change| change.position);
        if !self.index_changes(changes)? {
            return Ok(());
        }
        // The store may have more than `tip` by now.
        let read_to = last.map_or(tip, |last| tip.max(last.revision));
        self.position =
            if caught_up { ChangePosition::after(read_to) } else { last.unwrap_or(self.position) };
        if caught_up {
            self.deferral.caught_up();
        }
        let interval = if caught_up { COMMIT_INTERVAL } else { BUILD_COMMIT_INTERVAL };
        if !caught_up && self.committed.elapsed() >= interval {
            // The changes of the last revision may not all have been read.
            self.commit(self.position.revision.get().saturating_sub(1))?;
        } else if caught_up && (!self.dirty || self.is_due(interval)) {
            self.commit(self.position.revision.get())?;
        }
        Ok(())
    }

    /// Returns whether all were indexed. If there was a stop, the position stays, and they are indexed again after the next
    /// start.
    fn index_changes(&mut self, changes: Vec<ChangeLogEntry>) -> Result<bool, IndexerError> {
        let mut seen = BTreeSet::new();
        let relevant = |kind: ChangeKind| matches!(kind, ChangeKind::Memory | ChangeKind::Conversation);
        for change in changes.into_iter().filter(|change| relevant(change.kind)) {
            if !seen.insert((change.kind, change.id.clone())) {
                continue;
            }
            if self.shared.is_stopping() {
                return Ok(false);
            }
            self.dirty = true;
            self.index_owner(change.kind, &change.id)?;
        }
        Ok(true)
    }

    /// Makes the index have the current version of a memory or conversation. Of a conversation, what it has already stays: the
    /// cost of one more message does not depend on the others.
    fn index_owner(&mut self, kind: ChangeKind, id: &str) -> Result<(), IndexerError> {
        let store = &self.shared.store.clone();
        if kind == ChangeKind::Memory {
            self.index_memory(store, id)?;
            // Those that it superseded were valid until it began to hold.
            let relations = store.relations_of(id, None)?.into_iter().map(|record| record.relation);
            let is_supersedes = |relation: &Relation| {
                relation.relation_type == RelationType::Supersedes && relation.from == id && relation.to != id
            };
            return relations
                .filter(is_supersedes)
                .try_for_each(|relation| self.index_memory(store, &relation.to));
        }
        let owner = OwnerId::Conversation(id);
        let first = self.uncommitted.insert(id.to_owned());
        let Some(record) = store.conversation(id, None)?.filter(|record| !record.withdrawn) else {
            return Ok(self.index.remove(&owner)?);
        };
        let documents = ConversationDocuments::new(&record);
        let known = if first {
            let (known, wanted) = (self.index.snapshot().keys_of(&owner)?, documents.keys());
            known.difference(&wanted).try_for_each(|key| self.index.remove_key(*key))?;
            known
        } else {
            // A snapshot does not have what was added since the last commit.
            self.index.remove(&owner)?;
            HashSet::new()
        };
        documents.each_new(store, &known, |document| Ok(self.index.add(&owner, &document)?))
    }

    fn index_memory(&self, store: &Store, id: &str) -> Result<(), IndexerError> {
        let memory = memory_now(store, id)?;
        let find = |memory| successor(memory, |id| memory_now(store, id));
        let successor = memory.as_ref().map(find).transpose()?.flatten();
        let document = memory.as_ref().map(|memory| documents::memory(memory, successor.as_ref()));
        Ok(self.index.replace(&OwnerId::Memory(id), document)?)
    }

    fn commit(&mut self, revision: u64) -> Result<(), IndexerError> {
        if self.dirty {
            self.index.commit(revision)?;
        } else {
            self.index.advance(revision);
        }
        self.dirty = false;
        self.uncommitted.clear();
        self.committed = Instant::now();
        self.shared.notify();
        Ok(())
    }

    /// Returns whether it is time for a commit.
    fn is_due(&self, interval: Duration) -> bool {
        self.committed.elapsed() >= interval || self.shared.is_awaited()
    }

    /// Waits until the store has more than `tip`, or until it is time for a commit.
    fn wait(&mut self, tip: Revision) -> Result<(), IndexerError> {
        if self.dirty && self.is_due(COMMIT_INTERVAL) {
            return self.commit(self.position.revision.get());
        }
        let timeout =
            if self.dirty { COMMIT_INTERVAL.saturating_sub(self.committed.elapsed()) } else { REST_AFTER };
        let more = || self.shared.store.revision() > tip || (self.dirty && self.shared.is_awaited());
        self.shared.wait_unless(timeout, more);
        // Searches wake the thread too, so the time that it waited says nothing.
        if !self.dirty && self.committed.elapsed() >= REST_AFTER && self.tidied.elapsed() >= REST_AFTER {
            self.shared.vectors.drop_unused();
            self.shared.history.drop_unused();
            self.index.rest()?;
            self.tidied = Instant::now();
        }
        Ok(())
    }
}
