//! Checks the index of conversations against the memories, both ways.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    memory::{check_platform, check_tags},
    patterns,
    store::{dangling, unique},
};
use crate::{
    embedding::StorageKind,
    issue::{Issue, Issues, quote},
    store::{IndexEntry, MemoryStore, StorageReference},
};

pub(super) fn check(store: &MemoryStore, ids: &BTreeSet<&str>, complete: bool, issues: &mut Issues) {
    let entries = &store.conversations_index;
    unique("conversations_index", entries.iter().map(|entry| entry.id.as_str()), issues);
    for (index, entry) in entries.iter().enumerate() {
        check_entry(entry, &|| format!("$.conversations_index[{index}]"), issues);
    }
    check_derived(store, ids, complete, issues);
    check_references(store, complete, issues);
}

fn check_entry(entry: &IndexEntry, place: &dyn Fn() -> String, issues: &mut Issues) {
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
fn check_derived(store: &MemoryStore, ids: &BTreeSet<&str>, complete: bool, issues: &mut Issues) {
    let sources: BTreeMap<&str, Option<&str>> = store
        .memories
        .iter()
        .map(|memory| (memory.id.as_str(), memory.provenance.conversation_ref.as_deref()))
        .collect();
    for (index, entry) in store.conversations_index.iter().enumerate() {
        for (position, id) in entry.derived_memories.iter().enumerate() {
            let path = || format!("$.conversations_index[{index}].derived_memories[{position}]");
            if id.is_empty() {
                issues.push(Issue::error("R-14.3", path(), "is empty"));
            } else if !ids.contains(id.as_str()) {
                issues.push(dangling("R-14.1", path(), id, complete));
            } else if sources.get(id.as_str()).copied().flatten() != Some(entry.id.as_str()) {
                let message = format!("memory {} does not refer to this conversation", quote(id));
                issues.push(Issue::warning("R-14.1", path(), message));
            }
        }
    }
}

/// What memories say of the index. Readers look a conversation up there, so one that has no entry is unknown to them; where there
/// is no index at all, the official SDK lets it pass, and so it is only a warning.
fn check_references(store: &MemoryStore, complete: bool, issues: &mut Issues) {
    let complete = complete && !store.conversations_index.is_empty();
    let derived: BTreeMap<&str, BTreeSet<&str>> = store
        .conversations_index
        .iter()
        .map(|entry| (entry.id.as_str(), entry.derived_memories.iter().map(String::as_str).collect()))
        .collect();
    for (index, memory) in store.memories.iter().enumerate() {
        let Some(reference) = memory.provenance.conversation_ref.as_deref() else { continue };
        let path = || format!("$.memories[{index}].provenance.conversation_ref");
        match derived.get(reference) {
            None => issues.push(dangling("R-14.4", path(), reference, complete)),
            Some(listed) if !listed.contains(memory.id.as_str()) => {
                let message = format!("conversation {} does not list this memory", quote(reference));
                issues.push(Issue::warning("R-14.1", path(), message));
            }
            Some(_) => {}
        }
    }
}
