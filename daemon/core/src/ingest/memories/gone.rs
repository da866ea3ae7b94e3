//! Removes records that no longer follow from the evidence.

use std::collections::BTreeSet;

use satchel_merge::evidence::Derived;
use satchel_store::{Change, Store, StoreError};

/// Returns the changes that withdraw visible records which are in `was` but not in `now`.
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
