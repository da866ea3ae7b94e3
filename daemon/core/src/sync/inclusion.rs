//! Finds out whether a store that gets only a part may be given more than before.

use satchel_store::{ChangeKind, ChangeLogEntry, ChangeOp, ChangePosition, Origin, Revision, Store};

use super::{
    RecordFilter, Sync, SyncError,
    filter::{includes_conversation, includes_memory},
};
use crate::{
    ingest::exchange::{ACTOR, REASON},
    purge::PURGED,
};

/// Changes of records that are read at once.
const PAGE: usize = 1_000;

impl Sync {
    /// Returns whether records that this store has changed after the revision `after` are included by `filter` since then, and were not
    /// before. Then a store may lack payloads that this one did not send it, and sends now.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_included(&self, filter: &dyn RecordFilter, after: Revision) -> Result<bool, SyncError> {
        let (store, mut position) = (self.0.store(), ChangePosition::after(after));
        loop {
            let changes = store.changes_since(position, PAGE)?;
            let Some(last) = changes.last() else { return Ok(false) };
            position = last.position;
            for change in &changes {
                if was_included(store, filter, change)? {
                    return Ok(true);
                }
            }
        }
    }
}

/// Returns whether this change of a record made `filter` include it.
fn was_included(
    store: &Store,
    filter: &dyn RecordFilter,
    change: &ChangeLogEntry,
) -> Result<bool, SyncError> {
    let version = |at: Revision| -> Result<Option<(bool, Origin)>, SyncError> {
        Ok(match change.kind {
            ChangeKind::Memory => {
                let record = store.memory(&change.id, Some(at))?;
                record.map(|record| (includes_memory(filter, &record.memory), record.origin))
            }
            ChangeKind::Conversation => {
                let record = store.conversation(&change.id, Some(at))?;
                record.map(|record| (includes_conversation(filter, &record.header), record.origin))
            }
            _ => None,
        })
    };
    let Some((included, origin)) = version(change.position.revision)? else { return Ok(false) };
    if change.op == ChangeOp::Withdrawn && origin.reason == PURGED {
        // A list that had it may be included as a whole now.
        return Ok(true);
    }
    if !included {
        return Ok(false);
    }
    if change.previous == Revision::ZERO {
        // What is made here is in the series after it is shown. What another store has sent may have been passed on before.
        return Ok(origin.actor.starts_with(ACTOR) || origin.reason == REASON);
    }
    Ok(!version(change.previous)?.is_some_and(|(included, _)| included))
}
