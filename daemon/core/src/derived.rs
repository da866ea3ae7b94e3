//! Derived records: the memories and relations that follow from all evidence. A mark in the ledger says whether those in
//! the store are up to date, and the functions here compare them with what the evidence says now.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::DerivedMemories;
use satchel_pam::relation::Relation;
use satchel_store::{Change, Ledger, LedgerWrite, Store, StoreError};

use crate::provenance::UndoneImports;

/// The reason recorded in the history of records that an undo or a redo of an import wrote.
pub(crate) const UNDO_REASON: &str = "undo of an import";
/// The id of the mark. Its value is the import that set it, or a change by hand, or empty.
const PENDING: &str = "settling memories";
/// The id of the entry that names the version of the program which last derived all memories.
const CURRENT: &str = "memories derived by";
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the change that sets the mark, or removes it if `by` is empty.
pub(crate) fn mark_pending(by: &str) -> Change {
    let (ledger, id, value) = (Ledger::Setting, PENDING.to_owned(), by.as_bytes().to_vec());
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value })
}

/// Returns whether an import was interrupted before everything that follows from its evidence was stored.
pub(crate) fn is_pending(store: &Store) -> Result<bool, StoreError> {
    Ok(pending_by(store)?.is_some())
}

/// Returns what set the mark.
pub(crate) fn pending_by(store: &Store) -> Result<Option<Vec<u8>>, StoreError> {
    let mark = store.ledger_get(Ledger::Setting, PENDING)?;
    Ok(mark.map(|mark| mark.value).filter(|value| !value.is_empty()))
}

/// Returns the change which records that this version of the program derived all memories.
pub(crate) fn mark_current() -> Change {
    let (ledger, id, value) = (Ledger::Setting, CURRENT.to_owned(), VERSION.as_bytes().to_vec());
    Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros: 0, value })
}

/// Returns whether this version of the program derived all memories; another version may derive them differently.
pub(crate) fn is_current(store: &Store) -> Result<bool, StoreError> {
    let by = store.ledger_get(Ledger::Setting, CURRENT)?;
    Ok(by.is_some_and(|by| by.value == VERSION.as_bytes()))
}

/// Returns the changes that withdraw visible records which are in `was` but not in `now`.
pub(crate) fn withdrawals(
    store: &Store,
    was: &DerivedMemories,
    now: &DerivedMemories,
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

/// Returns the changes that store those of `relations` that differ from the store. A relation that was only named
/// explicitly, not `replayed`, stays withdrawn if an import withdrew it, until that import is undone. Relations that
/// the user withdrew are not among `relations`.
pub(crate) fn relation_changes(
    store: &Store,
    relations: BTreeMap<String, Relation>,
    replayed: &BTreeSet<String>,
    undone: &UndoneImports,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    for (id, relation) in relations {
        let Some(stored) = store.relation(&id, None)? else {
            changes.push(Change::Relation(relation));
            continue;
        };
        let same = stored.relation == relation;
        let by_import = stored.origin.import.is_some_and(|import| !undone.contains(&import));
        let taken_back = same && !replayed.contains(&id) && by_import && stored.origin.reason != UNDO_REASON;
        if !same || stored.withdrawn && !taken_back {
            changes.push(Change::Relation(relation));
        }
    }
    Ok(changes)
}
