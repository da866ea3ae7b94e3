//! Derives one memory from all evidence about it.

use std::collections::BTreeSet;

use satchel_pam::{
    hash::ContentHash,
    memory::{Access, Confidence, ExtractionMethod, Memory, MemoryType, Provenance, Status, Temporal},
    record::Item,
    relation::Relation,
    time::Timestamp,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    DerivedMemories, EvidenceItem, MemoryState, StoredEvidence, evidence_list, relation::supersedes,
    streams::UNDATED,
};

/// The share of the remaining doubt that each further piece of evidence removes.
const REINFORCEMENT: f64 = 0.1;
/// The number of pieces beyond which confidence no longer changes.
const REINFORCEMENTS: usize = 40;

/// Derives memories and relations from all evidence. Returns `None` if `stop` returns true on the way. `known` tells
/// whether any evidence exists for a memory, in `items` or elsewhere.
pub(super) fn combine(
    mut items: Vec<EvidenceItem<'_>>,
    known: &dyn Fn(&Uuid) -> bool,
    stop: &dyn Fn() -> bool,
) -> Option<DerivedMemories> {
    items.sort_by(|one, other| {
        (&one.memory, one.evidence.at, &one.evidence.id).cmp(&(
            &other.memory,
            other.evidence.at,
            &other.evidence.id,
        ))
    });
    let mut derived = DerivedMemories::default();
    for group in items.chunk_by(|one, other| one.memory == other.memory) {
        if stop() {
            return None;
        }
        let (memory, relation) = memory(group, known);
        if let Some(relation) = relation {
            derived.relations.insert(relation.id.clone(), relation);
        }
        derived.memories.insert(memory.id.clone(), memory);
    }
    Some(derived)
}

