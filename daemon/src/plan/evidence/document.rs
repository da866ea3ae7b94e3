//! Memories that came in PAM documents, whole and with their ids: the other kind of evidence.
//!
//! Every version that any document brought is kept. Which one is shown follows from all of them, whatever the order in which
//! they came (`the_order_of_documents_never_matters`): one that was retracted stays so; else the one that changed last. Where
//! exports of providers speak of the same memory, the one that changed last is shown.

use std::collections::BTreeMap;

use satchel_pam::{
    hash::Sha256Digest,
    ids,
    memory::{Memory, Status},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Derived;

/// Stands for the platform in the ids of this evidence; no platform has a space.
const KIND: &str = "pam document";
/// How the stored form begins; a [`super::Witness`] begins otherwise.
const START: &[u8] = br#"{"document":"#;

/// A memory as a PAM document has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The memory.
    #[serde(rename = "document")]
    pub memory: Memory,
}

impl Document {
    /// Whether the bytes of a stored piece of evidence are a document.
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    /// The evidence's id, one for each version of a memory, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of such.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        let version = Sha256Digest::of(&bytes).to_hex();
        Ok((ids::evidence_id(KIND, Some(&self.memory.id), &version).to_string(), bytes))
    }
}

/// Unites the memories of `documents` with what is derived from exports.
pub(super) fn add<'a>(derived: &mut Derived, documents: impl IntoIterator<Item = &'a Document>) {
    let mut shown: BTreeMap<&str, &Memory> = BTreeMap::new();
    for Document { memory } in documents {
        let known = shown.entry(&memory.id).or_insert(memory);
        if wins(memory, known) {
            *known = memory;
        }
    }
    for (id, memory) in shown {
        let older = derived.memories.get(id).is_none_or(|known| later(memory, known));
        if older {
            derived.memories.insert(id.to_owned(), memory.clone());
        }
    }
}

/// Of two documents, a retraction wins (PAM rule 7.3: it is final), then what is later.
fn wins(one: &Memory, other: &Memory) -> bool {
    let retracted = |memory: &Memory| memory.status == Status::Retracted;
    match (retracted(one), retracted(other)) {
        (true, false) => true,
        (false, true) => false,
        _ => later(one, other),
    }
}

/// Whether `one` changed after `other`; of two changed at once the greater text is taken for the later.
fn later(one: &Memory, other: &Memory) -> bool {
    let text = |memory: &Memory| serde_json::to_string(memory).unwrap_or_default();
    match changed_at(one).cmp(&changed_at(other)) {
        std::cmp::Ordering::Equal => one != other && text(one) > text(other),
        order => order.is_gt(),
    }
}

/// When a memory last changed, or was last seen at its provider; microseconds.
fn changed_at(memory: &Memory) -> i64 {
    let seen = memory.metadata.get("satchel").and_then(|own| own.get("last_seen")).and_then(Value::as_str);
    let reinforced = memory.confidence.as_ref().and_then(|confidence| confidence.last_reinforced);
    [memory.temporal.updated_at, reinforced, seen.and_then(|text| Timestamp::parse(text).ok())]
        .into_iter()
        .flatten()
        .fold(memory.temporal.created_at.micros(), |last, time| last.max(time.micros()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;
    use satchel_pam::{
        hash::ContentHash,
        memory::{MemoryType, Provenance, Temporal},
        record::{Claim, Item},
    };

    use super::*;
    use crate::plan::evidence::{Witness, derive_with, memory_id};

    fn memory(id: &str, content: &str, status: Status, updated: i64) -> Document {
        let memory = Memory {
            id: id.to_owned(),
            memory_type: MemoryType::Fact,
            custom_type: None,
            status,
            content: content.to_owned(),
            content_hash: ContentHash::of(content),
            summary: None,
            tags: Vec::new(),
            confidence: None,
            temporal: Temporal {
                created_at: Timestamp::EPOCH,
                updated_at: Some(Timestamp::saturating(updated)),
                valid_from: None,
                valid_until: None,
                superseded_by: None,
            },
            provenance: Provenance { platform: "elsewhere".to_owned(), ..Provenance::default() },
            access: None,
            embedding_ref: None,
            metadata: serde_json::Map::new(),
        };
        Document { memory }
    }

    fn shown(documents: &[Document]) -> Vec<String> {
        let derived = derive_with(&[], documents);
        derived.memories.into_values().map(|memory| format!("{} {}", memory.status, memory.content)).collect()
    }

    #[test]
    fn the_later_version_is_shown_and_a_retraction_is_final() {
        let (early, late) =
            (memory("m", "early", Status::Active, 1), memory("m", "late", Status::Archived, 2));
        assert_eq!(shown(&[late.clone(), early.clone()]), ["archived late"]);
        let gone = memory("m", "gone", Status::Retracted, 0);
        assert_eq!(shown(&[late, gone, early]), ["retracted gone"]);
    }

    #[test]
    fn a_document_and_an_export_that_speak_of_one_memory_are_one() {
        let item = Item::new("I keep bees", MemoryType::Fact);
        let id = memory_id(&item);
        let witness = |at| Witness {
            id: "w".to_owned(),
            platform: "chatgpt".to_owned(),
            account: None,
            at,
            conversation: None,
            message: None,
            method: satchel_pam::memory::ExtractionMethod::ApiExport,
            extractor: "test/0.1.0".to_owned(),
            claim: Claim::Statement(item.clone()),
        };
        let document = memory(&id, "I keep bees", Status::Active, 10);
        let by_export = |at| {
            let derived = derive_with(&[witness(at)], [&document]);
            assert_eq!(derived.memories.len(), 1);
            derived.memories[&id].provenance.platform.clone()
        };
        assert_eq!((by_export(5).as_str(), by_export(20).as_str()), ("elsewhere", "chatgpt"));
    }

    #[test]
    fn stored_forms_tell_documents_and_witnesses_apart() {
        let document = memory("m", "x", Status::Active, 1);
        let (id, bytes) = document.encode().unwrap();
        assert!(Document::is(&bytes));
        assert_eq!(serde_json::from_slice::<Document>(&bytes).unwrap(), document);
        assert_ne!(memory("m", "y", Status::Active, 1).encode().unwrap().0, id);
    }

    proptest! {
        #[test]
        fn the_order_of_documents_never_matters(
            versions in prop::collection::vec((0_u8..3, 0_u8..3, 0_usize..5, 0_i64..3), 1..8),
            turn in 0_usize..8,
        ) {
            const STATUS: [Status; 5] =
                [Status::Active, Status::Superseded, Status::Deprecated, Status::Retracted, Status::Archived];
            let documents: Vec<Document> = versions
                .into_iter()
                .map(|(id, content, status, at)| memory(&id.to_string(), &content.to_string(), STATUS[status], at))
                .collect();
            let mut turned = documents.clone();
            turned.rotate_left(turn % documents.len());
            turned.reverse();
            prop_assert_eq!(derive_with(&[], &documents), derive_with(&[], &turned));
            let twice: Vec<Document> = documents.iter().chain(&documents).cloned().collect();
            prop_assert_eq!(derive_with(&[], &documents), derive_with(&[], &twice));
        }
    }
}
