//! Memories and relations of a memory store.

use satchel_merge::{dangling::DanglingRefs, document::repair, evidence::DocumentEvidence};
use satchel_pam::{hash::ContentHash, ids, memory::Memory, record::RecordKind, relation::Relation};
use serde_json::{Value, json};

use super::{DocumentImport, claimed_ids::MEMORY};
use crate::ingest::{
    erased,
    error::IngestError,
    records::{ImportItem, content_fingerprint},
};

/// Longest memory, in bytes of its JSON: the size of a journal frame is limited, and evidence is read as a whole.
const LONGEST_MEMORY: usize = 32 << 20;

impl DocumentImport<'_, '_, '_> {
    pub(super) fn memory(&mut self, locator: String, mut memory: Memory) -> Result<(), IngestError> {
        if let Some(id) = &memory.provenance.conversation_ref {
            let created = memory.temporal.created_at;
            let first = self.named.entry(id.clone()).or_insert(created);
            *first = created.min(*first);
        }
        DanglingRefs::restore(&mut memory);
        let notes = match repair::memory(&mut memory, "") {
            Ok(notes) => notes,
            Err(reason) => {
                return self.skip(RecordKind::Memory, locator, reason.trim_start_matches('.').to_owned());
            }
        };
        for note in notes {
            self.warn(locator.clone(), note);
        }
        if let Err(reason) = self.taken.claim(MEMORY, &memory.id)
            && !self.other_id(&locator, &mut memory)
        {
            return self.skip(RecordKind::Memory, locator, reason);
        }
        if self.purged.contains_memory(&memory.id, &memory.content_hash.to_string())
            || self.purged.contains_text(&memory.content)
        {
            return self.skip(RecordKind::Memory, locator, erased::REASON.to_owned());
        }
        let length = serde_json::to_vec(&memory).map_or(usize::MAX, |json| json.len());
        if length > LONGEST_MEMORY {
            let reason = format!("it is longer than {LONGEST_MEMORY} bytes");
            return self.skip(RecordKind::Memory, locator, reason);
        }
        if !memory.exportable() {
            self.warn(
                locator,
                "it says that it may not stand in an export; it is kept and will not".to_owned(),
            );
        }
        self.taken.note_content(&memory.id, &memory.content_hash);
        let document = DocumentEvidence {
            memory,
            exported: self.exported,
            untrusted_signer: self.deferred.untrusted.clone(),
        };
        self.writer.write(ImportItem::Document(Box::new(document)), self.record)
    }

    /// Some producers give the same id to different memories. Gives the second one the id that its content would have
    /// here. Returns false if that id is taken too, as it is the same memory again.
    fn other_id(&mut self, locator: &str, memory: &mut Memory) -> bool {
        if memory.id.is_empty() {
            return false;
        }
        let first =
            self.taken.content(&memory.id).map(|first| first == content_fingerprint(&memory.content_hash));
        let hash = ContentHash::of(&memory.content);
        let id = ids::memory_id(&hash, memory.memory_type, memory.custom_type.as_deref(), None).to_string();
        if first != Some(false) || self.taken.claim(MEMORY, &id).is_err() {
            return false;
        }
        let original = json!({"id": memory.id});
        let kept = memory.metadata.entry(repair::ORIGINAL_KEY).or_insert_with(|| json!({}));
        if let (Value::Object(kept), Value::Object(original)) = (kept, original) {
            kept.extend(original);
        }
        self.warn(
            locator.to_owned(),
            format!("another memory has the id {:?}; this one got {id:?}", memory.id),
        );
        memory.id = id;
        true
    }

    pub(super) fn relation(&mut self, locator: String, mut relation: Relation) {
        if let Err(reason) = self.taken.claim("relation", &relation.id) {
            return self.warn(locator, format!("the relation is left out: {reason}"));
        }
        if let Some(score) = relation.confidence.take_if(|score| !(0.0..=1.0).contains(score)) {
            self.warn(locator, format!("its confidence {score} is not within 0 to 1 and is left out"));
        }
        self.deferred.drawn.push(relation);
    }
}