/// Derives one memory from all evidence about it; `group` is not empty and is sorted by time.
fn memory(group: &[EvidenceItem<'_>], known: &dyn Fn(&Uuid) -> bool) -> (Memory, Option<Relation>) {
    let first = &group[0];
    let item = first.item;
    let (status, by, changed) = status_of(group, known);
    let last_seen = group.iter().map(|entry| entry.evidence.at).max().unwrap_or(first.evidence.at);
    let created = created_at(group);
    let reported = group.iter().filter_map(|entry| entry.item.updated_at);
    let updated = reported.chain(changed).max().filter(|at| *at > created);
    let earliest = |field: fn(&Item) -> Option<i64>| {
        group.iter().find_map(|entry| field(entry.item)).map(Timestamp::saturating)
    };
    let (id, by) = (first.memory.to_string(), by.map(|by| by.to_string()));
    let relation = by.as_ref().map(|by| supersedes(by, &id, changed.unwrap_or(last_seen)));
    let memory = Memory {
        id,
        memory_type: item.memory_type,
        custom_type: item.custom_type.clone().filter(|_| item.memory_type == MemoryType::Custom),
        status,
        content: item.content.clone(),
        content_hash: ContentHash::of(&item.content),
        summary: group.iter().find_map(|entry| entry.item.summary.clone()),
        tags: group
            .iter()
            .flat_map(|entry| entry.item.tags.iter().cloned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        confidence: Some(confidence(group, last_seen)),
        temporal: Temporal {
            created_at: Timestamp::saturating(created),
            updated_at: updated.map(Timestamp::saturating),
            valid_from: earliest(|item| item.valid_from),
            valid_until: earliest(|item| item.valid_until),
            superseded_by: by,
        },
        provenance: provenance(first.evidence),
        access: group.iter().find_map(|entry| entry.item.access.clone()).or_else(|| Some(Access::default())),
        embedding_ref: group.iter().find_map(|entry| entry.item.embedding_ref.clone()),
        metadata: metadata(group, last_seen, created),
    };
    (memory, relation)
}

/// Returns the earliest creation time of the memory: the provider's if it states one for the memory itself, otherwise
/// that of the evidence. An unknown time counts only if there is no other.
fn created_at(group: &[EvidenceItem<'_>]) -> i64 {
    let times = group.iter().map(|entry| entry.item.created_at.unwrap_or(entry.evidence.at));
    times.filter(|at| *at != UNDATED).min().unwrap_or(UNDATED)
}

/// Returns active if the memory is present in any stream, and otherwise its most recent state.
fn status_of(
    group: &[EvidenceItem<'_>],
    known: &dyn Fn(&Uuid) -> bool,
) -> (Status, Option<Uuid>, Option<i64>) {
    if group.iter().any(|entry| entry.state == MemoryState::Present) {
        return (Status::Active, None, None);
    }
    let rank = |state: &MemoryState| match state {
        MemoryState::Present => (i64::MAX, 3),
        MemoryState::Removed { at } => (*at, 2),
        MemoryState::Replaced { at, .. } => (*at, 1),
        MemoryState::Stated(_) => (i64::MIN, 0),
    };
    match group.iter().map(|entry| &entry.state).max_by_key(|state| rank(state)) {
        Some(MemoryState::Removed { at }) => (Status::Retracted, None, Some(*at)),
        Some(MemoryState::Replaced { by, at }) => (Status::Superseded, by.filter(|by| known(by)), Some(*at)),
        Some(MemoryState::Stated(status)) => (*status, None, None),
        Some(MemoryState::Present) | None => (Status::Active, None, None),
    }
}

fn provenance(evidence: &StoredEvidence) -> Provenance {
    Provenance {
        platform: evidence.platform.clone(),
        platform_user_id: evidence.account.clone(),
        conversation_ref: evidence.conversation.clone(),
        message_ref: evidence.message.clone(),
        extraction_method: Some(evidence.method),
        extracted_at: (evidence.at != UNDATED).then(|| Timestamp::saturating(evidence.at)),
        extractor: Some(evidence.extractor.clone()),
    }
}

fn confidence(group: &[EvidenceItem<'_>], last_seen: i64) -> Confidence {
    let given = group.iter().find_map(|entry| entry.item.confidence.as_ref());
    let initial =
        given.and_then(|given| given.initial).unwrap_or_else(|| initial_confidence(group[0].evidence.method));
    let times = pieces(group).len().saturating_sub(1).min(REINFORCEMENTS);
    let start = given.and_then(|given| given.current).unwrap_or(initial);
    let doubt = (0..times).fold(1.0 - start, |doubt, _| doubt * (1.0 - REINFORCEMENT));
    Confidence {
        initial: Some(initial),
        current: Some(((1.0 - doubt) * 10_000.0).round() / 10_000.0),
        decay_model: given.and_then(|given| given.decay_model),
        last_reinforced: (times > 0 && last_seen != UNDATED).then(|| Timestamp::saturating(last_seen)),
    }
}

/// Returns the initial confidence in a memory that comes without a score of its own.
fn initial_confidence(method: ExtractionMethod) -> f64 {
    match method {
        ExtractionMethod::Manual => 1.0,
        ExtractionMethod::ExplicitUserInput => 0.95,
        ExtractionMethod::ApiExport => 0.8,
        ExtractionMethod::BrowserExtraction => 0.7,
        ExtractionMethod::LlmInference => 0.6,
    }
}

/// Merges the items' own metadata, the earliest first, and records under `satchel` where the memory was seen.
fn metadata(group: &[EvidenceItem<'_>], last_seen: i64, created: i64) -> Map<String, Value> {
    let mut metadata = Map::new();
    for raw in group.iter().filter_map(|entry| entry.item.metadata.as_ref()) {
        for (key, value) in raw.to_map() {
            if !value.is_null() && !metadata.contains_key(&key) {
                metadata.insert(key, value);
            }
        }
    }
    let evidence = pieces(group);
    let mut entries = Map::new();
    entries.insert("evidence".into(), evidence_list::list(&evidence).into());
    entries.insert("evidence_count".into(), evidence.len().into());
    if created == UNDATED {
        entries.insert("created_at_source".into(), "unknown".into());
    }
    if last_seen != UNDATED {
        entries.insert("last_seen".into(), Timestamp::saturating(last_seen).to_string().into());
    }
    if let Some(scope) = &group[0].item.scope {
        entries.insert("scope".into(), scope.clone().into());
    }
    metadata.insert("satchel".into(), entries.into());
    metadata
}

/// Returns the pieces of evidence in `group` without duplicates: one piece may contain the same item twice.
fn pieces<'a>(group: &[EvidenceItem<'a>]) -> Vec<&'a StoredEvidence> {
    let mut pieces: Vec<&StoredEvidence> = group.iter().map(|entry| entry.evidence).collect();
    pieces.dedup_by(|one, other| one.id == other.id);
    pieces
}
