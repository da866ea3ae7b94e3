//! Checks a memory store: each record, then what they say of each other.

use std::collections::BTreeSet;

use super::{header, index, memory};
use crate::{
    issue::{Issue, Issues, quote},
    memory::Memory,
    relation::Relation,
    store::{ExportType, MemoryStore},
};

pub(super) fn check(store: &MemoryStore, issues: &mut Issues) {
    header::check(store, issues);
    for (index, one) in store.memories.iter().enumerate() {
        memory::check(one, &|| format!("$.memories[{index}]"), issues);
    }
    let ids = unique("memories", store.memories.iter().map(|memory| memory.id.as_str()), issues);
    unique("relations", store.relations.iter().map(|relation| relation.id.as_str()), issues);
    // A delta refers to memories of its base.
    let complete = store.header.export_type == ExportType::Full;
    for (index, relation) in store.relations.iter().enumerate() {
        check_relation(relation, index, &ids, complete, issues);
    }
    check_successors(&store.memories, &ids, complete, issues);
    index::check(store, &ids, complete, issues);
}

/// Reports ids that stand twice; gives them all.
pub(super) fn unique<'s>(
    list: &str,
    ids: impl Iterator<Item = &'s str>,
    issues: &mut Issues,
) -> BTreeSet<&'s str> {
    let mut seen = BTreeSet::new();
    for (index, id) in ids.enumerate() {
        if !seen.insert(id) {
            issues.push(Issue::error(
                "R-4.6",
                format!("$.{list}[{index}].id"),
                format!("{} stands twice", quote(id)),
            ));
        }
    }
    seen
}

/// A reference to something that is not there: an error where everything should be, else a warning.
pub(super) fn dangling(rule: &'static str, path: String, id: &str, complete: bool) -> Issue {
    let message = format!("{} is not in this document", quote(id));
    if complete { Issue::error(rule, path, message) } else { Issue::warning(rule, path, message) }
}

fn check_relation(
    relation: &Relation,
    index: usize,
    ids: &BTreeSet<&str>,
    complete: bool,
    issues: &mut Issues,
) {
    let path = |key: &str| format!("$.relations[{index}].{key}");
    if relation.id.is_empty() {
        issues.push(Issue::error("R-13.1", path("id"), "is empty"));
    }
    for (key, end) in [("from", &relation.from), ("to", &relation.to)] {
        if end.is_empty() {
            issues.push(Issue::error("R-13.1", path(key), "is empty"));
        } else if !ids.contains(end.as_str()) {
            issues.push(dangling("R-13.2", path(key), end, complete));
        }
    }
    if relation.from == relation.to {
        issues.push(Issue::warning("R-13.2", path("to"), "is the memory that the relation comes from"));
    }
    memory::check_score(relation.confidence, "R-13.1", &|| path("confidence"), issues);
}

fn check_successors(memories: &[Memory], ids: &BTreeSet<&str>, complete: bool, issues: &mut Issues) {
    for (index, memory) in memories.iter().enumerate() {
        let Some(successor) = memory.temporal.superseded_by.as_deref() else { continue };
        let path = || format!("$.memories[{index}].temporal.superseded_by");
        if successor == memory.id {
            issues.push(Issue::warning("R-7.2", path(), "is the memory itself"));
        } else if !ids.contains(successor) {
            issues.push(dangling("R-7.2", path(), successor, complete));
        }
    }
}
