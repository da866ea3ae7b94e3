//! Undos and redos of imports.

use satchel_store::Change;
use uuid::Uuid;

use super::{Applier, Moment, SyncError};
use crate::{
    provenance::UndoRecord,
    series::{
        entries::{self, StoredUndo},
        payload::UndoPayload,
    },
};

impl Applier<'_> {
    /// Unites an undo or redo with those that are known, and lets the result take effect. `done` is written together with it.
    pub(super) fn undo(
        &mut self,
        undo: UndoPayload,
        moment: &Moment,
        done: Vec<Change>,
    ) -> Result<(), SyncError> {
        let UndoPayload { import, undone, at } = undo;
        let new = StoredUndo { dot: moment.dot, seen: moment.seen.clone(), undone, at };
        {
            // The person may undo or redo the import at this moment.
            let _undos = self.inner.lock_undos();
            let _guard = self.inner.lock_writes();
            let undos = unite(entries::undos(self.store, import)?, new);
            let mut changes = done;
            changes.push(entries::put_undos(import, &undos)?);
            changes.extend(self.pending_note(import, &undos)?.map(|note| note.to_change()).transpose()?);
            self.inner.commit_entries(changes)?;
        }
        self.applied.undos += 1;
        self.follow(import, false)
    }

    /// Returns the record of the undo that these demand, if the store has another one.
    fn pending_note(&self, import: Uuid, undos: &[StoredUndo]) -> Result<Option<UndoRecord>, SyncError> {
        // If only some of several stores have undone an import, it is undone until somebody redoes it who knows of that.
        let undone = undos.iter().any(|undo| undo.undone);
        let known = UndoRecord::load(self.store, import)?;
        if known.map_or(!undone, |known| known.undone == undone) {
            return Ok(None);
        }
        let at = undos.iter().filter(|undo| undo.undone == undone).map(|undo| undo.at).max().unwrap_or(0);
        Ok(Some(UndoRecord { import, undone, done: false, at, completed_at: None, revisions: None }))
    }

    /// Lets the undo or redo take effect that is recorded for this import, if there is one.
    pub(super) fn follow(&self, import: Uuid, again: bool) -> Result<(), SyncError> {
        if self.inner.follow_undo(import, again, self.cancel)? { Ok(()) } else { Err(SyncError::Cancelled) }
    }
}

/// Adds an undo to those that none of the others had seen.
fn unite(mut undos: Vec<StoredUndo>, new: StoredUndo) -> Vec<StoredUndo> {
    let covers = |one: &StoredUndo, other: &StoredUndo| {
        one.seen.contains(other.dot)
            || one.dot.origin == other.dot.origin && one.dot.counter >= other.dot.counter
    };
    if undos.iter().any(|known| covers(known, &new)) {
        return undos;
    }
    undos.retain(|known| !covers(&new, known));
    undos.push(new);
    undos.sort_by_key(|undo| undo.dot);
    undos
}
