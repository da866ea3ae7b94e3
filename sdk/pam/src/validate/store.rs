//! Checks a memory store: each record when it is added, and the references between records at the end.

use std::collections::HashSet;

use super::{
    header,
    ids::{IdHash, IdHasher, IdSet, QuotedId, References},
    memory::{self, Place, check_platform, check_tags},
    patterns,
};
use crate::{
    embedding::StorageKind,
    issue::{Issue, Issues, quote},
    memory::Memory,
    parse::StoreRoot,
    relation::Relation,
    store::{ExportType, IndexEntry, MemoryStore, StorageReference},
};

/// State of the check of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreCheck {
    pub(super) hasher: IdHasher,
    pub(super) memories: IdSet,
    relations: IdSet,
    /// Ids of the index.
    index: IdSet,
    /// The same ids by entry.
    entries: Vec<IdHash>,
    /// Successors, by memory.
    successors: References,
    /// `from` and `to` of relations in turn, by relation.
    relation_ends: References,
    /// Conversations to which memories refer, by memory.
    conversation_refs: References,
    /// Pairs of memory and conversation, in the order of `conversation_refs`.
    reference_pairs: Vec<u64>,
    /// Memories that index entries list, by entry; and their indexes in its list.
    derived_refs: References,
    derived_positions: Vec<u32>,
    /// Pairs of memory and conversation in the index.
    index_pairs: HashSet<u64>,
}

/// Checks a store in memory.
pub(super) fn check(store: &MemoryStore, issues: &mut Issues) {
    let mut check = StoreCheck::default();
    for (at, memory) in store.memories.iter().enumerate() {
        check.memory(at, memory, issues);
    }
    for (at, relation) in store.relations.iter().enumerate() {
        check.relation(at, relation, issues);
    }
    for (at, entry) in store.conversations_index.iter().enumerate() {
        check.entry(at, entry, issues);
    }
    let MemoryStore { schema_version, header, integrity, signature, unknown, .. } = store;
    let root = StoreRoot {
        schema_version: schema_version.clone(),
        header: header.clone(),
        integrity: integrity.clone(),
        signature: signature.clone(),
        unknown: unknown.clone(),
    };
    check.finish(&root, issues);
}

impl StoreCheck {
    pub(super) fn memory(&mut self, at: usize, memory: &Memory, issues: &mut Issues) {
        memory::check(memory, &|| format!("$.memories[{at}]"), issues);
        let key = self.hasher.hash(&memory.id);
        unique(&mut self.memories, key, || (format!("$.memories[{at}].id"), &memory.id), issues);
        if let Some(successor) = memory.temporal.superseded_by.as_deref() {
            if *successor == memory.id {
                let path = format!("$.memories[{at}].temporal.superseded_by");
                issues.warning("R-7.2", path, "is the memory itself");
            } else {
                self.successors.push(at, self.hasher.hash(successor), successor);
            }
        }
        if let Some(source) = memory.provenance.conversation_ref.as_deref() {
            let conversation = self.hasher.hash(source);
            self.conversation_refs.push(at, conversation, source);
            self.reference_pairs.push(self.hasher.pair(key, conversation));
        }
    }

    pub(super) fn relation(&mut self, at: usize, relation: &Relation, issues: &mut Issues) {
        let path = |key: &str| format!("$.relations[{at}].{key}");
        let key = self.hasher.hash(&relation.id);
        unique(&mut self.relations, key, || (path("id"), &relation.id), issues);
        issues.reject_empty(&relation.id, "R-13.1", || path("id"));
        for (name, end) in [("from", &relation.from), ("to", &relation.to)] {
            issues.reject_empty(end, "R-13.1", || path(name));
            self.relation_ends.push(at, self.hasher.hash(end), end);
        }
        if relation.from == relation.to {
            issues.warning("R-13.2", path("to"), "is the memory that the relation comes from");
        }
        memory::check_score(relation.confidence, "R-13.1", &|| path("confidence"), issues);
    }

    pub(super) fn entry(&mut self, at: usize, entry: &IndexEntry, issues: &mut Issues) {
        check_entry(entry, &|| format!("$.conversations_index[{at}]"), issues);
        let key = self.hasher.hash(&entry.id);
        let path = || format!("$.conversations_index[{at}].id");
        // Unreadable entries have an index but no id.
        self.entries.resize(at, IdHash::default());
        self.entries.push(key);
        unique(&mut self.index, key, || (path(), &entry.id), issues);
        for (position, id) in entry.derived_memories.iter().enumerate() {
            if id.is_empty() {
                let path = format!("$.conversations_index[{at}].derived_memories[{position}]");
                issues.error("R-14.3", path, "is empty");
                continue;
            }
            let memory = self.hasher.hash(id);
            self.derived_refs.push(at, memory, id);
            self.derived_positions.push(u32::try_from(position).unwrap_or(u32::MAX));
            self.index_pairs.insert(self.hasher.pair(memory, key));
        }
    }

