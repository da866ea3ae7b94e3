//! Memories from PAM documents, complete and with their ids: the second kind of evidence.
//!
//! Every version that any document contained is kept. Which one is shown follows from all of them, regardless of the
//! order in which they arrived (`the_order_of_documents_never_matters`): a retracted version stays retracted; otherwise
//! the version that changed last is shown, and among versions that changed at the same time, the one that was exported
//! last. If provider exports contain the same memory, the version that changed last is shown, and a retraction by
//! either side is final.
//!
//! **Invariant:** a stranger's document is shown only if no other evidence exists for its memory
//! (`untrusted_documents_add_but_never_change`).

use std::collections::BTreeMap;

use satchel_pam::{
    hash::Sha256Digest,
    ids,
    lifecycle::changed_at,
    memory::{Memory, Status},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DerivedMemories, MemoryField, edited_fields};

/// Used in place of the platform in the ids of this evidence; no platform name contains a space.
const ID_NAMESPACE: &str = "pam document";
/// The beginning of the stored form; other evidence begins differently.
const STORED_PREFIX: &[u8] = br#"{"document":"#;

/// A memory as a PAM document contains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocumentEvidence {
    /// The memory.
    #[serde(rename = "document")]
    pub memory: Memory,
    /// When the document was exported, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported: Option<ExportTime>,
    /// The stranger who provided the document: the key that signed it, multibase, or [`UNSIGNED`]. `None` if the
    /// document comes from the user or from somebody whom the user trusts.
    #[serde(default, rename = "stranger", skip_serializing_if = "Option::is_none")]
    pub untrusted_signer: Option<String>,
}

/// Used in place of the key for unsigned documents: all of them count as documents of one stranger.
pub const UNSIGNED: &str = "unsigned";

/// When a document was exported; a later export compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExportTime {
    /// PAM `export_date`, in microseconds; it has a resolution of whole seconds.
    pub at: i64,
    /// Orders exports within one second: the revision in Satchel's manifest. Without a revision, an incremental export
    /// follows a full one.
    pub revision: u64,
}

/// The input of the evidence id: one version of a memory, regardless of which documents contain it.
#[derive(Serialize)]
struct MemoryVersion<'a> {
    document: &'a Memory,
}

impl DocumentEvidence {
    /// Returns whether the bytes of a stored piece of evidence are a document.
    pub fn is(bytes: &[u8]) -> bool {
        bytes.starts_with(STORED_PREFIX)
    }

    /// Returns the evidence id, which is unique for each version of a memory and each stranger, and the bytes to store.
    ///
    /// # Errors
    /// None in practice: every field is text, a number or a list of these.
    pub fn encode(&self) -> serde_json::Result<(String, Vec<u8>)> {
        let bytes = serde_json::to_vec(self)?;
        let mut version =
            Sha256Digest::of(&serde_json::to_vec(&MemoryVersion { document: &self.memory })?).to_hex();
        if let Some(signer) = &self.untrusted_signer {
            // The same content from another stranger is separate evidence: each can be removed independently.
            version.push('\n');
            version.push_str(signer);
        }
        Ok((ids::evidence_id(ID_NAMESPACE, Some(&self.memory.id), &version).to_string(), bytes))
    }
}

/// Unites the memories of `documents` with those derived from exports. Returns, for each memory that a document
/// retracted, when it did.
pub(super) fn add<'a>(
    derived: &mut DerivedMemories,
    documents: impl IntoIterator<Item = &'a DocumentEvidence>,
) -> BTreeMap<String, i64> {
    let mut retracted = BTreeMap::new();
    let mut shown: BTreeMap<&str, &DocumentEvidence> = BTreeMap::new();
    let mut foreign: BTreeMap<&str, &DocumentEvidence> = BTreeMap::new();
    for document in documents {
        let group = if document.untrusted_signer.is_none() { &mut shown } else { &mut foreign };
        let known = group.entry(&document.memory.id).or_insert(document);
        // Among several strangers only one counts: an import that finds another stranger's evidence stores none of its
        // own.
        let other = document.untrusted_signer != known.untrusted_signer;
        if other && document.untrusted_signer < known.untrusted_signer
            || !other && takes_precedence(document, known)
        {
            *known = document;
        }
    }
    foreign.retain(|id, _| !shown.contains_key(id) && !derived.memories.contains_key(*id));
    derived.untrusted = foreign
        .iter()
        .filter_map(|(id, one)| Some(((*id).to_owned(), one.untrusted_signer.clone()?)))
        .collect();
    for (id, DocumentEvidence { memory, .. }) in shown.into_iter().chain(foreign) {
        if memory.status == Status::Retracted {
            retracted.insert(id.to_owned(), changed_at(memory));
        }
        if derived.memories.get(id).is_none_or(|known| overrides_derived(memory, known)) {
            derived.memories.insert(id.to_owned(), memory.clone());
        }
    }
    retracted
}

