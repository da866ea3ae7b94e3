//! The records of a memory store and of an embeddings document.

use std::collections::BTreeSet;

use satchel_pam::{
    embedding::EmbeddingsDocument,
    hash::ContentHash,
    ids,
    memory::Memory,
    parse::{self, Remains},
    record::RecordKind,
    relation::Relation,
    store::{IndexEntry, MemoryStore},
};
use serde_json::{Value, json};

use super::{LONGEST, Reading};
use crate::{
    ingest::{
        IngestError,
        purge::gate,
        run::{Normalised, ToldVector},
    },
    plan::{dangling::Dangling, document::mend, evidence::Document},
};

/// Longest memory, in bytes of its JSON: the journal takes no endless frame, and evidence is read whole.
const LONGEST_MEMORY: usize = 32 << 20;

impl Reading<'_, '_, '_> {
    /// Takes memories and relations; answers the index, each entry with its place.
    pub(super) fn memories(
        &mut self,
        name: &str,
        document: MemoryStore,
        remains: &Remains,
    ) -> Result<Vec<(usize, IndexEntry)>, IngestError> {
        let MemoryStore { memories, relations, conversations_index, .. } = document;
        for memory in &memories {
            if let Some(id) = &memory.provenance.conversation_ref {
                let created = memory.temporal.created_at;
                let first = self.named.entry(id.clone()).or_insert(created);
                *first = created.min(*first);
            }
        }
        for (at, memory) in placed(memories, "memories", remains) {
            // A million of them take seconds before the first is written.
            self.writer.wanted()?;
            self.memory(format!("{name}:$.memories[{at}]"), memory)?;
        }
        for entry in &remains.left_out {
            let locator = format!("{name}:{}", entry.path());
            match entry.list {
                "memories" => self.skip(RecordKind::Memory, locator, entry.reason.clone())?,
                "conversations_index" => {
                    // The file, if there is one, is found and read without the index.
                    self.warn(locator, format!("the entry is left out: {}", entry.reason));
                }
                _ => self.warn(locator, format!("the relation is left out: {}", entry.reason)),
            }
        }
        for (at, relation) in placed(relations, "relations", remains) {
            self.relation(format!("{name}:$.relations[{at}]"), relation);
        }
        Ok(placed(conversations_index, "conversations_index", remains))
    }

    fn memory(&mut self, locator: String, mut memory: Memory) -> Result<(), IngestError> {
        Dangling::restore(&mut memory);
        let notes = match mend::memory(&mut memory, "") {
            Ok(notes) => notes,
            Err(reason) => {
                return self.skip(RecordKind::Memory, locator, reason.trim_start_matches('.').to_owned());
            }
        };
        for note in notes {
            self.warn(locator.clone(), note);
        }
        if let Err(reason) = self.claim("memory", &memory.id)
            && !self.other_id(&locator, &mut memory)
        {
            return self.skip(RecordKind::Memory, locator, reason);
        }
        if self.purged.memory(&memory.id, &memory.content_hash.to_string())
            || self.purged.text(&memory.content)
        {
            return self.skip(RecordKind::Memory, locator, gate::REASON.to_owned());
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
        self.hashes.insert(memory.id.clone(), memory.content_hash);
        let document = Document { memory, exported: self.exported, stranger: self.tail.stranger.clone() };
        self.writer.take(Normalised::Document(Box::new(document)), self.record)
    }

    /// Some producers give one id to different memories. The second gets the id that its content would have here; false if
    /// that is taken as well, so that it is the same memory again.
    fn other_id(&mut self, locator: &str, memory: &mut Memory) -> bool {
        if memory.id.is_empty() {
            return false;
        }
        let first = self.hashes.get(&memory.id).map(|hash| *hash == memory.content_hash);
        let hash = ContentHash::of(&memory.content);
        let id = ids::memory_id(&hash, memory.memory_type, memory.custom_type.as_deref(), None).to_string();
        if first != Some(false) || self.claim("memory", &id).is_err() {
            return false;
        }
        let original = json!({"id": memory.id});
        let kept = memory.metadata.entry(mend::ORIGINAL_KEY).or_insert_with(|| json!({}));
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

    fn relation(&mut self, locator: String, mut relation: Relation) {
        if let Err(reason) = self.claim("relation", &relation.id) {
            return self.warn(locator, format!("the relation is left out: {reason}"));
        }
        if let Some(score) = relation.confidence.take_if(|score| !(0.0..=1.0).contains(score)) {
            self.warn(locator, format!("its confidence {score} is not within 0 to 1 and is left out"));
        }
        self.tail.drawn.push(relation);
    }

    /// Reads an embeddings document.
    pub(super) fn embeddings(&mut self, name: &str) -> Result<(), IngestError> {
        let bytes = match self.read(name, LONGEST)? {
            Ok(bytes) => bytes,
            Err(reason) => return self.skip(RecordKind::File, name.to_owned(), reason),
        };
        let (document, issues, remains) = parse::salvage_embeddings(&bytes);
        drop(bytes);
        let Some(EmbeddingsDocument { embeddings, .. }) = document else {
            return self.skip(RecordKind::File, name.to_owned(), super::refusal(name, &issues));
        };
        self.tell(name, &issues, &remains);
        self.broken(name, &remains)?;
        for entry in &remains.left_out {
            self.record.embeddings.leave_out();
            self.warn(
                format!("{name}:{}", entry.path()),
                format!("the embedding is left out: {}", entry.reason),
            );
        }
        for (at, embedding) in placed(embeddings, "embeddings", &remains) {
            match self.claim("embedding", &embedding.id) {
                Ok(()) => {
                    let of = self.hashes.get(&embedding.memory_id).copied();
                    self.tail.vectors.push(ToldVector { embedding, of });
                }
                Err(reason) => {
                    self.record.embeddings.leave_out();
                    let message = format!("the embedding is left out: {reason}");
                    self.warn(format!("{name}:$.embeddings[{at}]"), message);
                }
            }
        }
        Ok(())
    }
}

/// The records that were read, each with its place in the document's list.
pub(super) fn placed<T>(records: Vec<T>, list: &str, remains: &Remains) -> Vec<(usize, T)> {
    let left_out: BTreeSet<usize> =
        remains.left_out.iter().filter(|entry| entry.list == list).map(|entry| entry.index).collect();
    (0..).filter(|at| !left_out.contains(at)).zip(records).collect()
}
