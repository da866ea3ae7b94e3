//! An incremental bundle on its base: whether the two belong together, and what they make.

use std::collections::BTreeSet;

use satchel_pam::{
    hash::Sha256Digest,
    issue::Issue,
    merge::State,
    sign::{PublicKey, SignatureCheck},
    store::{ExportType, MemoryStore},
    validate,
};

use crate::manifest::Selected;

/// What the check is called in findings.
const CHECK: &str = "base";

/// What a base and the changes since it make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Memories of both.
    pub memories: u64,
    /// Their checksum (PAM 1.0 §16.3 rule 4); none, if one of them has no canonical form.
    pub checksum: Option<Sha256Digest>,
}

/// Compares `delta` with `base`, and merges them if both can be read.
pub(super) fn check(
    (of_base, of_delta): (&validate::Report, &validate::Report),
    stores: (Option<MemoryStore>, Option<MemoryStore>),
    selection: Option<&Selected>,
    predecessors: &[PublicKey],
) -> (Option<Merged>, Vec<Issue>) {
    let mut issues = Vec::new();
    signers(&of_base.signature, &of_delta.signature, predecessors, &mut issues);
    let (Some(base), Some(delta)) = stores else {
        issues.push(wrong("$", "cannot be compared, as one of the two memory stores cannot be read"));
        return (None, issues);
    };
    if let Some(selection) = selection {
        let message = format!("the base is {}: nothing builds on it", selection.words());
        issues.push(wrong("$", &message));
    }
    headers(&base, &delta, &mut issues);
    if !issues.iter().all(|issue| issue.severity == satchel_pam::issue::Severity::Warning) {
        return (None, issues);
    }
    references(&base, &delta, &mut issues);
    (Some(merge(base, &delta, &mut issues)), issues)
}

fn headers(base: &MemoryStore, delta: &MemoryStore, issues: &mut Vec<Issue>) {
    let (base, delta) = (&base.header, &delta.header);
    if delta.export_type != ExportType::Incremental {
        issues.push(wrong("$.export_type", "is full: the bundle needs no base"));
        return;
    }
    if base.export_type != ExportType::Full {
        issues.push(wrong("$.base_export_id", "the base is an incremental export itself, not a full one"));
    }
    if delta.base_export_id.is_none() || delta.base_export_id != base.export_id {
        let named = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".to_owned());
        let message =
            format!("is {}, and the base given is {}", named(&delta.base_export_id), named(&base.export_id));
        issues.push(wrong("$.base_export_id", &message));
    }
    if delta.owner.id != base.owner.id {
        issues.push(wrong("$.owner.id", "is another person's than the base's"));
    }
    let Some(base_date) = base.export_date else { return };
    if delta.export_date.is_some_and(|date| date.micros() < base_date.micros()) {
        issues.push(wrong("$.export_date", "is before the base's"));
    }
    if delta.since.is_some_and(|since| since.micros() > base_date.micros()) {
        let message = "is after the base's date: what changed in between may be missing";
        issues.push(Issue::warning(CHECK, "$.since", message));
    }
}

fn signers(
    base: &SignatureCheck,
    delta: &SignatureCheck,
    predecessors: &[PublicKey],
    issues: &mut Vec<Issue>,
) {
    if let (Some(base), Some(delta)) = (key(base), key(delta))
        && base != delta
        && !predecessors.contains(base)
    {
        let message = format!("is of {}, and the base's of {}", delta.multibase(), base.multibase());
        issues.push(Issue::warning(CHECK, "$.signature", message));
    }
}

fn key(signature: &SignatureCheck) -> Option<&PublicKey> {
    match signature {
        SignatureCheck::Valid { key } => Some(key),
        SignatureCheck::Invalid(_) | SignatureCheck::Absent | SignatureCheck::Unsupported(_) => None,
    }
}

/// What the delta names is in it or in its base.
fn references(base: &MemoryStore, delta: &MemoryStore, issues: &mut Vec<Issue>) {
    let both = || [base, delta].into_iter();
    let memories: BTreeSet<&str> =
        both().flat_map(|store| &store.memories).map(|memory| memory.id.as_str()).collect();
    let conversations: BTreeSet<&str> =
        both().flat_map(|store| &store.conversations_index).map(|entry| entry.id.as_str()).collect();
    let mut check = |known: &BTreeSet<&str>, id: &str, path: String| {
        if !known.contains(id) {
            issues.push(wrong(&path, &format!("{id:?} is neither in this document nor in its base")));
        }
    };
    for (index, relation) in delta.relations.iter().enumerate() {
        check(&memories, &relation.from, format!("$.relations[{index}].from"));
        check(&memories, &relation.to, format!("$.relations[{index}].to"));
    }
    for (index, memory) in delta.memories.iter().enumerate() {
        if let Some(id) = &memory.temporal.superseded_by {
            check(&memories, id, format!("$.memories[{index}].temporal.superseded_by"));
        }
        // Where there is no index at all, none can be missed in it.
        if let Some(id) = memory.provenance.conversation_ref.as_ref().filter(|_| !conversations.is_empty()) {
            check(&conversations, id, format!("$.memories[{index}].provenance.conversation_ref"));
        }
    }
    for (index, entry) in delta.conversations_index.iter().enumerate() {
        for (at, id) in entry.derived_memories.iter().enumerate() {
            check(&memories, id, format!("$.conversations_index[{index}].derived_memories[{at}]"));
        }
    }
}

fn merge(base: MemoryStore, delta: &MemoryStore, issues: &mut Vec<Issue>) -> Merged {
    let mut state = State::default();
    state.memories.extend(base.memories.into_iter().map(|memory| (memory.id.clone(), memory)));
    let changes = MemoryStore { relations: Vec::new(), conversations_index: Vec::new(), ..delta.clone() };
    let plan = state.merge(&changes);
    for (id, verdict) in plan.memories.iter().filter(|(_, verdict)| verdict.conflict()) {
        let message = format!("memory {id:?} stays as the base has it ({})", verdict.reason);
        issues.push(Issue::warning(CHECK, "$.memories", message));
    }
    Merged { memories: state.memories.len() as u64, checksum: state.checksum().ok() }
}

fn wrong(path: &str, problem: &str) -> Issue {
    Issue::error(CHECK, path, problem)
}