/// Returns whether `one` takes precedence over `other`. A retraction wins (PAM rule 7.3: it is final), then the later
/// change, then the later export; if all of these are equal, the greater text.
fn takes_precedence(one: &DocumentEvidence, other: &DocumentEvidence) -> bool {
    let rank = |document: &DocumentEvidence| {
        let (retracted, changed) = rank(&document.memory);
        (retracted, changed, document.exported)
    };
    let text = |document: &DocumentEvidence| serde_json::to_string(&document.memory).unwrap_or_default();
    match rank(one).cmp(&rank(other)) {
        std::cmp::Ordering::Equal => one.memory != other.memory && text(one) > text(other),
        order => order.is_gt(),
    }
}

/// Returns whether a memory from a document would replace the `known` one if the user trusted its author.
pub fn would_change(new: &Memory, known: &Memory) -> bool {
    new != known && overrides_derived(new, known)
}

/// Returns whether a document takes precedence over the exports of providers; otherwise the state derived from our own
/// evidence stays. Edits that a user made by hand where the document comes from take precedence over anything that a
/// provider says.
fn overrides_derived(document: &Memory, derived: &Memory) -> bool {
    let edited = edited_fields(document);
    match (document.status == Status::Retracted, derived.status == Status::Retracted) {
        (false, true) => edited.contains_key(&MemoryField::Status),
        (true, false) => true,
        _ if edited.is_empty() => rank(document) > rank(derived),
        _ => true,
    }
}

