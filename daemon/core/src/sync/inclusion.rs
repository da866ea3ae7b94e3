//! Finds out whether a store that gets only a part may be given more than before, or less.

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

/// How records have moved with respect to a part of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartMoves {
    /// Records are in it that were not before. A store that gets it may lack payloads that this one did not send it, and sends now.
    pub included: bool,
    /// Records were in it that are not any more. A store that gets it may have payloads that this one does not send now.
    pub excluded: bool,
}

impl PartMoves {
    fn add(&mut self, other: Self) {
        self.included |= other.included;
        self.excluded |= other.excluded;
    }
}

impl Sync {
    /// Returns how records that this store has changed after the revision `after` have moved with respect to what `filter` includes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn part_moves(&self, filter: &dyn RecordFilter, after: Revision) -> Result<PartMoves, SyncError> {
        let (store, mut position) = (self.0.store(), ChangePosition::after(after));
        let mut moves = PartMoves::default();
        loop {
            let changes = store.changes_since(position, PAGE)?;
            let Some(last) = changes.last() else { return Ok(moves) };
            position = last.position;
            for change in &changes {
                moves.add(moves_of(store, filter, change)?);
                if moves.included && moves.excluded {
                    return Ok(moves);
                }
            }
        }
    }
}

/// Returns how this change of a record has moved it.
fn moves_of(
    store: &Store,
    filter: &dyn RecordFilter,
    change: &ChangeLogEntry,
) -> Result<PartMoves, SyncError> {
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
    let moved = |included, excluded| Ok(PartMoves { included, excluded });
    let Some((is, origin)) = version(change.position.revision)? else { return moved(false, false) };
    if change.op == ChangeOp::Withdrawn && origin.reason == PURGED {
        // A list that had it may be included as a whole now.
        return moved(true, false);
    }
    if change.previous == Revision::ZERO {
        // What is made here is in the series after it is shown. What another store has sent may have been passed on before.
        let included = is && (origin.actor.starts_with(ACTOR) || origin.reason == REASON);
        // A list or a conversation that an import has made longer may not be included as a whole any more.
        return moved(included, !is && origin.import.is_some());
    }
    let was = version(change.previous)?.is_some_and(|(was, _)| was);
    moved(is && !was, was && !is)
}