    /// Checks the root and the references between records.
    pub(super) fn finish(&self, root: &StoreRoot, issues: &mut Issues) {
        header::check(root, issues);
        // An incremental export may refer to memories of its base.
        let complete = root.header.export_type == ExportType::Full;
        let empty = self.hasher.hash("");
        for (row, (at, key, id)) in self.relation_ends.iter().enumerate() {
            if key != empty && !self.memories.contains(&key) {
                let name = if row % 2 == 0 { "from" } else { "to" };
                issues.push(dangling("R-13.2", format!("$.relations[{at}].{name}"), id, complete));
            }
        }
        for (at, _, id) in self.successors.iter().filter(|(_, key, _)| !self.memories.contains(key)) {
            let path = format!("$.memories[{at}].temporal.superseded_by");
            issues.push(dangling("R-7.2", path, id, complete));
        }
        self.check_derived(complete, issues);
        self.check_references(complete, issues);
    }

    /// Checks the memories that the index lists.
    fn check_derived(&self, complete: bool, issues: &mut Issues) {
        let referring: HashSet<u64> = self.reference_pairs.iter().copied().collect();
        for ((index, key, id), position) in self.derived_refs.iter().zip(&self.derived_positions) {
            let path = || format!("$.conversations_index[{index}].derived_memories[{position}]");
            if !self.memories.contains(&key) {
                issues.push(dangling("R-14.1", path(), id, complete));
            } else if !referring.contains(&self.hasher.pair(key, self.entries[index])) {
                issues.warning("R-14.1", path(), format!("memory {id} does not refer to this conversation"));
            }
        }
    }

    /// Checks the conversations to which memories refer. Readers cannot find a conversation without an entry; without any index it is
    /// only a warning, because the official SDK accepts that.
    fn check_references(&self, complete: bool, issues: &mut Issues) {
        let complete = complete && !self.index.is_empty();
        for ((index, key, id), pair) in self.conversation_refs.iter().zip(&self.reference_pairs) {
            let path = || format!("$.memories[{index}].provenance.conversation_ref");
            if !self.index.contains(&key) {
                issues.push(dangling("R-14.4", path(), id, complete));
            } else if !self.index_pairs.contains(pair) {
                issues.warning("R-14.1", path(), format!("conversation {id} does not list this memory"));
            }
        }
    }
}

fn check_entry(entry: &IndexEntry, place: Place<'_>, issues: &mut Issues) {
    issues.reject_empty(&entry.id, "R-14.3", || place() + ".id");
    check_platform(&entry.platform, &|| place() + ".platform", issues);
    check_tags(&entry.tags, &|| place() + ".tags", false, issues);
    if entry.temporal.updated_at.is_some_and(|updated| updated.micros() < entry.temporal.created_at.micros())
    {
        issues.error("SDK-temporal", place() + ".temporal.updated_at", "is before created_at");
    }
    if let Some(storage) = &entry.storage {
        check_storage(storage, &|| place() + ".storage.ref", issues);
    }
}

fn check_storage(storage: &StorageReference, place: Place<'_>, issues: &mut Issues) {
    issues.reject_empty(&storage.reference, "R-14.3", place);
    if storage.kind == StorageKind::File && !patterns::is_inside_bundle(&storage.reference) {
        issues.error("R-14.3", place(), format!("{} leads out of the bundle", quote(&storage.reference)));
    }
}

/// Adds an id to its list; a duplicate is an error.
fn unique<'i>(
    ids: &mut IdSet,
    key: IdHash,
    place: impl FnOnce() -> (String, &'i String),
    issues: &mut Issues,
) {
    if !ids.insert(key) {
        let (path, id) = place();
        issues.error("R-4.6", path, format!("{} stands twice", quote(id)));
    }
}

/// An issue for a reference to a missing record: an error in a complete document, otherwise a warning.
pub(super) fn dangling(rule: &'static str, path: String, id: QuotedId<'_>, complete: bool) -> Issue {
    let message = format!("{id} is not in this document");
    if complete { Issue::error(rule, path, message) } else { Issue::warning(rule, path, message) }
}