/// Returns whether a memory is retracted, when it last changed according to PAM, and when it was last seen at its
/// provider; times are in microseconds.
fn rank(memory: &Memory) -> (bool, (i64, Option<i64>)) {
    let seen = memory.metadata.get("satchel").and_then(|own| own.get("last_seen")).and_then(Value::as_str);
    let seen = seen.and_then(|text| Timestamp::parse(text).ok()).map(Timestamp::micros);
    (memory.status == Status::Retracted, (changed_at(memory), seen))
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
    use crate::evidence::{StoredEvidence, UserEdits, derive_with, memory_id};

    fn memory(id: &str, content: &str, status: Status, updated: i64) -> DocumentEvidence {
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
        DocumentEvidence { memory, exported: None, untrusted_signer: None }
    }

    fn of(signer: &str, document: DocumentEvidence) -> DocumentEvidence {
        DocumentEvidence { untrusted_signer: Some(signer.to_owned()), ..document }
    }

    fn shown(documents: &[DocumentEvidence]) -> Vec<String> {
        let derived = derive_with(&[], documents, &UserEdits::default());
        derived.memories.into_values().map(|memory| format!("{} {}", memory.status, memory.content)).collect()
    }

    #[test]
    fn the_later_version_is_shown_and_a_retraction_is_final() {
        let (early, late) =
            (memory("m", "early", Status::Active, 1), memory("m", "late", Status::Archived, 2));
        assert_eq!(shown(&[late.clone(), early.clone()]), ["archived late"]);
        let retracted = memory("m", "gone", Status::Retracted, 0);
        assert_eq!(shown(&[late, retracted, early]), ["retracted gone"]);
    }

    #[test]
    fn of_simultaneous_versions_the_later_export_is_shown() {
        let (one, other) = (memory("m", "z", Status::Active, 1), memory("m", "a", Status::Active, 1));
        let dated = |document: &DocumentEvidence, revision| DocumentEvidence {
            exported: Some(ExportTime { at: 0, revision }),
            ..document.clone()
        };
        assert_eq!(shown(&[dated(&one, 5), dated(&other, 6)]), ["active a"]);
        assert_eq!(shown(&[dated(&other, 6), dated(&one, 7), dated(&other, 5)]), ["active z"]);
        assert_eq!(dated(&one, 5).encode().unwrap().0, one.encode().unwrap().0);
    }

    #[test]
    fn a_retraction_in_a_document_or_by_a_provider_is_final() {
        let derived = |status, at| {
            let mut derived = derive_with(&[], &[memory("m", "derived", status, at)], &UserEdits::default());
            add(&mut derived, &[memory("m", "document", Status::Active, 5)]);
            derived.memories["m"].content.clone()
        };
        assert_eq!(derived(Status::Retracted, 0), "derived");
        assert_eq!(
            (derived(Status::Active, 4).as_str(), derived(Status::Active, 5).as_str()),
            ("document", "derived")
        );
        let mut later = derive_with(&[], &[memory("m", "derived", Status::Active, 9)], &UserEdits::default());
        add(&mut later, &[memory("m", "document", Status::Retracted, 5)]);
        assert_eq!(later.memories["m"].status, Status::Retracted);
    }

    #[test]
    fn untrusted_documents_add_but_never_change() {
        let trusted = memory("m", "own", Status::Active, 1);
        for status in [Status::Active, Status::Retracted, Status::Superseded] {
            let late = of("z6MkStranger", memory("m", "late", status, 9));
            let alone = of("z6MkStranger", memory("n", "new", status, 9));
            let derived = derive_with(&[], [&late, &trusted, &alone], &UserEdits::default());
            assert_eq!(derived.memories["m"], trusted.memory);
            assert_eq!(derived.memories["n"], alone.memory);
            assert_eq!(derived.untrusted.keys().collect::<Vec<_>>(), ["n"]);
            assert_ne!(
                late.encode().unwrap().0,
                DocumentEvidence { untrusted_signer: None, ..late }.encode().unwrap().0
            );
        }
        let (first, later) =
            (memory("m", "first", Status::Active, 1), memory("m", "later", Status::Active, 2));
        let same = [of("k", later.clone()), of("k", first.clone())];
        assert_eq!(shown(&same), ["active later"], "a stranger may change what they brought");
        assert_eq!(shown(&[of("l", later), of("k", first)]), ["active first"]);
    }

    #[test]
    fn a_document_and_an_export_of_one_memory_are_united() {
        let item = Item::new("I keep bees", MemoryType::Fact);
        let id = memory_id(&item);
        let evidence = |at| StoredEvidence {
            id: "w".to_owned(),
            platform: "chatgpt".to_owned(),
            account: None,
            at,
            conversation: None,
            message: None,
            row: None,
            method: satchel_pam::memory::ExtractionMethod::ApiExport,
            extractor: "test/0.1.0".to_owned(),
            claim: Claim::Statement(item.clone()),
        };
        let document = memory(&id, "I keep bees", Status::Active, 10);
        let by_export = |at| {
            let derived = derive_with(&[evidence(at)], [&document], &UserEdits::default());
            assert_eq!(derived.memories.len(), 1);
            derived.memories[&id].provenance.platform.clone()
        };
        assert_eq!((by_export(5).as_str(), by_export(20).as_str()), ("elsewhere", "chatgpt"));
    }

    #[test]
    fn stored_documents_are_recognised() {
        let document = memory("m", "x", Status::Active, 1);
        let (id, bytes) = document.encode().unwrap();
        assert!(DocumentEvidence::is(&bytes));
        assert_eq!(serde_json::from_slice::<DocumentEvidence>(&bytes).unwrap(), document);
        assert_ne!(memory("m", "y", Status::Active, 1).encode().unwrap().0, id);
    }

    proptest! {
        #[test]
        fn the_order_of_documents_never_matters(
            versions in prop::collection::vec((0_u8..3, 0_u8..3, 0_usize..5, 0_i64..3, prop::option::of(0_i64..3)), 1..8),
            turn in 0_usize..8,
        ) {
            const STATUS: [Status; 5] =
                [Status::Active, Status::Superseded, Status::Deprecated, Status::Retracted, Status::Archived];
            let documents: Vec<DocumentEvidence> = versions
                .into_iter()
                .map(|(id, content, status, at, exported)| {
                    let document = memory(&id.to_string(), &content.to_string(), STATUS[status], at);
                    let untrusted_signer = (at == 1).then(|| UNSIGNED.to_owned());
                    let exported = exported.map(|at| ExportTime { at, revision: 1 });
                    DocumentEvidence { exported, untrusted_signer, ..document }
                })
                .collect();
            let mut turned = documents.clone();
            turned.rotate_left(turn % documents.len());
            turned.reverse();
            let derived = |documents: &[DocumentEvidence]| derive_with(&[], documents, &UserEdits::default());
            prop_assert_eq!(derived(&documents), derived(&turned));
            let twice: Vec<DocumentEvidence> = documents.iter().chain(&documents).cloned().collect();
            prop_assert_eq!(derived(&documents), derived(&twice));
        }
    }
}
