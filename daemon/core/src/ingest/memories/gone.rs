//! What followed from the evidence and follows no more.

use std::collections::BTreeSet;

use satchel_merge::evidence::Derived;
use satchel_store::{Change, Store, StoreError};

/// The changes that take away what `was` has and `now` has not, and is shown.
pub(in crate::ingest) fn gone(
    store: &Store,
    was: &Derived,
    now: &Derived,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    let relations: BTreeSet<&String> =
        was.relations.keys().filter(|id| !now.relations.contains_key(*id)).collect();
    for id in relations {
        if store.relation(id, None)?.is_some_and(|stored| !stored.withdrawn) {
            changes.push(Change::WithdrawRelation(id.clone()));
        }
    }
    for id in was.memories.keys().filter(|id| !now.memories.contains_key(*id)) {
        if let Some(stored) = store.memory(id, None)?.filter(|stored| !stored.withdrawn) {
            changes.push(Change::WithdrawMemory(Box::new(stored.memory)));
        }
    }
    Ok(changes)
}
