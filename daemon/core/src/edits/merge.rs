//! Merges edits that were made in other stores.

use std::collections::BTreeSet;

use satchel_merge::evidence::{DerivedMemories, EditStep, UserEdits};
use satchel_source::CancelToken;
use satchel_store::{Change, MemoryQuery, MemoryRecord, RelationRecord, Store, StoreError};

use super::{
    EditContext, EditError, Edits, Transaction, earlier_versions, interrupted::complete_interrupted,
};
use crate::{
    each_row,
    provenance::{self, ActiveEvidence, EvidenceIndex, PurgedData, derive_both},
};

/// Memories per page of a list.
const PAGE: usize = 500;

impl Edits {
    /// Merges steps of other stores, with their causality, and writes `entries` in the same commit. What is shown becomes what
    /// follows from all steps. Values that a step gave, and that others have replaced or prevail over, become versions before it, so that
    /// the history of a memory has them in every store. Durable when this returns.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn merge(
        &self,
        call: &EditContext,
        mut steps: Vec<EditStep>,
        entries: Vec<Change>,
    ) -> Result<(), EditError> {
        let _guard = self.write_lock.lock(&CancelToken::new());
        complete_interrupted(&self.store)?;
        let purged = PurgedData::load(&self.store)?;
        if !purged.is_empty() {
            // What was erased here stays so, whatever other stores still say.
            steps.iter_mut().for_each(|step| {
                purged.redact_edit(step);
            });
        }
        merging((&self.store, &self.evidence), call, self.clock.now_micros(), steps)?.merge(entries)
    }
}

/// Returns the transaction that merges steps of other stores. The caller holds the write lock.
pub(super) fn merging<'a>(
    (store, index): (&'a Store, &EvidenceIndex),
    call: &'a EditContext,
    now: i64,
    steps: Vec<EditStep>,
) -> Result<Transaction<'a>, EditError> {
    let mut new = Vec::new();
    for step in &steps {
        // A copy of this store has what both have in common in a series of its own.
        let (key, _) = step.encode().map_err(|_| EditError::Unencodable { what: "a change" })?;
        if store.evidence(key)?.is_none() {
            new.push(step);
        }
    }
    let (before, after) = derive_change(store, index, &steps)?;
    let mut merging = Transaction::new(store, call, now);
    let earlier = earlier_versions::batches(store, &merging.origin(now), &new, (&before, &after))?;
    merging.apply_difference(&before, after)?;
    Ok(merging.with_steps_of_others(steps, earlier))
}

/// Derives what `steps` change, without them and with them.
fn derive_change(
    store: &Store,
    index: &EvidenceIndex,
    steps: &[EditStep],
) -> Result<(DerivedMemories, DerivedMemories), EditError> {
    let undone = provenance::undone_imports(store)?;
    let all = || Ok::<_, EditError>(derive_both(&mut ActiveEvidence::load(store, &undone)?, steps));
    let Some(change) = index.derive_change(store, &undone, steps)? else { return all() };
    if cfg!(debug_assertions) {
        change.assert_same(all()?);
    }
    Ok((change.before, change.after))
}

/// Returns what the store shows, as if it had been derived from evidence. Relations that are withdrawn for another reason than an edit
/// are among it, so that they stay withdrawn.
pub(super) fn shown_in(store: &Store, edits: &UserEdits) -> Result<DerivedMemories, StoreError> {
    let (mut shown, at) = (DerivedMemories::default(), store.revision());
    let query = MemoryQuery::default();
    each_row(
        |after| store.memories(&query, after, PAGE, at),
        |MemoryRecord { memory, .. }| {
            if let Some(signer) = provenance::untrusted_signer(store, &memory.id)? {
                shown.untrusted.insert(memory.id.clone(), signer);
            }
            shown.memories.insert(memory.id.clone(), memory);
            Ok::<_, StoreError>(())
        },
    )?;
    let edited: BTreeSet<&String> = edits.relations().collect();
    let relations = &mut shown.relations;
    each_row(
        |after| store.relations(after, PAGE, at),
        |RelationRecord { relation, .. }| {
            relations.insert(relation.id.clone(), relation);
            Ok::<_, StoreError>(())
        },
    )?;
    each_row(
        |after| store.withdrawn_relations(after, PAGE, at),
        |RelationRecord { relation, .. }| {
            if !edited.contains(&relation.id) {
                relations.insert(relation.id.clone(), relation);
            }
            Ok::<_, StoreError>(())
        },
    )?;
    Ok(shown)
}
