//! Checks a memory store entry by entry: each record as it comes, at the end what they say of each other.

use std::collections::HashSet;

use super::{
    header,
    ids::{Ids, Key, Keys, References, Shown},
    index, memory,
};
use crate::{
    issue::{Issue, Issues, quote},
    memory::Memory,
    parse::StoreFrame,
    relation::Relation,
    store::{ExportType, IndexEntry, MemoryStore},
};

/// A check under way.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreCheck {
    pub(super) keys: Keys,
    pub(super) memories: Ids,
    relations: Ids,
    /// The ids of the index.
    pub(super) index: Ids,
    /// They again, by entry.
    pub(super) entries: Vec<Key>,
    /// By memory.
    successors: References,
    /// Ends of relations, by relation: `from` and `to` in turn.
    ends: References,
    /// Conversations that memories come from, by memory.
    pub(super) sources: References,
    /// Memories that refer to conversations, in the order of `sources`.
    pub(super) referring: Vec<u64>,
    /// Memories that index entries list, by entry, with their places in its list.
    pub(super) derived: References,
    pub(super) derived_at: Vec<u32>,
    /// Memory and conversation, as the entries of the index have it.
    pub(super) listed: HashSet<u64>,
}

/// Checks a store that is in memory.
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
    let frame = StoreFrame {
        schema_version: schema_version.clone(),
        header: header.clone(),
        integrity: integrity.clone(),
        signature: signature.clone(),
        unknown: unknown.clone(),
    };
    check.finish(&frame, issues);
}

impl StoreCheck {
    pub(super) fn memory(&mut self, at: usize, memory: &Memory, issues: &mut Issues) {
        memory::check(memory, &|| format!("$.memories[{at}]"), issues);
        let key = self.keys.of(&memory.id);
        unique(&mut self.memories, key, || (format!("$.memories[{at}].id"), &memory.id), issues);
        if let Some(successor) = memory.temporal.superseded_by.as_deref() {
            if *successor == memory.id {
                let path = format!("$.memories[{at}].temporal.superseded_by");
                issues.push(Issue::warning("R-7.2", path, "is the memory itself"));
            } else {
                self.successors.push(at, self.keys.of(successor), successor);
            }
        }
        if let Some(source) = memory.provenance.conversation_ref.as_deref() {
            let conversation = self.keys.of(source);
            self.sources.push(at, conversation, source);
            self.referring.push(self.keys.pair(key, conversation));
        }
    }

    pub(super) fn relation(&mut self, at: usize, relation: &Relation, issues: &mut Issues) {
        let path = |key: &str| format!("$.relations[{at}].{key}");
        let key = self.keys.of(&relation.id);
        unique(&mut self.relations, key, || (path("id"), &relation.id), issues);
        if relation.id.is_empty() {
            issues.push(Issue::error("R-13.1", path("id"), "is empty"));
        }
        for (name, end) in [("from", &relation.from), ("to", &relation.to)] {
            if end.is_empty() {
                issues.push(Issue::error("R-13.1", path(name), "is empty"));
            }
            self.ends.push(at, self.keys.of(end), end);
        }
        if relation.from == relation.to {
            let message = "is the memory that the relation comes from";
            issues.push(Issue::warning("R-13.2", path("to"), message));
        }
        memory::check_score(relation.confidence, "R-13.1", &|| path("confidence"), issues);
    }

    pub(super) fn entry(&mut self, at: usize, entry: &IndexEntry, issues: &mut Issues) {
        index::check_entry(entry, &|| format!("$.conversations_index[{at}]"), issues);
        let key = self.keys.of(&entry.id);
        let path = || format!("$.conversations_index[{at}].id");
        // Entries that cannot be read have a place, and no id.
        self.entries.resize(at, Key::default());
        self.entries.push(key);
        unique(&mut self.index, key, || (path(), &entry.id), issues);
        for (position, id) in entry.derived_memories.iter().enumerate() {
            if id.is_empty() {
                let path = format!("$.conversations_index[{at}].derived_memories[{position}]");
                issues.push(Issue::error("R-14.3", path, "is empty"));
                continue;
            }
            let memory = self.keys.of(id);
            self.derived.push(at, memory, id);
            self.derived_at.push(u32::try_from(position).unwrap_or(u32::MAX));
            self.listed.insert(self.keys.pair(memory, key));
        }
    }

    /// Checks the root, and what the entries say of each other.
    pub(super) fn finish(&self, frame: &StoreFrame, issues: &mut Issues) {
        header::check(frame, issues);
        // A delta refers to memories of its base.
        let complete = frame.header.export_type == ExportType::Full;
        let empty = self.keys.of("");
        for (row, (at, key, id)) in self.ends.iter().enumerate() {
            if key != empty && !self.memories.contains(&key) {
                let name = if row % 2 == 0 { "from" } else { "to" };
                issues.push(dangling("R-13.2", format!("$.relations[{at}].{name}"), id, complete));
            }
        }
        for (at, _, id) in self.successors.iter().filter(|(_, key, _)| !self.memories.contains(key)) {
            let path = format!("$.memories[{at}].temporal.superseded_by");
            issues.push(dangling("R-7.2", path, id, complete));
        }
        index::check(self, complete, issues);
    }
}

/// Takes an id into its list; reports one that stands twice.
fn unique<'i>(ids: &mut Ids, key: Key, place: impl FnOnce() -> (String, &'i String), issues: &mut Issues) {
    if !ids.insert(key) {
        let (path, id) = place();
        issues.push(Issue::error("R-4.6", path, format!("{} stands twice", quote(id))));
    }
}

/// A reference to something that is not there: an error where everything should be, else a warning.
pub(super) fn dangling(rule: &'static str, path: String, id: Shown<'_>, complete: bool) -> Issue {
    let message = format!("{id} is not in this document");
    if complete { Issue::error(rule, path, message) } else { Issue::warning(rule, path, message) }
}
