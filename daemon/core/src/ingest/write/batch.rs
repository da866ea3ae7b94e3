//! The open batch of conversations, with the ledger's record of which parts of them the import brought.

use std::collections::BTreeSet;

use satchel_store::{Change, MessageWrite};
use uuid::Uuid;

use crate::{
    derived,
    provenance::{ContributionKind, EvidenceKey, KeyPages},
};

/// Maximum encoded bytes of one batch; each batch is one revision and one fsync.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum conversations of one batch.
const BATCH_CONVERSATIONS: usize = 256;

/// Changes that wait to be committed together.
pub(super) struct OpenBatch {
    changes: Vec<Change>,
    /// The approximate bytes that the changes store.
    bytes: usize,
    /// Ids of the conversations in the batch.
    ids: BTreeSet<String>,
    /// Keys of parts of conversations that the import brought, not yet recorded in the ledger.
    parts: KeyPages,
    /// Whether messages may have moved to a conversation other than the one that memories refer to.
    moved: bool,
}

impl OpenBatch {
    pub(super) fn new(import: Uuid) -> Self {
        let parts = KeyPages::new(import, ContributionKind::Contributions);
        Self { changes: Vec::new(), bytes: 0, ids: BTreeSet::new(), parts, moved: false }
    }

    /// Returns whether the batch has changes to a conversation.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Adds the changes to one conversation.
    pub(super) fn add(&mut self, id: String, changes: Vec<Change>, bytes: usize) {
        self.changes.extend(changes);
        self.bytes += bytes;
        self.ids.insert(id);
    }

    /// Adds changes to several conversations, after `first`: the commit is atomic, but readers of the ledger need its
    /// entries before the conversations. `moved`: messages may have moved from one conversation to another.
    pub(super) fn add_all(&mut self, first: Vec<Change>, changes: Vec<Change>, moved: bool) {
        self.bytes += changes.iter().map(size_estimate).sum::<usize>();
        self.changes.extend(first.into_iter().chain(changes));
        self.moved |= moved;
    }

    /// Adds a change that belongs to no conversation.
    pub(super) fn add_other(&mut self, change: Change, bytes: usize) {
        self.changes.push(change);
        self.bytes += bytes;
    }

    /// Records that the import brought the part; returns true if a page of the ledger is full and should be stored soon.
    pub(super) fn add_part(&mut self, key: EvidenceKey, dry_run: bool) -> bool {
        let page = self.parts.add(key).filter(|_| !dry_run);
        let full = page.is_some();
        self.changes.extend(page);
        full
    }

    /// Returns whether the batch should be committed; its limits are divided by `divisor`.
    pub(super) fn is_full(&self, divisor: usize) -> bool {
        self.bytes >= BATCH_BYTES / divisor || self.ids.len() >= BATCH_CONVERSATIONS / divisor
    }

    /// Takes the changes out, together with the ledger's record of them: an undo would not find them otherwise.
    /// `import` is the import that derives memories again if messages have moved.
    pub(super) fn take(&mut self, import: &str, dry_run: bool) -> Vec<Change> {
        let page = self.parts.flush().filter(|_| !dry_run);
        self.changes.extend(page);
        if std::mem::take(&mut self.moved) {
            self.changes.push(derived::mark_pending(import));
        }
        self.bytes = 0;
        self.ids.clear();
        std::mem::take(&mut self.changes)
    }
}

/// Returns the approximate bytes that a change stores.
pub(in crate::ingest) fn size_estimate(change: &Change) -> usize {
    let Change::Conversation(write) = change else { return 0 };
    let bodies = write.messages.iter().map(|message| match message {
        MessageWrite::Put { body, .. } => body.len(),
        MessageWrite::Keep { .. } => 0,
    });
    bodies.sum()
}
