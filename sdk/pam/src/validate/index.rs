//! Checks the index of conversations against the memories, both ways.

use std::collections::HashSet;

use super::{
    memory::{check_platform, check_tags},
    patterns,
    store::{StoreCheck, dangling},
};
use crate::{
    embedding::StorageKind,
    issue::{Issue, Issues, quote},
    store::{IndexEntry, StorageReference},
};

/// What index and memories say of each other.
pub(super) fn check(store: &StoreCheck, complete: bool, issues: &mut Issues) {
    check_derived(store, complete, issues);
    check_references(store, complete, issues);
}

pub(super) fn check_entry(entry: &IndexEntry, place: &dyn Fn() -> String, issues: &mut Issues) {
    if entry.id.is_empty() {
        issues.push(Issue::error("R-14.3", place() + ".id", "is empty"));
    }
    check_platform(&entry.platform, &|| place() + ".platform", issues);
    check_tags(&entry.tags, &|| place() + ".tags", false, issues);
    if entry.temporal.updated_at.is_some_and(|updated| updated.micros() < entry.temporal.created_at.micros())
    {
        issues.push(Issue::error("SDK-temporal", place() + ".temporal.updated_at", "is before created_at"));
    }
    if let Some(storage) = &entry.storage {
        check_storage(storage, &|| place() + ".storage.ref", issues);
    }
}

fn check_storage(storage: &StorageReference, place: &dyn Fn() -> String, issues: &mut Issues) {
    if storage.reference.is_empty() {
        issues.push(Issue::error("R-14.3", place(), "is empty"));
    }
    if storage.kind == StorageKind::File && !patterns::inside(&storage.reference) {
        let message = format!("{} leads out of the bundle", quote(&storage.reference));
        issues.push(Issue::error("R-14.3", place(), message));
    }
}

/// What the index says of memories.
fn check_derived(store: &StoreCheck, complete: bool, issues: &mut Issues) {
    let referring: HashSet<u64> = store.referring.iter().copied().collect();
    for ((index, key, id), position) in store.derived.iter().zip(&store.derived_at) {
        let path = || format!("$.conversations_index[{index}].derived_memories[{position}]");
        if !store.memories.contains(&key) {
            issues.push(dangling("R-14.1", path(), id, complete));
        } else if !referring.contains(&store.keys.pair(key, store.entries[index])) {
            let message = format!("memory {id} does not refer to this conversation");
            issues.push(Issue::warning("R-14.1", path(), message));
        }
    }
}

/// What memories say of the index. Readers look a conversation up there, so one that has no entry is unknown to them; where there
/// is no index at all, the official SDK lets it pass, and so it is only a warning.
fn check_references(store: &StoreCheck, complete: bool, issues: &mut Issues) {
    let complete = complete && !store.index.is_empty();
    for ((index, key, id), pair) in store.sources.iter().zip(&store.referring) {
        let path = || format!("$.memories[{index}].provenance.conversation_ref");
        if !store.index.contains(&key) {
            issues.push(dangling("R-14.4", path(), id, complete));
        } else if !store.listed.contains(pair) {
            let message = format!("conversation {id} does not list this memory");
            issues.push(Issue::warning("R-14.1", path(), message));
        }
    }
}
